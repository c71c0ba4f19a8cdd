// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/function_ref.hpp>
#include <keyfold/detail/list.hpp>
#include <keyfold/fwd.hpp>

#include <array>
#include <concepts>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Reading a source range exactly once, as pointers to its rows.
namespace keyfold::detail {

template <class Range>
inline constexpr bool is_array_v = false;
template <class T, std::size_t size>
inline constexpr bool is_array_v<std::array<T, size>> = true;

/// Containers, whose elements go with them. Of other ranges it cannot be known whose the elements are.
template <class Range>
concept OwnsElements = is_array_v<Range> || requires { typename Range::allocator_type; };

/// Whether a row of type T can be taken for one of type Source.
template <class T, class Source>
concept SourceRow = std::same_as<T, Source> || std::derived_from<T, Source>;

/// `Declared` is the type by which the merge holds its source: a reference for an lvalue.
template <class Declared, class Source>
struct SourceTraits {
  using Range = std::remove_reference_t<Declared>;
  using Reference = std::ranges::range_reference_t<Range>;

  /// Rows that stay where they are while the range lives; others are taken out one by one.
  static constexpr bool stable = std::ranges::forward_range<Range> && std::is_lvalue_reference_v<Reference> &&
                                 SourceRow<std::remove_cvref_t<Reference>, Source>;

  /// Rows that belong to the merge, so that they may be moved from.
  static constexpr bool movable = !stable || (!std::is_reference_v<Declared> && OwnsElements<Range> &&
                                              !std::is_const_v<std::remove_reference_t<Reference>>);

  using Pointer = std::conditional_t<movable, Source*, const Source*>;
};

/// All rows of a source at once; what the duplicate policies need.
template <class Declared, class Source>
class AllRows {
 public:
  using Traits = SourceTraits<Declared, Source>;

  explicit AllRows(typename Traits::Range& range) {
    for (auto&& row : range) {
      if constexpr (Traits::stable) {
        pointers.push_back(std::addressof(row));
      } else {
        pointers.push_back(std::addressof(rows_.emplace_back(std::forward<decltype(row)>(row))));
      }
    }
  }

  List<typename Traits::Pointer> pointers;

 private:
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<Traits::stable, Nothing, std::deque<Source>> rows_;
};

/// How many rows there is to be room for. The size of a source that does not lie in memory may be no more
/// than a promise.
template <class Declared, class Source>
std::size_t rows_to_expect([[maybe_unused]] typename SourceTraits<Declared, Source>::Range& range) {
  using Range = typename SourceTraits<Declared, Source>::Range;
  if constexpr (std::ranges::sized_range<Range>) {
    constexpr bool in_memory = std::ranges::contiguous_range<Range>;
    constexpr std::size_t most_on_trust = 65'536;
    const auto size = static_cast<std::size_t>(std::ranges::size(range));
    return in_memory ? size : std::min(size, most_on_trust);
  } else {
    return 0;
  }
}

/// The row of upsert(row).
template <class Range>
inline constexpr bool is_one_row = false;
template <class Row>
inline constexpr bool is_one_row<std::array<Row, 1>> = true;

/// So many rows are looked up at once that the cache misses of their lookups overlap.
inline constexpr std::size_t block_size = 32;

/// Hands the rows of a source to `take(pointers, first_position)` in blocks of at most `block_size`.
template <class Declared, class Source>
void for_each_block(
    typename SourceTraits<Declared, Source>::Range& range,
    FunctionRef<void(std::span<const typename SourceTraits<Declared, Source>::Pointer>, Position)> take) {
  using Traits = SourceTraits<Declared, Source>;
  std::vector<std::optional<Source>> rows;  // never grows, so that they stay where they are
  if constexpr (!Traits::stable) rows.reserve(block_size);
  std::array<typename Traits::Pointer, block_size> block;
  std::size_t size = 0;
  Position position = 0;
  const auto flush = [&] {
    take(std::span(block.data(), size), position);
    position += size;
    size = 0;
    rows.clear();
  };
  for (auto&& row : range) {
    if constexpr (Traits::stable) {
      block[size] = std::addressof(row);
    } else {
      block[size] = std::addressof(*rows.emplace_back(std::in_place, std::forward<decltype(row)>(row)));
    }
    if (++size == block_size) flush();
  }
  if (size != 0) flush();
}

}  // namespace keyfold::detail
