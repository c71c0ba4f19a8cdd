// expect: keyfold: a condition on rows of the table must be an expression or callable as bool(const Row&)
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
  std::optional<int> cents;
  int sequence = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Change, (), (id, status, cents, sequence))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const std::vector<Change>& changes) {
#ifdef KEYFOLD_MISTAKE
  orders.replace_where([](const Change& row) { return row.id == 1; }, changes);
#else
  orders.replace_where([](const Order& row) { return row.id == 1; }, changes);
#endif
}
