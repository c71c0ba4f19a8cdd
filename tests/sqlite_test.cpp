// The same random merges in SQLite: INSERT ... ON CONFLICT DO UPDATE ... WHERE, DELETE and UPDATE ... FROM.
// SQLite keeps rows in the order of their rowid, that is of insertion, so the order of rows is compared as
// well.
#include <keyfold/keyfold.hpp>

#include <sqlite3.h>
#include <boost/describe/class.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/property.hpp"

namespace kf = keyfold;

namespace {

struct Account {
  std::int64_t id = 0;
  std::optional<std::int64_t> x;
  std::optional<double> y;
  std::optional<std::string> name;
  std::optional<std::int64_t> code;
};
BOOST_DESCRIBE_STRUCT(Account, (), (id, x, y, name, code))

struct Change {
  char op = 'U';
  std::int64_t id = 0;
  std::int64_t next_id = 0;
  std::optional<std::int64_t> x;
  std::optional<double> y;
  std::optional<std::string> name;
  std::optional<std::int64_t> code;
};
BOOST_DESCRIBE_STRUCT(Change, (), (op, id, next_id, x, y, name, code))

using Batch = std::vector<Change>;
using Lines = std::vector<std::string>;

// --- SQLite

class Database {
 public:
  Database() {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(":memory:", &handle) == SQLITE_OK);
    handle_.reset(handle);
    run("CREATE TABLE s (op TEXT, id INT, next_id INT, x INT, y REAL, name TEXT, code INT)");
  }

  // Returns false if a constraint is violated; any other error fails the test.
  bool run(const std::string& sql) {
    char* message = nullptr;
    const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, &message);
    const std::string error = message != nullptr ? message : "";
    sqlite3_free(message);
    INFO(sql << ": " << error);
    REQUIRE((code == SQLITE_OK || code == SQLITE_CONSTRAINT));
    return code == SQLITE_OK;
  }

  std::size_t changes() const { return static_cast<std::size_t>(sqlite3_changes(handle_.get())); }

  void load(const Batch& batch) {
    run("DELETE FROM s");
    sqlite3_stmt* insert = prepare("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?, ?)");
    for (const Change& row : batch) {
      sqlite3_bind_text(insert, 1, &row.op, 1, SQLITE_TRANSIENT);
      sqlite3_bind_int64(insert, 2, row.id);
      sqlite3_bind_int64(insert, 3, row.next_id);
      bind(insert, 4, row.x);
      row.y ? sqlite3_bind_double(insert, 5, *row.y) : sqlite3_bind_null(insert, 5);
      row.name ? sqlite3_bind_text(insert, 6, row.name->c_str(), -1, SQLITE_TRANSIENT)
               : sqlite3_bind_null(insert, 6);
      bind(insert, 7, row.code);
      REQUIRE(sqlite3_step(insert) == SQLITE_DONE);
      sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
  }

  // Each row as text, in the order of `order`.
  Lines rows(const std::string& order) {
    Lines out;
    sqlite3_stmt* select = prepare(("SELECT id, x, y, name, code FROM t ORDER BY " + order).c_str());
    while (sqlite3_step(select) == SQLITE_ROW) {
      std::string line;
      for (int column = 0; column < 5; ++column) line += text(select, column) + ' ';
      out.push_back(line);
    }
    sqlite3_finalize(select);
    return out;
  }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };

  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    INFO(sql);
    REQUIRE(sqlite3_prepare_v2(handle_.get(), sql, -1, &statement, nullptr) == SQLITE_OK);
    return statement;
  }

  static void bind(sqlite3_stmt* statement, int at, std::optional<std::int64_t> value) {
    value ? sqlite3_bind_int64(statement, at, *value) : sqlite3_bind_null(statement, at);
  }

  static std::string text(sqlite3_stmt* select, int column) {
    switch (sqlite3_column_type(select, column)) {
      case SQLITE_NULL:
        return "NULL";
      case SQLITE_INTEGER:
        return std::to_string(sqlite3_column_int64(select, column));
      case SQLITE_FLOAT:
        return std::to_string(sqlite3_column_double(select, column));
      default:
        return '\'' + std::string(reinterpret_cast<const char*>(sqlite3_column_text(select, column))) + '\'';
    }
  }

  std::unique_ptr<sqlite3, Close> handle_;
};

