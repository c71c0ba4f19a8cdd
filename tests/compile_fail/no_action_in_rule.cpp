// expect: keyfold: the rule of a merge is made by merge_rule<Row, Source>(), and its last clause has an action
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
  orders.merge(rows, kf::merge_rule<Order>().when_matched());
#else
  orders.merge(rows, kf::merge_rule<Order>().when_matched().update_all());
#endif
}
