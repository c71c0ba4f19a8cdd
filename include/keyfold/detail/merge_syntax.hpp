// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/clause.hpp>
#include <keyfold/duplicates.hpp>
#include <keyfold/key.hpp>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

/// The grammar that merge() and merge_rule() share. Each call returns a new type that knows its clauses, so
/// that a sentence that makes no sense does not compile.
namespace keyfold {

namespace detail {

/// Names a secondary index in `.on<&Source::member>(by<&Row::member>)`.
template <auto... Members>
struct By {};

/// How source rows find target rows. `SourceParts` void: by the members named like the key. `IndexParts`
/// void: by the primary key.
template <class SourceParts, class IndexParts, class ConditionType>
struct Match {
  using Source = SourceParts;
  using Index = IndexParts;
  using Condition = ConditionType;

  Condition condition;
};

}  // namespace detail

/// The secondary index over these members of the target.
template <auto... Members>
inline constexpr detail::By<Members...> by{};

namespace detail {

template <class... Values>
inline constexpr bool not_only_assignments =
    sizeof...(Values) != 1 && (sizeof...(Values) == 0 || !(is_assignment_v<Values> && ...));

/// What may come after the action of a clause, and is not there before it: the compiler says so, once, since
/// the merge then goes on as if do_nothing() had been said.
template <class When>
class ActionForgotten {
 public:
  template <auto... Members, class... Arguments>
  constexpr auto on(Arguments... arguments) && {
    return with_action().template on<Members...>(std::move(arguments)...);
  }
  template <class Condition>
  constexpr auto on_condition(Condition condition) && {
    return with_action().on_condition(std::move(condition));
  }
  template <class Policy>
  constexpr auto duplicates(Policy policy) && {
    return with_action().duplicates(std::move(policy));
  }
  constexpr auto rewrite_unchanged() && { return with_action().rewrite_unchanged(); }

  template <class... Conditions>
  constexpr auto when_matched(Conditions... conditions) && {
    return with_action().when_matched(std::move(conditions)...);
  }
  template <class... Conditions>
  constexpr auto when_not_matched(Conditions... conditions) && {
    return with_action().when_not_matched(std::move(conditions)...);
  }
  template <class... Conditions>
  constexpr auto when_not_matched_by_source(Conditions... conditions) && {
    return with_action().when_not_matched_by_source(std::move(conditions)...);
  }

  auto metadata(std::string text) && { return with_action().metadata(std::move(text)); }
  auto once(std::string app, std::uint64_t number) && { return with_action().once(std::move(app), number); }
  auto execute() && { return with_action().execute(); }
  auto preview() && { return with_action().preview(); }

 private:
  constexpr auto with_action() {
    static_assert(When::kind_of_clause != ClauseKind::matched,
                  "keyfold: a when_matched clause has no action; right after it comes update_all(), "
                  "update(...), erase(), do_nothing() or raise(...)");
    static_assert(When::kind_of_clause != ClauseKind::not_matched,
                  "keyfold: a when_not_matched clause has no action; right after it comes insert_all(), "
                  "insert(...), do_nothing() or raise(...)");
    static_assert(When::kind_of_clause != ClauseKind::not_matched_by_source,
                  "keyfold: a when_not_matched_by_source clause has no action; right after it comes "
                  "update(...), erase(), do_nothing() or raise(...)");
    return static_cast<When&&>(*this).do_nothing();
  }
};

/// A clause whose condition is given and whose action is not.
template <class Host, ClauseKind kind, class Condition>
class [[nodiscard("a clause does nothing without an action")]] When
    : public ActionForgotten<When<Host, kind, Condition>> {
 public:
  using Row = typename Host::Row;
  using Source = typename Host::Source;
  using Target = std::conditional_t<has_target<kind>, Row, NoRow>;
  using Incoming = std::conditional_t<has_source<kind>, Source, NoRow>;
  static constexpr ClauseKind kind_of_clause = kind;

  constexpr When(Host&& host, Condition condition)
      : host_(std::move(host)), condition_(std::move(condition)) {}

  /// Sets every column that the source has by name; from a source of the row's own type, the whole row.
  constexpr auto update_all() && {
    static_assert(
        kind == ClauseKind::matched,
        "keyfold: update_all() belongs to when_matched; only there are both a target and a source row");
    if constexpr (!std::derived_from<Source, Row>) check_column_lists<Row, Source>();
    return std::move(*this).act(UpdateAll{});
  }

  /// Sets the columns that the source brings by name: one that is an empty std::optional there stays as it
  /// is. An optional of an optional tells absent, null and a value apart.
  constexpr auto update_present() && {
    static_assert(
        kind == ClauseKind::matched,
        "keyfold: update_present() belongs to when_matched; only there are both a target and a source row");
    check_patch_lists<Row, Source>();
    return std::move(*this).act(UpdatePresent{});
  }

  /// Sets columns: `target<&Row::a> = value, ...`. Every value reads the old row.
  template <class... Assignments>
    requires(sizeof...(Assignments) > 0 && (is_assignment_v<Assignments> && ...))
  constexpr auto update(Assignments... assignments) && {
    static_assert(kind != ClauseKind::not_matched,
                  "keyfold: update() has no target row after when_not_matched; insert()");
    static_assert((check_assignment<kind, Row, Target, Incoming, Assignments>::check() && ...));
    return std::move(*this).act(Update<Assignments...>{{{std::move(assignments)}...}});
  }

  /// Replaces the row by what `callable` makes of the rows of the clause.
  template <class Callable>
    requires(!is_assignment_v<Callable>)
  constexpr auto update(Callable callable) && {
    static_assert(kind != ClauseKind::not_matched,
                  "keyfold: update() has no target row after when_not_matched; insert()");
    check_maker<Callable>();
    return std::move(*this).act(UpdateWith<Callable>{std::move(callable)});
  }

  // Neither assignments nor one callable: the compiler says so.
  template <class... Values>
    requires(not_only_assignments<Values...>)
  constexpr auto update(Values...) && {
    static_assert(sizeof...(Values) > 0,
                  "keyfold: update() takes assignments or a callable; update_all() sets all columns");
    static_assert(sizeof...(Values) == 0 || !not_only_assignments<Values...>,
                  "keyfold: an assignment is written target<&Row::column> = value");
    return std::move(*this).act(DoNothing{});
  }

  /// Inserts the source row; from a source of another type, the row made of its columns by name.
  constexpr auto insert_all() && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert_all() belongs to when_not_matched");
    check_insert_all<Row, Source>();
    return std::move(*this).act(InsertAll{});
  }

