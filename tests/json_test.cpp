#include <keyfold/json.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <list>
#include <random>
#include <sstream>

#include "support/column_types.hpp"
#include "support/property.hpp"
#include "support/rows.hpp"
#include "support/temporary_directory.hpp"

namespace kf = keyfold;
using keyfold_test::ColumnTypes;
using keyfold_test::Grade;
using keyfold_test::Letter;
using keyfold_test::Money;
using keyfold_test::rows_of;
using keyfold_test::Size;
using keyfold_test::Unharmed;

namespace {

enum class Color { red = 0xFF0000, green = 0x00FF00 };  // with a text of the user's

struct Item {
  std::string sku;
  std::int64_t stock = 0;
  std::optional<std::string> note;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (sku, stock, note))

struct Part {
  int number = 0;
  std::optional<double> weight;
  bool operator==(const Part&) const = default;
};
BOOST_DESCRIBE_STRUCT(Part, (), (number, weight))

struct Everything : ColumnTypes {
  std::vector<std::string> tags;
  std::list<std::optional<int>> scores;
  std::vector<bool> bits;
  Part part;
  std::vector<Part> parts;
  std::optional<Part> maybe_part;
};
BOOST_DESCRIBE_STRUCT(Everything, (ColumnTypes), (tags, scores, bits, part, parts, maybe_part))

template <class T>
struct One {
  T value{};
};

struct Preset {
  std::optional<int> n = 5;
  int m = 7;
};
BOOST_DESCRIBE_STRUCT(Preset, (), (n, m))

}  // namespace

template <class T>
struct keyfold::columns_of<One<T>> : keyfold::Columns<&One<T>::value> {};

template <>
struct keyfold::csv_value<Color> {
  static std::string expected() { return "red or green"; }
  static std::optional<Color> parse(std::string_view text) {
    return text == "red"     ? std::optional(Color::red)
           : text == "green" ? std::optional(Color::green)
                             : std::nullopt;
  }
  static std::optional<std::string> text(Color color) { return color == Color::red ? "red" : "green"; }
};

namespace {

template <class Row>
std::vector<Row> read(const std::string& text, const kf::JsonOptions& options = {}) {
  std::istringstream stream(text);
  return kf::read_json<Row>(stream, "test.json", options);
}

template <class Row>
std::string written(const std::vector<Row>& rows, const kf::JsonOptions& options = {}) {
  std::ostringstream stream;
  kf::write_json(stream, rows, options);
  return stream.str();
}

template <class Row>
kf::JsonError error_of(const std::string& text, const kf::JsonOptions& options = {}) {
  INFO(text);
  return keyfold_test::error_of<kf::JsonError>([&] { static_cast<void>(read<Row>(text, options)); });
}

void check(const kf::JsonError& error, std::size_t line, std::size_t offset, const std::string& column,
           const std::string& message) {
  CHECK(error.file == "test.json");
  CHECK(error.line == line);
  CHECK(error.offset == offset);
  CHECK(error.column == column);
  CHECK_THAT(error.what(), keyfold_test::contains(message));
}

// The value of type T that `json` is; and the JSON of a value.
template <class T>
T value(const std::string& json) {
  return read<One<T>>("{\"value\":" + json + "}").at(0).value;
}
template <class T>
bool refused(const std::string& json) {
  const auto error = error_of<One<T>>("{\"value\":" + json + "}");
  return error.column == "value" && error.offset == 9;
}
template <class T>
std::string json(const T& value, kf::JsonTimes times = kf::JsonTimes::iso8601) {
  const std::string line = written(std::vector{One<T>{value}}, {.times = times});
  return line.substr(9, line.size() - 11);
}

}  // namespace

TEST_CASE("json: a row is an object a line, its columns the members") {
  CHECK(written(std::vector<Item>{{"A-1", 12, "red"}, {"B-2", -1, {}}}) ==
        "{\"sku\":\"A-1\",\"stock\":12,\"note\":\"red\"}\n{\"sku\":\"B-2\",\"stock\":-1,\"note\":null}\n");
  CHECK(written(std::vector<Item>()).empty());
}

