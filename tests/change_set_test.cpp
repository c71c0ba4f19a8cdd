// The algebra of change sets, and carrying them out on this or another table.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Stock {
  int id = 0;
  int amount = 0;
  bool operator==(const Stock&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stock, (), (id, amount))

using Stocks = kf::Table<Stock, kf::Key<&Stock::id>>;
using Rows = std::vector<Stock>;
using Change = kf::Change<Stock>;
using Changes = kf::ChangeSet<Stock>;
using Keys = std::vector<std::string>;

void rekey(Stocks& stocks, int from, int to) {
  stocks.merge(Rows{{from, 0}}).when_matched().update(kf::target<&Stock::id> = to).execute();
}

Changes swap_keys(Stocks& stocks, int a, int b) {
  return stocks.merge(Rows{{a, b}, {b, a}})
      .when_matched()
      .update(kf::target<&Stock::id> = kf::source<&Stock::amount>)
      .execute()
      .changes();
}

// The changes of the last two commits, composed.
Changes last_two(const Stocks& stocks) {
  const auto history = stocks.history();
  return history[history.size() - 2].changes().then(history.back().changes());
}

}  // namespace

// --- The composition rules, one by one

TEST_CASE("an insert and then an update is an insert of the last row") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.upsert(Stock{1, 11});
  const Changes net = last_two(stocks);
  REQUIRE(net.size() == 1);
  CHECK(net[0] == Change::insert({1, 11}));
}

TEST_CASE("sets of many changes are composed") {
  Stocks stocks;
  Rows rows;
  for (int id = 0; id < 1000; ++id) rows.push_back({id, id});
  stocks.append(rows);
  for (Stock& row : rows) row.amount += 1;
  stocks.upsert(rows);
  const Changes net = last_two(stocks);
  REQUIRE(net.size() == 1000);
  CHECK(net[0] == Change::insert({0, 1}));
  CHECK(net[999] == Change::insert({999, 1000}));
}

TEST_CASE("an insert and then a delete is nothing") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.erase(1);
  CHECK(last_two(stocks).empty());
}

TEST_CASE("an update and then an update is an update from the first row to the last") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.upsert(Stock{1, 11});
  stocks.upsert(Stock{1, 12});
  const Changes net = last_two(stocks);
  REQUIRE(net.size() == 1);
  CHECK(net[0] == Change::update({1, 10}, {1, 12}));
}

TEST_CASE("an update there and back is nothing") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.upsert(Stock{1, 11});
  stocks.upsert(Stock{1, 10});
  CHECK(last_two(stocks).empty());
}

TEST_CASE("an update and then a delete is a delete of the first row") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.upsert(Stock{1, 11});
  stocks.erase(1);
  const Changes net = last_two(stocks);
  REQUIRE(net.size() == 1);
  CHECK(net[0] == Change::erase({1, 10}));
}

TEST_CASE("a delete and then an insert is an update") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.erase(1);
  stocks.insert({1, 11});
  const Changes net = last_two(stocks);
  REQUIRE(net.size() == 1);
  CHECK(net[0] == Change::update({1, 10}, {1, 11}));
}

TEST_CASE("a delete and then an insert of the same row is nothing") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.erase(1);
  stocks.insert({1, 10});
  CHECK(last_two(stocks).empty());
}

TEST_CASE("changes of different rows stand side by side") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.insert({2, 20});
  const Changes net = last_two(stocks);
  REQUIRE(net.size() == 2);
  CHECK(net[0] == Change::insert({1, 10}));
  CHECK(net[1] == Change::insert({2, 20}));
}

TEST_CASE("a key change counts as a delete of one key and an insert of the other") {
  Stocks stocks;
  stocks.insert({1, 10});
  rekey(stocks, 1, 2);
  rekey(stocks, 2, 3);
  const Changes net = last_two(stocks);
  REQUIRE(net.size() == 2);
  CHECK(std::ranges::count(net, Change::erase({1, 10})) == 1);
  CHECK(std::ranges::count(net, Change::insert({3, 10})) == 1);
  rekey(stocks, 3, 2);
  CHECK(last_two(stocks).empty());  // from 2 to 3 and back
}

