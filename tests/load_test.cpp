// The verbs that load: what leaves, what comes in, what is counted and recorded.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <list>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Sale {
  int id = 0;
  std::optional<int> day;
  std::string shop;
  int amount = 0;

  bool operator==(const Sale&) const = default;
};
BOOST_DESCRIBE_STRUCT(Sale, (), (id, day, shop, amount))

/// Another source type, with all columns of a sale and one more.
struct Delivery {
  long id = 0;
  int day = 0;
  std::string shop;
  short amount = 0;
  int sequence = 0;
};
BOOST_DESCRIBE_STRUCT(Delivery, (), (id, day, shop, amount, sequence))

using Rows = std::vector<Sale>;
using Sales = kf::Table<Sale, kf::Key<&Sale::id>>;
using SalesByDay = kf::Table<Sale, kf::Key<&Sale::id>, kf::HashedBy<&Sale::day>>;
using SalesInOrder = kf::Table<Sale, kf::OrderedKey<&Sale::id>, kf::OrderedBy<&Sale::day>>;
using OneADay = kf::Table<Sale, kf::Key<&Sale::id>, kf::UniqueBy<&Sale::shop>>;

constexpr auto day = kf::target<&Sale::day>;
constexpr auto amount = kf::target<&Sale::amount>;

template <class Table = Sales>
Table table_of(const Rows& rows) {
  Table table;
  table.append(rows);
  return table;
}

/// 1 and 2 are of day 7, 3 of day 8, 4 of none.
const Rows start{{1, 7, "a", 10}, {2, 7, "b", 20}, {3, 8, "a", 30}, {4, std::nullopt, "c", 40}};

std::string said(const kf::Metrics& m) {
  std::ostringstream out;
  out << "source " << m.source_rows << " inserted " << m.inserted << " updated " << m.updated << " deleted "
      << m.deleted << " unchanged " << m.unchanged << " dropped " << m.dropped_duplicates;
  CHECK(m.matched_updated + m.not_matched_by_source_updated == m.updated);
  CHECK(m.matched_deleted + m.not_matched_by_source_deleted == m.deleted);
  CHECK(m.source_rows == m.inserted + m.matched_updated + m.matched_deleted + m.unchanged + m.skipped +
                             m.dropped_duplicates + m.dropped_late);
  return out.str();
}

template <class Table>
std::string last_commit(const Table& table) {
  const auto commit = table.history().back();
  return std::string(commit.operation()) + '|' + std::string(commit.parameters());
}

/// "-1 +5 3" for a delete of row 1, an insert of row 5 and an update of row 3.
std::string kinds(const kf::ChangeSet<Sale>& changes) {
  std::string out;
  for (const auto& change : changes) {
    if (!out.empty()) out += ' ';
    if (change.kind() == kf::ChangeKind::erase) out += '-' + std::to_string(change.before()->id);
    if (change.kind() == kf::ChangeKind::insert) out += '+' + std::to_string(change.after()->id);
    if (change.kind() == kf::ChangeKind::update) out += std::to_string(change.after()->id);
  }
  return out;
}

}  // namespace

// --- overwrite

TEST_CASE("overwrite leaves the incoming rows and no others") {
  Sales table = table_of(start);
  const auto result = table.overwrite(Rows{{3, 8, "a", 30}, {2, 7, "b", 21}, {9, 1, "z", 90}});
  CHECK(said(result.metrics()) == "source 3 inserted 1 updated 1 deleted 2 unchanged 1 dropped 0");
  CHECK(result.metrics().not_matched_by_source_deleted == 2);
  CHECK(result.version() == 2);
  CHECK(last_commit(table) == "OVERWRITE|");
  CHECK(kinds(result.changes()) == "2 +9 -1 -4");  // by source row, then what left, in table order
  // A row that stays keeps its place, whatever its place in the source.
  CHECK(rows_of(table) == Rows{{2, 7, "b", 21}, {3, 8, "a", 30}, {9, 1, "z", 90}});
}

