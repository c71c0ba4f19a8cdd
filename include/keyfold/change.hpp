// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/key_index.hpp>
#include <keyfold/error.hpp>
#include <keyfold/fwd.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace keyfold {

enum class ChangeKind : std::uint8_t { insert, update, erase };

[[nodiscard]] constexpr std::string_view to_string(ChangeKind kind) noexcept {
  switch (kind) {
    case ChangeKind::insert:
      return "insert";
    case ChangeKind::update:
      return "update";
    case ChangeKind::erase:
      break;
  }
  return "erase";
}

/// What happened to one row. A value: it holds copies of the row before and after, and outlives the table.
template <class Row>
class Change {
 public:
  [[nodiscard]] static Change insert(Row after) { return Change(std::nullopt, std::move(after)); }
  [[nodiscard]] static Change update(Row before, Row after) {
    return Change(std::move(before), std::move(after));
  }
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
          if (!detail::equal_values(detail::read<Member>(*before_), detail::read<Member>(*after_)))
            mask.set(I);
        });
      }
    }
    return mask;
  }

  /// The change that undoes this one.
  [[nodiscard]] Change inverse() const { return Change(after_, before_); }

  /// Equal if they do the same to the same row.
  friend bool operator==(const Change& a, const Change& b)
    requires detail::RowComparable<Row>
  {
    return same_image(a.before_, b.before_) && same_image(a.after_, b.after_);
  }

 private:
  Change(std::optional<Row> before, std::optional<Row> after)
      : before_(std::move(before)), after_(std::move(after)) {}

  static bool same_image(const std::optional<Row>& a, const std::optional<Row>& b) {
    return a && b ? detail::same_row(*a, *b) : a.has_value() == b.has_value();
  }

  std::optional<Row> before_;
  std::optional<Row> after_;
};

/// A change in a feed: of one version.
template <class Row>
class FeedChange : public Change<Row> {
 public:
  FeedChange(Change<Row> change, Version version, Timestamp timestamp)
      : Change<Row>(std::move(change)), version_(version), timestamp_(timestamp) {}

  [[nodiscard]] Version version() const noexcept { return version_; }
  [[nodiscard]] Timestamp timestamp() const noexcept { return timestamp_; }

 private:
  Version version_;
  Timestamp timestamp_;
};

/// Changes of many versions, in order.
template <class Row>
using ChangeFeed = std::vector<FeedChange<Row>>;

namespace detail {

/// The key of a row type without the type of its table.
template <class Row>
struct KeyFunctions {
  std::uint64_t (*hash)(const Row&);
  bool (*equal)(const Row&, const Row&);
};

template <class Parts, class Row>
inline constexpr KeyFunctions<Row> key_functions{
    [](const Row& row) { return detail::hash_of(Parts::of(row)); },
    [](const Row& a, const Row& b) { return detail::equal_values(Parts::of(a), Parts::of(b)); }};

}  // namespace detail

/// Changes of rows of one type, all at once: at most one leaves a key, and at most one arrives at it. What a
/// write did, or what preview() says it would do. A value, and a random access range of `const Change<Row>`,
/// in the order of the write: by source row, then what when_not_matched_by_source clauses did, in table
/// order.
template <class Row>
class ChangeSet {
 public:
  using value_type = Change<Row>;
  using const_iterator = typename std::vector<Change<Row>>::const_iterator;
  using iterator = const_iterator;

  ChangeSet() = default;
  explicit ChangeSet(std::vector<Change<Row>> changes) noexcept : changes_(std::move(changes)) {}
  ChangeSet(std::vector<Change<Row>> changes, const detail::KeyFunctions<Row>& key) noexcept
      : changes_(std::move(changes)), key_(&key) {}

  [[nodiscard]] std::size_t size() const noexcept { return changes_.size(); }
  [[nodiscard]] bool empty() const noexcept { return changes_.empty(); }
  [[nodiscard]] const_iterator begin() const noexcept { return changes_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return changes_.end(); }

