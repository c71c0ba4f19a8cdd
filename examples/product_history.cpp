// A slowly changing dimension (SCD type 2) fed by events that come out of order, and what it says of a
// business date.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

using Day = std::chrono::sys_days;

struct Product {
  std::string sku;
  std::string name;
  int price_cents = 0;
  Day valid_from;
  std::optional<Day> valid_to;  // empty: the current row
};
struct ProductEvent {
  std::string sku;
  char op = 'U';
  std::string name;
  int price_cents = 0;
  Day day;
};
BOOST_DESCRIBE_STRUCT(Product, (), (sku, name, price_cents, valid_from, valid_to))
BOOST_DESCRIBE_STRUCT(ProductEvent, (), (sku, op, name, price_cents, day))

using Products = kf::Table<Product, kf::OrderedKey<&Product::sku, &Product::valid_from>>;

constexpr Day day(unsigned month, unsigned day_of_month) {
  return Day(std::chrono::year(2026) / std::chrono::month(month) / std::chrono::day(day_of_month));
}

void load(Products& products, const std::vector<ProductEvent>& events) {
  const auto result = products.apply_changes(events)
                          .sequence_by<&ProductEvent::day>()
                          .apply_as_deletes(kf::source<&ProductEvent::op> == 'D')
                          .scd2<&Product::valid_from, &Product::valid_to>()
                          .execute();
  std::cout << result.metrics() << '\n' << kf::print(products) << '\n';
}

// The row that was valid on a day: the last one that began by then, if it had not ended.
const Product* valid_on(const Products& products, const std::string& sku, Day date) {
  const Product* found = nullptr;
  for (const Product& row : products.by<&Product::sku, &Product::valid_from>().equal_range(sku)) {
    if (row.valid_from <= date) found = &row;
  }
  return found != nullptr && (!found->valid_to || date < *found->valid_to) ? found : nullptr;
}

int main() {
  Products products;
  load(products, {{"tea", 'U', "Assam", 450, day(1, 5)}, {"tea", 'U', "Assam", 500, day(6, 1)}});
  load(products, {{"tea", 'U', "Assam", 470, day(3, 1)}});  // a late event splits a row
  load(products, {{"tea", 'D', "", 0, day(4, 1)}});         // and a late delete leaves a gap

  for (const Day date : {day(1, 1), day(2, 1), day(3, 15), day(5, 1), day(12, 1)}) {
    const Product* row = valid_on(products, "tea", date);
    std::cout << unsigned{std::chrono::year_month_day(date).month()}
              << "/2026: " << (row != nullptr ? std::to_string(row->price_cents) : "not sold") << '\n';
  }
}
