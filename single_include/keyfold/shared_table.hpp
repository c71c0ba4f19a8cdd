// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// shared_table
#ifndef KEYFOLD_SINGLE_SHARED_TABLE
#define KEYFOLD_SINGLE_SHARED_TABLE

// detail/core_access
#ifndef KEYFOLD_SINGLE_DETAIL_CORE_ACCESS
#define KEYFOLD_SINGLE_DETAIL_CORE_ACCESS

#include <memory>
#include <utility>

namespace keyfold::detail {

template <class Table>
struct core_of;
template <class Row, class KeySpec, class... Indexes>
struct core_of<Table<Row, KeySpec, Indexes...>> {
  using type = Core<Row, KeySpec, Indexes...>;
};

template <class T>
concept AnyTable = requires { typename core_of<T>::type; };

/// Reaches the state of a table, for what saves and loads it whole.
struct CoreAccess {
  template <class Table>
  using core_t = typename core_of<Table>::type;

  template <class Table>
  static const core_t<Table>& core(const Table& table) noexcept {
    return *table.core_;
  }
  template <class Table>
  static core_t<Table>& core(Table& table) noexcept {
    return *table.core_;
  }
  template <class Table>
  static Table table_of(std::unique_ptr<core_t<Table>> core) {
    return Table(std::move(core));
  }
};

}  // namespace keyfold::detail
#endif

// detail/shared_access
#ifndef KEYFOLD_SINGLE_DETAIL_SHARED_ACCESS
#define KEYFOLD_SINGLE_DETAIL_SHARED_ACCESS

// detail/phase_fair_lock
#ifndef KEYFOLD_SINGLE_DETAIL_PHASE_FAIR_LOCK
#define KEYFOLD_SINGLE_DETAIL_PHASE_FAIR_LOCK

#include <atomic>
#include <cstdint>

namespace keyfold::detail {

/// A reader-writer lock that starves nobody: a writer waits for the readers that are in, a reader for one
/// writer at most, however many come. Writers exclude each other elsewhere. After the phase-fair ticket lock
/// of Brandenburg and Anderson, "Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time
/// Systems" (2010); it spins for about as long as a commit is published or a step of a scan takes, and then
/// sleeps.
///
/// All operations are sequentially consistent: a reader that leaves must see the writer, or the writer that
/// it has left.
class PhaseFairLock {
 public:
  void lock_shared() noexcept {
    const std::uint32_t writer = entered_.fetch_add(one_reader) & writer_bits;
    if (writer == 0) return;
    wait_while(entered_, [&](std::uint32_t now) { return (now & writer_bits) == writer; });
  }

  void unlock_shared() noexcept {
    left_.fetch_add(one_reader);
    if ((entered_.load() & writer_present) != 0) left_.notify_one();
  }

  /// Requires: no other thread locks or has locked it but by lock_shared().
  void lock() noexcept {
    phase_ ^= writer_phase;
    const std::uint32_t readers = entered_.fetch_or(writer_present | phase_) & ~writer_bits;
    wait_while(left_, [&](std::uint32_t now) { return now != readers; });
  }

  void unlock() noexcept {
    entered_.fetch_and(~writer_bits);
    entered_.notify_all();
  }

 private:
  static constexpr std::uint32_t writer_present = 1;
  static constexpr std::uint32_t writer_phase = 2;  // tells a writer from the next one
  static constexpr std::uint32_t writer_bits = writer_present | writer_phase;
  static constexpr std::uint32_t one_reader = 4;  // the counts above the bits wrap around together
  static constexpr int spins = 6000;              // some 150 to 300 microseconds on x86

