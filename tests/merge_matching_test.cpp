// How a merge matches source rows with target rows; rules, preview and metadata.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

struct Price {
  std::string sku;
  int day = 0;
  int cents = 0;
  std::optional<std::string> barcode;
  bool operator==(const Price&) const = default;

  int week() const { return day / 7; }
};
BOOST_DESCRIBE_STRUCT(Price, (), (sku, day, cents, barcode))

// The members of the key in another order, of other types, among others.
struct Quote {
  std::uint8_t day = 0;
  int cents = 0;
  std::string_view source;
  std::string_view sku;
};
BOOST_DESCRIBE_STRUCT(Quote, (), (day, cents, source, sku))

struct Line {  // names of its own
  std::string article;
  long date = 0;
  std::optional<std::string> ean;
  int amount = 0;

  std::string upper() const {
    std::string out = article;
    for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return out;
  }
};

struct Dim {
  int id = 0;
  int from = 0;
  std::optional<int> to;
  std::string city;
  bool is_current = true;
  bool operator==(const Dim&) const = default;
};

struct Item {
  std::optional<int> id;
  int value = 0;
  bool operator==(const Item&) const = default;
};

using Prices = kf::Table<Price, kf::Key<&Price::sku, &Price::day>, kf::UniqueBy<&Price::barcode>,
                         kf::HashedBy<&Price::sku>, kf::OrderedBy<&Price::day>, kf::OrderedBy<&Price::week>>;
using Rows = std::vector<Price>;

Prices some_prices() {
  Prices prices;
  prices.append({{"a", 1, 10, "b1"}, {"a", 2, 20, {}}, {"b", 1, 30, "b3"}, {"c", 9, 40, {}}});
  return prices;
}

Rows rows_of(const Prices& prices) { return {prices.begin(), prices.end()}; }

std::vector<int> cents(const Prices& prices) {
  std::vector<int> out;
  for (const Price& price : prices) out.push_back(price.cents);
  return out;
}

using Cents = std::vector<int>;

constexpr auto& t_cents = kf::target<&Price::cents>;

}  // namespace

// --- By key

TEST_CASE("rows of another type match by the members named like the key, whatever their type and order") {
  auto prices = some_prices();
  const std::vector<Quote> quotes = {{2, 21, "x", "a"}, {1, 31, "y", "b"}, {7, 99, "z", "a"}};
  const auto result = prices.merge(quotes).when_matched().update_all().execute();
  CHECK(cents(prices) == Cents{10, 21, 31, 40});
  CHECK(result.metrics().skipped == 1);
}

TEST_CASE("on names the key of the source") {
  auto prices = some_prices();
  const std::vector<Line> lines = {{"a", 2, {}, 22}, {"a", 3, {}, 33}, {"a", (1L << 32) + 1, {}, 44}};
  const auto result = prices.merge(lines)
                          .on<&Line::article, &Line::date>()
                          .when_matched()
                          .update(t_cents = kf::source<&Line::amount>)
                          .execute();
  CHECK(cents(prices) == Cents{10, 22, 30, 40});
  CHECK(result.metrics().skipped == 2);
}

TEST_CASE("on takes functions and callables of the source") {
  static constexpr auto tomorrow = [](const Line& line) { return line.date + 1; };
  kf::Table<Price, kf::Key<&Price::sku, &Price::day>> prices;
  prices.append({{"A", 2, 20, {}}, {"a", 2, 21, {}}});
  const std::vector<Line> lines = {{"a", 1, {}, 5}};
  prices.merge(lines)
      .on<&Line::upper, tomorrow>()
      .when_matched()
      .update(t_cents = kf::source<&Line::amount>)
      .execute();
  CHECK(prices.at("A", 2).cents == 5);
  CHECK(prices.at("a", 2).cents == 21);
}

TEST_CASE("a key of a callable matches rows of the table's own type by it") {
  static constexpr auto folded = [](const Price& price) {
    std::string out = price.sku;
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out + " which does not fit into the small buffer of a string";
  };
  kf::Table<Price, kf::Key<folded>> prices;
  prices.append({{"abc", 1, 10, {}}, {"DEF", 1, 20, {}}});
  const auto result = prices.upsert({{"ABC", 2, 11, {}}, {"def", 2, 22, {}}, {"ghi", 2, 33, {}}});
  CHECK(result.metrics().updated == 2);
  CHECK(result.metrics().inserted == 1);
  CHECK(prices.begin()->sku == "ABC");
}

