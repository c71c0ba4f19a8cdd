// expect: keyfold: this class cannot be saved
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

namespace kf = keyfold;

struct Inner {
  int x = 0;
};
#ifndef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Inner, (), (x))
#endif
struct Row {
  int id = 0;
  Inner inner;
};
BOOST_DESCRIBE_STRUCT(Row, (), (id, inner))

void save(const kf::Table<Row, kf::Key<&Row::id>>& table) {
  std::ostringstream out;
  kf::save(table, out);
}
