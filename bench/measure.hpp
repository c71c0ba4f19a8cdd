// Clocks, medians, contests and options: what the benchmark programs share.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keyfold_bench {

// Of this thread, so that other processes count only as far as they take caches and memory.
inline double cpu_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Whether work that only reads is done once untimed before it is timed, so that it finds the caches as it
/// left them itself and not as another did.
enum class Rehearse { no, yes };

/// Pieces of work that are compared: in each round every one of them is done, in an order that is drawn anew,
/// so that none always comes after the same other one.
class Contest {
 public:
  /// Does its work and returns something that can be checked, such as a sum of what was read.
  using Work = std::function<std::int64_t()>;

  /// `only`: the name of one contender, for a profiler; empty: all.
  Contest(Rehearse rehearse, std::string only) : rehearse_(rehearse), only_(std::move(only)) {}

  /// `units` is what its time is divided by: rows, keys, changes.
  void enter(std::string name, std::size_t units, std::int64_t expected, Work work) {
    if (!only_.empty() && only_ != name) return;
    contenders_.push_back({std::move(name), static_cast<double>(units), expected, std::move(work), {}});
  }

  /// Returns the nanoseconds of all. A warming up does not count.
  double round(bool warm_up) {
    std::vector<std::size_t> order(contenders_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random_);
    double sum = 0;
    for (const std::size_t number : order) {
      Contender& contender = contenders_[number];
      if (rehearse_ == Rehearse::yes) contender.work();
      const double start = cpu_nanoseconds();
      const std::int64_t seen = contender.work();
      const double time = cpu_nanoseconds() - start;
      right_ = right_ && seen == contender.expected;
      if (!warm_up) contender.times.push_back(time);
      sum += time;
    }
    return sum;
  }

  /// Whether everybody did what was expected in each round.
  bool right() const noexcept { return right_; }

  bool has(std::string_view name) const noexcept { return find(name) != contenders_.end(); }

  /// Nanoseconds per unit, the median of the rounds. Requires: has(name).
  double time(std::string_view name) const {
    const auto contender = find(name);
    return median(contender->times) / contender->units;
  }

  /// Nanoseconds per unit of one divided by those of another in the same round, the median of the rounds.
  /// Requires: has() both.
  double ratio(std::string_view name, std::string_view to) const {
    const auto a = find(name);
    const auto b = find(to);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a->times.size(); ++i)
      ratios.push_back(a->times[i] / a->units / (b->times[i] / b->units));
    return median(std::move(ratios));
  }

  template <class Visit>
  void for_each_name(Visit visit) const {
    for (const Contender& contender : contenders_) visit(contender.name);
  }

 private:
  struct Contender {
    std::string name;
    double units;
    std::int64_t expected;
    Work work;
    std::vector<double> times;
  };

  std::vector<Contender>::const_iterator find(std::string_view name) const noexcept {
    return std::ranges::find(contenders_, name, &Contender::name);
  }

  Rehearse rehearse_;
  std::string only_;
  std::vector<Contender> contenders_;
  std::mt19937_64 random_{1};
  bool right_ = true;
};

/// A figure with a goal, told at the end.
class Goals {
 public:
  void add(std::string what, const Contest& contest, std::string_view name, std::string_view to,
           double limit) {
    if (contest.has(name) && contest.has(to)) add(std::move(what), contest.ratio(name, to), limit);
  }
  void add(std::string what, double measured, double limit) {
    lines_.push_back({std::move(what), measured, limit});
  }

  void print() const {
    if (lines_.empty()) return;
    std::printf("\n%-76s %9s %7s\n", "goal", "measured", "limit");
    for (const Line& line : lines_) {
      std::printf("%-76s %9.2f %7.2f  %s\n", line.what.c_str(), line.measured, line.limit,
                  line.measured <= line.limit ? "met" : "MISSED");
    }
  }

 private:
  struct Line {
    std::string what;
    double measured;
    double limit;
  };
  std::vector<Line> lines_;
};

// Reads `--name=number`; returns whether the argument is one.
inline bool read_number(std::string_view argument, std::string_view name, std::size_t& number) {
  if (!argument.starts_with(name)) return false;
  const std::string_view text = argument.substr(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) {
    std::fprintf(stderr, "'%.*s' needs a number above 0\n", static_cast<int>(argument.size()),
                 argument.data());
    std::exit(1);
  }
  return true;
}

// Reads `--name=text`; returns whether the argument is one.
template <class Text>
bool read_text(std::string_view argument, std::string_view name, Text& text) {
  if (!argument.starts_with(name)) return false;
  text = argument.substr(name.size());
  return true;
}

/// Removes the arguments that `read` takes, and leaves the others to Google Benchmark.
template <class Read>
void take_arguments(int& argc, char** argv, Read read) {
  argc = static_cast<int>(std::remove_if(argv + 1, argv + argc, read) - argv);
}

}  // namespace keyfold_bench
