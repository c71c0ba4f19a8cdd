// The codec of rows: what each type's bytes are, that they come back, and that wrong ones are refused.
#include <keyfold/detail/schema.hpp>

#include <boost/serialization/base_object.hpp>
#include <boost/serialization/nvp.hpp>
#include <boost/serialization/split_member.hpp>
#include <boost/serialization/vector.hpp>

#include <cmath>
#include <deque>
#include <initializer_list>
#include <limits>
#include <list>
#include <map>
#include <set>
#include <unordered_map>

#include "support/catch.hpp"

namespace kf = keyfold;
using kf::detail::ByteBuffer;
using kf::detail::ByteReader;
using kf::detail::DecodeError;

namespace codec_rows {

enum class Color : std::uint8_t { red = 1, blue = 2 };
BOOST_DESCRIBE_ENUM(Color, red, blue)
enum class Open : std::int16_t {};

struct Inner {
  std::int32_t a = 0;
  std::string b;
  bool operator==(const Inner&) const = default;
};
BOOST_DESCRIBE_STRUCT(Inner, (), (a, b))

struct Tree {
  std::int8_t leaf = 0;
  std::vector<Tree> branches;
  bool operator==(const Tree&) const = default;
};
BOOST_DESCRIBE_STRUCT(Tree, (), (leaf, branches))

/// Listed in another order than in memory.
struct Swapped {
  std::int32_t second = 0;
  std::int32_t first = 0;
  bool operator==(const Swapped&) const = default;
};
BOOST_DESCRIBE_STRUCT(Swapped, (), (first, second))

struct Throwing {
  Throwing() = default;
  explicit Throwing(int) { throw std::runtime_error("no"); }
  std::string text;
};
BOOST_DESCRIBE_STRUCT(Throwing, (), (text))

struct Listed {
  std::int16_t x = 0;
  std::int16_t cache = 7;
  bool operator==(const Listed&) const = default;
};

/// As people have written them for Boost.Serialization since 2002.
class Person {
 public:
  Person() = default;
  Person(std::string name, std::vector<int> marks) : name_(std::move(name)), marks_(std::move(marks)) {}
  bool operator==(const Person&) const = default;

 private:
  friend class boost::serialization::access;
  template <class Archive>
  void serialize(Archive& archive, unsigned version) {
    archive& BOOST_SERIALIZATION_NVP(name_);
    if (version >= 2) archive & marks_;
  }
  std::string name_;
  std::vector<int> marks_;
};

struct Pupil : Person {
  std::int32_t form = 0;
  bool operator==(const Pupil&) const = default;
  template <class Archive>
  void save(Archive& archive, unsigned) const {
    archive << boost::serialization::base_object<Person>(*this) << form;
  }
  template <class Archive>
  void load(Archive& archive, unsigned) {
    archive >> boost::serialization::base_object<Person>(*this) >> form;
  }
  BOOST_SERIALIZATION_SPLIT_MEMBER()
};

struct Outside {
  std::int32_t x = 0;
  bool operator==(const Outside&) const = default;
};
struct Beside {
  std::int32_t x = 0;
  bool operator==(const Beside&) const = default;
};
template <class Archive>
void serialize(Archive& archive, Beside& value, unsigned) {
  archive & value.x;
}

/// A serialize() that forgets to read what it wrote.
struct Forgetful {
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    std::int32_t number = 5;
    archive & number;
    if constexpr (Archive::is_saving::value) archive & number;
  }
};

/// Described, but with a serialize(), which counts.
struct Both {
  std::int32_t x = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    std::int8_t small = static_cast<std::int8_t>(x);
    archive & small;
    x = small;
  }
};
BOOST_DESCRIBE_STRUCT(Both, (), (x))

}  // namespace codec_rows

template <>
struct keyfold::columns_of<codec_rows::Listed> : keyfold::Columns<&codec_rows::Listed::x>,
                                                 keyfold::Ignored<&codec_rows::Listed::cache> {};
BOOST_CLASS_VERSION(codec_rows::Person, 2)

namespace boost::serialization {
template <class Archive>
void serialize(Archive& archive, codec_rows::Outside& value, const unsigned) {
  archive & value.x;
}
}  // namespace boost::serialization

