// The clauses of a merge and their actions; merge_matching_test.cpp has how rows are matched,
// merge_source_test.cpp where they come from.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

struct Order {
  int id = 0;
  std::string status = "draft";
  std::optional<int> cents;
  int revision = 1;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents, revision))

struct Change {
  std::int64_t id = 0;
  char op = ' ';
  std::string status;
  std::optional<int> cents;
};
BOOST_DESCRIBE_STRUCT(Change, (), (id, op, status, cents))

struct Brief {  // has its columns in Change, too
  int id = 0;
  std::string status;
  bool operator==(const Brief&) const = default;
};
BOOST_DESCRIBE_STRUCT(Brief, (), (id, status))

enum class Color { red, blue };

struct Sample {
  int id = 0;
  std::string text;
  std::optional<std::string> note = "set";
  Color color = Color::red;
  kf::Timestamp at{};
  double ratio = 0;
  bool flag = false;
  bool operator==(const Sample&) const = default;
};

struct Numbers {
  int id = 0;
  std::int8_t tiny = 0;
  std::uint32_t natural = 0;
  std::optional<std::int16_t> maybe;
  std::int64_t big = 0;
  float small_float = 0;
  bool operator==(const Numbers&) const = default;
};

using Orders = kf::Table<Order, kf::Key<&Order::id>>;
using Rows = std::vector<Order>;

template <auto Member>
constexpr auto& t = kf::target<Member>;
template <auto Member>
constexpr auto& s = kf::source<Member>;

Orders some_orders() {
  Orders orders;
  orders.append({{1, "new", 100, 1}, {2, "new", {}, 1}, {3, "paid", 300, 1}});
  return orders;
}

Rows rows_of(const Orders& orders) { return {orders.begin(), orders.end()}; }

const std::vector<Change> changes = {{2, 'U', "paid", 222}, {9, 'I', "new", 900}, {3, 'D', "", {}}};

}  // namespace

// --- when_matched

TEST_CASE("update_all from rows of the same type takes the whole row") {
  auto orders = some_orders();
  const auto result =
      orders.merge(Rows{{1, "paid", {}, 7}, {9, "x", 9, 9}}).when_matched().update_all().execute();
  CHECK(rows_of(orders) == Rows{{1, "paid", {}, 7}, {2, "new", {}, 1}, {3, "paid", 300, 1}});
  CHECK(result.metrics().matched_updated == 1);
  CHECK(result.metrics().skipped == 1);
}

TEST_CASE("update_all from rows of another type sets the columns of the same name") {
  auto orders = some_orders();
  orders.merge(changes).when_matched().update_all().execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 1}, {2, "paid", 222, 1}, {3, "", {}, 1}});
}

TEST_CASE("update sets the columns named") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_matched()
      .update(t<&Order::status> = s<&Change::status>, t<&Order::revision> = t<&Order::revision> + 1)
      .execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 1}, {2, "paid", {}, 2}, {3, "", 300, 2}});
}

TEST_CASE("update takes a callable that makes the row") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_matched()
      .update([](const Order& target, const Change& source) {
        Order made = target;
        made.status += source.op;
        return made;
      })
      .execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 1}, {2, "newU", {}, 1}, {3, "paidD", 300, 1}});
}

TEST_CASE("erase deletes the matched row") {
  auto orders = some_orders();
  const auto result = orders.merge(changes).when_matched(s<&Change::op> == 'D').erase().execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 1}, {2, "new", {}, 1}});
  CHECK(result.metrics().matched_deleted == 1);
  CHECK(result.metrics().skipped == 2);
}

TEST_CASE("do_nothing leaves the matched row alone") {
  auto orders = some_orders();
  const auto result = orders.merge(changes).when_matched().do_nothing().execute();
  CHECK(rows_of(orders) == rows_of(some_orders()));
  CHECK(result.metrics().skipped == 3);
  CHECK_FALSE(result.committed());
}

