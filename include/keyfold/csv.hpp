// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/csv_error.hpp>
#include <keyfold/detail/csv_reader.hpp>
#include <keyfold/detail/csv_records.hpp>
#include <keyfold/detail/csv_value.hpp>
#include <keyfold/detail/csv_writer.hpp>
#include <keyfold/detail/row_range.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <istream>
#include <memory>
#include <ostream>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Optional header: CSV files (RFC 4180) as rows, and rows as CSV files. The first line names the columns, in
/// any order. An empty unquoted field is the empty std::optional; `""` is the empty string.
namespace keyfold {

/// Customization point: how a value of type T is written in a field. Specialise it for a type of your own:
///
///     template <> struct keyfold::csv_value<Money> {
///       static std::string expected();                         // for errors: "an amount such as 12.50"
///       static std::optional<Money> parse(std::string_view);   // empty: the text is no such value
///       static std::optional<std::string> text(const Money&);  // empty: parse() could not read it back
///     };
///
/// Known are bool, char, numbers, std::string, enums (by name where Boost.Describe knows them), durations,
/// system-clock times no finer than microseconds, calendar dates, and std::optional of all these.
template <class T>
struct csv_value;

/// How a file differs from the plain form.
struct CsvOptions {
  char separator = ',';                 ///< anything but a quote, CR or LF
  bool allow_missing_columns = false;   ///< a column that the header lacks keeps the default of its member
  bool ignore_unknown_columns = false;  ///< skip what the header names and the row does not have
  std::string_view line_end = "\n";     ///< for writing; reading takes LF and CRLF
};

/// The rows of a CSV file, read one at a time: an input range that a merge takes as its source, whose rows
/// may be moved from. begin() and increments throw CsvError. Thread safety: one thread.
template <class Row>
using CsvRows = detail::RowRange<detail::CsvReader<Row>>;

namespace detail {

template <class Row>
CsvRows<Row> make_rows(CsvRecords records, const CsvOptions& options) {
  return CsvRows<Row>({std::move(records), options.allow_missing_columns, options.ignore_unknown_columns});
}

template <class Rows>
void write_rows(std::ostream& stream, std::string name, Rows& rows, const CsvOptions& options) {
  CsvWriter<std::ranges::range_value_t<Rows>> writer(stream, std::move(name), options.separator,
                                                     options.line_end);
  for (const auto& row : rows) writer.write(row);
  writer.finish();
}

}  // namespace detail

/// The rows of `file`, read while they are iterated. Throws: CsvError, here for the header, there for a row.
template <class Row>
[[nodiscard]] CsvRows<Row> csv_rows(const std::filesystem::path& file, const CsvOptions& options = {}) {
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  if (!*stream) throw CsvError(file.string(), 0, {}, 0, "cannot be opened; check the path and its rights");
  return detail::make_rows<Row>({std::move(stream), file.string(), options.separator}, options);
}

/// The rows of `stream`, called `name` in errors. Requires: the stream outlives the range. Throws: CsvError.
template <class Row>
[[nodiscard]] CsvRows<Row> csv_rows(std::istream& stream, std::string name = "<stream>",
                                    const CsvOptions& options = {}) {
  return detail::make_rows<Row>({stream, std::move(name), options.separator}, options);
}

/// Returns: all rows, in order. Throws: CsvError for the first thing that is wrong.
template <class Row>
[[nodiscard]] std::vector<Row> read_csv(const std::filesystem::path& file, const CsvOptions& options = {}) {
  return detail::all_of(csv_rows<Row>(file, options));
}

template <class Row>
[[nodiscard]] std::vector<Row> read_csv(std::istream& stream, std::string name = "<stream>",
                                        const CsvOptions& options = {}) {
  return detail::all_of(csv_rows<Row>(stream, std::move(name), options));
}

/// Writes a line of column names and a line for each row; read_csv reads the same rows back.
/// Throws: CsvError when a value has no text that could be read back, or the stream refuses to take it.
template <std::ranges::input_range Rows>
void write_csv(std::ostream& stream, Rows&& rows, const CsvOptions& options = {}) {
  detail::write_rows(stream, "<stream>", rows, options);
}

/// Replaces `file`. Not atomic: a failure leaves the part that was written.
template <std::ranges::input_range Rows>
void write_csv(const std::filesystem::path& file, Rows&& rows, const CsvOptions& options = {}) {
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw CsvError(file.string(), 0, {}, 0, "cannot be created; check the path and its rights");
  detail::write_rows(stream, file.string(), rows, options);
}

}  // namespace keyfold
