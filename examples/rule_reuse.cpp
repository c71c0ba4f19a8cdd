// A rule is built once, at compile time, and run on many tables and batches. preview() tells what it would do.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <map>
#include <string>
#include <vector>

struct Reading {
  std::string sensor;
  int sequence = 0;
  double celsius = 0;
};
BOOST_DESCRIBE_STRUCT(Reading, (), (sensor, sequence, celsius))

using Latest = kf::Table<Reading, kf::OrderedKey<&Reading::sensor>>;

constexpr auto keep_newest = kf::merge_rule<Reading>()
                                 .duplicates(kf::latest_by<&Reading::sequence>)
                                 .when_matched(kf::source<&Reading::sequence> > kf::target<&Reading::sequence>)
                                     .update_all()
                                 .when_not_matched().insert_all();

int main() {
  std::cout << keep_newest.text() << "\n\n";

  std::map<std::string, Latest> by_site;
  by_site["oslo"].merge(std::vector<Reading>{{"roof", 2, 7.5}, {"cellar", 1, 11}, {"roof", 1, 7.0}}, keep_newest);
  by_site["rome"].merge(std::vector<Reading>{{"yard", 1, 24.25}}, keep_newest);

  const std::vector<Reading> batch{{"roof", 1, 7.0}, {"cellar", 2, 11.5}, {"door", 1, 3}};
  const auto would_do = by_site["oslo"].preview(batch, keep_newest);
  std::cout << "would do, at version " << by_site["oslo"].version() << ":\n" << kf::print(would_do) << '\n';

  const auto result = by_site["oslo"].merge(batch, keep_newest);
  std::cout << "did, version " << result.version() << ": " << result.metrics() << '\n'
            << "as foretold: " << std::boolalpha << (result.changes() == would_do) << "\n\n";

  for (const auto& [site, latest] : by_site) std::cout << site << '\n' << kf::print(latest);
}
