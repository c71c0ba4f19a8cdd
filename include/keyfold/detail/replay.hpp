// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/time_travel.hpp>
#include <keyfold/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

/// Plans that come from the history or from a change set instead of a source: restore, undo and apply.
namespace keyfold::detail {

/// The plan that makes the present equal to an older version. Rows that come back stand at the end, in the
/// order they had.
template <class CoreType>
void plan_restore(const CoreType& core, Plan<typename CoreType::RowType>& plan, Version version) {
  using Row = typename CoreType::RowType;
  detail::for_each_key(core, version, core.version(),
                       [&](const Slot<Row>* slot, const LogEntry<Row>* newest) {
                         if (slot == nullptr) return;
                         const Row* then = detail::row_at(&slot->get(), newest, version);
                         if (then == nullptr) {
                           plan.erase(*slot, no_position);
                         } else if (!detail::same_or(false, *then, slot->get())) {
                           plan.update(*slot, Holder<Row>(*then), no_position);
                         }
                       });
  for (const RemovedRow<Row>& removed : detail::removed_since(core, version)) {
    if (core.find(CoreType::key_of(*removed.row)) == nullptr)
      plan.insert(Holder<Row>(*removed.row), no_position);
  }
}

/// Undoes or carries out changes one by one, and notes those that do not fit.
template <class CoreType>
class ChangePlanner {
 public:
  using Row = typename CoreType::RowType;

  ChangePlanner(const CoreType& core, Plan<Row>& plan) : core_(core), plan_(plan) {}

  /// Notes the changes that bring a row to a key which another row keeps, or another change brings one to.
  void check_arrivals() {
    KeyIndex<const Planned<Row>> arrived;
    arrived.presize(plan_.entries.size());
    for (const Planned<Row>& entry : plan_.entries) {
      if (!entry.after) continue;
      const auto key = CoreType::key_of(entry.after->get());
      const std::uint64_t hash = detail::hash_of(key);
      const auto* other = arrived.find(hash, [&](const Planned<Row>& earlier) {
        return detail::equal_values(CoreType::key_of(earlier.after->get()), key);
      });
      if (other != nullptr || !key_is_free(entry)) conflict(entry.after->get());
      arrived.add(hash, &entry);
    }
  }

  /// Throws ChangeConflict naming the keys of all changes that did not fit.
  void finish() {
    if (!conflicts_.empty()) throw ChangeConflict(std::move(conflicts_));
  }
  void finish_undo(Version version) {
    if (!conflicts_.empty()) throw ChangeConflict(std::move(conflicts_), version);
  }

  void apply(const Change<Row>& change, Position position) {
    if (change.kind() == ChangeKind::insert) return plan_.insert(Holder<Row>(*change.after()), position);
    const auto* slot = core_.find(CoreType::key_of(*change.before()));
    if (slot == nullptr || !detail::same_or(true, slot->get(), *change.before()) ||
        plan_.touched(*slot) != nullptr) {
      return conflict(*change.before());
    }
    if (change.kind() == ChangeKind::erase) {
      plan_.erase(*slot, position);
    } else {
      plan_.update(*slot, Holder<Row>(*change.after()), position);
    }
  }

  /// Undoes the changes of one commit; each must still be the newest of its key.
  void undo(const LogBlock<Row>& block) {
    for (const auto* entry = block.first(); entry != nullptr; entry = block.next(entry)) {
      switch (entry->kind()) {
        case LogKind::insert:
          undo_insert(*entry);
          break;
        case LogKind::update:
          undo_update(*entry, entry->before().get());
          break;
        case LogKind::erase:
          undo_erase(*entry);
          break;
        case LogKind::rekey_out:
          undo_rekey(*entry, *block.next(entry));
          break;
        case LogKind::rekey_in:
          break;
      }
    }
  }

 private:
  bool key_is_free(const Planned<Row>& arriving) const {
    const auto key = CoreType::key_of(arriving.after->get());
    const Slot<Row>* holder = core_.find(key);
    if (holder == nullptr || holder == arriving.slot) return true;
    const Planned<Row>* planned = plan_.touched(*holder);
    if (planned == nullptr) return false;
    return planned->outcome == Outcome::erase ||
           !detail::equal_values(CoreType::key_of(planned->after->get()), key);
  }

  void conflict(const Row& row) {
    std::string key = detail::key_text(CoreType::key_of(row));
    if (named_.insert(key).second) conflicts_.push_back(std::move(key));
  }

  void undo_insert(const LogEntry<Row>& entry) {
    const Slot<Row>* slot = entry.newer_slot();
    if (slot == nullptr) return conflict(entry.after());
    plan_.erase(*slot, no_position);
  }
  void undo_update(const LogEntry<Row>& entry, const Row& before) {
    const Slot<Row>* slot = entry.newer_slot();
    if (slot == nullptr) return conflict(before);
    plan_.update(*slot, Holder<Row>(before), no_position);
  }
  void undo_rekey(const LogEntry<Row>& left, const LogEntry<Row>& arrived) {
    const bool can_go_back = left_for_good(left);
    const Slot<Row>* slot = arrived.newer_slot();
    if (!can_go_back) conflict(left.before().get());
    if (slot == nullptr) conflict(arrived.after());
    if (can_go_back && slot != nullptr) plan_.update(*slot, Holder<Row>(left.before().get()), no_position);
  }
  void undo_erase(const LogEntry<Row>& entry) {
    if (!left_for_good(entry)) return conflict(entry.before().get());
    plan_.insert(Holder<Row>(entry.before().get()), no_position);
  }

  // Whether no later commit has touched the key that a row has left. Another row may have taken it in the
  // same commit: undoing that one frees it again.
  bool left_for_good(const LogEntry<Row>& entry) const {
    const auto key = CoreType::key_of(entry.before().get());
    const LogEntry<Row>* newest = core_.newest_change(key, detail::hash_of(key));
    return newest == &entry ||
           (newest != nullptr && newest->version() == entry.version() && newest->older() == &entry);
  }

  const CoreType& core_;
  Plan<Row>& plan_;
  std::vector<std::string> conflicts_;  // keys, each once
  std::unordered_set<std::string> named_;
};

}  // namespace keyfold::detail
