#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/keyed.hpp"

namespace kf = keyfold;
using keyfold_test::OrderedBy;
using keyfold_test::table_of;
using keyfold_test::TableBy;
using keyfold_test::value_at;
using keyfold_test::values_of;
using namespace std::chrono_literals;

// Every allocation of this executable is counted.
namespace {
std::size_t allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return ++allocations, std::malloc(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return ++allocations, std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

struct Price {
  std::string sku;
  int day = 0;
  int value = 0;
};
using Prices = kf::Table<Price, kf::Key<&Price::sku, &Price::day>>;

}  // namespace

TEST_CASE("text of every kind finds a string key without an allocation") {
  const std::string key(100, 'x');  // no small-string optimization
  auto table = table_of<std::string>({"a", key});
  kf::Table<Price, kf::Key<&Price::sku, &Price::day>, kf::OrderedBy<&Price::sku>, kf::HashedBy<&Price::sku>>
      prices;
  prices.append({{"a", 1, 11}, {key, 2, 22}});
  std::array<char, 101> buffer{};
  std::ranges::copy(key, buffer.begin());
  const char* const pointer = buffer.data();
  const std::string_view view = key;

  const auto before = allocations;
  const bool all_found = value_at(table, view) == 2 && value_at(table, key) == 2 &&
                         value_at(table, pointer) == 2 && value_at(table, "a") == 1 && table.contains(view) &&
                         table.at(view).value == 2 && value_at(prices, view, 2) == 22 &&
                         value_at(prices, pointer, 2U) == 22;
  const auto after = allocations;
  CHECK(all_found);
  CHECK(after == before);
}

TEST_CASE("text finds rows of a secondary index without an allocation") {
  const std::string key(100, 'x');
  kf::Table<Price, kf::Key<&Price::day>, kf::OrderedBy<&Price::sku>> ordered;
  kf::Table<Price, kf::Key<&Price::day>, kf::HashedBy<&Price::sku>> hashed;
  ordered.append({{"a", 1, 11}, {key, 2, 22}});
  hashed.append({{"a", 1, 11}, {key, 2, 22}});
  const std::string_view view = key;

  const auto before = allocations;
  const auto* in_order = ordered.by<&Price::sku>().find(view);
  const auto* by_hash = hashed.by<&Price::sku>().find(view);
  const bool in_range = !ordered.by<&Price::sku>().range("a", view).empty();
  const auto after = allocations;
  REQUIRE(in_order != nullptr);
  REQUIRE(by_hash != nullptr);
  CHECK(in_order->value == 22);
  CHECK(by_hash->value == 22);
  CHECK(in_range);
  CHECK(after == before);
}

TEST_CASE("an optional string key is found by text without an allocation") {
  const std::string key(100, 'x');
  const auto table = table_of<std::optional<std::string>>({std::nullopt, key});
  const std::string_view view = key;
  const auto before = allocations;
  const bool found = value_at(table, view) == 2 && value_at(table, std::nullopt) == 1;
  const auto after = allocations;
  CHECK(found);
  CHECK(after == before);
}

TEST_CASE("strings with a zero byte are keys of their whole length") {
  using namespace std::string_literals;
  const auto table = table_of<std::string>({"a\0b"s, "a\0c"s, "a"s});
  CHECK(value_at(table, "a\0c"s) == 2);
  CHECK(value_at(table, std::string_view("a\0b", 3)) == 1);
  CHECK(value_at(table, "a") == 3);
}

TEST_CASE("enumerations are keys") {
  enum class Color : std::uint8_t { red, green };
  enum Plain { first, second };
  const auto colors = table_of<Color>({Color::red, Color::green});
  CHECK(value_at(colors, Color::green) == 2);
  CHECK(value_at(colors, static_cast<Color>(9)) == 0);
  const auto plain = table_of<Plain>({second});
  CHECK(value_at(plain, second) == 1);
  CHECK(value_at(plain, first) == 0);
}

TEST_CASE("points in time and durations are keys, in any unit that converts") {
  using Day = std::chrono::sys_days;
  const Day day = Day(std::chrono::year(2026) / 2 / 28);
  const auto times = table_of<kf::Timestamp>({day, day + 1s});
  CHECK(value_at(times, kf::Timestamp(day)) == 1);
  CHECK(value_at(times, day) == 1);
  CHECK(value_at(times, std::chrono::sys_seconds(day + 1s)) == 2);
  CHECK(value_at(times, day + 1ms) == 0);

  const auto days = table_of<Day>({day});
  CHECK(value_at(days, day) == 1);
  CHECK(value_at(days, day + std::chrono::days(1)) == 0);

  const auto waits = table_of<std::chrono::milliseconds>({0ms, 3600000ms});
  CHECK(value_at(waits, 1h) == 2);
  CHECK(value_at(waits, 0s) == 1);
  CHECK(value_at(waits, 3599999ms) == 0);
}

TEST_CASE("bool and char are keys") {
  const auto flags = table_of<bool>({true, false});
  CHECK(value_at(flags, true) == 1);
  CHECK(value_at(flags, false) == 2);

  const auto letters = table_of<char>({'a', '\0', '\xFF'});
  CHECK(value_at(letters, 'a') == 1);
  CHECK(value_at(letters, '\0') == 2);
  CHECK(value_at(letters, '\xFF') == 3);
  CHECK(value_at(letters, 'b') == 0);
}

TEST_CASE("pairs, tuples and nested optionals are keys") {
  const auto pairs = table_of<std::pair<int, std::string>>({{1, "a"}, {1, "b"}});
  CHECK(value_at(pairs, std::pair<int, std::string>(1, "b")) == 2);
  CHECK(value_at(pairs, std::pair<int, std::string>(2, "b")) == 0);

  auto tuples = table_of<std::tuple<int, std::optional<double>>>({{1, 0.0}, {1, std::nullopt}});
  CHECK(value_at(tuples, std::tuple<int, std::optional<double>>(1, std::nullopt)) == 2);
  CHECK(value_at(tuples, std::tuple<int, std::optional<double>>(1, -0.0)) == 1);
  CHECK_THROWS_AS(tuples.insert({{1, nan_value}, 3}), kf::InvalidKey);
}

namespace {

struct Isbn {
  std::string digits;
  bool operator==(const Isbn&) const = default;
};

struct Place {
  int x = 0, y = 0;
  auto operator<=>(const Place&) const = default;
};
std::size_t hash_value(const Place& place) { return static_cast<std::size_t>(place.x * 31 + place.y); }

struct Colliding {
  int number = 0;
  bool operator==(const Colliding&) const = default;
};
std::size_t hash_value(const Colliding&) { return 7; }

}  // namespace

template <>
struct std::hash<Isbn> {
  std::size_t operator()(const Isbn& isbn) const noexcept { return std::hash<std::string>{}(isbn.digits); }
};

TEST_CASE("a type with a std::hash is a key") {
  const auto table = table_of<Isbn>({Isbn{"1"}, Isbn{"2"}});
  CHECK(value_at(table, Isbn{"2"}) == 2);
  CHECK(value_at(table, Isbn{"3"}) == 0);
  const auto optional = table_of<std::optional<Isbn>>({Isbn{"1"}, std::nullopt});
  CHECK(value_at(optional, Isbn{"1"}) == 1);
  CHECK(value_at(optional, std::nullopt) == 2);
}

namespace {
// A range only by the name of one function.
struct Title {
  int number = 0;
  const char* data() const { throw number; }
  bool operator==(const Title&) const = default;
};
}  // namespace

template <>
struct std::hash<Title> {
  std::size_t operator()(const Title& title) const noexcept { return std::hash<int>{}(title.number); }
};

TEST_CASE("a key is not asked for its data()") {
  auto table = table_of<Title>({Title{1}, Title{2}});
  using Row = std::ranges::range_value_t<decltype(table)>;
  table.upsert(std::vector<Row>{{Title{1}, 10}, {Title{2}, 20}});
  CHECK(value_at(table, Title{2}) == 20);
}

TEST_CASE("a type with a hash_value() is a key, hashed and ordered") {
  const auto table = table_of<Place>({Place{1, 2}, Place{0, 33}});  // their hashes are equal
  CHECK(value_at(table, Place{1, 2}) == 1);
  CHECK(value_at(table, Place{0, 33}) == 2);
  CHECK(value_at(table, Place{33, 0}) == 0);

  OrderedBy<Place> ordered;
  ordered.append({{Place{1, 2}, 1}, {Place{0, 33}, 2}});
  CHECK(values_of(ordered) == std::vector<int>{2, 1});
}

TEST_CASE("keys whose hashes all collide are still told apart") {
  TableBy<Colliding> table;
  for (int i = 0; i < 200; ++i) table.insert({Colliding{i}, i + 1});
  for (int i = 0; i < 200; i += 3) table.erase(Colliding{i});
  int wrong = 0;
  for (int i = 0; i < 200; ++i) wrong += value_at(table, Colliding{i}) != (i % 3 == 0 ? 0 : i + 1);
  CHECK(wrong == 0);
  CHECK(table.size() == 133);
}
