// expect: keyfold: a when_matched clause has no action; right after it comes update_all(),
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
  orders.merge(rows).when_matched().execute();
#else
  orders.merge(rows).when_matched().update_all().execute();
#endif
}
