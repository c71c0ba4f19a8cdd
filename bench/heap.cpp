// Replaces the global `new` by one that counts, for the thread that calls it.
#include "heap.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

constinit thread_local keyfold_bench::Allocated count;

void* counted(void* memory, std::size_t size) {
  if (memory == nullptr) throw std::bad_alloc();
  ++count.times;
  count.bytes += size;
  count.largest = std::max(count.largest, size);
  return memory;
}

}  // namespace

keyfold_bench::Allocated keyfold_bench::allocated() noexcept { return count; }
void keyfold_bench::reset_largest() noexcept { count.largest = 0; }

void* operator new(std::size_t size) { return counted(std::malloc(size), size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(align, (size + align - 1) / align * align), size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
