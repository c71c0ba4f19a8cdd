// Files of every format version that was ever released load, and say what they said; so do stores. The
// expected values stand here, not in the functions that made the files.
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>

#include <fstream>

#include "support/catch.hpp"
#include "support/snapshot_bytes.hpp"
#include "support/snapshot_samples.hpp"
#include "support/store_samples.hpp"
#include "support/temporary_directory.hpp"

using namespace snapshot_samples;
using keyfold_test::saved;

namespace {

// The tests run in the project's folder.
std::filesystem::path golden(const std::string& name) { return std::filesystem::path("tests/golden") / name; }

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::int32_t> ids_of(const auto& rows) {
  std::vector<std::int32_t> out;
  for (const Wide& row : rows) out.push_back(row.id);
  return out;
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("format 1: a table with a column of every sort, expired versions, tags and a number") {
  const WideTable table = kf::load<WideTable>(golden("wide_v1.kfs"));
  CHECK(ids_of(table) == Ids{4, 3, 7, 6, 2});
  CHECK(ids_of(table.as_of(5)) == Ids{1, 4, 3, 7, 6, 2});
  CHECK(ids_of(table.as_of(4)) == Ids{1, 4, 3, 7, 6});
  CHECK(ids_of(table.as_of(3)) == Ids{1, 3, 4, 5, 6});
  CHECK_THROWS_AS(table.as_of(2), kf::VersionExpired);
  CHECK(ids_of(table.as_of("first")) == Ids{1, 2, 3, 4, 5});
  CHECK(table.tags() == std::map<std::string, kf::Version, std::less<>>{{"first", 1}, {"latest", 6}});
  CHECK(table.last_applied("loader") == 41);
  CHECK(table.version() == 6);
  REQUIRE(table.history().size() == 5);
  CHECK(table.history()[0].version() == 1);
  CHECK(table.history()[1].timestamp() ==
        kf::Timestamp(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) + std::chrono::seconds(2));
  CHECK(table.history()[2].operation() == "MERGE");
  CHECK(table.history()[2].metrics().not_matched_by_source_updated == 3);
  CHECK(table.history()[4].operation() == "DELETE");

  const Wide& row = table.at(7);
  CHECK(row.flag);
  CHECK(row.state == State::closed);
  CHECK(row.amount == 2.5);
  CHECK(row.text == "xxxxx");
  CHECK(row.code == std::int16_t{105});
  CHECK(row.at == kf::Timestamp(std::chrono::microseconds(5)));
  CHECK(row.address == Address{"street 5", -5});
  CHECK(row.notes == std::vector<std::string>{"note", "note"});
  CHECK(row.counts == std::map<std::string, std::int32_t>{{"count0", 0}});
  CHECK(std::get<std::string>(row.any) == "any");
  CHECK(row.color == std::array<std::uint8_t, 3>{1, 2, 5});
  CHECK(table.by<&Wide::code>().find(105)->id == 7);
  CHECK_FALSE(table.at(4).code.has_value());
}

TEST_CASE("format 1: rows that write themselves, in key order") {
  const PersonTable table = kf::load<PersonTable>(golden("person_v1.kfs"));
  REQUIRE(table.size() == 2);
  CHECK(*table.begin() == Person("ann", {}));
  CHECK(table.at("bob").marks() == std::vector<std::int32_t>{3});
  CHECK(table.as_of(1).at("bob").marks() == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("format 1: rows of numbers with a key of two parts") {
  const TickTable table = kf::load<TickTable>(golden("tick_v1.kfs"));
  REQUIRE(table.size() == 2);
  CHECK(table.at(20, 1).price == 2.5F);
  CHECK(std::signbit(table.at(10, 2).price));
  CHECK(table.as_of(1).at(10, 1) == Tick{1, 10, 1.5F});
}

namespace {

using Parcels = std::vector<Parcel>;

Parcels parcels_of(const auto& rows) { return {rows.begin(), rows.end()}; }

}  // namespace

TEST_CASE("format 1: sequences of current rows") {
  ParcelTable table = kf::load<ParcelTable>(golden("parcel_v1.kfs"));
  CHECK(parcels_of(table) == Parcels{{1, "Oslo", 150}, {4, "Kiel", {}}});
  // Before the truncate; deleted keys; a weight that is older than that of the row, a place that is newer.
  const auto result = feed_parcels(table, {{9, 'U', "late", 1, 9},
                                           {2, 'U', "late", 1, 21},
                                           {3, 'U', "late", 1, 19},
                                           {1, 'U', "Bergen", 1, 15},
                                           {4, 'U', "late", 400, 29}});
  CHECK(result.metrics().dropped_late == 3);
  CHECK(parcels_of(table) == Parcels{{1, "Bergen", 150}, {4, "Kiel", 400}});
}

TEST_CASE("format 1: the order in which tombstones came") {
  ParcelTable table = kf::load<ParcelTable>(golden("parcel_v1.kfs"));
  table.apply_changes(std::vector<ParcelEvent>{})
      .sequence_by<&ParcelEvent::lsn>()
      .ignore_null_updates()
      .tombstones(kf::keep_last(1))
      .execute();  // that of 3 goes
  const auto result = feed_parcels(table, {{2, 'U', "late", 1, 19}, {3, 'U', "again", 1, 19}});
  CHECK(result.metrics().dropped_late == 1);
  CHECK(table.at(3).place == "again");
}

TEST_CASE("format 1: events of history rows") {
  FareTable table = kf::load<FareTable>(golden("fare_v1.kfs"));
  CHECK(std::vector<Fare>(table.begin(), table.end()) ==
        std::vector<Fare>{{1, 10, 20, "A", 250}, {1, 20, 30, "B", 250}});
  // The event at 20 brought no cents, so that it takes those of a late one; line 2 had ended before it began.
  feed_fares(table, {{1, 'U', 15, {}, 300}, {2, 'U', 3, "C", 100}});
  CHECK(std::vector<Fare>(table.begin(), table.end()) ==
        std::vector<Fare>{
            {1, 10, 15, "A", 250}, {1, 15, 20, "A", 300}, {1, 20, 30, "B", 300}, {2, 3, 5, "C", 100}});
}

TEST_CASE("store format 1: rows, history, tags, numbers and sequences, closed or not") {
  for (const std::string name : {"store_v1", "killed_store_v1"}) {
    INFO(name);
    const keyfold_test::TemporaryDirectory directory;
    std::filesystem::copy(golden(name), directory.path / name);
    {
      auto store = kf::Store<ParcelTable>::open(directory.path / name);
      CHECK(store.recovered().clean == (name == "store_v1"));
      CHECK(store.recovered().replayed == 6);
      CHECK(store.recovered().torn_bytes == 0);
      const ParcelTable& table = store.table();
      CHECK(parcels_of(table) == Parcels{{1, "Oslo", 150}, {6, "Cork", {}}});
      CHECK(table.version() == 4);
      CHECK(parcels_of(table.as_of("third")) == Parcels{{1, "Oslo", 100}, {2, "Rome", 200}});
      CHECK(parcels_of(table.as_of(2)) == Parcels{{1, "Oslo", 100}, {2, "Rome", 200}, {5, "Bonn", 50}});
      CHECK(table.tags() == std::map<std::string, kf::Version, std::less<>>{{"second", 4}, {"third", 3}});
      CHECK(table.last_applied("loader") == 41);
      REQUIRE(table.history().size() == 4);
      CHECK(table.history()[0].operation() == "APPLY CHANGES");
      CHECK(table.history()[1].operation() == "INSERT");
      CHECK(table.history()[2].metadata() == "by hand");
      CHECK(table.history()[3].operation() == "TRANSACTION");
      CHECK(table.history()[0].timestamp() < table.history()[1].timestamp());
      const auto result = feed_parcels(store, {{9, 'U', "late", 1, 9},
                                               {7, 'U', "late", 1, 39},
                                               {2, 'U', "late", 1, 21},
                                               {1, 'U', "Bergen", 1, 20}});
      CHECK(result.metrics().dropped_late == 3);
      CHECK(parcels_of(table) == Parcels{{1, "Bergen", 150}, {6, "Cork", {}}});
    }
    CHECK(kf::Store<ParcelTable>::open(directory.path / name).table().at(1).place == "Bergen");
  }
}

TEST_CASE("the format that is written has not changed") {
  CHECK(saved(wide_table()) == content_of(golden("wide_v1.kfs")));
  CHECK(saved(person_table()) == content_of(golden("person_v1.kfs")));
  CHECK(saved(tick_table()) == content_of(golden("tick_v1.kfs")));
  CHECK(saved(stock_table()) == content_of(golden("stock_v1.kfs")));
  CHECK(saved(parcel_table()) == content_of(golden("parcel_v1.kfs")));
  CHECK(saved(fare_table()) == content_of(golden("fare_v1.kfs")));
  for (const bool closed : {true, false}) {
    for (const auto& [name, bytes] : store_samples::parcel_store(closed)) {
      INFO(name);
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      CHECK(text == content_of(golden(closed ? "store_v1" : "killed_store_v1") / name));
    }
  }
}
