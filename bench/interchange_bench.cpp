// Rows as lines of JSON, as CSV and as Arrow arrays, beside what reads and writes the same bytes without
// knowing rows: Boost.JSON alone, a pass that only cuts the lines, a loop that copies columns into vectors.
#include <keyfold/arrow.hpp>
#include <keyfold/csv.hpp>
#include <keyfold/json.hpp>
#include <keyfold/keyfold.hpp>

#include <benchmark/benchmark.h>
#include <boost/json.hpp>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"

template <>
struct keyfold::columns_of<keyfold_bench::Payment>
    : keyfold::Columns<&keyfold_bench::Payment::id, &keyfold_bench::Payment::updated_at,
                       &keyfold_bench::Payment::amount, &keyfold_bench::Payment::status> {};
template <>
struct keyfold::columns_of<keyfold_bench::Product>
    : keyfold::Columns<&keyfold_bench::Product::sku, &keyfold_bench::Product::title,
                       &keyfold_bench::Product::category, &keyfold_bench::Product::price,
                       &keyfold_bench::Product::updated_at> {};

namespace keyfold_bench {
namespace {

struct Options {
  std::size_t rows = 1'000'000;
  std::size_t lines = 100'000;
  std::size_t rounds = 9;
  std::string only;  // the name of one contender; empty: all
};

template <class Row>
std::string label(const char* what, std::size_t rows) {
  return std::string(what) + "/row:" + Row::name + "/rows:" + std::to_string(rows);
}

std::int64_t signed_size(std::size_t size) { return static_cast<std::int64_t>(size); }

template <class Row>
std::int64_t sum_of(const std::vector<Row>& rows) {
  std::int64_t sum = 0;
  for (const Row& row : rows) sum += row.updated_at;
  return sum;
}

template <class Row>
std::vector<Row> some_rows(std::size_t count) {
  std::vector<Row> rows = Workload<Row>(count).table();
  for (std::size_t i = 0; i < count; ++i) rows[i].updated_at = signed_size(i) * 1'000'000;
  return rows;
}

template <class Row>
std::string json_of(const std::vector<Row>& rows) {
  std::ostringstream out;
  keyfold::write_json(out, rows);
  return std::move(out).str();
}

template <class Row>
std::string csv_of(const std::vector<Row>& rows) {
  std::ostringstream out;
  keyfold::write_csv(out, rows);
  return std::move(out).str();
}

template <class Visit>
void for_each_line(const std::string& text, Visit visit) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) visit(line);
}

std::vector<boost::json::value> values_of(const std::string& lines) {
  std::vector<boost::json::value> values;
  for_each_line(lines, [&](const std::string& line) { values.push_back(boost::json::parse(line)); });
  return values;
}

// --- JSON

template <class Row>
void read_json(benchmark::State& state, const Options& options) {
  const std::vector<Row> rows = some_rows<Row>(options.lines);
  const std::string text = json_of(rows);
  const std::int64_t sum = sum_of(rows);
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", options.lines, sum, [&] {
    std::istringstream in(text);
    return sum_of(keyfold::read_json<Row>(in));
  });
  contest.enter("boost_parse", options.lines, sum, [&] {
    std::int64_t read = 0;
    for_each_line(text, [&](const std::string& line) {
      read += boost::json::parse(line).as_object().at("updated_at").as_int64();
    });
    return read;
  });
  contest.enter("lines", options.lines, signed_size(options.lines), [&] {
    std::int64_t count = 0;
    for_each_line(text, [&](const std::string&) { ++count; });
    return count;
  });
  run(state, contest, [] {});
  report_ratio(state, contest, "keyfold", "boost_parse");
  state.counters["bytes_per_row"] = static_cast<double>(text.size()) / static_cast<double>(options.lines);
}

template <class Row>
void write_json(benchmark::State& state, const Options& options) {
  const std::vector<Row> rows = some_rows<Row>(options.lines);
  const std::string text = json_of(rows);
  const std::vector<boost::json::value> values = values_of(text);
  const auto lines_in = [](const std::string& written) {
    return static_cast<std::int64_t>(std::ranges::count(written, '\n'));
  };
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", options.lines, signed_size(options.lines),
                [&] { return lines_in(json_of(rows)); });
  contest.enter("boost_serialize", options.lines, signed_size(options.lines), [&] {
    std::ostringstream out;
    for (const boost::json::value& value : values) out << boost::json::serialize(value) << '\n';
    return lines_in(std::move(out).str());
  });
  run(state, contest, [] {});
  report_ratio(state, contest, "keyfold", "boost_serialize");
}

// --- CSV