TEST_CASE("overwrite with nothing empties the table, and an empty table stays at its version") {
  Sales table = table_of(start);
  CHECK(said(table.overwrite({}).metrics()) ==
        "source 0 inserted 0 updated 0 deleted 4 unchanged 0 dropped 0");
  CHECK(table.empty());
  CHECK_FALSE(table.overwrite(Rows{}).committed());
  CHECK(table.version() == 2);
}

TEST_CASE("overwrite with the same rows, in any order, changes nothing") {
  Sales table = table_of(start);
  const auto result = table.overwrite(Rows{start.rbegin(), start.rend()});
  CHECK_FALSE(result.committed());
  CHECK(result.metrics().unchanged == 4);
  CHECK(rows_of(table) == start);
}

TEST_CASE("a table overwritten with itself, or with a view of itself, is safe") {
  Sales table = table_of(start);
  CHECK_FALSE(table.overwrite(table).committed());
  const auto odd = [](const Sale& sale) { return sale.id % 2 == 1; };
  struct OddRows {  // a single-pass view that reads the table while it is overwritten
    Sales::const_iterator at, last;
    bool (*keep)(const Sale&);
    struct Iterator {
      using value_type = Sale;
      using difference_type = std::ptrdiff_t;
      OddRows* rows;
      const Sale& operator*() const { return *rows->at; }
      Iterator& operator++() {
        do ++rows->at;
        while (rows->at != rows->last && !rows->keep(*rows->at));
        return *this;
      }
      void operator++(int) { ++*this; }
      bool operator==(std::default_sentinel_t) const { return rows->at == rows->last; }
    };
    Iterator begin() { return {this}; }
    static std::default_sentinel_t end() { return {}; }
  };
  table.overwrite(OddRows{table.begin(), table.end(), odd});
  CHECK(rows_of(table) == Rows{{1, 7, "a", 10}, {3, 8, "a", 30}});
}

TEST_CASE("overwrite moves rows out of a container it is given, and copies those it is lent") {
  Sales table;
  Rows lent{{1, 1, "a shop whose name does not fit into the string itself", 1}};
  table.overwrite(lent);
  CHECK(lent.front().shop.size() > 40);
  Rows given = lent;
  given.front().id = 2;
  const char* const text = given.front().shop.data();
  table.overwrite(std::move(given));
  CHECK(table.at(2).shop.data() == text);
}

TEST_CASE("rows of another type come in by their columns' names") {
  Sales table = table_of(start);
  const std::list<Delivery> deliveries{{1, 7, "a", 10, 5}, {9, 9, "z", 90, 6}};
  CHECK(said(table.overwrite(deliveries).metrics()) ==
        "source 2 inserted 1 updated 0 deleted 3 unchanged 1 dropped 0");
  CHECK(rows_of(table) == Rows{{1, 7, "a", 10}, {9, 9, "z", 90}});
  CHECK_THROWS_AS(table.overwrite(std::vector<Delivery>{{1L << 40, 7, "a", 10, 5}}), kf::ValueOutOfRange);
  CHECK(table.version() == 2);
}

TEST_CASE("two rows that come in with one key are refused, be it new or not, changed or not") {
  Sales table = table_of(start);
  const Unharmed<Sales> unharmed(table);
  const auto refused = [&](const Rows& rows) {
    const auto error = error_of<kf::DuplicateSourceKey>([&] { table.overwrite(rows); });
    CHECK(error.first_position == 1);
    CHECK(error.second_position == 3);
    CHECK(error.index == "id");
    return error.key;
  };
  CHECK(refused({start[1], {8, 1, "", 0}, start[0], {8, 1, "", 0}}) == "8");
  CHECK(refused({start[1], {1, 1, "x", 0}, start[2], {1, 1, "y", 0}}) == "1");
  CHECK(refused({start[1], start[0], start[2], start[0]}) == "1");
  CHECK(refused({start[1], start[0], start[2], {1, 1, "y", 0}}) == "1");
  CHECK(refused({start[1], {1, 1, "y", 0}, start[2], start[0]}) == "1");
}

