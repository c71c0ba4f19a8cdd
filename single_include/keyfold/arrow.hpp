// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// arrow
#ifndef KEYFOLD_SINGLE_ARROW
#define KEYFOLD_SINGLE_ARROW

// detail/arrow_abi
#ifndef KEYFOLD_SINGLE_DETAIL_ARROW_ABI
#define KEYFOLD_SINGLE_DETAIL_ARROW_ABI

#include <cstdint>

/// The two structs of the Arrow C data interface, whose names, members and flags are fixed by its
/// specification: https://arrow.apache.org/docs/format/CDataInterface.html. Whoever defines them first
/// defines the guard as well.

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

}  // extern "C"

#endif
#endif

// detail/arrow_column
#ifndef KEYFOLD_SINGLE_DETAIL_ARROW_COLUMN
#define KEYFOLD_SINGLE_DETAIL_ARROW_COLUMN

#include <cstddef>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

/// Finished columns, and their handing over to a consumer of the C data interface.
namespace keyfold::detail {

/// Memory as Arrow recommends it: aligned to 64 bytes, and a multiple of them long.
template <class T>
struct ArrowAllocator {
  using value_type = T;
  static constexpr std::size_t alignment = 64;

  ArrowAllocator() = default;
  template <class Other>
  ArrowAllocator(const ArrowAllocator<Other>&) noexcept {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return static_cast<T*>(::operator new(bytes, std::align_val_t(alignment)));
  }
  void deallocate(T* memory, std::size_t) noexcept { ::operator delete(memory, std::align_val_t(alignment)); }
  bool operator==(const ArrowAllocator&) const = default;
};

template <class T>
using ArrowVector = std::vector<T, ArrowAllocator<T>>;

/// Keeps the memory of a vector; null for a buffer that is left out.
using ArrowBuffer = std::shared_ptr<const void>;

/// The buffer is not null, whatever the vector has.
template <class T>
ArrowBuffer arrow_buffer(ArrowVector<T> values) {
  if (values.empty()) values.reserve(1);
  const auto kept = std::make_shared<const ArrowVector<T>>(std::move(values));
  return {kept, kept->data()};
}

struct ArrowColumn {
  std::string name{};
  std::string format;
  bool nullable = false;
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  std::vector<ArrowBuffer> buffers{};  // the first one tells which values are there
  std::vector<ArrowColumn> children{};
};

/// An ArrowArray or ArrowSchema that is released unless it is moved away.
template <class Struct>
struct ArrowOwner {
  Struct owned{};

  ArrowOwner() = default;
  ArrowOwner(const ArrowOwner&) = delete;
  ArrowOwner& operator=(const ArrowOwner&) = delete;
  ~ArrowOwner() {
    if (owned.release != nullptr) owned.release(&owned);
  }

  void move_to(Struct* target) noexcept {
    *target = owned;
    owned.release = nullptr;
  }
};

/// What private_data points to. Children have their own, so that they outlive a parent that they were moved
/// out of.
template <class Struct>
struct ArrowChildren {
  std::deque<ArrowOwner<Struct>> owners{};
  std::vector<Struct*> pointers{};

  Struct& add() {
    pointers.push_back(nullptr);
    return *(pointers.back() = &owners.emplace_back().owned);
  }
};

struct ArrowArrayData : ArrowChildren<ArrowArray> {
  std::vector<ArrowBuffer> kept{};
  std::vector<const void*> buffers{};
};

struct ArrowSchemaData : ArrowChildren<ArrowSchema> {
  std::string format{};
  std::string name{};
};

template <class Struct, class Data>
void release_arrow(Struct* released) {
  delete static_cast<Data*>(released->private_data);
  released->release = nullptr;
}

/// Requires: `array` is not in use. If this throws it is not in use either.
inline void make_array(ArrowColumn&& column, ArrowArray& array) {
  auto data = std::make_unique<ArrowArrayData>();
  for (const ArrowBuffer& buffer : column.buffers) data->buffers.push_back(buffer.get());
  data->kept = std::move(column.buffers);
  for (ArrowColumn& child : column.children) detail::make_array(std::move(child), data->add());
  array = {.length = column.length,
           .null_count = column.null_count,
           .offset = 0,
           .n_buffers = static_cast<std::int64_t>(data->buffers.size()),
           .n_children = static_cast<std::int64_t>(data->pointers.size()),
           .buffers = data->buffers.data(),
           .children = data->pointers.data(),
           .dictionary = nullptr,
           .release = &release_arrow<ArrowArray, ArrowArrayData>,
           .private_data = data.release()};  // the last, since the others need it
}

/// As make_array().
inline void make_schema(const ArrowColumn& column, ArrowSchema& schema) {
  auto data = std::make_unique<ArrowSchemaData>();
  data->format = column.format;
  data->name = column.name;
  for (const ArrowColumn& child : column.children) detail::make_schema(child, data->add());
  schema = {.format = data->format.c_str(),
            .name = data->name.c_str(),
            .metadata = nullptr,
            .flags = column.nullable ? ARROW_FLAG_NULLABLE : 0,
            .n_children = static_cast<std::int64_t>(data->pointers.size()),
            .children = data->pointers.data(),
            .dictionary = nullptr,
            .release = &release_arrow<ArrowSchema, ArrowSchemaData>,
            .private_data = data.release()};  // the last, since the others need it
}

}  // namespace keyfold::detail
#endif

