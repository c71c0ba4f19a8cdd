// Fifteen releases of mime-db, each a full copy, synced one after the other into tables of three kinds.
#include <keyfold/csv.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "support/rows.hpp"

namespace kf = keyfold;

namespace {

struct MediaType {
  std::string mime_type;
  std::optional<std::string> source;
  std::optional<std::string> charset;
  std::optional<bool> compressible;
  std::optional<std::string> extensions;
  bool operator==(const MediaType&) const = default;
};
BOOST_DESCRIBE_STRUCT(MediaType, (), (mime_type, source, charset, compressible, extensions))

struct Step {
  std::string release;
  std::size_t rows = 0;
  std::size_t inserted = 0;
  std::size_t updated = 0;
  std::size_t deleted = 0;
  std::size_t unchanged = 0;
};
BOOST_DESCRIBE_STRUCT(Step, (), (release, rows, inserted, updated, deleted, unchanged))

using Hashed = kf::Table<MediaType, kf::Key<&MediaType::mime_type>>;
using Ordered = kf::Table<MediaType, kf::OrderedKey<&MediaType::mime_type>>;
using Indexed = kf::Table<MediaType, kf::Key<&MediaType::mime_type>, kf::HashedBy<&MediaType::source>,
                          kf::OrderedBy<&MediaType::compressible, &MediaType::mime_type>>;

using Rows = std::vector<MediaType>;

const std::string data = "examples/data/mime-db/";

std::vector<Step> steps() { return kf::read_csv<Step>(data + "steps.csv"); }
const Rows& release(const std::string& name) {
  static std::map<std::string, Rows> read;
  const auto found = read.find(name);
  return found != read.end()
             ? found->second
             : read.emplace(name, kf::read_csv<MediaType>(data + name + ".csv")).first->second;
}

template <class Table>
auto sync(Table& table, const std::string& name) {
  return table.merge(kf::csv_rows<MediaType>(data + name + ".csv"))
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source()
      .erase()
      .metadata(name)
      .execute();
}

Rows by_key(Rows rows) {
  std::sort(rows.begin(), rows.end(),
            [](const MediaType& a, const MediaType& b) { return a.mime_type < b.mime_type; });
  return rows;
}

void check_counts(const kf::Metrics& metrics, const Step& step) {
  CHECK(metrics.source_rows == step.rows);
  CHECK(metrics.inserted == step.inserted);
  CHECK(metrics.updated == step.updated);
  CHECK(metrics.matched_updated == step.updated);
  CHECK(metrics.deleted == step.deleted);
  CHECK(metrics.not_matched_by_source_deleted == step.deleted);
  CHECK(metrics.unchanged == step.unchanged);
  CHECK(metrics.skipped == 0);
}

template <class Table>
Table all_releases() {
  Table table;
  for (const Step& step : steps()) sync(table, step.release);
  return table;
}

std::size_t count(const Rows& rows, const std::optional<std::string>& source) {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const MediaType& row) { return row.source == source; }));
}

template <class Range>
std::size_t length(const Range& range) {
  return static_cast<std::size_t>(std::distance(range.begin(), range.end()));
}

}  // namespace

TEMPLATE_TEST_CASE("each release gives the counts that were worked out from the original data", "[mime]",
                   Hashed, Ordered, Indexed) {
  TestType table;
  REQUIRE(steps().size() == 15);
  for (const Step& step : steps()) {
    INFO("release " << step.release);
    const auto result = sync(table, step.release);
    check_counts(result.metrics(), step);
    CHECK(table.size() == step.rows);
    CHECK(result.committed());
    CHECK(table.history().back().metadata() == step.release);
  }
  CHECK(table.version() == 15);
}

TEMPLATE_TEST_CASE("after the last release the table is the last file", "[mime]", Hashed, Ordered, Indexed) {
  const auto table = all_releases<TestType>();
  const Rows file = by_key(release("1.54.0"));
  REQUIRE(file.size() == 2522);
  CHECK(by_key(keyfold_test::rows_of(table)) == file);
  for (const MediaType& row : file) REQUIRE(table.at(row.mime_type) == row);
}

TEST_CASE("an ordered table has each release in key order", "[mime]") {
  Ordered table;
  for (const Step& step : steps()) {
    sync(table, step.release);
    CHECK(keyfold_test::rows_of(table) == by_key(release(step.release)));
  }
}

