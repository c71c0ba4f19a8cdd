// mention: nothing happens before execute() or preview()
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
};
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void builders(Orders& orders, const std::vector<Order>& batch) {
  orders.merge(batch);                                                // discarded
  orders.merge(batch).when_matched();                                 // discarded
  orders.merge(batch).when_matched().erase();                         // discarded
  orders.merge(batch).when_matched().erase().metadata("monday.csv");  // discarded
  orders.merge(batch).when_matched().erase().once("app", 1);          // discarded
  orders.merge(batch).when_matched().erase().preview();               // discarded
  kf::merge_rule<Order>().when_matched().erase();                     // discarded
  orders.apply_changes(batch);                                        // discarded
  orders.metadata("monday.csv");                                      // discarded
  orders.transaction();                                               // discarded
}

void pure_functions(const Orders& orders) {
  kf::is_null(kf::source<&Order::id>);                  // discarded
  kf::named("any", [](const Order&) { return true; });  // discarded
  orders.size();                                        // discarded
  orders.find(1);                                       // discarded
  orders.history();                                     // discarded
}

void writes(Orders& orders, const std::vector<Order>& batch) {
  orders.merge(batch).when_matched().erase().execute();
  orders.upsert(batch);
  orders.insert({1});
  orders.erase(1);
  orders.clear();
}
