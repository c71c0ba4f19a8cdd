// apply_changes() for current rows (SCD type 1); that order and batches do not matter is tested by
// apply_changes_model_test.cpp.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <cmath>
#include <limits>
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

struct Order {
  int id = 0;
  std::string status{};
  std::optional<int> cents{};
  std::string note = "none";

  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents, note))

struct Event {
  int id = 0;
  char op = 'U';
  std::string status{};
  std::optional<int> cents{};
  int seq = 0;
};
BOOST_DESCRIBE_STRUCT(Event, (), (id, op, status, cents, seq))

// Events of other shapes.
struct Patch {
  int id = 0;
  std::optional<std::string> status;
  std::optional<std::optional<int>> cents;
  int seq = 0;
};
struct Numbered {
  long number = 0;
  std::string status;
  int seq = 0;
};
struct Wide {
  long long id = 0;
  std::string status;
  int seq = 0;
};
struct Texted {
  int id = 0;
  std::string status;
  std::string at;
};
BOOST_DESCRIBE_STRUCT(Patch, (), (id, status, cents, seq))
struct Priced {
  int id = 0;
  std::optional<long long> cents;
  int seq = 0;
};
BOOST_DESCRIBE_STRUCT(Numbered, (), (number, status, seq))
BOOST_DESCRIBE_STRUCT(Wide, (), (id, status, seq))
BOOST_DESCRIBE_STRUCT(Texted, (), (id, status, at))
BOOST_DESCRIBE_STRUCT(Priced, (), (id, cents, seq))

struct Dated {
  int id = 0;
  std::optional<int> a{};
  std::optional<int> b{};
  int seq = 0;
  bool operator==(const Dated&) const = default;
};
BOOST_DESCRIBE_STRUCT(Dated, (), (id, a, b, seq))

struct Stamped {
  int id = 0;
  std::optional<int> a{};
  std::string note = "none";
  int seq = 0;
  bool operator==(const Stamped&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stamped, (), (id, a, note, seq))

using Orders = kf::Table<Order, kf::Key<&Order::id>>;
using Events = std::vector<Event>;
using Rows = std::vector<Order>;

constexpr auto deletes = kf::source<&Event::op> == 'D';
constexpr auto truncates = kf::source<&Event::op> == 'T';

template <class Table>
auto feed(Table& table, Events events) {
  return table.apply_changes(std::move(events))
      .template sequence_by<&Event::seq>()
      .apply_as_deletes(deletes)
      .apply_as_truncates(truncates);
}
template <class Table>
auto load(Table& table, Events events) {
  return feed(table, std::move(events)).execute();
}

Order row(int id, std::string status, std::optional<int> cents = std::nullopt) {
  return {id, std::move(status), cents};
}
Event set(int id, std::string status, int seq, std::optional<int> cents = std::nullopt) {
  return {id, 'U', std::move(status), cents, seq};
}
Event gone(int id, int seq) { return {id, 'D', {}, {}, seq}; }
Event truncate(int seq) { return {0, 'T', {}, {}, seq}; }

}  // namespace

// --- Late events, deletes, truncates

TEST_CASE("a late row does not change a newer one") {
  Orders table;
  load(table, {set(1, "new", 9)});
  const auto late = load(table, {set(1, "old", 5)});
  CHECK(rows_of(table) == Rows{row(1, "new")});
  CHECK(late.metrics().dropped_late == 1);
  CHECK_FALSE(late.committed());
}

TEST_CASE("a late row does not resurrect a deleted key") {
  Orders table;
  load(table, {set(1, "open", 1)});
  CHECK(counts_of(load(table, {gone(1, 5)})) == Counts{0, 1, 0});
  CHECK(load(table, {set(1, "late", 4)}).metrics().dropped_late == 1);
  CHECK(table.empty());
  CHECK(counts_of(load(table, {set(1, "again", 6)})) == Counts{0, 0, 1});
  CHECK(rows_of(table) == Rows{row(1, "again")});
}

TEST_CASE("a late delete of a row that the same load made counts as late") {
  Orders table;
  CHECK(load(table, {set(1, "a", 20), gone(1, 10)}).metrics().dropped_late == 1);
  CHECK(load(table, {set(1, "b", 30), gone(1, 25)}).metrics().dropped_late == 1);
  CHECK(rows_of(table) == Rows{row(1, "b")});
}

TEST_CASE("a delete of a key that never was is remembered, without a version") {
  Orders table;
  const auto result = load(table, {gone(1, 5)});
  CHECK_FALSE(result.committed());
  CHECK(result.metrics().skipped == 1);
  CHECK(table.version() == 0);
  CHECK(load(table, {set(1, "late", 3)}).metrics().dropped_late == 1);
  CHECK(table.empty());
}

TEST_CASE("a truncate deletes the rows that are not newer") {
  Orders table;
  load(table, {set(1, "a", 1), set(2, "b", 8), set(3, "c", 2)});
  const auto result = load(table, {truncate(5)});
  CHECK(rows_of(table) == Rows{row(2, "b")});
  CHECK(counts_of(result) == Counts{0, 2, 0});
  CHECK(result.metrics().not_matched_by_source_deleted == 2);
  CHECK(result.metrics().skipped == 1);
}

