// The peer of a store: SQLite in a file, in WAL mode, one table of payments and no history.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rows.hpp"
#include "sqlite.hpp"

namespace keyfold_bench {

enum class Synchronous { normal, full };

class StoredPayments {
 public:
  StoredPayments(const std::filesystem::path& file, Synchronous synchronous)
      : database_(std::string("PRAGMA journal_mode=WAL; PRAGMA locking_mode=EXCLUSIVE;") +
                      (synchronous == Synchronous::full ? "PRAGMA synchronous=FULL;"
                                                        : "PRAGMA synchronous=NORMAL;") +
                      SqlOf<Payment>::create,
                  file.string()) {}

  /// One transaction. Returns how many rows it inserted or changed.
  std::int64_t upsert(const std::vector<Payment>& batch) { return upserts_.run(batch); }

  /// Reads all columns of all rows; returns how many there are.
  std::int64_t read_all() {
    std::int64_t rows = 0;
    [[maybe_unused]] volatile double sink = 0;
    while (scan_.step()) {
      sink = static_cast<double>(scan_.integer(0) + scan_.integer(1) + scan_.integer(3)) + scan_.number(2);
      ++rows;
    }
    scan_.reset();
    return rows;
  }

 private:
  SqliteDatabase database_;
  SqliteUpserts<Payment> upserts_{database_};
  Statement scan_{database_, "SELECT id, updated_at, amount, status FROM payment"};
};

}  // namespace keyfold_bench
