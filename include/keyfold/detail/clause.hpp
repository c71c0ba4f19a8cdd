// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/assign.hpp>
#include <keyfold/detail/expression_nodes.hpp>
#include <keyfold/detail/holder.hpp>
#include <keyfold/detail/pack.hpp>
#include <keyfold/error.hpp>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

/// The clauses of a merge: their conditions and actions as values, checked against the row types they run on.
namespace keyfold::detail {

enum class ClauseKind : std::uint8_t { matched, not_matched, not_matched_by_source };

template <ClauseKind kind>
inline constexpr bool has_target = kind != ClauseKind::not_matched;
template <ClauseKind kind>
inline constexpr bool has_source = kind != ClauseKind::not_matched_by_source;

// --- Callables, in whatever clause they stand

template <class Callable>
constexpr const auto& callable_of(const Callable& callable) noexcept {
  if constexpr (is_named_v<Callable>) {
    return callable.callable;
  } else {
    return callable;
  }
}

template <class Callable>
using CallableOf = std::remove_cvref_t<decltype(callable_of(std::declval<const Callable&>()))>;

/// Whether `Callable` takes the rows that a clause of this kind has.
template <ClauseKind kind, class Callable, class Target, class Source>
constexpr bool takes_rows() {
  using F = const CallableOf<Callable>&;
  if constexpr (kind == ClauseKind::matched) {
    return std::is_invocable_v<F, const Target&, const Source&>;
  } else if constexpr (kind == ClauseKind::not_matched) {
    return std::is_invocable_v<F, const Source&>;
  } else {
    return std::is_invocable_v<F, const Target&>;
  }
}

template <ClauseKind kind, class Callable, class Target, class Source>
constexpr decltype(auto) call(const Callable& callable, const Scope<Target, Source>& rows) {
  if constexpr (kind == ClauseKind::matched) {
    return detail::callable_of(callable)(rows.target, rows.source);
  } else if constexpr (kind == ClauseKind::not_matched) {
    return detail::callable_of(callable)(rows.source);
  } else {
    return detail::callable_of(callable)(rows.target);
  }
}

// --- Conditions

/// The condition of a clause without one.
struct Always {};

template <ClauseKind kind, class Expr, class Target, class Source>
constexpr void check_sides() {
  static_assert(has_target<kind> || !Expr::reads_target,
                "keyfold: a when_not_matched clause has no target row; read source columns only");
  static_assert(has_source<kind> || !Expr::reads_source,
                "keyfold: a when_not_matched_by_source clause has no source row; read target columns only");
  static_assert(
      Expr::template fits<Target, Source>,
      "keyfold: an expression reads a column of another row type than the merge's target or source");
}

template <class Expr, class Rows>
using value_in_t = std::remove_cvref_t<decltype(std::declval<const Expr&>()(std::declval<const Rows&>()))>;

/// The compile-time checks of a condition; each failure is a sentence. `in_on`: it stands in on_condition().
template <ClauseKind kind, class Condition, class Target, class Source, bool in_on = false>
constexpr void check_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    // Said.
  } else if constexpr (Expression<Condition>) {
    detail::check_sides<kind, Condition, Target, Source>();
    if constexpr (Condition::template fits<Target, Source>) {
      static_assert(Truth<value_in_t<Condition, Scope<Target, Source>>>,
                    "keyfold: a condition must be true or false; compare the value with something");
    }
  } else if constexpr (!std::same_as<Condition, Always>) {
    constexpr bool callable = takes_rows<kind, Condition, Target, Source>();
    static_assert(callable || !in_on,
                  "keyfold: a condition of on_condition must be an expression or callable as "
                  "bool(const Target&, const Source&)");
    static_assert(callable || kind != ClauseKind::matched || in_on,
                  "keyfold: a condition of when_matched must be an expression or callable as "
                  "bool(const Target&, const Source&)");
    static_assert(
        callable || kind != ClauseKind::not_matched,
        "keyfold: a condition of when_not_matched must be an expression or callable as bool(const Source&)");
    static_assert(callable || kind != ClauseKind::not_matched_by_source,
                  "keyfold: a condition of when_not_matched_by_source must be an expression or callable as "
                  "bool(const Target&)");
    if constexpr (callable) {
      using Result = decltype(detail::call<kind>(std::declval<const Condition&>(),
                                                 std::declval<Scope<Target, Source>&>()));
      static_assert(Truth<std::remove_cvref_t<Result>>, "keyfold: a callable condition must return bool");
    }
  }
}

