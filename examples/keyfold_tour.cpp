// A tour: a table of orders from its first rows to a commit that is undone. Each stop says what it shows.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <iostream>
#include <string>
#include <vector>

struct Order {
  int id = 0;
  std::string customer;
  std::string status;
  int cents = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, customer, status, cents))  // lists the columns

using Orders = kf::Table<Order, kf::Key<&Order::id>, kf::OrderedBy<&Order::customer, &Order::id>>;

void stop(const char* title) { std::cout << "\n--- " << title << '\n'; }

int main() {
  stop("A table of plain structs, unique by id");
  Orders orders;
  orders.append({{1, "ann", "open", 500}, {2, "bob", "open", 900}, {3, "ann", "open", 250}});
  std::cout << kf::print(orders);

  stop("A batch is merged: the first clause that holds for a row acts on it");
  const std::vector<Order> batch{
      {1, "ann", "paid", 500}, {2, "bob", "cancelled", 900}, {3, "ann", "open", 250}, {4, "eve", "open", 70}};
  const auto result = orders.merge(batch)
                          .when_matched(kf::source<&Order::status> == "cancelled").erase()
                          .when_matched().update_all()
                          .when_not_matched().insert_all()
                          .metadata("monday.csv")
                          .execute();
  std::cout << result.metrics() << '\n' << kf::print(result.changes());

  stop("The same batch again, without metadata: nothing would change, so there is no new version");
  const auto again = orders.merge(batch).when_matched().update_all().execute();
  std::cout << again.metrics() << "; version " << again.version() << '\n';

  stop("All or nothing: two rows for order 1 are refused, and order 9 is not there either");
  try {
    orders.upsert({{9, "joe", "open", 10}, {1, "ann", "sent", 500}, {1, "ann", "lost", 500}});
  } catch (const kf::DuplicateSourceKey& error) {
    std::cout << error.what() << "\norders with the number 9: " << (orders.contains(9) ? 1 : 0) << '\n';
  }

  stop("Rules that every row meets");
  orders.require("cents are not negative", kf::target<&Order::cents> >= 0);
  try {
    orders.update_where(kf::target<&Order::id> == 4,
                        kf::target<&Order::cents> = kf::target<&Order::cents> - 100);
  } catch (const kf::CheckViolation& error) {
    std::cout << error.constraint << ": refused for the row with key " << error.key << '\n';
  }

  stop("Several writes, one version");
  auto tx = orders.transaction();
  tx.insert({5, "ann", "open", 30});
  tx.erase(3);
  tx.commit();
  std::cout << kf::print(orders.by<&Order::customer, &Order::id>().equal_range("ann"));

  stop("The table remembers: every commit, and every row as it was");
  for (const auto& commit : orders.history()) {
    std::cout << "version " << commit.version() << ": " << commit.operation() << ' ' << commit.metadata()
              << '\n';
  }
  std::cout << "order 2 at version 1: " << orders.as_of(1).at(2).status << '\n';

  stop("One commit taken back; that is a commit, too");
  std::cout << kf::print(orders.undo(3).changes()) << "now at version " << orders.version() << '\n';
}
