// History rows (SCD type 2): any order and any batching of one set of change events ends in the same
// intervals, those of the events in order.
#include <keyfold/keyfold.hpp>

#include <algorithm>
#include <random>

#include "support/feeds.hpp"
#include "support/property.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace {

struct Dated {
  int id = 0;
  std::optional<int> a;
  int b = -1;
  int from = 0;
  std::optional<int> to;

  auto operator<=>(const Dated&) const = default;
};

std::string text_of(const std::vector<Dated>& rows) {
  std::string out;
  for (const Dated& row : rows) {
    out += "  id " + std::to_string(row.id) + " [" + std::to_string(row.from) + ", " +
           (row.to ? std::to_string(*row.to) : "") + ") a " + (row.a ? std::to_string(*row.a) : "null") +
           " b " + std::to_string(row.b) + '\n';
  }
  return out;
}

using Hashed = kf::Table<Dated, kf::Key<&Dated::id, &Dated::from>>;
using Ordered = kf::Table<Dated, kf::OrderedKey<&Dated::id, &Dated::from>>;
using Indexed =
    kf::Table<Dated, kf::Key<&Dated::id, &Dated::from>, kf::OrderedBy<&Dated::b>, kf::HashedBy<&Dated::id>>;

enum class Track { all, a };

template <bool ignore, Track tracking>
struct Load {
  static constexpr bool ignores_nulls = ignore;
  static constexpr Track track = tracking;

  template <class Table>
  auto operator()(Table& table, const std::vector<SparseEvent>& batch) const {
    if constexpr (ignore) {
      return history(
          table.apply_changes(batch).template sequence_by<&SparseEvent::seq>().ignore_null_updates(),
          kf::source<&SparseEvent::op> == 'D');
    } else {
      return history(table.apply_changes(dense(batch)).template sequence_by<&FeedEvent::seq>(),
                     kf::source<&FeedEvent::op> == 'D');
    }
  }

  template <class Builder, class Condition>
  static auto history(Builder builder, Condition deletes) {
    auto dated = std::move(builder).apply_as_deletes(deletes).template scd2<&Dated::from, &Dated::to>();
    if constexpr (tracking == Track::a) {
      return std::move(dated).template track<&Dated::a>().execute();
    } else {
      return std::move(dated).execute();
    }
  }
};

// The intervals of the events in order, built one event at a time.
std::vector<Dated> expected_intervals(const std::vector<SparseEvent>& in_order, bool ignore_nulls,
                                      Track track) {
  std::vector<Dated> closed;
  std::map<int, Dated> current;
  for (const SparseEvent& event : in_order) {
    const auto open = current.find(event.id);
    if (event.op == 'D') {
      if (open == current.end()) continue;
      open->second.to = event.seq;
      closed.push_back(open->second);
      current.erase(open);
      continue;
    }
    Dated row{event.id, event.a, event.b.value_or(-1), event.seq, std::nullopt};
    if (open != current.end() && ignore_nulls) {
      if (!event.a) row.a = open->second.a;
      if (!event.b) row.b = open->second.b;
    }
    if (open != current.end() && track == Track::a && open->second.a == row.a) {
      open->second.b = row.b;
      continue;
    }
    if (open != current.end()) {
      open->second.to = event.seq;
      closed.push_back(open->second);
    }
    current[event.id] = row;
  }
  for (const auto& [id, row] : current) closed.push_back(row);
  std::ranges::sort(closed);
  return closed;
}

// No two rows of a key overlap, and no row is empty.
void check_intervals(const std::vector<Dated>& rows) {
  for (const Dated& a : rows) {
    RC_ASSERT((!a.to || a.from < *a.to));
    for (const Dated& b : rows) {
      if (a.id == b.id && a.from < b.from) RC_ASSERT((a.to && *a.to <= b.from));
    }
  }
}

template <class Table, class Load>
void check_random_feeds(int size, int count) {
  check_property("shuffled history feed", count, [&](unsigned seed) {
    std::mt19937 random(seed);
    const Load load;
    const auto in_order =
        random_events(random, 1 + static_cast<int>(random() % static_cast<unsigned>(size)), false);
    auto shuffled = in_order;
    std::ranges::shuffle(shuffled, random);

    Table table;
    in_batches(random, shuffled, [&](const auto& batch) {
      const std::size_t before = table.size();
      const auto result = load(table, batch);
      RC_ASSERT(result.metrics().source_rows == batch.size());
      RC_ASSERT(result.metrics().dropped_late == 0U);
      RC_ASSERT(table.size() == before + result.metrics().inserted - result.metrics().deleted);
      RC_ASSERT(result.committed() == (result.metrics().affected() != 0));
      check_intervals(sorted_rows(table));
    });
    const auto expected = expected_intervals(in_order, Load::ignores_nulls, Load::track);
    auto got = sorted_rows(table);
    std::ranges::sort(got);
    if (got != expected) {
      RC_FAIL("events as they came\n" + text_of(shuffled) + "expected\n" + text_of(expected) + "got\n" +
              text_of(got));
    }
    // Told again, in order, they change nothing.
    RC_ASSERT(!load(table, in_order).committed());
  });
}

