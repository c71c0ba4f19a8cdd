// Keys, unique constraints and indexes after a merge: from public bug reports, with their neighbours.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <optional>
#include <string>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Account {
  int id = 0;
  std::string ak;
  char st = 'a';
  bool operator==(const Account&) const = default;
};

// Unique among the active rows only: SQL's CREATE UNIQUE INDEX ... WHERE st = 'a'.
constexpr auto active_ak = [](const Account& row) {
  return row.st == 'a' ? std::optional<std::string>(row.ak) : std::nullopt;
};
using Accounts = kf::Table<Account, kf::Key<&Account::id>, kf::UniqueBy<active_ak>>;

struct Status {
  int id = 0;
  char st = 'a';
};

const std::vector<Account> accounts{{1, "A", 'a'}, {2, "B", 'a'}, {3, "C", 'a'}, {4, "A", 'd'}};

auto set_status(Accounts& table, std::vector<Status> statuses) {
  return table.merge(std::move(statuses))
      .on<&Status::id>()
      .when_matched()
      .update(kf::target<&Account::st> = kf::source<&Status::st>)
      .execute();
}

}  // namespace

// sql.kiwi, December 2012 (SQL Server, filtered unique index): a violation on the way to a legal final state.
TEST_CASE("a unique value may change hands in any order of rows") {
  std::vector<Account> stored = accounts;
  const auto by_id = [](const Account& a, const Account& b) { return a.id < b.id; };
  do {
    for (const auto& statuses : {std::vector<Status>{{1, 'd'}, {4, 'a'}}, {{4, 'a'}, {1, 'd'}}}) {
      Accounts table;
      table.append(stored);
      REQUIRE(counts_of(set_status(table, statuses)) == Counts{2, 0, 0});
      auto rows = rows_of(table);
      std::sort(rows.begin(), rows.end(), by_id);
      REQUIRE(rows == std::vector<Account>{{1, "A", 'd'}, {2, "B", 'a'}, {3, "C", 'a'}, {4, "A", 'a'}});
      REQUIRE(table.by<active_ak>().find("A") == table.find(4));
    }
  } while (std::next_permutation(stored.begin(), stored.end(), by_id));
}

TEST_CASE("a unique value that two rows would hold in the end is refused") {
  Accounts table;
  table.append(accounts);
  const Unharmed unharmed(table);
  const auto error = error_of<kf::UniqueViolation>([&] { set_status(table, {{2, 'd'}, {4, 'a'}}); });
  CHECK(error.key == "'A'");
  CHECK(std::min(error.first_position, error.second_position) == 1);
  CHECK(std::max(error.first_position, error.second_position) == kf::no_position);
}

TEST_CASE("rows that the constraint exempts may be as many as they like") {
  Accounts table;
  table.append(accounts);
  CHECK(counts_of(table.append({{5, "A", 'd'}, {6, "A", 'd'}})) == Counts{0, 0, 2});
  CHECK(counts_of(set_status(table, {{1, 'd'}})) == Counts{1, 0, 0});
  CHECK_FALSE(table.by<active_ak>().contains("A"));
  CHECK(table.by<active_ak>().equal_range(std::nullopt).front().ak == "A");
  CHECK_THROWS_AS(set_status(table, {{5, 'a'}, {6, 'a'}}), kf::UniqueViolation);
}

TEST_CASE("an erased row hands its unique value to an inserted one") {
  Accounts table;
  table.append(accounts);
  const auto result = table.merge({{7, "B", 'a'}, {2, "B", 'd'}})
                          .when_matched(kf::source<&Account::st> == 'd')
                          .erase()
                          .when_not_matched()
                          .insert_all()
                          .execute();
  CHECK(counts_of(result) == Counts{0, 1, 1});
  CHECK(table.by<active_ak>().find("B")->id == 7);
}

