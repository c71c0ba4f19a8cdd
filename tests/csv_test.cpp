#include <keyfold/csv.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/range/concepts.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <sstream>

#include "support/column_types.hpp"
#include "support/property.hpp"

namespace kf = keyfold;
using keyfold_test::ColumnTypes;
using keyfold_test::Grade;
using keyfold_test::Size;

namespace {

enum class Shade { gray, grey = gray, dark };
BOOST_DESCRIBE_ENUM(Shade, gray, grey, dark)

struct Item {
  std::string sku;
  std::int64_t stock = 0;
  std::optional<std::string> note;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (sku, stock, note))

struct Word {
  std::string text;
  bool operator==(const Word&) const = default;
};

struct Stamped {
  std::chrono::sys_seconds at;
};
BOOST_DESCRIBE_STRUCT(Stamped, (), (at))

struct Preset {
  std::optional<int> n = 5;
  int m = 7;
};
BOOST_DESCRIBE_STRUCT(Preset, (), (n, m))

struct Step {
  std::string release;
  int rows = 0, inserted = 0, updated = 0, deleted = 0, unchanged = 0;
};
BOOST_DESCRIBE_STRUCT(Step, (), (release, rows, inserted, updated, deleted, unchanged))

struct Optional {
  std::optional<std::string> text;
  bool operator==(const Optional&) const = default;
};
BOOST_DESCRIBE_STRUCT(Optional, (), (text))

}  // namespace

template <>
struct keyfold::columns_of<Word> : keyfold::Columns<&Word::text> {};

namespace {

template <class Row>
std::vector<Row> read(const std::string& text, const kf::CsvOptions& options = {}) {
  std::istringstream stream(text);
  return kf::read_csv<Row>(stream, "test.csv", options);
}

template <class Row>
std::string written(const std::vector<Row>& rows, const kf::CsvOptions& options = {}) {
  std::ostringstream stream;
  kf::write_csv(stream, rows, options);
  return stream.str();
}

template <class Row>
kf::CsvError error_of(const std::string& text, const kf::CsvOptions& options = {}) {
  try {
    static_cast<void>(read<Row>(text, options));
  } catch (const kf::CsvError& error) {
    return error;
  }
  FAIL("no error for: " << text);
  throw 0;
}

void check(const kf::CsvError& error, std::size_t line, const std::string& column, std::size_t field,
           const std::string& message) {
  CHECK(error.file == "test.csv");
  CHECK(error.line == line);
  CHECK(error.column == column);
  CHECK(error.field == field);
  CHECK_THAT(error.what(), keyfold_test::contains(message));
}

// One field of type T, read from `text` as it stands in the file.
template <class T>
std::optional<T> value(std::string_view text) {
  return kf::csv_value<T>::parse(text);
}

const std::string header = "sku,stock,note\n";

}  // namespace

TEST_CASE("rows are read by column name, in any order of the columns") {
  const std::vector<Item> expected{{"a", 1, "x"}, {"b", -2, std::nullopt}};
  CHECK(read<Item>("sku,stock,note\na,1,x\nb,-2,\n") == expected);
  CHECK(read<Item>("note,sku,stock\nx,a,1\n,b,-2\n") == expected);
}

TEST_CASE("a header alone is no rows") {
  CHECK(read<Item>(header).empty());
  CHECK(read<Item>("sku,stock,note").empty());
}

TEST_CASE("CRLF, LF, a byte order mark and a missing final newline make no difference") {
  const std::vector<Item> expected{{"a", 1, "x"}, {"b", 2, std::nullopt}};
  for (const auto* mark : {"", "\xEF\xBB\xBF"}) {
    for (const auto* end : {"\n", "\r\n"}) {
      std::string text = mark;
      for (const auto* line : {"sku,stock,note", "a,1,x", "b,2,"}) text.append(line).append(end);
      CHECK(read<Item>(text) == expected);
      text.resize(text.size() - std::string_view(end).size());
      CHECK(read<Item>(text) == expected);
    }
  }
  CHECK(read<Item>("\xEF\xBB\xBF\"sku\",stock,note\na,1,x") == std::vector<Item>{{"a", 1, "x"}});
}

TEST_CASE("quoted fields hold separators, quotes and line ends as they are") {
  const auto rows = read<Item>(header + "\"a,\"\"b\"\"\",\"1\",\"two\r\nlines\n\"\n\"\"\"\",2,x");
  CHECK(rows == std::vector<Item>{{"a,\"b\"", 1, "two\r\nlines\n"}, {"\"", 2, "x"}});
}