// A table loaded by other means, with intervals from events, goes on as if fed with these.
template <class Table, class Load>
void check_loaded_rows(int count) {
  check_property("history rows that were loaded", count, [&](unsigned seed) {
    std::mt19937 random(seed);
    const Load load;
    auto events = random_events(random, 16, false);
    std::vector<SparseEvent> loaded;
    std::vector<SparseEvent> fed;
    for (const auto& event : events) (random() % 2 == 0 ? loaded : fed).push_back(event);
    // A delete that ends no row leaves no trace in the rows, so none of these.
    std::map<int, bool> live;
    std::erase_if(loaded, [&](const SparseEvent& event) {
      const bool idle = event.op == 'D' && !live[event.id];
      live[event.id] = event.op == 'U';
      return idle;
    });
    Table table;
    table.append(expected_intervals(loaded, false, Track::all));
    std::vector<SparseEvent> in_order = loaded;
    in_order.insert(in_order.end(), fed.begin(), fed.end());
    std::ranges::sort(in_order, {}, &SparseEvent::seq);
    std::ranges::shuffle(fed, random);
    in_batches(random, fed, [&](const auto& batch) { load(table, batch); });
    const auto expected = expected_intervals(in_order, false, Track::all);
    std::vector<Dated> touched;
    if (sorted_rows(table) != expected) {
      RC_FAIL("loaded\n" + text_of(loaded) + "fed\n" + text_of(fed) + "expected\n" + text_of(expected) +
              "got\n" + text_of(sorted_rows(table)));
    }
  });
}

template <class Load>
void check_all_orders(int events, unsigned seeds) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    const Load load;
    auto in_order = random_events(random, events, false);
    for (SparseEvent& event : in_order) event.id = 1;
    const auto expected = expected_intervals(in_order, Load::ignores_nulls, Load::track);
    std::vector<std::size_t> order(in_order.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      std::vector<SparseEvent> shuffled;
      for (const std::size_t i : order) shuffled.push_back(in_order[i]);
      for (const std::size_t size : {std::size_t{1}, order.size()}) {
        Hashed table;
        for (std::size_t at = 0; at < shuffled.size(); at += size) {
          const auto first = shuffled.begin() + static_cast<std::ptrdiff_t>(at);
          load(table, {first, first + static_cast<std::ptrdiff_t>(std::min(size, shuffled.size() - at))});
        }
        INFO("seed " << seed << "\ncame\n"
                     << text_of(shuffled) << "expected\n"
                     << text_of(expected) << "got\n"
                     << text_of(sorted_rows(table)));
        REQUIRE(sorted_rows(table) == expected);
      }
    } while (std::ranges::next_permutation(order).found);
  }
}

}  // namespace

template <>
struct keyfold::columns_of<Dated>
    : keyfold::Columns<&Dated::id, &Dated::a, &Dated::b, &Dated::from, &Dated::to> {};

TEST_CASE("history rows are those of the events in order") {
  check_random_feeds<Hashed, Load<false, Track::all>>(8, 2000);
  check_random_feeds<Ordered, Load<false, Track::all>>(40, 300);
  check_random_feeds<Indexed, Load<false, Track::all>>(40, 300);
}

TEST_CASE("history rows of a feed that ignores nulls are those of the events in order") {
  check_random_feeds<Hashed, Load<true, Track::all>>(8, 2000);
  check_random_feeds<Indexed, Load<true, Track::all>>(40, 300);
}

TEST_CASE("history rows of tracked columns are those of the events in order") {
  check_random_feeds<Hashed, Load<false, Track::a>>(8, 2000);
  check_random_feeds<Ordered, Load<false, Track::a>>(40, 300);
}

TEST_CASE("history rows of tracked columns, nulls ignored, are those of the events in order") {
  check_random_feeds<Hashed, Load<true, Track::a>>(8, 2000);
  check_random_feeds<Indexed, Load<true, Track::a>>(40, 300);
}

TEST_CASE("history rows that were loaded by other means take part as events") {
  check_loaded_rows<Hashed, Load<false, Track::all>>(1000);
  check_loaded_rows<Ordered, Load<false, Track::all>>(300);
}

TEST_CASE("all permutations of a few events of a key end in the same history rows") {
  check_all_orders<Load<false, Track::all>>(5, static_cast<unsigned>(scaled(10)));
  check_all_orders<Load<true, Track::a>>(5, static_cast<unsigned>(scaled(10)));
}
