// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/column.hpp>
#include <keyfold/detail/print_table.hpp>
#include <keyfold/history.hpp>
#include <keyfold/merge.hpp>
#include <keyfold/metrics.hpp>

#if __has_include(<catch2/catch_tostring.hpp>)
#include <catch2/catch_tostring.hpp>
#elif __has_include(<catch2/catch_amalgamated.hpp>)
#include <catch2/catch_amalgamated.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <ranges>
#include <string>
#include <string_view>

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
