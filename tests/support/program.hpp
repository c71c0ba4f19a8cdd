// Random programs of writes, run on a table and its model.
#pragma once

#include "support/twin.hpp"

#include <cstdint>
#include <ostream>

namespace keyfold_test {

// Numbers that the conditions and assignments of a rule read.
struct Params {
  int a = 0;
  int b = 0;
};

enum class Operation { merge, upsert, upsert_row, append, insert, erase, clear };
enum class Way { builder, rule, preview_first };

struct Step {
  Operation operation{};
  std::size_t shape = 0;
  Params params;
  std::vector<std::uint64_t> rows;  // each the digits of a source row
  bool distinct = false;            // only one row of each key
  Way way{};
  std::optional<std::string> metadata;
};

struct Program {
  bool record_empty_commits = false;
  int keys = 7;
  std::vector<Step> steps;
};

inline std::ostream& operator<<(std::ostream& out, const Step& step) {
  out << "\n  operation " << static_cast<int>(step.operation) << " shape " << step.shape << " ("
      << step.params.a << ", " << step.params.b << ") way " << static_cast<int>(step.way)
      << (step.distinct ? " distinct" : "");
  if (step.metadata) out << " metadata '" << *step.metadata << "'";
  for (const std::uint64_t row : step.rows) out << ' ' << row;
  return out;
}

inline std::ostream& operator<<(std::ostream& out, const Program& program) {
  out << "keys " << program.keys << (program.record_empty_commits ? " record_empty" : "");
  for (const Step& step : program.steps) out << step;
  return out;
}

// Of full size from the first: a smaller size would prefer the first shapes and small numbers.
inline rc::Gen<Program> programs(std::size_t shapes) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::exec([shapes] {
                           Program program;
                           program.record_empty_commits = *rc::gen::inRange(0, 4) == 3;
                           const bool wide = *rc::gen::inRange(0, 8) ==
                                             7;  // so many rows that a merge takes them in several blocks
                           program.keys = wide ? 60 : 7;
                           const auto step_count = *rc::gen::inRange(1, 13);
                           for (int i = 0; i < step_count; ++i) {
                             Step step;
                             step.operation =
                                 *rc::gen::weightedElement<Operation>({{16, Operation::merge},
                                                                       {2, Operation::upsert},
                                                                       {1, Operation::upsert_row},
                                                                       {3, Operation::append},
                                                                       {1, Operation::insert},
                                                                       {1, Operation::erase}});
                             if (*rc::gen::inRange(0, 40) == 39) step.operation = Operation::clear;
                             if (i == 0) step.operation = Operation::append;
                             step.shape = *rc::gen::inRange<std::size_t>(0, shapes);
                             step.params = {*rc::gen::inRange(0, 7), *rc::gen::inRange(0, 4)};
                             step.way = static_cast<Way>(*rc::gen::inRange(0, 3));
                             step.distinct = i == 0 || *rc::gen::inRange(0, 3) != 0;
                             if (*rc::gen::inRange(0, 5) == 4)
                               step.metadata = *rc::gen::element<std::string>("", "note");
                             const auto row_count = *rc::gen::inRange<std::size_t>(0, wide ? 81 : 8);
                             step.rows = *rc::gen::container<std::vector<std::uint64_t>>(
                                 row_count, rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 62U));
                             program.steps.push_back(std::move(step));
                           }
                           return program;
                         }));
}

// Draws small numbers from one large random one.
class Digits {
 public:
  explicit Digits(std::uint64_t code) : code_(code) {}

  int below(int bound) {
    const auto base = static_cast<std::uint64_t>(bound);
    const auto digit = static_cast<int>(code_ % base);
    code_ /= base;
    return digit;
  }

  std::optional<int> maybe_below(int bound) {
    const int digit = below(bound + 1);
    return digit == bound ? std::nullopt : std::optional<int>(digit);
  }

 private:
  std::uint64_t code_;
};

// A rule, written twice: for the table, and for the model.
template <class Schema>
struct Shape {
  using Table = typename Schema::Table;
  using Row = typename Schema::Row;
  using Batch = std::vector<typename Schema::Source>;

