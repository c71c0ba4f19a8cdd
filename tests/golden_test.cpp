// Files of every format version that was ever released load, and say what they said. The expected values
// stand here, not in the functions that made the files.
#include <keyfold/snapshot.hpp>

#include <fstream>

#include "support/catch.hpp"
#include "support/snapshot_bytes.hpp"
#include "support/snapshot_samples.hpp"

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

TEST_CASE("the format that is written has not changed") {
  CHECK(saved(wide_table()) == content_of(golden("wide_v1.kfs")));
  CHECK(saved(person_table()) == content_of(golden("person_v1.kfs")));
  CHECK(saved(tick_table()) == content_of(golden("tick_v1.kfs")));
  CHECK(saved(stock_table()) == content_of(golden("stock_v1.kfs")));
}
