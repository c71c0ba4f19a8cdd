// The size of the largest allocation. Replaces the global operator new and delete, so it belongs in one
// translation unit of a program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace keyfold_test {

inline std::size_t largest_allocation = 0;

inline void* allocate_and_note(std::size_t size, std::size_t alignment) {
  largest_allocation = std::max(largest_allocation, size);
  void* const block = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace keyfold_test

// NOLINTBEGIN(misc-definitions-in-headers): replacement functions must not be inline
// Not inlined, since compilers then take free() for the wrong partner of new.
#define KEYFOLD_REPLACED __attribute__((noinline))
KEYFOLD_REPLACED void* operator new(std::size_t size) {
  return keyfold_test::allocate_and_note(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
KEYFOLD_REPLACED void* operator new(std::size_t size, std::align_val_t alignment) {
  return keyfold_test::allocate_and_note(size, static_cast<std::size_t>(alignment));
}
KEYFOLD_REPLACED void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
KEYFOLD_REPLACED void operator delete(void* block) noexcept { std::free(block); }
KEYFOLD_REPLACED void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
KEYFOLD_REPLACED void operator delete(void* block, std::size_t) noexcept { std::free(block); }
KEYFOLD_REPLACED void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
KEYFOLD_REPLACED void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
// NOLINTEND(misc-definitions-in-headers)
