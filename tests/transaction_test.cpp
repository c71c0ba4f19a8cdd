// Several writes as one version: what they see, what is left of them, and what may come between.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Stock {
  int id = 0;
  int amount = 0;
  std::string shelf;
  bool operator==(const Stock&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stock, (), (id, amount, shelf))

using Stocks = kf::Table<Stock, kf::Key<&Stock::id>, kf::UniqueBy<&Stock::shelf>>;
using Sorted = kf::Table<Stock, kf::OrderedKey<&Stock::id>>;
using Rows = std::vector<Stock>;
using Change = kf::Change<Stock>;
using Changes = std::vector<Change>;

Stocks three() {
  Stocks stocks;
  stocks.append({{1, 10, "a"}, {2, 20, "b"}, {3, 30, "c"}});
  return stocks;
}

Changes changes_of(const kf::ChangeSet<Stock>& set) { return {set.begin(), set.end()}; }

}  // namespace

TEST_CASE("a transaction sees its writes, and the table does not before the commit") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  {
    const Unharmed unharmed(stocks);
    tx.upsert(Stock{1, 11, "a"});
    tx.erase(2);
    tx.insert({4, 40, "d"});
    CHECK(tx.size() == 3);
    CHECK(tx.at(1).amount == 11);
    CHECK(tx.find(2) == nullptr);
    CHECK(tx.contains(4));
    CHECK_THROWS_AS(tx.at(2), kf::KeyNotFound);
    CHECK(rows_of(tx) == Rows{{1, 11, "a"}, {3, 30, "c"}, {4, 40, "d"}});
    CHECK(stocks.at(1).amount == 10);
    CHECK_FALSE(stocks.contains(4));
  }
  const auto result = tx.commit();
  CHECK(result.committed());
  CHECK(result.version() == 2);
  CHECK(counts_of(result) == Counts{1, 1, 1});
  CHECK(rows_of(stocks) == Rows{{1, 11, "a"}, {3, 30, "c"}, {4, 40, "d"}});
  CHECK(stocks.version() == 2);
  CHECK(rows_of(stocks.as_of(kf::Version{1})) == Rows{{1, 10, "a"}, {2, 20, "b"}, {3, 30, "c"}});
}

TEST_CASE("a transaction that is not committed leaves nothing behind") {
  Stocks stocks = three();
  const Unharmed unharmed(stocks);
  {
    auto tx = stocks.transaction();
    tx.clear();
    tx.insert({9, 90, "z"});
  }
  auto tx = stocks.transaction();
  tx.erase(1);
  tx.rollback();
  CHECK_THROWS_AS(tx.commit(), kf::TransactionEnded);
}

TEST_CASE("history records a transaction as one commit that names its writes") {
  Stocks stocks = three();
  auto tx = stocks.metadata("day 2").transaction();
  tx.append({{4, 40, "d"}, {5, 50, "e"}});
  tx.erase(5);
  tx.erase(77);  // nothing
  tx.merge(Rows{{4, 41, "d"}}).when_matched().update_all().metadata("file 7").execute();
  tx.commit();
  REQUIRE(stocks.history().size() == 2);
  const auto commit = stocks.history().back();
  CHECK(commit.operation() == "TRANSACTION");
  CHECK(commit.parameters() ==
        "APPEND; DELETE WHERE id = 5; MERGE ON source.id = target.id WHEN MATCHED THEN UPDATE SET *");
  CHECK(commit.metadata() == "day 2; file 7");
  CHECK(commit.metrics().inserted == 1);
  CHECK(commit.metrics().affected() == 1);
  CHECK(changes_of(commit.changes()) == Changes{Change::insert({4, 41, "d"})});
}

TEST_CASE("each write in a transaction tells what it did") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  const auto first = tx.upsert(Stock{1, 11, "a"});
  CHECK(counts_of(first) == Counts{1, 0, 0});
  CHECK(first.version() == 1);
  CHECK_FALSE(first.committed());
  CHECK(changes_of(first.changes()) == Changes{Change::update({1, 10, "a"}, {1, 11, "a"})});
  const auto second = tx.upsert(Stock{1, 12, "a"});
  CHECK(changes_of(second.changes()) == Changes{Change::update({1, 11, "a"}, {1, 12, "a"})});
  CHECK(tx.upsert(Stock{1, 12, "a"}).metrics().unchanged == 1);
  CHECK(tx.erase(99).changes().empty());
  const auto result = tx.commit();
  CHECK(changes_of(result.changes()) == Changes{Change::update({1, 10, "a"}, {1, 12, "a"})});
  CHECK_THROWS_AS(first.changes(), kf::TableGone);
}

