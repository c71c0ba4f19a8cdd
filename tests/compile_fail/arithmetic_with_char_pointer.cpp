// expect: keyfold: the two sides of an arithmetic operator have types without it
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
  const char* op = "";
  std::string status;
  std::optional<int> cents;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Change, (), (id, op, status, cents))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Change>& changes) {
#ifdef KEYFOLD_MISTAKE
  orders.merge(changes)
      .when_matched()
      .update(kf::target<&Order::status> = kf::source<&Change::op> + 1)
      .execute();
#else
  orders.merge(changes).when_matched().update(kf::target<&Order::status> = kf::source<&Change::op>).execute();
#endif
}
