// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// catch2
#ifndef KEYFOLD_SINGLE_CATCH2
#define KEYFOLD_SINGLE_CATCH2

// detail/print_table
#ifndef KEYFOLD_SINGLE_DETAIL_PRINT_TABLE
#define KEYFOLD_SINGLE_DETAIL_PRINT_TABLE

// detail/print_text
#ifndef KEYFOLD_SINGLE_DETAIL_PRINT_TEXT
#define KEYFOLD_SINGLE_DETAIL_PRINT_TEXT

// detail/utf8
#ifndef KEYFOLD_SINGLE_DETAIL_UTF8
#define KEYFOLD_SINGLE_DETAIL_UTF8

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

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

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

/// Text that is laid out on a terminal: escaped, measured in code points, aligned in columns.
namespace keyfold::detail {

/// Whether a terminal would not show the code point but act on it: controls, line ends, and marks that turn
/// the direction of the text around.
constexpr bool acts_on_terminal(char32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

inline void append_hex(std::string& out, std::uint32_t value, unsigned digits) {
  while (digits-- != 0) out += "0123456789abcdef"[value >> (4 * digits) & 0xFU];
}

inline void append_escape(std::string& out, const CodePoint& c) {
  out += '\\';
  switch (c.value) {
    case '\\':
      out += '\\';
      return;
    case '\n':
      out += 'n';
      return;
    case '\r':
      out += 'r';
      return;
    case '\t':
      out += 't';
      return;
    default:
      break;
  }
  const bool is_byte = !c.valid || c.value < 0x80;
  out += is_byte ? 'x' : 'u';
  append_hex(out, c.value, is_byte ? 2 : 4);
}

/// Appends text as C would write it between quotes, so that it stays on its line.
inline void append_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (!c.valid || c.value == '\\' || acts_on_terminal(c.value)) {
      append_escape(out, c);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
}

inline std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(out, text);
  return out;
}

/// Requires: well-formed UTF-8.
inline std::size_t width_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !is_continuation(byte); }));
}

/// Shortens text of more than `limit` code points to that many, of which the last three are dots.
inline void cut(std::string& text, std::size_t limit) {
  if (text.size() <= limit || width_of(text) <= limit) return;
  const std::size_t dots = std::min<std::size_t>(limit, 3);
  std::size_t end = 0;
  for (std::size_t kept = 0; kept < limit - dots; ++kept)
    end += first_code_point(std::string_view(text).substr(end)).bytes;
  text.replace(end, std::string::npos, dots, '.');
}

/// Cells in columns. Every cell is one line of well-formed UTF-8.
class TextGrid {
 public:
  enum class Align : std::uint8_t { left, right };

  void add_column(std::string_view name, Align align) {
    columns_.push_back({align, width_of(name)});
    names_.emplace_back(name);
  }

  /// Adds a cell, row by row. Requires: there is a column.
  void add(std::string cell) {
    std::size_t& width = columns_[cells_.size() % columns_.size()].width;
    width = std::max(width, width_of(cell));
    cells_.push_back(std::move(cell));
  }

  /// The names, a rule, and the rows; lines end without spaces.
  [[nodiscard]] std::string text() const {
    std::string out;
    if (columns_.empty()) return out;
    append_line(out, names_.data());
    append_rule(out);
    for (std::size_t cell = 0; cell < cells_.size(); cell += columns_.size()) append_line(out, &cells_[cell]);
    return out;
  }

 private:
  struct Column {
    Align align;
    std::size_t width;
  };

  void append_line(std::string& out, const std::string* cells) const {
    for (const Column& column : columns_) {
      if (&column != columns_.data()) out += " | ";
      const std::size_t padding = column.width - width_of(*cells);
      if (column.align == Align::right) out.append(padding, ' ');
      out += *cells++;
      if (column.align == Align::left) out.append(padding, ' ');
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  }

  void append_rule(std::string& out) const {
    for (const Column& column : columns_) {
      if (&column != columns_.data()) out += "-+-";
      out.append(column.width, '-');
    }
    out += '\n';
  }

  std::vector<Column> columns_;
  std::vector<std::string> names_;
  std::vector<std::string> cells_;
};

}  // namespace keyfold::detail
#endif

#include <concepts>
#include <limits>
#include <ranges>
#include <variant>

