// What readers of a SharedTable lose to a writer beside them: their throughput alone and while batches of
// 1,000 rows are merged, in short slices of time that take turns. Slices in which the kernel took the
// processor from one of the threads tell of other programs, and do not count.
#include <keyfold/keyfold.hpp>
#include <keyfold/shared_table.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "rows.hpp"

namespace keyfold_bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;

struct Options {
  std::size_t rows = 100'000;
  std::size_t rounds = 100;
  std::size_t slice = 10;  // milliseconds
};

constexpr std::size_t batch_size = 1000;

template <class Row>
struct KeyMember;
template <>
struct KeyMember<Payment> {
  static constexpr auto value = &Payment::id;
};
template <>
struct KeyMember<Product> {
  static constexpr auto value = &Product::sku;
};

/// What a reader does again and again. Returns how many rows it has read; `sum` keeps it from being optimised
/// away.
template <class Table>
using Work = std::function<std::size_t(const keyfold::SharedTable<Table>&, std::int64_t& sum)>;

/// How fast the writer is: commits a second, or as fast as it can.
struct Pace {
  const char* name;
  double commits;
};
constexpr Pace paces[]{{"100/s", 100}, {"1000/s", 1000}, {"unlimited", 0}};

/// What came of one slice of time.
struct Slice {
  double reads = 0;       // rows a second
  double reader_cpu = 0;  // of the time
  double commits = 0;     // a second
  double commit_us = 0;   // the median of the times that they took
  double longest_us = 0;
  bool undisturbed = true;
};

/// How often this thread had to leave the processor to others.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

template <class Row>
class Bench {
 public:
  using Table = keyfold::Table<Row, keyfold::Key<KeyMember<Row>::value>>;

  Bench(const Options& options) : options_(options), workload_(options.rows) {
    keyfold::TableOptions table_options;
    table_options.retention = keyfold::keep_last(100);
    shared_.write([&](Table& table) { table = Table(table_options); });
    shared_.append(workload_.table());
    for (int i = 0; i < 64; ++i) batches_.push_back(workload_.next_batch(batch_size, Mix::updates));
  }

  void run() {
    for (const auto& [name, work] : works()) {
      for (const Pace& pace : paces) report(name, pace, work);
    }
  }

 private:
  struct Named {
    const char* name;
    Work<Table> work;
  };

  std::vector<Named> works() {
    std::vector<Named> out;
    out.push_back({"find", [this](const auto& shared, std::int64_t& sum) {
                     for (int i = 0; i < 256; ++i) {
                       const auto row = shared.find(next_row().*KeyMember<Row>::value);
                       sum += row ? row->updated_at : 0;
                     }
                     return std::size_t{256};
                   }});
    out.push_back({"read", [this](const auto& shared, std::int64_t& sum) {
                     sum += shared.read([this](const Table& table) {
                       std::int64_t found = 0;
                       for (int i = 0; i < 64; ++i)
                         found += table.at(next_row().*KeyMember<Row>::value).updated_at;
                       return found;
                     });
                     return std::size_t{64};
                   }});
    out.push_back({"scan", [](const auto& shared, std::int64_t& sum) {
                     std::size_t count = 0;
                     shared.read_point().for_each([&](const Row& row) {
                       sum += row.updated_at;
                       ++count;
                     });
                     return count;
                   }});
    return out;
  }

