#include <keyfold/detail/hash_sieve.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "support/catch.hpp"

using keyfold::detail::HashSieve;

TEST_CASE("a sieve never says that one of two equal hashes is alone") {
  std::mt19937_64 random(20261130);
  for (const std::size_t count : {2U, 3U, 64U, 1000U, 5000U}) {
    std::vector<std::uint64_t> hashes;
    for (std::size_t i = 0; i < count; ++i) hashes.push_back(random());
    hashes.push_back(hashes[random() % count]);
    HashSieve sieve(hashes.size());
    std::map<std::uint64_t, int> times;
    for (const std::uint64_t hash : hashes) {
      sieve.add(hash);
      ++times[hash];
    }
    std::size_t crowded = 0;
    for (const auto& [hash, number] : times) {
      if (number > 1) CHECK_FALSE(sieve.is_alone(hash));
      if (!sieve.is_alone(hash)) ++crowded;
    }
    CHECK(crowded <= 3 + count / 5);  // 16 bits for each: some 6 % share one
  }
}

TEST_CASE("a sieve tells hashes that are all alike from nothing") {
  HashSieve sieve(1000);
  for (int i = 0; i < 1000; ++i) sieve.add(42);
  CHECK_FALSE(sieve.is_alone(42));
}

TEST_CASE("one hash is alone, and so is none") {
  HashSieve one(1);
  one.add(7);
  CHECK(one.is_alone(7));
  CHECK(HashSieve(0).is_alone(7));
}