template <class Number>
std::string text(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "NULL";
}

template <class Table>
Lines lines(const Table& table) {
  Lines out;
  for (const Account& row : table) {
    const std::string name = row.name ? '\'' + *row.name + '\'' : "NULL";
    out.push_back(std::to_string(row.id) + ' ' + text(row.x) + ' ' + text(row.y) + ' ' + name + ' ' +
                  text(row.code) + ' ');
  }
  return out;
}

// --- The same merge twice

using Hashed = kf::Table<Account, kf::Key<&Account::id>>;
using Ordered = kf::Table<Account, kf::OrderedKey<&Account::id>, kf::HashedBy<&Account::name>>;
using Unique = kf::Table<Account, kf::Key<&Account::id>, kf::UniqueBy<&Account::code>>;

template <class Table>
struct Twice {
  std::vector<std::string> sql;
  std::function<kf::MergeResult<Account>(Table&, const Batch&, bool)> merge;
};

// `make(builder)` adds the clauses.
template <class Table, class Make>
Twice<Table> twice(std::vector<std::string> sql, Make make) {
  return {std::move(sql), [make](Table& table, const Batch& batch, bool rewrite_unchanged) {
            auto merge = make(table.merge(batch));
            return rewrite_unchanged ? std::move(merge).rewrite_unchanged().execute() : merge.execute();
          }};
}

std::string insert_from_s(const std::string& rest, const std::string& where = "true") {
  return "INSERT INTO t SELECT id, x, y, name, code FROM s WHERE " + where + " ORDER BY s.rowid " + rest;
}

const std::string set_all =
    "ON CONFLICT (id) DO UPDATE SET x = excluded.x, y = excluded.y, name = excluded.name, "
    "code = excluded.code";

constexpr auto source_x = kf::source<&Change::x>;
constexpr auto source_y = kf::source<&Change::y>;
constexpr auto source_name = kf::source<&Change::name>;
constexpr auto target_x = kf::target<&Account::x>;
constexpr auto target_y = kf::target<&Account::y>;
constexpr auto target_name = kf::target<&Account::name>;
constexpr auto deletes = kf::source<&Change::op> == 'D';

// An upsert under a condition, as SQL text and as an expression.
template <class Table, class Condition>
Twice<Table> upsert_where(const std::string& sql, Condition condition) {
  return twice<Table>({insert_from_s(set_all + " WHERE " + sql)}, [condition](auto merge) {
    return std::move(merge).when_matched(condition).update_all().when_not_matched().insert_all();
  });
}

template <class Table, class... Assignments>
Twice<Table> upsert_setting(const std::string& sql, Assignments... assignments) {
  return twice<Table>({insert_from_s("ON CONFLICT (id) DO UPDATE SET " + sql)}, [assignments...](auto merge) {
    return std::move(merge).when_matched().update(assignments...).when_not_matched().insert_all();
  });
}

template <class Table>
void add_conditions(std::vector<Twice<Table>>& merges) {
  merges.push_back(upsert_where<Table>("excluded.x > t.x", source_x > target_x));
  merges.push_back(upsert_where<Table>("excluded.x >= t.x", source_x >= target_x));
  merges.push_back(upsert_where<Table>("NOT (excluded.x <= t.x)", !(source_x <= target_x)));
  merges.push_back(upsert_where<Table>("excluded.name IS NOT t.name", !kf::same(source_name, target_name)));
  merges.push_back(upsert_where<Table>("excluded.name <> t.name", source_name != target_name));
  merges.push_back(upsert_where<Table>("excluded.x <> t.x OR excluded.y < t.y",
                                       source_x != target_x || source_y < target_y));
  merges.push_back(upsert_where<Table>("NOT (excluded.x = t.x AND excluded.name = t.name)",
                                       !(source_x == target_x && source_name == target_name)));
  merges.push_back(
      upsert_where<Table>("(excluded.x IS NULL OR t.y >= 1.5) AND NOT (excluded.name IS t.name)",
                          (kf::is_null(source_x) || target_y >= 1.5) && !kf::same(source_name, target_name)));
  merges.push_back(
      upsert_where<Table>("coalesce(excluded.x, t.x, 7) <= 2", kf::coalesce(source_x, target_x, 7) <= 2));
  merges.push_back(
      upsert_where<Table>("excluded.x + t.x - 1 > t.x * 2", source_x + target_x - 1 > target_x * 2));
  merges.push_back(upsert_where<Table>("excluded.name < 'b' OR NOT (t.y = excluded.x)",
                                       source_name < "b" || !(target_y == source_x)));
}

