// The verbs that replace rows against their definition: some rows leave, others come in.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/agreement.hpp"
#include "support/property.hpp"
#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::check_property;
using keyfold_test::rows_of;

namespace {

struct Sale {
  int id = 0;
  std::optional<int> day;
  std::string shop;
  int amount = 0;

  bool operator==(const Sale&) const = default;
};
BOOST_DESCRIBE_STRUCT(Sale, (), (id, day, shop, amount))

std::ostream& operator<<(std::ostream& out, const Sale& sale) {
  return out << '(' << sale.id << ' ' << sale.day.value_or(-1) << ' ' << sale.shop << ' ' << sale.amount
             << ')';
}

using Rows = std::vector<Sale>;
using Hashed = kf::Table<Sale, kf::Key<&Sale::id>>;
using Indexed = kf::Table<Sale, kf::Key<&Sale::id>, kf::HashedBy<&Sale::day>, kf::OrderedBy<&Sale::shop>>;
using Ordered = kf::Table<Sale, kf::OrderedKey<&Sale::id>, kf::OrderedBy<&Sale::day>>;

rc::Gen<Sale> sales() {
  return rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 8), rc::gen::inRange(-1, 3), rc::gen::inRange(0, 2),
                                     rc::gen::inRange(0, 3)),
                      [](const std::tuple<int, int, int, int>& t) {
                        const auto [id, day, shop, amount] = t;
                        return Sale{id, day < 0 ? std::nullopt : std::optional(day), shop == 0 ? "a" : "b",
                                    amount};
                      });
}

enum class Outcome { written, refused, mismatch };

/// What a write ought to come to.
struct Expected {
  Outcome outcome = Outcome::written;
  Rows rows;
  kf::Metrics metrics;
};

const Sale* row_with(const Rows& rows, int id) {
  const auto at = std::ranges::find(rows, id, &Sale::id);
  return at == rows.end() ? nullptr : &*at;
}

/// The definition, one key at a time.
Expected replace(const Rows& table, const Rows& incoming, const std::function<bool(const Sale&)>& leaves) {
  Expected expected;
  std::set<int> seen;
  for (const Sale& row : incoming) {
    const Sale* present = row_with(table, row.id);
    if (!seen.insert(row.id).second) expected.outcome = Outcome::refused;
    if (present != nullptr && !leaves(*present)) expected.outcome = Outcome::refused;
    if (present == nullptr) ++expected.metrics.inserted;
    if (present != nullptr && *present == row) ++expected.metrics.unchanged;
    if (present != nullptr && *present != row) ++expected.metrics.updated;
  }
  expected.metrics.matched_updated = expected.metrics.updated;
  expected.metrics.source_rows = incoming.size();
  for (const Sale& row : table) {
    const Sale* next = row_with(incoming, row.id);
    if (!leaves(row)) {
      expected.rows.push_back(row);
    } else if (next != nullptr) {
      expected.rows.push_back(*next);
    } else {
      ++expected.metrics.deleted;
    }
  }
  expected.metrics.not_matched_by_source_deleted = expected.metrics.deleted;
  for (const Sale& row : incoming) {
    if (row_with(table, row.id) == nullptr) expected.rows.push_back(row);
  }
  return expected;
}

Rows last_of_each(const Rows& rows) {
  Rows out;
  for (auto it = rows.begin(); it != rows.end(); ++it) {
    if (std::find_if(it + 1, rows.end(), [&](const Sale& later) { return later.id == it->id; }) == rows.end())
      out.push_back(*it);
  }
  return out;
}

bool equal_day(const Sale& a, const Sale& b) { return a.day && b.day && *a.day == *b.day; }

template <class Table>
kf::MergeResult<Sale> run(Table&& table, int verb, int number, const Rows& rows) {
  constexpr auto day = kf::target<&Sale::day>;
  constexpr auto source_day = kf::source<&Sale::day>;
  switch (verb) {
    case 0:
      return table.overwrite(rows);
    case 1:
      return table.replace_where(day == number, rows);
    case 2:
      return table.template replace_using<&Sale::day>(rows);
    case 3:
      return table.template replace_using<&Sale::day, &Sale::shop>(rows);
    case 4:
      return table.template replace_using<&Sale::id>(rows);
    case 5:
      return table.template replace_using<&Sale::shop>(rows);
    case 6:
      return table.replace_on(source_day == day && kf::source<&Sale::amount> >= kf::target<&Sale::amount>,
                              rows);
    case 7:
      return table.replace_on(kf::same(day, source_day), rows);
    case 8:
      return table.replace_on(source_day == day || kf::source<&Sale::shop> == kf::target<&Sale::shop>, rows);
    default:
      return table.replace_on(
          [](const Sale& target, const Sale& source) { return target.amount == source.amount; }, rows);
  }
}

