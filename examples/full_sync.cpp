// The source is a full copy: rows it does not have any more are deleted, or marked where that is the rule.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <string>
#include <vector>

struct Item {
  std::string sku;
  std::string warehouse;
  int stock = 0;
  bool active = true;
};
BOOST_DESCRIBE_STRUCT(Item, (), (sku, warehouse, stock, active))

int main() {
  kf::Table<Item, kf::Key<&Item::sku>> items;
  items.append({{"bolt", "north", 40}, {"nut", "north", 55}, {"saw", "north", 0}, {"vase", "south", 3}});

  // A full copy of the warehouse in the north. What is in the south is none of its business.
  const std::vector<Item> north{{"bolt", "north", 38}, {"nut", "north", 55}, {"file", "north", 12}};
  const auto synchronise = [&](const std::vector<Item>& rows) {
    return items.merge(rows)
        .when_matched().update_all()
        .when_not_matched().insert_all()
        .when_not_matched_by_source(kf::target<&Item::warehouse> == "south").do_nothing()
        .when_not_matched_by_source(kf::target<&Item::stock> > 0).update(kf::target<&Item::active> = false)
        .when_not_matched_by_source().erase()
        .execute();
  };

  const auto first = synchronise(north);
  std::cout << first.metrics() << '\n' << kf::print(first.changes()) << '\n';

  const auto second = synchronise({{"bolt", "north", 38}});  // nut and file are gone, with stock left
  std::cout << second.metrics() << '\n' << kf::print(second.changes()) << '\n' << kf::print(items);
}
