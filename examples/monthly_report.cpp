// A report is delivered month by month, and corrected later: one month that is named, then whichever months a
// correction touches.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <string>
#include <vector>

struct Line {
  std::string month;
  std::string shop;
  int orders = 0;
  int cents = 0;
};
BOOST_DESCRIBE_STRUCT(Line, (), (month, shop, orders, cents))

using Report = kf::Table<Line, kf::OrderedKey<&Line::month, &Line::shop>>;

constexpr auto month = kf::target<&Line::month>;

int main() {
  Report report;
  report.require("orders are counted", kf::target<&Line::orders> >= 0);
  report.append({{"2026-08", "harbour", 40, 81'000}, {"2026-08", "market", 12, 20'500}});
  report.append({{"2026-09", "harbour", 38, 79'900}, {"2026-09", "market", 15, 31'000}});

  // August as closed by the accountants. The market was shut: its line goes.
  const std::vector<Line> august{{"2026-08", "harbour", 41, 82'200}, {"2026-08", "station", 3, 4'100}};
  const auto closed = report.metadata("close of August").replace_where(month == "2026-08", august);
  std::cout << kf::print(closed.changes()) << '\n';

  // A line of September has slipped in: nothing is written.
  try {
    report.replace_where(month == "2026-08", {{"2026-08", "harbour", 41, 82'200}, {"2026-09", "kiosk", 1, 100}});
  } catch (const kf::ReplaceWhereMismatch& error) {
    std::cout << error.what() << "\n\n";
  }

  // A correction of every month that it has lines of; the lines of a shop come in twice, the later one counts.
  const std::vector<Line> correction{{"2026-09", "harbour", 38, 79'900},
                                     {"2026-09", "station", 9, 1'000},
                                     {"2026-10", "harbour", 7, 15'000},
                                     {"2026-09", "station", 9, 11'000}};
  const auto corrected = report.duplicates(kf::keep_last).replace_using<&Line::month>(correction);
  std::cout << corrected.metrics() << '\n' << kf::print(corrected.changes()) << '\n';

  for (const auto& commit : report.history()) {
    std::cout << commit.version() << ' ' << commit.operation() << ' ' << commit.parameters() << '\n';
  }
  std::cout << kf::print(report);
}