  // std::atomic::wait() alone would give the processor up after less than a microsecond.
  template <class Condition>
  static void wait_while(const std::atomic<std::uint32_t>& value, Condition holds) noexcept {
    for (int i = 0; i < spins; ++i) {
      if (!holds(value.load())) return;
      pause();
    }
    for (std::uint32_t now = value.load(); holds(now); now = value.load()) value.wait(now);
  }

  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  std::atomic<std::uint32_t> entered_{0};
  std::atomic<std::uint32_t> left_{0};
  std::uint32_t phase_ = 0;
};

}  // namespace keyfold::detail
#endif

#include <limits>
#include <mutex>
#include <set>

namespace keyfold::detail {

/// Who may do what with a shared table, and when. Writers take turns; the one whose turn it is reads beside
/// the readers, and shuts them out while it changes something. What a thread holds already it need not wait
/// for.
class SharedAccess final : public TableReaders {
  /// What a thread holds, innermost first.
  struct Held {
    const SharedAccess* access;
    bool turn;  // to write; else to read
    const Held* outer;
  };
  static inline constinit thread_local const Held* innermost = nullptr;

 public:
  /// While one lives, nothing changes.
  class Reading {
   public:
    explicit Reading(SharedAccess& access) noexcept : held_{&access, false, innermost} {
      if (access.held() == nullptr) {
        access.lock_.lock_shared();
        locked_ = &access;
      }
      innermost = &held_;
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
      innermost = held_.outer;
      if (locked_ != nullptr) locked_->lock_.unlock_shared();
    }

   private:
    Held held_;
    SharedAccess* locked_ = nullptr;  // unless the thread holds it already
  };

  /// While one lives, nobody else writes. Throws ReentrantWrite where the thread reads.
  class Turn {
   public:
    explicit Turn(SharedAccess& access) : held_{&access, true, innermost} {
      if (const Held* held = access.held()) {
        if (!held->turn) throw ReentrantWrite();
        return;
      }
      lock_ = std::unique_lock(access.turn_);
      innermost = &held_;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (lock_) innermost = held_.outer;
    }

   private:
    Held held_;
    std::unique_lock<std::mutex> lock_;
  };

  /// Keeps a version from expiring.
  class Pin {
   public:
    Pin(std::shared_ptr<SharedAccess> access, Version version) : access_(std::move(access)) {
      const std::lock_guard guard(access_->pins_mutex_);
      at_ = access_->pins_.insert(version);
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() {
      const std::lock_guard guard(access_->pins_mutex_);
      access_->pins_.erase(at_);
    }

    SharedAccess& access() const noexcept { return *access_; }

   private:
    std::shared_ptr<SharedAccess> access_;
    std::multiset<Version>::iterator at_;
  };

  void shut_out() noexcept override {
    if (shut_out_++ == 0) lock_.lock();
  }
  void let_in() noexcept override {
    if (--shut_out_ == 0) lock_.unlock();
  }

  void read(FunctionRef<void()> reading) override {
    const Reading scope(*this);
    reading();
  }

  Version oldest_read() const override {
    const std::lock_guard guard(pins_mutex_);
    return pins_.empty() ? std::numeric_limits<Version>::max() : *pins_.begin();
  }

 private:
  const Held* held() const noexcept {
    const Held* held = innermost;
    while (held != nullptr && held->access != this) held = held->outer;
    return held;
  }

  PhaseFairLock lock_;
  std::mutex turn_;
  int shut_out_ = 0;  // how often, by who has the turn
  mutable std::mutex pins_mutex_;
  std::multiset<Version> pins_;
};

}  // namespace keyfold::detail
#endif

// detail/step_scan
#ifndef KEYFOLD_SINGLE_DETAIL_STEP_SCAN
#define KEYFOLD_SINGLE_DETAIL_STEP_SCAN

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <queue>
#include <type_traits>
#include <vector>

/// Scanning one version in steps, between which the table may be written to. A step finds its place again,
/// reads what the commits since the last one have taken away, and goes on: the present rows as they were, and
/// between them the rows that are gone. The version must not expire meanwhile, so that what the log has of
/// later ones stays where it is.
namespace keyfold::detail {

/// Copies of rows; their memory is used again.
template <class Row>
class RowBuffer {
 public:
  void add(const Row& row) {
    if constexpr (std::is_copy_assignable_v<Row>) {
      if (size_ < rows_.size()) {
        rows_[size_++] = row;
        return;
      }
    }
    rows_.push_back(row);
    ++size_;
  }

