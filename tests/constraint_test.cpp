// Named conditions that every row of a table meets.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Order {
  int id = 0;
  std::optional<int> amount;
  std::string status;

  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, amount, status))

using Rows = std::vector<Order>;
using Orders = kf::Table<Order, kf::Key<&Order::id>, kf::UniqueBy<&Order::status>>;

constexpr auto amount = kf::target<&Order::amount>;
constexpr auto status = kf::target<&Order::status>;

Orders guarded() {
  Orders orders;
  orders.append({{1, 10, "a"}, {2, 20, "b"}, {3, std::nullopt, "c"}});
  orders.require("amount is not negative", amount >= 0);
  return orders;
}

}  // namespace

TEST_CASE("a write that would leave a row that violates a constraint writes nothing") {
  Orders orders = guarded();
  const Unharmed<Orders> unharmed(orders);
  const auto error =
      error_of<kf::CheckViolation>([&] { orders.append({{7, 1, "x"}, {8, -1, "y"}, {9, -2, "z"}}); });
  CHECK(error.constraint == "amount is not negative");
  CHECK(error.condition == "(target.amount >= 0)");
  CHECK(error.key == "8");
  CHECK(error.position == 1);
  const std::string text = error.what();
  CHECK(text.find("'amount is not negative', (target.amount >= 0)") != std::string::npos);
  CHECK(text.find("the row that source row 1 makes (id: 8, amount: -1, status: 'y')") != std::string::npos);
  CHECK(text.find("unrequire()") != std::string::npos);
}

TEST_CASE("every write is judged") {
  Orders orders = guarded();
  orders.append({{4, 40, "d"}});
  const kf::Version legal = orders.version();
  const auto refused = [&](auto write) {
    const Unharmed<Orders> unharmed(orders);
    CHECK_THROWS_AS(write(), kf::CheckViolation);
  };
  const Rows negative{{1, -1, "a"}};
  refused([&] { orders.insert({9, -1, "x"}); });
  refused([&] { orders.upsert(negative); });
  refused([&] { orders.merge(negative).when_matched().update(amount = -5).execute(); });
  refused([&] { static_cast<void>(orders.merge(negative).when_matched().update_all().preview()); });
  refused([&] { orders.merge(negative).when_not_matched_by_source().update(amount = -5).execute(); });
  refused([&] { orders.overwrite(negative); });
  refused([&] { orders.replace_where(amount < 15, negative); });
  refused([&] { orders.unchecked().replace_where(amount == 10, negative); });
  refused([&] { orders.replace_using<&Order::status>(negative); });
  refused([&] { orders.replace_on(kf::source<&Order::id> == kf::target<&Order::id>, negative); });
  refused([&] { orders.update_where(amount > 0, amount = 0 - amount); });
  refused(
      [&] { orders.apply(kf::ChangeSet<Order>({kf::Change<Order>::update({1, 10, "a"}, {1, -1, "a"})})); });
  orders.erase_where(amount > 0);  // what goes is not judged
  orders.restore(legal);
  CHECK(orders.size() == 4);
}

TEST_CASE("each write of a transaction is judged at once, and the transaction goes on without it") {
  Orders orders = guarded();
  auto transaction = orders.transaction();
  transaction.insert({7, 70, "x"});
  const auto error =
      error_of<kf::CheckViolation>([&] { transaction.overwrite({{7, 71, "x"}, {8, -80, "y"}}); });
  CHECK(error.position == 1);
  transaction.insert({8, 80, "y"});
  transaction.commit();
  CHECK(orders.at(8).amount == 80);
  CHECK(orders.size() == 5);
}

TEST_CASE("what is required while a transaction is open is judged at its commit") {
  Orders orders = guarded();
  auto transaction = orders.transaction();
  transaction.insert({7, 70, "x"});
  orders.require("small", amount < 50);
  CHECK(error_of<kf::CheckViolation>([&] { transaction.commit(); }).constraint == "small");
  CHECK_FALSE(orders.contains(7));
  transaction.update_where(kf::target<&Order::id> == 7, amount = 7);
  transaction.commit();
  CHECK(orders.at(7).amount == 7);
}

TEST_CASE("restore and undo are judged, too") {
  Orders orders;
  orders.append({{1, -1, "a"}});
  orders.update_where(amount < 0, amount = 1);
  orders.require("amount is not negative", amount >= 0);
  const Unharmed<Orders> unharmed(orders);
  const auto error = error_of<kf::CheckViolation>([&] { orders.restore(1); });
  CHECK(error.position == kf::no_position);
  CHECK(error.key == "1");
  CHECK_THROWS_AS(orders.undo(2), kf::CheckViolation);
  CHECK(orders.as_of(1).at(1).amount == -1);  // the past is as it was
}

TEST_CASE("a condition that is unknown is met, one that is false is not") {
  Orders orders = guarded();
  orders.append({{7, std::nullopt, "x"}});
  orders.require("not ten", !(amount == 11));
  orders.append({{8, std::nullopt, "y"}});
  CHECK_THROWS_AS(orders.append({{9, 11, "z"}}), kf::CheckViolation);
  orders.unrequire("not ten");
  CHECK_THROWS_AS(orders.require("known", !kf::is_null(amount)), kf::CheckViolation);
}