TEST_CASE("raise throws for the first row that reaches it, and nothing is written") {
  auto orders = some_orders();
  try {
    orders.merge(changes)
        .when_matched(s<&Change::op> == 'D')
        .raise("no deletions here")
        .when_matched()
        .update_all()
        .execute();
    FAIL("no exception");
  } catch (const kf::ClauseRaised& error) {
    CHECK(error.message == "no deletions here");
    CHECK(error.key == "3");
    CHECK(error.position == 2);
  }
  CHECK(rows_of(orders) == rows_of(some_orders()));
  CHECK(orders.version() == 1);
}

// --- when_not_matched

TEST_CASE("insert_all from rows of the same type inserts the row") {
  auto orders = some_orders();
  const auto result =
      orders.merge(Rows{{1, "x", {}, 7}, {9, "y", 9, 9}}).when_not_matched().insert_all().execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 1}, {2, "new", {}, 1}, {3, "paid", 300, 1}, {9, "y", 9, 9}});
  CHECK(result.metrics().inserted == 1);
  CHECK(result.metrics().skipped == 1);
}

TEST_CASE("insert_all from rows of another type takes the columns of the same name") {
  kf::Table<Brief, kf::Key<&Brief::id>> table;
  table.merge(changes).when_not_matched().insert_all().execute();
  CHECK(std::vector<Brief>(table.begin(), table.end()) ==
        std::vector<Brief>{{2, "paid"}, {9, "new"}, {3, ""}});
}

TEST_CASE("insert sets the columns named and leaves the others at their defaults") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_not_matched()
      .insert(t<&Order::id> = s<&Change::id>, t<&Order::cents> = s<&Change::cents> * 2)
      .execute();
  CHECK(orders.at(9) == Order{9, "draft", 1800, 1});
}

TEST_CASE("insert takes a callable that makes the row") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_not_matched()
      .insert([](const Change& change) { return Order{static_cast<int>(change.id), "made", {}, 5}; })
      .execute();
  CHECK(orders.at(9) == Order{9, "made", {}, 5});
  CHECK(orders.size() == 4);
}

TEST_CASE("do_nothing leaves the source row out") {
  auto orders = some_orders();
  const auto result = orders.merge(changes).when_not_matched().do_nothing().execute();
  CHECK(result.metrics().skipped == 3);
  CHECK(orders.size() == 3);
}

TEST_CASE("raise after when_not_matched throws for a new row") {
  auto orders = some_orders();
  CHECK_THROWS_AS(orders.merge(changes).when_not_matched().raise("unknown order").execute(),
                  kf::ClauseRaised);
  CHECK_NOTHROW(orders.merge(changes).when_not_matched(s<&Change::id> > 9).raise("unknown order").execute());
}

// --- when_not_matched_by_source

TEST_CASE("update after when_not_matched_by_source changes the rows that the source lacks") {
  auto orders = some_orders();
  const auto result = orders.merge(changes)
                          .when_not_matched_by_source()
                          .update(t<&Order::status> = "gone", t<&Order::revision> = t<&Order::revision> + 1)
                          .execute();
  CHECK(rows_of(orders) == Rows{{1, "gone", 100, 2}, {2, "new", {}, 1}, {3, "paid", 300, 1}});
  CHECK(result.metrics().not_matched_by_source_updated == 1);
  CHECK(result.metrics().skipped == 3);
}

TEST_CASE("update after when_not_matched_by_source takes a callable of the target row") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_not_matched_by_source()
      .update([](const Order& target) { return Order{target.id, "left", {}, 0}; })
      .execute();
  CHECK(orders.at(1) == Order{1, "left", {}, 0});
}

TEST_CASE("erase after when_not_matched_by_source deletes the rows that the source lacks") {
  auto orders = some_orders();
  const auto result =
      orders.merge(Rows{{2, "", {}, 0}}).when_not_matched_by_source(t<&Order::cents> > 100).erase().execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 1}, {2, "new", {}, 1}});
  CHECK(result.metrics().not_matched_by_source_deleted == 1);
}

