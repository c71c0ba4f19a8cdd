// What the heap holds and gives, as counted by the allocator, by the kernel and by this program.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

namespace keyfold_bench {

/// Bytes given out by malloc, with its own overhead.
inline std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Bytes of memory that the process occupies, after malloc has given back what it can.
inline std::size_t resident_bytes() {
  malloc_trim(0);
  std::size_t pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// What this thread has asked `new` for so far; only in programs that are linked with heap.cpp.
struct Allocated {
  std::size_t times = 0;
  std::size_t bytes = 0;
  std::size_t largest = 0;  // since the last reset_largest()
};
Allocated allocated() noexcept;
void reset_largest() noexcept;

}  // namespace keyfold_bench
