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
  std::optional<int> cents;
  int sequence = 0;
};
struct Partial {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Change, (), (id, status, cents, sequence))
BOOST_DESCRIBE_STRUCT(Partial, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const std::vector<Change>& changes) {
#ifdef KEYFOLD_MISTAKE
  orders.overwrite(std::vector<Partial>(changes.size()));
#else
  orders.overwrite(changes);
#endif
}
