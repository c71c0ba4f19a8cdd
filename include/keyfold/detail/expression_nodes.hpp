// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/assign.hpp>
#include <keyfold/detail/member.hpp>
#include <keyfold/detail/text.hpp>
#include <keyfold/detail/value.hpp>

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

/// The nodes that expressions are made of. Each evaluates itself against a Scope, prints itself, and knows
/// which sides it reads.
namespace keyfold::detail {

enum class Side : std::uint8_t { source, target };

/// Stands for the side a clause does not have.
struct NoRow {};

/// The rows an expression may read.
template <class Target, class Source>
struct Scope {
  const Target& target;
  const Source& source;
};

struct ExpressionBase {};

template <class T>
concept Expression = std::is_base_of_v<ExpressionBase, T>;

template <class... T>
concept AnyExpression = (Expression<T> || ...);

template <class Expr>
std::string text_of(const Expr& expression) {
  std::string out;
  expression.print(out);
  return out;
}

/// A column belongs to a row type if its member does; a callable if it accepts such a row.
template <auto Member, class Row>
concept ColumnOf = std::is_same_v<Row, void> || Readable<Member, Row>;

template <class Column, class Value>
struct Assignment;

template <Side side, auto Member>
struct Column : ExpressionBase {
  static constexpr bool reads_source = side == Side::source;
  static constexpr bool reads_target = side == Side::target;
  static constexpr std::string_view name = member_name<Member>;

  template <class Target, class Source>
  static constexpr bool fits = side == Side::source ? ColumnOf<Member, Source> : ColumnOf<Member, Target>;

  template <class Target, class Source>
  constexpr decltype(auto) operator()(const Scope<Target, Source>& rows) const {
    if constexpr (side == Side::source) {
      return detail::read<Member>(rows.source);
    } else {
      return detail::read<Member>(rows.target);
    }
  }

  void print(std::string& out) const {
    out += side == Side::source ? "source." : "target.";
    out += name;
  }

  /// An assignment for update() and insert(): nothing is written here.
  template <class Value>
  constexpr auto operator=(Value value) const;  // NOLINT(misc-unconventional-assign-operator)

  // Assignments that there are not: the compiler says so.

  template <class Value>
  constexpr auto operator+=(const Value& value) const {
    return calculated(value);
  }
  template <class Value>
  constexpr auto operator-=(const Value& value) const {
    return calculated(value);
  }
  template <class Value>
  constexpr auto operator*=(const Value& value) const {
    return calculated(value);
  }

 private:
  template <class Value>
  constexpr auto calculated(const Value& value) const {
    static_assert(!std::same_as<Value, Value>,
                  "keyfold: an assignment that calculates is written "
                  "target<&Row::column> = target<&Row::column> + value");
    return *this = value;
  }
};

template <class T>
struct Literal : ExpressionBase {
  static constexpr bool reads_source = false;
  static constexpr bool reads_target = false;
  template <class, class>
  static constexpr bool fits = true;

  T value;

  constexpr explicit Literal(T literal) : value(std::move(literal)) {}

