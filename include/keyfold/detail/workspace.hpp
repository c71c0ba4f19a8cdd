// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/options.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace keyfold::detail {

template <class SlotType>
std::vector<const SlotType*> by_order(const std::unordered_map<std::uint64_t, const SlotType*>& slots) {
  std::vector<const SlotType*> sorted;
  sorted.reserve(slots.size());
  for (const auto& [order, slot] : slots) sorted.push_back(slot);
  std::ranges::sort(sorted, {}, &SlotType::order);
  return sorted;
}

/// Hears in a transaction what its feeds remember, for the journal of the table.
template <class Row>
class WorkspaceJournal final : public CommitJournal<Row> {
 public:
  explicit WorkspaceJournal(const CommitJournal<Row>& of_table) noexcept : of_table_(of_table) {}

  void commit(const CommitRecord<Row>&, const std::vector<AppNumber>&, const Plan<Row>& plan) override {
    if (plan.sequences != nullptr) remember(*plan.sequences);
  }
  void remember(const SequenceUpdate& update) override {
    if (std::string stored = this->stored(update); !stored.empty()) updates_.push_back(std::move(stored));
  }
  std::string stored(const SequenceUpdate& update) const override { return of_table_.stored(update); }

  // Transactions have none of these.
  void tag(std::string_view, Version) override {}
  void untag(std::string_view) override {}
  void expire(Version) override {}
  void published() noexcept override {}

  const std::vector<std::string>& updates() const noexcept { return updates_; }

 private:
  const CommitJournal<Row>& of_table_;
  std::vector<std::string> updates_;
};

/// The state of a transaction: a core of its own that holds copies of the rows which the transaction has
/// looked at or written. Rows come in from the table, which stays as it is, when a write looks for them; the
/// writes are those of any core, with a log of their own. `order` tells which row is which, whatever becomes
/// of its key: rows of the table have numbers below `first_new_`.
template <class CoreType>
class Workspace : public CoreType {
 public:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;

  explicit Workspace(const CoreType& base)
      : CoreType(options_of_a_workspace(*base.options.memory)),
        base_(base),
        first_new_(base.next_order),
        sequences_started_(base.sequences_changed) {
    this->next_order = base.next_order;
    this->applied = base.applied;
    this->checks = base.checks;
    if (base.journal == nullptr) return;
    sequence_journal_.emplace(*base.journal);
    this->journal = &*sequence_journal_;
  }

