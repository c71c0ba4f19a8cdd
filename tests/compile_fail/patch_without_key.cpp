// expect: keyfold: insert_present() needs the key of the target among the columns of the source; the part named here is missing
// mention: &Order::id
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
struct Patch {
#ifdef KEYFOLD_MISTAKE
  int order = 0;
#else
  int id = 0;
#endif
  std::optional<std::string> status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
#ifdef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Patch, (), (order, status))
constexpr auto key = &Patch::order;
#else
BOOST_DESCRIBE_STRUCT(Patch, (), (id, status))
constexpr auto key = &Patch::id;
#endif
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void merge(Orders& orders, const std::vector<Patch>& patches) {
  orders.merge(patches).on<key>().when_not_matched().insert_present().execute();
}
