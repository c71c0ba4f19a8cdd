// A scan in steps shows the version that it began with, row for row, whatever is written between its steps.
#include <keyfold/keyfold.hpp>
#include <keyfold/shared_table.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/property.hpp"
#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::rows_of;
using keyfold_test::scaled;

namespace {

struct Item {
  int id = 0;
  int shelf = 0;
  std::string name;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (id, shelf, name))

using Rows = std::vector<Item>;
using Plain = kf::Table<Item, kf::Key<&Item::id>>;
using Indexed = kf::Table<Item, kf::Key<&Item::id>, kf::OrderedBy<&Item::shelf>>;
using Sorted = kf::Table<Item, kf::OrderedKey<&Item::id>, kf::HashedBy<&Item::shelf>>;

constexpr int key_count = 40;

/// Writes that come between steps: a few rows or all of them, in place, anew, under other keys.
template <class Table>
class RandomWrites {
 public:
  explicit RandomWrites(unsigned seed) : random_(seed) {}

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  void write(kf::SharedTable<Table>& shared) {
    switch (below(13)) {
      case 0:
      case 1:
      case 2:
        shared.upsert(items(below(8)));
        break;
      case 3:
        shared.upsert(items(60));
        break;
      case 4:
      case 5:
        shared.erase(below(key_count));
        break;
      case 6:
        shared.erase_where([shelf = below(4)](const Item& item) { return item.shelf == shelf; });
        break;
      case 7:
        shared.clear();
        break;
      case 8:
        shared.overwrite(items(below(30)));
        break;
      case 9:
        rotate_keys(shared);
        break;
      case 10:
        shared.write([&](Table& table) { table.restore(pick(table)); });
        break;
      case 11:
        shared.write([&](Table& table) { table.expire(kf::keep_last(static_cast<std::size_t>(below(4)))); });
        break;
      default:
        shared.write([&](Table& table) {
          if (table.tags().contains("tag")) {
            table.untag("tag");
          } else {
            table.tag("tag", table.version());
          }
        });
    }
  }

  Rows items(int count) {
    std::map<int, Item> by_key;
    for (int i = 0; i < count; ++i) {
      const int id = below(key_count);
      by_key[id] = {id, below(4), "name " + std::to_string(below(100))};
    }
    Rows rows;
    for (auto& [id, item] : by_key) rows.push_back(std::move(item));
    std::ranges::shuffle(rows, random_);
    return rows;
  }

  kf::Version pick(const Table& table) {
    std::vector<kf::Version> versions;
    for (kf::Version version = 0; version <= table.version(); ++version) {
      try {
        static_cast<void>(table.as_of(version));
        versions.push_back(version);
      } catch (const kf::VersionExpired&) {
      }
    }
    return versions[random_() % versions.size()];
  }

 private:
  // Every row gets the key of the next one: all keys stay, none stays with its row.
  void rotate_keys(kf::SharedTable<Table>& shared) {
    const Rows rows = shared.read([](const Table& table) { return rows_of(table); });
    shared.merge(rows)
        .when_matched()
        .update([&](const Item& target, const Item&) {
          const auto at = std::ranges::find(rows, target.id, &Item::id);
          Item moved = target;
          moved.id = at + 1 == rows.end() ? rows.front().id : (at + 1)->id;
          return moved;
        })
        .execute();
  }

  std::mt19937 random_;
};

/// Scans a version in steps of `most` rows, with `between` after each of them.
template <class Table, class Between>
Rows scan(const kf::SharedTable<Table>& shared, kf::Version version, std::size_t most, Between between) {
  using Core = keyfold::detail::CoreAccess::core_t<Table>;
  std::optional<keyfold::detail::StepScan<Core>> scan;
  keyfold::detail::RowBuffer<Item> rows;
  Rows seen;
  bool more = true;
  while (more) {
    rows.clear();
    shared.read([&](const Table& table) {
      const Core& core = keyfold::detail::CoreAccess::core(table);
      if (!scan) scan.emplace(core, version);
      more = scan->step(core, most, rows);
    });
    CHECK(static_cast<std::size_t>(rows.end() - rows.begin()) <= most);
    seen.insert(seen.end(), rows.begin(), rows.end());
    between();
  }
  return seen;
}

template <class Table>
void scan_among_writes(unsigned seed) {
  RandomWrites<Table> writes(seed);
  kf::SharedTable<Table> shared;
  for (int i = writes.below(20); i > 0; --i) writes.write(shared);
  const kf::Version version = shared.read([&](const Table& table) { return writes.pick(table); });
  const auto point = shared.read_point(version);
  const Rows expected = shared.read([&](const Table& table) { return rows_of(table.as_of(version)); });

  int budget = 400;  // of writes: a scan of which each step is undone by a write ends when writing does
  const auto most = static_cast<std::size_t>(1 + writes.below(6));
  const Rows seen = scan(shared, version, most, [&] {
    for (int i = writes.below(3); i > 0 && budget > 0; --i, --budget) writes.write(shared);
  });
  INFO("seed " << seed);
  REQUIRE(seen == expected);
  REQUIRE(point.rows() == expected);
}

Rows numbered(int from, int to) {
  Rows rows;
  for (int id = from; id < to; ++id) rows.push_back({id, 0, "x"});
  return rows;
}

}  // namespace

TEMPLATE_TEST_CASE("a scan in steps shows its version, whatever is written between them", "", Plain, Indexed,
                   Sorted) {
  const int programs = scaled(300);
  for (int seed = 1; seed <= programs; ++seed) scan_among_writes<TestType>(static_cast<unsigned>(seed));
}

TEMPLATE_TEST_CASE("a scan goes on where it was when its place has gone", "", Plain, Sorted) {
  kf::SharedTable<TestType> shared;
  shared.append(numbered(0, 100));
  const auto point = shared.read_point();
  int erased = 0;
  const Rows seen = scan(shared, point.version(), 10, [&] { shared.erase(erased += 10); });
  CHECK(seen == numbered(0, 100));
  CHECK(erased > 100);
}

TEMPLATE_TEST_CASE("a scan ends although rows are added behind its place at each step", "", Plain, Sorted) {
  kf::SharedTable<TestType> shared;
  shared.append(numbered(0, 100));
  const auto point = shared.read_point();
  int next = 100;
  const Rows seen = scan(shared, point.version(), 10, [&] {
    shared.append(numbered(next, next + 9));
    next += 9;
  });
  CHECK(seen == numbered(0, 100));
}

TEST_CASE("a scan catches up with a writer that makes more changes between steps than a step reads") {
  kf::SharedTable<Plain> shared;
  shared.append(numbered(0, 100));
  const auto point = shared.read_point();
  int turn = 0;
  const Rows seen = scan(shared, point.version(), 10, [&] {
    Rows rows = numbered(0, 100);
    for (Item& item : rows) item.shelf = turn;
    ++turn;
    shared.upsert(rows);
  });
  CHECK(seen == numbered(0, 100));
  CHECK(turn < 300);
}