  std::string name;
  std::function<model::Write<Row>(const std::vector<Row>&, const Batch&, const Params&)> expect;
  std::function<keyfold::MergeResult<Row>(Table&, const Batch&, const Step&)> execute;
  std::function<keyfold::ChangeSet<Row>(Table&, const Batch&, const Step&)> preview;
  bool any_order = false;  // see Twin::write
};

// `make(host, params)` adds the clauses to a builder or a rule; `rule(params)` is the same for the model.
// Source rows of another type than Schema::Source are made by `convert`.
template <class Schema, class Source, class Convert, class Make, class ModelRule>
Shape<Schema> shape_of(std::string name, Convert convert, Make make, ModelRule rule) {
  using Batch = typename Shape<Schema>::Batch;
  using Table = typename Schema::Table;
  const auto converted = [convert](const Batch& batch) {
    std::vector<Source> rows;
    for (const auto& row : batch) rows.push_back(convert(row));
    return rows;
  };
  const auto rule_of = [](const auto& clauses, const Params& params) {
    return clauses(keyfold::merge_rule<typename Schema::Row, Source>(), params);
  };
  return {std::move(name),
          [converted, rule](const auto& rows, const Batch& batch, const Params& params) {
            return model::merge<Schema, Source>(rows, converted(batch), rule(params));
          },
          [converted, make, rule_of](Table& table, const Batch& batch, const Step& step) {
            const auto rows = converted(batch);
            if (step.way == Way::rule && !step.metadata) return table.merge(rows, rule_of(make, step.params));
            if constexpr (std::is_same_v<Source, typename Schema::Row>) {
              if (step.way == Way::builder && !step.metadata) {
                return make(table.merge(std::vector<Source>(rows)), step.params).execute();  // may move rows
              }
            }
            auto merge = make(table.merge(rows), step.params);
            return step.metadata ? std::move(merge).metadata(*step.metadata).execute() : merge.execute();
          },
          [converted, make, rule_of](Table& table, const Batch& batch, const Step& step) {
            const auto rows = converted(batch);
            return step.metadata ? table.preview(rows, rule_of(make, step.params))
                                 : make(table.merge(rows), step.params).preview();
          }};
}

template <class Schema, class Make, class ModelRule>
Shape<Schema> shape(std::string name, Make make, ModelRule rule) {
  const auto as_is = [](const auto& row) { return row; };
  return shape_of<Schema, typename Schema::Source>(std::move(name), as_is, make, rule);
}

// Model clauses over references.
template <class Row, class Source>
struct Clauses {
  using Clause = model::Clause<Row, Source>;
  using Both = std::function<bool(const Row&, const Source&)>;

  static Clause matched(Both condition, model::Do action,
                        std::function<Row(const Row&, const Source&)> make = {}) {
    return {model::When::matched, action,
            condition ? [condition](const Row* t, const Source* s) { return condition(*t, *s); }
                      : as_any(nullptr),
            [make](const Row* t, const Source* s) { return make(*t, *s); }};
  }
  static Clause missing(std::function<bool(const Source&)> condition, model::Do action,
                        std::function<Row(const Source&)> make = {}) {
    return {model::When::not_matched, action,
            condition ? [condition](const Row*, const Source* s) { return condition(*s); } : as_any(nullptr),
            [make](const Row*, const Source* s) { return make(*s); }};
  }
  static Clause left(std::function<bool(const Row&)> condition, model::Do action,
                     std::function<Row(const Row&)> make = {}) {
    return {model::When::not_matched_by_source, action,
            condition ? [condition](const Row* t, const Source*) { return condition(*t); } : as_any(nullptr),
            [make](const Row* t, const Source*) { return make(*t); }};
  }

 private:
  static std::function<bool(const Row*, const Source*)> as_any(std::nullptr_t) { return nullptr; }
};

template <class Schema>
class Runner {
 public:
  using Row = typename Schema::Row;
  using Source = typename Schema::Source;
  using Table = typename Schema::Table;

  Runner(const std::vector<Shape<Schema>>& shapes, Tally& tally) : shapes_(shapes), tally_(tally) {}

  void run(const Program& program) {
    Twin<Schema> twin(program.record_empty_commits, tally_);
    for (const Step& step : program.steps) run(twin, step, batch_of(step, program.keys));
    twin.check_history();
  }

 private:
  using Write = model::Write<Row>;
  using C = Clauses<Row, Row>;

