// What the formatters make of things. The includer has a CHECK(condition).
#pragma once

#include <keyfold/format.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace keyfold_test {

struct Tea {
  int id = 0;
  std::string name;
  std::optional<double> price;
  bool operator==(const Tea&) const = default;
};
BOOST_DESCRIBE_STRUCT(Tea, (), (id, name, price))

struct Bare {  // without a column list
  int id = 0;
};

using Teas = keyfold::Table<Tea, keyfold::Key<&Tea::id>>;

}  // namespace keyfold_test

template <>
inline constexpr bool keyfold::enable_row_format<keyfold_test::Tea> = true;

namespace keyfold_test {

inline keyfold::Timestamp noon() {
  return keyfold::Timestamp(std::chrono::sys_days(std::chrono::days(20730)) + std::chrono::hours(12));
}

inline Teas merged() {
  Teas teas({.clock = noon});
  teas.append(std::vector<Tea>{{1, "sencha", 4.5}, {2, "it's", {}}});
  teas.merge(std::vector<Tea>{{1, "sencha", {}}, {3, "new", 1.0}})
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source()
      .erase()
      .metadata("today")
      .execute();
  return teas;
}

// The cases, for each library that has a formatter: `format(pattern, value)` gives the text.
template <class Library>
void check_formats(Library format) {
  const Teas teas = merged();
  const auto changes = teas.diff(1, 2);
  const auto commit = teas.history().back();

  CHECK(format("{}", commit.metrics()) ==
        "source_rows=2 inserted=1 updated=1 deleted=1 not_matched_by_source_deleted=1");
  CHECK(format("{}", keyfold::ChangeKind::erase) == "erase");
  CHECK(format("<{:>8}>", keyfold::ChangeKind::insert) == "<  insert>");
  CHECK(format("{}", changes[0]) == "update (id: 1, name: 'sencha', price: 4.5 -> NULL)");
  CHECK(format("{}", changes[1]) == "insert (id: 3, name: 'new', price: 1)");
  CHECK(format("{}", changes[2]) == "erase (id: 2, name: 'it''s', price: NULL)");
  CHECK(format("{:.6}", changes[2]) == "erase ");
  CHECK(format("{}", teas.changes(1, 2)[1]) ==
        "version 2 at 2026-10-04T12:00:00.000001Z: insert (id: 3, name: 'new', price: 1)");
  CHECK(format("{}", commit).starts_with("version 2 at 2026-10-04T12:00:00.000001Z: MERGE ON "));
  CHECK(format("{}", commit).ends_with("; metadata 'today'"));
  CHECK(format("{}", changes) == keyfold::print(changes).text());
  CHECK(format("{}", keyfold::print(teas)) ==
        "id | name   | price\n---+--------+------\n 1 | sencha |  NULL\n 3 | new    |     1\n(2 rows)\n");
  CHECK(format("{}", teas.at(1)) == "(id: 1, name: 'sencha', price: NULL)");
  CHECK(format("{:*<40}", teas.at(1)) == "(id: 1, name: 'sencha', price: NULL)****");
  const std::string long_name(500, 'x');
  CHECK(format("{}", Tea{1, long_name, {}}) == "(id: 1, name: '" + long_name + "', price: NULL)");
  CHECK(format("{}", keyfold::Change<Bare>::insert({1})) == "insert");
}

}  // namespace keyfold_test
