// expect: keyfold: the second argument of Table is its key, as in Key<&Row::id> or OrderedKey<&Row::id>
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};

#ifdef KEYFOLD_MISTAKE
kf::Table<Order, int> orders;
#else
kf::Table<Order, kf::Key<&Order::id>> orders;
#endif