TEST_CASE("events before the last truncate are late for every key") {
  Orders table;
  load(table, {truncate(5)});
  const auto result = load(table, {set(1, "late", 4), gone(2, 3), truncate(4), set(3, "c", 6)});
  CHECK(result.metrics().dropped_late == 3);
  CHECK(rows_of(table) == Rows{row(3, "c")});
}

TEST_CASE("a truncate deletes rows that no feed brought") {
  Orders table;
  table.append({row(1, "by hand")});
  load(table, {truncate(1)});
  CHECK(table.empty());
}

// --- Ties

TEST_CASE("of equal sequences the later position wins") {
  Orders table;
  load(table, {set(1, "first", 5), set(1, "second", 5)});
  CHECK(rows_of(table) == Rows{row(1, "second")});
  load(table, {set(2, "row", 5), gone(2, 5)});
  CHECK_FALSE(table.contains(2));
  load(table, {gone(3, 5), set(3, "row", 5)});
  CHECK(table.contains(3));
}

TEST_CASE("of equal sequences the later load wins") {
  Orders table;
  load(table, {set(1, "first", 5)});
  load(table, {set(1, "second", 5)});
  CHECK(rows_of(table) == Rows{row(1, "second")});
  load(table, {gone(1, 5)});
  CHECK(table.empty());
  load(table, {set(1, "third", 5)});
  CHECK(rows_of(table) == Rows{row(1, "third")});
}

TEST_CASE("of an upsert and a truncate with equal sequences the later one wins") {
  Orders table;
  load(table, {set(1, "a", 5), truncate(5), set(2, "b", 5)});
  CHECK(rows_of(table) == Rows{row(2, "b")});
  load(table, {truncate(5)});
  CHECK(table.empty());
}

TEST_CASE("on_tie(reject) names the key and both positions, and writes nothing") {
  Orders table;
  load(table, {set(1, "row", 1)});
  const Unharmed unharmed(table);
  const auto error = error_of<kf::SequenceTie>([&] {
    feed(table, {set(2, "x", 7), set(1, "a", 5), set(3, "y", 5), gone(1, 5)}).on_tie(kf::reject).execute();
  });
  CHECK(error.key == "1");
  CHECK(error.sequence == "5");
  CHECK(error.first_position == 1);
  CHECK(error.second_position == 3);
}

TEST_CASE("on_tie(reject) sees ties among late events, and with what is known") {
  Orders table;
  load(table, {set(1, "row", 9), gone(2, 8), truncate(1)});
  const auto positions = [&](Events events) {
    const auto error =
        error_of<kf::SequenceTie>([&] { feed(table, std::move(events)).on_tie(kf::reject).execute(); });
    return std::pair(error.first_position, error.second_position);
  };
  using Pair = std::pair<kf::Position, kf::Position>;
  CHECK(positions({set(1, "a", 5), set(1, "b", 5)}) == Pair{0, 1});
  CHECK(positions({set(1, "new", 12), set(1, "tie", 9)}) == Pair{kf::no_position, 1});
  CHECK(positions({set(3, "z", 1)}) == Pair{kf::no_position, 0});
  CHECK(positions({set(2, "z", 8)}) == Pair{kf::no_position, 0});
  CHECK(positions({truncate(1)}) == Pair{kf::no_position, 0});
  CHECK(positions({truncate(20), set(4, "z", 30), truncate(20)}) == Pair{0, 2});
  CHECK(positions({truncate(20), set(4, "z", 20)}) == Pair{0, 1});
  CHECK_NOTHROW(feed(table, {set(1, "a", 10), set(2, "b", 10)}).on_tie(kf::reject).execute());
}

// --- Sequences

namespace {

template <class Seq>
struct Sequenced {
  int id = 0;
  Seq seq{};
  bool operator==(const Sequenced&) const = default;
};

template <class Seq>
auto load_sequenced(std::vector<Sequenced<Seq>> events) {
  kf::Table<Sequenced<Seq>, kf::Key<&Sequenced<Seq>::id>> table;
  table.apply_changes(std::move(events)).template sequence_by<&Sequenced<Seq>::seq>().execute();
  return rows_of(table);
}

}  // namespace

TEST_CASE("a sequence may be of any type that compares") {
  CHECK(load_sequenced<std::string>({{1, "b"}, {1, "a"}}) == std::vector<Sequenced<std::string>>{{1, "b"}});
  CHECK(load_sequenced<double>({{1, 2.5}, {1, -1.0}}) == std::vector<Sequenced<double>>{{1, 2.5}});
  const kf::Timestamp early{std::chrono::seconds(1)};
  const kf::Timestamp later{std::chrono::seconds(2)};
  CHECK(load_sequenced<kf::Timestamp>({{1, later}, {1, early}})[0].seq == later);
  CHECK(load_sequenced<std::optional<int>>({{1, 2}, {1, 1}})[0].seq == 2);
}

TEST_CASE("several members of sequence_by are compared in turn") {
  struct Tick {
    int id = 0;
    std::int64_t time = 0;
    int line = 0;
    bool operator==(const Tick&) const = default;
  };
  kf::Table<Tick, kf::Key<&Tick::id>> table;
  table.apply_changes(std::vector<Tick>{{1, 5, 2}, {1, 5, 1}, {1, 4, 9}})
      .sequence_by<&Tick::time, &Tick::line>()
      .execute();
  CHECK(rows_of(table) == std::vector<Tick>{{1, 5, 2}});
}

