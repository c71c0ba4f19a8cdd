#include <iomanip>  // first: std::quoted is a name that must not get in the way

#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/istream.hpp>
#include <range/v3/view/transform.hpp>

#include <cmath>
#include <filesystem>
#include <list>
#include <sstream>
#include <stdexcept>
#include <variant>

#include "support/catch.hpp"

// clang-format off: the expected tables stay in one piece

namespace {

struct Customer {
  int id = 0;
  std::string name;
  std::optional<std::string> city;
  bool operator==(const Customer&) const = default;
};
BOOST_DESCRIBE_STRUCT(Customer, (), (id, name, city))

using Customers = kf::Table<Customer, kf::Key<&Customer::id>>;

// A clock that stands still: commit n is n - 1 microseconds after noon.
kf::TableOptions at_noon() {
  using namespace std::chrono;
  kf::TableOptions options;
  options.clock = [] { return kf::Timestamp(sys_days(2026y / 10 / 4) + 12h); };
  return options;
}

template <class Value>
struct Cell {
  Value value;
};
BOOST_DESCRIBE_STRUCT(Cell<std::string>, (), (value))
BOOST_DESCRIBE_STRUCT(Cell<std::optional<std::string>>, (), (value))

struct Refusing {
  Refusing() = default;
  explicit Refusing(int) { throw std::runtime_error("refused"); }
  std::string text;
};

using Any = std::variant<int, std::string, Refusing>;
BOOST_DESCRIBE_STRUCT(Cell<Any>, (), (value))

// A range of its own kind, and no text.
struct Tree {
  std::vector<Tree> branches;
  auto begin() const { return branches.begin(); }
  auto end() const { return branches.end(); }
};
BOOST_DESCRIBE_STRUCT(Cell<Tree>, (), (value))
BOOST_DESCRIBE_STRUCT(Cell<std::filesystem::path>, (), (value))
BOOST_DESCRIBE_STRUCT(Cell<std::vector<std::filesystem::path>>, (), (value))

// The one value of a table of one row and one column, without the lines around it.
template <class Value, class... Options>
std::string printed(Value value, Options... options) {
  const std::vector<Cell<Value>> rows{{std::move(value)}};
  const std::string text = kf::print(rows, options...).text();
  const auto second_line = text.find('\n', text.find('\n') + 1) + 1;
  return text.substr(second_line, text.find("\n(1 row)\n") - second_line);
}

std::string text(const auto& streamed) {
  std::ostringstream stream;
  stream << streamed;
  return stream.str();
}

}  // namespace

TEST_CASE("print: rows in columns, numbers to the right, NULL for an empty optional") {
  Customers customers;
  customers.append({{1, "Ann", "Bergen"}, {20, "Ole Olsen", std::nullopt}, {-300, "", "Oslo"}});

  CHECK(text(kf::print(customers)) ==
        "  id | name      | city\n"
        "-----+-----------+-------\n"
        "   1 | Ann       | Bergen\n"
        "  20 | Ole Olsen | NULL\n"
        "-300 |           | Oslo\n"
        "(3 rows)\n");
}

TEST_CASE("print: a table of no rows, of one row") {
  Customers customers;
  CHECK(text(kf::print(customers)) ==
        "id | name | city\n"
        "---+------+-----\n"
        "(0 rows)\n");

  customers.insert({1, "Ann", std::nullopt});
  CHECK(text(kf::print(customers)) ==
        "id | name | city\n"
        "---+------+-----\n"
        " 1 | Ann  | NULL\n"
        "(1 row)\n");
}

TEST_CASE("print: max_rows cuts the rows and tells how many it left out") {
  Customers customers;
  customers.append({{1, "Ann", "Oslo"}, {2, "Bo", "Rome"}, {3, "Christopher", "Split"}});

  CHECK(text(kf::print(customers, kf::max_rows(1))) ==
        "id | name | city\n"
        "---+------+-----\n"
        " 1 | Ann  | Oslo\n"
        "... 2 more rows\n");
  CHECK_THAT(text(kf::print(customers, kf::max_rows(2))), keyfold_test::contains("\n... 1 more row\n"));
  CHECK_THAT(text(kf::print(customers, kf::max_rows(3))), keyfold_test::contains("\n(3 rows)\n"));
  CHECK(text(kf::print(customers, kf::max_rows(0))) ==
        "id | name | city\n"
        "---+------+-----\n"
        "... 3 more rows\n");
}

