// apply_changes() for history rows (SCD type 2); that order and batches do not matter is tested by
// apply_changes_history_model_test.cpp.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Product {
  std::string sku{};
  std::string name{};
  int stock = 0;
  int from = 0;
  std::optional<int> to{};

  bool operator==(const Product&) const = default;
};
BOOST_DESCRIBE_STRUCT(Product, (), (sku, name, stock, from, to))

struct Event {
  std::string sku{};
  char op = 'U';
  std::string name{};
  int stock = 0;
  int day = 0;
};
BOOST_DESCRIBE_STRUCT(Event, (), (sku, op, name, stock, day))

struct Patch {
  std::string sku;
  std::optional<std::string> name;
  std::optional<int> stock;
  int day = 0;
};
BOOST_DESCRIBE_STRUCT(Patch, (), (sku, name, stock, day))

struct Noted {
  std::string sku{};
  std::string name{};
  std::string note = "none";
  int from = 0;
  std::optional<int> to{};
  bool operator==(const Noted&) const = default;
};
BOOST_DESCRIBE_STRUCT(Noted, (), (sku, name, note, from, to))

struct Counting {
  std::string sku;
  std::int64_t stock = 0;
  int day = 0;
};
BOOST_DESCRIBE_STRUCT(Counting, (), (sku, stock, day))

using Products = kf::Table<Product, kf::OrderedKey<&Product::sku, &Product::from>>;
using Events = std::vector<Event>;
using Rows = std::vector<Product>;
constexpr std::nullopt_t open = std::nullopt;

template <class Table>
auto feed(Table& table, Events events) {
  return table.apply_changes(std::move(events))
      .template sequence_by<&Event::day>()
      .apply_as_deletes(kf::source<&Event::op> == 'D')
      .template scd2<&Product::from, &Product::to>();
}
template <class Table>
auto load(Table& table, Events events) {
  return feed(table, std::move(events)).execute();
}
template <class Table>
auto load_tracked(Table& table, Events events) {
  return feed(table, std::move(events)).template track<&Product::name>().execute();
}

Event set(std::string name, int day, int stock = 0) { return {"tea", 'U', std::move(name), stock, day}; }
Event gone(int day) { return {"tea", 'D', {}, 0, day}; }
Product tea(std::string name, int from, std::optional<int> to, int stock = 0) {
  return {"tea", std::move(name), stock, from, to};
}

// A sequence that counts how often it is compared.
struct Counted {
  int day = 0;
  static inline long compared = 0;
  friend bool operator<(const Counted& a, const Counted& b) {
    ++compared;
    return a.day < b.day;
  }
  friend bool operator==(const Counted& a, const Counted& b) {
    ++compared;
    return a.day == b.day;
  }
  friend std::size_t hash_value(const Counted& value) { return static_cast<std::size_t>(value.day); }
};
struct CountedRow {
  int id = 0;
  Counted from{};
  std::optional<Counted> to{};
};
struct CountedEvent {
  int id = 0;
  char op = 'U';
  Counted at{};
};
BOOST_DESCRIBE_STRUCT(CountedRow, (), (id, from, to))
BOOST_DESCRIBE_STRUCT(CountedEvent, (), (id, op, at))
using CountedTable = kf::Table<CountedRow, kf::OrderedKey<&CountedRow::id, &CountedRow::from>>;
using CountedEvents = std::vector<CountedEvent>;

kf::MergeResult<CountedRow> load_counted(CountedTable& table, const CountedEvents& events) {
  return table.apply_changes(events)
      .sequence_by<&CountedEvent::at>()
      .apply_as_deletes(kf::source<&CountedEvent::op> == 'D')
      .scd2<&CountedRow::from, &CountedRow::to>()
      .execute();
}

}  // namespace

TEST_CASE("each upsert opens a row that the next one ends") {
  Products table;
  load(table, {set("a", 1), set("b", 5)});
  const auto result = load(table, {set("c", 9)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 5), tea("b", 5, 9), tea("c", 9, open)});
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(result.metrics().not_matched_by_source_updated == 1);
}

TEST_CASE("a late event splits the row that it falls into") {
  Products table;
  load(table, {set("a", 1), set("c", 9)});
  load(table, {set("b", 5)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 5), tea("b", 5, 9), tea("c", 9, open)});
  load(table, {set("before", -3)});
  CHECK(rows_of(table).front() == tea("before", -3, 1));
}

