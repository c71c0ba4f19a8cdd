// expect: keyfold: this class asks Boost.Serialization to track its objects
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

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
BOOST_CLASS_TRACKING(Row, boost::serialization::track_always)
#endif

void save(const kf::Table<Row, kf::Key<&Row::id>>& table) {
  std::ostringstream out;
  kf::save(table, out);
}
