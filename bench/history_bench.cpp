// What history costs: commits with and without it, reading old versions beside the present one, differences,
// and memory. Where SQLite is found it does the same work in the same run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engines.hpp"
#include "forgetful.hpp"
#include "heap.hpp"
#include "measure.hpp"
#include "reads.hpp"
#include "report.hpp"
#include "rows.hpp"
#ifdef KEYFOLD_BENCH_SQLITE
#include "sqlite_history.hpp"
#endif

namespace keyfold_bench {
namespace {

struct Options {
  std::size_t rows = 100'000;
  std::size_t rounds = 15;
  std::string only;  // the name of one contender; empty: all
};

constexpr std::size_t batch_size = 1000;  // rows of a commit, everywhere
constexpr std::size_t versions_back[]{10, 100, 1000};

template <class Row, template <class> class Kind>
using TableOfKind = keyfold::Table<Kind<Row>, keyfold::Key<KeyOf<Row>::member>>;

Goals goals;

template <class Row>
std::string label(std::size_t rows) {
  return std::string("row:") + Row::name + "/table:" + std::to_string(rows);
}

std::int64_t signed_size(std::size_t size) { return static_cast<std::int64_t>(size); }

// --- Commits with and without history

constexpr std::size_t commits_per_round = 20;

/// Batches for a commit contest, in the row types that its tables have.
template <class Row>
struct CommitBatches {
  Batches<Row> plain;
  Batches<Remembered<Row>> remembered;
  Batches<Forgotten<Row>> forgotten;

  void take(Batches<Row> batches) {
    plain = std::move(batches);
    convert(remembered);
    convert(forgotten);
  }

 private:
  template <class Kind>
  void convert(Batches<Kind>& batches) const {
    batches.clear();
    for (const auto& batch : plain) {
      batches.emplace_back();
      for (const Row& row : batch) batches.back().push_back(Kind{row});
    }
  }
};

template <class Kind, class Row>
std::vector<Kind> rows_as(const std::vector<Row>& rows) {
  std::vector<Kind> out;
  for (const Row& row : rows) out.push_back(Kind{row});
  return out;
}

keyfold::TableOptions keeping_only_the_last() {
  keyfold::TableOptions options;
  options.retention = keyfold::keep_last(1);
  return options;
}

constexpr std::size_t source_rows = commits_per_round * batch_size;

template <class Row>
void commits(benchmark::State& state, const Options& options, Mix mix) {
  Workload<Row> workload(options.rows);
  CommitBatches<Row> batches;
  TableOfKind<Row, Remembered> kept;
  TableOfKind<Row, Remembered> last_only(keeping_only_the_last());
  TableOfKind<Row, Forgotten> off;
  kept.append(rows_as<Remembered<Row>>(workload.table()));
  last_only.append(rows_as<Remembered<Row>>(workload.table()));
  off.append(rows_as<Forgotten<Row>>(workload.table()));

  const std::int64_t affected = signed_size(affected_of(mix, source_rows));
  Contest contest(Rehearse::no, options.only);
  contest.enter("kept", source_rows, affected, [&] { return upsert_all(kept, batches.remembered); });
  contest.enter("off", source_rows, affected, [&] { return upsert_all(off, batches.forgotten); });
  contest.enter("keep_last_1", source_rows, affected,
                [&] { return upsert_all(last_only, batches.remembered); });
  run(state, contest, [&] { batches.take(workload.next_batches(commits_per_round, batch_size, mix)); });
  report_ratio(state, contest, "kept", "off");
  report_ratio(state, contest, "keep_last_1", "off");
  goals.add(label<Row>(options.rows) + ": commit of 1,000 " +
                (mix == Mix::updates ? "updates" : "mixed rows") + ", history kept / off",
            contest, "kept", "off", 1.25);
}

#ifdef KEYFOLD_BENCH_SQLITE
void commits_of_peer(benchmark::State& state, const Options& options, Mix mix) {
  Workload<Payment> workload(options.rows);
  Batches<Payment> batches;
  TableOf<Payment> kept;
  SqlitePayments triggers(true);
  SqlitePayments plain(false);
  kept.append(workload.table());
  triggers.upsert(workload.table());
  plain.upsert(workload.table());

  const std::int64_t affected = signed_size(affected_of(mix, source_rows));
  Contest contest(Rehearse::no, options.only);
  contest.enter("kept", source_rows, affected, [&] { return upsert_all(kept, batches); });
  contest.enter("sqlite_kept", source_rows, affected, [&] { return upsert_all(triggers, batches); });
  contest.enter("sqlite_off", source_rows, affected, [&] { return upsert_all(plain, batches); });
  run(state, contest, [&] { batches = workload.next_batches(commits_per_round, batch_size, mix); });
  report_ratio(state, contest, "sqlite_kept", "sqlite_off");
  report_ratio(state, contest, "sqlite_kept", "kept");
}
#endif

// --- The past

/// A table whose last 1,100 commits updated 1,000 random rows each, and copies of what it held at some of
/// them.
template <class Row>
class Past {
 public:
  static constexpr std::size_t commits = 1100;

