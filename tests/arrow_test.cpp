#include <keyfold/arrow.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <list>
#include <string>
#include <vector>

#include "support/arrow_validator.hpp"
#include "support/catch.hpp"
#include "support/faults.hpp"

namespace kf = keyfold;
using keyfold_test::arrow_type;
using keyfold_test::arrow_values;
using keyfold_test::ArrowValidator;
using keyfold_test::Faults;
using namespace std::chrono_literals;

namespace {

enum class Size : std::int8_t { small, large };
BOOST_DESCRIBE_ENUM(Size, small, large)
enum class Flag : bool { off, on };
enum class Wide : std::uint64_t { most = std::numeric_limits<std::uint64_t>::max() };

struct Tea {
  int id = 0;
  std::string name;
  std::optional<double> price;
  bool operator==(const Tea&) const = default;
};
BOOST_DESCRIBE_STRUCT(Tea, (), (id, name, price))

using Teas = kf::Table<Tea, kf::OrderedKey<&Tea::id>>;
using Texts = std::vector<std::string>;

struct Money {
  std::int64_t cents = 0;
  bool operator==(const Money&) const = default;
};

template <class T>
struct One {
  T value{};
  T get() const { return value; }
};

}  // namespace

template <class T>
struct keyfold::columns_of<One<T>> : keyfold::Columns<&One<T>::value> {};

template <>
struct keyfold::csv_value<Money> {
  static std::string expected() { return "an amount"; }
  static std::optional<std::string> text(const Money& money) {
    return money.cents < 0 ? std::nullopt : std::optional(std::to_string(money.cents) + " cents");
  }
};

namespace {

struct Derived {
  int id = 0;
  int twice() const { return 2 * id; }
};

}  // namespace

template <>
struct keyfold::columns_of<Derived> : keyfold::Columns<&Derived::id, &Derived::twice> {};

namespace {

// What export_arrow() made, checked when it is made and released in the end.
class Exported {
 public:
  template <class Rows>
  explicit Exported(const Rows& rows, const kf::ArrowOptions& options = {}) {
    kf::export_arrow(rows, &array, &schema, options);
    INFO(ArrowValidator(schema, array).problems());
    CHECK(ArrowValidator(schema, array).problems().empty());
  }
  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;
  ~Exported() {
    if (array.release != nullptr) array.release(&array);
    if (schema.release != nullptr) schema.release(&schema);
  }

  std::string type() const { return arrow_type(schema); }
  Texts values() const { return arrow_values(schema, array); }

  ArrowArray array{};
  ArrowSchema schema{};
};

// The type and the values of a column of one row each.
template <class T>
std::string column(const std::vector<T>& values, const kf::ArrowOptions& options = {}) {
  std::vector<One<T>> rows;
  for (const T& value : values) rows.push_back({value});
  const Exported exported(rows, options);
  std::string out = arrow_type(*exported.schema.children[0]);
  for (const std::string& value : exported.values()) out += ' ' + value.substr(1, value.size() - 2);
  return out;
}

template <class T>
kf::ArrowError error_of(const std::vector<T>& values) {
  std::vector<One<T>> rows;
  for (const T& value : values) rows.push_back({value});
  ArrowArray array{};
  ArrowSchema schema{};
  try {
    kf::export_arrow(rows, &array, &schema);
  } catch (const kf::ArrowError& error) {
    CHECK(array.release == nullptr);
    CHECK(schema.release == nullptr);
    return error;
  }
  FAIL("no error");
  throw 0;
}

Teas three_teas() {
  Teas teas;
  teas.append(std::vector<Tea>{{1, "sencha", 4.5}, {2, "gr\u00FCn", {}}, {3, "", 0.1}});
  return teas;
}

}  // namespace

TEST_CASE("arrow: a table is a struct with a child for each column") {
  const Exported exported(three_teas());
  CHECK(exported.type() == "+s{id:i name:u price:g?}");
  CHECK(std::string(exported.schema.name).empty());
  CHECK(exported.schema.metadata == nullptr);
  CHECK(exported.array.length == 3);
  CHECK(exported.array.null_count == 0);
  CHECK(exported.array.children[2]->null_count == 1);
  CHECK(exported.values() == Texts{"{1 'sencha' 4.5}", "{2 'gr\u00FCn' null}", "{3 '' 0.10000000000000001}"});
}

TEST_CASE("arrow: a view as of a version, any range, and columns that are functions") {
  Teas teas = three_teas();
  teas.clear();
  CHECK(Exported(teas.as_of(1)).values().size() == 3);
  CHECK(Exported(std::list<Tea>{{7, "x", 1.0}}).values() == Texts{"{7 'x' 1}"});
  CHECK(Exported(std::vector<Derived>{{3}}).values() == Texts{"{3 6}"});
}

