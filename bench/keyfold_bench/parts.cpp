// What a merge is made of, each part alone: hashing a key, one access to memory that is in no cache, a node
// from the heap that is touched for the first time, a copy of a row, and reading the clock.
#include <keyfold/keyfold.hpp>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "engines.hpp"
#include "keyfold_bench/options.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"

namespace keyfold_bench {
namespace {

// What takes a microsecond is done so often that the clock does not count.
constexpr std::size_t repeats = 100;

/// A cache line.
struct alignas(64) Node {
  std::size_t next = 0;
};

/// Nodes that lead from one to the next, through all of them, in an order that nobody can guess (Sattolo).
std::vector<Node> make_ring(std::size_t size) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(3);
  for (std::size_t i = size - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
  std::vector<Node> ring(size);
  for (std::size_t i = 0; i < size; ++i) ring[i].next = order[i];
  return ring;
}

/// Follows `width` ways at once, so that as many accesses are under way.
template <std::size_t width>
std::int64_t follow(const std::vector<Node>& ring, std::size_t steps) {
  std::array<std::size_t, width> at{};
  for (std::size_t i = 0; i < width; ++i) at[i] = i * (ring.size() / width);
  for (std::size_t step = 0; step < steps / width; ++step) {
    for (std::size_t& place : at) place = ring[place].next;
  }
  benchmark::DoNotOptimize(at);
  return 0;
}

void access(benchmark::State& state, const Options& options) {
  constexpr std::size_t steps = 160'000;
  const auto ring = make_ring(options.rows);
  Contest contest(Rehearse::no, options.only);
  contest.enter("alone", steps, 0, [&] { return follow<1>(ring, steps); });
  contest.enter("of_16", steps, 0, [&] { return follow<16>(ring, steps); });
  run(state, contest, [] {});
}

template <class Row>
void hash(benchmark::State& state, const Options& options) {
  const Workload<Row> workload(std::min<std::size_t>(options.rows, 1000));  // in the cache
  const std::size_t rows = workload.table().size();
  const auto all = [&](auto hash_of) {
    for (std::size_t i = 0; i < repeats; ++i) {
      std::size_t sum = 0;
      for (const Row& row : workload.table()) sum += hash_of(row.*KeyOf<Row>::member);
      benchmark::DoNotOptimize(sum);
    }
    return std::int64_t{0};
  };
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", rows * repeats, 0, [&] {
    return all([](const auto& key) { return static_cast<std::size_t>(keyfold::detail::hash_of(key)); });
  });
  contest.enter("boost", rows * repeats, 0, [&] {
    return all([](const auto& key) { return boost::hash<typename KeyOf<Row>::Type>{}(key); });
  });
  run(state, contest, [] {});
}

/// Nodes from malloc, written once: of memory that the process did not have, and of memory that it had.
void allocate(benchmark::State& state, const Options& options) {
  constexpr std::size_t bytes = 64;
  const std::size_t count = options.rows;
  std::vector<std::unique_ptr<unsigned char[]>> nodes(count);
  const auto fill = [&] {
    for (auto& node : nodes) {
      node.reset(new unsigned char[bytes]);
      node[0] = 1;
    }
    return std::int64_t{0};
  };
  const auto release = [&] {
    for (auto& node : nodes) node.reset();
  };
  std::vector<double> fresh;
  std::vector<double> used;
  const auto timed = [&] {
    const double start = cpu_nanoseconds();
    fill();
    return (cpu_nanoseconds() - start) / static_cast<double>(count);
  };
  for (auto _ : state) {
    release();
    malloc_trim(0);
    fresh.push_back(timed());
    release();
    used.push_back(timed());
    state.SetIterationTime((fresh.back() + used.back()) * static_cast<double>(count) * 1e-9);
  }
  state.counters["first_touch_ns"] = median(fresh);
  state.counters["used_before_ns"] = median(used);
}

/// Rows that are in the cache, into memory that is, too.
template <class Row>
void copy(benchmark::State& state, const Options& options) {
  const Workload<Row> workload(100);
  const std::size_t rows = workload.table().size();
  std::vector<Row> from(workload.table());
  std::vector<Row> other(from);
  std::vector<Row> to;
  to.reserve(rows);
  Contest contest(Rehearse::yes, options.only);
  contest.enter("copy", rows * repeats, 0, [&] {
    for (std::size_t i = 0; i < repeats; ++i) {
      to.assign(from.begin(), from.end());
      benchmark::DoNotOptimize(to.data());
      to.clear();
    }
    return std::int64_t{0};
  });
  contest.enter("swap", rows * repeats, 0, [&] {
    for (std::size_t i = 0; i < repeats; ++i) {
      for (std::size_t j = 0; j < rows; ++j) std::swap(from[j], other[j]);
      benchmark::DoNotOptimize(from.data());
      benchmark::ClobberMemory();
    }
    return std::int64_t{0};
  });
  run(state, contest, [] {});
}

/// What a commit asks for its time, if the table has no clock of its own.
void clock(benchmark::State& state, const Options& options) {
  Contest contest(Rehearse::yes, options.only);
  contest.enter("system", 1000 * repeats, 0, [] {
    for (std::size_t i = 0; i < 1000 * repeats; ++i)
      benchmark::DoNotOptimize(std::chrono::system_clock::now().time_since_epoch().count());
    return std::int64_t{0};
  });
  run(state, contest, [] {});
}

template <class Row>
void register_row(const Options& options) {
  add(options, "parts/hash/" + label<Row>(options), options.rounds, hash<Row>);
  add(options, "parts/copy/" + label<Row>(options), options.rounds, copy<Row>);
}

}  // namespace

void register_parts(const Options& options) {
  const std::string table = "table:" + std::to_string(options.rows);
  add(options, "parts/access/" + table, options.rounds, access);
  add(options, "parts/allocate/" + table, options.rounds, allocate);
  add(options, "parts/clock/" + table, options.rounds, clock);
  register_row<Payment>(options);
  register_row<Product>(options);
}

}  // namespace keyfold_bench
