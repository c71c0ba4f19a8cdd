// Reading tables and views, in a way that can be checked.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace keyfold_bench {

/// Finds every key; the sum of the times of the rows.
template <class Rows, class Key>
std::int64_t find_all(const Rows& rows, const std::vector<Key>& keys) {
  std::int64_t sum = 0;
  for (const Key& key : keys) sum += rows.find(key)->updated_at;
  return sum;
}

/// The same one at a time: which key comes next is known only when the last row has been read, so that
/// lookups do not overlap.
template <class Rows, class Key>
std::int64_t find_one_by_one(const Rows& rows, const std::vector<Key>& keys) {
  std::int64_t sum = 0;
  std::uint64_t negative = 0;  // no time is; a shift, for a branch would be predicted
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::int64_t time = rows.find(keys[i + negative])->updated_at;
    negative = static_cast<std::uint64_t>(time) >> 63U;
    benchmark::DoNotOptimize(negative);
    sum += time;
  }
  return sum;
}

template <class Rows>
std::int64_t scan(const Rows& rows) {
  std::int64_t sum = 0;
  for (const auto& row : rows) sum += row.updated_at;
  return sum;
}

}  // namespace keyfold_bench
