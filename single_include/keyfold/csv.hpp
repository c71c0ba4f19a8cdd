// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// csv
#ifndef KEYFOLD_SINGLE_CSV
#define KEYFOLD_SINGLE_CSV

// detail/csv_error
#ifndef KEYFOLD_SINGLE_DETAIL_CSV_ERROR
#define KEYFOLD_SINGLE_DETAIL_CSV_ERROR

// detail/excerpt
#ifndef KEYFOLD_SINGLE_DETAIL_EXCERPT
#define KEYFOLD_SINGLE_DETAIL_EXCERPT

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

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

/// The public error of csv.hpp, apart from it because the parser below detail/ throws it.
namespace keyfold {

/// A CSV file that cannot be read into rows, or a row that cannot be written as CSV.
class CsvError : public Error {
 public:
  CsvError(std::string file_name, std::size_t line_number, std::string column_name, std::size_t field_number,
           const std::string& what_and_what_to_do)
      : Error(detail::said_of(place(file_name, line_number, column_name, field_number), what_and_what_to_do)),
        file(std::move(file_name)),
        line(line_number),
        column(std::move(column_name)),
        field(field_number) {}

  std::string file;  ///< path of the file, or the name given for the stream
  std::size_t line;  ///< physical line from 1 on which the field or record begins; 0 for the file as a whole
  std::string column;  ///< name of the column; empty where the error is of no one column
  std::size_t field;   ///< number of the field in its record, from 1; 0 where the error is of no one field

 private:
  static std::string place(const std::string& file, std::size_t line, const std::string& column,
                           std::size_t field) {
    std::string out = file;
    if (line != 0) out += ':' + std::to_string(line);
    if (field != 0) out += ": field " + std::to_string(field);
    if (!column.empty())
      out += (field != 0 ? " (column " : ": column ") + detail::excerpt(column) + (field != 0 ? ")" : "");
    return out;
  }
};

}  // namespace keyfold
#endif

// detail/csv_reader
#ifndef KEYFOLD_SINGLE_DETAIL_CSV_READER
#define KEYFOLD_SINGLE_DETAIL_CSV_READER

// detail/csv_records
#ifndef KEYFOLD_SINGLE_DETAIL_CSV_RECORDS
#define KEYFOLD_SINGLE_DETAIL_CSV_RECORDS

#include <istream>
#include <memory>
#include <span>
#include <vector>

/// RFC 4180 records, before they mean anything. Taken besides: LF for CRLF, a UTF-8 byte order mark, any
/// bytes inside a field. Refused: a quote inside an unquoted field, text after a closing quote, a carriage
/// return by itself.
namespace keyfold::detail {

struct CsvField {
  std::string text;
  bool quoted = false;
  std::size_t line = 0;

  [[nodiscard]] bool absent() const noexcept { return text.empty() && !quoted; }
};

class CsvRecords {
 public:
  /// Requires: the stream outlives this object.
  CsvRecords(std::istream& stream, std::string name, char separator)
      : stream_(&stream), name_(std::move(name)), separator_(separator) {
    skip_byte_order_mark();
  }
  CsvRecords(std::unique_ptr<std::istream> stream, std::string name, char separator)
      : CsvRecords(*stream, std::move(name), separator) {
    owned_ = std::move(stream);
  }

  /// Reads the next record. Returns: false at the end of the stream. Throws: CsvError.
  bool next() {
    size_ = 0;
    record_line_ = line_;
    if (peek() == end) return false;
    do {
      read_field(next_field());
    } while (take(separator_));
    take_line_end();
    return true;
  }

  /// The fields of the record that next() read; valid until it is called again.
  [[nodiscard]] std::span<const CsvField> fields() const noexcept { return {fields_.data(), size_}; }

  /// Whether that record is a line of nothing but blanks.
  [[nodiscard]] bool blank() const noexcept {
    return size_ == 1 && !fields_[0].quoted && fields_[0].text.find_first_not_of(" \t") == std::string::npos;
  }

  /// For a record of one field: what may separate several in it, as text for a message; else nothing.
  [[nodiscard]] std::string other_separator() const {
    if (size_ != 1 || fields_[0].quoted) return {};
    const auto at = fields_[0].text.find_first_of(",;\t|");
    if (at == std::string::npos) return {};
    return fields_[0].text[at] == '\t' ? "a tab" : std::string("'") + fields_[0].text[at] + "'";
  }

