#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::error_of;
using keyfold_test::rows_of;

namespace {

struct Stock {
  int id = 0;
  int amount = 0;
  bool operator==(const Stock&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stock, (), (id, amount))

using Stocks = kf::Table<Stock, kf::Key<&Stock::id>>;
using Commit = kf::Commit<Stock>;
using Change = kf::Change<Stock>;
using Rows = std::vector<Stock>;
using Versions = std::vector<kf::Version>;

// Notes what it is told.
struct Observer {
  Versions versions;
  std::vector<Change> changes;

  void operator()(const Commit& commit) {
    versions.push_back(commit.version());
    for (const Change& change : commit.changes()) changes.push_back(change);
  }
};

auto telling(Observer& observer) {
  return [&observer](const Commit& commit) { observer(commit); };
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("a subscriber is told of each commit once, after it, in version order") {
  Stocks stocks;
  stocks.insert({9, 90});  // before its time
  Observer observer;
  const auto subscription = stocks.subscribe([&](const Commit& commit) {
    CHECK(stocks.version() == commit.version());
    CHECK(stocks.size() == stocks.as_of(commit.version()).size());
    observer(commit);
  });
  stocks.append({{1, 10}, {2, 20}});
  stocks.upsert(Stock{1, 11});
  stocks.erase(2);
  stocks.restore(kf::Version{2});
  stocks.undo(5);
  stocks.clear();
  CHECK(observer.versions == Versions{2, 3, 4, 5, 6, 7});
}

TEST_CASE("a subscriber sees what the commit says") {
  Stocks stocks;
  std::string seen;
  const auto subscription = stocks.subscribe([&](const Commit& commit) {
    seen = std::string(commit.operation()) + '/' + std::string(commit.metadata()) + '/' +
           std::to_string(commit.metrics().inserted);
    CHECK(commit.changes()[0] == Change::insert({1, 10}));
  });
  stocks.metadata("load").append({{1, 10}, {2, 20}});
  CHECK(seen == "APPEND/load/2");
}

TEST_CASE("a write that makes no version tells nobody") {
  Stocks stocks;
  stocks.insert({1, 10});
  Observer observer;
  const auto subscription = stocks.subscribe(telling(observer));
  stocks.upsert(Stock{1, 10});
  stocks.erase(99);
  stocks.restore(kf::Version{1});
  static_cast<void>(stocks.merge(Rows{{2, 20}}).when_not_matched().insert_all().preview());
  CHECK_THROWS_AS(stocks.insert({1, 11}), kf::DuplicateKey);
  stocks.tag("one", 1);
  stocks.expire(kf::keep_last(1));
  CHECK(observer.versions.empty());
}

TEST_CASE("a commit that changes nothing but says something is told") {
  Stocks stocks;
  Observer observer;
  const auto subscription = stocks.subscribe(telling(observer));
  stocks.metadata("checked").clear();
  CHECK(observer.versions == Versions{1});
  CHECK(observer.changes.empty());
}

// --- Writes inside a callback

// reactivemarbles/DynamicData#991: observer A answers Add(x, v1) with the update v2; observer B
TEST_CASE("a write in a callback is told when everybody has heard of the commit before it") {
  Stocks stocks;
  Observer a;
  Observer b;
  const auto answering = stocks.subscribe([&](const Commit& commit) {
    a(commit);
    if (commit.version() == 1) stocks.upsert(Stock{1, 2});
  });
  const auto watching = stocks.subscribe(telling(b));
  stocks.insert({1, 1});
  CHECK(b.versions == Versions{1, 2});
  CHECK(b.changes == std::vector<Change>{Change::insert({1, 1}), Change::update({1, 1}, {1, 2})});
  CHECK(a.versions == b.versions);
  CHECK(rows_of(stocks) == Rows{{1, 2}});
}

TEST_CASE("versions ascend for both observers whichever of them writes") {
  Stocks stocks;
  Observer a;
  Observer b;
  const auto first = stocks.subscribe(telling(a));
  const auto second = stocks.subscribe([&](const Commit& commit) {
    b(commit);
    if (commit.version() <= 3) stocks.insert({static_cast<int>(commit.version()), 0});
  });
  stocks.insert({0, 0});
  CHECK(a.versions == Versions{1, 2, 3, 4});
  CHECK(b.versions == Versions{1, 2, 3, 4});
}

TEST_CASE("a write in a callback is done at once") {
  Stocks stocks;
  std::size_t size = 0;
  const auto subscription = stocks.subscribe([&](const Commit& commit) {
    if (commit.version() != 1) return;
    const auto result = stocks.insert({2, 20});
    CHECK(result.version() == 2);
    size = stocks.size();
    CHECK(commit.changes().size() == 1);  // still that of the first
  });
  CHECK(stocks.insert({1, 10}).changes()[0] == Change::insert({1, 10}));
  CHECK(size == 2);
}

TEST_CASE("a callback that writes may expire, but not what is still to be told") {
  Stocks stocks;
  Observer b;
  const auto writing = stocks.subscribe([&](const Commit& commit) {
    if (commit.version() != 1) return;
    stocks.insert({2, 20});
    stocks.insert({3, 30});
    stocks.expire(kf::keep_last(1));
  });
  const auto watching = stocks.subscribe(telling(b));
  stocks.insert({1, 10});
  CHECK(b.versions == Versions{1, 2, 3});
  CHECK(b.changes.size() == 3);
}

TEST_CASE("a retention waits until everybody has heard") {
  kf::TableOptions options;
  options.retention = kf::keep_last(1);
  Stocks stocks(options);
  Observer b;
  const auto writing = stocks.subscribe([&](const Commit& commit) {
    if (commit.version() < 4) stocks.insert({static_cast<int>(commit.version()), 0});
  });
  const auto watching = stocks.subscribe(telling(b));
  stocks.insert({0, 0});
  CHECK(b.changes.size() == 4);
  CHECK(stocks.history().size() == 1);
}

// --- Errors

TEST_CASE("what a subscriber throws is in the result, and the others are told") {
  Stocks stocks;
  Observer before;
  Observer after;
  const auto first = stocks.subscribe(telling(before));
  const auto thrower = stocks.subscribe([](const Commit&) { throw std::runtime_error("no room"); });
  const auto second_thrower = stocks.subscribe([](const Commit&) { throw std::runtime_error("no time"); });
  const auto last = stocks.subscribe(telling(after));
  const auto result = stocks.insert({1, 10});
  CHECK(result.committed());
  CHECK(stocks.size() == 1);
  CHECK(before.versions == Versions{1});
  CHECK(after.versions == Versions{1});
  REQUIRE(result.subscriber_errors().size() == 2);
  CHECK(message_of(result.subscriber_errors()[0]) == "no room");
  CHECK(message_of(result.subscriber_errors()[1]) == "no time");
  CHECK(stocks.insert({2, 20}).subscriber_errors().size() == 2);  // it stays subscribed
}

TEST_CASE("a result without errors of subscribers says so") {
  Stocks stocks;
  Observer observer;
  CHECK(stocks.insert({1, 10}).subscriber_errors().empty());
  const auto subscription = stocks.subscribe(telling(observer));
  CHECK(stocks.insert({2, 20}).subscriber_errors().empty());
}

TEST_CASE("errors about a commit made in a callback are in the result of the outer write") {
  Stocks stocks;
  std::size_t inner = 99;
  const auto writing = stocks.subscribe([&](const Commit& commit) {
    if (commit.version() == 1) inner = stocks.insert({2, 20}).subscriber_errors().size();
  });
  const auto thrower = stocks.subscribe([](const Commit& commit) {
    if (commit.version() == 2) throw std::runtime_error("two");
  });
  const auto result = stocks.insert({1, 10});
  CHECK(inner == 0);  // nobody had been told yet
  REQUIRE(result.subscriber_errors().size() == 1);
  CHECK(message_of(result.subscriber_errors()[0]) == "two");
}

TEST_CASE("a write in a callback that fails is an error of the callback") {
  Stocks stocks;
  Observer observer;
  const auto writing = stocks.subscribe([&](const Commit& commit) {
    if (commit.version() == 1) stocks.insert({1, 11});
  });
  const auto watching = stocks.subscribe(telling(observer));
  const auto result = stocks.insert({1, 10});
  REQUIRE(result.subscriber_errors().size() == 1);
  CHECK_THROWS_AS(std::rethrow_exception(result.subscriber_errors()[0]), kf::DuplicateKey);
  CHECK(observer.versions == Versions{1});
  CHECK(rows_of(stocks) == Rows{{1, 10}});
}

// --- Tokens

TEST_CASE("a subscription ends with its token") {
  Stocks stocks;
  Observer observer;
  {
    const auto subscription = stocks.subscribe(telling(observer));
    CHECK(subscription.active());
    stocks.insert({1, 10});
  }
  stocks.insert({2, 20});
  CHECK(observer.versions == Versions{1});
}

TEST_CASE("a subscription can be ended, moved and replaced") {
  Stocks stocks;
  Observer a;
  Observer b;
  auto first = stocks.subscribe(telling(a));
  kf::Subscription moved = std::move(first);
  stocks.insert({1, 10});
  moved.reset();
  CHECK_FALSE(moved.active());
  stocks.insert({2, 20});
  CHECK(a.versions == Versions{1});
  moved = stocks.subscribe(telling(b));
  moved = stocks.subscribe(telling(a));  // drops b
  stocks.insert({3, 30});
  CHECK(a.versions == Versions{1, 3});
  CHECK(b.versions.empty());
  CHECK_FALSE(kf::Subscription().active());
}

TEST_CASE("a callback may end its own subscription") {
  Stocks stocks;
  Observer after;
  int calls = 0;
  kf::Subscription once;
  once = stocks.subscribe([&](const Commit&) {
    ++calls;
    once.reset();
  });
  const auto last = stocks.subscribe(telling(after));
  stocks.insert({1, 10});
  stocks.insert({2, 20});
  CHECK(calls == 1);
  CHECK(after.versions == Versions{1, 2});
}

TEST_CASE("a callback that ends another's subscription keeps it from hearing of this commit") {
  Stocks stocks;
  Observer b;
  Observer c;
  kf::Subscription second;
  const auto first = stocks.subscribe([&](const Commit&) { second.reset(); });
  second = stocks.subscribe(telling(b));
  const auto third = stocks.subscribe(telling(c));
  stocks.insert({1, 10});
  CHECK(b.versions.empty());
  CHECK(c.versions == Versions{1});
}

TEST_CASE("a callback may subscribe, for the commits to come") {
  Stocks stocks;
  Observer late;
  kf::Subscription subscription;
  const auto first = stocks.subscribe([&](const Commit&) {
    if (!subscription.active()) subscription = stocks.subscribe(telling(late));
  });
  stocks.insert({1, 10});
  CHECK(late.versions.empty());
  stocks.insert({2, 20});
  CHECK(late.versions == Versions{2});
}

TEST_CASE("a token may outlive its table") {
  Observer observer;
  kf::Subscription subscription;
  {
    Stocks stocks;
    subscription = stocks.subscribe(telling(observer));
    stocks.insert({1, 10});
  }
  CHECK(observer.versions == Versions{1});
  subscription.reset();
  CHECK_FALSE(subscription.active());
}

TEST_CASE("a callback that can only be moved") {
  Stocks stocks;
  int told = 0;
  auto owner = std::make_unique<int*>(&told);
  const auto subscription = stocks.subscribe([owner = std::move(owner)](const Commit&) { ++**owner; });
  stocks.insert({1, 10});
  CHECK(told == 1);
}

TEST_CASE("assigning a table to itself changes nothing") {
  Stocks stocks;
  stocks.insert({1, 10});
  Observer observer;
  const auto subscription = stocks.subscribe(telling(observer));
  const Stock* row = stocks.find(1);
  const Stocks& same = stocks;
  stocks = same;
  CHECK(stocks.find(1) == row);
  stocks.insert({2, 20});
  CHECK(observer.versions == Versions{2});
}

TEST_CASE("a callback cannot assign to its table") {
  Stocks stocks;
  const Stocks other;
  const auto subscription = stocks.subscribe([&](const Commit&) { stocks = other; });
  const auto result = stocks.insert({1, 10});
  REQUIRE(result.subscriber_errors().size() == 1);
  CHECK_THROWS_AS(std::rethrow_exception(result.subscriber_errors().front()), kf::ReentrantWrite);
  CHECK(stocks.size() == 1);
}

TEST_CASE("a table may be assigned over while it has subscribers") {
  Observer observer;
  Stocks stocks;
  const auto subscription = stocks.subscribe(telling(observer));
  stocks = Stocks();
  stocks.insert({1, 10});
  CHECK(observer.versions.empty());  // the table that it heard of is gone
}

TEST_CASE("a moved table takes its subscribers along") {
  Stocks stocks;
  Observer observer;
  const auto subscription = stocks.subscribe(telling(observer));
  Stocks moved = std::move(stocks);
  moved.insert({1, 10});
  CHECK(observer.versions == Versions{1});
  Stocks assigned;
  assigned = std::move(moved);
  assigned.insert({2, 20});
  CHECK(observer.versions == Versions{1, 2});
}

TEST_CASE("a copied table has no subscribers, and tells its own of its own commits only") {
  Stocks stocks;
  Observer of_original;
  Observer of_copy;
  const auto subscription = stocks.subscribe(telling(of_original));
  stocks.insert({1, 10});
  Stocks copy = stocks;
  const auto other = copy.subscribe(telling(of_copy));
  copy.insert({2, 20});
  stocks.insert({3, 30});
  CHECK(of_original.versions == Versions{1, 2});
  CHECK(of_copy.versions == Versions{2});
  CHECK(of_copy.changes == std::vector<Change>{Change::insert({2, 20})});
}

TEST_CASE("what a callback holds is let go with the subscription") {
  const auto held = std::make_shared<int>(1);
  Stocks stocks;
  auto subscription = stocks.subscribe([held](const Commit&) {});
  CHECK(held.use_count() == 2);
  subscription.reset();
  CHECK(held.use_count() == 1);
}

TEST_CASE("a callback may own the token of another one") {
  Stocks stocks;
  Observer owned, other;
  auto token = std::make_shared<kf::Subscription>();
  kf::Subscription owner;
  owner = stocks.subscribe([&owner, token](const Commit&) { owner.reset(); });
  *token = stocks.subscribe(telling(owned));
  token.reset();  // from now on only the callback of `owner` has it
  const auto third = stocks.subscribe(telling(other));
  const auto fourth = stocks.subscribe(telling(other));
  stocks.insert({1, 10});
  stocks.insert({2, 20});
  CHECK(owned.versions == Versions{1});
  CHECK(other.versions == Versions{1, 1, 2, 2});
}

// --- Replay

TEST_CASE("replay tells the present rows as one commit of inserts, and then every commit") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}});
  stocks.upsert(Stock{1, 11});
  stocks.insert({3, 30});
  stocks.erase(2);
  Observer observer;
  std::string operation;
  std::size_t inserted = 0;
  const auto subscription = stocks.subscribe(
      [&](const Commit& commit) {
        observer(commit);
        operation = commit.operation();
        inserted = commit.metrics().inserted;
      },
      kf::replay);
  CHECK(observer.versions == Versions{4});
  CHECK(operation == "REPLAY");
  CHECK(inserted == 2);
  CHECK(observer.changes == std::vector<Change>{Change::insert({1, 11}), Change::insert({3, 30})});
  stocks.insert({4, 40});
  CHECK(observer.versions == Versions{4, 5});
  CHECK(observer.changes.back() == Change::insert({4, 40}));
  CHECK(stocks.version() == 5);  // a replay is no commit of the table
}

