// Several source rows for one target row: from public bug reports, with their neighbours.
#include <keyfold/keyfold.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Pair {
  int key = 0;
  int value = 0;
  bool operator==(const Pair&) const = default;
};
using Pairs = kf::Table<Pair, kf::Key<&Pair::key>>;
using Rows = std::vector<Pair>;

Pairs pairs(const Rows& rows) {
  Pairs table;
  table.append(rows);
  return table;
}

}  // namespace

// delta-io/delta#3413: refused as ambiguous although one source row only meets the clause's condition.
TEST_CASE("source rows that no clause acts on make nothing ambiguous") {
  Pairs table = pairs({{1, 1}, {2, 2}});
  const auto result = table.merge({{0, 0}, {1, 10}, {1, 11}, {2, 20}})
                          .when_matched(kf::source<&Pair::value> == 10)
                          .update_all()
                          .execute();
  CHECK(rows_of(table) == Rows{{1, 10}, {2, 2}});
  CHECK(counts_of(result) == Counts{1, 0, 0});
  CHECK(result.metrics().skipped == 3);
}

TEST_CASE("it does not matter whether the row that acts comes first or last") {
  for (const Rows& source :
       {Rows{{1, 10}, {1, 11}, {1, 12}}, {{1, 11}, {1, 10}, {1, 12}}, {{1, 11}, {1, 12}, {1, 10}}}) {
    Pairs table = pairs({{1, 1}});
    const auto result =
        table.merge(source).when_matched(kf::source<&Pair::value> == 10).update_all().execute();
    CHECK(table.at(1).value == 10);
    CHECK(counts_of(result) == Counts{1, 0, 0});
    CHECK(result.metrics().skipped == 2);
  }
}

TEST_CASE("two rows that meet the condition are ambiguous, and the error names them") {
  Pairs table = pairs({{1, 1}, {2, 2}});
  const Unharmed unharmed(table);
  auto merge = table.merge({{2, 20}, {1, 10}, {0, 10}, {1, 11}, {1, 10}})
                   .when_matched(kf::source<&Pair::value> == 10)
                   .update_all();
  const auto error = error_of<kf::DuplicateSourceKey>([&] { merge.execute(); });
  CHECK(error.key == "1");
  CHECK(error.index == "key");
  CHECK(error.first_position == 1);
  CHECK(error.second_position == 4);
}

TEST_CASE("do_nothing before another clause makes nothing ambiguous") {
  Pairs table = pairs({{1, 1}});
  const auto result = table.merge({{1, 10}, {1, 11}, {1, 12}})
                          .when_matched(kf::source<&Pair::value> > 10)
                          .do_nothing()
                          .when_matched()
                          .update_all()
                          .execute();
  CHECK(table.at(1).value == 10);
  CHECK(result.metrics().skipped == 2);
}

TEST_CASE("two clauses that act on one row are ambiguous, whatever they do") {
  Pairs table = pairs({{1, 1}});
  const Unharmed unharmed(table);
  const auto merge = [&](Rows rows) {
    return table.merge(std::move(rows))
        .when_matched(kf::source<&Pair::value> == 0)
        .erase()
        .when_matched()
        .update_all();
  };
  CHECK_THROWS_AS(merge({{1, 0}, {1, 5}}).execute(), kf::DuplicateSourceKey);
  CHECK_THROWS_AS(merge({{1, 5}, {1, 0}}).execute(), kf::DuplicateSourceKey);
  CHECK_THROWS_AS(merge({{1, 0}, {1, 0}}).execute(), kf::DuplicateSourceKey);  // an erase under a condition
}

TEST_CASE("an update that changes nothing is ambiguous beside another") {
  Pairs table = pairs({{1, 1}});
  const Unharmed unharmed(table);
  CHECK_THROWS_AS(table.upsert({{1, 1}, {1, 2}}), kf::DuplicateSourceKey);
  CHECK_THROWS_AS(table.upsert({{1, 2}, {1, 1}}), kf::DuplicateSourceKey);
  CHECK_THROWS_AS(table.upsert({{1, 1}, {1, 1}}), kf::DuplicateSourceKey);
}

TEST_CASE("the same unconditional erase may act on a row twice and counts once") {
  Pairs table = pairs({{1, 1}, {2, 2}});
  const auto result = table.merge({{1, 0}, {1, 5}, {1, 0}}).when_matched().erase().execute();
  CHECK(counts_of(result) == Counts{0, 1, 0});
  CHECK(result.metrics().source_rows == 3);
  CHECK(rows_of(table) == Rows{{2, 2}});
}