TEST_CASE("a sequence that is NaN or empty is an error that names its column and position") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto of_nan = error_of<kf::InvalidSequence>([&] { load_sequenced<double>({{1, 1.0}, {2, nan}}); });
  CHECK(of_nan.column == "seq");
  CHECK(of_nan.position == 1);
  const auto of_empty = error_of<kf::InvalidSequence>(
      [&] { load_sequenced<std::optional<int>>({{1, 1}, {1, 2}, {1, std::nullopt}}); });
  CHECK(of_empty.position == 2);
}

TEST_CASE("a key part that is NaN is an error") {
  struct Point {
    double id = 0;
    int seq = 0;
    bool operator==(const Point&) const = default;
  };
  kf::Table<Point, kf::Key<&Point::id>> table;
  const auto error = error_of<kf::InvalidKey>([&] {
    table.apply_changes(std::vector<Point>{{1, 1}, {std::nan(""), 2}}).sequence_by<&Point::seq>().execute();
  });
  CHECK(error.position == 1);
}

// --- Rows that came or went by other writes

TEST_CASE("a row that holds its sequence is as new as that says") {
  kf::Table<Sequenced<int>, kf::Key<&Sequenced<int>::id>> table;
  table.append({{1, 5}, {2, 5}});
  const auto result = table.apply_changes(std::vector<Sequenced<int>>{{1, 4}, {2, 6}})
                          .sequence_by<&Sequenced<int>::seq>()
                          .execute();
  CHECK(rows_of(table) == std::vector<Sequenced<int>>{{1, 5}, {2, 6}});
  CHECK(result.metrics().dropped_late == 1);
}

TEST_CASE("a row without a sequence is older than every event") {
  Orders table;
  table.append({row(1, "by hand"), row(2, "by hand")});
  load(table, {set(1, "fed", -1000), gone(2, -1000)});
  CHECK(rows_of(table) == Rows{row(1, "fed")});
}

TEST_CASE("a row that another write erased comes back with a newer event only") {
  Orders table;
  load(table, {set(1, "fed", 5)});
  table.erase(1);
  CHECK(load(table, {set(1, "late", 4)}).metrics().dropped_late == 1);
  CHECK(table.empty());
  load(table, {set(1, "new", 6)});
  CHECK(rows_of(table) == Rows{row(1, "new")});
}

TEST_CASE("a restored row is taken for as new as the newest event of its key") {
  Orders table;
  load(table, {set(1, "one", 1)});
  load(table, {set(1, "five", 5)});
  table.restore(1);
  CHECK(load(table, {set(1, "three", 3)}).metrics().dropped_late == 1);
  CHECK(rows_of(table) == Rows{row(1, "one")});
}

TEST_CASE("a row brought by another write after a delete goes with newer deletes only") {
  Orders table;
  load(table, {gone(1, 5)});
  table.insert(row(1, "by hand"));
  load(table, {gone(1, 4)});
  CHECK(table.contains(1));
  load(table, {gone(1, 6)});
  CHECK(table.empty());
}

TEST_CASE("a row that another write made newer is as new as it says, in all its columns") {
  kf::Table<Dated, kf::Key<&Dated::id>> table;
  const auto patch = [&](std::vector<Dated> events) {
    return table.apply_changes(std::move(events)).sequence_by<&Dated::seq>().ignore_null_updates().execute();
  };
  patch({{1, 10, {}, 5}});
  table.upsert(Dated{1, 11, 12, 9});
  CHECK(patch({{1, 20, 21, 7}}).metrics().dropped_late == 1);
  patch({{1, {}, 22, 10}});
  CHECK(rows_of(table) == std::vector<Dated>{{1, 11, 22, 10}});
}

TEST_CASE("rows without a default, and sequences with nothing but <, will do") {
  struct Version {
    int major;
    bool operator<(const Version& other) const { return major < other.major; }
  };
  struct Fixed {
    explicit Fixed(int row_id, int row_version) : id(row_id), version{row_version} {}
    int id;
    Version version;
  };
  kf::Table<Fixed, kf::Key<&Fixed::id>> table;
  const auto load_fixed = [&](std::vector<Fixed> rows) {
    return table.apply_changes(std::move(rows)).sequence_by<&Fixed::version>().on_tie(kf::reject).execute();
  };
  load_fixed({Fixed(1, 5), Fixed(2, 5), Fixed(1, 4)});
  CHECK(load_fixed({Fixed(1, 3)}).metrics().dropped_late == 1);
  CHECK(table.at(1).version.major == 5);
  CHECK_THROWS_AS(load_fixed({Fixed(2, 5)}), kf::SequenceTie);
}

TEST_CASE("on_tie(reject) compares a truncate with what is known of every key") {
  Orders table;
  load(table, {set(1, "row", 10), gone(2, 20), set(3, "erased", 30)});
  table.erase(3);
  const auto key_of_tie = [&](Events events) {
    const Unharmed unharmed(table);
    const auto error =
        error_of<kf::SequenceTie>([&] { feed(table, std::move(events)).on_tie(kf::reject).execute(); });
    CHECK(error.first_position == kf::no_position);
    CHECK(error.second_position == 1);
    return error.key + "@" + error.sequence;
  };
  CHECK(key_of_tie({set(9, "x", 99), truncate(10)}) == "1@10");
  CHECK(key_of_tie({set(9, "x", 99), truncate(20)}) == "2@20");
  CHECK(key_of_tie({set(9, "x", 99), truncate(30)}) == "3@30");
  CHECK(key_of_tie({set(2, "named", 99), truncate(20), truncate(98)}) == "2@20");
  CHECK_NOTHROW(feed(table, {truncate(15)}).on_tie(kf::reject).execute());
  CHECK_NOTHROW(feed(table, {truncate(10)}).on_tie(kf::reject).execute());  // 1 is gone, and forgotten
}

