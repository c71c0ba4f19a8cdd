// Keys and unique values that move: only the final state of the table must be legal.
#include <keyfold/keyfold.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/agreement.hpp"
#include "support/property.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace {

struct Account {
  int id = 0;
  std::string name;  // tells rows apart whatever moves
  int badge = 0;
  std::optional<std::string> email;
  std::optional<int> floor;
  int desk = 0;

  bool operator==(const Account&) const = default;
};

using Hashed = kf::Table<Account, kf::Key<&Account::id>, kf::UniqueBy<&Account::badge>,
                         kf::UniqueBy<&Account::email>, kf::UniqueBy<&Account::floor, &Account::desk>>;
using Ordered = kf::Table<Account, kf::OrderedKey<&Account::id>, kf::UniqueBy<&Account::badge>,
                          kf::UniqueBy<&Account::email>, kf::UniqueBy<&Account::floor, &Account::desk>>;

/// A source row: what becomes of the row whose id is `ref`; without one, `after` is inserted.
struct Move {
  int ref = 0;
  std::optional<Account> after;  // empty: erase

  bool erases() const { return !after.has_value(); }
};

Account account(int number) {
  const std::string text = std::to_string(number);
  return {number, "name" + text, 100 + number, "mail" + text, number, 200 + number};
}

enum class ByThem { stay, go };  // rows that no source row is about

template <class Table>
auto merge(Table& table, const std::vector<Move>& moves, ByThem others = ByThem::stay) {
  return table.merge(moves)
      .template on<&Move::ref>()
      .when_matched([](const Account&, const Move& move) { return move.erases(); })
      .erase()
      .when_matched()
      .update([](const Account&, const Move& move) { return *move.after; })
      .when_not_matched()
      .insert([](const Move& move) { return *move.after; })
      .when_not_matched_by_source([=](const Account&) { return others == ByThem::go; })
      .erase()
      .execute();
}

// --- The unique keys of the table, each of which every scenario is run on

struct UniqueKey {
  const char* index;  // as errors call it
  void (*set)(Account&, int number);
  std::string (*text)(int number);  // of the key, in errors
};

const std::vector<UniqueKey> unique_keys{
    {"id", [](Account& a, int n) { a.id = n; }, [](int n) { return std::to_string(n); }},
    {"badge", [](Account& a, int n) { a.badge = 100 + n; }, [](int n) { return std::to_string(100 + n); }},
    {"email", [](Account& a, int n) { a.email = "mail" + std::to_string(n); },
     [](int n) { return "'mail" + std::to_string(n) + "'"; }},
    {"(floor, desk)",
     [](Account& a, int n) {
       a.floor = n;
       a.desk = 200 + n;
     },
     [](int n) { return "(" + std::to_string(n) + ", " + std::to_string(200 + n) + ")"; }},
};

/// What becomes of the rows 1 to 4, under any of the unique keys.
struct Scenario {
  const char* name;
  std::map<int, int> moves;       // row -> new number in the key
  std::vector<int> inserts = {};  // numbers in the key of new rows
  std::vector<int> erased = {};   // by a clause
  bool others_go = false;         // rows not named are erased by source
};

const std::vector<Scenario> legal{
    {"a swap", {{1, 2}, {2, 1}}},
    {"two swaps", {{1, 2}, {2, 1}, {3, 4}, {4, 3}}},
    {"a cycle of three", {{1, 2}, {2, 3}, {3, 1}}},
    {"a cycle of four", {{1, 3}, {3, 2}, {2, 4}, {4, 1}}},
    {"a chain to a new value", {{1, 2}, {2, 3}, {3, 9}}},
    {"a value freed by an update", {{1, 9}, {2, 1}}},
    {"a value freed by an erase", {{1, 3}}, {}, {3}},
    {"a value freed by source", {{1, 3}, {2, 2}, {4, 4}}, {}, {}, true},
    {"an insert takes a value freed by an update", {{2, 9}}, {2}},
    {"an insert takes a value freed by an erase", {}, {2}, {2}},
    {"an insert takes a value freed by source", {{1, 1}, {2, 2}}, {3, 4}, {}, true},
    {"inserts at both ends of a chain", {{1, 2}, {2, 3}}, {1, 8}, {3}},
    {"all go, and others come in their place", {}, {1, 2, 3, 4}, {1, 2, 3, 4}},
};

