// What apply_changes() remembers, in snapshots and in stores. That every late event is judged as before is
// tested by sequence_model_test.cpp; here are single cases, row types that change, and files of strangers.
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>
#include <boost/serialization/string.hpp>

#include <limits>

#include "support/catch.hpp"
#include "support/log_record.hpp"
#include "support/memory_disk.hpp"
#include "support/rows.hpp"
#include "support/snapshot_bytes.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace {

struct Order {
  int id = 0;
  std::optional<int> cents;
  std::optional<int> grams;
  std::string note = "none";
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, cents, grams, note))

template <class Seq>
struct Event {
  int id = 0;
  char op = 'U';
  std::optional<int> cents;
  std::optional<int> grams;
  Seq seq{};
};
BOOST_DESCRIBE_STRUCT(Event<int>, (), (id, op, cents, grams, seq))
BOOST_DESCRIBE_STRUCT(Event<double>, (), (id, op, cents, grams, seq))
BOOST_DESCRIBE_STRUCT(Event<std::string>, (), (id, op, cents, grams, seq))

// Two classes with an order: one that files can have, and one that they cannot.
struct Position {
  int file = 0;
  std::string place;
  auto operator<=>(const Position&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive & file & place;
  }
};
struct Handle {
  const int* number = nullptr;
  bool operator<(const Handle& other) const { return *number < *other.number; }
};
BOOST_DESCRIBE_STRUCT(Event<Position>, (), (id, op, cents, grams, seq))
BOOST_DESCRIBE_STRUCT(Event<Handle>, (), (id, op, cents, grams, seq))

using Orders = kf::Table<Order, kf::Key<&Order::id>>;
using OrderStore = kf::Store<Orders, SharedDisk>;

template <class Seq, class Target>
auto feed(Target& target, std::vector<Event<Seq>> events) {
  return target.apply_changes(std::move(events))
      .template sequence_by<&Event<Seq>::seq>()
      .apply_as_deletes(kf::source<&Event<Seq>::op> == 'D')
      .apply_as_truncates(kf::source<&Event<Seq>::op> == 'T')
      .ignore_null_updates()
      .execute();
}
using Numbers = std::vector<Event<int>>;

Orders fed() {
  Orders orders;
  feed<int>(orders, {{1, 'U', 10, {}, 5}, {2, 'U', 20, {}, 5}, {1, 'U', {}, 7, 9}, {2, 'D', {}, {}, 8}});
  return orders;
}

// --- Row types that change

struct Narrow {
  int id = 0;
  std::optional<int> grams;
  bool operator==(const Narrow&) const = default;
};
BOOST_DESCRIBE_STRUCT(Narrow, (), (id, grams))
struct Moved {
  std::optional<int> weight;
  double price = 2.5;
  std::string note;
  std::optional<int> cents;
  int id = 0;
  bool operator==(const Moved&) const = default;
};
BOOST_DESCRIBE_STRUCT(Moved, (), (weight, price, note, cents, id))
struct MovedEvent {
  int id = 0;
  std::optional<int> cents;
  std::optional<int> weight;
  int seq = 0;
};
BOOST_DESCRIBE_STRUCT(MovedEvent, (), (id, cents, weight, seq))
using MovedOrders = kf::Table<Moved, kf::Key<&Moved::id>>;

template <class Target>
auto feed_moved(Target& target, std::vector<MovedEvent> events) {
  return target.apply_changes(std::move(events))
      .template sequence_by<&MovedEvent::seq>()
      .ignore_null_updates()
      .execute();
}

// --- Keys that are computed

struct Person {
  std::string name;
  int seq = 0;
  std::string_view initial() const { return std::string_view(name).substr(0, 1); }
  bool operator==(const Person&) const = default;
};
BOOST_DESCRIBE_STRUCT(Person, (), (name, seq))
using People = kf::Table<Person, kf::Key<&Person::initial>>;

// --- History rows