  /// The physical line, from 1, on which that record begins.
  [[nodiscard]] std::size_t line() const noexcept { return record_line_; }

  [[noreturn]] void fail(std::size_t line, std::string column, std::size_t field,
                         const std::string& message) const {
    throw CsvError(name_, line, std::move(column), field, message);
  }

 private:
  static constexpr int end = -1;
  static constexpr std::size_t block_size = 65536;

  void skip_byte_order_mark() {
    fill();
    if (buffer_.starts_with("\xEF\xBB\xBF")) position_ = 3;
  }

  void fill() {
    buffer_.resize(block_size);
    stream_->read(buffer_.data(), static_cast<std::streamsize>(block_size));
    if (stream_->bad()) fail(line_, {}, 0, "cannot be read further; check the file and its disk");
    buffer_.resize(static_cast<std::size_t>(stream_->gcount()));
    position_ = 0;
  }

  int peek() {
    if (position_ == buffer_.size() && !stream_->eof()) fill();
    return position_ == buffer_.size() ? end : static_cast<unsigned char>(buffer_[position_]);
  }

  /// Requires: peek() is not the end.
  char get() {
    const char c = buffer_[position_++];
    if (c == '\n') ++line_;
    return c;
  }

  bool take(char expected) {
    if (peek() != static_cast<unsigned char>(expected)) return false;
    get();
    return true;
  }

  CsvField& next_field() {
    if (size_ == fields_.size()) fields_.emplace_back();
    CsvField& field = fields_[size_++];
    field.text.clear();
    field.line = line_;
    return field;
  }

  void read_field(CsvField& field) {
    field.quoted = take('"');
    field.quoted ? read_quoted(field) : read_plain(field);
  }

  [[nodiscard]] bool ends_field(int c) const noexcept {
    return c == end || c == '\n' || c == '\r' || c == static_cast<unsigned char>(separator_);
  }

  void read_plain(CsvField& field) {
    while (!ends_field(peek())) {
      const std::size_t begin = position_;
      while (position_ != buffer_.size() && is_plain(buffer_[position_])) ++position_;
      field.text.append(buffer_, begin, position_ - begin);
      if (position_ != buffer_.size() && buffer_[position_] == '"') {
        fail(field.line, {}, size_,
             "a quote stands inside an unquoted field; quote the whole field and double its quotes");
      }
    }
  }

  [[nodiscard]] bool is_plain(char c) const noexcept {
    return c != '"' && c != '\n' && c != '\r' && c != separator_;
  }

  void read_quoted(CsvField& field) {
    for (;;) {
      if (peek() == end)
        fail(field.line, {}, size_, "the quote that opens here is never closed; is the file cut off?");
      const char c = get();
      if (c == '"' && !take('"')) break;
      field.text += c;
    }
    if (!ends_field(peek())) {
      fail(field.line, {}, size_, "text follows the closing quote; double the quotes inside a quoted field");
    }
  }

  void take_line_end() {
    if (take('\r') && peek() != '\n') {
      fail(line_, {}, size_, "a carriage return stands alone; end lines with LF or CRLF, or quote the field");
    }
    take('\n');
  }

  std::unique_ptr<std::istream> owned_;
  std::istream* stream_;
  std::string name_;
  char separator_;
  std::string buffer_;
  std::size_t position_ = 0;
  std::size_t line_ = 1;
  std::size_t record_line_ = 1;
  std::vector<CsvField>
      fields_;  // the first size_ are the record's; the others keep their memory for the next
  std::size_t size_ = 0;
};

}  // namespace keyfold::detail
#endif

// detail/csv_value
#ifndef KEYFOLD_SINGLE_DETAIL_CSV_VALUE
#define KEYFOLD_SINGLE_DETAIL_CSV_VALUE

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
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

// detail/row_range
#ifndef KEYFOLD_SINGLE_DETAIL_ROW_RANGE
#define KEYFOLD_SINGLE_DETAIL_ROW_RANGE

#include <iterator>

