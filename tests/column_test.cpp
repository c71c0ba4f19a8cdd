#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <boost/preprocessor/cat.hpp>
#include <boost/preprocessor/punctuation/comma_if.hpp>
#include <boost/preprocessor/repetition/repeat.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

using Names = std::vector<std::string_view>;

template <class Row>
Names names() {
  return Names(kf::column_names<Row>.begin(), kf::column_names<Row>.end());
}

struct Order {
  int id = 0;
  std::string status;
  std::optional<int> cents;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))

// A class that shows nothing but functions.
class Account {
 public:
  Account() = default;
  Account(int number, std::string owner) : number_(number), owner_(std::move(owner)) {}
  int number() const { return number_; }
  const std::string& owner() const { return owner_; }

 private:
  int number_ = 0;
  std::string owner_;
  BOOST_DESCRIBE_CLASS(Account, (), (), (), (number_, owner_))
};

struct Listed {
  int id = 0;
  double weight = 0;
};

struct Cached {
  int id = 0;
  std::string text;
  int cache = 0;
};

struct DescribedAndCached {
  int id = 0;
  int cache = 0;
};
BOOST_DESCRIBE_STRUCT(DescribedAndCached, (), (id))

struct Nothing {
  int id = 0;
};

struct Base {
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Base, (), (id))
struct Derived : Base {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(Derived, (Base), (name))

struct Pair {
  int a = 0, b = 0;
  bool operator==(const Pair&) const = default;
};
struct Nested {
  Pair pair;
  std::array<int, 3> three{};
  int last = 0;
};

struct WithArray {
  int id = 0;
  char code[4] = "abc";
  int last = 0;
};

#define KEYFOLD_MEMBER(z, n, text) int BOOST_PP_CAT(c, n) = n;
#define KEYFOLD_POINTER(z, n, text) BOOST_PP_COMMA_IF(n) & Wide::BOOST_PP_CAT(c, n)
struct Wide {
  BOOST_PP_REPEAT(80, KEYFOLD_MEMBER, )
};

template <class T>
struct Generic {
  T value{};
  bool good() const noexcept { return true; }
};

}  // namespace

template <>
struct keyfold::columns_of<Listed> : keyfold::Columns<&Listed::weight, &Listed::id> {};
template <>
struct keyfold::columns_of<Cached> : keyfold::Columns<&Cached::id, &Cached::text>,
                                     keyfold::Ignored<&Cached::cache> {};
template <>
struct keyfold::columns_of<DescribedAndCached> : keyfold::DescribedColumns<DescribedAndCached>,
                                                 keyfold::Ignored<&DescribedAndCached::cache> {};
template <>
struct keyfold::columns_of<Nested> : keyfold::Columns<&Nested::pair, &Nested::three, &Nested::last> {};
template <>
struct keyfold::columns_of<WithArray> : keyfold::Columns<&WithArray::id, &WithArray::code, &WithArray::last> {
};
template <>
struct keyfold::columns_of<Wide> : keyfold::Columns<BOOST_PP_REPEAT(80, KEYFOLD_POINTER, )> {};

TEST_CASE("a described struct has its columns in the order of the description") {
  STATIC_REQUIRE(kf::HasColumns<Order>);
  STATIC_REQUIRE(kf::column_count<Order> == 3);
  CHECK(names<Order>() == Names{"id", "status", "cents"});
}

TEST_CASE("a described class has its private members as columns") {
  CHECK(names<Account>() == Names{"number_", "owner_"});

  kf::Table<Account, kf::Key<&Account::number>> accounts;
  accounts.upsert({Account(1, "Ada"), Account(2, "Bob")});
  const auto result = accounts.upsert({Account(1, "Ada"), Account(2, "Cy")});
  CHECK(result.metrics().unchanged == 1);
  CHECK(result.metrics().updated == 1);
  CHECK(accounts.at(2).owner() == "Cy");
  CHECK(result.changes()[0].columns().names() == Names{"owner_"});
}

TEST_CASE("the base of a described struct brings its columns first") {
  CHECK(names<Derived>() == Names{"id", "name"});
}

TEST_CASE("columns_of lists columns in the order given") {
  CHECK(names<Listed>() == Names{"weight", "id"});
  CHECK(kf::column_index<Listed>("weight") == 0);
  CHECK(kf::column_index<Listed>("id") == 1);
}

TEST_CASE("a column that is not there has the index column_count") {
  CHECK(kf::column_index<Order>("ids") == 3);
  CHECK(kf::column_index<Order>("") == 3);
  CHECK(kf::column_index<Order>("ID") == 3);
}

TEST_CASE("a row type without a list has no columns") {
  STATIC_REQUIRE_FALSE(kf::HasColumns<Nothing>);
  STATIC_REQUIRE(kf::column_count<Nothing> == 0);
  STATIC_REQUIRE(kf::ColumnMask<Nothing>::size() == 0);
  CHECK(kf::ColumnMask<Nothing>().names().empty());
}

TEST_CASE("an ignored member is no column") {
  CHECK(names<Cached>() == Names{"id", "text"});
  CHECK(kf::column_index<Cached>("cache") == 2);
  CHECK(names<DescribedAndCached>() == Names{"id"});
}

