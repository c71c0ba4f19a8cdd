// When a matched row is updated only under a condition: from public bug reports, with their neighbours.
#include <keyfold/keyfold.hpp>

#include <optional>
#include <string>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::rows_of;

namespace {

struct Document {
  int id = 0;
  std::string hash;
  bool operator==(const Document&) const = default;
};
using Documents = kf::Table<Document, kf::Key<&Document::id>>;

struct Person {
  int id = 0;
  std::optional<std::string> name;
  bool operator==(const Person&) const = default;
};
using People = kf::Table<Person, kf::Key<&Person::id>>;

struct Event {
  int id = 0;
  int ts = 0;
  bool operator==(const Event&) const = default;
};
using Events = kf::Table<Event, kf::Key<&Event::id>>;

template <class Row>
using Rows = std::vector<Row>;

Documents documents() {
  Documents table;
  table.append({{1, "h1"}, {2, "h2"}});
  return table;
}

auto merge_where_hash_differs(Documents& table, Rows<Document> changes) {
  return table.merge(std::move(changes))
      .when_matched(kf::source<&Document::hash> != kf::target<&Document::hash>)
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
}

}  // namespace

// delta-io/delta#461: changed rows were there in their old and their new form.
TEST_CASE("a hash-guarded update leaves one row of each key") {
  Documents table = documents();
  const auto result = merge_where_hash_differs(table, {{1, "h9"}, {3, "h3"}});
  CHECK(rows_of(table) == Rows<Document>{{1, "h9"}, {2, "h2"}, {3, "h3"}});
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(result.metrics().skipped == 0);
  REQUIRE(result.changes().size() == 2);
  CHECK(result.changes()[0] == kf::Change<Document>::update({1, "h1"}, {1, "h9"}));
  CHECK(result.changes()[1] == kf::Change<Document>::insert({3, "h3"}));
}

TEST_CASE("a hash-guarded merge run again changes nothing") {
  Documents table = documents();
  merge_where_hash_differs(table, {{1, "h9"}, {3, "h3"}});
  const kf::Version version = table.version();
  const auto again = merge_where_hash_differs(table, {{1, "h9"}, {3, "h3"}});
  CHECK(counts_of(again) == Counts{0, 0, 0});
  CHECK(again.metrics().skipped == 2);
  CHECK_FALSE(again.committed());
  CHECK(table.version() == version);
}

TEST_CASE("a hash-guarded update gives the same in every order of the source") {
  for (const Rows<Document>& changes : {Rows<Document>{{3, "h3"}, {1, "h9"}}, {{1, "h9"}, {3, "h3"}}}) {
    Documents table = documents();
    CHECK(counts_of(merge_where_hash_differs(table, changes)) == Counts{1, 0, 1});
    CHECK(rows_of(table) == Rows<Document>{{1, "h9"}, {2, "h2"}, {3, "h3"}});
  }
}

TEST_CASE("a hash-guarded update of a table that is ordered by key leaves one row of each key") {
  kf::Table<Document, kf::OrderedKey<&Document::id>, kf::HashedBy<&Document::hash>> table;
  table.append({{2, "h2"}, {1, "h1"}});
  const auto result = table.merge({{3, "h3"}, {1, "h9"}})
                          .when_matched(kf::source<&Document::hash> != kf::target<&Document::hash>)
                          .update_all()
                          .when_not_matched()
                          .insert_all()
                          .execute();
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(rows_of(table) == Rows<Document>{{1, "h9"}, {2, "h2"}, {3, "h3"}});
  CHECK_FALSE(table.by<&Document::hash>().contains("h1"));
  CHECK(table.by<&Document::hash>().contains("h9"));
}

namespace {

People people() {
  People table;
  table.append({{1, "N1"}, {2, "N2"}, {3, std::nullopt}});
  return table;
}
const Rows<Person> renamed{{1, "N1"}, {2, "N2_"}, {3, "N3"}, {4, "N4"}};

template <class Condition>
auto merge_people(People& table, const Rows<Person>& changes, Condition condition) {
  return table.merge(changes).when_matched(condition).update_all().when_not_matched().insert_all().execute();
}

}  // namespace

// delta-io/delta#409: a guard that compares values skips the rows in which one side is absent.
TEST_CASE("a null-safe guard sees a value that appears") {
  People table = people();
  const auto result =
      merge_people(table, renamed, !kf::same(kf::source<&Person::name>, kf::target<&Person::name>));
  CHECK(counts_of(result) == Counts{2, 0, 1});
  CHECK(result.metrics().skipped == 1);
  CHECK(rows_of(table) == renamed);
}

TEST_CASE("a guard with <> does not see a value that appears, as in SQL") {
  People table = people();
  const auto result = merge_people(table, renamed, kf::source<&Person::name> != kf::target<&Person::name>);
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(result.metrics().skipped == 2);
  CHECK(rows_of(table) == Rows<Person>{{1, "N1"}, {2, "N2_"}, {3, std::nullopt}, {4, "N4"}});
}

