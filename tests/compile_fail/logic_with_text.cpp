// expect: keyfold: an operand of a logical operator must be true or false; compare the value with something
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
BOOST_DESCRIBE_STRUCT(Change, (), (id, op, status, cents))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Change>& changes) {
#ifdef KEYFOLD_MISTAKE
  orders.merge(changes)
      .when_matched(kf::source<&Change::status> && kf::source<&Change::id> == 1)
      .erase()
      .execute();
#else
  orders.merge(changes)
      .when_matched(kf::source<&Change::status> != "" && kf::source<&Change::id> == 1)
      .erase()
      .execute();
#endif
}
