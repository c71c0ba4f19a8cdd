// expect: keyfold: preview() of a table takes rows and a rule; without a rule write merge(rows).when_...().preview()
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
  static_cast<void>(orders.preview(rows));
#else
  static_cast<void>(orders.preview(rows, kf::merge_rule<Order>().when_matched().update_all()));
#endif
}
