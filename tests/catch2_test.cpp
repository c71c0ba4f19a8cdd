#include <keyfold/catch2.hpp>
#include <keyfold/keyfold.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Order {
  int id = 0;
  std::string status;
  std::optional<double> amount;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, amount))

struct Streamed {
  int id = 0;
  bool operator==(const Streamed&) const = default;
  friend std::ostream& operator<<(std::ostream& stream, const Streamed& row) {
    return stream << "number " << row.id;
  }
};
BOOST_DESCRIBE_STRUCT(Streamed, (), (id))

struct Bare {
  int id = 0;
  bool operator==(const Bare&) const = default;
};

using Orders = kf::Table<Order, kf::Key<&Order::id>>;

Orders two_orders() {
  kf::TableOptions options;
  options.clock = [] { return kf::Timestamp(std::chrono::seconds(0)); };
  Orders orders(options);
  orders.append(std::vector<Order>{{1, "open", {}}, {2, "it's\npaid", 2.5}});
  return orders;
}

template <class T>
std::string shown(const T& value) {
  return Catch::Detail::stringify(value);
}

TEST_CASE("a failed comparison of rows shows their columns") {
  const Orders orders = two_orders();
  const Order expected{1, "paid", 3.0};
  // What REQUIRE takes apart, and what it then writes.
  const auto comparison = (Catch::Decomposer() <= orders.at(1)) == expected;
  const Catch::ITransientExpression& failed = comparison;
  std::ostringstream message;
  failed.streamReconstructedExpression(message);
  CHECK(message.str() == "(id: 1, status: 'open', amount: NULL)\n==\n(id: 1, status: 'paid', amount: 3)");
}

TEST_CASE("rows stay on their line, also within ranges") {
  const Orders orders = two_orders();
  const std::string both =
      "{ (id: 1, status: 'open', amount: NULL), (id: 2, status: 'it''s\\npaid', amount: 2.5) }";
  CHECK(shown(std::vector<Order>(orders.begin(), orders.end())) == both);
  CHECK(shown(orders) == both);
  CHECK(shown(orders.as_of(kf::Version{1})) == both);
}

TEST_CASE("a row's own inserter is used, and a row without columns is what Catch2 makes of it") {
  CHECK(shown(Streamed{7}) == "number 7");
  CHECK(shown(kf::Change<Streamed>::update({7}, {8})) == "update (id: 7 -> 8)");
  CHECK(shown(Bare{7}) == "{?}");
  CHECK(shown(kf::Change<Bare>::update({7}, {8})) == "update {?} -> {?}");
}

TEST_CASE("changes, masks, counts and commits are shown") {
  Orders orders = two_orders();
  const auto result = orders.merge(std::vector<Order>{{1, "paid", {}}, {2, "", {}}, {3, "open", 1.0}})
                          .when_matched(kf::source<&Order::id> == 2)
                          .erase()
                          .when_matched()
                          .update_all()
                          .when_not_matched()
                          .insert_all()
                          .execute();
  const auto changes = result.changes();
  CHECK(shown(changes) ==
        "{ update (id: 1, status: 'open' -> 'paid', amount: NULL), "
        "erase (id: 2, status: 'it''s\\npaid', amount: 2.5), "
        "insert (id: 3, status: 'open', amount: 1) }");
  CHECK(shown(changes[1].kind()) == "erase");
  CHECK(shown(changes[0].columns()) == "(status)");
  CHECK(shown(changes[1].columns()) == "(id, status, amount)");
  CHECK(shown(kf::ColumnMask<Order>()) == "()");
  CHECK(shown(orders.changes(kf::Version{1}, kf::Version{2}).front()) ==
        "version 2: update (id: 1, status: 'open' -> 'paid', amount: NULL)");

  CHECK(shown(result.metrics()) == "source_rows=3 inserted=1 updated=1 deleted=1");
  CHECK(shown(result) == "version 2: source_rows=3 inserted=1 updated=1 deleted=1");
  CHECK(shown(orders.upsert(Order{1, "paid", {}})) == "no version: source_rows=1 unchanged=1");
  CHECK(shown(orders.history()[0]) == "version 1 at 1970-01-01T00:00:00Z: APPEND; source_rows=2 inserted=2");
}

}  // namespace
