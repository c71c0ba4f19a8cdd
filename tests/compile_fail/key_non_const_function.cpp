// expect: keyfold: a part of the key is not a member of the row
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  int day() const { return id / 100; }
  int renumber() { return ++id; }
};

#ifdef KEYFOLD_MISTAKE
kf::Table<Order, kf::Key<&Order::renumber>> orders;
#else
kf::Table<Order, kf::Key<&Order::day>> orders;
#endif
