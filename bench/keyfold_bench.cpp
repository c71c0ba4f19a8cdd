// Upserts in batches: nanoseconds for each source row, of keyfold and of two loops written by hand, in one
// run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engines.hpp"
#include "measure.hpp"
#include "rows.hpp"

namespace keyfold_bench {
namespace {

struct Options {
  std::size_t rows = 100'000;        // in the table before the first batch
  std::size_t round_rows = 100'000;  // source rows that an engine takes before the next one has its turn
  std::size_t rounds = 9;
  std::string only;  // the name of one engine; empty: all
};

template <class Row>
using Batches = std::vector<std::vector<Row>>;

/// An engine and how long its rounds took.
template <class Engine>
struct Lane {
  Engine engine;
  std::vector<double> row_times;

  // A function of its own, so that a profiler can tell its time from that of making batches.
  template <class Row>
  [[gnu::noinline]] double run(const Batches<Row>& batches, std::size_t batch_size) {
    const double start = cpu_nanoseconds();
    for (const auto& batch : batches) {
      if (batch_size == 1) {
        engine.upsert(batch.front());
      } else {
        engine.upsert(batch);
      }
    }
    return cpu_nanoseconds() - start;
  }
};

/// One table size and batch size: rounds in which each engine in turn takes the same batches.
template <class Row>
class Race {
 public:
  Race(const Options& options, std::size_t batch_size)
      : options_(options), batch_size_(batch_size), workload_(options.rows) {
    for_each_lane([&](auto& lane) { lane.engine.fill(workload_.table()); });
  }

  /// Returns the nanoseconds that the first engine took. The first of all rounds only warms up.
  double round(bool warm_up) {
    Batches<Row> batches;
    const std::size_t count = std::max<std::size_t>(1, options_.round_rows / batch_size_);
    for (std::size_t i = 0; i < count; ++i) batches.push_back(workload_.next_batch(batch_size_));
    const auto source_rows = static_cast<double>(count * batch_size_);
    double first = 0;
    // Whoever begins, begins with caches full of the others' data; so they take turns at it.
    for (std::size_t turn = 0; turn < lane_count; ++turn) {
      std::size_t number = 0;
      for_each_lane([&](auto& lane) {
        if ((number++ + rounds_) % lane_count != turn) return;
        const double time = lane.run(batches, batch_size_);
        if (!warm_up) lane.row_times.push_back(time / source_rows);
        if (number == 1) first = time;
      });
    }
    ++rounds_;
    return first;
  }

  void report(benchmark::State& state) {
    std::vector<std::pair<const char*, double>> times;
    for_each_lane([&](auto& lane) { times.emplace_back(lane.engine.name, median(lane.row_times)); });
    for (const auto& [name, time] : times) state.counters[std::string(name) + "_ns"] = time;
    for (std::size_t i = 1; i < times.size() && times[0].first == Keyfold<Row>::name; ++i) {
      state.counters[std::string("to_") + times[i].first] = times[0].second / times[i].second;
    }
  }

  /// All engines must have done the same.
  bool agrees() {
    bool same = true;
    for_each_lane([&](auto& lane) {
      same =
          same && lane.engine.size() == workload_.table().size() && lane.engine.counts() == expected_counts();
    });
    return same;
  }

 private:
  static constexpr std::size_t lane_count = 3;

  Counts expected_counts() const {
    const std::size_t total =
        rounds_ * std::max<std::size_t>(1, options_.round_rows / batch_size_) * batch_size_;
    Counts counts;
    for (std::size_t i = 0; i < total; ++i) {
      ++(i % 2 == 0 ? counts.inserted : i % 10 == 9 ? counts.unchanged : counts.updated);
    }
    return counts;
  }

  template <class Visit>
  void for_each_lane(Visit visit) {
    std::apply(
        [&](auto&... lane) {
          const auto visit_if_wanted = [&](auto& one) {
            if (options_.only.empty() || options_.only == one.engine.name) visit(one);
          };
          (visit_if_wanted(lane), ...);
        },
        lanes_);
  }

  const Options& options_;
  std::size_t batch_size_;
  Workload<Row> workload_;
  std::tuple<Lane<Keyfold<Row>>, Lane<FlatMap<Row>>, Lane<MultiIndex<Row>>> lanes_;
  std::size_t rounds_ = 0;
};

template <class Row>
void upsert(benchmark::State& state, const Options& options, std::size_t batch_size) {
  const auto race = std::make_unique<Race<Row>>(options, batch_size);
  race->round(true);
  for (auto _ : state) state.SetIterationTime(race->round(false) * 1e-9);
  race->report(state);
  if (!race->agrees()) state.SkipWithError("the engines do not agree");
}

template <class Row>
void register_row(const Options& options) {
  for (const std::size_t batch_size : {std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
    if (batch_size > options.rows) continue;  // it takes half of its keys from the table
    const std::string name = std::string("upsert/row:") + Row::name +
                             "/table:" + std::to_string(options.rows) +
                             "/batch:" + std::to_string(batch_size);
    benchmark::RegisterBenchmark(
        name.c_str(),
        [&options, batch_size](benchmark::State& state) { upsert<Row>(state, options, batch_size); })
        ->Iterations(static_cast<benchmark::IterationCount>(options.rounds))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

Options read_options(int& argc, char** argv) {
  Options options;
  const auto is_ours = [&](const char* text) {
    const std::string_view argument = text;
    if (argument.starts_with("--only=")) {
      options.only = argument.substr(7);
      return true;
    }
    return read_number(argument, "--rows=", options.rows) ||
           read_number(argument, "--round=", options.round_rows) ||
           read_number(argument, "--rounds=", options.rounds);
  };
  char** const rest = std::remove_if(argv + 1, argv + argc, is_ours);
  argc = static_cast<int>(rest - argv);
  return options;
}

}  // namespace
}  // namespace keyfold_bench

int main(int argc, char** argv) {
  const keyfold_bench::Options options = keyfold_bench::read_options(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  keyfold_bench::register_row<keyfold_bench::Payment>(options);
  keyfold_bench::register_row<keyfold_bench::Product>(options);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
