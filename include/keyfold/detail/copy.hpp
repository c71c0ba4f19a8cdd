// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/core.hpp>

#include <memory>
#include <unordered_map>

/// Copying a table with its history.
namespace keyfold::detail {

template <class Row>
using CopiedEntries = std::unordered_map<const LogEntry<Row>*, LogEntry<Row>*>;

template <class Row>
LogBlock<Row> copy_block(const LogBlock<Row>& from, CopiedEntries<Row>& copies) {
  std::size_t bare = 0;
  std::size_t images = 0;
  for (const auto* entry = from.first(); entry != nullptr; entry = from.next(entry)) ++(entry->has_before() ? images : bare);
  LogBlock<Row> to(bare, images);
  for (const auto* entry = from.first(); entry != nullptr; entry = from.next(entry)) {
    LogEntry<Row>* older = entry->older == nullptr ? nullptr : copies.at(entry->older);
    copies[entry] = entry->has_before()
                        ? to.add(entry->kind(), entry->version(), older, Holder<Row>(entry->before().get()))
                        : to.add(entry->kind(), entry->version(), older);
  }
  return to;
}

template <class CoreType>
std::unique_ptr<CoreType> copy_core(const CoreType& from) {
  using Row = typename CoreType::RowType;
  auto to = std::make_unique<CoreType>(from.options);
  CopiedEntries<Row> copies;
  for (const CommitRecord<Row>& record : *from.log) {
    to->log->push_back({record.version, record.timestamp, record.operation, record.parameters, record.metrics,
                        record.metadata, copy_block(record.block, copies)});
  }
  to->keys.reserve(from.rows.size());
  for (const Slot<Row>& slot : from.rows) {
    const Slot<Row>& copy = *add_slot(*to, Holder<Row>(slot.get()));
    to->keys.insert(hash_of(CoreType::key_of(copy.get())), &copy);
    make_newest(copy, copies.at(slot.newest));
  }
  return to;
}

}  // namespace keyfold::detail
