// expect: keyfold: replace_where() takes a condition and a range of rows; give one row as std::array{row}
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const Order& row) {
#ifdef KEYFOLD_MISTAKE
  orders.replace_where(kf::target<&Order::id> == 1, row);
#else
  orders.replace_where(kf::target<&Order::id> == 1, std::array{row});
#endif
}
