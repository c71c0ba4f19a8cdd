// What a key is made of; key_values_test.cpp has its special values, key_types_test.cpp its types.
#include <algorithm>
#include <cctype>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/keyed.hpp"

namespace kf = keyfold;
using keyfold_test::Keyed;
using keyfold_test::OrderedBy;
using keyfold_test::TableBy;
using keyfold_test::value_at;
using keyfold_test::values_of;

namespace {

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
