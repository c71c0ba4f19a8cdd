// The parts of keyfold_bench. Each registers what it measures; `options` must outlive the run.
#pragma once

#include <cstddef>
#include <string>

namespace keyfold_bench {

struct Options {
  std::size_t rows = 100'000;        // in the table before the first batch
  std::size_t round_rows = 100'000;  // source rows that an engine takes before the next one has its turn
  std::size_t rounds = 9;
  std::string only;    // the name of one engine; empty: all
  std::string series;  // the file that the times of single commits go to; empty: none
};

void register_upserts(const Options& options);
void register_databases(const Options& options);
void register_growth(const Options& options);
void register_reads(const Options& options);
void register_conditions(const Options& options);
void register_parts(const Options& options);

template <class Row>
std::string label(const Options& options) {
  return std::string("row:") + Row::name + "/table:" + std::to_string(options.rows);
}

}  // namespace keyfold_bench
