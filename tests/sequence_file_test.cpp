// What apply_changes() remembers, in snapshots and in stores. That every late event is judged as before is
// tested by sequence_model_test.cpp; here are single cases, row types that change, and files of strangers.
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>
#include <boost/serialization/string.hpp>

#include <limits>

#include "support/catch.hpp"
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

// Replaces a part of the bytes of a snapshot, which must be there once, and makes the checksums right.
std::string with(std::string bytes, const std::string& from, const std::string& to) {
  const std::size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes.find(from, at + 1) == std::string::npos);
  bytes.replace(at, from.size(), to);
  seal(bytes);
  return bytes;
}
template <class Number>
std::string bytes_of(Number number) {
  std::string out(sizeof number, '\0');
  kf::detail::store_number(reinterpret_cast<std::byte*>(out.data()), number);
  return out;
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
  feed<int>(orders, {{1001, 'D', {}, {}, 77}, {1002, 'D', {}, {}, 77}});
  const std::string bytes = saved(orders);
  CHECK_THROWS_WITH(loaded<Orders>(with(bytes, bytes_of(1002), bytes_of(1001))),
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