TEST_CASE("the changes of one set happen at once") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}});
  const Changes first = swap_keys(stocks, 1, 2);
  const Changes second = swap_keys(stocks, 1, 2);
  REQUIRE(rows_of(stocks) == Rows{{1, 10}, {2, 20}});
  CHECK(first.then(second).empty());
  const Changes net = first.then(Changes());
  CHECK(net.size() == 2);
  CHECK(std::ranges::count(net, Change::update({1, 10}, {1, 20})) == 1);
  CHECK(std::ranges::count(net, Change::update({2, 20}, {2, 10})) == 1);
}

TEST_CASE("composition is associative") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}});
  const Changes a = stocks.upsert({{1, 11}, {3, 30}}).changes();
  const Changes b = stocks.erase(1).changes();
  const Changes c = stocks.upsert({{1, 12}, {2, 21}}).changes();
  CHECK(std::ranges::is_permutation(a.then(b).then(c), a.then(b.then(c))));
  CHECK(std::ranges::is_permutation(a.then(b).then(c), stocks.diff(1, 4)));
}

TEST_CASE("composing with no changes at all changes nothing") {
  Stocks stocks;
  const Changes some = stocks.append({{1, 10}, {2, 20}}).changes();
  CHECK(some.then(Changes()) == some);
  CHECK(Changes().then(some) == some);
  CHECK(Changes().then(Changes()).empty());
}

TEST_CASE("sets that no table made cannot be composed with each other") {
  const Changes loose(std::vector<Change>{Change::insert({1, 10})});
  CHECK_THROWS_AS(loose.then(loose), kf::Error);
  Stocks stocks;
  const Changes made = stocks.insert({2, 20}).changes();
  CHECK(loose.then(made).size() == 2);
  CHECK(made.then(loose).size() == 2);
}

// --- Inverse and filter

TEST_CASE("the inverse of each kind of change undoes it") {
  CHECK(Change::insert({1, 10}).inverse() == Change::erase({1, 10}));
  CHECK(Change::erase({1, 10}).inverse() == Change::insert({1, 10}));
  CHECK(Change::update({1, 10}, {2, 20}).inverse() == Change::update({2, 20}, {1, 10}));
}

TEST_CASE("changes and then their inverse are nothing") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}, {3, 30}});
  const Changes changes = stocks.merge({{1, 11}, {4, 40}})
                              .when_matched()
                              .update_all()
                              .when_not_matched()
                              .insert_all()
                              .when_not_matched_by_source(kf::target<&Stock::id> == 2)
                              .erase()
                              .execute()
                              .changes();
  REQUIRE(changes.size() == 3);
  CHECK(changes.then(changes.inverse()).empty());
  CHECK(changes.inverse().then(changes).empty());
  CHECK(changes.inverse().inverse() == changes);
  stocks.apply(changes.inverse());
  CHECK(rows_of(stocks) == Rows{{1, 10}, {3, 30}, {2, 20}});
}

TEST_CASE("a filter keeps the changes it holds for, in order") {
  Stocks stocks;
  const Changes all = stocks.append({{1, 10}, {2, 20}, {3, 30}}).changes();
  const Changes odd = all.filter([](const Change& change) { return change.after()->id % 2 == 1; });
  REQUIRE(odd.size() == 2);
  CHECK(odd[0] == Change::insert({1, 10}));
  CHECK(odd[1] == Change::insert({3, 30}));
  CHECK(all.filter([](const Change&) { return false; }).empty());
  CHECK(odd.then(odd.inverse()).empty());  // it still knows the key
}

// --- Apply

