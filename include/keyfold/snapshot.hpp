// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core_access.hpp>
#include <keyfold/detail/files.hpp>
#include <keyfold/detail/snapshot_reader.hpp>
#include <keyfold/detail/snapshot_source.hpp>
#include <keyfold/detail/snapshot_writer.hpp>
#include <keyfold/schema.hpp>
#include <keyfold/snapshot_error.hpp>
#include <keyfold/table.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <ostream>
#include <type_traits>
#include <utility>

/// Tables in files: rows, history, tags, the numbers of once() and what apply_changes() remembers. The format
/// is of keyfold's own, the same on every platform, with checksums over everything: docs/file-format.md. Rows
/// need a column list (BOOST_DESCRIBE_STRUCT, columns_of), or a serialize() as Boost.Serialization asks for;
/// programs that save rows with a serialize() link Boost.Serialization (CMake: keyfold::serialization).
namespace keyfold {

/// Called now and then with the rows done and the rows in all; returns whether to go on.
using ProgressCallback = std::function<bool(std::uint64_t done, std::uint64_t all)>;

struct SaveOptions {
  ProgressCallback progress{};
};

struct LoadOptions {
  TableOptions table{};  ///< of the table that is made: options are not in the file
  ProgressCallback progress{};
};

namespace detail {

template <class Calls, class Table>
void save_to(Calls& calls, const Table& table, const std::string& path, const SaveOptions& options) {
  const auto& core = detail::CoreAccess::core(table);
  FileReplacement<Calls> file(calls, path);
  detail::write_snapshot(
      core, [&](std::span<const std::byte> bytes) { file.write(bytes); }, options.progress);
  file.commit();
}

template <class Table, class Source>
Table load_from(Source& source, std::string name, LoadOptions& options) {
  static_assert(AnyTable<Table>, "keyfold: load<>() makes a table: load<Table<Row, Key<&Row::id>>>(path)");
  static_assert(std::is_default_constructible_v<typename Table::Row>,
                "keyfold: a row to be loaded must be default constructible");
  using Core = CoreAccess::core_t<Table>;
  return CoreAccess::table_of<Table>(
      detail::read_snapshot<Core>(source, std::move(name), std::move(options.table), options.progress));
}

template <class Table, class Calls>
Table load_from_file(Calls& calls, const std::string& path, LoadOptions options) {
  FileSource<Calls> source(calls, path);
  Table table = detail::load_from<Table>(source, path, options);
  if (source.left() != 0) throw CorruptSnapshot(path, source.done(), "there is more after its end");
  return table;
}

}  // namespace detail

/// Saves a table to a file, which is replaced as a whole: whatever happens, the path has the old file or the
/// new one. When save() returns, the new one is on the disk (temporary file, fsync, rename, fsync of the
/// directory). A symbolic link is replaced, not followed. Threads: as reading the table.
///
/// Throws IoError; Cancelled; UnsavableSequence; Error for a value that could not be loaded again; what a
/// serialize() of the rows throws. Unless it is an IoError of the last fsync, the old file is still there.
/// O(rows + history).
template <class Row, class Key, class... Indexes>
void save(const Table<Row, Key, Indexes...>& table, const std::filesystem::path& path,
          const SaveOptions& options = {}) {
  detail::PosixCalls calls;
  detail::save_to(calls, table, path.string(), options);
}

/// Saves a table to a stream, which must be a binary one. Throws as above; after an error there is a part of
/// a snapshot in the stream, which load() refuses.
template <class Row, class Key, class... Indexes>
void save(const Table<Row, Key, Indexes...>& table, std::ostream& stream, const SaveOptions& options = {}) {
  const auto& core = detail::CoreAccess::core(table);
  detail::StreamSink sink(stream);
  detail::write_snapshot(core, sink, options.progress);
  sink.finish();
}

/// A table from a file: `keyfold::load<Orders>("orders.kfs")`. Rows, order, history with versions and times,
/// tags, the numbers of once() and what apply_changes() remembers are those of the table that was saved;
/// options, constraints, secondary
/// indexes and subscriptions are those of the program.
///
/// A table comes out only when everything has been read and checked. Throws CorruptSnapshot naming the
/// offset; SchemaMismatch naming the column; UnsupportedFormat; UniqueViolation if the program's unique
/// indexes do not allow the rows; IoError; Cancelled. O(rows + history).
template <class Table>
[[nodiscard]] Table load(const std::filesystem::path& path, LoadOptions options = {}) {
  detail::PosixCalls calls;
  return detail::load_from_file<Table>(calls, path.string(), std::move(options));
}

/// A table from a stream, which must be a binary one, and stands behind the snapshot afterwards; a stream
/// that cannot seek is read to its end.
template <class Table>
[[nodiscard]] Table load(std::istream& stream, LoadOptions options = {}) {
  detail::StreamSource source(stream);
  return detail::load_from<Table>(source, "<stream>", options);
}

}  // namespace keyfold
