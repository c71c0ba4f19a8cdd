// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/column.hpp>
#include <keyfold/detail/arrow_abi.hpp>
#include <keyfold/detail/arrow_column.hpp>
#include <keyfold/detail/arrow_rows.hpp>
#include <keyfold/error.hpp>
#include <keyfold/fwd.hpp>

#include <ranges>
#include <utility>

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
