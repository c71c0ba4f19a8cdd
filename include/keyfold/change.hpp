// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/fwd.hpp>

#include <cassert>
#include <optional>
#include <utility>
#include <vector>

namespace keyfold {

enum class ChangeKind : std::uint8_t { insert, update, erase };

[[nodiscard]] constexpr std::string_view to_string(ChangeKind kind) noexcept {
  switch (kind) {
    case ChangeKind::insert: return "insert";
    case ChangeKind::update: return "update";
    case ChangeKind::erase: break;
  }
  return "erase";
}

/// What happened to one row. A value: it holds copies of the row before and after, and outlives the table.
template <class Row>
class Change {
 public:
  [[nodiscard]] static Change insert(Row after) { return Change(std::nullopt, std::move(after)); }
  [[nodiscard]] static Change update(Row before, Row after) { return Change(std::move(before), std::move(after)); }
  [[nodiscard]] static Change erase(Row before) { return Change(std::move(before), std::nullopt); }

  [[nodiscard]] ChangeKind kind() const noexcept {
    if (!before_) return ChangeKind::insert;
    return after_ ? ChangeKind::update : ChangeKind::erase;
  }

  /// The row before the change; null for an insert.
  [[nodiscard]] const Row* before() const noexcept { return before_ ? &*before_ : nullptr; }

  /// The row after the change; null for an erase.
  [[nodiscard]] const Row* after() const noexcept { return after_ ? &*after_ : nullptr; }

  /// The columns whose values differ; all columns for an insert or an erase. Empty without a column list.
  [[nodiscard]] ColumnMask<Row> columns() const {
    ColumnMask<Row> mask;
    if constexpr (HasColumns<Row>) {
      if (kind() != ChangeKind::update) {
        mask.set_all();
      } else {
        detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
          if (!detail::equal_values(detail::read<Member>(*before_), detail::read<Member>(*after_))) mask.set(I);
        });
      }
    }
    return mask;
  }

  /// Equal if they do the same to the same row.
  friend bool operator==(const Change& a, const Change& b)
    requires detail::RowComparable<Row>
  {
    return same_image(a.before_, b.before_) && same_image(a.after_, b.after_);
  }

 private:
  Change(std::optional<Row> before, std::optional<Row> after) : before_(std::move(before)), after_(std::move(after)) {}

  static bool same_image(const std::optional<Row>& a, const std::optional<Row>& b) {
    return a && b ? detail::same_row(*a, *b) : a.has_value() == b.has_value();
  }

  std::optional<Row> before_;
  std::optional<Row> after_;
};

/// Changes of rows of one type, at most one for each row: what a write did, or what preview() says it would do.
/// A value, and a random access range of `const Change<Row>`. In the order of the write: by source row, then what
/// when_not_matched_by_source clauses did in table order.
template <class Row>
class ChangeSet {
 public:
  using value_type = Change<Row>;
  using const_iterator = typename std::vector<Change<Row>>::const_iterator;
  using iterator = const_iterator;

  ChangeSet() = default;
  explicit ChangeSet(std::vector<Change<Row>> changes) noexcept : changes_(std::move(changes)) {}

  [[nodiscard]] std::size_t size() const noexcept { return changes_.size(); }
  [[nodiscard]] bool empty() const noexcept { return changes_.empty(); }
  [[nodiscard]] const_iterator begin() const noexcept { return changes_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return changes_.end(); }

  /// Requires: index < size().
  [[nodiscard]] const Change<Row>& operator[](std::size_t index) const {
    assert(index < size());
    return changes_[index];
  }

  friend bool operator==(const ChangeSet& a, const ChangeSet& b)
    requires detail::RowComparable<Row>
  {
    return a.changes_ == b.changes_;
  }

 private:
  std::vector<Change<Row>> changes_;
};

}  // namespace keyfold