TEST_CASE("print: widths are counted in code points") {
  Customers customers;
  customers.append({{1, "Zoë", "Åsgårdstrand"}, {2, "日本", "Köln"}, {3, "Anna", "🦊"}});

  CHECK(text(kf::print(customers)) ==
        "id | name | city\n"
        "---+------+-------------\n"
        " 1 | Zoë  | Åsgårdstrand\n"
        " 2 | 日本   | Köln\n"
        " 3 | Anna | 🦊\n"
        "(3 rows)\n");
}

TEST_CASE("print: what would break the line is escaped") {
  CHECK(printed(std::string("two\nlines")) == "two\\nlines");
  CHECK(printed(std::string("\r\t\x1b[31m\x7f")) == "\\r\\t\\x1b[31m\\x7f");
  CHECK(printed(std::string("nul\0!", 5)) == "nul\\x00!");
  CHECK(printed(std::string("C:\\new")) == "C:\\\\new");
  CHECK(printed(std::string("\u0085")) == "\\u0085");
  CHECK(printed(std::string("a\u2028b\u202Ec\u2066")) == "a\\u2028b\\u202ec\\u2066");
  CHECK(printed(std::string("a\u061Cb\u200Ec\u200F")) == "a\\u061cb\\u200ec\\u200f");
  CHECK(printed(std::string("\u00A0\u200D\uFF21")) == "\u00A0\u200D\uFF21");
}