struct Price {
  int id = 0;
  std::optional<int> cents;
  std::string note;
  double from = 0;
  std::optional<double> to;
  bool operator==(const Price&) const = default;
};
BOOST_DESCRIBE_STRUCT(Price, (), (id, cents, note, from, to))
using Prices = kf::Table<Price, kf::Key<&Price::id, &Price::from>>;

struct PriceEvent {
  int id = 0;
  std::optional<int> cents;
  std::optional<std::string> note;
  double from = 0;
};
BOOST_DESCRIBE_STRUCT(PriceEvent, (), (id, cents, note, from))

template <class Target>
void feed_prices(Target& target, std::vector<PriceEvent> events) {
  target.apply_changes(std::move(events))
      .template sequence_by<&PriceEvent::from>()
      .template scd2<&Price::from, &Price::to>()
      .ignore_null_updates()
      .execute();
}

struct NarrowPrice {
  int id = 0;
  std::optional<int> cents;
  double from = 0;
  std::optional<double> to;
  bool operator==(const NarrowPrice&) const = default;
};
BOOST_DESCRIBE_STRUCT(NarrowPrice, (), (id, cents, from, to))
struct NarrowEvent {
  int id = 0;
  std::optional<int> cents;
  double from = 0;
};
BOOST_DESCRIBE_STRUCT(NarrowEvent, (), (id, cents, from))

// --- Rows that write themselves: files have no columns of them

struct Parcel {
  int id = 0;
  int seq = 0;
  std::optional<int> until;
  bool gone = false;
  bool operator==(const Parcel&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive & id & seq & until;
  }
};

struct Reading {
  double at = 0;
  int seq = 0;
  bool operator==(const Reading&) const = default;
};
BOOST_DESCRIBE_STRUCT(Reading, (), (at, seq))

// Replaces a part of the bytes of a snapshot, which must be there once, and makes the checksums right.
std::string with(std::string bytes, const std::string& from, const std::string& to) {
  const std::size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes.find(from, at + 1) == std::string::npos);
  bytes.replace(at, from.size(), to);
  seal(bytes);
  return bytes;
}
// The same for a single byte, which must be another one so far.
std::string with_byte(std::string bytes, std::size_t at, char byte) {
  REQUIRE(bytes.at(at) != byte);
  bytes[at] = byte;
  seal(bytes);
  return bytes;
}
template <class Number>
std::string bytes_of(Number number) {
  std::string out(sizeof number, '\0');
  kf::detail::store_number(reinterpret_cast<std::byte*>(out.data()), number);
  return out;
}

std::string text_of(const std::string& text) {
  return bytes_of(static_cast<std::uint32_t>(text.size())) + text;
}

// Where what is remembered of a key begins: it comes last in a snapshot.
std::size_t remembered_of(const std::string& bytes, int key) {
  const std::size_t at = bytes.rfind(bytes_of(key));
  REQUIRE(at != std::string::npos);
  return at;
}

template <class Table>
void refused(const std::string& bytes, const std::string& message) {
  INFO(message);
  try {
    static_cast<void>(loaded<Table>(bytes));
    FAIL("it was loaded");
  } catch (const kf::CorruptSnapshot& error) {
    CHECK_THAT(error.what(), contains(message));
  }
}

}  // namespace

template <>
struct keyfold::schema_changes<Moved> {
  static constexpr keyfold::RenamedColumn renamed[] = {{"grams", "weight"}};
};

TEST_CASE("late events lose against what was saved, and the newest of each column counts") {
  Orders orders = loaded<Orders>(saved(fed()));
  const auto result =
      feed<int>(orders, {{2, 'U', 99, {}, 7}, {1, 'U', 11, 12, 6}, {1, 'U', 98, {}, 4}, {3, 'U', 1, {}, 1}});
  CHECK(result.metrics().dropped_late == 2);
  CHECK(rows_of(orders) == std::vector<Order>{{1, 11, 7, "none"}, {3, 1, {}, "none"}});
}

