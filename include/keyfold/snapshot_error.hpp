// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/error.hpp>
#include <keyfold/storage_error.hpp>

#include <cstdint>
#include <string>
#include <utility>

/// What can go wrong with a snapshot beside IoError and UnsupportedFormat. All of it derives from `Error`.
namespace keyfold {

/// A snapshot is not as it was written, or is none. Nothing of it was loaded.
class CorruptSnapshot : public Error {
 public:
  CorruptSnapshot(std::string damaged_file, std::uint64_t damaged_offset, const std::string& what_is_wrong)
      : Error("the snapshot '" + damaged_file + "' cannot be believed, seen at byte " +
              std::to_string(damaged_offset) + ": " + what_is_wrong + "; load another copy of it"),
        file(std::move(damaged_file)),
        offset(damaged_offset) {}

  /// A file that never was a snapshot, for which `reason` is given.
  static CorruptSnapshot no_snapshot(std::string other_file, const std::string& reason) {
    return {"'" + other_file + "' is no snapshot of keyfold: " + reason +
                "; check the path: load() reads what save() wrote, Store::open() the directory of a store",
            std::move(other_file)};
  }

  std::string file;      ///< "<stream>" for a stream
  std::uint64_t offset;  ///< where something is wrong, or where the part begins whose checksum is

 private:
  CorruptSnapshot(const std::string& message, std::string other_file)
      : Error(message), file(std::move(other_file)), offset(0) {}
};

/// The rows that were stored are not made of the columns that the program's rows have.
class SchemaMismatch : public Error {
 public:
  SchemaMismatch(std::string column_name, std::string stored_type, std::string program_type,
                 const std::string& what_to_do)
      : Error("column '" + column_name + "' is stored as " + stored_type + " and the program has " +
              program_type + "; " + what_to_do),
        column(std::move(column_name)),
        stored(std::move(stored_type)),
        program(std::move(program_type)) {}

  std::string column;   ///< "<key>" if the tables have different keys, "<row>" if the rows differ as a whole
  std::string stored;   ///< type of the column in the file, as docs/file-format.md writes types
  std::string program;  ///< type of the column in the program; "no such column" if it has none
};

/// The progress callback of save() or load() asked to stop. Nothing was saved, or loaded.
class Cancelled : public Error {
 public:
  explicit Cancelled(const std::string& what_was_done)
      : Error(what_was_done + " was cancelled by its progress callback; nothing of it is left") {}
};

}  // namespace keyfold
