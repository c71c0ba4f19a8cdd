// Going back: restore, undo, and letting old versions go.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using namespace std::chrono_literals;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Stock {
  int id = 0;
  int amount = 0;
  std::optional<std::string> shelf;
  bool operator==(const Stock&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stock, (), (id, amount, shelf))

using Stocks = kf::Table<Stock, kf::Key<&Stock::id>, kf::UniqueBy<&Stock::shelf>>;
using Rows = std::vector<Stock>;
using Versions = std::vector<kf::Version>;
using Keys = std::vector<std::string>;

const kf::Timestamp noon = std::chrono::sys_days(std::chrono::year(2026) / 10 / 4) + 12h;

Stock stock(int id, int amount, std::optional<std::string> shelf = {}) {
  return {id, amount, std::move(shelf)};
}

// A table with a clock that moves an hour with each commit, from noon on.
kf::TableOptions hourly(std::optional<kf::Retention> retention = {}) {
  kf::TableOptions options;
  options.clock = [next = noon]() mutable { return std::exchange(next, next + 1h); };
  options.retention = retention;
  return options;
}

Stocks four_versions(std::optional<kf::Retention> retention = {}) {
  Stocks stocks(hourly(retention));
  stocks.append({stock(1, 10), stock(2, 20)});
  stocks.upsert(stock(1, 11));
  stocks.erase(2);
  stocks.insert(stock(3, 30));
  return stocks;
}

void rekey(Stocks& stocks, int from, int to) {
  stocks.merge(Rows{stock(from, 0)}).when_matched().update(kf::target<&Stock::id> = to).execute();
}

Versions readable(const Stocks& stocks) {
  Versions out;
  for (kf::Version v = 0; v <= stocks.version(); ++v) {
    try {
      static_cast<void>(stocks.as_of(v));
      out.push_back(v);
    } catch (const kf::VersionExpired&) {
    }
  }
  return out;
}

Versions versions_of(const Stocks& stocks) {
  Versions out;
  for (const auto commit : stocks.history()) out.push_back(commit.version());
  return out;
}

}  // namespace

// --- Restore

TEST_CASE("restore makes the table equal to an older version, as a new commit") {
  Stocks stocks = four_versions();
  const auto result = stocks.restore(kf::Version{1});
  CHECK(rows_of(stocks) == Rows{stock(1, 10), stock(2, 20)});
  CHECK(result.committed());
  CHECK(result.version() == 5);
  CHECK(counts_of(result) == Counts{1, 1, 1});
  CHECK(stocks.history().back().operation() == "RESTORE");
  CHECK(stocks.history().back().parameters() == "TO VERSION 1");
  CHECK(rows_of(stocks.as_of(kf::Version{4})) == Rows{stock(1, 11), stock(3, 30)});
}

TEST_CASE("restore to a time, and to a tag") {
  Stocks stocks = four_versions();
  stocks.tag("second", 2);
  stocks.restore(noon + 30min);
  CHECK(rows_of(stocks) == Rows{stock(1, 10), stock(2, 20)});
  stocks.restore("second");
  CHECK(rows_of(stocks) == Rows{stock(1, 11), stock(2, 20)});
  CHECK(stocks.history().back().parameters() == "TO VERSION 2");
}

TEST_CASE("restoring the current state makes no version") {
  Stocks stocks = four_versions();
  CHECK_FALSE(stocks.restore(kf::Version{4}).committed());
  stocks.restore(kf::Version{2});
  CHECK_FALSE(stocks.restore(kf::Version{2}).committed());
  CHECK(stocks.version() == 5);
}

TEST_CASE("restore to version 0 empties the table") {
  Stocks stocks = four_versions();
  CHECK(stocks.restore(kf::Version{0}).metrics().deleted == 2);
  CHECK(stocks.empty());
  CHECK(stocks.version() == 5);
}

