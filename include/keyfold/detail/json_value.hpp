// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/column_fault.hpp>
#include <keyfold/detail/csv_value.hpp>
#include <keyfold/detail/excerpt.hpp>
#include <keyfold/detail/json_document.hpp>
#include <keyfold/detail/row_range.hpp>

#include <array>
#include <bitset>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// Values as JSON and back. The text of a scalar is that of csv_value; this decides whether it stands in
/// quotes.
namespace keyfold {

/// How times and dates are written; both are read.
enum class JsonTimes : std::uint8_t {
  iso8601,  ///< "2026-10-04T12:00:00Z", as Debezium's ZonedTimestamp
  epoch  ///< a number: the count since 1970 in the column's own unit, as Debezium's MicroTimestamp and Date
};

namespace detail {

struct JsonRules {
  bool allow_missing = false;
  bool ignore_unknown = false;
  bool envelope = false;           // the row is in a change event of Debezium
  bool empty_unavailable = false;  // there, a value that Debezium does not have is taken for null
};

/// Requires: T is an optional.
template <class T>
constexpr void check_json_optional() {
  static_assert(!is_optional_v<typename T::value_type>,
                "keyfold: JSON has but one null; make the column a std::optional of no other one");
}

inline constexpr std::string_view unavailable_value = "__debezium_unavailable_value";

template <class T>
inline constexpr bool is_calendar_v = is_time_point_v<T> || std::same_as<T, std::chrono::year_month_day>;

/// What is written as the number that it holds: durations, and enums without names or a csv_value of the
/// user's.
template <class T>
concept JsonCount =
    is_duration_v<T> || (std::is_enum_v<T> && requires { requires !csv_value<T>::described; });

template <JsonCount T>
constexpr auto count_of(T value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else {
    return value.count();
  }
}
template <JsonCount T>
using count_t = decltype(count_of(T{}));

template <class T>
concept JsonSequence = std::ranges::input_range<const T> && std::default_initializable<T> &&
                       requires(T& sequence, typename T::value_type element) {
                         sequence.clear();
                         sequence.push_back(std::move(element));
                       };

// --- Writing

inline bool is_escaped_in_json(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

inline void append_json_escape(std::string& out, char c) {
  constexpr std::string_view known = "\"\\\n\r\t\b\f";
  constexpr std::string_view letters = "\"\\nrtbf";
  if (const auto at = known.find(c); at != std::string_view::npos) {
    out += '\\';
    out += letters[at];
  } else {
    out += c < 0x10 ? "\\u000" : "\\u001";
    out += "0123456789abcdef"[c & 0xF];
  }
}

/// Throws: ColumnFault for text that is not UTF-8.
inline void append_json_string(std::string& out, std::string_view text) {
  if (const std::size_t bad = utf8_error(text); bad != text.size()) {
    throw ColumnFault{0,
                      {},
                      "the text " + excerpt(text) + " is not UTF-8 at its byte " + std::to_string(bad) +
                          ", which JSON cannot hold; convert it, or leave the row out"};
  }
  out += '"';
  std::size_t written = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_escaped_in_json(text[at])) continue;
    out += text.substr(written, at - written);
    append_json_escape(out, text[at]);
    written = at + 1;
  }
  out += text.substr(written);
  out += '"';
}

template <std::floating_point T>
bool append_not_finite(std::string& out, T value) {
  if (std::isfinite(value)) return false;
  out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return true;
}

/// Empty for a date that the calendar does not have.
inline std::optional<std::chrono::days::rep> epoch_count(std::chrono::year_month_day date) {
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}
template <class Clock, class Duration>
std::optional<typename Duration::rep> epoch_count(std::chrono::time_point<Clock, Duration> time) {
  return time.time_since_epoch().count();
}

/// The text of a value, empty for one that has none.
template <class T>
std::optional<std::string> scalar_text(const T& value, JsonTimes times) {
  if constexpr (is_calendar_v<T>) {
    if (times == JsonTimes::epoch) {
      const auto count = epoch_count(value);
      return count ? std::optional(number_text(*count)) : std::nullopt;
    }
  }
  return csv_value<T>::text(value);
}

template <class T>
void append_scalar(std::string& out, const T& value, JsonTimes times) {
  static_assert(CsvWritable<T>,
                "keyfold: JSON does not know the type of this column; specialise keyfold::csv_value for it");
  if constexpr (std::floating_point<T>) {
    if (append_not_finite(out, value)) return;
  }
  if constexpr (CsvNumber<T>) return detail::append_number(out, value);
  if constexpr (std::same_as<T, std::string>) return append_json_string(out, value);
  const std::optional<std::string> text = scalar_text(value, times);
  if (!text) {
    throw ColumnFault{0,
                      {},
                      "the value cannot be written as " + std::string(csv_value<T>::expected()) +
                          "; correct the row, or leave it out"};
  }
  if (std::same_as<T, bool> || (is_calendar_v<T> && times == JsonTimes::epoch)) {
    out += *text;
  } else {
    append_json_string(out, *text);
  }
}

template <class T>
void append_json(std::string& out, const T& value, JsonTimes times);

template <class Row>
void append_object(std::string& out, const Row& row, JsonTimes times) {
  std::string_view name;
  try {
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      name = column_names<Row>[I];
      out += I == 0 ? "{\"" : ",\"";
      out += name;
      out += "\":";
      detail::append_json(out, detail::read<Member>(row), times);
    });
  } catch (ColumnFault& fault) {
    prepend_name(fault, std::string(name));
    throw;
  }
  out += column_count<Row> == 0 ? "{}" : "}";
}