TEST_CASE("unique values are judged when the replacement is done") {
  OneADay table = table_of<OneADay>({{1, 1, "a", 1}, {2, 1, "b", 1}});
  table.overwrite(Rows{{2, 1, "a", 1}, {1, 1, "b", 1}});  // swapped
  CHECK(table.at(1).shop == "b");
  table.overwrite(Rows{{3, 1, "a", 1}, {4, 1, "b", 1}});  // taken from rows that leave
  CHECK(table.size() == 2);
  const auto error =
      error_of<kf::UniqueViolation>([&] { table.overwrite(Rows{{3, 1, "a", 2}, {5, 1, "a", 1}}); });
  CHECK(error.first_position == 0);
  CHECK(error.second_position == 1);
  CHECK(table.version() == 3);
}

TEST_CASE("an overwritten row keeps its history, and as_of() sees what was there") {
  Sales table = table_of(start);
  table.overwrite({{1, 7, "a", 11}});
  CHECK(table.history_of(1).size() == 2);
  CHECK(rows_of(table.as_of(1)) == start);
  table.restore(1);
  CHECK(table.size() == 4);
  CHECK(table.at(1).amount == 10);
}

// --- replace_where

TEST_CASE("replace_where replaces the rows for which the condition is true") {
  Sales table = table_of(start);
  const auto result = table.replace_where(day == 7, Rows{{2, 7, "b", 21}, {9, 7, "z", 90}});
  CHECK(said(result.metrics()) == "source 2 inserted 1 updated 1 deleted 1 unchanged 0 dropped 0");
  CHECK(last_commit(table) == "REPLACE WHERE|(target.day = 7)");
  CHECK(kinds(result.changes()) == "2 +9 -1");
  // Row 4, of which nobody knows the day, stays.
  CHECK(rows_of(table) ==
        Rows{{2, 7, "b", 21}, {3, 8, "a", 30}, {4, std::nullopt, "c", 40}, {9, 7, "z", 90}});
}

TEST_CASE("replace_where names the first row outside its condition and writes nothing") {
  Sales table = table_of(start);
  const Unharmed<Sales> unharmed(table);
  const auto error = error_of<kf::ReplaceWhereMismatch>(
      [&] { table.replace_where(day == 7, Rows{{2, 7, "b", 21}, {8, 8, "y", 1}, {9, 9, "z", 2}}); });
  CHECK(error.position == 1);
  CHECK(error.key == "8");
  CHECK(error.condition == "(target.day = 7)");
  const std::string text = error.what();
  CHECK(text.find("source row 1 (id: 8, day: 8, shop: 'y', amount: 1)") != std::string::npos);
  CHECK(text.find("unchecked()") != std::string::npos);
}

TEST_CASE("a row of which the condition is unknown is outside it") {
  Sales table = table_of(start);
  const Rows rows{{9, std::nullopt, "z", 1}};
  CHECK_THROWS_AS(table.replace_where(day == 7, rows), kf::ReplaceWhereMismatch);
  CHECK_THROWS_AS(table.replace_where(!(day == 7), rows), kf::ReplaceWhereMismatch);
  CHECK(table.replace_where(kf::is_null(day), rows).metrics().deleted == 1);
}

TEST_CASE("unchecked() lets rows outside the condition in") {
  Sales table = table_of(start);
  table.unchecked().replace_where(day == 7, Rows{{2, 8, "b", 20}, {9, std::nullopt, "z", 1}});
  CHECK(last_commit(table) == "REPLACE WHERE|(target.day = 7) UNCHECKED");
  CHECK(rows_of(table) ==
        Rows{{2, 8, "b", 20}, {3, 8, "a", 30}, {4, std::nullopt, "c", 40}, {9, std::nullopt, "z", 1}});
  // The key of a row that stays is still taken, even if the row is the same.
  CHECK_THROWS_AS(table.unchecked().replace_where(day == 7, Rows{{3, 8, "a", 30}}), kf::DuplicateKey);
}

