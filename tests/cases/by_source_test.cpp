// Target rows that no source row matches: from public bug reports, with their neighbours.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <string>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::rows_of;

namespace {

struct Key {
  int id = 0;
  bool operator==(const Key&) const = default;
};
using Keys = kf::Table<Key, kf::Key<&Key::id>>;

Keys keys(std::initializer_list<Key> rows) {
  Keys table;
  table.append(rows);
  return table;
}

}  // namespace

// delta-incubator/delta-dotnet#113: WHEN MATCHED DELETE ran as WHEN NOT MATCHED BY SOURCE DELETE.
TEST_CASE("a matched delete deletes the matched row") {
  Keys table = keys({{1}, {2}, {3}});
  const auto result = table.merge({{2}}).when_matched().erase().execute();
  CHECK(rows_of(table) == std::vector<Key>{{1}, {3}});
  CHECK(result.metrics().matched_deleted == 1);
  CHECK(result.metrics().not_matched_by_source_deleted == 0);
  CHECK(table.history().back().parameters().find("WHEN MATCHED THEN DELETE") != std::string_view::npos);
}

TEST_CASE("a delete of what the source does not have deletes the others") {
  Keys table = keys({{1}, {2}, {3}});
  const auto result = table.merge({{2}}).when_not_matched_by_source().erase().execute();
  CHECK(rows_of(table) == std::vector<Key>{{2}});
  CHECK(result.metrics().matched_deleted == 0);
  CHECK(result.metrics().not_matched_by_source_deleted == 2);
  CHECK(result.metrics().skipped == 1);  // source row 2: nothing to do
}

TEST_CASE("both deletes together empty the table and are counted apart") {
  Keys table = keys({{1}, {2}, {3}});
  const auto result =
      table.merge({{2}, {9}}).when_matched().erase().when_not_matched_by_source().erase().execute();
  CHECK(table.empty());
  CHECK(result.metrics().deleted == 3);
  CHECK(result.metrics().matched_deleted == 1);
  CHECK(result.metrics().not_matched_by_source_deleted == 2);
  CHECK(result.metrics().skipped == 1);  // source row 9
}

TEST_CASE("an empty source matches nothing") {
  Keys table = keys({{1}, {2}});
  CHECK(counts_of(table.merge(std::vector<Key>()).when_matched().erase().execute()) == Counts{});
  CHECK(table.size() == 2);
  CHECK(counts_of(table.merge(std::vector<Key>()).when_not_matched_by_source().erase().execute()) ==
        Counts{0, 2, 0});
}

TEST_CASE("the table as its own source matches everything") {
  Keys table = keys({{1}, {2}});
  CHECK(counts_of(table.merge(table).when_not_matched_by_source().erase().execute()) == Counts{});
  CHECK(counts_of(table.merge(table).when_matched().erase().execute()) == Counts{0, 2, 0});
}

TEST_CASE("a row inserted by the same merge is not one that the source lacks") {
  Keys table = keys({{1}});
  const auto result =
      table.merge({{2}}).when_not_matched().insert_all().when_not_matched_by_source().erase().execute();
  CHECK(counts_of(result) == Counts{0, 1, 1});
  CHECK(rows_of(table) == std::vector<Key>{{2}});
}

// delta-io/delta-rs#2579: a full replacement recorded no deletes.
TEST_CASE("a sync with other rows records its deletes and inserts") {
  Keys table = keys({{1}, {2}, {3}});
  const auto result =
      table.merge({{8}, {9}}).when_not_matched().insert_all().when_not_matched_by_source().erase().execute();
  CHECK(table.size() == 2);
  std::vector<kf::Change<Key>> changes;
  for (const auto& change : result.changes()) changes.push_back(change);
  CHECK(changes == std::vector<kf::Change<Key>>{kf::Change<Key>::insert({8}), kf::Change<Key>::insert({9}),
                                                kf::Change<Key>::erase({1}), kf::Change<Key>::erase({2}),
                                                kf::Change<Key>::erase({3})});
}

TEST_CASE("clear records each row that it deletes") {
  Keys table = keys({{1}, {2}, {3}});
  const auto changes = table.clear().changes();
  REQUIRE(changes.size() == 3);
  for (const auto& change : changes) CHECK(change.kind() == kf::ChangeKind::erase);
  CHECK(*changes[2].before() == Key{3});
}

