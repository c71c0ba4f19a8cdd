// Change events in Debezium's envelope, as a connector delivers them: a snapshot, then the log, some of it
// twice.
#include <keyfold/debezium.hpp>
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <string>
#include <vector>

struct Order {
  int id = 0;
  std::string status;
  int cents = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))

using Orders = kf::Table<Order, kf::OrderedKey<&Order::id>>;
using Event = kf::debezium::Event<Order>;  // op, before, after, sequence: here the position in the log

void load(Orders& orders, const std::string& from, const std::vector<Event>& events) {
  const auto result = kf::debezium::apply_changes(orders, events).metadata(from).execute();
  std::cout << from << ": " << result.metrics() << '\n';
}

int main() {
  Orders orders;
  load(orders, "snapshot", {{'r', {}, Order{1, "open", 500}, 100}, {'r', {}, Order{2, "open", 900}, 100}});

  const std::vector<Event> log{{'u', Order{1, "open", 500}, Order{1, "paid", 500}, 101},
                               {'c', {}, Order{3, "open", 250}, 102},
                               {'d', Order{2, "open", 900}, {}, 103},
                               {},  // the tombstone that follows a delete: ignored
                               {'u', Order{3, "open", 250}, Order{3, "paid", 250}, 104}};
  load(orders, "log, second half", {log[3], log[4], log[2]});
  load(orders, "log, whole", log);  // the connector was restarted: events come again
  load(orders, "snapshot again", {{'r', {}, Order{2, "open", 900}, 100}});  // order 2 stays deleted

  std::cout << kf::print(orders) << kf::print(orders.diff(1, orders.version()));
}
