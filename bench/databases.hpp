// Databases as engines. Each batch is one transaction that is as atomic as keyfold's; nothing waits for a
// disk: SQLite and RocksDB are in memory, LMDB in a file that is not synced.
//
// append() is not measured and goes in the order of keys, as one would load them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "engines.hpp"
#include "rows.hpp"
#ifdef KEYFOLD_BENCH_SQLITE
#include "sqlite.hpp"
#endif
#ifdef KEYFOLD_BENCH_LMDB
#include <lmdb.h>
#endif
#ifdef KEYFOLD_BENCH_ROCKSDB
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#endif

namespace keyfold_bench {

template <class Row>
std::vector<Row> in_key_order(std::vector<Row> rows) {
  std::ranges::sort(rows, {}, KeyOf<Row>::member);
  return rows;
}

#ifdef KEYFOLD_BENCH_SQLITE
template <class Row>
class Sqlite {
 public:
  void append(const std::vector<Row>& rows) { upserts_.run(in_key_order(rows)); }
  std::int64_t upsert(const std::vector<Row>& batch) { return upserts_.run(batch); }
  std::int64_t upsert(const Row& row) { return upserts_.run_one(row); }

  std::size_t size() const {
    Statement count(database_, std::string("SELECT count(*) FROM ") + SqlOf<Row>::table);
    count.step();
    return static_cast<std::size_t>(count.integer(0));
  }

