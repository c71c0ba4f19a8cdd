// expect: keyfold: on<&Source::member>() names the key of the source between angle brackets
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
  orders.merge(rows).on(&Order::id).when_matched().erase().execute();
#else
  orders.merge(rows).on<&Order::id>().when_matched().erase().execute();
#endif
}
