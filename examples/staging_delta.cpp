// A staging table of another shape: it brings a price and a note, and only the columns named are touched.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

struct Product {
  std::string sku;
  std::string name;
  int price_cents = 0;
  int revision = 1;
  std::optional<std::string> note;
};
BOOST_DESCRIBE_STRUCT(Product, (), (sku, name, price_cents, revision, note))

struct Staged {  // needs no column list: the clauses name its members
  std::string product;
  int new_price = 0;
  std::optional<std::string> comment;
};

int main() {
  kf::Table<Product, kf::Key<&Product::sku>> products;
  products.append({{"tea-01", "Assam", 450, 1, std::nullopt}, {"tea-02", "Sencha", 620, 1, "seasonal"}});

  const auto load = [&](const std::vector<Staged>& staging) {
    const auto result = products.merge(staging)
                            .on<&Staged::product>()
                            .when_matched(kf::source<&Staged::new_price> != kf::target<&Product::price_cents>)
                                .update(kf::target<&Product::price_cents> = kf::source<&Staged::new_price>,
                                        kf::target<&Product::revision> = kf::target<&Product::revision> + 1,
                                        kf::target<&Product::note> =
                                            kf::coalesce(kf::source<&Staged::comment>, kf::target<&Product::note>))
                            .when_not_matched()
                                .insert(kf::target<&Product::sku> = kf::source<&Staged::product>,
                                        kf::target<&Product::name> = "(unnamed)",
                                        kf::target<&Product::price_cents> = kf::source<&Staged::new_price>)
                            .execute();
    std::cout << result.metrics() << '\n' << kf::print(result.changes()) << '\n';
  };

  load({{"tea-02", 590, std::nullopt}});  // a delta of one row
  load({{"tea-02", 590, std::nullopt}});  // again: the condition does not hold any more
  load({{"tea-03", 880, "ignored"}, {"tea-01", 470, "new supplier"}});
  std::cout << kf::print(products);
}