/// What the readers of text files share.
namespace keyfold::detail {

/// "id, status, amount"
template <class Row>
std::string names_text() {
  std::string out;
  for (const auto name : column_names<Row>) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

/// The values of a file, read one at a time: an input range that a merge takes as its source. `Reader` has a
/// `bool read(value_type&)`, which is false at the end and throws for what it cannot read.
/// Thread safety: one thread. Iterators are invalid once the range is moved.
template <class Reader>
class RowRange {
 public:
  using value_type = typename Reader::value_type;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = RowRange::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = value_type&;
    using pointer = value_type*;

    iterator() = default;
    explicit iterator(RowRange& rows) : rows_(&rows) {}

    /// The value, which may be moved from.
    reference operator*() const noexcept { return rows_->row_; }
    iterator& operator++() {
      rows_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t /*end*/) const noexcept { return rows_->done_; }

   private:
    RowRange* rows_ = nullptr;
  };

  explicit RowRange(Reader reader) : reader_(std::move(reader)) {}

  /// Reads the first value; to be called once. Throws what incrementing the iterator does.
  [[nodiscard]] iterator begin() {
    advance();
    return iterator(*this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void advance() { done_ = !reader_.read(row_); }

  Reader reader_;
  value_type row_{};
  bool done_ = false;
};

template <class Reader>
auto all_of(RowRange<Reader> rows) {
  std::vector<typename Reader::value_type> out;
  for (auto& row : rows) out.push_back(std::move(row));
  return out;
}

}  // namespace keyfold::detail
#endif

#include <algorithm>
#include <array>

/// Records as rows: the header says which field is which column.
namespace keyfold::detail {

template <class Row>
class CsvReader {
  static_assert(HasColumns<Row>,
                "keyfold: CSV needs the column list of the row; describe it or specialise columns_of");
  static_assert(std::default_initializable<Row>, "keyfold: CSV needs a row type with a default constructor");

 public:
  using value_type = Row;

  /// Reads the header.
  CsvReader(CsvRecords records, bool allow_missing_columns, bool ignore_unknown_columns)
      : records_(std::move(records)) {
    place_.fill(nowhere);
    if (!records_.next()) {
      records_.fail(0, {}, 0, "is empty; its first line must name the columns: " + names_text<Row>());
    }
    if (records_.blank()) {
      records_.fail(1, {}, 0, "the first line is blank; it must name the columns: " + names_text<Row>());
    }
    width_ = records_.fields().size();
    for (std::size_t i = 0; i < width_; ++i) place_column(i, ignore_unknown_columns);
    if (!allow_missing_columns) require_all_columns();
  }

  /// Reads the next row into `row`. Returns: false, and leaves `row` alone, at the end of the file.
  bool read(Row& row) {
    if (!records_.next()) return false;
    if (const auto found = records_.fields().size(); found != width_) {
      if (records_.blank()) records_.fail(records_.line(), {}, 0, "the line is blank; remove it");
      records_.fail(records_.line(), {}, 0,
                    "the record has " + std::to_string(found) + " fields, the header " +
                        std::to_string(width_) + "; is a separator or a quote missing?");
    }
    row = Row();
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      static_assert(is_data_member<Member>, "keyfold: CSV can only be read into data members");
      if (place_[I] != nowhere) assign(row.*Member, records_.fields()[place_[I]], I);
    });
    return true;
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  void place_column(std::size_t field, bool ignore_unknown_columns) {
    const std::string& name = records_.fields()[field].text;
    const std::size_t column = column_index<Row>(name);
    if (column == column_count<Row>) {
      if (ignore_unknown_columns) return;
      records_.fail(1, name, field + 1,
                    "is no column of the row, which has " + names_text<Row>() + "; " +
                        remedy("the first line names the columns: rename this one, or set "
                               "CsvOptions::ignore_unknown_columns"));
    }
    if (place_[column] != nowhere) {
      const std::string first = std::to_string(place_[column] + 1);
      records_.fail(1, name, field + 1, "is named by field " + first + " too; remove or rename one of them");
    }
    place_[column] = field;
  }

  void require_all_columns() const {
    const auto missing = std::ranges::find(place_, nowhere);
    if (missing == place_.end()) return;
    records_.fail(1, std::string(column_names<Row>[static_cast<std::size_t>(missing - place_.begin())]), 0,
                  "is missing in the header; " + remedy("add it, or set CsvOptions::allow_missing_columns"));
  }

  [[nodiscard]] std::string remedy(const std::string& unless_separator) const {
    const std::string other = records_.other_separator();
    return other.empty() ? unless_separator
                         : "if " + other + " separates the fields, set CsvOptions::separator";
  }

  template <class Value>
  void assign(Value& value, const CsvField& field, std::size_t column) const {
    using Plain = unwrap_optional_t<Value>;
    static_assert(CsvReadable<Plain>,
                  "keyfold: CSV does not know the type of this column; specialise keyfold::csv_value for it");
    if constexpr (is_optional_v<Value>) {
      if (field.absent()) return value.reset();
    }
    std::optional<Plain> parsed = csv_value<Plain>::parse(field.text);
    if (!parsed) refuse(field, column, csv_value<Plain>::expected());
    if constexpr (is_optional_v<Value>) {
      value = std::move(parsed);
    } else {
      value = *std::move(parsed);
    }
  }

  [[noreturn]] void refuse(const CsvField& field, std::size_t column, const std::string& expected) const {
    const std::string found = field.absent() ? "is empty" : "found " + excerpt(field.text);
    const std::string remedy = field.absent() ? "fill it in, or make the column a std::optional"
                                              : "correct the field, or change the type of the column";
    records_.fail(field.line, std::string(column_names<Row>[column]), place_[column] + 1,
                  found + " where " + expected + " is needed; " + remedy);
  }

  CsvRecords records_;
  std::array<std::size_t, column_count<Row>> place_{};  // the field of each column
  std::size_t width_ = 0;
};

}  // namespace keyfold::detail
#endif

// detail/csv_writer
#ifndef KEYFOLD_SINGLE_DETAIL_CSV_WRITER
#define KEYFOLD_SINGLE_DETAIL_CSV_WRITER

#include <ostream>

namespace keyfold::detail {

/// Writes the header when it is made and then a record for each row. Requires: the stream outlives it.
template <class Row>
class CsvWriter {
  static_assert(HasColumns<Row>,
                "keyfold: CSV needs the column list of the row; describe it or specialise columns_of");

