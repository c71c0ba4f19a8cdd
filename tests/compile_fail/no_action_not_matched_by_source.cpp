// expect: keyfold: a when_not_matched_by_source clause has no action; right after it comes update(...),
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
  static_cast<void>(orders.merge(rows).when_not_matched_by_source().preview());
#else
  static_cast<void>(orders.merge(rows).when_not_matched_by_source().erase().preview());
#endif
}
