// expect: keyfold: apply() takes a ChangeSet of the table's rows, as diff() and changes() of a result give it; upsert(rows) writes rows
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
  orders.apply(rows);
#else
  orders.apply(orders.upsert(rows).changes());
#endif
}
