// The same damage done to the files of a keyfold store, of SQLite, LMDB and RocksDB: bits flipped, files cut,
// writers killed. Prints one row of a table for each.
//     build/release/bench/damage_compare [flips] [cuts] [kills]        default: 2000 500 200
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

#include <lmdb.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace {

namespace fs = std::filesystem;

struct Row {
  std::uint64_t key = 0;
  std::uint64_t number = 0;
  std::string text;
  bool operator==(const Row&) const = default;
};
BOOST_DESCRIBE_STRUCT(Row, (), (key, number, text))
using Rows = std::vector<Row>;

// Commit n writes five rows; after a hundred commits every row has been written.
constexpr std::uint64_t rows_per_commit = 5;
constexpr std::uint64_t keys = 500;
constexpr std::uint64_t commits = 200;
constexpr std::uint64_t checkpoint_after = 100;

Rows rows_of(std::uint64_t commit) {
  Rows rows;
  for (std::uint64_t i = 0; i < rows_per_commit; ++i) {
    const std::uint64_t key = (commit * rows_per_commit + i) % keys;
    rows.push_back({key, commit, std::string(20 + (commit + i) % 60, static_cast<char>('a' + commit % 26))});
  }
  return rows;
}

Rows state_after(std::uint64_t commit) {
  Rows rows;
  const std::uint64_t turn = keys / rows_per_commit;
  for (std::uint64_t i = commit > turn ? commit - turn + 1 : 1; i <= commit; ++i) {
    const Rows more = rows_of(i);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  std::ranges::sort(rows, {}, &Row::key);
  return rows;
}

// The number of the commit after which the rows were these; nothing if they never were.
std::optional<std::uint64_t> commit_of(const Rows& rows) {
  std::uint64_t last = 0;
  for (const Row& row : rows) last = std::max(last, row.number);
  if (last > commits * 100'000 || rows != state_after(last)) return {};
  return last;
}

// --- The databases: what fails throws

class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;
  virtual void open(const fs::path& directory) = 0;
  virtual void commit(const Rows& rows) = 0;  // durable when it returns
  virtual void checkpoint() {}
  virtual Rows read() = 0;  // all rows, in the order of their keys
  virtual void close() = 0;
};

class Keyfold final : public Database {
 public:
  void open(const fs::path& directory) override {
    keyfold::StoreOptions options;
    options.table.retention = keyfold::keep_last(commits);
    options.checkpoint_bytes = std::uint64_t{1} << 20U;
    store_.emplace(Store::open(directory, std::move(options)));
  }
  void commit(const Rows& rows) override { store_->upsert(rows); }
  void checkpoint() override { store_->checkpoint(); }
  Rows read() override { return {store_->table().begin(), store_->table().end()}; }
  void close() override { store_->close(); }

 private:
  using Store = keyfold::Store<keyfold::Table<Row, keyfold::OrderedKey<&Row::key>>>;
  std::optional<Store> store_;
};

class Sqlite final : public Database {
 public:
  explicit Sqlite(bool checks) : checks_(checks) {}
  void open(const fs::path& directory) override {
    require(sqlite3_open((directory / "data.db").c_str(), &database_));
    run("PRAGMA journal_mode = WAL");
    run("PRAGMA synchronous = FULL");
    run("CREATE TABLE IF NOT EXISTS r (key INTEGER PRIMARY KEY, number INTEGER NOT NULL, text TEXT NOT "
        "NULL)");
    if (!checks_) return;
    run("PRAGMA cell_size_check = ON");
    sqlite3_stmt* const check = prepare("PRAGMA integrity_check");
    if (sqlite3_step(check) != SQLITE_ROW || text_of(check, 0) != "ok") throw std::runtime_error("not ok");
    require(sqlite3_finalize(check));
  }
  void commit(const Rows& rows) override {
    run("BEGIN");
    sqlite3_stmt* const upsert = prepare("INSERT OR REPLACE INTO r VALUES (?, ?, ?)");
    for (const Row& row : rows) {
      sqlite3_bind_int64(upsert, 1, static_cast<sqlite3_int64>(row.key));
      sqlite3_bind_int64(upsert, 2, static_cast<sqlite3_int64>(row.number));
      sqlite3_bind_text(upsert, 3, row.text.data(), static_cast<int>(row.text.size()), SQLITE_TRANSIENT);
      sqlite3_step(upsert);
      require(sqlite3_reset(upsert));
    }
    require(sqlite3_finalize(upsert));
    run("COMMIT");
  }
  void checkpoint() override { run("PRAGMA wal_checkpoint(TRUNCATE)"); }
  Rows read() override {
    Rows rows;
    sqlite3_stmt* const select = prepare("SELECT key, number, text FROM r ORDER BY key");
    while (sqlite3_step(select) == SQLITE_ROW)
      rows.push_back({number_of(select, 0), number_of(select, 1), text_of(select, 2)});
    require(sqlite3_finalize(select));
    return rows;
  }
  void close() override { require(sqlite3_close(database_)); }

 private:
  void require(int result) const {
    if (result != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(database_));
  }
  void run(const char* sql) const { require(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr)); }
  sqlite3_stmt* prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    require(sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr));
    return statement;
  }
  static std::uint64_t number_of(sqlite3_stmt* statement, int column) {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement, column));
  }
  static std::string text_of(sqlite3_stmt* statement, int column) {
    const void* const text = sqlite3_column_text(statement, column);
    const int size = sqlite3_column_bytes(statement, column);
    return text == nullptr ? std::string()
                           : std::string(static_cast<const char*>(text), static_cast<std::size_t>(size));
  }

  bool checks_;
  sqlite3* database_ = nullptr;
};