// detail/arrow_rows
#ifndef KEYFOLD_SINGLE_DETAIL_ARROW_ROWS
#define KEYFOLD_SINGLE_DETAIL_ARROW_ROWS

// detail/arrow_builder
#ifndef KEYFOLD_SINGLE_DETAIL_ARROW_BUILDER
#define KEYFOLD_SINGLE_DETAIL_ARROW_BUILDER

// detail/column_fault
#ifndef KEYFOLD_SINGLE_DETAIL_COLUMN_FAULT
#define KEYFOLD_SINGLE_DETAIL_COLUMN_FAULT

namespace keyfold::detail {

/// What is wrong with a value that is read or written, while it is not known yet in which row and file it is:
/// who knows that makes an error of it.
struct ColumnFault {
  std::size_t offset;  // in the document that is read; else 0
  std::string column;
  std::string message;
};

/// To be used where the fault passes through the column, or the element, of this name.
inline void prepend_name(ColumnFault& fault, std::string name) {
  if (!fault.column.empty() && !fault.column.starts_with('[')) name += '.';
  fault.column.insert(0, name);
}

}  // namespace keyfold::detail
#endif

// detail/csv_value
#ifndef KEYFOLD_SINGLE_DETAIL_CSV_VALUE
#define KEYFOLD_SINGLE_DETAIL_CSV_VALUE

#include <charconv>
#include <chrono>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

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
#endif

// detail/excerpt
#ifndef KEYFOLD_SINGLE_DETAIL_EXCERPT
#define KEYFOLD_SINGLE_DETAIL_EXCERPT

namespace keyfold::detail {

/// Text of a file for a message: one line, at most 60 bytes, in quotes; bytes that would not print are shown
/// as `?`.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t limit = 60;
  std::string out = "'";
  for (const char c : text.substr(0, limit))
    out += static_cast<unsigned char>(c) < ' ' || c == '\x7F' ? '?' : c;
  return out += text.size() > limit ? "...'" : "'";
}

/// "test.csv:1: column 'x' is missing", "test.csv:1: column 'x': a quote stands": without a colon where the
/// place is the subject of what is said.
inline std::string said_of(std::string place, const std::string& what) {
  return std::move(place) + (what.starts_with("is ") ? " " : ": ") + what;
}

}  // namespace keyfold::detail
#endif

// detail/utf8
#ifndef KEYFOLD_SINGLE_DETAIL_UTF8
#define KEYFOLD_SINGLE_DETAIL_UTF8

#include <cstring>