  static std::vector<Source> batch_of(const Step& step, int keys) {
    std::vector<Source> batch;
    for (const std::uint64_t code : step.rows) {
      const Source row = Schema::source(Digits(code), keys);
      const auto same_key = [&](const Source& other) { return Schema::same_source_key(row, other); };
      if (step.distinct && std::any_of(batch.begin(), batch.end(), same_key)) continue;
      batch.push_back(row);
    }
    return batch;
  }

  void run(Twin<Schema>& twin, const Step& step, const std::vector<Source>& batch) {
    if (step.operation == Operation::merge) return merge(twin, step, batch);
    std::vector<Row> rows;
    for (const Source& source : batch) {
      if (const auto row = Schema::row(source)) rows.push_back(*row);
    }
    other(twin, step, rows);
  }

  void merge(Twin<Schema>& twin, const Step& step, const std::vector<Source>& batch) {
    const Shape<Schema>& shape = shapes_[step.shape % shapes_.size()];
    RC_LOG() << shape.name << "\n";
    const Write expected = shape.expect(twin.rows(), batch, step.params);
    if (step.way == Way::preview_first) {
      twin.preview(expected, shape.any_order,
                   [&](Table& table) { return shape.preview(table, batch, step); });
    }
    twin.write(shape.name, expected, "MERGE", step.metadata, shape.any_order,
               [&](Table& table) { return shape.execute(table, batch, step); });
  }

  void other(Twin<Schema>& twin, const Step& step, const std::vector<Row>& rows) {
    const std::vector<Row> one(rows.begin(), rows.begin() + (rows.empty() ? 0 : 1));
    const bool single = step.operation == Operation::insert || step.operation == Operation::upsert_row ||
                        step.operation == Operation::erase;
    if (single && rows.empty()) return;
    switch (step.operation) {
      case Operation::merge:
        break;
      case Operation::upsert:
        return twin.write("upsert", expect(twin, rows, upsert()), "MERGE", {}, false,
                          [&](Table& table) { return table.upsert(std::vector<Row>(rows)); });
      case Operation::upsert_row:
        return twin.write("upsert a row", expect(twin, one, upsert()), "MERGE", {}, false,
                          [&](Table& table) { return table.upsert(one.front()); });
      case Operation::append:
        return twin.write("append", expect(twin, rows, append()), "APPEND", {}, false,
                          [&](Table& table) { return table.append(std::vector<Row>(rows)); });
      case Operation::insert:
        return twin.write("insert", expect(twin, one, append()), "INSERT", {}, false,
                          [&](Table& table) { return table.insert(one.front()); });
      case Operation::erase:
        return twin.write("erase", expect(twin, one, erase()), "DELETE", {}, false,
                          [&](Table& table) { return Schema::erase(table, one.front()); });
      case Operation::clear:
        return twin.write("clear", expect(twin, {}, clear()), "TRUNCATE", {}, false,
                          [&](Table& table) { return table.clear(); });
    }
  }

  using Rule = model::Rule<Row, Row>;

  static Write expect(const Twin<Schema>& twin, const std::vector<Row>& batch, const Rule& rule) {
    return model::merge<Schema, Row>(twin.rows(), batch, rule);
  }

  static Rule by_key(std::vector<model::Clause<Row, Row>> clauses) {
    Rule rule{Schema::same_key, Schema::same_key};
    rule.invalid_key = Schema::invalid_key;
    rule.clauses = std::move(clauses);
    return rule;
  }
  static Row the_row(const Row& row) { return row; }
  static Rule upsert() {
    return by_key({C::matched({}, model::Do::write, [](const Row&, const Row& s) { return s; }),
                   C::missing({}, model::Do::write, the_row)});
  }
  static Rule append() {
    Rule rule = by_key({C::missing({}, model::Do::write, the_row)});
    rule.matches = [](const Row&, const Row&) { return false; };
    return rule;
  }
  static Rule erase() {
    Rule rule = by_key({C::matched({}, model::Do::erase)});
    rule.invalid_key = [](const Row&) { return false; };  // a lookup finds nothing
    return rule;
  }
  static Rule clear() { return by_key({C::left({}, model::Do::erase)}); }

  const std::vector<Shape<Schema>>& shapes_;
  Tally& tally_;
};

}  // namespace keyfold_test
