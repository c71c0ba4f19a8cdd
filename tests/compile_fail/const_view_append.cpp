// expect: keyfold: this range cannot be read while it is const; declare it without const
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
};
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

struct Rows {  // as std::views::filter makes them
  Order* begin();
  Order* end();
};

#ifdef KEYFOLD_MISTAKE
void append(Orders& orders, const Rows& rows) { orders.append(rows); }
#else
void append(Orders& orders, Rows& rows) { orders.append(rows); }
#endif
