// expect: keyfold: insert_all() needs every column of the target in the source; the one named here is missing
// mention: &Order::cents
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
  std::string status;
#ifndef KEYFOLD_MISTAKE
  std::optional<int> cents;
#endif
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
#ifdef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Change, (), (id, status))
#else
BOOST_DESCRIBE_STRUCT(Change, (), (id, status, cents))
#endif
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Change>& changes) {
  orders.merge(changes, kf::merge_rule<Order, Change>().when_not_matched().insert_all());
}
