#include <keyfold/detail/key_index.hpp>

#include <algorithm>
#include <deque>
#include <random>
#include <unordered_map>
#include <vector>

#include "support/faults.hpp"
#include "support/property.hpp"

using keyfold::detail::KeyIndex;
using namespace keyfold_test;

namespace {

struct Item {
  std::uint64_t hash = 0;
  int number = 0;
};

/// The index and what it should hold, driven side by side.
class Pair {
 public:
  Item* add(std::uint64_t hash) {
    Item& item = items_.emplace_back(Item{hash, static_cast<int>(items_.size())});
    index.insert(hash, &item);
    model.emplace(hash, &item);
    return &item;
  }
  void erase(Item* item) {
    index.erase(item->hash, item);
    model.erase(place_of(item));
    gone.push_back(item);
  }
  void replace(Item* item) {
    Item& other = items_.emplace_back(Item{item->hash, static_cast<int>(items_.size())});
    index.replace(item->hash, item, &other);
    place_of(item)->second = &other;
    gone.push_back(item);
  }

  bool finds(const Item* wanted) const {
    return index.find(wanted->hash, [&](const Item& item) { return &item == wanted; }) == wanted;
  }

  /// How many items find() compares: those of the hash, each once, and no other.
  std::size_t offered(std::uint64_t hash) const {
    std::size_t count = 0;
    index.find(hash, [&](const Item& item) {
      count += item.hash == hash ? 1U : 1'000'000U;
      return false;
    });
    return count;
  }

  void check() const {
    REQUIRE(index.size() == model.size());
    bool all_found = true;
    for (const auto& [hash, item] : model) all_found = all_found && finds(item);
    REQUIRE(all_found);
    bool all_offered = true;
    for (auto it = model.begin(); it != model.end(); it = model.equal_range(it->first).second) {
      all_offered = all_offered && offered(it->first) == model.count(it->first);
    }
    REQUIRE(all_offered);
    bool any_found = false;
    for (const Item* item : gone) any_found = any_found || finds(item);
    REQUIRE_FALSE(any_found);
  }

  Item* any(std::mt19937_64& random) const {
    auto it = model.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random() % model.size()));
    return it->second;
  }

  KeyIndex<Item> index;
  std::unordered_multimap<std::uint64_t, Item*> model;
  std::vector<Item*> gone;

 private:
  std::unordered_multimap<std::uint64_t, Item*>::iterator place_of(const Item* item) {
    const auto [first, last] = model.equal_range(item->hash);
    return std::find_if(first, last, [&](const auto& entry) { return entry.second == item; });
  }

  std::deque<Item> items_;
};

using MakeHash = std::uint64_t (*)(std::mt19937_64&);

// Whatever the size of the array, these begin probing at its last places and go on at its first ones.
std::uint64_t at_the_end(std::mt19937_64& random) { return ~std::uint64_t{0} - random() % 4; }
std::uint64_t spread(std::mt19937_64& random) { return random(); }
std::uint64_t few(std::mt19937_64& random) { return random() % 5 * 0x9E3779B97F4A7C15U; }
std::uint64_t one_home(std::mt19937_64& random) { return random() << 40U; }
std::uint64_t neighbours(std::mt19937_64& random) { return random() % 64; }
std::uint64_t all_equal(std::mt19937_64&) { return 42; }

const std::vector<std::pair<const char*, MakeHash>> distributions{
    {"spread", &spread},         {"few", &few},
    {"one home", &one_home},     {"neighbours", &neighbours},
    {"at the end", &at_the_end}, {"all equal", &all_equal},
};