// A row in LMDB and RocksDB: eight bytes of key, most significant first; the number, and the text.
std::string bytes_of(std::uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift & 0xFFU));
  return bytes;
}
std::uint64_t number_in(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes.substr(0, 8)) number = number << 8U | static_cast<unsigned char>(c);
  return number;
}
Row row_in(std::string_view key, std::string_view value) {
  if (key.size() != 8 || value.size() < 8) return {};
  return {number_in(key), number_in(value), std::string(value.substr(8))};
}

class Lmdb final : public Database {
 public:
  void open(const fs::path& directory) override {
    require(mdb_env_create(&environment_));
    require(mdb_env_set_mapsize(environment_, std::size_t{16} << 20U));
    require(mdb_env_open(environment_, directory.c_str(), 0, 0644));
    MDB_txn* const transaction = begin(0);
    require(mdb_dbi_open(transaction, nullptr, 0, &table_));
    require(mdb_txn_commit(transaction));
  }
  void commit(const Rows& rows) override {
    MDB_txn* const transaction = begin(0);
    for (const Row& row : rows) {
      std::string key = bytes_of(row.key);
      std::string value = bytes_of(row.number) + row.text;
      MDB_val key_bytes{key.size(), key.data()};
      MDB_val value_bytes{value.size(), value.data()};
      require(mdb_put(transaction, table_, &key_bytes, &value_bytes, 0));
    }
    require(mdb_txn_commit(transaction));
  }
  Rows read() override {
    Rows rows;
    MDB_cursor* cursor = nullptr;
    require(mdb_cursor_open(begin(MDB_RDONLY), table_, &cursor));
    MDB_val key{};
    MDB_val value{};
    int result = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; result == 0; result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
      rows.push_back(row_in(text_of(key), text_of(value)));
    if (result != MDB_NOTFOUND) require(result);
    return rows;
  }
  void close() override { mdb_env_close(environment_); }

 private:
  static void require(int result) {
    if (result != 0) throw std::runtime_error(mdb_strerror(result));
  }
  static std::string_view text_of(const MDB_val& value) {
    return {static_cast<const char*>(value.mv_data), value.mv_size};
  }
  MDB_txn* begin(unsigned flags) const {
    MDB_txn* transaction = nullptr;
    require(mdb_txn_begin(environment_, nullptr, flags, &transaction));
    return transaction;
  }

  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
};

class RocksDb final : public Database {
 public:
  explicit RocksDb(bool strict) : strict_(strict) {}
  void open(const fs::path& directory) override {
    rocksdb::Options options;
    options.create_if_missing = true;
    if (strict_) {
      options.paranoid_checks = true;
      options.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
      options.track_and_verify_wals_in_manifest = true;
    }
    rocksdb::DB* database = nullptr;
    require(rocksdb::DB::Open(options, directory.string(), &database));
    database_.reset(database);
    if (strict_) require(database_->VerifyChecksum());
  }
  void commit(const Rows& rows) override {
    rocksdb::WriteBatch batch;
    for (const Row& row : rows) require(batch.Put(bytes_of(row.key), bytes_of(row.number) + row.text));
    rocksdb::WriteOptions options;
    options.sync = true;
    require(database_->Write(options, &batch));
  }
  void checkpoint() override { require(database_->Flush({})); }
  Rows read() override {
    Rows rows;
    const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator({}));
    for (at->SeekToFirst(); at->Valid(); at->Next())
      rows.push_back(row_in(at->key().ToStringView(), at->value().ToStringView()));
    require(at->status());
    return rows;
  }
  void close() override { require(database_->Close()); }

 private:
  static void require(const rocksdb::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  bool strict_;
  std::unique_ptr<rocksdb::DB> database_;
};