TEST_CASE("a key of a member function matches rows of the table's own type by it") {
  kf::Table<Price, kf::Key<&Price::week>> prices;
  prices.append({{"a", 1, 10, {}}, {"b", 8, 20, {}}});
  const auto result = prices.upsert({{"c", 6, 11, {}}, {"d", 15, 30, {}}});
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().inserted == 1);
  CHECK(prices.at(0).sku == "c");
}

TEST_CASE("rows of a derived type match by the key of their base") {
  struct Marked : Price {
    bool drop = false;
  };
  const auto marked = [](const char* sku, int day, bool drop) {
    Marked out;
    out.sku = sku;
    out.day = day;
    out.drop = drop;
    return out;
  };
  auto prices = some_prices();
  const std::vector<Marked> rows = {marked("a", 1, true), marked("b", 1, false), marked("n", 5, false)};
  const auto result = prices.merge(rows)
                          .when_matched(kf::source<&Marked::drop>)
                          .erase()
                          .when_matched()
                          .update_all()
                          .when_not_matched()
                          .insert_all()
                          .execute();
  CHECK(result.metrics().deleted == 1);
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().inserted == 1);
  CHECK(prices.contains("n", 5));
}

TEST_CASE("an optional key part matches an empty one, and a source that is never empty") {
  struct Source {
    int id = 0;
    int value = 0;
  };
  kf::Table<Item, kf::Key<&Item::id>> items;
  items.append({{std::nullopt, 1}, {5, 2}});
  CHECK(items.upsert({{std::nullopt, 10}, {6, 3}}).metrics().updated == 1);
  CHECK(items.at(std::nullopt).value == 10);
  const std::vector<Source> rows = {{5, 50}};
  items.merge(rows).on<&Source::id>().when_matched().update(kf::target<&Item::value> = 50).execute();
  CHECK(items.at(5).value == 50);
}

// --- on_condition

TEST_CASE("on_condition takes rows out of the match on both sides") {
  auto prices = some_prices();
  const Rows rows = {{"a", 1, 11, {}}, {"a", 2, 22, {}}};
  const auto result = prices.merge(rows)
                          .on_condition(kf::target<&Price::barcode> == "b1")
                          .when_matched()
                          .update(t_cents = kf::source<&Price::cents>)
                          .when_not_matched()
                          .do_nothing()
                          .when_not_matched_by_source(kf::target<&Price::sku> == "a")
                          .update(t_cents = -1)
                          .execute();
  CHECK(cents(prices) == Cents{11, -1, 30, 40});
  CHECK(result.metrics().matched_updated == 1);
  CHECK(result.metrics().skipped == 1);
  CHECK(result.metrics().not_matched_by_source_updated == 1);
}

TEST_CASE("on_condition may compare both sides, and may be a callable") {
  auto prices = some_prices();
  const Rows rows = {{"a", 1, 5, {}}, {"a", 2, 99, {}}, {"b", 1, 99, {}}};
  prices.merge(rows)
      .on_condition(kf::source<&Price::cents> > t_cents)
      .when_matched()
      .update(t_cents = 1)
      .execute();
  CHECK(cents(prices) == Cents{10, 1, 1, 40});
  prices.merge(rows)
      .on_condition([](const Price& target, const Price& source) { return target.cents < source.cents; })
      .when_matched()
      .erase()
      .execute();
  CHECK(cents(prices) == Cents{10, 40});
}

TEST_CASE("on_condition that is unknown does not match") {
  auto prices = some_prices();
  const auto result = prices.merge(rows_of(prices))
                          .on_condition(kf::target<&Price::barcode> == kf::source<&Price::barcode>)
                          .when_matched()
                          .erase()
                          .execute();
  CHECK(result.metrics().deleted == 2);
  CHECK(cents(prices) == Cents{20, 40});
}

TEST_CASE("a key whose row on_condition leaves out is not free") {
  auto prices = some_prices();
  const Rows rows = {{"a", 2, 22, {}}};
  CHECK_THROWS_AS(prices.merge(rows)
                      .on_condition(!kf::is_null(kf::target<&Price::barcode>))
                      .when_not_matched()
                      .insert_all()
                      .execute(),
                  kf::DuplicateKey);
}

TEST_CASE("two source rows of one key where on_condition lets one through") {
  auto prices = some_prices();
  const Rows rows = {{"a", 1, 5, {}}, {"a", 1, 50, {}}};
  const auto result =
      prices.merge(rows).on_condition(kf::source<&Price::cents> > 10).when_matched().update_all().execute();
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().skipped == 1);
  CHECK(prices.at("a", 1).cents == 50);
}