// --- What other writes set in columns that no event has

namespace {

// A row that a feed made, with a note that another write set.
Orders noted(const Events& events) {
  Orders table;
  load(table, events);
  table.update_where(kf::target<&Order::id> == 1, kf::target<&Order::note> = "mine");
  return table;
}
Rows note_is(std::string note) { return {{1, "a", std::nullopt, std::move(note)}}; }

}  // namespace

TEST_CASE("a feed that is told again leaves what another write set") {
  const Events events{gone(1, 5), set(1, "a", 10)};
  Orders table = noted(events);
  CHECK(load(table, events).metrics().affected() == 0);
  CHECK(load(table, {gone(1, 5)}).metrics().dropped_late == 1);
  CHECK(rows_of(table) == note_is("mine"));
}

TEST_CASE("a delete older than every upsert of a row leaves what another write set") {
  Orders table = noted({set(1, "a", 10)});
  CHECK(load(table, {gone(1, 5)}).metrics().dropped_late == 1);
  CHECK(load(table, {gone(1, 5), gone(1, 7), truncate(6)}).metrics().affected() == 0);
  CHECK(rows_of(table) == note_is("mine"));
}

TEST_CASE("a late delete between two upserts takes what another write set, once") {
  for (const bool late_first : {false, true}) {
    Orders table = noted(late_first ? Events{set(1, "a", 10), set(1, "first", 3)}
                                    : Events{set(1, "first", 3), set(1, "a", 10)});
    CHECK(load(table, {gone(1, 5)}).metrics().matched_updated == 1);
    CHECK(rows_of(table) == note_is("none"));
    table.update_where(kf::target<&Order::id> == 1, kf::target<&Order::note> = "mine");
    CHECK(load(table, {gone(1, 5)}).metrics().dropped_late == 1);
    CHECK(load(table, {gone(1, 7)}).metrics().dropped_late == 1);  // nothing is known to be before it
    CHECK(rows_of(table) == note_is("mine"));
    load(table, {set(1, "late", 8)});
    CHECK(load(table, {gone(1, 9)}).metrics().matched_updated == 1);
    CHECK(rows_of(table) == note_is("none"));
  }
}

TEST_CASE("ignore_null_updates: deletes that are known or older leave what no event brought") {
  const auto sparse = [](Orders& table, Events events) {
    return feed(table, std::move(events)).ignore_null_updates().execute();
  };
  Orders table;
  sparse(table, {gone(1, 2), set(1, "a", 10)});
  table.update_where(kf::target<&Order::id> == 1, kf::target<&Order::note> = "mine",
                     kf::target<&Order::cents> = 3);
  CHECK(sparse(table, {gone(1, 2), set(1, "a", 10)}).metrics().affected() == 0);
  CHECK(sparse(table, {gone(1, 5)}).metrics().dropped_late == 1);
  CHECK(rows_of(table) == Rows{{1, "a", 3, "mine"}});
  sparse(table, {set(1, "late", 6)});
  CHECK(sparse(table, {gone(1, 7)}).metrics().matched_updated == 1);
  CHECK(rows_of(table) == Rows{row(1, "a")});
}

TEST_CASE("ignore_null_updates: a column goes with a delete after the upsert that brought it, once") {
  const auto sparse = [](Orders& table, Events events) {
    return feed(table, std::move(events)).ignore_null_updates().execute();
  };
  Orders table;
  sparse(table, {set(1, "old", 3, 33), set(1, "a", 10)});
  CHECK(sparse(table, {gone(1, 5)}).metrics().matched_updated == 1);
  CHECK(rows_of(table) == Rows{row(1, "a")});
  table.update_where(kf::target<&Order::id> == 1, kf::target<&Order::cents> = 4);
  CHECK(sparse(table, {gone(1, 5), gone(1, 6)}).metrics().affected() == 0);
  CHECK(rows_of(table) == Rows{row(1, "a", 4)});
}

TEST_CASE("a row brought by another write after a delete does not go when that is told again") {
  Orders table;
  load(table, {gone(1, 5)});
  table.insert(row(1, "by hand"));
  load(table, {gone(1, 5)});
  CHECK(rows_of(table) == Rows{row(1, "by hand")});
  load(table, {truncate(7)});
  CHECK(table.empty());
  table.insert(row(2, "by hand"));
  load(table, {truncate(7)});
  CHECK(rows_of(table) == Rows{row(2, "by hand")});
  load(table, {truncate(8)});
  CHECK(table.empty());
}

TEST_CASE("a base row stays as new as it says when an older event comes late") {
  kf::Table<Stamped, kf::Key<&Stamped::id>> table;
  const auto patch = [&](std::vector<Dated> events) {
    return table.apply_changes(std::move(events))
        .sequence_by<&Dated::seq>()
        .apply_as_deletes(kf::source<&Dated::a> == -1)
        .execute();
  };
  table.append({{1, 0, "base", 7}});
  patch({{1, 1, {}, 10}});
  patch({{1, 2, {}, 3}});
  CHECK(patch({{1, -1, {}, 5}}).metrics().dropped_late == 1);
  CHECK(rows_of(table) == std::vector<Stamped>{{1, 1, "base", 10}});
  CHECK(patch({{1, -1, {}, 8}}).metrics().matched_updated == 1);
  CHECK(rows_of(table) == std::vector<Stamped>{{1, 1, "none", 10}});
}

