// expect: keyfold: print() needs the column list of the row; describe it or specialise columns_of
#include <keyfold/print.hpp>

struct Price {
  int sku = 0;
  int cents = 0;
};

#ifndef KEYFOLD_MISTAKE
template <>
struct keyfold::columns_of<Price> : keyfold::Columns<&Price::sku, &Price::cents> {};
#endif

std::string text(const keyfold::ChangeSet<Price>& changes) { return keyfold::print(changes).text(); }
