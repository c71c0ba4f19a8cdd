// expect: keyfold: overwrite() takes one range of rows, all that the table is to have; upsert(row) writes one row
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
  orders.overwrite(row);
#else
  orders.overwrite({row});
#endif
}
