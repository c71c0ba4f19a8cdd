// Engines that take the same batches, in turns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engines.hpp"
#include "keyfold_bench/options.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"

namespace keyfold_bench {

/// One size of tables, one of batches and one mix of rows. When the tables have grown by half, all begin
/// anew.
template <class Row>
class Race {
 public:
  Race(const Options& options, std::size_t batch_size, Mix mix)
      : options_(options), batch_size_(batch_size), mix_(mix), workload_(options.rows) {}

  template <class Engine>
  void enter(const std::string& name) {
    if (!options_.only.empty() && options_.only != name) return;
    Lane& lane = *lanes_.emplace_back(std::make_unique<LaneOf<Engine>>());
    contest_.enter(name, round_rows(), static_cast<std::int64_t>(affected_of(mix_, round_rows())),
                   [&lane, this] { return lane.upsert_all(batches_); });
  }

  /// The first one that entered is compared with the others.
  void run(benchmark::State& state) {
    for (auto& lane : lanes_) lane->fill(workload_.table());
    keyfold_bench::run(state, contest_, [&] { prepare(); });
    report_ratios(state, contest_);
    for (auto& lane : lanes_) {
      if (lane->size() != workload_.table().size()) state.SkipWithError("the engines do not agree");
    }
  }

 private:
  struct Lane {
    virtual ~Lane() = default;
    virtual void fill(const std::vector<Row>& rows) = 0;
    virtual std::int64_t upsert_all(const Batches<Row>& batches) = 0;
    virtual std::size_t size() const = 0;
  };
  template <class Engine>
  struct LaneOf : Lane {
    std::optional<Engine> engine;

    void fill(const std::vector<Row>& rows) override {
      engine.reset();
      engine.emplace();
      engine->append(rows);
    }
    std::int64_t upsert_all(const Batches<Row>& batches) override {
      return keyfold_bench::upsert_all(*engine, batches);
    }
    std::size_t size() const override { return engine->size(); }
  };

  // In whole batches, and in tens of rows, so that each round has the same mix.
  std::size_t round_batches() const {
    const std::size_t rows = std::min(options_.round_rows, options_.rows / 2);
    return std::max<std::size_t>(batch_size_ == 1 ? 10 : 1, rows / 10 * 10 / batch_size_);
  }
  std::size_t round_rows() const { return round_batches() * batch_size_; }

  void prepare() {
    batches_.clear();
    if (workload_.table().size() > options_.rows + options_.rows / 2) {
      workload_ = Workload<Row>(options_.rows);
      for (auto& lane : lanes_) lane->fill(workload_.table());
    }
    batches_ = workload_.next_batches(round_batches(), batch_size_, mix_);
  }

  const Options& options_;
  std::size_t batch_size_;
  Mix mix_;
  Workload<Row> workload_;
  Batches<Row> batches_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Contest contest_{Rehearse::no, ""};
};

/// Registers a race for each of these batch sizes that the table allows; a batch takes half of its keys from
/// there. `enter` enters the engines.
template <class Row, class Enter>
void add_races(const Options& options, const std::string& name, const std::vector<std::size_t>& batch_sizes,
               Mix mix, Enter enter) {
  for (const std::size_t batch_size : batch_sizes) {
    if (batch_size > options.rows) continue;
    add(options, name + "/" + label<Row>(options) + "/batch:" + std::to_string(batch_size), options.rounds,
        [batch_size, mix, enter](benchmark::State& state, const Options& o) {
          Race<Row> race(o, batch_size, mix);
          enter(race);
          race.run(state);
        });
  }
}

}  // namespace keyfold_bench