TEST_CASE("a delete ends the row, and a gap is there only if a delete made it") {
  Products table;
  load(table, {set("a", 1), gone(4), set("b", 7)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 4), tea("b", 7, open)});
  const auto result = load(table, {gone(9)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 4), tea("b", 7, 9)});
  CHECK(result.metrics().matched_updated == 1);
}

TEST_CASE("a late row does not bridge a delete, nor come back after it") {
  Products table;
  load(table, {set("a", 1), gone(4)});
  load(table, {set("b", 3)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 3), tea("b", 3, 4)});
}

TEST_CASE("deletes that end no row are remembered") {
  Products table;
  const auto result = load(table, {gone(5), gone(9)});
  CHECK(result.metrics().skipped == 2);
  CHECK_FALSE(result.committed());
  load(table, {set("late", 3), set("b", 7), set("c", 11)});
  CHECK(rows_of(table) == Rows{tea("late", 3, 5), tea("b", 7, 9), tea("c", 11, open)});
}

TEST_CASE("the row of a business date is the one that began last and has not ended") {
  Products table;
  load(table, {set("c", 9), set("a", 1), gone(12), set("b", 5)});
  const auto name_on = [&](int day) {
    for (const Product& row : table.by<&Product::sku, &Product::from>().equal_range("tea")) {
      if (row.from <= day && (!row.to || day < *row.to)) return row.name;
    }
    return std::string("-");
  };
  CHECK(name_on(0) == "-");
  CHECK(name_on(1) == "a");
  CHECK(name_on(8) == "b");
  CHECK(name_on(9) == "c");
  CHECK(name_on(12) == "-");
}

TEST_CASE("of equal sequences the later one stands in the history") {
  Products table;
  load(table, {set("a", 1), set("x", 5), set("b", 5)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 5), tea("b", 5, open)});
  const auto updated = load(table, {set("c", 5)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 5), tea("c", 5, open)});
  CHECK(updated.metrics().matched_updated == 1);
  const auto erased = load(table, {gone(5)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 5)});
  CHECK(erased.metrics().matched_deleted == 1);
  CHECK(load(table, {set("d", 5)}).metrics().inserted == 1);
  CHECK(rows_of(table) == Rows{tea("a", 1, 5), tea("d", 5, open)});
}

TEST_CASE("on_tie(reject) refuses equal sequences in a history") {
  Products table;
  load(table, {set("a", 1)});
  const Unharmed unharmed(table);
  const auto in_feed = error_of<kf::SequenceTie>(
      [&] { feed(table, {set("b", 5), set("c", 7), set("d", 5)}).on_tie(kf::reject).execute(); });
  CHECK(in_feed.key == "'tea'");
  CHECK(in_feed.first_position == 0);
  CHECK(in_feed.second_position == 2);
  const auto with_row =
      error_of<kf::SequenceTie>([&] { feed(table, {set("b", 5), gone(1)}).on_tie(kf::reject).execute(); });
  CHECK(with_row.first_position == kf::no_position);
  CHECK(with_row.second_position == 1);
}

TEST_CASE("track() opens a row for changes of its columns only") {
  Products table;
  load_tracked(table, {set("a", 1, 10), set("a", 3, 20), set("b", 5, 30), set("b", 7, 40)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 5, 20), tea("b", 5, open, 40)});
}

TEST_CASE("a late event splits a row that several events made") {
  Products table;
  load_tracked(table, {set("a", 1, 10), set("a", 5, 50)});
  CHECK(rows_of(table) == Rows{tea("a", 1, open, 50)});
  load_tracked(table, {set("b", 3, 30)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 3, 10), tea("b", 3, 5, 30), tea("a", 5, open, 50)});
}

TEST_CASE("a late event that makes a row like its neighbour joins them") {
  Products table;
  load_tracked(table, {set("a", 1), set("b", 3), set("a", 5)});
  const auto result = load_tracked(table, {set("a", 3, 7)});  // a tie: it takes the place of b
  CHECK(rows_of(table) == Rows{tea("a", 1, open, 0)});
  CHECK(counts_of(result) == Counts{1, 2, 0});
}

