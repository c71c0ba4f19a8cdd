// expect: keyfold: an empty optional cannot be looked up in a column that is never empty
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
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

auto read(const Orders& orders) {
#ifdef KEYFOLD_MISTAKE
  return orders.find(std::nullopt);
#else
  return orders.find(1);
#endif
}