TEST_CASE("what no feed has asked for is saved again as it was") {
  const std::string bytes = saved(fed());
  const Orders back = loaded<Orders>(bytes);
  CHECK(saved(back) == bytes);
  CHECK(saved(Orders(back)) == bytes);
  Orders previewed = loaded<Orders>(bytes);
  static_cast<void>(
      previewed.apply_changes(Numbers{{1, 'U', 5, {}, 50}}).sequence_by<&Event<int>::seq>().preview());
  CHECK(saved(previewed) == bytes);
  feed<int>(previewed, {{2, 'U', 99, {}, 7}});  // late: nothing is new, but all is asked for
  CHECK(saved(previewed) == bytes);
}

TEST_CASE("a feed with another type of sequence than the saved one is refused, and both are named") {
  Orders orders = loaded<Orders>(saved(fed()));
  const std::string before = saved(orders);
  try {
    feed<std::string>(orders, {{1, 'U', 5, {}, "50"}});
    FAIL("it was taken");
  } catch (const kf::FeedMismatch& error) {
    CHECK(error.remembered == "current rows by int32");
    CHECK(error.given == "current rows by text");
    CHECK_THAT(error.what(), contains(error.remembered) && contains(error.given));
  }
  CHECK(saved(orders) == before);
  CHECK(feed<int>(orders, {{2, 'U', 99, {}, 7}}).metrics().dropped_late == 1);
}

TEST_CASE("a sequence that writes itself is saved; one that files cannot have is refused only then") {
  Orders written;
  feed<Position>(written, {{1, 'U', 5, {}, {2, "b"}}, {2, 'D', {}, {}, {2, "c"}}});
  Orders back = loaded<Orders>(saved(written));
  CHECK(feed<Position>(back, {{1, 'U', 6, {}, {2, "a"}}, {2, 'U', 6, {}, {1, "z"}}}).metrics().dropped_late ==
        2);

  const int one = 1;
  Orders orders;
  feed<Handle>(orders, {{1, 'U', 5, {}, {&one}}});
  CHECK(orders.size() == 1);
  CHECK_THROWS_AS(saved(orders), kf::UnsavableSequence);

  MemoryDisk disk;
  OrderStore store(SharedDisk{&disk});
  CHECK_THROWS_AS(feed<Handle>(store, {{1, 'U', 5, {}, {&one}}}), kf::UnsavableSequence);
  auto transaction = store.transaction();
  CHECK_THROWS_AS(feed<Handle>(transaction, {{1, 'U', 5, {}, {&one}}}), kf::UnsavableSequence);
  CHECK(store.table().version() == 0);
  store.insert({1, {}, {}, "plain"});
}

TEST_CASE("a key that is a view of the row is remembered as a text of its own") {
  People people;
  const auto load = [](People& to, std::vector<Person> rows) {
    return to.apply_changes(std::move(rows))
        .sequence_by<&Person::seq>()
        .apply_as_deletes([](const Person& person) { return person.name.size() == 1; })
        .execute();
  };
  load(people, {{std::string("ann"), 5}, {std::string("b"), 9}});
  CHECK(load(people, {{std::string("bob"), 8}}).metrics().dropped_late == 1);
  People back = loaded<People>(saved(people));
  CHECK(load(back, {{std::string("bob"), 8}, {std::string("axel"), 4}}).metrics().dropped_late == 2);
  CHECK(load(back, {{std::string("bob"), 10}}).metrics().inserted == 1);
}

TEST_CASE("sequences of columns follow their columns when the row type changes") {
  // Of the columns, cents has sequence 5 and grams 9.
  MovedOrders moved = loaded<MovedOrders>(saved(fed()));
  feed_moved(moved, {{1, 60, 70, 6}});
  CHECK(moved.at(1) == Moved{7, 2.5, "none", 60, 1});
  MovedOrders again = loaded<MovedOrders>(saved(loaded<MovedOrders>(saved(fed()))));
  feed_moved(again, {{1, 40, 100, 10}, {1, 39, 39, 8}});
  CHECK(again.at(1) == Moved{100, 2.5, "none", 40, 1});

  using NarrowOrders = kf::Table<Narrow, kf::Key<&Narrow::id>>;
  NarrowOrders narrow = loaded<NarrowOrders>(saved(fed()));
  feed<int>(narrow, {{1, 'U', {}, 3, 8}});
  CHECK(narrow.at(1).grams == 7);
  feed<int>(narrow, {{1, 'U', {}, 3, 10}});
  CHECK(narrow.at(1).grams == 3);
}

