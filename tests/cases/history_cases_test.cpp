// Versions, feeds, restore and expiry: from public bug reports, with their neighbours. The reports count the
// first commit as version 0; here the empty table is version 0, so each is one higher.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::error_of;
using keyfold_test::rows_of;

namespace {

struct Entry {
  int id = 0;
  std::string value;
  bool operator==(const Entry&) const = default;
};
BOOST_DESCRIBE_STRUCT(Entry, (), (id, value))

using Entries = kf::Table<Entry, kf::Key<&Entry::id>>;
using Rows = std::vector<Entry>;
using Change = kf::Change<Entry>;
using Versions = std::vector<kf::Version>;

kf::Timestamp at(int microseconds) { return kf::Timestamp(std::chrono::microseconds(microseconds)); }

// One row in each commit: 1 at the first time, 2 at the second...
Entries one_row_at(std::vector<int> times) {
  kf::TableOptions options;
  options.clock = [times, next = std::size_t{0}]() mutable {
    return at(times[std::min(next++, times.size() - 1)]);
  };
  Entries entries(options);
  for (std::size_t i = 0; i < times.size(); ++i) entries.insert({static_cast<int>(i) + 1, "x"});
  return entries;
}

std::vector<int> ids_of(const kf::ChangeFeed<Entry>& feed) {
  std::vector<int> out;
  for (const auto& change : feed)
    out.push_back((change.after() != nullptr ? change.after() : change.before())->id);
  return out;
}

using Ids = std::vector<int>;

}  // namespace

// delta-io/delta-rs#2579: deletes and overwrites left no delete rows in the change feed. Here an overwrite is
// a merge that erases what its source does not have.
TEST_CASE("a feed has the deletes of a write that replaces every row") {
  Entries entries;
  entries.append({{1, "a"}, {2, "b"}, {3, "c"}});
  entries.merge({{8, "h"}, {9, "i"}})
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source()
      .erase()
      .execute();
  const auto feed = entries.changes(1);
  CHECK(std::ranges::count(feed, kf::ChangeKind::erase, &Change::kind) == 3);
  CHECK(std::ranges::count(feed, kf::ChangeKind::insert, &Change::kind) == 2);
  CHECK(feed.size() == 5);
  CHECK(rows_of(entries) == Rows{{8, "h"}, {9, "i"}});
}

TEST_CASE("a feed has the deletes of clear, erase, restore and undo") {
  Entries entries;
  entries.append({{1, "a"}, {2, "b"}});
  entries.clear();
  CHECK(ids_of(entries.changes(1)) == Ids{1, 2});
  entries.restore(kf::Version{1});
  entries.erase(2);
  REQUIRE(entries.changes(3).size() == 1);
  CHECK(entries.changes(3)[0] == Change::erase({2, "b"}));
  entries.restore(kf::Version{0});
  REQUIRE(entries.changes(4).size() == 1);
  CHECK(entries.changes(4)[0] == Change::erase({1, "a"}));
  entries.insert({3, "c"});
  entries.undo(6);
  REQUIRE(entries.changes(6).size() == 1);
  CHECK(entries.changes(6)[0] == Change::erase({3, "c"}));
}

// delta-io/delta-rs#3023: with both bounds given, the end time behaved like a start.
TEST_CASE("a feed between two times ends at the second") {
  const Entries entries = one_row_at({10, 20, 30});
  CHECK(ids_of(entries.changes(at(10), at(20))) == Ids{1, 2});
  CHECK(ids_of(entries.changes(at(10), at(19))) == Ids{1});
  CHECK(ids_of(entries.changes(at(10), at(21))) == Ids{1, 2});
  CHECK(ids_of(entries.changes(at(11), at(20))) == Ids{2});
  CHECK(ids_of(entries.changes(at(20), at(20))) == Ids{2});
  CHECK(ids_of(entries.changes(at(0), at(9))).empty());
  CHECK(ids_of(entries.changes(at(31), at(40))).empty());
  CHECK(ids_of(entries.changes(at(0), at(99))) == Ids{1, 2, 3});
}

// apache/iceberg#9791, #11922: a changelog by time needed both ends, or silently returned nothing.
TEST_CASE("a feed from a time goes on to the last commit") {
  const Entries entries = one_row_at({10, 20});
  CHECK(ids_of(entries.changes(at(5))) == Ids{1, 2});
  CHECK(ids_of(entries.changes(at(10))) == Ids{1, 2});
  CHECK(ids_of(entries.changes(at(11))) == Ids{2});
  CHECK(ids_of(entries.changes(at(20))) == Ids{2});
  CHECK(ids_of(entries.changes(at(21))).empty());
}

// delta-io/delta-rs#3392: a feed from a vacuumed version failed late, with an I/O error.
TEST_CASE("a feed from an expired version is an error that names the oldest readable one") {
  Entries entries = one_row_at({10, 20, 30, 40});
  CHECK(entries.expire(kf::keep_last(2)) == Versions{0, 1, 2});
  const auto error = error_of<kf::VersionExpired>([&] { static_cast<void>(entries.changes(1, 4)); });
  CHECK(error.requested == 1);
  CHECK(error.oldest == 3);
  CHECK(std::string(error.what()).find("the oldest version that is kept, beside tagged ones, is 3") !=
        std::string::npos);
  CHECK_THROWS_AS(entries.changes(0, 4), kf::VersionExpired);
  CHECK_THROWS_AS(entries.changes(2, 4), kf::VersionExpired);
  CHECK_THROWS_AS(entries.changes(0, 1), kf::VersionExpired);
  CHECK_THROWS_AS(entries.diff(1, 4), kf::VersionExpired);
  CHECK(ids_of(entries.changes(3, 4)) == Ids{4});
}