  /// Inserts a default row with the columns set that the source brings by name; not those that are an empty
  /// std::optional there.
  constexpr auto insert_present() && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert_present() belongs to when_not_matched");
    check_patch_lists<Row, Source>();
    static_assert(std::is_default_constructible_v<Row>,
                  "keyfold: insert_present() needs a default constructible row");
    return std::move(*this).act(InsertPresent{});
  }

  /// Inserts a default row with these columns set.
  template <class... Assignments>
    requires(sizeof...(Assignments) > 0 && (is_assignment_v<Assignments> && ...))
  constexpr auto insert(Assignments... assignments) && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert() belongs to when_not_matched");
    static_assert(
        std::is_default_constructible_v<Row>,
        "keyfold: insert() by assignments needs a default constructible row; give a callable that makes one");
    static_assert((check_assignment<kind, Row, Target, Incoming, Assignments>::check() && ...));
    return std::move(*this).act(Insert<Assignments...>{{{std::move(assignments)}...}});
  }

  /// Inserts the row that `callable` makes of the source row.
  template <class Callable>
    requires(!is_assignment_v<Callable>)
  constexpr auto insert(Callable callable) && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert() belongs to when_not_matched");
    check_maker<Callable>();
    return std::move(*this).act(InsertWith<Callable>{std::move(callable)});
  }

  // Neither assignments nor one callable: the compiler says so.
  template <class... Values>
    requires(not_only_assignments<Values...>)
  constexpr auto insert(Values...) && {
    static_assert(sizeof...(Values) > 0,
                  "keyfold: insert() takes assignments or a callable; insert_all() inserts the source row");
    static_assert(sizeof...(Values) == 0 || !not_only_assignments<Values...>,
                  "keyfold: an assignment is written target<&Row::column> = value");
    return std::move(*this).act(DoNothing{});
  }

  /// Deletes the target row.
  constexpr auto erase() && {
    static_assert(kind != ClauseKind::not_matched,
                  "keyfold: erase() has no target row after when_not_matched");
    return std::move(*this).act(Erase{});
  }

  /// Leaves the rows alone, and keeps later clauses from acting on them.
  constexpr auto do_nothing() && { return std::move(*this).act(DoNothing{}); }

  /// Throws ClauseRaised. `message` must outlive the merge; a string literal does.
  constexpr auto raise(std::string_view message) && { return std::move(*this).act(Raise{message}); }

 private:
  template <class Callable>
  static constexpr void check_maker() {
    static_assert(!Expression<Callable>, "keyfold: an assignment is written target<&Row::column> = value");
    constexpr bool callable = takes_rows<kind, Callable, Target, Incoming>();
    static_assert(callable,
                  "keyfold: the callable of update() takes (const Target&, const Source&), that of insert() "
                  "(const Source&), after when_not_matched_by_source (const Target&)");
    if constexpr (callable) {
      using Made = decltype(detail::call<kind>(std::declval<const Callable&>(),
                                               std::declval<const Scope<Target, Incoming>&>()));
      static_assert(std::is_convertible_v<Made, Row>,
                    "keyfold: the callable of update() or insert() must return a row");
    }
  }

  template <class Action>
  constexpr auto act(Action action) && {
    return std::move(host_).with(
        host_.rule().with_clause(Clause<kind, Condition, Action>{std::move(condition_), std::move(action)}));
  }

  Host host_;
  Condition condition_;
};

