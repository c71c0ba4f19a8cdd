// Faults in save() and load(): at every call to the operating system, and at every allocation and operation
// of the rows.
#include <keyfold/snapshot.hpp>

#include <filesystem>
#include <fstream>
#include <set>

#include "support/fault_check.hpp"
#include "support/property.hpp"
#include "support/snapshot_bytes.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

// The values of the fault tests are no columns that can be saved; as a user's they write themselves.
namespace keyfold_test {
template <class Archive, bool nothrow_moves>
void serialize(Archive& archive, Item<Fragile<nothrow_moves>>& row, const unsigned) {
  using Value = Fragile<nothrow_moves>;
  Numbers numbers;
  if constexpr (Archive::is_saving::value) numbers = numbers_of(row);
  archive & numbers.id & numbers.code & numbers.group & numbers.rank & numbers.amount;
  if constexpr (Archive::is_loading::value) row = item_of<Value>(numbers);
}
}  // namespace keyfold_test

namespace {

template <class Value>
using TableOf = kf::Table<Item<Value>, kf::Key<&Item<Value>::id>, kf::OrderedBy<&Item<Value>::rank>,
                          kf::HashedBy<&Item<Value>::group>, kf::UniqueBy<&Item<Value>::code>>;

/// Rows of all sorts of pasts.
template <class Value>
TableOf<Value> some_table() {
  kf::TableOptions options;
  options.clock = [] { return kf::Timestamp(std::chrono::microseconds(1000)); };
  TableOf<Value> table(options);
  const auto row = [](int id, int code) { return item_of<Value>({id, code, id % 2, 9 - id, id}); };
  table.append(std::vector<Item<Value>>{row(1, 101), row(2, -1), row(3, 103)});
  table.tag("first", 1);
  table.erase(value_of<Value>(1));
  table.upsert(row(3, 104));
  table.once("app", 5).insert(row(4, 105));
  table.insert(row(1, 106));
  table.erase(value_of<Value>(2));
  return table;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// --- The operating system

enum class Damage { error, short_count, interrupted };

/// Passes calls on, but for the nth, or for all from the nth on.
class FailingCalls {
 public:
  explicit FailingCalls(int nth = 0, bool all_after = false, Damage damage = Damage::error)
      : nth_(nth), all_after_(all_after), damage_(damage) {}

  int open(const char* path, int flags, mode_t mode) {
    return fails("open") ? -1 : calls_.open(path, flags, mode);
  }
  ssize_t write(int file, const void* from, std::size_t count) {
    if (!fails("write")) return calls_.write(file, from, count);
    return damage_ == Damage::short_count ? calls_.write(file, from, count / 2 + count % 2) : -1;
  }
  ssize_t read(int file, void* to, std::size_t count) {
    if (!fails("read")) return calls_.read(file, to, count);
    return damage_ == Damage::short_count ? calls_.read(file, to, count / 2 + count % 2) : -1;
  }
  int stat(int file, struct stat* to) { return fails("stat") ? -1 : calls_.stat(file, to); }
  int chmod(int file, mode_t mode) { return fails("chmod") ? -1 : calls_.chmod(file, mode); }
  int sync(int file) { return fails("fsync") ? -1 : calls_.sync(file); }
  int close(int file) {
    const bool failed = fails("close");
    const int result = calls_.close(file);
    return failed ? (errno = EIO, -1) : result;
  }
  int rename(const char* from, const char* to) { return fails("rename") ? -1 : calls_.rename(from, to); }
  int unlink(const char* path) { return calls_.unlink(path); }

  int count() const { return count_; }
  const std::string& failed() const { return failed_; }

 private:
  bool fails(const char* call) {
    ++count_;
    const bool is_transfer = call == std::string_view("read") || call == std::string_view("write");
    if (damage_ != Damage::error && !is_transfer) return false;
    const bool failing = nth_ != 0 && (count_ == nth_ || (all_after_ && count_ > nth_));
    if (!failing) return false;
    if (failed_.empty()) failed_ = call;
    errno = damage_ == Damage::interrupted ? EINTR : call == std::string_view("write") ? ENOSPC : EIO;
    return true;
  }

  kf::detail::PosixCalls calls_;
  int nth_;
  bool all_after_;
  Damage damage_;
  int count_ = 0;
  std::string failed_;
};

class Directory {
 public:
  Directory()
      : path_(std::filesystem::temp_directory_path() / ("keyfold-faults-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::string file() const { return (path_ / "table.kfs").string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

struct Tick {
  std::int64_t id = 0;
  std::int64_t value = 0;
};
BOOST_DESCRIBE_STRUCT(Tick, (), (id, value))
using Ticks = kf::Table<Tick, kf::Key<&Tick::id>>;

/// Of several chunks.
Ticks ticks(std::int64_t value) {
  Ticks table;
  std::vector<Tick> rows;
  for (std::int64_t i = 0; i < 20000; ++i) rows.push_back({i, value});
  table.append(rows);
  return table;
}

}  // namespace

TEST_CASE("a save that fails at any call leaves the old file, and nothing beside it") {
  const Directory directory;
  const Ticks old = ticks(1);
  const Ticks next = ticks(2);
  kf::save(old, directory.file());
  const std::string before = content_of(directory.file());
  const std::size_t files_open = open_files();
  FailingCalls counting;
  kf::detail::save_to(counting, next, directory.file(), {});
  const std::string after = content_of(directory.file());
  REQUIRE(counting.count() > 10);

  std::set<std::string> failed;
  for (const bool all_after : {false, true}) {
    for (int nth = 1; nth <= counting.count(); ++nth) {
      kf::save(old, directory.file());
      FailingCalls calls(nth, all_after);
      bool thrown = false;
      bool in_place = false;
      try {
        kf::detail::save_to(calls, next, directory.file(), {});
      } catch (const kf::IoError& error) {
        thrown = true;
        const bool is_temporary = error.file.find(".tmp-") != std::string::npos;
        in_place = error.file == directory.file().substr(0, directory.file().rfind('/'));
        CHECK((is_temporary || in_place));
        CHECK(error.code.value() == (error.operation == "write" ? ENOSPC : EIO));
      }
      failed.insert(calls.failed());
      INFO("call " << nth << ": " << calls.failed() << (all_after ? ", and all after it" : ""));
      // What only looks at the old file's permissions may fail.
      if (!thrown) CHECK(calls.failed() != "write");
      CHECK(content_of(directory.file()) == (!thrown || in_place ? after : before));
      CHECK(directory.files() == 1);
      CHECK(open_files() == files_open);
    }
  }
  CHECK(failed == std::set<std::string>{"open", "write", "stat", "chmod", "fsync", "close", "rename"});
}

TEST_CASE("short and interrupted calls are gone on with") {
  const Directory directory;
  const Ticks table = ticks(3);
  kf::save(table, directory.file());
  const std::string bytes = content_of(directory.file());
  for (const Damage damage : {Damage::short_count, Damage::interrupted}) {
    for (int nth = 1; nth <= 12; ++nth) {
      FailingCalls calls(nth, damage == Damage::short_count, damage);
      kf::detail::save_to(calls, table, directory.file(), {});
      CHECK(content_of(directory.file()) == bytes);
    }
    for (int nth = 3; nth <= 6; ++nth) {  // after open and stat
      FailingCalls calls(nth, false, damage);
      CHECK(kf::detail::load_from_file<Ticks>(calls, directory.file(), {}).size() == 20000);
      CHECK(calls.failed() == "read");
    }
  }
}

TEST_CASE("a load that fails at any call is an IoError, and nothing stays open") {
  const Directory directory;
  kf::save(ticks(1), directory.file());
  const std::size_t files_open = open_files();
  FailingCalls counting;
  static_cast<void>(kf::detail::load_from_file<Ticks>(counting, directory.file(), {}));
  std::set<std::string> failed;
  for (int nth = 1; nth < counting.count(); ++nth) {  // the last one closes the file, which loses nothing
    FailingCalls calls(nth);
    CHECK_THROWS_AS(kf::detail::load_from_file<Ticks>(calls, directory.file(), {}), kf::IoError);
    failed.insert(calls.failed());
    CHECK(open_files() == files_open);
  }
  CHECK(failed == std::set<std::string>{"open", "stat", "read"});
}

// --- Memory and rows

namespace {

/// Fails each event of `action` in turn; `action` must be without effect when it fails.
template <class Action>
void fail_everywhere(std::uint64_t least_events, Action action) {
  Faults::count();
  action();
  const std::uint64_t events = Faults::disarm();
  REQUIRE(events > least_events);
  const auto stride = static_cast<std::uint64_t>(100 / scaled(100));
  std::uint64_t thrown = 0;
  for (std::uint64_t nth = 1; nth <= events; nth += std::max<std::uint64_t>(stride, 1)) {
    for (const FaultMode mode : {FaultMode::single, FaultMode::from_then_on}) {
      const std::ptrdiff_t values = live_values<Plain>() + live_values<ThrowingMoves>();
      const std::ptrdiff_t blocks = Faults::live_blocks;
      bool failed = false;
      Faults::arm(nth, mode);
      try {
        action();
      } catch (const InjectedFault&) {
        failed = true;
      } catch (const InjectedBadAlloc&) {
        failed = true;
      }
      Faults::disarm();
      thrown += failed ? 1U : 0U;
      if (Faults::live_blocks != blocks) FAIL("memory leaked at event " << nth);
      if (live_values<Plain>() + live_values<ThrowingMoves>() != values)
        FAIL("values leaked at event " << nth);
    }
  }
  CHECK(thrown > 0);
}

template <class Value>
void check_faults() {
  const TableOf<Value> table = some_table<Value>();
  const std::string bytes = saved(table);
  const State state = state_of(table);
  const std::ptrdiff_t misused = misused_values<Value>();

  REQUIRE(state_of(loaded<TableOf<Value>>(bytes)) == state);
  fail_everywhere(50, [&] { static_cast<void>(loaded<TableOf<Value>>(bytes)); });

  const auto save_somewhere = [&] {
    std::size_t size = 0;
    kf::detail::write_snapshot(kf::detail::CoreAccess::core(table),
                               [&](std::span<const std::byte> part) { size += part.size(); });
    if (size != bytes.size()) FAIL("something else was saved");
  };
  fail_everywhere(8, save_somewhere);
  CHECK(state_of(table) == state);
  CHECK(saved(table) == bytes);
  CHECK(misused_values<Value>() == misused);
}

}  // namespace

TEST_CASE("a fault in the rows or in memory lets nothing leak from a load, and nothing change by a save") {
  check_faults<Plain>();
  check_faults<ThrowingMoves>();
}