namespace {

using namespace codec_rows;

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += digits[std::to_integer<std::size_t>(byte >> 4)];
    out += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return out;
}

template <class T>
std::string encoded(const T& value) {
  ByteBuffer out;
  kf::detail::encode_row(out, value);
  return hex(out.bytes());
}

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  return out;
}

template <class T>
T decoded(std::string_view text) {
  const auto bytes = bytes_of(text);
  ByteReader in(bytes);
  T value = kf::detail::decode_row<T>(in);
  CHECK(in.left() == 0);
  return value;
}

template <class T>
void check_bytes(const T& value, const std::string& expected) {
  CHECK(encoded(value) == expected);
  CHECK(decoded<T>(expected) == value);
}

template <class T>
std::string refusal(std::string_view text) {
  const auto bytes = bytes_of(text);
  ByteReader in(bytes);
  try {
    static_cast<void>(kf::detail::decode_row<T>(in));
  } catch (const DecodeError& error) {
    CHECK(error.offset <= bytes.size());
    return error.what();
  }
  return "taken";
}

template <class T>
std::string type_name() {
  return kf::detail::type_text_in<T, void>();
}

}  // namespace

TEST_CASE("numbers have their width, the lowest byte first") {
  check_bytes(std::int8_t{-2}, "fe");
  check_bytes(std::uint16_t{0x1234}, "3412");
  check_bytes(std::int32_t{-2}, "feffffff");
  check_bytes(std::uint64_t{0x0102030405060708}, "0807060504030201");
  check_bytes('A', "41");
  check_bytes(true, "01");
  check_bytes(false, "00");
}

TEST_CASE("floating point numbers are their IEEE 754 bits, infinities, zeros and NaN included") {
  check_bytes(1.5, "000000000000f83f");
  check_bytes(-0.25F, "000080be");
  check_bytes(std::numeric_limits<double>::infinity(), "000000000000f07f");
  CHECK(encoded(-0.0) == "0000000000000080");
  CHECK(std::signbit(decoded<double>("0000000000000080")));
  CHECK(std::isnan(decoded<double>("010000000000f87f")));
  CHECK(encoded(decoded<double>("010000000000f87f")) == "010000000000f87f");  // its payload, too
}

TEST_CASE("enums are their numbers, times count ticks, dates are year, month and day") {
  check_bytes(Color::blue, "02");
  check_bytes(static_cast<Open>(-1), "ffff");
  check_bytes(std::chrono::milliseconds(258), "0201000000000000");
  check_bytes(kf::Timestamp(std::chrono::microseconds(-1)), "ffffffffffffffff");
  check_bytes(std::chrono::year(2026) / 10 / 4, "ea070a04");
}

TEST_CASE("texts and containers have a count of four bytes") {
  check_bytes(std::string("hi"), "020000006869");
  check_bytes(std::string("\0x", 2), "020000000078");
  check_bytes(std::vector<std::int16_t>{1, -1}, "020000000100ffff");
  check_bytes(std::vector<bool>{true, false}, "020000000100");
  check_bytes(std::vector<std::string>{"a", ""}, "02000000010000006100000000");
  check_bytes(std::list<std::int8_t>{3}, "0100000003");
  check_bytes(std::deque<std::int8_t>{}, "00000000");
  check_bytes(std::set<std::int8_t>{9, 1}, "020000000109");
  check_bytes(std::map<std::string, std::int8_t>{{"k", 5}}, "01000000010000006b05");
  check_bytes(std::unordered_map<std::int8_t, std::int8_t>{{1, 2}}, "010000000102");
  check_bytes(std::multiset<std::int8_t>{4, 4}, "020000000404");
  check_bytes(std::vector<std::monostate>(2), "020000000000");
}

