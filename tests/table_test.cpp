#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/algorithm/equal.hpp>
#include <range/v3/numeric/accumulate.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/reverse.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>
#include <list>
#include <memory>
#include <numeric>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

struct Order {
  int id = 0;
  std::string status;
  int cents = 0;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))

struct Line {
  bool extra = false;
  int cents = 0;
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Line, (), (extra, cents, id, status))

using Orders = kf::Table<Order, kf::Key<&Order::id>>;
using Sorted = kf::Table<Order, kf::OrderedKey<&Order::id>>;

template <class Table = Orders>
Table some_orders() {
  Table orders;
  orders.append({{3, "new", 300}, {1, "new", 100}, {2, "paid", 200}});
  return orders;
}

using Ids = std::vector<int>;

template <class Rows>
Ids ids(Rows&& rows) {
  Ids out;
  for (const Order& order : rows) out.push_back(order.id);
  return out;
}

}  // namespace

// --- Reading

TEST_CASE("a new table is empty") {
  const Orders orders;
  CHECK(orders.empty());
  CHECK(orders.size() == 0);
  CHECK(orders.begin() == orders.end());
  CHECK(orders.find(1) == nullptr);
  CHECK_FALSE(orders.contains(1));
}

TEST_CASE("find, at and contains read by key") {
  const auto orders = some_orders();
  CHECK(orders.size() == 3);
  CHECK_FALSE(orders.empty());
  REQUIRE(orders.find(2) != nullptr);
  CHECK(*orders.find(2) == Order{2, "paid", 200});
  CHECK(orders.find(4) == nullptr);
  CHECK(orders.at(1).cents == 100);
  CHECK_THROWS_AS(orders.at(4), kf::KeyNotFound);
  CHECK(orders.contains(3));
  CHECK_FALSE(orders.contains(4));
  CHECK(&orders.at(1) == orders.find(1));
}

TEST_CASE("rows are read only") {
  STATIC_REQUIRE(std::same_as<decltype(std::declval<Orders&>().find(1)), const Order*>);
  STATIC_REQUIRE(std::same_as<decltype(std::declval<Orders&>().at(1)), const Order&>);
  STATIC_REQUIRE(std::same_as<decltype(*std::declval<Orders&>().begin()), const Order&>);
}

TEST_CASE("rows iterate in insertion order") {
  auto orders = some_orders();
  CHECK(ids(orders) == Ids{3, 1, 2});
  orders.insert({0, "new", 0});
  CHECK(ids(orders) == Ids{3, 1, 2, 0});
}

TEST_CASE("an updated row keeps its place") {
  auto orders = some_orders();
  orders.upsert({{1, "paid", 1}, {9, "new", 9}, {3, "paid", 3}});
  CHECK(ids(orders) == Ids{3, 1, 2, 9});
}

TEST_CASE("an updated row keeps its place even when its key or an index changes") {
  kf::Table<Order, kf::Key<&Order::id>, kf::OrderedBy<&Order::cents>> orders;
  orders.append({{3, "new", 300}, {1, "new", 100}, {2, "paid", 200}});
  orders.merge({{3, "", 0}}).when_matched().update(kf::target<&Order::id> = 30).execute();
  CHECK(ids(orders) == Ids{30, 1, 2});
  orders.upsert({1, "new", 999});
  CHECK(ids(orders) == Ids{30, 1, 2});
  orders.merge({{30, "", 0}, {2, "", 0}})
      .when_matched()
      .update(kf::target<&Order::id> = 32 - kf::target<&Order::id>, kf::target<&Order::cents> = 5)
      .execute();
  CHECK(ids(orders) == Ids{2, 1, 30});
}

TEST_CASE("a deleted row that comes back is last") {
  auto orders = some_orders();
  orders.erase(3);
  orders.insert({3, "new", 300});
  CHECK(ids(orders) == Ids{1, 2, 3});
}

