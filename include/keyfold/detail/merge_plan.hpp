// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/clause.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/deduplicator.hpp>
#include <keyfold/detail/merge_actions.hpp>
#include <keyfold/detail/merge_syntax.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/prefetch.hpp>
#include <keyfold/detail/shared_text.hpp>
#include <keyfold/detail/source_key.hpp>
#include <keyfold/detail/source_rows.hpp>
#include <keyfold/duplicates.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>

/// Planning a merge: reads the source, finds the target rows, evaluates the clauses. Nothing in the table
/// changes.
namespace keyfold::detail {

// --- The key of a source row

/// The words of a merge for a key that is not found, see source_part.
struct MergeWords {
  template <bool found>
  struct KeyFound {
    static_assert(found,
                  "keyfold: cannot find the key of the source; name its members with .on<&Source::member>()");
  };
};

template <class CoreType, class Match>
inline constexpr bool matches_by_key = std::is_void_v<typename Match::Index> ||
                                       std::is_same_v<typename Match::Index, typename CoreType::KeyParts>;

template <class CoreType, class Match>
using match_target_parts =
    std::conditional_t<matches_by_key<CoreType, Match>, typename CoreType::KeyParts, typename Match::Index>;

template <class CoreType, class Match, class Source>
using match_source_parts =
    typename std::conditional_t<std::is_void_v<typename Match::Source>,
                                default_source_parts<typename CoreType::KeyParts, Source, MergeWords>,
                                std::type_identity<typename Match::Source>>::type;

/// The key of a source row, and the index of the table that it is looked up in.
template <class CoreType, class Match, class Source>
struct MatchKey : SourceKey<typename CoreType::RowType, Source, match_target_parts<CoreType, Match>,
                            match_source_parts<CoreType, Match, Source>> {
  using Base = SourceKey<typename CoreType::RowType, Source, match_target_parts<CoreType, Match>,
                         match_source_parts<CoreType, Match, Source>>;
  static constexpr bool by_key = matches_by_key<CoreType, Match>;
  static_assert(Base::SourceParts::size == Base::TargetParts::size,
                "keyfold: on<>() needs one member of the source for each part of the table's key");
};

template <auto... S, auto... T>
void print_match(std::string& out, Parts<S...>, Parts<T...>) {
  const char* separator = "source.";
  ((out += separator, out += member_name<S>, out += " = target.", out += member_name<T>,
    separator = " AND source."),
   ...);
}

/// A merge as history records it: "ON source.id = target.id WHEN MATCHED THEN ...".
template <class CoreType, class Rule>
std::string merge_text(const Rule& rule) {
  using Key = MatchKey<CoreType, typename Rule::Match, typename Rule::Source>;
  std::string out = "ON ";
  detail::print_match(out, typename Key::SourceParts{}, typename Key::TargetParts{});
  if constexpr (!std::same_as<typename Rule::Match::Condition, Always>) {
    out += " AND ";
    detail::print_condition(out, rule.match().condition);
  }
  if constexpr (requires { rule.policy().print(out); }) {
    out += " DUPLICATES ";
    rule.policy().print(out);
  }
  return out + ' ' + rule.text();
}

/// For a commit. Commits by a rule such as that of upsert() share it.
template <class CoreType, class Rule>
SharedText shared_merge_text(const Rule& rule) {
  if constexpr (Rule::has_fixed_text) {
    static const std::string& text = *new std::string(detail::merge_text<CoreType>(rule));
    return SharedText::lasting(text);
  } else {
    return SharedText(detail::merge_text<CoreType>(rule));
  }
}

// --- The planner

template <class CoreType, class Rule, class Declared>
class MergePlanner : MergeActions<CoreType> {
  using Actions = MergeActions<CoreType>;
  using Actions::core_;
  using Actions::plan_;
  using Actions::refuse_second;
  using Actions::unchanged;

 public:
  using Row = typename CoreType::RowType;
  using Source = typename Rule::Source;
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;
  using Key = MatchKey<CoreType, typename Rule::Match, Source>;
  using SlotType = Slot<Row>;
  using Entry = Planned<Row>;