  void clear() noexcept {
    if constexpr (!std::is_copy_assignable_v<Row>) rows_.clear();
    size_ = 0;
  }

  auto begin() const noexcept { return rows_.begin(); }
  auto end() const noexcept { return rows_.begin() + static_cast<std::ptrdiff_t>(size_); }

 private:
  std::vector<Row> rows_;
  std::size_t size_ = 0;
};

/// The entries of the versions after one, each once, those that are still to be made included.
template <class Row>
class EntriesAfter {
 public:
  explicit EntriesAfter(Version version) noexcept : after_(version), read_(version) {}

  /// The next one, or null if there is none yet.
  const LogEntry<Row>* next(const CommitLog<Row>& log) noexcept {
    while (true) {
      for (; entry_ == nullptr; entry_ = block_->first()) {
        if (!next_block(log)) return nullptr;
      }
      const LogEntry<Row>* entry = entry_;
      entry_ = block_->next(entry);
      if (entry->version() > after_) return entry;
    }
  }

 private:
  bool next_block(const CommitLog<Row>& log) noexcept {
    if (after_ + 1 < log.oldest && retired_ < log.retired.size()) {
      block_ = &log.retired[retired_++];
      return true;
    }
    const auto record = std::ranges::upper_bound(log.records, read_, {}, &CommitRecord<Row>::version);
    if (record == log.records.end()) return false;
    read_ = record->version;
    block_ = &record->block;
    return true;
  }

  Version after_;
  Version read_;
  std::size_t retired_ = 0;
  const LogBlock<Row>* block_ = nullptr;
  const LogEntry<Row>* entry_ = nullptr;  // of the block, the next one
};

/// A place among the present rows of a table in insertion order. Nothing leads from a number in that order to
/// its row, so the place is kept as the keys of rows: the one that it is at, and, should that one go, those
/// where earlier steps have ended.
template <class CoreType>
class PlaceInSequence {
 public:
  using Row = typename CoreType::RowType;

  explicit PlaceInSequence(const CoreType& core) : base_(core.rows.begin()), end_(core.next_order) {}

  /// Null behind the last row that can be part of the version.
  const Slot<Row>* slot(const CoreType& core) const noexcept {
    return next_ < end_ && base_ != core.rows.end() && base_->order < end_ ? &*base_ : nullptr;
  }

  /// Whether the row at the place has been passed already, before the place was found again further back.
  bool passed() const noexcept { return base_->order < next_; }
  bool passed(const RemovedRow<Row>& removed) const noexcept { return removed.order < next_; }

  bool comes_before(const RemovedRow<Row>& removed) const noexcept { return removed.order < base_->order; }

  static bool is_later(const RemovedRow<Row>& a, const RemovedRow<Row>& b) noexcept {
    return a.order > b.order;
  }

  void advance() noexcept {
    next_ = std::max(next_, base_->order + 1);
    ++base_;
  }

  void leave(const CoreType& core) {
    const Slot<Row>* slot = this->slot(core);
    if (slot == nullptr) {
      next_ = end_;
    } else if (ends_.empty() || ends_.back().order != slot->order) {
      ends_.push_back({slot->get(), slot->order});
    }
  }

  void find_again(const CoreType& core) {
    for (; !ends_.empty(); ends_.pop_back()) {
      const Slot<Row>* slot = core.find(CoreType::key_of(ends_.back().row));
      if (slot == nullptr || slot->order != ends_.back().order) continue;
      base_ = core.rows.iterator_to(*slot);
      return;
    }
    base_ = core.rows.begin();
  }

 private:
  struct End {
    Row row;
    std::uint64_t order;
  };