template <ClauseKind kind, class Condition, class Target, class Source>
constexpr bool holds(const Condition& condition, const Scope<Target, Source>& rows) {
  if constexpr (std::same_as<Condition, Always>) {
    return true;
  } else if constexpr (Expression<Condition>) {
    return detail::is_true(condition(rows));
  } else {
    return detail::is_true(detail::call<kind>(condition, rows));
  }
}

template <class Condition>
void print_condition(std::string& out, const Condition& condition) {
  if constexpr (Expression<Condition>) {
    condition.print(out);
  } else if constexpr (is_named_v<Condition>) {
    out += condition.name;
  } else {
    out += "<condition>";
  }
}

// --- Assignments

/// A right-hand side that is a callable for the rows of its clause.
template <ClauseKind kind, class Value, class Target, class Source>
constexpr bool is_callable_value() {
  if constexpr (is_literal<Value>::value) {
    return takes_rows<kind, typename is_literal<Value>::type, Target, Source>();
  } else {
    return false;
  }
}

template <ClauseKind kind, class Value, class Target, class Source>
constexpr decltype(auto) evaluate(const Value& value, const Scope<Target, Source>& rows) {
  if constexpr (is_callable_value<kind, Value, Target, Source>()) {
    return detail::call<kind>(value.value, rows);
  } else {
    return value(rows);
  }
}

template <ClauseKind kind, class Row, class Target, class Source, class T>
struct check_assignment {
  static_assert(is_assignment_v<T>, "keyfold: an assignment is written target<&Row::column> = value");
};

template <ClauseKind kind, class Row, class Target, class Source, auto Member, class Value>
struct check_assignment<kind, Row, Target, Source, Assignment<Column<Side::target, Member>, Value>> {
  static_assert(Readable<Member, Row>,
                "keyfold: an assignment names a column of another row type than the target");

  static constexpr bool check() {
    detail::check_sides<kind, Value, Target, Source>();
    if constexpr (Readable<Member, Row> && Value::template fits<Target, Source>) {
      using Given = decltype(detail::evaluate<kind>(std::declval<const Value&>(),
                                                    std::declval<const Scope<Target, Source>&>()));
      using To = member_value_t<Member, Row>;
      static_assert(
          is_optional_v<To> || !is_nullable_v<std::remove_cvref_t<Given>>,
          "keyfold: a value that may be empty is assigned to a column that never is; give a default with "
          "coalesce()");
      static_assert(AssignableColumn<To, Given>,
                    "keyfold: the value of an assignment does not convert to the type of its column");
    }
    return true;
  }
};

/// Runs an assignment on `out`. Every right-hand side reads `rows`, that is the old row.
template <ClauseKind kind, class Row, class Target, class Source, auto Member, class Value>
constexpr void run_assignment(Row& out, const Assignment<Column<Side::target, Member>, Value>& assignment,
                              const Scope<Target, Source>& rows) {
  detail::assign(out.*Member, detail::evaluate<kind>(assignment.value, rows), member_name<Member>);
}

template <auto Member, class Value>
void print_assignment(std::string& out, const Assignment<Column<Side::target, Member>, Value>& assignment) {
  out += member_name<Member>;
  out += " = ";
  if constexpr (is_literal<Value>::value) {
    if constexpr (is_named_v<typename is_literal<Value>::type>) {
      out += assignment.value.value.name;
      return;
    }
  }
  assignment.value.print(out);
}

template <class Assignments>
void print_assignments(std::string& out, const Assignments& assignments) {
  const char* separator = "";
  assignments.for_each([&](const auto& assignment) {
    out += separator;
    detail::print_assignment(out, assignment);
    separator = ", ";
  });
}