template <class Table>
void add_assignments(std::vector<Twice<Table>>& merges) {
  merges.push_back(upsert_setting<Table>("x = coalesce(excluded.x, t.x), y = t.y + excluded.y",
                                         target_x = kf::coalesce(source_x, target_x),
                                         target_y = target_y + source_y));
  merges.push_back(upsert_setting<Table>("x = t.x + excluded.x, y = t.x", target_x = target_x + source_x,
                                         target_y = target_x));
  merges.push_back(upsert_setting<Table>("name = coalesce(t.name, excluded.name, 'none'), x = 3, y = NULL",
                                         target_name = kf::coalesce(target_name, source_name, "none"),
                                         target_x = 3, target_y = std::optional<double>()));
}

template <class Table>
void add_partial_merges(std::vector<Twice<Table>>& merges) {
  merges.push_back(twice<Table>({insert_from_s("ON CONFLICT (id) DO NOTHING")},
                                [](auto merge) { return std::move(merge).when_not_matched().insert_all(); }));
  merges.push_back(twice<Table>(
      {"UPDATE t SET x = s.x, name = s.name FROM s WHERE s.id = t.id AND s.y > t.y"}, [](auto merge) {
        return std::move(merge)
            .when_matched(source_y > target_y)
            .update(target_x = source_x, target_name = source_name);
      }));
  merges.push_back(
      twice<Table>({"UPDATE t SET y = s.y FROM s WHERE s.name = t.name AND s.id = t.id"}, [](auto merge) {
        return std::move(merge)
            .on_condition(source_name == target_name)
            .when_matched()
            .update(target_y = source_y);
      }));
  merges.push_back(twice<Table>(
      {"DELETE FROM t WHERE id IN (SELECT id FROM s WHERE s.x IS t.x)"},
      [](auto merge) { return std::move(merge).when_matched(kf::same(source_x, target_x)).erase(); }));
}

template <class Table>
void add_syncs(std::vector<Twice<Table>>& merges) {
  const std::string left = " WHERE id NOT IN (SELECT id FROM s)";
  merges.push_back(twice<Table>(
      {"DELETE FROM t WHERE id IN (SELECT id FROM s WHERE op = 'D')", insert_from_s(set_all, "op <> 'D'")},
      [](auto merge) {
        return std::move(merge)
            .when_matched(deletes)
            .erase()
            .when_matched()
            .update_all()
            .when_not_matched(!deletes)
            .insert_all();
      }));
  merges.push_back(twice<Table>({"DELETE FROM t" + left, insert_from_s(set_all)}, [](auto merge) {
    return std::move(merge)
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .when_not_matched_by_source()
        .erase();
  }));
  merges.push_back(twice<Table>(
      {"DELETE FROM t" + left + " AND x > 1", "UPDATE t SET x = x + 1, y = x" + left + " AND x <= 1",
       insert_from_s("ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE t.y < 2")},
      [](auto merge) {
        return std::move(merge)
            .when_matched(target_y < 2)
            .update(target_name = source_name)
            .when_not_matched()
            .insert_all()
            .when_not_matched_by_source(target_x > 1)
            .erase()
            .when_not_matched_by_source(target_x <= 1)
            .update(target_x = target_x + 1, target_y = target_x);
      }));
}

template <class Table>
std::vector<Twice<Table>> all_merges() {
  std::vector<Twice<Table>> merges;
  add_conditions(merges);
  add_assignments(merges);
  add_partial_merges(merges);
  add_syncs(merges);
  return merges;
}

// --- Random batches

struct Step {
  std::size_t merge = 0;
  bool rewrite_unchanged = false;
  Batch batch;
};

std::ostream& operator<<(std::ostream& out, const Change& row) {
  return out << row.op << ' ' << row.id << " next " << row.next_id << " x " << text(row.x) << " y "
             << text(row.y) << " name " << row.name.value_or("NULL") << " code " << text(row.code);
}
std::ostream& operator<<(std::ostream& out, const Step& step) {
  out << "\n merge " << step.merge << (step.rewrite_unchanged ? " rewriting" : "");
  for (const Change& row : step.batch) out << "\n  " << row;
  return out;
}

