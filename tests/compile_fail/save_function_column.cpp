// expect: keyfold: a column that is a function cannot be saved; list data members only
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <sstream>

namespace kf = keyfold;

struct Row {
  int id = 0;
  int twice() const { return 2 * id; }
};
#ifdef KEYFOLD_MISTAKE
template <>
struct keyfold::columns_of<Row> : keyfold::Columns<&Row::id, &Row::twice> {};
#else
template <>
struct keyfold::columns_of<Row> : keyfold::Columns<&Row::id> {};
#endif

void save(const kf::Table<Row, kf::Key<&Row::id>>& table) {
  std::ostringstream out;
  kf::save(table, out);
}
