// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/text.hpp>
#include <keyfold/detail/value.hpp>

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// The text of single values in a CSV file. csv.hpp says what a specialisation of csv_value must have.
namespace keyfold {

template <class T>
struct csv_value;

namespace detail {

template <class T>
concept CsvReadable = requires(std::string_view text) {
  { csv_value<T>::parse(text) } -> std::convertible_to<std::optional<T>>;
  { csv_value<T>::expected() } -> std::convertible_to<std::string>;
};

template <class T>
concept CsvWritable = requires(const T& value) {
  { csv_value<T>::text(value) } -> std::convertible_to<std::optional<std::string>>;
  { csv_value<T>::expected() } -> std::convertible_to<std::string>;
};

template <class T>
concept CsvNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                    !std::same_as<T, char32_t>;

template <class T>
concept CsvEnum = std::is_enum_v<T>;

/// Times whose every value is a whole number of microseconds, the finest fraction that is written.
template <class Duration>
concept CsvTime = std::convertible_to<Duration, std::chrono::microseconds>;

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

template <class T>
std::string number_text(T number) {
  std::string out;
  detail::append_number(out, number);
  return out;
}

/// Takes a time apart from the front; once something does not stand where it must, failed() stays true.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(text) {}

  /// "YYYY-MM-DD"
  std::chrono::sys_days date() {
    const std::chrono::year year{digits(4)};
    skip('-');
    const std::chrono::month month{static_cast<unsigned>(digits(2))};
    skip('-');
    const std::chrono::year_month_day date{year, month, std::chrono::day{static_cast<unsigned>(digits(2))}};
    failed_ |= !date.ok();
    return failed_ ? std::chrono::sys_days{} : std::chrono::sys_days{date};
  }

  /// "Thh:mm:ssZ" or, with one to six digits, "Thh:mm:ss.ffffffZ"
  std::chrono::microseconds clock() {
    skip('T');
    const std::chrono::hours hours{below(24)};
    skip(':');
    const std::chrono::minutes minutes{below(60)};
    skip(':');
    const std::chrono::seconds seconds{below(60)};
    const std::chrono::microseconds rest = fraction();
    skip('Z');
    return hours + minutes + seconds + rest;
  }

  [[nodiscard]] bool failed() const noexcept { return failed_ || !rest_.empty(); }

 private:
  [[nodiscard]] bool at_digit() const noexcept {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }

  void skip(char expected) {
    failed_ |= !rest_.starts_with(expected);
    if (!failed_) rest_.remove_prefix(1);
  }

