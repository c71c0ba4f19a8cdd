// A topic of change events as Debezium's JSON, read line by line; and what this program changed, written as
// such.
#include <keyfold/json.hpp>
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <sstream>
#include <string>

struct Order {
  int id = 0;
  std::string status;
  int cents = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))

using Orders = kf::Table<Order, kf::OrderedKey<&Order::id>>;

// As PostgreSQL's connector writes it: a snapshot, changes, and a delete of which only the key was logged.
constexpr auto topic = R"(
{"before":null,"after":{"id":1,"status":"open","cents":500},"source":{"lsn":100,"snapshot":"true"},"op":"r"}
{"before":null,"after":{"id":2,"status":"open","cents":900},"source":{"lsn":100,"snapshot":"last"},"op":"r"}
{"before":null,"after":{"id":1,"status":"paid","cents":500},"source":{"lsn":101},"op":"u","ts_ms":1559033904863}
{"before":{"id":2,"status":null,"cents":null},"after":null,"source":{"lsn":102},"op":"d","ts_ms":1559033904999}

{"before":null,"after":{"id":3,"status":"open","cents":"250"},"source":{"lsn":103},"op":"c"}
)";

int main() {
  kf::TableOptions options;
  options.clock = [] { return kf::Timestamp(std::chrono::sys_days(std::chrono::year(2026) / 10 / 4)); };
  Orders orders(options);

  std::istringstream stream(topic);
  try {
    kf::debezium::apply_changes(orders, kf::debezium::json_events<Orders>(stream, "orders.ndjson")).execute();
  } catch (const kf::JsonError& error) {
    std::cout << error.what() << "\nrows loaded: " << orders.size() << '\n';
  }

  std::string corrected = topic;
  corrected.replace(corrected.find("\"250\""), 5, "250");
  stream.clear();
  stream.str(corrected);
  const auto loaded =
      kf::debezium::apply_changes(orders, kf::debezium::json_events<Orders>(stream, "orders.ndjson"))
          .execute();
  std::cout << loaded.metrics() << '\n' << kf::print(orders);

  orders.update_where(kf::target<&Order::id> == 3,
                      kf::target<&Order::id> = 4);  // for others: a delete, a create
  kf::debezium::write_json<Orders>(std::cout, orders.history().back());
}
