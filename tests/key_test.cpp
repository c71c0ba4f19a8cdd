#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using keyfold_test::contains;
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
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

template <class T>
struct Keyed {
  T key{};
  int value = 0;
};

// A table keyed by one value of type T.
template <class T>
using TableBy = kf::Table<Keyed<T>, kf::Key<&Keyed<T>::key>>;
template <class T>
using OrderedBy = kf::Table<Keyed<T>, kf::OrderedKey<&Keyed<T>::key>>;

template <class T>
TableBy<T> table_of(std::initializer_list<T> keys) {
  TableBy<T> table;
  int value = 0;
  for (const T& key : keys) table.insert({key, ++value});
  return table;
}

// The value of the row with this key, 0 if there is none.
template <class Table, class... Key>
int value_at(const Table& table, const Key&... key) {
  const auto* row = table.find(key...);
  return row == nullptr ? 0 : row->value;
}

template <class Table>
std::vector<int> values_of(const Table& table) {
  std::vector<int> values;
  for (const auto& row : table) values.push_back(row.value);
  return values;
}

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Price {
  std::string sku;
  int day = 0;
  int value = 0;
};
using Prices = kf::Table<Price, kf::Key<&Price::sku, &Price::day>>;

struct Person {
  std::string name;
  int value = 0;

  std::size_t name_length() const { return name.size(); }
  char initial() const noexcept { return name.empty() ? ' ' : name.front(); }
};

constexpr auto folded_name = [](const Person& person) {
  std::string name = person.name;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
};

int last_digit(const Person& person) { return person.value % 10; }

}  // namespace

TEST_CASE("a composite key finds the row that has all its parts") {
  Prices prices;
  prices.append({{"a", 1, 11}, {"a", 2, 12}, {"b", 1, 21}});
  CHECK(value_at(prices, "a", 1) == 11);
  CHECK(value_at(prices, "a", 2) == 12);
  CHECK(value_at(prices, "b", 1) == 21);
  CHECK(value_at(prices, "b", 2) == 0);
  CHECK(value_at(prices, "", 1) == 0);
}

TEST_CASE("parts of a composite key do not run into each other") {
  struct Names {
    std::string first, last;
    int value = 0;
  };
  kf::Table<Names, kf::Key<&Names::first, &Names::last>> table;
  table.append({{"ab", "c", 1}, {"a", "bc", 2}, {"abc", "", 3}, {"", "abc", 4}});
  CHECK(table.size() == 4);
  CHECK(value_at(table, "a", "bc") == 2);
  CHECK(value_at(table, "", "abc") == 4);
}

TEST_CASE("swapped parts of a composite key are another key") {
  struct Edge {
    int from = 0, to = 0;
    int value = 0;
  };
  kf::Table<Edge, kf::Key<&Edge::from, &Edge::to>> edges;
  edges.append({{1, 2, 12}, {2, 1, 21}, {1, 1, 11}});
  CHECK(value_at(edges, 1, 2) == 12);
  CHECK(value_at(edges, 2, 1) == 21);
  CHECK(value_at(edges, 2, 2) == 0);
}

TEST_CASE("a member function is a key part") {
  kf::Table<Person, kf::Key<&Person::name_length>> by_length;
  by_length.append({{"Al", 1}, {"Bob", 2}});
  CHECK(value_at(by_length, 3) == 2);
  CHECK_THROWS_AS(by_length.insert({"Cy", 3}), kf::DuplicateKey);

  kf::Table<Person, kf::Key<&Person::initial>> by_initial;  // noexcept
  by_initial.append({{"Al", 1}, {"Bob", 2}});
  CHECK(value_at(by_initial, 'B') == 2);
}

TEST_CASE("a key of a callable that folds case is one key for all spellings") {
  kf::Table<Person, kf::Key<folded_name>> people;
  people.append({{"Ada", 1}, {"BOB", 2}});
  CHECK(value_at(people, "ada") == 1);
  CHECK(value_at(people, std::string_view("bob")) == 2);
  CHECK(value_at(people, "BOB") == 0);  // the value looked up is the folded one
  CHECK_THROWS_AS(people.insert({"ADA", 3}), kf::DuplicateKey);

  people.upsert({{"aDA", 4}, {"Cy", 5}});
  CHECK(people.size() == 3);
  CHECK(people.at("ada").name == "aDA");
  CHECK(people.at("ada").value == 4);
}

