// expect: keyfold: an index needs at least one part
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};

#ifdef KEYFOLD_MISTAKE
kf::Table<Order, kf::Key<&Order::id>, kf::OrderedBy<>> orders;
#else
kf::Table<Order, kf::Key<&Order::id>, kf::OrderedBy<&Order::status>> orders;
#endif
