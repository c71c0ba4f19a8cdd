// expect: keyfold: debezium::write_json<Table>() names the type of the table whose changes it writes
#include <keyfold/json.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

struct Customer {
  int id = 0;
  int score = 0;
};
BOOST_DESCRIBE_STRUCT(Customer, (), (id, score))
using Customers = keyfold::Table<Customer, keyfold::Key<&Customer::id>>;

void write(std::ostream& stream, const Customers& customers) {
#ifdef KEYFOLD_MISTAKE
  keyfold::debezium::write_json<Customer>(stream, customers.changes(0, 1));
#else
  keyfold::debezium::write_json<Customers>(stream, customers.changes(0, 1));
#endif
}
