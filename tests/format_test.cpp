#include <keyfold/format.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

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

// A row that is a range, which {fmt} would format as such.
struct Pair {
  int first = 0, second = 0;
  const int* begin() const { return &first; }
  const int* end() const { return &second + 1; }
};

using Teas = kf::Table<Tea, kf::Key<&Tea::id>>;

}  // namespace

template <>
inline constexpr bool keyfold::enable_row_format<Tea> = true;

namespace {

kf::Timestamp noon() {
  return kf::Timestamp(std::chrono::sys_days(std::chrono::days(20730)) + std::chrono::hours(12));
}

Teas merged() {
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
  CHECK(format("{}", kf::ChangeKind::erase) == "erase");
  CHECK(format("<{:>8}>", kf::ChangeKind::insert) == "<  insert>");
  CHECK(format("{}", changes[0]) == "update (id: 1, name: 'sencha', price: 4.5 -> NULL)");
  CHECK(format("{}", changes[1]) == "insert (id: 3, name: 'new', price: 1)");
  CHECK(format("{}", changes[2]) == "erase (id: 2, name: 'it''s', price: NULL)");
  CHECK(format("{:.6}", changes[2]) == "erase ");
  CHECK(format("{}", teas.changes(1, 2)[1]) ==
        "version 2 at 2026-10-04T12:00:00.000001Z: insert (id: 3, name: 'new', price: 1)");
  CHECK(format("{}", commit).starts_with("version 2 at 2026-10-04T12:00:00.000001Z: MERGE ON "));
  CHECK(format("{}", commit).ends_with("; metadata 'today'"));
  CHECK(format("{}", changes) == kf::print(changes).text());
  CHECK(format("{}", kf::print(teas)) ==
        "id | name   | price\n---+--------+------\n 1 | sencha |  NULL\n 3 | new    |     1\n(2 rows)\n");
  CHECK(format("{}", teas.at(1)) == "(id: 1, name: 'sencha', price: NULL)");
  CHECK(format("{:*<40}", teas.at(1)) == "(id: 1, name: 'sencha', price: NULL)****");
  const std::string long_name(500, 'x');
  CHECK(format("{}", Tea{1, long_name, {}}) == "(id: 1, name: '" + long_name + "', price: NULL)");
  CHECK(format("{}", kf::Change<Bare>::insert({1})) == "insert");
}

}  // namespace

TEST_CASE("format: {fmt} takes what keyfold has") {
  check_formats(
      [](const char* pattern, const auto& value) { return fmt::format(fmt::runtime(pattern), value); });
}

TEST_CASE("format: patterns are checked when they are compiled, and a row can stand among other things") {
  CHECK(fmt::format("{} of {}", Tea{1, "a", {}}, kf::Metrics{}) ==
        "(id: 1, name: 'a', price: NULL) of source_rows=0");
  CHECK(fmt::format("{}", std::vector<Tea>{{1, "a", {}}}) == "[(id: 1, name: 'a', price: NULL)]");
}

TEST_CASE("format: a row is formatted only where its type asks for it") {
  CHECK(fmt::is_formattable<Tea>::value);
  CHECK_FALSE(fmt::is_formattable<Bare>::value);
  CHECK(fmt::format("{}", Pair{1, 2}) == "[1, 2]");
}

#ifdef __cpp_lib_format
TEST_CASE("format: std::format takes what keyfold has") {
  check_formats([](const char* pattern, const auto& value) {
    return std::vformat(pattern, std::make_format_args(value));
  });
  CHECK(std::format("{}", Tea{1, "a", {}}) == "(id: 1, name: 'a', price: NULL)");
}
#endif