/// UTF-8, told from bytes that are not (Unicode, table 3-7).
namespace keyfold::detail {

struct CodePoint {
  char32_t value;
  std::size_t bytes;
  bool valid;  // false: `value` is a byte that is not part of well-formed UTF-8
};

/// Bytes of the sequence that `lead` begins; 1 if it begins none.
constexpr std::size_t sequence_length(unsigned char lead) noexcept {
  if (lead < 0xC2 || lead > 0xF4) return 1;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

constexpr bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Overlong forms, surrogates and what lies above U+10FFFF are not well-formed (Unicode, table 3-7).
constexpr bool is_scalar_value(char32_t value, std::size_t bytes) noexcept {
  if (bytes == 3) return value >= 0x800 && (value < 0xD800 || value > 0xDFFF);
  return bytes != 4 || (value >= 0x10000 && value <= 0x10FFFF);
}

/// Requires: text is not empty.
constexpr CodePoint first_code_point(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  const CodePoint lone{lead, 1, lead < 0x80};
  const std::size_t bytes = sequence_length(lead);
  if (bytes == 1 || text.size() < bytes) return lone;
  char32_t value = lead & (0x7FU >> bytes);
  for (const char byte : text.substr(1, bytes - 1)) {
    if (!is_continuation(byte)) return lone;
    value = value << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return is_scalar_value(value, bytes) ? CodePoint{value, bytes, true} : lone;
}

/// Whether the next eight bytes are ASCII, if that can be told at once.
constexpr bool begins_with_ascii_word(std::string_view text) noexcept {
  std::uint64_t word = 0;
  if (std::is_constant_evaluated() || text.size() < sizeof word) return false;
  std::memcpy(&word, text.data(), sizeof word);
  return (word & 0x8080808080808080U) == 0;
}

/// Offset of the first byte that is not part of well-formed UTF-8; text.size() where all are.
constexpr std::size_t utf8_error(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      at += begins_with_ascii_word(text.substr(at)) ? sizeof(std::uint64_t) : 1;
      continue;
    }
    const CodePoint c = first_code_point(text.substr(at));
    if (!c.valid) return at;
    at += c.bytes;
  }
  return at;
}

}  // namespace keyfold::detail
#endif

#include <ranges>
#include <ratio>
#include <tuple>

