// expect: keyfold: schema_changes<>::renamed gives a new name that is no column of the row type
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <sstream>

struct Order {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))

template <>
struct keyfold::schema_changes<Order> {
#ifdef KEYFOLD_MISTAKE
  static constexpr keyfold::RenamedColumn renamed[] = {{"state", "stat"}};
#else
  static constexpr keyfold::RenamedColumn renamed[] = {{"state", "status"}};
#endif
};

void load(std::istringstream& in) {
  static_cast<void>(keyfold::load<keyfold::Table<Order, keyfold::Key<&Order::id>>>(in));
}
