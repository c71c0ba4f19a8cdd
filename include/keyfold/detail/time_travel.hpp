// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/log.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

/// Reading older versions from the log. A version is the present with the entries above it undone; for one
/// key that is a walk down its chain. A walk costs as many steps as the key has changed since.
namespace keyfold::detail {

/// The row of a key at a version: `present` is the row it has now, or null, and `newest` its newest change.
template <class Row>
const Row* row_at(const Row* present, const LogEntry<Row>* newest, Version version) noexcept {
  const Row* row = present;
  for (; newest != nullptr && newest->version() > version; newest = newest->older()) {
    row = newest->has_before() ? &newest->before().get() : nullptr;
  }
  return row;
}

template <class CoreType, class Key>
const typename CoreType::RowType* row_at(const CoreType& core, const Key& key, Version version) {
  const std::uint64_t hash = detail::hash_of(key);
  const auto* slot = core.find(key, hash);
  if (slot != nullptr) return detail::row_at(&slot->get(), slot->newest, version);
  return detail::row_at<typename CoreType::RowType>(nullptr, core.find_grave(key, hash), version);
}

/// The row that one life of a key had at a version; null if that life began later. `row` is what the life had
/// above `newest`. A life stands at one place in the order of rows; the key may have had others before.
template <class Row>
const Row* life_at(const Row* row, const LogEntry<Row>* newest, Version version) noexcept {
  for (; newest != nullptr && newest->version() > version; newest = newest->older()) {
    if (!newest->has_before() || !newest->leaves_row()) return nullptr;
    row = &newest->before().get();
  }
  return row;
}

template <class Row>
const Row* life_at(const Slot<Row>& slot, Version version) noexcept {
  return detail::life_at(&slot.get(), slot.newest, version);
}

/// A row that has gone since the version that is read.
template <class Row>
struct RemovedRow {
  const Row* row;
  std::uint64_t order;
};

/// Visits the entries of the versions in (after, up_to], oldest first.
template <class Row, class Visit>
void for_each_entry(const CommitLog<Row>& log, Version after, Version up_to, Visit visit) {
  const auto visit_block = [&](const LogBlock<Row>& block) {
    for (auto* entry = block.first(); entry != nullptr; entry = block.next(entry)) {
      if (entry->version() > after && entry->version() <= up_to) visit(*entry);
    }
  };
  if (after + 1 < log.oldest) {
    for (const LogBlock<Row>& block : log.retired) visit_block(block);
  }
  const auto first = std::ranges::upper_bound(log.records, after, {}, &CommitRecord<Row>::version);
  for (auto record = first; record != log.records.end() && record->version <= up_to; ++record)
    visit_block(record->block);
}

/// The rows of a version that are gone, in the table's order. O(changes since).
template <class CoreType>
std::vector<RemovedRow<typename CoreType::RowType>> removed_since(const CoreType& core, Version version) {
  using Row = typename CoreType::RowType;
  std::vector<RemovedRow<Row>> removed;
  detail::for_each_entry(*core.log, version, core.version(), [&](const LogEntry<Row>& entry) {
    if (entry.leaves_row()) return;
    if (const Row* row = detail::life_at(&entry.before().get(), entry.older(), version))
      removed.push_back({row, entry.order()});
  });
  std::ranges::sort(removed, [](const auto& a, const auto& b) {
    if constexpr (CoreType::ordered) {
      return detail::less_values(CoreType::key_of(*a.row), CoreType::key_of(*b.row));
    } else {
      return a.order < b.order;
    }
  });
  return removed;
}

/// Visits each key that changed in (after, up_to], once: `visit(slot or null, newest change)`.
template <class CoreType, class Visit>
void for_each_key(const CoreType& core, Version after, Version up_to, Visit visit) {
  using Row = typename CoreType::RowType;
  std::unordered_set<const LogEntry<Row>*> seen;
  detail::for_each_entry(*core.log, after, up_to, [&](const LogEntry<Row>& entry) {
    const auto key = CoreType::key_of(entry.has_before() ? entry.before().get() : entry.after());
    const std::uint64_t hash = detail::hash_of(key);
    const auto* slot = core.find(key, hash);
    const LogEntry<Row>* newest = slot != nullptr ? slot->newest : core.find_grave(key, hash);
    if (seen.insert(newest).second) visit(slot, newest);
  });
}

/// Finds the newest change of each key within (after, up_to].
template <class CoreType>
class NewestInRange {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;

  NewestInRange(const CoreType& core, Version after, Version up_to)
      : core_(core), after_(after), up_to_(up_to) {}

  /// Calls `visit(entry, row)` for each of them; `row` is what the key has after it, or null.
  template <class Visit>
  void for_each(Visit visit) {
    detail::for_each_entry(*core_.log, after_, up_to_, [&](const Entry& entry) {
      if (!entry.leaves_row()) {
        visit_key(entry, visit);
      } else if (entry.newer_slot() != nullptr || entry.newer_entry()->version() > up_to_) {
        visit(entry, &entry.after());
      }
    });
  }

 private:
  // An entry that ends a life has no link to what came after it: its key leads to it. What came after may
  // have been a row, since expiry leaves only the oldest of several changes.
  template <class Visit>
  void visit_key(const Entry& end, Visit& visit) {
    const auto key = CoreType::key_of(end.before().get());
    const std::uint64_t hash = detail::hash_of(key);
    const auto* slot = core_.find(key, hash);
    const Entry* newest = slot != nullptr ? slot->newest : core_.find_grave(key, hash);
    if (!seen_.insert(newest).second) return;
    const Row* row = slot != nullptr ? &slot->get() : nullptr;
    for (; newest->version() > up_to_; newest = newest->older())
      row = newest->has_before() ? &newest->before().get() : nullptr;
    if (!newest->leaves_row()) visit(*newest, row);
  }

  const CoreType& core_;
  Version after_;
  Version up_to_;
  std::unordered_set<const Entry*> seen_;
};

/// The net changes that lead from one readable version to another, in either direction.
template <class CoreType>
ChangeSet<typename CoreType::RowType> net_changes(const CoreType& core, Version from, Version to) {
  using Row = typename CoreType::RowType;
  const Version first = std::min(from, to);
  std::vector<Change<Row>> changes;
  NewestInRange<CoreType>(core, first, std::max(from, to))
      .for_each([&](const LogEntry<Row>& entry, const Row* at_last) {
        const Row* at_first = detail::row_at(at_last, &entry, first);
        auto change =
            from < to ? detail::net_change(at_first, at_last) : detail::net_change(at_last, at_first);
        if (change) changes.push_back(*std::move(change));
      });
  return ChangeSet<Row>(std::move(changes), core.log->key);
}

}  // namespace keyfold::detail
