// What a store costs: an appended frame, commits beside the same ones in memory and in SQLite, commits that
// wait for the medium, and opening again.
#include <benchmark/benchmark.h>

#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engines.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"
#ifdef KEYFOLD_BENCH_SQLITE
#include "stored_payments.hpp"
#endif

namespace keyfold_bench {

BOOST_DESCRIBE_STRUCT(Payment, (), (id, updated_at, amount, status))

namespace {

using Table = kf::Table<Payment, kf::Key<&Payment::id>>;
using Store = kf::Store<Table>;

struct Options {
  std::size_t rows = 100'000;  // in the table before the first batch
  std::size_t rounds = 9;
  std::size_t commits = 1'000'000;  // that are recovered
  std::filesystem::path directory = std::filesystem::temp_directory_path() / "keyfold-store-bench";
};

Goals goals;

double wall_nanoseconds() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// An empty directory.
std::filesystem::path fresh(const Options& options, const char* name) {
  const auto path = options.directory / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

// Checkpoints are left out: one costs what save() costs, and snapshot_bench has that.
kf::StoreOptions store_options(kf::Durability durability) {
  kf::StoreOptions options;
  options.durability = durability;
  options.checkpoint_bytes = UINT64_MAX;
  return options;
}

// --- One frame

void append_frame(benchmark::State& state, const Options& options) {
  constexpr std::size_t frames = 20'000;
  kf::detail::PosixDisk disk(fresh(options, "frames"));
  const auto image = kf::detail::read_journal<kf::detail::FrameChecks>(disk);
  kf::detail::Journal<kf::detail::PosixDisk> journal(disk, image);
  journal.checkpoint([](auto&) {});
  const auto raw_path = options.directory / "raw";
  std::FILE* const raw = std::fopen(raw_path.c_str(), "wb");
  std::setvbuf(raw, nullptr, _IONBF, 0);
  const std::vector<std::byte> payload(static_cast<std::size_t>(state.range(0)), std::byte{7});

  Contest contest(Rehearse::no, "");
  const auto expected = static_cast<std::int64_t>(frames);
  contest.enter("append", frames, expected, [&] {
    for (std::size_t i = 0; i < frames; ++i) journal.append(payload);
    return expected;
  });
  contest.enter("write", frames, expected, [&] {
    for (std::size_t i = 0; i < frames; ++i) {
      if (std::fwrite(payload.data(), 1, payload.size(), raw) != payload.size()) std::abort();
    }
    return expected;
  });
  run(state, contest, [] {});
  std::fclose(raw);
  if (state.range(0) == 192) goals.add("append of a commit of one row, ns", contest.time("append"), 2000);
}

// --- Commits

void commits(benchmark::State& state, const Options& options) {
  const auto batch_size = static_cast<std::size_t>(state.range(0));
  const std::size_t round_rows = batch_size == 1 ? 20'000 : 100'000;
  Workload<Payment> workload(options.rows);
  Batches<Payment> batches;
  Table memory;
  memory.append(workload.table());
  Store store = Store::open(fresh(options, "store"), store_options(kf::durability::buffered));
  store.append(workload.table());

  Contest contest(Rehearse::no, "");
  const auto expected = static_cast<std::int64_t>(round_rows / 10 * 9);
  contest.enter("buffered", round_rows, expected, [&] { return upsert_all(store, batches); });
  contest.enter("memory", round_rows, expected, [&] { return upsert_all(memory, batches); });
#ifdef KEYFOLD_BENCH_SQLITE
  StoredPayments sqlite(fresh(options, "sqlite") / "payments.db", Synchronous::normal);
  sqlite.upsert(workload.table());
  contest.enter("sqlite_normal", round_rows, expected, [&] { return upsert_all(sqlite, batches); });
#endif
  run(state, contest, [&] { batches = workload.next_batches(round_rows / batch_size, batch_size); });
  report_ratios(state, contest);
  goals.add("buffered store / memory, batches of " + std::to_string(batch_size), contest, "buffered",
            "memory", 1.5);
}

// --- Commits that wait for the medium, by the clock on the wall

void synced_commits(benchmark::State& state, const Options& options) {
  constexpr std::size_t round_commits = 200;
  Workload<Payment> workload(options.rows);
  Store store = Store::open(fresh(options, "store"), store_options(kf::durability::every_commit));
  store.append(workload.table());
  std::vector<double> ours;
  std::vector<double> theirs;
  const auto per_second = [](double nanoseconds) {
    return static_cast<double>(round_commits) / nanoseconds * 1e9;
  };
#ifdef KEYFOLD_BENCH_SQLITE
  StoredPayments sqlite(fresh(options, "sqlite") / "payments.db", Synchronous::full);
  sqlite.upsert(workload.table());
#endif
  for (auto _ : state) {
    const auto batches = workload.next_batches(round_commits, 1);
    double start = wall_nanoseconds();
    upsert_all(store, batches);
    const double time = wall_nanoseconds() - start;
    ours.push_back(per_second(time));
#ifdef KEYFOLD_BENCH_SQLITE
    start = wall_nanoseconds();
    upsert_all(sqlite, batches);
    theirs.push_back(per_second(wall_nanoseconds() - start));
#endif
    state.SetIterationTime(time * 1e-9);
  }
  state.counters["commits_per_s"] = median(ours);
  if (!theirs.empty()) state.counters["sqlite_full_per_s"] = median(theirs);
}

// --- Opening again

void recovery(benchmark::State& state, const Options& options) {
  const bool killed = state.range(0) != 0;
  const auto path = fresh(options, "store");
  Workload<Payment> workload(options.rows);
  {
    Store store = Store::open(path, store_options(kf::durability::buffered));
    store.append(workload.table());
    for (std::size_t i = 0; i < options.commits; ++i) store.upsert(workload.next_batch(1).front());
    state.counters["log_MB"] = static_cast<double>(std::filesystem::file_size(path / "log-1")) / 1e6;
  }
  std::vector<double> times;
  for (auto _ : state) {
    if (killed) std::filesystem::remove(path / "CLEAN");
    const double start = cpu_nanoseconds();
    {
      const Store store = Store::open(path, store_options(kf::durability::buffered));
      const double time = cpu_nanoseconds() - start;
      times.push_back(time);
      state.SetIterationTime(time * 1e-9);
      if (store.table().size() != workload.table().size() || store.recovered().clean == killed)
        state.SkipWithError("the store is not what it was");
    }
  }
  state.counters["seconds"] = median(times) * 1e-9;
  state.counters["ns_per_commit"] = median(times) / static_cast<double>(options.commits);
}

#ifdef KEYFOLD_BENCH_SQLITE
// SQLite reads its rows when they are asked for; so what is measured is opening and reading all of them.
void sqlite_recovery(benchmark::State& state, const Options& options) {
  const auto path = fresh(options, "sqlite") / "payments.db";
  Workload<Payment> workload(options.rows);
  {
    StoredPayments sqlite(path, Synchronous::normal);
    sqlite.upsert(workload.table());
    // Its checkpoints leave nothing of the commits but the rows, so larger ones do.
    for (std::size_t i = 0; i < options.commits; i += 1000) sqlite.upsert(workload.next_batch(1000));
  }
  std::vector<double> times;
  for (auto _ : state) {
    const double start = cpu_nanoseconds();
    StoredPayments sqlite(path, Synchronous::normal);
    const bool right = sqlite.read_all() == static_cast<std::int64_t>(workload.table().size());
    times.push_back(cpu_nanoseconds() - start);
    state.SetIterationTime(times.back() * 1e-9);
    if (!right) state.SkipWithError("SQLite has another number of rows");
  }
  state.counters["seconds"] = median(times) * 1e-9;
  state.counters["file_MB"] = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
}
#endif

Options read_options(int& argc, char** argv) {
  Options options;
  take_arguments(argc, argv, [&](const char* argument) {
    return read_text(argument, "--directory=", options.directory) ||
           read_number(argument, "--rows=", options.rows) ||
           read_number(argument, "--rounds=", options.rounds) ||
           read_number(argument, "--commits=", options.commits);
  });
  return options;
}

}  // namespace
}  // namespace keyfold_bench

int main(int argc, char** argv) {
  using namespace keyfold_bench;
  const Options options = read_options(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const std::size_t openings = std::min<std::size_t>(options.rounds, 3);
  add(options, "append/bytes", options.rounds, append_frame)->Arg(192)->Arg(4096);
  add(options, "commit/batch", options.rounds, commits)->Arg(1)->Arg(1000)->Arg(100'000);
  add(options, "synced_commit", options.rounds, synced_commits);
  add(options, "recovery/killed", openings, recovery)->Arg(0)->Arg(1);
#ifdef KEYFOLD_BENCH_SQLITE
  add(options, "sqlite_recovery", openings, sqlite_recovery);
#endif
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  std::filesystem::remove_all(options.directory);
  goals.print();
}
