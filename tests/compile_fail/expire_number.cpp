// expect: keyfold: expire() takes keep_last(versions), older_than(time) or keep_for(duration)
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
  orders.expire(3);
#else
  orders.expire(kf::keep_last(3)), orders.expire(kf::older_than(kf::Timestamp())),
      orders.expire(kf::keep_for(std::chrono::hours(1)));
#endif
}
