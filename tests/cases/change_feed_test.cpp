// Change feeds: from public bug reports, with their neighbours.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::rows_of;

namespace {

struct Entry {
  std::string key;
  std::string value;

  bool operator==(const Entry&) const = default;
};
BOOST_DESCRIBE_STRUCT(Entry, (), (key, value))

/// A record of a compacted topic: without a value it is a tombstone.
struct Record {
  std::string key;
  int offset = 0;
  std::optional<std::string> value;
};

using Entries = kf::Table<Entry, kf::Key<&Entry::key>>;
using Records = std::vector<Record>;
using Rows = std::vector<Entry>;
constexpr auto none = std::nullopt;

/// A record as a row, so that columns need not convert.
struct Upsert {
  std::string key;
  std::string value;
  int offset = 0;
  bool tombstone = false;
};
BOOST_DESCRIBE_STRUCT(Upsert, (), (key, value, offset, tombstone))

auto load(Entries& table, const Records& records) {
  std::vector<Upsert> events;
  for (const Record& record : records)
    events.push_back({record.key, record.value.value_or(""), record.offset, !record.value});
  return table.apply_changes(events)
      .sequence_by<&Upsert::offset>()
      .apply_as_deletes(kf::source<&Upsert::tombstone> == true)
      .execute();
}

}  // namespace

// confluentinc/ksql#1169, #6938: a reduce step lost the delete.
TEST_CASE("a delete after an insert leaves nothing") {
  Entries table;
  load(table, {{"k", 1, "a"}});
  const auto result = load(table, {{"k", 2, none}});
  CHECK(table.empty());
  CHECK(counts_of(result) == Counts{0, 1, 0});
}

TEST_CASE("a delete after an insert in one batch leaves nothing, and nothing to tell") {
  Entries table;
  const auto result = load(table, {{"k", 1, "a"}, {"k", 2, none}});
  CHECK(table.empty());
  CHECK(counts_of(result) == Counts{0, 0, 0});
  CHECK_FALSE(result.committed());
}

TEST_CASE("an insert and a delete in one batch delete the row that was there") {
  Entries table;
  load(table, {{"k", 0, "old"}});
  const auto result = load(table, {{"k", 1, "a"}, {"k", 2, none}});
  CHECK(table.empty());
  CHECK(counts_of(result) == Counts{0, 1, 0});
}

TEST_CASE("a delete and then an insert in one batch is an update") {
  Entries table;
  load(table, {{"k", 0, "old"}});
  const auto result = load(table, {{"k", 1, none}, {"k", 2, "new"}});
  CHECK(rows_of(table) == Rows{{"k", "new"}});
  CHECK(counts_of(result) == Counts{1, 0, 0});
}

TEST_CASE("the order of records in a batch does not matter, their offsets do") {
  Entries table;
  load(table, {{"k", 2, none}, {"k", 1, "a"}});
  CHECK(table.empty());
}

// apache/hudi#17642: an older delete beat a newer row.
TEST_CASE("a delete that is older than the row is late") {
  Entries table;
  load(table, {{"k", 20, "a"}});
  const auto result = load(table, {{"k", 10, none}});
  CHECK(rows_of(table) == Rows{{"k", "a"}});
  CHECK(result.metrics().dropped_late == 1);
}

TEST_CASE("a delete that is older than a row of the same batch is late") {
  Entries table;
  const auto result = load(table, {{"k", 20, "a"}, {"k", 10, none}});
  CHECK(rows_of(table) == Rows{{"k", "a"}});
  CHECK(result.metrics().dropped_late == 1);
}

TEST_CASE("a row that is older than the delete of its key stays deleted") {
  Entries table;
  load(table, {{"k", 20, none}});
  const auto result = load(table, {{"k", 10, "a"}});
  CHECK(table.empty());
  CHECK(result.metrics().dropped_late == 1);
}

TEST_CASE("a row that is newer than the delete of its key is inserted") {
  Entries table;
  load(table, {{"k", 20, none}});
  const auto result = load(table, {{"k", 21, "a"}});
  CHECK(rows_of(table) == Rows{{"k", "a"}});
  CHECK(counts_of(result) == Counts{0, 0, 1});
}

TEST_CASE("a delete of one key leaves the tombstones and rows of others alone") {
  Entries table;
  load(table, {{"k", 20, none}, {"l", 5, "b"}});
  const auto result = load(table, {{"l", 10, none}, {"k", 15, "late"}, {"m", 1, "c"}});
  CHECK(rows_of(table) == Rows{{"m", "c"}});
  CHECK(result.metrics().dropped_late == 1);
}

TEST_CASE("records come to the same in every order, one by one or at once") {
  Records records{{"k", 1, "a"}, {"k", 2, none}, {"l", 3, "b"}, {"k", 4, "c"}, {"l", 5, none}};
  const auto by_offset = [](const Record& a, const Record& b) { return a.offset < b.offset; };
  do {
    Entries at_once;
    load(at_once, records);
    Entries one_by_one;
    for (const Record& record : records) load(one_by_one, {record});
    REQUIRE(rows_of(at_once) == Rows{{"k", "c"}});
    REQUIRE(rows_of(one_by_one) == Rows{{"k", "c"}});
  } while (std::ranges::next_permutation(records, by_offset).found);
}