TEST_CASE("a feed from an expired time is an error, too") {
  Entries entries = one_row_at({10, 20, 30, 40});
  entries.expire(kf::keep_last(2));
  CHECK(error_of<kf::VersionExpired>([&] { static_cast<void>(entries.changes(at(5))); }).oldest == 3);
  CHECK_THROWS_AS(entries.changes(at(20), at(40)), kf::VersionExpired);
  CHECK(ids_of(entries.changes(at(21))) == Ids{3, 4});  // nothing that went was made after 20
}

// delta-io/delta#3690: commit times came from file times, so as-of broke when the log was copied. The times
// here are data: a copy of the table made at another time reads the same.
TEST_CASE("copying a table keeps the times of its commits") {
  auto now = std::make_shared<int>(100);
  kf::TableOptions options;
  options.clock = [now] { return at(*now); };
  Entries original(options);
  for (int id = 1; id <= 3; ++id, *now += 100) original.insert({id, "x"});
  *now = 999;
  Entries copy = original;
  CHECK(copy.as_of(at(250)).version() == 2);
  CHECK(copy.as_of(at(100)).version() == 1);
  CHECK(copy.history()[2].timestamp() == at(300));
  const Entries moved = std::move(copy);
  CHECK(moved.as_of(at(250)).version() == 2);
  CHECK(original.as_of(at(250)).version() == 2);
}

TEST_CASE("expiry, tags and restore keep the times of other commits") {
  Entries entries = one_row_at({100, 200, 300, 400});
  entries.tag("kept", 2);
  entries.expire(kf::keep_last(2));
  entries.restore("kept");
  CHECK(entries.as_of(at(200)).version() == 2);
  CHECK(entries.as_of(at(300)).version() == 3);
  CHECK(entries.as_of(at(400)).version() == 4);
  CHECK(entries.as_of(at(401)).version() == 5);
}

// reactivemarbles/DynamicData#1129: subscribing while a batch was in work gave duplicate adds.
TEST_CASE("who subscribes in the middle of a batch hears of each row once") {
  Entries entries;
  std::vector<Change> heard;
  kf::Subscription subscription;
  const auto first = entries.subscribe([&](const kf::Commit<Entry>&) {
    if (subscription.active()) return;
    subscription = entries.subscribe(
        [&](const kf::Commit<Entry>& commit) {
          for (const Change& change : commit.changes()) heard.push_back(change);
        },
        kf::replay);
  });
  entries.insert({1, "a"});
  CHECK(heard == std::vector<Change>{Change::insert({1, "a"})});
}

// reactivemarbles/DynamicData#991: an edit inside a change callback was told out of order.
TEST_CASE("observers hear of an edit made in a callback after what it answers") {
  for (const bool answers_first : {true, false}) {
    Entries entries;
    Versions told;
    std::vector<Change> heard;
    const auto answer = [&](const kf::Commit<Entry>& commit) {
      if (commit.version() == 1) entries.upsert(Entry{1, "v2"});
    };
    const auto listen = [&](const kf::Commit<Entry>& commit) {
      told.push_back(commit.version());
      for (const Change& change : commit.changes()) heard.push_back(change);
    };
    kf::Subscription a;
    if (answers_first) a = entries.subscribe(answer);
    const auto b = entries.subscribe(listen);
    if (!answers_first) a = entries.subscribe(answer);
    entries.insert({1, "v1"});
    CHECK(told == Versions{1, 2});
    CHECK(heard == std::vector<Change>{Change::insert({1, "v1"}), Change::update({1, "v1"}, {1, "v2"})});
  }
}

// perspective-dev/perspective#1528, #2627: after removals, what was added again was wrong in new views.
TEST_CASE("a row that was removed and added again is right in every version and index") {
  using Indexed = kf::Table<Entry, kf::Key<&Entry::id>, kf::HashedBy<&Entry::value>>;
  Indexed entries;
  entries.upsert({{1, "a"}, {2, "b"}, {3, "c"}});
  entries.erase(2);
  CHECK(rows_of(entries.by<&Entry::value>().equal_range("c")) == Rows{{3, "c"}});
  CHECK(entries.size() == 2);
  entries.insert({2, "b"});
  CHECK(rows_of(entries.by<&Entry::value>().equal_range("b")) == Rows{{2, "b"}});
  CHECK(rows_of(entries.as_of(kf::Version{1})) == Rows{{1, "a"}, {2, "b"}, {3, "c"}});
  CHECK(rows_of(entries.as_of(kf::Version{2})) == Rows{{1, "a"}, {3, "c"}});
  CHECK(rows_of(entries) == Rows{{1, "a"}, {3, "c"}, {2, "b"}});
}
