// Empty tables that are filled: by one append, by commits of 1,000 rows, and what they occupy then.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "engines.hpp"
#include "heap.hpp"
#include "keyfold_bench/options.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"

namespace keyfold_bench {
namespace {

// --- Commits of 1,000 new rows until the table is full

constexpr std::size_t commit_rows = 1000;

void write_series(const std::string& path, const std::string& name, const std::vector<double>& times) {
  if (path.empty()) return;
  std::FILE* const file = std::fopen(path.c_str(), "a");
  if (file == nullptr) return;
  for (std::size_t i = 0; i < times.size(); ++i)
    std::fprintf(file, "%s,%zu,%.0f\n", name.c_str(), (i + 1) * commit_rows, times[i]);
  std::fclose(file);
}

/// How long each commit took, and whether one of them stalled.
template <class Engine>
void grow(benchmark::State& state, const Options& options, const std::string& name) {
  std::vector<double> times;
  Random random(2026);
  for (auto _ : state) {
    const std::size_t before = heap_bytes();
    Engine engine;
    bool right = true;
    while (engine.size() < options.rows) {
      std::vector<Payment> batch;
      for (std::size_t i = 0; i < commit_rows; ++i) batch.push_back(make_row<Payment>(random));
      const double start = cpu_nanoseconds();
      right = affected_by(engine.upsert(batch)) == commit_rows && right;
      times.push_back(cpu_nanoseconds() - start);
    }
    state.SetIterationTime(std::accumulate(times.begin(), times.end(), 0.0) * 1e-9);
    if (!right) state.SkipWithError("not every row was new");
    state.counters["bytes_per_row"] =
        static_cast<double>(heap_bytes() - before) / static_cast<double>(engine.size());
  }
  const double slowest = *std::ranges::max_element(times);
  state.counters["median_us"] = median(times) / 1e3;
  state.counters["slowest_us"] = slowest / 1e3;
  state.counters["slowest/median"] = slowest / median(times);
  write_series(options.series, name, times);
}

// --- One append, beside inserting one by one

template <class Row>
void append(benchmark::State& state, const Options& options) {
  const Workload<Row> workload(options.rows);
  Contest contest(Rehearse::no, options.only);
  std::vector<std::shared_ptr<void>> made;  // let go between the rounds, untimed
  const auto enter = [&]<class Engine>(const char* name, std::type_identity<Engine>) {
    contest.enter(name, options.rows, static_cast<std::int64_t>(options.rows), [&] {
      const auto engine = std::make_shared<Engine>();
      made.push_back(engine);
      engine->append(workload.table());
      return static_cast<std::int64_t>(engine->size());
    });
  };
  enter("keyfold", std::type_identity<TableOf<Row>>());
  enter("flat_map", std::type_identity<FlatMap<Row>>());
  enter("multi_index", std::type_identity<MultiIndex<Row>>());
  run(state, contest, [&] { made.clear(); });
  report_ratios(state, contest);
}

// --- What they occupy

struct Bytes {
  double heap;      // as malloc counts
  double resident;  // as the kernel counts
};

template <class Engine, class Row>
Bytes bytes_per_row(const std::vector<Row>& rows) {
  const std::size_t heap = heap_bytes();
  const std::size_t resident = resident_bytes();
  Engine engine;
  engine.append(rows);
  const auto per_row = [&](std::size_t before, std::size_t after) {
    return static_cast<double>(after - before) / static_cast<double>(rows.size());
  };
  return {per_row(heap, heap_bytes()), per_row(resident, resident_bytes())};
}

/// The container as it is, and one that keeps the order of insertion as a table does.
template <class Row>
void memory(benchmark::State& state, const Options& options) {
  const Workload<Row> workload(options.rows);
  for (auto _ : state) {
    const double start = cpu_nanoseconds();
    const Bytes keyfold = bytes_per_row<TableOf<Row>>(workload.table());
    const Bytes flat_map = bytes_per_row<FlatMap<Row>>(workload.table());
    const Bytes container = bytes_per_row<MultiIndex<Row>>(workload.table());
    const Bytes sequenced = bytes_per_row<MultiIndex<Row, boost::multi_index::sequenced<>>>(workload.table());
    state.SetIterationTime((cpu_nanoseconds() - start) * 1e-9);
    state.counters["keyfold_bytes"] = keyfold.heap;
    state.counters["flat_map_bytes"] = flat_map.heap;
    state.counters["multi_index_bytes"] = container.heap;
    state.counters["sequenced_bytes"] = sequenced.heap;
    state.counters["keyfold_resident"] = keyfold.resident;
    state.counters["multi_index_resident"] = container.resident;
    state.counters["keyfold/multi_index"] = keyfold.heap / container.heap;
    state.counters["keyfold/sequenced"] = keyfold.heap / sequenced.heap;
    state.counters["resident/multi_index"] = keyfold.resident / container.resident;
  }
}

template <class Engine>
void register_growth_of(const Options& options, const std::string& name) {
  if (!options.only.empty() && options.only != name) return;
  add(options, "growth/" + name + "/" + label<Payment>(options), 1,
      [name](benchmark::State& state, const Options& o) { grow<Engine>(state, o, name); });
}

template <class Row>
void register_row(const Options& options) {
  add(options, "append/" + label<Row>(options), std::min<std::size_t>(options.rounds, 5), append<Row>);
  add(options, "memory/" + label<Row>(options), 1, memory<Row>);
}

}  // namespace

void register_growth(const Options& options) {
  register_row<Payment>(options);
  register_row<Product>(options);
  register_growth_of<TableOf<Payment>>(options, "keyfold");
  register_growth_of<FlatMap<Payment>>(options, "flat_map");
  register_growth_of<MultiIndex<Payment>>(options, "multi_index");
}

}  // namespace keyfold_bench
