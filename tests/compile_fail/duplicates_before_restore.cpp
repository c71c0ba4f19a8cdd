// expect: keyfold: duplicates() and unchecked() stand before a write that takes rows; to restore(), undo() and transaction() they mean nothing
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

namespace kf = keyfold;

struct Order {
  int id = 0;
  std::string status;
  std::optional<int> cents;
};
struct Change {
  int id = 0;
  std::string status;
  std::optional<int> cents;
  int sequence = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status, cents))
BOOST_DESCRIBE_STRUCT(Change, (), (id, status, cents, sequence))
using Orders = kf::Table<Order, kf::Key<&Order::id>>;

void write(Orders& orders, const std::vector<Change>& changes) {
#ifdef KEYFOLD_MISTAKE
  static_cast<void>(changes), orders.duplicates(kf::keep_last).restore(kf::Version{0});
#else
  static_cast<void>(changes), orders.metadata("back").restore(kf::Version{0});
#endif
}