TEST_CASE("optionals have a flag, variants a number, the rest is its parts") {
  check_bytes(std::optional<std::int8_t>(), "00");
  check_bytes(std::optional<std::int8_t>(7), "0107");
  using Variant = std::variant<std::monostate, std::int8_t, std::string>;
  check_bytes(Variant(), "00");
  check_bytes(Variant(std::int8_t{3}), "0103");
  check_bytes(Variant("x"), "020100000078");
  check_bytes(std::array<std::int8_t, 3>{1, 2, 3}, "010203");
  check_bytes(std::pair<std::int8_t, std::string>(1, "x"), "010100000078");
  check_bytes(std::tuple<bool, std::int8_t>(true, std::int8_t{2}), "0102");
}

TEST_CASE("a described class is its columns, one in a class of its own included; ignored members stay out") {
  check_bytes(Inner{1, "b"}, "010000000100000062");
  check_bytes(Tree{1, {Tree{2, {}}}}, "01010000000200000000");
  check_bytes(Listed{5, 7}, "0500");
}

TEST_CASE(
    "a serialize() of the user's is asked, wherever it stands; its bytes are framed and have a version") {
  // size, version, then what it writes
  check_bytes(Person("Al", {1}),
              "0e00000002000000"
              "02000000416c"
              "0100000001000000");
  check_bytes(Outside{258},
              "0400000000000000"
              "02010000");
  check_bytes(Beside{258},
              "0400000000000000"
              "02010000");
  CHECK(encoded(Both{3}) ==
        "0100000000000000"
        "03");
  Pupil pupil;
  pupil.form = 6;
  check_bytes(pupil,
              "1400000000000000"
              "0800000002000000"
              "0000000000000000"
              "06000000");
}

TEST_CASE("an object of an older class version is read as such") {
  CHECK(decoded<Person>("0600000001000000"
                        "02000000416c") == Person("Al", {}));
}

TEST_CASE("an object of a newer class version is refused with both numbers") {
  const auto bytes = bytes_of(
      "0600000003000000"
      "02000000416c");
  ByteReader in(bytes);
  try {
    static_cast<void>(kf::detail::decode_row<Person>(in));
    FAIL("it was read");
  } catch (const kf::UnsupportedFormat& error) {
    CHECK(error.found == 3);
    CHECK(error.known == 2);
  }
}

TEST_CASE("bytes that are no value are refused") {
  CHECK(refusal<bool>("02") == "a bool is neither 0 nor 1");
  CHECK(refusal<std::optional<std::int8_t>>("0201") == "a flag is neither 0 nor 1");
  CHECK(refusal<Color>("04") == "an enum has a value that its enumerators do not make up");
  CHECK(decoded<Color>("03") == static_cast<Color>(3));  // flags combined
  CHECK(refusal<std::int32_t>("010203") == "it ends too early");
  CHECK(refusal<std::string>("0500000041") == "it ends too early");
  CHECK(refusal<std::string>("ffffffff41") == "it ends too early");
  CHECK(refusal<std::vector<std::string>>("ffffff7f00000000") == "more elements than the bytes can hold");
  CHECK(refusal<std::vector<double>>("02000000"
                                     "000000000000f83f") == "more elements than the bytes can hold");
  CHECK(refusal<std::vector<std::monostate>>("ffffffff00") == "more elements than the bytes can hold");
  CHECK(refusal<std::variant<std::int8_t>>("0103") == "a variant has an alternative that its type has not");
  CHECK(refusal<std::set<std::int8_t>>("020000000404") == "an element of a set or map is there twice");
  CHECK(refusal<Person>("0700000002000000"
                        "0000000000000000") == "it ends too early");
  CHECK(refusal<Person>("0900000002000000"
                        "000000000000000000") == "serialize() has not read all that was written");
  CHECK(refusal<Person>("ff00000002000000"
                        "0000000000000000") == "a length goes beyond the end");
}

TEST_CASE("a serialize() that reads less than it writes is found out") {
  CHECK(refusal<Forgetful>(encoded(Forgetful())) == "serialize() has not read all that was written");
}

TEST_CASE("values are nested 64 levels deep at the most, in both directions") {
  const auto nested = [](int levels) {
    Tree tree;
    for (int i = 1; i < levels; ++i) {
      Tree outer;
      outer.branches.push_back(std::move(tree));
      tree = std::move(outer);
    }
    return tree;
  };
  CHECK(decoded<Tree>(encoded(nested(64))) == nested(64));
  CHECK_THROWS_WITH(encoded(nested(65)), "a value is nested 65 levels deep; the limit of a file is 64");
  std::string deep = encoded(nested(64));
  std::string one = encoded(nested(1));
  deep.replace(deep.size() - 8, 8, "01000000" + one);  // one more at the innermost
  CHECK(refusal<Tree>(deep) == "values are nested too deep");
}

