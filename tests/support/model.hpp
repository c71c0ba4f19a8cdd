// What a merge must do, written from the documentation alone: the rows are a vector, every question is a
// loop.
#pragma once

#include <keyfold/keyfold.hpp>

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace keyfold_test::model {

enum class Fault {
  duplicate_source_key,
  duplicate_key,
  unique_violation,
  invalid_key,
  raised,
  out_of_range,
  users_own
};
inline constexpr int fault_count = 7;

// An error and the source positions it names.
struct Failure {
  Fault fault;
  keyfold::Position first = keyfold::no_position;
  keyfold::Position second = keyfold::no_position;
  std::string key{};  // as text; empty: not compared

  bool fits(const Failure& seen) const {
    const bool positions =
        (first == seen.first && second == seen.second) || (first == seen.second && second == seen.first);
    return fault == seen.fault && positions && (key.empty() || key == seen.key);
  }
};

enum class When { matched, not_matched, not_matched_by_source };
enum class Do { nothing, write, erase, raise };

template <class Row, class Source>
struct Clause {
  When when;
  Do action;
  std::function<bool(const Row*, const Source*)> condition;  // empty: always
  std::function<Row(const Row*, const Source*)> make;        // may throw a Failure
};

enum class Policy { none, reject, choose, fold };

template <class Row, class Source>
struct Rule {
  std::function<bool(const Row&, const Source&)> matches;
  std::function<bool(const Source&, const Source&)> same_key;
  std::function<bool(const Source&)> invalid_key = [](const Source&) { return false; };
  Policy policy = Policy::none;
  std::function<bool(const Source&, const Source&)> prefer_later{};
  std::function<Source(const Source&, const Source&)> fold{};
  std::vector<Clause<Row, Source>> clauses{};
  bool rewrite_unchanged = false;
};

template <class Row>
struct Change {
  std::optional<Row> before;
  std::optional<Row> after;
};

// What a write comes to. Any of the failures is right to be reported; with none, the rest is.
template <class Row>
struct Write {
  std::vector<Failure> failures;
  std::vector<Row> rows;
  std::vector<Change<Row>> changes;
  keyfold::Metrics metrics;
};

// `Schema` says what the table's columns mean: same(), same_key(), invalid_key(), collide(), arrange(), and
// key_text() and unique_text() for errors.
template <class Schema, class Source>
class Merge {
 public:
  using Row = typename Schema::Row;

  Merge(const std::vector<Row>& table, const std::vector<Source>& batch, const Rule<Row, Source>& rule)
      : rule_(rule) {
    for (const Row& row : table) lines_.push_back({row, row});
    out_.metrics.source_rows = batch.size();
    take(survivors(batch), table.size());
    for (Line& line : lines_) {
      if (line.before && !line.matched) act(When::not_matched_by_source, line, nullptr, keyfold::no_position);
    }
    if (out_.failures.empty()) judge_final_state();
    for (const Line& line : lines_) {
      if (line.after) out_.rows.push_back(*line.after);
    }
    Schema::arrange(out_.rows);
    for (const Line* line : changed_) out_.changes.push_back({line->before, line->after});
  }

  Write<Row> result() && { return std::move(out_); }

 private:
  struct Line {
    std::optional<Row> before;
    std::optional<Row> after;
    bool matched = false;
    bool changed = false;
    const Clause<Row, Source>* fired = nullptr;
    keyfold::Position position = keyfold::no_position;

    keyfold::Position named() const { return changed ? position : keyfold::no_position; }
  };
  using Survivors = std::vector<std::optional<Source>>;
  bool acted_ = false;  // a clause acts on the source row at hand

  Survivors survivors(const std::vector<Source>& batch) {
    Survivors rows(batch.begin(), batch.end());
    for (std::size_t later = 0; later < rows.size() && rule_.policy != Policy::none; ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        if (!rows[earlier] || !rows[later] || !rule_.same_key(*rows[earlier], *rows[later])) continue;
        ++out_.metrics.dropped_duplicates;
        if (rule_.policy == Policy::reject) {
          out_.failures.push_back({Fault::duplicate_source_key, earlier, later, {}});
        } else if (rule_.policy == Policy::fold) {
          rows[earlier] = rule_.fold(*rows[earlier], *rows[later]);
          rows[later].reset();
        } else {
          rows[rule_.prefer_later(*rows[earlier], *rows[later]) ? earlier : later].reset();
        }
      }
    }
    return rows;
  }

  void take(const Survivors& rows, std::size_t targets) {
    for (std::size_t position = 0; position < rows.size(); ++position) {
      if (!rows[position]) continue;
      if (rule_.invalid_key(*rows[position]))
        out_.failures.push_back({Fault::invalid_key, position, position, {}});
      bool matched = false;
      acted_ = false;
      std::size_t number = 0;
      for (Line& line : lines_) {
        if (number++ == targets) break;
        if (!rule_.matches(*line.before, *rows[position])) continue;
        matched = line.matched = true;
        act(When::matched, line, &*rows[position], position);
      }
      if (!matched) act(When::not_matched, lines_.emplace_back(), &*rows[position], position);
      if (!acted_) ++out_.metrics.skipped;
    }
  }

  const Clause<Row, Source>* first_true(When when, const Line& line, const Source* source) const {
    for (const auto& clause : rule_.clauses) {
      const Row* target = line.before ? &*line.before : nullptr;
      if (clause.when == when && (!clause.condition || clause.condition(target, source))) return &clause;
    }
    return nullptr;
  }

  void act(When when, Line& line, const Source* source, keyfold::Position position) try {
    const auto* clause = first_true(when, line, source);
    if (clause == nullptr || clause->action == Do::nothing) return;
    acted_ = true;
    if (clause->action == Do::raise) {
      out_.failures.push_back({Fault::raised, position, position, {}});
    } else if (line.fired != nullptr) {
      const bool erased_alike = clause == line.fired && clause->action == Do::erase && !clause->condition;
      if (erased_alike) return;
      out_.failures.push_back(
          {Fault::duplicate_source_key, line.position, position, Schema::key_text(*line.before)});
    } else {
      line.fired = clause;
      line.position = position;
      write(when, line, source);
    }
  } catch (const Failure& failure) {
    out_.failures.push_back(failure);
  }

  void write(When when, Line& line, const Source* source) {
    const bool by_source = when == When::not_matched_by_source;
    keyfold::Metrics& m = out_.metrics;
    if (line.fired->action == Do::erase) {
      line.after.reset();
      ++m.deleted;
      ++(by_source ? m.not_matched_by_source_deleted : m.matched_deleted);
    } else {
      Row made = line.fired->make(line.before ? &*line.before : nullptr, source);
      if (line.before && !rule_.rewrite_unchanged && Schema::same(*line.before, made)) {
        if (!by_source) ++m.unchanged;
        return;
      }
      if (!line.before) {
        ++m.inserted;
      } else {
        ++m.updated;
        ++(by_source ? m.not_matched_by_source_updated : m.matched_updated);
      }
      line.after = std::move(made);
    }
    line.changed = true;
    changed_.push_back(&line);
  }

  void judge_final_state() {
    for (auto a = lines_.begin(); a != lines_.end(); ++a) {
      if (!a->after) continue;
      if (Schema::invalid_key(*a->after)) {
        out_.failures.push_back({Fault::invalid_key, a->position, a->position, {}});
      }
      for (auto b = std::next(a); b != lines_.end(); ++b) {
        if (!b->after) continue;
        const bool both_new = !a->before && !b->before;
        if (Schema::same_key(*a->after, *b->after)) {
          out_.failures.push_back({both_new ? Fault::duplicate_source_key : Fault::duplicate_key, a->named(),
                                   b->named(), Schema::key_text(*a->after)});
        }
        if (Schema::collide(*a->after, *b->after)) {
          out_.failures.push_back(
              {Fault::unique_violation, a->named(), b->named(), Schema::unique_text(*a->after)});
        }
      }
    }
  }

  const Rule<Row, Source>& rule_;
  std::list<Line> lines_;  // the table's rows, then the new ones
  std::vector<const Line*> changed_;
  Write<Row> out_;
};

template <class Schema, class Source>
Write<typename Schema::Row> merge(const std::vector<typename Schema::Row>& table,
                                  const std::vector<Source>& batch,
                                  const Rule<typename Schema::Row, Source>& rule) {
  return Merge<Schema, Source>(table, batch, rule).result();
}

}  // namespace keyfold_test::model
