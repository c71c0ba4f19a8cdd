// expect: keyfold: a store is of a table: Store<Table<Row, Key<&Row::id>>>
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Row {
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Row, (), (id))
#ifdef KEYFOLD_MISTAKE
using Rows = const kf::Table<Row, kf::Key<&Row::id>>;
#else
using Rows = kf::Table<Row, kf::Key<&Row::id>>;
#endif

auto open() { return kf::Store<Rows>::open("rows.kf"); }