TEST_CASE("an enum value that could not be loaded is not saved") {
  CHECK_THROWS_WITH(encoded(static_cast<Color>(4)), keyfold_test::contains("an enum has the value 4"));
}

TEST_CASE("columns are written as they are listed, whatever their order in memory") {
  CHECK(encoded(Swapped{2, 1}) == "0100000002000000");
  CHECK(decoded<Swapped>("0100000002000000") == Swapped{2, 1});
  CHECK(encoded(std::vector<Swapped>{{2, 1}}) == "010000000100000002000000");
  CHECK(decoded<std::vector<Swapped>>("010000000100000002000000") == std::vector<Swapped>{{2, 1}});
}

TEST_CASE("a variant has one of its alternatives") {
  using Value = std::variant<std::int8_t, Throwing, bool>;
  CHECK(encoded(Value(true)) == "0201");
  CHECK(decoded<Value>("0007").index() == 0);
  CHECK(std::get<1>(decoded<Value>("010100000061")).text == "a");
  CHECK(std::get<2>(decoded<Value>("0201")));
  CHECK(refusal<Value>("0301") == "a variant has an alternative that its type has not");
  Value none(std::in_place_index<0>, std::int8_t{1});
  CHECK_THROWS_WITH(none.emplace<1>(1), "no");
  REQUIRE(none.valueless_by_exception());
  CHECK_THROWS_WITH(encoded(none), keyfold_test::contains("a variant without a value cannot be saved"));
}

TEST_CASE("a count that four bytes cannot hold is not written") {
  ByteBuffer out;
  kf::detail::put_count(out, 0xFFFFFFFF);
  CHECK(hex(out.bytes()) == "ffffffff");
  CHECK_THROWS_WITH(kf::detail::put_count(out, std::size_t{0xFFFFFFFF} + 1),
                    keyfold_test::contains("4294967296 elements cannot be saved"));
  CHECK(out.size() == 4);
}

TEST_CASE("every value of two bytes is read or refused, and what is read is written the same way") {
  using Value = std::optional<bool>;
  int read = 0;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::byte bytes[] = {static_cast<std::byte>(first), static_cast<std::byte>(second)};
      ByteReader in(bytes);
      try {
        const auto value = kf::detail::decode_row<Value>(in);
        ByteBuffer out;
        kf::detail::encode_row(out, value);
        REQUIRE(std::ranges::equal(out.bytes(), std::span(bytes).first(in.offset())));
        ++read;
      } catch (const DecodeError&) {
      }
    }
  }
  CHECK(read == 256 + 2);  // 00 and anything; 01 00 and 01 01
}

TEST_CASE("types are named for the schema") {
  CHECK(type_name<std::int8_t>() == "int8");
  CHECK(type_name<unsigned char>() == "uint8");
  CHECK(type_name<double>() == "float64");
  CHECK(type_name<kf::Timestamp>() == "time(duration(int64,1/1000000))");
  CHECK(type_name<std::optional<Color>>() == "optional(enum(uint8))");
  CHECK(type_name<std::map<std::string, std::vector<bool>>>() == "map(text,list(bool))");
  CHECK(type_name<std::variant<std::monostate, std::int16_t>>() == "variant(nothing,int16)");
  CHECK(type_name<std::array<char, 4>>() == "array(4,char)");
  CHECK(type_name<std::pair<float, std::set<std::int64_t>>>() == "tuple(float32,set(int64))");
  CHECK(type_name<Tree>() == "record(leaf:int8,branches:list(same(1)))");
  CHECK(type_name<Person>() == "object");
}

