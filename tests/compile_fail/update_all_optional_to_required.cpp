// expect: keyfold: update_all() and insert_all() found a source column of this name whose type does not convert
// mention: &Order::cents
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
#ifdef KEYFOLD_MISTAKE
  int cents = 0;
#else
  std::optional<int> cents;
#endif
};
struct Change {
  int id = 0;
  char op = 'U';
  std::string status;
  std::optional<int> cents;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Change, (), (id, op, status, cents))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Change>& changes) {
  orders.merge(changes).when_matched().update_all().execute();
}
