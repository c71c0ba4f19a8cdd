// expect: keyfold: a pointer or view cannot be saved
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

namespace kf = keyfold;

struct Row {
  int id = 0;
#ifdef KEYFOLD_MISTAKE
  const char* text = nullptr;
#else
  std::string text;
#endif
};
BOOST_DESCRIBE_STRUCT(Row, (), (id, text))

void save(const kf::Table<Row, kf::Key<&Row::id>>& table) {
  std::ostringstream out;
  kf::save(table, out);
}