std::vector<Account> rows_in(const std::vector<int>& order) {
  std::vector<Account> rows;
  for (const int number : order) rows.push_back(account(number));
  return rows;
}

std::vector<Move> moves_of(const Scenario& scenario, const UniqueKey& key) {
  std::vector<Move> moves;
  for (const auto& [row, number] : scenario.moves) {
    moves.push_back({row, account(row)});
    key.set(*moves.back().after, number);
  }
  for (const int row : scenario.erased) moves.push_back({row, std::nullopt});
  int next = 50;
  for (const int number : scenario.inserts) {
    moves.push_back({next, account(next)});
    key.set(*moves.back().after, number);
    ++next;
  }
  return moves;
}

// The table afterwards: rows stay where they were, new ones come last in the order of the source.
std::vector<Account> expected_rows(const std::vector<Account>& before, const std::vector<Move>& moves,
                                   bool others_go) {
  std::vector<Account> rows;
  std::set<int> refs;
  for (const Account& row : before) {
    refs.insert(row.id);
    const auto move = std::ranges::find(moves, row.id, &Move::ref);
    if (move == moves.end() ? !others_go : !move->erases())
      rows.push_back(move == moves.end() ? row : *move->after);
  }
  for (const Move& move : moves) {
    if (!refs.contains(move.ref)) rows.push_back(*move.after);
  }
  return rows;
}

template <class Table>
std::vector<Account> rows_of(const Table& table) {
  return {table.begin(), table.end()};
}

template <class Visit>
void for_each_order(int count, Visit visit) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 1);
  do visit(order);
  while (std::ranges::next_permutation(order).found);
}

template <class Table>
void check_legal(const Scenario& scenario, const UniqueKey& key) {
  std::vector<Move> moves = moves_of(scenario, key);
  for_each_order(4, [&](const std::vector<int>& order) {
    const std::vector<Account> before = rows_in(order);
    for (std::size_t turn = 0; turn < moves.size(); ++turn) {
      std::rotate(moves.begin(), moves.begin() + 1, moves.end());
      std::vector<Account> expected = expected_rows(before, moves, scenario.others_go);
      if (is_ordered<kf::OrderedKey<&Account::id>> && std::same_as<Table, Ordered>) {
        std::ranges::sort(expected, {}, &Account::id);
      }
      Table table;
      table.append(before);
      merge(table, moves, scenario.others_go ? ByThem::go : ByThem::stay);
      REQUIRE(rows_of(table) == expected);
      REQUIRE(disagreements(table) == std::vector<std::string>{});
    }
  });
}

// --- Errors

/// What a refused write said.
struct Refusal {
  std::string type;
  std::string index;
  std::string key;
  std::set<kf::Position> positions;  // both