TEST_CASE("replay of an empty table tells of no rows") {
  Stocks stocks;
  Observer observer;
  const auto subscription = stocks.subscribe(telling(observer), kf::replay);
  CHECK(observer.versions == Versions{0});
  CHECK(observer.changes.empty());
}

TEST_CASE("a replay that throws subscribes nothing") {
  Stocks stocks;
  stocks.insert({1, 10});
  int calls = 0;
  const auto thrower = [&](const Commit&) {
    ++calls;
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(stocks.subscribe(thrower, kf::replay), std::runtime_error);
  CHECK(stocks.insert({2, 20}).subscriber_errors().empty());
  CHECK(calls == 1);
}

TEST_CASE("a write in the replay is told after it, and leaves what was told alone") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}});
  Observer before;
  const auto elder = stocks.subscribe(telling(before));
  Observer observer;
  const auto subscription = stocks.subscribe(
      [&](const Commit& commit) {
        if (commit.operation() == "REPLAY") {
          stocks.erase(1);
          stocks.upsert(Stock{2, 21});
          CHECK(before.versions.empty());  // waits, too
        }
        observer(commit);
      },
      kf::replay);
  CHECK(observer.versions == Versions{1, 2, 3});
  CHECK(observer.changes == std::vector<Change>{Change::insert({1, 10}), Change::insert({2, 20}),
                                                Change::erase({1, 10}), Change::update({2, 20}, {2, 21})});
  CHECK(before.versions == Versions{2, 3});
}