TEST_CASE("arrow: no rows are an array of length 0 with all its buffers") {
  const Exported exported{Teas()};
  CHECK(exported.array.length == 0);
  CHECK(exported.type() == "+s{id:i name:u price:g?}");
  CHECK(exported.values().empty());
  CHECK(ArrowValidator::offset("u", *exported.array.children[1], 0) == 0);
  CHECK(Exported(kf::ChangeSet<Tea>()).array.length == 0);
}

TEST_CASE("arrow: numbers have their own width and sign") {
  using Limits64 = std::numeric_limits<std::int64_t>;
  CHECK(column<std::int8_t>({-128, 127}) == "c -128 127");
  CHECK(column<std::uint8_t>({0, 255}) == "C 0 255");
  CHECK(column<std::int16_t>({-32768}) == "s -32768");
  CHECK(column<std::uint16_t>({65535}) == "S 65535");
  CHECK(column<int>({-2147483647 - 1}) == "i -2147483648");
  CHECK(column<unsigned>({4294967295U}) == "I 4294967295");
  CHECK(column<std::int64_t>({Limits64::min()}) == "l -9223372036854775808");
  CHECK(column<long long>({1}) == "l 1");
  CHECK(column<std::uint64_t>({std::numeric_limits<std::uint64_t>::max()}) == "L 18446744073709551615");
  CHECK(column<float>({0.5F}) == "f 0.5");
  CHECK(column<double>({std::numeric_limits<double>::quiet_NaN()}) == "g nan");
}

TEST_CASE("arrow: bools are bits, across bytes") {
  CHECK(column<bool>({true, false, false, true, true, false, false, true, false, true}) ==
        "b true false false true true false false true false true");
  CHECK(column<std::optional<bool>>({true, {}, false}) == "b? true null false");
}

TEST_CASE("arrow: enums are their integer") {
  CHECK(column<Size>({Size::small, Size::large}) == "c 0 1");
  CHECK(column<Wide>({Wide::most}) == "L 18446744073709551615");
  CHECK(column<std::optional<Size>>({Size::large, {}}) == "c? 1 null");
}

TEST_CASE("arrow: text, and what has a text") {
  using namespace std::string_literals;
  CHECK(column<std::string>({"", "a\0b"s, "\U0001F600"}) == "u '' 'a\0b' '\U0001F600'"s);
  CHECK(column<std::string_view>({"view"}) == "u 'view'");
  CHECK(column<char>({'x', '\0'}) == "u 'x' '\0'"s);
  CHECK(column<Money>({{5}}) == "u '5 cents'");
  CHECK(column<std::string>({"a", "bc"}, {.large_offsets = true}) == "U 'a' 'bc'");
}

TEST_CASE("arrow: times are UTC in the unit of the column, or the next one that Arrow has") {
  using namespace std::chrono;
  CHECK(column<kf::Timestamp>({kf::Timestamp(-1us)}) == "tsu:UTC -1");
  CHECK(column<sys_seconds>({sys_seconds(7s)}) == "tss:UTC 7");
  CHECK(column<sys_time<milliseconds>>({sys_time<milliseconds>(7ms)}) == "tsm:UTC 7");
  CHECK(column<sys_time<nanoseconds>>({sys_time<nanoseconds>(7ns)}) == "tsn:UTC 7");
  CHECK(column<sys_time<hours>>({sys_time<hours>(-2h)}) == "tss:UTC -7200");
  using Tick = duration<std::int32_t, std::ratio<1, 10>>;
  CHECK(column<sys_time<Tick>>({sys_time<Tick>(Tick(3))}) == "tsm:UTC 300");
  CHECK(column<sys_days>({sys_days(2000y / January / 1)}) == "tdD 10957");
  CHECK(column<year_month_day>({1969y / December / 31}) == "tdD -1");
  CHECK(column<milliseconds>({5ms}) == "tDm 5");
  CHECK(column<minutes>({2min}) == "tDs 120");
  CHECK(column<std::optional<kf::Timestamp>>({{}, kf::Timestamp(1us)}) == "tsu:UTC? null 1");
}

TEST_CASE("arrow: lists and structs") {
  CHECK(column<std::vector<int>>({{1, 2}, {}, {3}}) == "+l{item:i} [1 2] [] [3]");
  CHECK(column<std::vector<std::optional<std::string>>>({{"a", {}}}, {.large_offsets = true}) ==
        "+L{item:U?} ['a' null]");
  CHECK(column<std::array<bool, 2>>({{true, false}}) == "+l{item:b} [true false]");
  CHECK(column<Tea>({{1, "x", {}}}) == "+s{id:i name:u price:g?} {1 'x' null}");
  CHECK(column<std::optional<Tea>>({{}, Tea{1, "x", {}}}) == "+s?{id:i name:u price:g?} null {1 'x' null}");
  CHECK(column<std::optional<std::vector<Tea>>>({{}, {{Tea{}}}}) ==
        "+l?{item:+s{id:i name:u price:g?}} null [{0 '' null}]");
}