 private:
  SqliteDatabase database_{SqlOf<Row>::create};
  SqliteUpserts<Row> upserts_{database_};
};
#endif

// --- Rows as bytes, for what stores bytes

template <class Number>
  requires std::is_arithmetic_v<Number>
void put_bytes(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}
inline void put_bytes(std::string& bytes, const std::string& text) {
  put_bytes(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

inline void put_values(std::string& bytes, const Payment& row) {
  put_bytes(bytes, row.updated_at);
  put_bytes(bytes, row.amount);
  put_bytes(bytes, row.status);
}
inline void put_values(std::string& bytes, const Product& row) {
  put_bytes(bytes, row.title);
  put_bytes(bytes, row.category);
  put_bytes(bytes, row.price);
  put_bytes(bytes, row.updated_at);
}

inline std::string_view key_bytes(const Payment& row) {
  return {reinterpret_cast<const char*>(&row.id), sizeof row.id};
}
inline std::string_view key_bytes(const Product& row) { return row.sku; }

#ifdef KEYFOLD_BENCH_LMDB
constexpr std::size_t lmdb_bytes = std::size_t{4} << 30U;

/// In memory if there is room: a file mapped from a full /dev/shm would end the process.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code none;
    const bool roomy = std::filesystem::space(memory, none).available >= lmdb_bytes && !none;
    std::string name = (roomy ? memory : std::filesystem::temp_directory_path()) / "keyfold_bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

template <class Row>
class Lmdb {
 public:
  Lmdb() {
    require(mdb_env_create(&environment_));
    require(mdb_env_set_mapsize(environment_, lmdb_bytes));
    require(mdb_env_open(environment_, directory_.path().c_str(), MDB_NOSYNC | MDB_WRITEMAP, 0600));
    MDB_txn* const transaction = begin();
    require(mdb_dbi_open(transaction, nullptr, std::is_same_v<Row, Payment> ? MDB_INTEGERKEY : 0U, &table_));
    require(mdb_txn_commit(transaction));
  }
  Lmdb(const Lmdb&) = delete;
  Lmdb& operator=(const Lmdb&) = delete;
  ~Lmdb() { mdb_env_close(environment_); }

  void append(const std::vector<Row>& rows) { upsert(in_key_order(rows)); }

  std::size_t upsert(const std::vector<Row>& batch) {
    MDB_txn* const transaction = begin();
    std::size_t affected = 0;
    for (const Row& row : batch) affected += upsert_in(transaction, row);
    require(mdb_txn_commit(transaction));
    return affected;
  }
  std::size_t upsert(const Row& row) {
    MDB_txn* const transaction = begin();
    const std::size_t affected = upsert_in(transaction, row);
    require(mdb_txn_commit(transaction));
    return affected;
  }

  std::size_t size() const {
    MDB_stat statistics{};
    require(mdb_env_stat(environment_, &statistics));
    return statistics.ms_entries;
  }

 private:
  static void require(int result) {
    if (result != 0) throw std::runtime_error(mdb_strerror(result));
  }
  MDB_txn* begin() const {
    MDB_txn* transaction = nullptr;
    require(mdb_txn_begin(environment_, nullptr, 0, &transaction));
    return transaction;
  }
  std::size_t upsert_in(MDB_txn* transaction, const Row& row) {
    const std::string_view name = key_bytes(row);
    MDB_val key{name.size(), const_cast<char*>(name.data())};
    bytes_.clear();
    put_values(bytes_, row);
    MDB_val stored{};
    const int found = mdb_get(transaction, table_, &key, &stored);
    if (found == 0 && bytes_ == std::string_view(static_cast<const char*>(stored.mv_data), stored.mv_size))
      return 0;
    if (found != 0 && found != MDB_NOTFOUND) require(found);
    MDB_val value{bytes_.size(), bytes_.data()};
    require(mdb_put(transaction, table_, &key, &value, 0));
    return 1;
  }

  TemporaryDirectory directory_;
  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
  std::string bytes_;
};
#endif

#ifdef KEYFOLD_BENCH_ROCKSDB
/// Without a log of its own, and with a filter and a cache that hold the table.
template <class Row>
class Rocksdb {
 public:
  Rocksdb() : memory_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.block_cache = rocksdb::NewLRUCache(std::size_t{2} << 30U);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = memory_.get();
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* database = nullptr;
    require(rocksdb::DB::Open(options, "/keyfold_bench", &database));
    database_.reset(database);
    write_.disableWAL = true;
  }

  void append(const std::vector<Row>& rows) {
    rocksdb::WriteBatch changes;
    for (const Row& row : in_key_order(rows)) {
      put(changes, row);
      if (changes.Count() == 100'000) write(changes);
    }
    write(changes);
    require(database_->Flush({}));
    require(database_->CompactRange({}, nullptr, nullptr));
  }

  std::size_t upsert(const std::vector<Row>& batch) {
    rocksdb::WriteBatch changes;
    for (const Row& row : batch) put_if_changed(changes, row);
    return write(changes);
  }
  std::size_t upsert(const Row& row) {
    rocksdb::WriteBatch changes;
    put_if_changed(changes, row);
    return write(changes);
  }

  std::size_t size() const {
    const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator({}));
    std::size_t count = 0;
    for (at->SeekToFirst(); at->Valid(); at->Next()) ++count;
    return count;
  }

 private:
  static void require(const rocksdb::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }
  static rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

  void put(rocksdb::WriteBatch& changes, const Row& row) {
    bytes_.clear();
    put_values(bytes_, row);
    require(changes.Put(slice(key_bytes(row)), bytes_));
  }
  void put_if_changed(rocksdb::WriteBatch& changes, const Row& row) {
    rocksdb::PinnableSlice stored;
    const auto found = database_->Get({}, database_->DefaultColumnFamily(), slice(key_bytes(row)), &stored);
    if (!found.ok() && !found.IsNotFound()) require(found);
    bytes_.clear();
    put_values(bytes_, row);
    if (found.ok() && stored == rocksdb::Slice(bytes_)) return;
    require(changes.Put(slice(key_bytes(row)), bytes_));
  }
  std::size_t write(rocksdb::WriteBatch& changes) {
    const auto count = static_cast<std::size_t>(changes.Count());
    require(database_->Write(write_, &changes));
    changes.Clear();
    return count;
  }

  std::unique_ptr<rocksdb::Env> memory_;
  std::unique_ptr<rocksdb::DB> database_;
  rocksdb::WriteOptions write_;
  std::string bytes_;
};
#endif

}  // namespace keyfold_bench