TEST_CASE("a row that leaves and comes back is updated at its place, or unchanged") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.clear();
  tx.append({{3, 30, "c"}, {1, 11, "a"}});
  CHECK(changes_of(tx.preview()) ==
        Changes{Change::update({1, 10, "a"}, {1, 11, "a"}), Change::erase({2, 20, "b"})});
  tx.commit();
  CHECK(rows_of(stocks) == Rows{{1, 11, "a"}, {3, 30, "c"}});
}

TEST_CASE("what comes to nothing makes no version") {
  Stocks stocks = three();
  const Unharmed unharmed(stocks);
  auto tx = stocks.transaction();
  tx.upsert(Stock{1, 11, "a"});
  tx.insert({4, 40, "d"});
  tx.upsert(Stock{1, 10, "a"});
  tx.erase(4);
  CHECK(tx.preview().empty());
  const auto result = tx.commit();
  CHECK_FALSE(result.committed());
  CHECK(result.version() == 1);
  CHECK(result.changes().empty());
  CHECK_FALSE(stocks.transaction().commit().committed());
}

TEST_CASE("a transaction of nothing makes a version if it has metadata") {
  Stocks stocks = three();
  CHECK(stocks.metadata("looked").transaction().commit().committed());
  CHECK(stocks.version() == 2);
}

TEST_CASE("a write that fails leaves the transaction as it was before that write") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.upsert(Stock{1, 11, "a"});
  const Rows before = rows_of(tx);
  CHECK_THROWS_AS(tx.append({{4, 40, "d"}, {1, 0, "x"}}), kf::DuplicateKey);
  CHECK_THROWS_AS(tx.insert({4, 40, "b"}),
                  kf::UniqueViolation);  // a row that the transaction has not touched
  CHECK_THROWS_AS(tx.merge(Rows{{2, 0, "b"}, {3, 0, "c"}})
                      .when_matched(kf::source<&Stock::id> == 3)
                      .raise("not three")
                      .when_matched()
                      .erase()
                      .execute(),
                  kf::ClauseRaised);
  const auto thrower = [](const Stock&, const Stock&) -> Stock { throw std::runtime_error("no"); };
  CHECK_THROWS_AS(tx.merge(Rows{{2, 0, "b"}}).when_matched().update(thrower).execute(), std::runtime_error);
  CHECK(rows_of(tx) == before);
  CHECK(tx.size() == 3);
  tx.erase(2);
  tx.insert({4, 40, "b"});  // its shelf is free now
  tx.commit();
  CHECK(rows_of(stocks) == Rows{{1, 11, "a"}, {3, 30, "c"}, {4, 40, "b"}});
}

TEST_CASE("a preview of a transaction, and of a write within it, changes nothing") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(1);
  const Unharmed unharmed(stocks);
  CHECK(tx.merge(Rows{{2, 21, "b"}}).when_matched().update_all().preview().size() == 1);
  CHECK(changes_of(tx.preview()) == Changes{Change::erase({1, 10, "a"})});
  CHECK(changes_of(tx.preview()) == Changes{Change::erase({1, 10, "a"})});
  CHECK(tx.size() == 2);
}

TEST_CASE("unique values move between rows over several writes") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.upsert(Stock{1, 10, "spare"});
  tx.upsert(Stock{2, 20, "a"});
  tx.upsert(Stock{1, 10, "b"});
  tx.commit();
  CHECK(stocks.by<&Stock::shelf>().find("a")->id == 2);
  CHECK(stocks.by<&Stock::shelf>().find("b")->id == 1);
}

TEST_CASE("keys change within a transaction, and a row keeps its place") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  const auto rekey = [&](int from, int to) {
    tx.merge(Rows{{from, 0, ""}}).when_matched().update(kf::target<&Stock::id> = to).execute();
  };
  rekey(1, 9);
  CHECK(tx.find(1) == nullptr);
  rekey(2, 1);
  rekey(9, 2);
  CHECK(rows_of(tx) == Rows{{2, 10, "a"}, {1, 20, "b"}, {3, 30, "c"}});
  tx.insert({9, 90, "z"});
  tx.commit();
  CHECK(rows_of(stocks) == Rows{{2, 10, "a"}, {1, 20, "b"}, {3, 30, "c"}, {9, 90, "z"}});
}

TEST_CASE("a new row may take the key of one that got another key") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.merge(Rows{{1, 0, ""}}).when_matched().update(kf::target<&Stock::id> = 5).execute();
  tx.insert({1, 99, "new"});
  tx.commit();
  CHECK(rows_of(stocks) == Rows{{5, 10, "a"}, {2, 20, "b"}, {3, 30, "c"}, {1, 99, "new"}});
}