TEST_CASE("events of history rows follow their columns when the row type changes") {
  Prices prices;
  feed_prices(prices, {{1, 10, "a", 1}, {1, {}, "b", 5}});
  using NarrowPrices = kf::Table<NarrowPrice, kf::Key<&NarrowPrice::id, &NarrowPrice::from>>;
  NarrowPrices narrow = loaded<NarrowPrices>(saved(prices));
  narrow.apply_changes(std::vector<NarrowEvent>{{1, 20, 3}})
      .sequence_by<&NarrowEvent::from>()
      .scd2<&NarrowPrice::from, &NarrowPrice::to>()
      .ignore_null_updates()
      .execute();
  // The event at 5 brought no cents: it takes those of the late event before it.
  CHECK(rows_of(narrow) ==
        std::vector<NarrowPrice>{{1, 10, 1, 3.0}, {1, 20, 5, std::nullopt}, {1, 20, 3, 5.0}});
}

TEST_CASE("a store remembers what loads without a version, and loads in a transaction, have said") {
  MemoryDisk disk;
  {
    OrderStore store(SharedDisk{&disk});
    CHECK_FALSE(feed<int>(store, {{7, 'D', {}, {}, 40}}).committed());
    auto transaction = store.transaction();
    feed<int>(transaction, {{1, 'U', 5, {}, 30}, {2, 'U', 5, {}, 30}});
    feed<int>(transaction, {{2, 'D', {}, {}, 31}});
    transaction.commit();
    disk.die();
  }
  disk.kill();
  OrderStore store(SharedDisk{&disk});
  CHECK(store.recovered().replayed == 2);
  CHECK(store.durable_version() == 1);
  const auto late = feed<int>(store, {{7, 'U', 1, {}, 39}, {2, 'U', 1, {}, 30}, {1, 'U', 1, {}, 29}});
  CHECK(late.metrics().dropped_late == 3);
  CHECK(rows_of(store.table()) == std::vector<Order>{{1, 5, {}, "none"}});
  CHECK_THROWS_AS(feed<double>(store, {{1, 'U', 5, {}, 50}}), kf::FeedMismatch);
}

TEST_CASE("a store whose rows have changed keeps the sequences of columns, unclaimed and claimed") {
  MemoryDisk disk;
  {
    OrderStore store(SharedDisk{&disk});
    feed<int>(store, {{1, 'U', 10, {}, 5}, {1, 'U', {}, 7, 9}});
    disk.die();
  }
  using MovedStore = kf::Store<MovedOrders, SharedDisk>;
  for (const int turn : {0, 1}) {
    disk.kill();
    MovedStore store(SharedDisk{&disk});
    if (turn == 1) {
      feed_moved(store, {{1, 60, 70, 6}});
      CHECK(*store.table().find(1) == Moved{7, 2.5, "none", 60, 1});
    }
    disk.die();
  }
  disk.kill();
  MovedStore store(SharedDisk{&disk});
  feed_moved(store, {{1, 50, 50, 8}});
  CHECK(*store.table().find(1) == Moved{7, 2.5, "none", 50, 1});
}

// --- Files of strangers: the checksums are right

TEST_CASE("a sequence that is NaN is refused when a feed asks for it, naming the file") {
  Orders orders;
  feed<double>(orders, {{1, 'D', {}, {}, 77.5}});
  const std::string bytes = saved(orders);
  const std::string nan = with(bytes, bytes_of(77.5), bytes_of(std::numeric_limits<double>::quiet_NaN()));
  Orders back = loaded<Orders>(nan);
  try {
    feed<double>(back, {{1, 'U', 5, {}, 1}});
    FAIL("it was taken");
  } catch (const kf::CorruptSnapshot& error) {
    CHECK(error.file == "<bytes>");
    CHECK_THAT(error.what(), contains("NaN"));
  }
  CHECK(saved(back) == nan);
}

