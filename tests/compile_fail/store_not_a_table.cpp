// expect: keyfold: a store is of a table: Store<Table<Row, Key<&Row::id>>>
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Row {
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Row, (), (id))
using Rows = kf::Table<Row, kf::Key<&Row::id>>;

#ifdef KEYFOLD_MISTAKE
auto open() { return kf::Store<Row>::open("rows.kf"); }
#else
auto open() { return kf::Store<Rows>::open("rows.kf"); }
#endif
