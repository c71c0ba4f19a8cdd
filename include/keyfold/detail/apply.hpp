// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/list.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/prefetch.hpp>
#include <keyfold/detail/tree_paths.hpp>
#include <keyfold/detail/validate.hpp>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace keyfold::detail {

/// Puts a row into the container, at the end or in key order. Throws what Boost.MultiIndex and the user's
/// hashes and comparisons throw; strong guarantee.
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
/// First everything that can fail: room in the key index and the log, and a slot in the container for each
/// row that is new or changes the key of an index, beside the old one. A failure takes those slots out again,
/// which needs no comparison and no memory. Then publish(), which cannot fail: it moves rows into and out of
/// slots, changes pointers, and unlinks what is gone.
template <class CoreType>
class Applier {
 public:
  using Row = typename CoreType::RowType;
  using Entry = Planned<Row>;

  Applier(CoreType& core, Plan<Row>& plan) noexcept : core_(core), plan_(plan) {}
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  ~Applier() {
    if (!published_) undo();
  }

  [[gnu::always_inline]] void stage(CommitNote&& note) {
    if (!note.once.empty()) number_apps(note.once);
    record(note);
    make_room();
    add_slots();
    if (core_.journal != nullptr) core_.journal->commit(*made_, note.once, plan_);
  }

  [[gnu::always_inline]] void publish() noexcept {
    published_ = true;
    for (const Numbered& numbered : numbered_) numbered.app->second = numbered.number;
    if (plan_.entries.size() == 1) {
      carry_out(plan_.entries.front());
    } else {
      carry_out_all();
    }
    made_->block.close(plan_.counts.log);
    for (const KeyTurn<Row>& turn : plan_.turns) {
      if (turn.frees_key != nullptr) turn.arrived->set_older(plan_.turns[turn.frees_key->turn - 1].left);
    }
    made_->table_size = core_.rows.size();
    core_.log->record_bytes += made_->block.bytes();
    if (!core_.log->first_commit) core_.log->first_commit = made_->timestamp;
  }

 private:
  static constexpr std::size_t prefetch_distance = 8;

  /// An application whose last number this commit sets.
  struct Numbered {
    typename decltype(CoreType::applied)::iterator app;
    bool added;
    std::uint64_t number;
  };

  [[gnu::noinline]] void undo() noexcept {
    for (const Entry& entry : plan_.entries) {
      if (entry.fresh != nullptr) core_.rows.erase(core_.rows.iterator_to(*entry.fresh));
    }
    if (made_ != nullptr) core_.log->records.pop_back();
    for (const Numbered& numbered : numbered_) {
      if (numbered.added) core_.applied.erase(numbered.app);
    }
  }

  [[gnu::noinline]] void number_apps(const std::vector<AppNumber>& once) {
    numbered_.reserve(once.size());
    for (const AppNumber& next : once) {
      const auto [app, added] = core_.applied.insert({next.app, std::uint64_t{0}});
      numbered_.push_back({app, added, next.number});
    }
  }

  [[gnu::always_inline]] void record(CommitNote& note) {
    auto& records = core_.log->records;
    Timestamp time = note.timestamp ? *note.timestamp : core_.options.clock();
    Version version = 1;
    if (!records.empty()) {
      const CommitRecord<Row>& last = records.back();
      time = std::max(time, detail::tick_after(last.timestamp));
      version = last.version + 1;
    }
    made_ = &records.emplace_back(version, time, note, plan_.metrics, core_.log->arena, plan_.counts.log);
  }

  [[gnu::always_inline]] void make_room() {
    const PlanCounts& counts = plan_.counts;
    if (plan_.entries.size() == 1) {
      const Entry& entry = plan_.entries.front();
      if (entry.arrives_at_key()) core_.keys.reserve_one(entry.hash);
      if (entry.leaves_key()) core_.graves.reserve_one(plan_.hash_before(entry));
      return;
    }
    core_.keys.reserve(counts.arrivals(), [this](auto visit) { plan_.placed().for_each_arrival(visit); });
    core_.graves.reserve(counts.departures, [this](auto visit) {
      for (const Entry& entry : plan_.entries) {
        if (entry.leaves_key()) visit(plan_.hash_before(entry));
      }
    });
  }