  MergePlanner(const CoreType& core, const Rule& rule, Plan<Row>& plan)
      : Actions(core, plan, rule.rewrites_unchanged()), rule_(rule) {}

  void run(typename Traits::Range& range) {
    plan_.entries.reserve(detail::rows_to_expect<Declared, Source>(range));
    if constexpr (!std::same_as<std::remove_cvref_t<decltype(rule_.policy())>, NoPolicy>) {
      take_survivors(range);
    } else if constexpr (is_one_row<typename Traits::Range>) {
      take_one(std::addressof(range.front()), 0);
    } else {
      detail::for_each_block<Declared, Source>(
          range, [this](std::span<const Pointer> rows, Position first) { take_block(rows, first); });
    }
    if constexpr (Rule::template has_clause<ClauseKind::not_matched_by_source>) visit_unmatched_targets();
    assert(!Key::by_key || plan_.source_rows_add_up());
  }

 private:
  /// Whether a row that takes the place of another, or comes in, has the key that it was looked up by.
  template <class Action>
  static constexpr bool keeps_key =
      (std::same_as<Action, UpdateAll> || std::same_as<Action, InsertAll>) && std::same_as<Source, Row> &&
      Key::by_key && std::same_as<typename Key::SourceParts, typename CoreType::KeyParts> &&
      std::same_as<typename Rule::Match::Condition, Always>;

  static constexpr bool marks_seen = Rule::template has_clause<ClauseKind::not_matched_by_source>;

  /// What has become of a source row.
  enum class Fate : std::uint8_t { not_matched, matched, acted };

  /// What the index of keys says before rows are compared.
  struct Lookup {
    std::uint64_t hash;
    const SlotType* candidate;
  };

  // --- Source rows

  Lookup look_up(std::uint64_t hash) const {
    if constexpr (Key::by_key) return {hash, core_.keys.candidate(hash)};
    return {hash, nullptr};
  }

  void take_one(Pointer row, Position position) {
    const auto key = Key::of(*row);
    if constexpr (Key::by_key) detail::require_valid_key(typename Key::SourceParts{}, key, position);
    const Lookup lookup = look_up(detail::hash_of(key));
    if (lookup.candidate != nullptr) detail::prefetch_lines(lookup.candidate);
    detail::naming_row([&] { return name_of(*row, position); }, [&] { take(row, position, lookup); });
  }

