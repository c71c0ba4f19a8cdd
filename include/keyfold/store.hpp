// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core_access.hpp>
#include <keyfold/detail/disk.hpp>
#include <keyfold/detail/store_state.hpp>
#include <keyfold/durability.hpp>
#include <keyfold/snapshot_error.hpp>
#include <keyfold/storage_error.hpp>
#include <keyfold/table.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Store: a table that is kept in a directory.
namespace keyfold {

namespace detail {

template <class TableType>
struct stored_row {
  static_assert(AnyTable<TableType>, "keyfold: a store is of a table: Store<Table<Row, Key<&Row::id>>>");
  using type = void;
};
template <AnyTable TableType>
struct stored_row<TableType> {
  using type = typename TableType::Row;
  static_assert(require_row<type>());
};

}  // namespace detail

struct StoreOptions {
  /// Of the table. Retention applies to what is stored, too; the clock gives the times of commits.
  TableOptions table{};

  Durability durability = durability::every_commit;

  /// A checkpoint is taken by itself once the log is larger than this, and than the last checkpoint.
  std::uint64_t checkpoint_bytes = std::uint64_t{64} << 20U;
};

/// How a store was found when it was opened.
struct Recovery {
  bool clean = false;            ///< it was closed, and its files were vouched for
  std::uint64_t replayed = 0;    ///< commits, tags, expiries, loads without a version that the log had
  std::uint64_t torn_bytes = 0;  ///< cut from the end of the log: of a commit that was never acknowledged
  std::string torn_file{};       ///< where
  std::uint64_t torn_offset = 0;
};

/// What verify() has read.
struct Verified {
  Version version = 0;
  std::uint64_t snapshot_bytes = 0;
  std::uint64_t log_bytes = 0;
};

/// What salvage() has made.
struct Salvaged {
  Version version = 0;                     ///< that the new store has
  std::optional<CorruptJournal> damage{};  ///< why it has no later one; nothing if the log was intact
  std::uint64_t left_behind = 0;  ///< later commits, tags and expiries that are known to have been made
};

/// A table on disk: a directory with a snapshot and a log of commits. What is promised in which mode stands
/// in docs/durability.md. Threads: as for a table; a store is written to by one thread at a time.
///
///     auto store = keyfold::Store<Orders>::open("orders.kf");
///     store.upsert(rows);                            // on the medium when it returns
///     const Order* order = store.table().find(7);
///
/// It has the writes of a table. A write that throws IoError is not made, neither in memory nor on disk; one
/// that throws CommitInDoubt is not in memory and may be on disk, and StoreFailed is thrown from then on,
/// while reading goes on. Constraints and subscriptions are the program's: give them again after opening.
/// What apply_changes() remembers is kept; it throws UnsavableSequence where that has a type that files
/// cannot have.
template <class TableType, class Disk = detail::PosixDisk>
class Store : public Writes<Store<TableType, Disk>, TableType, typename detail::stored_row<TableType>::type> {
  using Core = std::remove_cvref_t<decltype(detail::CoreAccess::core(std::declval<TableType&>()))>;
  using Checks = detail::FrameChecks;

 public:
  using Table = TableType;
  using Row = typename Table::Row;
  using Result = MergeResult<Row>;

  /// Opens a directory, or makes one with an empty table. Throws StoreLocked; IoError; CorruptJournal or
  /// CorruptSnapshot for damage that no crash can do, SchemaMismatch, UnsupportedFormat: then nothing is
  /// changed on disk. O(rows + history + log).
  [[nodiscard]] static Store open(const std::filesystem::path& directory, const StoreOptions& options = {}) {
    return Store(Disk(directory), options);
  }

  /// As open(), on a disk of any kind.
  explicit Store(Disk disk, const StoreOptions& options = {})
      : state_(std::make_unique<State>(std::move(disk), options)) {}

  /// Closes the store; should that fail, it is opened as after a crash. close() tells.
  ~Store() = default;
  Store(Store&&) noexcept = default;
  Store& operator=(Store&&) noexcept = default;

