// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/list.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace keyfold::detail {

/// Tells most of many hashes apart, by one bit in 16 for each: what `is_alone` equals no other that was
/// added. Few are not, unless they are equal. Many times smaller than a hash table, and read without
/// guessing.
class HashSieve {
 public:
  /// For so many hashes. Throws std::bad_alloc.
  explicit HashSieve(std::size_t count)
      : cells_(count < 2 ? 0 : std::bit_ceil(count * bits_for_each / bits + 1)) {}

  void add(std::uint64_t hash) noexcept {
    if (cells_.empty()) return;
    Cell& cell = cells_[number_of(hash)];
    cell.twice |= cell.once & bit_of(hash);
    cell.once |= bit_of(hash);
  }
  bool is_alone(std::uint64_t hash) const noexcept {
    return cells_.empty() || (cells_[number_of(hash)].twice & bit_of(hash)) == 0;
  }

 private:
  struct Cell {
    std::uint64_t once = 0;
    std::uint64_t twice = 0;
  };
  static constexpr std::size_t bits = 64;
  static constexpr std::size_t bits_for_each = 16;

  std::size_t number_of(std::uint64_t hash) const noexcept { return (hash / bits) & (cells_.size() - 1); }
  static std::uint64_t bit_of(std::uint64_t hash) noexcept { return std::uint64_t{1} << (hash % bits); }

  List<Cell> cells_;
};

}  // namespace keyfold::detail
