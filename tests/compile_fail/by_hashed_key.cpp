// expect: keyfold: by<> names members that no index of the table is made of
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
using Orders = kf::Table<Order, kf::Key<&Order::id>, kf::HashedBy<&Order::status>>;

auto index(const Orders& orders) {
#ifdef KEYFOLD_MISTAKE
  return orders.by<&Order::id>();
#else
  return orders.by<&Order::status>();
#endif
}