TEST_CASE("a restore can be undone and restored from") {
  Stocks stocks = four_versions();
  stocks.restore(kf::Version{1});
  stocks.undo(5);
  CHECK(rows_of(stocks) == Rows{stock(1, 11), stock(3, 30)});
  stocks.restore(kf::Version{5});
  CHECK(rows_of(stocks) == Rows{stock(1, 10), stock(2, 20)});
}

TEST_CASE("restore leaves rows that have not changed where they are") {
  Stocks stocks = four_versions();
  const Stock* unchanged = stocks.find(1);
  stocks.restore(kf::Version{2});
  CHECK(stocks.find(1) == unchanged);
  CHECK(rows_of(stocks) == Rows{stock(1, 11), stock(2, 20)});
}

TEST_CASE("restore gives unique values back") {
  Stocks stocks;
  stocks.append({stock(1, 10, "A"), stock(2, 20, "B")});
  stocks.upsert({stock(1, 10, "B"), stock(2, 20, "A")});
  stocks.restore(kf::Version{1});
  CHECK(stocks.by<&Stock::shelf>().find("A")->id == 1);
  CHECK(stocks.by<&Stock::shelf>().find("B")->id == 2);
}

TEST_CASE("restore gives keys back") {
  Stocks stocks;
  stocks.append({stock(1, 10), stock(2, 20)});
  rekey(stocks, 1, 3);
  rekey(stocks, 2, 1);
  stocks.restore(kf::Version{1});
  CHECK(stocks.at(1).amount == 10);
  CHECK(stocks.at(2).amount == 20);
  CHECK(stocks.size() == 2);
}

TEST_CASE("an expired version cannot be restored") {
  Stocks stocks = four_versions();
  stocks.expire(kf::keep_last(2));
  const Unharmed unharmed(stocks);
  const auto error = error_of<kf::VersionExpired>([&] { stocks.restore(kf::Version{2}); });
  CHECK(error.requested == 2);
  CHECK(error.oldest == 3);
}

// --- Undo

TEST_CASE("undo reverts the last commit") {
  Stocks stocks = four_versions();
  const auto result = stocks.undo(4);
  CHECK(rows_of(stocks) == Rows{stock(1, 11)});
  CHECK(result.version() == 5);
  CHECK(stocks.history().back().operation() == "UNDO");
  CHECK(stocks.history().back().parameters() == "VERSION 4");
}

TEST_CASE("undo reverts a commit that is not the last, and leaves the others") {
  Stocks stocks = four_versions();
  stocks.undo(2);  // 1 was updated
  CHECK(rows_of(stocks) == Rows{stock(1, 10), stock(3, 30)});
  stocks.undo(3);  // 2 was erased
  CHECK(rows_of(stocks) == Rows{stock(1, 10), stock(3, 30), stock(2, 20)});
}

TEST_CASE("undo of a commit whose rows a later commit has touched is a conflict that names them") {
  Stocks stocks = four_versions();
  const Unharmed unharmed(stocks);
  const auto error = error_of<kf::ChangeConflict>([&] { stocks.undo(1); });
  CHECK(error.keys == Keys{"1", "2"});
}

TEST_CASE("touched means touched, even if the row is as it was") {
  Stocks stocks;
  stocks.append({stock(1, 10), stock(2, 20)});
  stocks.upsert(stock(1, 11));
  stocks.upsert(stock(1, 12));
  stocks.upsert(stock(1, 11));
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(2); }).keys == Keys{"1"});
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(1); }).keys == Keys{"1"});
}

TEST_CASE("an erase is not undone when the key has been used again") {
  Stocks stocks;
  stocks.insert(stock(1, 10));
  stocks.erase(1);
  stocks.insert(stock(1, 11));
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(2); }).keys == Keys{"1"});
  stocks.erase(1);
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(2); }).keys == Keys{"1"});
  stocks.undo(4);
  CHECK(rows_of(stocks) == Rows{stock(1, 11)});
}

