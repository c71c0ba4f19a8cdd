// What printing adds: a table and the changes of its merge.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <iostream>

#include "order.hpp"

BOOST_DESCRIBE_STRUCT(Order, (), (id, customer, status, amount, version))

int main() {
  kf::Table<Order, kf::Key<&Order::id>> orders;
  const auto result = orders.merge(changes())
                          .duplicates(kf::keep_last)
                          .when_matched(kf::source<&Order::version> > kf::target<&Order::version>)
                          .update_all()
                          .when_not_matched()
                          .insert_all()
                          .execute();
  std::cout << kf::print(result.changes()) << kf::print(orders);
}
