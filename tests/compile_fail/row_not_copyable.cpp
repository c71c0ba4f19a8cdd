// expect: keyfold: a row must be copyable, since history keeps its old images
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
#ifdef KEYFOLD_MISTAKE
  std::unique_ptr<int> note;
#else
  std::shared_ptr<int> note;
#endif
};

kf::Table<Order, kf::Key<&Order::id>> orders;