  /// The table, to read. It can be read after close() and after a failure, too.
  [[nodiscard]] const Table& table() const noexcept { return state_->table; }

  [[nodiscard]] const Recovery& recovered() const noexcept { return state_->recovery; }

  // --- Writing beside the verbs of Writes: as for Table

  auto metadata(std::string text) { return writer().metadata(std::move(text)); }
  auto once(std::string app, std::uint64_t number) { return writer().once(std::move(app), number); }
  template <class Policy>
  auto duplicates(Policy policy) {
    return writer().duplicates(std::move(policy));
  }
  auto unchecked() { return writer().unchecked(); }
  [[nodiscard]] Transaction<Table> transaction() { return state_->table.transaction(); }

  template <class Point>
  Result restore(const Point& version_time_or_tag) {
    return state_->table.restore(version_time_or_tag);
  }
  Result undo(Version version) { return state_->table.undo(version); }
  void tag(std::string name, Version version) { state_->table.tag(std::move(name), version); }
  void untag(std::string_view name) { state_->table.untag(name); }
  template <class Rule>
  std::vector<Version> expire(const Rule& rule) {
    return state_->table.expire(rule);
  }

  template <class Condition>
  void require(std::string name, Condition condition) {
    state_->table.require(std::move(name), std::move(condition));
  }
  void unrequire(std::string_view name) { state_->table.unrequire(name); }
  template <class... Arguments>
  [[nodiscard]] Subscription subscribe(Arguments&&... callback) {
    return state_->table.subscribe(std::forward<Arguments>(callback)...);
  }

  // --- Durability

  /// Brings all commits to the medium. Throws IoError: they are in doubt; StoreFailed.
  void sync() { state_->journal.sync(); }

  /// The last version that a cut of power cannot reach.
  [[nodiscard]] Version durable_version() const { return state_->journal.durable_version(); }

  /// Writes the table as it is, with its history, and begins a new log: the next opening is quicker. Throws
  /// IoError; StoreFailed; Error for a row that could not be read again, and what rows throw. Whatever
  /// throws, nothing is lost. O(rows + history).
  void checkpoint() { state_->journal.checkpoint(); }

  /// Why the last checkpoint that the store took by itself has failed; null if it has not. It is tried again
  /// when the log has doubled.
  [[nodiscard]] std::exception_ptr checkpoint_error() const noexcept {
    return state_->journal.checkpoint_error();
  }

  /// Reads the files again, all of them, and rebuilds the table from them. Throws as open(); CorruptJournal
  /// if they do not lead to the present version. O(rows + history + log).
  Verified verify() const { return state_->verify(); }

  /// Ends writing, vouches for the files, so that from then on each flipped bit is detected, and unlocks the
  /// directory. Throws IoError, StoreFailed; the store is then opened as after a crash. The second time
  /// nothing happens.
  void close() { state_->close(); }

  /// Copies what can be read of a damaged store into a new one, in a directory that has none: the snapshot,
  /// and the commits up to the damage. Those behind it cannot be used, since they build on what is missing.
  /// Throws StoreLocked; IoError; CorruptJournal or CorruptSnapshot if the snapshot itself is damaged.
  static Salvaged salvage(const std::filesystem::path& damaged, const std::filesystem::path& fresh) {
    if (!std::filesystem::exists(damaged))
      throw IoError("open", damaged.string(), std::make_error_code(std::errc::no_such_file_or_directory));
    return salvage(Disk(damaged), Disk(fresh));
  }
  static Salvaged salvage(Disk damaged, Disk fresh);

 private:
  template <class, class, class>
  friend class Writes;
  template <class, class, class>
  friend class Loads;
  template <class>
  friend class SharedTable;

  struct State;

  // What the verbs of Writes are made of.

  Table& target() noexcept { return state_->table; }
  static detail::CommitNote note() noexcept { return {}; }
  Writer<Table, Row> writer() { return Writer<Table, Row>(state_->table); }

