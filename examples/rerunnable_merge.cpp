// A load that may run again, twice or late: newer rows win, and of two rows for one key none is picked silently.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <string>
#include <vector>

using namespace std::chrono;

struct Order {
  int order_id = 0;
  std::string status;
  kf::Timestamp updated_at{};
};
BOOST_DESCRIBE_STRUCT(Order, (), (order_id, status, updated_at))

kf::Timestamp at(hours hour) { return sys_days(2026y / October / 4) + hour; }

constexpr auto is_newer = kf::source<&Order::updated_at> > kf::target<&Order::updated_at>;

int main() {
  kf::TableOptions options;
  options.clock = [] { return at(24h); };  // so that the output is always the same
  kf::Table<Order, kf::Key<&Order::order_id>> orders(options);

  const auto load = [&](const std::vector<Order>& rows, const char* file) {
    const auto result = orders.merge(rows)
                            .when_matched(is_newer).update_all()
                            .when_not_matched().insert_all()
                            .metadata(file)
                            .execute();
    std::cout << file << ": " << result.metrics() << '\n';
  };

  const std::vector<Order> morning{{1, "paid", at(8h)}, {2, "open", at(9h)}};
  const std::vector<Order> noon{{1, "shipped", at(12h)}, {3, "open", at(11h)}};
  const std::vector<Order> late{{1, "open", at(7h)}};  // older than what is known: it matches, and loses
  load(morning, "morning.csv");
  load(noon, "noon.csv");
  load(noon, "noon.csv");
  load(late, "late.csv");

  // Two rows for order 2: which one counts is not the library's to guess.
  const std::vector<Order> evening{{2, "shipped", at(18h)}, {2, "paid", at(16h)}};
  try {
    load(evening, "evening.csv");
  } catch (const kf::DuplicateSourceKey& error) {
    std::cout << "evening.csv: " << error.what() << '\n';
  }
  const auto resolved = orders.merge(evening)
                            .duplicates(kf::latest_by<&Order::updated_at>)
                            .when_matched(is_newer).update_all()
                            .when_not_matched().insert_all()
                            .metadata("evening.csv")
                            .execute();
  std::cout << "evening.csv: " << resolved.metrics() << "\n\n"
            << kf::print(orders) << '\n'
            << kf::print(orders.history(), kf::max_width(44));
}
