// A subscriber that keeps a count for each group: told of what changed in each commit, it never reads the
// table again.
#include <keyfold/keyfold.hpp>

#include <iostream>
#include <map>
#include <string>

struct Order {
  int id = 0;
  std::string status;
  bool operator==(const Order&) const = default;
};

class CountByStatus {
 public:
  void operator()(const kf::Commit<Order>& commit) {
    for (const kf::Change<Order>& change : commit.changes()) {
      if (change.before() != nullptr && --counts_[change.before()->status] == 0)
        counts_.erase(change.before()->status);
      if (change.after() != nullptr) ++counts_[change.after()->status];
    }
    std::cout << "version " << commit.version() << ", " << commit.operation() << ':';
    for (const auto& [status, count] : counts_) std::cout << ' ' << status << '=' << count;
    std::cout << '\n';
  }

 private:
  std::map<std::string, int> counts_;
};

int main() {
  kf::Table<Order, kf::Key<&Order::id>> orders;
  orders.append({{1, "open"}, {2, "open"}, {3, "paid"}});

  // With replay the counter starts from the rows that are there, and misses nothing after them.
  CountByStatus counter;
  kf::Subscription subscription = orders.subscribe(std::ref(counter), kf::replay);

  orders.upsert({{2, "paid"}, {4, "open"}, {5, "open"}});
  orders.erase(1);
  orders.upsert({{4, "open"}});  // changes nothing: nobody is told
  orders.restore(kf::Version{1});
  orders.clear();

  subscription.reset();
  orders.insert({6, "open"});
  std::cout << "no longer told: version " << orders.version() << '\n';
}