constexpr int keys = 8;

rc::Gen<Change> changes() {
  return rc::gen::exec([] {
    constexpr const char* names[] = {"", "a", "b", "it's", "B"};
    const auto absent = [] { return *rc::gen::inRange(0, 5) == 0; };
    Change row;
    row.op = *rc::gen::elementOf(std::string("UUUD"));
    row.id = *rc::gen::inRange(0, keys);
    row.next_id = *rc::gen::inRange(0, 2 * keys);
    if (!absent()) row.x = *rc::gen::inRange(0, 5);
    if (!absent()) row.y = 0.75 * *rc::gen::inRange(0, 5);
    if (!absent())
      row.name = *rc::gen::elementOf(std::vector<std::string>(std::begin(names), std::end(names)));
    if (!absent()) row.code = *rc::gen::inRange(0, 3 * keys);
    return row;
  });
}

Batch distinct(const Batch& batch) {
  Batch out;
  for (const Change& row : batch) {
    const auto same_id = [&](const Change& other) { return other.id == row.id; };
    if (std::none_of(out.begin(), out.end(), same_id)) out.push_back(row);
  }
  return out;
}

// Of full size from the first: a smaller size would prefer the first merges.
rc::Gen<std::vector<Step>> programs(std::size_t merges) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::exec([merges] {
                           const auto length = *rc::gen::inRange<std::size_t>(1, 9);
                           std::vector<Step> steps(length);
                           for (Step& step : steps) {
                             step.merge = *rc::gen::inRange<std::size_t>(0, merges);
                             step.rewrite_unchanged = *rc::gen::inRange(0, 2) == 1;
                             step.batch =
                                 *rc::gen::container<Batch>(*rc::gen::inRange<std::size_t>(0, 9), changes());
                           }
                           return steps;
                         }));
}

}  // namespace

TEMPLATE_TEST_CASE("random merges do what SQLite does", "[sqlite]", Hashed, Ordered) {
  const auto merges = all_merges<TestType>();
  const std::string order = std::is_same_v<TestType, Ordered> ? "id" : "rowid";
  std::vector<int> effective(merges.size());
  keyfold_test::check_property("rows and counts agree", 1500, [&] {
    Database database;
    database.run("CREATE TABLE t (id INT UNIQUE, x INT, y REAL, name TEXT, code INT)");
    TestType table;
    for (const Step& step : *programs(merges.size())) {
      const Batch batch = distinct(step.batch);
      database.load(batch);
      std::size_t changed = 0;
      for (const std::string& sql : merges[step.merge].sql) {
        RC_ASSERT(database.run(sql));
        changed += database.changes();
      }
      const auto metrics = merges[step.merge].merge(table, batch, step.rewrite_unchanged).metrics();
      RC_ASSERT(lines(table) == database.rows(order));
      RC_ASSERT(metrics.affected() + metrics.unchanged == changed);
      if (step.rewrite_unchanged) RC_ASSERT(metrics.unchanged == 0U);
      effective[step.merge] += changed != 0 ? 1 : 0;
    }
  });
  if (keyfold_test::scaled(100) < 100) return;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    INFO(merges[i].sql.back());
    CHECK(effective[i] > 20);
  }
}

TEST_CASE("no-op suppression is WHERE ... IS NOT ... in SQLite", "[sqlite]") {
  keyfold_test::check_property("counts agree", 1000, [] {
    Database database;
    database.run("CREATE TABLE t (id INT UNIQUE, x INT, y REAL, name TEXT, code INT)");
    Hashed table;
    for (const Step& step : *programs(1)) {
      const Batch batch = distinct(step.batch);
      database.load(batch);
      database.run(insert_from_s(set_all + " WHERE NOT (excluded.x IS t.x AND excluded.y IS t.y AND "
                                           "excluded.name IS t.name AND excluded.code IS t.code)"));
      const auto result = table.upsert(batch);
      RC_ASSERT(result.metrics().affected() == database.changes());
      RC_ASSERT(result.changes().size() == database.changes());
      RC_ASSERT(lines(table) == database.rows("rowid"));
    }
  });
}

