// Travel through the versions of a table, by behaviour: views, times, tags, feeds, restore, undo, expiry.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using namespace std::chrono_literals;
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
using Versions = std::vector<kf::Version>;
using Change = kf::Change<Stock>;
using Keys = std::vector<std::string>;

const kf::Timestamp noon = std::chrono::sys_days(std::chrono::year(2026) / 10 / 4) + 12h;

// A table whose clock the test moves.
struct Timed {
  std::shared_ptr<kf::Timestamp> now = std::make_shared<kf::Timestamp>(noon);
  Stocks stocks;

  explicit Timed(std::optional<kf::Retention> retention = {}) : stocks(options(now, retention)) {}

  static kf::TableOptions options(std::shared_ptr<kf::Timestamp> now,
                                  std::optional<kf::Retention> retention) {
    kf::TableOptions out;
    out.clock = [now] { return *now; };
    out.retention = retention;
    return out;
  }
};

// Versions 1 to 4, an hour apart from noon on.
Timed four_versions() {
  Timed timed;
  timed.stocks.append({{1, 10}, {2, 20}});
  *timed.now += 1h;
  timed.stocks.upsert(Stock{1, 11});
  *timed.now += 1h;
  timed.stocks.erase(2);
  *timed.now += 1h;
  timed.stocks.insert({3, 30});
  return timed;
}

void rekey(Stocks& stocks, int from, int to) {
  stocks.merge(Rows{{from, 0}}).when_matched().update(kf::target<&Stock::id> = to).execute();
}

Versions versions_of(const Stocks& stocks) {
  Versions out;
  for (const auto commit : stocks.history()) out.push_back(commit.version());
  return out;
}

Versions versions_of(const kf::ChangeFeed<Stock>& feed) {
  Versions out;
  for (const auto& change : feed) out.push_back(change.version());
  return out;
}

}  // namespace

// --- Views

TEST_CASE("a view shows the rows of its version in the order they had") {
  const Timed timed = four_versions();
  CHECK(rows_of(timed.stocks.as_of(kf::Version{0})).empty());
  CHECK(rows_of(timed.stocks.as_of(kf::Version{1})) == Rows{{1, 10}, {2, 20}});
  CHECK(rows_of(timed.stocks.as_of(kf::Version{2})) == Rows{{1, 11}, {2, 20}});
  CHECK(rows_of(timed.stocks.as_of(kf::Version{3})) == Rows{{1, 11}});
  CHECK(rows_of(timed.stocks.as_of(kf::Version{4})) == Rows{{1, 11}, {3, 30}});
}

TEST_CASE("a row that was erased and came back stands at either place in its time") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}, {3, 30}});
  stocks.erase(1);
  stocks.insert({1, 11});
  CHECK(rows_of(stocks.as_of(kf::Version{1})) == Rows{{1, 10}, {2, 20}, {3, 30}});
  CHECK(rows_of(stocks.as_of(kf::Version{2})) == Rows{{2, 20}, {3, 30}});
  CHECK(rows_of(stocks.as_of(kf::Version{3})) == Rows{{2, 20}, {3, 30}, {1, 11}});
}

TEST_CASE("a row whose key changed is found by the key that it had") {
  Stocks stocks;
  stocks.append({{1, 10}, {2, 20}});
  rekey(stocks, 1, 7);
  CHECK(rows_of(stocks.as_of(kf::Version{1})) == Rows{{1, 10}, {2, 20}});
  CHECK(rows_of(stocks.as_of(kf::Version{2})) == Rows{{7, 10}, {2, 20}});
  CHECK(stocks.as_of(kf::Version{1}).contains(1));
  CHECK_FALSE(stocks.as_of(kf::Version{1}).contains(7));
  CHECK_FALSE(stocks.as_of(kf::Version{2}).contains(1));
  CHECK(stocks.as_of(kf::Version{2}).at(7) == Stock{7, 10});
}