/// Rows, changes and commits as the cells of a TextGrid.
namespace keyfold::detail {

struct PrintOptions {
  std::size_t max_rows = std::numeric_limits<std::size_t>::max();
  std::size_t max_width = std::numeric_limits<std::size_t>::max();  // of one value, in code points
};

struct MaxRows {
  std::size_t count;
};
struct MaxWidth {
  std::size_t count;
};

template <class T>
concept PrintOption = std::same_as<T, MaxRows> || std::same_as<T, MaxWidth>;

constexpr void set(PrintOptions& options, MaxRows limit) noexcept { options.max_rows = limit.count; }
constexpr void set(PrintOptions& options, MaxWidth limit) noexcept { options.max_width = limit.count; }

// --- Values

/// Types whose text is the user's, so that it might be taken for something else.
template <class T>
concept FreeText = StringLike<T> || std::same_as<T, char> || AdlText<T>;

inline bool misleads(std::string_view text) noexcept {
  if (text.empty()) return false;
  return text == "NULL" || text.front() == '\'' || text.front() == ' ' || text.back() == ' ' ||
         text.find('|') != text.npos || text.find("->") != text.npos;
}

inline std::string sql_literal(std::string_view text) {
  std::string out;
  detail::append_text(out, text, Style::literal);
  return out;
}

inline std::string text_cell(std::string_view text, const PrintOptions& options) {
  std::string out = escaped(text);
  cut(out, options.max_width);
  return out;
}

template <class T>
concept Number = (Arithmetic<T> && !std::same_as<T, bool> && !std::same_as<T, char>) || is_duration_v<T>;

/// Values that are nothing when cut short.
template <class T>
concept Uncut =
    !FreeText<T> && (Number<T> || std::same_as<T, bool> || std::is_enum_v<T> || is_time_point_v<T>);

template <class T>
std::string plain_cell(const T& value, const PrintOptions& options) {
  std::string text;
  detail::append_value(text, value, Style::plain);
  if constexpr (Uncut<T>) return text;
  if (FreeText<T> && misleads(text)) text = sql_literal(text);
  return text_cell(text, options);
}

template <class T>
std::string value_cell(const T& value, const PrintOptions& options) {
  if constexpr (is_optional_v<T>) {
    return value ? value_cell(*value, options) : plain_cell(std::nullopt, options);
  } else if constexpr (is_variant_v<T>) {
    if (value.valueless_by_exception()) return plain_cell(value, options);
    return detail::of_alternative(value, [&](const auto& held) { return value_cell(held, options); });
  } else {
    return plain_cell(value, options);
  }
}

template <class Row>
void add_row_columns(TextGrid& grid) {
  detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
    constexpr bool number = Number<unwrap_optional_t<member_value_t<Member, Row>>>;
    grid.add_column(member_name<Member>, number ? TextGrid::Align::right : TextGrid::Align::left);
  });
}

// --- Metrics

inline void append_count(std::string& out, std::string_view name, std::size_t count) {
  if (count == 0) return;
  out += ' ';
  out += name;
  out += '=';
  detail::append_number(out, count);
}

// matched_updated and matched_deleted are what the two by-source counts leave of updated and deleted.
inline std::string metrics_text(const Metrics& metrics) {
  std::string out = "source_rows=";
  detail::append_number(out, metrics.source_rows);
  append_count(out, "inserted", metrics.inserted);
  append_count(out, "updated", metrics.updated);
  append_count(out, "deleted", metrics.deleted);
  append_count(out, "unchanged", metrics.unchanged);
  append_count(out, "skipped", metrics.skipped);
  append_count(out, "not_matched_by_source_updated", metrics.not_matched_by_source_updated);
  append_count(out, "not_matched_by_source_deleted", metrics.not_matched_by_source_deleted);
  append_count(out, "dropped_duplicates", metrics.dropped_duplicates);
  append_count(out, "dropped_late", metrics.dropped_late);
  return out;
}

inline std::string time_text(Timestamp time) {
  std::string out;
  detail::append_time(out, time);
  return out;
}

template <class Row>
std::string commit_text(const Commit<Row>& commit) {
  std::string out = "version ";
  detail::append_number(out, commit.version());
  out += " at " + time_text(commit.timestamp()) + ": ";
  out += commit.operation();
  if (!commit.parameters().empty()) out += ' ' + escaped(commit.parameters());
  out += "; " + metrics_text(commit.metrics());
  if (!commit.metadata().empty()) out += "; metadata " + escaped(sql_literal(commit.metadata()));
  return out;
}

// --- What is printed of a range of T

/// Rows.
template <class T>
struct Printer {
  static constexpr bool has_columns = HasColumns<T>;
  static constexpr std::string_view noun = "row";

  static void add_columns(TextGrid& grid) { add_row_columns<T>(grid); }

