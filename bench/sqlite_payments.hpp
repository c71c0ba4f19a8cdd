// The peer of a store: SQLite in a file, in WAL mode, one table of payments and no history.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rows.hpp"
#include "sqlite_history.hpp"

namespace keyfold_bench {

enum class Synchronous { normal, full };

class StoredPayments {
 public:
  StoredPayments(const std::filesystem::path& file, Synchronous synchronous)
      : database_(std::string("PRAGMA journal_mode=WAL; PRAGMA locking_mode=EXCLUSIVE;") +
                      (synchronous == Synchronous::full ? "PRAGMA synchronous=FULL;"
                                                        : "PRAGMA synchronous=NORMAL;") +
                      "CREATE TABLE IF NOT EXISTS payment"
                      "(id INTEGER PRIMARY KEY, updated_at INTEGER, amount REAL, status INTEGER);",
                  file.string()) {}

  /// One transaction. Returns how many rows it inserted or changed.
  std::int64_t upsert(const std::vector<Payment>& batch) {
    std::int64_t changed = 0;
    begin_.run();
    for (const Payment& row : batch) {
      upsert_.bind(1, row.id);
      upsert_.bind(2, row.updated_at);
      upsert_.bind(3, row.amount);
      upsert_.bind(4, std::int64_t{row.status});
      upsert_.run();
      changed += sqlite3_changes(database_);
    }
    commit_.run();
    return changed;
  }

  /// Reads all columns of all rows; returns how many there are.
  std::int64_t read_all() {
    std::int64_t rows = 0;
    volatile double sink = 0;
    while (scan_.step()) {
      sink = static_cast<double>(scan_.integer(0) + scan_.integer(1) + scan_.integer(3)) + scan_.number(2);
      ++rows;
    }
    scan_.reset();
    return rows;
  }

 private:
  SqliteDatabase database_;
  Statement begin_{database_, "BEGIN"};
  Statement commit_{database_, "COMMIT"};
  Statement upsert_{database_,
                    "INSERT INTO payment VALUES(?1, ?2, ?3, ?4) ON CONFLICT(id) DO UPDATE SET "
                    "updated_at = excluded.updated_at, amount = excluded.amount, status = excluded.status "
                    "WHERE updated_at IS NOT excluded.updated_at OR amount IS NOT excluded.amount "
                    "OR status IS NOT excluded.status"};
  Statement scan_{database_, "SELECT id, updated_at, amount, status FROM payment"};
};

}  // namespace keyfold_bench
