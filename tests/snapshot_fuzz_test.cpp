// The corpus of the fuzz target, and random damage to it with the checksums made right again: nothing
// crashes, nothing is loaded that does not hold together, and no allocation is larger than the input accounts
// for.
#include "fuzz/snapshot_fuzz.hpp"
#include "support/catch.hpp"
#include "support/largest_allocation.hpp"
#include "support/mutation.hpp"
#include "support/property.hpp"

namespace {

using namespace keyfold_test;

std::vector<std::string> corpus() {
  std::vector<std::string> out;
  for (const char* folder : {"tests/golden", "tests/fuzz/corpus/snapshot"}) add_corpus(out, folder);
  return out;
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
    below(random, 5) == 0 ? resize_chunk(bytes, random) : change_somewhere(bytes, random);
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
