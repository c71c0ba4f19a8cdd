#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>

#include <algorithm>
#include <concepts>
#include <iterator>
#include <limits>
#include <ranges>
#include <string>
#include <tuple>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using keyfold_test::contains;

namespace {

struct Price {
  int id = 0;
  std::string region;
  int day = 0;
  std::optional<std::string> barcode;
  double amount = 0;
  bool operator==(const Price&) const = default;

  int week() const { return day / 7; }
};

constexpr auto lower_region = [](const Price& price) {
  std::string out = price.region;
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
};

using Prices = kf::Table<Price, kf::Key<&Price::id>,                  //
                         kf::OrderedBy<&Price::day>,                  //
                         kf::HashedBy<&Price::region>,                //
                         kf::OrderedBy<&Price::region, &Price::day>,  //
                         kf::UniqueBy<&Price::barcode>>;

Prices some_prices() {
  Prices prices;
  prices.append({{1, "north", 20, "b1", 1.0},
                 {2, "south", 10, "b2", 2.0},
                 {3, "north", 30, {}, 3.0},
                 {4, "east", 20, {}, 4.0},
                 {5, "north", 20, "b5", 5.0}});
  return prices;
}

using Ids = std::vector<int>;

template <class Rows>
Ids ids(Rows&& rows) {
  Ids out;
  for (const Price& price : rows) out.push_back(price.id);
  return out;
}

template <class Rows>
Ids sorted_ids(const Rows& rows) {
  Ids out = ids(rows);
  std::ranges::sort(out);
  return out;
}

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("an ordered index iterates in the order of its values, equal ones in the order of their arrival") {
  const auto prices = some_prices();
  CHECK(ids(prices.by<&Price::day>()) == Ids{2, 1, 4, 5, 3});
  CHECK(ids(prices.by<&Price::region, &Price::day>()) == Ids{4, 1, 5, 3, 2});
}

TEST_CASE("a hashed index iterates over every row once") {
  const auto prices = some_prices();
  CHECK(sorted_ids(prices.by<&Price::region>()) == Ids{1, 2, 3, 4, 5});
  CHECK(sorted_ids(prices.by<&Price::barcode>()) == Ids{1, 2, 3, 4, 5});
}

TEST_CASE("an index is as large as its table") {
  auto prices = some_prices();
  CHECK(prices.by<&Price::day>().size() == 5);
  CHECK_FALSE(prices.by<&Price::region>().empty());
  const auto view = prices.by<&Price::day>();
  prices.clear();
  CHECK(view.size() == 0);
  CHECK(view.empty());
  CHECK(view.begin() == view.end());
}

TEST_CASE("equal_range has the rows equal to a value") {
  const auto prices = some_prices();
  CHECK(ids(prices.by<&Price::day>().equal_range(20)) == Ids{1, 4, 5});
  CHECK(sorted_ids(prices.by<&Price::region>().equal_range("north")) == Ids{1, 3, 5});
  CHECK(prices.by<&Price::day>().equal_range(21).empty());
  CHECK(prices.by<&Price::region>().equal_range("west").empty());
  CHECK(ids(prices.by<&Price::barcode>().equal_range("b2")) == Ids{2});
  CHECK(sorted_ids(prices.by<&Price::barcode>().equal_range(std::nullopt)) == Ids{3, 4});
}

TEST_CASE("find has one of the rows equal to a value, or null") {
  const auto prices = some_prices();
  REQUIRE(prices.by<&Price::day>().find(20) != nullptr);
  CHECK(prices.by<&Price::day>().find(20)->id == 1);
  CHECK(prices.by<&Price::barcode>().find("b5")->id == 5);
  CHECK(prices.by<&Price::barcode>().find("b6") == nullptr);
  CHECK(prices.by<&Price::region>().contains("east"));
  CHECK_FALSE(prices.by<&Price::region>().contains("west"));
}

TEST_CASE("an index takes lookup values of every width and kind") {
  const auto prices = some_prices();
  CHECK(prices.by<&Price::day>().equal_range(20U).front().id == 1);
  CHECK(prices.by<&Price::day>().equal_range(std::int8_t{10}).front().id == 2);
  CHECK(prices.by<&Price::day>().equal_range(std::uint64_t{1} << 32U | 20U).empty());
  CHECK(prices.by<&Price::region>().contains(std::string_view("south")));
  CHECK(prices.by<&Price::region>().contains(std::string("south")));
  CHECK(prices.by<&Price::barcode>().contains(std::optional<std::string>("b1")));
}

TEST_CASE("range is half open") {
  const auto prices = some_prices();
  const auto days = prices.by<&Price::day>();
  CHECK(ids(days.range(10, 30)) == Ids{2, 1, 4, 5});
  CHECK(ids(days.range(10, 31)) == Ids{2, 1, 4, 5, 3});
  CHECK(ids(days.range(11, 20)).empty());
  CHECK(ids(days.range(20, 21)) == Ids{1, 4, 5});
  CHECK(ids(days.range(-100, 1000)) == Ids{2, 1, 4, 5, 3});
  CHECK(days.range(31, 1000).empty());
  CHECK(days.range(20, 20).empty());
}

TEST_CASE("a range whose high bound is below its low one is empty") {
  const auto prices = some_prices();
  CHECK(prices.by<&Price::day>().range(30, 10).empty());
  CHECK(prices.by<&Price::day>().range(1000, -1000).empty());
  CHECK(prices.by<&Price::region, &Price::day>()
            .range(std::tuple("north", 30), std::tuple("north", 20))
            .empty());
}

TEST_CASE("a composite ordered index finds by its leading part") {
  const auto prices = some_prices();
  const auto view = prices.by<&Price::region, &Price::day>();
  CHECK(ids(view.equal_range("north")) == Ids{1, 5, 3});
  CHECK(ids(view.equal_range("north", 20)) == Ids{1, 5});
  CHECK(view.equal_range("nort").empty());
  CHECK(view.find("south")->id == 2);
  CHECK(view.contains("east", 20));
  CHECK_FALSE(view.contains("east", 21));
}

TEST_CASE("range bounds of a composite index are values of its first part or tuples of leading parts") {
  const auto prices = some_prices();
  const auto view = prices.by<&Price::region, &Price::day>();
  CHECK(ids(view.range("east", "south")) == Ids{4, 1, 5, 3});
  CHECK(ids(view.range(std::tuple("north", 20), std::tuple("north", 30))) == Ids{1, 5});
  CHECK(ids(view.range(std::tuple("north", 21), std::tuple("south", 11))) == Ids{3, 2});
  CHECK(ids(view.range("north", std::tuple("north", 30))) == Ids{1, 5});
  CHECK(ids(view.range(std::tuple("north", 30), "south")) == Ids{3});
  CHECK(ids(view.range(std::tuple("east"), std::tuple("north"))) == Ids{4});
  CHECK(ids(view.range(std::pair("north", 20), std::pair("north", 21))) == Ids{1, 5});
}

TEST_CASE("a range from a tuple to the value that starts it is empty") {
  const auto prices = some_prices();
  const auto view = prices.by<&Price::region, &Price::day>();
  CHECK(view.range(std::tuple("north", 20), "north").empty());
  CHECK(view.range("south", std::tuple("north", 30)).empty());
  CHECK(view.range("north", "north").empty());
}

TEST_CASE("indexes follow every kind of write") {
  auto prices = some_prices();
  prices.insert({6, "west", 5, "b6", 6.0});
  CHECK(ids(prices.by<&Price::day>().range(0, 10)) == Ids{6});

  prices.upsert({2, "west", 25, "b2", 2.0});  // day and region move, the barcode stays
  CHECK(ids(prices.by<&Price::day>()) == Ids{6, 1, 4, 5, 2, 3});
  CHECK(sorted_ids(prices.by<&Price::region>().equal_range("west")) == Ids{2, 6});
  CHECK(prices.by<&Price::region>().equal_range("south").empty());
  CHECK(prices.by<&Price::barcode>().find("b2")->day == 25);

  prices.erase(6);
  CHECK_FALSE(prices.by<&Price::barcode>().contains("b6"));
  CHECK(ids(prices.by<&Price::region>().equal_range("west")) == Ids{2});

  prices.clear();
  CHECK(prices.by<&Price::region, &Price::day>().equal_range("north").empty());
  prices.insert({1, "north", 1, "b1", 0.0});
  CHECK(ids(prices.by<&Price::region, &Price::day>().equal_range("north")) == Ids{1});
}

TEST_CASE("an update of other columns leaves a row in its index") {
  auto prices = some_prices();
  Price changed = prices.at(4);
  changed.amount = 9;
  prices.upsert(changed);
  CHECK(ids(prices.by<&Price::day>()) == Ids{2, 1, 4, 5, 3});
  CHECK(prices.by<&Price::day>().equal_range(20).front().id == 1);
  CHECK(prices.by<&Price::region>().find("east")->amount == 9);
}

TEST_CASE("a failed write leaves the indexes alone") {
  auto prices = some_prices();
  CHECK_THROWS_AS(prices.upsert({{1, "west", 1, "b1", 0.0}, {7, "west", 1, "b2", 0.0}}), kf::UniqueViolation);
  CHECK(ids(prices.by<&Price::day>()) == Ids{2, 1, 4, 5, 3});
  CHECK(prices.by<&Price::region>().equal_range("west").empty());
}

TEST_CASE("a unique index refuses a second row, rows with an empty optional are exempt") {
  auto prices = some_prices();
  CHECK_THROWS_AS(prices.insert({6, "north", 1, "b1", 0.0}), kf::UniqueViolation);
  CHECK_NOTHROW(prices.insert({6, "north", 1, {}, 0.0}));
  CHECK_NOTHROW(prices.insert({7, "north", 1, "", 0.0}));
  CHECK_THROWS_AS(prices.insert({8, "north", 1, "", 0.0}), kf::UniqueViolation);  // empty text is a value
}

TEST_CASE("a composite unique index exempts rows with any part empty") {
  struct Seat {
    int id = 0;
    std::optional<int> row, number;
  };
  kf::Table<Seat, kf::Key<&Seat::id>, kf::UniqueBy<&Seat::row, &Seat::number>> seats;
  seats.append({{1, 1, 1}, {2, 1, 2}, {3, 1, {}}, {4, 1, {}}, {5, {}, 1}, {6, {}, {}}, {7, {}, {}}});
  CHECK(seats.size() == 7);
  CHECK_THROWS_AS(seats.insert({8, 1, 2}), kf::UniqueViolation);
  CHECK_THROWS_AS(seats.upsert({3, 1, 1}), kf::UniqueViolation);
  CHECK_NOTHROW(seats.upsert({3, 2, 1}));
  CHECK(seats.by<&Seat::row, &Seat::number>().find(2, 1)->id == 3);
}

TEST_CASE("unique values are swapped in one write") {
  auto prices = some_prices();
  prices.upsert({{1, "north", 20, "b2", 1.0}, {2, "south", 10, "b1", 2.0}});
  CHECK(prices.by<&Price::barcode>().find("b1")->id == 2);
  CHECK(prices.by<&Price::barcode>().find("b2")->id == 1);
}

TEST_CASE("a unique index holds negative zero and zero for one, and refuses a second NaN") {
  kf::Table<Price, kf::Key<&Price::id>, kf::UniqueBy<&Price::amount>> prices;
  prices.append({{1, "", 0, {}, 0.0}, {2, "", 0, {}, nan_value}});
  CHECK_THROWS_AS(prices.insert({3, "", 0, {}, -0.0}), kf::UniqueViolation);
  CHECK_THROWS_AS(prices.insert({3, "", 0, {}, nan_value}), kf::UniqueViolation);
  CHECK(prices.by<&Price::amount>().find(nan_value)->id == 2);
}

TEST_CASE("NaN comes last in an ordered index and hides no row") {
  kf::Table<Price, kf::Key<&Price::id>, kf::OrderedBy<&Price::amount>> prices;
  prices.append({{1, "", 0, {}, nan_value},
                 {2, "", 0, {}, 3.0},
                 {3, "", 0, {}, infinity},
                 {4, "", 0, {}, nan_value},
                 {5, "", 0, {}, -infinity},
                 {6, "", 0, {}, 2.0}});
  const auto amounts = prices.by<&Price::amount>();
  CHECK(ids(amounts) == Ids{5, 6, 2, 3, 1, 4});
  CHECK(amounts.find(3.0)->id == 2);
  CHECK(ids(amounts.equal_range(nan_value)) == Ids{1, 4});
  CHECK(ids(amounts.range(2.0, nan_value)) == Ids{6, 2, 3});
  CHECK(ids(amounts.range(2.5, infinity)) == Ids{2});
  CHECK(amounts.range(nan_value, 1.0).empty());

  prices.upsert({1, "", 0, {}, 1.0});
  prices.upsert({6, "", 0, {}, nan_value});
  prices.erase(4);
  CHECK(ids(amounts) == Ids{5, 1, 2, 3, 6});
}

TEST_CASE("NaN is found in a hashed index") {
  kf::Table<Price, kf::Key<&Price::id>, kf::HashedBy<&Price::amount>> prices;
  prices.append({{1, "", 0, {}, nan_value}, {2, "", 0, {}, 3.0}, {3, "", 0, {}, nan_value}});
  CHECK(sorted_ids(prices.by<&Price::amount>().equal_range(nan_value)) == Ids{1, 3});
  prices.erase(1);
  CHECK(ids(prices.by<&Price::amount>().equal_range(nan_value)) == Ids{3});
}

TEST_CASE("empty optionals come first in an ordered index") {
  kf::Table<Price, kf::Key<&Price::id>, kf::OrderedBy<&Price::barcode>> prices;
  prices.append({{1, "", 0, "b", 0}, {2, "", 0, {}, 0}, {3, "", 0, "", 0}, {4, "", 0, {}, 0}});
  const auto barcodes = prices.by<&Price::barcode>();
  CHECK(ids(barcodes) == Ids{2, 4, 3, 1});
  CHECK(ids(barcodes.equal_range(std::nullopt)) == Ids{2, 4});
  CHECK(ids(barcodes.range(std::nullopt, "b")) == Ids{2, 4, 3});
  CHECK(ids(barcodes.range("", "c")) == Ids{3, 1});
}

TEST_CASE("an index of a function or a callable") {
  kf::Table<Price, kf::Key<&Price::id>, kf::OrderedBy<&Price::week>, kf::HashedBy<lower_region>> prices;
  prices.append({{1, "North", 20, {}, 0}, {2, "NORTH", 3, {}, 0}, {3, "east", 8, {}, 0}});
  CHECK(ids(prices.by<&Price::week>()) == Ids{2, 3, 1});
  CHECK(ids(prices.by<&Price::week>().range(1, 3)) == Ids{3, 1});
  CHECK(sorted_ids(prices.by<lower_region>().equal_range("north")) == Ids{1, 2});
  CHECK(prices.by<lower_region>().equal_range("North").empty());
}

TEST_CASE("the key of a table with an OrderedKey is an index, too") {
  kf::Table<Price, kf::OrderedKey<&Price::region, &Price::day>> prices;
  prices.append({{1, "north", 20, {}, 0}, {2, "south", 10, {}, 0}, {3, "north", 10, {}, 0}});
  const auto view = prices.by<&Price::region, &Price::day>();
  CHECK(ids(view) == Ids{3, 1, 2});
  CHECK(ids(view.equal_range("north")) == Ids{3, 1});
  CHECK(ids(view.equal_range("north", 20)) == Ids{1});
  CHECK(ids(view.range(std::tuple("north", 11), "t")) == Ids{1, 2});
  CHECK(view.find("south", 10)->id == 2);
}

TEST_CASE("two indexes over the same members in another order are different indexes") {
  kf::Table<Price, kf::Key<&Price::id>, kf::OrderedBy<&Price::day, &Price::region>,
            kf::OrderedBy<&Price::region, &Price::day>>
      prices;
  prices.append({{1, "b", 1, {}, 0}, {2, "a", 2, {}, 0}});
  CHECK(ids(prices.by<&Price::day, &Price::region>()) == Ids{1, 2});
  CHECK(ids(prices.by<&Price::region, &Price::day>()) == Ids{2, 1});
}

TEST_CASE("index views and their rows are ranges") {
  using Ordered = decltype(std::declval<const Prices&>().by<&Price::day>());
  using Hashed = decltype(std::declval<const Prices&>().by<&Price::region>());
  STATIC_REQUIRE(std::ranges::bidirectional_range<Ordered>);
  STATIC_REQUIRE(std::ranges::forward_range<Hashed>);
  STATIC_REQUIRE(std::same_as<std::ranges::range_reference_t<Ordered>, const Price&>);
  STATIC_REQUIRE(std::ranges::view<Ordered::Rows>);
  STATIC_REQUIRE(std::ranges::borrowed_range<Ordered::Rows>);
  STATIC_REQUIRE(std::ranges::view<Ordered>);
  STATIC_REQUIRE(std::ranges::borrowed_range<Ordered>);
}

TEST_CASE("index views and ranges of rows compose with views") {
  const auto prices = some_prices();
  const auto days = prices.by<&Price::day>();
  const auto cheap = [](const Price& price) { return price.amount < 5; };
  CHECK(ids(days | ranges::views::filter(cheap) | ranges::views::take(3)) == Ids{2, 1, 4});
  CHECK(ids(prices.by<&Price::day>() | ranges::views::take(2)) == Ids{2, 1});
  CHECK(ids(prices.by<&Price::day>().range(20, 40) | ranges::views::filter(cheap)) == Ids{1, 4, 3});
  const auto later = days.range(20, 40);
  CHECK(ids(later | ranges::views::filter(cheap)) == Ids{1, 4, 3});
  int sum = 0;
  for (const int day : later | ranges::views::take(3) | ranges::views::transform(&Price::day)) sum += day;
  CHECK(sum == 60);
}

TEST_CASE("iterators of an ordered index walk backwards") {
  const auto prices = some_prices();
  const auto days = prices.by<&Price::day>();
  auto it = days.end();
  CHECK((--it)->id == 3);
  CHECK((it--)->id == 3);
  CHECK(it->id == 5);
  CHECK((it++)->id == 5);
  CHECK((*it).id == 3);
}

TEST_CASE("ranges of an index can be the source of a merge into their own table") {
  auto prices = some_prices();
  const auto result = prices.merge(prices.by<&Price::day>().equal_range(20)).when_matched().erase().execute();
  CHECK(result.metrics().matched_deleted == 3);
  CHECK(ids(prices) == Ids{2, 3});
  CHECK(ids(prices.by<&Price::day>()) == Ids{2, 3});
}

TEST_CASE("a copy of a table has indexes of its own") {
  auto prices = some_prices();
  const auto copy = prices;
  prices.upsert({1, "west", 99, "b9", 1.0});
  CHECK(copy.by<&Price::day>().equal_range(99).empty());
  CHECK(copy.by<&Price::barcode>().find("b1")->id == 1);
  CHECK(ids(copy.by<&Price::day>()) == Ids{2, 1, 4, 5, 3});
  CHECK(prices.by<&Price::barcode>().find("b9")->id == 1);
}

TEST_CASE("an index view stays valid while its table is moved") {
  auto prices = some_prices();
  const auto days = prices.by<&Price::day>();
  const auto moved = std::move(prices);
  CHECK(ids(days) == Ids{2, 1, 4, 5, 3});
  CHECK(moved.by<&Price::day>().begin() == days.begin());
}