  std::unique_ptr<State> state_;
};

template <class TableType, class Disk>
struct Store<TableType, Disk>::State {
  using StoreJournal = detail::StoreJournal<Core, Disk, Checks>;

  State(Disk used_disk, const StoreOptions& options)
      : State(std::move(used_disk), options, detail::JournalImage()) {}

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    detail::CoreAccess::core(table).journal = nullptr;
    try {
      close();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the next opening finds what there is
    }
  }

  void close() {
    if (!lock) return;
    const auto released = std::exchange(lock, std::nullopt);
    journal.close();
  }

  Verified verify() const {
    const auto image = detail::read_journal<Checks>(disk);
    const auto restored =
        detail::Restorer<Core, Disk>(disk, image, detail::OnDamage::fail).run(TableOptions{});
    if (restored.core->version() != table.version() || image.torn_bytes() != 0)
      throw CorruptJournal(disk.path(detail::log_name(image.generation)), image.end,
                           "it ends at version " + std::to_string(restored.core->version()) +
                               " and the table is at " + std::to_string(table.version()));
    return {restored.core->version(), image.snapshot_file.size(), image.log_file.size()};
  }

  Disk disk;
  std::optional<typename Disk::Lock> lock;  // until it is closed
  Recovery recovery;
  bool same_schema = true;  // the program's and that of the log
  Table table;              // sets the two above
  StoreJournal journal;     // uses the disk and the table

 private:
  // The image is needed while the members are made, and not afterwards.
  State(Disk used_disk, const StoreOptions& options, detail::JournalImage&& image)
      : disk(std::move(used_disk)),
        lock(disk.lock("LOCK")),
        table(read(image, options.table)),
        journal(detail::CoreAccess::core(table), disk, image, options.durability, options.checkpoint_bytes) {
    if (!same_schema) journal.checkpoint();  // a log has rows of one schema only
    detail::CoreAccess::core(table).journal = &journal;
  }

  Table read(detail::JournalImage& image, const TableOptions& options) {
    image = detail::read_journal<Checks>(disk);
    if (image.generation == 0) return Table(options);
    auto restored = detail::Restorer<Core, Disk>(disk, image, detail::OnDamage::fail).run(options);
    recovery.clean = image.clean;
    recovery.replayed = restored.records;
    recovery.torn_bytes = image.torn_bytes();
    if (recovery.torn_bytes != 0) {
      recovery.torn_file = disk.path(detail::log_name(image.generation));
      recovery.torn_offset = image.end;
    }
    same_schema = restored.same_schema;
    return detail::CoreAccess::table_of<Table>(std::move(restored.core));
  }
};

template <class TableType, class Disk>
Salvaged Store<TableType, Disk>::salvage(Disk damaged, Disk fresh) {
  const auto lock = damaged.lock("LOCK");
  const auto fresh_lock = fresh.lock("LOCK");
  const auto image = detail::read_journal<Checks>(damaged, detail::OnDamage::salvage);
  if (image.generation == 0)
    throw IoError("salvage", damaged.path(detail::snapshot_name(1)),
                  std::make_error_code(std::errc::no_such_file_or_directory));
  const auto nothing = detail::read_journal<Checks>(fresh);
  if (nothing.generation != 0)
    throw IoError("salvage into", fresh.path(detail::snapshot_name(nothing.generation)),
                  std::make_error_code(std::errc::file_exists));
  auto restored = detail::Restorer<Core, Disk>(damaged, image, detail::OnDamage::salvage).run(TableOptions{});
  detail::Journal<Disk, Checks> journal(fresh, nothing);
  journal.checkpoint([&](auto& sink) { detail::write_state(*restored.core, sink); });
  journal.close();
  const bool by_replay = restored.damage.has_value();
  const std::uint64_t unused = by_replay ? image.last - image.header.base - restored.records : 0;
  return {restored.core->version(), by_replay ? restored.damage : image.damage, image.frames_lost + unused};
}

}  // namespace keyfold
