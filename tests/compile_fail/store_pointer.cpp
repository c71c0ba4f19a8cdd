// expect: keyfold: a pointer or view cannot be saved
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Row {
  int id = 0;
#ifdef KEYFOLD_MISTAKE
  std::string_view text;
#else
  std::string text;
#endif
};
BOOST_DESCRIBE_STRUCT(Row, (), (id, text))

auto open() { return kf::Store<kf::Table<Row, kf::Key<&Row::id>>>::open("rows.kf"); }