TEMPLATE_TEST_CASE("a release that is merged again changes nothing and makes no version", "[mime]", Hashed,
                   Ordered, Indexed) {
  TestType table;
  for (const Step& step : steps()) {
    INFO("release " << step.release);
    const Rows& rows = release(step.release);
    const auto merge = [&] {
      return table.merge(rows)
          .when_matched()
          .update_all()
          .when_not_matched()
          .insert_all()
          .when_not_matched_by_source()
          .erase();
    };
    merge().execute();
    const kf::Version version = table.version();
    CHECK(merge().preview().empty());
    const auto again = merge().execute();
    check_counts(again.metrics(), {step.release, step.rows, 0, 0, 0, step.rows});
    CHECK_FALSE(again.committed());
    CHECK(again.changes().empty());
    CHECK(table.version() == version);
    CHECK(table.history().size() == version);
  }
}

TEMPLATE_TEST_CASE("the changes of the history, replayed on a map, rebuild every release", "[mime]", Hashed,
                   Ordered, Indexed) {
  const auto table = all_releases<TestType>();
  REQUIRE(table.history().size() == 15);
  std::map<std::string, MediaType> replayed;
  for (const auto& commit : table.history()) {
    INFO("release " << commit.metadata());
    for (const auto& change : commit.changes()) {
      if (const MediaType* before = change.before()) {
        const auto found = replayed.find(before->mime_type);
        REQUIRE(found != replayed.end());
        REQUIRE(found->second == *before);
        replayed.erase(found);
      }
      if (const MediaType* after = change.after()) REQUIRE(replayed.emplace(after->mime_type, *after).second);
    }
    Rows rows;
    for (const auto& [key, row] : replayed) rows.push_back(row);
    CHECK(rows == by_key(release(std::string(commit.metadata()))));
  }
}

TEST_CASE("the preview of each release is what then happens", "[mime]") {
  Hashed table;
  for (const Step& step : steps()) {
    INFO("release " << step.release);
    const Rows& rows = release(step.release);
    auto merge = table.merge(rows)
                     .when_matched()
                     .update_all()
                     .when_not_matched()
                     .insert_all()
                     .when_not_matched_by_source()
                     .erase();
    const auto preview = merge.preview();
    CHECK(preview.size() == step.inserted + step.updated + step.deleted);
    CHECK(merge.execute().changes() == preview);
  }
}

TEST_CASE("the secondary indexes agree with a scan of each release", "[mime]") {
  Indexed table;
  for (const Step& step : steps()) {
    INFO("release " << step.release);
    sync(table, step.release);
    const Rows& file = release(step.release);
    const auto by_source = table.by<&MediaType::source>();
    std::size_t found = 0;
    for (const std::optional<std::string>& source :
         {std::optional<std::string>(), {"iana"}, {"apache"}, {"nginx"}}) {
      CHECK(length(by_source.equal_range(source)) == count(file, source));
      found += length(by_source.equal_range(source));
    }
    CHECK(found == step.rows);

    Rows expected;  // absent, false, true; by key within each
    for (const std::optional<bool> compressible : {std::optional<bool>(), {false}, {true}}) {
      for (const MediaType& row : by_key(file)) {
        if (row.compressible == compressible) expected.push_back(row);
      }
    }
    const auto by_compressible = table.by<&MediaType::compressible, &MediaType::mime_type>();
    CHECK(keyfold_test::rows_of(by_compressible) == expected);
    CHECK(by_compressible.find(true, std::string_view("application/json")) == table.find("application/json"));
  }
}

TEST_CASE("releases merged backwards undo each other", "[mime]") {
  auto table = all_releases<Hashed>();
  const auto all = steps();
  for (std::size_t i = all.size() - 1; i > 0; --i) {
    INFO("back to release " << all[i - 1].release);
    const auto result = sync(table, all[i - 1].release);
    CHECK(result.metrics().inserted == all[i].deleted);
    CHECK(result.metrics().updated == all[i].updated);
    CHECK(result.metrics().deleted == all[i].inserted);
    CHECK(by_key(keyfold_test::rows_of(table)) == by_key(release(all[i - 1].release)));
  }
}
