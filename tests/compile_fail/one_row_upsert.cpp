// expect: keyfold: upsert() takes a row of the table or one range of rows; give one row of another type as std::array{row}
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
struct Derived : Order {};
struct Other {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Other, (), (id, status))
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const Derived& derived, const Other& other) {
#ifdef KEYFOLD_MISTAKE
  orders.upsert(other);
#else
  orders.upsert(derived), orders.upsert(std::array{other});
#endif
}
