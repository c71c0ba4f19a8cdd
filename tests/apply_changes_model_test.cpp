// Any order and any batching of one set of change events ends in the rows of the events in order.
#include <keyfold/keyfold.hpp>

#include <algorithm>
#include <random>

#include "support/feeds.hpp"
#include "support/property.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace {

using Table = kf::Table<FeedRow, kf::Key<&FeedRow::id>>;
using OrderedTable = kf::Table<FeedRow, kf::OrderedKey<&FeedRow::id>, kf::OrderedBy<&FeedRow::b>>;

template <class Event, class T>
auto feed_of(T& table, std::vector<Event> events) {
  return table.apply_changes(std::move(events))
      .template sequence_by<&Event::seq>()
      .apply_as_deletes(kf::source<&Event::op> == 'D')
      .apply_as_truncates(kf::source<&Event::op> == 'T');
}

// Loads that agree with expected_rows(). Each takes a batch of sparse events.
struct Dense {
  static constexpr bool ignores_nulls = false;
  template <class T>
  auto operator()(T& table, const std::vector<SparseEvent>& events) const {
    return feed_of(table, dense(events)).execute();
  }
};
struct Sparse {
  static constexpr bool ignores_nulls = true;
  template <class T>
  auto operator()(T& table, const std::vector<SparseEvent>& events) const {
    return feed_of(table, events).ignore_null_updates().execute();
  }
};

void check_counts(const kf::Metrics& m, std::size_t batch, std::size_t before, std::size_t after) {
  RC_ASSERT(m.source_rows == batch);
  RC_ASSERT(after == before + m.inserted - m.deleted);
  RC_ASSERT(m.source_rows == m.inserted + m.matched_updated + m.matched_deleted + m.unchanged + m.skipped +
                                 m.dropped_duplicates + m.dropped_late);
}

template <class T, class Load>
void check_random_feeds(int size, int count) {
  check_property("shuffled feed", count, [&](unsigned seed) {
    std::mt19937 random(seed);
    const Load load;
    const int events = 1 + static_cast<int>(random() % static_cast<unsigned>(size));
    const auto in_order = random_events(random, events, random() % 2 == 0);
    const auto base = random() % 2 == 0 ? random_base(random, events) : std::vector<FeedRow>();
    auto shuffled = in_order;
    std::ranges::shuffle(shuffled, random);

    T table;
    table.append(base);
    in_batches(random, shuffled, [&](const auto& batch) {
      const std::size_t before = table.size();
      const auto preview = table.version();
      const auto result = load(table, batch);
      check_counts(result.metrics(), batch.size(), before, table.size());
      RC_ASSERT(result.committed() == (result.metrics().affected() != 0));
      RC_ASSERT(table.version() - preview == (result.committed() ? 1U : 0U));
    });
    const auto expected = expected_rows(base, in_order, Load::ignores_nulls);
    if (sorted_rows(table) != expected) {
      RC_FAIL("base\n" + text_of(base) + "events as they came\n" + text_of(shuffled) + "expected\n" +
              text_of(expected) + "got\n" + text_of(sorted_rows(table)));
    }
    // Told again, in any order, the events change nothing, not even what another write set meanwhile.
    table.update_where(kf::target<&FeedRow::id> >= 0, kf::target<&FeedRow::note> = 99);
    std::ranges::shuffle(shuffled, random);
    in_batches(random, shuffled, [&](const auto& batch) { RC_ASSERT(!load(table, batch).committed()); });
  });
}

// Every order of a few events, each event a batch of its own, all in one batch, and in two halves.
template <class Load>
void check_all_orders(int events, unsigned seeds) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    const Load load;
    const auto in_order = random_events(random, events, true);
    const auto base = random_base(random, events);
    const auto expected = expected_rows(base, in_order, Load::ignores_nulls);
    std::vector<std::size_t> order(in_order.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      std::vector<SparseEvent> shuffled;
      for (const std::size_t i : order) shuffled.push_back(in_order[i]);
      for (const std::size_t size : {std::size_t{1}, (order.size() + 1) / 2, order.size()}) {
        Table table;
        table.append(base);
        for (std::size_t at = 0; at < shuffled.size(); at += size) {
          const auto first = shuffled.begin() + static_cast<std::ptrdiff_t>(at);
          load(table, {first, first + static_cast<std::ptrdiff_t>(std::min(size, shuffled.size() - at))});
        }
        INFO("seed " << seed << ", batches of " << size << "\n"
                     << text_of(base) << "came\n"
                     << text_of(shuffled) << "expected\n"
                     << text_of(expected) << "got\n"
                     << text_of(sorted_rows(table)));
        REQUIRE(sorted_rows(table) == expected);
      }
    } while (std::ranges::next_permutation(order).found);
  }
}

}  // namespace

TEST_CASE("a feed in any order and any batches ends in the rows of the events in order") {
  check_random_feeds<Table, Dense>(8, 3000);
  check_random_feeds<Table, Dense>(60, 500);
}

TEST_CASE("a feed that ignores nulls ends in the rows of the events in order") {
  check_random_feeds<Table, Sparse>(8, 3000);
  check_random_feeds<Table, Sparse>(60, 500);
}

TEST_CASE("a feed into a table with an ordered key ends in the rows of the events in order") {
  check_random_feeds<OrderedTable, Dense>(20, 500);
  check_random_feeds<OrderedTable, Sparse>(20, 500);
}

TEST_CASE("all permutations of a small feed end in the same rows") {
  check_all_orders<Dense>(5, static_cast<unsigned>(scaled(20)));
}

TEST_CASE("all permutations of a small feed that ignores nulls end in the same rows") {
  check_all_orders<Sparse>(5, static_cast<unsigned>(scaled(20)));
}