TEST_CASE("a value whose type is known by name only can be passed over") {
  const auto passes = [](const auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    const std::string name = type_name<T>();
    const auto bytes = bytes_of(encoded(value) + "ee");
    ByteReader in(bytes);
    kf::detail::TypeSkipper(name).skip(in);
    INFO(name);
    CHECK(in.left() == 1);
  };
  passes(std::int64_t{1});
  passes(std::string("text"));
  passes(std::optional<std::string>("text"));
  passes(std::optional<std::string>());
  passes(std::map<std::string, std::vector<bool>>{{"a", {true}}, {"b", {}}});
  passes(std::variant<std::monostate, std::string>("x"));
  passes(std::array<std::string, 2>{"a", "b"});
  passes(std::array<std::string, 0>());
  passes(std::vector<std::array<std::string, 0>>(3));
  passes(std::vector<std::monostate>(3));
  passes(std::tuple<bool, std::string>(true, "x"));
  passes(Tree{1, {Tree{2, {}}, Tree{3, {Tree{4, {}}}}}});
  passes(Person("Al", {1, 2}));
  passes(std::vector<Pupil>(2));
  passes(std::chrono::year(2026) / 10 / 4);
  passes(Inner{1, "b"});
  passes(std::set<std::string>{"a", "b"});
  passes(Color::blue);
  passes(kf::Timestamp{});
}

TEST_CASE("a value that is none of the type named is refused when it is passed over") {
  const auto refusal_of = [](const char* name, const std::string& text) -> std::string {
    const auto bytes = bytes_of(text);
    ByteReader in(bytes);
    try {
      kf::detail::TypeSkipper(name).skip(in);
      return {};
    } catch (const DecodeError& error) {
      return error.what();
    }
  };
  CHECK(refusal_of("variant(int8,bool)", "0101").empty());
  CHECK(refusal_of("variant(int8,bool)", "0201") == "a variant has an alternative that its type has not");
  CHECK(refusal_of("variant()", "00") == "a variant has an alternative that its type has not");
  CHECK(refusal_of("list(int8)", "0200000001") == "more elements than the bytes can hold");
  CHECK_FALSE(refusal_of("optional(int8)", "0201").empty());
  CHECK_FALSE(refusal_of("object", "0200000000000000ff").empty());
  CHECK_FALSE(refusal_of("text", "0300000061").empty());
  CHECK(refusal_of("array(2,tuple(text,record(a:tuple(),b:record())))", "0000000000000000").empty());
  CHECK(refusal_of("record(a:list(record(b:list(same(2)))))", "00000000").empty());
}

TEST_CASE("what is no type is refused, and so is a type that could hang its reader") {
  for (const std::string_view name : {"",
                                      "int",
                                      "int32 ",
                                      "list",
                                      "list(",
                                      "list()",
                                      "list(int32",
                                      "list(int32))",
                                      "optional(int32,int32)",
                                      "array(int32)",
                                      "array(x,int32)",
                                      "array(-1,int32)",
                                      "array(,int32)",
                                      "array(99999999999999999999,int32)",
                                      "duration(int64)",
                                      "duration(int64,1)",
                                      "duration(int64,1/)",
                                      "tuple(",
                                      "variant(",
                                      "record(",
                                      "record(a)",
                                      "enum()",
                                      "map(int32)",
                                      "same()",
                                      "same(0)",
                                      "record(a:same(0))",
                                      "tuple(array(1099511627775,int8),array(1099511627775,int8))",
                                      "record(int32)",
                                      "record(:int32)",
                                      "same(1)",
                                      "record(a:same(2))",
                                      "array(1099511627776,array(1099511627776,int8))",
                                      "unknown(int32)"}) {
    INFO(name);
    CHECK_THROWS_AS(kf::detail::TypeSkipper(name), DecodeError);
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "list(";
  CHECK_THROWS_AS(kf::detail::TypeSkipper(deep), DecodeError);
  const auto bytes = bytes_of("01020304");
  for (const std::string_view name : {"array(1099511627775,array(0,text))", "array(0,text)", "tuple()"}) {
    ByteReader in(bytes);
    kf::detail::TypeSkipper(name).skip(in);
    CHECK(in.left() == 4);
  }
  ByteReader in(bytes);
  CHECK_THROWS_AS(kf::detail::TypeSkipper("record(a:array(1099511627775,same(1)))").skip(in), DecodeError);
}
