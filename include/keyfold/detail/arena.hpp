// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/// Memory that is taken from the front of larger pieces.
namespace keyfold::detail {

/// Has the system provide pages now and together, for two thirds of what it costs to touch one after the
/// other. Where it cannot, nothing happens.
inline void populate([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::byte* end) noexcept {
#if defined(MADV_POPULATE_WRITE)
  constexpr std::uintptr_t page = 4096;
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(end) / page * page;
  if (first >= last) return;
  const int error = errno;
  static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE));
  errno = error;
#endif
}

/// A piece of memory that is taken from the front to the back.
class Stretch {
 public:
  Stretch(std::byte* begin, std::byte* end) noexcept : top_(begin), populated_(begin), end_(end) {}

  /// Null if there is no room.
  std::byte* take(std::size_t bytes, std::size_t alignment) noexcept {
    const std::uintptr_t at = (reinterpret_cast<std::uintptr_t>(top_) + alignment - 1) & ~(alignment - 1);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(end_);
    if (at > end || bytes > end - at) return nullptr;
    std::byte* taken = top_ + (at - reinterpret_cast<std::uintptr_t>(top_));
    top_ = taken + bytes;
    if (top_ > populated_) populate_to_top();
    return taken;
  }

  /// Undoes the last take.
  void put_back(std::byte* taken, std::size_t bytes) noexcept {
    if (taken + bytes == top_) top_ = taken;
  }

  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - top_); }

 private:
  static constexpr std::size_t step = std::size_t{64} * 1024;
  static constexpr std::size_t worth_a_call = std::size_t{16} * 1024;

  // Ahead of the top, but not where there is little: a small table is not to touch what it does not need.
  [[gnu::noinline]] void populate_to_top() noexcept {
    std::byte* const from = std::exchange(populated_, top_ + std::min(left(), step));
    if (static_cast<std::size_t>(populated_ - from) >= worth_a_call) detail::populate(from, populated_);
  }

  std::byte* top_;
  std::byte* populated_;
  std::byte* end_;
};

/// A piece of memory that several blocks are in, with this at its front. Given back when the last of them
/// goes.
class Segment {
 public:
  static Segment* make(std::pmr::memory_resource& memory, std::size_t bytes, std::size_t alignment) {
    const std::size_t size = sizeof(Segment) + bytes + alignment;
    return ::new (memory.allocate(size, alignof(Segment))) Segment(memory, size);
  }

  void use() noexcept { ++users_; }
  void leave() noexcept {
    if (--users_ == 0) memory_.deallocate(this, size_, alignof(Segment));
  }

  Stretch room;

 private:
  Segment(std::pmr::memory_resource& memory, std::size_t size) noexcept
      : room(reinterpret_cast<std::byte*>(this + 1), reinterpret_cast<std::byte*>(this) + size),
        memory_(memory),
        size_(size) {}

  std::pmr::memory_resource& memory_;
  std::size_t size_;
  std::size_t users_ = 1;
};

/// A block of an Arena, which may be gone before it.
class ArenaBlock {
 public:
  ArenaBlock() = default;
  /// Takes over a use of the segment.
  ArenaBlock(Segment& segment, std::byte* data, std::size_t size) noexcept
      : segment_(&segment), data_(data), size_(size) {}
  ArenaBlock(ArenaBlock&& other) noexcept
      : segment_(std::exchange(other.segment_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  ArenaBlock& operator=(ArenaBlock other) noexcept {
    std::swap(segment_, other.segment_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ArenaBlock() {
    if (segment_ == nullptr) return;
    segment_->room.put_back(data_, size_);
    segment_->leave();
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  Segment* segment_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Small blocks one behind the other in segments; a large one has a segment of its own. A segment goes when
/// its last block goes. Not synchronised: blocks of one arena are made and destroyed by one thread at a time.
class Arena {
 public:
  explicit Arena(std::pmr::memory_resource& memory) noexcept : memory_(&memory) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (current_ != nullptr) current_->leave();
  }

  /// Whether a block of so many bytes shares its segment with no other.
  static constexpr bool has_own_segment(std::size_t bytes) noexcept { return bytes > largest / 4; }

  /// Throws what the memory resource throws.
  ArenaBlock allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return {};
    if (has_own_segment(bytes)) return in(*Segment::make(*memory_, bytes, alignment), bytes, alignment);
    std::byte* data = current_ == nullptr ? nullptr : current_->room.take(bytes, alignment);
    if (data == nullptr) data = take_from_next(bytes, alignment);
    current_->use();
    return {*current_, data, bytes};
  }

 private:
  static constexpr std::size_t smallest = 512;
  static constexpr std::size_t largest = std::size_t{64} * 1024;

  [[gnu::noinline]] std::byte* take_from_next(std::size_t bytes, std::size_t alignment) {
    while (next_ < bytes * 4) next_ *= 2;
    Segment* fresh = Segment::make(*memory_, next_, alignment);
    if (current_ != nullptr) current_->leave();
    current_ = fresh;
    next_ = std::min(next_ * 2, largest);
    return current_->room.take(bytes, alignment);
  }

  static ArenaBlock in(Segment& segment, std::size_t bytes, std::size_t alignment) noexcept {
    return {segment, segment.room.take(bytes, alignment), bytes};
  }

  std::pmr::memory_resource* memory_;
  Segment* current_ = nullptr;
  std::size_t next_ = smallest;
};

}  // namespace keyfold::detail