  bool operator==(const Refusal&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  out << refusal.type << ' ' << refusal.index << " = " << refusal.key << " at";
  for (const kf::Position position : refusal.positions) out << ' ' << static_cast<std::ptrdiff_t>(position);
  return out;
}

constexpr kf::Position table_row = kf::no_position;

template <class Error>
Refusal refusal_by(const char* type, const Error& error) {
  const std::string what = error.what();
  CHECK_THAT(what, contains(error.index + " = " + error.key));
  for (const kf::Position position : {error.first_position, error.second_position}) {
    CHECK_THAT(what, contains(position == table_row ? "a row of the table"
                                                    : "source row " + std::to_string(position)));
  }
  return {type, error.index, error.key, {error.first_position, error.second_position}};
}

// Runs a write that must be refused, and checks that it changed nothing.
template <class Table, class Write>
Refusal refusal_of(Table& table, Write write) {
  const std::vector<Account> rows = rows_of(table);
  const auto addresses = addresses_of(table);
  const kf::Version version = table.version();
  Refusal refusal;
  try {
    write();
  } catch (const kf::DuplicateSourceKey& error) {
    refusal = refusal_by("DuplicateSourceKey", error);
  } catch (const kf::DuplicateKey& error) {
    refusal = refusal_by("DuplicateKey", error);
  } catch (const kf::UniqueViolation& error) {
    refusal = refusal_by("UniqueViolation", error);
  }
  CHECK(rows_of(table) == rows);
  CHECK(addresses_of(table) == addresses);
  CHECK(table.version() == version);
  CHECK(disagreements(table) == std::vector<std::string>{});
  return refusal;
}

Move move_to(const UniqueKey& key, int ref, int number) {
  Move move{ref, account(ref)};
  key.set(*move.after, number);
  return move;
}

// A row with other values, in none of the unique keys.
Move touch(int ref) {
  Move move{ref, account(ref)};
  move.after->name += " touched";
  return move;
}

bool is_primary(const UniqueKey& key) { return std::string(key.index) == "id"; }

Hashed four_rows() {
  Hashed table;
  table.append(rows_in({1, 2, 3, 4}));
  return table;
}

// For every unique key: the moves are refused, for `number`, naming these positions.
void check_refused(const std::vector<std::pair<int, std::optional<int>>>& moves, int number,
                   std::set<kf::Position> positions, ByThem others = ByThem::stay) {
  for (const UniqueKey& key : unique_keys) {
    std::vector<Move> source;
    for (const auto& [ref, to] : moves) {
      source.push_back(!to ? Move{ref, std::nullopt} : *to == 0 ? touch(ref) : move_to(key, ref, *to));
    }
    Hashed table = four_rows();
    const Refusal refusal = refusal_of(table, [&] { merge(table, source, others); });
    INFO(key.index << ": " << refusal);
    CHECK((refusal.type == "UniqueViolation") == !is_primary(key));
    CHECK(refusal.index == key.index);
    CHECK(refusal.key == key.text(number));
    CHECK(refusal.positions == positions);
  }
}

}  // namespace

TEST_CASE("values of unique keys move freely as long as the final state is legal, in any order of rows") {
  for (const Scenario& scenario : legal) {
    for (const UniqueKey& key : unique_keys) {
      INFO(scenario.name << " of " << key.index);
      check_legal<Hashed>(scenario, key);
      check_legal<Ordered>(scenario, key);
    }
  }
}

TEST_CASE("an update that changes the key keeps its place, and the old key is gone") {
  Hashed table = four_rows();
  merge(table, {{2, account(9)}, {4, account(8)}});
  CHECK(rows_of(table) == rows_in({1, 9, 3, 8}));
  CHECK(table.find(2) == nullptr);
  CHECK(table.find(4) == nullptr);
  CHECK(table.at(9).name == "name9");
  CHECK_FALSE(table.by<&Account::badge>().contains(102));
  CHECK_FALSE(table.by<&Account::email>().contains("mail4"));
  CHECK_FALSE((table.by<&Account::floor, &Account::desk>().contains(2, 202)));
  CHECK(disagreements(table).empty());
}

TEST_CASE("a change of key is one update, from the old row to the new") {
  Hashed table = four_rows();
  const auto result = merge(table, {{2, account(9)}});
  CHECK(result.metrics().updated == 1);
  REQUIRE(result.changes().size() == 1);
  CHECK(result.changes()[0] == kf::Change<Account>::update(account(2), account(9)));
}

TEST_CASE("values that freed rows leave can be taken later, too") {
  Hashed table = four_rows();
  merge(table, {{2, account(9)}, {3, std::nullopt}});
  table.append(rows_in({3, 2}));
  CHECK(rows_of(table) == rows_in({1, 9, 4, 3, 2}));
  CHECK(disagreements(table).empty());
}

// --- Exempt rows

TEST_CASE("rows with an empty optional in a unique key are exempt from it") {
  Hashed table = four_rows();
  std::vector<Move> moves;
  for (int row = 1; row <= 4; ++row) {
    moves.push_back({row, account(row)});
    moves.back().after->email.reset();
    moves.back().after->floor.reset();
    moves.back().after->desk = 7;  // one part equal, the other empty
  }
  moves.push_back({50, account(50)});
  moves.back().after->email.reset();
  merge(table, moves);
  CHECK(std::ranges::distance(table.by<&Account::email>().equal_range(std::nullopt)) == 5);
  CHECK(std::ranges::distance(table.by<&Account::floor, &Account::desk>().equal_range(std::nullopt, 7)) == 4);
  CHECK(disagreements(table).empty());
}