TEST_CASE("only the final row counts") {
  Orders orders = guarded();
  orders.merge(Rows{{1, -7, "a"}}).when_matched().update(amount = 7).execute();
  CHECK(orders.at(1).amount == 7);
  orders.duplicates(kf::keep_last).upsert(Rows{{1, -1, "a"}, {1, 1, "a"}});
  CHECK(orders.at(1).amount == 1);
  orders.merge(Rows{{1, -7, "a"}}).when_matched().erase().execute();
  CHECK(orders.size() == 2);
}

TEST_CASE("keys are judged before constraints, and constraints in the order they were given") {
  Orders orders = guarded();
  orders.require("known status", status != "?");
  CHECK_THROWS_AS(orders.insert({1, -1, "?"}), kf::DuplicateKey);
  CHECK_THROWS_AS(orders.insert({9, -1, "a"}), kf::UniqueViolation);
  const auto first = [&](const Rows& rows) {
    return error_of<kf::CheckViolation>([&] { orders.append(rows); }).constraint;
  };
  CHECK(first({{9, -1, "?"}}) == "amount is not negative");
  CHECK(first({{9, 1, "?"}}) == "known status");
  CHECK(first({{8, 1, "?"}, {9, -1, "x"}}) == "known status");  // row by row
}

TEST_CASE("require() refuses what a row violates now, naming the first, and adds nothing") {
  Orders orders = guarded();
  const auto error = error_of<kf::CheckViolation>([&] { orders.require("small", amount < 15); });
  CHECK(error.constraint == "small");
  CHECK(error.key == "2");
  CHECK(error.position == kf::no_position);
  CHECK(orders.constraints().size() == 1);
  orders.insert({9, 99, "x"});
}

TEST_CASE("constraints are listed as they were given, and removed by name") {
  Orders orders = guarded();
  orders.require("short", [](const Order& order) { return order.status.size() < 5; });
  orders.require("named",
                 kf::named("status is lower case", [](const Order& order) { return order.status != "X"; }));
  using List = std::vector<kf::Constraint>;
  CHECK(orders.constraints() == List{{"amount is not negative", "(target.amount >= 0)"},
                                     {"short", "<condition>"},
                                     {"named", "status is lower case"}});
  CHECK_THROWS_AS(orders.insert({9, 1, "a long status"}), kf::CheckViolation);
  orders.unrequire("short");
  orders.insert({9, 1, "a long status"});
  CHECK(orders.constraints().size() == 2);
  CHECK(error_of<kf::ConstraintNotFound>([&] { orders.unrequire("short"); }).constraint == "short");
  CHECK_THROWS_AS(orders.insert({10, 1, "X"}), kf::CheckViolation);
}

TEST_CASE("a name is given once") {
  Orders orders = guarded();
  const auto error =
      error_of<kf::ConstraintExists>([&] { orders.require("amount is not negative", amount >= 1000); });
  CHECK(error.constraint == "amount is not negative");
  CHECK(orders.constraints().front().condition == "(target.amount >= 0)");
  orders.unrequire("amount is not negative");
  orders.require("amount is not negative", amount >= 1);
}

TEST_CASE("a copy of a table has its constraints, and each goes its own way from there") {
  Orders orders = guarded();
  Orders copy = orders;
  orders.unrequire("amount is not negative");
  orders.insert({9, -1, "x"});
  CHECK_THROWS_AS(copy.insert({9, -1, "x"}), kf::CheckViolation);
  copy = orders;
  CHECK(copy.constraints().empty());
  Orders moved = guarded();
  orders = std::move(moved);
  CHECK_THROWS_AS(orders.insert({9, -1, "x"}), kf::CheckViolation);
}

TEST_CASE("a condition may own what cannot be copied, for as long as a table has it") {
  std::weak_ptr<int> watched;
  {
    Orders copy;
    {
      Orders orders;
      auto limit = std::make_shared<int>(5);
      watched = limit;
      struct Below {
        std::unique_ptr<std::shared_ptr<int>> limit;
        bool operator()(const Order& order) const { return order.amount < **limit; }
      };
      orders.require("below the limit", Below{std::make_unique<std::shared_ptr<int>>(std::move(limit))});
      copy = orders;
    }
    CHECK_THROWS_AS(copy.insert({1, 6, "a"}), kf::CheckViolation);
    copy.insert({1, 4, "a"});
  }
  CHECK(watched.expired());
}

TEST_CASE("constraints are not changed within a write") {
  Orders orders = guarded();
  const Unharmed<Orders> unharmed(orders);
  const auto adds = [&](const Order&) {
    orders.require("another", amount >= 0);
    return true;
  };
  const auto removes = [&](const Order&) {
    orders.unrequire("amount is not negative");
    return true;
  };
  CHECK_THROWS_AS(orders.erase_where(adds), kf::ReentrantWrite);
  CHECK_THROWS_AS(orders.erase_where(removes), kf::ReentrantWrite);
  CHECK_THROWS_AS(orders.require("adds", adds), kf::ReentrantWrite);
  CHECK_THROWS_AS(orders.require("writes", [&](const Order&) { return orders.clear().committed(); }),
                  kf::ReentrantWrite);
  CHECK(orders.constraints().size() == 1);
}

TEST_CASE("what a condition throws passes through, and nothing is written") {
  Orders orders = guarded();
  bool broken = false;
  orders.require("moody", [&](const Order&) { return broken ? throw 7 : true; });
  broken = true;
  const Unharmed<Orders> unharmed(orders);
  CHECK_THROWS_AS(orders.insert({9, 1, "x"}), int);
  CHECK_THROWS_AS(orders.require("moodier", [](const Order&) -> bool { throw 8; }), int);
  CHECK(orders.constraints().size() == 2);
}
