// expect: keyfold: this member is not in the column list of the row
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
template <>
struct keyfold::columns_of<Order> : keyfold::Columns<&Order::id>, keyfold::Ignored<&Order::status> {};

bool changed(const kf::ColumnMask<Order>& mask) {
#ifdef KEYFOLD_MISTAKE
  return mask.contains<&Order::status>();
#else
  return mask.contains<&Order::id>();
#endif
}
