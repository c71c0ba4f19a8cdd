#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/algorithm/count_if.hpp>
#include <range/v3/range/primitives.hpp>
#include <range/v3/view/filter.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using namespace std::chrono_literals;

namespace {

struct Order {
  int id = 0;
  std::string status;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))

using Orders = kf::Table<Order, kf::Key<&Order::id>>;
using History = kf::History<Order>;

const kf::Timestamp noon = std::chrono::sys_days(std::chrono::year(2026) / 10 / 4) + 12h;

// A table whose clock reads these times, one after the other, and then the last one for ever.
Orders orders_at(std::vector<kf::Timestamp> times) {
  kf::TableOptions options;
  options.clock = [times = std::move(times), next = std::size_t{0}]() mutable {
    return times[std::min(next++, times.size() - 1)];
  };
  return Orders(std::move(options));
}

std::vector<kf::Version> versions(const Orders& orders) {
  std::vector<kf::Version> out;
  for (const auto commit : orders.history()) out.push_back(commit.version());
  return out;
}

std::vector<kf::Timestamp> timestamps(const Orders& orders) {
  std::vector<kf::Timestamp> out;
  for (const auto commit : orders.history()) out.push_back(commit.timestamp());
  return out;
}

Orders three_commits() {
  auto orders = orders_at({noon, noon + 1h, noon + 2h});
  orders.append({{1, "new"}, {2, "new"}});
  orders.upsert({1, "paid"});
  orders.erase(2);
  return orders;
}

}  // namespace

TEST_CASE("a new table is at version 0 and has no history") {
  const Orders orders;
  CHECK(orders.version() == 0);
  CHECK(orders.history().empty());
  CHECK(orders.history().size() == 0);
  CHECK(orders.history().begin() == orders.history().end());
}

TEST_CASE("each commit makes the next version") {
  const auto orders = three_commits();
  CHECK(orders.version() == 3);
  CHECK(versions(orders) == std::vector<kf::Version>{1, 2, 3});
  CHECK(orders.history().size() == 3);
  CHECK(orders.history().front().version() == 1);
  CHECK(orders.history().back().version() == 3);
  CHECK(orders.history()[1].version() == 2);
}

TEST_CASE("a result tells the version it made") {
  Orders orders;
  CHECK(orders.insert({1, "new"}).version() == 1);
  const auto unchanged = orders.upsert({1, "new"});
  CHECK(unchanged.version() == 1);
  CHECK_FALSE(unchanged.committed());
  CHECK(unchanged.changes().empty());
  const auto changed = orders.upsert({1, "paid"});
  CHECK(changed.version() == 2);
  CHECK(changed.committed());
}

TEST_CASE("commits tell their operation") {
  Orders orders;
  orders.append({{1, "new"}, {2, "new"}});
  orders.insert({3, "new"});
  orders.upsert({3, "paid"});
  orders.merge({{3, "x"}}).when_matched().erase().execute();
  orders.erase(1);
  orders.clear();
  std::vector<std::string_view> operations;
  for (const auto commit : orders.history()) operations.push_back(commit.operation());
  CHECK(operations ==
        std::vector<std::string_view>{"APPEND", "INSERT", "MERGE", "MERGE", "DELETE", "TRUNCATE"});
}

TEST_CASE("commits tell their parameters") {
  Orders orders;
  orders.insert({1, "new"});
  CHECK(orders.history().back().parameters().empty());
  orders.upsert({1, "paid"});
  CHECK(orders.history().back().parameters() ==
        "ON source.id = target.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *");
  orders.erase(1);
  CHECK(orders.history().back().parameters() == "WHERE id = 1");
}

TEST_CASE("the parameters of a merge are its clauses as text") {
  Orders orders;
  orders.append({{1, "new"}, {2, "new"}});
  const std::vector<Order> rows = {{1, "gone"}};
  constexpr auto status = kf::source<&Order::status>;
  orders.merge(rows)
      .on<&Order::id>()
      .on_condition(kf::target<&Order::status> == "new")
      .when_matched(status == "kept")
      .do_nothing()
      .when_matched(status == "gone" && kf::target<&Order::id> < 5)
      .erase()
      .when_matched(status == "bad")
      .raise("it's bad")
      .when_matched()
      .update(kf::target<&Order::status> = status, kf::target<&Order::id> = kf::target<&Order::id> + 0)
      .when_not_matched([](const Order&) { return false; })
      .insert([](const Order& order) { return order; })
      .when_not_matched()
      .insert(kf::target<&Order::id> = kf::source<&Order::id>)
      .when_not_matched_by_source(kf::target<&Order::id> > 90)
      .update(kf::named("closed", [](const Order& order) { return Order{order.id, "closed"}; }))
      .execute();
  CHECK(orders.history().back().parameters() ==
        "ON source.id = target.id AND (target.status = 'new') "
        "WHEN MATCHED AND (source.status = 'kept') THEN DO NOTHING "
        "WHEN MATCHED AND ((source.status = 'gone') AND (target.id < 5)) THEN DELETE "
        "WHEN MATCHED AND (source.status = 'bad') THEN RAISE 'it''s bad' "
        "WHEN MATCHED THEN UPDATE SET status = source.status, id = (target.id + 0) "
        "WHEN NOT MATCHED AND <condition> THEN INSERT ROW <row> "
        "WHEN NOT MATCHED THEN INSERT SET id = source.id "
        "WHEN NOT MATCHED BY SOURCE AND (target.id > 90) THEN UPDATE SET ROW closed");
}