TEST_CASE("do_nothing after when_not_matched_by_source shields rows from later clauses") {
  auto orders = some_orders();
  orders.merge(Rows())
      .when_not_matched_by_source(t<&Order::status> == "paid")
      .do_nothing()
      .when_not_matched_by_source()
      .erase()
      .execute();
  CHECK(rows_of(orders) == Rows{{3, "paid", 300, 1}});
}

TEST_CASE("raise after when_not_matched_by_source throws for the first row in table order") {
  auto orders = some_orders();
  try {
    orders.merge(Rows{{1, "", {}, 0}}).when_not_matched_by_source().raise("missing").execute();
    FAIL("no exception");
  } catch (const kf::ClauseRaised& error) {
    CHECK(error.key == "2");
    CHECK(error.position == kf::no_position);
  }
}

TEST_CASE("a matched row that no clause acted on is matched all the same") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_matched(s<&Change::op> == 'X')
      .erase()
      .when_not_matched_by_source()
      .erase()
      .execute();
  CHECK(rows_of(orders) == Rows{{2, "new", {}, 1}, {3, "paid", 300, 1}});
}

TEST_CASE("rows that the merge inserts are not unmatched by source") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_not_matched()
      .insert(t<&Order::id> = 77)
      .when_not_matched_by_source()
      .erase()
      .execute();
  CHECK(orders.size() == 3);
  CHECK(orders.contains(77));
  CHECK_FALSE(orders.contains(1));
}

// --- Conditions

TEST_CASE("conditions may be callables of the rows of their clause") {
  auto orders = some_orders();
  const auto result =
      orders.merge(changes)
          .when_matched([](const Order& target, const Change& source) {
            return target.id == source.id && source.op == 'D';
          })
          .erase()
          .when_not_matched([](const Change& source) { return source.op == 'I'; })
          .insert(t<&Order::id> = s<&Change::id>)
          .when_not_matched_by_source([](const Order& target) { return target.status == "new"; })
          .update(t<&Order::status> = "old")
          .execute();
  CHECK(rows_of(orders) == Rows{{1, "old", 100, 1}, {2, "new", {}, 1}, {9, "draft", {}, 1}});
  CHECK(result.metrics().affected() == 3);
}

TEST_CASE("a callable condition may answer unknown") {
  auto orders = some_orders();
  orders.merge(Rows())
      .when_not_matched_by_source([](const Order& target) -> std::optional<bool> {
        if (!target.cents) return std::nullopt;
        return *target.cents > 100;
      })
      .erase()
      .execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 1}, {2, "new", {}, 1}});
}

TEST_CASE("a condition may be a bool column alone") {
  struct Task {
    int id = 0;
    bool done = false;
    bool operator==(const Task&) const = default;
  };
  kf::Table<Task, kf::Key<&Task::id>> tasks;
  tasks.append({{1, false}, {2, true}});
  tasks.merge(std::vector<Task>()).when_not_matched_by_source(kf::target<&Task::done>).erase().execute();
  CHECK(tasks.size() == 1);
  tasks.merge(std::vector<Task>()).when_not_matched_by_source(!kf::target<&Task::done>).erase().execute();
  CHECK(tasks.empty());
}

TEST_CASE("the first true clause of a kind acts, in written order") {
  auto orders = some_orders();
  const auto set_status = [](const char* text) { return t<&Order::status> = text; };
  orders.merge(Rows{{1, "", 1, 0}, {2, "", 2, 0}, {3, "", 3, 0}})
      .when_matched(s<&Order::cents> == 2)
      .update(set_status("first"))
      .when_matched(s<&Order::cents> <= 2)
      .update(set_status("second"))
      .when_matched(s<&Order::cents> == 1)
      .update(set_status("third"))
      .when_matched()
      .update(set_status("last"))
      .execute();
  CHECK(rows_of(orders) == Rows{{1, "second", 100, 1}, {2, "first", {}, 1}, {3, "last", 300, 1}});
}