// Phases in which insertions or erasures prevail, so that the index grows, empties and is refilled.
void run_program(MakeHash make_hash, std::uint64_t seed, int steps) {
  std::mt19937_64 random(seed);
  Pair pair;
  std::uint64_t insert_share = 60;
  for (int step = 0; step < steps; ++step) {
    if (step % 64 == 0) insert_share = std::array<std::uint64_t, 4>{80, 60, 45, 20}[random() % 4];
    const std::uint64_t dice = random() % 100;
    if ((dice < insert_share && pair.model.size() < 400) || pair.model.empty()) {
      const std::size_t count = random() % 16 == 0 ? 1 + random() % 40 : 1;
      pair.index.reserve(count);
      for (std::size_t i = 0; i < count; ++i) pair.add(make_hash(random));
    } else if (dice < 90) {
      pair.erase(pair.any(random));
    } else {
      pair.replace(pair.any(random));
    }
    if (step % 16 == 0) pair.check();
    if (pair.gone.size() > 64) pair.gone.clear();
  }
  pair.check();
}

}  // namespace

TEST_CASE("an empty key index finds nothing") {
  KeyIndex<Item> index;
  CHECK(index.size() == 0);
  CHECK(index.find(0, [](const Item&) { return true; }) == nullptr);
  CHECK(index.candidate(0) == nullptr);
  index.prefetch(0);
  index.reserve(0);
  CHECK(index.find(0, [](const Item&) { return true; }) == nullptr);
}

TEST_CASE("a key index finds what an unordered_multimap finds") {
  for (const auto& [name, make_hash] : distributions) {
    for (int seed = 0; seed < scaled(8); ++seed) {
      INFO(name << ", seed " << seed);
      run_program(make_hash, static_cast<std::uint64_t>(seed), 2000);
    }
  }
}

// 48 items are the most that 64 places take: the 49th makes the array grow, and moves 16 places of the old
// one.
TEST_CASE("items are found, erased and replaced while a growth moves them") {
  for (const auto& [name, make_hash] : distributions) {
    std::mt19937_64 random(7);
    for (std::size_t inserted_after = 0; inserted_after < 8; ++inserted_after) {
      INFO(name << ", " << inserted_after << " insertions after the growth");
      Pair pair;
      pair.index.reserve(48);
      for (int i = 0; i < 48; ++i) pair.add(make_hash(random));
      pair.index.reserve(1);
      pair.check();
      for (std::size_t i = 0; i < inserted_after; ++i) pair.add(make_hash(random));
      pair.check();
      for (int i = 0; i < 10; ++i) pair.replace(pair.any(random));
      pair.check();
      while (!pair.model.empty()) {
        pair.erase(pair.any(random));
        pair.check();
      }
      pair.add(make_hash(random));
      pair.check();
    }
  }
}

TEST_CASE("a second growth while the first still moves items loses nothing") {
  for (const auto& [name, make_hash] : distributions) {
    INFO(name);
    std::mt19937_64 random(11);
    Pair pair;
    pair.index.reserve(48);
    for (int i = 0; i < 48; ++i) pair.add(make_hash(random));
    pair.index.reserve(1);
    pair.add(make_hash(random));
    pair.index.reserve(1000);
    pair.check();
    for (int i = 0; i < 1000; ++i) pair.add(make_hash(random));
    pair.check();
  }
}

TEST_CASE("items of one hash and one key live side by side") {
  Pair pair;
  pair.index.reserve(20);
  Item* first = pair.add(7);
  Item* second = pair.add(7);
  pair.check();
  pair.erase(first);
  pair.check();
  CHECK(pair.index.find(7, [](const Item&) { return true; }) == second);
  first = pair.add(7);
  pair.erase(second);
  CHECK(pair.index.find(7, [](const Item&) { return true; }) == first);
}

TEST_CASE("the candidate of a hash is an item of that hash, or none") {
  Pair pair;
  pair.index.reserve(40);
  Item* only = pair.add(3);
  CHECK(pair.index.candidate(3) == only);
  CHECK(pair.index.candidate(4) == nullptr);
  std::mt19937_64 random(3);
  for (int i = 0; i < 39; ++i) pair.add(neighbours(random));
  std::size_t found = 0;
  for (std::uint64_t hash = 0; hash < 64; ++hash) {
    const Item* item = pair.index.candidate(hash);
    if (item != nullptr) CHECK(item->hash == hash);
    found += item != nullptr ? 1U : 0U;
  }
  CHECK(found > 0);
}