TEST_CASE("commits keep their changes and metrics") {
  const auto orders = three_commits();
  const auto history = orders.history();
  CHECK(history[0].metrics().inserted == 2);
  CHECK(history[1].metrics().updated == 1);
  CHECK(history[2].metrics().deleted == 1);
  CHECK(history[0].changes().size() == 2);
  REQUIRE(history[1].changes().size() == 1);
  CHECK(*history[1].changes()[0].before() == Order{1, "new"});
  CHECK(*history[1].changes()[0].after() == Order{1, "paid"});
  CHECK(*history[2].changes()[0].before() == Order{2, "new"});
}

TEST_CASE("metadata is kept with the commit") {
  Orders orders;
  orders.insert({1, "new"});
  CHECK(orders.history().back().metadata().empty());
  orders.merge({{2, "new"}}).when_not_matched().insert_all().metadata("orders-2026-10-04.csv").execute();
  CHECK(orders.history().back().metadata() == "orders-2026-10-04.csv");
  orders.insert({3, "new"});
  CHECK(orders.history().back().metadata().empty());
  CHECK(orders.history()[1].metadata() == "orders-2026-10-04.csv");
}

TEST_CASE("a merge with metadata makes a version even if it changes nothing") {
  Orders orders;
  orders.insert({1, "new"});
  const auto result = orders.merge({{1, "new"}}).when_matched().update_all().metadata("again").execute();
  CHECK(result.committed());
  CHECK(result.version() == 2);
  CHECK(result.changes().empty());
  CHECK(result.metrics().unchanged == 1);
  CHECK(orders.history().back().metadata() == "again");
  CHECK(orders.merge({{1, "new"}}).when_matched().update_all().metadata("").execute().version() == 3);
}

TEST_CASE("commit times come from the clock") {
  CHECK(timestamps(three_commits()) == std::vector<kf::Timestamp>{noon, noon + 1h, noon + 2h});
}

TEST_CASE("commit times ascend strictly though the clock stands still or goes backwards") {
  auto orders = orders_at({noon, noon, noon - 24h, noon + 1h, noon + 1h - 1us, noon + 1h + 2us});
  for (int id = 0; id < 6; ++id) orders.insert({id, ""});
  CHECK(timestamps(orders) == std::vector<kf::Timestamp>{noon, noon + 1us, noon + 2us, noon + 1h,
                                                         noon + 1h + 1us, noon + 1h + 2us});
}

TEST_CASE("the first commit may be before the epoch") {
  auto orders = orders_at({kf::Timestamp(-5us), kf::Timestamp(-9us)});
  orders.insert({1, ""});
  orders.insert({2, ""});
  CHECK(timestamps(orders) == std::vector<kf::Timestamp>{kf::Timestamp(-5us), kf::Timestamp(-4us)});
}

TEST_CASE("the system clock is the default") {
  Orders orders;
  const auto before = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  orders.insert({1, ""});
  const auto after = std::chrono::system_clock::now();
  CHECK(orders.history().back().timestamp() >= before);
  CHECK(orders.history().back().timestamp() <= after);
}

TEST_CASE("a clock that throws prevents the commit") {
  kf::TableOptions options;
  bool broken = false;
  options.clock = [&]() -> kf::Timestamp {
    if (broken) throw std::runtime_error("no time");
    return noon;
  };
  Orders orders(options);
  orders.insert({1, "new"});
  broken = true;
  CHECK_THROWS_AS(orders.upsert({{1, "paid"}, {2, "new"}}), std::runtime_error);
  broken = false;
  CHECK(orders.version() == 1);
  CHECK(orders.size() == 1);
  CHECK(orders.at(1).status == "new");
  CHECK(orders.insert({2, "new"}).version() == 2);
}

TEST_CASE("the clock is not asked for a write that makes no commit") {
  int asked = 0;
  kf::TableOptions options;
  options.clock = [&] {
    ++asked;
    return noon;
  };
  Orders orders(options);
  orders.insert({1, "new"});
  orders.upsert({1, "new"});
  orders.erase(9);
  CHECK_THROWS_AS(orders.insert({1, "again"}), kf::DuplicateKey);
  CHECK(asked == 1);
}