  typename CoreType::Rows::const_iterator base_;
  std::uint64_t end_;
  std::uint64_t next_ = 0;  // in the order of rows, behind all that have been passed
  std::vector<End> ends_;
};

/// The same in key order, where a key leads to its place.
template <class CoreType>
class PlaceInKeyOrder {
 public:
  using Row = typename CoreType::RowType;

  explicit PlaceInKeyOrder(const CoreType& core) : base_(core.rows.begin()) {}

  const Slot<Row>* slot(const CoreType& core) const noexcept {
    return base_ != core.rows.end() ? &*base_ : nullptr;
  }

  static bool passed() noexcept { return false; }
  bool passed(const RemovedRow<Row>& removed) const {
    return !last_.empty() && !less(last_.front(), *removed.row);
  }

  bool comes_before(const RemovedRow<Row>& removed) const { return less(*removed.row, base_->get()); }

  static bool is_later(const RemovedRow<Row>& a, const RemovedRow<Row>& b) { return less(*b.row, *a.row); }

  void advance() noexcept { ++base_; }

  void leave(const CoreType& core) {
    if (base_ == core.rows.begin()) return;
    last_.clear();
    last_.push_back(std::prev(base_)->get());
  }

  void find_again(const CoreType& core) {
    base_ =
        last_.empty() ? core.rows.begin() : core.rows.upper_bound(CoreType::key_of(last_.front()), KeyLess{});
  }

 private:
  static bool less(const Row& a, const Row& b) {
    return detail::less_values(CoreType::key_of(a), CoreType::key_of(b));
  }

  typename CoreType::Rows::const_iterator base_;
  std::vector<Row> last_;  // the row before the place, as it was when the last step ended, if there was one
};

template <class CoreType>
class StepScan {
 public:
  using Row = typename CoreType::RowType;
  using Removed = RemovedRow<Row>;

  StepScan(const CoreType& core, Version version)
      : version_(version), entries_(version), place_(core), placed_at_(core.version()) {}

  /// Adds the next rows. Looks at `most` rows at the most, and at as many changes; at more changes if they
  /// come faster than that. Returns whether there is more to come.
  bool step(const CoreType& core, std::size_t most, RowBuffer<Row>& rows) {
    patience_ += most;
    if (!read_entries(*core.log, patience_)) return true;
    patience_ = 0;
    if (placed_at_ != core.version()) place_.find_again(core);
    const bool more = take(core, most, rows);
    place_.leave(core);
    placed_at_ = core.version();
    return more;
  }

 private:
  // Returns whether all have been read.
  bool read_entries(const CommitLog<Row>& log, std::size_t most) {
    for (; most != 0; --most) {
      const LogEntry<Row>* entry = entries_.next(log);
      if (entry == nullptr) return true;
      if (entry->leaves_row()) continue;
      const Row* row = detail::life_at(&entry->before().get(), entry->older, version_);
      if (row == nullptr) continue;
      const Removed removed{row, entry->order()};
      if (!place_.passed(removed)) removed_.push(removed);
    }
    return false;
  }

  bool take(const CoreType& core, std::size_t most, RowBuffer<Row>& rows) {
    for (; most != 0; --most) {
      const Slot<Row>* slot = place_.slot(core);
      if (!removed_.empty() && (slot == nullptr || place_.comes_before(removed_.top()))) {
        rows.add(*removed_.top().row);
        removed_.pop();
      } else if (slot != nullptr) {
        const Row* row = place_.passed() ? nullptr : detail::life_at(*slot, version_);
        if (row != nullptr) rows.add(*row);
        place_.advance();
      } else {
        return false;
      }
    }
    return true;
  }

  using Place = std::conditional_t<CoreType::ordered, PlaceInKeyOrder<CoreType>, PlaceInSequence<CoreType>>;
  struct Later {
    bool operator()(const Removed& a, const Removed& b) const { return Place::is_later(a, b); }
  };

