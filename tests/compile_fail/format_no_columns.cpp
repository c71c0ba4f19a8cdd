// expect: keyfold: a row is formatted by its column list; describe it or specialise columns_of
#include <keyfold/format.hpp>

#include <string>

struct Price {
  std::string sku;
  int cents = 0;
};

#ifndef KEYFOLD_MISTAKE
template <>
struct keyfold::columns_of<Price> : keyfold::Columns<&Price::sku, &Price::cents> {};
#endif

template <>
inline constexpr bool keyfold::enable_row_format<Price> = true;

auto text(const Price& price) { return fmt::format("{}", price); }
