// expect: keyfold: a part of the key is not a member of the row
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};
struct Price {
  int id = 0;
};

#ifdef KEYFOLD_MISTAKE
kf::Table<Order, kf::Key<&Price::id>> orders;
#else
kf::Table<Order, kf::Key<&Order::id>> orders;
#endif