TEST_CASE("clauses of different kinds may be written in any order") {
  auto orders = some_orders();
  const auto result = orders.merge(changes)
                          .when_not_matched_by_source(t<&Order::id> == 7)
                          .erase()
                          .when_not_matched(s<&Change::op> == 'X')
                          .do_nothing()
                          .when_matched(s<&Change::op> == 'D')
                          .erase()
                          .when_not_matched_by_source()
                          .update(t<&Order::revision> = 0)
                          .when_matched()
                          .update(t<&Order::cents> = s<&Change::cents>)
                          .when_not_matched()
                          .insert(t<&Order::id> = s<&Change::id>)
                          .execute();
  CHECK(rows_of(orders) == Rows{{1, "new", 100, 0}, {2, "new", 222, 1}, {9, "draft", {}, 1}});
  CHECK(result.metrics().affected() == 4);
}

TEST_CASE("do_nothing shields rows from later clauses, raise included") {
  auto orders = some_orders();
  const auto result = orders.merge(changes)
                          .when_matched(t<&Order::id> == 3)
                          .do_nothing()
                          .when_matched(s<&Change::op> == 'D')
                          .raise("deletion")
                          .when_matched()
                          .update(t<&Order::cents> = 5)
                          .when_not_matched(s<&Change::op> == 'I')
                          .do_nothing()
                          .when_not_matched()
                          .raise("unknown")
                          .execute();
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().skipped == 2);
  CHECK(orders.at(3).cents == 300);
}

TEST_CASE("conditions see the table as it was before the merge") {
  auto orders = some_orders();
  const auto result = orders.merge(Rows{{1, "", {}, 0}, {8, "", {}, 0}, {2, "", {}, 0}})
                          .when_matched([&](const Order&, const Order&) {
                            return orders.size() == 3 && orders.at(1).revision == 1;
                          })
                          .update(t<&Order::revision> = 2)
                          .when_not_matched([&](const Order& row) { return !orders.contains(row.id); })
                          .insert_all()
                          .execute();
  CHECK(result.metrics().updated == 2);
  CHECK(result.metrics().inserted == 1);
}

TEST_CASE("an exception in a condition passes through unchanged") {
  auto orders = some_orders();
  CHECK_THROWS_AS(orders.merge(changes)
                      .when_matched([](const Order& target, const Change&) {
                        return target.id == 3 ? throw std::domain_error("three") : true;
                      })
                      .erase()
                      .execute(),
                  std::domain_error);
  CHECK(rows_of(orders) == rows_of(some_orders()));
}

// --- Assignments

TEST_CASE("every value of an assignment reads the old row") {
  struct Pair {
    int id = 0;
    std::string a, b;
    bool operator==(const Pair&) const = default;
  };
  kf::Table<Pair, kf::Key<&Pair::id>> pairs;
  pairs.append({{1, "left", "right"}, {2, "up", "down"}});
  constexpr auto swapped =
      std::tuple(kf::target<&Pair::a> = kf::target<&Pair::b>, kf::target<&Pair::b> = kf::target<&Pair::a>);
  pairs.merge(std::vector<Pair>{{1, "", ""}})
      .when_matched()
      .update(std::get<0>(swapped), std::get<1>(swapped))
      .when_not_matched_by_source()
      .update(std::get<0>(swapped), std::get<1>(swapped))
      .execute();
  CHECK(pairs.at(1) == Pair{1, "right", "left"});
  CHECK(pairs.at(2) == Pair{2, "down", "up"});
}

