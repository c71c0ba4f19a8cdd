#include <keyfold/keyfold.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory_resource>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using kf::detail::Arena;
using kf::detail::ArenaBlock;
using kf::detail::NodePool;

namespace {

/// Knows every block that it gave away, and can refuse.
class Ledger final : public std::pmr::memory_resource {
 public:
  ~Ledger() override { CHECK(blocks.empty()); }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& [address, block] : blocks) sum += block.first;
    return sum;
  }

  std::map<void*, std::pair<std::size_t, std::size_t>> blocks;
  std::size_t asked = 0;
  std::size_t refuse_at = 0;  // counted from 1

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (++asked == refuse_at) throw std::runtime_error("no more memory");
    void* address = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    blocks.emplace(address, std::pair(bytes, alignment));
    return address;
  }
  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    const auto block = blocks.find(address);
    REQUIRE(block != blocks.end());
    CHECK(block->second == std::pair(bytes, alignment));
    blocks.erase(block);
    std::pmr::new_delete_resource()->deallocate(address, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

struct Item {
  std::int64_t id = 0;
  std::string name;
  std::int64_t group = 0;
  bool operator==(const Item&) const = default;
};
using Items = kf::Table<Item, kf::Key<&Item::id>, kf::HashedBy<&Item::group>, kf::OrderedBy<&Item::name>>;

std::vector<Item> items(std::int64_t from, std::int64_t to, const std::string& name = "n") {
  std::vector<Item> out;
  for (std::int64_t id = from; id < to; ++id) out.push_back({id, name + std::to_string(id), id % 7});
  return out;
}

}  // namespace

TEST_CASE("cells of a pool do not overlap, are aligned, and are used again") {
  for (const auto& [size, alignment] : {std::pair<std::size_t, std::size_t>{8, 8},
                                        {24, 8},
                                        {72, 8},
                                        {144, 16},
                                        {256, 64},
                                        {1000, 8},
                                        {5000, 8}}) {
    INFO(size << " bytes");
    Ledger ledger;
    NodePool pool(ledger, size, alignment);
    std::mt19937_64 random(1);
    std::vector<std::byte*> cells;
    std::set<std::byte*> in_use;
    const std::size_t bytes = size;
    const auto fill = [&](std::byte* cell, std::size_t number) {
      std::memset(cell, static_cast<int>(number % 251), bytes);
    };
    for (int step = 0; step < 4000; ++step) {
      if (random() % 100 < (step % 1000 < 500 ? 80U : 25U) || cells.empty()) {
        auto* cell = static_cast<std::byte*>(pool.allocate());
        REQUIRE(reinterpret_cast<std::uintptr_t>(cell) % alignment == 0);
        const auto above = in_use.lower_bound(cell);
        REQUIRE((above == in_use.end() || *above - cell >= static_cast<std::ptrdiff_t>(size)));
        REQUIRE((above == in_use.begin() || cell - *std::prev(above) >= static_cast<std::ptrdiff_t>(size)));
        in_use.insert(cell);
        fill(cell, cells.size());
        cells.push_back(cell);
      } else {
        const std::size_t at = random() % cells.size();
        in_use.erase(cells[at]);
        pool.deallocate(cells[at]);
        cells[at] = cells.back();
        cells.pop_back();
      }
    }
    CHECK(pool.bytes() == ledger.bytes());
    CHECK(pool.bytes() >= cells.size() * size);
    for (std::byte* cell : cells) pool.deallocate(cell);
    CHECK(ledger.blocks.size() <= 1);
  }
}

