// expect: keyfold: a member of the key or of an index is not in the column list, so that it would not be saved; list it
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <sstream>

struct Order {
  int id = 0;
  std::string status;
};
template <>
#ifdef KEYFOLD_MISTAKE
struct keyfold::columns_of<Order> : keyfold::Columns<&Order::status>, keyfold::Ignored<&Order::id> {};
#else
struct keyfold::columns_of<Order> : keyfold::Columns<&Order::id>, keyfold::Ignored<&Order::status> {};
#endif

void save(const keyfold::Table<Order, keyfold::Key<&Order::id>>& orders, std::ostringstream& out) {
  keyfold::save(orders, out);
}