TEST_CASE("sequences that are no values of their type, or have no type, are refused") {
  Orders orders;
  feed<std::string>(orders, {{1, 'D', {}, {}, "seventy-seven"}});
  const std::string bytes = saved(orders);
  const std::string text = bytes_of(std::uint32_t{13}) + "seventy-seven";
  REQUIRE(loaded<Orders>(bytes).empty());
  for (const std::string& wrong :
       {bytes_of(std::uint32_t{12}) + "seventy-seven", bytes_of(std::uint32_t{14}) + "seventy-seven"}) {
    CHECK_THROWS_AS(loaded<Orders>(with(bytes, text, wrong)), kf::CorruptSnapshot);
  }
  const std::string type = "tuple(int32)" + bytes_of(std::uint32_t{4}) + "text";
  CHECK_THROWS_WITH(loaded<Orders>(with(bytes, type, "tuple(int32)" + bytes_of(std::uint32_t{4}) + "tixt")),
                    contains("'tixt' is no type"));
  try {
    static_cast<void>(
        loaded<Orders>(with(bytes, type, "tuple(int64)" + bytes_of(std::uint32_t{4}) + "text")));
    FAIL("it was loaded");
  } catch (const kf::SchemaMismatch& error) {
    CHECK(error.column == "<key>");
    CHECK(error.stored == "tuple(int64)");
    CHECK(error.program == "tuple(int32)");
  }
}

TEST_CASE("a key that is remembered twice is refused") {
  Orders orders;
  // No small numbers: a duration could be the same.
  const int first = 0x7A6B'5C4D;
  const int second = 0x7A6B'5C4E;
  feed<int>(orders, {{first, 'D', {}, {}, 77}, {second, 'D', {}, {}, 77}});
  const std::string bytes = saved(orders);
  CHECK_THROWS_WITH(loaded<Orders>(with(bytes, bytes_of(second), bytes_of(first))),
                    contains("a key is remembered twice"));
}

TEST_CASE("an event of history rows that is remembered for another key is refused") {
  Prices prices;
  feed_prices(prices, {{1, 10, "a", 1}, {1, {}, "seen", 5}});
  const std::string bytes = saved(prices);
  REQUIRE(loaded<Prices>(bytes).size() == 2);
  // The event as it is remembered: id, no cents, the note.
  const std::string event = bytes_of(1) + '\0' + bytes_of(std::uint32_t{4}) + "seen";
  const std::string other = bytes_of(2) + '\0' + bytes_of(std::uint32_t{4}) + "seen";
  CHECK_THROWS_WITH(loaded<Prices>(with(bytes, event, other)), contains("of another key"));
}

TEST_CASE("what is remembered of a key must hold together") {
  Orders orders;
  orders.apply_changes(Numbers{{1001, 'U', 10, {}, 77}, {1002, 'D', {}, {}, 78}})
      .sequence_by<&Event<int>::seq>()
      .apply_as_deletes(kf::source<&Event<int>::op> == 'D')
      .execute();
  const std::string bytes = saved(orders);
  // key, live, size, parts (set, base, which is of an upsert), two sequences
  const std::size_t live = remembered_of(bytes, 1001) + 4;
  REQUIRE(bytes.substr(live, 14) == '\1' + bytes_of(std::uint32_t{9}) + '\15' + bytes_of(77) + bytes_of(77));
  refused<Orders>(with_byte(bytes, live, 2), "flag");
  refused<Orders>(with_byte(bytes, live + 5, 32), "unknown flags");
  refused<Orders>(with_byte(bytes, live + 5, 1 + 8), "a first upsert is missing");
  refused<Orders>(with_byte(bytes, live + 5, 1), "more is remembered of a key than its sequences");
  refused<Orders>(with_byte(bytes, live + 5, 1 + 2 + 4), "end");
  // key, not live, when it came in, size, parts, sequence
  const std::size_t erased = remembered_of(bytes, 1002) + 4;
  REQUIRE(bytes.substr(erased + 9, 9) == bytes_of(std::uint32_t{5}) + '\2' + bytes_of(78));
  refused<Orders>(with_byte(bytes, erased + 13, 1), "something else than its end");
  refused<Orders>(with_byte(bytes, erased + 13, 3), "something else than its end");

  const std::string feeds = text_of("tuple(int32)") + text_of("int32");
  const std::size_t form = bytes.find(feeds) - 1;
  refused<Orders>(with_byte(bytes, form, 3), "an unknown form");
  CHECK_THROWS_AS(loaded<Orders>(with_byte(bytes, form, 2)), kf::SchemaMismatch);
  refused<Orders>(with(bytes, feeds, text_of("tuple(int32)") + text_of("int16")),
                  "more is remembered of a key");
}