TEST_CASE("a commit is undone once") {
  Stocks stocks = four_versions();
  stocks.undo(4);
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(4); }).keys == Keys{"3"});
  stocks.undo(5);  // undoes the undo
  CHECK(stocks.contains(3));
}

TEST_CASE("undo of a key change gives the row its old key") {
  Stocks stocks;
  stocks.append({stock(1, 10), stock(2, 20)});
  rekey(stocks, 1, 7);
  stocks.undo(2);
  CHECK(rows_of(stocks) == Rows{stock(1, 10), stock(2, 20)});
}

TEST_CASE("undo of swapped keys swaps them back") {
  Stocks stocks;
  stocks.append({stock(1, 10), stock(2, 20)});
  stocks.merge(Rows{stock(1, 2), stock(2, 1)})
      .when_matched()
      .update(kf::target<&Stock::id> = kf::source<&Stock::amount>)
      .execute();
  REQUIRE(rows_of(stocks) == Rows{stock(2, 10), stock(1, 20)});
  stocks.undo(2);
  CHECK(rows_of(stocks) == Rows{stock(1, 10), stock(2, 20)});
}

TEST_CASE("undo of a key change is a conflict when another row has taken the old key") {
  Stocks stocks;
  stocks.insert(stock(1, 10));
  rekey(stocks, 1, 7);
  stocks.insert(stock(1, 99));
  const Unharmed unharmed(stocks);
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(2); }).keys == Keys{"1"});
}

TEST_CASE("undo must end in a legal table") {
  Stocks stocks;
  stocks.insert(stock(1, 10, "A"));
  stocks.upsert(stock(1, 10));
  stocks.insert(stock(2, 20, "A"));
  const Unharmed unharmed(stocks);
  CHECK_THROWS_AS(stocks.undo(2), kf::UniqueViolation);
}

TEST_CASE("undo of a commit that changed nothing makes no version") {
  Stocks stocks = four_versions();
  stocks.metadata("checked").erase(99);
  REQUIRE(stocks.version() == 5);
  CHECK_FALSE(stocks.undo(5).committed());
}

TEST_CASE("version 0 is no commit and cannot be undone") {
  Stocks stocks = four_versions();
  CHECK(error_of<kf::VersionNotFound>([&] { stocks.undo(0); }).requested == 0);
}

TEST_CASE("an expired commit cannot be undone") {
  Stocks stocks = four_versions();
  stocks.expire(kf::keep_last(2));
  CHECK(error_of<kf::VersionExpired>([&] { stocks.undo(2); }).oldest == 3);
  stocks.undo(4);
  CHECK_FALSE(stocks.contains(3));
}

// --- Expiry

TEST_CASE("keep_last(n) leaves the n latest versions readable") {
  Stocks stocks = four_versions();
  CHECK(stocks.expire(kf::keep_last(5)).empty());
  CHECK(stocks.expire(kf::keep_last(3)) == Versions{0, 1});
  CHECK(readable(stocks) == Versions{2, 3, 4});
  CHECK(stocks.expire(kf::keep_last(1)) == Versions{2, 3});
  CHECK(readable(stocks) == Versions{4});
  CHECK(rows_of(stocks) == Rows{stock(1, 11), stock(3, 30)});
}

TEST_CASE("the present never expires") {
  Stocks stocks = four_versions();
  stocks.expire(kf::older_than(noon + 24h));
  CHECK(readable(stocks) == Versions{4});
  CHECK(rows_of(stocks.as_of(kf::Version{4})) == Rows{stock(1, 11), stock(3, 30)});
  Stocks empty;
  CHECK(empty.expire(kf::keep_last(1)).empty());
  CHECK(empty.expire(kf::older_than(noon)).empty());
}

