// The corpus of the fuzz target, and random damage to it with the checksums made right again: nothing
// crashes, nothing is loaded that does not hold together, and no allocation is larger than the input accounts
// for.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>

#include "fuzz/snapshot_fuzz.hpp"
#include "support/catch.hpp"
#include "support/property.hpp"

namespace {

std::size_t largest_allocation = 0;

void* allocate(std::size_t size, std::size_t alignment) {
  largest_allocation = std::max(largest_allocation, size);
  void* const block = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// Not inlined, since compilers then take free() for the wrong partner of new.
#define KEYFOLD_REPLACED __attribute__((noinline))
KEYFOLD_REPLACED void* operator new(std::size_t size) {
  return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
KEYFOLD_REPLACED void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
KEYFOLD_REPLACED void operator delete(void* block) noexcept { std::free(block); }
KEYFOLD_REPLACED void operator delete(void* block, std::size_t) noexcept { std::free(block); }
KEYFOLD_REPLACED void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
KEYFOLD_REPLACED void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}

namespace {

using keyfold_test::fuzz_snapshot;
using keyfold_test::seal;
using Random = std::mt19937_64;

std::vector<std::string> corpus() {
  std::vector<std::string> out;
  for (const char* folder : {"tests/golden", "tests/fuzz/corpus/snapshot"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (!entry.is_regular_file() || entry.path().extension() == ".cpp") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  return out;
}

std::size_t below(Random& random, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
}

std::uint64_t odd_number(Random& random) {
  constexpr std::uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       3,
                                       4,
                                       5,
                                       7,
                                       8,
                                       255,
                                       256,
                                       65535,
                                       0x7FFFFFFF,
                                       0x80000000,
                                       0xFFFFFFFF,
                                       0x100000000,
                                       0x7FFFFFFFFFFFFFFF,
                                       0x8000000000000000,
                                       UINT64_MAX};
  return numbers[below(random, std::size(numbers))];
}

// Where a chunk's payload begins, and its size.
std::pair<std::size_t, std::size_t> some_chunk(const std::string& bytes, Random& random) {
  std::vector<std::pair<std::size_t, std::size_t>> chunks;
  for (std::size_t at = 16; at + 16 <= bytes.size();) {
    const auto size =
        keyfold::detail::load_number<std::uint64_t>(reinterpret_cast<const std::byte*>(&bytes[at + 4]));
    if (size > bytes.size() - at - 16) break;
    chunks.emplace_back(at + 16, size);
    at += size + 20;
  }
  return chunks.empty() ? std::pair<std::size_t, std::size_t>() : chunks[below(random, chunks.size())];
}

void resize_chunk(std::string& bytes, Random& random) {
  const auto [at, size] = some_chunk(bytes, random);
  if (size == 0) return;
  const std::size_t where = below(random, size);
  const std::size_t count = below(random, std::min<std::size_t>(size - where, 32)) + 1;
  std::uint64_t now = size;
  if (random() % 2 == 0) {
    bytes.erase(at + where, count);
    now -= count;
  } else {
    bytes.insert(at + where, bytes.substr(at + where, count));
    now += count;
  }
  keyfold::detail::store_number(reinterpret_cast<std::byte*>(&bytes[at - 12]), now);
}

void damage(std::string& bytes, Random& random) {
  for (std::size_t times = below(random, 4) + 1; times > 0; --times) {
    const std::size_t at = below(random, bytes.size());
    switch (below(random, 5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2: {
        const std::uint64_t number = odd_number(random);
        const std::size_t width = std::min<std::size_t>(random() % 2 == 0 ? 4 : 8, bytes.size() - at);
        std::memcpy(&bytes[at], &number, width);
        break;
      }
      case 3: {
        const std::size_t count = std::min<std::size_t>(below(random, 24) + 1, bytes.size() - at);
        const std::string part = bytes.substr(below(random, bytes.size()), count);
        bytes.replace(at, part.size(), part);
        break;
      }
      case 4:
        resize_chunk(bytes, random);
        break;
    }
  }
}

}  // namespace

TEST_CASE("the corpus is loaded or refused") {
  std::size_t taken = 0;
  for (std::string bytes : corpus()) {
    taken += fuzz_snapshot(bytes) ? 1U : 0U;
    seal(bytes);
    fuzz_snapshot(bytes);
  }
  CHECK(taken >= 3);  // the golden files are among them
}

TEST_CASE("damage that the checksums do not show is found, or does no harm") {
  using Entry = keyfold::detail::LogEntry<snapshot_samples::Wide>;
  // What a change with its row takes in memory, for the nine bytes and the row that it takes in a file at the
  // least; an allocation doubles at the most, when something grows.
  constexpr std::size_t factor = 2 * (Entry::image_size / 9 + 1);
  const std::vector<std::string> seeds = corpus();
  Random random(20261130);
  std::size_t taken = 0;
  std::size_t too_large = 0;
  const int count = keyfold_test::scaled(30000);
  for (int i = 0; i < count; ++i) {
    std::string bytes = seeds[below(random, seeds.size())];
    if (bytes.empty()) continue;
    damage(bytes, random);
    seal(bytes);
    largest_allocation = 0;
    taken += fuzz_snapshot(bytes) ? 1U : 0U;
    if (largest_allocation > factor * bytes.size() + 64 * 1024) ++too_large;
  }
  CHECK(too_large == 0);
  CHECK(taken > static_cast<std::size_t>(count) / 20);  // damage to values is no damage to the table
  CHECK(taken < static_cast<std::size_t>(count));
}
