// Tables of several sorts whose snapshots are checked in below tests/golden and tests/fuzz. Never change what
// these functions make: files of released formats were written by them.
#pragma once

#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/serialization/version.hpp>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace snapshot_samples {

namespace kf = keyfold;

enum class State : std::uint8_t { open = 1, closed = 2 };
BOOST_DESCRIBE_ENUM(State, open, closed)

struct Address {
  std::string street;
  std::int16_t number = 0;
  bool operator==(const Address&) const = default;
};
BOOST_DESCRIBE_STRUCT(Address, (), (street, number))

/// A column of every sort.
struct Wide {
  std::int32_t id = 0;
  bool flag = false;
  State state = State::open;
  double amount = 0;
  std::string text;
  std::optional<std::int16_t> code;
  kf::Timestamp at{};
  Address address;
  std::vector<std::string> notes;
  std::map<std::string, std::int32_t> counts;
  std::variant<std::monostate, std::int64_t, std::string> any;
  std::array<std::uint8_t, 3> color{};
  bool operator==(const Wide&) const = default;
};
BOOST_DESCRIBE_STRUCT(Wide, (), (id, flag, state, amount, text, code, at, address, notes, counts, any, color))

using WideTable = kf::Table<Wide, kf::Key<&Wide::id>, kf::UniqueBy<&Wide::code>, kf::OrderedBy<&Wide::text>>;

/// A row that writes itself.
class Person {
 public:
  Person() = default;
  Person(std::string name, std::vector<std::int32_t> marks)
      : name_(std::move(name)), marks_(std::move(marks)) {}
  const std::string& name() const { return name_; }
  const std::vector<std::int32_t>& marks() const { return marks_; }
  bool operator==(const Person&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned version) {
    archive & name_;
    if (version >= 1) archive & marks_;
  }

 private:
  std::string name_;
  std::vector<std::int32_t> marks_;
};

using PersonTable = kf::Table<Person, kf::OrderedKey<&Person::name>>;

/// A row of numbers only.
struct Tick {
  std::int64_t day = 0;
  std::int32_t symbol = 0;
  float price = 0;
  bool operator==(const Tick&) const = default;
};
BOOST_DESCRIBE_STRUCT(Tick, (), (day, symbol, price))

using TickTable = kf::Table<Tick, kf::Key<&Tick::symbol, &Tick::day>>;

/// Ticks a second at each call, from 2026-01-01T00:00:00Z.
inline kf::TableOptions steady_clock() {
  kf::TableOptions options;
  options.clock = [seconds = std::int64_t{0}]() mutable {
    return kf::Timestamp(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) +
           std::chrono::seconds(seconds++);
  };
  return options;
}

inline Wide wide(std::int32_t id) {
  Wide row;
  row.id = id;
  row.flag = id % 2 == 1;
  row.state = id % 2 == 1 ? State::closed : State::open;
  row.amount = id * 0.5;
  row.text = std::string(static_cast<std::size_t>(id), 'x');
  if (id % 3 != 0) row.code = static_cast<std::int16_t>(100 + id);
  row.at = kf::Timestamp(std::chrono::microseconds(id));
  row.address = {"street " + std::to_string(id), static_cast<std::int16_t>(-id)};
  row.notes.assign(static_cast<std::size_t>(id % 3), "note");
  for (std::int32_t i = 0; i < id % 4; ++i) row.counts["count" + std::to_string(i)] = i * id;
  if (id % 3 == 1) row.any = std::int64_t{id};
  if (id % 3 == 2) row.any = "any";
  row.color = {1, 2, static_cast<std::uint8_t>(id)};
  return row;
}

/// Six commits of all sorts; versions 0 to 2 expired but for version 1, which a tag keeps.
inline WideTable wide_table() {
  WideTable table(steady_clock());
  table.append(std::vector<Wide>{wide(1), wide(2), wide(3), wide(4), wide(5)});
  table.tag("first", 1);
  table.metadata("a file").erase(2);
  table.once("loader", 41).insert(wide(6));
  // 3 and 4 change places, 5 becomes 7.
  Wide moved = wide(5);
  moved.id = 7;
  const std::vector<Wide> none;
  table.merge(none)
      .when_not_matched_by_source(kf::target<&Wide::id> == 3 || kf::target<&Wide::id> == 4 ||
                                  kf::target<&Wide::id> == 5)
      .update([](const Wide& row) {
        Wide out = row;
        out.id = row.id == 3 ? 4 : row.id == 4 ? 3 : 7;
        return out;
      })
      .execute();
  table.insert(wide(2));
  table.erase(1);
  table.tag("latest", 6);
  table.expire(kf::keep_last(4));
  return table;
}

inline PersonTable person_table() {
  PersonTable table(steady_clock());
  table.append(std::vector<Person>{{"bob", {1, 2}}, {"ann", {}}});
  table.upsert(Person("bob", {3}));
  return table;
}

