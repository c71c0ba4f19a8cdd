// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/column.hpp>
#include <keyfold/detail/print_text.hpp>
#include <keyfold/detail/text.hpp>
#include <keyfold/history.hpp>
#include <keyfold/metrics.hpp>

#include <algorithm>
#include <concepts>
#include <limits>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

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