TEST_CASE("a row that comes in with the key of a row that stays is a duplicate key") {
  Sales table = table_of(start);
  const Unharmed<Sales> unharmed(table);
  const auto error = error_of<kf::DuplicateKey>(
      [&] { table.replace_where(day == 7, Rows{{9, 7, "z", 1}, {3, 7, "moved", 1}}); });
  CHECK(std::string(error.what()).find("update the row that is there") != std::string::npos);
  CHECK(error.key == "3");
  CHECK(error.first_position == kf::no_position);
  CHECK(error.second_position == 1);
}

TEST_CASE("replace_where with an empty source removes what the condition names") {
  Sales table = table_of(start);
  CHECK(table.replace_where(day == 7, {}).metrics().deleted == 2);
  CHECK(rows_of(table) == Rows{start[2], start[3]});
  CHECK_FALSE(table.replace_where(day == 7, {}).committed());
}

TEST_CASE("replace_where takes a callable, which may have a name, and asks it once of each row") {
  Sales table = table_of(start);
  int asked = 0;
  const auto of_shop_a = [&](const Sale& sale) { return ++asked, sale.shop == "a"; };
  table.replace_where(kf::named("shop a", of_shop_a), Rows{{1, 7, "a", 11}});
  CHECK(last_commit(table) == "REPLACE WHERE|shop a");
  CHECK(asked == 5);  // four rows of the table, one incoming
  CHECK(rows_of(table) == Rows{{1, 7, "a", 11}, start[1], start[3]});
}

TEST_CASE("the condition of replace_where sees the row that a source of another type becomes") {
  Sales table = table_of(start);
  table.replace_where(day == 7, std::vector<Delivery>{{1, 7, "a", 10, 0}});
  CHECK(rows_of(table) == Rows{start[0], start[2], start[3]});
  CHECK_THROWS_AS(table.replace_where(day == 7, std::vector<Delivery>{{1, 8, "a", 10, 7}}),
                  kf::ReplaceWhereMismatch);
}

// --- replace_using

TEMPLATE_TEST_CASE("replace_using replaces the rows equal to an incoming one, with an index or without", "",
                   Sales, SalesByDay, SalesInOrder) {
  auto table = table_of<TestType>(start);
  const auto result = table.template replace_using<&Sale::day>(Rows{{2, 7, "b", 21}, {9, 6, "z", 90}});
  CHECK(said(result.metrics()) == "source 2 inserted 1 updated 1 deleted 1 unchanged 0 dropped 0");
  CHECK(last_commit(table) == "REPLACE USING|(day)");
  CHECK(kinds(result.changes()) == "2 +9 -1");
  CHECK(rows_of(table) == Rows{{2, 7, "b", 21}, start[2], start[3], {9, 6, "z", 90}});
}

TEMPLATE_TEST_CASE("in replace_using an absent value is equal to nothing", "", Sales, SalesByDay,
                   SalesInOrder) {
  auto table = table_of<TestType>(start);
  const auto result = table.template replace_using<&Sale::day>({{9, std::nullopt, "c", 1}});
  CHECK(result.metrics().deleted == 0);  // row 4 stays
  CHECK(table.size() == 5);
  CHECK_THROWS_AS(table.template replace_using<&Sale::day>({{4, std::nullopt, "c", 1}}), kf::DuplicateKey);
}

TEMPLATE_TEST_CASE("replace_using with an empty source removes nothing", "", Sales, SalesByDay,
                   SalesInOrder) {
  auto table = table_of<TestType>(start);
  CHECK_FALSE(table.template replace_using<&Sale::day>({}).committed());
  CHECK(rows_of(table) == start);
}