TEST_CASE("print: bytes that are not UTF-8 are escaped one by one") {
  CHECK(printed(std::string("caf\xE9")) == "caf\\xe9");              // Latin-1
  CHECK(printed(std::string("\xC3(")) == "\\xc3(");                  // a sequence that does not go on
  CHECK(printed(std::string("\xE2\x82")) == "\\xe2\\x82");           // one that is cut off
  CHECK(printed(std::string("\xC0\xAF")) == "\\xc0\\xaf");           // an overlong slash
  CHECK(printed(std::string("\xE0\x80\xAF")) == "\\xe0\\x80\\xaf");  // and a longer one
  CHECK(printed(std::string("\xF0\x80\x80\xAF")) == "\\xf0\\x80\\x80\\xaf");
  CHECK(printed(std::string("\xED\xA0\x80")) == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printed(std::string("\xF4\x90\x80\x80")) == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  CHECK(printed(std::string("\xFF")) == "\\xff");
  CHECK(printed(std::string("\xF4\x8F\xBF\xBF")) == "\xF4\x8F\xBF\xBF");  // U+10FFFF
}

TEST_CASE("print: a text that would mislead stands in quotes") {
  using Text = std::optional<std::string>;
  CHECK(printed(Text()) == "NULL");
  CHECK(printed(Text("NULL")) == "'NULL'");
  CHECK(printed(std::string("NULL")) == "'NULL'");
  CHECK(printed(Text("'NULL'")) == "'''NULL'''");
  CHECK(printed(Text("null")) == "null");
  CHECK(printed(Text("")).empty());
  CHECK(printed(Text(" ")) == "' '");
  CHECK(printed(Text(" a")) == "' a'");
  CHECK(printed(Text("a ")) == "'a '");
  CHECK(printed(Text("a b")) == "a b");
  CHECK(printed(Text("a | b")) == "'a | b'");
  CHECK(printed(Text("a -> b")) == "'a -> b'");
  CHECK(printed(Text("it's")) == "it's");
}

TEST_CASE("print: max_width cuts texts, by code points, and nothing else") {
  CHECK(printed(std::string("abcdef"), kf::max_width(6)) == "abcdef");
  CHECK(printed(std::string("abcdefg"), kf::max_width(6)) == "abc...");
  CHECK(printed(std::string("äöüß"), kf::max_width(4)) == "äöüß");
  CHECK(printed(std::string("äöüßé"), kf::max_width(4)) == "ä...");
  CHECK(printed(std::string("abcd"), kf::max_width(2)) == "..");
  CHECK(printed(std::string("abcd"), kf::max_width(0)).empty());

  Customers customers;
  customers.append({{1234567, "Christopher", std::nullopt}});
  CHECK(text(kf::print(customers, kf::max_width(6))) ==
        "     id | name   | city\n"
        "--------+--------+-----\n"
        "1234567 | Chr... | NULL\n"
        "(1 row)\n");
}

namespace {

enum class Size { small, large };
BOOST_DESCRIBE_ENUM(Size, small, large)

struct Money {
  int cents = 0;
};
std::string to_string(const Money& money) {
  return money.cents == 0 ? "NULL" : std::to_string(money.cents) + " ct";
}

struct Everything {
  bool flag = false;
  char letter = 'x';
  signed char tiny = 0;
  double ratio = 0;
  Size size = Size::small;
  kf::Timestamp at;
  std::chrono::sys_days day;
  std::chrono::seconds wait{0};
  Money price;
  std::optional<std::uint64_t> maybe;
  std::vector<std::string> tags;
  std::pair<int, std::string> pair;
  std::variant<std::monostate, int, std::string> any;
};
BOOST_DESCRIBE_STRUCT(Everything, (), (flag, letter, tiny, ratio, size, at, day, wait, price, maybe, tags, pair, any))

}  // namespace

TEST_CASE("print: every type of column") {
  using namespace std::chrono;
  const kf::Timestamp at(sys_days(2026y / 1 / 2) + 3h + 4min + 5s + 60us);
  const std::list<Everything> rows{
      {true, '|', -8, 0.5, Size::large, at, 1999y / 12 / 31, 90s, {1250}, 18446744073709551615U, {"a", "b|c"}, {7, "x"}, 9},
      {false, 'y', 10, -INFINITY, Size::small, {}, {}, -1s, {}, std::nullopt, {}, {-1, "NULL"}, {}},
      {false, '\n', 0, 1e21, Size(7), {}, {}, 0s, {}, 0U, {""}, {0, ""}, "NULL"}};

  CHECK(text(kf::print(rows)) ==
        "flag  | letter | tiny | ratio | size  | at                          | day        | wait | price   |                maybe | tags         | pair         | any\n"
        "------+--------+------+-------+-------+-----------------------------+------------+------+---------+----------------------+--------------+--------------+-------\n"
        "true  | '|'    |   -8 |   0.5 | large | 2026-01-02T03:04:05.000060Z | 1999-12-31 |   90 | 1250 ct | 18446744073709551615 | ['a', 'b|c'] | (7, 'x')     | 9\n"
        "false | y      |   10 |  -inf | small | 1970-01-01T00:00:00Z        | 1970-01-01 |   -1 | 'NULL'  |                 NULL | []           | (-1, 'NULL') | NULL\n"
        "false | \\n     |    0 | 1e+21 | 7     | 1970-01-01T00:00:00Z        | 1970-01-01 |    0 | 'NULL'  |                    0 | ['']         | (0, '')      | 'NULL'\n"
        "(3 rows)\n");
}

TEST_CASE("print: a variant is what it holds") {
  Any any = "text";
  CHECK(printed(any) == "text");
  any = 7;
  CHECK(printed(any) == "7");
  CHECK_THROWS_AS(any.emplace<2>(1), std::runtime_error);
  CHECK(printed(any) == "<valueless>");
}

TEST_CASE("print: a path is text, though it is a range of paths") {
  CHECK(printed(std::filesystem::path("/srv/data/a b.csv")) == "/srv/data/a b.csv");
  CHECK(printed(std::filesystem::path()).empty());
  CHECK(printed(std::vector<std::filesystem::path>{"a", "b/c"}) == "['a', 'b/c']");
}

TEST_CASE("print: a range of its own kind that is no text is a value") {
  CHECK(printed(Tree{}) == "<value>");
}

TEST_CASE("print: times whose year the calendar does not have") {
  std::string out;
  const auto told = [&](auto time) {
    out.clear();
    kf::detail::append_time(out, time);
    return out;
  };
  // 2^63 microseconds are 106,751,991.17 days.
  CHECK(told(kf::Timestamp::min()) == "-106751992 days since 1970-01-01");
  CHECK(told(kf::Timestamp::max()) == "106751991 days since 1970-01-01");
  CHECK(told(std::chrono::sys_time<std::chrono::nanoseconds>::min()) == "1677-09-21T00:12:43.145224Z");
  CHECK(told(std::chrono::sys_days(std::chrono::year::max() / 12 / 31)) == "32767-12-31");
  CHECK(told(std::chrono::sys_days(std::chrono::year::max() / 12 / 31) + std::chrono::days(1)) ==
        "11248738 days since 1970-01-01");
}

namespace {

struct Described {
  int id = 0;
  std::string name;
  int cache = 0;
  std::string initials() const { return name.substr(0, 1); }
};

}  // namespace

template <>
struct keyfold::columns_of<Described> : keyfold::Columns<&Described::name, &Described::id>,
                                        keyfold::Ignored<&Described::cache> {};

TEST_CASE("print: the column list decides which columns there are, and their order") {
  const std::vector<Described> rows{{1, "Ann", 99}};
  CHECK(text(kf::print(rows)) ==
        "name | id\n"
        "-----+---\n"
        "Ann  |  1\n"
        "(1 row)\n");
}

TEST_CASE("print: indexes, lookups, views and temporaries") {
  kf::Table<Customer, kf::Key<&Customer::id>, kf::OrderedBy<&Customer::name>> customers;
  customers.append({{1, "Cid", "Rome"}, {2, "Ann", "Oslo"}, {3, "Bo", "Rome"}});
  const std::string ann_bo =
      "id | name | city\n"
      "---+------+-----\n"
      " 2 | Ann  | Oslo\n"
      " 3 | Bo   | Rome\n"
      "(2 rows)\n";

  CHECK(text(kf::print(customers.by<&Customer::name>(), kf::max_rows(1))) ==
        "id | name | city\n"
        "---+------+-----\n"
        " 2 | Ann  | Oslo\n"
        "... 2 more rows\n");
  CHECK(text(kf::print(customers.by<&Customer::name>().range("A", "C"))) == ann_bo);
  CHECK(text(kf::print(std::vector<Customer>{{2, "Ann", "Oslo"}, {3, "Bo", "Rome"}})) == ann_bo);
  CHECK(text(kf::print(customers | ranges::views::filter([](const Customer& c) { return c.id > 1; }))) ==
        ann_bo);
  // A view whose size is not known: the rest is counted.
  CHECK_THAT(text(kf::print(customers.by<&Customer::name>().range("A", "Z"), kf::max_rows(1))),
             keyfold_test::contains("... 2 more rows\n"));

  const auto later = kf::print(customers, kf::max_rows(0));
  customers.clear();
  CHECK_THAT(text(later), keyfold_test::contains("(0 rows)\n"));  // reads the table when it is streamed
}

TEST_CASE("print: a change set shows kinds, and before and after of what an update changed") {
  Customers customers;
  customers.append({{1, "Ann", "Oslo"}, {2, "Bo", std::nullopt}, {3, "Cid", "Rome"}});
  const std::vector<Customer> incoming{{1, "Ann", "Bergen"}, {2, "Bob", "NULL"}, {4, "a -> b", std::nullopt}};
  const auto changes = customers.merge(incoming)
                           .when_matched()
                           .update_all()
                           .when_not_matched()
                           .insert_all()
                           .when_not_matched_by_source()
                           .erase()
                           .preview();

  CHECK(text(kf::print(changes)) ==
        "change | id | name      | city\n"
        "-------+----+-----------+---------------\n"
        "update |  1 | Ann       | Oslo -> Bergen\n"
        "update |  2 | Bo -> Bob | NULL -> 'NULL'\n"
        "insert |  4 | 'a -> b'  | NULL\n"
        "erase  |  3 | Cid       | Rome\n"
        "(4 changes)\n");
  CHECK_THAT(text(kf::print(changes, kf::max_rows(3))), keyfold_test::contains("NULL\n... 1 more change\n"));
  CHECK_THAT(text(kf::print(changes, kf::max_rows(1), kf::max_width(5))),
             keyfold_test::contains("| Oslo -> Be...\n"));
  CHECK(text(kf::print(kf::ChangeSet<Customer>())) ==
        "change | id | name | city\n"
        "-------+----+------+-----\n"
        "(0 changes)\n");
}

TEST_CASE("print: an update that changes the key shows both keys") {
  Customers customers;
  customers.append({{1, "Ann", "Oslo"}});
  const auto result = customers.merge({{1, "Ann", "Oslo"}})
                          .when_matched()
                          .update(kf::target<&Customer::id> = kf::source<&Customer::id> + 9)
                          .execute();
  CHECK(text(kf::print(result.changes())) ==
        "change |      id | name | city\n"
        "-------+---------+------+-----\n"
        "update | 1 -> 10 | Ann  | Oslo\n"
        "(1 change)\n");
}

TEST_CASE("print: a feed tells version and time of each change") {
  Customers customers(at_noon());
  customers.append({{1, "Ann", "Oslo"}, {2, "Bo", std::nullopt}});
  customers.upsert({1, "Ann", "Bergen"});
  customers.erase(2);

  CHECK(text(kf::print(customers.changes(1))) ==
        "version | timestamp                   | change | id | name | city\n"
        "--------+-----------------------------+--------+----+------+---------------\n"
        "      2 | 2026-10-04T12:00:00.000001Z | update |  1 | Ann  | Oslo -> Bergen\n"
        "      3 | 2026-10-04T12:00:00.000002Z | erase  |  2 | Bo   | NULL\n"
        "(2 changes)\n");
  CHECK(text(kf::print(customers.history_of(1), kf::max_rows(1))) ==
        "version | timestamp            | change | id | name | city\n"
        "--------+----------------------+--------+----+------+-----\n"
        "      1 | 2026-10-04T12:00:00Z | insert |  1 | Ann  | Oslo\n"
        "... 1 more change\n");
}

TEST_CASE("print: history, newest commit first") {
  Customers customers(at_noon());
  customers.append({{1, "Ann", "Oslo"}, {2, "Bo", "Rome"}});
  customers.erase(2);
  customers.insert({3, "Cid", "Rome"});

  CHECK(text(kf::print(customers.history())) ==
        "version | timestamp                   | operation | parameters   | metrics                  | metadata\n"
        "--------+-----------------------------+-----------+--------------+--------------------------+---------\n"
        "      3 | 2026-10-04T12:00:00.000002Z | INSERT    |              | source_rows=1 inserted=1 |\n"
        "      2 | 2026-10-04T12:00:00.000001Z | DELETE    | WHERE id = 2 | source_rows=1 deleted=1  |\n"
        "      1 | 2026-10-04T12:00:00Z        | APPEND    |              | source_rows=2 inserted=2 |\n"
        "(3 commits)\n");
  CHECK(
      text(kf::print(customers.history(), kf::max_rows(1))) ==
      "version | timestamp                   | operation | parameters | metrics                  | metadata\n"
      "--------+-----------------------------+-----------+------------+--------------------------+---------\n"
      "      3 | 2026-10-04T12:00:00.000002Z | INSERT    |            | source_rows=1 inserted=1 |\n"
      "... 2 more commits\n");
  CHECK(text(kf::print(Customers().history())) ==
        "version | timestamp | operation | parameters | metrics | metadata\n"
        "--------+-----------+-----------+------------+---------+---------\n"
        "(0 commits)\n");
}

TEST_CASE("print: commits of a merge, with their clauses and metadata, in any order") {
  Customers customers(at_noon());
  const auto city = [&](const std::string& name, std::string metadata) {
    customers.merge({{1, "Ann", name}, {2, "Bo", name}})
        .when_matched()
        .update_all()
        .when_not_matched(kf::source<&Customer::id> < 2)
        .insert_all()
        .metadata(std::move(metadata))
        .execute();
  };
  city("Oslo", "first|day");
  city("Rome", "NULL");
  city("Rome", "line 1\nline 2");

  const kf::History<Customer> history = customers.history();
  const std::vector<kf::Commit<Customer>> shuffled{history[1], history[2], history[0]};
  const std::string expected =
      "version | timestamp                   | operation | parameters           | metrics              | metadata\n"
      "--------+-----------------------------+-----------+----------------------+----------------------+---------------\n"
      "      3 | 2026-10-04T12:00:00.000002Z | MERGE     | ON source.id = ta... | source_rows=2 unc... | line 1\\nline 2\n"
      "      2 | 2026-10-04T12:00:00.000001Z | MERGE     | ON source.id = ta... | source_rows=2 upd... | 'NULL'\n"
      "      1 | 2026-10-04T12:00:00Z        | MERGE     | ON source.id = ta... | source_rows=2 ins... | 'first|day'\n"
      "(3 commits)\n";
  CHECK(text(kf::print(shuffled, kf::max_width(20))) == expected);
  CHECK(text(kf::print(history, kf::max_width(20))) == expected);
}

TEST_CASE("print: a commit in a line") {
  Customers customers(at_noon());
  customers.merge({{1, "Ann", "Oslo"}, {2, "Bo", "Rome"}})
      .when_not_matched(kf::source<&Customer::name> != "\n")
      .insert_all()
      .metadata("Monday's\nfile")
      .execute();
  customers.clear();

  CHECK(text(customers.history()[0]) ==
        "version 1 at 2026-10-04T12:00:00Z: MERGE ON source.id = target.id WHEN NOT MATCHED AND (source.name <> '\\n') THEN INSERT *; source_rows=2 inserted=2; metadata 'Monday''s\\nfile'");
  CHECK(text(customers.history()[1]) ==
        "version 2 at 2026-10-04T12:00:00.000001Z: TRUNCATE; source_rows=0 deleted=2 not_matched_by_source_deleted=2");
}

TEST_CASE("print: metrics name the counts that are not zero") {
  CHECK(text(kf::Metrics{}) == "source_rows=0");

  kf::Metrics all;
  all.source_rows = 60;
  all.inserted = 1;
  all.updated = 5;
  all.deleted = 9;
  all.unchanged = 10;
  all.skipped = 11;
  all.matched_updated = 2;
  all.not_matched_by_source_updated = 3;
  all.matched_deleted = 4;
  all.not_matched_by_source_deleted = 5;
  all.dropped_duplicates = 12;
  all.dropped_late = 13;
  CHECK(
      text(all) ==
      "source_rows=60 inserted=1 updated=5 deleted=9 unchanged=10 skipped=11 not_matched_by_source_updated=3 not_matched_by_source_deleted=5 dropped_duplicates=12 dropped_late=13");
}

TEST_CASE("print: the state of the stream does not matter") {
  Customers customers;
  customers.insert({255, "Ann", "Oslo"});
  std::ostringstream stream;
  stream << std::hex << std::showpos << std::setfill('*') << std::setw(60) << kf::print(customers);
  CHECK(stream.str() == kf::print(customers).text());
  CHECK(stream.width() == 0);

  std::ostringstream closed;
  closed.setstate(std::ios::failbit);
  closed << kf::print(customers);
  CHECK(closed.str().empty());
}

namespace {

struct Unspeakable {};
[[noreturn]] std::string to_string(const Unspeakable&) { throw std::runtime_error("no words"); }

struct Secret {
  int id = 0;
  Unspeakable what;
};
BOOST_DESCRIBE_STRUCT(Secret, (), (id, what))

}  // namespace

TEST_CASE("print: nothing is written if a value cannot be shown") {
  const std::vector<Secret> rows{{1, {}}};
  std::ostringstream stream;
  CHECK_THROWS_WITH(stream << kf::print(rows), "no words");
  CHECK(stream.str().empty());
}

TEST_CASE("print: rows that can be read only once") {
  std::istringstream ids("1 2 3");
  CHECK(text(kf::print(ranges::istream_view<int>(ids) |
                           ranges::views::transform([](int id) { return Customer{id, "n", {}}; }),
                       kf::max_rows(2))) ==
        "id | name | city\n"
        "---+------+-----\n"
        " 1 | n    | NULL\n"
        " 2 | n    | NULL\n"
        "... 1 more row\n");
}