TEST_CASE("older_than(t) lets go of the versions made before t") {
  Stocks stocks = four_versions();
  CHECK(stocks.expire(kf::older_than(noon)).empty());
  CHECK(stocks.expire(kf::older_than(noon + 1h)) == Versions{0, 1});
  CHECK(stocks.expire(kf::older_than(noon + 1h + 1us)) == Versions{2});
  CHECK(readable(stocks) == Versions{3, 4});
}

TEST_CASE("a dry run tells what would go, and lets nothing go") {
  Stocks stocks = four_versions();
  stocks.tag("kept", 1);
  const auto memory = stocks.memory_usage();
  CHECK(stocks.expire(kf::keep_last(2), kf::dry_run) == Versions{0, 2});
  CHECK(stocks.expire(kf::older_than(noon + 2h), kf::dry_run) == Versions{0, 2});
  CHECK(readable(stocks) == Versions{0, 1, 2, 3, 4});
  CHECK(stocks.memory_usage() == memory);
  CHECK(stocks.expire(kf::keep_last(2)) == Versions{0, 2});
}

TEST_CASE("expiry keeps the numbers, times and records of the commits that stay") {
  Stocks stocks(hourly());
  stocks.insert(stock(1, 10));
  stocks.metadata("second").upsert(stock(1, 11));
  stocks.upsert(stock(1, 12));
  stocks.tag("kept", 2);
  stocks.insert(stock(2, 20));
  stocks.expire(kf::keep_last(1));
  REQUIRE(versions_of(stocks) == Versions{2, 4});
  CHECK(stocks.history()[0].timestamp() == noon + 1h);
  CHECK(stocks.history()[0].metadata() == "second");
  CHECK(stocks.history()[0].metrics().updated == 1);
  CHECK(stocks.history()[1].timestamp() == noon + 3h);
  CHECK(stocks.history()[1].changes().size() == 1);
  CHECK(stocks.version() == 4);
  stocks.insert(stock(3, 30));
  CHECK(stocks.version() == 5);
  CHECK(stocks.history().back().timestamp() == noon + 4h);
}

TEST_CASE("the changes of a write whose version has expired are an error") {
  Stocks stocks = four_versions();
  const auto result = stocks.insert(stock(9, 90));
  CHECK(result.changes().size() == 1);
  stocks.insert(stock(10, 90));
  stocks.expire(kf::keep_last(1));
  const auto error = error_of<kf::VersionExpired>([&] { static_cast<void>(result.changes()); });
  CHECK(error.requested == 5);
  CHECK(error.oldest == 6);
}

TEST_CASE("a time whose version has expired is an error") {
  Stocks stocks = four_versions();
  stocks.expire(kf::keep_last(2));
  CHECK(error_of<kf::VersionExpired>([&] { static_cast<void>(stocks.as_of(noon + 90min)); }).oldest == 3);
  CHECK_THROWS_AS(stocks.as_of(noon), kf::VersionExpired);
  CHECK_THROWS_AS(stocks.as_of(noon - 1us), kf::VersionNotFound);  // still before the first commit
  CHECK(stocks.as_of(noon + 2h).version() == 3);
}

TEST_CASE("of a tagged version alone only its own time is known") {
  Stocks stocks = four_versions();
  stocks.tag("kept", 1);
  stocks.expire(kf::keep_last(1));
  CHECK(stocks.as_of(noon).version() == 1);
  CHECK_THROWS_AS(stocks.as_of(noon + 30min), kf::VersionExpired);
  CHECK_THROWS_AS(stocks.as_of(noon + 1h), kf::VersionExpired);
}

TEST_CASE("a table with a retention keeps the last versions by itself") {
  Stocks stocks = four_versions(kf::keep_last(2));
  CHECK(readable(stocks) == Versions{3, 4});
  stocks.tag("kept", 3);
  stocks.insert(stock(4, 40));
  stocks.insert(stock(5, 50));
  CHECK(readable(stocks) == Versions{3, 5, 6});
  CHECK(stocks.as_of("kept").size() == 1);
}

