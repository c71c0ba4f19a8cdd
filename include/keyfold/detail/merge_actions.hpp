// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/clause.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/error.hpp>

#include <optional>
#include <string>
#include <utility>

/// What the clauses of a merge do to its plan.
namespace keyfold::detail {

/// Knows the rows and not the clauses, so that it is compiled once for all merges of a table.
template <class CoreType>
class MergeActions {
 protected:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;
  using Entry = Planned<Row>;

  MergeActions(const CoreType& core, Plan<Row>& plan, bool rewrites_unchanged) noexcept
      : core_(core), plan_(plan), rewrites_unchanged_(rewrites_unchanged) {}

  Metrics& metrics() noexcept { return plan_.metrics; }

  bool unchanged([[maybe_unused]] const Row& before, [[maybe_unused]] const Row& after) const {
    if constexpr (RowComparable<Row>) {
      return !rewrites_unchanged_ && same_row(before, after);
    } else {
      return false;
    }
  }

  Entry& entry_for(const SlotType& slot, Position position, std::uint32_t number) {
    Entry& entry =
        plan_.touch(slot);  // anew if it was only seen so far, so that changes keep the order of the source
    entry.position = position;
    entry.clause = number;
    return entry;
  }

  Entry& entry_for_insert(Position position) {
    Entry& entry = plan_.add();
    entry.position = position;
    return entry;
  }

  // Those that follow are told when `entry.after` is what a clause has made, if it has made anything.

  void write_update(Entry& entry, std::size_t& counter) noexcept {
    if (!entry.after) {
      entry.outcome = Outcome::unchanged;
      if (entry.position != no_position) ++metrics().unchanged;  // it counts source rows
      return;
    }
    entry.outcome = Outcome::update;
    ++metrics().updated;
    ++counter;
  }

  void write_insert(Entry& entry) noexcept {
    entry.outcome = Outcome::insert;
    ++metrics().inserted;
  }

  void write_erase(const SlotType& slot, Position position, std::uint32_t number, std::size_t& counter) {
    entry_for(slot, position, number).outcome = Outcome::erase;
    ++metrics().deleted;
    ++counter;
  }

  [[noreturn]] void refuse_second(const SlotType& slot, Position first, Position second) const {
    const std::string key = detail::key_text(CoreType::key_of(slot.get()));
    throw DuplicateSourceKey(
        "source rows " + std::to_string(first) + " and " + std::to_string(second) +
            " both act on the row with key " + key +
            "; give a duplicate policy with duplicates(), or a condition that only one of them meets",
        CoreType::KeyParts::name(), key, first, second);
  }

  template <class KeyTuple>
  [[noreturn]] static void raise(const Raise& action, const KeyTuple& key, Position position) {
    throw ClauseRaised(std::string(action.message), detail::key_text(key), position);
  }

  const CoreType& core_;
  Plan<Row>& plan_;

 private:
  bool rewrites_unchanged_;
};

}  // namespace keyfold::detail
