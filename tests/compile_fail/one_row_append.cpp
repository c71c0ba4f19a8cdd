// expect: keyfold: append() takes one range of rows; insert(row) adds one
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders) {
#ifdef KEYFOLD_MISTAKE
  orders.append({1, "open"});
#else
  orders.append({{1, "open"}}), orders.append({}), orders.insert({1, "open"});
#endif
}