TEST_CASE("on_condition keeps closed rows of a history table out of the merge") {
  struct Person {
    int id = 0;
    std::string city;
  };
  kf::Table<Dim, kf::Key<&Dim::id, &Dim::from>, kf::HashedBy<&Dim::id>> dims;
  dims.append({{1, 10, 20, "Rome", false}, {1, 20, {}, "Oslo", true}, {2, 10, {}, "Bern", true}});
  const std::vector<Person> people = {{1, "Paris"}, {2, "Bern"}, {3, "Kyiv"}};
  const auto result = dims.merge(people)
                          .on<&Person::id>(kf::by<&Dim::id>)
                          .on_condition(kf::target<&Dim::is_current> == true)
                          .when_matched(kf::source<&Person::city> != kf::target<&Dim::city>)
                          .update(kf::target<&Dim::to> = 30, kf::target<&Dim::is_current> = false)
                          .when_not_matched()
                          .insert(kf::target<&Dim::id> = kf::source<&Person::id>, kf::target<&Dim::from> = 30,
                                  kf::target<&Dim::city> = kf::source<&Person::city>)
                          .execute();
  CHECK(result.metrics().matched_updated == 1);
  CHECK(result.metrics().inserted == 1);
  CHECK(result.metrics().skipped == 1);
  CHECK(dims.at(1, 10) == Dim{1, 10, 20, "Rome", false});
  CHECK(dims.at(1, 20) == Dim{1, 20, 30, "Oslo", false});
  CHECK(dims.at(3, 30) == Dim{3, 30, {}, "Kyiv", true});
}

// --- Through a secondary index

TEST_CASE("a source row matches every target row of its index value") {
  auto prices = some_prices();
  const Rows rows = {{"a", 0, 5, {}}, {"z", 0, 6, {}}};
  const auto result = prices.merge(rows)
                          .on<&Price::sku>(kf::by<&Price::sku>)
                          .when_matched()
                          .update(t_cents = t_cents + kf::source<&Price::cents>)
                          .when_not_matched()
                          .insert_all()
                          .execute();
  CHECK(cents(prices) == Cents{15, 25, 30, 40, 6});
  CHECK(result.metrics().source_rows == 2);
  CHECK(result.metrics().matched_updated == 2);
  CHECK(result.metrics().inserted == 1);
}

TEST_CASE("matching through ordered and unique indexes, by other names and types") {
  auto prices = some_prices();
  const std::vector<Line> lines = {{"", 1, "b3", 7}, {"", 9, "b9", 8}};
  prices.merge(lines)
      .on<&Line::ean>(kf::by<&Price::barcode>)
      .when_matched()
      .update(t_cents = kf::source<&Line::amount>)
      .execute();
  CHECK(cents(prices) == Cents{10, 20, 7, 40});
  prices.merge(lines)
      .on<&Line::date>(kf::by<&Price::day>)
      .when_matched()
      .update(t_cents = kf::source<&Line::amount>)
      .execute();
  CHECK(cents(prices) == Cents{7, 20, 7, 8});
  prices.merge(std::vector<Line>{{"", 0, {}, 0}})
      .on<&Line::date>(kf::by<&Price::week>)
      .when_matched()
      .erase()
      .execute();
  CHECK(cents(prices) == Cents{8});  // days 1 and 2 are of week 0
}

TEST_CASE("an empty optional matches nothing through an index") {
  auto prices = some_prices();
  const std::vector<Line> lines = {{"", 0, {}, 7}};
  const auto result = prices.merge(lines)
                          .on<&Line::ean>(kf::by<&Price::barcode>)
                          .when_matched()
                          .erase()
                          .when_not_matched()
                          .insert(kf::target<&Price::sku> = "none")
                          .execute();
  CHECK(result.metrics().deleted == 0);
  CHECK(result.metrics().inserted == 1);
}

TEST_CASE("a value that matches nothing leaves its index rows unmatched by source") {
  auto prices = some_prices();
  const Rows rows = {{"a", 0, 0, {}}, {"q", 0, 0, {}}};
  prices.merge(rows)
      .on<&Price::sku>(kf::by<&Price::sku>)
      .when_matched()
      .do_nothing()
      .when_not_matched_by_source()
      .erase()
      .execute();
  CHECK(cents(prices) == Cents{10, 20});
}

