// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace keyfold::detail {

/// A cache line of items and the hashes of their keys. The items stand at its front, before places that are
/// free, which have no item.
///
/// It is searched as a whole, without a branch: where in it an item is a processor could not guess.
struct alignas(64) HashLine {
  static constexpr std::size_t size = 4;
  static constexpr std::size_t last = size - 1;

  bool is_full() const noexcept { return items[last] != nullptr; }

  std::size_t used() const noexcept {
    std::size_t count = 0;
    for (void* const item : items) count += item != nullptr ? 1U : 0U;
    return count;
  }

  /// A bit for each place with this hash, from the lowest on.
  unsigned equal(std::uint64_t hash) const noexcept {
    unsigned places = 0;
    for (std::size_t i = 0; i < size; ++i) places |= (hashes[i] == hash ? 1U : 0U) << i;
    return places;
  }

  /// The same, and perhaps few others, at once.
  unsigned like(std::uint64_t hash) const noexcept {
#if defined(__SSE2__)
    const __m128 front = _mm_load_ps(reinterpret_cast<const float*>(hashes));
    const __m128 back = _mm_load_ps(reinterpret_cast<const float*>(hashes + size / 2));
    const __m128i low_halves = _mm_castps_si128(_mm_shuffle_ps(front, back, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(hash));
    return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(low_halves, wanted))));
#else
    return equal(hash);
#endif
  }

  /// Requires: not full.
  void add(std::uint64_t hash, void* item) noexcept { set(used(), hash, item); }
  void set(std::size_t place, std::uint64_t hash, void* item) noexcept {
    hashes[place] = hash;
    items[place] = item;
  }

  std::uint64_t hashes[size];
  void* items[size];
};

/// The first place of those that HashLine::like() tells. Requires: there is one.
inline unsigned first_place(unsigned places) noexcept {
  return static_cast<unsigned>(std::countr_zero(places));
}

}  // namespace keyfold::detail
