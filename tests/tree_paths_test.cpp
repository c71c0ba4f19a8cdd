#include <keyfold/detail/tree_paths.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/multi_index/identity.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index_container.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

using Tree =
    boost::multi_index_container<int, boost::multi_index::indexed_by<boost::multi_index::ordered_non_unique<
                                          boost::multi_index::identity<int>>>>;

static_assert(keyfold::detail::OpenTree<Tree>, "ordered indexes are no longer loaded ahead");

}  // namespace

TEST_CASE("a path leads to the elements on both sides of a key") {
  std::mt19937 random(20261201);
  Tree tree;
  std::set<int> model;
  for (int i = 0; i < 3'000; ++i) {
    const int value = static_cast<int>(random() % 100'000);
    if (model.insert(value).second) tree.insert(value);
  }
  for (std::size_t count = 1; count <= keyfold::detail::paths_at_once; ++count) {
    std::vector<int> keys;
    for (std::size_t i = 0; i < count; ++i) keys.push_back(static_cast<int>(random() % 100'000));
    std::vector<std::set<int>> passed(count);
    keyfold::detail::load_paths(tree, count, [&](std::size_t i, int element) {
      passed[i].insert(element);
      return keys[i] < element;
    });
    for (std::size_t i = 0; i < count; ++i) {
      const auto after = model.upper_bound(keys[i]);
      if (after != model.end()) CHECK(passed[i].contains(*after));
      if (after != model.begin()) CHECK(passed[i].contains(*std::prev(after)));
      CHECK(passed[i].size() <= 24);  // twice the logarithm of 3,000
    }
  }
}

TEST_CASE("an empty tree has no path") {
  keyfold::detail::load_paths(Tree(), 3, [](std::size_t, int) -> bool { throw 1; });
  SUCCEED();
}

// Boost.MultiIndex would look at all rows after each insertion.
#if !defined(BOOST_MULTI_INDEX_ENABLE_INVARIANT_CHECKING)

namespace {

// Comparisons of it can be counted, and made to fail.
struct Rank {
  int value = 0;
  friend bool operator==(const Rank&, const Rank&) = default;
  friend bool operator<(const Rank& a, const Rank& b) {
    ++comparisons;
    if (comparisons == failing) throw 42;
    return a.value < b.value;
  }
  inline static std::uint64_t comparisons = 0;
  inline static std::uint64_t failing = 0;
};

struct Player {
  int id = 0;
  Rank rank;
  int games = 0;
  bool operator==(const Player&) const = default;
};

using Ranking =
    kf::Table<Player, kf::Key<&Player::id>, kf::OrderedBy<&Player::rank>, kf::OrderedBy<&Player::games>>;
using ByRank = kf::Table<Player, kf::OrderedKey<&Player::id>, kf::OrderedBy<&Player::rank, &Player::id>>;

// Larger than what is not loaded ahead.
constexpr int many = 20'000;
static_assert(many > keyfold::detail::smallest_tree_to_load);

std::vector<Player> players(std::mt19937& random, int first, int count) {
  std::vector<Player> out;
  for (int id = first; id < first + count; ++id)
    out.push_back({id, {static_cast<int>(random() % 5'000)}, static_cast<int>(random() % 100)});
  return out;
}

// As the model has them, and each index in its order.
template <class Table>
void check_same(const Table& table, const std::map<int, Player>& model) {
  REQUIRE(table.size() == model.size());
  const auto& by_rank = [&]() -> decltype(auto) {
    if constexpr (std::is_same_v<Table, Ranking>) {
      return table.template by<&Player::rank>();
    } else {
      return table.template by<&Player::rank, &Player::id>();
    }
  }();
  int last = -1;
  std::size_t in_order = 0;
  for (const Player& player : by_rank) {
    in_order += player.rank.value >= last ? 1U : 0U;
    last = player.rank.value;
    const auto wanted = model.find(player.id);
    REQUIRE(wanted != model.end());
    REQUIRE(wanted->second == player);
  }
  CHECK(in_order == model.size());
}

template <class Table>
void check_random_writes() {
  std::mt19937 random(20261201);
  Table table;
  std::map<int, Player> model;
  const std::vector<Player> first = players(random, 0, many);
  table.append(first);
  for (const Player& player : first) model[player.id] = player;
  for (int round = 0; round < 20; ++round) {
    std::vector<Player> batch = players(random, many + round * 50, 50);
    for (int i = 0; i < 100; ++i) {
      const int id = static_cast<int>(random() % static_cast<unsigned>(many));
      const auto same_id = [&](const Player& player) { return player.id == id; };
      if (std::ranges::none_of(batch, same_id))
        batch.push_back({id, {static_cast<int>(random() % 5'000)}, 7});
    }
    std::ranges::shuffle(batch, random);
    table.merge(batch)
        .when_matched(kf::source<&Player::rank> == kf::target<&Player::rank>)
        .do_nothing()
        .when_matched([](const Player& old, const Player&) { return old.games % 3 == 0; })
        .erase()
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .execute();
    for (const Player& player : batch) {
      const auto old = model.find(player.id);
      if (old == model.end()) {
        model[player.id] = player;
      } else if (old->second.rank == player.rank) {
        continue;
      } else if (old->second.games % 3 == 0) {
        model.erase(old);
      } else {
        old->second = player;
      }
    }
  }
  check_same(table, model);
}

}  // namespace

TEST_CASE("writes to large tables with ordered indexes are right") {
  check_random_writes<Ranking>();
  check_random_writes<ByRank>();
}

TEST_CASE("rows that come together have their paths loaded, a single one has not") {
  std::mt19937 random(20261201);
  Ranking table;
  table.append(players(random, 0, many));
  const std::vector<Player> added = players(random, many, 32);
  Ranking one_by_one = table;
  Rank::comparisons = 0;
  for (const Player& player : added) one_by_one.insert(player);
  const std::uint64_t single = Rank::comparisons;
  Rank::comparisons = 0;
  table.append(added);
  CHECK(Rank::comparisons > single * 3 / 2);  // each path is gone down twice
  CHECK(Rank::comparisons < single * 3);
}

TEST_CASE("a comparison that throws while paths are loaded changes nothing") {
  std::mt19937 random(20261201);
  Ranking table;
  const std::vector<Player> rows = players(random, 0, many);
  table.append(rows);
  std::map<int, Player> model;
  for (const Player& player : rows) model[player.id] = player;
  std::vector<Player> batch = players(random, many - 20, 40);

  const Ranking before = table;
  int faults = 0;
  for (std::uint64_t nth = 1;; nth += 37, ++faults) {
    Rank::comparisons = 0;
    Rank::failing = nth;
    try {
      table.upsert(batch);
    } catch (int) {
      REQUIRE(table.version() == 1);
      continue;
    }
    break;
  }
  Rank::failing = 0;
  CHECK(faults > 15);  // 40 paths of some 14 comparisons, twice
  CHECK(table.version() == 2);
  for (const Player& player : batch) model[player.id] = player;
  check_same(table, model);
  table.undo(2);
  CHECK(std::ranges::equal(table, before));
}

#endif
