// Secondary indexes: ranges, lookups without a std::string, and a merge that matches through one of them.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

struct Price {
  std::string sku;
  int day = 0;
  std::optional<std::string> region;
  int cents = 0;
};
BOOST_DESCRIBE_STRUCT(Price, (), (sku, day, region, cents))

using Prices = kf::Table<Price, kf::Key<&Price::sku, &Price::day>,  // composite key
                         kf::OrderedBy<&Price::day, &Price::cents>,
                         kf::HashedBy<&Price::region>>;

struct Surcharge {
  std::optional<std::string> region;
  int cents = 0;
};

int main() {
  Prices prices;
  prices.append({{"tea", 1, "north", 450},
                 {"tea", 2, "north", 460},
                 {"rum", 1, "south", 900},
                 {"rum", 3, std::nullopt, 950}});

  constexpr std::string_view sku = "tea";
  std::cout << "tea on day 2: " << prices.at(sku, 2).cents << ", on day 3: " << prices.contains(sku, 3) << "\n\n";

  const auto by_day = prices.by<&Price::day, &Price::cents>();
  std::cout << kf::print(by_day.equal_range(1)) << kf::print(by_day.range(2, 4))
            << kf::print(by_day.range(std::tuple(1, 500), std::tuple(2, 460))) << '\n';

  // One source row may match several target rows. An absent region matches nothing, as in SQL.
  const std::vector<Surcharge> surcharges{{"north", 5}, {std::nullopt, 99}, {"west", 1}};
  const auto result = prices.merge(surcharges)
                          .on<&Surcharge::region>(kf::by<&Price::region>)
                          .when_matched().update(kf::target<&Price::cents> =
                                                     kf::target<&Price::cents> + kf::source<&Surcharge::cents>)
                          .execute();
  std::cout << result.metrics() << '\n' << kf::print(prices);
}
