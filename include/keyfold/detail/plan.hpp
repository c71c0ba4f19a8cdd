// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/detail/holder.hpp>
#include <keyfold/detail/list.hpp>
#include <keyfold/detail/log.hpp>
#include <keyfold/detail/sequence_state.hpp>
#include <keyfold/metrics.hpp>

#include <array>
#include <cassert>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace keyfold::detail {

enum class Outcome : std::uint8_t {
  seen,       ///< matched, but no clause acts on it
  unchanged,  ///< an update that would not change it
  insert,
  // From here on a row goes to history:
  update,
  erase
};

/// What a write will do to one row.
template <class Row>
struct Planned {
  explicit Planned(const Slot<Row>* target) noexcept : slot(target) {}

  const Slot<Row>* slot;             // the row it acts on; null for an insert
  std::optional<Holder<Row>> after;  // the row it leaves behind: insert and update
  Position position = no_position;   // of the source row
  std::uint32_t clause = 0;          // that fired, by its number in the rule
  Outcome outcome = Outcome::seen;
  // An update keeps its key; an insert has a valid one, with `hash`, that no row has.
  bool key_known : 1 = false;

  // Filled in by validate():
  bool rekeyed : 1 = false;     // an update that changes the primary key
  bool relinked : 1 = false;    // an update that changes the key of an index: it needs a slot of its own
  bool replaced : 1 = false;    // another row arrives at the key that this one leaves
  std::uint32_t turn = 0;       // the number of its KeyTurn, from 1; 0: it has none
  std::uint32_t log_place = 0;  // where its entry begins in the block of the commit
  std::uint64_t hash = 0;       // of the key it arrives at or keeps; for an erase, of the one it leaves

  // Filled in by apply():
  const Slot<Row>* fresh = nullptr;  // the slot made for it

  bool leaves_row() const noexcept { return outcome == Outcome::insert || outcome == Outcome::update; }
  bool leaves_key() const noexcept { return outcome == Outcome::erase || rekeyed; }
  bool arrives_at_key() const noexcept { return outcome == Outcome::insert || rekeyed; }
  /// Whether there was no change of its key before, as far as is known.
  bool is_first() const noexcept { return outcome == Outcome::insert && turn == 0; }
  bool needs_slot() const noexcept { return outcome == Outcome::insert || rekeyed || relinked; }
};

/// What few planned rows have: one leaves a key that another arrives at, or a key comes back to life.
template <class Row>
struct KeyTurn {
  std::uint64_t hash_before = 0;  // of the key that a rekeyed update leaves
  const Planned<Row>* frees_key =
      nullptr;                     // for an arrival: the row that leaves its key in the same write, or...
  LogEntry<Row>* grave = nullptr;  // ...the last change of its key, which no row has now

  // Filled in by apply():
  LogEntry<Row>* left = nullptr;     // its entry at the key it leaves
  LogEntry<Row>* arrived = nullptr;  // its entry at the key it arrives at
};

/// Of planned rows: what they take in the log, and how many there are of what; each half of a number is a
/// count.
struct PlanSums {
  constexpr PlanSums& operator+=(const PlanSums& other) noexcept {
    firsts_and_bare += other.firsts_and_bare;
    images_and_departures += other.images_and_departures;
    log_size += other.log_size;
    return *this;
  }
  constexpr EntryCounts log() const noexcept {
    return {low(firsts_and_bare), high(firsts_and_bare), low(images_and_departures)};
  }
  constexpr std::size_t departures() const noexcept { return high(images_and_departures); }

