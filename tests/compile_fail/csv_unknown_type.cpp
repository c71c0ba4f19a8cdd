// expect: keyfold: CSV does not know the type of this column; specialise keyfold::csv_value for it
// mention: Money
#include <keyfold/csv.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

struct Money {
  int cents = 0;
};

#ifndef KEYFOLD_MISTAKE
template <>
struct keyfold::csv_value<Money> {
  static std::string expected() { return "cents"; }
  static std::optional<Money> parse(std::string_view text) {
    const auto cents = csv_value<int>::parse(text);
    return cents ? std::optional(Money{*cents}) : std::nullopt;
  }
};
#endif

struct Price {
  std::string sku;
  std::optional<Money> money;
};
BOOST_DESCRIBE_STRUCT(Price, (), (sku, money))

auto prices(std::istream& stream) { return keyfold::read_csv<Price>(stream); }
