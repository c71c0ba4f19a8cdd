// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/hash_sieve.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/error.hpp>

#include <optional>
#include <string>

/// The last step of planning: works out which keys the planned rows leave and arrive at, and checks that the
/// table as it will be is legal. Only the final state counts, so swaps, chains and freed keys pass in any
/// order of rows.
namespace keyfold::detail {

template <class Parts, class Row>
std::string collision_text(const char* kind, const Row& first, Position first_position, const Row& second,
                           Position second_position) {
  return std::string(kind) + ' ' + Parts::name() + " = " + detail::key_text(Parts::of(second)) +
         " would be held by " + detail::describe(first, first_position) + " and by " +
         detail::describe(second, second_position);
}

/// Checks one unique key, primary or secondary, on the final state.
template <class CoreType, class Parts>
class UniqueCheck {
 public:
  using Row = typename CoreType::RowType;
  using Entry = Planned<Row>;

  /// `expected`: so many are not alone, roughly.
  explicit UniqueCheck(std::size_t expected = 0) noexcept : expected_(expected) {}

  /// A row arrives at its key. `alone`: no other arrives there. `holders(key, hash, visit)` visits the rows
  /// of the table that hold it now, and `leaves(entry)` tells whether a planned entry gives its key up.
  template <class Holders, class Leaves>
  void arrive(Plan<Row>& plan, Entry& entry, std::uint64_t hash, bool alone, Holders holders, Leaves leaves) {
    const auto key = Parts::of(entry.after->get());
    if (!alone) {
      if (!arrived_) arrived_.emplace().presize(expected_);
      const Entry* other = arrived_->add_if_new(hash, &entry, [&](const Entry& arrived) {
        return detail::equal_values(Parts::of(arrived.after->get()), key);
      });
      if (other != nullptr) refuse(*other, entry);
    }
    if (!primary || !entry.key_known) {
      holders(key, hash, [&](const Slot<Row>& holder) {
        Entry* planned = plan.touched(holder);
        if (planned == nullptr || !leaves(*planned)) refuse(holder, planned, entry);
        if constexpr (primary) {
          plan.turn_of(*planned);
          plan.turn_of(entry).frees_key = planned;
          planned->replaced = true;
        }
      });
    }
  }

 private:
  static constexpr bool primary = std::is_same_v<Parts, typename CoreType::KeyParts>;

  [[noreturn]] static void refuse(const Entry& first, const Entry& second) {
    const bool both_new = first.outcome == Outcome::insert && second.outcome == Outcome::insert;
    refuse(first.after->get(), first.position, second, both_new);
  }
  [[noreturn]] static void refuse(const Slot<Row>& holder, const Entry* planned, const Entry& second) {
    const bool updated = planned != nullptr && planned->outcome == Outcome::update;
    refuse(updated ? planned->after->get() : holder.get(), updated ? planned->position : no_position, second,
           false);
  }
  [[noreturn]] static void refuse(const Row& first, Position first_position, const Entry& second,
                                  bool both_new) {
    const Row& row = second.after->get();
    const std::string key = detail::key_text(Parts::of(row));
    const Position second_position = second.position;
    if constexpr (primary) {
      const std::string text =
          detail::collision_text<Parts>("the key", first, first_position, row, second_position);
      if (both_new && first_position != no_position) {
        throw DuplicateSourceKey(text + "; give a duplicate policy with duplicates(), or remove one of them",
                                 Parts::name(), key, first_position, second_position);
      }
      throw DuplicateKey(
          text + "; update the row that is there, as upsert() does, or erase it in the same write",
          Parts::name(), key, first_position, second_position);
    } else {
      throw UniqueViolation(
          detail::collision_text<Parts>("the unique", first, first_position, row, second_position) +
              "; change one of them, or erase one in the same write",
          Parts::name(), key, first_position, second_position);
    }
  }

  std::size_t expected_;
  std::optional<KeyIndex<const Entry>> arrived_;  // those that are not alone
};

template <class CoreType>
class Validator {
 public:
  using Row = typename CoreType::RowType;
  using KeyParts = typename CoreType::KeyParts;
  using Entry = Planned<Row>;

  Validator(const CoreType& core, Plan<Row>& plan) : core_(core), plan_(plan) {}

  void run() {
    if (plan_.metrics.affected() == 0) return;
    plan_.set_out([this](Entry& entry) {
      if (has_indexes || !entry.key_known) find_keys(entry);
    });
    if (plan_.counts.arrivals() != 0) {
      if (plan_.entries.size() == 1 && plan_.entries.front().key_known) {
        find_grave(plan_.entries.front());
      } else {
        check_primary();
      }
    }
    if (!plan_.turns.empty()) plan_.place_in_log();
    check_secondaries(std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>());
    if (!core_.checks.empty()) check_constraints();
  }

 private:
  static constexpr bool has_indexes = std::tuple_size_v<typename CoreType::Indexes> != 0;

  template <std::size_t N>
  using SpecAt = std::tuple_element_t<N, typename CoreType::Indexes>;

