// expect: keyfold: the column list misses a member of the row; list it, or name it in keyfold::Ignored
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};

#ifdef KEYFOLD_MISTAKE
template <>
struct keyfold::columns_of<Order> : keyfold::Columns<&Order::id> {};
#else
template <>
struct keyfold::columns_of<Order> : keyfold::Columns<&Order::id, &Order::status> {};
#endif

void fill(kf::Table<Order, kf::Key<&Order::id>>& orders) { orders.upsert(Order()); }
