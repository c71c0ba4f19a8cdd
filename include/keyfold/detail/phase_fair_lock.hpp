// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <cstdint>

namespace keyfold::detail {

/// A reader-writer lock that starves nobody: a writer waits for the readers that are in, a reader for one
/// writer at most, however many come. Writers exclude each other elsewhere. After the phase-fair ticket lock
/// of Brandenburg and Anderson, "Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time
/// Systems" (2010); it spins for about as long as a commit is published or a step of a scan takes, and then
/// sleeps.
///
/// All operations are sequentially consistent: a reader that leaves must see the writer, or the writer that
/// it has left.
class PhaseFairLock {
 public:
  void lock_shared() noexcept {
    const std::uint32_t writer = entered_.fetch_add(one_reader) & writer_bits;
    if (writer == 0) return;
    wait_while(entered_, [&](std::uint32_t now) { return (now & writer_bits) == writer; });
  }

  void unlock_shared() noexcept {
    left_.fetch_add(one_reader);
    if ((entered_.load() & writer_present) != 0) left_.notify_one();
  }

  /// Requires: no other thread locks or has locked it but by lock_shared().
  void lock() noexcept {
    phase_ ^= writer_phase;
    const std::uint32_t readers = entered_.fetch_or(writer_present | phase_) & ~writer_bits;
    wait_while(left_, [&](std::uint32_t now) { return now != readers; });
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
  static constexpr int spins = 6000;              // some 150 to 300 microseconds on x86

  // std::atomic::wait() alone would give the processor up after less than a microsecond.
  template <class Condition>
  static void wait_while(const std::atomic<std::uint32_t>& value, Condition holds) noexcept {
    for (int i = 0; i < spins; ++i) {
      if (!holds(value.load())) return;
      pause();
    }
    for (std::uint32_t now = value.load(); holds(now); now = value.load()) value.wait(now);
  }

  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  std::atomic<std::uint32_t> entered_{0};
  std::atomic<std::uint32_t> left_{0};
  std::uint32_t phase_ = 0;
};

}  // namespace keyfold::detail