/// Whether a row leaves on account of an incoming one.
bool leaves_for(int verb, const Sale& row, const Sale& incoming) {
  switch (verb) {
    case 2:
      return equal_day(row, incoming);
    case 3:
      return equal_day(row, incoming) && row.shop == incoming.shop;
    case 4:
      return row.id == incoming.id;
    case 5:
      return row.shop == incoming.shop;
    case 6:
      return equal_day(row, incoming) && incoming.amount >= row.amount;
    case 7:
      return row.day == incoming.day;
    case 8:
      return equal_day(row, incoming) || row.shop == incoming.shop;
    default:
      return row.amount == incoming.amount;
  }
}

Expected expected_of(int verb, int number, bool unchecked, const Rows& table, const Rows& incoming) {
  if (verb == 0) return replace(table, incoming, [](const Sale&) { return true; });
  if (verb == 1) {
    const auto on_day = [number](const Sale& row) { return row.day == number; };
    Expected expected = replace(table, incoming, on_day);
    const bool mismatch = !std::ranges::all_of(incoming, on_day);
    if (mismatch && !unchecked) expected.outcome = Outcome::mismatch;
    return expected;
  }
  return replace(table, incoming, [&](const Sale& row) {
    return std::ranges::any_of(incoming, [&](const Sale& next) { return leaves_for(verb, row, next); });
  });
}

template <class Table>
void check_step(Table& table) {
  const int verb = *rc::gen::inRange(0, 10);
  const int number = *rc::gen::inRange(0, 3);
  const bool keep_last = *rc::gen::arbitrary<bool>();
  const bool unchecked = verb == 1 && *rc::gen::arbitrary<bool>();
  Rows incoming = *rc::gen::container<Rows>(sales());
  if (verb == 1 && *rc::gen::inRange(0, 4) != 0) {
    for (Sale& row : incoming) row.day = number;
  }
  RC_CLASSIFY(verb == 1, "replace_where");

  const Rows before = rows_of(table);
  const Rows arriving = keep_last ? last_of_each(incoming) : incoming;
  Expected expected = expected_of(verb, number, unchecked, before, arriving);
  expected.metrics.dropped_duplicates = incoming.size() - arriving.size();
  expected.metrics.source_rows = incoming.size();
  if constexpr (std::same_as<Table, Ordered>) std::ranges::sort(expected.rows, {}, &Sale::id);

  const auto load = [&](auto& target) {
    if (unchecked) {
      const auto day_is = kf::target<&Sale::day> == number;
      return keep_last ? target.duplicates(kf::keep_last).unchecked().replace_where(day_is, incoming)
                       : target.unchecked().replace_where(day_is, incoming);
    }
    return keep_last ? run(target.duplicates(kf::keep_last), verb, number, incoming)
                     : run(target, verb, number, incoming);
  };
  const bool in_transaction = *rc::gen::inRange(0, 3) == 0;
  const kf::Version version = table.version();
  try {
    if (in_transaction) {
      auto transaction = table.transaction();
      RC_ASSERT(load(transaction).metrics() == expected.metrics);
      RC_ASSERT(rows_of(transaction) == expected.rows);
      RC_ASSERT(rows_of(table) == before);
      transaction.commit();
    } else {
      const auto result = load(table);
      RC_ASSERT(result.metrics() == expected.metrics);
      RC_ASSERT(result.changes().size() == expected.metrics.affected());
    }
    RC_ASSERT(expected.outcome == Outcome::written);
  } catch (const kf::ReplaceWhereMismatch&) {
    RC_ASSERT(expected.outcome == Outcome::mismatch);
  } catch (const kf::DuplicateKey&) {
    // Of a batch that is refused on both counts the first row tells.
    RC_ASSERT(expected.outcome != Outcome::written);
  }
  const bool changed = expected.outcome == Outcome::written && expected.rows != before;
  RC_ASSERT(rows_of(table) == (changed ? expected.rows : before));
  RC_ASSERT(table.version() == version + (changed ? 1 : 0));
}

template <class Table>
void check_verbs(const std::string& name) {
  check_property(name, 700, [] {
    Table table;
    table.duplicates(kf::keep_last).append(*rc::gen::container<Rows>(sales()));
    for (int i = 0; i < 3; ++i) check_step(table);
    RC_ASSERT(keyfold_test::disagreements(table).empty());
  });
}

}  // namespace

TEST_CASE("the verbs that replace do what they are defined to do") {
  check_verbs<Hashed>("a hashed key");
  check_verbs<Indexed>("secondary indexes");
  check_verbs<Ordered>("an ordered key");
}
