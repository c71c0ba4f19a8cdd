// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_log.hpp>
#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/plan.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace keyfold::detail {

/// Hears of everything that changes a table, when all that can fail in memory has been done, and before
/// anybody sees it. What it throws undoes the change.
template <class Row>
class CommitJournal {
 public:
  CommitJournal() = default;
  CommitJournal(const CommitJournal&) = delete;
  CommitJournal& operator=(const CommitJournal&) = delete;
  virtual ~CommitJournal() = default;

  virtual void commit(const CommitRecord<Row>& record, const std::vector<AppNumber>& once,
                      const Plan<Row>& plan) = 0;

  /// apply_changes() has made no version, but remembers something.
  virtual void remember(const SequenceUpdate& update) = 0;

  /// An update as the journal writes it; empty if it says nothing.
  virtual std::string stored(const SequenceUpdate& update) const = 0;

  virtual void tag(std::string_view name, Version version) = 0;
  virtual void untag(std::string_view name) = 0;

  /// expire(), by hand; what retention does follows from the commits.
  virtual void expire(Version first) = 0;

  /// A write is published, and everybody has heard of it.
  virtual void published() noexcept = 0;
};

}  // namespace keyfold::detail