  explicit Past(std::size_t rows) : workload_(rows) {
    table_.append(workload_.table());
#ifdef KEYFOLD_BENCH_SQLITE
    if constexpr (std::is_same_v<Row, Payment>) {
      sqlite_ = std::make_unique<SqlitePayments>(true);
      sqlite_->upsert(workload_.table());
    }
#endif
    for (std::size_t left = commits; left != 0; --left) {
      keep_copy(left);
      const auto batch = workload_.next_batch(batch_size, Mix::updates);
      table_.upsert(batch);
#ifdef KEYFOLD_BENCH_SQLITE
      if constexpr (std::is_same_v<Row, Payment>) sqlite_->upsert(batch);
#endif
    }
    keep_copy(0);
  }

  const TableOf<Row>& table() const noexcept { return table_; }
  keyfold::Version version(std::size_t back) const { return table_.version() - back; }

  /// Rows by number, as they were. A row keeps its number and its key.
  const std::vector<Row>& rows(std::size_t back) const { return copies_.at(back); }

  /// How many rows have changed since.
  std::size_t changed(std::size_t back) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < rows(0).size(); ++i) count += rows(back)[i] == rows(0)[i] ? 0U : 1U;
    return count;
  }

#ifdef KEYFOLD_BENCH_SQLITE
  SqlitePayments& sqlite() const { return *sqlite_; }
#endif

 private:
  void keep_copy(std::size_t back) {
    if (back == 0 || std::ranges::count(versions_back, back) != 0) copies_[back] = workload_.table();
  }

  Workload<Row> workload_;
  TableOf<Row> table_;
  std::map<std::size_t, std::vector<Row>> copies_;
#ifdef KEYFOLD_BENCH_SQLITE
  std::unique_ptr<SqlitePayments> sqlite_;
#endif
};

/// Made once, for all that is read from it.
template <class Row>
const Past<Row>& past(const Options& options) {
  static const Past<Row> made(options.rows);
  return made;
}

template <class Row>
std::int64_t sum_of(const std::vector<Row>& rows, std::size_t count) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += rows[i].updated_at;
  return sum;
}

constexpr std::size_t lookups = 100'000;

template <class Row>
void lookup(benchmark::State& state, const Options& options, std::size_t back) {
  const Past<Row>& past = keyfold_bench::past<Row>(options);
  const std::size_t count = std::min(lookups, options.rows);
  std::vector<typename KeyOf<Row>::Type> keys;  // of the first rows, whose keys are as random as all
  for (std::size_t i = 0; i < count; ++i) keys.push_back(past.rows(0)[i].*KeyOf<Row>::member);

  const auto then = past.table().as_of(past.version(back));
  const std::int64_t sum_now = sum_of(past.rows(0), count);
  const std::int64_t sum_then = sum_of(past.rows(back), count);
  Contest contest(Rehearse::yes, options.only);
  contest.enter("present", count, sum_now, [&] { return find_all(past.table(), keys); });
  contest.enter("as_of", count, sum_then, [&] { return find_all(then, keys); });
  contest.enter("present_single", count, sum_now, [&] { return find_one_by_one(past.table(), keys); });
  contest.enter("as_of_single", count, sum_then, [&] { return find_one_by_one(then, keys); });
#ifdef KEYFOLD_BENCH_SQLITE
  if constexpr (std::is_same_v<Row, Payment>) {
    contest.enter("sqlite_present", count, sum_now, [&] { return past.sqlite().find(keys); });
    contest.enter("sqlite_as_of", count, sum_then,
                  [&] { return past.sqlite().find_as_of(keys, past.version(back)); });
  }
#endif
  Random random(back);
  run(state, contest, [&] { std::ranges::shuffle(keys, random); });
  report_ratio(state, contest, "as_of", "present");
  report_ratio(state, contest, "as_of_single", "present_single");
#ifdef KEYFOLD_BENCH_SQLITE
  if constexpr (std::is_same_v<Row, Payment>) report_ratio(state, contest, "sqlite_as_of", "as_of");
#endif
  state.counters["changes_per_key"] =
      static_cast<double>(back * batch_size) / static_cast<double>(options.rows);
  if (back == 1000) {
    goals.add(label<Row>(options.rows) + ": lookup 1,000 versions back / present, many", contest, "as_of",
              "present", 3);
    goals.add(label<Row>(options.rows) + ": lookup 1,000 versions back / present, one at a time", contest,
              "as_of_single", "present_single", 3);
  }
}