template <class T>
void append_json(std::string& out, const T& value, JsonTimes times) {
  if constexpr (is_optional_v<T>) {
    detail::check_json_optional<T>();
    value ? detail::append_json(out, *value, times) : static_cast<void>(out += "null");
  } else if constexpr (!CsvWritable<T> && HasColumns<T>) {
    append_object(out, value, times);
  } else if constexpr (!CsvWritable<T> && JsonSequence<T>) {
    out += '[';
    for (auto&& element : value) {
      if (out.back() != '[') out += ',';
      detail::append_json<typename T::value_type>(out, element, times);
    }
    out += ']';
  } else if constexpr (JsonCount<T>) {
    append_scalar(out, count_of(value), times);
  } else {
    append_scalar(out, value, times);
  }
}

// --- Reading

inline std::string found_text(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::null:
      return "is null";
    case JsonKind::array:
      return "found an array";
    case JsonKind::object:
      return "found an object";
    case JsonKind::text:
      return "found the text " + excerpt(value.text());
    default:
      return "found " + excerpt(value.text());
  }
}

[[noreturn]] inline void refuse_value(const JsonValue& value, const std::string& expected) {
  const std::string remedy = value.is_null() ? "fill it in, or make the column a std::optional"
                                             : "correct the value, or change the type of the column";
  throw ColumnFault{value.offset(), {}, found_text(value) + " where " + expected + " is needed; " + remedy};
}

template <std::floating_point T>
std::optional<T> parse_not_finite(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<T>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<T>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<T>::infinity();
  return std::nullopt;
}

template <class T>
std::optional<T> parse_epoch(std::string_view text) {
  if constexpr (std::same_as<T, std::chrono::year_month_day>) {
    using namespace std::chrono;
    const auto day = detail::parse_epoch<sys_days>(text);
    const bool known =
        day && *day >= sys_days(year::min() / January / 1) && *day <= sys_days(year::max() / December / 31);
    return known ? std::optional(T(*day)) : std::nullopt;
  } else {
    const auto count = detail::parse_number<typename T::rep>(text);
    return count ? std::optional(T(typename T::duration(*count))) : std::nullopt;
  }
}

/// The value, if that is what stands there.
template <class T>
std::optional<T> parse_scalar(const JsonValue& value) {
  static_assert(CsvReadable<T>,
                "keyfold: JSON does not know the type of this column; specialise keyfold::csv_value for it");
  const bool number = value.kind() == JsonKind::number;
  const bool text = value.kind() == JsonKind::text;
  if constexpr (std::same_as<T, bool>) {
    if (!number && value.kind() != JsonKind::boolean) return std::nullopt;
  } else if constexpr (std::floating_point<T>) {
    if (text) return parse_not_finite<T>(value.text());
    if (!number) return std::nullopt;
  } else if constexpr (CsvNumber<T>) {
    if (!number) return std::nullopt;
  } else if constexpr (is_calendar_v<T>) {
    if (number) return detail::parse_epoch<T>(value.text());
    if (!text) return std::nullopt;
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, char> || std::is_enum_v<T>) {
    if (!text) return std::nullopt;
  } else {
    if (!text && !number) return std::nullopt;
  }
  return csv_value<T>::parse(value.text());
}

template <class T>
void read_json(const JsonValue& value, T& out, const JsonRules& rules);

template <class Row>
using ColumnSet = std::bitset<column_count<Row>>;

/// Reads the members of an object into the columns of the same name.
template <class Row>
class JsonObjectReader {
  static_assert(HasColumns<Row>,
                "keyfold: JSON needs the column list of the row; describe it or specialise columns_of");
  static_assert(std::default_initializable<Row>, "keyfold: JSON needs a row type with a default constructor");

 public:
  explicit JsonObjectReader(const JsonRules& rules) noexcept : rules_(rules) {}