  int digits(int width) {
    int number = 0;
    for (; width > 0 && at_digit(); --width) {
      number = number * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    failed_ |= width > 0;
    return number;
  }

  int below(int limit) {
    const int number = digits(2);
    failed_ |= number >= limit;
    return number;
  }

  std::chrono::microseconds fraction() {
    std::chrono::microseconds sum{0};
    if (!rest_.starts_with('.')) return sum;
    rest_.remove_prefix(1);
    failed_ |= !at_digit();
    for (int unit = 100'000; unit != 0 && at_digit(); unit /= 10)
      sum += std::chrono::microseconds{unit * digits(1)};
    return sum;
  }

  std::string_view rest_;
  bool failed_ = false;
};

template <class Duration>
bool has_four_digit_year(std::chrono::sys_time<Duration> time) {
  using namespace std::chrono;
  return time >= sys_days(year{0} / January / 1) && time < sys_days(year{10'000} / January / 1);
}

}  // namespace detail

template <>
struct csv_value<std::string> {
  static std::string expected() { return "text"; }
  static std::optional<std::string> parse(std::string_view text) { return std::string(text); }
  static std::optional<std::string> text(const std::string& value) { return value; }
};

template <>
struct csv_value<char> {
  static std::string expected() { return "one character"; }
  static std::optional<char> parse(std::string_view text) {
    return text.size() == 1 ? std::optional(text.front()) : std::nullopt;
  }
  static std::optional<std::string> text(char value) { return std::string(1, value); }
};

template <>
struct csv_value<bool> {
  static std::string expected() { return "true, false, 1 or 0"; }
  static std::optional<bool> parse(std::string_view text) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    return std::nullopt;
  }
  static std::optional<std::string> text(bool value) { return value ? "true" : "false"; }
};

template <detail::CsvNumber T>
struct csv_value<T> {
  static std::string expected() {
    if constexpr (std::floating_point<T>) return "a number such as -1.5 or 2e10";
    using Limits = std::numeric_limits<T>;
    return "a whole number from " + detail::number_text(Limits::min()) + " to " +
           detail::number_text(Limits::max());
  }
  static std::optional<T> parse(std::string_view text) { return detail::parse_number<T>(text); }
  static std::optional<std::string> text(T value) { return detail::number_text(value); }
};

/// A described enum by the names of its enumerators, another by its number.
template <detail::CsvEnum T>
struct csv_value<T> {
  using Number = std::underlying_type_t<T>;
  static constexpr bool described = boost::describe::has_describe_enumerators<T>::value;

  static std::string expected() {
    if constexpr (described) {
      std::string out = "one of";
      for_each_enumerator(
          [&](const char* name, T) { out += std::string(out.ends_with("of") ? " " : ", ") + name; });
      return out;
    } else {
      return csv_value<Number>::expected();
    }
  }
  static std::optional<T> parse(std::string_view text) {
    std::optional<T> result;
    if constexpr (described) {
      for_each_enumerator([&](const char* name, T value) {
        if (text == name) result = value;
      });
    } else if (const auto number = csv_value<Number>::parse(text)) {
      result = static_cast<T>(*number);
    }
    return result;
  }
  static std::optional<std::string> text(T value) {
    std::optional<std::string> result;
    if constexpr (described) {
      for_each_enumerator([&](const char* name, T enumerator) {
        if (value == enumerator && !result) result = name;
      });
    } else {
      result = csv_value<Number>::text(static_cast<Number>(value));
    }
    return result;
  }

 private:
  template <class Visitor>
  static void for_each_enumerator(Visitor&& visit) {
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
        [&](auto e) { visit(e.name, e.value); });
  }
};

/// By their count, in their own unit.
template <class Rep, class Period>
struct csv_value<std::chrono::duration<Rep, Period>> {
  using Duration = std::chrono::duration<Rep, Period>;
  static std::string expected() { return csv_value<Rep>::expected(); }
  static std::optional<Duration> parse(std::string_view text) {
    const auto count = csv_value<Rep>::parse(text);
    return count ? std::optional(Duration(*count)) : std::nullopt;
  }
  static std::optional<std::string> text(Duration value) { return csv_value<Rep>::text(value.count()); }
};

/// ISO 8601 in UTC, years 0000 to 9999; days without a time of day.
template <detail::CsvTime Duration>
struct csv_value<std::chrono::sys_time<Duration>> {
  using Time = std::chrono::sys_time<Duration>;
  static constexpr bool days_only = std::same_as<Duration, std::chrono::days>;

  static std::string expected() {
    return days_only ? "a date such as 2026-10-04" : "a UTC time such as 2026-10-04T12:00:00Z";
  }
  static std::optional<Time> parse(std::string_view text) {
    detail::TimeText source(text);
    std::chrono::sys_time<std::chrono::microseconds> exact = source.date();
    if constexpr (!days_only) exact += source.clock();
    const auto time = std::chrono::floor<Duration>(exact);
    return source.failed() || time != exact ? std::nullopt : std::optional(time);
  }
  static std::optional<std::string> text(Time value) {
    if (!detail::has_four_digit_year(value)) return std::nullopt;
    std::string out;
    detail::append_time(out, value);
    return out;
  }
};

/// As sys_days; a date that the calendar does not have is not written.
template <>
struct csv_value<std::chrono::year_month_day> {
  using Days = csv_value<std::chrono::sys_days>;

  static std::string expected() { return Days::expected(); }
  static std::optional<std::chrono::year_month_day> parse(std::string_view text) {
    const auto days = Days::parse(text);
    return days ? std::optional(std::chrono::year_month_day(*days)) : std::nullopt;
  }
  static std::optional<std::string> text(std::chrono::year_month_day date) {
    return date.ok() ? Days::text(date) : std::nullopt;
  }
};

}  // namespace keyfold