TEST_CASE("clauses for rows not in the source see rows of the table and of the transaction") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.insert({4, 40, "d"});
  tx.erase(1);
  const auto result = tx.merge(Rows{{2, 20, "b"}}).when_not_matched_by_source().erase().execute();
  CHECK(result.metrics().not_matched_by_source_deleted == 2);  // 3 and 4
  CHECK(rows_of(tx) == Rows{{2, 20, "b"}});
}

TEST_CASE("matching through a secondary index sees the writes of the transaction") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.upsert(Stock{1, 10, "moved"});
  const auto set_by_shelf = [&](const char* shelf) {
    return tx.merge(Rows{{0, 0, shelf}})
        .on<&Stock::shelf>(kf::by<&Stock::shelf>)
        .when_matched()
        .update(kf::target<&Stock::amount> = 99)
        .execute()
        .metrics()
        .updated;
  };
  CHECK(set_by_shelf("a") == 0);
  CHECK(set_by_shelf("moved") == 1);
  CHECK(set_by_shelf("c") == 1);
  CHECK(rows_of(tx) == Rows{{1, 99, "moved"}, {2, 20, "b"}, {3, 99, "c"}});
}

TEST_CASE("a transaction of a table with an ordered key is in key order") {
  Sorted stocks;
  stocks.append({{5, 50, ""}, {1, 10, ""}, {9, 90, ""}});
  auto tx = stocks.transaction();
  tx.append({{7, 70, ""}, {0, 0, ""}});
  tx.merge(Rows{{1, 0, ""}}).when_matched().update(kf::target<&Stock::id> = 8).execute();
  CHECK(rows_of(tx) == Rows{{0, 0, ""}, {5, 50, ""}, {7, 70, ""}, {8, 10, ""}, {9, 90, ""}});
  const Rows seen = rows_of(tx);
  tx.commit();
  CHECK(rows_of(stocks) == seen);
}

TEST_CASE("the table itself and the transaction may be the source") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(1);
  CHECK(tx.merge(stocks).when_matched().update(kf::target<&Stock::amount> = 0).execute().metrics().updated ==
        2);
  CHECK(tx.merge(tx).when_matched().update(kf::target<&Stock::amount> = 7).execute().metrics().updated == 2);
  tx.commit();
  CHECK(rows_of(stocks) == Rows{{2, 7, "b"}, {3, 7, "c"}});
}

// --- What comes between

TEST_CASE("a transaction on a table that has moved on is refused, and says from where to where") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(1);
  stocks.erase(2);
  const Unharmed unharmed(stocks);
  const auto error = error_of<kf::TransactionConflict>([&] { tx.commit(); });
  CHECK(error.started == 1);
  CHECK(error.latest == 2);
  CHECK_THROWS_AS(tx.erase(3), kf::TransactionConflict);
  CHECK_THROWS_AS(tx.find(3), kf::TransactionConflict);
  CHECK_THROWS_AS(tx.begin(), kf::TransactionConflict);
  CHECK_THROWS_AS(tx.size(), kf::TransactionConflict);
  CHECK_THROWS_AS(tx.preview(), kf::TransactionConflict);
  tx.rollback();
}

TEST_CASE("of two transactions the first to commit wins") {
  Stocks stocks = three();
  auto one = stocks.transaction();
  auto two = stocks.transaction();
  one.erase(1);
  two.erase(2);
  two.commit();
  CHECK_THROWS_AS(one.commit(), kf::TransactionConflict);
  CHECK(rows_of(stocks) == Rows{{1, 10, "a"}, {3, 30, "c"}});
}

TEST_CASE("tags and expiry do not disturb a transaction") {
  Stocks stocks = three();
  stocks.erase(3);
  auto tx = stocks.transaction();
  tx.erase(1);
  stocks.tag("now", 2);
  stocks.expire(kf::keep_last(1));
  tx.commit();
  CHECK(rows_of(stocks) == Rows{{2, 20, "b"}});
}

TEST_CASE("a transaction outlives its table, but not to any use") {
  auto stocks = std::make_unique<Stocks>(three());
  auto tx = stocks->transaction();
  tx.erase(1);
  stocks.reset();
  CHECK_THROWS_AS(tx.commit(), kf::TableGone);
  CHECK_THROWS_AS(tx.size(), kf::TableGone);
  Stocks other = three();
  auto stale = other.transaction();
  other = three();
  CHECK_THROWS_AS(stale.erase(1), kf::TableGone);
}

