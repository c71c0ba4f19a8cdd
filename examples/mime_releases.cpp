// The main example: fifteen releases of a media-type database, each a full copy, merged one over the other. Rows are
// updated only where they differ and deleted when a release does not have them any more. Checks itself: the counts must
// equal those of steps.csv, which another program worked out, and the table must end as the last release.
// Argument: the directory of the data; examples/data/mime-db if there is none.
#include <keyfold/csv.hpp>
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

struct MimeType {
  std::string mime_type;
  std::optional<std::string> source;
  std::optional<std::string> charset;
  std::optional<bool> compressible;
  std::optional<std::string> extensions;
  bool operator==(const MimeType&) const = default;
};
BOOST_DESCRIBE_STRUCT(MimeType, (), (mime_type, source, charset, compressible, extensions))

struct Step {
  std::string release;
  std::size_t rows = 0, inserted = 0, updated = 0, deleted = 0, unchanged = 0;
  bool operator==(const Step&) const = default;
};
BOOST_DESCRIBE_STRUCT(Step, (), (release, rows, inserted, updated, deleted, unchanged))

using MimeTypes = kf::Table<MimeType, kf::Key<&MimeType::mime_type>>;

Step load(MimeTypes& types, const std::filesystem::path& directory, const std::string& release) {
  const auto result = types.merge(kf::csv_rows<MimeType>(directory / (release + ".csv")))
                          .when_matched().update_all()
                          .when_not_matched().insert_all()
                          .when_not_matched_by_source().erase()
                          .metadata(release)
                          .execute();
  const kf::Metrics& counts = result.metrics();
  return {release, types.size(), counts.inserted, counts.updated, counts.deleted, counts.unchanged};
}

bool equals(const MimeTypes& types, const std::vector<MimeType>& rows) {
  const auto has = [&](const MimeType& row) {
    const MimeType* found = types.find(row.mime_type);
    return found != nullptr && *found == row;
  };
  return types.size() == rows.size() && std::all_of(rows.begin(), rows.end(), has);
}

void run(const std::filesystem::path& directory) {
  MimeTypes types;
  std::vector<Step> steps, wrong;
  for (const Step& expected : kf::read_csv<Step>(directory / "steps.csv")) {
    steps.push_back(load(types, directory, expected.release));
    if (steps.back() != expected) wrong.push_back(expected);
  }
  std::cout << kf::print(steps) << '\n' << types.size() << " media types at version " << types.version() << '\n';
  if (steps.empty()) throw std::runtime_error("steps.csv names no release");
  if (!wrong.empty()) throw std::runtime_error("steps.csv counts otherwise:\n" + kf::print(wrong).text());
  const auto last = kf::read_csv<MimeType>(directory / (steps.back().release + ".csv"));
  if (!equals(types, last)) throw std::runtime_error("the table differs from the last release");
  std::cout << "every count equals steps.csv, and the table equals the last release\n";
}

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/mime-db");
  } catch (const std::exception& error) {
    std::cerr << "mime_releases: " << error.what() << '\n';
    return 1;
  }
}