  void carry_out(Entry& entry) noexcept {
    if (entry.needs_slot()) {
      place(entry);
    } else if (entry.outcome == Outcome::update) {
      update_in_place(entry);
    } else if (entry.outcome == Outcome::erase) {
      leave(entry, LogKind::erase);
    }
  }

  void carry_out_all() noexcept {
    const auto placed = plan_.placed();
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (i + prefetch_distance < placed.size()) core_.keys.prefetch(placed.step(i + prefetch_distance).hash);
      prefetch_leaving(placed, i);
      place(placed[i]);
    }
    const auto others = plan_.others();
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (i + 2 * prefetch_distance < others.size())
        detail::prefetch_lines(others[i + 2 * prefetch_distance].slot);
      if (i + prefetch_distance < others.size())
        detail::prefetch_to_write(others[i + prefetch_distance].slot->newest);
      prefetch_leaving(others, i);
      Entry& entry = others[i];
      entry.outcome == Outcome::update ? update_in_place(entry) : leave(entry, LogKind::erase);
    }
  }

  void place(Entry& entry) noexcept {
    if (entry.outcome == Outcome::insert) {
      arrive(entry, entry.log_place, LogKind::insert, core_.next_order++);
    } else {
      replace(entry);
    }
  }

  void add_slots() {
    const auto placed = plan_.placed();
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (i % paths_at_once == 0) load_paths(placed, i);
      placed[i].fresh = detail::add_slot(core_, std::move(*placed[i].after));
    }
  }

  bool has_large_trees() const noexcept {
    return CoreType::has_trees && core_.rows.size() >= smallest_tree_to_load;
  }

  // The places in ordered indexes of the next entries.
  void load_paths(const SomePlanned<Row>& placed, std::size_t first) const {
    if constexpr (CoreType::has_trees) {
      const std::size_t count = std::min(paths_at_once, placed.size() - first);
      if (!has_large_trees() || count == 1) return;
      core_.for_each_tree([&]<class Parts>(const auto& index, Parts) {
        detail::load_paths(index, count, [&](std::size_t i, const Slot<Row>& slot) {
          return detail::less_values(Parts::of(placed[first + i].after->get()), Parts::of(slot.get()));
        });
      });
    }
  }

  // What is written when the slots of entries to come leave ordered indexes.
  void prefetch_leaving(const SomePlanned<Row>& entries, std::size_t i) const noexcept {
    if constexpr (CoreType::has_trees) {
      if (!has_large_trees()) return;
      const auto leaving = [&](std::size_t number) -> const Slot<Row>* {
        if (number >= entries.size()) return nullptr;
        const Entry& entry = entries[number];
        return entry.outcome == Outcome::erase || entry.needs_slot() ? entry.slot : nullptr;
      };
      if (const auto* slot = leaving(i + 2 * prefetch_distance)) detail::prefetch_lines(slot);
      if (const auto* slot = leaving(i + prefetch_distance))
        core_.for_each_tree([&](const auto& index, auto) { detail::load_neighbours(index, *slot); });
    }
  }

  LogBlock<Row>& block() noexcept { return made_->block; }
  Version version() const noexcept { return made_->version; }

  void update_in_place(Entry& entry) noexcept {
    const Slot<Row>& slot = *entry.slot;
    detail::make_newest(
        slot, block().put(entry.log_place, LogKind::update, version(), slot.newest, std::move(slot.row)));
    slot.row = std::move(*entry.after);
  }

  // The row goes on in another slot, at the same place in the order of rows.
  [[gnu::noinline]] void replace(Entry& entry) noexcept {
    const Slot<Row>& fresh = *entry.fresh;
    const std::uint64_t order = entry.slot->order;
    if constexpr (!CoreType::ordered) {
      core_.rows.relocate(core_.rows.iterator_to(*entry.slot), core_.rows.iterator_to(fresh));
    }
    if (entry.rekeyed) {
      leave(entry, LogKind::rekey_out);
      arrive(entry, entry.log_place + LogEntry<Row>::image_size / LogEntry<Row>::alignment, LogKind::rekey_in,
             order);
    } else {
      fresh.order = order;
      core_.keys.replace(entry.hash, entry.slot, &fresh);
      detail::make_newest(fresh, move_to_log(entry, LogKind::update));
    }
  }

  void arrive(Entry& entry, std::size_t place, LogKind kind, std::uint64_t order) noexcept {
    KeyTurn<Row>* turn = plan_.turn_if_any(entry);
    LogEntry<Row>* grave = turn != nullptr ? turn->grave : nullptr;
    LogEntry<Row>* arrived =
        entry.is_first() ? block().put_first(place, version()) : block().put(place, kind, version(), grave);
    entry.fresh->order = order;
    detail::make_newest(*entry.fresh, arrived);
    core_.keys.insert(entry.hash, entry.fresh);
    if (turn != nullptr) turn->arrived = arrived;
    if (grave != nullptr) core_.graves.erase(entry.hash, grave);
  }

  [[gnu::noinline]] void leave(Entry& entry, LogKind kind) noexcept {
    const std::uint64_t order = entry.slot->order;
    const std::uint64_t hash = plan_.hash_before(entry);
    core_.keys.erase(hash, entry.slot);
    LogEntry<Row>* left = move_to_log(entry, kind);
    left->set_order(order);
    if (KeyTurn<Row>* turn = plan_.turn_if_any(entry)) turn->left = left;
    if (!entry.replaced) core_.graves.insert(hash, left);
  }

  // Unlinks first: an index must not see the row that is left once it is moved from.
  LogEntry<Row>* move_to_log(const Entry& entry, LogKind kind) noexcept {
    auto node = core_.rows.extract(core_.rows.iterator_to(*entry.slot));
    return block().put(entry.log_place, kind, version(), node.value().newest, std::move(node.value().row));
  }

  CoreType& core_;
  Plan<Row>& plan_;
  List<Numbered> numbered_;
  CommitRecord<Row>* made_ = nullptr;
  bool published_ = false;
};

