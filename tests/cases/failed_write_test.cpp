// Writes that fail half way: from public bug reports, with their neighbours.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/transform.hpp>

#include <algorithm>
#include <optional>
#include <string>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::Counts;
using keyfold_test::counts_of;
using keyfold_test::error_of;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Failure {
  int at = 0;
};

struct Number {
  int id = 0;
  int value = 0;
  bool operator==(const Number&) const = default;
};
using Numbers = kf::Table<Number, kf::Key<&Number::id>>;

// Inserts what `project` makes of each row.
template <class Project>
auto insert_projected(Numbers& table, const std::vector<Number>& rows, Project project) {
  return table.merge(rows).when_not_matched().insert(project).execute();
}

}  // namespace

// delta-io/delta#5864: work that was retried counted twice.
TEST_CASE("a write that is tried again counts its own rows only") {
  Numbers table;
  int calls = 0;
  const auto project = [&](const Number& row) {
    if (++calls == 3) throw Failure{row.id};
    return row;
  };
  const std::vector<Number> source{{1, 1}, {2, 2}, {3, 3}};
  CHECK_THROWS_AS(insert_projected(table, source, project), Failure);
  CHECK(table.empty());
  CHECK(table.version() == 0);
  CHECK(table.history().empty());
  const auto result = insert_projected(table, source, project);
  CHECK(counts_of(result) == Counts{0, 0, 3});
  CHECK(result.metrics().source_rows == 3);
  CHECK(rows_of(table) == source);
  CHECK(table.version() == 1);
  CHECK(table.history().back().metrics().inserted == 3);
  CHECK(calls == 6);
}

TEST_CASE("a write that fails at any of its rows counts nothing, then everything") {
  const std::vector<Number> source{{2, 20}, {5, 50}, {1, 10}, {4, 40}};
  for (int failing = 0; failing < 4; ++failing) {
    Numbers table;
    table.append({{1, 1}, {2, 2}});
    int calls = -1;
    const auto attempt = [&] {
      return table.merge(source)
          .when_matched()
          .update(kf::target<&Number::value> =
                      [&](const Number&, const Number& change) {
                        if (++calls == failing) throw Failure{change.id};
                        return change.value;
                      })
          .when_not_matched()
          .insert([&](const Number& change) {
            if (++calls == failing) throw Failure{change.id};
            return change;
          })
          .execute();
    };
    {
      const Unharmed unharmed(table);
      CHECK(error_of<Failure>(attempt).at == source[static_cast<std::size_t>(failing)].id);
    }
    CHECK(counts_of(attempt()) == Counts{2, 0, 2});
    CHECK(rows_of(table) == std::vector<Number>{{1, 10}, {2, 20}, {5, 50}, {4, 40}});
    CHECK(table.version() == 2);
  }
}

TEST_CASE("a source that breaks off leaves nothing of what it gave") {
  Numbers table;
  table.append({{1, 1}});
  const auto rows = [](int count) {
    return ranges::views::iota(0, 100) | ranges::views::transform([count](int i) {
             if (i == count) throw Failure{i};
             return Number{i, -i};
           });
  };
  const Unharmed unharmed(table);
  for (const int count : {0, 1, 31, 32, 33, 99}) {  // around the ends of the planner's blocks
    CHECK(error_of<Failure>([&] { table.upsert(rows(count)); }).at == count);
    CHECK_THROWS_AS(table.merge(rows(count)).when_not_matched_by_source().erase().execute(), Failure);
  }
}

TEST_CASE("the preview fails as the merge does, and as harmlessly") {
  Numbers table;
  table.append({{1, 1}});
  const Unharmed unharmed(table);
  auto merge = table.merge({{1, 5}, {2, 2}, {3, 3}})
                   .when_matched()
                   .update_all()
                   .when_not_matched()
                   .insert([](const Number& row) {
                     if (row.id == 3) throw Failure{3};
                     return row;
                   });
  CHECK_THROWS_AS(static_cast<void>(merge.preview()), Failure);
  CHECK_THROWS_AS(merge.execute(), Failure);
}

namespace {

struct User {
  int id = 0;
  std::string email;
  bool operator==(const User&) const = default;
};
BOOST_DESCRIBE_STRUCT(User, (), (id, email))

using Users = kf::Table<User, kf::Key<&User::id>, kf::UniqueBy<&User::email>>;
const std::vector<User> abc{{1, "a"}, {2, "b"}, {3, "c"}};

Users users() {
  Users table;
  table.append(abc);
  return table;
}

// Rows, keys and the unique index tell of the same three users.
void check_abc(const Users& table) {
  CHECK(rows_of(table) == abc);
  CHECK(table.version() == 1);
  CHECK(table.by<&User::email>().size() == 3);
  for (const User& user : abc) {
    REQUIRE(table.contains(user.id));
    CHECK(table.by<&User::email>().find(user.email) == table.find(user.id));
  }
}

}  // namespace

