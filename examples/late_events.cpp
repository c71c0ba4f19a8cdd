// The same change events in order, shuffled, and one by one: every table ends the same, and no late event
// brings a deleted row back.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <string>
#include <vector>

struct Sale {
  int receipt = 0;
  std::string article;
  int pieces = 0;
};
struct SaleEvent {
  int receipt = 0;
  char op = 'U';  // U: upsert, D: delete, T: truncate
  std::string article;
  int pieces = 0;
  int lsn = 0;
};
BOOST_DESCRIBE_STRUCT(Sale, (), (receipt, article, pieces))
BOOST_DESCRIBE_STRUCT(SaleEvent, (), (receipt, op, article, pieces, lsn))

using Sales = kf::Table<Sale, kf::OrderedKey<&Sale::receipt>>;
using Events = std::vector<SaleEvent>;

kf::Metrics load(Sales& sales, const Events& events) {
  return sales.apply_changes(events)
      .sequence_by<&SaleEvent::lsn>()
      .apply_as_deletes(kf::source<&SaleEvent::op> == 'D')
      .apply_as_truncates(kf::source<&SaleEvent::op> == 'T')
      .execute()
      .metrics();
}

int main() {
  const Events in_order{{1, 'U', "tea", 1, 10}, {2, 'U', "rum", 2, 11},  {0, 'T', "", 0, 12},
                        {3, 'U', "jam", 3, 13}, {4, 'U', "salt", 4, 14}, {4, 'D', "", 0, 15},
                        {3, 'U', "jam", 9, 16}};
  Sales sales;
  std::cout << "in order:    " << load(sales, in_order) << '\n' << kf::print(sales);

  const Events backwards(in_order.rbegin(), in_order.rend());
  Sales shuffled;
  std::cout << "backwards:   " << load(shuffled, backwards) << '\n' << kf::print(shuffled);

  Sales one_by_one;
  std::size_t late = 0;
  for (const SaleEvent& event : backwards) late += load(one_by_one, {event}).dropped_late;
  std::cout << "one by one:  " << late << " late, " << one_by_one.version() << " version(s)\n"
            << kf::print(one_by_one);

  std::cout << "told again:  " << load(sales, in_order) << '\n';
}
