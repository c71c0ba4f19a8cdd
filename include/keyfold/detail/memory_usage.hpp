// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/log.hpp>
#include <keyfold/memory.hpp>

#include <cstddef>
#include <string>
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

/// Commits of a file share their parameters with the one before if they are the same.
template <class Row>
std::size_t history_bytes(const CommitLog<Row>& log) noexcept {
  std::size_t bytes = 0;
  const std::string* counted = nullptr;
  for (const auto& record : log.records) {
    bytes +=
        sizeof(record) + detail::bytes_of(record.block) + record.metrics.bytes() + record.metadata.bytes();
    if (!record.parameters || &*record.parameters == counted) continue;
    counted = &*record.parameters;
    bytes += record.parameters.bytes();
  }
  for (const auto& block : log.retired) bytes += sizeof(block) + detail::bytes_of(block);
  return bytes;
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
  usage.history = detail::history_bytes(*core.log);
  return usage;
}

}  // namespace keyfold::detail
