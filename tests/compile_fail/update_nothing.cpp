// expect: keyfold: update() takes assignments or a callable; update_all() sets all columns
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const std::vector<Order>& rows) {
#ifdef KEYFOLD_MISTAKE
  orders.merge(rows).when_matched().update().execute();
#else
  orders.merge(rows).when_matched().update_all().execute();
#endif
}