/// Columns of values while they grow.
namespace keyfold::detail {

// --- Which types are what

/// The coarsest of Arrow's four units that holds every value of a duration; void if none does.
template <class Duration>
using arrow_unit_t = std::conditional_t<
    !std::integral<typename Duration::rep>, void,
    std::conditional_t<
        std::ratio_divide<typename Duration::period, std::ratio<1>>::den == 1, std::ratio<1>,
        std::conditional_t<
            std::ratio_divide<typename Duration::period, std::milli>::den == 1, std::milli,
            std::conditional_t<
                std::ratio_divide<typename Duration::period, std::micro>::den == 1, std::micro,
                std::conditional_t<std::ratio_divide<typename Duration::period, std::nano>::den == 1,
                                   std::nano, void>>>>>;

template <class T>
inline constexpr bool is_system_time_v = false;
template <class Duration>
inline constexpr bool is_system_time_v<std::chrono::sys_time<Duration>> = true;

template <class T>
concept ArrowDuration = is_duration_v<T> && !std::is_void_v<arrow_unit_t<T>>;
template <class T>
concept ArrowDate = std::same_as<T, std::chrono::year_month_day> || std::same_as<T, std::chrono::sys_days>;
template <class T>
concept ArrowTime = is_system_time_v<T> && !ArrowDate<T> && ArrowDuration<typename T::duration>;
template <class T>
concept ArrowNumber = (CsvNumber<T> && !std::same_as<T, long double>) || std::is_enum_v<T>;
template <class T>
concept ArrowFixed = ArrowNumber<T> || ArrowDuration<T> || ArrowDate<T> || ArrowTime<T>;
template <class T>
concept ArrowList = std::ranges::input_range<const T> && !StringLike<T> && !CsvWritable<T>;

/// The kinds that are text: strings, char, and types of the user's with a csv_value.
template <class T>
concept ArrowText =
    !ArrowFixed<T> && !std::same_as<T, bool> && !std::same_as<T, long double> && !is_duration_v<T> &&
    !is_time_point_v<T> && !std::is_pointer_v<T> && (StringLike<T> || CsvWritable<T>);

template <class Number>
constexpr char number_format() {
  if constexpr (std::floating_point<Number>) return sizeof(Number) == 4 ? 'f' : 'g';
  constexpr std::string_view letters = std::is_signed_v<Number> ? "csil" : "CSIL";
  return letters[sizeof(Number) == 1 ? 0 : sizeof(Number) == 2 ? 1 : sizeof(Number) == 4 ? 2 : 3];
}

template <class Unit>
constexpr char unit_letter() {
  return std::same_as<Unit, std::ratio<1>> ? 's'
         : std::same_as<Unit, std::milli>  ? 'm'
         : std::same_as<Unit, std::micro>  ? 'u'
                                           : 'n';
}

template <class T>
std::string fixed_format() {
  if constexpr (ArrowDate<T>) {
    return "tdD";
  } else if constexpr (ArrowTime<T>) {
    return {'t', 's', unit_letter<arrow_unit_t<typename T::duration>>(), ':', 'U', 'T', 'C'};
  } else if constexpr (ArrowDuration<T>) {
    return {'t', 'D', unit_letter<arrow_unit_t<T>>()};
  } else if constexpr (std::is_enum_v<T>) {
    return {number_format<std::underlying_type_t<T>>()};
  } else {
    return {number_format<T>()};
  }
}

// --- Values as Arrow stores them. What does not fit throws ColumnFault.

[[noreturn]] inline void refuse_arrow(const std::string& what) {
  throw ColumnFault{0, {}, what + "; correct the row, or leave it out"};
}

template <std::integral To, std::integral From>
To arrow_integer(From value) {
  if (!std::in_range<To>(value)) refuse_arrow("the time is out of the range of its Arrow type");
  return static_cast<To>(value);
}

template <ArrowDuration Duration>
std::int64_t arrow_count(Duration value) {
  using Factor = std::ratio_divide<typename Duration::period, arrow_unit_t<Duration>>;
  const auto count = arrow_integer<std::int64_t>(value.count());
  constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max() / Factor::num;
  if (count > limit || count < -limit) {
    if constexpr (Factor::num != 1) refuse_arrow("the time is out of the range of its Arrow type");
  }
  return count * Factor::num;
}

template <ArrowFixed T>
auto arrow_fixed(const T& value) {
  if constexpr (std::same_as<T, std::chrono::year_month_day>) {
    if (!value.ok()) refuse_arrow("the date is not in the calendar");
    return arrow_integer<std::int32_t>(std::chrono::sys_days(value).time_since_epoch().count());
  } else if constexpr (ArrowDate<T>) {
    return arrow_integer<std::int32_t>(value.time_since_epoch().count());
  } else if constexpr (ArrowTime<T>) {
    return arrow_count(value.time_since_epoch());
  } else if constexpr (ArrowDuration<T>) {
    return arrow_count(value);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else {
    return value;
  }
}

// --- Builders

/// Offsets are kept in 64 bits and narrowed in the end, since only then it is known whether they fit.
class ArrowOffsets {
 public:
  ArrowOffsets() : values_(1, 0) {}

  void add(std::size_t size) { values_.push_back(values_.back() + static_cast<std::int64_t>(size)); }

  [[nodiscard]] ArrowBuffer finish(bool large) && {
    if (large) return arrow_buffer(std::move(values_));
    if (values_.back() > std::numeric_limits<std::int32_t>::max()) {
      throw ColumnFault{0,
                        {},
                        "more than 2147483647 bytes of text, or elements of lists; set "
                        "ArrowOptions::large_offsets, or export fewer rows at a time"};
    }
    ArrowVector<std::int32_t> narrow;
    narrow.reserve(values_.size());
    for (const std::int64_t value : values_) narrow.push_back(static_cast<std::int32_t>(value));
    return arrow_buffer(std::move(narrow));
  }

 private:
  ArrowVector<std::int64_t> values_;
};

/// A bit for each value, the lowest first.
class ArrowBits {
 public:
  void add(bool bit) {
    if (size_ % 8 == 0) bytes_.push_back(0);
    if (bit) bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | 1U << (size_ % 8));
    ++size_;
    clear_ += bit ? 0 : 1;
  }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] std::int64_t clear() const noexcept { return clear_; }
  [[nodiscard]] ArrowBuffer finish() && { return arrow_buffer(std::move(bytes_)); }

 private:
  ArrowVector<std::uint8_t> bytes_;
  std::int64_t size_ = 0;
  std::int64_t clear_ = 0;
};

/// A builder has add(value), add_nothing() for a slot whose value does not count, and finish().
template <class T>
class ArrowBuilder {
  static_assert(ArrowFixed<T>,
                "keyfold: Arrow has no type for this column; leave it out, or give its type a "
                "keyfold::csv_value to export it as text");
};

template <ArrowFixed T>
class ArrowBuilder<T> {
  using Stored = decltype(detail::arrow_fixed(std::declval<const T&>()));