TEST_CASE("new rows of a merge come last, in source order") {
  auto orders = some_orders();
  orders.upsert({{8, "", 0}, {1, "", 0}, {7, "", 0}, {9, "", 0}});
  CHECK(ids(orders) == Ids{3, 1, 2, 8, 7, 9});
}

TEST_CASE("rows of a table with an OrderedKey iterate in key order, whatever the writes") {
  auto orders = some_orders<Sorted>();
  CHECK(ids(orders) == Ids{1, 2, 3});
  orders.insert({0, "", 0});
  orders.upsert({{5, "", 0}, {-1, "", 0}, {2, "x", 0}});
  CHECK(ids(orders) == Ids{-1, 0, 1, 2, 3, 5});
  orders.merge({{0, "", 0}}).when_matched().update(kf::target<&Order::id> = 4).execute();
  orders.erase(1);
  CHECK(ids(orders) == Ids{-1, 2, 3, 4, 5});
}

// --- As a range

TEST_CASE("a table is a forward range of const rows") {
  STATIC_REQUIRE(std::ranges::forward_range<Orders>);
  STATIC_REQUIRE(std::ranges::forward_range<const Orders>);
  STATIC_REQUIRE(std::ranges::bidirectional_range<const Orders>);
  STATIC_REQUIRE(std::ranges::bidirectional_range<const Sorted>);
  STATIC_REQUIRE(std::ranges::sized_range<const Orders>);
  STATIC_REQUIRE(std::ranges::common_range<const Orders>);
  STATIC_REQUIRE(std::same_as<std::ranges::range_value_t<Orders>, Order>);
  STATIC_REQUIRE(std::same_as<std::ranges::range_reference_t<Orders>, const Order&>);
  STATIC_REQUIRE(ranges::forward_range<const Orders>);
}

TEST_CASE("a table works with the algorithms of the standard library") {
  const auto orders = some_orders();
  CHECK(std::ranges::find(orders, 1, &Order::id)->cents == 100);
  CHECK(std::ranges::count(orders, "new", &Order::status) == 2);
  CHECK(std::accumulate(orders.begin(), orders.end(), 0,
                        [](int sum, const Order& o) { return sum + o.cents; }) == 600);
  CHECK(std::ranges::max(orders, {}, &Order::cents).id == 3);
  CHECK(std::distance(orders.begin(), orders.end()) == 3);
  const std::vector<Order> copied(orders.begin(), orders.end());
  CHECK(copied.size() == 3);
}

TEST_CASE("a table works with range-v3 views") {
  const auto orders = some_orders();
  const auto is_new = [](const Order& order) { return order.status == "new"; };
  CHECK(ids(orders | ranges::views::filter(is_new)) == Ids{3, 1});
  CHECK(ids(orders | ranges::views::take(2)) == Ids{3, 1});
  CHECK(ids(orders | ranges::views::reverse) == Ids{2, 1, 3});
  CHECK((orders | ranges::views::transform(&Order::cents) | ranges::to<std::vector>()) == Ids{300, 100, 200});
  CHECK(ranges::accumulate(orders | ranges::views::filter(is_new) | ranges::views::transform(&Order::cents),
                           0) == 400);
  CHECK(ranges::equal(orders, Ids{3, 1, 2}, {}, &Order::id));
}

TEST_CASE("iterators walk both ways") {
  const auto orders = some_orders();
  auto it = orders.begin();
  CHECK(it->id == 3);
  CHECK((++it)->id == 1);
  CHECK((it++)->id == 1);
  CHECK((*it).id == 2);
  CHECK((--it)->id == 1);
  CHECK((it--)->id == 1);
  CHECK(it == orders.begin());
#ifndef BOOST_MULTI_INDEX_ENABLE_SAFE_MODE  // whose iterators must not be compared while they are singular
  CHECK(decltype(it)() == decltype(it)());
#endif
}

// --- Copy and move

