#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "keyfold_bench/options.hpp"
#include "measure.hpp"

namespace {

keyfold_bench::Options read_options(int& argc, char** argv) {
  using keyfold_bench::read_number;
  using keyfold_bench::read_text;
  keyfold_bench::Options options;
  keyfold_bench::take_arguments(argc, argv, [&](const char* argument) {
    return read_text(argument, "--only=", options.only) || read_text(argument, "--series=", options.series) ||
           read_number(argument, "--rows=", options.rows) ||
           read_number(argument, "--round=", options.round_rows) ||
           read_number(argument, "--rounds=", options.rounds);
  });
  if (options.rows < 1000) {
    std::fputs("keyfold_bench: a table has at least 1000 rows\n", stderr);
    std::exit(1);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const keyfold_bench::Options options = read_options(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  register_upserts(options);
  register_databases(options);
  register_growth(options);
  register_reads(options);
  register_conditions(options);
  register_parts(options);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
