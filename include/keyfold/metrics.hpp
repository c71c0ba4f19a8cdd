// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace keyfold {

/// What a write did, counted in target rows, never in pairs of rows.
///
///     size after   = size before + inserted - deleted
///     affected()   = inserted + updated + deleted
///     source_rows  = inserted + matched_updated + matched_deleted + unchanged + skipped + dropped_duplicates
///                    + dropped_late (+ further source rows that fired the same unconditional erase())
///
/// The last line holds for merges that match on the key. A source row that matches several target rows
/// through a secondary index counts each of them, and is skipped only if no clause acts on any.
struct Metrics {
  std::size_t source_rows = 0;
  std::size_t inserted = 0;
  std::size_t updated = 0;    ///< matched_updated + not_matched_by_source_updated
  std::size_t deleted = 0;    ///< matched_deleted + not_matched_by_source_deleted
  std::size_t unchanged = 0;  ///< source rows whose update would not have changed the row
  std::size_t skipped = 0;    ///< source rows for which no clause, or do_nothing(), fired
  std::size_t matched_updated = 0;
  std::size_t matched_deleted = 0;
  std::size_t not_matched_by_source_updated = 0;
  std::size_t not_matched_by_source_deleted = 0;
  std::size_t dropped_duplicates =
      0;                         ///< source rows that the duplicate policy dropped or folded into another
  std::size_t dropped_late = 0;  ///< change events older than what the table has

  [[nodiscard]] constexpr std::size_t affected() const noexcept { return inserted + updated + deleted; }

  bool operator==(const Metrics&) const = default;
};

}  // namespace keyfold