inline void check_identities([[maybe_unused]] const Metrics& metrics,
                             [[maybe_unused]] std::size_t size_before,
                             [[maybe_unused]] std::size_t size_after) {
  assert(size_after == size_before + metrics.inserted - metrics.deleted);
  assert(metrics.updated == metrics.matched_updated + metrics.not_matched_by_source_updated);
  assert(metrics.deleted == metrics.matched_deleted + metrics.not_matched_by_source_deleted);
}

template <class CoreType>
void publish_sequences(CoreType& core, Plan<typename CoreType::RowType>& plan) noexcept {
  if (plan.sequences == nullptr) return;
  plan.sequences->publish();
  ++core.sequences_changed;
}

/// Carries out a validated plan as one commit. Returns whether a version was made. What apply_changes()
/// remembers is kept in any case.
/// Exception safety: strong. Complexity: O(entries) on average, and what the secondary indexes cost.
template <class CoreType>
bool apply(CoreType& core, Plan<typename CoreType::RowType>& plan, CommitNote&& note) {
  if (plan.sequences != nullptr) plan.sequences->stage(core.sequences);
  const auto says_something = [&] {
    return note.metadata || !note.once.empty() || note.timestamp || core.options.record_empty_commits;
  };
  if (plan.metrics.affected() == 0 && !says_something()) {
    if (plan.sequences != nullptr && core.journal != nullptr) core.journal->remember(*plan.sequences);
    detail::publish_sequences(core, plan);
    return false;
  }
  const std::size_t size_before = core.rows.size();
  Applier<CoreType> applier(core, plan);
  applier.stage(std::move(note));
  applier.publish();
  detail::publish_sequences(core, plan);
  detail::check_identities(plan.metrics, size_before, core.rows.size());
  return true;
}

}  // namespace keyfold::detail
