#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <limits>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

struct Order {
  int id = 0;
  std::string status;
  std::optional<int> cents;
  double weight = 0;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents, weight))

struct Plain {  // no column list
  int id = 0;
  std::string text;
  bool operator==(const Plain&) const = default;
};

using Change = kf::Change<Order>;
using Changes = kf::ChangeSet<Order>;
using Orders = kf::Table<Order, kf::Key<&Order::id>>;
using Names = std::vector<std::string_view>;

const Order before{1, "new", 100, 1.5};
const Order after{1, "paid", {}, 1.5};
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

std::vector<kf::ChangeKind> kinds(const Changes& changes) {
  std::vector<kf::ChangeKind> out;
  for (const Change& change : changes) out.push_back(change.kind());
  return out;
}

using Kinds = std::vector<kf::ChangeKind>;
constexpr auto insert = kf::ChangeKind::insert;
constexpr auto update = kf::ChangeKind::update;
constexpr auto erase = kf::ChangeKind::erase;

}  // namespace

TEST_CASE("an insert has the row after it") {
  const auto change = Change::insert(after);
  CHECK(change.kind() == insert);
  CHECK(change.before() == nullptr);
  REQUIRE(change.after() != nullptr);
  CHECK(*change.after() == after);
}

TEST_CASE("an update has the row before and after it") {
  const auto change = Change::update(before, after);
  CHECK(change.kind() == update);
  CHECK(*change.before() == before);
  CHECK(*change.after() == after);
}

TEST_CASE("an erase has the row before it") {
  const auto change = Change::erase(before);
  CHECK(change.kind() == erase);
  CHECK(*change.before() == before);
  CHECK(change.after() == nullptr);
}

TEST_CASE("the columns of an update are those whose values differ") {
  CHECK(Change::update(before, after).columns().names() == Names{"status", "cents"});
  CHECK(Change::update(before, before).columns().names().empty());
  CHECK(Change::update(before, {2, "new", 100, 1.0}).columns().names() == Names{"id", "weight"});
  CHECK(Change::update(before, after).columns().contains<&Order::cents>());
}

TEST_CASE("NaN, zeros and empty optionals differ as columns do") {
  CHECK(Change::update({1, "", {}, nan_value}, {1, "", {}, nan_value}).columns().names().empty());
  CHECK(Change::update({1, "", {}, nan_value}, {1, "", 0, 0.0}).columns().names() ==
        Names{"cents", "weight"});
  CHECK(Change::update({1, "", 0, 0.0}, {1, "", 0, -0.0}).columns().names().empty());
}

TEST_CASE("the columns of an insert and an erase are all") {
  CHECK(Change::insert(after).columns().count() == 4);
  CHECK(Change::erase(before).columns().names() == Names{"id", "status", "cents", "weight"});
}

TEST_CASE("a change of a row without a column list has no columns") {
  const auto change = kf::Change<Plain>::update({1, "a"}, {1, "b"});
  CHECK_FALSE(change.columns().any());
  CHECK(change.after()->text == "b");
}

TEST_CASE("changes are equal if they do the same to the same row") {
  CHECK(Change::insert(after) == Change::insert(after));
  CHECK(Change::update(before, after) == Change::update(before, after));
  CHECK_FALSE(Change::update(before, after) == Change::update(after, before));
  CHECK_FALSE(Change::update(before, after) == Change::update(before, {1, "sent", {}, 1.5}));
  CHECK_FALSE(Change::insert(after) == Change::erase(after));
  CHECK_FALSE(Change::insert(after) == Change::update(before, after));
  CHECK_FALSE(Change::erase(before) == Change::erase(after));
  CHECK(Change::insert({1, "", {}, nan_value}) == Change::insert({1, "", {}, nan_value}));
}

TEST_CASE("kinds have names") {
  CHECK(kf::to_string(insert) == "insert");
  CHECK(kf::to_string(update) == "update");
  CHECK(kf::to_string(erase) == "erase");
}

TEST_CASE("an empty change set") {
  const Changes changes;
  CHECK(changes.empty());
  CHECK(changes.size() == 0);
  CHECK(changes.begin() == changes.end());
  CHECK(changes == Changes());
}

TEST_CASE("a change set is a random access range of changes") {
  STATIC_REQUIRE(std::ranges::random_access_range<Changes>);
  STATIC_REQUIRE(std::ranges::sized_range<const Changes>);
  STATIC_REQUIRE(std::same_as<std::ranges::range_reference_t<Changes>, const Change&>);
  const Changes changes(std::vector{Change::insert(after), Change::erase(before)});
  CHECK(changes.size() == 2);
  CHECK(changes[1] == Change::erase(before));
  CHECK(kinds(changes) == Kinds{insert, erase});
  CHECK(std::ranges::count(changes, erase, &Change::kind) == 1);
}

