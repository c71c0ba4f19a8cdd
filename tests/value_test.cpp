// How values of other types than a column's meet it: exactly, or not at all.
#include <keyfold/keyfold.hpp>

#include "support/catch.hpp"

#include <boost/describe/class.hpp>
#include <boost/range/sub_range.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

namespace kf = keyfold;

namespace values {

struct Float {
  float key = 0;
  int hits = 0;
  bool operator==(const Float&) const = default;
};
struct Double {
  double key = 0;
  int hits = 0;
  bool operator==(const Double&) const = default;
};
struct Tick {
  char symbol[4] = {};
  int price = 0;
  bool operator==(const Tick&) const = default;
};
enum Color : int { red = 65, green = 300 };
struct Cell {
  int id = 0;
  int whole = 0;
  bool flag = false;
  std::uint8_t small = 0;
  double real = 0;
  std::optional<int> perhaps{};
  bool operator==(const Cell&) const = default;
};
struct Fixed {
  const int id = 0;
  std::string text;
  bool operator==(const Fixed&) const = default;
};
struct Loose {
  int id = 0;
  std::variant<double, std::string> either;
  std::unordered_set<double> set;
  std::vector<double> list;
  bool operator==(const Loose&) const = default;
};
BOOST_DESCRIBE_STRUCT(Loose, (), (id, either, set, list))
using Grade = std::variant<std::monostate, int, double>;
struct Graded {
  int id = 0;
  Grade grade;
  bool operator==(const Graded&) const = default;
};
BOOST_DESCRIBE_STRUCT(Graded, (), (id, grade))
struct Word {
  Word() = default;
  Word(const char* word) : text(word) {}
  explicit Word(int) { throw std::runtime_error("no word"); }
  auto operator<=>(const Word&) const = default;
  friend std::size_t hash_value(const Word& word) { return std::hash<std::string>()(word.text); }
  std::string text;
};
struct Named {
  int id = 0;
  std::variant<int, Word> name;
  bool operator==(const Named&) const = default;
};
BOOST_DESCRIBE_STRUCT(Named, (), (id, name))
struct Spread {
  int id = 0;
  std::pair<int, double> point;
  std::vector<double> list;
  bool operator==(const Spread&) const = default;
};
BOOST_DESCRIBE_STRUCT(Spread, (), (id, point, list))
struct Measured {
  int id = 0;
  double real = 0;
  bool operator==(const Measured&) const = default;
};
BOOST_DESCRIBE_STRUCT(Measured, (), (id, real))
struct Opaque {};
struct Sealed {
  int id = 0;
  Opaque inner;
};
BOOST_DESCRIBE_STRUCT(Sealed, (), (id, inner))
struct Linked {
  int id = 0;
  std::optional<int> link;
  bool operator==(const Linked&) const = default;
};

// What the ids of a range of rows are, in its order.
std::vector<int> ids(const auto& rows) {
  std::vector<int> out;
  for (const auto& row : rows) out.push_back(row.id);
  return out;
}

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace values

using namespace values;

TEST_CASE("a key is looked up by its exact value") {
  constexpr float limit = 16777216.0F;  // 2^24: the next whole number is no float
  kf::Table<Float, kf::Key<&Float::key>> floats;
  floats.insert({limit, 0});
  CHECK(floats.contains(16777216.0));
  CHECK(floats.contains(16777216));
  CHECK_FALSE(floats.contains(16777217.0));
  CHECK_FALSE(floats.contains(16777217));
  CHECK_FALSE(floats.contains(1e300));

  constexpr std::int64_t beyond = (std::int64_t{1} << 53) + 1;
  kf::Table<Double, kf::Key<&Double::key>> doubles;
  doubles.insert({9007199254740992.0, 0});
  CHECK(doubles.contains(beyond - 1));
  CHECK_FALSE(doubles.contains(beyond));
  doubles.insert({18446744073709549568.0, 0});  // 2^64 - 2^11
  CHECK(doubles.contains(std::uint64_t{18446744073709549568U}));
  doubles.insert({-0.5, 0});
  CHECK(doubles.contains(-0.5F));
}

TEST_CASE("a whole number is found by either type of it, as far as both go") {
  constexpr double two_to_63 = 9223372036854775808.0;
  kf::Table<Measured, kf::Key<&Measured::id>, kf::HashedBy<&Measured::real>> table;
  table.append({{1, two_to_63},
                {2, -two_to_63},
                {3, 2 * two_to_63},
                {4, -2 * two_to_63},
                {5, infinity},
                {6, nan_value}});
  const auto found = [&](auto number) { return ids(table.by<&Measured::real>().equal_range(number)); };
  CHECK(found(std::uint64_t{1} << 63U) == std::vector{1});
  CHECK(found(std::numeric_limits<std::int64_t>::min()) == std::vector{2});
  CHECK(found(std::numeric_limits<std::int64_t>::max()).empty());
  CHECK(found(std::numeric_limits<std::uint64_t>::max()).empty());
  CHECK(found(0x1p64F) == std::vector{3});
  CHECK(found(-0x1p64F) == std::vector{4});
  CHECK(found(std::numeric_limits<float>::infinity()) == std::vector{5});
  CHECK(found(-infinity).empty());
  CHECK(found(std::numeric_limits<float>::quiet_NaN()) == std::vector{6});
}

TEST_CASE("in a secondary index NaN equals itself and comes last") {
  kf::Table<Measured, kf::Key<&Measured::id>, kf::OrderedBy<&Measured::real>> table;
  table.append({{1, nan_value}, {2, infinity}, {3, nan_value}, {4, -1}});
  const auto by_real = table.by<&Measured::real>();
  CHECK(ids(by_real) == std::vector{4, 2, 1, 3});
  CHECK(ids(by_real.equal_range(nan_value)) == std::vector{1, 3});
  CHECK(ids(by_real.range(0, nan_value)) == std::vector{2});
}

TEST_CASE("pairs and sequences with NaN are ordered part by part") {
  kf::Table<Spread, kf::Key<&Spread::id>, kf::OrderedBy<&Spread::point>, kf::OrderedBy<&Spread::list>> table;
  table.append({{1, {1, nan_value}, {nan_value}},
                {2, {1, 5}, {1, nan_value}},
                {3, {0, nan_value}, {1, 2}},
                {4, {1, nan_value}, {}},
                {5, {1, 7}, {1}}});
  CHECK(ids(table.by<&Spread::point>()) == std::vector{3, 2, 5, 1, 4});
  CHECK(ids(table.by<&Spread::list>()) == std::vector{4, 5, 3, 2, 1});
  CHECK(table.upsert({{2, {1, 5}, {1, nan_value}}, {4, {1, nan_value}, {}}}).metrics().unchanged == 2);
  CHECK(table.upsert({{2, {1, 5}, {1}}, {5, {1, 7}, {1, 1}}}).metrics().updated == 2);
}

TEST_CASE("a variant is ordered by its alternative, then as that is, and NaN in it is NaN") {
  kf::Table<Graded, kf::Key<&Graded::id>, kf::OrderedBy<&Graded::grade>> ordered;
  ordered.append({{1, nan_value}, {2, 2.5}, {3, 7}, {4, {}}, {5, -1.0}, {6, nan_value}, {7, 3}, {8, {}}});
  CHECK(ids(ordered.by<&Graded::grade>()) == std::vector{4, 8, 7, 3, 5, 2, 1, 6});
  CHECK(ids(ordered.by<&Graded::grade>().equal_range(Grade(nan_value))) == std::vector{1, 6});
  ordered.erase(1);
  CHECK(ids(ordered.by<&Graded::grade>().equal_range(Grade(nan_value))) == std::vector{6});

  kf::Table<Graded, kf::Key<&Graded::id>, kf::HashedBy<&Graded::grade>> hashed;
  hashed.append({{1, -nan_value}, {2, 0.0}, {3, 0}, {4, {}}});
  const auto found = [&](Grade grade) { return ids(hashed.by<&Graded::grade>().equal_range(grade)); };
  CHECK(found(nan_value) == std::vector{1});
  CHECK(found(-0.0) == std::vector{2});
  CHECK(found(0) == std::vector{3});
  CHECK(found({}) == std::vector{4});
  CHECK(found(1).empty());

  kf::Table<Graded, kf::Key<&Graded::grade>> keyed;
  keyed.append({{1, 1.5}, {2, 1}, {3, {}}});
  CHECK(keyed.at(Grade(1.5)).id == 1);
  CHECK_THROWS_AS(keyed.insert({4, nan_value}), kf::InvalidKey);
  CHECK(keyed.size() == 3);
}

TEST_CASE("a variant without a value equals itself and comes first") {
  std::variant<int, Word> none;
  CHECK_THROWS_AS(none.emplace<1>(1), std::runtime_error);
  REQUIRE(none.valueless_by_exception());
  kf::Table<Named, kf::Key<&Named::id>, kf::OrderedBy<&Named::name>> ordered;
  kf::Table<Named, kf::Key<&Named::name>> keyed;
  ordered.append({{1, 0}, {2, none}, {3, Word("a")}, {4, none}});
  CHECK(ids(ordered.by<&Named::name>()) == std::vector{2, 4, 1, 3});
  CHECK(ids(ordered.by<&Named::name>().equal_range(none)) == std::vector{2, 4});
  CHECK(ordered.upsert({2, none}).metrics().unchanged == 1);
  keyed.append({{1, 0}, {2, none}});
  CHECK(keyed.at(none).id == 2);
  CHECK_THROWS_WITH(keyed.insert({3, none}), keyfold_test::contains("<valueless>"));
  CHECK_THROWS_WITH(keyed.insert({3, 0}), keyfold_test::contains("= 0"));
}

TEST_CASE("a merge matches keys of other types by their exact value") {
  kf::Table<Double, kf::Key<&Double::key>> table;
  table.insert({9007199254740992.0, 0});
  const std::vector<std::int64_t> keys{9007199254740993, 9007199254740992};
  const auto itself = [](std::int64_t key) { return key; };
  const auto result = table.merge(keys).on<itself>().when_matched().erase().execute();
  CHECK(result.metrics().deleted == 1);
  CHECK(result.metrics().skipped == 1);
}

TEST_CASE("char arrays that fill up are text without a terminator") {
  kf::Table<Tick, kf::Key<&Tick::symbol>> ticks;
  ticks.insert({{'A', 'A', 'P', 'L'}, 1});
  CHECK_THROWS_AS(ticks.insert({{'A', 'A', 'P', 'L'}, 65}), kf::DuplicateKey);
  ticks.insert({{'A', 'A', 0, 'L'}, 2});
  CHECK(ticks.at("AAPL").price == 1);
  CHECK(ticks.at(std::string_view("AA")).price == 2);
}

template <class Assignment>
void assign(Assignment assignment, Cell expected) {
  kf::Table<Cell, kf::Key<&Cell::id>> cells;
  cells.insert({});
  cells.merge(std::vector<Cell>{{}}).when_matched().update(assignment).execute();
  CHECK(*cells.begin() == expected);
}

template <class Assignment>
void refuse(Assignment assignment, const std::string& column) {
  kf::Table<Cell, kf::Key<&Cell::id>> cells;
  cells.insert({});
  try {
    cells.merge(std::vector<Cell>{{}}).when_matched().update(assignment).execute();
    FAIL("assigned");
  } catch (const kf::ValueOutOfRange& error) {
    CHECK(error.column == column);
  }
  CHECK(*cells.begin() == Cell{});
}

TEST_CASE("a number that its column cannot hold unchanged is refused") {
  refuse(kf::target<&Cell::whole> = 0.75, "whole");
  refuse(kf::target<&Cell::whole> = std::numeric_limits<double>::quiet_NaN(), "whole");
  refuse(kf::target<&Cell::whole> = std::numeric_limits<double>::infinity(), "whole");
  refuse(kf::target<&Cell::whole> = 2147483648.0, "whole");
  refuse(kf::target<&Cell::flag> = 2, "flag");
  refuse(kf::target<&Cell::small> = 256, "small");
  refuse(kf::target<&Cell::small> = -1, "small");
  refuse(kf::target<&Cell::small> = green, "small");
  refuse(kf::target<&Cell::real> = (std::int64_t{1} << 53) + 1, "real");
  refuse(kf::target<&Cell::perhaps> = 1e10, "perhaps");
}

TEST_CASE("a number that its column can hold is converted") {
  assign(kf::target<&Cell::whole> = -3.0, {.whole = -3});
  assign(kf::target<&Cell::whole> = -2147483648.0, {.whole = std::numeric_limits<int>::min()});
  assign(kf::target<&Cell::flag> = 1, {.flag = true});
  assign(kf::target<&Cell::small> = red, {.small = 65});
  assign(kf::target<&Cell::real> = (std::int64_t{1} << 53), {.real = 9007199254740992.0});
  assign(kf::target<&Cell::perhaps> = 7.0, {.perhaps = 7});
}

TEST_CASE("a range that only borrows its rows keeps them") {
  std::vector<std::string> texts{"a text that is too long for the small buffer"};
  kf::Table<Fixed, kf::Key<&Fixed::id>> table;
  table.merge(boost::sub_range<std::vector<std::string>>(texts))
      .on<[](const std::string& text) { return static_cast<int>(text.size()); }>()
      .when_not_matched()
      .insert([](const std::string& text) { return Fixed{1, text}; })
      .execute();
  CHECK(texts.front() == table.at(1).text);

  std::vector<Fixed> rows{{2, "another text that is too long for the small buffer"}};
  table.append(boost::sub_range<std::vector<Fixed>>(rows));
  CHECK(rows.front().text == table.at(2).text);
}

TEST_CASE("source rows without a value for the index they are matched by are no duplicates") {
  kf::Table<Linked, kf::Key<&Linked::id>, kf::HashedBy<&Linked::link>> table;
  table.insert({9, std::nullopt});
  const auto result = table.merge(std::vector<Linked>{{1, std::nullopt}, {2, std::nullopt}, {3, 5}, {4, 5}})
                          .on<&Linked::link>(kf::by<&Linked::link>)
                          .duplicates(kf::keep_last)
                          .when_not_matched()
                          .insert_all()
                          .execute();
  CHECK(result.metrics().inserted == 3);
  CHECK(result.metrics().dropped_duplicates == 1);
  CHECK(std::vector<Linked>(table.begin(), table.end()) ==
        std::vector<Linked>{{9, std::nullopt}, {1, std::nullopt}, {2, std::nullopt}, {4, 5}});
}

TEST_CASE("a source row that matches several rows is skipped once") {
  kf::Table<Linked, kf::Key<&Linked::id>, kf::HashedBy<&Linked::link>> table;
  table.append({{1, 5}, {2, 5}, {3, 5}});
  const auto result = table.merge(std::vector<Linked>{{7, 5}})
                          .on<&Linked::link>(kf::by<&Linked::link>)
                          .when_matched()
                          .do_nothing()
                          .execute();
  CHECK(result.metrics().source_rows == 1);
  CHECK(result.metrics().skipped == 1);
}

TEST_CASE("what a by-source update would leave as it is counts as no source row") {
  kf::Table<Linked, kf::Key<&Linked::id>> table;
  table.append({{1, 5}});
  const auto result = table.merge(std::vector<Linked>{})
                          .when_not_matched_by_source()
                          .update(kf::target<&Linked::link> = 5)
                          .execute();
  CHECK(result.metrics() == kf::Metrics{});
  CHECK_FALSE(result.committed());
}

TEST_CASE("fold() must keep the key") {
  kf::Table<Linked, kf::Key<&Linked::id>> table;
  auto merge = table.merge(std::vector<Linked>{{1, 1}, {1, 2}})
                   .duplicates(kf::fold([](Linked folded, const Linked&) {
                     ++folded.id;
                     return folded;
                   }))
                   .when_not_matched()
                   .insert_all();
  CHECK_THROWS_AS(merge.execute(), kf::Error);
  CHECK(table.empty());
}

TEST_CASE("rows with const members have a history and can be undone") {
  kf::Table<Fixed, kf::Key<&Fixed::id>> table;
  table.insert({1, "a"});
  table.upsert({1, "b"});
  CHECK(table.history_of(1).size() == 2);
  table.apply(table.diff(1, 2).inverse());
  CHECK(table.at(1).text == "a");
}

TEST_CASE("variants and sequences with NaN, and sets in another order, are unchanged") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  kf::Table<Loose, kf::Key<&Loose::id>> table;
  table.upsert({{1, nan, {1, 2, 3}, {nan, 1}}});
  CHECK(table.upsert({{1, nan, {3, 2, 1}, {nan, 1}}}).metrics().unchanged == 1);
  CHECK(table.upsert({{1, "nan", {3, 2, 1}, {nan, 1}}}).metrics().updated == 1);
}

