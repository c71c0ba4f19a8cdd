// expect: keyfold: an assignment that calculates is written target<&Row::column> = target<&Row::column> + value
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders) {
#ifdef KEYFOLD_MISTAKE
  orders.update_where(kf::target<&Order::id> > 0, kf::target<&Order::id> += 1);
#else
  orders.update_where(kf::target<&Order::id> > 0, kf::target<&Order::id> = kf::target<&Order::id> + 1);
#endif
}
