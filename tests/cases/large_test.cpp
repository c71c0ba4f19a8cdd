// Keys of many parts, rows of many columns, tables of many rows: from public bug reports, with their
// neighbours.
#include <keyfold/keyfold.hpp>

#include <boost/preprocessor/repetition/enum.hpp>
#include <boost/preprocessor/repetition/repeat.hpp>

#include <cstdint>
#include <string>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::rows_of;

namespace {

struct Sale {
  std::string region;
  int year = 0;
  int month = 0;
  std::int64_t product = 0;
  double amount = 0;
  bool operator==(const Sale&) const = default;
};

std::vector<Sale> sales(std::size_t count, double amount) {
  std::vector<Sale> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const int n = static_cast<int>(i);
    rows.push_back({"r" + std::to_string(n % 5), 2000 + n / 5 % 4, n / 20 % 12, n / 240, amount + n});
  }
  return rows;
}

using Sales = kf::Table<Sale, kf::Key<&Sale::region, &Sale::year, &Sale::month, &Sale::product>>;
using SalesInOrder =
    kf::Table<Sale, kf::OrderedKey<&Sale::region, &Sale::year, &Sale::month, &Sale::product>>;

}  // namespace

// apache/iceberg-python#1759 and #2058: five hundred rows with a key of four columns overflowed the stack.
TEMPLATE_TEST_CASE("five hundred rows with a key of four parts are updated", "", Sales, SalesInOrder) {
  TestType table;
  CHECK(counts_of(table.append(sales(500, 0))) == Counts{0, 0, 500});
  const auto result = table.upsert(sales(500, 0.5));
  CHECK(counts_of(result) == Counts{500, 0, 0});
  CHECK(table.size() == 500);
  CHECK(table.at("r1", 2000, 0, 0).amount == 1.5);
  CHECK(table.at("r4", 2003, 0, 2).amount == 499.5);  // 499 = 4 + 5 * (3 + 4 * (0 + 12 * 2))
}

TEST_CASE("rows whose keys of four parts differ in one part only are different rows") {
  Sales table;
  table.append(
      {{"a", 1, 1, 1, 0}, {"b", 1, 1, 1, 0}, {"a", 2, 1, 1, 0}, {"a", 1, 2, 1, 0}, {"a", 1, 1, 2, 0}});
  const auto result = table.upsert({{"a", 1, 2, 1, 7}, {"a", 2, 2, 1, 7}});
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(table.at("a", 1, 2, 1).amount == 7);
  CHECK(table.at("a", 2, 1, 1).amount == 0);
}

TEST_CASE("a hundred thousand rows with a key of four parts are updated") {
  Sales table;
  table.append(sales(100'000, 0));
  CHECK(table.size() == 100'000);
  CHECK(counts_of(table.upsert(sales(100'000, 1))) == Counts{100'000, 0, 0});
  CHECK(table.upsert(sales(100'000, 1)).metrics().unchanged == 100'000);
}

// Two hundred columns: an id and 199 more.
#define COLUMN_DECLARATION(z, n, text) std::int32_t column_##n = 0;
#define COLUMN_MEMBER(z, n, text) &Wide::column_##n

namespace {

struct Wide {
  std::int64_t id = 0;
  BOOST_PP_REPEAT(199, COLUMN_DECLARATION, ~)
};

}  // namespace

template <>
struct keyfold::columns_of<Wide> : keyfold::Columns<&Wide::id, BOOST_PP_ENUM(199, COLUMN_MEMBER, ~)> {};

namespace {

using WideTable = kf::Table<Wide, kf::Key<&Wide::id>>;

std::vector<Wide> wide_rows(std::int32_t last) {
  std::vector<Wide> rows(20'000);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].id = static_cast<std::int64_t>(i);
    rows[i].column_0 = static_cast<std::int32_t>(i);
    rows[i].column_198 = last;
  }
  return rows;
}

}  // namespace

// apache/iceberg-python#3860 and #2138: comparing cell by cell took minutes and all memory.
TEST_CASE("an upsert of twenty thousand equal rows of two hundred columns changes nothing") {
  STATIC_REQUIRE(kf::column_count<Wide> == 200);
  WideTable table;
  table.append(wide_rows(1));
  const auto result = table.upsert(wide_rows(1));
  CHECK(counts_of(result) == Counts{});
  CHECK(result.metrics().unchanged == 20'000);
  CHECK_FALSE(result.committed());
  CHECK(table.version() == 1);
}

TEST_CASE("a difference in the last of two hundred columns is found") {
  WideTable table;
  table.append(wide_rows(1));
  auto rows = wide_rows(1);
  rows[77].column_198 = 2;
  rows[19'999].column_198 = 3;
  const auto result = table.upsert(rows);
  CHECK(counts_of(result) == Counts{2, 0, 0});
  CHECK(result.metrics().unchanged == 19'998);
  const auto changes = result.changes();
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].after()->id == 77);
  CHECK(changes[1].columns().names() == std::vector<std::string_view>{"column_198"});
}