TEST_CASE("arrow: changes have a kind, and the rows before and after") {
  Teas teas = three_teas();
  teas.merge(std::vector<Tea>{{1, "matcha", {}}, {4, "new", 1.0}})
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source(kf::target<&Tea::id> == 3)
      .erase()
      .execute();
  const Exported exported(teas.diff(1, 2));
  CHECK(exported.type() == "+s{kind:u before:+s?{id:i name:u price:g?} after:+s?{id:i name:u price:g?}}");
  CHECK(exported.values() == Texts{"{'update' {1 'sencha' 4.5} {1 'matcha' null}}",
                                   "{'insert' null {4 'new' 1}}",
                                   "{'erase' {3 '' 0.10000000000000001} null}"});
  CHECK(exported.array.children[1]->null_count == 1);
}

TEST_CASE("arrow: a feed has the version and the time of each change, too") {
  Teas teas({.clock = [] { return kf::Timestamp(50us); }});
  teas.insert({1, "a", {}});
  teas.erase(1);
  const Exported exported(teas.changes(0, 2));
  CHECK(exported.type() ==
        "+s{version:L timestamp:tsu:UTC kind:u before:+s?{id:i name:u price:g?} after:+s?{id:i name:u "
        "price:g?}}");
  CHECK(exported.values() == Texts{"{1 50 'insert' null {1 'a' null}}", "{2 51 'erase' {1 'a' null} null}"});
}

TEST_CASE("arrow: the type can be had without rows") {
  ArrowSchema schema{};
  kf::export_arrow_schema<kf::Change<Tea>>(&schema, {.large_offsets = true});
  CHECK(ArrowValidator(schema).problems().empty());
  CHECK(arrow_type(schema) == "+s{kind:U before:+s?{id:i name:U price:g?} after:+s?{id:i name:U price:g?}}");
  schema.release(&schema);
  CHECK(schema.release == nullptr);

  ArrowArray array{};
  kf::export_arrow(three_teas(), &array);
  CHECK(array.length == 3);
  array.release(&array);
}

TEST_CASE("arrow: what Arrow cannot hold is named by row and column") {
  const auto text = error_of<std::string>({"ok", "ab\xFF"});
  CHECK(text.position == 1);
  CHECK(text.column == "value");
  CHECK(std::string(text.what()) ==
        "row 1, column 'value': the text 'ab\xFF' is not UTF-8 at its byte 2, which Arrow requires; correct "
        "the row, "
        "or leave it out");
  CHECK(error_of<char>({'\x80'}).position == 0);
  CHECK(error_of<std::vector<std::string>>({{}, {"a", "\xC3"}}).column == "value[1]");
  CHECK(error_of<Tea>({{1, "\xC3", {}}}).column == "value.name");
  CHECK_THAT(error_of<Money>({{-1}}).what(),
             keyfold_test::contains("the value cannot be written as an amount"));
  using namespace std::chrono;
  CHECK_THAT(error_of<year_month_day>({2026y / February / 30}).what(),
             keyfold_test::contains("not in the calendar"));
  CHECK_THAT(error_of<sys_days>({sys_days(days(2147483648))}).what(),
             keyfold_test::contains("out of the range"));
  using Long = duration<std::int64_t, std::ratio<3600>>;
  CHECK(column<Long>({Long(2562047788015215)}) == "tDs 9223372036854774000");
  CHECK_THAT(error_of<Long>({Long(2562047788015216)}).what(), keyfold_test::contains("out of the range"));
  CHECK(error_of<Long>({Long(-2562047788015216)}).position == 0);

  ArrowArray array{};
  const kf::ChangeSet<Tea> changes({kf::Change<Tea>::update({1, "a", {}}, {1, "\xFF", {}})});
  try {
    kf::export_arrow(changes, &array);
    FAIL("no error");
  } catch (const kf::ArrowError& error) {
    CHECK(error.column == "after.name");
    CHECK(array.release == nullptr);
  }
}

TEST_CASE("arrow: more text than 32-bit offsets can count is an error of the column") {
  kf::detail::ArrowOffsets offsets;
  offsets.add(2147483647);
  CHECK_NOTHROW(kf::detail::ArrowOffsets(offsets).finish(false));
  offsets.add(1);
  CHECK_NOTHROW(kf::detail::ArrowOffsets(offsets).finish(true));
  try {
    static_cast<void>(std::move(offsets).finish(false));
    FAIL("no error");
  } catch (const kf::detail::ColumnFault& fault) {
    CHECK_THAT(fault.message, keyfold_test::contains("ArrowOptions::large_offsets"));
  }
}

