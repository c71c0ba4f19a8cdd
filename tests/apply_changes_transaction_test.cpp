// Change events loaded inside transactions: what is remembered of them comes with the commit, or not at all.
#include <keyfold/keyfold.hpp>

#include <algorithm>
#include <random>

#include "support/feeds.hpp"
#include "support/property.hpp"
#include "support/rows.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace {

using Table = kf::Table<FeedRow, kf::Key<&FeedRow::id>>;
using Events = std::vector<SparseEvent>;

template <class Target>
auto load(Target& target, Events events) {
  return target.apply_changes(std::move(events))
      .template sequence_by<&SparseEvent::seq>()
      .apply_as_deletes(kf::source<&SparseEvent::op> == 'D')
      .apply_as_truncates(kf::source<&SparseEvent::op> == 'T')
      .ignore_null_updates()
      .execute();
}

SparseEvent set(int id, int seq) { return {id, 'U', 1, 1, seq}; }
SparseEvent gone(int id, int seq) { return {id, 'D', {}, {}, seq}; }

bool is_late(Table& table, const SparseEvent& event) {
  return load(table, {event}).metrics().dropped_late == 1;
}

}  // namespace

TEST_CASE("a committed transaction remembers its deletes, a rolled back one does not") {
  Table table;
  load(table, {gone(1, 5)});
  auto kept = table.transaction();
  load(kept, {gone(2, 5), set(3, 5)});
  kept.commit();
  auto given_up = table.transaction();
  load(given_up, {gone(4, 5)});
  given_up.rollback();
  CHECK(is_late(table, set(1, 4)));
  CHECK(is_late(table, set(2, 4)));
  CHECK(is_late(table, set(3, 4)));
  CHECK_FALSE(is_late(table, set(4, 4)));
}

TEST_CASE("a transaction that only remembers makes no version") {
  Table table;
  auto tx = table.transaction();
  load(tx, {gone(1, 5)});
  CHECK_FALSE(tx.commit().committed());
  CHECK(table.version() == 0);
  CHECK(is_late(table, set(1, 4)));
}

TEST_CASE("loads inside a transaction see what its earlier loads and the table remember") {
  Table table;
  load(table, {gone(1, 5), set(2, 5)});
  auto tx = table.transaction();
  CHECK(load(tx, {set(1, 4), set(2, 4)}).metrics().dropped_late == 2);
  load(tx, {gone(3, 5)});
  CHECK(load(tx, {set(3, 4)}).metrics().dropped_late == 1);
  load(tx, {{0, 'T', {}, {}, 9}});
  CHECK(tx.empty());
  CHECK(table.size() == 1);
  tx.commit();
  CHECK(table.empty());
  CHECK(is_late(table, set(7, 8)));
}

TEST_CASE("a preview of a transaction remembers nothing") {
  Table table;
  auto tx = table.transaction();
  load(tx, {gone(1, 5)});
  CHECK(tx.preview().empty());
  CHECK(tx.apply_changes(Events{set(9, 1)})
            .sequence_by<&SparseEvent::seq>()
            .ignore_null_updates()
            .preview()
            .size() == 1);
  tx.rollback();
  CHECK_FALSE(is_late(table, set(1, 4)));
}

TEST_CASE("a load that fails inside a transaction leaves what it remembers as it was") {
  Table table;
  auto tx = table.transaction();
  load(tx, {gone(1, 5)});
  const auto fails = [](const SparseEvent& event) {
    if (event.id == 9) throw 7;
    return event.op == 'D';
  };
  CHECK_THROWS_AS(tx.apply_changes(Events{gone(2, 5), set(9, 5)})
                      .sequence_by<&SparseEvent::seq>()
                      .ignore_null_updates()
                      .apply_as_deletes(fails)
                      .execute(),
                  int);
  tx.commit();
  CHECK(is_late(table, set(1, 4)));
  CHECK_FALSE(is_late(table, set(2, 4)));
}

TEST_CASE("a load of the table beside a transaction conflicts with it, even if it only remembers") {
  Table table;
  auto tx = table.transaction();
  load(tx, {gone(1, 5)});
  load(table, {gone(2, 5)});
  CHECK(table.version() == 0);
  CHECK_THROWS_AS(tx.commit(), kf::TransactionConflict);
  CHECK(is_late(table, set(2, 4)));
}

TEST_CASE("tombstones inside a transaction go by the clock of the table") {
  auto now = kf::Timestamp(std::chrono::seconds(100));
  kf::TableOptions options;
  options.clock = [&] { return now; };
  Table table(options);
  auto tx = table.transaction();
  load(tx, {gone(1, 5)});
  tx.commit();
  const auto forget = [&] {
    table.apply_changes(Events{})
        .sequence_by<&SparseEvent::seq>()
        .ignore_null_updates()
        .tombstones(kf::keep_for(std::chrono::seconds(10)))
        .execute();
  };
  now += std::chrono::seconds(10);
  forget();
  CHECK(is_late(table, set(1, 4)));
  now += std::chrono::seconds(1);
  forget();
  CHECK_FALSE(is_late(table, set(1, 4)));
}

TEST_CASE("a feed in any order, batches and transactions ends in the rows of the events in order") {
  check_property("shuffled feed in transactions", 1000, [](unsigned seed) {
    std::mt19937 random(seed);
    const auto in_order = random_events(random, 1 + static_cast<int>(random() % 20), true);
    auto shuffled = in_order;
    std::ranges::shuffle(shuffled, random);
    Table table;
    in_batches(random, shuffled, [&](const auto& batch) {
      auto tx = table.transaction();
      in_batches(random, batch, [&](const auto& part) { load(tx, part); });
      if (random() % 3 == 0) {
        tx.rollback();
        load(table, batch);
      } else {
        tx.commit();
      }
    });
    RC_ASSERT(sorted_rows(table) == expected_rows({}, in_order, true));
  });
}
