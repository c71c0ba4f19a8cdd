// The core and one merge.
#include <keyfold/keyfold.hpp>

#include "order.hpp"

int main() {
  kf::Table<Order, kf::Key<&Order::id>> orders;
  orders.merge(changes())
      .duplicates(kf::keep_last)
      .when_matched(kf::source<&Order::version> > kf::target<&Order::version>)
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
  return static_cast<int>(orders.size());
}
