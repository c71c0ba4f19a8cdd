#include <keyfold/debezium.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

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

struct Customer {
  int id = 0;
  std::string name;
  std::uint64_t sequence = 0;  // a column of their own, which has nothing to do with that of the events

  bool operator==(const Customer&) const = default;
};
BOOST_DESCRIBE_STRUCT(Customer, (), (id, name, sequence))

using Customers = kf::Table<Customer, kf::Key<&Customer::id>>;
using Event = kf::debezium::Event<Customer>;
using Change = kf::debezium::Change<Customer>;
using Rows = std::vector<Customer>;

const Customer ann{1, "Ann", 900};
const Customer anna{1, "Anna", 800};
const Customer bob{2, "Bob", 700};

}  // namespace

TEST_CASE("Debezium events create, read, update and delete rows") {
  Customers table;
  const std::vector<Event> events{
      {'r', {}, ann, 1}, {'c', {}, bob, 2}, {'u', ann, anna, 3}, {'d', bob, {}, 4}};
  kf::debezium::apply_changes(table, events).execute();
  CHECK(rows_of(table) == Rows{anna});
}

TEST_CASE("the tombstone after a Debezium delete is passed over") {
  Customers table;
  const std::vector<Event> events{{'c', {}, ann, 1}, {'d', ann, {}, 2}, {}, {'c', {}, bob, 3}, {}};
  const auto result = kf::debezium::apply_changes(table, events).execute();
  CHECK(rows_of(table) == Rows{bob});
  CHECK(result.metrics().source_rows == 3);
}

TEST_CASE("only tombstones are no feed at all") {
  Customers table;
  const auto result = kf::debezium::apply_changes(table, std::vector<Event>(3)).execute();
  CHECK(result.metrics().source_rows == 0);
  CHECK_FALSE(result.committed());
}

TEST_CASE("a key change is a Debezium delete of the old key and a create of the new one") {
  Customers table;
  const Customer moved{7, "Ann", 0};
  const std::vector<Event> events{{'c', {}, ann, 1}, {'d', ann, {}, 5}, {}, {'c', {}, moved, 5}};
  kf::debezium::apply_changes(table, events).execute();
  CHECK(rows_of(table) == Rows{moved});

  Customers one_by_one;
  for (const Event& event : events) kf::debezium::apply_changes(one_by_one, std::vector{event}).execute();
  CHECK(rows_of(one_by_one) == Rows{moved});
}

TEST_CASE("Debezium events that are told again are late") {
  Customers table;
  const std::vector<Event> events{
      {'c', {}, ann, 1}, {'u', ann, anna, 3}, {'c', {}, bob, 4}, {'d', bob, {}, 6}};
  kf::debezium::apply_changes(table, events).execute();
  const auto again = kf::debezium::apply_changes(table, std::vector<Event>{events[0], events[2]}).execute();
  CHECK(again.metrics().dropped_late == 2);
  CHECK(rows_of(table) == Rows{anna});
}

TEST_CASE("an unknown Debezium op is an error that names it and its position") {
  Customers table;
  table.insert(bob);
  const Unharmed unharmed(table);
  const std::vector<Event> events{{'c', {}, ann, 1}, {}, {'x', ann, ann, 2}};
  const auto error =
      error_of<kf::debezium::InvalidEvent>([&] { kf::debezium::apply_changes(table, events).execute(); });
  CHECK(error.op == "x");
  CHECK(error.position == 2);
}

TEST_CASE("a Debezium op without its row is an error") {
  Customers table;
  const auto position_of = [&](Event event) {
    return error_of<kf::debezium::InvalidEvent>(
               [&] { kf::debezium::apply_changes(table, std::vector<Event>{{}, event}).execute(); })
        .position;
  };
  CHECK(position_of({'d', {}, {}, 1}) == 1);
  CHECK(position_of({'c', ann, {}, 1}) == 1);
  CHECK(position_of({'u', ann, {}, 1}) == 1);
  CHECK(position_of({'\0', {}, ann, 1}) == 1);
  CHECK(position_of({'\0', ann, {}, 1}) == 1);  // rows, but no op: no tombstone
}

TEST_CASE("an envelope of one's own has op as text and its sequence where one likes") {
  struct Envelope {
    std::optional<std::string> op;
    const Customer* before = nullptr;
    const Customer* after = nullptr;
    std::int64_t lsn = 0;
  };
  const std::vector<Envelope> events{{"u", &ann, &anna, 20},
                                     {"c", nullptr, &ann, 10},
                                     {"d", &bob, nullptr, 40},
                                     {},
                                     {"c", nullptr, &bob, 30}};
  Customers by_member;
  kf::debezium::apply_changes(by_member, events, &Envelope::lsn).execute();
  CHECK(rows_of(by_member) == Rows{anna});

  Customers by_callable;
  kf::debezium::apply_changes(by_callable, events, [](const Envelope& event) {
    return -event.lsn;
  }).execute();
  CHECK(rows_of(by_callable) == Rows{ann, bob});  // time runs backwards
}

TEST_CASE("the offset of Debezium events serves as their sequence") {
  struct Bare {
    char op = '\0';
    std::optional<Customer> before{};
    std::optional<Customer> after{};
  };
  const std::vector<Bare> first{{'c', {}, ann}, {'c', {}, bob}};
  const std::vector<Bare> second{{'d', bob, {}}, {}, {'u', ann, anna}};
  Customers table;
  kf::debezium::apply_changes(table, second, kf::debezium::from_offset(2)).execute();
  kf::debezium::apply_changes(table, first, kf::debezium::from_offset(0)).execute();
  CHECK(rows_of(table) == Rows{anna});
}

TEST_CASE("Debezium events keep a history") {
  struct Entry {
    int id = 0;
    std::string name;
    std::uint64_t from = 0;
    std::optional<std::uint64_t> to{};
    bool operator==(const Entry&) const = default;
  };
  using Dates = kf::debezium::Event<Entry>;
  kf::Table<Entry, kf::OrderedKey<&Entry::id, &Entry::from>> table;
  const Entry old{1, "Ann"};
  const Entry fresh{1, "Anna"};
  const std::vector<Dates> events{{'d', fresh, {}, 9}, {}, {'u', old, fresh, 5}, {'c', {}, old, 2}};
  kf::debezium::apply_changes(table, events).scd2<&Entry::from, &Entry::to>().execute();
  CHECK(rows_of(table) == std::vector<Entry>{{1, "Ann", 2, 5}, {1, "Anna", 5, 9}});
}

TEST_CASE("changes() is a single-pass range of rows") {
  std::vector<Event> events{{}, {'c', {}, ann, 1}, {}, {'d', bob, {}, 2}, {}};
  auto changes = kf::debezium::changes(events);
  static_assert(std::ranges::input_range<decltype(changes)>);
  std::vector<int> ids;
  std::string ops;
  for (const Change& change : changes) {
    ids.push_back(change.id);
    ops += change.op;
  }
  CHECK(ids == std::vector{1, 2});
  CHECK(ops == "cd");
}