  static void add(TextGrid& grid, const T& row, const PrintOptions& options) {
    detail::for_each_column<T>(
        [&]<auto Member, std::size_t>() { grid.add(value_cell(detail::read<Member>(row), options)); });
  }
};

/// Changes: the kind, and the row; "before -> after" where an update changed a column.
template <class Row>
struct Printer<Change<Row>> {
  static constexpr bool has_columns = HasColumns<Row>;
  static constexpr std::string_view noun = "change";

  static void add_columns(TextGrid& grid) {
    grid.add_column("change", TextGrid::Align::left);
    add_row_columns<Row>(grid);
  }

  static void add(TextGrid& grid, const Change<Row>& change, const PrintOptions& options) {
    const bool update = change.kind() == ChangeKind::update;
    const ColumnMask<Row> changed = change.columns();
    const Row& row = change.after() != nullptr ? *change.after() : *change.before();
    grid.add(std::string(to_string(change.kind())));
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      std::string text = value_cell(detail::read<Member>(row), options);
      if (update && changed.test(I))
        text.insert(0, value_cell(detail::read<Member>(*change.before()), options) + " -> ");
      grid.add(std::move(text));
    });
  }
};

/// Changes of a feed: the same behind their version and time.
template <class Row>
struct Printer<FeedChange<Row>> : Printer<Change<Row>> {
  static void add_columns(TextGrid& grid) {
    grid.add_column("version", TextGrid::Align::right);
    grid.add_column("timestamp", TextGrid::Align::left);
    Printer<Change<Row>>::add_columns(grid);
  }

  static void add(TextGrid& grid, const FeedChange<Row>& change, const PrintOptions& options) {
    grid.add(value_cell(change.version(), options));
    grid.add(value_cell(change.timestamp(), options));
    Printer<Change<Row>>::add(grid, change, options);
  }
};

/// Commits, as DESCRIBE HISTORY shows them.
template <class Row>
struct Printer<Commit<Row>> {
  static constexpr bool has_columns = true;
  static constexpr std::string_view noun = "commit";

  static void add_columns(TextGrid& grid) {
    grid.add_column("version", TextGrid::Align::right);
    for (const auto* name : {"timestamp", "operation", "parameters", "metrics", "metadata"}) {
      grid.add_column(name, TextGrid::Align::left);
    }
  }

  static void add(TextGrid& grid, const Commit<Row>& commit, const PrintOptions& options) {
    grid.add(value_cell(commit.version(), options));
    grid.add(value_cell(commit.timestamp(), options));
    grid.add(value_cell(commit.operation(), options));
    grid.add(text_cell(commit.parameters(), options));
    grid.add(text_cell(metrics_text(commit.metrics()), options));
    grid.add(value_cell(commit.metadata(), options));
  }
};

/// A range that is read through const, since begin() of a view may be non-const; a reference for an lvalue.
template <class Range>
struct PrintedRange {
  mutable Range range;
  Range& get() const noexcept { return range; }
};
template <class Range>
struct PrintedRange<Range&> {
  Range& range;
  Range& get() const noexcept { return range; }
};

// --- The table

inline std::string footer(std::size_t shown, std::size_t more, std::string_view noun) {
  std::string out = more == 0 ? "(" : "... ";
  const std::size_t count = more == 0 ? shown : more;
  detail::append_number(out, count);
  if (more != 0) out += " more";
  out += ' ';
  out += noun;
  if (count != 1) out += 's';
  return out + (more == 0 ? ")\n" : "\n");
}

template <class Range, class Iterator>
std::size_t rows_left(Range& range, Iterator it, std::size_t shown) {
  if constexpr (std::ranges::sized_range<Range&>) {
    return static_cast<std::size_t>(std::ranges::size(range)) - shown;
  } else {
    std::size_t left = 0;
    for (; it != std::ranges::end(range); ++it) ++left;
    return left;
  }
}

template <class T, class Range>
std::string ordered_table_text(Range& range, const PrintOptions& options) {
  TextGrid grid;
  Printer<T>::add_columns(grid);
  std::size_t shown = 0;
  auto it = std::ranges::begin(range);
  for (; shown < options.max_rows && it != std::ranges::end(range); ++it, ++shown)
    Printer<T>::add(grid, *it, options);
  return grid.text() + footer(shown, rows_left(range, std::move(it), shown), Printer<T>::noun);
}

