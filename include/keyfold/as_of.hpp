// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/range_v3.hpp>
#include <keyfold/detail/time_travel.hpp>
#include <keyfold/error.hpp>
#include <keyfold/fwd.hpp>

#include <cstddef>
#include <iterator>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

namespace keyfold {

/// A table as of one version: read-only, without secondary indexes, copying no row. `Table::as_of()` makes
/// it.
///
/// The view stays valid while the table lives, whatever is written meanwhile. When its version expires every
/// member but version() throws VersionExpired; when the table is destroyed or assigned to, TableGone.
/// References, pointers and iterators got from it stay valid until the next write to the table or expire().
/// Threads: as const operations of the table.
template <class Table>
class AsOfView : public detail::ViewBase {
  using Core = typename Table::Core;
  using Parts = typename Core::KeyParts;

 public:
  using Row = typename Table::Row;
  class Iterator;

  using value_type = Row;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using const_reference = const Row&;
  using iterator = Iterator;
  using const_iterator = Iterator;

  AsOfView(const Core& core, Version version) noexcept : core_(&core), log_(core.log), version_(version) {}

  [[nodiscard]] Version version() const noexcept { return version_; }

  /// O(log n) in the number of commits.
  [[nodiscard]] size_type size() const {
    require_readable();
    return core_->log->table_size(version_);
  }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// The row that had this key, or null. O(1) on average, plus a step for each change of the key since.
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... key) const {
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: find() needs one value for each part of the key");
    require_readable();
    return detail::row_at(*core_, detail::lookup_key<Parts, Row>(key...), version_);
  }

  /// The row that had this key. Throws KeyNotFound.
  template <class... Values>
  const Row& at(const Values&... key) const {
    if (const Row* row = find(key...)) return *row;
    throw KeyNotFound(detail::key_text(detail::lookup_key<Parts, Row>(key...)));
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    return find(key...) != nullptr;
  }

  /// Rows in the order the table had them. O(rows of the table + changes since).
  [[nodiscard]] Iterator begin() const {
    require_readable();
    return Iterator(*core_, version_);
  }
  [[nodiscard]] Iterator end() const {
    require_readable();
    return Iterator(*core_);
  }

  /// A table of its own with these rows, at its version 1, or 0 if there are none; with the options of the
  /// table.
  [[nodiscard]] Table to_table() const {
    require_readable();
    Table copy(core_->options);
    if (!empty()) copy.append(*this);
    return copy;
  }

 private:
  void require_readable() const {
    if (log_.expired())
      throw TableGone("view", "read it while its table lives, or copy its rows before that");
    core_->log->require_readable(version_);
  }

  const Core* core_;
  std::weak_ptr<const detail::CommitLog<Row>> log_;  // tells whether the table is still there
  Version version_;
};

/// Forward iterator: the present rows in their order, as they were, and between them the rows that are gone.
template <class Table>
class AsOfView<Table>::Iterator {
  using Base = typename Core::Rows::const_iterator;
  using Removed = std::vector<detail::RemovedRow<Row>>;

 public:
  using value_type = Row;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using pointer = const Row*;
  using iterator_category = std::forward_iterator_tag;

  Iterator() = default;
  explicit Iterator(const Core& core) : base_(core.rows.end()) {}
  Iterator(const Core& core, Version version)
      : core_(&core),
        version_(version),
        base_(core.rows.begin()),
        removed_(std::make_shared<const Removed>(detail::removed_since(core, version))),
        left_(removed_->size()) {
    settle();
  }

  reference operator*() const noexcept { return *row_; }
  pointer operator->() const noexcept { return row_; }

  Iterator& operator++() {
    on_removed_ ? static_cast<void>(--left_) : static_cast<void>(++base_);
    settle();
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }

  friend bool operator==(const Iterator& a, const Iterator& b) {
    return a.base_ == b.base_ && a.left_ == b.left_;
  }

 private:
  const detail::RemovedRow<Row>& next_removed() const noexcept {
    return (*removed_)[removed_->size() - left_];
  }

  // Finds the row to stand on: the earlier one of the next present row that was there, and the next removed
  // row.
  void settle() {
    const Row* present = nullptr;
    while (base_ != core_->rows.end() && (present = detail::life_at(*base_, version_)) == nullptr) ++base_;
    on_removed_ = left_ != 0 && (present == nullptr || removed_comes_first(*present));
    row_ = on_removed_ ? next_removed().row : present;
  }

  bool removed_comes_first(const Row& present) const {
    if constexpr (Core::ordered) {
      return detail::less_values(Core::key_of(*next_removed().row), Core::key_of(present));
    } else {
      return next_removed().order < base_->order;
    }
  }

  const Core* core_ = nullptr;
  Version version_ = 0;
  Base base_{};
  std::shared_ptr<const Removed> removed_;
  std::size_t left_ = 0;  // removed rows still to come
  const Row* row_ = nullptr;
  bool on_removed_ = false;
};

}  // namespace keyfold

template <class Table>
inline constexpr bool std::ranges::enable_view<keyfold::AsOfView<Table>> = true;
template <class Table>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::AsOfView<Table>> = true;
