// Loads: from public bug reports, with their neighbours.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Entry {
  int id = 0;
  std::optional<int> part;
  int value = 0;

  bool operator==(const Entry&) const = default;
};
BOOST_DESCRIBE_STRUCT(Entry, (), (id, part, value))

using Rows = std::vector<Entry>;
using Entries = kf::Table<Entry, kf::Key<&Entry::id>>;

constexpr auto part = kf::target<&Entry::part>;
constexpr auto value = kf::target<&Entry::value>;

Entries entries(const Rows& rows) {
  Entries table;
  table.append(rows);
  return table;
}

template <class Feed>
std::vector<int> erased(const Feed& feed) {
  std::vector<int> ids;
  for (const auto& change : feed) {
    if (change.kind() == kf::ChangeKind::erase) ids.push_back(change.before()->id);
  }
  return ids;
}

template <class Feed>
std::vector<int> inserted(const Feed& feed) {
  std::vector<int> ids;
  for (const auto& change : feed) {
    if (change.kind() == kf::ChangeKind::insert) ids.push_back(change.after()->id);
  }
  return ids;
}

using Ids = std::vector<int>;

}  // namespace

// delta-io/delta-rs#2579: deletes and overwrites left no delete rows in the change feed.
TEST_CASE("an overwrite leaves its deletes in the feed") {
  Entries table = entries({{1, 1, 1}, {2, 1, 2}, {3, 1, 3}});
  table.overwrite({{8, 1, 8}, {9, 1, 9}});
  const auto feed = table.changes(1);
  CHECK(erased(feed) == Ids{1, 2, 3});
  CHECK(inserted(feed) == Ids{8, 9});
  CHECK(feed.size() == 5);
  CHECK(table.size() == 2);
}

TEST_CASE("a delete by condition leaves its deletes in the feed") {
  Entries table = entries({{1, 1, 1}, {2, 2, 2}, {3, 1, 3}});
  table.erase_where(part == 1);
  CHECK(erased(table.changes(1)) == Ids{1, 3});
  CHECK(table.changes(1).size() == 2);
}

TEST_CASE("each replacement leaves its deletes in the feed, and no row that stayed as it was") {
  const Rows start{{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {4, std::nullopt, 4}};
  const Rows next{{2, 1, 2}, {9, 1, 9}};
  const auto check = [&](auto replace) {
    Entries table = entries(start);
    replace(table);
    CHECK(erased(table.changes(1)) == Ids{1});
    CHECK(inserted(table.changes(1)) == Ids{9});
    CHECK(table.changes(1).size() == 2);
    table.undo(2);
    CHECK(std::ranges::is_permutation(table, start));
  };
  check([&](Entries& table) { table.replace_where(part == 1, next); });
  check([&](Entries& table) { table.replace_using<&Entry::part>(next); });
  check([&](Entries& table) { table.replace_on(kf::source<&Entry::part> == part, next); });
}

TEST_CASE("replaying the feed of loads on a copy makes the same table") {
  Entries table = entries({{1, 1, 1}, {2, 1, 2}, {3, 2, 3}});
  Entries replica = table;
  table.overwrite({{3, 3, 3}, {4, 3, 4}});
  table.replace_using<&Entry::part>({{5, 3, 5}});
  table.update_where(value > 0, value = value + 1);
  for (const auto commit : table.history()) {
    if (commit.version() > 1) replica.apply(commit.changes());
  }
  CHECK(rows_of(replica) == rows_of(table));
}

// matrixorigin/matrixone#24950: REPLACE did not judge CHECK constraints.
TEST_CASE("a replacement that violates a constraint leaves the row that it would have replaced") {
  Entries table = entries({{1, 1, 10}});
  table.require("positive", value > 0);
  const Unharmed<Entries> unharmed(table);
  CHECK_THROWS_AS(table.replace_using<&Entry::id>({{1, 1, -1}}), kf::CheckViolation);
  CHECK_THROWS_AS(table.overwrite({{1, 1, -1}}), kf::CheckViolation);
  CHECK_THROWS_AS(table.upsert({1, 1, -1}), kf::CheckViolation);
}

// datafusion-contrib/datafusion-table-providers#498: an overwrite was refused since its rows had the keys of
// rows that it replaces.
TEST_CASE("an overwrite may bring the keys and the unique values that are there") {
  using Unique = kf::Table<Entry, kf::Key<&Entry::id>, kf::UniqueBy<&Entry::value>>;
  Unique table;
  table.append({{1, 1, 10}, {2, 1, 20}});
  table.overwrite({{1, 1, 20}, {3, 1, 10}});
  CHECK(rows_of(table) == Rows{{1, 1, 20}, {3, 1, 10}});
  table.overwrite({{4, 1, 20}, {1, 1, 10}});
  CHECK(rows_of(table) == Rows{{1, 1, 10}, {4, 1, 20}});
}

// delta-io/delta#461 and its kind: rows of the old and the new form side by side.
TEST_CASE("replacing a part twice does not double it") {
  Entries table = entries({{1, 1, 1}, {2, 2, 2}});
  const Rows next{{5, 1, 5}, {6, 1, 6}};
  table.replace_where(part == 1, next);
  CHECK_FALSE(table.replace_where(part == 1, next).committed());
  CHECK_FALSE(table.replace_using<&Entry::part>(next).committed());
  CHECK(rows_of(table) == Rows{{2, 2, 2}, {5, 1, 5}, {6, 1, 6}});
}

// boostorg/multi_index#51: a walk over an index whose key is being changed goes astray.
TEST_CASE("an update by condition visits each row once, whatever it does to the order") {
  using Ordered = kf::Table<Entry, kf::OrderedKey<&Entry::id>, kf::OrderedBy<&Entry::value>>;
  Ordered table;
  table.append({{1, 1, 1}, {2, 1, 2}, {3, 1, 3}});
  table.update_where(value > 0, value = value + 10, kf::target<&Entry::id> = kf::target<&Entry::id> + 1);
  CHECK(rows_of(table) == Rows{{2, 1, 11}, {3, 1, 12}, {4, 1, 13}});
  CHECK(rows_of(table.by<&Entry::value>()) == Rows{{2, 1, 11}, {3, 1, 12}, {4, 1, 13}});
}

// Boost.MultiIndex Trac #12542: a change that collides erased the row.
TEST_CASE("an update by condition that collides changes nothing") {
  using Unique = kf::Table<Entry, kf::Key<&Entry::id>, kf::UniqueBy<&Entry::value>>;
  Unique table;
  table.append({{1, 1, 10}, {2, 1, 20}, {3, 2, 30}});
  const Unharmed<Unique> unharmed(table);
  CHECK(error_of<kf::DuplicateKey>([&] { table.update_where(part == 2, kf::target<&Entry::id> = 1); }).key ==
        "1");
  CHECK_THROWS_AS(table.update_where(part == 2, value = 10), kf::UniqueViolation);
  CHECK_THROWS_AS(table.update_where(
                      part == 1, [](const Entry& entry) { return entry.id == 2 ? throw 7 : Entry{5, 1, 5}; }),
                  int);
}