TEST_CASE("assignments take callables of the rows of their clause") {
  auto orders = some_orders();
  orders.merge(changes)
      .when_matched()
      .update(t<&Order::status> = [](const Order& target,
                                     const Change& source) { return target.status + source.op; })
      .when_not_matched()
      .insert(t<&Order::id> = [](const Change& source) { return source.id + 1; })
      .when_not_matched_by_source()
      .update(t<&Order::cents> = [](const Order& target) { return target.id * 11; })
      .execute();
  CHECK(rows_of(orders) ==
        Rows{{1, "new", 11, 1}, {2, "newU", {}, 1}, {3, "paidD", 300, 1}, {10, "draft", {}, 1}});
}

TEST_CASE("assignments take literals of every kind") {
  kf::Table<Sample, kf::Key<&Sample::id>> samples;
  samples.insert(Sample{});
  const kf::Timestamp at(std::chrono::hours(5));
  char buffer[] = "buffer";
  const auto update = [&](auto... assignment) {
    samples.merge(std::vector<Sample>(1)).when_matched().update(assignment...).execute();
  };
  update(kf::target<&Sample::text> = "literal", kf::target<&Sample::note> = std::nullopt,
         kf::target<&Sample::color> = Color::blue, kf::target<&Sample::at> = at,
         kf::target<&Sample::ratio> = 1, kf::target<&Sample::flag> = true);
  CHECK(samples.at(0) == Sample{0, "literal", std::nullopt, Color::blue, at, 1.0, true});
  update(kf::target<&Sample::text> = buffer, kf::target<&Sample::note> = "note",
         kf::target<&Sample::at> = std::chrono::sys_days(std::chrono::days(1)));
  CHECK(samples.at(0) ==
        Sample{0, "buffer", "note", Color::blue, kf::Timestamp(std::chrono::hours(24)), 1.0, true});
  update(kf::target<&Sample::text> = std::string("string"),
         kf::target<&Sample::note> = std::string_view("view"));
  CHECK(samples.at(0).text == "string");
  CHECK(samples.at(0).note == "view");
  update(kf::target<&Sample::text> = 'c');
  CHECK(samples.at(0).text == "c");
}

TEST_CASE("a number that does not fit its column is an error") {
  kf::Table<Numbers, kf::Key<&Numbers::id>> numbers;
  numbers.insert(Numbers{});
  const auto column_refused = [&](auto assignment) -> std::string {
    try {
      numbers.merge(std::vector<Numbers>(1)).when_matched().update(assignment).rewrite_unchanged().execute();
    } catch (const kf::ValueOutOfRange& error) {
      return error.column;
    }
    return "none";
  };
  constexpr auto& tiny = kf::target<&Numbers::tiny>;
  constexpr auto& natural = kf::target<&Numbers::natural>;
  constexpr auto& maybe = kf::target<&Numbers::maybe>;
  constexpr auto& big = kf::target<&Numbers::big>;
  constexpr auto& small_float = kf::target<&Numbers::small_float>;
  const double huge = std::ldexp(1.0, 63);

  CHECK(column_refused(tiny = 127) == "none");
  CHECK(column_refused(tiny = -128) == "none");
  CHECK(numbers.at(0).tiny == -128);
  CHECK(column_refused(tiny = 128) == "tiny");
  CHECK(column_refused(tiny = -129) == "tiny");
  CHECK(column_refused(tiny = 255U) == "tiny");
  CHECK(column_refused(natural = 4294967295LL) == "none");
  CHECK(numbers.at(0).natural == 4294967295U);
  CHECK(column_refused(natural = 4294967296LL) == "natural");
  CHECK(column_refused(natural = -1) == "natural");
  CHECK(column_refused(maybe = 32767) == "none");
  CHECK(column_refused(maybe = 32768) == "maybe");
  CHECK(column_refused(maybe = std::optional<int>(-40000)) == "maybe");
  CHECK(column_refused(maybe = std::optional<int>()) == "none");
  CHECK(numbers.at(0).maybe == std::nullopt);
  CHECK(column_refused(big = std::numeric_limits<std::uint64_t>::max()) == "big");
  CHECK(column_refused(big = huge) == "big");
  CHECK(column_refused(big = -huge) == "none");
  CHECK(numbers.at(0).big == std::numeric_limits<std::int64_t>::min());
  CHECK(column_refused(big = std::nextafter(huge, 0.0)) == "none");
  CHECK(column_refused(big = std::numeric_limits<double>::quiet_NaN()) == "big");
  CHECK(column_refused(big = std::numeric_limits<double>::infinity()) == "big");
  CHECK(column_refused(tiny = 127.9) == "tiny");
  CHECK(column_refused(tiny = 128.0) == "tiny");
  CHECK(column_refused(tiny = -128.0) == "none");
  CHECK(column_refused(natural = -1.0) == "natural");
  CHECK(column_refused(small_float = 1e300) == "small_float");
  CHECK(column_refused(small_float = -1e300) == "small_float");
  CHECK(column_refused(small_float = std::numeric_limits<double>::infinity()) == "none");
  CHECK(column_refused(small_float = 1e-300) == "none");
}