  const Row& next_row() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return workload_.table()[(state_ >> 33U) % options_.rows];
  }

  void report(const char* name, const Pace& pace, const Work<Table>& work) {
    std::vector<double> alone;
    std::vector<double> beside;
    std::vector<double> ratios;
    std::vector<double> per_cpu;
    std::vector<double> commits;
    std::vector<double> commit_us;
    std::vector<double> undisturbed_us;
    std::vector<double> longest;
    std::size_t tries = 0;
    while (alone.size() < options_.rounds && ++tries <= 20 * options_.rounds) {
      const Slice without = slice(work, nullptr);
      const Slice with = slice(work, &pace);
      const Slice writer = slice(nullptr, &pace);
      if (tries == 1 || !without.undisturbed || !with.undisturbed || !writer.undisturbed) continue;
      alone.push_back(without.reads);
      beside.push_back(with.reads);
      ratios.push_back(with.reads / without.reads);
      per_cpu.push_back(with.reads / with.reader_cpu / (without.reads / without.reader_cpu));
      commits.push_back(with.commits);
      commit_us.push_back(with.commit_us);
      undisturbed_us.push_back(writer.commit_us);
      longest.push_back(with.longest_us);
    }
    if (alone.empty()) {
      std::printf("%-4s %-5s %-10s the machine is too busy: no slice was undisturbed\n", Row::name, name,
                  pace.name);
      std::fflush(stdout);
      return;
    }
    const double fall = 100 * (1 - median(ratios));
    std::printf("%-4s %-5s %-10s %8.2f %8.2f %6.1f%% %6.1f%% %8.0f %8.0f %8.0f %8.0f %4zu/%-5zu %s\n",
                Row::name, name, pace.name, median(alone) / 1e6, median(beside) / 1e6, fall,
                100 * (1 - median(per_cpu)), median(commits), median(undisturbed_us), median(commit_us),
                median(longest), alone.size(), tries, fall < 20 ? "met" : "MISSED");
    std::fflush(stdout);
  }

  // The writer that was alone has taken the caches: without this the reader that is alone next would be the
  // slower one.
  void warm_up(const Work<Table>& work) {
    const auto end = Clock::now() + std::chrono::milliseconds(options_.slice);
    while (Clock::now() < end) work(shared_, sum_);
  }

  Slice slice(const Work<Table>& work, const Pace* pace) {
    if (work) warm_up(work);
    const auto start = Clock::now();
    const auto end = start + std::chrono::milliseconds(options_.slice);
    Slice result;
    std::vector<double> times;
    bool writer_undisturbed = true;
    const auto write = [&] {
      const long before = preemptions();
      std::size_t count = 0;
      while (true) {
        auto due = start;
        if (pace->commits > 0)
          due += std::chrono::duration_cast<Clock::duration>(
              duration<double>(static_cast<double>(count) / pace->commits));
        if (due > Clock::now()) std::this_thread::sleep_until(std::min(due, end));
        const auto begin = Clock::now();
        if (begin >= end) break;
        auto& batch = batches_[next_batch_++ % batches_.size()];
        for (Row& row : batch) touch(row);
        const auto merge = Clock::now();
        shared_.upsert(batch);
        times.push_back(duration<double, std::micro>(Clock::now() - merge).count());
        ++count;
      }
      writer_undisturbed = preemptions() == before;
    };
    const long before = preemptions();
    std::thread writer;
    if (pace != nullptr) writer = std::thread(write);
    if (work) {
      const double cpu = cpu_nanoseconds();
      std::size_t reads = 0;
      while (Clock::now() < end) reads += work(shared_, sum_);
      const double seconds = duration<double>(Clock::now() - start).count();
      result.reads = static_cast<double>(reads) / seconds;
      result.reader_cpu = (cpu_nanoseconds() - cpu) / 1e9 / seconds;
    }
    result.undisturbed = preemptions() == before;
    if (writer.joinable()) writer.join();
    result.undisturbed = result.undisturbed && writer_undisturbed;
    if (!times.empty()) {
      result.commits = static_cast<double>(times.size()) / duration<double>(Clock::now() - start).count();
      result.longest_us = *std::ranges::max_element(times);
      result.commit_us = median(std::move(times));
    }
    return result;
  }

  Options options_;
  Workload<Row> workload_;
  keyfold::SharedTable<Table> shared_;
  std::vector<std::vector<Row>> batches_;
  std::size_t next_batch_ = 0;
  std::uint64_t state_ = 1;
  std::int64_t sum_ = 0;
};

Options options_of(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (read_number(argument, "--rows=", options.rows) ||
        read_number(argument, "--rounds=", options.rounds) ||
        read_number(argument, "--slice=", options.slice))
      continue;
    std::fprintf(stderr, "reader_bench [--rows=100000] [--rounds=100] [--slice=10]\n");
    std::exit(1);
  }
  return options;
}

}  // namespace
}  // namespace keyfold_bench

int main(int count, char** arguments) {
  using namespace keyfold_bench;
  const Options options = options_of(count, arguments);
  std::printf("%-4s %-5s %-10s %8s %8s %7s %7s %8s %8s %8s %8s %10s goal: 20%%\n", "row", "work", "commits",
              "alone M/s", "beside", "fall", "of CPU", "commits/s", "alone us", "us", "longest", "slices");
  Bench<Payment>(options).run();
  Bench<Product>(options).run();
}