TEST_CASE("tables move without an exception") {
  STATIC_REQUIRE(std::is_nothrow_move_constructible_v<Orders>);
  STATIC_REQUIRE(std::is_nothrow_move_assignable_v<Orders>);
  STATIC_REQUIRE(std::is_nothrow_move_constructible_v<Sorted>);
  STATIC_REQUIRE(std::is_nothrow_swappable_v<Orders>);
  STATIC_REQUIRE(std::is_nothrow_destructible_v<Orders>);
  STATIC_REQUIRE(std::copyable<Orders>);
  STATIC_REQUIRE(noexcept(std::declval<const Orders&>().size()));
  STATIC_REQUIRE(noexcept(std::declval<const Orders&>().empty()));
  STATIC_REQUIRE(noexcept(std::declval<const Orders&>().version()));
  STATIC_REQUIRE(noexcept(std::declval<const Orders&>().history()));
}

TEST_CASE("a moved table has the rows, the history and the addresses") {
  auto orders = some_orders();
  const Order* const row = orders.find(1);
  const auto result = orders.upsert({2, "x", 2});
  Orders moved = std::move(orders);
  CHECK(moved.find(1) == row);
  CHECK(moved.version() == 2);
  CHECK(moved.history().size() == 2);
  CHECK(result.changes().size() == 1);  // results follow their table
  moved.insert({4, "new", 4});
  CHECK(ids(moved) == Ids{3, 1, 2, 4});
}

TEST_CASE("a table that was moved from can be assigned to") {
  auto orders = some_orders();
  Orders other = std::move(orders);
  orders = some_orders();
  CHECK(orders.size() == 3);
  orders = std::move(other);
  CHECK(ids(orders) == Ids{3, 1, 2});
  const Orders copied = orders;
  Orders third = std::move(orders);
  orders = copied;
  CHECK(orders.size() == 3);
  CHECK(third.size() == 3);
}

TEST_CASE("tables swap") {
  auto a = some_orders();
  Orders b;
  b.insert({9, "", 0});
  std::swap(a, b);
  CHECK(ids(a) == Ids{9});
  CHECK(ids(b) == Ids{3, 1, 2});
}

TEST_CASE("a copy and its original go their own ways") {
  auto orders = some_orders();
  Orders copy = orders;
  CHECK(ids(copy) == Ids{3, 1, 2});
  CHECK(copy.find(1) != orders.find(1));

  orders.upsert({1, "original", 1});
  orders.erase(2);
  CHECK(copy.at(1).status == "new");
  CHECK(copy.contains(2));

  copy.upsert({3, "copy", 3});
  copy.insert({7, "copy", 7});
  CHECK(orders.at(3).status == "new");
  CHECK_FALSE(orders.contains(7));
  CHECK(ids(orders) == Ids{3, 1});
  CHECK(ids(copy) == Ids{3, 1, 2, 7});
}

TEST_CASE("a copy has a history of its own") {
  auto orders = some_orders();
  orders.upsert({1, "paid", 100});
  orders.erase(2);
  orders.merge({{3, "", 0}}).when_matched().update(kf::target<&Order::id> = 30).metadata("renamed").execute();
  auto copy = std::make_unique<Orders>(orders);
  REQUIRE(copy->history().size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto of_copy = copy->history()[i];
    const auto original = orders.history()[i];
    CHECK(of_copy.version() == original.version());
    CHECK(of_copy.timestamp() == original.timestamp());
    CHECK(of_copy.operation() == original.operation());
    CHECK(of_copy.parameters() == original.parameters());
    CHECK(of_copy.metrics() == original.metrics());
    CHECK(of_copy.metadata() == original.metadata());
    CHECK(of_copy.changes() == original.changes());
  }
  const auto renamed = orders.history()[3].changes();
  CHECK(copy->upsert({30, "later", 0}).version() == 5);
  CHECK(orders.version() == 4);
  CHECK(orders.history()[3].changes() == renamed);
  CHECK(copy->history()[3].changes() == renamed);

  orders = Orders();  // the original's history goes
  CHECK(copy->history()[3].changes() == renamed);
  CHECK(copy->history()[1].changes()[0].before()->status == "new");
  copy.reset();
}