 public:
  void add(const T& value) { values_.push_back(detail::arrow_fixed(value)); }
  void add_nothing() { values_.push_back(Stored()); }
  [[nodiscard]] ArrowColumn finish(bool /*large*/) && {
    const auto length = static_cast<std::int64_t>(values_.size());
    return {.format = fixed_format<T>(),
            .length = length,
            .buffers = {nullptr, arrow_buffer(std::move(values_))}};
  }

 private:
  ArrowVector<Stored> values_;
};

template <>
class ArrowBuilder<bool> {
 public:
  void add(bool value) { bits_.add(value); }
  void add_nothing() { bits_.add(false); }
  [[nodiscard]] ArrowColumn finish(bool /*large*/) && {
    const std::int64_t length = bits_.size();
    return {.format = "b", .length = length, .buffers = {nullptr, std::move(bits_).finish()}};
  }

 private:
  ArrowBits bits_;
};

template <ArrowText T>
class ArrowBuilder<T> {
 public:
  void add(const T& value) {
    if constexpr (StringLike<T>) {
      add_text(detail::as_text(value));
    } else {
      const std::optional<std::string> text = csv_value<T>::text(value);
      if (!text) refuse_arrow("the value cannot be written as " + std::string(csv_value<T>::expected()));
      add_text(*text);
    }
  }
  void add_nothing() {
    offsets_.add(0);
    ++length_;
  }
  [[nodiscard]] ArrowColumn finish(bool large) && {
    return {.format = large ? "U" : "u",
            .length = length_,
            .buffers = {nullptr, std::move(offsets_).finish(large), arrow_buffer(std::move(bytes_))}};
  }

 private:
  void add_text(std::string_view text) {
    if (const std::size_t bad = utf8_error(text); bad != text.size()) {
      refuse_arrow("the text " + excerpt(text) + " is not UTF-8 at its byte " + std::to_string(bad) +
                   ", which Arrow requires");
    }
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    offsets_.add(text.size());
    ++length_;
  }

  ArrowOffsets offsets_;
  ArrowVector<char> bytes_;
  std::int64_t length_ = 0;
};

/// Values that may be absent.
template <class Builder>
class ArrowNullable {
 public:
  template <class T>
  void add_pointer(const T* value) {
    value != nullptr ? values_.add(*value) : values_.add_nothing();
    present_.add(value != nullptr);
  }
  void add_nothing() {
    values_.add_nothing();
    present_.add(false);
  }
  [[nodiscard]] ArrowColumn finish(bool large) && {
    ArrowColumn column = std::move(values_).finish(large);
    column.nullable = true;
    column.null_count = present_.clear();
    column.buffers.front() = std::move(present_).finish();
    return column;
  }

 private:
  Builder values_;
  ArrowBits present_;
};

template <class T>
  requires(!is_optional_v<T>)
class ArrowBuilder<std::optional<T>> : public ArrowNullable<ArrowBuilder<T>> {
 public:
  void add(const std::optional<T>& value) { this->add_pointer(value ? &*value : nullptr); }
};

template <ArrowList T>
class ArrowBuilder<T> {
  using Element = std::ranges::range_value_t<const T>;

 public:
  void add(const T& list) {
    std::size_t size = 0;
    try {
      for (auto&& element : list) {
        elements_.add(element);
        ++size;
      }
    } catch (ColumnFault& fault) {
      prepend_name(fault, '[' + std::to_string(size) + ']');
      throw;
    }
    offsets_.add(size);
    ++length_;
  }
  void add_nothing() {
    offsets_.add(0);
    ++length_;
  }
  [[nodiscard]] ArrowColumn finish(bool large) && {
    ArrowColumn out{.format = large ? "+L" : "+l",
                    .length = length_,
                    .buffers = {nullptr, std::move(offsets_).finish(large)}};
    out.children.push_back(std::move(elements_).finish(large));
    out.children.back().name = "item";
    return out;
  }

 private:
  ArrowOffsets offsets_;
  ArrowBuilder<Element> elements_;
  std::int64_t length_ = 0;
};

template <class Row, class List>
struct arrow_builders;
template <class Row, auto... Members>
struct arrow_builders<Row, MemberList<Members...>> {
  using type = std::tuple<ArrowBuilder<member_value_t<Members, Row>>...>;
};