TEST_CASE("a truncate is saved with its sequence, which must be one") {
  Orders orders;
  feed<int>(orders, {{0, 'T', {}, {}, 79}});
  const std::string bytes = saved(orders);
  Orders back = loaded<Orders>(bytes);
  CHECK(feed<int>(back, {{1, 'U', 1, {}, 78}, {2, 'U', 1, {}, 80}}).metrics().dropped_late == 1);
  CHECK(saved(Orders(loaded<Orders>(bytes))) == bytes);
  const std::string feeds = text_of("tuple(int32)");
  refused<Orders>(with(bytes, feeds + text_of("int32"), feeds + text_of("int16")),
                  "longer than it should be");
}

TEST_CASE("a key that is remembered is not NaN") {
  kf::Table<Reading, kf::Key<&Reading::at>> readings;
  readings.apply_changes(std::vector<Reading>{{77.5, 1}}).sequence_by<&Reading::seq>().execute();
  std::string bytes = saved(readings);
  bytes.replace(bytes.rfind(bytes_of(77.5)), 8, bytes_of(std::numeric_limits<double>::quiet_NaN()));
  seal(bytes);
  refused<decltype(readings)>(bytes, "a key that is remembered is NaN");
}

TEST_CASE("events of history rows must hold together") {
  Prices prices;
  feed_prices(prices, {{1001, {}, "seen", 1}, {1001, {}, "sold", 5}});
  const std::string bytes = saved(prices);
  const std::string head = bytes_of(1001) + bytes_of(std::uint32_t{2});
  REQUIRE(bytes.find(head) != std::string::npos);
  const std::size_t event = bytes.find(head) + head.size();
  refused<Prices>(with(bytes, head, bytes_of(1001) + bytes_of(std::uint32_t{0})), "without events");
  refused<Prices>(with(bytes, head, bytes_of(1001) + bytes_of(std::uint32_t{0xFFFFFFFF})),
                  "more events than");
  refused<Prices>(with_byte(bytes, event, 8), "unknown flags");
  refused<Prices>(with_byte(bytes, event, 2), "unknown flags");
  refused<Prices>(with(bytes, bytes_of(5.0) + bytes_of(1001), bytes_of(1.0) + bytes_of(1001)),
                  "the same sequence");
  const std::string columns = text_of("from") + text_of("to") + '\0';
  const std::size_t truncated = bytes.rfind(columns) + columns.size() - 1;
  refused<Prices>(spliced(bytes, truncated, 1, '\1' + text_of("x")), "history rows are never truncated");
}

