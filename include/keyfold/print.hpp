// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/column.hpp>
#include <keyfold/detail/print_table.hpp>
#include <keyfold/fwd.hpp>
#include <keyfold/history.hpp>
#include <keyfold/metrics.hpp>

#include <ostream>
#include <ranges>
#include <string>
#include <utility>

/// Optional header: tables, changes, history and metrics as text for people. See docs/print.md.
namespace keyfold {

/// Option of print(): the first `count` rows; the footer tells how many more there are.
[[nodiscard]] constexpr detail::MaxRows max_rows(std::size_t count) noexcept { return {count}; }

/// Option of print(): values of more than `count` code points are cut to that many, the last three being
/// dots.
[[nodiscard]] constexpr detail::MaxWidth max_width(std::size_t count) noexcept { return {count}; }

/// What print() returns: goes into a std::ostream, or gives its text(). Refers to what is printed where that
/// is an lvalue, and reads it each time.
template <class Range>
class [[nodiscard]] Printed {
  using Value = std::ranges::range_value_t<Range>;
  static_assert(detail::Printer<Value>::has_columns,
                "keyfold: print() needs the column list of the row; describe it or specialise columns_of");

 public:
  Printed(Range&& range, const detail::PrintOptions& options)
      : range_{std::forward<Range>(range)}, options_(options) {}

  [[nodiscard]] std::string text() const {
    if constexpr (detail::Printer<Value>::has_columns) {
      return detail::table_text<Value>(range_.get(), options_);
    } else {
      return {};
    }
  }

  /// Formats everything before it writes anything; the stream's own width is not used.
  friend std::ostream& operator<<(std::ostream& stream, const Printed& printed) {
    const std::string text = printed.text();
    stream.width(0);
    return stream << text;
  }

 private:
  detail::PrintedRange<Range> range_;
  detail::PrintOptions options_;
};

/// An aligned table of rows, changes or commits: `std::cout << print(orders, max_rows(20))`. Takes a table,
/// an index, any range of rows; a ChangeSet or a
/// ChangeFeed; a History, which is shown newest first.
template <std::ranges::input_range Range, class... Options>
[[nodiscard]] auto print(Range&& range, Options... options) {
  static_assert((detail::PrintOption<Options> && ...),
                "keyfold: after what is to be printed, print() takes max_rows(n) and max_width(n)");
  detail::PrintOptions all;
  (detail::set(all, options), ...);
  return Printed<Range>(std::forward<Range>(range), all);
}

/// The counts that are not zero, in a line: "source_rows=3 inserted=1 updated=2".
inline std::ostream& operator<<(std::ostream& stream, const Metrics& metrics) {
  return stream << detail::metrics_text(metrics);
}

/// The commit in a line, without its changes.
template <class Row>
std::ostream& operator<<(std::ostream& stream, const Commit<Row>& commit) {
  return stream << detail::commit_text(commit);
}

}  // namespace keyfold