template <class Row>
void scans(benchmark::State& state, const Options& options, std::size_t back) {
  const Past<Row>& past = keyfold_bench::past<Row>(options);
  const auto then = past.table().as_of(past.version(back));
  const auto latest = past.table().as_of(past.version(0));
  const std::int64_t sum_now = sum_of(past.rows(0), options.rows);
  const std::int64_t sum_then = sum_of(past.rows(back), options.rows);
  Contest contest(Rehearse::yes, options.only);
  contest.enter("present", options.rows, sum_now, [&] { return scan(past.table()); });
  contest.enter("as_of_latest", options.rows, sum_now, [&] { return scan(latest); });
  contest.enter("as_of", options.rows, sum_then, [&] { return scan(then); });
#ifdef KEYFOLD_BENCH_SQLITE
  if constexpr (std::is_same_v<Row, Payment>) {
    contest.enter("sqlite_present", options.rows, sum_now, [&] { return past.sqlite().scan(); });
    contest.enter("sqlite_as_of", options.rows, sum_then,
                  [&] { return past.sqlite().scan_as_of(past.version(back)); });
  }
#endif
  run(state, contest, [] {});
  report_ratio(state, contest, "as_of", "present");
  report_ratio(state, contest, "as_of_latest", "present");
#ifdef KEYFOLD_BENCH_SQLITE
  if constexpr (std::is_same_v<Row, Payment>) report_ratio(state, contest, "sqlite_as_of", "as_of");
#endif
  if (back == 10)
    goals.add(label<Row>(options.rows) + ": scan with nothing changed since / present", contest,
              "as_of_latest", "present", 3);
  if (!contest.has("as_of") || !contest.has("as_of_latest")) return;
  const double rows = static_cast<double>(options.rows);
  const double more = (contest.time("as_of") - contest.time("as_of_latest")) * rows;
  state.counters["ns_per_changed_row"] = more / static_cast<double>(past.changed(back));
  state.counters["ns_per_change"] = more / static_cast<double>(back * batch_size);
}

/// Differences between now and then, and between two old versions, per change that lies between.
template <class Row>
void differences(benchmark::State& state, const Options& options, std::size_t back) {
  const Past<Row>& past = keyfold_bench::past<Row>(options);
  const auto& table = past.table();
  const std::size_t changes = back * batch_size;
  const keyfold::Version then = past.version(back);
  const std::int64_t changed = signed_size(past.changed(back));
  Contest contest(Rehearse::yes, options.only);
  contest.enter("changes", changes, signed_size(changes),
                [&] { return signed_size(table.changes(then, table.version()).size()); });
  contest.enter("diff", changes, changed,
                [&] { return signed_size(table.diff(then, table.version()).size()); });
  contest.enter("diff_back", changes, changed,
                [&] { return signed_size(table.diff(table.version(), then).size()); });
  contest.enter("one_commit", batch_size, signed_size(batch_size),
                [&] { return signed_size(table.diff(then, then + 1).size()); });
  run(state, contest, [] {});
  if (!contest.has("diff")) return;
  state.counters["diff_ns_per_net_change"] =
      contest.time("diff") * static_cast<double>(changes) / static_cast<double>(changed);
}

// --- Memory

/// What commits add to the history and to the heap, per commit.
struct Growth {
  double history;
  double heap;
};

