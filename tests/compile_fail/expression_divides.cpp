// expect: keyfold: expressions do not divide, for the divisor may be 0; give a callable of the rows
#include <keyfold/keyfold.hpp>

#include <vector>

namespace kf = keyfold;

struct Item {
  int id = 0;
  int stock = 0;
};
using Items = kf::Table<Item, kf::Key<&Item::id>>;

void write(Items& items, const std::vector<Item>& rows) {
#ifdef KEYFOLD_MISTAKE
  items.merge(rows).when_matched().update(kf::target<&Item::stock> = kf::target<&Item::stock> / 2).execute();
#else
  items.merge(rows)
      .when_matched()
      .update(kf::target<&Item::stock> = [](const Item& target, const Item&) { return target.stock / 2; })
      .execute();
#endif
}
