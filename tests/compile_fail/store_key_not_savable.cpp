// expect: keyfold: this class cannot be saved; describe it with BOOST_DESCRIBE_STRUCT or columns_of
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Half {
  int value = 0;
  bool operator==(const Half&) const = default;
  friend std::size_t hash_value(const Half& half) { return static_cast<std::size_t>(half.value); }
};
#ifndef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Half, (), (value))
#endif

struct Row {
  int id = 0;
  Half half() const { return {id / 2}; }
};
BOOST_DESCRIBE_STRUCT(Row, (), (id))

auto open() { return kf::Store<kf::Table<Row, kf::Key<&Row::half>>>::open("rows.kf"); }