TEST_CASE("rows with a column that has no equality count every update") {
  kf::Table<Sealed, kf::Key<&Sealed::id>> table;
  table.upsert(std::vector<Sealed>{{1, {}}});
  CHECK(table.upsert(std::vector<Sealed>{{1, {}}}).metrics().updated == 1);
}

TEST_CASE("a table given as an rvalue source of itself is only read") {
  kf::Table<Linked, kf::Key<&Linked::id>> table;
  table.append({{1, 5}});
  CHECK(table.upsert(std::move(table)).metrics().unchanged == 1);
  CHECK(table.size() == 1);
}

TEST_CASE("a struct with a table as a member is an aggregate like any other") {
  struct Shop {
    kf::Table<Linked, kf::Key<&Linked::id>> links;
    int visits{};
  };
  Shop shop{};
  shop.links.insert({1, 2});
  CHECK(shop.links.size() == 1);
}

TEST_CASE("assigning to a table from within its own write is refused") {
  kf::Table<Linked, kf::Key<&Linked::id>> table;
  table.append({{1, 5}});
  const auto other = table;
  const auto assigns = [&](const Linked&, const Linked&) {
    table = other;
    return true;
  };
  CHECK_THROWS_AS(table.merge(std::vector<Linked>{{1, 6}}).when_matched(assigns).update_all().execute(),
                  kf::ReentrantWrite);
  CHECK(table.at(1).link == 5);
}