  static constexpr std::uint64_t both(bool low, bool high) noexcept {
    return std::uint64_t{high} << 32U | std::uint64_t{low};
  }
  static constexpr std::size_t low(std::uint64_t number) noexcept { return number & 0xFFFF'FFFFU; }
  static constexpr std::size_t high(std::uint64_t number) noexcept { return number >> 32U; }

  std::uint64_t firsts_and_bare = 0;
  std::uint64_t images_and_departures = 0;
  std::uint64_t log_size = 0;  // in alignments of the log
};

/// What becomes of a planned row, as numbers to count with: of comparisons a compiler may make branches.
struct PlannedKind {
  PlanSums sums;
  std::uint8_t changes = 0;
  std::uint8_t arrives_at_key = 0;
};

/// By the outcome, and 8 more for an update that changes the key and an insert of a key that was there
/// before.
template <class Row>
inline constexpr auto planned_kinds = [] {
  using Logged = LogEntry<Row>;
  std::array<PlannedKind, 16> kinds;
  for (std::size_t number = 0; number < kinds.size(); ++number) {
    const auto outcome = static_cast<Outcome>(number % 8);
    const bool other = number >= 8;
    const bool insert = outcome == Outcome::insert;
    const bool rekeyed = outcome == Outcome::update && other;
    const bool first = insert && !other;
    const bool bare = rekeyed || (insert && other);
    const bool image = outcome == Outcome::update || outcome == Outcome::erase;
    const std::size_t log_size =
        (first ? Logged::first_size : 0) + (bare ? Logged::bare_size : 0) + (image ? Logged::image_size : 0);
    kinds[number].sums = {PlanSums::both(first, bare),
                          PlanSums::both(image, outcome == Outcome::erase || rekeyed),
                          log_size / Logged::alignment};
    kinds[number].changes = insert || image;
    kinds[number].arrives_at_key = insert || rekeyed;
  }
  return kinds;
}();

/// What is asked several times of a planned row that changes something: beside the plan, where it takes less
/// room in a cache.
struct PlanStep {
  PlanStep() = default;
  PlanStep(std::uint64_t entry_hash, std::size_t number, std::size_t arrives, std::size_t known) noexcept
      : hash(entry_hash), bits(known << 33U | arrives << 32U | number) {}

  std::uint32_t number() const noexcept { return static_cast<std::uint32_t>(bits); }
  bool arrives_at_key() const noexcept { return (bits >> 32U & 1U) != 0; }
  bool key_known() const noexcept { return (bits >> 33U & 1U) != 0; }

  std::uint64_t hash = 0;  // of the entry
  std::uint64_t bits = 0;
};

/// What a plan lies in, for one plan after the other.
template <class Row>
struct PlanMemory {
  List<Planned<Row>> entries;
  List<PlanStep> steps;
  std::size_t most_kept = least_kept;  // bytes of entries, of which the room is not given back

  static constexpr std::size_t least_kept = std::size_t{256} * 1024;
};

/// Some entries of a plan.
template <class Row>
class SomePlanned {
 public:
  SomePlanned(Planned<Row>* entries, const PlanStep* steps, std::size_t size) noexcept
      : entries_(entries), steps_(steps), size_(size) {}

  std::size_t size() const noexcept { return size_; }
  Planned<Row>& operator[](std::size_t i) const noexcept { return entries_[steps_[i].number()]; }
  const PlanStep& step(std::size_t i) const noexcept { return steps_[i]; }

  /// Calls `visit(hash)` for each key that one of them arrives at.
  template <class Visit>
  void for_each_arrival(Visit visit) const {
    for (const PlanStep* step = steps_; step != steps_ + size_; ++step)
      if (step->arrives_at_key()) visit(step->hash);
  }

 private:
  Planned<Row>* entries_;
  const PlanStep* steps_;
  std::size_t size_;
};

/// What a plan needs room for.
struct PlanCounts {
  /// Of rows at a key.
  std::size_t arrivals() const noexcept { return log.firsts + log.bare; }

