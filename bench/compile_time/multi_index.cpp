// The container alone, as one would use it by hand.
#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/member.hpp>
#include <boost/multi_index_container.hpp>

#include "order.hpp"

int main() {
  namespace mi = boost::multi_index;
  mi::multi_index_container<Order, mi::indexed_by<mi::hashed_unique<mi::member<Order, int, &Order::id>>>>
      orders;
  for (const Order& change : changes()) {
    const auto at = orders.find(change.id);
    if (at == orders.end()) {
      orders.insert(change);
    } else if (change.version > at->version) {
      orders.modify(at, [&](Order& order) { order = change; });
    }
  }
  return static_cast<int>(orders.size());
}