// --- Columns

TEST_CASE("an update leaves the columns alone that no event has") {
  Orders table;
  table.append({{1, "old", 5, "kept"}});
  load(table, {set(1, "new", 3)});
  CHECK(rows_of(table) == Rows{{1, "new", std::nullopt, "kept"}});
}

TEST_CASE("a delete between, however late, lets a row start from the defaults") {
  Orders table;
  table.append({{1, "old", 5, "kept"}});
  load(table, {set(1, "new", 3)});
  const auto result = load(table, {gone(1, 2)});
  CHECK(rows_of(table) == Rows{{1, "new", std::nullopt, "none"}});
  CHECK(counts_of(result) == Counts{1, 0, 0});
}

TEST_CASE("columns_except leaves columns out, columns_only takes no others, the key is always taken") {
  Orders table;
  table.apply_changes(Events{set(1, "a", 1, 10)})
      .sequence_by<&Event::seq>()
      .columns_except<&Event::cents>()
      .execute();
  table.apply_changes(Events{set(2, "b", 1, 20)})
      .sequence_by<&Event::seq>()
      .columns_only<&Event::cents>()
      .execute();
  table.apply_changes(Events{set(3, "c", 1, 30)})
      .sequence_by<&Event::seq>()
      .columns_except<&Event::id>()
      .execute();
  CHECK(rows_of(table) == Rows{row(1, "a"), row(2, "", 20), row(3, "c", 30)});
}

TEST_CASE("feeds of other columns share the sequence of a key, unless nulls are ignored") {
  const auto status = [](Orders& table) {
    return table.apply_changes(Events{set(1, "a", 10, 10)})
        .sequence_by<&Event::seq>()
        .columns_only<&Event::status>();
  };
  const auto cents = [](Orders& table) {
    return table.apply_changes(Events{set(1, "b", 5, 5)})
        .sequence_by<&Event::seq>()
        .columns_only<&Event::cents>();
  };
  Orders shared;
  status(shared).execute();
  CHECK(cents(shared).execute().metrics().dropped_late == 1);
  CHECK(rows_of(shared) == Rows{row(1, "a")});
  Orders own;
  status(own).ignore_null_updates().execute();
  cents(own).ignore_null_updates().execute();
  CHECK(rows_of(own) == Rows{row(1, "a", 5)});
}

TEST_CASE("ignore_null_updates keeps what an event does not bring") {
  Orders table;
  feed(table, {set(1, "a", 1, 10)}).ignore_null_updates().execute();
  feed(table, {set(1, "b", 2)}).ignore_null_updates().execute();
  CHECK(rows_of(table) == Rows{row(1, "b", 10)});
}

TEST_CASE("ignore_null_updates lets a late event fill in a column that newer ones left out") {
  Orders table;
  feed(table, {set(1, "b", 9)}).ignore_null_updates().execute();
  const auto result = feed(table, {set(1, "a", 5, 10)}).ignore_null_updates().execute();
  CHECK(rows_of(table) == Rows{row(1, "b", 10)});
  CHECK(result.metrics().matched_updated == 1);
  CHECK(feed(table, {set(1, "c", 4, 11)}).ignore_null_updates().execute().metrics().dropped_late == 1);
}

TEST_CASE("ignore_null_updates: an optional in an optional says keep, empty or a value") {
  Orders table;
  table.append({row(1, "a", 1), row(2, "b", 2), row(3, "c", 3)});
  const std::vector<Patch> patches{{1, "x", std::nullopt, 1},
                                   {2, std::nullopt, std::optional<int>(), 1},
                                   {3, std::nullopt, std::optional<int>(33), 1}};
  table.apply_changes(patches).sequence_by<&Patch::seq>().ignore_null_updates().execute();
  CHECK(rows_of(table) == Rows{row(1, "x", 1), row(2, "b"), row(3, "c", 33)});
}

// --- The source

TEST_CASE("an empty feed does nothing") {
  Orders table;
  const auto result = load(table, {});
  CHECK(result.metrics() == kf::Metrics{});
  CHECK_FALSE(result.committed());
}

TEST_CASE("keys() names the members that are the key") {
  Orders table;
  table.apply_changes(std::vector<Numbered>{{7, "a", 1}})
      .keys<&Numbered::number>()
      .sequence_by<&Numbered::seq>()
      .execute();
  CHECK(rows_of(table) == Rows{row(7, "a")});
}

TEST_CASE("the key of an event must fit the key of the table") {
  Orders table;
  const std::vector<Wide> events = {{1, "a", 1}, {1LL << 40U, "a", 1}};
  const auto refused = [&](const kf::ValueOutOfRange& error) {
    CHECK(error.column == "id");
    CHECK(error.key == "1099511627776");
    CHECK(error.position == 1);
    CHECK(table.version() == 0);
  };
  refused(error_of<kf::ValueOutOfRange>(
      [&] { table.apply_changes(events).sequence_by<&Wide::seq>().execute(); }));
  refused(error_of<kf::ValueOutOfRange>(
      [&] { table.apply_changes(events).sequence_by<&Wide::seq>().ignore_null_updates().execute(); }));
  refused(error_of<kf::ValueOutOfRange>([&] {
    table.apply_changes(events)
        .sequence_by<&Wide::seq>()
        .apply_as_deletes(kf::source<&Wide::status> == "a")
        .execute();
  }));
}