TEMPLATE_TEST_CASE("what replace_using removes is recorded in table order", "", Sales, SalesByDay,
                   SalesInOrder) {
  TestType table;
  Rows many;
  for (int id = 1; id <= 30; ++id) many.push_back({id, id % 3, "a", 1});
  table.append(many);
  const auto result = table.template replace_using<&Sale::day>({{99, 2, "", 1}, {98, 1, "", 1}});
  std::string expected = "+99 +98";
  for (int id = 1; id <= 30; ++id) {
    if (id % 3 != 0) expected += " -" + std::to_string(id);
  }
  CHECK(kinds(result.changes()) == expected);
}

TEST_CASE("replace_using by several columns needs all of them equal") {
  Sales table = table_of(start);
  table.replace_using<&Sale::day, &Sale::shop>({{9, 7, "a", 1}, {8, 8, "b", 2}, {7, std::nullopt, "c", 3}});
  CHECK(last_commit(table) == "REPLACE USING|(day, shop)");
  CHECK(rows_of(table) ==
        Rows{start[1], start[2], start[3], {9, 7, "a", 1}, {8, 8, "b", 2}, {7, std::nullopt, "c", 3}});
}

TEST_CASE("replace_using by the key is an upsert") {
  Sales table = table_of(start);
  const auto result = table.replace_using<&Sale::id>({{1, 9, "q", 9}, start[1], {9, 1, "z", 1}});
  CHECK(said(result.metrics()) == "source 3 inserted 1 updated 1 deleted 0 unchanged 1 dropped 0");
  CHECK(rows_of(table) == Rows{{1, 9, "q", 9}, start[1], start[2], start[3], {9, 1, "z", 1}});
}

TEST_CASE("an incoming row replaces a row that leaves on account of another incoming row") {
  Sales table = table_of(start);
  // Row 2 leaves since row 9 is of day 7, too; as row 2 of day 5 it comes back.
  const auto result = table.replace_using<&Sale::day>({{9, 7, "z", 1}, {2, 5, "b", 20}});
  CHECK(kinds(result.changes()) == "+9 2 -1");
  // Nobody brings a row of day 8, so row 3 does not leave.
  CHECK_THROWS_AS(table.replace_using<&Sale::day>({{3, 7, "a", 30}}), kf::DuplicateKey);
}

TEST_CASE("in replace_using NaN is equal to NaN and zero to minus zero, as in a key") {
  struct Reading {
    int id = 0;
    double level = 0;
  };
  kf::Table<Reading, kf::Key<&Reading::id>> table;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  table.append({{1, nan}, {2, 0.0}, {3, 1.0}});
  table.replace_using<&Reading::level>({{8, -nan}, {9, -0.0}});
  CHECK(table.size() == 3);
  CHECK(table.contains(3));
}

