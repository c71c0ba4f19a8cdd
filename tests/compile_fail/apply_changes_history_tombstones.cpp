// expect: keyfold: scd2<>() shows deletes in its rows; tombstones() is for current rows
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

void load(History& table, const std::vector<Event>& events) {
#ifdef KEYFOLD_MISTAKE
  table.apply_changes(events)
      .sequence_by<&Event::seq>()
      .tombstones(kf::keep_last(9))
      .scd2<&Product::from, &Product::to>()
      .execute();
#else
  table.apply_changes(events).sequence_by<&Event::seq>().scd2<&Product::from, &Product::to>().execute();
#endif
}
