// Writes that happen once: numbered by an application, skipped when the number is not a new one.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/view/transform.hpp>

#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Stock {
  int id = 0;
  int amount = 0;
  bool operator==(const Stock&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stock, (), (id, amount))

using Stocks = kf::Table<Stock, kf::Key<&Stock::id>>;
using Rows = std::vector<Stock>;
using Number = std::optional<std::uint64_t>;

}  // namespace

TEST_CASE("a number that was recorded is skipped") {
  Stocks stocks;
  const auto first = stocks.once("loader", 7).append({{1, 10}});
  CHECK(first.committed());
  CHECK_FALSE(first.already_applied());
  CHECK(stocks.last_applied("loader") == Number(7));
  const Unharmed unharmed(stocks);
  const auto again = stocks.once("loader", 7).append({{1, 10}, {2, 20}});
  CHECK(again.already_applied());
  CHECK_FALSE(again.committed());
  CHECK(again.version() == 1);
  CHECK(again.metrics() == kf::Metrics());
  CHECK(again.changes().empty());
}

TEST_CASE("a lower number is skipped, a higher one is written") {
  Stocks stocks;
  stocks.once("loader", 7).insert({1, 10});
  CHECK(stocks.once("loader", 6).insert({2, 20}).already_applied());
  CHECK(stocks.once("loader", 0).insert({2, 20}).already_applied());
  CHECK_FALSE(stocks.once("loader", 9).insert({2, 20}).already_applied());  // gaps are no matter
  CHECK(stocks.once("loader", 8).insert({3, 30}).already_applied());
  CHECK(stocks.last_applied("loader") == Number(9));
  CHECK(rows_of(stocks) == Rows{{1, 10}, {2, 20}});
}

TEST_CASE("restore and undo happen once, too, and take metadata") {
  Stocks stocks;
  stocks.append({{1, 10}});
  stocks.upsert({1, 11});
  stocks.tag("first", 1);
  CHECK(stocks.once("operator", 1).metadata("ticket 12").restore(1).committed());
  CHECK(stocks.history().back().metadata() == "ticket 12");
  CHECK(stocks.history().back().parameters() == "TO VERSION 1");
  CHECK(stocks.once("operator", 1).restore("first").already_applied());
  CHECK(stocks.once("operator", 2).undo(3).committed());
  CHECK(stocks.history().back().operation() == "UNDO");
  CHECK(stocks.once("operator", 2).undo(4).already_applied());
  CHECK(rows_of(stocks) == Rows{{1, 11}});
  CHECK(stocks.metadata("nothing to do").restore(stocks.version()).committed());
}

TEST_CASE("the number 0 is a number") {
  Stocks stocks;
  CHECK(stocks.last_applied("loader") == Number());
  CHECK_FALSE(stocks.once("loader", 0).insert({1, 10}).already_applied());
  CHECK(stocks.last_applied("loader") == Number(0));
  CHECK(stocks.once("loader", 0).insert({2, 20}).already_applied());
}

TEST_CASE("each application has its own numbers") {
  Stocks stocks;
  stocks.once("loader", 7).insert({1, 10});
  CHECK_FALSE(stocks.once("cleaner", 3).insert({2, 20}).already_applied());
  CHECK_FALSE(stocks.once("", 1).insert({3, 30}).already_applied());
  CHECK(stocks.once("cleaner", 3).insert({4, 40}).already_applied());
  CHECK(stocks.last_applied("loader") == Number(7));
  CHECK(stocks.last_applied("cleaner") == Number(3));
  CHECK(stocks.last_applied("") == Number(1));
  CHECK(stocks.last_applied("nobody") == Number());
}

TEST_CASE("a skipped write does not read its source") {
  Stocks stocks;
  stocks.once("loader", 1).insert({1, 10});
  int read = 0;
  const Rows rows{{2, 20}};
  const auto counting = rows | ranges::views::transform([&](const Stock& row) {
                          ++read;
                          return row;
                        });
  CHECK(stocks.once("loader", 1).append(counting).already_applied());
  CHECK(stocks.once("loader", 1).upsert(counting).already_applied());
  CHECK(stocks.merge(counting).when_not_matched().insert_all().once("loader", 1).execute().already_applied());
  CHECK(read == 0);
  CHECK(stocks.once("loader", 2).upsert(counting).committed());
  CHECK(read == 1);
}

