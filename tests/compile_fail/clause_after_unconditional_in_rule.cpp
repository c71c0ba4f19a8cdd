// expect: keyfold: this clause can never act; a clause of its kind without a condition stands before it
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
  constexpr auto rule = kf::merge_rule<Order, Change>().when_matched().erase().when_matched().do_nothing();
  orders.merge(changes, rule);
#else
  constexpr auto rule =
      kf::merge_rule<Order, Change>().when_matched().erase().when_not_matched().do_nothing();
  orders.merge(changes, rule);
#endif
}