template <class Row, class Range>
std::vector<Commit<Row>> newest_first(Range& range, std::type_identity<Commit<Row>>) {
  std::vector<Commit<Row>> commits;
  for (const Commit<Row>& commit : range) commits.push_back(commit);
  std::ranges::stable_sort(commits, std::ranges::greater{}, &Commit<Row>::version);
  return commits;
}

template <class T, class Range>
std::string table_text(Range& range, const PrintOptions& options) {
  if constexpr (requires { newest_first(range, std::type_identity<T>{}); }) {
    const auto commits = newest_first(range, std::type_identity<T>{});
    return ordered_table_text<T>(commits, options);
  } else {
    return ordered_table_text<T>(range, options);
  }
}

}  // namespace keyfold::detail
#endif

#if __has_include(<catch2/catch_tostring.hpp>)
#include <catch2/catch_tostring.hpp>
#elif __has_include(<catch2/catch_amalgamated.hpp>)
#include <catch2/catch_amalgamated.hpp>
#else
#include <catch2/catch.hpp>
#endif

/// Optional header: a failed REQUIRE of Catch2, version 2 or 3, shows rows, changes and commits. See
/// docs/debugging.md.
namespace keyfold::detail {

template <class Row>
std::string row_in_test(const Row& row) {
  return Catch::StringMaker<Row>::convert(row);
}

/// A row as "(id: 1, status: 'new')". With `after`, what differs reads "'new' -> 'paid'".
template <HasColumns Row>
std::string columns_in_test(const Row& row, const Row* after = nullptr) {
  std::string out;
  detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
    out += out.empty() ? "(" : ", ";
    out += column_names<Row>[I];
    out += ": " + escaped(literal_text(detail::read<Member>(row)));
    if (after != nullptr && !detail::equal_values(detail::read<Member>(row), detail::read<Member>(*after)))
      out += " -> " + escaped(literal_text(detail::read<Member>(*after)));
  });
  return out + ')';
}

template <class Row>
std::string change_in_test(const Change<Row>& change) {
  std::string out(to_string(change.kind()));
  if (change.kind() != ChangeKind::update)
    return out + ' ' + row_in_test(change.kind() == ChangeKind::insert ? *change.after() : *change.before());
  if constexpr (HasColumns<Row>) {
    return out + ' ' + columns_in_test(*change.before(), change.after());
  } else {
    return out + ' ' + row_in_test(*change.before()) + " -> " + row_in_test(*change.after());
  }
}

/// Rows that Catch2 cannot show by itself.
template <class Row>
concept ShownByColumns =
    HasColumns<Row> && !std::ranges::range<Row> && !Catch::Detail::IsStreamInsertable<Row>::value;

}  // namespace keyfold::detail

namespace Catch {

/// A row with a column list, unless it has a stream inserter of its own.
template <keyfold::detail::ShownByColumns Row>
struct StringMaker<Row> {
  static std::string convert(const Row& row) { return keyfold::detail::columns_in_test(row); }
};

template <class Row>
struct StringMaker<keyfold::Change<Row>> {
  static std::string convert(const keyfold::Change<Row>& change) {
    return keyfold::detail::change_in_test(change);
  }
};

template <class Row>
struct StringMaker<keyfold::FeedChange<Row>> {
  static std::string convert(const keyfold::FeedChange<Row>& change) {
    return "version " + std::to_string(change.version()) + ": " + keyfold::detail::change_in_test(change);
  }
};

template <class Row>
struct StringMaker<keyfold::ColumnMask<Row>> {
  static std::string convert(const keyfold::ColumnMask<Row>& columns) {
    std::string out;
    for (const std::string_view name : columns.names()) {
      out += out.empty() ? "" : ", ";
      out += name;
    }
    return '(' + out + ')';
  }
};

template <>
struct StringMaker<keyfold::ChangeKind> {
  static std::string convert(keyfold::ChangeKind kind) { return std::string(to_string(kind)); }
};

template <>
struct StringMaker<keyfold::Metrics> {
  static std::string convert(const keyfold::Metrics& metrics) {
    return keyfold::detail::metrics_text(metrics);
  }
};

template <class Row>
struct StringMaker<keyfold::Commit<Row>> {
  static std::string convert(const keyfold::Commit<Row>& commit) {
    return keyfold::detail::commit_text(commit);
  }
};

template <class Row>
struct StringMaker<keyfold::MergeResult<Row>> {
  static std::string convert(const keyfold::MergeResult<Row>& result) {
    return (result.committed() ? "version " + std::to_string(result.version()) + ": " : "no version: ") +
           keyfold::detail::metrics_text(result.metrics());
  }
};

}  // namespace Catch
#endif