  void take_block(std::span<const Pointer> rows, Position first) {
    std::array<Lookup, block_size> lookups;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto key = Key::of(*rows[i]);
      lookups[i].hash = detail::hash_of(key);
      if constexpr (Key::by_key) {
        detail::require_valid_key(typename Key::SourceParts{}, key, first + i);
        core_.keys.prefetch(lookups[i].hash);
      }
    }
    if constexpr (Key::by_key) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        lookups[i] = look_up(lookups[i].hash);
        detail::prefetch_lines(lookups[i].candidate);
      }
      if constexpr (detail::is_kept_elsewhere<decltype(CoreType::key_of(std::declval<const Row&>()))>) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (const SlotType* slot = lookups[i].candidate)
            detail::prefetch_elsewhere(CoreType::key_of(slot->get()));
        }
      }
    }
    std::size_t i = 0;
    detail::naming_row([&] { return name_of(*rows[i], first + i); },
                       [&] {
                         for (; i < rows.size(); ++i) take(rows[i], first + i, lookups[i]);
                       });
  }

  static RowName name_of(const Source& row, Position position) {
    if constexpr (Key::by_key) return {detail::key_text(Key::of(row)), position};
    return {{}, position};
  }

  void take_survivors(typename Traits::Range& range) {
    AllRows<Declared, Source> all(range);
    if constexpr (Key::by_key) {
      Position position = 0;
      for (const Pointer row : all.pointers)
        detail::require_valid_key(typename Key::SourceParts{}, Key::of(*row), position++);
    }
    Deduplicator<Key, std::remove_cvref_t<decltype(rule_.policy())>, Source, Pointer> unique(rule_.policy(),
                                                                                             all.pointers);
    this->metrics().source_rows += unique.dropped;
    this->metrics().dropped_duplicates += unique.dropped;
    for (const auto& survivor : unique.survivors) {
      if (survivor.row == nullptr) continue;
      detail::naming_row([&] { return name_of(*survivor.row, survivor.position); },
                         [&] {
                           const Lookup lookup = look_up(detail::hash_of(Key::of(*survivor.row)));
                           take(survivor.row, survivor.position, lookup);
                         });
    }
  }

  void take(Pointer row, Position position, const Lookup& lookup) {
    ++this->metrics().source_rows;
    Fate fate = Fate::not_matched;
    if constexpr (Key::by_key) {
      const SlotType* slot = core_.find(Key::of(*row), lookup.hash, lookup.candidate);
      if (slot != nullptr) fate = take_pair(*slot, row, position, true);
    } else {
      const auto slots = index_matches(*row);
      for (const SlotType* slot : slots)
        fate = std::max(fate, take_pair(*slot, row, position, slot == slots.back()));
    }
    if (fate == Fate::not_matched) take_not_matched(row, position, lookup.hash);
    if (fate == Fate::matched) ++this->metrics().skipped;
  }

  std::vector<const SlotType*> index_matches(const Source& row) const {
    constexpr std::size_t number = index_number<typename Key::TargetParts, typename CoreType::Indexes>;
    static_assert(number < std::tuple_size_v<typename CoreType::Indexes>,
                  "keyfold: by<> names members that no index of the table is made of");
    std::vector<const SlotType*> slots;
    if (detail::has_empty_part(Key::of(row))) return slots;  // as in SQL: absent equals nothing
    const auto [first, last] = core_.template matching<number>(Key::of(row));
    for (auto it = first; it != last; ++it) slots.push_back(&*it);
    return slots;
  }

  // --- Matched

  // `last_use`: the source row may be moved from.
  Fate take_pair(const SlotType& slot, Pointer row, Position position, bool last_use) {
    const Scope<Row, Source> rows{slot.get(), *row};
    if (!detail::holds<ClauseKind::matched>(rule_.match().condition, rows)) return Fate::not_matched;
    bool acted = false;
    for_each_clause<ClauseKind::matched>([&](const auto& clause, std::uint32_t number) {
      if (!detail::holds<ClauseKind::matched>(clause.condition, rows)) return false;
      acted = act_on_pair(clause, number, slot, row, position, last_use);
      return true;
    });
    if constexpr (marks_seen) {
      if (!acted && plan_.touched(slot) == nullptr) plan_.touch(slot).position = position;
    }
    return acted ? Fate::acted : Fate::matched;
  }

  // Returns false if the clause does nothing.
  template <class Clause>
  bool act_on_pair(const Clause& clause, std::uint32_t number, const SlotType& slot, Pointer row,
                   Position position, [[maybe_unused]] bool last_use) {
    using Action = typename Clause::ActionType;
    if constexpr (std::same_as<Action, DoNothing>) {
      return false;
    } else if constexpr (std::same_as<Action, Raise>) {
      Actions::raise(clause.action, CoreType::key_of(slot.get()), position);
    } else {
      Entry* entry = plan_.touched(slot);
      if (entry != nullptr && entry->outcome != Outcome::seen) {
        if (!both_erase(clause, number, *entry)) refuse_second(slot, entry->position, position);
        ++plan_.extra_erasers;
        return true;
      }
      if constexpr (is_update_v<Action>) {
        Entry& update = this->entry_for(slot, position, number);
        make_updated(update.after, clause.action, slot.get(), row, last_use);
        update.key_known = keeps_key<Action>;
        this->write_update(update, this->metrics().matched_updated);
      } else {
        this->write_erase(slot, position, number, this->metrics().matched_deleted);
      }
      return true;
    }
  }

  template <class Clause>
  static bool both_erase(const Clause&, std::uint32_t number, const Entry& entry) {
    return std::same_as<typename Clause::ActionType, Erase> && Clause::unconditional &&
           entry.outcome == Outcome::erase && entry.clause == number;
  }

  // --- What a clause makes of a row, made where it stays; nothing if the row would not change

  using After = std::optional<Holder<Row>>;

  template <class Make>
  void make_changed(After& after, const Row& target, Make make) const {
    const Row& made = after.emplace(std::in_place, make).get();
    if (unchanged(target, made)) after.reset();
  }

  void make_updated(After& after, const UpdateAll&, const Row& target, Pointer row,
                    [[maybe_unused]] bool last_use) const {
    if constexpr (std::derived_from<Source, Row>) {
      if (unchanged(target, *row)) return;
      if (last_use) {
        make_row(after, *row);
      } else {
        make_row(after, std::as_const(*row));
      }
    } else {
      make_changed(after, target, [&] {
        Row made = target;
        detail::copy_columns_by_name(made, std::as_const(*row));
        return made;
      });
    }
  }

  void make_updated(After& after, const UpdatePresent&, const Row& target, Pointer row, bool) const {
    make_changed(after, target, [&] {
      Row made = target;
      detail::copy_present_columns(made, std::as_const(*row));
      return made;
    });
  }

  template <class... Assignments>
  void make_updated(After& after, const Update<Assignments...>& action, const Row& target, Pointer row,
                    bool) const {
    make_assigned<ClauseKind::matched>(after, action, target, Scope<Row, Source>{target, *row});
  }

  template <class Callable>
  void make_updated(After& after, const UpdateWith<Callable>& action, const Row& target, Pointer row,
                    bool) const {
    make_changed(after, target, [&]() -> Row {
      return detail::call<ClauseKind::matched>(action.callable, Scope<Row, Source>{target, *row});
    });
  }

  template <ClauseKind kind, class Action, class Rows>
  void make_assigned(After& after, const Action& action, const Row& target, const Rows& rows) const {
    make_changed(after, target, [&] {
      Row made = target;
      action.assignments.for_each(
          [&](const auto& assignment) { detail::run_assignment<kind>(made, assignment, rows); });
      return made;
    });
  }

  template <class From>
  static void make_row(After& after, From& from) {
    after.emplace(std::in_place, [&] { return detail::row_of<Row>(from); });
  }

  // --- Not matched

  void take_not_matched(Pointer row, Position position, std::uint64_t hash) {
    bool acted = false;
    const Scope<NoRow, Source> rows{no_row, *row};
    for_each_clause<ClauseKind::not_matched>([&](const auto& clause, std::uint32_t) {
      if (!detail::holds<ClauseKind::not_matched>(clause.condition, rows)) return false;
      using Action = typename std::remove_cvref_t<decltype(clause)>::ActionType;
      if constexpr (std::same_as<Action, Raise>) {
        Actions::raise(clause.action, Key::of(*row), position);
      } else if constexpr (is_insert_v<Action>) {
        Entry& entry = this->entry_for_insert(position);
        make_inserted(entry.after, clause.action, row);
        entry.key_known = keeps_key<Action>;
        entry.hash = hash;
        this->write_insert(entry);
        acted = true;
      }
      return true;
    });
    if (!acted) ++this->metrics().skipped;
  }

  static void make_inserted(After& after, const InsertAll&, Pointer row) { make_row(after, *row); }

  static void make_inserted(After& after, const InsertPresent&, Pointer row) {
    check_patch_key(typename CoreType::KeyParts{});
    after.emplace(std::in_place, [&] {
      Row made{};
      detail::copy_present_columns(made, std::as_const(*row));
      if constexpr (Key::by_key) require_key_of_patch(CoreType::key_of(made), Key::of(*row));
      return made;
    });
  }

  template <class Made, class Wanted>
  static void require_key_of_patch(const Made& made, const Wanted& wanted) {
    if (detail::equal_values(made, wanted)) return;
    throw Error("insert_present() made a row with key " + detail::key_text(made) + " of a patch with key " +
                detail::key_text(wanted) + "; a patch for a new row must bring its whole key by name");
  }

  template <auto... Parts>
  static constexpr void check_patch_key(detail::Parts<Parts...>) {
    static_assert((check_patch_key_part<Parts>() && ...));
  }
  // A computed part is judged by its value.
  template <auto Part>
  static constexpr bool check_patch_key_part() {
    if constexpr (std::is_member_object_pointer_v<decltype(Part)>) {
      return insert_present_key<Part, Source>::value;
    } else {
      return true;
    }
  }

  template <class... Assignments>
  static void make_inserted(After& after, const Insert<Assignments...>& action, Pointer row) {
    after.emplace(std::in_place, [&] {
      Row made{};
      const Scope<NoRow, Source> rows{no_row, *row};
      action.assignments.for_each([&](const auto& assignment) {
        detail::run_assignment<ClauseKind::not_matched>(made, assignment, rows);
      });
      return made;
    });
  }

  template <class Callable>
  static void make_inserted(After& after, const InsertWith<Callable>& action, Pointer row) {
    after.emplace(std::in_place, [&] {
      return Row(detail::call<ClauseKind::not_matched>(action.callable, Scope<NoRow, Source>{no_row, *row}));
    });
  }

  // --- Not matched by source

  void visit_unmatched_targets() {
    const SlotType* current = nullptr;
    const auto name = [&] {
      return RowName{detail::key_text(CoreType::key_of(current->get())), no_position};
    };
    detail::naming_row(name, [&] {
      for (const SlotType& slot : core_.scan()) {
        current = &slot;
        if (plan_.touched(slot) == nullptr) take_unmatched_target(slot);
      }
    });
  }

  void take_unmatched_target(const SlotType& slot) {
    const Scope<Row, NoRow> rows{slot.get(), no_row};
    for_each_clause<ClauseKind::not_matched_by_source>([&](const auto& clause, std::uint32_t number) {
      if (!detail::holds<ClauseKind::not_matched_by_source>(clause.condition, rows)) return false;
      using Action = typename std::remove_cvref_t<decltype(clause)>::ActionType;
      if constexpr (std::same_as<Action, Raise>) {
        Actions::raise(clause.action, CoreType::key_of(slot.get()), no_position);
      } else if constexpr (std::same_as<Action, Erase>) {
        this->write_erase(slot, no_position, number, this->metrics().not_matched_by_source_deleted);
      } else if constexpr (is_update_v<Action>) {
        Entry& update = this->entry_for(slot, no_position, number);
        make_updated_by_source(update.after, clause.action, slot.get());
        this->write_update(update, this->metrics().not_matched_by_source_updated);
      }
      return true;
    });
  }

  template <class... Assignments>
  void make_updated_by_source(After& after, const Update<Assignments...>& action, const Row& target) const {
    make_assigned<ClauseKind::not_matched_by_source>(after, action, target,
                                                     Scope<Row, NoRow>{target, no_row});
  }

  template <class Callable>
  void make_updated_by_source(After& after, const UpdateWith<Callable>& action, const Row& target) const {
    make_changed(after, target, [&]() -> Row {
      return detail::call<ClauseKind::not_matched_by_source>(action.callable,
                                                             Scope<Row, NoRow>{target, no_row});
    });
  }

  // --- Clauses

  // Calls `visit(clause, number)` for the clauses of a kind in written order until it returns true.
  template <ClauseKind kind, class Visit>
  void for_each_clause(Visit visit) {
    std::uint32_t number = 0;
    rule_.clauses().any([&](const auto& clause) {
      const std::uint32_t own = number++;
      if constexpr (std::remove_cvref_t<decltype(clause)>::kind == kind) {
        return visit(clause, own);
      } else {
        return false;
      }
    });
  }

  static constexpr NoRow no_row{};

  const Rule& rule_;
};

}  // namespace keyfold::detail