TEST_CASE("spaces belong to the field") {
  CHECK(read<Item>(header + " a ,1, \n") == std::vector<Item>{{" a ", 1, " "}});
  check(error_of<Item>(header + "a, 1,\n"), 2, "stock", 2, "found ' 1' where a whole number");
}

TEST_CASE("an empty field is the empty optional, a quoted one the empty string") {
  CHECK(read<Item>(header + ",1,\n") == std::vector<Item>{{"", 1, std::nullopt}});
  CHECK(read<Item>(header + "\"\",1,\"\"\n") == std::vector<Item>{{"", 1, ""}});
  CHECK(read<Optional>("text\n\n\"\"\nx\n") == std::vector<Optional>{{std::nullopt}, {""}, {"x"}});
}

TEST_CASE("NUL bytes and bytes above 127 are text like any other") {
  const std::string bytes("\0\xFF\xC3\x28\0", 5);
  CHECK(read<Word>("text\n" + bytes + "\n\"" + bytes + "\"") == std::vector<Word>{{bytes}, {bytes}});
}

TEST_CASE("a field longer than any buffer is read whole, and lines are still counted") {
  std::string huge;
  for (int i = 0; i < 400'000; ++i) huge += i % 1000 == 0 ? "\n" : "abc,";
  CHECK(read<Word>("text\n\"" + huge + "\"\nx") == std::vector<Word>{{huge}, {"x"}});
  check(error_of<Word>("text\n\"" + huge + "\"\nx\"\n"), 403, "", 1, "a quote stands inside");
}

TEST_CASE("a byte order mark, quote pair or CRLF may fall on the edge of a block") {
  for (std::size_t length = 65'530; length < 65'545; ++length) {
    const std::string text(length, 'a');
    CHECK(read<Word>("text\r\n\"" + text + "\"\"\"\r\nb\r\n") == std::vector<Word>{{text + "\""}, {"b"}});
  }
}

TEST_CASE("each type is read strictly") {
  CHECK(value<bool>("true") == true);
  CHECK(value<bool>("0") == false);
  CHECK_FALSE(value<bool>("yes"));
  CHECK_FALSE(value<bool>("True"));
  CHECK(value<char>("D") == 'D');
  CHECK_FALSE(value<char>(""));
  CHECK_FALSE(value<char>("DD"));
  CHECK(value<std::int8_t>("-128") == -128);
  CHECK_FALSE(value<std::int8_t>("128"));
  CHECK_FALSE(value<unsigned>("-1"));
  CHECK_FALSE(value<int>("+1"));
  CHECK_FALSE(value<int>("1.0"));
  CHECK_FALSE(value<int>("1 "));
  CHECK_FALSE(value<int>(""));
  CHECK_FALSE(value<int>("0x10"));
  CHECK(value<std::uint64_t>("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
  CHECK(value<double>("-1.5e3") == -1500.0);
  CHECK(value<double>("inf") == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(*value<double>("nan")));
  CHECK_FALSE(value<double>("1e999"));
  CHECK_FALSE(value<double>("1,5"));
  CHECK(value<Size>("large") == Size::large);
  CHECK_FALSE(value<Size>("Large"));
  CHECK_FALSE(value<Size>("1"));
  CHECK(value<Grade>("-1") == Grade::low);
  CHECK_FALSE(value<Grade>("low"));
  CHECK_FALSE(value<Grade>("128"));
  CHECK(value<std::chrono::minutes>("90") == std::chrono::minutes(90));
  CHECK_FALSE(value<std::chrono::minutes>("soon"));
}

TEST_CASE("times are ISO 8601 in UTC") {
  using namespace std::chrono;
  const kf::Timestamp noon = sys_days(2026y / October / 4) + 12h;
  CHECK(value<kf::Timestamp>("2026-10-04T12:00:00Z") == noon);
  CHECK(value<kf::Timestamp>("2026-10-04T12:00:00.5Z") == noon + 500ms);
  CHECK(value<kf::Timestamp>("2026-10-04T12:00:00.000001Z") == noon + 1us);
  CHECK(value<kf::Timestamp>("1969-12-31T23:59:59.999999Z") == kf::Timestamp(-1us));
  CHECK(value<kf::Timestamp>("2024-02-29T00:00:00Z") == sys_days(2024y / February / 29));
  CHECK(value<sys_seconds>("2026-10-04T12:00:00.000Z") == sys_seconds(sys_days(2026y / October / 4) + 12h));
  CHECK_FALSE(value<sys_seconds>("2026-10-04T12:00:00.5Z"));
  CHECK(value<sys_days>("2026-10-04") == sys_days(2026y / October / 4));
  CHECK_FALSE(value<sys_days>("2026-10-04T00:00:00Z"));
  CHECK(value<year_month_day>("2024-02-29") == 2024y / February / 29);
  CHECK_FALSE(value<year_month_day>("2026-02-29"));
  for (const auto* text :
       {"", "2026-10-04", "2026-10-04T12:00:00", "2026-10-04 12:00:00Z", "2026-10-04T12:00:00+02:00",
        "2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z", "2026-00-01T12:00:00Z", "2026-10-04T24:00:00Z",
        "2026-10-04T12:60:00Z", "2026-10-04T12:00:60Z", "2026-10-04T12:00:00.Z",
        "2026-10-04T12:00:00.0000001Z", "2026-10-04T12:00:00ZZ", "2026-10-4T12:00:00Z",
        "-026-10-04T12:00:00Z", "2026-10-04T1", "12026-10-04T12:00:00Z"}) {
    INFO(text);
    CHECK_FALSE(value<kf::Timestamp>(text));
  }
}

TEST_CASE("a field that does not fit its column is named by line, column and field") {
  check(
      error_of<Item>("note,sku,stock\nx,a,1\ny,b,many\n"), 3, "stock", 3,
      "test.csv:3: field 3 (column 'stock'): found 'many' where a whole number from -9223372036854775808 to "
      "9223372036854775807 is needed; correct the field, or change the type of the column");
  check(error_of<Item>(header + "a,,\n"), 2, "stock", 2, "is empty where a whole number");
  check(error_of<Item>(header + "a,\"\",\n"), 2, "stock", 2, "found '' where a whole number");
}

TEST_CASE("lines are physical lines: a field is on the line where it begins") {
  check(error_of<Item>(header + "\"a\nb\r\nc\",1,\n\"d\n\",many,\n"), 6, "stock", 2, "found 'many'");
  check(error_of<Item>(header + "a,\"1\n2\",\n"), 2, "stock", 2, "found '1?2'");
}

TEST_CASE("what was found is shown on one line and cut") {
  const auto error = error_of<Item>(header + "a," + std::string(100, '9') + ",\n");
  check(error, 2, "stock", 2, "found '" + std::string(60, '9') + "...' where");
  check(error_of<Item>(header + "a,\"1\x1B[31m\",\n"), 2, "stock", 2, "found '1?[31m' where");
  check(error_of<Item>(header + "a,1\x7F,\n"), 2, "stock", 2, "found '1?' where");
}

TEST_CASE("the header must name each column once and nothing else") {
  check(error_of<Item>("sku,stok,note\n"), 1, "stok", 2,
        "is no column of the row, which has sku, stock, note; the first line names the columns: rename this "
        "one, "
        "or set CsvOptions::ignore_unknown_columns");
  check(error_of<Item>("sku,note\n"), 1, "stock", 0, "is missing in the header");
  check(error_of<Item>("sku,stock,note,sku\n"), 1, "sku", 4, "is named by field 1 too");
  check(error_of<Item>("sku,stock,note,\n"), 1, "", 4, "is no column");
  check(error_of<Item>("SKU,stock,note\n"), 1, "SKU", 1, "is no column");
}

TEST_CASE("a name that would break the line of a message is shown without what does") {
  check(error_of<Item>("\"a\nb\",sku\n"), 1, "a\nb", 1, "test.csv:1: field 1 (column 'a?b') is no column");
}

TEST_CASE("a file without a header is an error of the file") {
  check(error_of<Item>(""), 0, "", 0,
        "test.csv is empty; its first line must name the columns: sku, stock, note");
  check(error_of<Item>("\xEF\xBB\xBF"), 0, "", 0, "is empty");
}

TEST_CASE("a missing column may keep its default, an unknown one be skipped, when the options say so") {
  CHECK(read<Item>("sku\na\n", {.allow_missing_columns = true}) == std::vector<Item>{{"a", 0, std::nullopt}});
  const std::string extra = "x,sku,stock,y,note\n1,a,2,3,4\n";
  CHECK(read<Item>(extra, {.ignore_unknown_columns = true}) == std::vector<Item>{{"a", 2, "4"}});
  check(error_of<Item>("sku,sku\n", {.allow_missing_columns = true}), 1, "sku", 2, "is named by field 1 too");
  check(error_of<Item>("sku,x\n", {.ignore_unknown_columns = true}), 1, "stock", 0, "is missing");
}

TEST_CASE("each record has as many fields as the header") {
  check(error_of<Item>(header + "a,1\n"), 2, "", 0, "the record has 2 fields, the header 3");
  check(error_of<Item>(header + "a,1,x,\n"), 2, "", 0, "the record has 4 fields, the header 3");
  check(error_of<Item>(header + "\"a\n\",1,\n\"b\"\n"), 4, "", 0, "the record has 1 fields, the header 3");
}

TEST_CASE("a blank line is named as such, unless it is the record of the only column") {
  check(error_of<Item>(header + "a,1,\n\n"), 3, "", 0, "test.csv:3: the line is blank; remove it");
  check(error_of<Item>(header + "a,1,\n \t\r\n"), 3, "", 0, "the line is blank");
  check(error_of<Item>("\n" + header), 1, "", 0,
        "test.csv:1: the first line is blank; it must name the columns: sku, stock, note");
  check(error_of<Item>(header + "\"\"\n"), 2, "", 0, "the record has 1 fields");
}

TEST_CASE("a header of one field that holds another separator gives rise to a guess") {
  const std::string guess = "separates the fields, set CsvOptions::separator";
  check(error_of<Item>("sku;stock;note\na;1;\n"), 1, "sku;stock;note", 1,
        "test.csv:1: field 1 (column 'sku;stock;note') is no column of the row, which has sku, stock, note; "
        "if ';' " +
            guess);
  check(error_of<Item>("sku\tstock\n"), 1, "sku\tstock", 1, "if a tab " + guess);
  check(error_of<Item>("sku|stock\n"), 1, "sku|stock", 1, "if '|' " + guess);
  check(error_of<Item>("sku,stock\n", {.separator = ';'}), 1, "sku,stock", 1, "if ',' " + guess);
  check(error_of<Item>("sku;stock\n", {.ignore_unknown_columns = true}), 1, "sku", 0,
        "is missing in the header; if ';' " + guess);
  check(error_of<Item>("\"sku;stock\"\n"), 1, "sku;stock", 1, "rename this one");
  check(error_of<Item>("sku;stock,note\n"), 1, "sku;stock", 1, "rename this one");
}

TEST_CASE("quotes that are not where they belong are refused") {
  check(error_of<Item>(header + "a\"b,1,\n"), 2, "", 1, "a quote stands inside an unquoted field");
  check(error_of<Item>(header + "a, \"1\",\n"), 2, "", 2, "a quote stands inside an unquoted field");
  check(error_of<Item>(header + "\"a\"b,1,\n"), 2, "", 1, "text follows the closing quote");
  check(error_of<Item>(header + "a,1,\"x\ny\nz"), 2, "", 3, "the quote that opens here is never closed");
  check(error_of<Item>(header + "a,1,\""), 2, "", 3, "the quote that opens here is never closed");
  check(error_of<Item>(header + "a,1,\"\"\""), 2, "", 3, "the quote that opens here is never closed");
}

TEST_CASE("a carriage return by itself is refused, not taken for a line end or text") {
  check(error_of<Item>(header + "a,1,x\rb,2,y\n"), 2, "", 3, "a carriage return stands alone");
  check(error_of<Item>(header + "a,1,x\r"), 2, "", 3, "a carriage return stands alone");
}

TEST_CASE("an error leaves with the rows before it delivered") {
  std::istringstream stream(header + "a,1,\nb,2,\nc,many,\n");
  std::vector<Item> seen;
  auto rows = kf::csv_rows<Item>(stream);
  CHECK_THROWS_AS(
      [&] {
        for (Item& row : rows) seen.push_back(std::move(row));
      }(),
      kf::CsvError);
  CHECK(seen == std::vector<Item>{{"a", 1, std::nullopt}, {"b", 2, std::nullopt}});
}

TEST_CASE("csv_rows is an input range for the standard library and range-v3, whose rows may be moved from") {
  STATIC_REQUIRE(std::ranges::input_range<kf::CsvRows<Item>>);
  STATIC_REQUIRE(ranges::input_range<kf::CsvRows<Item>>);
  STATIC_REQUIRE(std::is_same_v<std::ranges::range_reference_t<kf::CsvRows<Item>>, Item&>);
  std::istringstream stream(header + "a,1,long enough to be allocated somewhere\nb,2,\n");
  auto rows = kf::csv_rows<Item>(stream);
  auto row = rows.begin();
  const Item first = std::move(*row);
  CHECK(first == Item{"a", 1, "long enough to be allocated somewhere"});
  ++row;
  CHECK(*row == Item{"b", 2, std::nullopt});
  ++row;
  CHECK(row == rows.end());
}

TEST_CASE("a merge reads its source from a file, and a bad line changes nothing") {
  kf::Table<Item, kf::Key<&Item::sku>> items;
  items.upsert(std::vector<Item>{{"a", 1, "old"}, {"b", 2, std::nullopt}});
  std::istringstream good(header + "a,5,\nc,3,new\n");
  items.upsert(kf::csv_rows<Item>(good));
  CHECK(items.size() == 3);
  CHECK(items.at("a") == Item{"a", 5, std::nullopt});
  CHECK(items.at("c") == Item{"c", 3, "new"});

  const auto version = items.version();
  std::istringstream bad(header + "a,9,\nd,4,\ne,many,\n");
  CHECK_THROWS_AS(items.upsert(kf::csv_rows<Item>(bad)), kf::CsvError);
  CHECK(items.version() == version);
  CHECK(items.size() == 3);
  CHECK(items.at("a").stock == 5);

  std::ostringstream out;
  kf::write_csv(out, items);
  CHECK(out.str() == "sku,stock,note\na,5,\nb,2,\nc,3,new\n");
}

TEST_CASE("what a reader does to a row does not show in the next one") {
  std::istringstream stream("sku\na\nb\n");
  for (Item& row : kf::csv_rows<Item>(stream, "test.csv", {.allow_missing_columns = true})) {
    CHECK(row.stock == 0);
    row.stock = 5;
  }
}

TEST_CASE("an absent value empties an optional whose default is not empty") {
  CHECK_FALSE(read<Preset>("n,m\n,1\n").front().n);
  CHECK(read<Preset>("m\n1\n", {.allow_missing_columns = true}).front().n == 5);
  CHECK(read<Preset>("n\n1\n", {.allow_missing_columns = true}).front().m == 7);
}

TEST_CASE("files are opened by path, and an error names the path") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("keyfold_csv_test_" + std::to_string(std::random_device{}()) + ".csv");
  const std::vector<Item> rows{{"a", 1, "x"}, {"b", 2, std::nullopt}};
  kf::write_csv(path, rows);
  CHECK(kf::read_csv<Item>(path) == rows);
  std::vector<Item> streamed;
  for (Item& row : kf::csv_rows<Item>(path)) streamed.push_back(row);
  CHECK(streamed == rows);
  std::filesystem::remove(path);
  try {
    static_cast<void>(kf::read_csv<Item>(path));
    FAIL("a missing file was read");
  } catch (const kf::CsvError& error) {
    CHECK(error.file == path.string());
    CHECK(error.line == 0);
    CHECK_THAT(error.what(), keyfold_test::contains(path.string() + ": cannot be opened"));
  }
  CHECK_THROWS_AS(kf::read_csv<Item>(std::filesystem::temp_directory_path()), kf::CsvError);
  CHECK_THROWS_AS(kf::write_csv(std::filesystem::temp_directory_path(), rows), kf::CsvError);
}

TEST_CASE("a stream that breaks is an error, not the end of the file") {
  struct Breaking : std::streambuf {
    std::string text = header + "a,1,\n";
    Breaking() { setg(text.data(), text.data(), text.data() + text.size()); }
    int_type underflow() override { throw std::runtime_error("the disk is gone"); }
  };
  Breaking buffer;
  std::istream stream(&buffer);
  try {
    static_cast<void>(kf::read_csv<Item>(stream, "test.csv"));
    FAIL("a broken stream was read");
  } catch (const kf::CsvError& error) {
    CHECK_THAT(error.what(), keyfold_test::contains("test.csv:1: cannot be read further"));
  }
}

TEST_CASE("a stream that takes no more is an error, not a short file") {
  std::ostringstream stream;
  stream.setstate(std::ios::badbit);
  CHECK_THROWS_AS(kf::write_csv(stream, std::vector<Item>{{"a", 1, "x"}}), kf::CsvError);
}

TEST_CASE("only fields that need quotes are written with them") {
  const std::vector<Item> rows{
      {"a", 1, "x"}, {"", 2, std::nullopt}, {"b,c", 3, ""}, {"\"", 4, "l\nm"}, {" d ", 5, "\r"}};
  CHECK(written(rows) ==
        "sku,stock,note\na,1,x\n,2,\n\"b,c\",3,\"\"\n\"\"\"\",4,\"l\nm\"\n \x64 ,5,\"\r\"\n");
  CHECK(written(std::vector<Word>{{""}, {"x"}}) == "text\n\"\"\nx\n");
  CHECK(written(std::vector<Item>{}) == header);
  CHECK(written(std::vector<Item>{{"a,", 1, "x;"}}, {.separator = ';', .line_end = "\r\n"}) ==
        "sku;stock;note\r\na,;1;\"x;\"\r\n");
}

TEST_CASE("an enumerator that has two names is read by either and written by the first") {
  CHECK(value<Shade>("gray") == Shade::gray);
  CHECK(value<Shade>("grey") == Shade::gray);
  CHECK(kf::csv_value<Shade>::text(Shade::grey) == "gray");
  CHECK(kf::csv_value<Shade>::text(Shade::dark) == "dark");
}

TEST_CASE("a value that could not be read back is not written") {
  using std::chrono::sys_days;
  using std::chrono::year;
  CHECK(kf::csv_value<sys_days>::text(year(0) / 1 / 1) == "0000-01-01");
  CHECK_FALSE(kf::csv_value<sys_days>::text(year(-1) / 12 / 31));
  const std::vector<Stamped> late{{std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1)}};
  std::ostringstream stream;
  try {
    kf::write_csv(stream, late);
    FAIL("a five-digit year was written");
  } catch (const kf::CsvError& error) {
    CHECK(error.column == "at");
    CHECK(error.line == 2);
    CHECK(error.field == 1);
  }
  ColumnTypes row;
  row.size = static_cast<Size>(7);
  CHECK_THROWS_AS(written(std::vector<ColumnTypes>{row}), kf::CsvError);
}

TEST_CASE("the bundled data is read whole") {
  const auto steps = kf::read_csv<Step>("examples/data/mime-db/steps.csv");
  REQUIRE(steps.size() == 15);
  CHECK(steps.back().release == "1.54.0");
  CHECK(steps.back().rows == 2522);
}

namespace {

// Text of the bytes that matter to CSV, and some that do not.
rc::Gen<std::string> text_generator() {
  return rc::gen::container<std::string>(rc::gen::oneOf(
      rc::gen::element(',', '"', '\n', '\r', ';', ' ', '\0', '\xEF', '\xBB'), rc::gen::arbitrary<char>()));
}

kf::CsvOptions any_options() {
  kf::CsvOptions options;
  options.separator = *rc::gen::element(',', ';', '\t', '|');
  options.line_end = *rc::gen::element(std::string_view("\n"), std::string_view("\r\n"));
  return options;
}

}  // namespace

TEST_CASE("whatever is written is read back the same") {
  keyfold_test::check_property("rows of every type round-trip", 1000, [] {
    std::vector<ColumnTypes> rows(*rc::gen::inRange<std::size_t>(0, 6));
    for (auto& row : rows) row = keyfold_test::any_columns(rc::gen::arbitrary<char>(), text_generator());
    const auto options = any_options();
    const auto copies = read<ColumnTypes>(written(rows, options), options);
    RC_ASSERT(copies.size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) RC_ASSERT(keyfold_test::same(copies[i], rows[i]));
  });
}

TEST_CASE("any bytes are rows or a CsvError, and rows that were read are written and read the same") {
  int accepted = 0;
  keyfold_test::check_property("arbitrary files", 20'000, [&accepted] {
    const auto body =
        *rc::gen::container<std::string>(rc::gen::element(',', '"', '"', '\n', '\n', '\r', 'a', '1', '\0'));
    std::vector<Item> rows;
    try {
      rows = read<Item>(header + body);
    } catch (const kf::CsvError& error) {
      RC_ASSERT(error.line >= 2U);
      return;
    }
    accepted += rows.empty() ? 0 : 1;
    RC_ASSERT(read<Item>(written(rows)) == rows);
  });
  keyfold_test::check_property("arbitrary words", 5'000, [&accepted] {
    const auto body = *rc::gen::container<std::string>(rc::gen::element('"', '"', '\n', '\r', 'a', '\0'));
    std::vector<Optional> rows;
    try {
      rows = read<Optional>("text\n" + body);
    } catch (const kf::CsvError& error) {
      RC_ASSERT(error.line >= 2U);
      return;
    }
    accepted += rows.empty() ? 0 : 1;
    RC_ASSERT(read<Optional>(written(rows)) == rows);
  });
  CHECK(accepted > 100 * keyfold_test::scaled(10) / 10);
}