// Boost.MultiIndex Trac #12542, and modify() as documented: a colliding or throwing change erased the row.
TEST_CASE("a key change onto another row's key is an error, and no row is lost") {
  Users table = users();
  auto merge = table.merge({{2, "b"}}).when_matched().update(kf::target<&User::id> = 1);
  const auto error = error_of<kf::DuplicateKey>([&] { merge.execute(); });
  CHECK(error.index == "id");
  CHECK(error.key == "1");
  CHECK(std::min(error.first_position, error.second_position) == 0);
  CHECK(std::max(error.first_position, error.second_position) == kf::no_position);
  check_abc(table);
}

TEST_CASE("an update onto another row's unique value is an error, and no row is lost") {
  Users table = users();
  auto merge = table.merge({{3, "a"}}).when_matched().update_all();
  const auto error = error_of<kf::UniqueViolation>([&] { merge.execute(); });
  CHECK(error.index == "email");
  CHECK(error.key == "'a'");
  CHECK(std::min(error.first_position, error.second_position) == 0);
  CHECK(std::max(error.first_position, error.second_position) == kf::no_position);
  check_abc(table);
}

TEST_CASE("a throwing update loses no row") {
  Users table = users();
  auto merge = table.merge({{1, "x"}, {2, "y"}, {3, "z"}})
                   .when_matched()
                   .update([](const User& user, const User& change) {
                     if (user.id == 3) throw Failure{user.id};
                     return change;
                   });
  CHECK_THROWS_AS(merge.execute(), Failure);
  check_abc(table);
}

TEST_CASE("an insert of a unique value that is taken is an error, and nothing else is inserted") {
  Users table = users();
  CHECK_THROWS_AS(table.insert({4, "c"}), kf::UniqueViolation);
  CHECK_THROWS_AS(table.append({{4, "d"}, {5, "a"}}), kf::UniqueViolation);
  CHECK_THROWS_AS(table.append({{4, "d"}, {5, "d"}}), kf::UniqueViolation);
  CHECK_THROWS_AS(table.upsert({{4, "d"}, {2, "a"}}), kf::UniqueViolation);
  CHECK_THROWS_AS(table.append({{4, "d"}, {2, "e"}}), kf::DuplicateKey);
  check_abc(table);
}

TEST_CASE("two updates onto one unique value are an error that names both source rows") {
  Users table = users();
  const auto error = error_of<kf::UniqueViolation>([&] { table.upsert({{2, "x"}, {1, "b"}, {3, "x"}}); });
  CHECK(error.key == "'x'");
  CHECK(std::min(error.first_position, error.second_position) == 0);
  CHECK(std::max(error.first_position, error.second_position) == 2);
  check_abc(table);
}

TEST_CASE("what failed may be corrected and tried again") {
  Users table = users();
  CHECK_THROWS_AS(table.upsert({3, "a"}), kf::UniqueViolation);
  CHECK(counts_of(table.upsert({{3, "a"}, {1, "c"}})) == Counts{2, 0, 0});
  CHECK(table.by<&User::email>().find("a")->id == 3);
  CHECK(table.by<&User::email>().find("c")->id == 1);
  CHECK(table.version() == 2);
}

TEST_CASE("a raised clause undoes nothing, because nothing was done") {
  Users table = users();
  auto merge = table.merge({{4, "d"}, {1, "x"}, {2, "y"}})
                   .when_matched(kf::source<&User::id> == 2)
                   .raise("user 2 is closed")
                   .when_matched()
                   .update_all()
                   .when_not_matched()
                   .insert_all();
  const auto error = error_of<kf::ClauseRaised>([&] { merge.execute(); });
  CHECK(error.message == "user 2 is closed");
  CHECK(error.key == "2");
  CHECK(error.position == 2);
  check_abc(table);
}

TEST_CASE("a write from within a condition is refused, and the outer one as a whole") {
  Users table = users();
  auto merge = table.merge({{1, "x"}})
                   .when_matched([&](const User&, const User&) {
                     table.erase(2);
                     return true;
                   })
                   .update_all();
  CHECK_THROWS_AS(merge.execute(), kf::ReentrantWrite);
  check_abc(table);
  CHECK(counts_of(table.erase(2)) == Counts{0, 1, 0});  // the refusal is over with the write
}

namespace {

struct Account {
  int id = 0;
  signed char balance = 0;
  bool operator==(const Account&) const = default;
};

}  // namespace

TEST_CASE("a sum that no longer fits its column fails the whole write") {
  kf::Table<Account, kf::Key<&Account::id>> table;
  table.append({{1, 100}, {2, 120}});
  const Unharmed unharmed(table);
  auto merge = table.merge({{1, 10}, {2, 10}})
                   .when_matched()
                   .update(kf::target<&Account::balance> =
                               kf::target<&Account::balance> + kf::source<&Account::balance>);
  CHECK(error_of<kf::ValueOutOfRange>([&] { merge.execute(); }).column == "balance");
}
