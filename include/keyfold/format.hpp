// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/column.hpp>
#include <keyfold/detail/print_table.hpp>
#include <keyfold/history.hpp>
#include <keyfold/metrics.hpp>
#include <keyfold/print.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <version>

#ifdef __cpp_lib_format
#include <format>
#endif
#if !defined(KEYFOLD_NO_FMT) && __has_include(<fmt/ranges.h>)
#include <fmt/ranges.h>
#define KEYFOLD_HAS_FMT
#endif

/// Optional header: std::format, where the standard library has it, and {fmt}, where it is installed, take
/// Metrics, Commit, ChangeKind, Change, FeedChange, ChangeSet and what print() returns. The format
/// specification is that of text: `{:>60}`. KEYFOLD_NO_FMT leaves {fmt} out. See docs/format.md.
namespace keyfold {

/// Customization point: `template <> inline constexpr bool keyfold::enable_row_format<Order> = true;` lets
/// rows of this type be formatted by their column list: `(id: 1, status: 'new')`.
template <class Row>
inline constexpr bool enable_row_format = false;

namespace detail {

/// "update (id: 1, status: 'open' -> 'paid')"
template <class Row>
std::string change_text(const Change<Row>& change) {
  std::string out(to_string(change.kind()));
  if constexpr (HasColumns<Row>) {
    const bool update = change.kind() == ChangeKind::update;
    const ColumnMask<Row> changed = change.columns();
    const Row& row = change.before() != nullptr ? *change.before() : *change.after();
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      out += I == 0 ? " (" : ", ";
      out += member_name<Member>;
      out += ": ";
      detail::append_value(out, detail::read<Member>(row), Style::literal);
      if (!update || !changed.test(I)) return;
      out += " -> ";
      detail::append_value(out, detail::read<Member>(*change.after()), Style::literal);
    });
    out += ')';
  }
  return out;
}

/// What a type is formatted as: `std::string text(const T&)`.
template <class T>
struct FormatText;

template <class T>
concept HasFormatText = requires(const T& value) { FormatText<T>::text(value); };

template <>
struct FormatText<Metrics> {
  static std::string text(const Metrics& metrics) { return metrics_text(metrics); }
};
template <>
struct FormatText<ChangeKind> {
  static std::string_view text(ChangeKind kind) { return to_string(kind); }
};
template <class Row>
struct FormatText<Commit<Row>> {
  static std::string text(const Commit<Row>& commit) { return commit_text(commit); }
};
template <class Row>
struct FormatText<Change<Row>> {
  static std::string text(const Change<Row>& change) { return change_text(change); }
};
template <class Row>
struct FormatText<FeedChange<Row>> {
  static std::string text(const FeedChange<Row>& change) {
    return "version " + std::to_string(change.version()) + " at " + time_text(change.timestamp()) + ": " +
           change_text(change);
  }
};
template <HasColumns Row>
struct FormatText<ChangeSet<Row>> {
  static std::string text(const ChangeSet<Row>& changes) { return print(changes).text(); }
};
template <class Range>
struct FormatText<Printed<Range>> {
  static std::string text(const Printed<Range>& printed) { return printed.text(); }
};
template <class Row>
  requires enable_row_format<Row>
struct FormatText<Row> {
  static_assert(HasColumns<Row>,
                "keyfold: a row is formatted by its column list; describe it or specialise columns_of");
  static std::string text(const Row& row) {
    std::string out;
    detail::append_row(out, row);
    return out;
  }
};

/// A formatter on top of the one that the library has for text. Not derived from it, since lists of values
/// would then put quotes around each.
template <class T, class TextFormatter>
class Formatter {
 public:
  template <class ParseContext>
  constexpr auto parse(ParseContext& context) {
    return text_.parse(context);
  }
  template <class Context>
  auto format(const T& value, Context& context) const {
    return text_.format(FormatText<T>::text(value), context);
  }

 private:
  TextFormatter text_;
};

}  // namespace detail
}  // namespace keyfold

#ifdef __cpp_lib_format
template <keyfold::detail::HasFormatText T>
struct std::formatter<T, char> : keyfold::detail::Formatter<T, std::formatter<std::string_view, char>> {};
#endif

#ifdef KEYFOLD_HAS_FMT
/// Lest {fmt} take a change set for a list of changes.
template <class Row>
struct fmt::is_range<keyfold::ChangeSet<Row>, char> : std::false_type {};

template <keyfold::detail::HasFormatText T>
struct fmt::formatter<T, char, void>
    : keyfold::detail::Formatter<T, fmt::formatter<fmt::string_view, char, void>> {};
#endif
