// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/validate.hpp>

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace keyfold::detail {

/// What a commit says about itself beside its changes.
struct CommitNote {
  std::string_view operation;                     // static storage
  std::shared_ptr<const std::string> parameters;  // may be null
  std::optional<std::string> metadata;
};

/// Puts a row into the container, at the end or in key order. Throws what Boost.MultiIndex and the user's hashes and
/// comparisons throw; strong guarantee.
template <class CoreType>
const typename CoreType::SlotType* add_slot(CoreType& core, Holder<typename CoreType::RowType>&& row) {
  if constexpr (CoreType::ordered) {
    return &*core.rows.emplace(std::move(row)).first;
  } else {
    return &*core.rows.emplace_back(std::move(row)).first;
  }
}

template <class Row>
void make_newest(const Slot<Row>& slot, LogEntry<Row>* entry) noexcept {
  entry->set_newer(&slot);
  slot.newest = entry;
}

/// Carries out a validated plan, all or nothing.
///
/// First everything that can fail: room in the key index and the log, and a slot in the container for each row that
/// is new or changes the key of an index, beside the old one. A failure takes those slots out again, which needs no
/// comparison and no memory. Then publish(), which cannot fail: it moves rows into and out of slots, changes
/// pointers, and unlinks what is gone.
template <class CoreType>
class Applier {
 public:
  using Row = typename CoreType::RowType;
  using Entry = Planned<Row>;

  Applier(CoreType& core, Plan<Row>& plan) noexcept : core_(core), plan_(plan) {}
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  ~Applier() {
    if (published_) return;
    for (const Entry& entry : plan_.entries) {
      if (entry.fresh != nullptr) core_.rows.erase(core_.rows.iterator_to(*entry.fresh));
    }
    if (recorded_) core_.log->pop_back();
  }

  void stage(CommitNote&& note) {
    std::size_t images = 0;
    std::size_t bare = 0;
    for (const Entry& entry : plan_.entries) {
      images += entry.outcome == Outcome::update || entry.outcome == Outcome::erase ? 1U : 0U;
      bare += entry.outcome == Outcome::insert || entry.rekeyed ? 1U : 0U;
    }
    record(std::move(note), LogBlock<Row>(bare, images));
    core_.keys.reserve(bare);
    for (Entry& entry : plan_.entries) {
      if (entry.needs_slot()) entry.fresh = add_slot(core_, std::move(*entry.after));
    }
  }

  void publish() noexcept {
    published_ = true;
    for (Entry& entry : plan_.entries) {
      switch (entry.outcome) {
        case Outcome::insert: insert(entry); break;
        case Outcome::update: entry.needs_slot() ? replace(entry) : update_in_place(entry); break;
        case Outcome::erase: erase(entry); break;
        case Outcome::seen:
        case Outcome::unchanged: break;
      }
    }
  }

 private:
  void record(CommitNote&& note, LogBlock<Row>&& block) {
    const Timestamp now = core_.options.clock();
    const bool first = core_.log->empty();
    const Timestamp earliest = first ? now : core_.log->back().timestamp + Timestamp::duration(1);
    core_.log->push_back({core_.version() + 1, std::max(now, earliest), note.operation, std::move(note.parameters),
                          plan_.metrics, std::move(note.metadata), std::move(block)});
    recorded_ = true;
  }

  LogBlock<Row>& block() noexcept { return core_.log->back().block; }
  Version version() const noexcept { return core_.log->back().version; }

  void insert(const Entry& entry) noexcept {
    make_newest(*entry.fresh, block().add(LogKind::insert, version(), nullptr));
    core_.keys.insert(entry.hash_after, entry.fresh);
  }

  void update_in_place(Entry& entry) noexcept {
    const Slot<Row>& slot = *entry.slot;
    make_newest(slot, block().add(LogKind::update, version(), slot.newest, std::move(slot.row)));
    slot.row = std::move(*entry.after);
  }

  // The row goes on in another slot, at the same place in the order of rows.
  void replace(const Entry& entry) noexcept {
    const Slot<Row>& fresh = *entry.fresh;
    if constexpr (!CoreType::ordered) {
      core_.rows.relocate(core_.rows.iterator_to(*entry.slot), core_.rows.iterator_to(fresh));
    }
    if (entry.rekeyed) {
      core_.keys.erase(entry.hash_before, entry.slot);
      core_.keys.insert(entry.hash_after, &fresh);
      move_to_log(entry, LogKind::rekey_out);
      make_newest(fresh, block().add(LogKind::rekey_in, version(), nullptr));
    } else {
      core_.keys.replace(entry.hash_after, entry.slot, &fresh);
      make_newest(fresh, move_to_log(entry, LogKind::update));
    }
  }

  void erase(const Entry& entry) noexcept {
    core_.keys.erase(entry.hash_before, entry.slot);
    move_to_log(entry, LogKind::erase);
  }

  // Unlinks first: an index must not see the row that is left once it is moved from.
  LogEntry<Row>* move_to_log(const Entry& entry, LogKind kind) noexcept {
    auto node = core_.rows.extract(core_.rows.iterator_to(*entry.slot));
    return block().add(kind, version(), node.value().newest, std::move(node.value().row));
  }

  CoreType& core_;
  Plan<Row>& plan_;
  bool recorded_ = false;
  bool published_ = false;
};

inline void check_identities([[maybe_unused]] const Metrics& metrics, [[maybe_unused]] std::size_t size_before,
                             [[maybe_unused]] std::size_t size_after) {
  assert(size_after == size_before + metrics.inserted - metrics.deleted);
  assert(metrics.updated == metrics.matched_updated + metrics.not_matched_by_source_updated);
  assert(metrics.deleted == metrics.matched_deleted + metrics.not_matched_by_source_deleted);
}

/// Carries out a validated plan as one commit. Returns whether a version was made.
/// Exception safety: strong. Complexity: O(entries) on average, and what the secondary indexes cost.
template <class CoreType>
bool apply(CoreType& core, Plan<typename CoreType::RowType>& plan, CommitNote&& note) {
  if (plan.metrics.affected() == 0 && !note.metadata && !core.options.record_empty_commits) return false;
  const std::size_t size_before = core.rows.size();
  Applier<CoreType> applier(core, plan);
  applier.stage(std::move(note));
  applier.publish();
  check_identities(plan.metrics, size_before, core.rows.size());
  return true;
}

}  // namespace keyfold::detail