  // Hashes the keys left and arrived at, and sees which indexes an update moves in.
  [[gnu::noinline]] void find_keys(Entry& entry) {
    if (entry.outcome == Outcome::erase) {
      entry.hash = detail::hash_of(CoreType::key_of(entry.slot->get()));
    } else if (entry.outcome == Outcome::insert) {
      if (!entry.key_known) arrive_at_key(entry);
    } else if (entry.outcome == Outcome::update) {
      const Row& before = entry.slot->get();
      entry.rekeyed = !entry.key_known &&
                      !detail::equal_values(CoreType::key_of(before), CoreType::key_of(entry.after->get()));
      entry.relinked = relinked(before, entry.after->get(),
                                std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>());
      if (entry.rekeyed) plan_.turn_of(entry).hash_before = detail::hash_of(CoreType::key_of(before));
      if (entry.rekeyed || entry.relinked) arrive_at_key(entry);
    }
  }

  void arrive_at_key(Entry& entry) {
    const auto key = CoreType::key_of(entry.after->get());
    detail::require_valid_key(KeyParts{}, key, entry.position);
    entry.hash = detail::hash_of(key);
  }

  template <class Spec>
  static bool moves_in_index(const Row& before, const Row& after) {
    const auto from = parts_of<Spec>::of(before);
    const auto to = parts_of<Spec>::of(after);
    if constexpr (spec_traits<Spec>::ordered) {
      return detail::less_values(from, to) || detail::less_values(to, from);
    } else {
      return !detail::equal_values(from, to);
    }
  }

  template <std::size_t... N>
  static bool relinked(const Row& before, const Row& after, std::index_sequence<N...>) {
    return (moves_in_index<SpecAt<N>>(before, after) || ...);
  }

  void check_primary() {
    UniqueCheck<CoreType, KeyParts> check;
    const auto holders = [this](const auto& key, std::uint64_t hash, const auto& visit) {
      if (const auto* holder = core_.find(key, hash)) visit(*holder);
    };
    const auto leaves = [](const Entry& planned) { return planned.leaves_key(); };
    constexpr std::size_t ahead = 16;
    const auto placed = plan_.placed();
    HashSieve arrivals(plan_.counts.arrivals());
    placed.for_each_arrival([&](std::uint64_t hash) { arrivals.add(hash); });
    const bool no_graves = core_.graves.size() == 0;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (i + ahead < placed.size()) prefetch(placed.step(i + ahead));
      const PlanStep& step = placed.step(i);
      if (!step.arrives_at_key()) continue;
      const bool alone = arrivals.is_alone(step.hash);
      if (alone && step.key_known() && no_graves) continue;
      check.arrive(plan_, placed[i], step.hash, alone, holders, leaves);
      find_grave(placed[i]);
    }
  }

  void prefetch(const PlanStep& step) const noexcept {
    if (step.arrives_at_key() && !step.key_known()) core_.keys.prefetch(step.hash);
  }

  void find_grave(Entry& entry) {
    if (core_.graves.size() == 0) return;
    if (const auto* turn = plan_.turn_if_any(entry); turn != nullptr && turn->frees_key != nullptr) return;
    auto* grave = core_.find_grave(CoreType::key_of(entry.after->get()), entry.hash);
    if (grave != nullptr) plan_.turn_of(entry).grave = grave;
  }

  template <std::size_t... N>
  void check_secondaries(std::index_sequence<N...>) {
    (check_secondary<N>(), ...);
  }

  template <std::size_t N>
  void check_secondary() {
    using Spec = SpecAt<N>;
    using Parts = parts_of<Spec>;
    if constexpr (spec_traits<Spec>::unique) {
      UniqueCheck<CoreType, Parts> check(plan_.entries.size());
      const auto holders = [&](const auto& key, std::uint64_t, const auto& visit) {
        const auto [first, last] = core_.template matching<N>(key);
        for (auto it = first; it != last; ++it) visit(*it);
      };
      const auto leaves = [](const Entry& planned) {
        return planned.outcome == Outcome::erase ||
               (planned.outcome == Outcome::update &&
                moves_in_index<Spec>(planned.slot->get(), planned.after->get()));
      };
      for (Entry& entry : plan_.entries) {
        if (!entry.leaves_row() || detail::has_empty_part(Parts::of(entry.after->get()))) continue;
        if (entry.outcome == Outcome::update && !moves_in_index<Spec>(entry.slot->get(), entry.after->get()))
          continue;
        check.arrive(plan_, entry, detail::hash_of(Parts::of(entry.after->get())), plan_.entries.size() == 1,
                     holders, leaves);
      }
    }
  }

  void check_constraints() const {
    for (const Entry& entry : plan_.entries) {
      if (!entry.leaves_row()) continue;
      for (const auto& check : core_.checks)
        detail::require_met<KeyParts, Row>(check, entry.after->get(), entry.position, true);
    }
  }

  const CoreType& core_;
  Plan<Row>& plan_;
};

/// Throws DuplicateKey, DuplicateSourceKey, UniqueViolation, InvalidKey or CheckViolation, or what the user's
/// comparisons throw.
template <class CoreType>
void validate(const CoreType& core, Plan<typename CoreType::RowType>& plan) {
  Validator<CoreType>(core, plan).run();
}

}  // namespace keyfold::detail
