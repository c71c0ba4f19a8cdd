// expect: keyfold: patch() takes one range of rows; give one row as std::array{row}
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
struct Change {
  int id = 0;
  std::optional<std::string> status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
BOOST_DESCRIBE_STRUCT(Change, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const Change& change) {
#ifdef KEYFOLD_MISTAKE
  orders.patch(change);
#else
  orders.patch(std::array{change});
#endif
}