struct Contender {
  std::string name;
  std::function<std::unique_ptr<Database>()> make;
};

template <class Type, class... Arguments>
Contender contender(std::string name, Arguments... arguments) {
  return {std::move(name), [=] { return std::make_unique<Type>(arguments...); }};
}

// --- Processes: a database is only ever opened in a child

enum Verdict : int { same, older, other, refused, found_reading, crash, hang, verdicts };

constexpr unsigned time_limit = 20;  // seconds
constexpr rlim_t memory_limit = rlim_t{4} << 30U;

template <class Work>
::pid_t in_child(Work work) {
  const ::pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child != 0) return child;
  ::alarm(time_limit);
  const rlimit limit{memory_limit, memory_limit};
  ::setrlimit(RLIMIT_DATA, &limit);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  static_cast<void>(!std::freopen("/dev/null", "w", stderr));
  int result = 100;
  try {
    result = work();
  } catch (...) {
  }
  ::_exit(result);
}

Verdict verdict_of(::pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status))
    return WEXITSTATUS(status) < crash ? static_cast<Verdict>(WEXITSTATUS(status)) : crash;
  return WTERMSIG(status) == SIGALRM ? hang : crash;
}

// Opens and reads everything; `found` gets the number of the commit that was found.
Verdict judge(const Contender& of, const fs::path& directory, std::uint64_t expected,
              std::uint64_t* found = nullptr) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  const ::pid_t child = in_child([&]() -> int {
    const auto database = of.make();
    try {
      database->open(directory);
    } catch (...) {
      return refused;
    }
    Rows rows;
    try {
      rows = database->read();
    } catch (...) {
      return found_reading;
    }
    const auto commit = commit_of(rows);
    if (!commit) return other;
    static_cast<void>(!::write(ends[1], &*commit, sizeof *commit));
    return *commit < expected ? older : *commit == expected ? same : other;
  });
  ::close(ends[1]);
  std::uint64_t number = 0;
  static_cast<void>(!::read(ends[0], &number, sizeof number));
  ::close(ends[0]);
  if (found != nullptr) *found = number;
  return verdict_of(child);
}

enum class End : bool { closed, killed };

void write_database(const Contender& of, const fs::path& directory, End end) {
  const ::pid_t child = in_child([&]() -> int {
    const auto database = of.make();
    database->open(directory);
    for (std::uint64_t commit = 1; commit <= commits; ++commit) {
      database->commit(rows_of(commit));
      if (commit == checkpoint_after) database->checkpoint();
    }
    if (end == End::killed) ::_exit(0);  // nothing of the database is run any more, as with SIGKILL
    database->close();
    return 0;
  });
  if (verdict_of(child) != same) throw std::runtime_error(of.name + " cannot be written");
}

// --- Damage

struct File {
  std::string name;
  std::string bytes;
};

std::vector<File> files_in(const fs::path& directory) {
  std::vector<File> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.push_back({entry.path().filename().string(), {std::istreambuf_iterator<char>(in), {}}});
  }
  std::ranges::sort(files, {}, &File::name);
  return files;
}

void put_files(const std::vector<File>& files, const fs::path& directory) {
  fs::remove_all(directory);
  fs::create_directory(directory);
  for (const File& file : files) std::ofstream(directory / file.name, std::ios::binary) << file.bytes;
}

struct Seen {
  std::array<int, verdicts> count{};
  std::uint64_t most_lost = 0;  // commits, by one damage that went unnoticed
};

class Damager {
 public:
  Damager(const Contender& of, fs::path scratch, std::vector<File> files)
      : of_(of), scratch_(std::move(scratch)), files_(std::move(files)) {
    for (const File& file : files_) size_ += file.bytes.size();
  }

  Seen flips(int count) {
    return repeat(count, [this](std::vector<File>& files) {
      auto [file, at] = somewhere(files);
      file->bytes[at] = static_cast<char>(file->bytes[at] ^ (1 << (random_() % 8)));
    });
  }
  Seen cuts(int count) {
    return repeat(count, [this](std::vector<File>& files) {
      auto [file, at] = somewhere(files);
      file->bytes.resize(at);
    });
  }
  std::size_t size() const { return size_; }

 private:
  template <class Damage>
  Seen repeat(int count, Damage damage) {
    Seen seen;
    for (int i = 0; i < count; ++i) {
      auto files = files_;
      damage(files);
      put_files(files, scratch_);
      std::uint64_t found = 0;
      const Verdict verdict = judge(of_, scratch_, commits, &found);
      ++seen.count[verdict];
      if (verdict == older) seen.most_lost = std::max(seen.most_lost, commits - found);
    }
    return seen;
  }