TEST_CASE("a view reads by key as a table does") {
  const Timed timed = four_versions();
  const auto view = timed.stocks.as_of(kf::Version{1});
  CHECK(view.version() == 1);
  CHECK(view.size() == 2);
  CHECK_FALSE(view.empty());
  CHECK(view.find(1)->amount == 10);
  CHECK(view.at(2) == Stock{2, 20});
  CHECK(view.find(3) == nullptr);
  CHECK(error_of<kf::KeyNotFound>([&] { view.at(3); }).key == "3");
  CHECK(timed.stocks.as_of(kf::Version{0}).empty());
}

TEST_CASE("a view of the present gives out the rows of the table themselves") {
  const Timed timed = four_versions();
  CHECK(timed.stocks.as_of(kf::Version{4}).find(1) == timed.stocks.find(1));
  CHECK(&*timed.stocks.as_of(kf::Version{4}).begin() == &*timed.stocks.begin());
  CHECK(timed.stocks.as_of(kf::Version{2}).find(1) == timed.stocks.find(1));  // unchanged since
}

TEST_CASE("a view outlives writes") {
  Timed timed = four_versions();
  const auto view = timed.stocks.as_of(kf::Version{2});
  timed.stocks.clear();
  timed.stocks.append({{2, 99}, {1, 98}});
  rekey(timed.stocks, 1, 8);
  CHECK(rows_of(view) == Rows{{1, 11}, {2, 20}});
  CHECK(view.size() == 2);
  CHECK(view.at(2) == Stock{2, 20});
}

TEST_CASE("a view outlives a move of its table") {
  Timed timed = four_versions();
  const auto view = timed.stocks.as_of(kf::Version{2});
  const Stocks moved = std::move(timed.stocks);
  CHECK(rows_of(view) == Rows{{1, 11}, {2, 20}});
  CHECK(rows_of(moved) == Rows{{1, 11}, {3, 30}});
}

TEST_CASE("a view of an expired version throws whatever is asked of it") {
  Timed timed = four_versions();
  const auto view = timed.stocks.as_of(kf::Version{2});
  timed.stocks.expire(kf::keep_last(2));
  const auto refuses = [&](auto read) {
    const auto error = error_of<kf::VersionExpired>(read);
    CHECK(error.requested == 2);
    CHECK(error.oldest == 3);
  };
  refuses([&] { static_cast<void>(view.size()); });
  refuses([&] { static_cast<void>(view.empty()); });
  refuses([&] { static_cast<void>(view.find(1)); });
  refuses([&] { view.at(1); });
  refuses([&] { static_cast<void>(view.contains(1)); });
  refuses([&] { static_cast<void>(view.begin()); });
  refuses([&] { static_cast<void>(view.end()); });
  refuses([&] { static_cast<void>(view.to_table()); });
}

TEST_CASE("a view becomes a table of its own") {
  Timed timed = four_versions();
  Stocks taken = timed.stocks.as_of(kf::Version{2}).to_table();
  CHECK(rows_of(taken) == Rows{{1, 11}, {2, 20}});
  CHECK(taken.version() == 1);
  taken.clear();
  CHECK(timed.stocks.size() == 2);
  CHECK(timed.stocks.as_of(kf::Version{0}).to_table().version() == 0);
}

TEST_CASE("a view is a forward range") {
  using View = kf::AsOfView<Stocks>;
  STATIC_REQUIRE(std::ranges::forward_range<View>);
  STATIC_REQUIRE(std::ranges::common_range<View>);
  const Timed timed = four_versions();
  const auto view = timed.stocks.as_of(kf::Version{2});
  auto it = view.begin();
  const auto first = it++;
  CHECK(*first == Stock{1, 11});
  CHECK(it->amount == 20);
  CHECK(it != first);
  CHECK(++it == view.end());
}

TEST_CASE("a view is of no use when its table is destroyed or assigned to, and says so") {
  auto stocks = std::make_unique<Stocks>();
  stocks->insert({1, 10});
  const auto orphan = stocks->as_of(kf::Version{1});
  stocks.reset();
  CHECK(orphan.version() == 1);
  CHECK_THROWS_AS(orphan.size(), kf::TableGone);
  CHECK_THROWS_AS(orphan.find(1), kf::TableGone);
  CHECK_THROWS_AS(orphan.begin(), kf::TableGone);
  Stocks other;
  other.insert({1, 10});
  const auto stale = other.as_of(kf::Version{1});
  other = Stocks();
  CHECK_THROWS_AS(stale.at(1), kf::TableGone);
  CHECK_THROWS_AS(stale.to_table(), kf::TableGone);
}

