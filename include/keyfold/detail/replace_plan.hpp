// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/key_index.hpp>
#include <keyfold/detail/merge_plan.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/validate.hpp>
#include <keyfold/error.hpp>
#include <keyfold/key.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Planning writes that replace rows: some leave, others come in. A row that comes in with the key of one
/// that leaves is an update of it.
namespace keyfold::detail {

template <class CoreType>
class ReplacePlanner {
 public:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;
  using Entry = Planned<Row>;

  ReplacePlanner(const CoreType& core, Plan<Row>& plan) : core_(core), plan_(plan) {}

  // Either the leaving rows are marked before any row comes in, or it is asked of each row whether it leaves.

  /// The row leaves, unless another comes in with its key.
  void mark(const SlotType& slot) {
    plan_.touch(slot);
    ++marked_;
  }

  /// A row comes in. `leaves(slot)`: whether a row that is not marked leaves.
  template <class Leaves>
  void arrive(Holder<Row>&& row, Position position, const Leaves& leaves) {
    const SlotType* slot = core_.find(CoreType::key_of(row.get()));
    const Entry* entry = slot != nullptr ? plan_.touched(*slot) : nullptr;
    if (entry != nullptr && entry->outcome != Outcome::seen) refuse_second(*slot, entry->position, position);
    if (entry != nullptr || (slot != nullptr && leaves(*slot))) {
      replace(*slot, std::move(row), position);
    } else {
      plan_.insert(std::move(row), position);  // validate() sees whether another row has the key
    }
  }
  void arrive(Holder<Row>&& row, Position position) {
    arrive(std::move(row), position, [](const SlotType&) { return false; });
  }

  /// Requires: all rows have come in.
  void remove_marked() {
    for (std::size_t i = 0; i < marked_; ++i) {
      const SlotType& slot = *plan_.entries[i].slot;
      if (plan_.touched(slot)->outcome == Outcome::seen) plan_.remove(slot);
    }
  }
  template <class Leaves>
  void remove_leaving(const Leaves& leaves) {
    for (const SlotType& slot : core_.scan()) {
      if (plan_.touched(slot) == nullptr && leaves(slot)) plan_.remove(slot);
    }
  }

 private:
  void replace(const SlotType& slot, Holder<Row>&& row, Position position) {
    if (detail::same_or(false, slot.get(), row.get())) {
      plan_.keep(slot, position);
    } else {
      plan_.update(slot, std::move(row), position);
    }
  }

  [[noreturn]] static void refuse_second(const SlotType& slot, Position first, Position second) {
    detail::refuse_source_rows(CoreType::KeyParts::name(), detail::key_text(CoreType::key_of(slot.get())),
                               first, second,
                               "; give a duplicate policy with duplicates(), or remove one of them");
  }

  const CoreType& core_;
  Plan<Row>& plan_;
  std::size_t marked_ = 0;
};

template <class CoreType>
[[noreturn]] void refuse_mismatch(const std::string& condition, const typename CoreType::RowType& row,
                                  Position position) {
  const std::string key = detail::key_text(CoreType::key_of(row));
  throw ReplaceWhereMismatch(
      detail::describe(row, position) + " with key " + key +
          " does not meet the condition of replace_where(), " + condition +
          "; leave such rows out, widen the condition, or let them in with unchecked()",
      condition, key, position);
}

/// A row on its way into the table.
template <class Row>
struct Incoming {
  Holder<Row> row;
  Position position;
};

/// Replaces the rows that are equal to an incoming one in all of `Columns`. O(table + incoming rows) on
/// average; where the columns are the key or those of an index, O(incoming rows + rows that leave).
template <class CoreType, class Columns>
class ReplaceUsing {
 public:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;

  ReplaceUsing(const CoreType& core, Plan<Row>& plan, std::vector<Incoming<Row>> rows)
      : core_(core), planner_(core, plan), rows_(std::move(rows)) {}

  void run() {
    collect();
    if (wanted_.size() != 0) mark_leaving();
    for (Incoming<Row>& incoming : rows_) planner_.arrive(std::move(incoming.row), incoming.position);
    planner_.remove_marked();
  }

 private:
  static constexpr bool by_key = std::same_as<Columns, typename CoreType::KeyParts>;
  static constexpr std::size_t index = index_number<Columns, typename CoreType::Indexes>;
  static constexpr bool by_index = index < std::tuple_size_v<typename CoreType::Indexes>;

  // One row for each combination of values.
  void collect() {
    wanted_.presize(rows_.size());
    for (Incoming<Row>& incoming : rows_) {
      const auto values = Columns::of(incoming.row.get());
      if (detail::has_empty_part(values)) continue;
      const std::uint64_t hash = detail::hash_of(values);
      if (find(values, hash) == nullptr) wanted_.add(hash, &incoming);
    }
  }

  template <class Values>
  const Incoming<Row>* find(const Values& values, std::uint64_t hash) const {
    return wanted_.find(hash, [&](const Incoming<Row>& incoming) {
      return detail::equal_values(Columns::of(incoming.row.get()), values);
    });
  }

  void mark_leaving() {
    if constexpr (by_key) {
      wanted_.for_each([this](std::uint64_t hash, const Incoming<Row>& incoming) {
        const SlotType* slot = core_.find(Columns::of(incoming.row.get()), hash);
        if (slot != nullptr) planner_.mark(*slot);
      });
    } else if constexpr (by_index) {
      mark_from_index();
    } else {
      for (const SlotType& slot : core_.scan()) {
        const auto values = Columns::of(slot.get());
        if (!detail::has_empty_part(values) && find(values, detail::hash_of(values)) != nullptr)
          planner_.mark(slot);
      }
    }
  }

  void mark_from_index() {
    std::vector<const SlotType*> slots;
    wanted_.for_each([&](std::uint64_t, const Incoming<Row>& incoming) {
      const auto [first, last] = core_.template matching<index>(Columns::of(incoming.row.get()));
      for (auto it = first; it != last; ++it) slots.push_back(&*it);
    });
    std::ranges::sort(slots, [](const SlotType* a, const SlotType* b) { return stands_before(*a, *b); });
    for (const SlotType* slot : slots) planner_.mark(*slot);
  }

  static bool stands_before(const SlotType& a, const SlotType& b) {
    if constexpr (CoreType::ordered) {
      return detail::less_values(CoreType::key_of(a.get()), CoreType::key_of(b.get()));
    } else {
      return a.order < b.order;
    }
  }

  const CoreType& core_;
  ReplacePlanner<CoreType> planner_;
  std::vector<Incoming<Row>> rows_;
  KeyIndex<Incoming<Row>> wanted_;
};

}  // namespace keyfold::detail
