// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstdint>

namespace keyfold {

/// When a commit of a store reaches the medium. Whatever is chosen, an acknowledged commit survives the death
/// of the process; the modes differ in what a cut of power may take. docs/durability.md has the promises in
/// full.
struct Durability {
  enum class Mode : std::uint8_t { every_commit, interval, buffered };
  Mode mode = Mode::every_commit;
  std::chrono::milliseconds period{};  // of `interval`

  bool operator==(const Durability&) const = default;
};

namespace durability {

/// A commit is acknowledged when it is on the medium: nothing that was acknowledged is ever lost.
inline constexpr Durability every_commit{};

/// A thread of the store brings commits to the medium this often: a cut of power takes at most the commits
/// acknowledged within this time and that of two fsyncs.
[[nodiscard]] constexpr Durability interval(std::chrono::milliseconds period) noexcept {
  return {Durability::Mode::interval, period};
}

/// Commits reach the medium when the system likes, at the latest with sync(), checkpoint() or close(): a cut
/// of power takes at most the commits since the last of these.
inline constexpr Durability buffered{Durability::Mode::buffered, {}};

}  // namespace durability
}  // namespace keyfold
