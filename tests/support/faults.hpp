// Faults on demand: every event that can fail passes through one counter, which fails the n-th of them, or
// all from the n-th on. Replaces the global operator new and delete, so it belongs in one translation unit of
// a program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>

namespace keyfold_test {

enum class Event : std::uint8_t {
  default_construct,
  copy_construct,
  move_construct,
  copy_assign,
  move_assign,
  hash,
  equal,
  less,
  call,     // a condition, assignment, policy function, clock
  iterate,  // an operation of a source or its iterators
  allocate,
};

inline constexpr std::size_t event_kinds = 11;
inline constexpr std::array<std::string_view, event_kinds> event_names{"default_construct",
                                                                       "copy_construct",
                                                                       "move_construct",
                                                                       "copy_assign",
                                                                       "move_assign",
                                                                       "hash",
                                                                       "equal",
                                                                       "less",
                                                                       "call",
                                                                       "iterate",
                                                                       "allocate"};

/// Thrown by events. Derived from nothing, so that no handler takes it for something else.
struct InjectedFault {};

/// Thrown by allocations.
struct InjectedBadAlloc : std::bad_alloc {};

enum class FaultMode : std::uint8_t { single, from_then_on };

class Faults {
 public:
  /// Counts events without failing any.
  static void count() noexcept { arm(UINT64_MAX, FaultMode::single); }

  /// Fails the `nth` event from now, counting from 1.
  static void arm(std::uint64_t nth, FaultMode mode) noexcept {
    nth_ = nth;
    mode_ = mode;
    events_ = 0;
    active_ = true;
  }

  /// Returns the number of events since arm() or count().
  static std::uint64_t disarm() noexcept {
    active_ = false;
    return events_;
  }

  static void happen(Event event) {
    if (fails(event)) throw InjectedFault();
  }

  static bool fails(Event event) noexcept {
    if (!active_ || ignored_[index(event)]) return false;
    ++events_;
    const bool failing = events_ == nth_ || (events_ > nth_ && mode_ == FaultMode::from_then_on);
    if (failing) ++injected_[index(event)];
    return failing;
  }

  /// How often an event of this kind has failed in this program.
  static std::uint64_t injected(Event event) noexcept { return injected_[index(event)]; }

  /// Events of this kind neither count nor fail.
  static void ignore(Event event) noexcept { ignored_[index(event)] = true; }
  static bool ignored(Event event) noexcept { return ignored_[index(event)]; }

  /// Blocks allocated with operator new and not yet freed.
  static inline std::ptrdiff_t live_blocks = 0;

 private:
  friend class FaultPause;

  static std::size_t index(Event event) noexcept { return static_cast<std::size_t>(event); }

  static inline std::uint64_t nth_ = 0;
  static inline std::uint64_t events_ = 0;
  static inline FaultMode mode_ = FaultMode::single;
  static inline bool active_ = false;
  static inline std::array<bool, event_kinds> ignored_{};
  static inline std::array<std::uint64_t, event_kinds> injected_{};
};

/// No events while it lives: for what a test does on its own account.
class FaultPause {
 public:
  FaultPause() noexcept : was_active_(Faults::active_) { Faults::active_ = false; }
  FaultPause(const FaultPause&) = delete;
  FaultPause& operator=(const FaultPause&) = delete;
  ~FaultPause() { Faults::active_ = was_active_; }

 private:
  bool was_active_;
};

inline void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (Faults::fails(Event::allocate)) return nullptr;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (block != nullptr) ++Faults::live_blocks;
  return block;
}

inline void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* block = allocate(size, alignment);
  if (block == nullptr) throw InjectedBadAlloc();
  return block;
}

inline void deallocate(void* block) noexcept {
  if (block != nullptr) --Faults::live_blocks;
  std::free(block);
}

inline constexpr std::size_t default_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace keyfold_test

// NOLINTBEGIN(misc-definitions-in-headers): replacement functions must not be inline
void* operator new(std::size_t size) {
  return keyfold_test::allocate_or_throw(size, keyfold_test::default_alignment);
}
void* operator new[](std::size_t size) {
  return keyfold_test::allocate_or_throw(size, keyfold_test::default_alignment);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return keyfold_test::allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return keyfold_test::allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return keyfold_test::allocate(size, keyfold_test::default_alignment);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return keyfold_test::allocate(size, keyfold_test::default_alignment);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return keyfold_test::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return keyfold_test::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { keyfold_test::deallocate(block); }
void operator delete[](void* block) noexcept { keyfold_test::deallocate(block); }
void operator delete(void* block, std::size_t) noexcept { keyfold_test::deallocate(block); }
void operator delete[](void* block, std::size_t) noexcept { keyfold_test::deallocate(block); }
void operator delete(void* block, std::align_val_t) noexcept { keyfold_test::deallocate(block); }
void operator delete[](void* block, std::align_val_t) noexcept { keyfold_test::deallocate(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { keyfold_test::deallocate(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  keyfold_test::deallocate(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept { keyfold_test::deallocate(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { keyfold_test::deallocate(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  keyfold_test::deallocate(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  keyfold_test::deallocate(block);
}
// NOLINTEND(misc-definitions-in-headers)