TEST_CASE("a table may be moved while a transaction is open, and so may the transaction") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(1);
  Stocks moved = std::move(stocks);
  auto tx2 = std::move(tx);
  tx2.commit();
  CHECK(rows_of(moved) == Rows{{2, 20, "b"}, {3, 30, "c"}});
}

TEST_CASE("a transaction ends with its commit") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(1);
  tx.commit();
  CHECK_THROWS_AS(tx.commit(), kf::TransactionEnded);
  CHECK_THROWS_AS(tx.erase(2), kf::TransactionEnded);
  CHECK_THROWS_AS(tx.at(2), kf::TransactionEnded);
  CHECK_THROWS_AS(tx.rollback(), kf::TransactionEnded);
  CHECK(stocks.version() == 2);
}

TEST_CASE("a condition that writes to the transaction is refused, one that writes to the table spoils it") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  const auto write_to = [](auto& target) {
    return [&target](const Stock&, const Stock&) {
      target.erase(3);
      return true;
    };
  };
  CHECK_THROWS_AS(tx.merge(Rows{{1, 0, ""}}).when_matched(write_to(tx)).erase().execute(),
                  kf::ReentrantWrite);
  CHECK(tx.size() == 3);
  CHECK_THROWS_AS(tx.merge(Rows{{1, 0, ""}}).when_matched(write_to(stocks)).erase().execute(),
                  kf::TransactionConflict);
  CHECK(rows_of(stocks) == Rows{{1, 10, "a"}, {2, 20, "b"}});
}

TEST_CASE("a condition may read the transaction while it writes") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(2);
  tx.merge(Rows{{1, 0, ""}, {3, 0, ""}})
      .when_matched([&](const Stock& target, const Stock&) { return tx.contains(target.id - 1); })
      .erase()
      .execute();
  CHECK(tx.size() == 2);
}

// --- Subscribers, once

TEST_CASE("subscribers hear of a transaction once, when it is committed") {
  Stocks stocks = three();
  std::vector<std::size_t> told;
  const auto subscription =
      stocks.subscribe([&](const kf::Commit<Stock>& commit) { told.push_back(commit.changes().size()); });
  auto tx = stocks.transaction();
  tx.erase(1);
  tx.insert({4, 40, "d"});
  CHECK(told.empty());
  tx.commit();
  CHECK(told == std::vector<std::size_t>{2});
}

TEST_CASE("a callback may commit a transaction") {
  Stocks stocks = three();
  const auto subscription = stocks.subscribe([&](const kf::Commit<Stock>& commit) {
    if (commit.version() != 2) return;
    auto tx = stocks.transaction();
    tx.erase(2);
    tx.commit();
  });
  CHECK(stocks.erase(1).subscriber_errors().empty());
  CHECK(stocks.version() == 3);
}

TEST_CASE("a transaction once: the number is recorded with the commit, and a second one is skipped") {
  Stocks stocks = three();
  auto tx = stocks.once("loader", 7).transaction();
  tx.erase(1);
  CHECK_FALSE(stocks.last_applied("loader").has_value());
  CHECK(tx.commit().committed());
  CHECK(stocks.last_applied("loader") == std::optional<std::uint64_t>(7));
  auto again = stocks.once("loader", 7).transaction();
  again.erase(2);
  const auto result = again.commit();
  CHECK(result.already_applied());
  CHECK_FALSE(result.committed());
  CHECK(stocks.size() == 2);
}

TEST_CASE("writes once within a transaction") {
  Stocks stocks = three();
  stocks.once("b", 3).erase(3);
  auto tx = stocks.transaction();
  CHECK(tx.once("b", 3).erase(1).already_applied());
  tx.once("a", 1).erase(1);
  CHECK(tx.once("a", 1).erase(2).already_applied());
  tx.once("b", 4).insert({8, 80, "h"});
  CHECK_FALSE(stocks.last_applied("a").has_value());
  tx.commit();
  CHECK(stocks.last_applied("a") == std::optional<std::uint64_t>(1));
  CHECK(stocks.last_applied("b") == std::optional<std::uint64_t>(4));
  CHECK(rows_of(stocks) == Rows{{2, 20, "b"}, {8, 80, "h"}});
}

TEST_CASE("a number within a transaction does not take that of the transaction back") {
  Stocks stocks = three();
  auto tx = stocks.once("app", 7).transaction();
  tx.once("app", 5).erase(1);
  tx.commit();
  CHECK(stocks.last_applied("app") == std::optional<std::uint64_t>(7));
  auto other = stocks.once("app", 8).transaction();
  other.once("app", 9).erase(2);
  other.commit();
  CHECK(stocks.last_applied("app") == std::optional<std::uint64_t>(9));
}