TEST_CASE("a view goes along with a table that is moved") {
  Stocks stocks;
  stocks.insert({1, 10});
  const auto view = stocks.as_of(kf::Version{1});
  Stocks moved = std::move(stocks);
  moved.clear();
  CHECK(view.at(1).amount == 10);
}

TEST_CASE("a temporary view goes through range-v3") {
  const Timed timed = four_versions();
  const auto amounts = timed.stocks.as_of(kf::Version{2}) | ranges::views::transform(&Stock::amount) |
                       ranges::to<std::vector>();
  CHECK(amounts == std::vector<int>{11, 20});
  int sum = 0;
  for (const Stock& stock : timed.stocks.as_of(kf::Version{2}) | ranges::views::take(1)) sum += stock.amount;
  CHECK(sum == 11);
}

TEST_CASE("the empty version becomes an empty table at version 0") {
  kf::TableOptions options;
  options.record_empty_commits = true;
  Stocks stocks(options);
  stocks.insert({1, 10});
  CHECK(stocks.as_of(kf::Version{0}).to_table().version() == 0);
  CHECK(stocks.as_of(kf::Version{1}).to_table().version() == 1);
}

// --- Times

TEST_CASE("a time names the last commit that is not after it") {
  const Timed timed = four_versions();
  const auto at = [&](kf::Timestamp time) { return timed.stocks.as_of(time).version(); };
  CHECK(at(noon) == 1);
  CHECK(at(noon + 1us) == 1);
  CHECK(at(noon + 1h - 1us) == 1);
  CHECK(at(noon + 1h) == 2);
  CHECK(at(noon + 2h + 30min) == 3);
}

TEST_CASE("a time after the last commit is the latest version") {
  const Timed timed = four_versions();
  CHECK(timed.stocks.as_of(noon + 3h).version() == 4);
  CHECK(timed.stocks.as_of(noon + 24h * 365).version() == 4);
  CHECK(timed.stocks.as_of(kf::Timestamp::max()).version() == 4);
}

TEST_CASE("there is no version before the first commit") {
  Timed timed = four_versions();
  const auto error =
      error_of<kf::VersionNotFound>([&] { static_cast<void>(timed.stocks.as_of(noon - 1us)); });
  CHECK(error.latest == 4);
  CHECK_THROWS_AS(timed.stocks.restore(noon - 1us), kf::VersionNotFound);
  CHECK_THROWS_AS(timed.stocks.as_of(kf::Timestamp::min()), kf::VersionNotFound);
  CHECK_THROWS_AS(Stocks().as_of(noon), kf::VersionNotFound);
}

TEST_CASE("commits of one clock reading are a microsecond apart, and the reading names the first") {
  Timed timed;
  timed.stocks.insert({1, 10});
  timed.stocks.insert({2, 20});
  timed.stocks.insert({3, 30});
  CHECK(timed.stocks.as_of(noon).version() == 1);
  CHECK(timed.stocks.as_of(noon + 1us).version() == 2);
  CHECK(timed.stocks.as_of(noon + 2us).version() == 3);
}

TEST_CASE("times ascend while the clock goes back") {
  Timed timed;
  timed.stocks.insert({1, 10});
  *timed.now -= 2h;
  timed.stocks.insert({2, 20});
  *timed.now += 2h + 1us;
  timed.stocks.insert({3, 30});  // the clock shows what the commit before has taken
  CHECK(timed.stocks.history()[1].timestamp() == noon + 1us);
  CHECK(timed.stocks.history()[2].timestamp() == noon + 2us);
  CHECK_THROWS_AS(timed.stocks.as_of(noon - 2h), kf::VersionNotFound);
}

TEST_CASE("commits after the last possible time share it, and the later one counts") {
  Timed timed;
  timed.stocks.insert({1, 10});
  *timed.now = kf::Timestamp::max() - 1us;
  timed.stocks.insert({2, 20});
  timed.stocks.insert({3, 30});
  timed.stocks.insert({4, 40});
  CHECK(timed.stocks.history()[2].timestamp() == kf::Timestamp::max());
  CHECK(timed.stocks.history()[3].timestamp() == kf::Timestamp::max());
  CHECK(timed.stocks.as_of(kf::Timestamp::max()).version() == 4);
  CHECK(timed.stocks.as_of(kf::Timestamp::max() - 1us).version() == 2);
}

