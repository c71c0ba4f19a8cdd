#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using keyfold_test::contains;

namespace {

struct Item {
  int id = 0;
  std::string text;
  int count = 0;
  std::optional<int> rank;
  double weight = 0;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (id, text, count, rank, weight))

using Items = kf::Table<Item, kf::Key<&Item::id>>;

const std::vector<Item> rows = {{1, "a", 1, {}, 0}, {2, "b", 2, {}, 0},  {1, "c", 4, {}, 0},
                                {3, "d", 8, {}, 0}, {1, "e", 16, {}, 0}, {2, "f", 32, {}, 0}};

template <class Policy>
auto load(Items& items, std::vector<Item> batch, const Policy& policy) {
  return items.merge(std::move(batch))
      .duplicates(policy)
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
}

std::vector<std::string> texts(const Items& items) {
  std::vector<std::string> out;
  for (const Item& item : items) out.push_back(item.text);
  return out;
}

using Texts = std::vector<std::string>;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("keep_first keeps the first row of each key, in source order") {
  Items items;
  const auto metrics = load(items, rows, kf::keep_first).metrics();
  CHECK(texts(items) == Texts{"a", "b", "d"});
  CHECK(metrics.source_rows == 6);
  CHECK(metrics.inserted == 3);
  CHECK(metrics.dropped_duplicates == 3);
}

TEST_CASE("keep_last keeps the last row of each key, in source order") {
  Items items;
  const auto metrics = load(items, rows, kf::keep_last).metrics();
  CHECK(texts(items) == Texts{"d", "e", "f"});
  CHECK(metrics.source_rows == 6);
  CHECK(metrics.inserted == 3);
  CHECK(metrics.dropped_duplicates == 3);
}

TEST_CASE("a policy leaves rows without duplicates alone") {
  const std::vector<Item> unique = {{3, "c", 0, {}, 0}, {1, "a", 0, {}, 0}, {2, "b", 0, {}, 0}};
  const auto loaded = [&](const auto& policy) {
    Items items;
    CHECK(load(items, unique, policy).metrics().dropped_duplicates == 0);
    return texts(items);
  };
  CHECK(loaded(kf::reject) == Texts{"c", "a", "b"});
  CHECK(loaded(kf::keep_first) == Texts{"c", "a", "b"});
  CHECK(loaded(kf::keep_last) == Texts{"c", "a", "b"});
  CHECK(loaded(kf::latest_by<&Item::count>) == Texts{"c", "a", "b"});
  CHECK(loaded(kf::fold([](const Item& a, const Item&) { return a; })) == Texts{"c", "a", "b"});
}

TEST_CASE("reject refuses a second row of a key, and names both") {
  Items items;
  items.insert({9, "old", 0, {}, 0});
  try {
    load(items, rows, kf::reject);
    FAIL("no exception");
  } catch (const kf::DuplicateSourceKey& error) {
    CHECK(error.key == "1");
    CHECK(error.index == "id");
    CHECK(error.first_position == 0);
    CHECK(error.second_position == 2);
    CHECK_THAT(error.what(), contains("source rows 0 and 2"));
  }
  CHECK(texts(items) == Texts{"old"});
  CHECK(items.version() == 1);
}

TEST_CASE("reject refuses duplicates that no clause acts on, the default does not") {
  Items items;
  items.insert({9, "old", 0, {}, 0});
  const auto by_default = items.merge(rows).when_matched().erase().execute();
  CHECK(by_default.metrics().skipped == 6);
  CHECK_THROWS_AS(items.merge(rows).duplicates(kf::reject).when_matched().erase().execute(),
                  kf::DuplicateSourceKey);
}

TEST_CASE("without a policy two rows that act on one target row are refused") {
  Items items;
  items.insert({1, "old", 0, {}, 0});
  const std::vector<Item> twice = {{1, "a", 0, {}, 0}, {1, "b", 0, {}, 0}};
  CHECK_THROWS_AS(items.merge(twice).when_matched().update_all().execute(), kf::DuplicateSourceKey);
  const auto one_acts =
      items.merge(twice).when_matched(kf::source<&Item::text> == "b").update_all().execute();
  CHECK(one_acts.metrics().updated == 1);
  CHECK(one_acts.metrics().skipped == 1);
  CHECK(items.at(1).text == "b");
}

TEST_CASE("latest_by keeps the row with the greatest value") {
  Items items;
  const std::vector<Item> batch = {{1, "new", 9, {}, 0},
                                   {2, "x", 1, {}, 0},
                                   {1, "old", 3, {}, 0},
                                   {1, "older", 1, {}, 0},
                                   {2, "y", 2, {}, 0}};
  const auto metrics = load(items, batch, kf::latest_by<&Item::count>).metrics();
  CHECK(texts(items) == Texts{"new", "y"});
  CHECK(metrics.dropped_duplicates == 3);
}

TEST_CASE("latest_by keeps the last of equal rows") {
  Items items;
  load(items,
       {{1, "a", 5, {}, 0}, {1, "b", 5, {}, 0}, {1, "c", 4, {}, 0}, {1, "d", 5, {}, 0}, {1, "e", 1, {}, 0}},
       kf::latest_by<&Item::count>);
  CHECK(items.at(1).text == "d");
}

TEST_CASE("latest_by puts an empty optional before every value") {
  Items items;
  load(items,
       {{1, "low", 0, -5, 0},
        {1, "empty", 0, {}, 0},
        {2, "empty", 0, {}, 0},
        {2, "low", 0, -5, 0},
        {3, "first", 0, {}, 0},
        {3, "second", 0, {}, 0}},
       kf::latest_by<&Item::rank>);
  CHECK(items.at(1).text == "low");
  CHECK(items.at(2).text == "low");
  CHECK(items.at(3).text == "second");
}

TEST_CASE("latest_by puts NaN after every number") {
  Items items;
  load(items,
       {{1, "nan", 0, {}, nan_value},
        {1, "one", 0, {}, 1},
        {2, "one", 0, {}, 1},
        {2, "nan", 0, {}, nan_value},
        {3, "first", 0, {}, nan_value},
        {3, "second", 0, {}, nan_value}},
       kf::latest_by<&Item::weight>);
  CHECK(items.at(1).text == "nan");
  CHECK(items.at(2).text == "nan");
  CHECK(items.at(3).text == "second");
}

TEST_CASE("latest_by takes text and functions, too") {
  struct Event {
    int id = 0;
    std::string at;
    bool operator==(const Event&) const = default;
    std::size_t length() const { return at.size(); }
  };
  kf::Table<Event, kf::Key<&Event::id>> events;
  const std::vector<Event> batch = {{1, "2026-02"}, {1, "2026-10"}, {1, "2026-1"}};
  events.merge(batch).duplicates(kf::latest_by<&Event::at>).when_not_matched().insert_all().execute();
  CHECK(events.at(1).at == "2026-10");
  events.clear();
  events.merge(batch).duplicates(kf::latest_by<&Event::length>).when_not_matched().insert_all().execute();
  CHECK(events.at(1).at == "2026-10");
}

TEST_CASE("fold folds the rows of a key in source order") {
  Items items;
  const auto joined = kf::fold([](Item folded, const Item& next) {
    folded.text += next.text;
    folded.count += next.count;
    return folded;
  });
  const auto metrics = load(items, rows, joined).metrics();
  CHECK(texts(items) == Texts{"ace", "bf", "d"});
  CHECK(items.at(1).count == 21);
  CHECK(items.at(2).count == 34);
  CHECK(metrics.source_rows == 6);
  CHECK(metrics.inserted == 3);
  CHECK(metrics.dropped_duplicates == 3);
}

TEST_CASE("a folded row takes the place of the first of its key") {
  Items items;
  load(items, {{2, "x", 0, {}, 0}, {1, "a", 0, {}, 0}, {2, "y", 0, {}, 0}},
       kf::fold([](const Item&, const Item& next) { return next; }));
  CHECK(texts(items) == Texts{"y", "a"});
}

TEST_CASE("fold may take its rows by value, by rvalue or by const reference") {
  const auto folded = [](const auto& policy) {
    Items items;
    load(items, rows, policy);
    return items.at(1).count;
  };
  CHECK(folded(kf::fold([](Item&& a, const Item& b) {
          a.count += b.count;
          return std::move(a);
        })) == 21);
  CHECK(folded(kf::fold([](const Item& a, const Item& b) {
          return Item{a.id, a.text, a.count + b.count, {}, 0};
        })) == 21);
  CHECK(folded(kf::fold([](const auto& a, const auto& b) { return a.count > b.count ? a : b; })) == 16);
}

TEST_CASE("a policy leaves a source that is not its own alone") {
  auto batch = rows;
  Items items;
  items.merge(batch)
      .duplicates(kf::fold([](Item&& folded, const Item& next) {
        folded.text += next.text;
        return std::move(folded);
      }))
      .when_not_matched()
      .insert_all()
      .execute();
  CHECK(items.at(1).text == "ace");
  CHECK(batch == rows);
}

TEST_CASE("an exception in fold passes through and changes nothing") {
  Items items;
  items.insert({1, "old", 0, {}, 0});
  const auto failing = kf::fold([](const Item& a, const Item& b) {
    if (b.text == "e") throw std::range_error("too much");
    return a;
  });
  CHECK_THROWS_AS(load(items, rows, failing), std::range_error);
  CHECK(texts(items) == Texts{"old"});
  CHECK(items.version() == 1);
}

TEST_CASE("the policy comes before every clause") {
  Items items;
  items.insert({1, "old", 0, {}, 0});
  // The last row of key 1 does not meet the condition, so nothing is done for the key at all.
  const auto result = items.merge(rows)
                          .duplicates(kf::keep_last)
                          .when_matched(kf::source<&Item::text> == "c")
                          .update_all()
                          .execute();
  CHECK(result.metrics().updated == 0);
  CHECK(result.metrics().dropped_duplicates == 3);
  CHECK(result.metrics().skipped == 3);
  CHECK(items.at(1).text == "old");
}

TEST_CASE("a dropped row does not keep its target from being unmatched") {
  Items items;
  items.append({{1, "a", 0, {}, 0}, {2, "b", 0, {}, 0}, {4, "c", 0, {}, 0}});
  const auto result = items.merge(rows)
                          .duplicates(kf::keep_first)
                          .when_matched()
                          .do_nothing()
                          .when_not_matched_by_source()
                          .erase()
                          .execute();
  CHECK(texts(items) == Texts{"a", "b"});
  CHECK(result.metrics().deleted == 1);
}

TEST_CASE("duplicates are judged by the source's key") {
  struct Change {
    int item = 0;
    std::string text;
  };
  Items items;
  items.append({{1, "old", 0, {}, 0}, {2, "old", 0, {}, 0}});
  const std::vector<Change> changes = {{1, "a"}, {2, "b"}, {1, "c"}};
  const auto result = items.merge(changes)
                          .on<&Change::item>()
                          .duplicates(kf::keep_last)
                          .when_matched()
                          .update(kf::target<&Item::text> = kf::source<&Change::text>)
                          .execute();
  CHECK(texts(items) == Texts{"c", "b"});
  CHECK(result.metrics().dropped_duplicates == 1);
}

TEST_CASE("duplicates of a composite key agree in all parts") {
  struct Price {
    std::string sku;
    std::optional<int> day;
    int cents = 0;
    bool operator==(const Price&) const = default;
  };
  kf::Table<Price, kf::Key<&Price::sku, &Price::day>> prices;
  const std::vector<Price> batch = {{"a", 1, 1}, {"a", 2, 2},  {"a", {}, 3},
                                    {"b", 1, 4}, {"a", {}, 5}, {"a", 1, 6}};
  const auto result = prices.merge(batch).duplicates(kf::keep_last).when_not_matched().insert_all().execute();
  CHECK(result.metrics().dropped_duplicates == 2);
  CHECK(prices.at("a", 1).cents == 6);
  CHECK(prices.at("a", std::nullopt).cents == 5);
  CHECK(prices.size() == 4);
}

TEST_CASE("many duplicates of few keys") {
  std::vector<Item> batch;
  for (int i = 0; i < 10000; ++i) batch.push_back({i % 7, "", i, {}, 0});
  Items items;
  const auto sum = kf::fold([](Item&& folded, const Item& next) {
    folded.count += next.count;
    return std::move(folded);
  });
  const auto metrics = load(items, batch, sum).metrics();
  CHECK(metrics.inserted == 7);
  CHECK(metrics.dropped_duplicates == 9993);
  int total = 0;
  for (const Item& item : items) total += item.count;
  CHECK(total == 49995000);             // 0 + 1 + ... + 9999
  CHECK(items.at(3).count == 7146429);  // 3 + 10 + ... + 9999: 1429 terms of 5001 on average
}

TEST_CASE("the policy is recorded with the clauses") {
  const auto recorded = [](const auto& policy) {
    Items items;
    load(items, rows, policy);
    const std::string text(items.history().back().parameters());
    return text.substr(0, text.find(" WHEN"));
  };
  CHECK(recorded(kf::keep_first) == "ON source.id = target.id DUPLICATES KEEP FIRST");
  CHECK(recorded(kf::keep_last) == "ON source.id = target.id DUPLICATES KEEP LAST");
  CHECK(recorded(kf::latest_by<&Item::count>) ==
        "ON source.id = target.id DUPLICATES LATEST BY source.count");
  CHECK(recorded(kf::fold([](const Item& a, const Item&) { return a; })) ==
        "ON source.id = target.id DUPLICATES FOLD");
}