TEST_CASE("a column by name that does not fit is an error, too") {
  auto orders = some_orders();
  const std::vector<Change> far = {{std::int64_t{1} << 40, 'I', "", {}}};
  kf::Table<Brief, kf::Key<&Brief::id>> briefs;
  CHECK_THROWS_AS(briefs.merge(far).when_not_matched().insert_all().execute(), kf::ValueOutOfRange);
  CHECK(briefs.version() == 0);
}

TEST_CASE("assigned keys are judged by the final state") {
  auto orders = some_orders();
  orders.merge(Rows{{1, "", {}, 0}, {2, "", {}, 0}, {3, "", {}, 0}})
      .when_matched()
      .update(t<&Order::id> = t<&Order::id> + 1)  // a chain
      .execute();
  CHECK(orders.at(2) == Order{2, "new", 100, 1});
  CHECK(orders.at(4) == Order{4, "paid", 300, 1});
  CHECK_FALSE(orders.contains(1));

  orders.merge(Rows{{2, "", {}, 0}, {9, "", {}, 0}})
      .when_matched()
      .update(t<&Order::id> = 20)
      .when_not_matched()
      .insert(t<&Order::id> = 2)  // a key given up by the same merge
      .execute();
  CHECK(orders.at(20).cents == 100);
  CHECK(orders.at(2).status == "draft");

  CHECK_THROWS_AS(orders.merge(Rows{{3, "", {}, 0}}).when_matched().update(t<&Order::id> = 4).execute(),
                  kf::DuplicateKey);
}

// --- Rows that would not change

TEST_CASE("an update that changes nothing is unchanged, whatever made it") {
  auto orders = some_orders();
  const auto unchanged = [&](auto builder) {
    const auto result = std::move(builder).execute();
    return !result.committed() && result.metrics().unchanged == 1 && result.metrics().updated == 0;
  };
  const Rows same = {{1, "new", 100, 1}};
  CHECK(unchanged(orders.merge(same).when_matched().update_all()));
  CHECK(unchanged(orders.merge(same).when_matched().update(t<&Order::status> = "new")));
  CHECK(unchanged(
      orders.merge(same).when_matched().update([](const Order& target, const Order&) { return target; })));
}

TEST_CASE("rewrite_unchanged counts every update") {
  auto orders = some_orders();
  const Rows same = {{1, "new", 100, 1}};
  const auto all = orders.merge(same).when_matched().update_all().rewrite_unchanged().execute();
  CHECK(all.committed());
  CHECK(all.metrics().updated == 1);
  CHECK(all.metrics().unchanged == 0);
  CHECK(all.changes().size() == 1);
  const auto by_source = orders.merge(same)
                             .rewrite_unchanged()
                             .when_not_matched_by_source()
                             .update(t<&Order::revision> = 1)
                             .execute();
  CHECK(by_source.metrics().not_matched_by_source_updated == 2);
}

