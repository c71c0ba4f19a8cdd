// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/log.hpp>
#include <keyfold/memory.hpp>

#include <cstddef>
#include <tuple>
#include <utility>

/// Counting the bytes that a table holds.
namespace keyfold::detail {

/// Bytes of a row outside its Holder.
template <class Row>
inline constexpr std::size_t boxed_bytes = NothrowMovable<Row> ? 0 : sizeof(Row);

template <class Row>
std::size_t bytes_of(const LogBlock<Row>& block) noexcept {
  std::size_t bytes = block.bytes();
  if constexpr (boxed_bytes<Row> != 0) {
    for (const auto* entry = block.first(); entry != nullptr; entry = block.next(entry))
      bytes += entry->has_before() ? boxed_bytes<Row> : 0;
  }
  return bytes;
}

template <class Row>
std::size_t bytes_of(const CommitRecord<Row>& record) noexcept {
  const std::size_t bytes = sizeof(record) + detail::bytes_of(record.block);
  return bytes + record.metrics.bytes() + record.parameters.bytes() + record.metadata.bytes();
}

/// The bucket array of a hashed index; an ordered one has its links in the rows' nodes.
template <class Index>
std::size_t bucket_bytes(const Index& index) noexcept {
  if constexpr (requires { index.bucket_count(); }) {
    return (index.bucket_count() + 1) * sizeof(void*);
  } else {
    return 0;
  }
}

template <class CoreType, std::size_t... N>
std::size_t secondary_bytes(const CoreType& core, std::index_sequence<N...>) noexcept {
  return (std::size_t{0} + ... + detail::bucket_bytes(core.template secondary<N>()));
}

template <class CoreType>
MemoryUsage memory_usage_of(const CoreType& core) noexcept {
  constexpr auto secondaries = std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>();
  MemoryUsage usage;
  usage.rows = core.pool.bytes() + core.rows.size() * boxed_bytes<typename CoreType::RowType>;
  usage.indexes = core.keys.bytes() + core.graves.bytes() + detail::secondary_bytes(core, secondaries);
  if (core.sequences != nullptr) usage.indexes += core.sequences->bytes();
  for (const auto& record : core.log->records) usage.history += detail::bytes_of(record);
  for (const auto& block : core.log->retired) usage.history += sizeof(block) + detail::bytes_of(block);
  return usage;
}

}  // namespace keyfold::detail