TEST_CASE("two source rows that act on one target row through an index are refused") {
  auto prices = some_prices();
  const Rows rows = {{"b", 0, 1, {}}, {"a", 0, 1, {}}, {"a", 7, 2, {}}};
  try {
    prices.merge(rows).on<&Price::sku>(kf::by<&Price::sku>).when_matched().update(t_cents = 0).execute();
    FAIL("no exception");
  } catch (const kf::DuplicateSourceKey& error) {
    CHECK(error.first_position == 1);
    CHECK(error.second_position == 2);
    CHECK((error.key == "('a', 1)" || error.key == "('a', 2)"));  // of a target row, whichever is met first
  }
  const auto result =
      prices.merge(rows).on<&Price::sku>(kf::by<&Price::sku>).when_matched().erase().execute();
  CHECK(result.metrics().matched_deleted == 3);
}

TEST_CASE("on_condition narrows a match through an index") {
  auto prices = some_prices();
  const Rows rows = {{"a", 2, 0, {}}};
  const auto result = prices.merge(rows)
                          .on<&Price::sku>(kf::by<&Price::sku>)
                          .on_condition(kf::target<&Price::day> < kf::source<&Price::day>)
                          .when_matched()
                          .update(t_cents = 0)
                          .when_not_matched_by_source()
                          .update(t_cents = 1)
                          .execute();
  CHECK(cents(prices) == Cents{0, 1, 1, 1});
  CHECK(result.metrics().matched_updated == 1);
}

TEST_CASE("the same value may change while rows are matched by it") {
  auto prices = some_prices();
  const Rows rows = {{"a", 0, 0, {}}};
  const auto result = prices.merge(rows)
                          .on<&Price::sku>(kf::by<&Price::sku>)
                          .when_matched()
                          .update(kf::target<&Price::sku> = "z")
                          .execute();
  CHECK(result.metrics().updated == 2);
  CHECK_FALSE(prices.by<&Price::sku>().contains("a"));
  CHECK(prices.contains("z", 1));
}

// --- The builder

TEST_CASE("a merge that is not executed does nothing") {
  auto prices = some_prices();
  int calls = 0;
  static_cast<void>(prices.merge(Rows{{"a", 1, 0, {}}})
                        .when_matched([&](const Price&, const Price&) {
                          ++calls;
                          return true;
                        })
                        .erase());
  CHECK(calls == 0);
  CHECK(prices.size() == 4);
}

TEST_CASE("settings may stand anywhere between the clauses") {
  auto prices = some_prices();
  const std::vector<Line> lines = {{"a", 1, {}, 5}, {"a", 1, {}, 6}, {"n", 1, {}, 7}};
  const auto result = prices.merge(lines)
                          .metadata("first")
                          .when_matched(kf::source<&Line::amount> > 100)
                          .erase()
                          .duplicates(kf::keep_last)
                          .on_condition(t_cents < 100)
                          .when_matched()
                          .update(t_cents = kf::source<&Line::amount>)
                          .on<&Line::article, &Line::date>()
                          .rewrite_unchanged()
                          .metadata("second")
                          .when_not_matched()
                          .do_nothing()
                          .execute();
  CHECK(prices.at("a", 1).cents == 6);
  CHECK(result.metrics().dropped_duplicates == 1);
  CHECK(prices.history().back().metadata() == "second");
}

TEST_CASE("a builder kept in a variable can be previewed and executed") {
  auto prices = some_prices();
  auto builder =
      prices.merge(Rows{{"a", 1, 11, "a barcode that does not fit into a small buffer"}, {"n", 1, 1, {}}})
          .when_matched()
          .update_all()
          .when_not_matched()
          .insert_all();
  const auto previewed = builder.preview();
  CHECK(builder.execute().changes() == previewed);
  CHECK(prices.at("a", 1).barcode == "a barcode that does not fit into a small buffer");
  CHECK(builder.execute().metrics().unchanged == 2);
  CHECK(builder.preview().empty());
}

// --- Preview

namespace {

// Previews and then executes a merge of these rows with everything in it.
template <class Source>
auto everything(Prices& prices, const Source& rows) {
  return prices.merge(rows)
      .when_matched(kf::source<&Price::cents> == 0)
      .erase()
      .when_matched()
      .update_all()
      .when_not_matched(kf::source<&Price::cents> != 0)
      .insert_all()
      .when_not_matched_by_source(kf::target<&Price::sku> == "c")
      .update(kf::target<&Price::day> = 8)
      .when_not_matched_by_source(kf::target<&Price::sku> == "b")
      .erase();
}

const Rows mixed = {{"n", 1, 5, "b3"}, {"a", 2, 0, {}}, {"a", 1, 12, "b1"}, {"m", 1, 0, {}}};

}  // namespace

