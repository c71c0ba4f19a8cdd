// expect: keyfold: replace_using<>() takes a range of rows; give one row as std::array{row}
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
  orders.replace_using<&Order::id>(row);
#else
  orders.replace_using<&Order::id>(std::array{row});
#endif
}