TEST_CASE("rows without columns have no sequences of columns") {
  kf::Table<Parcel, kf::Key<&Parcel::id>> parcels;
  parcels.apply_changes(std::vector<Parcel>{{1001, 77, {}, false}}).sequence_by<&Parcel::seq>().execute();
  const std::string bytes = saved(parcels);
  REQUIRE(loaded<decltype(parcels)>(bytes).size() == 1);
  refused<decltype(parcels)>(with_byte(bytes, remembered_of(bytes, 1001) + 9, 1 + 16),
                             "columns that rows do not have");

  kf::Table<Parcel, kf::Key<&Parcel::id, &Parcel::seq>> stays;
  stays.apply_changes(std::vector<Parcel>{{1001, 77, {}, false}, {1001, 78, {}, true}, {1001, 80, {}, true}})
      .sequence_by<&Parcel::seq>()
      .apply_as_deletes(kf::source<&Parcel::gone>)
      .scd2<&Parcel::seq, &Parcel::until>()
      .execute();
  // No row shows the second delete: it is remembered.
  const std::string history = saved(stays);
  REQUIRE(rows_of(loaded<decltype(stays)>(history)) == rows_of(stays));
  const std::size_t event = remembered_of(history, 1001) + 8;
  REQUIRE(history.substr(event, 5) == '\0' + bytes_of(80));
  const std::string row =
      bytes_of(std::uint32_t{9}) + bytes_of(std::uint32_t{0}) + bytes_of(1001) + bytes_of(80) + '\0';
  const auto with_parts = [&](char parts) { return spliced(history, event, 5, parts + bytes_of(80) + row); };
  CHECK(loaded<decltype(stays)>(with_parts(1)).size() == 1);
  refused<decltype(stays)>(with_parts(1 + 4), "columns that rows do not have");
}

// --- Logs of strangers: the frames are good

namespace {

// A feed that has left `keys` keys, which follow; without a truncate, and with all tombstones.
LogRecord update_of(LogRecord record, std::uint8_t form, const std::string& key, const std::string& type,
                    std::uint64_t keys) {
  record.number(form).text(key).text(type).number(std::uint32_t{0});
  if (form == 1)
    record.number(std::uint8_t{0}).number(~std::uint64_t{0}).number(std::numeric_limits<std::int64_t>::min());
  return record.number(keys);
}
LogRecord orders_by(const std::string& type, std::uint64_t keys) {
  return update_of(LogRecord(5).number(std::uint32_t{1}), 1, "tuple(int32)", type, keys);
}
LogRecord forgets(LogRecord record, int key) { return record.number(std::uint8_t{0}).number(key); }
LogRecord erased(LogRecord record, int key, int sequence) {
  return record.number(std::uint8_t{1})
      .number(key)
      .number(std::uint8_t{0})
      .number(std::int64_t{5})
      .text('\2' + bytes_of(sequence));
}
LogRecord upserted(LogRecord record, int key, int sequence) {
  return record.number(std::uint8_t{1}).number(key).number(std::uint8_t{1}).text('\1' + bytes_of(sequence));
}

template <class Store>
void refused(const MemoryDisk& written, const LogRecord& record, const std::string& message) {
  INFO(message);
  MemoryDisk disk = written.copy();
  const std::size_t place = append_to_log(disk, record);
  try {
    const Store store(SharedDisk{&disk});
    FAIL("it was believed");
  } catch (const kf::CorruptJournal& error) {
    CHECK(error.offset == place);
    CHECK_THAT(error.what(), contains(message));
  }
}

}  // namespace

TEST_CASE("a log that says what no feed can have left is damaged") {
  MemoryDisk empty;
  OrderStore(SharedDisk{&empty}).close();
  refused<OrderStore>(empty, LogRecord(5).number(std::uint32_t{1}).number(std::uint8_t{0}), "has no form");
  refused<OrderStore>(empty, LogRecord(5).number(std::uint32_t{1}).number(std::uint8_t{3}),
                      "an unknown form");
  refused<OrderStore>(empty, orders_by("int32", 1000), "more keys than the bytes can hold");
  refused<OrderStore>(empty, orders_by("int32", 0).number(std::uint8_t{0}), "more is there than was told");
  refused<OrderStore>(empty, orders_by("int32", 1).number(std::uint8_t{2}), "");
  refused<OrderStore>(empty, update_of(LogRecord(5).number(std::uint32_t{1}), 2, "tuple()", "int32", 0),
                      "tuple()");
  auto two = upserted(update_of(LogRecord(5).number(std::uint32_t{2}), 1, "tuple(int32)", "int32", 1), 1, 5);
  refused<OrderStore>(empty, update_of(two, 1, "tuple(int32)", "text", 0), "of another kind");

  MemoryDisk fed;
  {
    OrderStore store(SharedDisk{&fed});
    feed<int>(store, {{1, 'U', 10, {}, 5}});
    store.close();
  }
  refused<OrderStore>(fed, orders_by("text", 0), "of another kind");

  using PriceStore = kf::Store<Prices, SharedDisk>;
  MemoryDisk history;
  {
    PriceStore store(SharedDisk{&history});
    feed_prices(store, {{1, 10, "a", 1}, {1, {}, "b", 5}});
    store.close();
  }
  refused<PriceStore>(history,
                      update_of(LogRecord(5).number(std::uint32_t{1}), 1, "tuple(int32,float64)", "int32", 0),
                      "of another kind");
}

