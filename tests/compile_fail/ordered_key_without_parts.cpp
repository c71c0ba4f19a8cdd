// expect: keyfold: a key needs at least one part
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};

#ifdef KEYFOLD_MISTAKE
kf::Table<Order, kf::OrderedKey<>> orders;
#else
kf::Table<Order, kf::OrderedKey<&Order::id>> orders;
#endif
