// expect: keyfold: after what is to be printed, print() takes max_rows(n) and max_width(n)
#include <keyfold/print.hpp>

struct Price {
  int sku = 0;
};
template <>
struct keyfold::columns_of<Price> : keyfold::Columns<&Price::sku> {};

std::string text(const keyfold::ChangeSet<Price>& changes) {
#ifdef KEYFOLD_MISTAKE
  return keyfold::print(changes, 20).text();
#else
  return keyfold::print(changes, keyfold::max_rows(20)).text();
#endif
}
