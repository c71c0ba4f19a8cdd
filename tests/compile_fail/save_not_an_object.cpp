// expect: keyfold: this class is no object to Boost.Serialization; remove its BOOST_CLASS_IMPLEMENTATION
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/serialization/level.hpp>

#include <sstream>

namespace kf = keyfold;

struct Row {
  int id = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive & id;
  }
};
#ifdef KEYFOLD_MISTAKE
BOOST_CLASS_IMPLEMENTATION(Row, boost::serialization::primitive_type)
#endif

void save(const kf::Table<Row, kf::Key<&Row::id>>& table) {
  std::ostringstream out;
  kf::save(table, out);
}