TEST_CASE("a transaction without a number is not skipped on a table that has recorded some") {
  Stocks stocks = three();
  stocks.once("app", 7).erase(3);
  auto tx = stocks.transaction();
  tx.erase(1);
  CHECK(tx.commit().committed());
  CHECK(stocks.size() == 1);
}

TEST_CASE("a rule is previewed within a transaction") {
  constexpr auto rule = kf::merge_rule<Stock>().when_matched().erase();
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(1);
  CHECK(tx.preview(Rows{{1, 0, ""}, {2, 0, ""}}, rule).size() == 1);
  CHECK(tx.size() == 2);
}

TEST_CASE("a transaction shows the order that the table will have") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.erase(1);
  tx.insert({9, 90, "i"});
  tx.insert({1, 11, "a"});
  const Rows seen = rows_of(tx);
  CHECK(seen == Rows{{1, 11, "a"}, {2, 20, "b"}, {3, 30, "c"}, {9, 90, "i"}});
  tx.commit();
  CHECK(rows_of(stocks) == seen);
}

TEST_CASE("rows that cannot be compared are updated by a transaction all the same") {
  struct Opaque {
    int id;
    int amount;
  };
  kf::Table<Opaque, kf::Key<&Opaque::id>> table;
  table.append({{1, 10}, {2, 20}});
  auto tx = table.transaction();
  CHECK(tx.contains(2));  // seen, not written
  tx.upsert(Opaque{1, 11});
  const auto result = tx.commit();
  CHECK(result.metrics().updated == 1);
  CHECK(table.at(1).amount == 11);
  auto reading = table.transaction();
  reading.merge(std::vector<Opaque>{{2, 0}}).when_matched().do_nothing().execute();
  CHECK_FALSE(reading.commit().committed());
}

TEST_CASE("a commit that failed is committed again, with its number and metadata") {
  kf::TableOptions options;
  bool failing = false;
  options.clock = [&failing] {
    if (failing) throw std::runtime_error("no time");
    return kf::Timestamp();
  };
  Stocks stocks(options);
  stocks.append({{1, 10, "a"}, {2, 20, "b"}});
  auto tx = stocks.once("app", 1).metadata("day 2").transaction();
  tx.erase(1);
  failing = true;
  CHECK_THROWS_AS(tx.commit(), std::runtime_error);
  CHECK(stocks.size() == 2);
  failing = false;
  tx.erase(2);
  CHECK(tx.commit().committed());
  CHECK(stocks.empty());
  CHECK(stocks.history().back().metadata() == "day 2");
  CHECK(stocks.last_applied("app") == std::optional<std::uint64_t>(1));
}

TEST_CASE("changes are applied within a transaction") {
  Stocks stocks = three();
  const auto changes = stocks.diff(0, 1).inverse();
  auto tx = stocks.transaction();
  tx.apply(changes);
  CHECK(tx.empty());
  CHECK_THROWS_AS(tx.apply(changes), kf::ChangeConflict);
  tx.commit();
  CHECK(stocks.empty());
}

TEST_CASE("numbers of a transaction that is given up are not recorded") {
  Stocks stocks = three();
  {
    auto tx = stocks.once("whole", 1).transaction();
    tx.once("part", 1).erase(1);
  }
  CHECK_FALSE(stocks.last_applied("whole").has_value());
  CHECK_FALSE(stocks.last_applied("part").has_value());
}

TEST_CASE("a transaction is undone and restored like any commit") {
  Stocks stocks = three();
  auto tx = stocks.transaction();
  tx.clear();
  tx.append({{7, 70, "g"}, {8, 80, "h"}});
  tx.commit();
  stocks.undo(2);
  CHECK(rows_of(stocks) == Rows{{1, 10, "a"}, {2, 20, "b"}, {3, 30, "c"}});
  stocks.restore(2);
  CHECK(rows_of(stocks) == Rows{{7, 70, "g"}, {8, 80, "h"}});
}

TEST_CASE("a replica takes a transaction as one change set") {
  Stocks stocks = three();
  Stocks replica = three();
  auto tx = stocks.transaction();
  tx.upsert(Stock{1, 11, "spare"});
  tx.upsert(Stock{2, 20, "a"});
  tx.erase(3);
  replica.apply(tx.preview());
  tx.commit();
  CHECK(rows_of(replica) == rows_of(stocks));
}
