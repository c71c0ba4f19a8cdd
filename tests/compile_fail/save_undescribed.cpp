// expect: keyfold: a row to be saved needs a column list (BOOST_DESCRIBE_STRUCT or columns_of) or a serialize()
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

namespace kf = keyfold;

struct Row {
  int id = 0;
};
#ifndef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Row, (), (id))
#endif

void save(const kf::Table<Row, kf::Key<&Row::id>>& table) {
  std::ostringstream out;
  kf::save(table, out);
}
