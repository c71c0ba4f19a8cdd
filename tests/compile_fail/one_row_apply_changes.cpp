// expect: keyfold: apply_changes() takes one range of events; give one event as std::array{event}
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
  orders.apply_changes(row).sequence_by<&Order::id>().execute();
#else
  orders.apply_changes(std::array{row}).sequence_by<&Order::id>().execute();
#endif
}