TEST_CASE("a copy keeps the options") {
  kf::TableOptions options;
  options.record_empty_commits = true;
  options.clock = [] { return kf::Timestamp(std::chrono::microseconds(42)); };
  const Orders original(options);
  Orders copy = original;
  CHECK(copy.clear().version() == 1);
  CHECK(copy.history()[0].timestamp() == kf::Timestamp(std::chrono::microseconds(42)));
}

TEST_CASE("assignment replaces rows and history") {
  const auto orders = some_orders();
  Orders other;
  other.insert({9, "", 0});
  const auto result = other.insert({10, "", 0});
  other = orders;
  CHECK(ids(other) == Ids{3, 1, 2});
  CHECK(other.version() == 1);
  CHECK_FALSE(other.contains(9));
  CHECK_THROWS_AS(result.changes(), kf::TableGone);
  Orders& self = other;
  other = self;
  CHECK(ids(other) == Ids{3, 1, 2});
  CHECK(other.history()[0].changes().size() == 3);
}

TEST_CASE("a table with an OrderedKey and indexes is copied whole") {
  kf::Table<Order, kf::OrderedKey<&Order::id>, kf::HashedBy<&Order::status>, kf::UniqueBy<&Order::cents>>
      orders;
  orders.append({{3, "new", 300}, {1, "new", 100}, {2, "paid", 200}});
  auto copy = orders;
  orders.clear();
  CHECK(ids(copy) == Ids{1, 2, 3});
  CHECK(copy.by<&Order::cents>().find(200)->id == 2);
  CHECK_THROWS_AS(copy.insert({4, "", 300}), kf::UniqueViolation);
  copy.erase(3);
  copy.insert({4, "", 300});
  CHECK(ids(copy) == Ids{1, 2, 4});
}

// --- References

TEST_CASE("references stay valid until their row is updated or deleted") {
  Orders orders;
  orders.insert({1, "first", 1});
  const Order& row = orders.at(1);
  const auto it = orders.begin();
  std::vector<Order> many;
  for (int id = 2; id < 5000; ++id) many.push_back({id, "", 0});
  orders.append(many);
  for (Order& order : many) order.cents = 7;
  orders.upsert(many);
  for (int id = 2; id < 5000; id += 2) orders.erase(id);
  CHECK(&orders.at(1) == &row);
  CHECK(row == Order{1, "first", 1});
  CHECK(&*it == &row);
  orders.upsert({1, "first", 1});  // unchanged
  CHECK(&orders.at(1) == &row);
  CHECK_THROWS_AS(orders.insert({1, "", 0}), kf::DuplicateKey);
  CHECK(row.status == "first");
}

TEST_CASE("iterators to other rows survive a deletion") {
  auto orders = some_orders();
  auto it = std::next(orders.begin());
  orders.erase(3);
  CHECK(it == orders.begin());
  CHECK(it->id == 1);
  CHECK((++it)->id == 2);
  orders.insert({9, "", 0});
  CHECK((++it)->id == 9);
}

// --- Writing

