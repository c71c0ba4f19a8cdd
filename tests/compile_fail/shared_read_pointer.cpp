// expect: keyfold: what read() or write() returns must not refer to the table, which others may change by then; return a copy of the row or of the rows
#include <keyfold/keyfold.hpp>
#include <keyfold/shared_table.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
};
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

auto order_7(const kf::SharedTable<Orders>& orders) {
#ifdef KEYFOLD_MISTAKE
  return orders.read([](const Orders& table) { return table.find(7); });
#else
  return orders.read([](const Orders& table) { return table.at(7); });
#endif
}