TEST_CASE("what a replay that throws has written is told to the others") {
  Stocks stocks;
  Observer observer;
  const auto elder = stocks.subscribe(telling(observer));
  const auto thrower = [&](const Commit&) {
    stocks.insert({1, 10});
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(stocks.subscribe(thrower, kf::replay), std::runtime_error);
  CHECK(observer.versions == Versions{1});
}

TEST_CASE("a retention waits for the end of a replay") {
  kf::TableOptions options;
  options.retention = kf::keep_last(1);
  Stocks stocks(options);
  stocks.insert({1, 10});
  Observer observer;
  const auto subscription = stocks.subscribe(
      [&](const Commit& commit) {
        if (commit.operation() == "REPLAY") {
          for (int id = 2; id <= 4; ++id) stocks.insert({id, 10 * id});
        }
        observer(commit);
      },
      kf::replay);
  CHECK(observer.versions == Versions{1, 2, 3, 4});
  CHECK(stocks.history().size() == 1);
}

// reactivemarbles/DynamicData#1129: subscribing between the add and its notification
TEST_CASE("a replay inside a callback tells of the row exactly once") {
  Stocks stocks;
  Observer late;
  kf::Subscription subscription;
  const auto first = stocks.subscribe([&](const Commit& commit) {
    if (commit.version() == 1) subscription = stocks.subscribe(telling(late), kf::replay);
  });
  stocks.insert({1, 10});
  CHECK(late.changes == std::vector<Change>{Change::insert({1, 10})});
  stocks.insert({2, 20});
  CHECK(late.changes == std::vector<Change>{Change::insert({1, 10}), Change::insert({2, 20})});
}

TEST_CASE("a replay after a queued write tells of that write exactly once") {
  Stocks stocks;
  Observer late;
  kf::Subscription subscription;
  const auto first = stocks.subscribe([&](const Commit& commit) {
    if (commit.version() != 1) return;
    stocks.insert({2, 20});
    subscription = stocks.subscribe(telling(late), kf::replay);
  });
  stocks.insert({1, 10});
  CHECK(late.changes == std::vector<Change>{Change::insert({1, 10}), Change::insert({2, 20})});
}