TEST_CASE("a row that stops being exempt is checked") {
  Hashed table = four_rows();
  Account exempt = account(5);
  exempt.email.reset();
  table.insert(exempt);
  Account claims = exempt;
  claims.email = "mail3";
  const Refusal refusal = refusal_of(table, [&] { table.upsert(claims); });
  CHECK(refusal == Refusal{"UniqueViolation", "email", "'mail3'", {table_row, 0}});
}

TEST_CASE("a row that becomes exempt frees its value") {
  Hashed table = four_rows();
  Account exempt = account(3);
  exempt.email.reset();
  Account takes = account(1);
  takes.email = "mail3";
  table.upsert({takes, exempt});
  CHECK(table.by<&Account::email>().find("mail3")->id == 1);
  CHECK(disagreements(table).empty());
}

// --- Real collisions

TEST_CASE("an update to a value that a row of the table keeps is refused") {
  check_refused({{3, 0}, {1, 2}}, 2, {table_row, 1});
}

TEST_CASE("an update to a value that another updated row keeps is refused") {
  check_refused({{1, 2}, {2, 0}}, 2, {0, 1});
}

TEST_CASE("two updates to one new value are refused") { check_refused({{1, 9}, {2, 5}, {3, 9}}, 9, {0, 2}); }

TEST_CASE("two updates to one freed value are refused") {
  check_refused({{1, 9}, {2, 1}, {3, 1}}, 1, {1, 2});
  check_refused({{4, std::nullopt}, {2, 4}, {3, 4}}, 4, {1, 2});
}

TEST_CASE("a chain that ends on a value that stays is refused") {
  check_refused({{1, 2}, {2, 3}, {4, 0}}, 3, {table_row, 1});
}

TEST_CASE("an update and an insert with one value are refused") {
  check_refused({{1, 9}, {50, 9}}, 9, {0, 1});
  check_refused({{50, 9}, {1, 9}}, 9, {0, 1});
}

TEST_CASE("an insert of a value that a row of the table keeps is refused") {
  check_refused({{1, 0}, {50, 3}}, 3, {table_row, 1});
}

TEST_CASE("a value that only the rows gone by source held is free, that of a row that matched is not") {
  check_refused({{1, 0}, {50, 1}}, 1, {0, 1}, ByThem::go);
}

TEST_CASE("two inserts of one value are refused; of one key, as duplicates of the source") {
  check_refused({{50, 9}, {51, 8}, {52, 9}}, 9, {0, 2});
  Hashed table = four_rows();
  const UniqueKey& id = unique_keys.front();
  const std::vector<Move> twice{move_to(id, 50, 9), move_to(id, 51, 8), move_to(id, 52, 9)};
  CHECK(refusal_of(table, [&] { merge(table, twice); }) == Refusal{"DuplicateSourceKey", "id", "9", {0, 2}});
}

TEST_CASE("an update by source to a value that is held is refused, without a position") {
  Hashed table = four_rows();
  const std::vector<Account> source{account(1)};
  const Refusal refusal = refusal_of(table, [&] {
    table.merge(source)
        .when_matched()
        .do_nothing()
        .when_not_matched_by_source(kf::target<&Account::id> == 3)
        .update(kf::target<&Account::badge> = 101)
        .execute();
  });
  CHECK(refusal == Refusal{"UniqueViolation", "badge", "101", {table_row}});
}

TEST_CASE("append and insert refuse keys and values that are there or are given twice") {
  Hashed table = four_rows();
  CHECK(refusal_of(table, [&] { table.append(rows_in({5, 2})); }) ==
        Refusal{"DuplicateKey", "id", "2", {table_row, 1}});
  CHECK(refusal_of(table, [&] { table.append(rows_in({5, 6, 5})); }) ==
        Refusal{"DuplicateSourceKey", "id", "5", {0, 2}});
  CHECK(refusal_of(table, [&] { table.insert(account(4)); }) ==
        Refusal{"DuplicateKey", "id", "4", {table_row, 0}});
  Account other_key = account(4);
  other_key.id = 40;
  CHECK(refusal_of(table, [&] { table.insert(other_key); }) ==
        Refusal{"UniqueViolation", "badge", "104", {table_row, 0}});
}