TEST_CASE("the first possible time is a time like others") {
  Timed timed;
  *timed.now = kf::Timestamp::min();
  timed.stocks.insert({1, 10});
  timed.stocks.insert({2, 20});
  CHECK(timed.stocks.history()[0].timestamp() == kf::Timestamp::min());
  CHECK(timed.stocks.as_of(kf::Timestamp::min()).version() == 1);
  CHECK(timed.stocks.as_of(noon).version() == 2);
}

TEST_CASE("a version that never was is not found") {
  Timed timed = four_versions();
  const auto refuses = [&](auto read) {
    const Unharmed unharmed(timed.stocks);
    const auto error = error_of<kf::VersionNotFound>(read);
    CHECK(error.requested == 5);
    CHECK(error.latest == 4);
  };
  refuses([&] { static_cast<void>(timed.stocks.as_of(kf::Version{5})); });
  refuses([&] { timed.stocks.restore(kf::Version{5}); });
  refuses([&] { timed.stocks.undo(5); });
  refuses([&] { timed.stocks.tag("future", 5); });
  refuses([&] { static_cast<void>(timed.stocks.changes(4, 5)); });
  refuses([&] { static_cast<void>(timed.stocks.changes(5, 5)); });
  refuses([&] { static_cast<void>(timed.stocks.diff(0, 5)); });
  refuses([&] { static_cast<void>(timed.stocks.diff(5, 0)); });
  CHECK(timed.stocks.tags().empty());
}

// --- Tags

TEST_CASE("a tag names a version") {
  Timed timed = four_versions();
  timed.stocks.tag("before", 2);
  timed.stocks.tag("also before", 2);
  timed.stocks.tag("empty", 0);
  CHECK(rows_of(timed.stocks.as_of("before")) == Rows{{1, 11}, {2, 20}});
  CHECK(timed.stocks.as_of(std::string("also before")).version() == 2);
  CHECK(timed.stocks.as_of("empty").empty());
  CHECK(timed.stocks.tags().size() == 3);
  CHECK(timed.stocks.tags().at("before") == 2);
  CHECK(timed.stocks.version() == 4);  // tags are no commits
}

TEST_CASE("a tag is not moved") {
  Timed timed = four_versions();
  timed.stocks.tag("release", 2);
  timed.stocks.tag("release", 2);  // says the same
  const auto error = error_of<kf::TagExists>([&] { timed.stocks.tag("release", 3); });
  CHECK(error.name == "release");
  CHECK(error.version == 2);
  CHECK(timed.stocks.tags().at("release") == 2);
  timed.stocks.untag("release");
  timed.stocks.tag("release", 3);
  CHECK(timed.stocks.as_of("release").version() == 3);
}

TEST_CASE("an unknown tag is an error") {
  Timed timed = four_versions();
  timed.stocks.tag("release", 2);
  CHECK(error_of<kf::TagNotFound>([&] { static_cast<void>(timed.stocks.as_of("relaese")); }).name ==
        "relaese");
  CHECK_THROWS_AS(timed.stocks.restore("relaese"), kf::TagNotFound);
  CHECK_THROWS_AS(timed.stocks.untag("relaese"), kf::TagNotFound);
  timed.stocks.untag("release");
  CHECK_THROWS_AS(timed.stocks.untag("release"), kf::TagNotFound);
  CHECK_THROWS_AS(timed.stocks.as_of("release"), kf::TagNotFound);
}