namespace {

struct Seat {
  int id = 0;
  std::string name;
  bool operator==(const Seat&) const = default;
};
struct Move {
  int from = 0;
  int to = 0;
};

template <class Key>
std::vector<Seat> moved(const std::vector<Seat>& seats, const std::vector<Move>& moves) {
  kf::Table<Seat, Key> table;
  table.append(seats);
  table.merge(moves)
      .template on<&Move::from>()
      .when_matched()
      .update(kf::target<&Seat::id> = kf::source<&Move::to>)
      .execute();
  for (const Seat& seat : table) CHECK(table.find(seat.id) == &seat);
  return rows_of(table);
}
using InOrder = kf::OrderedKey<&Seat::id>;
using ByHash = kf::Key<&Seat::id>;
const std::vector<Seat> seats{{1, "a"}, {2, "b"}, {3, "c"}};

}  // namespace

TEST_CASE("two rows swap their keys") {
  for (const auto& moves : {std::vector<Move>{{1, 2}, {2, 1}}, {{2, 1}, {1, 2}}}) {
    CHECK(moved<ByHash>(seats, moves) == std::vector<Seat>{{2, "a"}, {1, "b"}, {3, "c"}});
    CHECK(moved<InOrder>(seats, moves) == std::vector<Seat>{{1, "b"}, {2, "a"}, {3, "c"}});
  }
}

TEST_CASE("rows pass their keys on in a ring and in a chain") {
  std::vector<Move> ring{{1, 2}, {2, 3}, {3, 1}};
  std::vector<Move> chain{{1, 2}, {2, 3}, {3, 4}};
  const auto by_from = [](const Move& a, const Move& b) { return a.from < b.from; };
  do {
    CHECK(moved<ByHash>(seats, ring) == std::vector<Seat>{{2, "a"}, {3, "b"}, {1, "c"}});
    CHECK(moved<InOrder>(seats, ring) == std::vector<Seat>{{1, "c"}, {2, "a"}, {3, "b"}});
    CHECK(moved<ByHash>(seats, chain) == std::vector<Seat>{{2, "a"}, {3, "b"}, {4, "c"}});
    CHECK(moved<InOrder>(seats, chain) == std::vector<Seat>{{2, "a"}, {3, "b"}, {4, "c"}});
    std::next_permutation(chain.begin(), chain.end(), by_from);
  } while (std::next_permutation(ring.begin(), ring.end(), by_from));
}

TEST_CASE("a chain that ends on a key that stays is refused") {
  CHECK_THROWS_AS(moved<ByHash>(seats, {{1, 2}, {2, 3}}), kf::DuplicateKey);
  CHECK_THROWS_AS(moved<InOrder>(seats, {{2, 3}, {1, 2}}), kf::DuplicateKey);
}

TEST_CASE("an inserted row takes the key that another one leaves") {
  kf::Table<Seat, ByHash> table;
  table.append(seats);
  const auto result =
      table.merge({{1, "out"}, {4, "in"}})
          .when_matched()
          .update(kf::target<&Seat::id> = 9)
          .when_not_matched()
          .insert(kf::target<&Seat::id> = 1, kf::target<&Seat::name> = kf::source<&Seat::name>)
          .execute();
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(rows_of(table) == std::vector<Seat>{{9, "a"}, {2, "b"}, {3, "c"}, {1, "in"}});
  CHECK(table.at(1).name == "in");
  CHECK(table.at(9).name == "a");
}

namespace {

struct Entry {
  std::string key;
  std::string name;
  int value = 0;
  bool operator==(const Entry&) const = default;
};
BOOST_DESCRIBE_STRUCT(Entry, (), (key, name, value))

using ByValue = kf::Table<Entry, kf::Key<&Entry::key>, kf::HashedBy<&Entry::value>>;

}  // namespace