  /// Requires: index < size().
  [[nodiscard]] const Change<Row>& operator[](std::size_t index) const {
    assert(index < size());
    return changes_[index];
  }

  /// The changes that undo these: inserts become erases, updates go back.
  [[nodiscard]] ChangeSet inverse() const {
    ChangeSet out;
    out.key_ = key_;
    out.changes_.reserve(size());
    for (const Change<Row>& change : changes_) out.changes_.push_back(change.inverse());
    return out;
  }

  /// The changes for which `keep(const Change&)` is true.
  template <class Keep>
  [[nodiscard]] ChangeSet filter(Keep keep) const {
    ChangeSet out;
    out.key_ = key_;
    std::ranges::copy_if(changes_, std::back_inserter(out.changes_), std::move(keep));
    return out;
  }

  /// The net effect of these changes and then `later` ones: for each key the row before and the row after, if
  /// they differ. An update that changes the key counts as an erase and an insert. O(size() + later.size())
  /// on average. Throws Error if neither set was made by a table, whose key tells which rows are the same.
  [[nodiscard]] ChangeSet then(const ChangeSet& later) const;

  friend bool operator==(const ChangeSet& a, const ChangeSet& b)
    requires detail::RowComparable<Row>
  {
    return a.changes_ == b.changes_;
  }

 private:
  std::vector<Change<Row>> changes_;
  const detail::KeyFunctions<Row>* key_ = nullptr;  // null for a set that no table made
};

namespace detail {

/// The change from one image of a row to another, null being absent; nothing if they are the same.
template <class Row>
std::optional<Change<Row>> net_change(const Row* before, const Row* after) {
  if (before == nullptr && after == nullptr) return std::nullopt;
  if (before == nullptr) return Change<Row>::insert(*after);
  if (after == nullptr) return Change<Row>::erase(*before);
  if (detail::same_or(false, *before, *after)) return std::nullopt;
  return Change<Row>::update(*before, *after);
}

/// Composes change sets by key.
template <class Row>
class Composer {
 public:
  Composer(const KeyFunctions<Row>& key, std::size_t changes) : key_(key) {
    nets_.reserve(changes * 2);
    by_key_.presize(changes * 2);
  }

  // The changes of a set happen at once: all rows leave their keys before any arrives.
  void add(const std::vector<Change<Row>>& changes) {
    for (const Change<Row>& change : changes) {
      if (change.before() != nullptr) net_of(*change.before(), change.before()).after = nullptr;
    }
    for (const Change<Row>& change : changes) {
      if (change.after() != nullptr) net_of(*change.after(), nullptr).after = change.after();
    }
  }

  std::vector<Change<Row>> result() const {
    std::vector<Change<Row>> out;
    for (const Net& net : nets_) {
      if (auto change = detail::net_change(net.before, net.after)) out.push_back(*std::move(change));
    }
    return out;
  }

 private:
  struct Net {
    const Row* row;  // one that has the key
    const Row* before;
    const Row* after = nullptr;
  };

  Net& net_of(const Row& row, const Row* before) {
    const std::uint64_t hash = key_.hash(row);
    if (Net* net = by_key_.find(hash, [&](const Net& known) { return key_.equal(*known.row, row); }))
      return *net;
    Net& net = nets_.emplace_back(Net{&row, before});
    by_key_.add(hash, &net);
    return net;
  }

  const KeyFunctions<Row>& key_;
  std::vector<Net> nets_;  // reserved: they keep their place
  KeyIndex<Net> by_key_;
};

}  // namespace detail

template <class Row>
ChangeSet<Row> ChangeSet<Row>::then(const ChangeSet& later) const {
  if (empty() && later.empty()) return {};
  const auto* key = key_ != nullptr ? key_ : later.key_;
  if (key == nullptr)
    throw Error(
        "no table made these change sets, so their key is not known; compose one of them with one that a "
        "table made");
  detail::Composer<Row> composer(*key, size() + later.size());
  composer.add(changes_);
  composer.add(later.changes_);
  return ChangeSet(composer.result(), *key);
}

}  // namespace keyfold
