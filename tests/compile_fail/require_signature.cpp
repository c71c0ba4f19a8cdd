// expect: keyfold: a condition on rows of the table must be an expression or callable as bool(const Row&)
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
  std::optional<int> cents;
};
struct Change {
  int id = 0;
  std::string status;
  std::optional<int> cents;
  int sequence = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Change, (), (id, status, cents, sequence))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const std::vector<Change>& changes) {
#ifdef KEYFOLD_MISTAKE
  static_cast<void>(changes), orders.require("positive", [](Order& order) { return order.id > 0; });
#else
  static_cast<void>(changes), orders.require("positive", [](const Order& order) { return order.id > 0; });
#endif
}