  // --- What planners read: rows come in from the table

  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash) const {
    if (const SlotType* own = CoreType::find(key, hash)) return own;
    const SlotType* below = base_.find(key, hash);
    return below == nullptr || taken_.contains(below->order) ? nullptr : take(*below, hash);
  }
  template <class Key>
  const SlotType* find(const Key& key) const {
    return find(key, detail::hash_of(key));
  }
  // Rows that came in since may have changed the candidate.
  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash, const SlotType*) const {
    return find(key, hash);
  }

  const auto& scan() const {
    if (taken_.size() != base_.rows.size()) {
      for (const SlotType& below : base_.rows) take_if_new(below);
    }
    return this->rows;
  }

  template <std::size_t N, class Key>
  auto matching(const Key& key) const {
    const auto [first, last] = base_.template matching<N>(key);
    for (auto below = first; below != last; ++below) take_if_new(*below);
    return CoreType::template matching<N>(key);
  }

  /// A copy of what the table remembers, made when it is first asked for.
  const SequenceState* sequence_state() const {
    if (this->sequences == nullptr && base_.sequences != nullptr) {
      const_cast<Workspace&>(*this).sequences = base_.sequences->clone();  // no workspace is const
    }
    return this->sequences.get();
  }

  Timestamp now() const { return base_.now(); }

  /// Whether a load of the table, which need not have made a version, has changed what it remembers.
  bool sequences_outdated() const noexcept { return base_.sequences_changed != sequences_started_; }

  // --- What the transaction reads: nothing is copied

  template <class Key>
  const Row* peek(const Key& key) const {
    const std::uint64_t hash = detail::hash_of(key);
    if (const SlotType* own = CoreType::find(key, hash)) return &own->get();
    const SlotType* below = base_.find(key, hash);
    return below == nullptr || taken_.contains(below->order) ? nullptr : &below->get();
  }

  std::size_t size() const noexcept { return base_.rows.size() - taken_.size() + this->rows.size(); }

  /// All rows, in the order that the table will have: at the place of the row that they update or whose key
  /// they take up again, else at the end. O(rows).
  std::vector<const Row*> in_order() const {
    std::unordered_map<std::uint64_t, const Row*> written;
    written.reserve(taken_.size());
    std::vector<const Row*> out;
    out.reserve(size());
    for (const SlotType& slot : this->rows) {
      if (slot.order < first_new_) written.emplace(slot.order, &slot.get());
    }
    std::vector<const Row*> added;
    for (const SlotType* slot : new_slots()) {
      const SlotType* below = base_.find(CoreType::key_of(slot->get()));
      const bool comes_back = below != nullptr && taken_.contains(below->order) &&
                              written.try_emplace(below->order, &slot->get()).second;
      if (!comes_back) added.push_back(&slot->get());
    }
    for (const SlotType& below : base_.rows) {
      if (!taken_.contains(below.order)) {
        out.push_back(&below.get());
      } else if (const auto row = written.find(below.order); row != written.end()) {
        out.push_back(row->second);
      }
    }
    out.insert(out.end(), added.begin(), added.end());
    if constexpr (CoreType::ordered) {
      std::ranges::stable_sort(
          out, [](const auto& a, const auto& b) { return detail::less_values(a, b); },
          [](const Row* row) { return CoreType::key_of(*row); });
    }
    return out;
  }

  // --- The end of the transaction

  /// Plans the net effect of all writes on the table.
  void plan_commit(Plan<Row>& plan) {
    if (this->sequences_changed != 0)
      plan.sequences = std::make_unique<SequenceHandover>(this->sequences, stored_updates());
    std::unordered_map<std::uint64_t, const SlotType*> gone(taken_);
    for (const SlotType& slot : this->rows) {
      if (slot.order >= first_new_) continue;
      const SlotType& below = *taken_.at(slot.order);
      gone.erase(slot.order);
      if (slot.newest != nullptr) plan_update(plan, below, slot.get());
    }
    for (const SlotType* slot : new_slots()) {
      const SlotType* below = base_.find(CoreType::key_of(slot->get()));
      if (below != nullptr && gone.erase(below->order) != 0) {
        plan_update(plan, *below, slot->get());  // the key has gone and come back
      } else {
        plan.insert(Holder<Row>(slot->get()), no_position);
      }
    }
    for (const SlotType* below : detail::by_order(gone)) plan.erase(*below, no_position);
  }

  /// The numbers that writes with once() have recorded.
  std::vector<AppNumber> new_numbers() const {
    std::vector<AppNumber> numbers;
    for (const auto& [app, number] : this->applied) {
      const auto before = base_.applied.find(app);
      if (before == base_.applied.end() || before->second != number) numbers.push_back({app, number});
    }
    return numbers;
  }

  /// What the writes were, in order, as history records it: "APPEND; DELETE WHERE id = 2".
  std::string statements() const {
    std::string out;
    for (const auto& record : this->log->records) {
      if (!out.empty()) out += "; ";
      out += record.operation;
      if (record.parameters) out += ' ' + *record.parameters;
    }
    return out;
  }

  /// The metadata that single writes were given, in order; empty if none was.
  std::string metadata() const {
    std::string out;
    for (const auto& record : this->log->records) {
      if (!record.metadata) continue;
      if (!out.empty()) out += "; ";
      out += *record.metadata;
    }
    return out;
  }

 private:
  static TableOptions options_of_a_workspace(std::pmr::memory_resource& memory) {
    TableOptions options;
    options.memory = &memory;
    options.clock = [] { return Timestamp(); };  // the commit has its own time
    return options;
  }

  std::vector<std::string> stored_updates() const {
    return sequence_journal_ ? sequence_journal_->updates() : std::vector<std::string>();
  }

  void take_if_new(const SlotType& below) const {
    if (!taken_.contains(below.order)) take(below, detail::hash_of(CoreType::key_of(below.get())));
  }

  // Copies a row of the table into this core. Planners see a const core; what they read of it is the same
  // before and after.
  const SlotType* take(const SlotType& below, std::uint64_t hash) const {
    auto& self = const_cast<Workspace&>(*this);  // no workspace is const
    self.keys.reserve_one(hash);
    const auto taken = taken_.emplace(below.order, &below).first;
    try {
      const SlotType* slot = detail::add_slot<CoreType>(self, Holder<Row>(below.get()));
      slot->order = below.order;
      self.keys.insert(hash, slot);
      return slot;
    } catch (...) {
      taken_.erase(taken);
      throw;
    }
  }

  std::vector<const SlotType*> new_slots() const {
    std::vector<const SlotType*> slots;
    for (const SlotType& slot : this->rows) {
      if (slot.order >= first_new_) slots.push_back(&slot);
    }
    std::ranges::sort(slots, {}, &SlotType::order);
    return slots;
  }

  static void plan_update(Plan<Row>& plan, const SlotType& below, const Row& row) {
    if (!detail::same_or(false, below.get(), row)) plan.update(below, Holder<Row>(row), no_position);
  }

  const CoreType& base_;
  std::uint64_t first_new_;
  std::uint64_t sequences_started_;
  std::optional<WorkspaceJournal<Row>> sequence_journal_;
  mutable std::unordered_map<std::uint64_t, const SlotType*>
      taken_;  // rows of the table that are here, by order
};

}  // namespace keyfold::detail
