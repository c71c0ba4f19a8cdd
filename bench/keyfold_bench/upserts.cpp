// Upserts in batches, beside two loops written by hand; and what it costs to do it all again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines.hpp"
#include "heap.hpp"
#include "keyfold_bench/options.hpp"
#include "keyfold_bench/race.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"

namespace keyfold_bench {
namespace {

template <class Row>
Batches<Row> split(const std::vector<Row>& rows, std::size_t batch_size) {
  Batches<Row> batches;
  for (auto at = rows.begin(); at != rows.end(); at += static_cast<std::ptrdiff_t>(batch_size))
    batches.emplace_back(at, at + static_cast<std::ptrdiff_t>(batch_size));
  return batches;
}

/// Batches that change something, and then the very same ones. `largest_bytes` is the largest block that the
/// second time allocates: it must not grow with the table.
template <class Row>
void rerun(benchmark::State& state, const Options& options, std::size_t batch_size) {
  const std::size_t count = std::max<std::size_t>(1, options.rows / 5 / batch_size);
  const auto source_rows = static_cast<double>(count * batch_size);
  std::vector<double> first;
  std::vector<double> again;
  std::vector<double> ratios;
  Allocated before;
  Allocated after;
  bool right = true;
  for (auto _ : state) {
    Workload<Row> workload(options.rows);
    TableOf<Row> table;
    table.append(workload.table());
    const auto batches = split(workload.next_batch(count * batch_size), batch_size);
    double start = cpu_nanoseconds();
    upsert_all(table, batches);
    first.push_back(cpu_nanoseconds() - start);
    reset_largest();
    before = allocated();
    start = cpu_nanoseconds();
    right = right && upsert_all(table, batches) == 0;
    again.push_back(cpu_nanoseconds() - start);
    after = allocated();
    ratios.push_back(again.back() / first.back());
    state.SetIterationTime(again.back() * 1e-9);
  }
  const auto per_batch = [&](std::size_t from, std::size_t to) {
    return static_cast<double>(to - from) / static_cast<double>(count);
  };
  state.counters["first_ns"] = median(first) / source_rows;
  state.counters["again_ns"] = median(again) / source_rows;
  state.counters["again/first"] = median(ratios);
  state.counters["allocations"] = per_batch(before.times, after.times);
  state.counters["bytes"] = per_batch(before.bytes, after.bytes);
  state.counters["largest_bytes"] = static_cast<double>(after.largest);
  if (!right) state.SkipWithError("the second run changed something");
}

template <class Row>
void register_row(const Options& options) {
  const auto enter = [](Race<Row>& race) {
    race.template enter<TableOf<Row>>("keyfold");
    race.template enter<FlatMap<Row>>("flat_map");
    race.template enter<MultiIndex<Row>>("multi_index");
  };
  add_races<Row>(options, "upsert", {1, 10, 100, 1000, 10'000, 100'000}, Mix::mixed, enter);
  add_races<Row>(options, "insert", {1}, Mix::inserts, enter);
  add_races<Row>(options, "update", {1}, Mix::updates, enter);
  add_races<Row>(options, "upsert_indexed", {1000}, Mix::mixed, [](Race<Row>& race) {
    race.template enter<IndexedTable<Row>>("keyfold");
    race.template enter<IndexedMultiIndex<Row>>("multi_index");
  });
  for (const std::size_t batch_size : {std::size_t{1000}, std::size_t{100'000}}) {
    if (batch_size > options.rows) continue;
    add(options, "rerun/" + label<Row>(options) + "/batch:" + std::to_string(batch_size), options.rounds,
        [batch_size](benchmark::State& state, const Options& o) { rerun<Row>(state, o, batch_size); });
  }
}

}  // namespace

void register_upserts(const Options& options) {
  register_row<Payment>(options);
  register_row<Product>(options);
}

}  // namespace keyfold_bench