TEST_CASE("a tagged version stays readable through expiry, and goes after untag and expire") {
  Timed timed = four_versions();
  auto& stocks = timed.stocks;
  stocks.tag("kept", 1);
  CHECK(stocks.expire(kf::keep_last(1)) == Versions{0, 2, 3});
  CHECK(rows_of(stocks.as_of("kept")) == Rows{{1, 10}, {2, 20}});
  CHECK(stocks.as_of(kf::Version{1}).size() == 2);
  CHECK_THROWS_AS(stocks.as_of(kf::Version{2}), kf::VersionExpired);
  CHECK(rows_of(stocks.as_of("kept").to_table()) == Rows{{1, 10}, {2, 20}});
  stocks.untag("kept");
  CHECK(stocks.as_of(kf::Version{1}).size() == 2);  // until the next expiry
  CHECK(stocks.expire(kf::keep_last(1), kf::dry_run) == Versions{1});
  CHECK(stocks.expire(kf::keep_last(1)) == Versions{1});
  CHECK_THROWS_AS(stocks.as_of(kf::Version{1}), kf::VersionExpired);
}

TEST_CASE("an expired version cannot be tagged") {
  Timed timed = four_versions();
  timed.stocks.expire(kf::keep_last(2));
  const auto error = error_of<kf::VersionExpired>([&] { timed.stocks.tag("late", 1); });
  CHECK(error.requested == 1);
  CHECK(error.oldest == 3);
  CHECK(timed.stocks.tags().empty());
}

TEST_CASE("a tagged version is restored after its neighbours have expired") {
  Timed timed = four_versions();
  timed.stocks.tag("kept", 1);
  timed.stocks.expire(kf::keep_last(1));
  timed.stocks.restore("kept");
  CHECK(rows_of(timed.stocks) == Rows{{1, 10}, {2, 20}});
  CHECK(timed.stocks.version() == 5);
  CHECK(timed.stocks.diff(1, 5).empty());
}

TEST_CASE("the changes of a tagged version go when the version before it does") {
  Timed timed = four_versions();
  timed.stocks.tag("kept", 2);
  timed.stocks.expire(kf::keep_last(1));
  CHECK(versions_of(timed.stocks) == Versions{2, 4});
  CHECK_THROWS_AS(timed.stocks.history()[0].changes(), kf::VersionExpired);
  CHECK_THROWS_AS(timed.stocks.undo(2), kf::VersionExpired);
  CHECK_THROWS_AS(timed.stocks.changes(2, 4), kf::VersionExpired);
  CHECK(timed.stocks.diff(2, 4).size() == 2);  // both ends can be read
}

// --- Feeds

TEST_CASE("changes() gives each change of the versions after one and up to another, in order") {
  const Timed timed = four_versions();
  const auto feed = timed.stocks.changes(1, 3);
  REQUIRE(feed.size() == 2);
  CHECK(feed[0] == Change::update({1, 10}, {1, 11}));
  CHECK(feed[0].version() == 2);
  CHECK(feed[0].timestamp() == noon + 1h);
  CHECK(feed[0].kind() == kf::ChangeKind::update);
  CHECK(feed[0].columns().contains<&Stock::amount>());
  CHECK_FALSE(feed[0].columns().contains<&Stock::id>());
  CHECK(feed[1] == Change::erase({2, 20}));
  CHECK(feed[1].version() == 3);
  CHECK(versions_of(timed.stocks.changes(0, 4)) == Versions{1, 1, 2, 3, 4});
  CHECK(versions_of(timed.stocks.changes(2)) == Versions{3, 4});
  CHECK(timed.stocks.changes(3, 3).empty());
  CHECK(timed.stocks.changes(4).empty());
  CHECK(timed.stocks.changes(3, 1).empty());
}

TEST_CASE("a feed from an expired version fails before any row is made") {
  Timed timed = four_versions();
  timed.stocks.expire(kf::keep_last(2));
  const auto error = error_of<kf::VersionExpired>([&] { static_cast<void>(timed.stocks.changes(1, 4)); });
  CHECK(error.requested == 1);
  CHECK(error.oldest == 3);
  CHECK_THROWS_AS(timed.stocks.changes(0), kf::VersionExpired);
  CHECK_THROWS_AS(timed.stocks.changes(2, 4), kf::VersionExpired);  // the first change kept is that of 3
  CHECK(versions_of(timed.stocks.changes(3, 4)) == Versions{4});
}