// duckdb/duckdb#20952 and #12684: a replaced row kept the old value of an indexed column, or was refused.
TEST_CASE("a replaced row is found under the new value of an indexed column only") {
  ByValue table;
  table.insert({"/key", "value", 0});
  const auto result = table.upsert({"/key", "value", 10'000'000});
  CHECK(counts_of(result) == Counts{1, 0, 0});
  CHECK(table.at("/key").value == 10'000'000);
  CHECK(table.by<&Entry::value>().find(10'000'000) == table.find("/key"));
  CHECK_FALSE(table.by<&Entry::value>().contains(0));
  CHECK(table.by<&Entry::value>().size() == 1);
}

TEST_CASE("a replaced row is found under the new value, whatever the kind of index") {
  kf::Table<Entry, kf::OrderedKey<&Entry::key>, kf::OrderedBy<&Entry::value>, kf::UniqueBy<&Entry::name>,
            kf::OrderedBy<&Entry::name, &Entry::value>>
      table;
  table.append({{"a", "x", 1}, {"b", "y", 2}});
  SECTION("by update_all") { table.upsert({"a", "z", 5}); }
  SECTION("by assignments") {
    table.merge({{"a", "z", 5}})
        .when_matched()
        .update(kf::target<&Entry::name> = kf::source<&Entry::name>, kf::target<&Entry::value> = 5)
        .execute();
  }
  SECTION("by erasing and inserting") {
    table.erase("a");
    table.insert({"a", "z", 5});
  }
  SECTION("step by step") {
    table.upsert({"a", "z", 1});
    table.upsert({"a", "z", 5});
  }
  const Entry* row = table.find("a");
  CHECK(table.by<&Entry::value>().find(5) == row);
  CHECK(table.by<&Entry::name>().find("z") == row);
  CHECK(table.by<&Entry::name, &Entry::value>().find("z", 5) == row);
  CHECK_FALSE(table.by<&Entry::value>().contains(1));
  CHECK_FALSE(table.by<&Entry::name>().contains("x"));
  CHECK_FALSE(table.by<&Entry::name, &Entry::value>().contains("x"));
  CHECK(rows_of(table.by<&Entry::value>()) == std::vector<Entry>{{"b", "y", 2}, {"a", "z", 5}});
}

TEST_CASE("an update that leaves an indexed column alone leaves the row where it was in the index") {
  ByValue table;
  table.append({{"a", "x", 1}, {"b", "y", 1}});
  const Entry* untouched = table.find("b");
  table.upsert({"a", "z", 1});
  CHECK(table.find("b") == untouched);
  CHECK(table.by<&Entry::value>().find(1) != nullptr);
  const auto found = table.by<&Entry::value>().equal_range(1);
  CHECK(std::distance(found.begin(), found.end()) == 2);
}

namespace {

struct Step {
  int id = 0;
  int order = 0;
  bool operator==(const Step&) const = default;
};
using Steps = kf::Table<Step, kf::Key<&Step::id>, kf::OrderedBy<&Step::order>>;

Steps steps() {
  Steps table;
  table.append({{1, 1}, {2, 2}, {3, 3}});
  return table;
}

}  // namespace

// boostorg/multi_index#51: a walk over an index whose key is being changed goes astray.
TEST_CASE("a row whose order changes is the last of the index") {
  Steps table = steps();
  table.upsert({2, 10});
  const auto by_order = table.by<&Step::order>();
  CHECK(rows_of(by_order) == std::vector<Step>{{1, 1}, {3, 3}, {2, 10}});
  auto it = by_order.equal_range(10).begin();
  CHECK(it->id == 2);
  CHECK(++it == by_order.end());
}

TEST_CASE("an update of all rows visits each exactly once, even in the order of what it changes") {
  Steps table = steps();
  int visits = 0;
  SECTION("rows of the table") {
    table.merge(std::vector<Step>())
        .when_not_matched_by_source()
        .update([&](Step step) {
          ++visits;
          step.order += 10;
          return step;
        })
        .execute();
  }
  SECTION("rows of its own index") {
    table.merge(table.by<&Step::order>())
        .when_matched()
        .update([&](Step step, const Step&) {
          ++visits;
          step.order += 10;
          return step;
        })
        .execute();
  }
  CHECK(visits == 3);
  CHECK(rows_of(table.by<&Step::order>()) == std::vector<Step>{{1, 11}, {2, 12}, {3, 13}});
}