TEST_CASE("writes that change nothing make no version") {
  Orders orders;
  orders.insert({1, "new"});
  CHECK_FALSE(orders.upsert({1, "new"}).committed());
  CHECK_FALSE(orders.erase(7).committed());
  CHECK_FALSE(orders.append(std::vector<Order>()).committed());
  CHECK_FALSE(orders.merge({{9, "x"}}).when_matched().erase().execute().committed());
  orders.clear();
  CHECK_FALSE(orders.clear().committed());
  CHECK(orders.version() == 2);
}

TEST_CASE("a table that records empty commits makes a version of every write") {
  kf::TableOptions options;
  options.record_empty_commits = true;
  Orders orders(options);
  CHECK(orders.clear().version() == 1);
  CHECK(orders.erase(7).version() == 2);
  CHECK(orders.append(std::vector<Order>()).version() == 3);
  const auto result = orders.merge(std::vector<Order>()).when_matched().erase().execute();
  CHECK(result.committed());
  CHECK(result.version() == 4);
  CHECK(result.changes().empty());
  CHECK(orders.history().size() == 4);
  CHECK(orders.history()[1].operation() == "DELETE");
  CHECK(orders.history()[1].changes().empty());
}

TEST_CASE("a failed write makes no version") {
  auto orders = three_commits();
  CHECK_THROWS_AS(orders.insert({1, "again"}), kf::DuplicateKey);
  CHECK(orders.version() == 3);
  CHECK(orders.insert({9, "next"}).version() == 4);
}

TEST_CASE("rewritten rows are in the history") {
  Orders orders;
  orders.insert({1, "new"});
  const auto result = orders.merge({{1, "new"}}).when_matched().update_all().rewrite_unchanged().execute();
  CHECK(result.version() == 2);
  REQUIRE(result.changes().size() == 1);
  CHECK(*result.changes()[0].before() == *result.changes()[0].after());
  CHECK_FALSE(result.changes()[0].columns().any());
}

TEST_CASE("commits keep their address while others are added") {
  Orders orders;
  orders.insert({0, "first"});
  const auto first = orders.history().front();
  for (int id = 1; id < 500; ++id) orders.insert({id, ""});
  CHECK(first.version() == 1);
  CHECK(first.changes()[0].after()->status == "first");
  CHECK(orders.history()[499].version() == 500);
}

TEST_CASE("a history is a random access range of commits") {
  STATIC_REQUIRE(std::ranges::random_access_range<History>);
  STATIC_REQUIRE(std::ranges::sized_range<History>);
  STATIC_REQUIRE(std::ranges::common_range<History>);
  STATIC_REQUIRE(std::same_as<std::ranges::range_value_t<History>, kf::Commit<Order>>);
  STATIC_REQUIRE(std::ranges::view<History>);
  STATIC_REQUIRE(std::ranges::borrowed_range<History>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<kf::Commit<Order>>);
  const auto orders = three_commits();
  const auto history = orders.history();
  auto it = history.begin();
  CHECK((*it).version() == 1);
  CHECK((*++it).version() == 2);
  CHECK((*it++).version() == 2);
  CHECK((*it--).version() == 3);
  CHECK((*--it).version() == 1);
  CHECK(it[2].version() == 3);
  it += 3;
  CHECK(it == history.end());
  CHECK(it - history.begin() == 3);
  it -= 1;
  CHECK(it < history.end());
  CHECK((*(1 + history.begin())).version() == 2);
  CHECK((*(history.end() - 1)).version() == 3);
}

TEST_CASE("a history works with algorithms and views") {
  const auto orders = three_commits();
  const auto merges = [](const auto& commit) { return commit.operation() == "MERGE"; };
  CHECK(ranges::distance(orders.history() | ranges::views::filter(merges)) == 1);
  const auto history = orders.history();
  const auto found = std::ranges::find(history, 2U, &kf::Commit<Order>::version);
  REQUIRE(found != history.end());
  CHECK((*found).operation() == "MERGE");
  CHECK(ranges::count_if(history, [](const auto& commit) { return commit.metrics().updated == 0; }) == 2);
  CHECK(std::ranges::lower_bound(history, noon + 30min, {}, &kf::Commit<Order>::timestamp) -
            history.begin() ==
        1);
}

TEST_CASE("the history of a long-lived row tells each of its states") {
  Orders orders;
  orders.insert({1, "0"});
  for (int i = 1; i < 50; ++i) orders.upsert({1, std::to_string(i)});
  orders.erase(1);
  orders.insert({1, "back"});
  int wrong = 0;
  for (std::size_t i = 1; i < 50; ++i) {
    const auto changes = orders.history()[i].changes();
    wrong += changes[0].before()->status != std::to_string(i - 1) ||
             changes[0].after()->status != std::to_string(i);
  }
  CHECK(wrong == 0);
  CHECK(orders.history()[50].changes()[0].before()->status == "49");
  CHECK(orders.history()[51].changes()[0].kind() == kf::ChangeKind::insert);
}
