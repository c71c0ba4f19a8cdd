// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/expression_nodes.hpp>

/// Columns, literals and operators that form conditions and values. They are evaluated inlined, at the price
/// of the hand-written lambda, and print themselves as the text that history records.
///
/// As in SQL a comparison with an empty optional on either side is unknown, unknown stays unknown under `!`,
/// and a condition holds only when it is true. `same` is the null-safe comparison. A `std::string` literal is
/// copied into the expression; a `const char*`, a char array and a `std::string_view` are referred to and
/// must outlive it. Integers compare by value, whatever their width and sign. Arithmetic is that of C++; with
/// an empty optional on either side the result is empty.
namespace keyfold {

/// Column `Member` of the source row.
template <auto Member>
inline constexpr detail::Column<detail::Side::source, Member> source{};

/// Column `Member` of the target row; `target<M> = value` is an assignment for update() and insert().
template <auto Member>
inline constexpr detail::Column<detail::Side::target, Member> target{};

/// True when `operand` is an empty optional; false for a value that is never empty.
template <class Operand>
  requires detail::Expression<Operand>
[[nodiscard]] constexpr auto is_null(const Operand& operand) {
  return detail::IsNull<Operand>{{}, operand};
}

/// Null-safe equality (SQL's IS NOT DISTINCT FROM): two empty optionals are the same, and so are two NaN.
template <class A, class B>
  requires detail::AnyExpression<A, B>
[[nodiscard]] constexpr auto same(const A& a, const B& b) {
  return detail::Same<detail::Operand<A>, detail::Operand<B>>{{}, detail::operand(a), detail::operand(b)};
}

/// The first operand that is not empty.
template <class A, class B, class... More>
  requires detail::AnyExpression<A, B, More...>
[[nodiscard]] constexpr auto coalesce(const A& a, const B& b, const More&... more) {
  if constexpr (sizeof...(More) == 0) {
    return detail::Coalesce<detail::Operand<A>, detail::Operand<B>>{
        {}, detail::operand(a), detail::operand(b)};
  } else {
    return coalesce(a, coalesce(b, more...));
  }
}

/// Gives a callable condition or value the name under which history records it. `name` must outlive the
/// clause; a string literal does.
template <class Callable>
[[nodiscard]] constexpr auto named(std::string_view name, Callable callable) {
  static_assert(!detail::Expression<Callable>,
                "keyfold: named() takes a callable; an expression prints itself");
  return detail::Named<Callable>{name, std::move(callable)};
}

namespace detail {

// Found by argument-dependent lookup, since every operand type lives here.

#define KEYFOLD_BINARY_OPERATOR(symbol, node, operation)                                        \
  template <class A, class B>                                                                   \
    requires AnyExpression<A, B>                                                                \
  [[nodiscard]] constexpr auto operator symbol(const A& a, const B& b) {                        \
    return node<operation, Operand<A>, Operand<B>>{{}, detail::operand(a), detail::operand(b)}; \
  }

KEYFOLD_BINARY_OPERATOR(==, Comparison, Equal)
KEYFOLD_BINARY_OPERATOR(!=, Comparison, NotEqual)
KEYFOLD_BINARY_OPERATOR(<, Comparison, Less)
KEYFOLD_BINARY_OPERATOR(<=, Comparison, LessEqual)
KEYFOLD_BINARY_OPERATOR(>, Comparison, Greater)
KEYFOLD_BINARY_OPERATOR(>=, Comparison, GreaterEqual)
KEYFOLD_BINARY_OPERATOR(+, Arithmetics, Plus)
KEYFOLD_BINARY_OPERATOR(-, Arithmetics, Minus)
KEYFOLD_BINARY_OPERATOR(*, Arithmetics, Times)
KEYFOLD_BINARY_OPERATOR(&&, Logic, And)
KEYFOLD_BINARY_OPERATOR(||, Logic, Or)

#undef KEYFOLD_BINARY_OPERATOR

template <class A, class B>
  requires AnyExpression<A, B>
constexpr auto operator/(const A& a, const B&) {
  static_assert(!std::same_as<A, A>,
                "keyfold: expressions do not divide, for the divisor may be 0; give a callable of the rows");
  return a;
}

template <Expression A>
[[nodiscard]] constexpr auto operator!(const A& a) {
  return Not<A>{{}, a};
}

}  // namespace detail
}  // namespace keyfold