TEST_CASE("arrow: releasing frees all, in whatever order") {
  const auto live = Faults::live_blocks;
  {
    const Teas teas = three_teas();
    ArrowArray array{};
    ArrowSchema schema{};
    kf::export_arrow(teas.diff(0, 1), &array, &schema);

    // Children that are moved out survive their parent.
    ArrowArray name = *array.children[2]->children[1];
    array.children[2]->children[1]->release = nullptr;
    ArrowArray before = *array.children[1];
    array.children[1]->release = nullptr;
    ArrowSchema after = *schema.children[2];
    schema.children[2]->release = nullptr;
    // One that is released on its own is not released again.
    array.children[0]->release(array.children[0]);
    CHECK(array.children[0]->release == nullptr);
    schema.children[0]->release(schema.children[0]);

    array.release(&array);
    schema.release(&schema);
    CHECK(array.release == nullptr);
    CHECK(schema.release == nullptr);
    CHECK(arrow_values(*after.children[1], name) == Texts{"'sencha'", "'gr\u00FCn'", "''"});
    CHECK(before.null_count == 3);
    CHECK(ArrowValidator(after).problems().empty());
    before.release(&before);
    name.release(&name);
    after.release(&after);
  }
  CHECK(Faults::live_blocks == live);
}

TEST_CASE("arrow: a struct may be moved before it is released") {
  const auto live = Faults::live_blocks;
  {
    auto moved = std::make_unique<std::pair<ArrowArray, ArrowSchema>>();
    {
      ArrowArray array{};
      ArrowSchema schema{};
      kf::export_arrow(three_teas(), &array, &schema);
      *moved = {array, schema};
    }
    CHECK(ArrowValidator(moved->second, moved->first).problems().empty());
    moved->first.release(&moved->first);
    moved->second.release(&moved->second);
  }
  CHECK(Faults::live_blocks == live);
}

TEST_CASE("arrow: an export that runs out of memory leaves nothing behind, wherever it does") {
  Teas teas = three_teas();
  teas.erase(2);
  const auto feed = teas.changes(0, 2);
  std::uint64_t failures = 0;
  for (std::uint64_t nth = 1;; ++nth) {
    ArrowArray array{};
    ArrowSchema schema{};
    const auto live = Faults::live_blocks;
    bool failed = false;
    Faults::arm(nth, keyfold_test::FaultMode::single);
    try {
      kf::export_arrow(feed, &array, &schema);
    } catch (const keyfold_test::InjectedBadAlloc&) {
      failed = true;
    }
    Faults::disarm();
    if (!failed) {
      array.release(&array);
      schema.release(&schema);
    } else {
      ++failures;
      REQUIRE(array.release == nullptr);
      REQUIRE(schema.release == nullptr);
    }
    REQUIRE(Faults::live_blocks == live);
    if (!failed) break;
  }
  CHECK(failures > 50);
}

TEST_CASE("arrow: the validator finds what is broken") {
  Exported exported(three_teas());
  const auto problems = [&] { return ArrowValidator(exported.schema, exported.array).problems(); };
  const auto broken_while = [&](auto& place, auto value) {
    const auto kept = std::exchange(place, static_cast<std::remove_reference_t<decltype(place)>>(value));
    const bool found = !problems().empty();
    place = kept;
    return found;
  };
  CHECK(problems().empty());
  CHECK(broken_while(exported.array.children[2]->null_count, 2));
  CHECK(broken_while(exported.array.children[0]->null_count, 1));
  CHECK(broken_while(exported.array.children[0]->length, 2));
  CHECK(broken_while(exported.array.children[1]->n_buffers, 2));
  CHECK(broken_while(exported.array.n_children, 2));
  CHECK(broken_while(exported.schema.n_children, 2));
  CHECK(broken_while(exported.schema.children[0]->format, "q"));
  CHECK(broken_while(exported.schema.children[0]->name, nullptr));
  CHECK(broken_while(exported.schema.children[0]->flags, 1));
  CHECK(broken_while(exported.schema.children[2]->flags, 0));
  CHECK(broken_while(exported.array.children[1]->buffers[2], nullptr));
  CHECK(broken_while(exported.array.children[2]->buffers[0], nullptr));
  auto* offsets =
      const_cast<std::int32_t*>(static_cast<const std::int32_t*>(exported.array.children[1]->buffers[1]));
  CHECK(broken_while(offsets[1], 12));
  CHECK(broken_while(offsets[0], 1));
  auto* bytes = const_cast<char*>(static_cast<const char*>(exported.array.children[1]->buffers[2]));
  CHECK(broken_while(bytes[0], '\xFF'));
}
