// expect: keyfold: a long double cannot be saved
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

namespace kf = keyfold;

struct Row {
  int id = 0;
#ifdef KEYFOLD_MISTAKE
  long double amount = 0;
#else
  double amount = 0;
#endif
};
BOOST_DESCRIBE_STRUCT(Row, (), (id, amount))

void save(const kf::Table<Row, kf::Key<&Row::id>>& table) {
  std::ostringstream out;
  kf::save(table, out);
}
