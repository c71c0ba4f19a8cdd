// expect: keyfold: update_where() takes assignments to target columns, or one callable as Row(const Row&)
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
  static_cast<void>(changes),
      orders.update_where(kf::target<&Order::id> == 1, [](const Order& a, const Order&) { return a; });
#else
  static_cast<void>(changes),
      orders.update_where(kf::target<&Order::id> == 1, [](const Order& a) { return a; });
#endif
}