TEST_CASE("preview tells what execute then does") {
  auto prices = some_prices();
  const auto previewed = everything(prices, mixed).preview();
  const auto result = everything(prices, mixed).execute();
  CHECK(previewed.size() == 5);
  CHECK(result.changes() == previewed);
  CHECK(rows_of(prices) == Rows{{"a", 1, 12, "b1"}, {"c", 8, 40, {}}, {"n", 1, 5, "b3"}});
}

TEST_CASE("preview changes nothing") {
  auto prices = some_prices();
  const Price* const row = prices.find("a", 1);
  const auto before = rows_of(prices);
  static_cast<void>(everything(prices, mixed).preview());
  CHECK(rows_of(prices) == before);
  CHECK(prices.find("a", 1) == row);
  CHECK(prices.version() == 1);
  CHECK(prices.history().size() == 1);
  CHECK(prices.by<&Price::barcode>().find("b3")->sku == "b");
  CHECK_FALSE(prices.contains("n", 1));
}

TEST_CASE("preview with metadata makes no version") {
  auto prices = some_prices();
  CHECK(prices.merge(Rows()).when_matched().erase().metadata("m").preview().empty());
  CHECK(prices.version() == 1);
}

TEST_CASE("preview throws what execute would throw") {
  auto prices = some_prices();
  const Rows collides = {{"n", 1, 5, "b1"}};
  CHECK_THROWS_AS(static_cast<void>(prices.merge(collides).when_not_matched().insert_all().preview()),
                  kf::UniqueViolation);
  const Rows twice = {{"a", 1, 5, {}}, {"a", 1, 6, {}}};
  CHECK_THROWS_AS(static_cast<void>(prices.merge(twice).when_matched().update_all().preview()),
                  kf::DuplicateSourceKey);
  CHECK_THROWS_AS(static_cast<void>(prices.merge(twice).when_matched().raise("no").preview()),
                  kf::ClauseRaised);
  CHECK_NOTHROW(prices.clear());
}

TEST_CASE("an unchanged row is not in a preview") {
  auto prices = some_prices();
  CHECK(prices.merge(rows_of(prices)).when_matched().update_all().preview().empty());
  CHECK(prices.merge(rows_of(prices)).when_matched().update_all().rewrite_unchanged().preview().size() == 4);
}

// --- Rules

namespace {

constexpr auto quote_rule = kf::merge_rule<Price, Quote>()
                                .when_matched(kf::source<&Quote::cents> > t_cents)
                                .update_all()
                                .when_not_matched()
                                .insert(kf::target<&Price::sku> = kf::source<&Quote::sku>,
                                        kf::target<&Price::day> = kf::source<&Quote::day>);

}  // namespace

TEST_CASE("a constexpr rule runs on many sources and tables") {
  auto first = some_prices();
  Prices second;
  const std::vector<Quote> quotes = {{1, 99, "", "a"}, {2, 5, "", "a"}, {3, 7, "", "n"}};
  const auto result = first.merge(quotes, quote_rule);
  CHECK(result.metrics().updated == 1);
  CHECK(result.metrics().skipped == 1);
  CHECK(result.metrics().inserted == 1);
  CHECK(first.at("a", 1).cents == 99);
  CHECK(second.merge(quotes, quote_rule).metrics().inserted == 3);
  CHECK(second.merge(std::vector<Quote>{{1, 1, "", "a"}}, quote_rule).metrics().updated == 1);

  kf::Table<Price, kf::OrderedKey<&Price::day>> by_day;  // the same rule, another key
  CHECK(by_day.merge(std::vector<Quote>{{5, 1, "", "a"}}, quote_rule).metrics().inserted == 1);
}

