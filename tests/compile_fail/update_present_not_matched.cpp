// expect: keyfold: update_present() belongs to when_matched; only there are both a target and a source row
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
  std::optional<int> cents;
};
struct Patch {
  int id = 0;
  std::optional<std::string> status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Patch, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Patch>& patches) {
#ifdef KEYFOLD_MISTAKE
  orders.merge(patches).when_not_matched().update_present().execute();
#else
  orders.merge(patches).when_matched().update_present().execute();
#endif
}