 public:
  CsvWriter(std::ostream& stream, std::string name, char separator, std::string_view line_end)
      : stream_(stream), name_(std::move(name)), separator_(separator), line_end_(line_end) {
    for (const auto column : column_names<Row>) append(column, false);
    end_record();
  }

  void write(const Row& row) {
    detail::for_each_column<Row>(
        [&]<auto Member, std::size_t I>() { append_value(detail::read<Member>(row), I); });
    end_record();
  }

  void finish() {
    stream_.flush();
    if (!stream_) throw CsvError(name_, line_, {}, 0, "cannot be written further; is its disk full?");
  }

 private:
  template <class Value>
  void append_value(const Value& value, std::size_t column) {
    using Plain = unwrap_optional_t<Value>;
    static_assert(CsvWritable<Plain>,
                  "keyfold: CSV does not know the type of this column; specialise keyfold::csv_value for it");
    if (!detail::has_value(value)) return append({}, false);
    const std::optional<std::string> text = csv_value<Plain>::text(detail::value_of(value));
    if (!text) refuse(column, csv_value<Plain>::expected());
    append(*text, text->empty() && (is_optional_v<Value> || column_count<Row> == 1));
  }

  /// Quotes are needed where the text would not come back, and ask for by `quoted` where it would come back
  /// absent.
  void append(std::string_view text, bool quoted) {
    if (fields_++ != 0) record_ += separator_;
    if (!quoted && !needs_quotes(text)) {
      record_ += text;
      return;
    }
    record_ += '"';
    for (const char c : text) {
      if (c == '"') record_ += '"';
      record_ += c;
    }
    record_ += '"';
  }

  [[nodiscard]] bool needs_quotes(std::string_view text) const {
    return std::ranges::any_of(text,
                               [&](char c) { return c == '"' || c == '\r' || c == '\n' || c == separator_; });
  }

  void end_record() {
    record_ += line_end_;
    stream_.write(record_.data(), static_cast<std::streamsize>(record_.size()));
    line_ += static_cast<std::size_t>(std::ranges::count(record_, '\n'));
    record_.clear();
    fields_ = 0;
  }

  [[noreturn]] void refuse(std::size_t column, const std::string& expected) const {
    throw CsvError(name_, line_, std::string(column_names<Row>[column]), column + 1,
                   "the value cannot be written as " + expected + "; correct the row, or leave it out");
  }

