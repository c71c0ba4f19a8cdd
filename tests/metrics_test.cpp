#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

struct Item {
  int id = 0;
  char op = ' ';
  int value = 0;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (id, op, value))

using Items = kf::Table<Item, kf::Key<&Item::id>>;

Items some_items() {
  Items items;
  items.append({{1, ' ', 10}, {2, ' ', 20}, {3, ' ', 30}, {4, ' ', 40}, {5, ' ', 50}, {6, ' ', 60}});
  return items;
}

// The identities of metrics.hpp, for a merge by key whose not-matched-by-source updates all change their
// rows.
void check_identities(const kf::Metrics& m, std::size_t size_before, std::size_t size_after,
                      std::size_t extra_erasers = 0) {
  CHECK(size_after == size_before + m.inserted - m.deleted);
  CHECK(m.affected() == m.inserted + m.updated + m.deleted);
  CHECK(m.updated == m.matched_updated + m.not_matched_by_source_updated);
  CHECK(m.deleted == m.matched_deleted + m.not_matched_by_source_deleted);
  CHECK(m.source_rows == m.inserted + m.matched_updated + m.matched_deleted + m.unchanged + m.skipped +
                             m.dropped_duplicates + m.dropped_late + extra_erasers);
}

constexpr auto rule = kf::merge_rule<Item>()
                          .when_matched(kf::source<&Item::op> == 'D')
                          .erase()
                          .when_matched(kf::source<&Item::op> == 'N')
                          .do_nothing()
                          .when_matched(kf::source<&Item::op> == 'U')
                          .update(kf::target<&Item::value> = kf::source<&Item::value>)
                          .when_not_matched(kf::source<&Item::op> == 'N')
                          .do_nothing()
                          .when_not_matched(kf::source<&Item::op> != '?')
                          .insert_all()
                          .when_not_matched_by_source(kf::target<&Item::id> == 5)
                          .erase()
                          .when_not_matched_by_source(kf::target<&Item::id> == 6)
                          .update(kf::target<&Item::value> = 0);

}  // namespace

