// What ties contests to Google Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>

#include "measure.hpp"

namespace keyfold_bench {

/// Runs the rounds and reports nanoseconds per unit for every contender. `prepare` comes before each round.
template <class Prepare>
void run(benchmark::State& state, Contest& contest, Prepare prepare) {
  prepare();
  contest.round(true);
  for (auto _ : state) {
    prepare();
    state.SetIterationTime(contest.round(false) * 1e-9);
  }
  contest.for_each_name([&](const std::string& name) { state.counters[name + "_ns"] = contest.time(name); });
  if (!contest.right()) state.SkipWithError("not what was expected");
}

inline void report_ratio(benchmark::State& state, const Contest& contest, const std::string& name,
                         const std::string& to) {
  if (contest.has(name) && contest.has(to)) state.counters[name + "/" + to] = contest.ratio(name, to);
}

/// The one that entered first, beside each of the others.
inline void report_ratios(benchmark::State& state, const Contest& contest) {
  std::string first;
  contest.for_each_name([&](const std::string& name) {
    if (first.empty()) {
      first = name;
    } else {
      report_ratio(state, contest, first, name);
    }
  });
}

/// `options` must outlive the run.
template <class Options, class Function>
benchmark::internal::Benchmark* add(const Options& options, const std::string& name, std::size_t rounds,
                                    Function function) {
  return benchmark::RegisterBenchmark(
             name.c_str(), [&options, function](benchmark::State& state) { function(state, options); })
      ->Iterations(static_cast<benchmark::IterationCount>(rounds))
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace keyfold_bench
