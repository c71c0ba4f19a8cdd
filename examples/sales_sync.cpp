// One sales table, kept by a source that delivers full copies on some days and change events on others. Both
// ways end in the same rows.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

struct Sale {
  int id = 0;
  std::string shop;
  int cents = 0;
  bool operator==(const Sale&) const = default;
};
struct SaleEvent {
  char op = 'U';   // U: as it is now, D: cancelled
  int number = 0;  // of the event
  int id = 0;
  std::string shop;
  int cents = 0;
};
BOOST_DESCRIBE_STRUCT(Sale, (), (id, shop, cents))
BOOST_DESCRIBE_STRUCT(SaleEvent, (), (op, number, id, shop, cents))

using Sales = kf::Table<Sale, kf::OrderedKey<&Sale::id>>;

void feed(Sales& sales, const std::vector<SaleEvent>& events) {
  const auto result = sales.apply_changes(events)
                          .sequence_by<&SaleEvent::number>()
                          .apply_as_deletes(kf::source<&SaleEvent::op> == 'D')
                          .execute();
  std::cout << "events:    " << result.metrics() << '\n';
}

int main() {
  const std::vector<Sale> monday{{1, "harbour", 500}, {2, "market", 900}, {3, "market", 100}};
  const std::vector<Sale> tuesday{{1, "harbour", 550}, {3, "market", 100}, {4, "station", 70}};
  const std::vector<SaleEvent> between{{'U', 11, 1, "harbour", 520},
                                       {'D', 12, 2, "", 0},
                                       {'U', 13, 4, "station", 70},
                                       {'U', 14, 1, "harbour", 550}};

  Sales copied;
  for (const auto& day : {monday, tuesday}) {
    // A sale that the copy does not have is cancelled; one that is as before makes no change.
    std::cout << "full copy: " << copied.overwrite(day).metrics() << '\n';
  }

  Sales fed;
  fed.append(monday);
  feed(fed, {between[2], between[3]});  // they come in two batches, and not in order
  feed(fed, {between[0], between[1]});
  std::cout << (std::ranges::equal(copied, fed) ? "the same rows\n" : "not the same rows\n");

  feed(fed, between);  // all of them once more: nothing happens
  std::cout << kf::print(copied) << kf::print(copied.diff(1, 2));
}