/// The clauses, as members of a host that has a `rule()` and can be made again `with(another rule)`.
template <class Host>
class MergeSyntax {
 public:
  /// The key of a source row, part by part. Default: its members named like the parts of the table's key.
  template <auto... Members>
  constexpr auto on() && {
    using S = typename Host::Source;
    static_assert(sizeof...(Members) > 0, "keyfold: on<>() names the members of the source that are its key");
    check_first_on();
    static_assert((Readable<Members, S> && ...),
                  "keyfold: on<>() names a member of another type than the source row");
    return std::move(*this).template match<Parts<Members...>, void>(old_condition());
  }

  // The member as an argument: the compiler says so.
  template <class Member, class... More>
    requires std::is_member_pointer_v<Member>
  constexpr auto on(Member, More...) && {
    static_assert(!std::is_member_pointer_v<Member>,
                  "keyfold: on<&Source::member>() names the key of the source between angle brackets");
    return std::move(self()).with(self().rule());
  }

  /// Matches through a secondary index of the target instead of its key.
  template <auto... Members, auto... Target>
  constexpr auto on(By<Target...>) && {
    using S = typename Host::Source;
    check_first_on();
    static_assert((Readable<Members, S> && ...),
                  "keyfold: on<>() names a member of another type than the source row");
    static_assert((Readable<Target, typename Host::Row> && ...),
                  "keyfold: by<> names a member of another type than the target row");
    static_assert(sizeof...(Members) == sizeof...(Target),
                  "keyfold: on<>() needs one source member for each member of by<>");
    return std::move(*this).template match<Parts<Members...>, Parts<Target...>>(old_condition());
  }

  /// A further condition on which rows match, over the target or both sides. Rows that fail it are not
  /// matched.
  template <class Condition>
  constexpr auto on_condition(Condition condition) && {
    detail::check_condition<ClauseKind::matched, Condition, typename Host::Row, typename Host::Source,
                            true>();
    using Old = typename Host::Rule::Match;
    static_assert(std::same_as<typename Old::Condition, Always>,
                  "keyfold: on_condition() is given already; join the conditions with &&");
    return std::move(*this).template match<typename Old::Source, typename Old::Index>(std::move(condition));
  }

  /// What becomes of source rows with one key: reject, keep_first, keep_last, latest_by<...> or fold(f).
  template <class Policy>
  constexpr auto duplicates(Policy policy) && {
    static_assert(
        std::is_base_of_v<DuplicatePolicy, Policy>,
        "keyfold: duplicates() takes reject, keep_first, keep_last, latest_by<&Source::member> or fold(f)");
    static_assert(std::same_as<typename Host::Rule::PolicyType, NoPolicy>,
                  "keyfold: duplicates() is given already");
    return std::move(self()).with(self().rule().with_policy(std::move(policy)));
  }

  /// Counts, records and notifies updates that change nothing, too.
  constexpr auto rewrite_unchanged() && { return std::move(self()).with(self().rule().rewriting()); }

  constexpr auto when_matched() && { return std::move(*this).template when<ClauseKind::matched>(Always{}); }
  template <class Condition>
  constexpr auto when_matched(Condition condition) && {
    return std::move(*this).template when<ClauseKind::matched>(std::move(condition));
  }

  constexpr auto when_not_matched() && {
    return std::move(*this).template when<ClauseKind::not_matched>(Always{});
  }
  template <class Condition>
  constexpr auto when_not_matched(Condition condition) && {
    return std::move(*this).template when<ClauseKind::not_matched>(std::move(condition));
  }

  constexpr auto when_not_matched_by_source() && {
    return std::move(*this).template when<ClauseKind::not_matched_by_source>(Always{});
  }
  template <class Condition>
  constexpr auto when_not_matched_by_source(Condition condition) && {
    return std::move(*this).template when<ClauseKind::not_matched_by_source>(std::move(condition));
  }

 private:
  constexpr Host& self() noexcept { return static_cast<Host&>(*this); }

  template <ClauseKind kind, class Condition>
  constexpr auto when(Condition condition) && {
    static_assert(
        !Host::Rule::template has_unconditional_clause<kind>,
        "keyfold: this clause can never act; a clause of its kind without a condition stands before it");
    check_condition<kind, Condition, std::conditional_t<has_target<kind>, typename Host::Row, NoRow>,
                    std::conditional_t<has_source<kind>, typename Host::Source, NoRow>>();
    return When<Host, kind, Condition>(std::move(self()), std::move(condition));
  }

  constexpr auto old_condition() { return self().rule().match().condition; }

  static constexpr void check_first_on() {
    static_assert(std::is_void_v<typename Host::Rule::Match::Source>, "keyfold: on<>() is given already");
  }

  template <class SourceParts, class IndexParts, class Condition>
  constexpr auto match(Condition condition) && {
    return std::move(self()).with(
        self().rule().with_match(Match<SourceParts, IndexParts, Condition>{std::move(condition)}));
  }
};

}  // namespace detail
}  // namespace keyfold
