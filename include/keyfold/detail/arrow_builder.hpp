// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/arrow_column.hpp>
#include <keyfold/detail/column_fault.hpp>
#include <keyfold/detail/csv_value.hpp>
#include <keyfold/detail/excerpt.hpp>
#include <keyfold/detail/utf8.hpp>
#include <keyfold/detail/value.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <ratio>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

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
