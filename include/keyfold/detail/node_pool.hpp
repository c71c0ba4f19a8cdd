// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/arena.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEYFOLD_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define KEYFOLD_ASAN
#endif
#if defined(KEYFOLD_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace keyfold::detail {

/// Whether AddressSanitizer is to report accesses: a row that is gone is not to be read, though its cell is
/// still there.
inline void forbid([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(KEYFOLD_ASAN)
  __asan_poison_memory_region(memory, bytes);
#endif
}
inline void allow([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(KEYFOLD_ASAN)
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

/// Cells of one size, for the nodes of a container. They lie side by side in chunks that grow with the pool.
/// A chunk without a used cell is given back, unless cells are being taken from it.
///
/// A chunk consists of pages with a pointer to the chunk at their front, so that a cell finds its chunk by
/// its address. The free cells of a chunk are a list.
class NodePool {
 public:
  NodePool(std::pmr::memory_resource& memory, std::size_t cell_size, std::size_t alignment) noexcept
      : memory_(&memory), cell_(cell_size), alignment_(alignment) {
    page_ = std::bit_ceil(std::max(smallest_page, round_up(sizeof(Chunk)) + cell_ * least_cells));
    assert(cell_ >= sizeof(Free) && alignment_ >= alignof(Free));
  }
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;
  ~NodePool() {
    if (current_ != nullptr) release(current_);
  }

  /// Throws what the memory resource throws.
  void* allocate() {
    Chunk* chunk = current_;
    if (chunk == nullptr || !chunk->has_room()) chunk = next_chunk();
    ++chunk->used;
    if (Free* cell = chunk->free; cell != nullptr) {
      detail::allow(cell, cell_);
      chunk->free = cell->next;
      return cell;
    }
    std::byte* cell = chunk->fresh;
    chunk->fresh += cell_;
    if (static_cast<std::size_t>(chunk->page_end - chunk->fresh) < cell_) open_page(*chunk, sizeof(Chunk*));
    return cell;
  }

  void deallocate(void* cell) noexcept {
    Chunk* chunk = *reinterpret_cast<Chunk**>(reinterpret_cast<std::uintptr_t>(cell) & ~(page_ - 1));
    const bool had_room = chunk->has_room();
    chunk->free = ::new (cell) Free{chunk->free};
    detail::forbid(cell, cell_);
    --chunk->used;
    if (chunk == current_) return;
    if (!had_room) link(chunk);
    if (chunk->used == 0) {
      unlink(chunk);
      release(chunk);
    }
  }

  std::size_t cell_size() const noexcept { return cell_; }
  std::pmr::memory_resource& memory() const noexcept { return *memory_; }

  /// Of all chunks.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Free {
    Free* next;
  };

  struct Chunk {
    bool has_room() const noexcept { return free != nullptr || fresh != nullptr; }

    Chunk* self = this;  // as at the front of every page
    std::size_t size;
    Stretch pages;                  // that no cell was taken from yet
    std::byte* fresh = nullptr;     // the next cell of a page that was never used; null: no page is left
    std::byte* page_end = nullptr;  // of its page
    Free* free = nullptr;
    std::size_t used = 0;
    Chunk* previous = nullptr;  // in the list of those with room
    Chunk* next = nullptr;
  };

  static constexpr std::size_t smallest_page = 4096;
  static constexpr std::size_t least_cells = 8;
  static constexpr std::size_t largest_chunk = std::size_t{1024} * 1024;

  std::size_t round_up(std::size_t bytes) const noexcept {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  [[gnu::noinline]] Chunk* next_chunk() {
    Chunk* next = with_room_;
    if (next != nullptr) {
      unlink(next);
    } else {
      const std::size_t size = std::clamp(std::bit_floor(bytes_ | 1U), page_, std::max(page_, largest_chunk));
      auto* memory = static_cast<std::byte*>(memory_->allocate(size, page_));
      next = ::new (memory) Chunk{.size = size, .pages = Stretch(memory, memory + size)};
      open_page(*next, sizeof(Chunk));
      bytes_ += size;
    }
    return current_ = next;  // the old one is full
  }

  [[gnu::noinline]] void open_page(Chunk& chunk, std::size_t header) noexcept {
    std::byte* page = chunk.pages.take(page_, 1);
    chunk.fresh = chunk.page_end = nullptr;
    if (page == nullptr) return;
    if (page != reinterpret_cast<std::byte*>(&chunk)) ::new (page) Chunk*(&chunk);
    chunk.fresh = page + round_up(header);
    chunk.page_end = page + page_;
  }

  void link(Chunk* chunk) noexcept {
    chunk->previous = nullptr;
    chunk->next = with_room_;
    if (with_room_ != nullptr) with_room_->previous = chunk;
    with_room_ = chunk;
  }
  void unlink(Chunk* chunk) noexcept {
    (chunk->previous != nullptr ? chunk->previous->next : with_room_) = chunk->next;
    if (chunk->next != nullptr) chunk->next->previous = chunk->previous;
  }

  void release(Chunk* chunk) noexcept {
    bytes_ -= chunk->size;
    detail::allow(chunk, chunk->size);
    memory_->deallocate(chunk, chunk->size, page_);
  }

  std::pmr::memory_resource* memory_;
  std::size_t cell_;
  std::size_t alignment_;
  std::size_t page_;
  Chunk* current_ = nullptr;    // that cells are taken from; it is in no list
  Chunk* with_room_ = nullptr;  // others
  std::size_t bytes_ = 0;
};

/// Takes what is as large as a cell from a pool and the rest, such as arrays of buckets, from where the pool
/// has its memory.
template <class T>
class PoolAllocator {
 public:
  using value_type = T;

  explicit PoolAllocator(NodePool& pool) noexcept : pool_(&pool) {}
  template <class Other>
  PoolAllocator(const PoolAllocator<Other>& other) noexcept : pool_(&other.pool()) {}

  T* allocate(std::size_t count) {
    if (is_node(count)) return static_cast<T*>(pool_->allocate());
    if (count > static_cast<std::size_t>(-1) / size_of_one) throw std::bad_array_new_length();
    return static_cast<T*>(pool_->memory().allocate(count * size_of_one, alignof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (is_node(count)) return pool_->deallocate(static_cast<void*>(memory));
    pool_->memory().deallocate(static_cast<void*>(memory), count * size_of_one, alignof(T));
  }

  NodePool& pool() const noexcept { return *pool_; }

  template <class Other>
  bool operator==(const PoolAllocator<Other>& other) const noexcept {
    return pool_ == &other.pool();
  }

 private:
  bool is_node(std::size_t count) const noexcept { return count * size_of_one == pool_->cell_size(); }

  static constexpr std::size_t size_of_one =
      sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer

  NodePool* pool_;
};

}  // namespace keyfold::detail
