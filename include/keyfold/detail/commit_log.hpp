// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/detail/log.hpp>
#include <keyfold/fwd.hpp>
#include <keyfold/metrics.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keyfold::detail {

/// A commit as the log keeps it.
template <class Row>
struct CommitRecord {
  Version version = 0;
  Timestamp timestamp{};
  std::string_view operation;  // static storage
  std::shared_ptr<const std::string> parameters;
  Metrics metrics;
  std::optional<std::string> metadata;
  LogBlock<Row> block;
};

/// The commits in ascending order of version. A deque: commits keep their address while others come and go.
template <class Row>
using CommitLog = std::deque<CommitRecord<Row>>;

/// Requires: the log has the version.
template <class Row>
const CommitRecord<Row>& record_of(const CommitLog<Row>& log, Version version) {
  return *std::ranges::lower_bound(log, version, {}, &CommitRecord<Row>::version);
}

template <class Row>
ChangeSet<Row> changes_of(const LogBlock<Row>& block) {
  std::vector<Change<Row>> changes;
  for (const auto* entry = block.first(); entry != nullptr; entry = block.next(entry)) {
    switch (entry->kind()) {
      case LogKind::insert: changes.push_back(Change<Row>::insert(entry->after())); break;
      case LogKind::update: changes.push_back(Change<Row>::update(entry->before().get(), entry->after())); break;
      case LogKind::erase: changes.push_back(Change<Row>::erase(entry->before().get())); break;
      case LogKind::rekey_out:
        changes.push_back(Change<Row>::update(entry->before().get(), block.next(entry)->after()));
        break;
      case LogKind::rekey_in: break;  // told with the entry before it
    }
  }
  return ChangeSet<Row>(std::move(changes));
}

}  // namespace keyfold::detail
