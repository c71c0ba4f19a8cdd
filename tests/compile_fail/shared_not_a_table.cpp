// expect: keyfold: what is shared is a table or a store of one: SharedTable<Table<Row, Key<&Row::id>>>
#include <keyfold/keyfold.hpp>
#include <keyfold/shared_table.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
};

#ifdef KEYFOLD_MISTAKE
void make() { kf::SharedTable<Order> orders; }
#else
void make() { kf::SharedTable<kf::Table<Order, kf::Key<&Order::id>>> orders; }
#endif
