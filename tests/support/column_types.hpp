// A row with a column of every type that a field of a text file can have.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/csv_value.hpp>
#include <keyfold/detail/value.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "support/property.hpp"

namespace keyfold_test {

enum class Size { small, large };
BOOST_DESCRIBE_ENUM(Size, small, large)

enum class Grade : std::int8_t { low = -1, high = 1 };
enum class Letter : char { a = 'a' };

// With a text of the user's.
struct Money {
  std::int64_t cents = 0;
  bool operator==(const Money&) const = default;
};

struct ColumnTypes {
  bool flag = false;
  char letter = 'x';
  std::int8_t tiny = 0;
  std::uint64_t huge = 0;
  float ratio = 0;
  double number = 0;
  long double precise = 0;
  std::string text;
  Size size = Size::small;
  Grade grade = Grade::low;
  Letter mark = Letter::a;
  keyfold::Timestamp at;
  std::chrono::sys_time<std::chrono::milliseconds> seen;
  std::chrono::sys_days day;
  std::chrono::year_month_day date{std::chrono::sys_days{}};
  std::chrono::seconds wait{0};
  std::chrono::duration<double> lap{0};
  Money price;
  std::optional<bool> maybe_flag;
  std::optional<std::int64_t> maybe_number;
  std::optional<std::string> maybe_text;
  std::optional<Size> maybe_size;
  std::optional<keyfold::Timestamp> maybe_at;
  std::optional<Money> maybe_price;
};
BOOST_DESCRIBE_STRUCT(ColumnTypes, (),
                      (flag, letter, tiny, huge, ratio, number, precise, text, size, grade, mark, at, seen,
                       day, date, wait, lap, price, maybe_flag, maybe_number, maybe_text, maybe_size,
                       maybe_at, maybe_price))

// Equal column by column, with NaN equal to itself.
inline bool same(const ColumnTypes& a, const ColumnTypes& b) { return keyfold::detail::same_row(a, b); }

// Any bits: infinities and NaNs, too.
template <class Number, class Bits>
Number any_bits() {
  return std::bit_cast<Number>(*rc::gen::arbitrary<Bits>());
}

// Of the years 0000 to 9999.
inline keyfold::Timestamp any_time() {
  return keyfold::Timestamp(std::chrono::microseconds(
      *rc::gen::inRange<std::int64_t>(-62'167'219'200'000'000, 253'402'300'800'000'000)));
}

template <class T>
std::optional<T> maybe(T value) {
  return *rc::gen::arbitrary<bool>() ? std::optional<T>(std::move(value)) : std::nullopt;
}

// With what a file can hold as a character and as text.
inline ColumnTypes any_columns(const rc::Gen<char>& letter, const rc::Gen<std::string>& text) {
  using namespace std::chrono;
  ColumnTypes row;
  row.flag = *rc::gen::arbitrary<bool>();
  row.letter = *letter;
  row.tiny = static_cast<std::int8_t>(*rc::gen::inRange(-128, 128));
  row.huge = *rc::gen::arbitrary<std::uint64_t>();
  row.ratio = any_bits<float, std::uint32_t>();
  row.number = any_bits<double, std::uint64_t>();
  row.precise = 1.0L / (*rc::gen::arbitrary<int>() | 1);
  row.text = *text;
  row.size = *rc::gen::element(Size::small, Size::large);
  row.grade = *rc::gen::element(Grade::low, Grade::high);
  row.at = any_time();
  row.seen = floor<milliseconds>(any_time());
  row.day = floor<days>(any_time());
  row.date = floor<days>(any_time());
  row.wait = seconds(*rc::gen::arbitrary<std::int64_t>());
  row.lap = duration<double>(*rc::gen::arbitrary<int>() / 3.0);
  row.price = Money{*rc::gen::inRange<std::int64_t>(-1'000'000, 1'000'000)};
  row.maybe_flag = maybe(*rc::gen::arbitrary<bool>());
  row.maybe_number = maybe(*rc::gen::arbitrary<std::int64_t>());
  row.maybe_text = maybe(*text);
  row.maybe_size = maybe(*rc::gen::element(Size::small, Size::large));
  row.maybe_at = maybe(any_time());
  row.maybe_price = maybe(Money{*rc::gen::inRange<std::int64_t>(-1'000, 1'000)});
  return row;
}

}  // namespace keyfold_test

template <>
struct keyfold::csv_value<keyfold_test::Money> {
  using Money = keyfold_test::Money;

  static std::string expected() { return "an amount such as 12.50"; }
  static std::optional<Money> parse(std::string_view text) {
    const auto point = text.find('.');
    if (point == std::string_view::npos || text.size() - point != 3) return std::nullopt;
    const auto digits = std::string(text.substr(0, point)) + std::string(text.substr(point + 1));
    const auto cents = csv_value<std::int64_t>::parse(digits);
    return cents ? std::optional(Money{*cents}) : std::nullopt;
  }
  static std::string text(const Money& money) {
    const auto sign = money.cents < 0 ? "-" : "";
    std::string digits = std::to_string(std::abs(money.cents));
    if (digits.size() < 3) digits.insert(0, 3 - digits.size(), '0');
    return sign + digits.insert(digits.size() - 2, ".");
  }
};
