// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/debezium.hpp>
#include <keyfold/detail/json_error.hpp>
#include <keyfold/detail/json_events.hpp>
#include <keyfold/detail/json_rows.hpp>
#include <keyfold/detail/json_value.hpp>
#include <keyfold/detail/row_range.hpp>
#include <keyfold/history.hpp>

#include <filesystem>
#include <fstream>
#include <istream>
#include <memory>
#include <ostream>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Optional header: rows, and change events in Debezium's envelope, as lines of JSON (NDJSON). Needs
/// Boost.JSON: link keyfold::json, or include <boost/json/src.hpp> in one source file. See docs/json.md.
namespace keyfold {

/// How a file differs from the plain form.
struct JsonOptions {
  bool allow_missing_columns = false;    ///< a column that an object lacks keeps the default of its member
  bool ignore_unknown_columns = false;   ///< skip members that are no column of the row
  JsonTimes times = JsonTimes::iso8601;  ///< for writing; reading takes both
};

/// The rows of a file, read one at a time: an input range that a merge takes as its source, whose rows may be
/// moved from. begin() and increments throw JsonError. Thread safety: one thread.
template <class Row>
using JsonRows = detail::RowRange<detail::JsonReader<Row>>;

namespace detail {

inline JsonLines open_json(const std::filesystem::path& file) {
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  if (!*stream) throw JsonError(file.string(), 0, 0, {}, "cannot be opened; check the path and its rights");
  return {std::move(stream), file.string()};
}

inline std::ofstream create_json(const std::filesystem::path& file) {
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw JsonError(file.string(), 0, 0, {}, "cannot be created; check the path and its rights");
  return stream;
}

inline JsonRules rules_of(const JsonOptions& options) {
  return {.allow_missing = options.allow_missing_columns, .ignore_unknown = options.ignore_unknown_columns};
}

}  // namespace detail

/// The rows of `file`, an object a line, read while they are iterated. Blank lines are skipped.
/// Throws: JsonError if it cannot be opened.
template <class Row>
[[nodiscard]] JsonRows<Row> json_rows(const std::filesystem::path& file, const JsonOptions& options = {}) {
  return JsonRows<Row>({detail::open_json(file), detail::rules_of(options)});
}

/// The rows of `stream`, called `name` in errors. Requires: the stream outlives the range.
template <class Row>
[[nodiscard]] JsonRows<Row> json_rows(std::istream& stream, std::string name = "<stream>",
                                      const JsonOptions& options = {}) {
  return JsonRows<Row>({{stream, std::move(name)}, detail::rules_of(options)});
}

/// Returns: all rows, in order. Throws: JsonError for the first thing that is wrong.
template <class Row>
[[nodiscard]] std::vector<Row> read_json(const std::filesystem::path& file, const JsonOptions& options = {}) {
  return detail::all_of(json_rows<Row>(file, options));
}

template <class Row>
[[nodiscard]] std::vector<Row> read_json(std::istream& stream, std::string name = "<stream>",
                                         const JsonOptions& options = {}) {
  return detail::all_of(json_rows<Row>(stream, std::move(name), options));
}

/// Writes an object a line for each row; read_json reads the same rows back.
/// Throws: JsonError when a value has no JSON that could be read back, or the stream refuses to take it.
template <std::ranges::input_range Rows>
void write_json(std::ostream& stream, Rows&& rows, const JsonOptions& options = {}) {
  detail::write_json_rows({stream, "<stream>"}, rows, options.times);
}

/// Replaces `file`. Not atomic: a failure leaves the part that was written.
template <std::ranges::input_range Rows>
void write_json(const std::filesystem::path& file, Rows&& rows, const JsonOptions& options = {}) {
  std::ofstream stream = detail::create_json(file);
  detail::write_json_rows({stream, file.string()}, rows, options.times);
}

namespace debezium {

/// How events are read.
struct EventOptions {
  JsonOptions rows{};                   ///< for the rows before and after
  std::string sequence = "source.lsn";  ///< where Event::sequence stands; empty: nowhere, it stays 0
  bool empty_unavailable = false;       ///< a value that the database did not log is an empty optional
};

}  // namespace debezium

namespace detail {

inline JsonRules rules_of(const debezium::EventOptions& options) {
  JsonRules rules = rules_of(options.rows);
  rules.envelope = true;
  rules.empty_unavailable = options.empty_unavailable;
  return rules;
}

}  // namespace detail

namespace debezium {

/// The envelopes of a file, an input range for changes() and apply_changes().
template <class Of, auto... Key>
using JsonEvents =
    keyfold::detail::RowRange<keyfold::detail::JsonEventReader<keyfold::detail::event_rows_t<Of, Key...>>>;

/// The envelopes of `file`, one a line, with or without the schema that a converter puts around them. `Of` is
/// the table that they are for, or a row type and the columns of its key. A row before a change must have the
/// columns of the key; others may be missing or null, as databases log them, and keep their defaults.
/// A blank line or `null` is a tombstone. Throws: JsonError, here or from begin() and increments.
template <class Of, auto... Key>
[[nodiscard]] JsonEvents<Of, Key...> json_events(const std::filesystem::path& file,
                                                 const EventOptions& options = {}) {
  return JsonEvents<Of, Key...>(
      {keyfold::detail::open_json(file), keyfold::detail::rules_of(options), options.sequence});
}

/// The envelopes of `stream`, called `name` in errors. Requires: the stream outlives the range.
template <class Of, auto... Key>
[[nodiscard]] JsonEvents<Of, Key...> json_events(std::istream& stream, std::string name = "<stream>",
                                                 const EventOptions& options = {}) {
  return JsonEvents<Of, Key...>(
      {{stream, std::move(name)}, keyfold::detail::rules_of(options), options.sequence});
}

/// Writes an envelope a line for each change of the feed that Table::changes() returned. `source.lsn` is the
/// version, `source.ts_us` its time. A change of the key is a delete and a create, and within a version the
/// deletes come first: apply_changes() of the lines makes the same changes. Throws: as keyfold::write_json.
template <class Table>
void write_json(std::ostream& stream, const ChangeFeed<keyfold::detail::written_row_t<Table>>& feed,
                const JsonOptions& options = {}) {
  keyfold::detail::JsonEventWriter<keyfold::detail::written_rows_t<Table>> writer({stream, "<stream>"},
                                                                                  options.times);
  keyfold::detail::write_feed(writer, std::span(feed));
  writer.finish();
}

/// The changes of a write that had, or shall have, this version and time.
template <class Table>
void write_json(std::ostream& stream, const ChangeSet<keyfold::detail::written_row_t<Table>>& changes,
                Version version, Timestamp time, const JsonOptions& options = {}) {
  keyfold::detail::JsonEventWriter<keyfold::detail::written_rows_t<Table>> writer({stream, "<stream>"},
                                                                                  options.times);
  writer.write(changes, {version, time});
  writer.finish();
}

/// The changes of a commit, as subscribe() tells them.
template <class Table>
void write_json(std::ostream& stream, const Commit<keyfold::detail::written_row_t<Table>>& commit,
                const JsonOptions& options = {}) {
  debezium::write_json<Table>(stream, commit.changes(), commit.version(), commit.timestamp(), options);
}

}  // namespace debezium
}  // namespace keyfold