// --- Columns by name

/// Whether a source type brings a value for column `Member` of a target: a column of the same name.
template <class Source, auto Member>
constexpr bool has_column_named() {
  if constexpr (HasColumns<Source>) {
    return column_index<Source>(member_name<Member>) < column_count<Source>;
  } else {
    return false;
  }
}

template <auto Member, class Source>
constexpr const auto& read_by_name(const Source& source) {
  constexpr std::size_t index = column_index<Source>(member_name<Member>);
  return source.*std::get<index>(columns_list<Source>::pointers);
}

template <auto Member, class Row, class Source>
struct check_column_by_name {
  static_assert(AssignableColumn<member_value_t<Member, Row>,
                                 decltype(detail::read_by_name<Member>(std::declval<const Source&>()))>,
                "keyfold: update_all() and insert_all() found a source column of this name whose type does "
                "not convert");
  static constexpr bool value = true;
};

/// What a patch brings for a column if it is there: the optional's value, else the value itself.
template <auto Member, class Source>
using present_value_t = unwrap_optional_t<
    std::remove_cvref_t<decltype(detail::read_by_name<Member>(std::declval<const Source&>()))>>;

template <auto Member, class Row, class Source>
struct check_present_column {
  static_assert(
      AssignableColumn<member_value_t<Member, Row>, const present_value_t<Member, Source>&>,
      "keyfold: update_present() and insert_present() found a source column of this name whose type "
      "does not convert");
  static constexpr bool value = true;
};

/// Named in the compiler's message: the part of the key that is missing.
template <auto Member, class Source>
struct insert_present_key {
  static_assert(has_column_named<Source, Member>(),
                "keyfold: insert_present() needs the key of the target among the columns of the source; the "
                "part named here is missing");
  static constexpr bool value = true;
};

/// Named in the compiler's message: the column that is missing.
template <auto Member, class Source>
struct insert_all_column {
  static_assert(
      has_column_named<Source, Member>(),
      "keyfold: insert_all() needs every column of the target in the source; the one named here is missing");
  static constexpr bool value = true;
};

template <class Row, class Source>
constexpr void check_column_lists() {
  static_assert(
      HasColumns<Row> && HasColumns<Source>,
      "keyfold: update_all() and insert_all() from another row type need the column lists of both types; "
      "use BOOST_DESCRIBE_STRUCT or columns_of");
}

template <class Row, class Source>
constexpr void check_patch_lists() {
  static_assert(HasColumns<Row> && HasColumns<Source>,
                "keyfold: update_present() and insert_present() need the column lists of both types; use "
                "BOOST_DESCRIBE_STRUCT or columns_of");
}

template <class Row, class Source>
constexpr void copy_columns_by_name(Row& out, const Source& source) {
  detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
    if constexpr (has_column_named<Source, Member>()) {
      if constexpr (check_column_by_name<Member, Row, Source>::value) {
        detail::assign(out.*Member, detail::read_by_name<Member>(source), member_name<Member>);
      }
    }
  });
}

/// Leaves the columns alone whose value in the patch is an empty optional.
template <class Row, class Source>
constexpr void copy_present_columns(Row& out, const Source& patch) {
  detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
    if constexpr (has_column_named<Source, Member>()) {
      if constexpr (check_present_column<Member, Row, Source>::value) {
        const auto& given = detail::read_by_name<Member>(patch);
        if constexpr (is_optional_v<std::remove_cvref_t<decltype(given)>>) {
          if (given) detail::assign(out.*Member, *given, member_name<Member>);
        } else {
          detail::assign(out.*Member, given, member_name<Member>);
        }
      }
    }
  });
}

/// The row that insert_all() makes of a source row. Moves from a row that is not const.
template <class Row, class Source>
Row row_of(Source& source) {
  if constexpr (!std::derived_from<Source, Row>) {
    Row made{};
    detail::copy_columns_by_name(made, std::as_const(source));
    return made;
  } else if constexpr (std::is_const_v<Source>) {
    return static_cast<const Row&>(source);
  } else {
    return static_cast<Row&&>(source);
  }
}
template <class Row, class Source>
Holder<Row> hold_row(Source& source, Position position) {
  return detail::naming_row(
      [&] { return RowName{{}, position}; },
      [&] { return Holder<Row>(std::in_place, [&] { return detail::row_of<Row>(source); }); });
}

