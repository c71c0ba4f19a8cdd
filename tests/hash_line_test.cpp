#include <keyfold/detail/hash_line.hpp>

#include <random>

#include "support/catch.hpp"

using keyfold::detail::HashLine;

namespace {

int thing = 0;  // items are told by their places only

// Hashes that differ in their high half, in their low one, or not at all; 0 is one, as in free places.
std::uint64_t any_hash(std::mt19937_64& random) { return (random() % 3 << 32U) | random() % 3; }

}  // namespace

TEST_CASE("a line tells where a hash stands") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    HashLine line{};
    const std::size_t used = random() % (HashLine::size + 1);
    for (std::size_t i = 0; i < used; ++i) {
      REQUIRE_FALSE(line.is_full());
      line.add(any_hash(random), &thing);
    }
    REQUIRE(line.used() == used);
    REQUIRE(line.is_full() == (used == 4));

    const std::uint64_t wanted = any_hash(random);
    unsigned equal = 0;
    unsigned low_half = 0;
    for (unsigned i = 0; i < 4; ++i) {
      if (line.hashes[i] == wanted) equal |= 1U << i;
      if ((line.hashes[i] & 0xFFFF'FFFF) == (wanted & 0xFFFF'FFFF)) low_half |= 1U << i;
    }
    REQUIRE(line.equal(wanted) == equal);
    const unsigned like = line.like(wanted);
    REQUIRE((like & equal) == equal);
    REQUIRE((like | low_half) == low_half);
  }
}

TEST_CASE("a line is a cache line") {
  STATIC_REQUIRE(sizeof(HashLine) == 64);
  STATIC_REQUIRE(alignof(HashLine) == 64);
}

TEST_CASE("the first of several places is the lowest") {
  CHECK(keyfold::detail::first_place(0b1000) == 3);
  CHECK(keyfold::detail::first_place(0b1010) == 1);
  CHECK(keyfold::detail::first_place(0b1111) == 0);
}
