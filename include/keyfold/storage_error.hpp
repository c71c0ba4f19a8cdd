// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/error.hpp>

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

/// What files can do to a store. All of it derives from `Error`.
namespace keyfold {

/// An operation on a file failed. What it was for has not happened, unless a derived class says otherwise.
class IoError : public Error {
 public:
  IoError(const std::string& operation_name, const std::string& file_name, std::error_code error)
      : IoError(operation_name + " '" + file_name + "': " + error.message(), operation_name, file_name,
                error) {}

  std::string operation;  ///< such as "write" or "fsync"
  std::string file;
  std::error_code code;

 protected:
  IoError(const std::string& message, std::string operation_name, std::string file_name,
          std::error_code error)
      : Error(message), operation(std::move(operation_name)), file(std::move(file_name)), code(error) {}
};

/// The disk did not confirm a commit: the table does not have it, but the file may. Writing has ended for
/// this store, since after a failed fsync no later one can be believed; reading goes on. Opening the
/// directory again tells whether the commit was made.
class CommitInDoubt : public IoError {
 public:
  CommitInDoubt(const IoError& cause, const std::string& what_is_in_doubt)
      : IoError(std::string(cause.what()) + "; " + what_is_in_doubt +
                    " is in doubt and the store takes no more writes: open it again to see what it has",
                cause.operation, cause.file, cause.code) {}
};

/// The store takes no more writes, because an earlier one could not be made durable, or since it was closed:
/// then there is no `code`.
class StoreFailed : public IoError {
 public:
  explicit StoreFailed(const IoError& cause)
      : IoError(cause.code ? "the store takes no more writes since an operation failed (" +
                                 std::string(cause.what()) + "); open it again"
                           : "the store of '" + cause.file + "' was closed; open it again to write",
                cause.operation, cause.file, cause.code) {}
};

/// Another store, in this process or in another one, has the directory.
class StoreLocked : public Error {
 public:
  explicit StoreLocked(std::string locked_file)
      : Error("'" + locked_file + "' is locked: another store has this directory open; close that one first"),
        file(std::move(locked_file)) {}

  std::string file;
};

/// A file of a store is not as it was written, and no crash can have made it so. Nothing was changed on disk.
class CorruptJournal : public Error {
 public:
  CorruptJournal(std::string damaged_file, std::uint64_t damaged_offset, const std::string& what_is_wrong)
      : Error("'" + damaged_file + "' is damaged at byte " + std::to_string(damaged_offset) + ": " +
              what_is_wrong +
              "; restore it from a backup, or salvage() what can be read into a new directory"),
        file(std::move(damaged_file)),
        offset(damaged_offset) {}

  std::string file;
  std::uint64_t offset;
};

/// A file was written by a later version of the library, or of the program.
class UnsupportedFormat : public Error {
 public:
  UnsupportedFormat(const std::string& what_has_it, std::uint64_t found_number, std::uint64_t known_number)
      : Error(what_has_it + " has the format number " + std::to_string(found_number) +
              ", and this program knows up to " + std::to_string(known_number) +
              "; read it with the version that wrote it, or a later one"),
        found(found_number),
        known(known_number) {}

  std::uint64_t found;
  std::uint64_t known;
};

}  // namespace keyfold