namespace {

struct Product {
  int id = 0;
  std::string name;
  std::string plan;
  int cur = 1;
  bool operator==(const Product&) const = default;
};
BOOST_DESCRIBE_STRUCT(Product, (), (id, name, plan, cur))

using Products = kf::Table<Product, kf::Key<&Product::id>>;

Products products() {
  Products table;
  table.append({{1, "a", "P1", 1}, {2, "b", "P2", 1}, {3, "c", "P3", 1}});
  return table;
}

auto retire(Products& table, std::vector<Key> kept) {
  return table.merge(std::move(kept))
      .on<&Key::id>()
      .when_not_matched_by_source(kf::target<&Product::cur> == 1)
      .update(kf::target<&Product::cur> = 0)
      .execute();
}

}  // namespace

// duckdb/duckdb#24666 and #24212: the rows returned by a BY SOURCE update held zeroes.
TEST_CASE("an update of what the source does not have returns whole rows") {
  Products table = products();
  const auto result = retire(table, {{1}});
  CHECK(counts_of(result) == Counts{2, 0, 0});
  CHECK(result.metrics().not_matched_by_source_updated == 2);
  const auto changes = result.changes();
  REQUIRE(changes.size() == 2);
  CHECK(*changes[0].before() == Product{2, "b", "P2", 1});
  CHECK(*changes[0].after() == Product{2, "b", "P2", 0});
  CHECK(*changes[1].before() == Product{3, "c", "P3", 1});
  CHECK(*changes[1].after() == Product{3, "c", "P3", 0});
  CHECK(changes[0].columns().names() == std::vector<std::string_view>{"cur"});
}

TEST_CASE("rows that fail the condition of a BY SOURCE update are not returned") {
  Products table = products();
  retire(table, {{1}, {2}});
  const auto result = retire(table, {});
  CHECK(counts_of(result) == Counts{2, 0, 0});
  REQUIRE(result.changes().size() == 2);
  CHECK(result.changes()[0].after()->id == 1);
  CHECK(result.changes()[1].after()->id == 2);
  CHECK_FALSE(retire(table, {}).committed());
}

TEST_CASE("a BY SOURCE update that changes nothing is neither counted nor returned") {
  Products table = products();
  const auto result = table.merge(std::vector<Key>{{1}})
                          .on<&Key::id>()
                          .when_not_matched_by_source()
                          .update(kf::target<&Product::cur> = 1)
                          .execute();
  CHECK(counts_of(result) == Counts{});
  CHECK(result.metrics().unchanged == 0);  // it counts source rows
  CHECK(result.changes().empty());
}

TEST_CASE("updates, deletes and inserts of one merge are all returned, by source row, then in table order") {
  Products table = products();
  const auto result = table.merge({{4, "d", "P4", 1}, {2, "b2", "P2", 1}})
                          .when_matched()
                          .update_all()
                          .when_not_matched()
                          .insert_all()
                          .when_not_matched_by_source(kf::target<&Product::id> == 1)
                          .update(kf::target<&Product::cur> = 0)
                          .when_not_matched_by_source()
                          .erase()
                          .execute();
  CHECK(counts_of(result) == Counts{2, 1, 1});
  const auto changes = result.changes();
  REQUIRE(changes.size() == 4);
  CHECK(changes[0] == kf::Change<Product>::insert({4, "d", "P4", 1}));
  CHECK(changes[1] == kf::Change<Product>::update({2, "b", "P2", 1}, {2, "b2", "P2", 1}));
  CHECK(changes[2] == kf::Change<Product>::update({1, "a", "P1", 1}, {1, "a", "P1", 0}));
  CHECK(changes[3] == kf::Change<Product>::erase({3, "c", "P3", 1}));
}

TEST_CASE("rows matched under on_condition only count as matched by source") {
  Products table = products();
  table.upsert({2, "b", "P2", 0});
  const auto result = table.merge(std::vector<Key>{{1}, {2}, {3}})
                          .on<&Key::id>()
                          .on_condition(kf::target<&Product::cur> == 1)
                          .when_not_matched_by_source()
                          .erase()
                          .execute();
  CHECK(counts_of(result) == Counts{0, 1, 0});
  CHECK_FALSE(table.contains(2));
}
