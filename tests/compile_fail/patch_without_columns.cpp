// expect: keyfold: update_present() and insert_present() need the column lists of both types
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
#ifdef KEYFOLD_MISTAKE
struct Bare {
  int id = 0;
  std::optional<std::string> status;
};
#else
using Bare = Patch;
BOOST_DESCRIBE_STRUCT(Patch, (), (id, status))
#endif
using Orders = kf::Table<Order, kf::Key<&Order::id>>;
void merge(Orders& orders, const std::vector<Bare>& patches) {
  orders.merge(patches).on<&Bare::id>().when_matched().update_present().execute();
}
