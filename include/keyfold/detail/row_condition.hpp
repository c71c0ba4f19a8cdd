// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/clause.hpp>
#include <keyfold/detail/text.hpp>

#include <string>
#include <type_traits>

/// Conditions outside of merges: on a row of the table, or on such a row and one that comes in.
namespace keyfold::detail {

template <class Expr, class Rows>
constexpr void check_truth() {
  static_assert(Truth<value_in_t<Expr, Rows>>,
                "keyfold: a condition must be true or false; compare the value with something");
}

template <class Result>
constexpr void check_result() {
  static_assert(Truth<std::remove_cvref_t<Result>>, "keyfold: a callable condition must return bool");
}

/// Whether the condition is one on rows of the table; if not, the compiler says why. Where it is false,
/// nothing more may be made of the condition, lest other errors come first.
template <class Condition, class Row>
constexpr bool check_row_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    return false;
  } else if constexpr (Expression<Condition>) {
    static_assert(!Condition::reads_source,
                  "keyfold: a condition on rows of the table has no source row; read target columns only");
    static_assert(Condition::template fits<Row, void>,
                  "keyfold: a condition reads a column of another row type than the table's");
    if constexpr (!Condition::reads_source && Condition::template fits<Row, void>) {
      check_truth<Condition, Scope<Row, NoRow>>();
      return true;
    }
  } else {
    constexpr bool callable = takes_rows<ClauseKind::not_matched_by_source, Condition, Row, NoRow>();
    static_assert(callable,
                  "keyfold: a condition on rows of the table must be an expression or callable as "
                  "bool(const Row&)");
    if constexpr (callable) {
      check_result<decltype(detail::callable_of(std::declval<const Condition&>())(
          std::declval<const Row&>()))>();
      return true;
    }
  }
  return false;
}

/// As check_row_condition(), for the condition of replace_on().
template <class Condition, class Row, class Source>
constexpr bool check_pair_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    return false;
  } else if constexpr (Expression<Condition>) {
    static_assert(
        Condition::template fits<Row, Source>,
        "keyfold: the condition of replace_on() reads a column of another row type than the table's "
        "or the source's");
    if constexpr (Condition::template fits<Row, Source>) {
      check_truth<Condition, Scope<Row, Source>>();
      return true;
    }
  } else {
    constexpr bool callable = takes_rows<ClauseKind::matched, Condition, Row, Source>();
    static_assert(callable,
                  "keyfold: the condition of replace_on() must be an expression or callable as "
                  "bool(const Row&, const Source&)");
    if constexpr (callable) {
      check_result<decltype(detail::callable_of(std::declval<const Condition&>())(
          std::declval<const Row&>(), std::declval<const Source&>()))>();
      return true;
    }
  }
  return false;
}

/// What a condition says of a row: SQL's true, false or unknown, as bool or std::optional<bool>.
template <class Condition, class Row>
constexpr auto truth_for(const Condition& condition, const Row& row) {
  if constexpr (Expression<Condition>) {
    constexpr NoRow no_row{};
    return condition(Scope<Row, NoRow>{row, no_row});
  } else {
    return detail::callable_of(condition)(row);
  }
}

template <class Condition, class Row>
constexpr bool holds_for(const Condition& condition, const Row& row) {
  return detail::is_true(detail::truth_for(condition, row));
}

template <class T>
inline constexpr bool assigns_from_source = false;
template <class Column, class Value>
inline constexpr bool assigns_from_source<Assignment<Column, Value>> = Value::reads_source;

/// As check_row_condition(), for what update_where() does to a row.
template <class Row, class... What>
constexpr bool check_row_update() {
  constexpr bool assignments = sizeof...(What) > 0 && (is_assignment_v<What> && ...);
  constexpr bool callable = !assignments && sizeof...(What) == 1 &&
                            (takes_rows<ClauseKind::not_matched_by_source, What, Row, NoRow>() && ...);
  static_assert(assignments || callable,
                "keyfold: update_where() takes assignments to target columns, or one callable as "
                "Row(const Row&)");
  static_assert(!(assigns_from_source<What> || ...),
                "keyfold: update_where() has no source row; its values read target columns only");
  return (assignments || callable) && !(assigns_from_source<What> || ...);
}

// g++ 12 takes a node of an expression that has no data, such as a column, for one that is not initialized.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// "SET a = 0, b = 1" or "SET ROW <row>".
template <class... What>
std::string update_text(const What&... what) {
  std::string out = "SET ";
  if constexpr ((is_assignment_v<What> && ...)) {
    const char* separator = "";
    ((out += separator, detail::print_assignment(out, what), separator = ", "), ...);
  } else {
    out += "ROW ";
    (detail::print_callable(out, what), ...);
  }
  return out;
}

template <class Condition>
std::string condition_text(const Condition& condition) {
  std::string out;
  detail::print_condition(out, condition);
  return out;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace keyfold::detail