  Version version_;
  EntriesAfter<Row> entries_;
  Place place_;
  Version placed_at_;
  std::priority_queue<Removed, std::vector<Removed>, Later> removed_;  // still to come
  std::size_t patience_ = 0;
};

}  // namespace keyfold::detail
#endif

#include <functional>
#include <string>

// SharedTable: a table, or a store, for several threads.
namespace keyfold {

namespace detail {

/// The table in what is shared: a Table itself, or that of a Store.
template <class Shared>
struct shared_table {
  static_assert(
      AnyTable<Shared>,
      "keyfold: what is shared is a table or a store of one: SharedTable<Table<Row, Key<&Row::id>>>");
};
template <AnyTable Shared>
struct shared_table<Shared> {
  using type = Shared;
};
template <class Shared>
  requires(!AnyTable<Shared> && AnyTable<typename Shared::Table>)
struct shared_table<Shared> {
  using type = typename Shared::Table;
};
template <class Shared>
using shared_table_t = typename shared_table<Shared>::type;

template <class Callback, class Argument>
constexpr void check_shared_callback() {
  static_assert(
      std::is_invocable_v<Callback, Argument>,
      "keyfold: read() takes a callable with a const Table&, write() one with the Table& or Store&");
  if constexpr (std::is_invocable_v<Callback, Argument>) {
    using Result = std::invoke_result_t<Callback, Argument>;
    static_assert(!std::is_reference_v<Result> && !std::is_pointer_v<Result> &&
                      !std::is_base_of_v<ViewBase, Result>,
                  "keyfold: what read() or write() returns must not refer to the table, which others may "
                  "change by then; return a copy of the row or of the rows");
  }
}

}  // namespace detail

/// One version of a SharedTable, to be read as long as this lives, whatever is committed meanwhile: nothing
/// from its version on expires. Made by SharedTable::read_point(). Threads: any number may use one; each
/// member takes a lock of its own for as long as it needs. Cheap to copy.
///
/// When the table was destroyed or assigned to, every member but version() throws TableGone.
template <class Table>
class ReadPoint {
 public:
  using Row = typename Table::Row;

  /// How many rows for_each() looks at in one step.
  static constexpr std::size_t rows_per_step = 256;

  [[nodiscard]] Version version() const noexcept { return view_.version(); }

  [[nodiscard]] std::size_t size() const {
    const Reading reading(access());
    return view_.size();
  }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// A copy of the row that had this key, or nothing. As AsOfView::find().
  template <class... Values>
  [[nodiscard]] std::optional<Row> find(const Values&... key) const {
    const Reading reading(access());
    const Row* row = view_.find(key...);
    return row == nullptr ? std::nullopt : std::optional<Row>(*row);
  }

  /// A copy of the row that had this key. Throws KeyNotFound.
  template <class... Values>
  [[nodiscard]] Row at(const Values&... key) const {
    const Reading reading(access());
    return view_.at(key...);
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    const Reading reading(access());
    return view_.contains(key...);
  }

  /// Calls `visit(const Row&)` for each row in the order of the table. It copies some rows, lets go of the
  /// table, visits the copies, and so on; so a writer waits for one step at the most, and `visit` may take
  /// its time, and read and write the table. O(rows of the table + changes since the version until the end).
  template <class Visit>
  void for_each(Visit visit) const {
    static_assert(std::is_invocable_v<Visit&, const Row&>,
                  "keyfold: for_each() takes a callable with a const Row&");
    std::optional<Scan> scan;
    detail::RowBuffer<Row> rows;
    for (bool more = true; more;) {
      rows.clear();
      more = step(scan, rows);
      for (const Row& row : rows) static_cast<void>(std::invoke(visit, row));
    }
  }

  /// Copies of all rows, in order; taken as by for_each().
  [[nodiscard]] std::vector<Row> rows() const {
    std::vector<Row> copies;
    copies.reserve(size());
    for_each([&](const Row& row) { copies.push_back(row); });
    return copies;
  }