/// The compile-time checks of insert_all(), each failure a sentence.
template <class Row, class Source>
constexpr void check_insert_all() {
  if constexpr (!std::derived_from<Source, Row>) {
    check_column_lists<Row, Source>();
    static_assert(std::is_default_constructible_v<Row>,
                  "keyfold: insert_all() from another row type needs a default constructible row");
    if constexpr (HasColumns<Row> && HasColumns<Source>) {
      []<auto... Members>(MemberList<Members...>) {
        static_assert((insert_all_column<Members, Source>::value && ...));
      }(columns_list<Row>{});
    }
  }
}

// --- Actions

struct DoNothing {
  void print(std::string& out) const { out += "DO NOTHING"; }
};

struct Raise {
  std::string_view message;
  void print(std::string& out) const {
    out += "RAISE ";
    detail::append_text(out, message, Style::literal);
  }
};

struct Erase {
  void print(std::string& out) const { out += "DELETE"; }
};

struct UpdateAll {
  void print(std::string& out) const { out += "UPDATE SET *"; }
};

struct InsertAll {
  void print(std::string& out) const { out += "INSERT *"; }
};

struct UpdatePresent {
  void print(std::string& out) const { out += "UPDATE SET PRESENT *"; }
};

struct InsertPresent {
  void print(std::string& out) const { out += "INSERT PRESENT *"; }
};

template <class... Assignments>
struct Update {
  Pack<Assignments...> assignments;
  void print(std::string& out) const {
    out += "UPDATE SET ";
    detail::print_assignments(out, assignments);
  }
};

template <class... Assignments>
struct Insert {
  Pack<Assignments...> assignments;
  void print(std::string& out) const {
    out += "INSERT SET ";
    detail::print_assignments(out, assignments);
  }
};

template <class Callable>
void print_callable(std::string& out, const Callable& callable) {
  if constexpr (is_named_v<Callable>) {
    out += callable.name;
  } else {
    out += "<row>";
  }
}

template <class Callable>
struct UpdateWith {
  Callable callable;
  void print(std::string& out) const {
    out += "UPDATE SET ROW ";
    detail::print_callable(out, callable);
  }
};

template <class Callable>
struct InsertWith {
  Callable callable;
  void print(std::string& out) const {
    out += "INSERT ROW ";
    detail::print_callable(out, callable);
  }
};

template <class Action>
inline constexpr bool is_update_v = false;
template <>
inline constexpr bool is_update_v<UpdateAll> = true;
template <>
inline constexpr bool is_update_v<UpdatePresent> = true;
template <class... A>
inline constexpr bool is_update_v<Update<A...>> = true;
template <class C>
inline constexpr bool is_update_v<UpdateWith<C>> = true;

template <class Action>
inline constexpr bool is_insert_v = false;
template <>
inline constexpr bool is_insert_v<InsertAll> = true;
template <>
inline constexpr bool is_insert_v<InsertPresent> = true;
template <class... A>
inline constexpr bool is_insert_v<Insert<A...>> = true;
template <class C>
inline constexpr bool is_insert_v<InsertWith<C>> = true;

template <ClauseKind clause_kind, class Condition, class Action>
struct Clause {
  static constexpr ClauseKind kind = clause_kind;
  static constexpr bool unconditional = std::same_as<Condition, Always>;
  using ActionType = Action;

  Condition condition;
  Action action;

  void print(std::string& out) const {
    out += kind == ClauseKind::matched       ? "WHEN MATCHED"
           : kind == ClauseKind::not_matched ? "WHEN NOT MATCHED"
                                             : "WHEN NOT MATCHED BY SOURCE";
    if constexpr (!unconditional) {
      out += " AND ";
      detail::print_condition(out, condition);
    }
    out += " THEN ";
    action.print(out);
  }
};

}  // namespace keyfold::detail