TEST_CASE("history counts what its result did, however many rows a commit has") {
  for (const int rows : {1, 255, 256, 257, 70'000}) {
    CAPTURE(rows);
    std::vector<Item> source;
    for (int id = 0; id < rows; ++id) source.push_back({id, ' ', id});
    Items items;
    items.append(source);
    for (Item& item : source) item.value += item.id % 3 == 0 ? 0 : 1;
    source.push_back({-1, ' ', 0});
    items.upsert(source);
    const auto changed = static_cast<std::size_t>(rows - (rows + 2) / 3);
    const kf::Metrics wanted{.source_rows = static_cast<std::size_t>(rows) + 1,
                             .inserted = 1,
                             .updated = changed,
                             .unchanged = static_cast<std::size_t>(rows) - changed,
                             .matched_updated = changed};
    const Items copy = items;
    CHECK(items.history()[0].metrics() == kf::Metrics{.source_rows = static_cast<std::size_t>(rows),
                                                      .inserted = static_cast<std::size_t>(rows)});
    CHECK(items.history()[1].metrics() == wanted);
    CHECK(copy.history()[1].metrics() == wanted);
  }
}

TEST_CASE("packed metrics keep each count, small or large") {
  using kf::detail::metric_fields;
  using kf::detail::PackedMetrics;
  CHECK(PackedMetrics().get() == kf::Metrics());
  kf::Metrics all;
  std::size_t next = 0;
  for (const auto field : metric_fields) all.*field = 244 + next++;
  CHECK(PackedMetrics(all).get() == all);
  CHECK(PackedMetrics(all).bytes() == 0);
  for (const auto field : metric_fields) {
    for (const std::size_t count : {std::size_t{255}, std::size_t{256}, std::size_t{1} << 40U}) {
      kf::Metrics one;
      one.*field = count;
      PackedMetrics packed(one);
      CHECK(packed.get() == one);
      CHECK(packed.bytes() == (count < 256 ? 0 : sizeof(kf::Metrics)));
      const PackedMetrics moved(std::move(packed));
      CHECK(moved.get() == one);
    }
  }
}

TEST_CASE("new metrics are all zero") {
  constexpr kf::Metrics metrics;
  STATIC_REQUIRE(metrics.affected() == 0);
  CHECK(metrics == kf::Metrics());
  CHECK(metrics.source_rows + metrics.unchanged + metrics.skipped + metrics.dropped_late == 0);
}

TEST_CASE("affected adds what was inserted, updated and deleted") {
  kf::Metrics metrics;
  metrics.inserted = 1;
  metrics.updated = 20;
  metrics.deleted = 300;
  metrics.unchanged = 4000;
  metrics.skipped = 50000;
  CHECK(metrics.affected() == 321);
  CHECK_FALSE(metrics == kf::Metrics());
}

TEST_CASE("every kind of outcome is counted once") {
  auto items = some_items();
  const std::vector<Item> rows = {
      {1, 'D', 0},   // deleted
      {2, 'N', 0},   // skipped by do_nothing
      {3, 'U', 31},  // updated
      {4, 'U', 40},  // unchanged
      {7, 'I', 70},  // inserted
      {8, 'N', 80},  // skipped by do_nothing
      {9, '?', 90}   // skipped, no clause
  };
  const auto metrics = items.merge(rows, rule).metrics();
  kf::Metrics expected;
  expected.source_rows = 7;
  expected.inserted = 1;
  expected.updated = 2;
  expected.deleted = 2;
  expected.unchanged = 1;
  expected.skipped = 3;
  expected.matched_updated = 1;
  expected.matched_deleted = 1;
  expected.not_matched_by_source_updated = 1;
  expected.not_matched_by_source_deleted = 1;
  CHECK(metrics == expected);
  check_identities(metrics, 6, items.size());
}

TEST_CASE("dropped duplicates count as source rows") {
  auto items = some_items();
  const std::vector<Item> rows = {{1, ' ', 11}, {7, ' ', 70}, {1, ' ', 12}, {1, ' ', 10}, {7, ' ', 71}};
  const auto metrics = items.merge(rows)
                           .duplicates(kf::keep_last)
                           .when_matched()
                           .update_all()
                           .when_not_matched()
                           .insert_all()
                           .execute()
                           .metrics();
  CHECK(metrics.source_rows == 5);
  CHECK(metrics.dropped_duplicates == 3);
  CHECK(metrics.unchanged == 1);
  CHECK(metrics.inserted == 1);
  check_identities(metrics, 6, items.size());
}

TEST_CASE("rows that fire the same unconditional erase on one target are one deletion") {
  auto items = some_items();
  const std::vector<Item> rows = {{1, ' ', 0}, {1, ' ', 1}, {2, ' ', 0}, {1, ' ', 2}};
  const auto metrics = items.merge(rows).when_matched().erase().execute().metrics();
  CHECK(metrics.source_rows == 4);
  CHECK(metrics.deleted == 2);
  CHECK(metrics.matched_deleted == 2);
  CHECK(metrics.skipped == 0);
  check_identities(metrics, 6, items.size(), 2);
}

TEST_CASE("an update by source that changes nothing is not counted") {
  auto items = some_items();
  const std::vector<Item> rows = {{1, ' ', 0}};
  const auto metrics = items.merge(rows)
                           .when_not_matched_by_source()
                           .update(kf::target<&Item::value> = 20)
                           .execute()
                           .metrics();
  CHECK(metrics.source_rows == 1);
  CHECK(metrics.skipped == 1);
  CHECK(metrics.unchanged == 0);  // row 2 is no source row
  CHECK(metrics.updated == 4);    // rows 3 to 6
  CHECK(metrics.not_matched_by_source_updated == 4);
  CHECK(metrics.matched_updated == 0);
}

TEST_CASE("a merge by a secondary index counts target rows, not pairs") {
  kf::Table<Item, kf::Key<&Item::id>, kf::HashedBy<&Item::op>> items;
  items.append({{1, 'a', 0}, {2, 'a', 0}, {3, 'b', 5}, {4, 'c', 0}});
  const std::vector<Item> rows = {{0, 'a', 5}, {0, 'b', 5}, {0, 'z', 5}};
  const auto metrics = items.merge(rows)
                           .on<&Item::op>(kf::by<&Item::op>)
                           .when_matched()
                           .update(kf::target<&Item::value> = kf::source<&Item::value>)
                           .execute()
                           .metrics();
  CHECK(metrics.source_rows == 3);
  CHECK(metrics.matched_updated == 2);
  CHECK(metrics.unchanged == 1);
  CHECK(metrics.skipped == 1);
}

TEST_CASE("append, insert and clear count their rows") {
  Items items;
  const auto appended = items.append({{1, ' ', 1}, {2, ' ', 2}}).metrics();
  CHECK(appended.source_rows == 2);
  CHECK(appended.inserted == 2);
  check_identities(appended, 0, items.size());

  const auto inserted = items.insert({3, ' ', 3}).metrics();
  CHECK(inserted.source_rows == 1);
  CHECK(inserted.inserted == 1);
  check_identities(inserted, 2, items.size());

  const auto cleared = items.clear().metrics();
  CHECK(cleared.source_rows == 0);
  CHECK(cleared.deleted == 3);
  CHECK(cleared.not_matched_by_source_deleted == 3);
  check_identities(cleared, 3, items.size());
}

TEST_CASE("erase counts its key as a source row") {
  auto items = some_items();
  const auto erased = items.erase(1).metrics();
  CHECK(erased.source_rows == 1);
  CHECK(erased.matched_deleted == 1);
  CHECK(erased.skipped == 0);
  check_identities(erased, 6, items.size());

  const auto absent = items.erase(1).metrics();
  CHECK(absent.source_rows == 1);
  CHECK(absent.skipped == 1);
  check_identities(absent, 5, items.size());
}

TEST_CASE("the metrics of a commit are those of its result") {
  auto items = some_items();
  const auto result = items.upsert({{1, 'x', 1}, {9, 'y', 2}, {2, ' ', 20}});
  CHECK(items.history().back().metrics() == result.metrics());
  CHECK(result.metrics().unchanged == 1);
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().inserted == 1);
}
