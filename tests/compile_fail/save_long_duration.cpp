// expect: keyfold: a duration whose count is no plain number cannot be saved
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <sstream>

struct Lap {
  int id = 0;
#ifdef KEYFOLD_MISTAKE
  std::chrono::duration<long double> time{};
#else
  std::chrono::duration<double> time{};
#endif
};
BOOST_DESCRIBE_STRUCT(Lap, (), (id, time))

void save(const keyfold::Table<Lap, keyfold::Key<&Lap::id>>& laps, std::ostringstream& out) {
  keyfold::save(laps, out);
}
