// expect: keyfold: update_all() and insert_all() from another row type need the column lists of both types
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
  char op = 'U';
  std::string status;
  std::optional<int> cents;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
#ifndef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Change, (), (id, op, status, cents))
#endif
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Change>& changes) {
  orders.merge(changes).on<&Change::id>().when_matched().update_all().execute();
}
