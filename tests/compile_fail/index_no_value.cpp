// expect: keyfold: equal_range() needs at least one lookup value
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
  char op = 'U';
  std::string status;
  std::optional<int> cents;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Change, (), (id, op, status, cents))
using Orders = kf::Table<Order, kf::Key<&Order::id>, kf::OrderedBy<&Order::status, &Order::cents>>;

auto rows(const Orders& orders) {
#ifdef KEYFOLD_MISTAKE
  return orders.by<&Order::status, &Order::cents>().equal_range();
#else
  return orders.by<&Order::status, &Order::cents>().equal_range("a");
#endif
}