 private:
  template <class>
  friend class SharedTable;
  using Core = detail::CoreAccess::core_t<Table>;
  using Scan = detail::StepScan<Core>;
  using Reading = detail::SharedAccess::Reading;

  // Requires: somebody reads.
  ReadPoint(const std::shared_ptr<detail::SharedAccess>& access, const Table& table, AsOfView<Table> view)
      : view_(std::move(view)),
        core_(&detail::CoreAccess::core(table)),
        pin_(std::make_shared<const detail::SharedAccess::Pin>(access, view_.version())) {}

  detail::SharedAccess& access() const noexcept { return pin_->access(); }

  bool step(std::optional<Scan>& scan, detail::RowBuffer<Row>& rows) const {
    const Reading reading(access());
    static_cast<void>(view_.size());  // throws if the table is gone
    if (!scan) scan.emplace(*core_, version());
    return scan->step(*core_, rows_per_step, rows);
  }

  AsOfView<Table> view_;
  const Core* core_;
  std::shared_ptr<const detail::SharedAccess::Pin> pin_;
};

/// A Table, or a Store of one, for several threads: any number of readers beside one writer at a time. All
/// members may be called at once from any thread.
///
///     keyfold::SharedTable<Orders> orders;
///     orders.upsert(batch);                                                          // a writer
///     const auto paid = orders.read([](const Orders& table) { return count(table); });  // a reader
///
/// It has the writes of a table. They are planned beside the readers, who are kept out only while the commit
/// is published; so nobody sees half of one. Writers take turns. A writer waits for the readers that are
/// reading, and a reader for one commit at the most.
///
/// A thread that writes may read and write the table in what it is called back for, as with a Table:
/// conditions, source ranges and subscribers. Within read() it must not write: that throws ReentrantWrite. A
/// hash, a comparison or a copy of a row must not use the table.
template <class Shared>
class SharedTable
    : public Writes<SharedTable<Shared>, SharedTable<Shared>, typename detail::shared_table_t<Shared>::Row> {
  using Access = detail::SharedAccess;

 public:
  using Table = detail::shared_table_t<Shared>;
  using Row = typename Table::Row;
  using Result = MergeResult<Row>;

  /// An empty table.
  SharedTable()
    requires std::default_initializable<Shared>
      : SharedTable(Shared()) {}
  explicit SharedTable(Shared shared) : shared_(std::move(shared)) { join(); }
  SharedTable(const SharedTable&) = delete;
  SharedTable& operator=(const SharedTable&) = delete;

  /// Waits for the readers that are reading. Read points may outlive it; other members must be through.
  ~SharedTable() {
    const detail::WithoutReaders alone(access_.get());
    shared_.reset();
  }

  // --- Reading

  /// Calls `reader(const Table&)` while nothing changes, and returns what it returns: a value, no reference
  /// into the table. It sees one version. Writers wait for it: for what takes long there is read_point().
  template <class Reader>
  auto read(Reader&& reader) const {
    detail::check_shared_callback<Reader, const Table&>();
    const Access::Reading reading(*access_);
    return std::invoke(std::forward<Reader>(reader), table());
  }

  /// The present version, or an older one, to go on reading it while others write. Throws as Table::as_of().
  [[nodiscard]] ReadPoint<Table> read_point() const {
    const Access::Reading reading(*access_);
    return read_point(table().version());
  }
  template <class VersionTimeOrTag>
  [[nodiscard]] ReadPoint<Table> read_point(const VersionTimeOrTag& point) const {
    const Access::Reading reading(*access_);
    return ReadPoint<Table>(access_, table(), table().as_of(point));
  }

  [[nodiscard]] Version version() const {
    const Access::Reading reading(*access_);
    return table().version();
  }
  [[nodiscard]] std::size_t size() const {
    const Access::Reading reading(*access_);
    return table().size();
  }

  /// A copy of the row with this key, or nothing.
  template <class... Values>
  [[nodiscard]] std::optional<Row> find(const Values&... key) const {
    const Access::Reading reading(*access_);
    const Row* row = table().find(key...);
    return row == nullptr ? std::nullopt : std::optional<Row>(*row);
  }

  // --- Writing: see Writes. A result's changes() may be asked for at any time, by any thread.

  /// As those of Table.
  Writer<SharedTable, Row> metadata(std::string text) { return writer().metadata(std::move(text)); }
  Writer<SharedTable, Row> once(std::string app, std::uint64_t number) {
    return writer().once(std::move(app), number);
  }
  template <class Policy>
  auto duplicates(Policy policy) {
    return writer().duplicates(std::move(policy));
  }
  auto unchecked() { return writer().unchecked(); }

  /// Calls `body(Transaction<Table>&)` beside the readers, and commits what it has written as one version. If
  /// it throws, nothing happens. No other writer comes between, so there is no conflict.
  template <class Body>
  Result transaction(Body&& body) {
    static_assert(std::is_invocable_v<Body, Transaction<Table>&>,
                  "keyfold: transaction() takes a callable with a Transaction<Table>&, which it commits");
    const Access::Turn turn(*access_);
    auto transaction = shared_->transaction();
    static_cast<void>(std::invoke(std::forward<Body>(body), transaction));
    return transaction.commit();
  }

  /// Calls `writer(Shared&)` while nobody else reads or writes, and returns what it returns: a value, no
  /// reference into the table. For all that is no verb of Writes: tags, expiry, undo, constraints,
  /// subscribers, a checkpoint, another table in its place. It must not be moved from.
  template <class Writing>
  auto write(Writing&& writing) {
    detail::check_shared_callback<Writing, Shared&>();
    const Access::Turn turn(*access_);
    const detail::WithoutReaders alone(access_.get());
    const Joining joining(*this);
    return std::invoke(std::forward<Writing>(writing), *shared_);
  }

 private:
  template <class, class, class>
  friend class MergeBuilder;
  template <class, class, class>
  friend class ApplyChanges;
  template <class, class, class>
  friend class Writes;
  template <class, class, class>
  friend class Loads;

  // A table that was assigned to has another log. That of one that was not is left alone: results read it.
  struct Joining {
    explicit Joining(SharedTable& shared) noexcept : shared_(shared) {}
    Joining(const Joining&) = delete;
    Joining& operator=(const Joining&) = delete;
    ~Joining() { shared_.join(); }
    SharedTable& shared_;
  };
  void join() noexcept {
    if (core().log->readers != access_) core().log->readers = access_;
  }

  const Table& table() const noexcept {
    if constexpr (detail::AnyTable<Shared>) {
      return *shared_;
    } else {
      return shared_->table();
    }
  }
  Writer<SharedTable, Row> writer() { return Writer<SharedTable, Row>(*this); }

  // What the verbs of Writes are made of.

  using CoreType = detail::CoreAccess::core_t<Table>;
  CoreType& core() noexcept {
    if constexpr (detail::AnyTable<Shared>) {
      return detail::CoreAccess::core(*shared_);
    } else {
      return detail::CoreAccess::core(shared_->target());
    }
  }
  SharedTable& target() noexcept { return *this; }
  static detail::CommitNote note() noexcept { return {}; }

  Result write(detail::CommitNote note, detail::Fill<Row> fill) {
    const Access::Turn turn(*access_);
    return detail::commit(core(), std::move(note), fill);
  }
  ChangeSet<Row> preview_plan(detail::Fill<Row> fill) {
    const Access::Turn turn(*access_);
    return detail::preview(core(), fill);
  }

  std::shared_ptr<Access> access_ = std::make_shared<Access>();
  std::optional<Shared> shared_;
};

}  // namespace keyfold
#endif
