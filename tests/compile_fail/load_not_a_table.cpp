// expect: keyfold: load<>() makes a table: load<Table<Row, Key<&Row::id>>>(path)
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <istream>

namespace kf = keyfold;

struct Row {
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Row, (), (id))
using Rows = kf::Table<Row, kf::Key<&Row::id>>;

#ifdef KEYFOLD_MISTAKE
void load(std::istream& in) { static_cast<void>(kf::load<Row>(in)); }
#else
void load(std::istream& in) { static_cast<void>(kf::load<Rows>(in)); }
#endif
