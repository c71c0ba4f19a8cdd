// SQLite as far as the benchmarks need it: statements, a database, and prepared UPSERTs of the rows.
#pragma once

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rows.hpp"

namespace keyfold_bench {

class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) : database_(database) {
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) fail();
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  void bind(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }
  void bind(int at, double value) { sqlite3_bind_double(statement_, at, value); }
  /// The text must outlive the next step.
  void bind(int at, std::string_view value) {
    sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }

  bool step() {
    const int result = sqlite3_step(statement_);
    if (result != SQLITE_ROW && result != SQLITE_DONE) fail();
    return result == SQLITE_ROW;
  }
  void reset() { sqlite3_reset(statement_); }
  void run() {
    step();
    reset();
  }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error(sqlite3_errmsg(database_)); }

  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
};

class SqliteDatabase {
 public:
  explicit SqliteDatabase(const std::string& schema, const std::string& file = ":memory:") {
    if (sqlite3_open(file.c_str(), &handle_) != SQLITE_OK) throw std::runtime_error("cannot open SQLite");
    if (sqlite3_exec(handle_, schema.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(handle_));
  }
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;
  ~SqliteDatabase() { sqlite3_close(handle_); }

  operator sqlite3*() const noexcept { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

/// How rows are kept. The first column is the key.
template <class Row>
struct SqlOf;

template <>
struct SqlOf<Payment> {
  static constexpr const char* table = "payment";
  static constexpr const char* create =
      "CREATE TABLE IF NOT EXISTS payment"
      "(id INTEGER PRIMARY KEY, updated_at INTEGER, amount REAL, status INTEGER);";
  static constexpr std::array columns{"id", "updated_at", "amount", "status"};

  static void bind(Statement& statement, const Payment& row) {
    statement.bind(1, row.id);
    statement.bind(2, row.updated_at);
    statement.bind(3, row.amount);
    statement.bind(4, std::int64_t{row.status});
  }
};

template <>
struct SqlOf<Product> {
  static constexpr const char* table = "product";
  static constexpr const char* create =
      "CREATE TABLE IF NOT EXISTS product"
      "(sku TEXT PRIMARY KEY, title TEXT, category TEXT, price REAL, updated_at INTEGER) WITHOUT ROWID;";
  static constexpr std::array columns{"sku", "title", "category", "price", "updated_at"};

  static void bind(Statement& statement, const Product& row) {
    statement.bind(1, row.sku);
    statement.bind(2, row.title);
    statement.bind(3, row.category);
    statement.bind(4, row.price);
    statement.bind(5, row.updated_at);
  }
};

/// Prepared UPSERTs that leave rows alone which would not change.
template <class Row>
class SqliteUpserts {
 public:
  explicit SqliteUpserts(sqlite3* database)
      : database_(database),
        begin_(database, "BEGIN"),
        commit_(database, "COMMIT"),
        upsert_(database, sql()) {}

  /// One transaction, which `first` begins where it is given. Returns how many rows it inserted or changed.
  std::int64_t run(const std::vector<Row>& batch, Statement* first = nullptr) {
    std::int64_t changed = 0;
    begin_.run();
    if (first != nullptr) first->run();
    for (const Row& row : batch) changed += run_one(row);
    commit_.run();
    return changed;
  }

  /// A transaction of its own.
  std::int64_t run_one(const Row& row) {
    SqlOf<Row>::bind(upsert_, row);
    upsert_.run();
    return sqlite3_changes(database_);
  }

 private:
  static std::string sql() {
    std::string values;
    std::string assignments;
    std::string differences;
    for (const std::string column : SqlOf<Row>::columns) {
      values += values.empty() ? "?" : ", ?";
      if (column == SqlOf<Row>::columns.front()) continue;
      assignments += (assignments.empty() ? "" : ", ") + column + " = excluded." + column;
      differences += (differences.empty() ? "" : " OR ") + column + " IS NOT excluded." + column;
    }
    return std::string("INSERT INTO ") + SqlOf<Row>::table + " VALUES(" + values + ") ON CONFLICT(" +
           SqlOf<Row>::columns.front() + ") DO UPDATE SET " + assignments + " WHERE " + differences;
  }

  sqlite3* database_;
  Statement begin_;
  Statement commit_;
  Statement upsert_;
};

}  // namespace keyfold_bench