TEST_CASE("two source rows with one new key are ambiguous") {
  Pairs table = pairs({{1, 1}});
  const Unharmed unharmed(table);
  const auto error =
      error_of<kf::DuplicateSourceKey>([&] { table.upsert({{1, 9}, {7, 1}, {8, 1}, {7, 2}}); });
  CHECK(error.key == "7");
  CHECK(error.first_position == 1);
  CHECK(error.second_position == 3);
}

TEST_CASE("two source rows with one new key, one of them not inserted, are not ambiguous") {
  Pairs table = pairs({});
  const auto result =
      table.merge({{7, 1}, {7, 2}}).when_not_matched(kf::source<&Pair::value> == 2).insert_all().execute();
  CHECK(counts_of(result) == Counts{0, 0, 1});
  CHECK(result.metrics().skipped == 1);
  CHECK(rows_of(table) == Rows{{7, 2}});
}

namespace {

Pairs two() { return pairs({{1, 10}, {2, 20}}); }
const Rows doubled{{1, 100}, {1, 200}};

}  // namespace

// duckdb/duckdb, version 1.5.6: an ambiguous update passed, and count and row depended on RETURNING.
TEST_CASE("an ambiguous update is refused, whether or not anyone looks at the result") {
  Pairs table = two();
  const Unharmed unharmed(table);
  CHECK_THROWS_AS(table.merge(doubled).when_matched().update_all().execute(), kf::DuplicateSourceKey);
  CHECK_THROWS_AS(table.merge(doubled).when_matched().update_all().execute().changes(),
                  kf::DuplicateSourceKey);
  CHECK_THROWS_AS(static_cast<void>(table.merge(doubled).when_matched().update_all().preview()),
                  kf::DuplicateSourceKey);
}

TEST_CASE("with a policy the last row counts, whether or not anyone looks at the result") {
  for (const bool look : {false, true}) {
    Pairs table = two();
    auto merge = table.merge(doubled).duplicates(kf::keep_last).when_matched().update_all();
    if (look) CHECK(merge.preview().size() == 1);
    const auto result = merge.execute();
    CHECK(rows_of(table) == Rows{{1, 200}, {2, 20}});
    CHECK(counts_of(result) == Counts{1, 0, 0});
    CHECK(result.metrics().dropped_duplicates == 1);
    CHECK(result.metrics().source_rows == 2);
    REQUIRE(result.changes().size() == 1);
    CHECK(result.changes()[0] == kf::Change<Pair>::update({1, 10}, {1, 200}));
  }
}

TEST_CASE("each policy chooses its row") {
  const Rows source{{1, 150}, {3, 5}, {1, 200}, {1, 100}};
  const auto value_with = [&](auto policy) {
    Pairs table = two();
    const auto result = table.merge(source)
                            .duplicates(policy)
                            .when_matched()
                            .update_all()
                            .when_not_matched()
                            .insert_all()
                            .execute();
    CHECK(counts_of(result) == Counts{1, 0, 1});
    CHECK(result.metrics().dropped_duplicates == 2);
    CHECK(table.size() == 3);
    return table.at(1).value;
  };
  CHECK(value_with(kf::keep_first) == 150);
  CHECK(value_with(kf::keep_last) == 100);
  CHECK(value_with(kf::latest_by<&Pair::value>) == 200);
  CHECK(value_with(kf::fold([](Pair sum, const Pair& next) {
          sum.value += next.value;
          return sum;
        })) == 450);
}

TEST_CASE("a policy that rejects refuses duplicates that nothing would act on") {
  Pairs table = two();
  const Unharmed unharmed(table);
  auto merge = table.merge({{1, 1}, {9, 9}, {9, 8}})
                   .duplicates(kf::reject)
                   .when_matched(kf::source<&Pair::value> > 1000)
                   .update_all();
  const auto error = error_of<kf::DuplicateSourceKey>([&] { merge.execute(); });
  CHECK(error.key == "9");
  CHECK(error.first_position == 1);
  CHECK(error.second_position == 2);
}

// PostgreSQL commit 29ef1dd: after a retry the second match was passed over in silence.
TEST_CASE("an ambiguous merge fails in the same way when it is tried again") {
  Pairs table = two();
  int attempts = 0;
  const auto attempt = [&] {
    table.merge({{1, 7}, {1, 8}})
        .when_matched()
        .update([&](const Pair& row, const Pair& change) {
          if (++attempts == 1) throw std::string("conflict");
          return Pair{row.key, change.value};
        })
        .execute();
  };
  const Unharmed unharmed(table);
  CHECK_THROWS_AS(attempt(), std::string);
  for (int i = 0; i < 3; ++i) {
    const auto error = error_of<kf::DuplicateSourceKey>(attempt);
    CHECK(error.key == "1");
    CHECK(error.first_position == 0);
    CHECK(error.second_position == 1);
  }
}

