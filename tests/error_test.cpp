#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using keyfold_test::contains;

namespace {

struct Price {
  std::string sku;
  int day = 0;
  std::optional<std::string> barcode;
  int cents = 0;
  bool operator==(const Price&) const = default;
};
BOOST_DESCRIBE_STRUCT(Price, (), (sku, day, barcode, cents))

// Cents that are more than a Price can have.
struct WidePrice {
  std::string sku;
  int day = 0;
  std::int64_t cents = 0;
  std::optional<std::string> barcode{};
  std::optional<std::uint64_t> limit{};
};
BOOST_DESCRIBE_STRUCT(WidePrice, (), (sku, day, cents, barcode, limit))

using Prices = kf::Table<Price, kf::Key<&Price::sku, &Price::day>, kf::UniqueBy<&Price::barcode>>;

Prices some_prices() {
  Prices prices;
  prices.append({{"a", 1, "b1", 10}, {"a", 2, {}, 20}, {"b", 1, "b3", 30}});
  return prices;
}

// The error that `write` throws.
template <class Error, class Write>
Error caught(Write&& write) {
  try {
    write();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no exception, or of another type");
  throw std::logic_error("unreachable");
}

}  // namespace

TEST_CASE("every error is a keyfold::Error and a std::runtime_error") {
  STATIC_REQUIRE(std::derived_from<kf::Error, std::runtime_error>);
  STATIC_REQUIRE(std::derived_from<kf::KeyNotFound, kf::Error>);
  STATIC_REQUIRE(std::derived_from<kf::DuplicateKey, kf::Error>);
  STATIC_REQUIRE(std::derived_from<kf::DuplicateSourceKey, kf::DuplicateKey>);
  STATIC_REQUIRE(std::derived_from<kf::UniqueViolation, kf::Error>);
  STATIC_REQUIRE(std::derived_from<kf::InvalidKey, kf::Error>);
  STATIC_REQUIRE(std::derived_from<kf::ClauseRaised, kf::Error>);
  STATIC_REQUIRE(std::derived_from<kf::ValueOutOfRange, kf::Error>);
  STATIC_REQUIRE(std::derived_from<kf::ReentrantWrite, kf::Error>);
  STATIC_REQUIRE(std::derived_from<kf::TableGone, kf::Error>);
}

TEST_CASE("KeyNotFound names the key and what to do") {
  const auto prices = some_prices();
  const auto error = caught<kf::KeyNotFound>([&] { prices.at("a", 9); });
  CHECK(error.key == "('a', 9)");
  CHECK_THAT(error.what(), contains("('a', 9)"));
  CHECK_THAT(error.what(), contains("find() or contains()"));
}

TEST_CASE("a key of one part is named without parentheses") {
  struct Item {
    int id = 0;
  };
  const kf::Table<Item, kf::Key<&Item::id>> items;
  CHECK(caught<kf::KeyNotFound>([&] { items.at(-7); }).key == "-7");
  struct Named {
    std::string name;
  };
  const kf::Table<Named, kf::Key<&Named::name>> named;
  CHECK(caught<kf::KeyNotFound>([&] { named.at("it's"); }).key == "'it''s'");
  struct Maybe {
    std::optional<int> id;
  };
  const kf::Table<Maybe, kf::Key<&Maybe::id>> maybe;
  CHECK(caught<kf::KeyNotFound>([&] { maybe.at(std::nullopt); }).key == "NULL");
}

TEST_CASE("a long key is cut in messages") {
  const auto prices = some_prices();
  const auto error = caught<kf::KeyNotFound>([&] { prices.at(std::string(5000, 'x'), 1); });
  CHECK(error.key.size() < 300);
  CHECK_THAT(error.key, contains("xxx..."));
  CHECK(std::string(error.what()).size() < 500);
}

TEST_CASE("DuplicateKey names the index, the key, the source row and the row of the table") {
  auto prices = some_prices();
  const auto error = caught<kf::DuplicateKey>([&] { prices.append({{"c", 1, {}, 1}, {"a", 2, {}, 99}}); });
  CHECK(error.index == "(sku, day)");
  CHECK(error.key == "('a', 2)");
  CHECK(error.first_position == kf::no_position);
  CHECK(error.second_position == 1);
  CHECK_THAT(error.what(), contains("(sku, day) = ('a', 2)"));
  CHECK_THAT(error.what(), contains("a row of the table (sku: 'a', day: 2, barcode: NULL, cents: 20)"));
  CHECK_THAT(error.what(), contains("source row 1 (sku: 'a', day: 2, barcode: NULL, cents: 99)"));
  CHECK_THAT(error.what(), contains("update the row that is there"));
}

TEST_CASE("DuplicateKey of an inserted row") {
  auto prices = some_prices();
  const auto error = caught<kf::DuplicateKey>([&] { prices.insert({"b", 1, {}, 1}); });
  CHECK(error.key == "('b', 1)");
  CHECK(error.first_position == kf::no_position);
  CHECK(error.second_position == 0);
}

TEST_CASE("DuplicateKey of two updated rows names both positions") {
  auto prices = some_prices();
  const std::vector<Price> rows = {{"b", 1, {}, 0}, {"a", 1, {}, 0}, {"a", 2, {}, 0}};
  const auto error = caught<kf::DuplicateKey>([&] {
    prices.merge(rows)
        .when_matched(kf::source<&Price::sku> == "a")
        .update(kf::target<&Price::day> = 7)
        .execute();
  });
  CHECK(error.key == "('a', 7)");
  CHECK(error.first_position == 1);
  CHECK(error.second_position == 2);
  CHECK_THROWS_AS(throw error, kf::Error);
}

TEST_CASE("DuplicateSourceKey of a batch that brings a new key twice names both positions") {
  auto prices = some_prices();
  const auto error = caught<kf::DuplicateSourceKey>(
      [&] { prices.append({{"x", 1, {}, 1}, {"y", 1, {}, 2}, {"x", 1, {}, 3}}); });
  CHECK(error.index == "(sku, day)");
  CHECK(error.key == "('x', 1)");
  CHECK(error.first_position == 0);
  CHECK(error.second_position == 2);
  CHECK_THAT(error.what(), contains("source row 0 (sku: 'x', day: 1, barcode: NULL, cents: 1)"));
  CHECK_THAT(error.what(), contains("source row 2"));
  CHECK_THAT(error.what(), contains("duplicates()"));
}

TEST_CASE("DuplicateSourceKey of two rows that act on one target names both positions") {
  auto prices = some_prices();
  const std::vector<Price> rows = {{"b", 1, {}, 0}, {"a", 1, {}, 1}, {"z", 1, {}, 0}, {"a", 1, {}, 2}};
  const auto error = caught<kf::DuplicateSourceKey>([&] { prices.upsert(rows); });
  CHECK(error.index == "(sku, day)");
  CHECK(error.key == "('a', 1)");
  CHECK(error.first_position == 1);
  CHECK(error.second_position == 3);
  CHECK_THAT(error.what(), contains("source rows 1 and 3 both act on the row with key ('a', 1)"));
  CHECK_THAT(error.what(), contains("duplicates()"));
}

TEST_CASE("positions count over the whole source, however long") {
  struct Item {
    int id = 0;
    bool operator==(const Item&) const = default;
  };
  kf::Table<Item, kf::Key<&Item::id>> items;
  std::vector<Item> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back({i});
  rows[777].id = 555;
  const auto error = caught<kf::DuplicateSourceKey>([&] { items.append(rows); });
  CHECK(error.first_position == 555);
  CHECK(error.second_position == 777);
  CHECK(error.key == "555");
}

TEST_CASE("UniqueViolation against a row that stays names the index and both rows") {
  auto prices = some_prices();
  const auto error =
      caught<kf::UniqueViolation>([&] { prices.append({{"n", 1, {}, 1}, {"n", 2, "b3", 2}}); });
  CHECK(error.index == "barcode");
  CHECK(error.key == "'b3'");
  CHECK(error.first_position == kf::no_position);
  CHECK(error.second_position == 1);
  CHECK_THAT(error.what(), contains("unique barcode = 'b3'"));
  CHECK_THAT(error.what(), contains("a row of the table (sku: 'b', day: 1, barcode: 'b3', cents: 30)"));
  CHECK_THAT(error.what(), contains("source row 1 (sku: 'n', day: 2, barcode: 'b3', cents: 2)"));
}

TEST_CASE("UniqueViolation of two source rows names both positions") {
  auto prices = some_prices();
  const auto error =
      caught<kf::UniqueViolation>([&] { prices.upsert({{"a", 1, "q", 1}, {"n", 2, "q", 2}}); });
  CHECK(error.key == "'q'");
  CHECK(error.first_position == 0);
  CHECK(error.second_position == 1);
}

TEST_CASE("UniqueViolation names a row updated by source without a position") {
  auto prices = some_prices();
  const std::vector<Price> rows = {{"n", 1, "q", 0}};
  const auto error = caught<kf::UniqueViolation>([&] {
    prices.merge(rows)
        .when_not_matched()
        .insert_all()
        .when_not_matched_by_source(kf::target<&Price::sku> == "b")
        .update(kf::target<&Price::barcode> = "q")
        .execute();
  });
  CHECK(error.first_position == 0);
  CHECK(error.second_position == kf::no_position);
}

TEST_CASE("a composite unique index is named in full") {
  struct Seat {
    int id = 0;
    int row = 0;
    std::optional<int> number;
  };
  kf::Table<Seat, kf::Key<&Seat::id>, kf::UniqueBy<&Seat::row, &Seat::number>> seats;
  seats.insert({1, 5, 6});
  const auto error = caught<kf::UniqueViolation>([&] { seats.insert({2, 5, 6}); });
  CHECK(error.index == "(row, number)");
  CHECK(error.key == "(5, 6)");
  CHECK_THAT(error.what(), contains("a row of the table and by source row 0"));  // no column list: no columns
}

TEST_CASE("InvalidKey names the column and the row") {
  struct Point {
    double x = 0;
    double y = 0;
    bool operator==(const Point&) const = default;
  };
  kf::Table<Point, kf::Key<&Point::x, &Point::y>> points;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto error = caught<kf::InvalidKey>([&] { points.append({{1, 1}, {1, nan}}); });
  CHECK(error.column == "y");
  CHECK(error.position == 1);
  CHECK_THAT(error.what(), contains("'y' is NaN in source row 1"));

  points.insert({1, 1});
  const std::vector<Point> none;
  const auto by_source = caught<kf::InvalidKey>(
      [&] { points.merge(none).when_not_matched_by_source().update(kf::target<&Point::x> = nan).execute(); });
  CHECK(by_source.column == "x");
  CHECK(by_source.position == kf::no_position);
}

TEST_CASE("InvalidKey names the source's column") {
  struct Point {
    double x = 0;
  };
  struct Reading {
    double position = 0;
  };
  kf::Table<Point, kf::Key<&Point::x>> points;
  const std::vector<Reading> readings = {{std::numeric_limits<double>::quiet_NaN()}};
  const auto error = caught<kf::InvalidKey>(
      [&] { points.merge(readings).on<&Reading::position>().when_matched().erase().execute(); });
  CHECK(error.column == "position");
  CHECK(error.position == 0);
}

TEST_CASE("ClauseRaised carries the message, the key and the position") {
  auto prices = some_prices();
  const std::vector<Price> rows = {{"z", 1, {}, 0}, {"a", 2, {}, 0}};
  const auto matched =
      caught<kf::ClauseRaised>([&] { prices.merge(rows).when_matched().raise("is there").execute(); });
  CHECK(matched.message == "is there");
  CHECK(matched.key == "('a', 2)");
  CHECK(matched.position == 1);
  CHECK(std::string(matched.what()) == "is there (raised by a clause for the row with key ('a', 2))");

  const auto not_matched =
      caught<kf::ClauseRaised>([&] { prices.merge(rows).when_not_matched().raise("is new").execute(); });
  CHECK(not_matched.message == "is new");
  CHECK(not_matched.key == "('z', 1)");
  CHECK(not_matched.position == 0);

  const auto by_source = caught<kf::ClauseRaised>(
      [&] { prices.merge(rows).when_not_matched_by_source().raise("is gone").execute(); });
  CHECK(by_source.message == "is gone");
  CHECK(by_source.key == "('a', 1)");
  CHECK(by_source.position == kf::no_position);
}

TEST_CASE("ValueOutOfRange names the column, the value and the row") {
  auto prices = some_prices();
  constexpr auto& cents = kf::target<&Price::cents>;
  constexpr auto& wide = kf::source<&WidePrice::cents>;
  const std::vector<WidePrice> rows = {{"a", 1, 11}, {"a", 2, 3'000'000'000}, {"c", 1, -3'000'000'000}};

  const auto matched =
      caught<kf::ValueOutOfRange>([&] { prices.merge(rows).when_matched().update(cents = wide).execute(); });
  CHECK(matched.column == "cents");
  CHECK(matched.value == "3000000000");
  CHECK(matched.key == "('a', 2)");
  CHECK(matched.position == 1);
  CHECK(std::string(matched.what()) ==
        "the value 3000000000 for the row with key ('a', 2) from source row 1 does not fit column 'cents'; "
        "widen the column or limit the value in the assignment");

  const auto not_matched =
      caught<kf::ValueOutOfRange>([&] { prices.merge(rows).when_not_matched().insert_all().execute(); });
  CHECK(not_matched.value == "-3000000000");
  CHECK(not_matched.key == "('c', 1)");
  CHECK(not_matched.position == 2);

  const auto by_source = caught<kf::ValueOutOfRange>([&] {
    prices.merge(rows).when_not_matched_by_source().update(cents = cents * 1'000'000'000LL).execute();
  });
  CHECK(by_source.value == "30000000000");
  CHECK(by_source.key == "('b', 1)");
  CHECK(by_source.position == kf::no_position);
  CHECK_THAT(by_source.what(), contains("30000000000 for the row with key ('b', 1) does not fit"));

  const auto condition = caught<kf::ValueOutOfRange>([&] {
    prices.merge(rows).when_matched(kf::coalesce(kf::source<&WidePrice::limit>, -1) > 5U).erase().execute();
  });
  CHECK(condition.value == "-1");
  CHECK(condition.key == "('a', 1)");
  CHECK(condition.position == 0);

  // A row that is not made yet has no key.
  const auto loaded = caught<kf::ValueOutOfRange>([&] { prices.overwrite(rows); });
  CHECK(loaded.column == "cents");
  CHECK(loaded.key.empty());
  CHECK(loaded.position == 1);
  CHECK_THAT(loaded.what(), contains("3000000000 from source row 1 does not fit"));
  CHECK(caught<kf::ValueOutOfRange>([&] { prices.append(rows); }).position == 1);
  CHECK(caught<kf::ValueOutOfRange>([&] { prices.replace_using<&Price::day>(rows); }).position == 1);

  CHECK(prices.version() == 1);
  CHECK(prices.at("a", 1).cents == 10);
}

TEST_CASE("ValueOutOfRange of a write within a write names the row of that one") {
  auto outer = some_prices();
  Prices inner;
  const std::vector<WidePrice> wide = {{"x", 9, 3'000'000'000}};
  const auto write = [&](const Price& price, const Price&) {
    inner.merge(wide).when_not_matched().insert_all().execute();
    return price;
  };
  const std::vector<Price> rows = {{"z", 1, {}, 0}, {"a", 1, {}, 0}};
  const auto error = caught<kf::ValueOutOfRange>(
      [&] { outer.merge(rows).when_matched().update(kf::named("write", write)).execute(); });
  CHECK(error.key == "('x', 9)");
  CHECK(error.position == 0);
}

TEST_CASE("ReentrantWrite says what was tried") {
  auto prices = some_prices();
  const std::vector<Price> rows = {{"a", 1, {}, 0}};
  const auto error = caught<kf::ReentrantWrite>([&] {
    prices.merge(rows)
        .when_matched([&](const Price&, const Price&) {
          prices.clear();
          return true;
        })
        .erase()
        .execute();
  });
  CHECK_THAT(error.what(), contains("in the middle of another write"));
  CHECK(prices.size() == 3);
  CHECK_NOTHROW(prices.clear());
}

TEST_CASE("TableGone says what to do") {
  auto prices = std::make_unique<Prices>(some_prices());
  const auto result = prices->insert({"z", 1, {}, 1});
  prices.reset();
  CHECK(result.metrics().inserted == 1);
  const auto error = caught<kf::TableGone>([&] { static_cast<void>(result.changes()); });
  CHECK_THAT(error.what(), contains("of this result, or the transaction it was part of, no longer exists"));
  CHECK_THAT(error.what(), contains("ask for changes() before that"));
}

TEST_CASE("TableGone speaks of what was used: a view, a transaction") {
  auto prices = std::make_unique<Prices>(some_prices());
  const auto view = prices->as_of(prices->version());
  auto transaction = prices->transaction();
  prices.reset();
  const auto of_view = caught<kf::TableGone>([&] { static_cast<void>(view.size()); });
  CHECK_THAT(of_view.what(), contains("the table of this view no longer exists"));
  CHECK_THAT(of_view.what(), contains("copy its rows before that"));
  const auto of_transaction = caught<kf::TableGone>([&] { transaction.commit(); });
  CHECK_THAT(of_transaction.what(), contains("the table of this transaction no longer exists"));
}

TEST_CASE("VersionNotFound tells a version that never was from version 0, which no commit has made") {
  auto prices = some_prices();
  CHECK_THAT(caught<kf::VersionNotFound>([&] { prices.undo(9); }).what(),
             contains("there is no version 9; the latest is 1, and history() has those that are kept"));
  CHECK_THAT(caught<kf::VersionNotFound>([&] { prices.undo(0); }).what(),
             contains("no commit has made version 0, the empty table; the latest is 1"));
}

TEST_CASE("VersionExpired says what can be read, and how a version is kept") {
  auto prices = some_prices();
  prices.insert({"z", 1, {}, 1});
  prices.expire(kf::keep_last(1));
  const auto error = caught<kf::VersionExpired>([&] { static_cast<void>(prices.as_of(1)); });
  CHECK(error.requested == 1);
  CHECK(error.oldest == 2);
  CHECK_THAT(error.what(),
             contains("version 1 has expired; the oldest version that is kept, beside tagged ones, is 2:"));
  CHECK_THAT(error.what(), contains("tag() it before it expires"));
}

TEST_CASE("VersionExpired of changes speaks of the version whose changes were asked for") {
  auto prices = some_prices();
  prices.insert({"z", 1, {}, 1});
  prices.tag("kept", 2);
  prices.insert({"z", 2, {}, 1});
  prices.expire(kf::keep_last(1));
  REQUIRE(prices.as_of("kept").size() == 4);
  const std::string what = "what version 2 has changed cannot be told, since version 1 has expired";
  const auto undone = caught<kf::VersionExpired>([&] { prices.undo(2); });
  CHECK_THAT(undone.what(), contains(what));
  CHECK(undone.requested == 1);
  CHECK_THAT(caught<kf::VersionExpired>([&] { static_cast<void>(prices.history()[0].changes()); }).what(),
             contains(what));
}

TEST_CASE("ChangeConflict of undo() names the version and the rows, and counts them") {
  auto prices = some_prices();
  prices.upsert({"a", 1, {}, 11});
  const auto one = caught<kf::ChangeConflict>([&] { prices.undo(1); });
  CHECK(one.undone == 1);
  CHECK_THAT(
      one.what(),
      contains("version 1 cannot be undone: later versions have changed the row with key ('a', 1), too;"));
  prices.erase("b", 1);
  const auto two = caught<kf::ChangeConflict>([&] { prices.undo(1); });
  CHECK(two.keys == std::vector<std::string>{"('a', 1)", "('b', 1)"});
  CHECK_THAT(two.what(), contains("later versions have changed the row with key ('a', 1) and 1 more, too;"));
}

TEST_CASE("ChangeConflict of apply() names the rows") {
  auto prices = some_prices();
  const auto changes = prices.upsert({"a", 1, {}, 11}).changes();
  const auto error = caught<kf::ChangeConflict>([&] { prices.apply(changes); });
  CHECK(error.undone == 0);
  CHECK_THAT(error.what(), contains("the changes do not fit the row with key ('a', 1) as the table is now;"));
}

TEST_CASE("TransactionConflict tells a new version from a remembered load") {
  const auto other = kf::TransactionConflict(3, 5);
  CHECK_THAT(other.what(), contains("was at version 3 when the transaction began and is at version 5 now"));
  const auto same = kf::TransactionConflict(3, 3);
  CHECK_THAT(same.what(), contains("still at version 3, has remembered a load of change events"));
}

TEST_CASE("errors can be copied and keep what they carry") {
  const kf::DuplicateKey error("message", "index", "key", 1, 2);
  const kf::DuplicateKey copy = error;  // NOLINT(performance-unnecessary-copy-initialization)
  CHECK(std::string(copy.what()) == "message");
  CHECK(copy.index == "index");
  CHECK(copy.key == "key");
  CHECK(copy.first_position == 1);
  CHECK(copy.second_position == 2);
}
