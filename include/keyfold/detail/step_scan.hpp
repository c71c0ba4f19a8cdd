// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/log.hpp>
#include <keyfold/detail/time_travel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
      const Row* row = detail::life_at(&entry->before().get(), entry->older(), version_);
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