  template <class Rows>
  constexpr const T& operator()(const Rows&) const noexcept {
    return value;
  }
  void print(std::string& out) const { detail::append_value(out, value, Style::literal); }
};

template <class T>
struct operand_of {
  using type = Literal<T>;
};
template <Expression T>
struct operand_of<T> {
  using type = T;
};
template <std::size_t size>
struct operand_of<char[size]> {
  using type = Literal<std::string_view>;
};
template <>
struct operand_of<const char*> {
  using type = Literal<std::string_view>;
};
template <>
struct operand_of<char*> {
  using type = Literal<std::string>;  // not a literal: keep a copy
};

/// The node for an operand: an expression as it is, anything else as a literal.
template <class T>
using Operand = typename operand_of<T>::type;

template <class T>
constexpr auto operand(const T& value) {
  if constexpr (Expression<T>) {
    return value;
  } else if constexpr (std::is_array_v<T>) {
    return Operand<T>(detail::as_text(value));
  } else {
    return Operand<T>(value);
  }
}

template <class A, class B>
struct BinaryNode : ExpressionBase {
  static constexpr bool reads_source = A::reads_source || B::reads_source;
  static constexpr bool reads_target = A::reads_target || B::reads_target;
  template <class Target, class Source>
  static constexpr bool fits = A::template fits<Target, Source> && B::template fits<Target, Source>;
};

template <class A, class B>
void print_infix(std::string& out, const A& a, std::string_view symbol, const B& b) {
  out += '(';
  a.print(out);
  out += ' ';
  out += symbol;
  out += ' ';
  b.print(out);
  out += ')';
}

/// Calls `operation` with the values; numbers of two types are brought to their common type first.
template <class A, class B, class Operation>
constexpr auto with_common_type(const A& a, const B& b, Operation operation) {
  if constexpr (Arithmetic<A> && Arithmetic<B>) {
    using Common = std::common_type_t<A, B>;
    return operation(static_cast<Common>(a), static_cast<Common>(b));
  } else {
    return operation(a, b);
  }
}

// Comparison operations, on values that are there.

struct Equal {
  static constexpr std::string_view symbol = "=";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    if constexpr (std::integral<A> && std::integral<B>) {
      return std::cmp_equal(+a, +b);
    } else {
      static_assert(
          requires { a == b; }, "keyfold: the two sides of a comparison have types without a common ==");
      return detail::with_common_type(a, b,
                                      [](const auto& x, const auto& y) { return static_cast<bool>(x == y); });
    }
  }
};
struct NotEqual {
  static constexpr std::string_view symbol = "<>";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    return !Equal::apply(a, b);
  }
};
struct Less {
  static constexpr std::string_view symbol = "<";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    if constexpr (std::integral<A> && std::integral<B>) {
      return std::cmp_less(+a, +b);
    } else {
      static_assert(
          requires { a < b; }, "keyfold: the two sides of a comparison have types without a common <");
      return detail::with_common_type(a, b,
                                      [](const auto& x, const auto& y) { return static_cast<bool>(x < y); });
    }
  }
};
struct LessEqual {
  static constexpr std::string_view symbol = "<=";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    if constexpr (std::integral<A> && std::integral<B>) {
      return std::cmp_less_equal(+a, +b);
    } else {
      static_assert(
          requires { a <= b; }, "keyfold: the two sides of a comparison have types without a common <=");
      return detail::with_common_type(a, b,
                                      [](const auto& x, const auto& y) { return static_cast<bool>(x <= y); });
    }
  }
};
struct Greater {
  static constexpr std::string_view symbol = ">";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    return Less::apply(b, a);
  }
};
struct GreaterEqual {
  static constexpr std::string_view symbol = ">=";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    return LessEqual::apply(b, a);
  }
};

/// bool, or std::optional<bool> where an operand may be absent: SQL's unknown.
template <class Operation, class A, class B>
struct Comparison : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    return compare(a(rows), b(rows));
  }
  void print(std::string& out) const { detail::print_infix(out, a, Operation::symbol, b); }

 private:
  template <class X, class Y>
  static constexpr auto compare(const X& x, const Y& y) {
    if constexpr (std::same_as<X, std::nullopt_t> || std::same_as<Y, std::nullopt_t>) {
      return std::optional<bool>();
    } else if constexpr (is_optional_v<X> || is_optional_v<Y>) {
      if (!detail::has_value(x) || !detail::has_value(y)) return std::optional<bool>();
      return std::optional<bool>(Operation::apply(detail::value_of(x), detail::value_of(y)));
    } else {
      return Operation::apply(x, y);
    }
  }
};

/// Text whose + and - would be arithmetic of pointers; a class has operators of its own.
template <class T>
concept TextPointer = StringLike<T> && !std::is_class_v<T>;

template <class Operation, class A, class B>
struct check_arithmetic {
  static_assert(std::is_invocable_v<Operation, const A&, const B&> && !TextPointer<A> && !TextPointer<B>,
                "keyfold: the two sides of an arithmetic operator have types without it");
  static constexpr bool value = true;
};

struct Plus {
  static constexpr std::string_view symbol = "+";
  template <class A, class B>
  static constexpr auto apply(const A& a, const B& b) {
    if constexpr (StringLike<A> && StringLike<B>) {
      std::string out(detail::as_text(a));
      out += detail::as_text(b);
      return out;
    } else {
      static_assert(check_arithmetic<std::plus<>, A, B>::value);
      return detail::with_common_type(a, b, [](const auto& x, const auto& y) { return x + y; });
    }
  }
};
struct Minus {
  static constexpr std::string_view symbol = "-";
  template <class A, class B>
  static constexpr auto apply(const A& a, const B& b) {
    static_assert(check_arithmetic<std::minus<>, A, B>::value);
    return detail::with_common_type(a, b, [](const auto& x, const auto& y) { return x - y; });
  }
};
struct Times {
  static constexpr std::string_view symbol = "*";
  template <class A, class B>
  static constexpr auto apply(const A& a, const B& b) {
    static_assert(check_arithmetic<std::multiplies<>, A, B>::value);
    return detail::with_common_type(a, b, [](const auto& x, const auto& y) { return x * y; });
  }
};