TEST_CASE("a rule does what the same clauses do in place") {
  auto by_rule = some_prices();
  auto in_place = some_prices();
  const std::vector<Line> lines = {{"a", 1, {}, 5}, {"a", 1, {}, 7}, {"n", 1, {}, 6}};
  constexpr auto rule = kf::merge_rule<Price, Line>()
                            .on<&Line::article, &Line::date>()
                            .on_condition(t_cents < 100)
                            .duplicates(kf::keep_last)
                            .when_matched()
                            .update(t_cents = kf::source<&Line::amount>)
                            .when_not_matched_by_source()
                            .erase();
  const auto a = by_rule.merge(lines, rule);
  const auto b = in_place.merge(lines)
                     .on<&Line::article, &Line::date>()
                     .on_condition(t_cents < 100)
                     .duplicates(kf::keep_last)
                     .when_matched()
                     .update(t_cents = kf::source<&Line::amount>)
                     .when_not_matched_by_source()
                     .erase()
                     .execute();
  CHECK(a.metrics() == b.metrics());
  CHECK(a.changes() == b.changes());
  CHECK(rows_of(by_rule) == rows_of(in_place));
  CHECK(by_rule.history().back().parameters() == in_place.history().back().parameters());
}

TEST_CASE("a rule through an index can be reused") {
  constexpr auto rule = kf::merge_rule<Price>().on<&Price::sku>(kf::by<&Price::sku>).when_matched().erase();
  auto prices = some_prices();
  CHECK(prices.merge(Rows{{"a", 0, 0, {}}}, rule).metrics().deleted == 2);
  CHECK(prices.merge(Rows{{"a", 0, 0, {}}}, rule).metrics().deleted == 0);
}

TEST_CASE("a rule with values known at run time") {
  const auto rule_for = [](std::string sku) {
    return kf::merge_rule<Price>()
        .when_matched([sku](const Price& target, const Price&) { return target.sku == sku; })
        .erase()
        .when_matched(kf::source<&Price::sku> == sku)
        .raise("never")
        .when_matched()
        .update(t_cents = static_cast<int>(sku.size()));
  };
  const auto rule = rule_for("a");
  auto prices = some_prices();
  const auto result = prices.merge(rows_of(prices), rule);
  CHECK(result.metrics().deleted == 2);
  CHECK(cents(prices) == Cents{1, 1});
}

TEST_CASE("a rule is a value that can be extended") {
  const auto start = kf::merge_rule<Price>().when_matched(kf::source<&Price::cents> == 0).erase();
  auto copy = start;
  const auto extended = std::move(copy).when_matched().update_all();
  auto prices = some_prices();
  CHECK(prices.merge(Rows{{"a", 1, 5, {}}}, start).metrics().skipped == 1);
  CHECK(prices.merge(Rows{{"a", 1, 5, {}}}, extended).metrics().updated == 1);
}

TEST_CASE("a rule can be previewed") {
  auto prices = some_prices();
  const std::vector<Quote> quotes = {{1, 99, "", "a"}, {3, 7, "", "n"}};
  const auto previewed = prices.preview(quotes, quote_rule);
  CHECK(prices.version() == 1);
  CHECK(prices.merge(quotes, quote_rule).changes() == previewed);
  CHECK(previewed.size() == 2);
}

TEST_CASE("a rule prints its clauses") {
  CHECK(quote_rule.text() ==
        "WHEN MATCHED AND (source.cents > target.cents) THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT SET sku = source.sku, day = source.day");
}

TEST_CASE("a rule takes rows derived from its source type, and rows of any range") {
  struct Dated : Quote {
    int date = 0;
  };
  Dated dated;
  dated.sku = "a";
  dated.day = 1;
  dated.cents = 77;
  auto prices = some_prices();
  CHECK(prices.merge(std::vector<Dated>{dated}, quote_rule).metrics().updated == 1);
  const Quote array[] = {{1, 99, "", "a"}};
  CHECK(prices.merge(array, quote_rule).metrics().updated == 1);
}

// --- Results

TEST_CASE("a result has the changes of its own write only") {
  auto prices = some_prices();
  const auto first = prices.upsert({"a", 1, 11, "b1"});
  const auto second = prices.upsert({"a", 1, 12, "b1"});
  CHECK(first.changes()[0].after()->cents == 11);
  CHECK(second.changes()[0].before()->cents == 11);
  CHECK(second.version() == 3);
  CHECK(first.version() == 2);
}

TEST_CASE("a result can be kept after its table is gone, but for its changes") {
  kf::MergeResult<Price> committed = some_prices().upsert({"a", 1, 11, "b1"});
  CHECK(committed.committed());
  CHECK(committed.version() == 2);
  CHECK(committed.metrics().updated == 1);
  CHECK_THROWS_AS(static_cast<void>(committed.changes()), kf::TableGone);
  const kf::MergeResult<Price> nothing = some_prices().upsert({"a", 1, 10, "b1"});
  CHECK(nothing.changes().empty());
}
