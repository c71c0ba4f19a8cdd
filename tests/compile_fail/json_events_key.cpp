// expect: keyfold: json_events<Row, &Row::id>() names columns of the row, those of its key
#include <keyfold/json.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

struct Customer {
  int id = 0;
  int score = 0;
};
struct Other {
  int number = 0;
};
BOOST_DESCRIBE_STRUCT(Customer, (), (id, score))

auto events(std::istream& stream) {
#ifdef KEYFOLD_MISTAKE
  return keyfold::debezium::json_events<Customer, &Other::number>(stream);
#else
  return keyfold::debezium::json_events<Customer, &Customer::id>(stream);
#endif
}