template <class Operation, class A, class B>
struct Arithmetics : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    return compute(a(rows), b(rows));
  }
  void print(std::string& out) const { detail::print_infix(out, a, Operation::symbol, b); }

 private:
  template <class X, class Y>
  static constexpr auto compute(const X& x, const Y& y) {
    if constexpr (is_optional_v<X> || is_optional_v<Y>) {
      using Result = decltype(Operation::apply(detail::value_of(x), detail::value_of(y)));
      if (!detail::has_value(x) || !detail::has_value(y)) return std::optional<Result>();
      return std::optional<Result>(Operation::apply(detail::value_of(x), detail::value_of(y)));
    } else {
      return Operation::apply(x, y);
    }
  }
};

/// Whether a value, or the one in an optional, says true or false. A function would always say true.
template <class T>
concept Truth = std::is_constructible_v<bool, unwrap_optional_t<T>> && !StringLike<unwrap_optional_t<T>> &&
                !requires(const unwrap_optional_t<T>& value) {
                  requires std::is_function_v<std::remove_pointer_t<decltype(+value)>>;
                };

template <class T>
struct check_logic_operand {
  static_assert(Truth<T>,
                "keyfold: an operand of a logical operator must be true or false; compare the value with "
                "something, and give a callable as the whole condition");
  static constexpr bool value = true;
};

/// Whether a condition holds: unknown does not.
template <class T>
constexpr bool is_true(const T& truth) {
  if constexpr (is_optional_v<T>) {
    return truth.has_value() && static_cast<bool>(*truth);
  } else {
    return static_cast<bool>(truth);
  }
}

template <class T>
constexpr bool is_false(const T& truth) {
  if constexpr (is_optional_v<T>) {
    return truth.has_value() && !static_cast<bool>(*truth);
  } else {
    return !static_cast<bool>(truth);
  }
}

struct And {
  static constexpr std::string_view symbol = "AND";
  static constexpr bool settled_by = false;
};
struct Or {
  static constexpr std::string_view symbol = "OR";
  static constexpr bool settled_by = true;
};

/// AND and OR in three-valued logic; the right side is evaluated only if the left one does not settle the
/// result.
template <class Operation, class A, class B>
struct Logic : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    constexpr bool settled_by = Operation::settled_by;
    using X = std::remove_cvref_t<decltype(a(rows))>;
    using Y = std::remove_cvref_t<decltype(b(rows))>;
    static_assert(check_logic_operand<X>::value && check_logic_operand<Y>::value);
    if constexpr (is_optional_v<X> || is_optional_v<Y>) {
      const X& x = a(rows);
      if (settles<settled_by>(x)) return std::optional<bool>(settled_by);
      const Y& y = b(rows);
      if (settles<settled_by>(y)) return std::optional<bool>(settled_by);
      return detail::has_value(x) && has_value(y) ? std::optional<bool>(!settled_by) : std::nullopt;
    } else if constexpr (settled_by) {
      return static_cast<bool>(a(rows)) || static_cast<bool>(b(rows));
    } else {
      return static_cast<bool>(a(rows)) && static_cast<bool>(b(rows));
    }
  }
  void print(std::string& out) const { detail::print_infix(out, a, Operation::symbol, b); }

 private:
  template <bool value, class T>
  static constexpr bool settles(const T& truth) {
    return value ? detail::is_true(truth) : detail::is_false(truth);
  }
};

template <class A>
struct UnaryNode : ExpressionBase {
  static constexpr bool reads_source = A::reads_source;
  static constexpr bool reads_target = A::reads_target;
  template <class Target, class Source>
  static constexpr bool fits = A::template fits<Target, Source>;
};

template <class A>
struct Not : UnaryNode<A> {
  A a;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    using X = std::remove_cvref_t<decltype(a(rows))>;
    static_assert(check_logic_operand<X>::value);
    if constexpr (is_optional_v<X>) {
      const X& x = a(rows);
      return x ? std::optional<bool>(!static_cast<bool>(*x)) : std::nullopt;
    } else {
      return !static_cast<bool>(a(rows));
    }
  }
  void print(std::string& out) const {
    out += "(NOT ";
    a.print(out);
    out += ')';
  }
};