  EntryCounts log;
  std::size_t departures = 0;  // of rows from a key
};

/// A write that is worked out but not carried out: at most one entry for each target row. Everything that can
/// throw on account of the user's code happens while it is made.
///
/// Which rows it touches is marked in the rows themselves, after Briggs and Torczon's sparse sets (ACM LOPLAS
/// 2, 1993): a row's mark points to an entry, and counts only if that entry points back. So marks need no
/// clearing, not even after an exception.
template <class Row>
class Plan {
 public:
  Plan(std::uint32_t epoch, PlanMemory<Row>& memory) noexcept
      : entries(memory.entries), memory_(memory), epoch_(epoch), steps_(memory.steps) {
    assert(entries.empty());
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    entries.clear();
    if (entries.capacity() * sizeof(Planned<Row>) <= memory_.most_kept) return;
    entries.free();
    steps_.free();
  }

  /// The entry for this row, or null. The epoch in the mark saves looking at the entries for rows not
  /// touched.
  Planned<Row>* touched(const Slot<Row>& slot) noexcept {
    if (slot.mark >> 32U != epoch_) return nullptr;
    const auto index = static_cast<std::uint32_t>(slot.mark);
    return index < entries.size() && entries[index].slot == &slot ? &entries[index] : nullptr;
  }
  const Planned<Row>* touched(const Slot<Row>& slot) const noexcept {
    return const_cast<Plan*>(this)->touched(slot);
  }

  /// A new entry for this row. Requires: it has none yet, or one that was only `seen`, which no longer
  /// counts.
  Planned<Row>& touch(const Slot<Row>& slot) {
    const std::size_t number = entries.size();
    Planned<Row>& entry = add(number, &slot);
    slot.mark = std::uint64_t{epoch_} << 32U | number;
    return entry;
  }

  /// An entry for a row that is not in the table yet.
  Planned<Row>& add() { return add(entries.size(), nullptr); }

  // Whole changes, for writes that are not made of clauses. Each counts as one source row.

  void insert(Holder<Row>&& row, Position position) {
    Planned<Row>& entry = add();
    entry.after = std::move(row);
    entry.outcome = Outcome::insert;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.inserted;
  }
  void update(const Slot<Row>& slot, Holder<Row>&& row, Position position) {
    Planned<Row>& entry = touch(slot);
    entry.after = std::move(row);
    entry.outcome = Outcome::update;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.updated;
    ++metrics.matched_updated;
  }
  /// An update that would change nothing.
  void keep(const Slot<Row>& slot, Position position) {
    Planned<Row>& entry = touch(slot);
    entry.outcome = Outcome::unchanged;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.unchanged;
  }
  void erase(const Slot<Row>& slot, Position position) {
    Planned<Row>& entry = touch(slot);
    entry.outcome = Outcome::erase;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.deleted;
    ++metrics.matched_deleted;
  }

  /// A row goes without a source row that says so.
  void remove(const Slot<Row>& slot) {
    touch(slot).outcome = Outcome::erase;
    ++metrics.deleted;
    ++metrics.not_matched_by_source_deleted;
  }

  KeyTurn<Row>& turn_of(Planned<Row>& entry) {
    if (entry.turn == 0) {
      turns.emplace_back();
      entry.turn = static_cast<std::uint32_t>(turns.size());
    }
    return turns[entry.turn - 1];
  }
  KeyTurn<Row>* turn_if_any(const Planned<Row>& entry) noexcept {
    return entry.turn == 0 ? nullptr : &turns[entry.turn - 1];
  }
  std::uint64_t hash_before(const Planned<Row>& entry) const noexcept {
    return entry.rekeyed ? turns[entry.turn - 1].hash_before : entry.hash;
  }