TEST_CASE("a value of an event that does not fit its column names the event") {
  Orders table;
  const auto refused = [&](const kf::ValueOutOfRange& error, kf::Position position) {
    CHECK(error.column == "cents");
    CHECK(error.value == "3000000000");
    CHECK(error.key == "7");
    CHECK(error.position == position);
    CHECK(table.version() == 0);
  };
  // The newest event makes the row, not the last one.
  refused(error_of<kf::ValueOutOfRange>([&] {
            table.apply_changes(std::vector<Priced>{{7, 1, 1}, {7, 3'000'000'000, 3}, {7, 2, 2}})
                .sequence_by<&Priced::seq>()
                .execute();
          }),
          1);
  refused(error_of<kf::ValueOutOfRange>([&] {
            table.apply_changes(std::vector<Priced>{{7, 1, 1}, {7, {}, 2}, {7, 3'000'000'000, 3}, {7, 2, 4}})
                .sequence_by<&Priced::seq>()
                .ignore_null_updates()
                .execute();
          }),
          2);

  table.apply_changes(std::vector<Priced>{{7, 3'000'000'000, 1}, {7, 2, 2}})
      .sequence_by<&Priced::seq>()
      .execute();
  CHECK(table.at(7).cents == 2);  // what is overtaken within the feed goes into no column
}

TEST_CASE("a single-pass feed is read once") {
  struct Counter {
    struct Iterator {
      using value_type = Event;
      using difference_type = std::ptrdiff_t;
      int at = 0;
      int* reads = nullptr;
      Event operator*() const {
        ++*reads;
        return set(at % 3, std::to_string(at), at);
      }
      Iterator& operator++() {
        ++at;
        return *this;
      }
      void operator++(int) { ++at; }
      bool operator==(std::default_sentinel_t) const { return at == 90; }
    };
    int* reads;
    Iterator begin() const { return {0, reads}; }
    std::default_sentinel_t end() const { return {}; }
  };
  int reads = 0;
  Orders table;
  table.apply_changes(Counter{&reads}).sequence_by<&Event::seq>().execute();
  CHECK(reads == 90);
  CHECK(rows_of(table) == Rows{row(0, "87"), row(1, "88"), row(2, "89")});
}

TEST_CASE("the rows of a feed that is kept are moved from, those of another are not") {
  using Text = Sequenced<std::string>;
  kf::Table<Text, kf::Key<&Text::id>> table;
  std::vector<Text> events{{1, "a sequence too long for the small buffer"}};
  const char* const buffer = events[0].seq.data();
  table.apply_changes(events).sequence_by<&Text::seq>().execute();
  CHECK(events[0].seq.size() == 40);
  table.clear();
  kf::Table<Text, kf::Key<&Text::id>> other;
  other.apply_changes(std::move(events)).sequence_by<&Text::seq>().execute();
  CHECK(other.at(1).seq.data() == buffer);
}

TEST_CASE("a table may be its own feed") {
  kf::Table<Sequenced<int>, kf::Key<&Sequenced<int>::id>> table;
  table.append({{1, 5}, {2, 6}});
  const auto result = table.apply_changes(table).sequence_by<&Sequenced<int>::seq>().execute();
  CHECK(result.metrics().unchanged == 2);
  CHECK_FALSE(result.committed());
}

// --- The commit

TEST_CASE("history records a feed as text") {
  Orders table;
  feed(table, {set(1, "a", 1)})
      .ignore_null_updates()
      .columns_except<&Event::cents>()
      .tombstones(kf::keep_last(7))
      .on_tie(kf::reject)
      .metadata("batch 7")
      .execute();
  const auto commit = table.history().back();
  CHECK(commit.operation() == "APPLY CHANGES");
  CHECK(commit.metadata() == "batch 7");
  CHECK(commit.parameters() ==
        "KEYS (id) SEQUENCE BY seq APPLY AS DELETE WHEN (source.op = 'D') APPLY AS TRUNCATE WHEN "
        "(source.op = 'T') IGNORE NULL UPDATES COLUMNS * EXCEPT cents TOMBSTONES KEEP LAST 7 ON TIE REJECT");
}

TEST_CASE("each event counts once") {
  Orders table;
  load(table, {set(1, "a", 5), set(2, "b", 5), set(3, "c", 5), set(4, "d", 5)});
  const auto result = load(table, {set(1, "a", 6),                  // unchanged
                                   set(2, "x", 6), set(2, "y", 7),  // folded, updated
                                   gone(3, 6), set(3, "late", 4),   // deleted, late
                                   set(4, "x", 6), gone(4, 7),      // folded, deleted
                                   set(5, "e", 1),                  // inserted
                                   set(6, "f", 1), gone(6, 2)});    // folded, no row before and after
  kf::Metrics expected;
  expected.source_rows = 10;
  expected.unchanged = 1;
  expected.dropped_duplicates = 3;
  expected.updated = expected.matched_updated = 1;
  expected.deleted = expected.matched_deleted = 2;
  expected.dropped_late = 1;
  expected.inserted = 1;
  expected.skipped = 1;
  CHECK(result.metrics() == expected);
}

TEST_CASE("the changes of a feed are net: each row once, unchanged ones not at all") {
  Orders table;
  load(table, {set(1, "a", 1), set(2, "b", 1)});
  const auto result = load(table, {gone(1, 2), set(1, "a", 3), set(2, "x", 2), set(2, "c", 3)});
  REQUIRE(result.changes().size() == 1);
  CHECK(result.changes()[0] == kf::Change<Order>::update(row(2, "b"), row(2, "c")));
}

TEST_CASE("a preview changes nothing, not even what is remembered") {
  Orders table;
  load(table, {set(1, "a", 1)});
  const Unharmed unharmed(table);
  const auto changes = feed(table, {gone(1, 5), gone(2, 9), truncate(3)}).preview();
  REQUIRE(changes.size() == 1);
  CHECK(changes[0] == kf::Change<Order>::erase(row(1, "a")));
  CHECK(feed(table, {set(2, "b", 2)}).preview().size() == 1);
}

TEST_CASE("a failed feed leaves what is remembered as it was") {
  kf::Table<Order, kf::Key<&Order::id>, kf::UniqueBy<&Order::status>> table;
  load(table, {set(1, "taken", 1)});
  CHECK_THROWS_AS(load(table, {gone(2, 9), set(3, "taken", 1)}), kf::UniqueViolation);
  CHECK(load(table, {set(2, "b", 2)}).metrics().inserted == 1);
}

TEST_CASE("once() skips a feed that was applied") {
  Orders table;
  feed(table, {set(1, "a", 1)}).once("loader", 7).execute();
  const auto again = feed(table, {set(1, "b", 2)}).once("loader", 7).execute();
  CHECK(again.already_applied());
  CHECK(table.once("loader", 8)
            .apply_changes(Events{set(1, "c", 3)})
            .sequence_by<&Event::seq>()
            .execute()
            .committed());
  CHECK(rows_of(table) == Rows{row(1, "c")});
}

TEST_CASE("a feed that writes to its table from a condition is refused") {
  Orders table;
  load(table, {set(1, "a", 1)});
  const Unharmed unharmed(table);
  CHECK_THROWS_AS(table.apply_changes(Events{set(1, "b", 2)})
                      .sequence_by<&Event::seq>()
                      .apply_as_deletes([&](const Event&) {
                        table.clear();
                        return false;
                      })
                      .execute(),
                  kf::ReentrantWrite);
}

TEST_CASE("a copy of a table remembers what the table does, on its own") {
  Orders table;
  load(table, {gone(1, 5), set(2, "b", 5), truncate(1)});
  Orders copy = table;
  load(copy, {gone(3, 9)});
  for (Orders* const each : {&copy, &table}) {
    CHECK(load(*each, {set(1, "late", 4), set(2, "late", 4), set(9, "late", 0)}).metrics().dropped_late == 3);
  }
  CHECK(load(copy, {set(3, "late", 8)}).metrics().dropped_late == 1);
  CHECK(load(table, {set(3, "new", 8)}).metrics().inserted == 1);
  const Orders moved = std::move(copy);
  CHECK(rows_of(moved) == Rows{row(2, "b")});
}

TEST_CASE("a feed with another type of sequence is refused") {
  Orders table;
  load(table, {set(1, "a", 1)});
  const Unharmed unharmed(table);
  CHECK_THROWS_AS(
      table.apply_changes(std::vector<Texted>{{1, "b", "2"}}).sequence_by<&Texted::at>().execute(),
      kf::FeedMismatch);
}

// --- Tombstones

TEST_CASE("tombstones(keep_last(n)) remembers the deletes that came last") {
  Orders table;
  feed(table, {gone(1, 10), gone(2, 10), gone(3, 10)}).tombstones(kf::keep_last(2)).execute();
  const auto result = load(table, {set(1, "forgotten", 5), set(2, "late", 5), set(3, "late", 5)});
  CHECK(result.metrics().dropped_late == 2);
  CHECK(rows_of(table) == Rows{row(1, "forgotten")});
}

TEST_CASE("a delete that is told again is remembered as one that came last") {
  Orders table;
  load(table, {gone(1, 10), gone(2, 10), gone(3, 10)});
  feed(table, {gone(1, 11)}).tombstones(kf::keep_last(2)).execute();
  CHECK(load(table, {set(1, "late", 5), set(2, "forgotten", 5), set(3, "late", 5)}).metrics().dropped_late ==
        2);
  CHECK(table.contains(2));
}

TEST_CASE("tombstones(keep_last(n)) goes by when the deletes of a load came, not by when their keys did") {
  const Events events{set(1, "a", 1), gone(2, 2), gone(1, 3)};
  Orders at_once;
  feed(at_once, events).tombstones(kf::keep_last(1)).execute();
  Orders one_by_one;
  for (const Event& event : events) feed(one_by_one, {event}).tombstones(kf::keep_last(1)).execute();
  for (Orders* table : {&at_once, &one_by_one}) {
    CHECK(load(*table, {set(1, "late", 1), set(2, "forgotten", 1)}).metrics().dropped_late == 1);
    CHECK(rows_of(*table) == Rows{row(2, "forgotten")});
  }
}

TEST_CASE("tombstones(keep_last(n)) counts the last of several deletes of a key") {
  Orders table;
  feed(table, {gone(1, 10), gone(2, 10), gone(3, 10), gone(1, 11), set(2, "back", 12), gone(2, 13)})
      .tombstones(kf::keep_last(2))
      .execute();
  const auto result = load(table, {set(1, "late", 5), set(2, "late", 5), set(3, "forgotten", 5)});
  CHECK(result.metrics().dropped_late == 2);
  CHECK(rows_of(table) == Rows{row(3, "forgotten")});
}

TEST_CASE("tombstones(keep_for(time)) forgets by the table's clock") {
  auto now = kf::Timestamp(std::chrono::seconds(100));
  kf::TableOptions options;
  options.clock = [&] { return now; };
  Orders table(options);
  const auto rule = kf::keep_for(std::chrono::seconds(10));
  load(table, {gone(1, 10)});
  now += std::chrono::seconds(8);
  load(table, {gone(2, 10)});
  now += std::chrono::seconds(2);
  feed(table, {}).tombstones(rule).execute();
  CHECK(load(table, {set(1, "late", 5)}).metrics().dropped_late == 1);  // ten seconds to the tick
  now += std::chrono::microseconds(1);
  feed(table, {}).tombstones(rule).execute();
  CHECK(load(table, {set(1, "forgotten", 5), set(2, "late", 5)}).metrics().dropped_late == 1);
  CHECK(rows_of(table) == Rows{row(1, "forgotten")});
}

TEST_CASE("tombstones() of a table that remembers none") {
  Orders table;
  CHECK_FALSE(feed(table, {}).tombstones(kf::keep_last(1)).execute().committed());
  CHECK_FALSE(feed(table, {}).tombstones(kf::keep_for(std::chrono::seconds(1))).execute().committed());
  CHECK(load(table, {set(1, "first", 5)}).metrics().inserted == 1);
}

TEST_CASE("tombstones(keep_for(all time)) forgets nothing, at either end of time") {
  for (const kf::Timestamp now : {kf::Timestamp::min(), kf::Timestamp::max()}) {
    for (const auto duration : {std::chrono::microseconds::min(), std::chrono::microseconds::max()}) {
      kf::TableOptions options;
      options.clock = [now] { return now; };
      Orders table(options);
      feed(table, {gone(1, 10)}).tombstones(kf::keep_for(duration)).execute();
      CHECK(load(table, {set(1, "late", 5)}).metrics().dropped_late == 1);  // it came in this very moment
    }
  }
}

TEST_CASE("the sequences of rows that are there are never forgotten") {
  Orders table;
  feed(table, {set(1, "new", 9), gone(2, 9)}).tombstones(kf::keep_last(0)).execute();
  CHECK(load(table, {set(1, "late", 5)}).metrics().dropped_late == 1);
  CHECK(load(table, {set(2, "forgotten", 5)}).metrics().inserted == 1);
}

TEST_CASE("memory_usage() counts the sequences of single columns while they are remembered") {
  Events events;
  for (int id = 0; id < 1000; ++id) events.push_back(set(id, "a", id));
  Orders whole;
  load(whole, events);
  Orders sparse;
  feed(sparse, events).ignore_null_updates().execute();
  constexpr std::size_t columns = 1000 * 4 * sizeof(std::optional<int>);
  CHECK(sparse.memory_usage().indexes >= whole.memory_usage().indexes + columns);
  const Orders copy = sparse;
  CHECK(copy.memory_usage().indexes >= whole.memory_usage().indexes + columns);
  for (Orders* table : {&whole, &sparse}) load(*table, {truncate(1000)});
  CHECK(sparse.memory_usage().indexes == whole.memory_usage().indexes);
}

TEST_CASE("a key that another write erased is remembered, tombstones or not") {
  Orders table;
  load(table, {set(1, "fed", 5)});
  table.erase(1);
  feed(table, {gone(2, 9)}).tombstones(kf::keep_last(0)).execute();
  CHECK(load(table, {set(1, "late", 4)}).metrics().dropped_late == 1);
  CHECK(table.empty());
}

// --- Computed keys

namespace {

struct Folded {
  std::string name{};
  int level = 0;
  bool operator==(const Folded&) const = default;
};
BOOST_DESCRIBE_STRUCT(Folded, (), (name, level))

struct FoldedEvent {
  std::string name{};
  int level = 0;
  int seq = 0;
};
BOOST_DESCRIBE_STRUCT(FoldedEvent, (), (name, level, seq))

constexpr auto fold_case = [](const auto& row) {
  std::string out = row.name;
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
};

}  // namespace

TEST_CASE("a computed key is found, and made by the columns that it is computed from") {
  kf::Table<Folded, kf::Key<fold_case>> table;
  const auto events = [&](std::vector<FoldedEvent> list) {
    return table.apply_changes(std::move(list)).keys<fold_case>().sequence_by<&FoldedEvent::seq>();
  };
  events({{"Ann", 1, 1}, {"ANN", 2, 3}, {"ann", 3, 2}}).execute();
  CHECK(rows_of(table) == std::vector<Folded>{{"ANN", 2}});
  CHECK_THROWS_AS(events({{"Bob", 1, 1}}).columns_only<&FoldedEvent::level>().execute(), kf::Error);
  CHECK(table.size() == 1);
}