TEST_CASE("a table with a retention keeps young versions by itself") {
  auto now = std::make_shared<kf::Timestamp>(noon);
  kf::TableOptions options;
  options.clock = [now] { return *now; };
  options.retention = kf::keep_for(90min);
  Stocks stocks(options);
  for (int id = 1; id <= 4; ++id, *now += 1h) stocks.insert(stock(id, id));
  CHECK(readable(stocks) == Versions{3, 4});  // made at noon + 2 h and + 3 h
}

TEST_CASE("keep_for() of all time keeps everything, of less than none the present") {
  using std::chrono::microseconds;
  for (const kf::Timestamp start : {kf::Timestamp::min(), noon, kf::Timestamp::max()}) {
    kf::TableOptions options;
    options.clock = [start] { return start; };
    options.retention = kf::keep_for(microseconds::max());
    Stocks all(options);
    for (int id = 1; id <= 3; ++id) all.insert(stock(id, id));
    CHECK(readable(all) == Versions{0, 1, 2, 3});
  }
  Stocks present(hourly(kf::keep_for(microseconds::min())));
  for (int id = 1; id <= 3; ++id) present.insert(stock(id, id));
  CHECK(readable(present) == Versions{3});
}

TEST_CASE("copies keep what is readable and what is not") {
  Stocks stocks = four_versions();
  stocks.tag("kept", 1);
  stocks.expire(kf::keep_last(2));
  Stocks copy = stocks;
  CHECK(readable(copy) == Versions{1, 3, 4});
  CHECK(rows_of(copy.as_of("kept")) == Rows{stock(1, 10), stock(2, 20)});
  CHECK(copy.history().back().timestamp() == stocks.history().back().timestamp());
  copy.clear();
  CHECK(readable(stocks) == Versions{1, 3, 4});
  CHECK(rows_of(copy.as_of(kf::Version{3})) == Rows{stock(1, 11)});
}

TEST_CASE("an undo that a later commit forbids names the key that was touched") {
  Stocks stocks;
  stocks.insert(stock(1, 10));
  rekey(stocks, 1, 7);
  stocks.upsert(stock(7, 70));
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(2); }).keys == Keys{"7"});
  stocks.insert(stock(1, 11));
  CHECK(error_of<kf::ChangeConflict>([&] { stocks.undo(2); }).keys == Keys{"1", "7"});
}

TEST_CASE("a retention with a key that comes and goes frees what it can") {
  kf::TableOptions options;
  options.retention = kf::keep_last(100);
  Stocks stocks(options);
  for (int round = 0; round < 2000; ++round) {
    stocks.insert(stock(1, round));
    stocks.erase(1);
  }
  CHECK(stocks.history().size() == 100);
  CHECK(stocks.as_of(stocks.version() - 99).at(1).amount == 1950);
  CHECK(stocks.memory_usage().history < 150 * (sizeof(Stock) + 2 * 24 + 224));
}

// --- Memory

TEST_CASE("memory usage counts the buckets of hashed indexes and the texts of commits") {
  kf::Table<Stock, kf::Key<&Stock::id>> plain;
  kf::Table<Stock, kf::Key<&Stock::id>, kf::HashedBy<&Stock::amount>> hashed;
  Rows many;
  for (int id = 0; id < 1000; ++id) many.push_back(stock(id, id));
  plain.append(many);
  hashed.append(many);
  CHECK(hashed.memory_usage().indexes >= plain.memory_usage().indexes + 1000 * sizeof(void*));
  const auto before = plain.memory_usage().history;
  plain.metadata(std::string(5000, 'x')).insert(stock(5000, 1));
  CHECK(plain.memory_usage().history >= before + 5000);
}

