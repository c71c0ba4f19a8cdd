// expect: keyfold: insert() by assignments needs a default constructible row; give a callable that makes one
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
#ifdef KEYFOLD_MISTAKE
  explicit Order(int order_id) : id(order_id) {}
#else
  explicit Order(int order_id = 0) : id(order_id) {}
#endif
  int id;
};
struct Change {
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id))
BOOST_DESCRIBE_STRUCT(Change, (), (id))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Change>& changes) {
  orders.merge(changes).when_not_matched().insert(kf::target<&Order::id> = kf::source<&Change::id>).execute();
}
