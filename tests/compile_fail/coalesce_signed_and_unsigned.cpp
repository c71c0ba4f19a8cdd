// expect: keyfold: no integer type holds the signed and the unsigned operand of coalesce()
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
  std::optional<std::uint64_t> cents;
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
      .when_matched(kf::coalesce(kf::source<&Change::cents>, kf::target<&Order::cents>) == 5)
      .erase()
      .execute();
#else
  orders.merge(changes).when_matched(kf::coalesce(kf::target<&Order::cents>, 0) == 5).erase().execute();
#endif
}
