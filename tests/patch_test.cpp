// Patches: source rows whose empty optionals mean "as it is".
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Person {
  int id = 0;
  std::string name = "unknown";
  std::int8_t age = 18;
  std::optional<std::string> nick = "none yet";
  bool operator==(const Person&) const = default;
};
BOOST_DESCRIBE_STRUCT(Person, (), (id, name, age, nick))

struct Patch {
  int id = 0;
  std::optional<std::string> name;
  std::optional<int> age;
  std::optional<std::optional<std::string>> nick;
};
BOOST_DESCRIBE_STRUCT(Patch, (), (id, name, age, nick))

// Has no way of making a nick empty.
struct Nick {
  int id = 0;
  std::optional<std::string> nick;
  int hops = 0;  // no column of a person
};
BOOST_DESCRIBE_STRUCT(Nick, (), (id, nick, hops))

struct Redirected {
  int which = 0;
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Redirected, (), (which, id))

constexpr auto decade = [](const Person& person) { return person.id / 10; };

using People = kf::Table<Person, kf::Key<&Person::id>>;
using Rows = std::vector<Person>;
using Patches = std::vector<Patch>;

constexpr std::nullopt_t none = std::nullopt;
const std::optional<std::optional<std::string>> null_nick = std::optional<std::string>();

People two() {
  People people;
  people.append({{1, "Ann", 30, "annie"}, {2, "Bo", 40, none}});
  return people;
}

}  // namespace

TEST_CASE("a patch sets what it brings and leaves the rest") {
  People people = two();
  const auto result = people.patch(Patches{{1, "Anna", none, none}, {2, none, 41, "bobby"}});
  CHECK(counts_of(result) == Counts{2, 0, 0});
  CHECK(rows_of(people) == Rows{{1, "Anna", 30, "annie"}, {2, "Bo", 41, "bobby"}});
}

TEST_CASE("an optional of an optional is absent, null or a value") {
  People people = two();
  people.patch(Patches{{1, none, none, null_nick}});
  CHECK(people.at(1).nick == none);
  people.patch(Patches{{1, none, none, none}});
  CHECK(people.at(1).nick == none);
  people.patch(Patches{{1, none, none, "annie"}});
  CHECK(people.at(1).nick == "annie");
}

TEST_CASE("a plain optional for a column that may be empty: absent keeps it") {
  People people = two();
  people.patch(std::vector<Nick>{{1, none, 0}, {2, "bobby", 0}});
  CHECK(rows_of(people) == Rows{{1, "Ann", 30, "annie"}, {2, "Bo", 40, "bobby"}});
}

TEST_CASE("a patch for a new key starts from the row's defaults") {
  People people = two();
  people.patch(Patches{{3, "Cid", none, none}, {4, none, 5, null_nick}});
  CHECK(people.at(3) == Person{3, "Cid", 18, "none yet"});
  CHECK(people.at(4) == Person{4, "unknown", 5, none});
  people.patch(std::vector<Nick>{{5, "eve", 0}});
  CHECK(people.at(5) == Person{5, "unknown", 18, "eve"});
}

TEST_CASE("a patch that changes nothing is unchanged and makes no version") {
  People people = two();
  const Unharmed unharmed(people);
  const auto result = people.patch(Patches{{1, none, none, none}, {2, "Bo", 40, null_nick}});
  CHECK(result.metrics().unchanged == 2);
  CHECK_FALSE(result.committed());
}

TEST_CASE("patches are clauses like others") {
  People people = two();
  const Patches patches{{1, "Anna", none, none}, {2, "Bob", none, none}, {3, "Cid", none, none}};
  const auto result = people.merge(patches)
                          .when_matched(kf::target<&Person::age> > 35)
                          .update_present()
                          .when_not_matched()
                          .insert_present()
                          .execute();
  CHECK(counts_of(result) == Counts{1, 0, 1});
  CHECK(result.metrics().skipped == 1);
  CHECK(people.at(1).name == "Ann");
  CHECK(people.at(2).name == "Bob");
  CHECK(people.history().back().parameters() ==
        "ON source.id = target.id WHEN MATCHED AND (target.age > 35) THEN UPDATE SET PRESENT * WHEN NOT "
        "MATCHED "
        "THEN INSERT PRESENT *");
}

TEST_CASE("a source of the row's own type patches with its empty columns") {
  People people = two();
  people.merge(Rows{{1, "Ann", 31, none}}).when_matched().update_present().execute();
  CHECK(people.at(1) == Person{1, "Ann", 31, "annie"});
}

TEST_CASE("a value that does not fit its column is an error, and nothing is written") {
  People people = two();
  const Unharmed unharmed(people);
  const auto error = error_of<kf::ValueOutOfRange>(
      [&] { people.patch(Patches{{1, "Anna", none, none}, {2, none, 400, none}}); });
  CHECK(error.column == "age");
}

TEST_CASE("two patches of one key need a duplicate policy") {
  People people = two();
  const Patches patches{{1, "Anna", none, none}, {1, none, 31, none}};
  CHECK_THROWS_AS(people.patch(patches), kf::DuplicateSourceKey);
  people.merge(patches)
      .duplicates(kf::fold([](Patch&& all, const Patch& next) {
        if (next.name) all.name = next.name;
        if (next.age) all.age = next.age;
        if (next.nick) all.nick = next.nick;
        return all;
      }))
      .when_matched()
      .update_present()
      .execute();
  CHECK(people.at(1) == Person{1, "Anna", 31, "annie"});
}

TEST_CASE("a patch makes no row with another key than it was looked up by") {
  People people = two();
  const Unharmed unharmed(people);
  // It is looked up by 5, and would make the row 9.
  CHECK_THROWS_AS(people.merge(std::vector<Redirected>{{5, 9}})
                      .on<&Redirected::which>()
                      .when_not_matched()
                      .insert_present()
                      .execute(),
                  kf::Error);
}

TEST_CASE("a table with a computed key takes patches of its own rows") {
  kf::Table<Person, kf::Key<decade>> people;
  people.patch(Rows{{12, "Ann", 30, none}});
  people.patch(Rows{{15, "Anna", 31, none}});
  REQUIRE(people.size() == 1);
  CHECK(people.begin()->name == "Anna");
}

TEST_CASE("a rule of patches is reused, and previewed") {
  constexpr auto rule = kf::merge_rule<Person, Patch>().when_matched().update_present();
  People people = two();
  CHECK(people.preview(Patches{{1, "Anna", none, none}}, rule).size() == 1);
  people.merge(Patches{{1, "Anna", none, none}}, rule);
  CHECK(people.at(1).name == "Anna");
}

TEST_CASE("a transaction patches, too") {
  People people = two();
  auto tx = people.transaction();
  tx.patch(Patches{{1, "Anna", none, none}});
  tx.patch(Patches{{1, none, 31, none}});
  tx.commit();
  CHECK(people.at(1) == Person{1, "Anna", 31, "annie"});
}