TEST_CASE("json: members are found by name, in any order and with any space around them") {
  const std::vector<Item> expected{{"A", 1, "x"}, {"B", 2, {}}};
  CHECK(
      read<Item>("{\"sku\":\"A\",\"stock\":1,\"note\":\"x\"}\n{\"note\":null,\"stock\":2,\"sku\":\"B\"}\n") ==
      expected);
  CHECK(read<Item>(" { \"note\" :\t\"x\" , \"sku\": \"A\",\"stock\" : 1 } \r\n"
                   "{\"stock\":2,\"sku\":\"B\",\"note\":null}") == expected);
}

TEST_CASE("json: blank lines, CRLF, a byte order mark and a missing final newline make no difference") {
  const std::string line = "{\"sku\":\"A\",\"stock\":1,\"note\":null}";
  const std::vector<Item> once{{"A", 1, {}}};
  CHECK(read<Item>("\xEF\xBB\xBF" + line) == once);
  CHECK(read<Item>("\n \t\r\n" + line + "\r\n\n") == once);
  CHECK(read<Item>("").empty());
  CHECK(read<Item>("\n\n").empty());
  check(error_of<Item>("\xEF\xBB\xBFx"), 1, 3, "", "not JSON");
}

TEST_CASE("json: whole numbers are exact to their last digit, and nothing else is a whole number") {
  CHECK(value<std::int64_t>("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(value<std::int64_t>("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK(value<std::uint64_t>("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
  CHECK(value<std::int64_t>("9007199254740993") == 9007199254740993);
  CHECK(json(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(json(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(json(std::int8_t{-128}) == "-128");
  CHECK(json(std::uint8_t{65}) == "65");
  CHECK(value<int>("-0") == 0);
  CHECK(refused<std::uint64_t>("18446744073709551616"));
  CHECK(refused<std::int64_t>("9223372036854775808"));
  CHECK(refused<unsigned>("-1"));
  CHECK(refused<std::int8_t>("128"));
  CHECK(refused<int>("1.0"));
  CHECK(refused<int>("1e3"));
  CHECK(refused<int>("\"12\""));
  CHECK(refused<int>("true"));
  CHECK(refused<int>("[1]"));
  CHECK(refused<int>("{}"));
}

TEST_CASE("json: floating-point numbers come back as they were") {
  for (const double number : {0.1, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 1.0 / 3, 1e22,
                              1e23, 9007199254740993.0, 123456789.125}) {
    INFO(number);
    CHECK(value<double>(json(number)) == number);
  }
  CHECK(json(0.1) == "0.1");
  CHECK(json(0.1F) == "0.1");
  CHECK(std::signbit(value<double>(json(-0.0))));
  CHECK(value<double>("12") == 12);
  CHECK(value<double>("-1.5E+2") == -150);
  // Just above the middle of two floats, which a detour over double would round down.
  CHECK(value<float>("1.00000005960464477540") == std::nextafter(1.0F, 2.0F));
  CHECK(refused<double>("1e999"));
  CHECK(refused<float>("1e39"));
  CHECK(refused<double>("\"1.5\""));
  CHECK(refused<double>("true"));
}

TEST_CASE("json: numbers that JSON does not have are texts") {
  CHECK(json(std::numeric_limits<double>::quiet_NaN()) == "\"NaN\"");
  CHECK(json(std::numeric_limits<float>::infinity()) == "\"Infinity\"");
  CHECK(json(-std::numeric_limits<double>::infinity()) == "\"-Infinity\"");
  CHECK(json(std::chrono::duration<double>(std::numeric_limits<double>::infinity())) == "\"Infinity\"");
  CHECK(std::isnan(value<double>("\"NaN\"")));
  CHECK(value<float>("\"-Infinity\"") == -std::numeric_limits<float>::infinity());
  CHECK(value<double>("\"Infinity\"") == std::numeric_limits<double>::infinity());
  check(error_of<One<double>>("{\"value\":NaN}"), 1, 9, "", "not JSON");
}

TEST_CASE("json: null is the empty optional, and nothing else is") {
  CHECK(value<std::optional<std::string>>("null") == std::nullopt);
  CHECK(value<std::optional<std::string>>("\"\"") == "");
  CHECK(json(std::optional<std::string>("")) == "\"\"");
  check(error_of<Item>("{\"sku\":null,\"stock\":1,\"note\":null}"), 1, 7, "sku",
        "test.json:1:8: column 'sku' is null where text is needed; fill it in, or make the column a "
        "std::optional");
}

TEST_CASE("json: a missing column is an error, or keeps its default when the options say so") {
  check(error_of<Item>("{\"sku\":\"A\",\"stock\":1}"), 1, 0, "note", "is missing; add it, or set");
  CHECK(read<Item>("{\"sku\":\"A\"}", {.allow_missing_columns = true}) == std::vector<Item>{{"A", 0, {}}});
  const auto rows = read<Preset>("{}\n{\"n\":null,\"m\":1}\n{}", {.allow_missing_columns = true});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].n == 5);
  CHECK(rows[1].n == std::nullopt);
  CHECK(rows[2].m == 7);
}

TEST_CASE("json: an unknown member is an error, or skipped with all that is in it") {
  const std::string line =
      "{\"sku\":\"A\",\"more\":{\"a\":[1,{\"b\":[]}],\"sku\":2},\"stock\":1,\"note\":null}";
  check(error_of<Item>(line), 1, 18, "more",
        "is no column of the row, which has sku, stock, note; rename it");
  CHECK(read<Item>(line, {.ignore_unknown_columns = true}) == std::vector<Item>{{"A", 1, {}}});
  check(error_of<Item>("{\"a\\nb\":1}"), 1, 8, "a\nb", "column 'a?b' is no column");
}

TEST_CASE("json: a member that is given twice is an error, wherever it stands") {
  check(error_of<Item>("{\"sku\":\"A\",\"stock\":1,\"note\":null,\"sku\":\"B\"}"), 1, 39, "",
        "the member 'sku' is given twice; remove one");
  check(error_of<Item>("\n{\"sku\":\"A\",\"s\\u0074ock\":1,\"stock\":[]}", {.allow_missing_columns = true}),
        2, 34, "", "'stock' is given twice");
  check(error_of<Item>("{\"x\":{\"y\":1,\"z\":2,\"y\":3}}", {true, true}), 1, 22, "", "'y' is given twice");
}

TEST_CASE("json: a member that is given twice is found among many, too") {
  for (int count = 1; count <= 40; ++count) {
    std::string line = "{";
    for (int i = 0; i < count; ++i) line += "\"m" + std::to_string(i * 7 % 41) + "\":0,";
    const std::size_t place = line.size() + 5;
    CHECK(read<Item>(line + "\"m41\":0}", {true, true}) == std::vector<Item>{{}});
    check(error_of<Item>(line + "\"m0\":0}", {true, true}), 1, place, "", "'m0' is given twice");
  }
}

TEST_CASE("json: texts are UTF-8, escaped where they must be") {
  CHECK(json(std::string("a\"b\\c\n\r\t\b\f\x01\x1F/\x7F\0z", 16)) ==
        "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f/\x7F\\u0000z\"");
  CHECK(json(std::string("Gr\u00F6\u00DFe \u20AC \U0001F600")) == "\"Gr\u00F6\u00DFe \u20AC \U0001F600\"");
  CHECK(value<std::string>("\"\\u00e9\\ud83d\\ude00\\/\\u0000\"") == std::string("\u00E9\U0001F600/\0", 8));
  CHECK(value<char>("\"\\n\"") == '\n');
  CHECK(refused<char>("\"ab\""));
  CHECK(refused<std::string>("12"));
}

TEST_CASE("json: bytes that are not UTF-8 are refused, read or written") {
  check(error_of<Item>("{\"sku\":\"A\xFF\"}"), 1, 9, "", "is not UTF-8");
  check(error_of<Item>("{\"sku\":\"\xED\xA0\x80\"}"), 1, 8, "", "is not UTF-8");  // half a surrogate pair
  check(error_of<Item>("{\"sku\":\"\\ud800\"}"), 1, 14, "", "not JSON");
  std::ostringstream out;
  const std::vector<Item> rows{{"A", 1, {}}, {"B", 2, "ab\xC3"}};
  const auto error = keyfold_test::error_of<kf::JsonError>([&] { kf::write_json(out, rows); });
  CHECK(error.line == 2);
  CHECK(error.column == "note");
  CHECK_THAT(error.what(), keyfold_test::contains("is not UTF-8 at its byte 2"));
}

TEST_CASE("json: times are ISO 8601 or a count in the unit of the column") {
  using namespace std::chrono;
  const kf::Timestamp at = sys_days(2026y / October / 4) + 12h + 30min + microseconds(5);
  CHECK(json(at) == "\"2026-10-04T12:30:00.000005Z\"");
  CHECK(json(at, kf::JsonTimes::epoch) == "1791117000000005");
  CHECK(value<kf::Timestamp>("\"2026-10-04T12:30:00.000005Z\"") == at);
  CHECK(value<kf::Timestamp>("1791117000000005") == at);
  CHECK(value<sys_time<milliseconds>>("1791117000001") == floor<milliseconds>(at) + 1ms);
  CHECK(json(sys_days(2026y / October / 4)) == "\"2026-10-04\"");
  CHECK(json(sys_days(2026y / October / 4), kf::JsonTimes::epoch) == "20730");
  CHECK(value<sys_days>("20730") == sys_days(2026y / October / 4));
  CHECK(value<year_month_day>("20730") == 2026y / October / 4);
  CHECK(value<year_month_day>("\"2026-10-04\"") == 2026y / October / 4);
  CHECK(json(year_month_day(2026y / October / 4), kf::JsonTimes::epoch) == "20730");
  CHECK(json(-90s) == "-90");
  for (const auto times : {kf::JsonTimes::iso8601, kf::JsonTimes::epoch})
    CHECK_THROWS_AS(json(year_month_day(2026y / February / 30), times), kf::JsonError);
  CHECK(refused<kf::Timestamp>("\"2026-10-04 12:30\""));
  CHECK(refused<kf::Timestamp>("1.5"));
  CHECK(refused<kf::Timestamp>("null"));
  CHECK(refused<sys_days>("\"2026-02-30\""));
  CHECK(refused<year_month_day>("9223372036854775807"));
  CHECK(refused<year_month_day>("-99999999"));
  CHECK(refused<year_month_day>("1.5"));
}

TEST_CASE("json: enums by name where they are described, else by number") {
  CHECK(json(Size::large) == "\"large\"");
  CHECK(json(Grade::low) == "-1");
  CHECK(json(Letter::a) == "\"a\"");  // its number is a char
  CHECK(value<Size>("\"small\"") == Size::small);
  CHECK(value<Grade>("1") == Grade::high);
  CHECK(value<Letter>("\"a\"") == Letter::a);
  CHECK(refused<Size>("0"));
  CHECK_THAT(error_of<One<Size>>("{\"value\":\"huge\"}").what(),
             keyfold_test::contains("found the text 'huge' where one of small, large is needed"));
  CHECK_THROWS_AS(json(static_cast<Size>(7)), kf::JsonError);
}

TEST_CASE("json: a bool may be 0 or 1, as MySQL's is") {
  CHECK(value<bool>("true"));
  CHECK_FALSE(value<bool>("0"));
  CHECK(value<bool>("1"));
  CHECK(refused<bool>("2"));
  CHECK(refused<bool>("\"true\""));
}

TEST_CASE("json: a type of one's own is the text of its csv_value, and reads numbers, too") {
  CHECK(json(Money{1250}) == "\"12.50\"");
  CHECK(value<Money>("\"12.50\"") == Money{1250});
  CHECK(value<Money>("12.50") == Money{1250});
  CHECK(refused<Money>("\"12,50\""));
  CHECK(refused<Money>("true"));
  CHECK(json(Color::green) == "\"green\"");
  CHECK(value<Color>("\"red\"") == Color::red);
}

TEST_CASE("json: lists are arrays, structs objects, and an error names the way to the value") {
  CHECK(json(std::vector<int>{1, 2}) == "[1,2]");
  CHECK(json(std::vector<std::vector<int>>{{}, {3}}) == "[[],[3]]");
  CHECK(value<std::vector<bool>>("[true,false]") == std::vector<bool>{true, false});
  CHECK(value<Part>("{\"weight\":1.5,\"number\":4}") == Part{4, 1.5});
  CHECK(json(std::vector<Part>{{1, {}}}) == "[{\"number\":1,\"weight\":null}]");
  const auto error = error_of<One<std::vector<Part>>>(
      "{\"value\":[{\"number\":1,\"weight\":1},{\"number\":1,\"weight\":\"x\"}]}");
  check(error, 1, 55, "value[1].weight", "found the text 'x' where a number such as -1.5 or 2e10 is needed");
  CHECK(error_of<One<std::vector<Part>>>("{\"value\":[1]}").column == "value[0]");
  CHECK(error_of<One<std::vector<Part>>>("{\"value\":1}").column == "value");
  CHECK(error_of<One<Part>>("{\"value\":{\"number\":1}}").column == "value.weight");
}

TEST_CASE("json: what is no object, or no JSON, is told by line and offset") {
  check(error_of<Item>("[1]"), 1, 0, "",
        "found an array where a row is needed, an object with the columns sku, stock, note; write one object "
        "a line");
  check(error_of<Item>("null"), 1, 0, "", "is null where a row is needed, an object");
  check(error_of<Item>("{\"sku\":\"A\",\n"), 1, 11, "", "the line ends inside a value; is the file cut off");
  check(error_of<Item>("{\"sku\" \"A\"}"), 1, 7, "", "this is not JSON (syntax error); correct the line");
  check(error_of<Item>("{\"sku\":\"A\",}"), 1, 11, "", "not JSON");
  check(error_of<Item>("\n\n{} {}", {.allow_missing_columns = true}), 3, 3, "",
        "more text follows the value");
  check(error_of<Item>("'x'"), 1, 0, "", "not JSON");
  CHECK_THAT(error_of<Item>(std::string(40, '[')).what(), keyfold_test::contains("nested more than 32 deep"));
}

TEST_CASE("json: an error leaves with the rows before it delivered") {
  std::istringstream stream("{\"n\":1,\"m\":1}\n{\"n\":2,\"m\":2}\n{\"n\":3}\n");
  auto rows = kf::json_rows<Preset>(stream, "test.json");
  std::vector<int> seen;
  CHECK_THROWS_AS(
      [&] {
        for (const Preset& row : rows) seen.push_back(row.m);
      }(),
      kf::JsonError);
  CHECK(seen == std::vector<int>{1, 2});
}

TEST_CASE("json: a merge reads its source from lines, and a bad line changes nothing") {
  kf::Table<Item, kf::Key<&Item::sku>> table;
  table.insert({"A", 1, {}});
  std::istringstream good(
      "{\"sku\":\"A\",\"stock\":5,\"note\":null}\n{\"sku\":\"B\",\"stock\":6,\"note\":\"n\"}\n");
  table.merge(kf::json_rows<Item>(good))
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
  CHECK(rows_of(table) == std::vector<Item>{{"A", 5, {}}, {"B", 6, "n"}});
  const Unharmed unharmed(table);
  std::istringstream bad("{\"sku\":\"C\",\"stock\":5,\"note\":null}\n{\"sku\":\"D\",\"stock\":\n");
  CHECK_THROWS_AS(table.append(kf::json_rows<Item>(bad)), kf::JsonError);
}

TEST_CASE("json: files are opened by path, and an error names the path") {
  const keyfold_test::TemporaryDirectory directory;
  const auto file = directory.path / "items.ndjson";
  const std::vector<Item> rows{{"A", 1, {}}};
  kf::write_json(file, rows);
  CHECK(kf::read_json<Item>(file) == rows);
  const auto missing = keyfold_test::error_of<kf::JsonError>(
      [&] { static_cast<void>(kf::read_json<Item>(directory.path / "none")); });
  CHECK(missing.file == (directory.path / "none").string());
  CHECK(missing.line == 0);
  CHECK_THROWS_AS(kf::write_json(directory.path / "none" / "x", rows), kf::JsonError);
}

TEST_CASE("json: a stream that takes no more is an error, not a short file") {
  std::ostringstream stream;
  stream.setstate(std::ios::badbit);
  CHECK_THROWS_AS(kf::write_json(stream, std::vector<Item>(3)), kf::JsonError);
}

TEST_CASE("json: a stream that breaks is an error, not the end of the file") {
  struct Broken : std::streambuf {
    int underflow() override { throw 1; }
  } buffer;
  std::istream stream(&buffer);
  CHECK_THROWS_AS(kf::read_json<Item>(stream), kf::JsonError);
}

using keyfold_test::any_bits;
using keyfold_test::maybe;

namespace {

template <class Container, class Element>
rc::Gen<Container> few(rc::Gen<Element> element) {
  return rc::gen::resize(6, rc::gen::container<Container>(std::move(element)));
}

rc::Gen<std::string> text_generator() {
  return rc::gen::map(few<std::vector<std::string>>(rc::gen::element<std::string>(
                          "\"", "\\", "\n", "a", "\u00E9", "\u20AC", "\U0001F600", std::string(1, '\0'), "/",
                          "\u2028", "\x7F", "{", "\\u0041")),
                      [](const std::vector<std::string>& parts) {
                        std::string out;
                        for (const auto& part : parts) out += part;
                        return out;
                      });
}

Part any_part() { return {*rc::gen::arbitrary<int>(), maybe(any_bits<double, std::uint64_t>())}; }

Everything any_row() {
  Everything row{keyfold_test::any_columns(
                     rc::gen::map(rc::gen::inRange(0, 128), [](int c) { return static_cast<char>(c); }),
                     text_generator()),
                 {},
                 {},
                 {},
                 {},
                 {},
                 {}};
  row.tags = *few<std::vector<std::string>>(text_generator());
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) row.scores.push_back(maybe(*rc::gen::arbitrary<int>()));
  row.bits = *few<std::vector<bool>>(rc::gen::arbitrary<bool>());
  row.part = any_part();
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) row.parts.push_back(any_part());
  row.maybe_part = maybe(any_part());
  return row;
}

bool same_part(const Part& a, const Part& b) { return kf::detail::same_row(a, b); }

bool same(const Everything& a, const Everything& b) {
  return keyfold_test::same(a, b) && a.tags == b.tags && a.scores == b.scores && a.bits == b.bits &&
         same_part(a.part, b.part) && std::ranges::equal(a.parts, b.parts, same_part) &&
         a.maybe_part.has_value() == b.maybe_part.has_value() &&
         same_part(a.maybe_part.value_or(Part()), b.maybe_part.value_or(Part()));
}

}  // namespace

TEST_CASE("json: whatever is written is read back the same") {
  keyfold_test::check_property("rows of every type round-trip", 300, [] {
    std::vector<Everything> rows(*rc::gen::inRange<std::size_t>(0, 5));
    for (auto& row : rows) row = any_row();
    const kf::JsonOptions options{.times = *rc::gen::element(kf::JsonTimes::iso8601, kf::JsonTimes::epoch)};
    const auto copies = read<Everything>(written(rows, options));
    RC_ASSERT(copies.size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) RC_ASSERT(same(copies[i], rows[i]));
  });
}

TEST_CASE("json: lines that are cut or garbled are rows or a JsonError") {
  Everything row;
  row.text = "\u00E9 \" \\ \n";
  row.tags = {"a", "", "\U0001F600"};
  row.scores = {1, {}, -3};
  row.parts = {{1, 0.5}, {2, {}}};
  row.maybe_at = kf::Timestamp(std::chrono::microseconds(1));
  const std::string whole = written(std::vector{Everything(), row});
  const std::vector<std::string> pieces{"{", "]",    ",",    "\"", "\\u", "1",
                                        "-", "null", "\xC3", ":",  "\n",  "e9"};
  std::mt19937 random(20261130);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };

  int accepted = 0;
  int refused = 0;
  for (int i = keyfold_test::scaled(20'000); i > 0; --i) {
    std::string text = whole;
    for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text.resize(at);
          break;
        case 1:
          text[at] = static_cast<char>(below(256));
          break;
        case 2:
          text.erase(at, below(12));
          break;
        default:
          text.insert(at, pieces[below(pieces.size())]);
      }
    }
    INFO(text);
    try {
      const auto rows = read<Everything>(text);
      ++accepted;
      REQUIRE(written(read<Everything>(written(rows))) == written(rows));
    } catch (const kf::JsonError& error) {
      ++refused;
      std::istringstream lines(text);
      std::string line;
      for (std::size_t n = 0; n < error.line; ++n) REQUIRE(std::getline(lines, line));
      REQUIRE(error.offset <= line.size());
    }
  }
  CHECK(accepted > keyfold_test::scaled(20'000) / 500);  // it is not that all is refused
  CHECK(refused > accepted);
}