TEST_CASE("an unchanged row still counts as acted on") {
  auto orders = some_orders();
  const Rows twice = {{1, "new", 100, 1}, {1, "new", 100, 1}};
  CHECK_THROWS_AS(orders.merge(twice).when_matched().update_all().execute(), kf::DuplicateSourceKey);
}

// --- Ambiguity

TEST_CASE("two source rows that act on one target row are refused, whatever the actions") {
  auto orders = some_orders();
  const std::vector<Change> both = {{1, 'U', "x", {}}, {1, 'D', "", {}}};
  CHECK_THROWS_AS(
      orders.merge(both).when_matched(s<&Change::op> == 'D').erase().when_matched().update_all().execute(),
      kf::DuplicateSourceKey);
  const std::vector<Change> other_order = {{1, 'D', "", {}}, {1, 'U', "x", {}}};
  CHECK_THROWS_AS(orders.merge(other_order)
                      .when_matched(s<&Change::op> == 'D')
                      .erase()
                      .when_matched()
                      .update_all()
                      .execute(),
                  kf::DuplicateSourceKey);
  const std::vector<Change> deletions = {{1, 'D', "a", {}}, {1, 'D', "b", {}}};
  CHECK_THROWS_AS(orders.merge(deletions).when_matched(s<&Change::op> == 'D').erase().execute(),
                  kf::DuplicateSourceKey);
  CHECK(rows_of(orders) == rows_of(some_orders()));
}

TEST_CASE("two source rows that fire the same unconditional erase agree") {
  auto orders = some_orders();
  const std::vector<Change> deletions = {{1, 'D', "a", {}}, {3, 'D', "", {}}, {1, 'D', "b", {}}};
  const auto result = orders.merge(deletions).when_matched().erase().execute();
  CHECK(result.metrics().deleted == 2);
  CHECK(rows_of(orders) == Rows{{2, "new", {}, 1}});
}

TEST_CASE("a conditional and an unconditional erase on one row are refused") {
  auto orders = some_orders();
  const std::vector<Change> deletions = {{1, 'X', "a", {}}, {1, 'D', "b", {}}};
  CHECK_THROWS_AS(
      orders.merge(deletions).when_matched(s<&Change::op> == 'X').erase().when_matched().erase().execute(),
      kf::DuplicateSourceKey);
}

TEST_CASE("source rows that fire no clause, or do_nothing, do not count") {
  auto orders = some_orders();
  const std::vector<Change> rows = {
      {1, 'N', "a", {}}, {1, 'U', "b", {}}, {1, '-', "c", {}}, {1, 'N', "d", {}}};
  const auto result = orders.merge(rows)
                          .when_matched(s<&Change::op> == 'N')
                          .do_nothing()
                          .when_matched(s<&Change::op> == 'U')
                          .update_all()
                          .execute();
  CHECK(orders.at(1).status == "b");
  CHECK(result.metrics().skipped == 3);
}

TEST_CASE("two source rows with one new key are refused, unless only one is inserted") {
  auto orders = some_orders();
  const std::vector<Change> rows = {{9, 'I', "a", {}}, {9, 'N', "b", {}}};
  CHECK_THROWS_AS(orders.merge(rows).when_not_matched().insert(t<&Order::id> = s<&Change::id>).execute(),
                  kf::DuplicateSourceKey);
  const auto result = orders.merge(rows)
                          .when_not_matched(s<&Change::op> == 'I')
                          .insert(t<&Order::id> = s<&Change::id>)
                          .execute();
  CHECK(result.metrics().inserted == 1);
}

TEST_CASE("two source rows with one key are inserted under different keys") {
  auto orders = some_orders();
  const std::vector<Change> rows = {{9, 'I', "a", 91}, {9, 'I', "b", 92}};
  orders.merge(rows)
      .when_not_matched()
      .insert(t<&Order::id> = kf::coalesce(s<&Change::cents>, 0), t<&Order::status> = s<&Change::status>)
      .execute();
  CHECK(orders.at(91).status == "a");
  CHECK(orders.at(92).status == "b");
}