TEST_CASE("only reserve() allocates, and only it can fail") {
  static_assert(noexcept(std::declval<KeyIndex<Item>&>().insert(0, nullptr)));
  static_assert(noexcept(std::declval<KeyIndex<Item>&>().erase(0, nullptr)));
  static_assert(noexcept(std::declval<KeyIndex<Item>&>().replace(0, nullptr, nullptr)));
  std::mt19937_64 random(5);
  std::vector<Item> items(200);
  for (Item& item : items) item.hash = spread(random);
  std::vector<Item> others = items;
  KeyIndex<Item> index;
  index.reserve(48);
  for (std::size_t i = 0; i < 48; ++i) index.insert(items[i].hash, &items[i]);
  index.reserve(100);

  Faults::count();
  for (std::size_t i = 48; i < 148; ++i) index.insert(items[i].hash, &items[i]);
  for (std::size_t i = 0; i < 148; ++i) index.replace(items[i].hash, &items[i], &others[i]);
  for (std::size_t i = 0; i < 148; ++i) index.erase(items[i].hash, &others[i]);
  CHECK(Faults::disarm() == 0);
  CHECK(index.size() == 0);
}

TEST_CASE("a growth that fails changes nothing") {
  std::mt19937_64 random(6);
  Pair pair;
  pair.index.reserve(48);
  for (int i = 0; i < 48; ++i) pair.add(spread(random));
  const auto reserve_without_memory = [&](std::size_t additional) {
    Faults::arm(1, FaultMode::single);
    CHECK_THROWS_AS(pair.index.reserve(additional), std::bad_alloc);
    Faults::disarm();
    pair.check();
  };
  reserve_without_memory(1);
  pair.index.reserve(1);
  pair.add(spread(random));
  reserve_without_memory(1000);  // while items are still moving
  for (int i = 0; i < 40; ++i) pair.add(spread(random));
  pair.check();
}

TEST_CASE("shrink() gives memory back and keeps what is there") {
  for (const auto& [name, make_hash] : distributions) {
    INFO(name);
    std::mt19937_64 random(13);
    Pair pair;
    pair.index.shrink();
    CHECK(pair.index.bytes() == 0);
    pair.index.reserve(900);
    for (int i = 0; i < 900; ++i) pair.add(make_hash(random));
    const std::size_t full = pair.index.bytes();
    pair.index.shrink();
    CHECK(pair.index.bytes() == full);
    while (pair.model.size() > 20) pair.erase(pair.any(random));
    Faults::arm(1, FaultMode::single);
    CHECK_THROWS_AS(pair.index.shrink(), std::bad_alloc);
    Faults::disarm();
    pair.check();
    pair.index.shrink();
    CHECK(pair.index.bytes() < full / 8);
    pair.check();
    pair.index.reserve(30);
    for (int i = 0; i < 30; ++i) pair.add(make_hash(random));
    pair.check();
    while (!pair.model.empty()) pair.erase(pair.any(random));
    pair.index.shrink();
    pair.check();
    pair.index.reserve(1);
    pair.add(1);
    pair.check();
  }
}

TEST_CASE("an index shrinks in the middle of a growth") {
  for (std::size_t moved = 0; moved < 4; ++moved) {
    std::mt19937_64 random(17);
    Pair pair;
    pair.index.reserve(384);
    for (int i = 0; i < 384; ++i) pair.add(spread(random));
    pair.index.reserve(1);
    for (std::size_t i = 0; i < moved; ++i) pair.add(spread(random));
    while (pair.model.size() > 10) pair.erase(pair.any(random));
    pair.index.shrink();
    pair.check();
    CHECK(pair.index.bytes() <= 64 * 16);
  }
}

TEST_CASE("an equality that throws leaves the index as it was") {
  Pair pair;
  pair.index.reserve(1);
  Item* item = pair.add(1);
  CHECK_THROWS_AS(pair.index.find(1, [](const Item&) -> bool { throw 1; }), int);
  CHECK(pair.finds(item));
}
