// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/workspace.hpp>
#include <keyfold/error.hpp>
#include <keyfold/writer.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace keyfold {

/// Several writes that become one version, or nothing. Made by `table.transaction()`.
///
///     auto tx = orders.transaction();
///     tx.merge(changes).when_matched().update_all().execute();
///     tx.erase(7);
///     tx.commit();
///
/// It has the writes of a table. What it reads is the table with its own writes; nobody else sees them before
/// commit(). A write that throws leaves the transaction as it was before that write, to go on with or to give
/// up. Without commit() nothing happens.
///
/// Transactions do not wait for one another: if the table has got a new version since the transaction began,
/// or a load of change events that made none but is remembered, every member throws TransactionConflict;
/// TableGone, if the table is no more; TransactionEnded after commit() or rollback(). Threads: all but
/// commit() and preview() only reads the table, so several transactions may be prepared at once; each has one
/// thread at a time.
///
/// Costs memory and a copy for each row that it looks for or writes; a write that must see all rows (such as
/// one with when_not_matched_by_source) copies them all.
template <class Table>
class [[nodiscard]] Transaction : public Writes<Transaction<Table>, Transaction<Table>, typename Table::Row> {
  using Base = typename Table::CoreType;
  using Parts = typename Base::KeyParts;

 public:
  using Row = typename Table::Row;
  using Result = MergeResult<Row>;
  class Iterator;

  using value_type = Row;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using const_reference = const Row&;
  using iterator = Iterator;
  using const_iterator = Iterator;

  Transaction(Base& base, detail::CommitNote note)
      : base_(&base),
        log_(base.log),
        started_(base.version()),
        note_(std::move(note)),
        workspace_(std::make_unique<CoreType>(base)) {}

  // --- Reading: the table with the writes of this transaction. Pointers, references and iterators are valid
  // --- until its next write.

  [[nodiscard]] size_type size() const { return open().size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// As Table::find().
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... key) const {
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: find() needs one value for each part of the key");
    return open().peek(detail::lookup_key<Parts, Row>(key...));
  }

  /// The row with this key. Throws KeyNotFound.
  template <class... Values>
  const Row& at(const Values&... key) const {
    if (const Row* row = find(key...)) return *row;
    throw KeyNotFound(detail::key_text(detail::lookup_key<Parts, Row>(key...)));
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    return find(key...) != nullptr;
  }

  /// Rows in the order that the table will have. The first call after a write is O(rows of the table).
  [[nodiscard]] Iterator begin() const { return Iterator(rows().begin()); }
  [[nodiscard]] Iterator end() const { return Iterator(rows().end()); }

  // --- Writing: see Writes. Each result tells what that write did; its version() is that of the table, which
  // --- has none of it yet.

  /// Adds metadata to a write; all of it goes to the commit. As Table::metadata().
  Writer<Transaction, Row> metadata(std::string text) {
    return Writer<Transaction, Row>(*this, {}).metadata(std::move(text));
  }

  /// Numbers a write; the number is recorded by the commit. As Table::once().
  Writer<Transaction, Row> once(std::string app, std::uint64_t number) {
    return Writer<Transaction, Row>(*this, {}).once(std::move(app), number);
  }

  /// As Table::duplicates() and Table::unchecked(), for one write.
  template <class Policy>
  auto duplicates(Policy policy) {
    return Writer<Transaction, Row>(*this).duplicates(std::move(policy));
  }
  auto unchecked() { return Writer<Transaction, Row>(*this).unchecked(); }

  // --- The end

  using Writes<Transaction, Transaction, Row>::preview;

  /// What commit() would change.
  [[nodiscard]] ChangeSet<Row> preview() const {
    open();
    return detail::preview(*base_, [this](auto& plan) { workspace_->plan_commit(plan); });
  }

  /// Makes one version of all writes, and ends the transaction. Counts and changes are those of the net
  /// effect: a row that was inserted and deleted again is in neither. Strong guarantee: whatever throws, the
  /// table is as before, and the transaction still open.
  Result commit() {
    open();
    detail::CommitNote note = note_;
    note.operation = "TRANSACTION";
    note.parameters = detail::SharedText(workspace_->statements());
    if (std::string metadata = workspace_->metadata(); !metadata.empty())
      note.metadata =
          detail::SharedText(note.metadata ? *note.metadata + "; " + metadata : std::move(metadata));
    for (detail::AppNumber& number : workspace_->new_numbers()) add_number(note.once, std::move(number));
    Result result =
        detail::commit(*base_, std::move(note), [this](auto& plan) { workspace_->plan_commit(plan); });
    workspace_.reset();
    return result;
  }

  /// Gives all writes up, and ends the transaction. Destroying it does the same.
  void rollback() {
    if (workspace_ == nullptr) throw TransactionEnded();
    workspace_.reset();
  }

 private:
  template <class, class, class>
  friend class MergeBuilder;
  template <class, class, class>
  friend class ApplyChanges;
  template <class, class, class>
  friend class Writes;

  // What the verbs of Writes are made of.

  using CoreType = detail::Workspace<Base>;
  CoreType& core() { return open(); }
  Transaction& target() noexcept { return *this; }
  static detail::CommitNote note() noexcept { return {}; }

  Result write(detail::CommitNote&& note, detail::Fill<Row> fill) {
    rows_.clear();
    detail::Written written = detail::write(open(), std::move(note), fill);
    open();  // a condition may have written to the table
    written.version = started_;
    written.committed = false;
    return Result(written, workspace_->log);
  }
  ChangeSet<Row> preview_plan(detail::Fill<Row> fill) { return detail::preview(open(), fill); }

  static void add_number(std::vector<detail::AppNumber>& numbers, detail::AppNumber added) {
    const auto same = std::find_if(numbers.begin(), numbers.end(),
                                   [&](const detail::AppNumber& number) { return number.app == added.app; });
    if (same == numbers.end()) {
      numbers.push_back(std::move(added));
    } else {
      same->number = std::max(same->number, added.number);
    }
  }

  CoreType& open() const {
    if (workspace_ == nullptr) throw TransactionEnded();
    if (log_.expired()) throw TableGone("transaction", "commit it while its table lives");
    if (base_->version() != started_ || workspace_->sequences_outdated())
      throw TransactionConflict(started_, base_->version());
    return *workspace_;
  }

  const std::vector<const Row*>& rows() const {
    const CoreType& workspace = open();
    if (rows_.empty()) rows_ = workspace.in_order();
    return rows_;
  }

  Base* base_;
  std::weak_ptr<const detail::CommitLog<Row>> log_;  // tells whether the table is still there
  Version started_;
  detail::CommitNote note_;
  std::unique_ptr<CoreType> workspace_;   // null once the transaction has ended
  mutable std::vector<const Row*> rows_;  // in order; empty when they must be looked for again
};

/// Forward iterator over the rows that a transaction sees.
template <class Table>
class Transaction<Table>::Iterator {
  using Base = typename std::vector<const Row*>::const_iterator;

 public:
  using value_type = Row;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using pointer = const Row*;
  using iterator_category = std::forward_iterator_tag;

  Iterator() = default;
  explicit Iterator(Base base) noexcept : base_(base) {}

  reference operator*() const noexcept { return **base_; }
  pointer operator->() const noexcept { return *base_; }

  Iterator& operator++() noexcept {
    ++base_;
    return *this;
  }
  Iterator operator++(int) noexcept { return Iterator(base_++); }

  friend bool operator==(const Iterator&, const Iterator&) = default;

 private:
  Base base_{};
};

}  // namespace keyfold