TEST_CASE("append adds rows of any range") {
  Orders orders;
  orders.append(std::vector<Order>{{1, "", 0}});
  orders.append(std::array<Order, 1>{{{2, "", 0}}});
  orders.append(std::list<Order>{{3, "", 0}});
  orders.append({{4, "", 0}, {5, "", 0}});
  const std::vector<Order> rows = {{6, "", 0}};
  orders.append(rows);
  const Ids more = {7, 8};
  orders.append(more | ranges::views::transform([](int id) { return Order{id, "", 0}; }));
  CHECK(ids(orders) == Ids{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(orders.version() == 6);
}

TEST_CASE("append refuses keys that are there or given twice, and adds nothing") {
  auto orders = some_orders();
  CHECK_THROWS_AS(orders.append({{8, "", 0}, {1, "", 0}}), kf::DuplicateKey);
  CHECK_THROWS_AS(orders.append({{8, "", 0}, {9, "", 0}, {8, "", 0}}), kf::DuplicateSourceKey);
  CHECK(ids(orders) == Ids{3, 1, 2});
  CHECK(orders.version() == 1);
}

TEST_CASE("append takes the columns of another type by name") {
  Orders orders;
  orders.append(std::vector<Line>{{true, 100, 1, "new"}, {false, 200, 2, "paid"}});
  CHECK(orders.at(1) == Order{1, "new", 100});
  CHECK(orders.at(2) == Order{2, "paid", 200});
}

TEST_CASE("append takes the rows in rows of a derived type") {
  struct Annotated : Order {
    int note = 0;
  };
  Annotated annotated;
  annotated.id = 5;
  annotated.status = "annotated";
  Orders orders;
  orders.append(std::vector<Annotated>{annotated});
  CHECK(orders.at(5).status == "annotated");
}

TEST_CASE("insert adds one row") {
  Orders orders;
  const auto result = orders.insert({1, "new", 100});
  CHECK(result.committed());
  CHECK(result.version() == 1);
  CHECK(result.changes().size() == 1);
  CHECK(orders.at(1).cents == 100);
  CHECK_THROWS_AS(orders.insert({1, "new", 100}), kf::DuplicateKey);
}

TEST_CASE("upsert inserts and updates") {
  auto orders = some_orders();
  const auto result = orders.upsert({{1, "paid", 100}, {4, "new", 400}, {3, "new", 300}});
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().inserted == 1);
  CHECK(result.metrics().unchanged == 1);
  CHECK(orders.at(1).status == "paid");
  CHECK(orders.upsert({4, "x", 4}).metrics().updated == 1);
  CHECK(orders.upsert(std::vector<Order>{{5, "", 0}}).metrics().inserted == 1);
  const std::vector<Order> rows = {{6, "", 0}};
  CHECK(orders.upsert(rows).metrics().inserted == 1);
  const Order row{7, "", 0};
  CHECK(orders.upsert(row).metrics().inserted == 1);
  CHECK(row == Order{7, "", 0});
}

TEST_CASE("erase deletes by key") {
  auto orders = some_orders();
  const auto result = orders.erase(1);
  CHECK(result.committed());
  CHECK(result.changes()[0].before()->id == 1);
  CHECK(ids(orders) == Ids{3, 2});
  const auto absent = orders.erase(1);
  CHECK_FALSE(absent.committed());
  CHECK(absent.version() == 2);
}

TEST_CASE("erase takes every kind of lookup value") {
  kf::Table<Order, kf::Key<&Order::status, &Order::id>> orders;
  orders.append({{1, "a", 0}, {2, "a", 0}, {1, "b", 0}});
  CHECK(orders.erase(std::string_view("a"), 1U).metrics().deleted == 1);
  CHECK(orders.erase("b", std::int64_t{1}).metrics().deleted == 1);
  CHECK(orders.erase("a", std::int64_t{1} << 40).metrics().deleted == 0);
  CHECK(ids(orders) == Ids{2});
}

TEST_CASE("erase can be given the key of the row it deletes") {
  kf::Table<Order, kf::Key<&Order::status>> orders;
  orders.insert({1, "a status that is longer than the small buffer of a string", 0});
  orders.erase(orders.begin()->status);
  CHECK(orders.empty());
  CHECK(orders.history().back().parameters() ==
        "WHERE status = 'a status that is longer than the small buffer of a string'");
}

TEST_CASE("clear deletes all rows and keeps the history") {
  auto orders = some_orders();
  const auto result = orders.clear();
  CHECK(orders.empty());
  CHECK(orders.version() == 2);
  CHECK(result.changes().size() == 3);
  CHECK(orders.history()[0].changes().size() == 3);
  orders.insert({1, "again", 1});
  CHECK(ids(orders) == Ids{1});
}

// --- Row types

namespace {

struct Fixed {  // cannot be assigned
  const int id;
  std::string text;
  bool operator==(const Fixed&) const = default;
};

class NoDefault {
 public:
  explicit NoDefault(int id) : id_(id) {}
  int id() const { return id_; }
  bool operator==(const NoDefault&) const = default;

 private:
  int id_;
};

struct CopyOnly {
  CopyOnly(int row_id, std::string row_text) : id(row_id), text(std::move(row_text)) {}
  CopyOnly(const CopyOnly&) = default;
  CopyOnly& operator=(const CopyOnly&) = default;
  ~CopyOnly() = default;
  int id;
  std::string text;
  bool operator==(const CopyOnly&) const = default;
};

struct Incomparable {
  int id = 0;
  std::shared_ptr<int> shared;
  std::vector<std::string> list;
  Incomparable() = default;
  Incomparable(int row_id, std::vector<std::string> row_list) : id(row_id), list(std::move(row_list)) {}
};

struct alignas(64) Aligned {
  int id = 0;
  bool operator==(const Aligned&) const = default;
};

}  // namespace

TEST_CASE("rows with a const member") {
  kf::Table<Fixed, kf::Key<&Fixed::id>> table;
  table.append({{1, "a"}, {2, "b"}});
  table.upsert({{1, "c"}, {3, "d"}});
  table.erase(2);
  CHECK(table.at(1).text == "c");
  CHECK(table.size() == 2);
  CHECK(table.history()[1].changes()[0].before()->text == "a");
  auto copy = table;
  copy.clear();
  CHECK(table.size() == 2);
}

TEST_CASE("rows without a default constructor") {
  kf::Table<NoDefault, kf::Key<&NoDefault::id>> table;
  table.append({NoDefault(1), NoDefault(2)});
  const std::vector<NoDefault> rows = {NoDefault(2), NoDefault(3)};
  const auto result =
      table.merge(rows)
          .when_matched()
          .update([](const NoDefault& target, const NoDefault&) { return NoDefault(target.id() + 10); })
          .when_not_matched()
          .insert([](const NoDefault& row) { return row; })
          .execute();
  CHECK(result.metrics().updated == 1);
  CHECK(table.contains(12));
  CHECK(table.contains(3));
}

TEST_CASE("rows whose moves are copies") {
  kf::Table<CopyOnly, kf::Key<&CopyOnly::id>, kf::HashedBy<&CopyOnly::text>> table;
  table.append({CopyOnly(1, "a"), CopyOnly(2, "b")});
  table.upsert({CopyOnly(1, "c"), CopyOnly(3, "d")});
  CHECK(table.by<&CopyOnly::text>().find("c")->id == 1);
  CHECK_FALSE(table.by<&CopyOnly::text>().contains("a"));
  CHECK(table.history()[1].changes()[0].before()->text == "a");
}

TEST_CASE("rows that cannot be compared count every update") {
  kf::Table<Incomparable, kf::Key<&Incomparable::id>> table;
  table.insert(Incomparable(1, {"a"}));
  const auto result = table.upsert(Incomparable(1, {"a"}));
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().unchanged == 0);
  CHECK(result.committed());
}

TEST_CASE("rows of an extended alignment stay aligned in the table and in the history") {
  kf::Table<Aligned, kf::Key<&Aligned::id>> table;
  for (int id = 0; id < 20; ++id) table.insert({id});
  table.merge({Aligned{3}}).when_matched().update(kf::target<&Aligned::id> = 33).execute();
  for (const Aligned& row : table) CHECK(reinterpret_cast<std::uintptr_t>(&row) % 64 == 0);
  CHECK(table.history().back().changes()[0].before()->id == 3);
}
