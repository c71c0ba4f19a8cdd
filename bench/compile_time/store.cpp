// The same merge into a table on disk.
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include "order.hpp"

BOOST_DESCRIBE_STRUCT(Order, (), (id, customer, status, amount, version))

int main() {
  auto store = kf::Store<kf::Table<Order, kf::Key<&Order::id>>>::open("orders");
  store.merge(changes())
      .duplicates(kf::keep_last)
      .when_matched(kf::source<&Order::version> > kf::target<&Order::version>)
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
  return static_cast<int>(store.table().size());
}
