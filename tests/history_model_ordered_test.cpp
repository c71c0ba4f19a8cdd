// Random programs of commits, restores, undos, tags and expiries, against a model that keeps every version.
#include "support/history_program.hpp"

namespace kf = keyfold;
using keyfold_test::Item;

TEST_CASE("a table in key order travels as a model that keeps a full copy of each version") {
  using Table = kf::Table<Item, kf::OrderedKey<&Item::id>, kf::UniqueBy<&Item::code>, kf::OrderedBy<&Item::group>>;
  keyfold_test::check_history_programs<Table>("travel through key order", 1500, true);
}
