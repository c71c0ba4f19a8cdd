// The peer: SQLite in memory, with a history that triggers fill.
//
// `history` has the row as each version left it (or that it was gone), clustered by (id, version): a lookup
// as of a version is one search in it, whether the row has changed since or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rows.hpp"
#include "sqlite.hpp"

namespace keyfold_bench {

/// Payments, one transaction a commit: as atomic as keyfold's, if nothing else.
class SqlitePayments {
 public:
  explicit SqlitePayments(bool with_history)
      : database_(std::string(SqlOf<Payment>::create) + tables + (with_history ? triggers : "")) {}

  /// Returns how many rows changed.
  std::int64_t upsert(const std::vector<Payment>& batch) { return upserts_.run(batch, &next_version_); }

  /// The sum of `updated_at` over the rows with these keys, now and as of a version.
  std::int64_t find(const std::vector<std::int64_t>& keys) { return sum_of(find_, keys); }
  std::int64_t find_as_of(const std::vector<std::int64_t>& keys, std::uint64_t version) {
    find_as_of_.bind(2, static_cast<std::int64_t>(version));
    return sum_of(find_as_of_, keys);
  }

  /// The same over all rows.
  std::int64_t scan() { return sum_of(scan_); }
  std::int64_t scan_as_of(std::uint64_t version) {
    scan_as_of_.bind(1, static_cast<std::int64_t>(version));
    return sum_of(scan_as_of_);
  }

 private:
  static constexpr const char* tables =
      "CREATE TABLE latest(version INTEGER);"
      "INSERT INTO latest VALUES(0);"
      "CREATE TABLE history(id INTEGER, version INTEGER, gone INTEGER, updated_at INTEGER, amount REAL, "
      "status INTEGER, PRIMARY KEY(id, version)) WITHOUT ROWID;";
  static constexpr const char* triggers =
      "CREATE TRIGGER inserted AFTER INSERT ON payment BEGIN INSERT INTO history VALUES"
      "(new.id, (SELECT version FROM latest), 0, new.updated_at, new.amount, new.status); END;"
      "CREATE TRIGGER updated AFTER UPDATE ON payment BEGIN INSERT INTO history VALUES"
      "(new.id, (SELECT version FROM latest), 0, new.updated_at, new.amount, new.status); END;"
      "CREATE TRIGGER deleted AFTER DELETE ON payment BEGIN INSERT INTO history VALUES"
      "(old.id, (SELECT version FROM latest), 1, NULL, NULL, NULL); END;";

  // Every column is fetched, as a row of keyfold has every field.
  static std::int64_t take(const Statement& row) {
    sqlite_sink = row.number(1) + static_cast<double>(row.integer(2));
    return row.integer(0);
  }
  static std::int64_t sum_of(Statement& find, const std::vector<std::int64_t>& keys) {
    std::int64_t sum = 0;
    for (const std::int64_t key : keys) {
      find.bind(1, key);
      if (find.step()) sum += take(find);
      find.reset();
    }
    return sum;
  }
  static std::int64_t sum_of(Statement& scan) {
    std::int64_t sum = 0;
    while (scan.step()) sum += take(scan);
    scan.reset();
    return sum;
  }

  inline static volatile double sqlite_sink = 0;

  SqliteDatabase database_;
  Statement next_version_{database_, "UPDATE latest SET version = version + 1"};
  SqliteUpserts<Payment> upserts_{database_};
  Statement find_{database_, "SELECT updated_at, amount, status FROM payment WHERE id = ?1"};
  Statement find_as_of_{database_,
                        "SELECT updated_at, amount, status, gone FROM history "
                        "WHERE id = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1"};
  Statement scan_{database_, "SELECT updated_at, amount, status FROM payment"};
  // The columns beside max() are those of the row that has the maximum: SQLite promises that.
  Statement scan_as_of_{database_,
                        "SELECT updated_at, amount, status, gone, max(version) FROM history "
                        "WHERE version <= ?1 GROUP BY id HAVING NOT gone"};
};

}  // namespace keyfold_bench