TEST_CASE("positions count source rows far into a batch") {
  Hashed table = four_rows();
  std::vector<Account> many;
  for (int number = 10; number < 110; ++number) many.push_back(account(number));
  many[77].badge = many[40].badge;
  CHECK(refusal_of(table, [&] { table.append(many); }) ==
        Refusal{"UniqueViolation", "badge", "150", {40, 77}});
  CHECK(refusal_of(table, [&] { table.upsert(many); }) ==
        Refusal{"UniqueViolation", "badge", "150", {40, 77}});
}

// --- Any moves at all

namespace {

Account random_account(std::mt19937& random, int name) {
  const auto pick = [&] { return static_cast<int>(random() % 6); };
  Account row = account(pick());
  row.name = "name" + std::to_string(name);
  row.badge = 100 + pick();
  row.email = random() % 3 == 0 ? std::nullopt : std::optional("mail" + std::to_string(pick()));
  row.floor = random() % 3 == 0 ? std::nullopt : std::optional(pick() % 3);
  row.desk = 200 + pick() % 3;
  return row;
}

bool collide(const Account& a, const Account& b) {
  return a.id == b.id || a.badge == b.badge || (a.email && a.email == b.email) ||
         (a.floor && a.floor == b.floor && a.desk == b.desk);
}

bool is_legal(const std::vector<Account>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (collide(rows[i], rows[j])) return false;
    }
  }
  return true;
}

std::vector<Account> random_rows(std::mt19937& random) {
  std::vector<Account> rows;
  for (int name = 0; name < 12; ++name) {
    rows.push_back(random_account(random, name));
    if (!is_legal(rows)) rows.pop_back();
  }
  return rows;
}

// At least as often as not, rows exchange values, so that moves are legal often enough.
std::vector<Move> random_moves(std::mt19937& random, const std::vector<Account>& rows) {
  std::vector<Move> moves;
  for (const Account& row : rows) {
    if (random() % 3 == 0) continue;
    moves.push_back({row.id, row});
    if (random() % 6 == 0) moves.back().after.reset();
  }
  for (Move& move : moves) {
    Move& other = moves[random() % moves.size()];
    if (move.erases() || other.erases()) continue;
    switch (random() % 5) {
      case 0:
        std::swap(move.after->id, other.after->id);
        break;
      case 1:
        std::swap(move.after->badge, other.after->badge);
        break;
      case 2:
        std::swap(move.after->email, other.after->email);
        break;
      case 3:
        std::swap(move.after->desk, other.after->desk), std::swap(move.after->floor, other.after->floor);
        break;
      default:
        if (random() % 4 == 0) move.after = random_account(random, move.ref + 20);
    }
  }
  if (random() % 2 == 0) moves.push_back({50, random_account(random, 50)});
  std::ranges::shuffle(moves, random);
  return moves;
}

}  // namespace

TEST_CASE("a write is refused if and only if the final state is illegal") {
  std::mt19937 random(2026);
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < scaled(4000); ++round) {
    const std::vector<Account> before = random_rows(random);
    const std::vector<Move> moves = random_moves(random, before);
    const bool others_go = random() % 4 == 0;
    const std::vector<Account> after = expected_rows(before, moves, others_go);
    Hashed table;
    table.append(before);
    const auto run = [&] { merge(table, moves, others_go ? ByThem::go : ByThem::stay); };
    INFO("round " << round);
    if (is_legal(after)) {
      ++accepted;
      run();
      REQUIRE(rows_of(table) == after);
      REQUIRE(disagreements(table).empty());
    } else {
      ++refused;
      REQUIRE_FALSE(refusal_of(table, run).type.empty());
    }
  }
  CHECK(accepted > refused / 8);
  CHECK(refused > accepted / 8);
}
