// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <cstdint>

namespace keyfold::detail {

/// A reader-writer lock that starves nobody: a writer waits for the readers that are in, a reader for one
/// writer at most, however many come. Writers exclude each other elsewhere. After the phase-fair ticket lock of
/// Brandenburg and Anderson, "Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time Systems"
/// (2010), with atomic waits for spinning.
///
/// All operations are sequentially consistent: a reader that leaves must see the writer, or the writer that it
/// has left.
class PhaseFairLock {
 public:
  void lock_shared() noexcept {
    const std::uint32_t writer = entered_.fetch_add(one_reader) & writer_bits;
    if (writer == 0) return;
    for (std::uint32_t now = entered_.load(); (now & writer_bits) == writer; now = entered_.load())
      entered_.wait(now);
  }

  void unlock_shared() noexcept {
    left_.fetch_add(one_reader);
    if ((entered_.load() & writer_present) != 0) left_.notify_one();
  }

  /// Requires: no other thread locks or has locked it but by lock_shared().
  void lock() noexcept {
    phase_ ^= writer_phase;
    const std::uint32_t readers = entered_.fetch_or(writer_present | phase_) & ~writer_bits;
    for (std::uint32_t now = left_.load(); now != readers; now = left_.load()) left_.wait(now);
  }

  void unlock() noexcept {
    entered_.fetch_and(~writer_bits);
    entered_.notify_all();
  }

 private:
  static constexpr std::uint32_t writer_present = 1;
  static constexpr std::uint32_t writer_phase = 2;  // tells a writer from the next one
  static constexpr std::uint32_t writer_bits = writer_present | writer_phase;
  static constexpr std::uint32_t one_reader = 4;  // the counts above the bits wrap around together

  std::atomic<std::uint32_t> entered_{0};
  std::atomic<std::uint32_t> left_{0};
  std::uint32_t phase_ = 0;
};

}  // namespace keyfold::detail
