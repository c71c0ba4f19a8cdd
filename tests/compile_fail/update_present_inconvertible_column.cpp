// expect: keyfold: update_present() and insert_present() found a source column of this name whose type does not convert
// mention: &Order::status
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
#ifdef KEYFOLD_MISTAKE
  std::optional<int> status;
#else
  std::optional<std::string> status;
#endif
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Patch, (), (id, status))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;
void merge(Orders& orders, const std::vector<Patch>& patches) { orders.patch(patches); }