TEST_CASE("a replica that applies every commit is equal to the original at every version") {
  Stocks original;
  original.append({{1, 10}, {2, 20}, {3, 30}});
  swap_keys(original, 1, 3);
  original.merge({{2, 21}, {4, 40}})
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source(kf::target<&Stock::id> == 1)
      .erase()
      .execute();
  original.restore(kf::Version{1});
  original.undo(4);
  original.clear();
  Stocks replica;
  for (const auto commit : original.history()) {
    replica.apply(commit.changes());
    CHECK(rows_of(replica) == rows_of(original.as_of(commit.version())));
    CHECK(replica.version() == commit.version());
    CHECK(replica.history().back().operation() == "APPLY");
  }
}

TEST_CASE("changes apply to a table with other indexes and another order") {
  Stocks original;
  const Changes changes = original.append({{2, 20}, {1, 10}}).changes();
  kf::Table<Stock, kf::OrderedKey<&Stock::id>, kf::HashedBy<&Stock::amount>> replica;
  replica.apply(changes);
  CHECK(rows_of(replica) == Rows{{1, 10}, {2, 20}});
  CHECK(replica.by<&Stock::amount>().find(20)->id == 2);
}

TEST_CASE("a conflict names the keys of all changes that do not fit, and nothing is applied") {
  Stocks original;
  original.append({{1, 10}, {2, 20}, {3, 30}, {4, 40}});
  const Changes changes = original.merge({{1, 11}, {2, 21}, {5, 50}, {6, 60}})
                              .when_matched()
                              .update_all()
                              .when_not_matched()
                              .insert_all()
                              .when_not_matched_by_source()
                              .erase()
                              .execute()
                              .changes();
  Stocks replica;
  replica.append({{1, 10}, {2, 99}, {3, 99}, {5, 50}});  // 2 and 3 differ, 4 is missing, 5 is there already
  const Unharmed unharmed(replica);
  auto keys = error_of<kf::ChangeConflict>([&] { replica.apply(changes); }).keys;
  std::ranges::sort(keys);
  CHECK(keys == Keys{"2", "3", "4", "5"});
}

TEST_CASE("changes do not apply twice") {
  Stocks stocks;
  const Changes inserted = stocks.insert({1, 10}).changes();
  const Changes updated = stocks.upsert(Stock{1, 11}).changes();
  const Changes erased = stocks.erase(1).changes();
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.apply(erased); }).keys == Keys{"1"});
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.apply(updated); }).keys == Keys{"1"});
  stocks.apply(inserted);
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.apply(inserted); }).keys == Keys{"1"});
}

TEST_CASE("two changes of one row in a set are a conflict") {
  Stocks stocks;
  stocks.insert({1, 10});
  const Changes twice({Change::update({1, 10}, {1, 11}), Change::update({1, 10}, {1, 12})});
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.apply(twice); }).keys == Keys{"1"});
  CHECK(rows_of(stocks) == Rows{{1, 10}});
  const Changes inserts({Change::insert({2, 20}), Change::insert({2, 21})});
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.apply(inserts); }).keys == Keys{"2"});
  CHECK(rows_of(stocks) == Rows{{1, 10}});
}

TEST_CASE("an insert may take a key that a change of the same set frees") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}});
  stocks.apply(Changes({Change::insert({1, 99}), Change::update({1, 10}, {3, 10})}));
  CHECK(rows_of(stocks) == Rows{{3, 10}, {2, 20}, {1, 99}});
}

TEST_CASE("applying no changes makes no version") {
  Stocks stocks;
  stocks.insert({1, 10});
  CHECK_FALSE(stocks.apply(Changes()).committed());
  CHECK(stocks.version() == 1);
}

TEST_CASE("applied changes are counted and recorded") {
  Stocks original;
  original.append({{1, 10}, {2, 20}});
  const Changes changes = original.merge({{1, 11}, {3, 30}})
                              .when_matched()
                              .update_all()
                              .when_not_matched()
                              .insert_all()
                              .when_not_matched_by_source()
                              .erase()
                              .execute()
                              .changes();
  Stocks replica = original.as_of(kf::Version{1}).to_table();
  const auto result = replica.apply(changes);
  CHECK(keyfold_test::counts_of(result) == keyfold_test::Counts{1, 1, 1});
  CHECK(std::ranges::is_permutation(result.changes(), changes));
}
