// expect: keyfold: JSON needs the column list of the row; describe it or specialise columns_of
#include <keyfold/json.hpp>

#include <sstream>

struct Price {
  std::string sku;
  int cents = 0;
};

#ifndef KEYFOLD_MISTAKE
template <>
struct keyfold::columns_of<Price> : keyfold::Columns<&Price::sku, &Price::cents> {};
#endif

auto prices(std::istream& stream) { return keyfold::read_json<Price>(stream); }