  std::ostream& stream_;
  std::string name_;
  char separator_;
  std::string_view line_end_;
  std::string record_;
  std::size_t fields_ = 0;
  std::size_t line_ = 1;
};

}  // namespace keyfold::detail
#endif

#include <filesystem>
#include <fstream>
#include <ranges>

/// Optional header: CSV files (RFC 4180) as rows, and rows as CSV files. The first line names the columns, in
/// any order. An empty unquoted field is the empty std::optional; `""` is the empty string.
namespace keyfold {

/// Customization point: how a value of type T is written in a field. Specialise it for a type of your own:
///
///     template <> struct keyfold::csv_value<Money> {
///       static std::string expected();                         // for errors: "an amount such as 12.50"
///       static std::optional<Money> parse(std::string_view);   // empty: the text is no such value
///       static std::optional<std::string> text(const Money&);  // empty: parse() could not read it back
///     };
///
/// Known are bool, char, numbers, std::string, enums (by name where Boost.Describe knows them), durations,
/// system-clock times no finer than microseconds, calendar dates, and std::optional of all these.
template <class T>
struct csv_value;

/// How a file differs from the plain form.
struct CsvOptions {
  char separator = ',';                 ///< anything but a quote, CR or LF
  bool allow_missing_columns = false;   ///< a column that the header lacks keeps the default of its member
  bool ignore_unknown_columns = false;  ///< skip what the header names and the row does not have
  std::string_view line_end = "\n";     ///< for writing; reading takes LF and CRLF
};

/// The rows of a CSV file, read one at a time: an input range that a merge takes as its source, whose rows
/// may be moved from. begin() and increments throw CsvError. Thread safety: one thread.
template <class Row>
using CsvRows = detail::RowRange<detail::CsvReader<Row>>;

namespace detail {

template <class Row>
CsvRows<Row> make_rows(CsvRecords records, const CsvOptions& options) {
  return CsvRows<Row>({std::move(records), options.allow_missing_columns, options.ignore_unknown_columns});
}

template <class Rows>
void write_rows(std::ostream& stream, std::string name, Rows& rows, const CsvOptions& options) {
  CsvWriter<std::ranges::range_value_t<Rows>> writer(stream, std::move(name), options.separator,
                                                     options.line_end);
  for (const auto& row : rows) writer.write(row);
  writer.finish();
}

}  // namespace detail

/// The rows of `file`, read while they are iterated. Throws: CsvError, here for the header, there for a row.
template <class Row>
[[nodiscard]] CsvRows<Row> csv_rows(const std::filesystem::path& file, const CsvOptions& options = {}) {
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  if (!*stream) throw CsvError(file.string(), 0, {}, 0, "cannot be opened; check the path and its rights");
  return detail::make_rows<Row>({std::move(stream), file.string(), options.separator}, options);
}

/// The rows of `stream`, called `name` in errors. Requires: the stream outlives the range. Throws: CsvError.
template <class Row>
[[nodiscard]] CsvRows<Row> csv_rows(std::istream& stream, std::string name = "<stream>",
                                    const CsvOptions& options = {}) {
  return detail::make_rows<Row>({stream, std::move(name), options.separator}, options);
}

/// Returns: all rows, in order. Throws: CsvError for the first thing that is wrong.
template <class Row>
[[nodiscard]] std::vector<Row> read_csv(const std::filesystem::path& file, const CsvOptions& options = {}) {
  return detail::all_of(csv_rows<Row>(file, options));
}

template <class Row>
[[nodiscard]] std::vector<Row> read_csv(std::istream& stream, std::string name = "<stream>",
                                        const CsvOptions& options = {}) {
  return detail::all_of(csv_rows<Row>(stream, std::move(name), options));
}

/// Writes a line of column names and a line for each row; read_csv reads the same rows back.
/// Throws: CsvError when a value has no text that could be read back, or the stream refuses to take it.
template <std::ranges::input_range Rows>
void write_csv(std::ostream& stream, Rows&& rows, const CsvOptions& options = {}) {
  detail::write_rows(stream, "<stream>", rows, options);
}

/// Replaces `file`. Not atomic: a failure leaves the part that was written.
template <std::ranges::input_range Rows>
void write_csv(const std::filesystem::path& file, Rows&& rows, const CsvOptions& options = {}) {
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw CsvError(file.string(), 0, {}, 0, "cannot be created; check the path and its rights");
  detail::write_rows(stream, file.string(), rows, options);
}

}  // namespace keyfold
#endif
