// The corpus of the fuzz targets for logs and rows, and random damage to it: nothing crashes, nothing is
// opened that does not hold together, and no allocation is larger than the input accounts for.
#include "fuzz/log_fuzz.hpp"
#include "fuzz/row_fuzz.hpp"
#include "support/catch.hpp"
#include "support/largest_allocation.hpp"
#include "support/mutation.hpp"
#include "support/property.hpp"

namespace {

using namespace keyfold_test;

std::vector<std::string> corpus(const char* folder) {
  std::vector<std::string> out;
  add_corpus(out, folder);
  return out;
}

void damage(std::string& bytes, Random& random) {
  for (std::size_t times = below(random, 4) + 1; times > 0; --times) {
    if (below(random, 6) != 0) {
      change_somewhere(bytes, random);
      continue;
    }
    const std::size_t at = below(random, bytes.size());
    const std::string part = bytes.substr(at, below(random, 40) + 1);
    if (random() % 2 == 0 || part.size() == bytes.size()) {
      bytes.insert(at, part);
    } else {
      bytes.erase(at, part.size());
    }
  }
}

struct Replayed {
  std::size_t taken = 0;
  std::size_t too_large = 0;  // inputs that made for an allocation out of proportion
};

// `factor`: bytes of memory for one byte of the input.
template <class Fuzz>
Replayed replay_damaged(const std::vector<std::string>& seeds, int count, std::size_t factor, Fuzz fuzz) {
  Random random(20261130);
  Replayed seen;
  for (int i = 0; i < count; ++i) {
    std::string bytes = seeds[below(random, seeds.size())];
    if (bytes.empty()) continue;
    damage(bytes, random);
    largest_allocation = 0;
    seen.taken += fuzz(bytes) ? 1U : 0U;
    if (largest_allocation > factor * bytes.size() + std::size_t{64} * 1024) ++seen.too_large;
  }
  return seen;
}

}  // namespace

TEST_CASE("the corpus of logs is opened or refused") {
  std::size_t taken = 0;
  for (const std::string& input : corpus("tests/fuzz/corpus/log")) taken += fuzz_log(input) ? 1U : 0U;
  CHECK(taken >= 4);  // the seeds are among them
}

TEST_CASE("the corpus of rows is decoded or refused") {
  std::size_t taken = 0;
  for (const std::string& input : corpus("tests/fuzz/corpus/row")) taken += fuzz_rows(input) ? 1U : 0U;
  CHECK(taken >= 6);
}

TEST_CASE("damage to a log that the checksums do not show is found, or does no harm") {
  using Entry = keyfold::detail::LogEntry<snapshot_samples::Wide>;
  // As in snapshot_fuzz_test.
  constexpr std::size_t factor = 2 * (Entry::image_size / 9 + 1);
  const int count = scaled(6000);
  const Replayed seen = replay_damaged(corpus("tests/fuzz/corpus/log"), count, factor, fuzz_log);
  CHECK(seen.too_large == 0);
  CHECK(seen.taken > static_cast<std::size_t>(count) / 20);
  CHECK(seen.taken < static_cast<std::size_t>(count));
}

TEST_CASE("damage to rows is found, or makes other rows") {
  // A row of a schema without columns takes no bytes, and up to a hundred are read.
  constexpr std::size_t factor = 2 * sizeof(snapshot_samples::Wide);
  const int count = scaled(30000);
  const Replayed seen = replay_damaged(corpus("tests/fuzz/corpus/row"), count, factor, fuzz_rows);
  CHECK(seen.too_large == 0);
  CHECK(seen.taken > static_cast<std::size_t>(count) / 20);
  CHECK(seen.taken < static_cast<std::size_t>(count));
}
