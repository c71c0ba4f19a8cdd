// expect: keyfold: the column list names a member of another type
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
template <>
struct keyfold::columns_of<Order> : keyfold::Columns<&Order::id, &Price::id> {};
#else
template <>
struct keyfold::columns_of<Order> : keyfold::Columns<&Order::id, &Order::status> {};
#endif

static_assert(kf::column_count<Order> == 2);
