#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/keyed.hpp"

namespace kf = keyfold;
using keyfold_test::contains;
using keyfold_test::Keyed;
using keyfold_test::table_of;
using keyfold_test::value_at;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("an empty optional is a key like any other") {
  auto table = table_of<std::optional<int>>({std::nullopt, 0, 5});
  CHECK(value_at(table, std::nullopt) == 1);
  CHECK(value_at(table, std::optional<int>()) == 1);
  CHECK(value_at(table, 0) == 2);
  CHECK(value_at(table, std::optional<int>(5)) == 3);
  CHECK(value_at(table, std::optional<long long>(5)) == 3);
  CHECK(value_at(table, 6) == 0);
  CHECK_THROWS_AS(table.insert({std::nullopt, 9}), kf::DuplicateKey);
  table.upsert({std::nullopt, 9});
  CHECK(value_at(table, std::nullopt) == 9);
  CHECK(table.size() == 3);
  table.erase(std::nullopt);
  CHECK_FALSE(table.contains(std::nullopt));
}

TEST_CASE("an empty optional is not an empty string") {
  const auto table = table_of<std::optional<std::string>>({std::nullopt, "", "x"});
  CHECK(value_at(table, std::nullopt) == 1);
  CHECK(value_at(table, "") == 2);
  CHECK(value_at(table, std::string_view("x")) == 3);
  CHECK(value_at(table, std::optional<std::string>("x")) == 3);
  CHECK(value_at(table, std::optional<std::string>()) == 1);
}

TEST_CASE("empty optionals in a composite key tell rows apart") {
  struct Slot {
    std::optional<int> row, column;
    int value = 0;
  };
  kf::Table<Slot, kf::Key<&Slot::row, &Slot::column>> slots;
  slots.append({{{}, {}, 1}, {{}, 1, 2}, {1, {}, 3}, {1, 1, 4}});
  CHECK(value_at(slots, std::nullopt, std::nullopt) == 1);
  CHECK(value_at(slots, std::nullopt, 1) == 2);
  CHECK(value_at(slots, 1, std::nullopt) == 3);
  CHECK(value_at(slots, 1, 1) == 4);
}

TEST_CASE("NaN is refused as a key part") {
  auto table = table_of<double>({1.5});
  SECTION("of an inserted row") {
    try {
      table.insert({nan_value, 2});
      FAIL("no exception");
    } catch (const kf::InvalidKey& error) {
      CHECK(error.column == "key");
      CHECK(error.position == 0);
      CHECK_THAT(error.what(), contains("'key' is NaN"));
    }
  }
  SECTION("of a source row, told by its position") {
    const std::vector<Keyed<double>> rows = {{1.5, 2}, {2.5, 3}, {nan_value, 4}};
    try {
      table.upsert(rows);
      FAIL("no exception");
    } catch (const kf::InvalidKey& error) {
      CHECK(error.position == 2);
    }
  }
  SECTION("of a row that no clause acts on") {
    const std::vector<Keyed<double>> rows = {{nan_value, 4}};
    CHECK_THROWS_AS(table.merge(rows).when_matched().erase().execute(), kf::InvalidKey);
  }
  SECTION("of an updated row") {
    const std::vector<Keyed<double>> rows = {{1.5, 2}};
    CHECK_THROWS_AS(
        table.merge(rows).when_matched().update(kf::target<&Keyed<double>::key> = nan_value).execute(),
        kf::InvalidKey);
  }
  SECTION("under a duplicate policy") {
    const std::vector<Keyed<double>> rows = {{2.5, 1}, {nan_value, 4}, {nan_value, 5}};
    try {
      table.merge(rows).duplicates(kf::keep_last).when_not_matched().insert_all().execute();
      FAIL("no exception");
    } catch (const kf::InvalidKey& error) {
      CHECK(error.position == 1);
    }
  }
  CHECK(table.size() == 1);
  CHECK(value_at(table, 1.5) == 1);
  CHECK(table.version() == 1);
}

TEST_CASE("NaN is named by its part of a composite key") {
  struct Point {
    int id = 0;
    std::optional<float> x;
    long double y = 0;
  };
  kf::Table<Point, kf::Key<&Point::id, &Point::x, &Point::y>> points;
  const auto refused_column = [&](const Point& point) {
    try {
      points.insert(point);
    } catch (const kf::InvalidKey& error) {
      return error.column;
    }
    return std::string("none");
  };
  CHECK(refused_column({1, std::numeric_limits<float>::quiet_NaN(), 0}) == "x");
  CHECK(refused_column({1, 0.0F, std::numeric_limits<long double>::quiet_NaN()}) == "y");
  CHECK(refused_column({1, std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<long double>::quiet_NaN()}) == "x");
  CHECK(refused_column({1, std::nullopt, 0}) == "none");
}

TEST_CASE("looking for NaN finds nothing") {
  auto table = table_of<double>({0.0, 1.0});
  CHECK(table.find(nan_value) == nullptr);
  CHECK_FALSE(table.contains(nan_value));
  CHECK_THROWS_AS(table.at(nan_value), kf::KeyNotFound);
  CHECK(table.erase(nan_value).metrics().skipped == 1);
}