TEST_CASE("an ambiguous merge fails in the same way after its row was changed by another") {
  Pairs table = two();
  CHECK_THROWS_AS(table.upsert({{1, 7}, {1, 8}}), kf::DuplicateSourceKey);
  table.upsert({1, 5});
  const Unharmed unharmed(table);
  CHECK_THROWS_AS(table.upsert({{1, 7}, {1, 8}}), kf::DuplicateSourceKey);
  CHECK_THROWS_AS(table.upsert({{1, 5}, {1, 8}}), kf::DuplicateSourceKey);
}

TEST_CASE("a failed merge marks no row for the next one") {
  Pairs table = two();
  CHECK_THROWS_AS(table.upsert({{1, 7}, {2, 7}, {1, 8}}), kf::DuplicateSourceKey);
  const auto result = table.upsert({{1, 7}, {2, 7}});
  CHECK(counts_of(result) == Counts{2, 0, 0});
  const auto sync =
      table.merge({{1, 7}}).when_matched().update_all().when_not_matched_by_source().erase().execute();
  CHECK(counts_of(sync) == Counts{0, 1, 0});
}

// trinodb/trino#30639: row numbers of source and target were one number space, and clashed.
TEST_CASE("positions in the source have nothing to do with places in the table") {
  Pairs table = pairs({{0, 0}, {1, 1}, {2, 2}});
  const auto result = table.upsert({{2, 12}, {0, 10}, {1, 11}});
  CHECK(counts_of(result) == Counts{3, 0, 0});
  CHECK(rows_of(table) == Rows{{0, 10}, {1, 11}, {2, 12}});
}

TEST_CASE("every order of the source updates every row") {
  Rows source{{0, 10}, {1, 11}, {2, 12}, {3, 13}};
  do {
    Pairs table = pairs({{0, 0}, {1, 1}, {2, 2}, {3, 3}});
    REQUIRE(counts_of(table.upsert(source)) == Counts{4, 0, 0});
    REQUIRE(rows_of(table) == Rows{{0, 10}, {1, 11}, {2, 12}, {3, 13}});
  } while (std::next_permutation(source.begin(), source.end(),
                                 [](const Pair& a, const Pair& b) { return a.key < b.key; }));
}

TEST_CASE("inserts among updates do not shift what is matched") {
  Pairs table = pairs({{0, 0}, {1, 1}, {2, 2}});
  const auto result = table.upsert({{5, 15}, {2, 12}, {4, 14}, {0, 10}, {3, 13}, {1, 11}});
  CHECK(counts_of(result) == Counts{3, 0, 3});
  CHECK(rows_of(table) == Rows{{0, 10}, {1, 11}, {2, 12}, {5, 15}, {4, 14}, {3, 13}});
}

namespace {

Rows numbered(int count, int add) {
  Rows rows(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) rows[static_cast<std::size_t>(i)] = {i, i + add};
  return rows;
}

}  // namespace

// delta-io/delta-rs#4572: large sources without a duplicate were called ambiguous.
TEST_CASE("a hundred thousand different keys are not ambiguous") {
  constexpr int count = 100'000;
  Pairs table = pairs(numbered(count, 0));
  Rows source = numbered(count, 1);
  const bool shuffled = GENERATE(false, true);
  if (shuffled) std::shuffle(source.begin(), source.end(), std::mt19937(7));
  const auto result = table.merge(source).when_matched().update_all().execute();
  CHECK(counts_of(result) == Counts{count, 0, 0});
  CHECK(table.size() == count);
  CHECK(std::all_of(table.begin(), table.end(), [](const Pair& row) { return row.value == row.key + 1; }));
}

TEST_CASE("one duplicate among a hundred thousand keys is found, however far apart") {
  constexpr int count = 100'000;
  Pairs table = pairs(numbered(count, 0));
  Rows source = numbered(count, 1);
  source.push_back({0, 5});
  const Unharmed unharmed(table);
  const auto error = error_of<kf::DuplicateSourceKey>([&] { table.upsert(source); });
  CHECK(error.key == "0");
  CHECK(error.first_position == 0);
  CHECK(error.second_position == count);
}

TEST_CASE("one new key given twice among a hundred thousand is found") {
  constexpr int count = 100'000;
  Pairs table;
  Rows source = numbered(count, 0);
  source.back().key = 12'345;
  const Unharmed unharmed(table);
  const auto error = error_of<kf::DuplicateSourceKey>([&] { table.append(source); });
  CHECK(error.key == "12345");
  CHECK(error.first_position == 12'345);
  CHECK(error.second_position == count - 1);
}