template <class A>
struct IsNull : UnaryNode<A> {
  A a;

  template <class Rows>
  constexpr bool operator()(const Rows& rows) const {
    return !detail::has_value(a(rows));
  }
  void print(std::string& out) const {
    out += '(';
    a.print(out);
    out += " IS NULL)";
  }
};

template <class A, class B>
struct Same : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr bool operator()(const Rows& rows) const {
    return compare(a(rows), b(rows));
  }
  void print(std::string& out) const { detail::print_infix(out, a, "IS NOT DISTINCT FROM", b); }

 private:
  template <class X, class Y>
  static constexpr bool compare(const X& x, const Y& y) {
    static_assert(HaveEquality<X, Y>, "keyfold: the two sides of same() have types without a common ==");
    return detail::equal_values(x, y);
  }
};

template <class T>
struct is_literal : std::false_type {};
template <class T>
struct is_literal<Literal<T>> : std::true_type {
  using type = T;
};

/// A type for the value of either operand, A of type X or B of type Y. Text is copied. Integers keep their
/// value; where no type holds those of both, a literal is brought to the sign of the other operand.
template <class A, class B, class X, class Y>
constexpr auto chosen_type() {
  if constexpr (StringLike<X> && StringLike<Y>) {
    return std::type_identity<std::string>();
  } else if constexpr (std::integral<X> && std::integral<Y> && std::is_signed_v<X> != std::is_signed_v<Y>) {
    using Unsigned = std::conditional_t<std::is_signed_v<X>, Y, X>;
    if constexpr (sizeof(Unsigned) < sizeof(std::int64_t)) {
      return std::type_identity<std::int64_t>();
    } else {
      static_assert(is_literal<A>::value || is_literal<B>::value,
                    "keyfold: no integer type holds the signed and the unsigned operand of coalesce(); "
                    "bring them to one type in a callable");
      using Kept = std::conditional_t<is_literal<A>::value, Y, X>;
      return std::type_identity<std::conditional_t<std::is_signed_v<Kept>, std::int64_t, std::uint64_t>>();
    }
  } else {
    static_assert(
        requires { typename std::common_type_t<X, Y>; },
        "keyfold: the operands of coalesce() have no common type");
    return std::common_type<X, Y>();
  }
}

template <class A, class B>
struct Coalesce : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    return choose(a(rows), b(rows));
  }
  void print(std::string& out) const {
    out += "coalesce(";
    a.print(out);
    out += ", ";
    b.print(out);
    out += ')';
  }

 private:
  template <class X, class Y>
  static constexpr auto choose(const X& x, const Y& y) {
    using Value = typename decltype(chosen_type<A, B, unwrap_optional_t<X>, unwrap_optional_t<Y>>())::type;
    using Result = std::conditional_t<is_optional_v<Y>, std::optional<Value>, Value>;
    if (detail::has_value(x)) return Result(chosen<Value>(detail::value_of(x)));
    if (detail::has_value(y)) return Result(chosen<Value>(detail::value_of(y)));
    return Result();
  }

  template <class Value, class X>
  static constexpr Value chosen(const X& x) {
    if constexpr (Arithmetic<X>) {
      return detail::to_number<Value>(x, "coalesce()");
    } else if constexpr (StringLike<X>) {
      return Value(detail::as_text(x));
    } else {
      return Value(x);
    }
  }
};

template <class Callable>
struct Named {
  std::string_view name;
  Callable callable;
};

template <class T>
inline constexpr bool is_named_v = false;
template <class Callable>
inline constexpr bool is_named_v<Named<Callable>> = true;

/// `target<Member> = value`; the value is an expression, or a callable judged by the clause it stands in.
template <class Column, class Value>
struct Assignment {
  Value value;
};

template <class T>
inline constexpr bool is_assignment_v = false;
template <class C, class V>
inline constexpr bool is_assignment_v<Assignment<C, V>> = true;

template <Side side, auto Member>
template <class Value>
constexpr auto Column<side, Member>::operator=(Value value) const {
  static_assert(side == Side::target,
                "keyfold: only a column of the target can be assigned; a comparison is written ==");
  static_assert(side != Side::target || is_data_member<Member>,
                "keyfold: only a data member can be assigned, not a function");
  if constexpr (Expression<Value>) {
    return Assignment<Column, Value>{std::move(value)};
  } else {
    return Assignment<Column, Operand<Value>>{Operand<Value>(std::move(value))};
  }
}

}  // namespace keyfold::detail
