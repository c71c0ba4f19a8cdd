// Upsert: customers whose key is known are updated, the others are inserted, and who has not changed is left alone.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <string>
#include <vector>

struct Customer {
  int customer_id = 0;
  std::string name;
  std::string city;
};
BOOST_DESCRIBE_STRUCT(Customer, (), (customer_id, name, city))

int main() {
  kf::Table<Customer, kf::Key<&Customer::customer_id>> customers;
  customers.append({{1, "Ada", "London"}, {2, "Grace", "New York"}, {3, "Linus", "Helsinki"}});
  std::cout << kf::print(customers);

  // Grace has not changed, Linus has moved, Bjarne is new.
  const std::vector<Customer> today{{2, "Grace", "New York"}, {3, "Linus", "Portland"}, {4, "Bjarne", "Aarhus"}};
  const auto result = customers.merge(today)
                          .when_matched().update_all()
                          .when_not_matched().insert_all()
                          .execute();

  std::cout << "\nversion " << result.version() << ": " << result.metrics() << '\n'
            << kf::print(result.changes()) << '\n'
            << kf::print(customers);

  // upsert() is the same merge in a word. The same rows a second time change nothing and make no version.
  const auto again = customers.upsert(today);
  std::cout << "\nagain: " << again.metrics() << ", still version " << again.version() << '\n';
}