TEST_CASE("a feed between times includes both ends") {
  const Timed timed = four_versions();
  const auto between = [&](kf::Timestamp from, kf::Timestamp up_to) {
    return versions_of(timed.stocks.changes(from, up_to));
  };
  CHECK(between(noon + 1h, noon + 2h) == Versions{2, 3});
  CHECK(between(noon + 1h, noon + 1h) == Versions{2});
  CHECK(between(noon + 1h + 1us, noon + 2h - 1us).empty());
  CHECK(between(noon - 5h, noon) == Versions{1, 1});
  CHECK(between(noon + 3h, noon + 99h) == Versions{4});
  CHECK(between(noon + 2h, noon + 1h).empty());
  CHECK(between(noon + 4h, noon + 5h).empty());
}

TEST_CASE("a feed from a time is open ended") {
  const Timed timed = four_versions();
  CHECK(versions_of(timed.stocks.changes(noon - 1h)) == Versions{1, 1, 2, 3, 4});
  CHECK(versions_of(timed.stocks.changes(noon + 2h)) == Versions{3, 4});
  CHECK(timed.stocks.changes(noon + 4h).empty());
  CHECK(Stocks().changes(noon).empty());
}

TEST_CASE("a feed from a time whose commits have expired is an error") {
  Timed timed = four_versions();
  timed.stocks.expire(kf::keep_last(2));
  CHECK(error_of<kf::VersionExpired>([&] { static_cast<void>(timed.stocks.changes(noon + 1h)); }).oldest ==
        3);
  CHECK_THROWS_AS(timed.stocks.changes(noon - 1h, noon + 9h), kf::VersionExpired);
  CHECK(versions_of(timed.stocks.changes(noon + 1h + 1us)) == Versions{3, 4});
}

TEST_CASE("history_of() tells the changes of one key") {
  Timed timed = four_versions();
  timed.stocks.upsert(Stock{2, 21});
  const auto feed = timed.stocks.history_of(2);
  CHECK(versions_of(feed) == Versions{1, 3, 5});
  CHECK(feed[0] == Change::insert({2, 20}));
  CHECK(feed[1] == Change::erase({2, 20}));
  CHECK(feed[1].timestamp() == noon + 2h);
  CHECK(feed[2] == Change::insert({2, 21}));
  CHECK(timed.stocks.history_of(1).size() == 2);
  CHECK(timed.stocks.history_of(99).empty());
}

TEST_CASE("history_of() shows a key change as the end of one key and the beginning of the other") {
  Stocks stocks;
  stocks.insert({1, 10});
  rekey(stocks, 1, 2);
  stocks.upsert(Stock{2, 11});
  const auto left = stocks.history_of(1);
  REQUIRE(versions_of(left) == Versions{1, 2});
  CHECK(left[1] == Change::erase({1, 10}));
  const auto arrived = stocks.history_of(2);
  REQUIRE(versions_of(arrived) == Versions{2, 3});
  CHECK(arrived[0] == Change::insert({2, 10}));
  CHECK(arrived[1] == Change::update({2, 10}, {2, 11}));
}

TEST_CASE("history_of() goes back as far as the history") {
  Timed timed = four_versions();
  timed.stocks.expire(kf::keep_last(3));
  CHECK(versions_of(timed.stocks.history_of(1)) == Versions{2});
  CHECK(versions_of(timed.stocks.history_of(2)) == Versions{3});
}

TEST_CASE("diff() tells the net changes in either direction") {
  const Timed timed = four_versions();
  const auto forth = timed.stocks.diff(1, 4);
  REQUIRE(forth.size() == 3);
  CHECK(std::ranges::count(forth, Change::update({1, 10}, {1, 11})) == 1);
  CHECK(std::ranges::count(forth, Change::erase({2, 20})) == 1);
  CHECK(std::ranges::count(forth, Change::insert({3, 30})) == 1);
  const auto back = timed.stocks.diff(4, 1);
  CHECK(std::ranges::is_permutation(back, forth.inverse()));
  CHECK(timed.stocks.diff(2, 2).empty());
}

TEST_CASE("diff() tells nothing of what came back") {
  Stocks stocks;
  stocks.insert({1, 10});
  stocks.upsert(Stock{1, 11});
  stocks.upsert(Stock{1, 10});
  stocks.insert({2, 20});
  stocks.erase(2);
  CHECK(stocks.diff(1, 5).empty());
  CHECK(stocks.diff(1, 2).size() == 1);
}
