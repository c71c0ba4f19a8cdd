// expect: keyfold: update_all() and insert_all() from another row type need the column lists of both types;
// use BOOST_DESCRIBE_STRUCT or columns_of
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
  struct Bare {
    int id = 0;
  };
  orders.replace_where(kf::target<&Order::id> == 1, std::vector<Bare>{{static_cast<int>(changes.size())}});
#else
  orders.replace_where(kf::target<&Order::id> == 1, changes);
#endif
}