TEST_CASE("a key part can be a function and stand beside a member") {
  kf::Table<Person, kf::Key<&last_digit, &Person::name>> people;
  people.append({{"Ada", 11}, {"Ada", 22}, {"Bob", 31}});
  CHECK(value_at(people, 1, "Ada") == 11);
  CHECK(value_at(people, 2, "Ada") == 22);
  CHECK(value_at(people, 1, "Bob") == 31);
  CHECK_THROWS_AS(people.insert({"Ada", 1}), kf::DuplicateKey);
}

TEST_CASE("a key part can be a member of a base") {
  struct Identified {
    int id = 0;
  };
  struct Thing : Identified {
    int value = 0;
  };
  kf::Table<Thing, kf::Key<&Thing::id>> things;
  things.insert(Thing{{7}, 70});
  CHECK(value_at(things, 7) == 70);
}

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

TEST_CASE("every key is found while the table grows and shrinks") {
  TableBy<std::uint64_t> table;
  std::set<std::uint64_t> model;
  std::uint64_t state = 42;  // the multiplier and increment of Knuth's MMIX
  const auto next = [&] { return (state = state * 6364136223846793005U + 1442695040888963407U) >> 33U; };
  int wrong = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t key = next() % 3000;
    if (next() % 3 != 0) {
      table.upsert({key, 1});
      model.insert(key);
    } else {
      const bool erased = table.erase(key).metrics().deleted == 1;
      wrong += erased != (model.erase(key) == 1);
    }
    if (step % 1000 == 0) {
      for (std::uint64_t k = 0; k < 3000; ++k) wrong += table.contains(k) != model.contains(k);
    }
  }
  CHECK(wrong == 0);
  CHECK(table.size() == model.size());
}

TEST_CASE("an ordered key orders the rows") {
  SECTION("numbers, whatever the order of insertion") {
    OrderedBy<int> table;
    table.append({{30, 3}, {-10, 1}, {20, 2}});
    table.insert({40, 4});
    CHECK(values_of(table) == std::vector<int>{1, 2, 3, 4});
  }
  SECTION("text by its bytes, a prefix first") {
    OrderedBy<std::string> table;
    table.append({{"b", 4}, {"", 1}, {"ab", 3}, {"a", 2}});
    CHECK(values_of(table) == std::vector<int>{1, 2, 3, 4});
  }
  SECTION("empty optionals first") {
    OrderedBy<std::optional<int>> table;
    table.append({{5, 3}, {std::nullopt, 1}, {-5, 2}});
    CHECK(values_of(table) == std::vector<int>{1, 2, 3});
  }
  SECTION("floating point from one infinity to the other") {
    OrderedBy<double> table;
    table.append({{infinity, 4}, {0.0, 2}, {-infinity, 1}, {1e-300, 3}});
    CHECK(values_of(table) == std::vector<int>{1, 2, 3, 4});
    CHECK_THROWS_AS(table.insert({nan_value, 5}), kf::InvalidKey);
    CHECK_THROWS_AS(table.insert({-0.0, 5}), kf::DuplicateKey);
  }
  SECTION("a composite key part by part") {
    kf::Table<Price, kf::OrderedKey<&Price::sku, &Price::day>> table;
    table.append({{"b", 1, 3}, {"a", 10, 2}, {"a", 9, 1}, {"b", 2, 4}});
    CHECK(values_of(table) == std::vector<int>{1, 2, 3, 4});
    CHECK(value_at(table, "a", 10) == 2);
    CHECK(value_at(table, "a", 11) == 0);
  }
  SECTION("a callable by its values") {
    kf::Table<Person, kf::OrderedKey<folded_name>> table;
    table.append({{"bob", 2}, {"Cy", 3}, {"ADA", 1}});
    CHECK(values_of(table) == std::vector<int>{1, 2, 3});
  }
}

TEST_CASE("an ordered key moves a row whose key is updated") {
  OrderedBy<int> table;
  table.append({{1, 10}, {2, 20}, {3, 30}});
  const std::vector<Keyed<int>> rows = {{1, 0}};
  table.merge(rows).when_matched().update(kf::target<&Keyed<int>::key> = 9).execute();
  CHECK(values_of(table) == std::vector<int>{20, 30, 10});
  CHECK(value_at(table, 9) == 10);
  CHECK_FALSE(table.contains(1));
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