// SQLite takes the rows of a statement one after the other, so that of several with one key the last one
// wins.
TEST_CASE("duplicates under a policy end as in SQLite", "[sqlite]") {
  const bool newest = GENERATE(false, true);
  keyfold_test::check_property("rows and counts agree", 1000, [&] {
    Database database;
    database.run("CREATE TABLE t (id INT UNIQUE, x INT, y REAL, name TEXT, code INT)");
    Hashed table;
    for (const Step& step : *programs(1)) {
      Batch batch = step.batch;
      for (Change& row : batch) row.x = row.x.value_or(0);
      database.load(batch);
      database.run(insert_from_s(set_all + (newest ? " WHERE excluded.x >= t.x" : "")));
      const auto metrics = newest ? table.merge(batch)
                                        .duplicates(kf::latest_by<&Change::x>)
                                        .when_matched(source_x >= target_x)
                                        .update_all()
                                        .when_not_matched()
                                        .insert_all()
                                        .execute()
                                        .metrics()
                                  : table.merge(batch)
                                        .duplicates(kf::keep_last)
                                        .when_matched()
                                        .update_all()
                                        .when_not_matched()
                                        .insert_all()
                                        .execute()
                                        .metrics();
      Lines rows = lines(table);
      Lines expected = database.rows("id");
      std::sort(rows.begin(), rows.end());  // ids have one digit
      RC_ASSERT(rows == expected);
      RC_ASSERT(metrics.dropped_duplicates == batch.size() - distinct(batch).size());
      if (!newest)
        RC_ASSERT(metrics.affected() + metrics.unchanged + metrics.dropped_duplicates == database.changes());
    }
  });
}

namespace {

// Runs a statement with the unique indexes away, so that the final state only has to be legal. Returns
// whether it is.
bool run_deferred(Database& database, const std::vector<std::string>& indexes, const std::string& sql) {
  database.run("BEGIN");
  for (const std::string& column : indexes) database.run("DROP INDEX t_" + column);
  REQUIRE(database.run(sql));
  bool legal = true;
  for (const std::string& column : indexes) {
    legal = legal && database.run("CREATE UNIQUE INDEX t_" + column + " ON t (" + column + ")");
  }
  database.run(legal ? "COMMIT" : "ROLLBACK");
  return legal;
}

template <class Write>
bool succeeds(Write write) {
  try {
    write();
  } catch (const kf::DuplicateKey&) {
    return false;
  } catch (const kf::UniqueViolation&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a write is legal if SQLite can build its unique indexes afterwards", "[sqlite]") {
  int legal_writes = 0;
  int illegal_writes = 0;
  keyfold_test::check_property("both or neither", 1500, [&] {
    Database database;
    database.run("CREATE TABLE t (id INT, x INT, y REAL, name TEXT, code INT)");
    database.run("CREATE UNIQUE INDEX t_id ON t (id)");
    database.run("CREATE UNIQUE INDEX t_code ON t (code)");
    Unique table;
    for (const Step& step : *programs(4)) {
      const Batch batch = distinct(step.batch);
      database.load(batch);
      bool legal = false;
      bool done = false;
      switch (step.merge) {
        case 0:
          legal = run_deferred(database, {"code"}, insert_from_s(set_all));
          done = succeeds([&] { table.upsert(batch); });
          break;
        case 1:
          legal = run_deferred(database, {"id", "code"}, insert_from_s(""));
          done = succeeds([&] { table.append(batch); });
          break;
        case 2:
          legal = run_deferred(database, {"id"}, "UPDATE t SET id = s.next_id FROM s WHERE s.id = t.id");
          done = succeeds([&] {
            table.merge(batch)
                .when_matched()
                .update(kf::target<&Account::id> = kf::source<&Change::next_id>)
                .execute();
          });
          break;
        default:
          legal = run_deferred(database, {"id", "code"}, "UPDATE t SET id = 7 - id, code = 20 - code");
          done = succeeds([&] {
            table.merge(Batch())
                .when_not_matched_by_source()
                .update(kf::target<&Account::id> = 7 - kf::target<&Account::id>,
                        kf::target<&Account::code> = 20 - kf::target<&Account::code>)
                .execute();
          });
      }
      RC_ASSERT(done == legal);
      RC_ASSERT(lines(table) == database.rows("rowid"));
      ++(legal ? legal_writes : illegal_writes);
    }
  });
  if (keyfold_test::scaled(100) < 100) return;
  CHECK(legal_writes > 500);
  CHECK(illegal_writes > 500);
}
