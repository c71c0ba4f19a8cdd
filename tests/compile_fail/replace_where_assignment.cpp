// expect: keyfold: a condition is no assignment; compare with ==
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  int month = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, month))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void reload(Orders& orders, const std::vector<Order>& rows) {
#ifdef KEYFOLD_MISTAKE
  orders.replace_where(kf::target<&Order::month> = 1, rows);
#else
  orders.replace_where(kf::target<&Order::month> == 1, rows);
#endif
}