TEST_CASE("an update that turns the order round visits each row once") {
  Steps table = steps();
  const auto result = table.merge(table.by<&Step::order>())
                          .when_matched()
                          .update(kf::target<&Step::order> = 0 - kf::source<&Step::order>)
                          .execute();
  CHECK(counts_of(result) == Counts{3, 0, 0});
  CHECK(rows_of(table.by<&Step::order>()) == std::vector<Step>{{3, -3}, {2, -2}, {1, -1}});
  CHECK(rows_of(table) == std::vector<Step>{{1, -1}, {2, -2}, {3, -3}});
}

namespace {

struct Cell {
  std::string key;
  std::string group;
  bool operator==(const Cell&) const = default;
};
using Cells =
    kf::Table<Cell, kf::Key<&Cell::key>, kf::HashedBy<&Cell::group>, kf::OrderedBy<&Cell::group, &Cell::key>>;

// Each index holds each row of the table once, where a scan finds it.
void check_indexes(const Cells& table) {
  CHECK(table.by<&Cell::group>().size() == table.size());
  const auto ordered = table.by<&Cell::group, &Cell::key>();
  CHECK(ordered.size() == table.size());
  for (const Cell& row : table) {
    CHECK(ordered.find(row.group, row.key) == &row);
    const auto scanned =
        std::count_if(table.begin(), table.end(), [&](const Cell& c) { return c.group == row.group; });
    const auto found = table.by<&Cell::group>().equal_range(row.group);
    CHECK(std::distance(found.begin(), found.end()) == scanned);
  }
}

}  // namespace

// perspective-dev/perspective#1505, #998, #1225 and #2627: after a removal, size and filters went wrong.
TEST_CASE("after a removal, and after the row is back, the indexes agree with a scan") {
  Cells table;
  table.upsert({{"a", "g"}, {"b", "g"}, {"c", "h"}});
  table.erase("b");
  CHECK(table.size() == 2);
  CHECK(rows_of(table.by<&Cell::group>().equal_range("h")) == std::vector<Cell>{{"c", "h"}});
  CHECK(table.find("c")->key == "c");
  check_indexes(table);
  table.upsert({"b", "h"});
  CHECK(table.size() == 3);
  CHECK(rows_of(table) == std::vector<Cell>{{"a", "g"}, {"c", "h"}, {"b", "h"}});
  CHECK(rows_of(table.by<&Cell::group, &Cell::key>()) ==
        std::vector<Cell>{{"a", "g"}, {"b", "h"}, {"c", "h"}});
  check_indexes(table);
}

TEST_CASE("rows that come and go many times leave nothing behind") {
  Cells table;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 40; ++i) table.upsert({std::to_string(i), std::to_string((i + round) % 7)});
    for (int i = round % 2; i < 40; i += 2) table.erase(std::to_string(i));
    REQUIRE(table.size() == 20);
  }
  check_indexes(table);
  table.clear();
  CHECK(table.empty());
  CHECK(table.by<&Cell::group>().empty());
  CHECK_FALSE(table.contains("1"));
  table.upsert({"1", "g"});
  CHECK(table.size() == 1);
  check_indexes(table);
}

TEST_CASE("removals in a merge leave the other rows to be found") {
  Cells table;
  for (int i = 0; i < 100; ++i) table.insert({std::to_string(i), std::to_string(i % 3)});
  std::vector<Cell> gone;
  for (int i = 0; i < 100; i += 3) gone.push_back({std::to_string(i), ""});
  CHECK(counts_of(table.merge(gone).when_matched().erase().execute()) == Counts{0, 34, 0});
  CHECK(table.size() == 66);
  CHECK_FALSE(table.by<&Cell::group>().contains("0"));
  check_indexes(table);
}
