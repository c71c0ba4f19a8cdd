// expect: keyfold: after its key a Table takes indexes: OrderedBy<...>, HashedBy<...> or UniqueBy<...>
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};

#ifdef KEYFOLD_MISTAKE
kf::Table<Order, kf::Key<&Order::id>, kf::Key<&Order::status>> orders;
#else
kf::Table<Order, kf::Key<&Order::id>, kf::UniqueBy<&Order::status>> orders;
#endif
