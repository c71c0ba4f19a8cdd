// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/text.hpp>
#include <keyfold/detail/value.hpp>
#include <keyfold/error.hpp>

#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// Assigning values to columns: as SQL does it, with an error rather than a silently changed value.
namespace keyfold::detail {

template <class T>
concept NumberLike = Arithmetic<T> || std::is_enum_v<T>;

/// Whether a column of type To takes a value of type From. Text does not become numbers nor numbers text, and
/// what may be empty does not go where a value must be.
template <class To, class From>
concept AssignableColumn =
    std::is_assignable_v<To&, From> && !(is_nullable_v<std::remove_cvref_t<From>> && !is_optional_v<To>) &&
    !(StringLike<unwrap_optional_t<To>> && NumberLike<unwrap_optional_t<std::remove_cvref_t<From>>> &&
      !std::same_as<unwrap_optional_t<std::remove_cvref_t<From>>, char>);

template <std::integral To, class From>
constexpr bool in_range_of(From value) noexcept {
  if constexpr (std::floating_point<From>) {
    constexpr auto least = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto beyond =
        static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;  // a power of two: exact
    return (value >= least || value > least - 1) && value < beyond;
  } else {
    return !std::cmp_less(+value, +std::numeric_limits<To>::min()) &&
           !std::cmp_greater(+value, +std::numeric_limits<To>::max());
  }
}

template <std::floating_point To, std::floating_point From>
constexpr bool in_range_of(From value) noexcept {
  if constexpr (std::numeric_limits<To>::max_exponent >= std::numeric_limits<From>::max_exponent) {
    return true;
  } else {
    constexpr From most = static_cast<From>(std::numeric_limits<To>::max());
    return (value >= -most && value <= most) ||
           value - value != 0;  // infinity and NaN fit every floating type
  }
}

/// Whether the number is the same in the other type; of floating-point numbers only the range counts.
template <class To, class From>
constexpr bool fits(From value) noexcept {
  if constexpr (std::same_as<To, From>) {
    return true;
  } else if constexpr (std::integral<To>) {
    return detail::in_range_of<To>(value) && static_cast<From>(static_cast<To>(value)) == value;
  } else if constexpr (std::integral<From>) {
    return static_cast<long double>(static_cast<To>(value)) == static_cast<long double>(value);
  } else {
    return detail::in_range_of<To>(value);
  }
}

template <class To, class From>
constexpr To to_number(From value, std::string_view column) {
  if (!detail::fits<To>(value)) throw ValueOutOfRange(std::string(column), detail::literal_text(value));
  return static_cast<To>(value);
}

/// Throws ValueOutOfRange when a number does not fit the column. Requires: AssignableColumn.
template <class To, class From>
constexpr void assign(To& column, From&& value, std::string_view name) {
  using Value = unwrap_optional_t<To>;
  using Given = std::remove_cvref_t<From>;
  if constexpr (std::same_as<To, Given>) {
    column = std::forward<From>(value);
  } else if constexpr (Arithmetic<Value> && Arithmetic<Given>) {
    column = detail::to_number<Value>(value, name);
  } else if constexpr (Arithmetic<Value> && std::is_enum_v<Given>) {
    column = detail::to_number<Value>(+value, name);  // an unscoped enumeration, which converts
  } else if constexpr (Arithmetic<Value> && NumberLike<unwrap_optional_t<Given>>) {
    if (value) {
      detail::assign(column, *value, name);
    } else {
      column = std::nullopt;
    }
  } else {
    column = std::forward<From>(value);
  }
}

/// Which row a value is for.
struct RowName {
  std::string key;  // as text; empty if it has none yet
  Position position;
};

template <class Name>
[[noreturn, gnu::cold, gnu::noinline]] void rethrow_named(const ValueOutOfRange& error, const Name& name) {
  const bool named = error.position != no_position || !error.key.empty();  // by a write within this one
  if (named) throw;
  RowName row = name();
  throw ValueOutOfRange(error.column, error.value, std::move(row.key), row.position);
}

/// Does `work`; the error about a value that does not fit names the row, which is what `name` returns then.
template <class Name, class Work>
decltype(auto) naming_row(Name name, Work work) {
  try {
    return work();
  } catch (const ValueOutOfRange& error) {
    detail::rethrow_named(error, name);
  }
}

}  // namespace keyfold::detail