TEST_CASE("change sets are equal if they have equal changes in the same order") {
  const Changes changes(std::vector{Change::insert(after), Change::erase(before)});
  CHECK(changes == Changes(std::vector{Change::insert(after), Change::erase(before)}));
  CHECK_FALSE(changes == Changes(std::vector{Change::erase(before), Change::insert(after)}));
  CHECK_FALSE(changes == Changes(std::vector{Change::insert(after)}));
}

namespace {

Orders some_orders() {
  Orders orders;
  orders.append({{1, "new", 100, 0}, {2, "new", 200, 0}, {3, "new", 300, 0}, {4, "new", 400, 0}});
  return orders;
}

auto sync(Orders& orders, const std::vector<Order>& rows) {
  return orders.merge(rows)
      .when_matched(kf::source<&Order::status> == "gone")
      .erase()
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source()
      .erase()
      .execute();
}

const std::vector<Order> batch = {
    {9, "new", 900, 0}, {3, "gone", {}, 0}, {2, "new", 200, 0}, {1, "paid", 100, 0}};

}  // namespace

TEST_CASE("the changes of a merge follow the source, then the rows that were not in it") {
  auto orders = some_orders();
  const auto changes = sync(orders, batch).changes();
  CHECK(kinds(changes) == Kinds{insert, erase, update, erase});
  REQUIRE(changes.size() == 4);
  CHECK(*changes[0].after() == Order{9, "new", 900, 0});
  CHECK(*changes[1].before() == Order{3, "new", 300, 0});
  CHECK(*changes[2].before() == Order{1, "new", 100, 0});
  CHECK(*changes[2].after() == Order{1, "paid", 100, 0});
  CHECK(*changes[3].before() == Order{4, "new", 400, 0});
}

TEST_CASE("the changes of a commit stay as they were when later commits change the same rows") {
  auto orders = some_orders();
  const auto result = sync(orders, batch);
  const auto told = result.changes();
  sync(orders, {{9, "shipped", 1, 0}, {3, "again", 2, 0}});
  orders.upsert({9, "shipped", 5, 0});
  orders.clear();
  CHECK(result.changes() == told);
  CHECK(orders.history()[1].changes() == told);
}

TEST_CASE("a change of key is one update") {
  auto orders = some_orders();
  const std::vector<Order> rows = {{2, "", {}, 0}};
  const auto result = orders.merge(rows)
                          .when_matched()
                          .update(kf::target<&Order::id> = kf::target<&Order::id> + 100)
                          .execute();
  const auto changes = result.changes();
  REQUIRE(kinds(changes) == Kinds{update});
  CHECK(changes[0].before()->id == 2);
  CHECK(changes[0].after()->id == 102);
  CHECK(changes[0].columns().names() == Names{"id"});

  orders.upsert({102, "later", 1, 0});
  CHECK(result.changes() == changes);
}

TEST_CASE("keys that are swapped are two updates") {
  auto orders = some_orders();
  const std::vector<Order> rows = {{1, "", {}, 0}, {2, "", {}, 0}};
  const auto changes = orders.merge(rows)
                           .when_matched()
                           .update(kf::target<&Order::id> = 3 - kf::target<&Order::id>)
                           .execute()
                           .changes();
  REQUIRE(kinds(changes) == Kinds{update, update});
  CHECK(*changes[0].before() == Order{1, "new", 100, 0});
  CHECK(*changes[0].after() == Order{2, "new", 100, 0});
  CHECK(*changes[1].before() == Order{2, "new", 200, 0});
  CHECK(*changes[1].after() == Order{1, "new", 200, 0});
}

TEST_CASE("a change set outlives its table") {
  auto orders = std::make_unique<Orders>(some_orders());
  const auto changes = sync(*orders, batch).changes();
  orders.reset();
  CHECK(*changes[2].after() == Order{1, "paid", 100, 0});
}

TEST_CASE("a row erased and one inserted under its key in one write are two changes") {
  auto orders = some_orders();
  const std::vector<Order> rows = {{1, "gone", {}, 0}, {2, "", {}, 0}};
  const auto changes = orders.merge(rows)
                           .when_matched(kf::source<&Order::status> == "gone")
                           .erase()
                           .when_matched()
                           .update(kf::target<&Order::id> = 1)
                           .execute()
                           .changes();
  REQUIRE(kinds(changes) == Kinds{erase, update});
  CHECK(changes[0].before()->cents == 100);
  CHECK(changes[1].after()->cents == 200);
  CHECK(orders.at(1).cents == 200);
}