template <class Row>
class ArrowRowBuilder {
 public:
  void add(const Row& row) {
    for_each_builder([&]<auto Member>(auto& builder) { builder.add(detail::read<Member>(row)); });
    ++length_;
  }
  void add_nothing() {
    for_each_builder([]<auto Member>(auto& builder) { builder.add_nothing(); });
    ++length_;
  }
  [[nodiscard]] ArrowColumn finish(bool large) && {
    ArrowColumn out{.format = "+s", .length = length_, .buffers = {nullptr}};
    out.children.reserve(column_count<Row>);
    for_each_builder([&]<auto Member>(auto& builder) {
      out.children.push_back(std::move(builder).finish(large));
      out.children.back().name = member_name<Member>;
    });
    return out;
  }

 private:
  template <class Visitor>
  void for_each_builder(Visitor&& visit) {
    std::string_view name;
    try {
      detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
        name = member_name<Member>;
        visit.template operator()<Member>(std::get<I>(builders_));
      });
    } catch (ColumnFault& fault) {
      prepend_name(fault, std::string(name));
      throw;
    }
  }

  typename arrow_builders<Row, columns_list<Row>>::type builders_;
  std::int64_t length_ = 0;
};

template <class Row>
  requires HasColumns<Row> && (!CsvWritable<Row>) && (!ArrowList<Row>)
class ArrowBuilder<Row> : public ArrowRowBuilder<Row> {};

}  // namespace keyfold::detail
#endif

// detail/arrow_error
#ifndef KEYFOLD_SINGLE_DETAIL_ARROW_ERROR
#define KEYFOLD_SINGLE_DETAIL_ARROW_ERROR

/// The public error of arrow.hpp, apart from it because what is below detail/ throws it.
namespace keyfold {

/// A row that Arrow cannot hold.
class ArrowError : public Error {
 public:
  ArrowError(std::string column_name, Position row_position, const std::string& what_and_what_to_do)
      : Error((row_position == no_position ? std::string() : "row " + std::to_string(row_position) + ", ") +
              "column '" + column_name + "': " + what_and_what_to_do),
        column(std::move(column_name)),
        position(row_position) {}

  std::string column;  ///< as "name", "after.name" or "tags[2]"
  Position position;   ///< of the row, from 0; no_position where the column as a whole is too much
};

}  // namespace keyfold
#endif

/// Rows and changes as struct arrays.
namespace keyfold::detail {

template <class Column>
void add_child(ArrowColumn& parent, const char* name, Column&& column) {
  column.name = name;
  parent.children.push_back(std::forward<Column>(column));
}

/// Rows.
template <class Row>
class ArrowRows {
 public:
  static constexpr bool has_columns = HasColumns<Row>;

  void add(const Row& row) { rows_.add(row); }
  [[nodiscard]] ArrowColumn finish(bool large) { return std::move(rows_).finish(large); }

 private:
  ArrowRowBuilder<Row> rows_;
};

template <class Row>
  requires(!HasColumns<Row>)
class ArrowRows<Row> {
 public:
  static constexpr bool has_columns = false;
};

/// Changes: what happened, and the rows before and after, each of which may be absent.
template <class Row>
  requires HasColumns<Row>
class ArrowRows<Change<Row>> {
 public:
  static constexpr bool has_columns = true;

  void add(const Change<Row>& change) {
    kind_.add(to_string(change.kind()));
    add_image("before", before_, change.before());
    add_image("after", after_, change.after());
    ++length_;
  }
  [[nodiscard]] ArrowColumn finish(bool large) {
    ArrowColumn out{.format = "+s", .length = length_, .buffers = {nullptr}};
    add_children(out, large);
    return out;
  }

 protected:
  void add_children(ArrowColumn& out, bool large) {
    add_child(out, "kind", std::move(kind_).finish(large));
    add_child(out, "before", finish_image("before", before_, large));
    add_child(out, "after", finish_image("after", after_, large));
  }

 private:
  using Image = ArrowNullable<ArrowRowBuilder<Row>>;

