// Random programs of commits, restores, undos, tags and expiries on a table that is saved and loaded again
// and again on the way, against a model that keeps every version.
#include <keyfold/snapshot.hpp>

#include "support/history_program.hpp"
#include "support/snapshot_bytes.hpp"

namespace kf = keyfold;
using keyfold_test::Item;
using keyfold_test::saved;

namespace {

template <class Table>
void check_reloading(const std::string& description, bool ordered) {
  keyfold_test::check_history_programs<Table>(
      description, 1500, ordered, [](const Table& table, kf::TableOptions options) {
        const std::string bytes = saved(table);
        std::istringstream in(bytes);
        Table loaded = kf::load<Table>(in, {.table = std::move(options)});
        RC_ASSERT(saved(loaded) == bytes);
        RC_ASSERT(saved(Table(loaded)) == bytes);
        return loaded;
      });
}

}  // namespace

TEST_CASE("a table in insertion order goes on after loading as if it had never been saved") {
  using Table = kf::Table<Item, kf::Key<&Item::id>, kf::UniqueBy<&Item::code>, kf::OrderedBy<&Item::group>>;
  check_reloading<Table>("reloading in insertion order", false);
}

TEST_CASE("a table in key order goes on after loading as if it had never been saved") {
  using Table =
      kf::Table<Item, kf::OrderedKey<&Item::id>, kf::UniqueBy<&Item::code>, kf::OrderedBy<&Item::group>>;
  check_reloading<Table>("reloading in key order", true);
}