TEST_CASE("replace_using takes thousands of rows with one value in linear time") {
  Sales table;
  Rows rows;
  for (int id = 0; id < 100'000; ++id) rows.push_back({id, 7, "a", id});
  table.append(rows);
  for (Sale& row : rows) row.id += 100'000;
  const auto result = table.replace_using<&Sale::day>(rows);
  CHECK(result.metrics().deleted == 100'000);
  CHECK(result.metrics().inserted == 100'000);
}

// --- replace_on

TEST_CASE("replace_on replaces the rows for which its condition is true with an incoming one") {
  Sales table = table_of(start);
  const std::vector<Delivery> deliveries{{2, 7, "b", 21, 15}, {9, 6, "z", 90, 0}};
  const auto result = table.replace_on(
      kf::source<&Delivery::day> == day && amount > kf::source<&Delivery::sequence>, deliveries);
  CHECK(said(result.metrics()) == "source 2 inserted 1 updated 1 deleted 0 unchanged 0 dropped 0");
  CHECK(last_commit(table) == "REPLACE ON|((source.day = target.day) AND (target.amount > source.sequence))");
  // Row 1 stays: its amount is not above 15.
  CHECK(rows_of(table) == Rows{start[0], {2, 7, "b", 21}, start[2], start[3], {9, 6, "z", 90}});
}

TEST_CASE("in replace_on == matches no absent value, and same() does") {
  Sales table = table_of(start);
  const Rows rows{{9, std::nullopt, "z", 1}};
  CHECK(table.replace_on(kf::source<&Sale::day> == day, rows).metrics().deleted == 0);
  CHECK(table.size() == 5);
  const Rows more{{8, std::nullopt, "y", 1}};
  CHECK(table.replace_on(kf::same(kf::source<&Sale::day>, day), more).metrics().deleted == 2);
  CHECK(rows_of(table) == Rows{start[0], start[1], start[2], {8, std::nullopt, "y", 1}});
}

TEST_CASE("replace_on with an empty source removes nothing") {
  Sales table = table_of(start);
  CHECK_FALSE(table.replace_on(kf::source<&Sale::day> == day, Rows{}).committed());
  CHECK_FALSE(table.replace_on(amount > 0, Rows{}).committed());
  CHECK(rows_of(table) == start);
}

TEST_CASE("replace_on takes a condition on the target alone, and a callable") {
  Sales table = table_of(start);
  CHECK(table.replace_on(amount > 15, Rows{{9, 1, "z", 1}}).metrics().deleted == 3);
  table = table_of(start);
  const auto of_one_shop = [](const Sale& sale, const Delivery& delivery) {
    return sale.shop == delivery.shop;
  };
  table.replace_on(of_one_shop, std::vector<Delivery>{{1, 7, "a", 11, 0}, {6, 1, "c", 1, 0}});
  CHECK(last_commit(table) == "REPLACE ON|<condition>");
  CHECK(rows_of(table) == Rows{{1, 7, "a", 11}, start[1], {6, 1, "c", 1}});
}

TEST_CASE("replace_on moves rows in only after its condition has seen them all") {
  Sales table = table_of(Rows{{1, 1, "a shop whose name is long enough to be moved", 1}, {2, 1, "b", 1}});
  Rows given{{7, 1, "a shop whose name is long enough to be moved", 9}, {8, 1, "b", 9}};
  table.replace_on(kf::source<&Sale::shop> == kf::target<&Sale::shop>, std::move(given));
  CHECK(rows_of(table) == Rows{{7, 1, "a shop whose name is long enough to be moved", 9}, {8, 1, "b", 9}});
}

TEST_CASE("replace_on of a table with itself is safe") {
  Sales table = table_of(start);
  CHECK_FALSE(table.replace_on(kf::source<&Sale::id> == kf::target<&Sale::id>, table).committed());
  CHECK(rows_of(table) == start);
}

// --- duplicate policies

TEST_CASE("a duplicate policy comes before each verb that takes rows") {
  const Rows twice{{1, 7, "a", 11}, {9, 7, "z", 90}, {1, 7, "a", 12}, {9, 7, "z", 91}};
  const Rows once{{1, 7, "a", 12}, {9, 7, "z", 91}};
  Sales table = table_of(start);
  CHECK(said(table.duplicates(kf::keep_last).overwrite(twice).metrics()) ==
        "source 4 inserted 1 updated 1 deleted 3 unchanged 0 dropped 2");
  CHECK(last_commit(table) == "OVERWRITE|DUPLICATES KEEP LAST");
  CHECK(rows_of(table) == once);

  table = table_of(start);
  CHECK(said(table.duplicates(kf::keep_last).replace_where(day == 7, twice).metrics()) ==
        "source 4 inserted 1 updated 1 deleted 1 unchanged 0 dropped 2");
  CHECK(last_commit(table) == "REPLACE WHERE|(target.day = 7) DUPLICATES KEEP LAST");

  table = table_of(start);
  CHECK(said(table.duplicates(kf::keep_first).replace_using<&Sale::day>(twice).metrics()) ==
        "source 4 inserted 1 updated 1 deleted 1 unchanged 0 dropped 2");
  CHECK(table.at(1).amount == 11);

  table = table_of(start);
  const auto sum = kf::fold([](Sale&& folded, const Sale& next) {
    folded.amount += next.amount;
    return std::move(folded);
  });
  CHECK(said(table.duplicates(sum).replace_on(kf::source<&Sale::day> == day, twice).metrics()) ==
        "source 4 inserted 1 updated 1 deleted 1 unchanged 0 dropped 2");
  CHECK(table.at(9).amount == 181);

  Sales empty;
  CHECK(said(empty.duplicates(kf::latest_by<&Sale::amount>).append(twice).metrics()) ==
        "source 4 inserted 2 updated 0 deleted 0 unchanged 0 dropped 2");
  CHECK(last_commit(empty) == "APPEND|DUPLICATES LATEST BY source.amount");
  CHECK(rows_of(empty) == once);

  table = table_of(start);
  CHECK(said(table.duplicates(kf::keep_last).upsert(twice).metrics()) ==
        "source 4 inserted 1 updated 1 deleted 0 unchanged 0 dropped 2");

  table = table_of(start);
  table.duplicates(kf::keep_last).merge(twice).when_matched().update_all().execute();
  CHECK(table.at(1).amount == 12);
  CHECK_THROWS_AS(table.duplicates(kf::reject).overwrite(twice), kf::DuplicateSourceKey);
}

TEST_CASE("a policy judges rows before the condition of replace_where does") {
  Sales table = table_of(start);
  const Rows rows{{1, 8, "a", 11}, {1, 7, "a", 12}};
  CHECK_THROWS_AS(table.duplicates(kf::keep_first).replace_where(day == 7, rows), kf::ReplaceWhereMismatch);
  table.duplicates(kf::keep_last).replace_where(day == 7, rows);
  CHECK(table.at(1).amount == 12);
  const auto error = error_of<kf::ReplaceWhereMismatch>([&] {
    table.duplicates(kf::keep_last)
        .replace_where(day == 7, Rows{{1, 7, "", 1}, {1, 7, "", 2}, {6, 6, "", 3}});
  });
  CHECK(error.position == 2);  // positions are those of the source
}

TEST_CASE("a policy sees rows of the source's own type") {
  Sales table;
  table.duplicates(kf::latest_by<&Delivery::sequence>)
      .overwrite(std::vector<Delivery>{{1, 7, "a", 1, 9}, {1, 7, "a", 2, 8}});
  CHECK(table.at(1).amount == 1);
}

TEST_CASE("settings before a verb come in any order and are kept") {
  Sales table = table_of(start);
  const auto result = table.metadata("load 7")
                          .duplicates(kf::keep_last)
                          .unchecked()
                          .once("loader", 7)
                          .replace_where(day == 7, Rows{{1, 1, "", 1}, {1, 1, "", 2}});
  CHECK(result.committed());
  CHECK(table.history().back().metadata() == "load 7");
  CHECK(table.last_applied("loader") == 7);
  CHECK(table.unchecked().once("loader", 7).replace_where(day == 8, {}).already_applied());
  CHECK(table.at(1).amount == 2);
}

TEST_CASE("settings before a verb stand in a transaction as well") {
  Sales table = table_of(start);
  auto transaction = table.transaction();
  transaction.duplicates(kf::keep_last).overwrite(Rows{{1, 7, "a", 11}, {1, 8, "a", 12}});
  transaction.unchecked().replace_where(day == 8, Rows{{1, 1, "a", 13}});
  transaction.commit();
  CHECK(rows_of(table) == Rows{{1, 1, "a", 13}});
  CHECK(last_commit(table) ==
        "TRANSACTION|OVERWRITE DUPLICATES KEEP LAST; REPLACE WHERE (target.day = 8) UNCHECKED");
}

// --- erase_where, update_where

TEST_CASE("erase_where deletes the rows for which the condition is true") {
  Sales table = table_of(start);
  const auto result = table.erase_where(day < 8);
  CHECK(said(result.metrics()) == "source 0 inserted 0 updated 0 deleted 2 unchanged 0 dropped 0");
  CHECK(result.metrics().not_matched_by_source_deleted == 2);
  CHECK(last_commit(table) == "DELETE|WHERE (target.day < 8)");
  CHECK(rows_of(table) == Rows{start[2], start[3]});  // unknown is not true
  CHECK_FALSE(table.erase_where(day < 8).committed());
  CHECK(table.erase_where([](const Sale& sale) { return sale.shop == "c"; }).metrics().deleted == 1);
  CHECK(rows_of(table) == Rows{start[2]});
}

TEST_CASE("update_where sets columns of the rows for which the condition is true") {
  Sales table = table_of(start);
  const auto result = table.update_where(day == 7, amount = amount + 1, day = 9);
  CHECK(result.metrics().not_matched_by_source_updated == 2);
  CHECK(last_commit(table) == "UPDATE|SET amount = (target.amount + 1), day = 9 WHERE (target.day = 7)");
  CHECK(rows_of(table) == Rows{{1, 9, "a", 11}, {2, 9, "b", 21}, start[2], start[3]});
}

TEST_CASE("update_where does not count or commit rows that stay as they are") {
  Sales table = table_of(start);
  const auto result = table.update_where(amount > 0, amount = 10);
  CHECK(result.metrics().updated == 3);
  CHECK(kinds(result.changes()) == "2 3 4");
  CHECK_FALSE(table.update_where(amount > 0, amount = 10).committed());
}

TEST_CASE("update_where takes a callable, and may change keys as long as all ends well") {
  Sales table = table_of(start);
  const auto swap = [](const Sale& sale) { return Sale{3 - sale.id, sale.day, sale.shop, sale.amount}; };
  table.update_where(day == 7, kf::named("swap", swap));
  CHECK(last_commit(table) == "UPDATE|SET ROW swap WHERE (target.day = 7)");
  CHECK(rows_of(table) == Rows{{2, 7, "a", 10}, {1, 7, "b", 20}, start[2], start[3]});
  CHECK_THROWS_AS(table.update_where(amount > 0, kf::target<&Sale::id> = 1), kf::DuplicateKey);
  CHECK_THROWS_AS(table.update_where(amount > 0, kf::target<&Sale::amount> = 1LL << 40), kf::ValueOutOfRange);
  CHECK(table.version() == 2);
}

TEST_CASE("a write of the table from within a verb is refused") {
  Sales table = table_of(start);
  const Unharmed<Sales> unharmed(table);
  const auto writes = [&](const Sale&) { return table.clear().committed(); };
  CHECK_THROWS_AS(table.erase_where(writes), kf::ReentrantWrite);
  CHECK_THROWS_AS(table.replace_where(writes, {}), kf::ReentrantWrite);
  CHECK_THROWS_AS(table.replace_on([&](const Sale& sale, const Sale&) { return writes(sale); }, start),
                  kf::ReentrantWrite);
}

TEST_CASE("an invalid key that comes in is named with its position") {
  struct Reading {
    double at = 0;
    int day = 0;
  };
  kf::Table<Reading, kf::Key<&Reading::at>> table;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::array<Reading, 2> rows{{{1, 7}, {nan, 7}}};
  const auto position = [](auto write) { return error_of<kf::InvalidKey>(write).position; };
  CHECK(position([&] { table.overwrite(rows); }) == 1);
  CHECK(position([&] { table.duplicates(kf::keep_last).overwrite(rows); }) == 1);
  CHECK(position([&] { table.replace_using<&Reading::day>(rows); }) == 1);
  CHECK(position([&] { table.replace_using<&Reading::at>(rows); }) == 1);
  CHECK(table.empty());
}