template <class Row>
Growth commit_all(TableOf<Row>& table, const Batches<Row>& batches) {
  const std::size_t history = table.memory_usage().history;
  const std::size_t heap = heap_bytes();
  for (const auto& batch : batches) table.upsert(batch);
  const auto per_commit = [&](std::size_t before, std::size_t after) {
    return static_cast<double>(after - before) / static_cast<double>(batches.size());
  };
  return {per_commit(history, table.memory_usage().history), per_commit(heap, heap_bytes())};
}

/// Bytes of history for each update, beyond its before image. What a commit takes however much it changes
/// follows from commits of one row.
template <class Row>
void memory(benchmark::State& state, const Options& options) {
  constexpr std::size_t commits = 100;
  Workload<Row> workload(options.rows);
  TableOf<Row> table;
  table.append(workload.table());
  Batches<Row> small;
  Batches<Row> large;
  for (std::size_t i = 0; i < commits; ++i) small.push_back(workload.next_batch(1, Mix::updates));
  for (std::size_t i = 0; i < commits; ++i) large.push_back(workload.next_batch(batch_size, Mix::updates));
  for (auto _ : state) {
    const double start = cpu_nanoseconds();
    const Growth by_one = commit_all(table, small);
    const Growth by_many = commit_all(table, large);
    state.SetIterationTime((cpu_nanoseconds() - start) * 1e-9);
    const auto count = static_cast<double>(batch_size);
    const auto image = static_cast<double>(sizeof(Row));
    const double per_change = (by_many.history - by_one.history) / (count - 1);
    state.counters["overhead_bytes"] = per_change - image;
    state.counters["with_commit"] = by_many.history / count - image;
    state.counters["commit_bytes"] = by_one.history - per_change;
    // Strings of old rows are on the heap, too: no part of the overhead, and not told apart here.
    if constexpr (std::is_same_v<Row, Payment>)
      state.counters["heap_with_commit"] = by_many.heap / count - image;
    goals.add(label<Row>(options.rows) + ": bytes of a change beyond its before image", per_change - image,
              24);
    goals.add(label<Row>(options.rows) + ": the same with what a commit of 1,000 takes itself",
              by_many.history / count - image, 24);
  }
}

// --- Registration

template <class Row>
void register_row(const Options& options) {
  const std::string row = label<Row>(options.rows);
  for (const Mix mix : {Mix::updates, Mix::mixed}) {
    const std::string tail = row + (mix == Mix::updates ? "/updates" : "/mixed");
    add(options, "commit/" + tail, options.rounds,
        [mix](auto& state, const Options& o) { commits<Row>(state, o, mix); });
#ifdef KEYFOLD_BENCH_SQLITE
    if constexpr (std::is_same_v<Row, Payment>) {
      add(options, "commit_peer/" + tail, options.rounds,
          [mix](auto& state, const Options& o) { commits_of_peer(state, o, mix); });
    }
#endif
  }
  add(options, "memory/" + row, 1, [](auto& state, const Options& o) { memory<Row>(state, o); });
  for (const std::size_t back : versions_back) {
    const std::string tail = "/" + row + "/back:" + std::to_string(back);
    add(options, "lookup" + tail, options.rounds,
        [back](auto& state, const Options& o) { lookup<Row>(state, o, back); });
    add(options, "scan" + tail, options.rounds,
        [back](auto& state, const Options& o) { scans<Row>(state, o, back); });
    add(options, "diff" + tail, options.rounds,
        [back](auto& state, const Options& o) { differences<Row>(state, o, back); });
  }
}

Options read_options(int& argc, char** argv) {
  Options options;
  take_arguments(argc, argv, [&](const char* argument) {
    return read_text(argument, "--only=", options.only) || read_number(argument, "--rows=", options.rows) ||
           read_number(argument, "--rounds=", options.rounds);
  });
  if (options.rows < 2 * batch_size) {
    std::fprintf(stderr, "history_bench: a table has at least %zu rows\n", 2 * batch_size);
    std::exit(1);
  }
  return options;
}

}  // namespace
}  // namespace keyfold_bench

int main(int argc, char** argv) {
  const keyfold_bench::Options options = keyfold_bench::read_options(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
#ifndef KEYFOLD_BENCH_SQLITE
  std::fputs("built without SQLite: no peer in this run\n", stderr);
#endif
  keyfold_bench::register_row<keyfold_bench::Payment>(options);
  keyfold_bench::register_row<keyfold_bench::Product>(options);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  keyfold_bench::goals.print();
}