  static void add_image(const char* name, Image& image, const Row* row) {
    within(name, [&] { image.add_pointer(row); });
  }
  static ArrowColumn finish_image(const char* name, Image& image, bool large) {
    ArrowColumn column;
    within(name, [&] { column = std::move(image).finish(large); });
    return column;
  }
  template <class Action>
  static void within(const char* name, Action action) {
    try {
      action();
    } catch (ColumnFault& fault) {
      prepend_name(fault, name);
      throw;
    }
  }

  ArrowBuilder<std::string_view> kind_;
  Image before_;
  Image after_;
  std::int64_t length_ = 0;
};

/// Changes with the version that made them.
template <class Row>
  requires HasColumns<Row>
class ArrowRows<FeedChange<Row>> : public ArrowRows<Change<Row>> {
 public:
  void add(const FeedChange<Row>& change) {
    version_.add(change.version());
    timestamp_.add(change.timestamp());
    ArrowRows<Change<Row>>::add(change);
    ++length_;
  }
  [[nodiscard]] ArrowColumn finish(bool large) {
    ArrowColumn out{.format = "+s", .length = length_, .buffers = {nullptr}};
    add_child(out, "version", std::move(version_).finish(large));
    add_child(out, "timestamp", std::move(timestamp_).finish(large));
    this->add_children(out, large);
    return out;
  }

 private:
  ArrowBuilder<Version> version_;
  ArrowBuilder<Timestamp> timestamp_;
  std::int64_t length_ = 0;
};

template <class Row, class Range>
ArrowColumn arrow_column(Range& range, bool large) {
  ArrowRows<Row> rows;
  Position position = 0;
  try {
    for (const Row& row : range) {
      rows.add(row);
      ++position;
    }
    position = no_position;
    return rows.finish(large);
  } catch (const ColumnFault& fault) {
    throw ArrowError(fault.column, position, fault.message);
  }
}

/// Both or nothing; either may be null.
inline void export_column(ArrowColumn&& column, ArrowArray* array, ArrowSchema* schema) {
  ArrowOwner<ArrowSchema> made_schema;
  ArrowOwner<ArrowArray> made_array;
  if (schema != nullptr) make_schema(column, made_schema.owned);
  if (array != nullptr) make_array(std::move(column), made_array.owned);
  if (schema != nullptr) made_schema.move_to(schema);
  if (array != nullptr) made_array.move_to(array);
}

}  // namespace keyfold::detail
#endif

/// Optional header: rows and changes for the Arrow C data interface, with which Python, R, DuckDB and others
/// in the same process take them over without a copy of their own. Needs no library. See docs/arrow.md.
namespace keyfold {

struct ArrowOptions {
  bool large_offsets = false;  ///< 64-bit offsets: for more than 2 GiB of text in a column
};

/// Copies `rows` into `*array`, a struct array with a child for each column, and its type into `*schema`
/// unless that is null. Rows are those of a table, a view as of a version, any range of rows with a column
/// list; or changes: of a ChangeSet, with the children `kind`, `before` and `after`, or of a ChangeFeed, with
/// `version` and `timestamp` before these.
///
/// Both structs are the consumer's, who calls their release(); what they held before is overwritten. They
/// refer to nothing of the rows. Throws: ArrowError for a value that Arrow cannot hold, std::bad_alloc, and
/// what iterating the rows throws; both structs are then as they were. O(bytes of the rows).
template <std::ranges::input_range Rows>
void export_arrow(Rows&& rows, ArrowArray* array, ArrowSchema* schema = nullptr,
                  const ArrowOptions& options = {}) {
  using Row = std::ranges::range_value_t<Rows>;
  static_assert(detail::ArrowRows<Row>::has_columns,
                "keyfold: Arrow needs the column list of the row; describe it or specialise columns_of");
  if constexpr (detail::ArrowRows<Row>::has_columns)
    detail::export_column(detail::arrow_column<Row>(rows, options.large_offsets), array, schema);
}

/// The type that export_arrow() gives such rows, or Change<Row> or FeedChange<Row>.
template <class Row>
void export_arrow_schema(ArrowSchema* schema, const ArrowOptions& options = {}) {
  static_assert(detail::ArrowRows<Row>::has_columns,
                "keyfold: Arrow needs the column list of the row; describe it or specialise columns_of");
  if constexpr (detail::ArrowRows<Row>::has_columns)
    detail::export_column(detail::ArrowRows<Row>().finish(options.large_offsets), nullptr, schema);
}

}  // namespace keyfold
#endif