TEST_CASE("a sequence of a log that is NaN is refused when a feed asks for it, naming the place") {
  MemoryDisk disk;
  OrderStore(SharedDisk{&disk}).close();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  LogRecord record = orders_by("float64", 1);
  record.number(std::uint8_t{1}).number(1).number(std::uint8_t{1}).text('\1' + bytes_of(nan));
  const std::size_t place = append_to_log(disk, record);
  OrderStore store(SharedDisk{&disk});
  try {
    feed<double>(store, {{1, 'U', 5, {}, 1}});
    FAIL("it was taken");
  } catch (const kf::CorruptJournal& error) {
    CHECK(error.file == "log-1");
    CHECK(error.offset == place);
    CHECK_THAT(error.what(), contains("NaN"));
  }
  CHECK(store.table().empty());
}

TEST_CASE("what a log says of keys is carried out: remembered, replaced, forgotten") {
  MemoryDisk disk;
  OrderStore(SharedDisk{&disk}).close();
  append_to_log(disk, erased(upserted(orders_by("int32", 2), 1, 50), 2, 60));
  append_to_log(disk, erased(forgets(forgets(orders_by("int32", 3), 2), 9), 1, 70));
  auto truncate =
      LogRecord(5).number(std::uint32_t{1}).number(std::uint8_t{1}).text("tuple(int32)").text("int32");
  truncate.number(std::uint32_t{0}).number(std::uint8_t{1}).text(bytes_of(30)).number(std::uint64_t{1});
  truncate.number(std::int64_t{0}).number(std::uint64_t{0});
  append_to_log(disk, truncate);
  OrderStore store(SharedDisk{&disk});
  CHECK(store.table().empty());
  const auto result =
      feed<int>(store, {{1, 'U', 1, {}, 69}, {2, 'U', 2, {}, 31}, {3, 'U', 3, {}, 29}, {4, 'U', 4, {}, 31}});
  CHECK(result.metrics().dropped_late == 2);
  CHECK(rows_of(store.table()) == std::vector<Order>{{2, 2, {}, "none"}, {4, 4, {}, "none"}});
}

TEST_CASE("a store remembers the events of history rows") {
  using PriceStore = kf::Store<Prices, SharedDisk>;
  MemoryDisk disk;
  {
    PriceStore store(SharedDisk{&disk});
    feed_prices(store, {{1, 10, "a", 1}, {1, {}, "b", 5}});
    feed_prices(store, {{1, {}, "c", 7}});
    disk.die();
  }
  disk.kill();
  PriceStore store(SharedDisk{&disk});
  feed_prices(store, {{1, 30, {}, 3}});
  Prices all;
  feed_prices(all, {{1, 10, "a", 1}, {1, 30, {}, 3}, {1, {}, "b", 5}, {1, {}, "c", 7}});
  const auto rows = [](const Prices& prices) {
    auto out = rows_of(prices);
    std::ranges::sort(out, {}, &Price::from);
    return out;
  };
  CHECK(rows(store.table()) == rows(all));
  CHECK(rows(store.table()).back() == Price{1, 30, "c", 7, {}});
}