inline TickTable tick_table() {
  TickTable table(steady_clock());
  table.append(std::vector<Tick>{{1, 10, 1.5F}, {1, 20, 2.5F}, {2, 10, -0.0F}});
  table.erase(10, 1);
  return table;
}

/// The worked example of docs/file-format.md: one row of two columns, one commit.
struct Stock {
  std::int32_t id = 0;
  std::string name;
  bool operator==(const Stock&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stock, (), (id, name))
using StockTable = kf::Table<Stock, kf::Key<&Stock::id>>;

inline StockTable stock_table() {
  kf::TableOptions options;
  options.clock = [] { return kf::Timestamp(std::chrono::seconds(1)); };
  StockTable table(options);
  table.insert({7, "tea"});
  return table;
}

/// A table that events have made, current rows, and what it remembers of them.
struct Parcel {
  std::int32_t id = 0;
  std::string place;
  std::optional<std::int32_t> grams;
  bool operator==(const Parcel&) const = default;
};
BOOST_DESCRIBE_STRUCT(Parcel, (), (id, place, grams))
using ParcelTable = kf::Table<Parcel, kf::Key<&Parcel::id>>;

struct ParcelEvent {
  std::int32_t id = 0;
  char op = 'U';  // D: delete, T: truncate
  std::optional<std::string> place;
  std::optional<std::int32_t> grams;
  std::int64_t lsn = 0;
};
BOOST_DESCRIBE_STRUCT(ParcelEvent, (), (id, op, place, grams, lsn))

template <class Target>
auto feed_parcels(Target& target, std::vector<ParcelEvent> events) {
  return target.apply_changes(std::move(events))
      .template sequence_by<&ParcelEvent::lsn>()
      .apply_as_deletes(kf::source<&ParcelEvent::op> == 'D')
      .apply_as_truncates(kf::source<&ParcelEvent::op> == 'T')
      .ignore_null_updates()
      .execute();
}

/// Rows 1 and 4; of 1 the columns have sequences of their own. Keys 3 and 2 were deleted, in this order; all
/// was truncated at 10.
inline ParcelTable parcel_table() {
  ParcelTable table(steady_clock());
  feed_parcels(table, {{0, 'T', {}, {}, 10}, {1, 'U', "Oslo", 100, 11}, {2, 'U', "Rome", 200, 12}});
  feed_parcels(table, {{3, 'D', {}, {}, 20}, {1, 'U', {}, 150, 21}, {2, 'D', {}, {}, 22}});
  feed_parcels(table, {{4, 'U', "Kiel", {}, 30}});
  return table;
}

/// History rows, and the events of theirs that did not bring all columns.
struct Fare {
  std::int32_t line = 0;
  std::int32_t from = 0;
  std::optional<std::int32_t> to;
  std::string zone;
  std::optional<std::int32_t> cents;
  bool operator==(const Fare&) const = default;
};
BOOST_DESCRIBE_STRUCT(Fare, (), (line, from, to, zone, cents))
using FareTable = kf::Table<Fare, kf::OrderedKey<&Fare::line, &Fare::from>>;

struct FareEvent {
  std::int32_t line = 0;
  char op = 'U';
  std::int32_t from = 0;
  std::optional<std::string> zone;
  std::optional<std::int32_t> cents;
};
BOOST_DESCRIBE_STRUCT(FareEvent, (), (line, op, from, zone, cents))

template <class Target>
auto feed_fares(Target& target, std::vector<FareEvent> events) {
  return target.apply_changes(std::move(events))
      .template sequence_by<&FareEvent::from>()
      .apply_as_deletes(kf::source<&FareEvent::op> == 'D')
      .template scd2<&Fare::from, &Fare::to>()
      .ignore_null_updates()
      .execute();
}

/// Line 1 from 10, from 20 with a zone of its own, ended at 30; line 2 was deleted at 5, before it began.
inline FareTable fare_table() {
  FareTable table(steady_clock());
  feed_fares(table, {{1, 'U', 10, "A", 250}, {1, 'U', 20, "B", {}}, {2, 'D', 5, {}, {}}});
  feed_fares(table, {{1, 'D', 30, {}, {}}});
  return table;
}

/// A life of a store: what it does before a checkpoint, and after it. Then it is closed or dies.
template <class Store>
void live(Store& store) {
  feed_parcels(store, {{0, 'T', {}, {}, 10}, {1, 'U', "Oslo", 100, 11}, {2, 'U', "Rome", 200, 12}});
  store.once("loader", 41).insert({5, "Bonn", 50});
  store.tag("first", 1);
  store.checkpoint();
  feed_parcels(store, {{7, 'D', {}, {}, 40}});
  store.metadata("by hand").erase(5);
  auto transaction = store.transaction();
  feed_parcels(transaction, {{2, 'D', {}, {}, 22}, {1, 'U', {}, 150, 21}});
  transaction.insert({6, "Cork", {}});
  transaction.commit();
  store.tag("second", 4);
  store.untag("first");
  store.tag("third", 3);
}

}  // namespace snapshot_samples

BOOST_CLASS_VERSION(snapshot_samples::Person, 1)
