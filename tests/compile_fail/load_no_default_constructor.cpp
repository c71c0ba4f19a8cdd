// expect: keyfold: a row to be loaded must be default constructible
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

namespace kf = keyfold;

struct Row {
#ifdef KEYFOLD_MISTAKE
  explicit Row(int number) : id(number) {}
#endif
  int id = 0;
};
BOOST_DESCRIBE_STRUCT(Row, (), (id))

std::size_t load(std::istream& in) { return kf::load<kf::Table<Row, kf::Key<&Row::id>>>(in).size(); }