TEST_CASE("negative zero is zero") {
  auto table = table_of<double>({0.0, 1.0});
  CHECK(value_at(table, -0.0) == 1);
  CHECK_THROWS_AS(table.insert({-0.0, 2}), kf::DuplicateKey);

  auto negative = table_of<float>({-0.0F});
  CHECK(value_at(negative, 0.0F) == 1);
  CHECK(value_at(negative, 0) == 1);

  auto optional = table_of<std::optional<double>>({-0.0, std::nullopt});
  CHECK(value_at(optional, 0.0) == 1);
  CHECK(value_at(optional, std::nullopt) == 2);
}

TEST_CASE("infinities and extremes are ordinary keys") {
  const auto table = table_of<double>(
      {infinity, -infinity, std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()});
  CHECK(value_at(table, infinity) == 1);
  CHECK(value_at(table, -infinity) == 2);
  CHECK(value_at(table, std::numeric_limits<double>::max()) == 3);
  CHECK(value_at(table, std::numeric_limits<double>::denorm_min()) == 4);
  CHECK(value_at(table, 0.0) == 0);
}

TEST_CASE("integers of every width and sign find a key by value") {
  const auto table = table_of<std::int64_t>({5, -1, std::numeric_limits<std::int64_t>::max(), 200});
  CHECK(value_at(table, std::int8_t{5}) == 1);
  CHECK(value_at(table, std::uint8_t{5}) == 1);
  CHECK(value_at(table, short{5}) == 1);
  CHECK(value_at(table, 5U) == 1);
  CHECK(value_at(table, std::uint64_t{5}) == 1);
  CHECK(value_at(table, std::int8_t{-1}) == 2);
  CHECK(value_at(table, -1) == 2);
  CHECK(value_at(table, std::uint64_t{std::numeric_limits<std::int64_t>::max()}) == 3);
  CHECK(value_at(table, std::uint8_t{200}) == 4);
}

TEST_CASE("an integer that the key type cannot hold finds nothing") {
  const auto signed_keys = table_of<std::int64_t>({-1});
  CHECK(value_at(signed_keys, std::numeric_limits<std::uint64_t>::max()) == 0);
  CHECK(value_at(signed_keys, 0xFFFFFFFFU) == 0);

  const auto unsigned_keys =
      table_of<std::uint64_t>({std::numeric_limits<std::uint64_t>::max(), 0xFFFFFFFFU});
  CHECK(value_at(unsigned_keys, -1) == 0);
  CHECK(value_at(unsigned_keys, std::int64_t{-1}) == 0);
  CHECK(value_at(unsigned_keys, 0xFFFFFFFFU) == 2);

  const auto bytes = table_of<std::uint8_t>({200, 255});
  CHECK(value_at(bytes, 200) == 1);
  CHECK(value_at(bytes, std::int8_t{-56}) == 0);  // the same bits
  CHECK(value_at(bytes, 456) == 0);               // the same low byte
  CHECK(value_at(bytes, -1) == 0);
}

TEST_CASE("source keys of another width and sign match by value") {
  struct Source {
    std::uint8_t id = 0;
    int value = 0;
  };
  auto table = table_of<std::int64_t>({200, -56, 5});
  const std::vector<Source> rows = {{200, 0}, {5, 0}};
  const auto result = table.merge(rows)
                          .on<&Source::id>()
                          .when_matched()
                          .erase()
                          .when_not_matched()
                          .raise("not found")
                          .execute();
  CHECK(result.metrics().matched_deleted == 2);
  CHECK(value_at(table, -56) == 2);
}

TEST_CASE("an integer finds a floating-point key") {
  const auto table = table_of<double>({1.0, 2.5, -3.0});
  CHECK(value_at(table, 1) == 1);
  CHECK(value_at(table, 1.0F) == 1);
  CHECK(value_at(table, 2.5F) == 2);
  CHECK(value_at(table, -3LL) == 3);
  CHECK(value_at(table, 2) == 0);
}

TEST_CASE("an optional of another type finds an optional key by value") {
  const auto numbers = table_of<std::optional<double>>({1.0, 2.5, std::nullopt});
  CHECK(value_at(numbers, 1) == 1);
  CHECK(value_at(numbers, std::optional<int>(1)) == 1);
  CHECK(value_at(numbers, std::optional<float>(2.5F)) == 2);
  CHECK(value_at(numbers, std::optional<int>()) == 3);

  const auto day = std::chrono::sys_days(std::chrono::year(2026) / 2 / 28);
  const auto times = table_of<std::optional<kf::Timestamp>>({day, std::nullopt});
  CHECK(value_at(times, day) == 1);
  CHECK(value_at(times, std::optional<std::chrono::sys_days>(day)) == 1);
  CHECK(value_at(times, std::optional<std::chrono::sys_days>()) == 2);

  const auto names = table_of<std::optional<std::string>>({"x", std::nullopt});
  CHECK(value_at(names, std::optional<std::string_view>("x")) == 1);
  CHECK(value_at(names, std::optional<std::string_view>()) == 2);
}

TEST_CASE("an optional source key of another type matches an optional key by value") {
  struct Source {
    std::optional<std::int16_t> id;
  };
  auto table = table_of<std::optional<double>>({1.0, 2.0, std::nullopt});
  const std::vector<Source> rows = {{std::int16_t{2}}, {std::nullopt}};
  const auto result = table.merge(rows).on<&Source::id>().when_matched().erase().execute();
  CHECK(result.metrics().matched_deleted == 2);
  CHECK(value_at(table, 1) == 1);
}