template <class Row>
void read_csv(benchmark::State& state, const Options& options) {
  const std::vector<Row> rows = some_rows<Row>(options.lines);
  const std::string text = csv_of(rows);
  const std::int64_t sum = sum_of(rows);
  const auto fields =
      static_cast<std::int64_t>(std::ranges::count(text, ',') + std::ranges::count(text, '\n'));
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", options.lines, sum, [&] {
    std::istringstream in(text);
    return sum_of(keyfold::read_csv<Row>(in));
  });
  contest.enter("fields", options.lines, fields, [&] {
    std::int64_t count = 0;
    for_each_line(text, [&](std::string_view line) {
      for (++count; line.find(',') != std::string_view::npos; line.remove_prefix(line.find(',') + 1)) ++count;
    });
    return count;
  });
  run(state, contest, [] {});
  report_ratio(state, contest, "keyfold", "fields");
}

template <class Row>
void write_csv(benchmark::State& state, const Options& options) {
  const std::vector<Row> rows = some_rows<Row>(options.lines);
  const auto bytes = signed_size(csv_of(rows).size());
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", options.lines, bytes, [&] { return signed_size(csv_of(rows).size()); });
  run(state, contest, [] {});
}

// --- Arrow

/// Text as Arrow has it.
struct Texts {
  std::vector<char> bytes;
  std::vector<std::int32_t> offsets{0};

  void add(const std::string& text) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<std::int32_t>(bytes.size()));
  }
};

struct PaymentColumns {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> times;
  std::vector<double> amounts;
  std::vector<std::int32_t> states;

  void add(const Payment& row) {
    ids.push_back(row.id);
    times.push_back(row.updated_at);
    amounts.push_back(row.amount);
    states.push_back(row.status);
  }
};

struct ProductColumns {
  Texts skus;
  Texts titles;
  Texts categories;
  std::vector<double> prices;
  std::vector<std::int64_t> times;

  void add(const Product& row) {
    skus.add(row.sku);
    titles.add(row.title);
    categories.add(row.category);
    prices.push_back(row.price);
    times.push_back(row.updated_at);
  }
};

template <class Row>
struct InArrow;
template <>
struct InArrow<Payment> {
  using Columns = PaymentColumns;
  using KeySpec = keyfold::Key<&Payment::id>;
  static constexpr int time = 1;  // the column updated_at
};
template <>
struct InArrow<Product> {
  using Columns = ProductColumns;
  using KeySpec = keyfold::Key<&Product::sku>;
  static constexpr int time = 4;
};

/// The sum of a column of 64-bit integers; releases the array.
std::int64_t take_sum(ArrowArray& array, int column) {
  const auto* times = static_cast<const std::int64_t*>(array.children[column]->buffers[1]);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < array.length; ++i) sum += times[i];
  array.release(&array);
  return sum;
}

template <class Row>
void export_arrow(benchmark::State& state, const Options& options) {
  keyfold::Table<Row, typename InArrow<Row>::KeySpec> table;
  table.append(some_rows<Row>(options.rows));
  std::int64_t sum = 0;
  for (const Row& row : table) sum += row.updated_at;
  Contest contest(Rehearse::yes, options.only);
  contest.enter("keyfold", options.rows, sum, [&] {
    ArrowArray array;
    keyfold::export_arrow(table, &array);
    return take_sum(array, InArrow<Row>::time);
  });
  contest.enter("loop", options.rows, sum, [&] {
    typename InArrow<Row>::Columns columns;
    for (const Row& row : table) columns.add(row);
    std::int64_t copied = 0;
    for (const std::int64_t time : columns.times) copied += time;
    return copied;
  });
  run(state, contest, [] {});
  report_ratio(state, contest, "keyfold", "loop");
}

template <class Row>
void register_row(const Options& options) {
  add(options, label<Row>("json_read", options.lines), options.rounds, read_json<Row>);
  add(options, label<Row>("json_write", options.lines), options.rounds, write_json<Row>);
  add(options, label<Row>("csv_read", options.lines), options.rounds, read_csv<Row>);
  add(options, label<Row>("csv_write", options.lines), options.rounds, write_csv<Row>);
  add(options, label<Row>("arrow_export", options.rows), options.rounds, export_arrow<Row>);
}

Options read_options(int& argc, char** argv) {
  Options options;
  take_arguments(argc, argv, [&](const char* argument) {
    return read_text(argument, "--only=", options.only) || read_number(argument, "--rows=", options.rows) ||
           read_number(argument, "--lines=", options.lines) ||
           read_number(argument, "--rounds=", options.rounds);
  });
  return options;
}

}  // namespace
}  // namespace keyfold_bench

int main(int argc, char** argv) {
  const keyfold_bench::Options options = keyfold_bench::read_options(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  keyfold_bench::register_row<keyfold_bench::Payment>(options);
  keyfold_bench::register_row<keyfold_bench::Product>(options);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
