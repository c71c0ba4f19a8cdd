// expect: keyfold: the column list misses a member of the row; list it, or name it in keyfold::Ignored
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
};

#ifdef KEYFOLD_MISTAKE
BOOST_DESCRIBE_STRUCT(Order, (), (id))
#else
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))
#endif

static_assert(kf::column_count<Order> == 2);
