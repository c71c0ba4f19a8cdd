// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace keyfold {

/// Bytes held by a table. What rows and keys allocate themselves (long strings, vectors) is not known to it
/// and not counted, nor is what the allocator adds to each block, nor the room that one write leaves to the
/// next: at most 256 KiB, or an eighth of what the rows take.
struct MemoryUsage {
  std::size_t rows = 0;     ///< the pool of rows with their links in the container and its secondary indexes
  std::size_t indexes = 0;  ///< the primary key, keys of deleted rows in history, buckets of hashed indexes,
                            ///< and what apply_changes() remembers
  std::size_t history = 0;  ///< commits with their texts, and before images

  [[nodiscard]] constexpr std::size_t total() const noexcept { return rows + indexes + history; }

  bool operator==(const MemoryUsage&) const = default;
};

}  // namespace keyfold
