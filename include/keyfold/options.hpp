// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/duplicates.hpp>
#include <keyfold/fwd.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory_resource>
#include <optional>
#include <variant>

// TableOptions: the clock, retention and memory of a table.
namespace keyfold {

/// Versions made before this time expire. The present never does.
struct OlderThan {
  Timestamp time;
};
[[nodiscard]] constexpr OlderThan older_than(Timestamp time) noexcept { return {time}; }

/// Versions made longer ago than this expire, seen from the time of the last commit.
struct KeepFor {
  std::chrono::microseconds duration;
};
[[nodiscard]] constexpr KeepFor keep_for(std::chrono::microseconds duration) noexcept { return {duration}; }

namespace detail {

/// So long before a time; the first of all times where that is before it. A negative duration is none.
constexpr Timestamp start_of(KeepFor rule, Timestamp until) noexcept {
  const auto span = rule.duration > Timestamp::duration::zero() ? rule.duration : Timestamp::duration::zero();
  return until < Timestamp::min() + span ? Timestamp::min() : until - span;
}

}  // namespace detail

/// Which old versions a table lets go of by itself: `keep_last(n)` or `keep_for(duration)`.
using Retention = std::variant<KeepLastVersions, KeepFor>;

/// Asks expire() what would go, without letting it go.
struct DryRun {};
inline constexpr DryRun dry_run{};

/// How a table is set up.
struct TableOptions {
  /// Where commit times come from.
  std::function<Timestamp()> clock = [] {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  };

  /// Whether a write that changes nothing makes a version all the same.
  bool record_empty_commits = false;

  /// Applied after each commit. Default: every version stays readable.
  std::optional<Retention> retention{};

  /// Where rows, indexes and history have their memory; not what rows allocate themselves, texts and large
  /// counts of commits, what apply_changes() remembers, or what a write needs while it runs and leaves to the
  /// next. Not null. Must outlive the table, its copies and its transactions, and be synchronised if several
  /// threads use those. Rows lie in a pool on top of it, the log in segments of up to 64 KiB, so that it is
  /// asked seldom and for much. What it throws is thrown by the write that asked, which then changes nothing.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

}  // namespace keyfold