  // A byte of all files together, each as likely as any other.
  std::pair<File*, std::size_t> somewhere(std::vector<File>& files) {
    std::size_t at = random_() % size_;
    File* file = files.data();
    for (; at >= file->bytes.size(); ++file) at -= file->bytes.size();
    return {file, at};
  }

  const Contender& of_;
  fs::path scratch_;
  std::vector<File> files_;
  std::size_t size_ = 0;
  std::mt19937_64 random_{20261130};
};

void print(const std::string& name, const std::string& what, std::size_t size, const Seen& seen) {
  const auto& of = seen.count;
  std::string lost = std::to_string(of[older]);
  if (of[older] != 0) lost += " (" + std::to_string(seen.most_lost) + ")";
  std::printf("| %s | %zu KiB | %s | %d | %d | %d | %s | %d | %d | %d |\n", name.c_str(), size / 1024,
              what.c_str(), of[refused], of[found_reading], of[same], lost.c_str(), of[other], of[crash],
              of[hang]);
  std::fflush(stdout);
}

// --- Kills

void kill_writers(const Contender& of, const fs::path& directory, int rounds) {
  std::mt19937_64 random(5);
  std::uint64_t known = 0;
  std::array<int, verdicts> seen{};
  for (int round = 0; round < rounds; ++round) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
    const ::pid_t child = in_child([&]() -> int {
      const auto database = of.make();
      database->open(directory);
      for (std::uint64_t commit = known + 1;; ++commit) {
        database->commit(rows_of(commit));
        if (::write(ends[1], &commit, sizeof commit) != sizeof commit) return 1;
      }
    });
    ::close(ends[1]);
    std::uint64_t acknowledged = known;
    static_cast<void>(!::read(ends[0], &acknowledged, sizeof acknowledged));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (std::uint64_t n = 0; ::read(ends[0], &n, sizeof n) == sizeof n;) acknowledged = n;
    ::close(ends[0]);
    const Verdict verdict = judge(of, directory, acknowledged, &known);
    ++seen[verdict == other && known == acknowledged + 1 ? same : verdict];  // the one that was under way
    known = std::max(known, acknowledged);
  }
  std::printf("| %s | %d | %llu | %d | %d | %d | %d | %d |\n", of.name.c_str(), rounds,
              static_cast<unsigned long long>(known), seen[older], seen[refused] + seen[found_reading],
              seen[other], seen[crash], seen[hang]);
  std::fflush(stdout);
}

int number_at(int argc, char** argv, int at, int otherwise) {
  return argc > at ? std::atoi(argv[at]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) try {
  const int flips = number_at(argc, argv, 1, 2000);
  const int cuts = number_at(argc, argv, 2, 500);
  const int kills = number_at(argc, argv, 3, 200);
  const std::vector<Contender> contenders{contender<Keyfold>("keyfold"),
                                          contender<Sqlite>("SQLite", false),
                                          contender<Sqlite>("SQLite, integrity_check", true),
                                          contender<Lmdb>("LMDB"),
                                          contender<RocksDb>("RocksDB", false),
                                          contender<RocksDb>("RocksDB, strict", true)};
  std::printf("SQLite %s, LMDB %d.%d.%d, RocksDB %d.%d.%d\n", sqlite3_libversion(), MDB_VERSION_MAJOR,
              MDB_VERSION_MINOR, MDB_VERSION_PATCH, ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH);
  std::string name = (fs::temp_directory_path() / "keyfold-damage-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  const fs::path base = name;
  for (const End end : {End::closed, End::killed}) {
    std::printf(
        "\n%s\n\n| | size | damage | refused at opening | found in reading | same rows | an older state "
        "(commits lost at most) "
        "| other rows | crash | hang |\n|---|---|---|---|---|---|---|---|---|---|\n",
        end == End::closed ? "Closed cleanly:" : "Killed:");
    for (const Contender& of : contenders) {
      fs::create_directory(base / "intact");
      write_database(of, base / "intact", end);
      Damager damager(of, base / "damaged", files_in(base / "intact"));
      put_files(files_in(base / "intact"), base / "damaged");
      if (judge(of, base / "damaged", commits) != same)
        throw std::runtime_error(of.name + " does not read itself");
      print(of.name, std::to_string(flips) + " flips", damager.size(), damager.flips(flips));
      print(of.name, std::to_string(cuts) + " cuts", damager.size(), damager.cuts(cuts));
      fs::remove_all(base / "intact");
    }
  }
  std::printf(
      "\n| | writers killed | commits | lost acknowledged ones | refused | other rows | crash | hang |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const Contender& of : contenders) {
    fs::create_directory(base / "killed");
    kill_writers(of, base / "killed", kills);
    fs::remove_all(base / "killed");
  }
  fs::remove_all(base);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