TEST_CASE("ignore_null_updates carries a column on from the row before") {
  Products table;
  const auto patch = [&](std::vector<Patch> patches) {
    table.apply_changes(std::move(patches))
        .sequence_by<&Patch::day>()
        .ignore_null_updates()
        .scd2<&Product::from, &Product::to>()
        .execute();
  };
  patch({{"tea", "a", 10, 1}, {"tea", std::nullopt, 30, 5}});
  CHECK(rows_of(table) == Rows{tea("a", 1, 5, 10), tea("a", 5, open, 30)});
  patch({{"tea", "b", std::nullopt, 3}});  // what the event at 5 left out is this now
  CHECK(rows_of(table) == Rows{tea("a", 1, 3, 10), tea("b", 3, 5, 10), tea("b", 5, open, 30)});
}

TEST_CASE("keys without an index over them are found, and other keys are left alone") {
  kf::Table<Product, kf::Key<&Product::sku, &Product::from>> scanned;
  kf::Table<Product, kf::Key<&Product::sku, &Product::from>, kf::OrderedBy<&Product::sku>> indexed;
  const auto check = [](auto& table) {
    load(table, {set("a", 1), {"rum", 'U', "r", 0, 2}});
    const auto result = load(table, {set("b", 5)});
    CHECK(counts_of(result) == Counts{1, 0, 1});
    CHECK(table.at("rum", 2) == Product{"rum", "r", 0, 2, open});
    CHECK(table.at("tea", 1) == tea("a", 1, 5));
    CHECK(table.at("tea", 5) == tea("b", 5, open));
  };
  check(scanned);
  check(indexed);
}

TEST_CASE("a column that no event has keeps what another write set, where its row stays") {
  kf::Table<Noted, kf::OrderedKey<&Noted::sku, &Noted::from>> table;
  const auto fill = [&](Events events) {
    table.apply_changes(std::move(events))
        .sequence_by<&Event::day>()
        .scd2<&Noted::from, &Noted::to>()
        .execute();
  };
  fill({set("a", 1)});
  table.upsert(Noted{"tea", "a", "by hand", 1, open});
  fill({set("b", 5)});
  CHECK(rows_of(table) == std::vector<Noted>{{"tea", "a", "by hand", 1, 5}, {"tea", "b", "none", 5, open}});
}

TEST_CASE("a history that was cleared begins anew") {
  Products table;
  load_tracked(table, {set("a", 1), set("a", 3)});
  table.clear();
  load_tracked(table, {set("b", 5)});
  CHECK(rows_of(table) == Rows{tea("b", 5, open)});
}

namespace {

kf::MergeResult<Product> patch(Products& table, std::vector<Patch> events) {
  return table.apply_changes(std::move(events))
      .sequence_by<&Patch::day>()
      .ignore_null_updates()
      .scd2<&Product::from, &Product::to>()
      .execute();
}

}  // namespace

TEST_CASE("an event of an undone load does not come back, with or without nulls") {
  for (const std::optional<int> stock : {std::optional<int>(), std::optional<int>(2)}) {
    for (const bool undo : {true, false}) {
      Products table;
      patch(table, {{"tea", "a", 1, 10}});
      patch(table, {{"tea", "b", stock, 20}});
      if (undo) {
        table.undo(2);
      } else {
        table.restore(1);
      }
      patch(table, {{"tea", "c", {}, 30}});
      CHECK(rows_of(table) == Rows{tea("a", 10, 30, 1), tea("c", 30, open, 1)});
    }
  }
}

TEST_CASE("a late event of an undone load does not split its row again, and the others stay remembered") {
  Products table;
  patch(table, {{"tea", "a", 1, 10}, {"tea", "b", {}, 30}});
  patch(table, {{"tea", {}, 2, 20}});
  CHECK(rows_of(table) == Rows{tea("a", 10, 20, 1), tea("a", 20, 30, 2), tea("b", 30, open, 2)});
  table.undo(2);
  patch(table, {{"tea", "c", {}, 40}});
  CHECK(rows_of(table) == Rows{tea("a", 10, 30, 1), tea("b", 30, 40, 1), tea("c", 40, open, 1)});
  patch(table, {{"tea", {}, 5, 15}});  // 30 and 40 brought no stock
  CHECK(table.at("tea", 30).stock == 5);
  CHECK(table.at("tea", 40).stock == 5);
}