TEST_CASE("a pool gives a chunk back when its last cell goes, and fills gaps before it asks for more") {
  Ledger ledger;
  NodePool pool(ledger, 64, 8);
  std::vector<void*> cells;
  for (int i = 0; i < 100'000; ++i) cells.push_back(pool.allocate());
  const std::size_t full = ledger.bytes();
  for (std::size_t i = 0; i < 90'000; ++i) pool.deallocate(cells[i]);  // the oldest
  CHECK(ledger.bytes() < full / 3);                                    // a tenth, and the ends of two chunks
  const std::size_t asked = ledger.asked;
  cells.erase(cells.begin(), cells.begin() + 90'000);
  for (std::size_t i = 0; i < 10'000; i += 2) pool.deallocate(cells[i]);
  const std::size_t before = ledger.bytes();
  for (std::size_t i = 0; i < 10'000; i += 2) cells[i] = pool.allocate();
  CHECK(ledger.asked == asked);
  CHECK(ledger.bytes() == before);
  for (void* cell : cells) pool.deallocate(cell);
}

TEST_CASE("blocks of an arena do not overlap, and may outlive it") {
  Ledger ledger;
  std::vector<ArenaBlock> blocks;
  {
    Arena arena(ledger);
    std::mt19937_64 random(2);
    for (int i = 0; i < 1000; ++i) {
      const std::size_t bytes = random() % 50 == 0 ? random() % 100'000 : random() % 300;
      blocks.push_back(arena.allocate(bytes, i % 3 == 0 ? 64 : 8));
      CHECK(blocks.back().size() == bytes);
      if (bytes != 0) std::memset(blocks.back().data(), i % 251, bytes);
      if (i % 5 == 0) blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size()));
    }
  }
  std::vector<std::pair<std::byte*, std::byte*>> ranges;
  for (const ArenaBlock& block : blocks) {
    if (block.size() != 0) ranges.emplace_back(block.data(), block.data() + block.size());
  }
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i) REQUIRE(ranges[i - 1].second <= ranges[i].first);
  blocks.clear();
  CHECK(ledger.blocks.empty());
}

TEST_CASE("a block that goes at once leaves its place to the next one") {
  Ledger ledger;
  Arena arena(ledger);
  const ArenaBlock first = arena.allocate(100, 8);
  std::byte* place = arena.allocate(100, 8).data();
  for (int i = 0; i < 10'000; ++i) CHECK(arena.allocate(100, 8).data() == place);
  CHECK(ledger.blocks.size() == 1);
}

TEST_CASE("a table takes all its memory from the resource in its options") {
  Ledger ledger;
  {
    Items table({.memory = &ledger});
    table.append(items(0, 5000));
    const std::size_t full = ledger.bytes();
    const auto usage = table.memory_usage();
    CHECK(full >= 5000 * sizeof(Item));
    CHECK(full > usage.rows + usage.indexes);
    CHECK(full < usage.total() + 128 * 1024);  // beside it: free room at the end of the log
    const Items copy = table;
    CHECK(ledger.bytes() > full + full / 2);
    table.upsert(items(2500, 7500, "m"));
    table.erase_where(kf::target<&Item::id> >= 100);
    table.expire(kf::keep_last(1));
    CHECK(table.size() == 100);
    CHECK(copy.size() == 5000);
    Items moved = std::move(table);
    moved.insert({9999, "x", 1});
    CHECK(moved.by<&Item::name>().find("x") != nullptr);
  }
  CHECK(ledger.blocks.empty());
}

TEST_CASE("a resource that throws makes the write throw, and nothing has changed") {
  Ledger ledger;
  Items table({.memory = &ledger});
  table.append(items(0, 1000));
  const std::vector<Item> before(table.begin(), table.end());
  int refused = 0;
  for (std::size_t at = 1;; ++at) {
    ledger.refuse_at = ledger.asked + at;
    try {
      table.upsert(items(500, 3000, "k"));
      break;
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()) == "no more memory");
      ++refused;
    }
    REQUIRE(std::ranges::equal(table, before));
    REQUIRE(table.version() == 1);
    REQUIRE(table.find(2000) == nullptr);
    REQUIRE(table.by<&Item::group>().find(3) != nullptr);
  }
  ledger.refuse_at = 0;
  CHECK(refused > 3);
  CHECK(table.size() == 3000);
  CHECK(table.version() == 2);
}

TEST_CASE("a copied table that has shrunk takes many rows at once") {
  kf::Table<Item, kf::Key<&Item::id>> table;
  table.append(items(0, 3000));
  auto copy = table;
  copy.erase_where(kf::target<&Item::id> >= 100);
  copy.expire(kf::keep_last(1));
  copy.append(items(3000, 3600));
  CHECK(copy.size() == 700);
  CHECK(copy.find(3599) != nullptr);
}

TEST_CASE("what a table holds does not hang on the default resource of the moment") {
  Ledger ledger;
  const auto before = std::pmr::get_default_resource();
  Items table({.memory = &ledger});
  std::pmr::set_default_resource(std::pmr::null_memory_resource());
  table.append(items(0, 100));
  auto transaction = table.transaction();
  transaction.upsert(items(50, 150, "t"));
  transaction.commit();
  int told = 0;
  const auto subscription = table.subscribe([&](const kf::Commit<Item>&) { ++told; });
  table.erase(1);
  std::pmr::set_default_resource(before);
  CHECK(table.size() == 149);
  CHECK(told == 1);
}

TEST_CASE("a merge that changes nothing asks for no memory that grows with the table") {
  std::size_t asked_of_small = 0;
  for (const std::int64_t size : {10'000, 100'000}) {
    Ledger ledger;
    Items table({.memory = &ledger});
    table.append(items(0, size));
    const std::size_t bytes = ledger.bytes();
    const std::size_t asked = ledger.asked;
    CHECK(table.upsert(items(0, 1000)).metrics().unchanged == 1000);
    CHECK(ledger.bytes() == bytes);
    if (asked_of_small == 0) asked_of_small = ledger.asked - asked + 1;
    CHECK(ledger.asked - asked + 1 == asked_of_small);
  }
}
