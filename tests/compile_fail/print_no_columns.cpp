// expect: keyfold: print() needs the column list of the row; describe it or specialise columns_of
#include <keyfold/print.hpp>

#include <string>
#include <vector>

struct Price {
  std::string sku;
  int cents = 0;
};

#ifndef KEYFOLD_MISTAKE
template <>
struct keyfold::columns_of<Price> : keyfold::Columns<&Price::sku, &Price::cents> {};
#endif

void show(std::ostream& stream, const std::vector<Price>& prices) { stream << keyfold::print(prices); }