TEST_CASE("negating an equality does not make it null-safe") {
  People table = people();
  const auto result = merge_people(table, renamed, !(kf::source<&Person::name> == kf::target<&Person::name>));
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(table.at(3).name == std::nullopt);
}

TEST_CASE("a null-safe guard sees a value that disappears") {
  People table = people();
  const Rows<Person> emptied{{1, std::nullopt}, {3, std::nullopt}};
  SECTION("same") {
    const auto result =
        merge_people(table, emptied, !kf::same(kf::source<&Person::name>, kf::target<&Person::name>));
    CHECK(counts_of(result) == Counts{1, 0, 0});
    CHECK(result.metrics().skipped == 1);
    CHECK(table.at(1).name == std::nullopt);
  }
  SECTION("<>") {
    const auto result = merge_people(table, emptied, kf::source<&Person::name> != kf::target<&Person::name>);
    CHECK(counts_of(result) == Counts{0, 0, 0});
    CHECK(table.at(1).name == "N1");
  }
}

TEST_CASE("a guard spelled out with is_null sees what the null-safe one sees") {
  People table = people();
  const auto source = kf::source<&Person::name>;
  const auto target = kf::target<&Person::name>;
  const auto result =
      merge_people(table, renamed, source != target || kf::is_null(source) != kf::is_null(target));
  CHECK(counts_of(result) == Counts{2, 0, 1});
  CHECK(rows_of(table) == renamed);
}

TEST_CASE("a guard over coalesced values takes an absent value for its default") {
  People table = people();
  const auto guard =
      kf::coalesce(kf::source<&Person::name>, "") != kf::coalesce(kf::target<&Person::name>, "");
  CHECK(counts_of(merge_people(table, {{3, ""}}, guard)) == Counts{0, 0, 0});
  CHECK(counts_of(merge_people(table, {{3, "N3"}}, guard)) == Counts{1, 0, 0});
}

TEST_CASE("without a guard an upsert counts only the rows that differ, absent values or not") {
  People table = people();
  const auto result = table.upsert(renamed);
  CHECK(counts_of(result) == Counts{2, 0, 1});
  CHECK(result.metrics().unchanged == 1);
  CHECK(rows_of(table) == renamed);
}

namespace {

auto merge_newer(Events& table, const Rows<Event>& changes) {
  return table.merge(changes)
      .when_matched(kf::source<&Event::ts> > kf::target<&Event::ts>)
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
}

}  // namespace

// apache/iceberg#7005: an update and an insert as two statements doubled a late row.
TEST_CASE("a late row is neither updated nor inserted") {
  Events table;
  table.insert({1, 5});
  const auto result = merge_newer(table, {{1, 3}});
  CHECK(rows_of(table) == Rows<Event>{{1, 5}});
  CHECK(counts_of(result) == Counts{0, 0, 0});
  CHECK(result.metrics().skipped == 1);
  CHECK_FALSE(result.committed());
}

TEST_CASE("a row of the same time is late, too") {
  Events table;
  table.insert({1, 5});
  CHECK(merge_newer(table, {{1, 5}}).metrics().skipped == 1);
  CHECK(rows_of(table) == Rows<Event>{{1, 5}});
}

TEST_CASE("a newer row updates") {
  Events table;
  table.insert({1, 5});
  CHECK(counts_of(merge_newer(table, {{1, 6}})) == Counts{1, 0, 0});
  CHECK(rows_of(table) == Rows<Event>{{1, 6}});
}

TEST_CASE("a late row among new ones is left out alone") {
  Events table;
  table.append({{1, 5}, {2, 5}});
  const auto result = merge_newer(table, {{3, 1}, {1, 3}, {2, 9}});
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(result.metrics().skipped == 1);
  CHECK(rows_of(table) == Rows<Event>{{1, 5}, {2, 9}, {3, 1}});
}

TEST_CASE("a late row and a newer one of the same key act once") {
  Events table;
  table.insert({1, 5});
  const auto result = merge_newer(table, {{1, 3}, {1, 7}, {1, 4}});
  CHECK(counts_of(result) == Counts{1, 0, 0});
  CHECK(result.metrics().skipped == 2);
  CHECK(rows_of(table) == Rows<Event>{{1, 7}});
}

TEST_CASE("a row that fails on_condition is not matched, so that it does collide") {
  Events table;
  table.insert({1, 5});
  const keyfold_test::Unharmed unharmed(table);
  auto merge = table.merge({{1, 3}})
                   .on_condition(kf::source<&Event::ts> > kf::target<&Event::ts>)
                   .when_matched()
                   .update_all()
                   .when_not_matched()
                   .insert_all();
  const auto error = keyfold_test::error_of<kf::DuplicateKey>([&] { merge.execute(); });
  CHECK(error.key == "1");
}
