// expect: keyfold: a row to be saved needs a column list (BOOST_DESCRIBE_STRUCT or columns_of) or a serialize()
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Row {
  int id = 0;
};
#ifndef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Row, (), (id))
#endif

auto open() { return kf::Store<kf::Table<Row, kf::Key<&Row::id>>>::open("rows.kf"); }
