// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/detail/commit_log.hpp>
#include <keyfold/detail/range_v3.hpp>
#include <keyfold/fwd.hpp>
#include <keyfold/metrics.hpp>

#include <cassert>
#include <compare>
#include <iterator>
#include <ranges>
#include <string_view>

namespace keyfold {

/// One commit of a table's history. A handle: valid while the table lives, until a version expires.
template <class Row>
class Commit {
 public:
  Commit(const detail::CommitLog<Row>& log, const detail::CommitRecord<Row>& record) noexcept
      : log_(&log), record_(&record) {}

  [[nodiscard]] Version version() const noexcept { return record_->version; }

  /// max(clock(), the last commit's time + 1 microsecond): ascending whatever the clock does. Two commits
  /// share a time only if that is Timestamp::max().
  [[nodiscard]] Timestamp timestamp() const noexcept { return record_->timestamp; }

  /// "MERGE", "APPEND", "INSERT", "DELETE", "TRUNCATE", "RESTORE", "UNDO", "APPLY",
  /// "APPLY CHANGES"; "REPLAY" for what subscribe() with replay tells first.
  [[nodiscard]] std::string_view operation() const noexcept { return record_->operation; }

  /// The clauses of a merge as text; the key of a DELETE; the version of a RESTORE or UNDO; else empty.
  [[nodiscard]] std::string_view parameters() const noexcept {
    return record_->parameters ? std::string_view(*record_->parameters) : std::string_view();
  }

  [[nodiscard]] Metrics metrics() const noexcept { return record_->metrics.get(); }

  /// What the writer stored with the commit; empty if nothing.
  [[nodiscard]] std::string_view metadata() const noexcept {
    return record_->metadata ? std::string_view(*record_->metadata) : std::string_view();
  }

  /// What the commit changed, with before and after rows. Copies them: O(changes). Throws VersionExpired for
  /// a tagged version that is older than the oldest readable one: its changes are gone, its rows are not.
  [[nodiscard]] ChangeSet<Row> changes() const { return detail::changes_of(*log_, *record_); }

 private:
  const detail::CommitLog<Row>* log_;
  const detail::CommitRecord<Row>* record_;
};

/// The commits that are kept, in ascending order: a random access range of `Commit`, valid while the table
/// lives.
template <class Row>
class History : public detail::ViewBase {
 public:
  class Iterator;

  History() = default;
  explicit History(const detail::CommitLog<Row>& log) noexcept : log_(&log) {}

  [[nodiscard]] std::size_t size() const noexcept { return log_->records.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// Requires: index < size().
  [[nodiscard]] Commit<Row> operator[](std::size_t index) const noexcept {
    assert(index < size());
    return Commit<Row>(*log_, log_->records[index]);
  }
  [[nodiscard]] Commit<Row> front() const noexcept { return (*this)[0]; }
  [[nodiscard]] Commit<Row> back() const noexcept { return (*this)[size() - 1]; }

  [[nodiscard]] Iterator begin() const noexcept { return Iterator(log_, 0); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator(log_, static_cast<std::ptrdiff_t>(size())); }

 private:
  const detail::CommitLog<Row>* log_ = nullptr;
};

/// Random access iterator (C++20) over commits; dereferences to a Commit by value.
template <class Row>
class History<Row>::Iterator {
 public:
  using value_type = Commit<Row>;
  using difference_type = std::ptrdiff_t;
  using reference = Commit<Row>;
  using pointer = void;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::random_access_iterator_tag;

  Iterator() = default;
  Iterator(const detail::CommitLog<Row>* log, difference_type index) noexcept : log_(log), index_(index) {}

  Commit<Row> operator*() const noexcept {
    return Commit<Row>(*log_, log_->records[static_cast<std::size_t>(index_)]);
  }
  Commit<Row> operator[](difference_type offset) const noexcept { return *(*this + offset); }

  Iterator& operator+=(difference_type offset) noexcept {
    index_ += offset;
    return *this;
  }
  Iterator& operator-=(difference_type offset) noexcept { return *this += -offset; }
  Iterator& operator++() noexcept { return *this += 1; }
  Iterator& operator--() noexcept { return *this -= 1; }
  Iterator operator++(int) noexcept { return std::exchange(*this, *this + 1); }
  Iterator operator--(int) noexcept { return std::exchange(*this, *this - 1); }

  friend Iterator operator+(Iterator it, difference_type offset) noexcept { return it += offset; }
  friend Iterator operator+(difference_type offset, Iterator it) noexcept { return it += offset; }
  friend Iterator operator-(Iterator it, difference_type offset) noexcept { return it -= offset; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) noexcept {
    return a.index_ - b.index_;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.index_ == b.index_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) noexcept { return a.index_ <=> b.index_; }

 private:
  const detail::CommitLog<Row>* log_ = nullptr;
  difference_type index_ = 0;
};

}  // namespace keyfold

template <class Row>
inline constexpr bool std::ranges::enable_view<keyfold::History<Row>> = true;
template <class Row>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::History<Row>> = true;
