// Random transactions against a std::map: what they see, what they commit, what a failed write leaves.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/property.hpp"
#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::check_property;
using keyfold_test::rows_of;

namespace {

struct Stock {
  int id = 0;
  int code = 0;
  int amount = 0;
  auto operator<=>(const Stock&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stock, (), (id, code, amount))

using Hashed =
    kf::Table<Stock, kf::Key<&Stock::id>, kf::UniqueBy<&Stock::code>, kf::OrderedBy<&Stock::amount>>;
using Ordered = kf::Table<Stock, kf::OrderedKey<&Stock::id>, kf::UniqueBy<&Stock::code>>;
using Rows = std::vector<Stock>;

// A table as SQL sees it: rows by key, and one unique column.
struct Model {
  std::map<int, Stock> rows;

  bool legal() const {
    std::set<int> codes;
    return std::ranges::all_of(rows, [&](const auto& row) { return codes.insert(row.second.code).second; });
  }
};

// A write: on a table or transaction, and on the model, which it leaves alone and returns false if the result
// would not be legal.
struct Write {
  int kind;
  Rows rows;
  int from, to;

  template <class Target>
  void run(Target& target) const {
    switch (kind) {
      case 0:
        target.upsert(rows);
        break;
      case 1:
        target.append(rows);
        break;
      case 2:
        target.erase(from);
        break;
      case 3:
        target.merge(Rows{{from, 0, 0}}).when_matched().update(kf::target<&Stock::id> = to).execute();
        break;
      case 4:
        target.merge(rows)
            .when_matched()
            .do_nothing()
            .when_not_matched_by_source(kf::target<&Stock::id> < from)
            .erase()
            .when_not_matched_by_source()
            .update(kf::target<&Stock::amount> = kf::target<&Stock::amount> + 1)
            .execute();
        break;
      case 5:  // every row takes the code of the next one
        target.merge(rows)
            .when_matched()
            .update(kf::target<&Stock::code> = kf::source<&Stock::code>)
            .execute();
        break;
      default:
        target.clear();
    }
  }

  bool run_on(Model& model) const {
    Model next = model;
    std::set<int> given;
    for (const Stock& row : rows) given.insert(row.id);
    switch (kind) {
      case 0:
        for (const Stock& row : rows) next.rows[row.id] = row;
        break;
      case 1:
        for (const Stock& row : rows) {
          if (!next.rows.emplace(row.id, row).second) return false;
        }
        break;
      case 2:
        next.rows.erase(from);
        break;
      case 3: {
        auto node = next.rows.extract(from);
        if (node.empty()) break;
        node.key() = node.mapped().id = to;
        if (!next.rows.insert(std::move(node)).inserted) return false;
        break;
      }
      case 4:
        std::erase_if(next.rows,
                      [&](const auto& row) { return !given.contains(row.first) && row.first < from; });
        for (auto& [id, row] : next.rows) row.amount += given.contains(id) ? 0 : 1;
        break;
      case 5:
        for (const Stock& row : rows) {
          if (const auto at = next.rows.find(row.id); at != next.rows.end()) at->second.code = row.code;
        }
        break;
      default:
        next.rows.clear();
    }
    if (!next.legal()) return false;
    model = std::move(next);
    return true;
  }
};

class Program {
 public:
  explicit Program(std::uint32_t seed) : random_(seed) {}

  template <class Table>
  void run() {
    Table table;
    Model model;
    for (int transaction = 0; transaction < 6; ++transaction) {
      const Rows before = rows_of(table);
      Table direct = table;
      Model inside = model;
      auto tx = table.transaction();
      const int writes = number(0, 6);
      for (int i = 0; i < writes; ++i) {
        step(tx, direct, inside);
        RC_ASSERT(rows_of(table) == before);
      }
      const auto preview = tx.preview();
      const Rows seen_last = rows_of(tx);
      RC_ASSERT(rows_of(table) == before);
      if (number(0, 4) == 0) continue;  // given up
      const kf::Version version = table.version();
      const auto result = tx.commit();
      RC_ASSERT(result.committed() == (sorted(before) != rows_of(inside)));
      RC_ASSERT(result.changes().size() == preview.size());
      RC_ASSERT(table.version() == version + (preview.empty() ? 0 : 1));
      model = inside;
      check(table, model);
      RC_ASSERT(rows_of(table) == seen_last);
      if (result.committed() && number(0, 3) == 0) {
        RC_ASSERT(sorted(rows_of(table.as_of(version))) == sorted(before));
        table.undo(table.version());
        RC_ASSERT(sorted(rows_of(table)) == sorted(before));
        model.rows.clear();
        for (const Stock& row : before) model.rows[row.id] = row;
      }
    }
  }

 private:
  int number(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  Write any_write(const Model& model) {
    Write write{number(0, 5) == 0 ? 6 : number(0, 5), {}, number(0, 9), number(0, 9)};
    if (write.kind == 6 && number(0, 2) != 0) write.kind = 0;
    const int count = number(0, 4);
    std::set<int> ids;
    for (int i = 0; i < count; ++i) {
      const int id = number(0, 9);
      if (ids.insert(id).second) write.rows.push_back({id, number(0, 30), number(0, 3)});
    }
    if (write.kind == 5 && model.rows.size() > 1) {  // codes go round
      write.rows.clear();
      for (const auto& [id, row] : model.rows) write.rows.push_back(row);
      for (std::size_t i = 0; i + 1 < write.rows.size(); ++i)
        std::swap(write.rows[i].code, write.rows[i + 1].code);
    }
    return write;
  }

  template <class Transaction, class Table>
  void step(Transaction& tx, Table& direct, Model& inside) {
    const Write write = any_write(inside);
    const Rows seen = rows_of(tx);
    const bool legal = write.run_on(inside);
    bool done = true;
    try {
      write.run(tx);
    } catch (const kf::Error&) {
      done = false;
      RC_ASSERT(rows_of(tx) == seen);
    }
    RC_ASSERT(done == legal);
    if (done) write.run(direct);
    check(tx, inside);
    RC_ASSERT(sorted(rows_of(direct)) == sorted(rows_of(tx)));
  }

  template <class Range>
  static Rows rows_of(const Range& range) {
    return keyfold_test::rows_of(range);
  }
  static Rows rows_of(const Model& model) {
    Rows rows;
    for (const auto& [id, row] : model.rows) rows.push_back(row);
    return rows;
  }
  static Rows sorted(Rows rows) {
    std::ranges::sort(rows);
    return rows;
  }

  template <class Readable>
  static void check(const Readable& table, const Model& model) {
    RC_ASSERT(table.size() == model.rows.size());
    RC_ASSERT(sorted(rows_of(table)) == rows_of(model));
    for (int id = 0; id < 10; ++id) {
      const auto expected = model.rows.find(id);
      const Stock* found = table.find(id);
      RC_ASSERT((found != nullptr) == (expected != model.rows.end()));
      if (found != nullptr) RC_ASSERT(*found == expected->second);
    }
  }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("random transactions do what a map does") {
  check_property("hashed key", 1000, [](std::uint32_t seed) { Program(seed).run<Hashed>(); });
}

TEST_CASE("random transactions of a table with an ordered key do what a map does") {
  check_property("ordered key", 1000, [](std::uint32_t seed) { Program(seed).run<Ordered>(); });
}
