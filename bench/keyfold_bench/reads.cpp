// Reading: rows by key, beside the index of the raw container, and all rows, beside a vector of pointers.
#include "reads.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engines.hpp"
#include "keyfold_bench/options.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"

namespace keyfold_bench {
namespace {

/// How many of these keys are there.
template <class Engine, class Key>
std::int64_t count_found(const Engine& engine, const std::vector<Key>& keys) {
  std::int64_t found = 0;
  for (const Key& key : keys) found += engine.find(key) != nullptr ? 1 : 0;
  return found;
}

enum class Keys { known, missing };

/// What `read` makes of the same keys, which are in another order in each round.
template <class Row, class Read>
void find(benchmark::State& state, const Options& options, Keys which, Read read) {
  Workload<Row> workload(options.rows);
  workload.next_batch(options.rows / 2, Mix::updates);  // so that rows differ in what is read of them
  TableOf<Row> table;
  FlatMap<Row> flat_map;
  MultiIndex<Row> multi_index;
  table.append(workload.table());
  flat_map.append(workload.table());
  multi_index.append(workload.table());

  Random random(7);
  std::vector<typename KeyOf<Row>::Type> keys;
  std::int64_t sum = 0;
  const std::size_t count = std::min<std::size_t>(100'000, options.rows);
  for (std::size_t i = 0; i < count; ++i) {
    const Row row = which == Keys::known ? workload.table()[random() % options.rows] : make_row<Row>(random);
    keys.push_back(row.*KeyOf<Row>::member);
    sum += row.updated_at;
  }
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", count, sum, [&] { return read(table, keys); });
  contest.enter("flat_map", count, sum, [&] { return read(flat_map, keys); });
  contest.enter("multi_index", count, sum, [&] { return read(multi_index, keys); });
  run(state, contest, [&] { std::ranges::shuffle(keys, random); });
  report_ratios(state, contest);
}

/// After commits that have spread the rows: a table, and a vector of pointers to the same rows in the same
/// order.
template <class Row>
void scan_all(benchmark::State& state, const Options& options) {
  Workload<Row> workload(options.rows);
  TableOf<Row> table;
  table.append(workload.table());
  upsert_all(table, workload.next_batches(options.rows / 10 / 1000 + 1, 1000));
  std::vector<const Row*> pointers;
  for (const Row& row : table) pointers.push_back(&row);

  std::int64_t sum = 0;
  for (const Row& row : workload.table()) sum += row.updated_at;
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", table.size(), sum, [&] { return scan(table); });
  contest.enter("pointers", table.size(), sum, [&] {
    std::int64_t seen = 0;
    for (const Row* row : pointers) seen += row->updated_at;
    return seen;
  });
  run(state, contest, [] {});
  report_ratios(state, contest);
}

template <class Row>
void register_row(const Options& options) {
  const auto add_find = [&options](const std::string& name, Keys which, auto read) {
    add(options, name + "/" + label<Row>(options), options.rounds,
        [which, read](auto& state, const Options& o) { find<Row>(state, o, which, read); });
  };
  add_find("find", Keys::known, [](const auto& engine, const auto& keys) { return find_all(engine, keys); });
  add_find("find_single", Keys::known,
           [](const auto& engine, const auto& keys) { return find_one_by_one(engine, keys); });
  add_find("find_missing", Keys::missing,
           [](const auto& engine, const auto& keys) { return count_found(engine, keys); });
  add(options, "scan/" + label<Row>(options), options.rounds, scan_all<Row>);
}

}  // namespace

void register_reads(const Options& options) {
  register_row<Payment>(options);
  register_row<Product>(options);
}

}  // namespace keyfold_bench