TEST_CASE("the history of an update is its row and a fixed overhead") {
  Stocks stocks;
  for (int id = 0; id < 1000; ++id) stocks.insert(stock(id, 0));
  const auto before = stocks.memory_usage();
  stocks.merge(rows_of(stocks)).when_matched().update(kf::target<&Stock::amount> = 1).execute();
  const auto after = stocks.memory_usage();
  CHECK(after.rows == before.rows);
  CHECK(after.indexes == before.indexes);
  const std::size_t per_change = (after.history - before.history) / 1000;
  CHECK(per_change >= sizeof(Stock));
  CHECK(per_change <= sizeof(Stock) + 24);
}

TEST_CASE("expiry frees the history") {
  Stocks stocks;
  for (int id = 0; id < 100; ++id) stocks.insert(stock(id, 0));
  for (int amount = 1; amount <= 20; ++amount) {
    stocks.merge(rows_of(stocks)).when_matched().update(kf::target<&Stock::amount> = amount).execute();
  }
  const auto full = stocks.memory_usage();
  stocks.expire(kf::keep_last(11));
  const auto half = stocks.memory_usage();
  stocks.expire(kf::keep_last(1));
  const auto least = stocks.memory_usage();
  CHECK(half.rows == full.rows);
  CHECK(least.rows == full.rows);
  CHECK(full.history > half.history + 9 * 100 * sizeof(Stock));
  CHECK(half.history > least.history + 9 * 100 * sizeof(Stock));
  CHECK(least.history < 3 * 100 * sizeof(Stock));
  CHECK(least.total() == least.rows + least.indexes + least.history);
}

TEST_CASE("expiry lets go of erased keys") {
  Stocks stocks;
  for (int id = 0; id < 100; ++id) stocks.insert(stock(id, 0));
  stocks.clear();
  stocks.insert(stock(1, 1));
  const auto full = stocks.memory_usage();
  stocks.expire(kf::keep_last(1));
  const auto least = stocks.memory_usage();
  CHECK(least.history + 100 * sizeof(Stock) < full.history);
  CHECK(stocks.history_of(50).empty());
}

TEST_CASE("expiry shrinks the index of keys that are no more") {
  kf::Table<Stock, kf::Key<&Stock::id>> stocks;
  Rows many;
  for (int id = 0; id < 10'000; ++id) many.push_back(stock(id, 0));
  stocks.append(many);
  stocks.clear();
  stocks.insert(stock(1, 1));
  stocks.insert(stock(2, 1));
  CHECK(stocks.memory_usage().indexes > 10'000 * 16);
  stocks.expire(kf::keep_last(1));
  CHECK(stocks.memory_usage().indexes < 10'000);
  CHECK(stocks.at(2).amount == 1);
  stocks.append({stock(3, 1), stock(4, 1)});
  CHECK(stocks.at(4).amount == 1);
}

TEST_CASE("a key that comes and goes many times expires") {
  Stocks stocks;
  for (int round = 0; round < 20'000; ++round) {  // minutes, were the cost quadratic
    stocks.insert(stock(1, round));
    if (round == 10) stocks.tag("eleventh", stocks.version());
    stocks.erase(1);
  }
  stocks.expire(kf::keep_last(3));
  CHECK(stocks.as_of("eleventh").at(1).amount == 10);
  CHECK(stocks.as_of(stocks.version() - 1).at(1).amount == 19'999);
  CHECK(stocks.as_of(stocks.version() - 2).empty());
  CHECK(stocks.memory_usage().history < 10'000);
}

TEST_CASE("a tagged version costs what changed since, once") {
  Stocks stocks;
  for (int id = 0; id < 100; ++id) stocks.insert(stock(id, 0));
  stocks.tag("start", 100);
  for (int amount = 1; amount <= 20; ++amount) {
    stocks.merge(rows_of(stocks)).when_matched().update(kf::target<&Stock::amount> = amount).execute();
  }
  stocks.expire(kf::keep_last(1));
  CHECK(stocks.as_of("start").at(7).amount == 0);
  CHECK(stocks.memory_usage().history < 3 * 100 * (sizeof(Stock) + 24));
}
