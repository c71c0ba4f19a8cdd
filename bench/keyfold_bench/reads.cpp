// Reading: rows by key, beside the index of the raw container, and all rows, beside a vector of pointers.
#include "reads.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines.hpp"
#include "keyfold_bench/options.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"

namespace keyfold_bench {
namespace {

template <class Row>
using Keys = std::vector<typename KeyOf<Row>::Type>;

/// How many of these keys are there. With `found` none, their rows are not read.
template <class Engine, class Row>
std::int64_t count_found(const Engine& engine, const Keys<Row>& keys) {
  std::int64_t found = 0;
  for (const auto& key : keys) found += engine.find(key) != nullptr ? 1 : 0;
  return found;
}

enum class Lookup { many, single, missing };

/// `many`: one after the other, where the processor works on several at once. `single`: the next key is known
/// only when the last row has been read. `missing`: keys that are not there.
template <class Row>
void find(benchmark::State& state, const Options& options, Lookup lookup) {
  Workload<Row> workload(options.rows);
  TableOf<Row> table;
  FlatMap<Row> flat_map;
  MultiIndex<Row> multi_index;
  table.append(workload.table());
  flat_map.append(workload.table());
  multi_index.append(workload.table());

  Keys<Row> keys;
  Random random(7);
  const std::size_t count = std::min<std::size_t>(100'000, options.rows);
  for (std::size_t i = 0; i < count; ++i) {
    const Row& known = workload.table()[random() % options.rows];
    keys.push_back((lookup == Lookup::missing ? make_row<Row>(random) : known).*KeyOf<Row>::member);
  }
  Contest contest(Rehearse::yes, options.only);
  const auto enter = [&](const char* name, const auto& engine) {
    const std::int64_t sum = 0;  // of the times of rows that nobody has touched
    switch (lookup) {
      case Lookup::many:
        contest.enter(name, count, sum, [&] { return find_all(engine, keys); });
        break;
      case Lookup::single:
        contest.enter(name, count, sum, [&] { return find_one_by_one(engine, keys); });
        break;
      case Lookup::missing:
        contest.enter(name, count, 0,
                      [&] { return count_found<std::decay_t<decltype(engine)>, Row>(engine, keys); });
        break;
    }
  };
  enter("keyfold", table);
  enter("flat_map", flat_map);
  enter("multi_index", multi_index);
  run(state, contest, [&] { std::ranges::shuffle(keys, random); });
  report_ratios(state, contest, contest.first());
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
  report_ratios(state, contest, contest.first());
}

template <class Row>
void register_row(const Options& options) {
  add(options, "find/" + label<Row>(options), options.rounds,
      [](auto& state, const Options& o) { find<Row>(state, o, Lookup::many); });
  add(options, "find_single/" + label<Row>(options), options.rounds,
      [](auto& state, const Options& o) { find<Row>(state, o, Lookup::single); });
  add(options, "find_missing/" + label<Row>(options), options.rounds,
      [](auto& state, const Options& o) { find<Row>(state, o, Lookup::missing); });
  add(options, "scan/" + label<Row>(options), options.rounds, scan_all<Row>);
}

}  // namespace

void register_reads(const Options& options) {
  register_row<Payment>(options);
  register_row<Product>(options);
}

}  // namespace keyfold_bench
