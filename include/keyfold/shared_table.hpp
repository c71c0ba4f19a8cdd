// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core_access.hpp>
#include <keyfold/detail/range_v3.hpp>
#include <keyfold/detail/shared_access.hpp>
#include <keyfold/detail/step_scan.hpp>
#include <keyfold/table.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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