TEST_CASE("every verb can be done once") {
  Stocks stocks;
  std::uint64_t number = 0;
  stocks.once("app", ++number).append({{1, 10}, {2, 20}});
  stocks.once("app", ++number).insert({3, 30});
  stocks.once("app", ++number).upsert({{1, 11}});
  stocks.once("app", ++number).merge(Rows{{2, 21}}).when_matched().update_all().execute();
  stocks.merge(Rows{{2, 22}}).when_matched().update_all().once("app", ++number).execute();
  const auto erased = stocks.once("app", ++number).erase(1).changes();
  stocks.once("app", ++number).apply(erased.inverse());
  CHECK(rows_of(stocks) == Rows{{2, 22}, {3, 30}, {1, 11}});
  stocks.once("app", ++number).clear();
  CHECK(stocks.version() == number);
  CHECK(stocks.last_applied("app") == Number(number));
  CHECK(stocks.once("app", number).insert({9, 90}).already_applied());
  CHECK(stocks.empty());
}

TEST_CASE("a commit that changes nothing but carries a number makes a version") {
  Stocks stocks;
  stocks.insert({1, 10});
  const auto result = stocks.once("loader", 1).upsert(Stock{1, 10});
  CHECK(result.committed());
  CHECK(result.version() == 2);
  CHECK(result.metrics().unchanged == 1);
  CHECK(stocks.history().back().changes().empty());
  CHECK(stocks.once("loader", 1).upsert(Stock{1, 99}).already_applied());
  CHECK(stocks.at(1).amount == 10);
}

TEST_CASE("a write that fails records no number") {
  Stocks stocks;
  stocks.once("loader", 1).insert({1, 10});
  {
    const Unharmed unharmed(stocks);
    CHECK_THROWS_AS(stocks.once("loader", 2).append({{2, 20}, {1, 11}}), kf::DuplicateKey);
    CHECK_THROWS_AS(stocks.once("new", 1).insert({1, 11}), kf::DuplicateKey);
    CHECK(stocks.last_applied("loader") == Number(1));
    CHECK(stocks.last_applied("new") == Number());
  }
  CHECK_FALSE(stocks.once("loader", 2).append({{2, 20}}).already_applied());
  CHECK_FALSE(stocks.once("new", 1).insert({3, 30}).already_applied());
}

TEST_CASE("a preview records no number") {
  Stocks stocks;
  const Rows rows{{1, 10}};
  const auto changes = stocks.merge(rows).when_not_matched().insert_all().once("loader", 1).preview();
  CHECK(changes.size() == 1);
  CHECK(stocks.last_applied("loader") == Number());
}

TEST_CASE("a number survives the expiry of its commit") {
  Stocks stocks;
  stocks.once("loader", 1).insert({1, 10});
  stocks.insert({2, 20});
  stocks.insert({3, 30});
  stocks.expire(kf::keep_last(1));
  REQUIRE(stocks.history().size() == 1);
  CHECK(stocks.last_applied("loader") == Number(1));
  CHECK(stocks.once("loader", 1).insert({4, 40}).already_applied());
}

TEST_CASE("a number survives restore, undo and a copy of the table") {
  Stocks stocks;
  stocks.once("loader", 1).insert({1, 10});
  stocks.undo(1);
  CHECK(stocks.once("loader", 1).insert({1, 10}).already_applied());
  stocks.restore(kf::Version{0});
  CHECK(stocks.last_applied("loader") == Number(1));
  Stocks copy = stocks;
  CHECK(copy.once("loader", 1).insert({1, 10}).already_applied());
  copy.once("loader", 2).insert({2, 20});
  CHECK(stocks.last_applied("loader") == Number(1));
}

TEST_CASE("a number goes together with metadata") {
  Stocks stocks;
  stocks.once("loader", 1).metadata("file 1").insert({1, 10});
  stocks.metadata("file 2").once("loader", 2).insert({2, 20});
  CHECK(stocks.history()[0].metadata() == "file 1");
  CHECK(stocks.history()[1].metadata() == "file 2");
  CHECK(stocks.last_applied("loader") == Number(2));
}