  /// Columns in `lenient` may be missing or null: then they keep their default. Throws: ColumnFault.
  void read(const JsonValue& object, Row& row, const ColumnSet<Row>& lenient = {}) const {
    if (object.kind() != JsonKind::object)
      refuse_value(object, "an object with the columns " + detail::names_text<Row>());
    row = Row();
    ColumnSet<Row> seen;
    std::size_t next = 0;  // members mostly come in the order of the columns
    object.for_each([&](const JsonValue& member) {
      const std::size_t column = find(member.key(), next);
      next = column + 1;
      if (column == column_count<Row>) return refuse_unknown(member);
      seen.set(column);
      if (!is_absent(member) || !lenient.test(column)) read_column(member, row, column);
    });
    if (!rules_.allow_missing) require_all(object, seen | lenient);
  }

 private:
  using ReadColumn = void (*)(const JsonValue&, Row&, const JsonRules&);

  template <auto Member>
  static void read_member(const JsonValue& value, Row& row, const JsonRules& rules) {
    static_assert(is_data_member<Member>, "keyfold: JSON can only be read into data members");
    if constexpr (is_data_member<Member>) detail::read_json(value, row.*Member, rules);
  }

  template <auto... Members>
  static constexpr auto readers(MemberList<Members...>) {
    return std::array<ReadColumn, sizeof...(Members)>{&read_member<Members>...};
  }

  static std::size_t find(std::string_view name, std::size_t likely) {
    return likely < column_count<Row> && column_names<Row>[likely] == name ? likely : column_index<Row>(name);
  }

  [[nodiscard]] bool is_absent(const JsonValue& value) const {
    return value.is_null() || (rules_.envelope && rules_.empty_unavailable && is_unavailable(value));
  }

  static bool is_unavailable(const JsonValue& value) {
    return value.kind() == JsonKind::text && value.text() == unavailable_value;
  }

  void read_column(const JsonValue& value, Row& row, std::size_t column) const {
    static constexpr auto read_columns = readers(columns_list<Row>{});
    try {
      if (rules_.envelope && is_unavailable(value)) return read_unavailable(read_columns[column], value, row);
      read_columns[column](value, row, rules_);
    } catch (ColumnFault& fault) {
      prepend_name(fault, std::string(column_names<Row>[column]));
      throw;
    }
  }

  void read_unavailable(ReadColumn read_null, const JsonValue& value, Row& row) const {
    if (!rules_.empty_unavailable) {
      throw ColumnFault{
          value.offset(),
          {},
          "the database did not log this unchanged value; let it log whole rows (in PostgreSQL: "
          "REPLICA IDENTITY FULL), or set EventOptions::empty_unavailable and load with "
          "ignore_null_updates()"};
    }
    const std::vector<JsonNode> null{{.offset = value.offset(), .end = 1}};
    read_null(JsonValue(null, 0), row, rules_);
  }

  void refuse_unknown(const JsonValue& member) const {
    if (rules_.ignore_unknown) return;
    throw ColumnFault{member.offset(), std::string(member.key()),
                      "is no column of the row, which has " + detail::names_text<Row>() +
                          "; rename it, or set JsonOptions::ignore_unknown_columns"};
  }

  static void require_all(const JsonValue& object, const ColumnSet<Row>& seen) {
    for (std::size_t i = 0; i < column_count<Row>; ++i) {
      if (seen.test(i)) continue;
      throw ColumnFault{object.offset(), std::string(column_names<Row>[i]),
                        "is missing; add it, or set JsonOptions::allow_missing_columns"};
    }
  }

  const JsonRules& rules_;
};

template <class Sequence>
void read_sequence(const JsonValue& value, Sequence& out, const JsonRules& rules) {
  if (value.kind() != JsonKind::array) refuse_value(value, "an array");
  out.clear();
  std::size_t index = 0;
  try {
    value.for_each([&](const JsonValue& element) {
      typename Sequence::value_type read{};
      detail::read_json(element, read, rules);
      out.push_back(std::move(read));
      ++index;
    });
  } catch (ColumnFault& fault) {
    prepend_name(fault, '[' + std::to_string(index) + ']');
    throw;
  }
}

template <class T>
void read_json(const JsonValue& value, T& out, const JsonRules& rules) {
  if constexpr (is_optional_v<T>) {
    detail::check_json_optional<T>();
    if (value.is_null()) return out.reset();
    detail::read_json(value, out.emplace(), rules);
  } else if constexpr (!CsvReadable<T> && HasColumns<T>) {
    JsonObjectReader<T>(rules).read(value, out);
  } else if constexpr (!CsvReadable<T> && JsonSequence<T>) {
    read_sequence(value, out, rules);
  } else {
    std::optional<T> parsed;
    if constexpr (JsonCount<T>) {
      const auto count = parse_scalar<count_t<T>>(value);
      if (count) parsed = T(*count);
    } else {
      parsed = parse_scalar<T>(value);
    }
    if (!parsed) refuse_value(value, csv_value<T>::expected());
    out = *std::move(parsed);
  }
}

}  // namespace detail
}  // namespace keyfold
