// expect: keyfold: a column that is const cannot be loaded
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

namespace kf = keyfold;

struct Row {
#ifdef KEYFOLD_MISTAKE
  const int id = 0;
#else
  int id = 0;
#endif
};
BOOST_DESCRIBE_STRUCT(Row, (), (id))

std::size_t load(std::istream& in) { return kf::load<kf::Table<Row, kf::Key<&Row::id>>>(in).size(); }