TEST_CASE("a row that differs in an ignored member only is unchanged") {
  kf::Table<Cached, kf::Key<&Cached::id>> table;
  table.insert({1, "a", 10});
  const auto first = table.upsert({1, "a", 11});
  CHECK(first.metrics().unchanged == 1);
  CHECK_FALSE(first.committed());
  CHECK(table.at(1).cache == 10);

  const auto second = table.upsert({1, "b", 12});  // the whole row is taken, its ignored member too
  CHECK(second.metrics().updated == 1);
  CHECK(table.at(1).cache == 12);
}

TEST_CASE("insert_all() from another type leaves an ignored member at its default") {
  struct Source {
    int id;
    std::string text;
  };
  kf::Table<Cached, kf::Key<&Cached::id>> table;
  const std::vector<Cached> rows = {{1, "a", 7}};
  table.append(rows);
  CHECK(table.at(1).cache == 7);  // same type: the row as it is

  const std::vector<Order> orders = {{2, "b", 3}};
  table.merge(orders)
      .on<&Order::id>()
      .when_not_matched()
      .insert(kf::target<&Cached::id> = kf::source<&Order::id>)
      .execute();
  CHECK(table.at(2).cache == 0);
}

TEST_CASE("eighty columns need no description") {
  STATIC_REQUIRE(kf::column_count<Wide> == 80);
  CHECK(kf::column_names<Wide>[0] == "c0");
  CHECK(kf::column_names<Wide>[79] == "c79");
  CHECK(kf::column_index<Wide>("c53") == 53);

  kf::Table<Wide, kf::Key<&Wide::c0>> table;
  table.insert(Wide());
  Wide changed;
  changed.c53 = 1;
  changed.c79 = 2;
  const auto result = table.upsert(changed);
  CHECK(result.changes()[0].columns().names() == Names{"c53", "c79"});
  CHECK(table.upsert(changed).metrics().unchanged == 1);
}

TEST_CASE("members that are aggregates or arrays count as one column") {
  STATIC_REQUIRE(kf::column_count<Nested> == 3);
  STATIC_REQUIRE(kf::column_count<WithArray> == 3);
  kf::Table<Nested, kf::Key<&Nested::last>> table;
  table.insert({{1, 2}, {1, 2, 3}, 9});
  CHECK(table.upsert({{1, 2}, {1, 2, 3}, 9}).metrics().unchanged == 1);
  const auto result = table.upsert({{1, 2}, {1, 2, 4}, 9});
  CHECK(result.changes()[0].columns().names() == Names{"three"});
}

TEST_CASE("a column of a C array is compared and copied") {
  kf::Table<WithArray, kf::Key<&WithArray::id>> table;
  table.insert({1, "abc", 0});
  CHECK(table.upsert({1, "abc", 0}).metrics().unchanged == 1);
  CHECK(table.upsert({1, "abd", 0}).metrics().updated == 1);
  CHECK(std::string_view(table.at(1).code) == "abd");
}

TEST_CASE("NaN in a column is no change") {
  kf::Table<Listed, kf::Key<&Listed::id>> table;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  table.insert({1, nan});
  CHECK(table.upsert({1, nan}).metrics().unchanged == 1);
  CHECK(table.upsert({1, 0.0}).metrics().updated == 1);
  CHECK(table.upsert({1, -0.0}).metrics().unchanged == 1);
  CHECK(table.upsert({1, nan}).metrics().updated == 1);
}

TEST_CASE("a member is called as the source calls it") {
  using kf::detail::member_name;
  CHECK(member_name<&Order::status> == "status");
  CHECK(member_name<&Account::owner> == "owner");
  CHECK(member_name<&Generic<int>::value> == "value");
  CHECK(member_name<&Generic<std::vector<std::pair<int, long>>>::value> == "value");
  CHECK(member_name<&Generic<double>::good> == "good");
  CHECK(member_name<&Generic<char[3]>::value> == "value");
  CHECK(member_name<&Derived::id> == "id");
  struct Local {
    int inner;
  };
  CHECK(member_name<&Local::inner> == "inner");
}

TEST_CASE("a callable has no name") {
  constexpr auto twice = [](const Order& order) { return 2 * order.id; };
  CHECK(kf::detail::member_name<twice> == "<callable>");
}

TEST_CASE("a new column mask is empty") {
  const kf::ColumnMask<Order> mask;
  CHECK(mask.size() == 3);
  CHECK(mask.count() == 0);
  CHECK_FALSE(mask.any());
  CHECK(mask.names().empty());
  CHECK_FALSE(mask.contains<&Order::id>());
}

TEST_CASE("a column mask holds the columns set in it") {
  kf::ColumnMask<Order> mask;
  mask.set(2);
  CHECK(mask.any());
  CHECK(mask.count() == 1);
  CHECK(mask.test(2));
  CHECK_FALSE(mask.test(0));
  CHECK(mask.contains<&Order::cents>());
  CHECK_FALSE(mask.contains<&Order::status>());
  mask.set(0);
  CHECK(mask.names() == Names{"id", "cents"});
}

TEST_CASE("a full column mask holds every column") {
  kf::ColumnMask<Order> mask;
  mask.set_all();
  CHECK(mask.count() == 3);
  CHECK(mask.names() == Names{"id", "status", "cents"});
}

TEST_CASE("column masks compare by the columns in them") {
  kf::ColumnMask<Order> a, b;
  CHECK(a == b);
  a.set(1);
  CHECK_FALSE(a == b);
  b.set(1);
  CHECK(a == b);
}