TEST_CASE("an undone event that was folded into a row that stays counts again with the next event") {
  Products table;
  load_tracked(table, {set("a", 10, 1)});
  load_tracked(table, {set("a", 20, 2)});
  table.undo(2);
  CHECK(rows_of(table) == Rows{tea("a", 10, open, 1)});
  load_tracked(table, {set("b", 30, 3)});
  CHECK(rows_of(table) == Rows{tea("a", 10, 30, 2), tea("b", 30, open, 3)});
}

TEST_CASE("a preview of a history remembers nothing") {
  Products table;
  CHECK(feed(table, {gone(5), set("a", 1)}).preview().size() == 1);
  load(table, {set("a", 1)});
  CHECK(rows_of(table) == Rows{tea("a", 1, open)});
}

TEST_CASE("a copy of a history remembers what the table does") {
  Products table;
  load_tracked(table, {set("a", 1, 10), set("a", 5, 50), gone(9), gone(20)});
  Products copy = table;
  load_tracked(table, {set("x", 15)});
  load_tracked(copy, {set("b", 3, 30), set("c", 15)});
  CHECK(rows_of(copy) == Rows{tea("a", 1, 3, 10), tea("b", 3, 5, 30), tea("a", 5, 9, 50), tea("c", 15, 20)});
  CHECK(rows_of(table) == Rows{tea("a", 1, 9, 50), tea("x", 15, 20)});
}

TEST_CASE("a table of history rows is not fed as one of current rows, nor the other way round") {
  Products table;
  load(table, {gone(5)});
  const Unharmed unharmed(table);
  CHECK_THROWS_AS(table.apply_changes(Rows{tea("a", 1, open)}).sequence_by<&Product::from>().execute(),
                  kf::FeedMismatch);
  Products other;
  other.apply_changes(Rows{tea("a", 1, open)}).sequence_by<&Product::from>().execute();
  CHECK_THROWS_AS(load(other, {set("b", 2)}), kf::FeedMismatch);
}

TEST_CASE("memory_usage() counts the events that are remembered while they are") {
  Events events;
  for (int day = 0; day < 1000; ++day) events.push_back(set("a", day, day));
  Products table;
  load_tracked(table, {set("a", 0)});
  const std::size_t before = table.memory_usage().indexes;
  load_tracked(table, events);
  CHECK(table.size() == 1);
  CHECK(table.memory_usage().indexes >= before + 1000 * (sizeof(Product) + sizeof(int)));
  table.clear();
  load_tracked(table, {set("b", 2000)});
  CHECK(table.memory_usage().indexes < before + 1000);
}

TEST_CASE("deletes at the beginnings of rows take these, each once") {
  constexpr int rows = 2000;
  CountedTable table;
  CountedEvents events;
  for (int day = 0; day < rows; ++day) events.push_back({1, 'U', {2 * day}});
  load_counted(table, events);
  events.clear();
  for (int day = 0; day < rows; ++day) {
    events.push_back({1, 'D', {2 * day}});
    events.push_back({1, 'D', {2 * day + 1}});
  }
  Counted::compared = 0;
  const auto result = load_counted(table, events);
  CHECK(table.empty());
  CHECK(result.metrics().matched_deleted == rows);
  CHECK(result.metrics().skipped == rows);
  // O(n log n) for 6000 events and rows; a scan of the events for each row came to more than 2'000'000.
  CHECK(Counted::compared < 1'000'000);
}

TEST_CASE("history records a history feed as text") {
  Products table;
  load_tracked(table, {set("a", 1)});
  CHECK(table.history().back().parameters() ==
        "KEYS (sku) SEQUENCE BY day APPLY AS DELETE WHEN (source.op = 'D') STORED AS SCD TYPE 2 TRACK "
        "HISTORY ON "
        "name");
}

TEST_CASE("a value of an event that does not fit its column names the event") {
  Products table;
  const std::vector<Counting> events = {{"tea", 1, 3}, {"tea", -3'000'000'000, 1}};
  const auto error = error_of<kf::ValueOutOfRange>([&] {
    table.apply_changes(events).sequence_by<&Counting::day>().scd2<&Product::from, &Product::to>().execute();
  });
  CHECK(error.column == "stock");
  CHECK(error.value == "-3000000000");
  CHECK(error.key == "'tea'");
  CHECK(error.position == 1);
  CHECK(table.version() == 0);
}