  /// Sorts out what there is to do, and where in the log it goes, once `complete(entry)` has said all of an
  /// entry. Loops over entries of one kind have no branch that a processor would have to guess for each row,
  /// and neither has this.
  template <class Complete>
  void set_out(Complete complete) {
    const std::size_t size = entries.size();
    if (steps_.size() < size) steps_.resize(size);
    PlanSums sums;
    PlanStep* front = steps_.begin();
    PlanStep* back = front + size;
    std::size_t number = 0;
    for (Planned<Row>& entry : entries) {
      complete(entry);
      assert(entry.turn == 0 || entry.rekeyed);
      const PlannedKind& kind = kind_of(entry, entry.rekeyed);
      entry.log_place = static_cast<std::uint32_t>(sums.log_size);
      sums += kind.sums;
      const unsigned slot = unsigned{kind.arrives_at_key} | unsigned{entry.relinked};
      const PlanStep step(entry.hash, number++, kind.arrives_at_key, entry.key_known);
      *front = step;
      front += slot;
      back[-1] = step;
      back -= kind.changes & ~slot;
    }
    count(sums);
    placed_ = static_cast<std::size_t>(front - steps_.begin());
    first_other_ = back;
    others_ = static_cast<std::size_t>(steps_.begin() + size - back);
  }

  /// Gives each entry another place in the log, now that all turns are known. Requires: set_out().
  void place_in_log() {
    PlanSums sums;
    for (Planned<Row>& entry : entries) {
      entry.log_place = static_cast<std::uint32_t>(sums.log_size);
      sums += kind_of(entry, entry.outcome == Outcome::insert ? entry.turn != 0 : entry.rekeyed).sums;
    }
    count(sums);
  }

  /// The entries that need a slot, in order: none before set_out().
  SomePlanned<Row> placed() noexcept { return {entries.data(), steps_.data(), placed_}; }
  /// The other entries that change something, in reverse order: none before set_out().
  SomePlanned<Row> others() noexcept { return {entries.data(), first_other_, others_}; }

  /// Whether each source row is counted once: an identity of every write that matches by key.
  bool source_rows_add_up() const noexcept {
    return metrics.source_rows == metrics.inserted + metrics.matched_updated + metrics.matched_deleted +
                                      metrics.unchanged + metrics.skipped + metrics.dropped_duplicates +
                                      metrics.dropped_late + extra_erasers;
  }

  List<Planned<Row>>& entries;
  List<KeyTurn<Row>> turns;
  PlanCounts counts;                          // by validate()
  std::unique_ptr<SequenceUpdate> sequences;  // what apply_changes() is to remember; may be null
  Metrics metrics;
  std::size_t extra_erasers = 0;  // further source rows that fired an unconditional erase() on an erased row

 private:
  static const PlannedKind& kind_of(const Planned<Row>& entry, bool other) noexcept {
    return planned_kinds<Row>[static_cast<std::size_t>(entry.outcome) | std::size_t{other} << 3U];
  }

  void count(const PlanSums& sums) {
    if (sums.log_size > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("keyfold: one write may move at most " +
                              std::to_string(LogEntry<Row>::alignment * 4) +
                              " GiB to history; write in several batches");
    counts = {sums.log(), sums.departures()};
  }

  [[gnu::always_inline]] Planned<Row>& add(std::size_t number, const Slot<Row>* slot) {
    if (number >= std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("keyfold: one write may touch fewer than 2^32 rows; write in several batches");
    return entries.emplace_back(slot);
  }

  PlanMemory<Row>& memory_;
  std::uint32_t epoch_;
  // Those of placed() from the front, those of others() from the back.
  List<PlanStep>& steps_;
  std::size_t placed_ = 0;
  const PlanStep* first_other_ = nullptr;
  std::size_t others_ = 0;
};

template <class Row>
ChangeSet<Row> to_change_set(const Plan<Row>& plan, const KeyFunctions<Row>& key) {
  std::vector<Change<Row>> changes;
  for (const Planned<Row>& entry : plan.entries) {
    if (entry.outcome == Outcome::insert) {
      changes.push_back(Change<Row>::insert(entry.after->get()));
    } else if (entry.outcome == Outcome::update) {
      changes.push_back(Change<Row>::update(entry.slot->get(), entry.after->get()));
    } else if (entry.outcome == Outcome::erase) {
      changes.push_back(Change<Row>::erase(entry.slot->get()));
    }
  }
  return ChangeSet<Row>(std::move(changes), key);
}

}  // namespace keyfold::detail
