// expect: keyfold: cannot find the key of the feed; name its members with .keys<&Source::member>()
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Product {
  int id = 0;
  std::string name;
  int from = 0;
  std::optional<int> to;
};
struct Event {
  int id = 0;
  char op = 'U';
  std::string name;
  int seq = 0;
};
BOOST_DESCRIBE_STRUCT(Product, (), (id, name, from, to))
BOOST_DESCRIBE_STRUCT(Event, (), (id, op, name, seq))
using Products = kf::Table<Product, kf::Key<&Product::id>>;
using History = kf::Table<Product, kf::Key<&Product::id, &Product::from>>;

struct Other {
  int number = 0;
  int seq = 0;
};
BOOST_DESCRIBE_STRUCT(Other, (), (number, seq))

void load(Products& table, const std::vector<Event>& events) {
#ifdef KEYFOLD_MISTAKE
  static_cast<void>(events);
  table.apply_changes(std::vector<Other>()).sequence_by<&Other::seq>().execute();
#else
  static_cast<void>(events);
  table.apply_changes(std::vector<Other>()).keys<&Other::number>().sequence_by<&Other::seq>().execute();
#endif
}
