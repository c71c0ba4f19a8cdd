// expect: keyfold: Arrow needs the column list of the row; describe it or specialise columns_of
#include <keyfold/arrow.hpp>

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

void give(const std::vector<Price>& prices, ArrowArray* array) { keyfold::export_arrow(prices, array); }
