#include <keyfold/detail/key_index.hpp>

#include <algorithm>
#include <deque>
#include <random>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/faults.hpp"
#include "support/property.hpp"

using keyfold::detail::Hashed;
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
    index.add(hash, &item);
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

// Whatever the size of a segment, these begin probing at its last places and go on at its first ones.
std::uint64_t at_the_end(std::mt19937_64& random) { return ~std::uint64_t{0} - random() % 4; }
std::uint64_t spread(std::mt19937_64& random) { return random(); }
std::uint64_t few(std::mt19937_64& random) { return random() % 5 * 0x9E3779B97F4A7C15U; }
std::uint64_t one_home(std::mt19937_64& random) { return random() << 40U; }
std::uint64_t one_segment(std::mt19937_64& random) { return random() >> 20U; }
std::uint64_t neighbours(std::mt19937_64& random) { return random() % 64; }
std::uint64_t all_equal(std::mt19937_64&) { return 42; }

const std::vector<std::pair<const char*, MakeHash>> distributions{
    {"spread", &spread},           {"few", &few},
    {"one home", &one_home},       {"neighbours", &neighbours},
    {"at the end", &at_the_end},   {"all equal", &all_equal},
    {"one segment", &one_segment},
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
  index.reserve(0, [](auto) {});
  index.presize(0);
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

// 12 items are the most that 16 places take, 3072 the most of a segment: then it splits.
TEST_CASE("items are found, erased and replaced at every step of growth") {
  for (const auto& [name, make_hash] : distributions) {
    std::mt19937_64 random(7);
    for (const std::size_t size : {11U, 12U, 13U, 47U, 48U, 49U, 50U}) {
      INFO(name << ", " << size << " items");
      Pair pair;
      for (std::size_t i = 0; i < size; ++i) pair.add(make_hash(random));
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

// Hashes that differ in few bits let segments grow instead of splitting.
TEST_CASE("an index of many segments finds what an unordered_multimap finds") {
  for (const auto& [name, make_hash] : distributions) {
    if (std::string_view(name) == "all equal" || std::string_view(name) == "few" ||
        std::string_view(name) == "neighbours" || std::string_view(name) == "at the end" ||
        std::string_view(name) == "one home")
      continue;  // long runs make this quadratic
    INFO(name);
    std::mt19937_64 random(11);
    Pair pair;
    for (int i = 0; i < 20'000; ++i) pair.add(make_hash(random));
    pair.check();
    while (pair.model.size() > 5'000) pair.erase(pair.model.begin()->second);
    pair.gone.clear();
    pair.check();
    for (int i = 0; i < 20'000; ++i) pair.add(make_hash(random));
    pair.check();
    std::size_t visited = 0;
    pair.index.for_each(
        [&](std::uint64_t hash, const Item& item) { visited += item.hash == hash ? 1U : 0U; });
    CHECK(visited == pair.model.size());
  }
}

TEST_CASE("an index made for many items has room for nearly all of them at once") {
  for (const std::size_t count : {1U, 12U, 13U, 3072U, 3073U, 100'000U}) {
    INFO(count);
    KeyIndex<Item> index;
    index.presize(count);
    const std::size_t bytes = index.bytes();
    std::mt19937_64 random(12);
    std::vector<Item> items(count);
    for (Item& item : items) index.add(item.hash = spread(random), &item);
    CHECK(index.size() == count);
    CHECK(index.bytes() <= bytes + bytes / 4);
    CHECK(index.bytes() <= count * 48 + 512);
  }
}

TEST_CASE("an index with few items makes room for many at once as well as an empty one does") {
  for (const std::size_t before : {1U, 40U, 5000U}) {
    INFO(before);
    std::mt19937_64 random(16);
    std::vector<Item> items(before + 100'000);
    for (Item& item : items) item.hash = spread(random);
    KeyIndex<Item> index;
    for (std::size_t i = 0; i < before; ++i) index.add(items[i].hash, &items[i]);
    int rounds = 0;
    index.reserve(items.size() - before, [&](auto visit) {
      ++rounds;
      for (std::size_t i = before; i < items.size(); ++i) visit(items[i].hash);
    });
    CHECK(rounds <= 4);
    CHECK(index.bytes() <= items.size() * 48);
    for (std::size_t i = before; i < items.size(); ++i) index.insert(items[i].hash, &items[i]);
    std::size_t most = 0;  // what is asked for later is no more than two segments either
    for (int i = 0; i < 100'000; ++i) {
      const std::size_t bytes = index.bytes();
      index.add(spread(random), &items.front());
      most = std::max(most, index.bytes() - bytes);
    }
    CHECK(most <= 128 * 1024);
  }
}

TEST_CASE("a growth costs a part of the index, not the whole") {
  std::mt19937_64 random(14);
  std::vector<Item> items(200'000);
  KeyIndex<Item> index;
  std::size_t most = 0;
  for (Item& item : items) {
    const std::size_t before = index.bytes();
    index.add(item.hash = spread(random), &item);
    most = std::max(most, index.bytes() - before);
  }
  CHECK(most <= 128 * 1024);  // of some 5 MiB
}

TEST_CASE("an item is not added where an equal one is") {
  Item one{7, 1};
  Item same{7, 1};
  Item other{7, 2};
  const auto equals = [](const Item& item) {
    return [&item](const Item& there) { return there.number == item.number; };
  };
  KeyIndex<Item> index;
  CHECK(index.add_if_new(7, &one, equals(one)) == nullptr);
  CHECK(index.add_if_new(7, &same, equals(same)) == &one);
  CHECK(index.add_if_new(7, &other, equals(other)) == nullptr);
  CHECK(index.size() == 2);
  CHECK_THROWS_AS(index.add_if_new(7, &same, [](const Item&) -> bool { throw 1; }), int);
  CHECK(index.size() == 2);
}

TEST_CASE("many items are added at once, and one that is there already is found") {
  std::mt19937_64 random(15);
  std::vector<Item> items(10'000);
  std::vector<Hashed<Item>> hashed;
  for (Item& item : items) hashed.push_back({item.hash = spread(random), &item});
  std::vector<Hashed<Item>> sorted(hashed.size());
  const auto same_hash = [](const Item& a, const Item& b) { return a.hash == b.hash; };
  KeyIndex<Item> index;
  CHECK(index.add_new(hashed, sorted, same_hash) == nullptr);
  CHECK(index.size() == items.size());
  const bool all = std::ranges::all_of(items, [&](const Item& item) {
    return index.find(item.hash, [&](const Item& found) { return &found == &item; }) != nullptr;
  });
  CHECK(all);
  Item twin = items[77];
  const std::vector<Hashed<Item>> again{{twin.hash, &twin}};
  CHECK(index.add_new(again, sorted, same_hash) == &twin);
  CHECK(index.size() == items.size());
}

TEST_CASE("items of one hash and one key live side by side") {
  Pair pair;
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
  only = pair.add(std::uint64_t{1} << 40U);  // of a hash that is half the same, an item or none will do
  const Item* half = pair.index.candidate(std::uint64_t{1} << 41U);
  CHECK((half == nullptr || half->hash % 64 == 0));
  CHECK(pair.index.find(std::uint64_t{1} << 41U, [](const Item&) { return true; }) == nullptr);
  CHECK(pair.finds(only));
}

TEST_CASE("after reserve() nothing allocates, and nothing can fail") {
  static_assert(noexcept(std::declval<KeyIndex<Item>&>().insert(0, nullptr)));
  static_assert(noexcept(std::declval<KeyIndex<Item>&>().erase(0, nullptr)));
  static_assert(noexcept(std::declval<KeyIndex<Item>&>().replace(0, nullptr, nullptr)));
  for (const auto& [name, make_hash] : distributions) {
    for (const std::size_t first : {0U, 5U, 48U, 4000U}) {
      if (first == 4000U && std::string_view(name) != "spread" && std::string_view(name) != "one segment")
        continue;
      INFO(name << ", beside " << first);
      std::mt19937_64 random(5);
      std::vector<Item> items(first + 5000);
      if (first != 4000U) items.resize(first + 100);
      for (Item& item : items) item.hash = make_hash(random);
      std::vector<Item> others = items;
      KeyIndex<Item> index;
      for (std::size_t i = 0; i < first; ++i) index.add(items[i].hash, &items[i]);
      index.reserve(items.size() - first, [&](auto visit) {
        for (std::size_t i = first; i < items.size(); ++i) visit(items[i].hash);
      });

      Faults::count();
      for (std::size_t i = first; i < items.size(); ++i) index.insert(items[i].hash, &items[i]);
      for (std::size_t i = 0; i < items.size(); ++i) index.replace(items[i].hash, &items[i], &others[i]);
      for (std::size_t i = 0; i < items.size(); ++i) index.erase(items[i].hash, &others[i]);
      CHECK(Faults::disarm() == 0);
      CHECK(index.size() == 0);
    }
  }
}

TEST_CASE("a growth that fails changes nothing, whichever allocation fails") {
  for (const std::size_t size : {12U, 48U, 3072U, 6000U}) {
    INFO(size);
    std::mt19937_64 random(6);
    Pair pair;
    for (std::size_t i = 0; i < size; ++i) pair.add(spread(random));
    std::vector<std::uint64_t> hashes(4000);
    for (std::uint64_t& hash : hashes) hash = spread(random);
    const auto reserve = [&] {
      pair.index.reserve(hashes.size(), [&](auto visit) {
        for (const std::uint64_t hash : hashes) visit(hash);
      });
    };
    std::uint64_t failures = 0;
    for (bool done = false; !done;) {
      Faults::arm(1 + failures % 3, FaultMode::single);
      try {
        reserve();
        done = true;
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      Faults::disarm();
      pair.check();
    }
    CHECK(failures > 0);
    for (const std::uint64_t hash : hashes) pair.add(hash);
    pair.check();
  }
}

TEST_CASE("shrink() gives memory back and keeps what is there") {
  for (const auto& [name, make_hash] : distributions) {
    INFO(name);
    std::mt19937_64 random(13);
    Pair pair;
    pair.index.shrink();
    CHECK(pair.index.bytes() == 0);
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
    for (int i = 0; i < 30; ++i) pair.add(make_hash(random));
    pair.check();
    while (!pair.model.empty()) pair.erase(pair.any(random));
    pair.index.shrink();
    pair.check();
    pair.add(1);
    pair.check();
  }
}

TEST_CASE("a shrunk index makes room for many at once") {
  for (const std::size_t kept : {1U, 100U, 300U}) {
    INFO(kept);
    std::mt19937_64 random(18);
    std::vector<Item> items(3000 + 600);
    for (Item& item : items) item.hash = spread(random);
    KeyIndex<Item> index;
    for (std::size_t i = 0; i < 3000; ++i) index.add(items[i].hash, &items[i]);
    for (std::size_t i = kept; i < 3000; ++i) index.erase(items[i].hash, &items[i]);
    index.shrink();
    index.reserve(600, [&](auto visit) {
      for (std::size_t i = 3000; i < items.size(); ++i) visit(items[i].hash);
    });
    CHECK(index.bytes() >= (kept + 600) * 64 / 3);  // three quarters full at the most
    for (std::size_t i = 3000; i < items.size(); ++i) index.insert(items[i].hash, &items[i]);
    CHECK(index.size() == kept + 600);
  }
}

TEST_CASE("an equality that throws leaves the index as it was") {
  Pair pair;
  Item* item = pair.add(1);
  CHECK_THROWS_AS(pair.index.find(1, [](const Item&) -> bool { throw 1; }), int);
  CHECK(pair.finds(item));
}
