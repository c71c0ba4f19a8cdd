// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/value.hpp>

#include <boost/describe/enum.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>

#include <array>
#include <charconv>
#include <string>
#include <variant>

/// Values as text, without iostream: for messages, for the recorded clauses and for print.hpp. A type of the
/// user's is shown through an ADL `to_string(value)`; described enums by their enumerator.
namespace keyfold::detail {

template <class T>
concept AdlText = requires(const T& value) {
  { to_string(value) } -> std::convertible_to<std::string>;
};

/// Not a filesystem path, say, which is made of paths without an end.
template <class T>
concept RangeOfOthers =
    std::ranges::input_range<const T> && !std::same_as<std::ranges::range_value_t<const T>, T>;

enum class Style : std::uint8_t {
  plain,   ///< as a table cell: text unquoted
  literal  ///< as SQL would write it: text, characters and times in single quotes
};

inline void append_text(std::string& out, std::string_view text, Style style) {
  if (style == Style::plain) {
    out += text;
    return;
  }
  out += '\'';
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  out += '\'';
}

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  out.append(buffer.data(), end.ptr);
}

inline void append_padded(std::string& out, long long number, std::size_t width) {
  const auto start = out.size();
  detail::append_number(out, number);
  const auto length = out.size() - start;
  if (length < width) out.insert(start, width - length, '0');
}

/// ISO 8601 in UTC; the fraction is left out when it is zero. A time whose year the calendar of <chrono> does
/// not have is told in days since 1970-01-01.
template <class Duration>
void append_time(std::string& out, std::chrono::sys_time<Duration> time) {
  using namespace std::chrono;
  // floor<days>(time) and time - day would overflow at the ends of Duration.
  auto day = time_point_cast<days>(time);
  auto rest = time.time_since_epoch() % days(1);
  if (rest < rest.zero()) {
    day -= days(1);
    rest += days(1);
  }
  if (day < sys_days(year::min() / January / 1) || day > sys_days(year::max() / December / 31)) {
    detail::append_number(out, day.time_since_epoch().count());
    out += " days since 1970-01-01";
    return;
  }
  const year_month_day date{day};
  detail::append_padded(out, int{date.year()}, 4);
  out += '-';
  detail::append_padded(out, unsigned{date.month()}, 2);
  out += '-';
  detail::append_padded(out, unsigned{date.day()}, 2);
  if constexpr (!std::same_as<Duration, days>) {
    // In plain numbers: hh_mm_ss takes a third of what this function takes to compile.
    const std::int64_t fraction = duration_cast<microseconds>(rest).count();
    const std::int64_t second = fraction / 1'000'000;
    out += 'T';
    detail::append_padded(out, second / 3600, 2);
    out += ':';
    detail::append_padded(out, second / 60 % 60, 2);
    out += ':';
    detail::append_padded(out, second % 60, 2);
    if (fraction % 1'000'000 != 0) {
      out += '.';
      detail::append_padded(out, fraction % 1'000'000, 6);
    }
    out += 'Z';
  }
}

template <class Enum>
void append_enum(std::string& out, Enum value) {
  if constexpr (boost::describe::has_describe_enumerators<Enum>::value) {
    const auto start = out.size();
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<Enum>>([&](auto described) {
      if (out.size() == start && described.value == value) out += described.name;
    });
    if (out.size() != start) return;
  }
  detail::append_number(out, +static_cast<std::underlying_type_t<Enum>>(value));
}

template <class T>
void append_value(std::string& out, const T& value, Style style);

template <class Tuple>
void append_list(std::string& out, const Tuple& values) {
  const char* separator = "(";
  std::apply(
      [&](const auto&... value) {
        ((out += separator, detail::append_value(out, value, Style::literal), separator = ", "), ...);
      },
      values);
  out += ')';
}

template <class T>
void append_value(std::string& out, const T& value, Style style) {
  if constexpr (std::same_as<T, std::nullopt_t> || std::same_as<T, std::monostate>) {
    out += "NULL";
  } else if constexpr (is_optional_v<T>) {
    value ? detail::append_value(out, *value, style) : detail::append_value(out, std::nullopt, style);
  } else if constexpr (StringLike<T>) {
    detail::append_text(out, detail::as_text(value), style);
  } else if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::same_as<T, char>) {
    detail::append_text(out, std::string_view(&value, 1), style);
  } else if constexpr (AdlText<T>) {
    out += to_string(value);
  } else if constexpr (std::convertible_to<const T&, std::string_view> && !std::same_as<T, std::nullptr_t>) {
    detail::append_text(out, static_cast<std::string_view>(value), style);
  } else if constexpr (std::convertible_to<const T&, std::string> && !std::same_as<T, std::nullptr_t>) {
    detail::append_text(out, std::string(value), style);
  } else if constexpr (Arithmetic<T>) {
    detail::append_number(out, +value);
  } else if constexpr (std::is_enum_v<T>) {
    detail::append_enum(out, value);
  } else if constexpr (is_duration_v<T>) {
    detail::append_number(out, value.count());
  } else if constexpr (is_time_point_v<T>) {
    if constexpr (std::same_as<typename T::clock, std::chrono::system_clock>) {
      if (style == Style::literal) out += '\'';
      detail::append_time(out, value);
      if (style == Style::literal) out += '\'';
    } else {
      detail::append_number(out, value.time_since_epoch().count());
    }
  } else if constexpr (is_tuple_v<T>) {
    detail::append_list(out, value);
  } else if constexpr (is_variant_v<T>) {
    if (value.valueless_by_exception()) {
      out += "<valueless>";
    } else {
      detail::of_alternative(value, [&](const auto& held) { detail::append_value(out, held, style); });
    }
  } else if constexpr (RangeOfOthers<T>) {
    const char* separator = "[";
    for (const auto& element : value) {
      out += separator;
      detail::append_value(out, element, Style::literal);
      separator = ", ";
    }
    out += separator[0] == '[' ? "[]" : "]";
  } else {
    out += "<value>";
  }
}

template <class T>
std::string literal_text(const T& value) {
  std::string out;
  detail::append_value(out, value, Style::literal);
  return out;
}

/// The text of a key: its only part, or "(a, b)". Long keys are cut, since they end up in messages.
template <class... Parts>
std::string key_text(const std::tuple<Parts...>& key) {
  constexpr std::size_t limit = 200;
  std::string out;
  if constexpr (sizeof...(Parts) == 1) {
    detail::append_value(out, std::get<0>(key), Style::literal);
  } else {
    detail::append_list(out, key);
  }
  if (out.size() > limit) out.replace(limit, std::string::npos, "...");
  return out;
}

}  // namespace keyfold::detail
