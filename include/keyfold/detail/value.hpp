// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/mp11/algorithm.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

/// Equality, order and hash of single values as keys and columns see them: strings of any type compare as
/// text, integers by value whatever their width and sign, an empty optional equals itself and comes first,
/// NaN equals itself and comes last, -0.0 equals 0.0.
namespace keyfold::detail {

template <class T>
inline constexpr bool is_optional_v = false;
template <class T>
inline constexpr bool is_optional_v<std::optional<T>> = true;

template <class T>
inline constexpr bool is_nullable_v = is_optional_v<T> || std::same_as<T, std::nullopt_t>;

template <class T>
struct unwrap_optional {
  using type = T;
};
template <class T>
struct unwrap_optional<std::optional<T>> {
  using type = T;
};
template <class T>
using unwrap_optional_t = typename unwrap_optional<T>::type;

template <class T>
inline constexpr bool is_tuple_v = false;
template <class... T>
inline constexpr bool is_tuple_v<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple_v<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_tuple_of_one = false;
template <class T>
inline constexpr bool is_tuple_of_one<std::tuple<T>> = true;

template <class T>
inline constexpr bool is_duration_v = false;
template <class Rep, class Period>
inline constexpr bool is_duration_v<std::chrono::duration<Rep, Period>> = true;

template <class T>
inline constexpr bool is_time_point_v = false;
template <class Clock, class Duration>
inline constexpr bool is_time_point_v<std::chrono::time_point<Clock, Duration>> = true;

template <class T>
inline constexpr bool is_string_v = false;
template <class Traits, class Allocator>
inline constexpr bool is_string_v<std::basic_string<char, Traits, Allocator>> = true;
template <class Traits>
inline constexpr bool is_string_v<std::basic_string_view<char, Traits>> = true;
template <>
inline constexpr bool is_string_v<const char*> = true;
template <>
inline constexpr bool is_string_v<char*> = true;
template <std::size_t size>
inline constexpr bool is_string_v<char[size]> = true;

/// What compares as text. A type of the user's that converts to text keeps its own ==, < and hash.
template <class T>
concept StringLike = is_string_v<T>;

template <StringLike T>
constexpr std::string_view as_text(const T& text) noexcept {
  return std::string_view(text);
}

/// A char array is text up to its first zero, or all of it.
template <std::size_t size>
constexpr std::string_view as_text(const char (&text)[size]) noexcept {
  return std::string_view(text, size).substr(0, std::string_view(text, size).find('\0'));
}

template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;

/// A type that holds the values of both numbers exactly: an integer beside a floating-point number needs the
/// mantissa of long double.
template <class A, class B>
using exact_common_t =
    std::conditional_t<std::integral<A> != std::integral<B>, long double, std::common_type_t<A, B>>;

template <class T>
inline constexpr bool is_variant_v = false;
template <class... T>
inline constexpr bool is_variant_v<std::variant<T...>> = true;

/// Sequences that may hold NaN, which their own operator== would call different from itself.
template <class T>
concept FloatingSequence = std::ranges::input_range<const T> && !StringLike<T> && !requires {
  typename T::key_type;
} && std::floating_point<unwrap_optional_t<std::ranges::range_value_t<const T>>>;

template <class T>
constexpr bool has_value([[maybe_unused]] const T& value) noexcept {
  if constexpr (std::same_as<T, std::nullopt_t>) {
    return false;
  } else if constexpr (is_optional_v<T>) {
    return value.has_value();
  } else {
    return true;
  }
}

template <class T>
constexpr const auto& value_of(const T& value) noexcept {
  if constexpr (is_optional_v<T>) {
    return *value;
  } else {
    return value;
  }
}

/// Calls with what the variant holds. Requires: it holds something.
template <class Variant, class Function>
constexpr auto of_alternative(const Variant& value, const Function& function) {
  return boost::mp11::mp_with_index<std::variant_size_v<Variant>>(
      value.index(), [&](auto index) { return function(std::get<index>(value)); });
}

template <class T>
constexpr bool is_nan([[maybe_unused]] const T& value) {
  if constexpr (std::floating_point<T>) {
    return value != value;
  } else if constexpr (is_optional_v<T>) {
    return value && is_nan(*value);
  } else if constexpr (is_tuple_v<T>) {
    return std::apply([](const auto&... parts) { return (detail::is_nan(parts) || ...); }, value);
  } else if constexpr (is_variant_v<T>) {
    return !value.valueless_by_exception() &&
           detail::of_alternative(value, [](const auto& held) { return detail::is_nan(held); });
  } else {
    return false;
  }
}

template <class A, class B>
constexpr bool equal_values(const A& a, const B& b);

template <class A, class B, std::size_t... I>
constexpr bool equal_elements(const A& a, const B& b, std::index_sequence<I...>) {
  return (detail::equal_values(std::get<I>(a), std::get<I>(b)) && ...);
}

template <class A, class B>
constexpr bool equal_values(const A& a, const B& b) {
  if constexpr (is_nullable_v<A> || is_nullable_v<B>) {
    if constexpr (std::same_as<A, std::nullopt_t> || std::same_as<B, std::nullopt_t>) {
      return detail::has_value(a) == detail::has_value(b);
    } else {
      return detail::has_value(a) && has_value(b)
                 ? detail::equal_values(detail::value_of(a), detail::value_of(b))
                 : detail::has_value(a) == detail::has_value(b);
    }
  } else if constexpr (StringLike<A> && StringLike<B>) {
    return detail::as_text(a) == detail::as_text(b);
  } else if constexpr (std::integral<A> && std::integral<B>) {
    return std::cmp_equal(+a, +b);
  } else if constexpr (Arithmetic<A> && Arithmetic<B>) {
    const auto x = static_cast<exact_common_t<A, B>>(a);
    const auto y = static_cast<exact_common_t<A, B>>(b);
    return x == y || (x != x && y != y);
  } else if constexpr (is_tuple_v<A> && is_tuple_v<B>) {
    return detail::equal_elements(a, b, std::make_index_sequence<std::tuple_size_v<A>>());
  } else if constexpr (std::same_as<A, B> && is_variant_v<A>) {
    if (a.index() != b.index() || a.valueless_by_exception()) return a.index() == b.index();
    return boost::mp11::mp_with_index<std::variant_size_v<A>>(
        a.index(), [&](auto index) { return detail::equal_values(std::get<index>(a), std::get<index>(b)); });
  } else if constexpr (std::same_as<A, B> && FloatingSequence<A>) {
    auto x = std::ranges::begin(a);
    auto y = std::ranges::begin(b);
    while (x != std::ranges::end(a) && y != std::ranges::end(b) && equal_values(*x, *y)) ++x, ++y;
    return x == std::ranges::end(a) && y == std::ranges::end(b);
  } else {
    return static_cast<bool>(a == b);
  }
}

/// Whether equal_values() has an answer for the two types.
template <class A, class B>
concept HaveEquality = std::same_as<A, std::nullopt_t> || std::same_as<B, std::nullopt_t> ||
                       (StringLike<unwrap_optional_t<A>> && StringLike<unwrap_optional_t<B>>) ||
                       requires(const unwrap_optional_t<A>& a, const unwrap_optional_t<B>& b) { a == b; };

template <class A, class B>
constexpr bool less_values(const A& a, const B& b);

template <std::size_t I, class A, class B>
constexpr bool less_from(const A& a, const B& b) {
  if constexpr (I < std::tuple_size_v<A> && I < std::tuple_size_v<B>) {
    if (detail::less_values(std::get<I>(a), std::get<I>(b))) return true;
    if (detail::less_values(std::get<I>(b), std::get<I>(a))) return false;
    return detail::less_from<I + 1>(a, b);
  } else {
    return false;
  }
}

/// A strict weak order; tuples are compared on their common prefix, so that a short key finds a range of long
/// ones.
template <class A, class B>
constexpr bool less_values(const A& a, const B& b) {
  if constexpr (is_nullable_v<A> || is_nullable_v<B>) {
    if constexpr (std::same_as<A, std::nullopt_t> || std::same_as<B, std::nullopt_t>) {
      return !detail::has_value(a) && has_value(b);
    } else {
      return detail::has_value(b) &&
             (!detail::has_value(a) || detail::less_values(detail::value_of(a), detail::value_of(b)));
    }
  } else if constexpr (StringLike<A> && StringLike<B>) {
    return detail::as_text(a) < detail::as_text(b);
  } else if constexpr (std::integral<A> && std::integral<B>) {
    return std::cmp_less(+a, +b);
  } else if constexpr (Arithmetic<A> && Arithmetic<B>) {
    const auto x = static_cast<exact_common_t<A, B>>(a);
    const auto y = static_cast<exact_common_t<A, B>>(b);
    return x < y || (x == x && y != y);
  } else if constexpr (is_tuple_v<A> && is_tuple_v<B>) {
    return detail::less_from<0>(a, b);
  } else if constexpr (std::same_as<A, B> && is_variant_v<A>) {
    if (a.index() != b.index()) return a.index() + 1 < b.index() + 1;  // one that holds nothing comes first
    if (a.valueless_by_exception()) return false;
    return boost::mp11::mp_with_index<std::variant_size_v<A>>(
        a.index(), [&](auto index) { return detail::less_values(std::get<index>(a), std::get<index>(b)); });
  } else if constexpr (std::same_as<A, B> && FloatingSequence<A>) {
    return std::lexicographical_compare(
        std::ranges::begin(a), std::ranges::end(a), std::ranges::begin(b), std::ranges::end(b),
        [](const auto& x, const auto& y) { return detail::less_values(x, y); });
  } else {
    return static_cast<bool>(a < b);
  }
}

/// Multiply and fold, as wyhash does: two instructions that spread every input bit over the whole word.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(value ^ 0x9E3779B97F4A7C15U) * 0xA0761D6478BD642FU;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

template <class T>
concept StdHashable = requires(const T& value) {
  { std::hash<T>{}(value) } -> std::convertible_to<std::size_t>;
};

template <class T>
concept AdlHashable = requires(const T& value) {
  { hash_value(value) } -> std::convertible_to<std::size_t>;
};

inline constexpr std::uint64_t absent_hash = 0x6A09E667F3BCC909U;

/// A whole number hashes as the integer does, so that either finds the other.
constexpr std::uint64_t hash_of_number(double number) noexcept {
  constexpr double two_to_63 = 9223372036854775808.0;
  if (number != number) return absent_hash;
  if (number >= -two_to_63 && number < two_to_63) {
    const auto whole = static_cast<std::int64_t>(number);
    if (static_cast<double>(whole) == number) return detail::mix(static_cast<std::uint64_t>(whole));
  } else if (number >= two_to_63 && number < 2 * two_to_63) {
    return detail::mix(static_cast<std::uint64_t>(number));
  }
  return detail::mix(std::bit_cast<std::uint64_t>(number));
}

template <class T>
constexpr std::uint64_t hash_of(const T& value) {
  if constexpr (std::same_as<T, std::nullopt_t>) {
    return absent_hash;
  } else if constexpr (is_optional_v<T>) {
    return value ? detail::hash_of(*value) : absent_hash;
  } else if constexpr (StringLike<T>) {
    return std::hash<std::string_view>{}(detail::as_text(value));
  } else if constexpr (std::integral<T>) {
    return detail::mix(static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_enum_v<T>) {
    return detail::hash_of(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::floating_point<T>) {
    return detail::hash_of_number(static_cast<double>(value));
  } else if constexpr (is_duration_v<T>) {
    return detail::hash_of(value.count());
  } else if constexpr (is_time_point_v<T>) {
    return detail::hash_of(value.time_since_epoch().count());
  } else if constexpr (is_tuple_of_one<T>) {
    return detail::hash_of(std::get<0>(value));  // spread already
  } else if constexpr (is_tuple_v<T>) {
    std::uint64_t hash = 0;
    std::apply([&](const auto&... parts) { ((hash = detail::mix(hash + detail::hash_of(parts))), ...); },
               value);
    return hash;
  } else if constexpr (is_variant_v<T>) {
    if (value.valueless_by_exception()) return absent_hash;
    return detail::mix(value.index() +
                       detail::of_alternative(value, [](const auto& held) { return detail::hash_of(held); }));
  } else if constexpr (StdHashable<T>) {
    return detail::mix(std::hash<T>{}(value));
  } else {
    static_assert(
        AdlHashable<T>,
        "keyfold: a key part of this type needs a std::hash specialisation or a hash_value() function");
    return detail::mix(hash_value(value));
  }
}

/// A lookup argument in the form in which it can be compared with, and hashed like, a stored value of type
/// Part.
template <class Part, class Argument>
constexpr decltype(auto) as_lookup(const Argument& argument) {
  using Value = unwrap_optional_t<Part>;
  using Given = unwrap_optional_t<Argument>;
  static_assert(!is_nullable_v<Argument> || is_optional_v<Part>,
                "keyfold: an empty optional cannot be looked up in a column that is never empty");
  if constexpr (std::same_as<Given, Value> || std::same_as<Given, std::nullopt_t> ||
                (Arithmetic<Given> && Arithmetic<Value> &&
                 (std::integral<Given> || std::floating_point<Value>)) ||
                (is_optional_v<Argument> && StringLike<Given> && StringLike<Value>)) {
    return (argument);
  } else if constexpr (StringLike<Given> && StringLike<Value>) {
    return detail::as_text(argument);
  } else {
    static_assert(
        std::convertible_to<const Given&, Value> && !(std::floating_point<Given> && std::integral<Value>),
        "keyfold: a lookup value does not have the type of its key part");
    if constexpr (is_optional_v<Argument>) {
      return argument ? Part(static_cast<Value>(*argument)) : Part();
    } else {
      return static_cast<Value>(argument);
    }
  }
}

/// as_lookup() for a value of declared type Given: a reference is looked up as it is, while a value that was
/// computed is kept, lest the result refer to something gone.
template <class Part, class Given>
constexpr decltype(auto) as_lookup_of(Given&& given) {
  using Looked = decltype(detail::as_lookup<Part>(given));
  using Value = std::remove_cvref_t<Given>;
  if constexpr (std::is_lvalue_reference_v<Given>) {
    return detail::as_lookup<Part>(given);
  } else if constexpr (std::is_reference_v<Looked> || std::same_as<Looked, std::string_view>) {
    return Value(std::forward<Given>(given));
  } else {
    return detail::as_lookup<Part>(given);
  }
}

}  // namespace keyfold::detail
