// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/storage_error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

/// Whole files: one that is replaced by another, and one that is read.
namespace keyfold::detail {

/// The calls of POSIX that a snapshot needs: -1 and errno if they fail. Tests have others that fail on
/// demand.
struct PosixCalls {
  int open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
  ssize_t write(int file, const void* from, std::size_t count) { return ::write(file, from, count); }
  ssize_t read(int file, void* to, std::size_t count) { return ::read(file, to, count); }
  int stat(int file, struct stat* to) { return ::fstat(file, to); }
  int chmod(int file, mode_t mode) { return ::fchmod(file, mode); }
  int sync(int file) { return ::fsync(file); }
  int close(int file) { return ::close(file); }
  int rename(const char* from, const char* to) { return ::rename(from, to); }
  int unlink(const char* path) { return ::unlink(path); }
};

[[noreturn]] inline void throw_io_error(const char* operation, const std::string& path) {
  throw IoError(operation, path, std::error_code(errno, std::generic_category()));
}

/// An open file, closed at the latest when this goes.
template <class Calls>
class OpenFile {
 public:
  OpenFile(Calls& calls, std::string path, int flags, mode_t mode = 0)
      : calls_(calls), path_(std::move(path)), number_(calls.open(path_.c_str(), flags | O_CLOEXEC, mode)) {
    if (number_ < 0) detail::throw_io_error("open", path_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ >= 0) calls_.close(number_);
  }

  int number() const noexcept { return number_; }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = calls_.write(number_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count == 0) errno = EIO;
      if (count <= 0) detail::throw_io_error("write", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  /// Fewer than `count` at the end only.
  std::size_t read(std::byte* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const ssize_t got = calls_.read(number_, to + done, count - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) detail::throw_io_error("read", path_);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  /// The size of a regular file; 0 bytes and `false` for what is none.
  std::pair<std::uint64_t, bool> size() {
    struct stat status{};
    if (calls_.stat(number_, &status) != 0) detail::throw_io_error("stat", path_);
    const bool is_regular = S_ISREG(status.st_mode);
    return {is_regular ? static_cast<std::uint64_t>(status.st_size) : 0, is_regular};
  }

  void sync() {
    if (calls_.sync(number_) != 0) detail::throw_io_error("fsync", path_);
  }
  void close() {
    if (calls_.close(std::exchange(number_, -1)) != 0) detail::throw_io_error("close", path_);
  }

 private:
  Calls& calls_;
  std::string path_;
  int number_;
};

/// Writes a file beside the one that it is to replace. Unless commit() was reached nothing has changed, and
/// nothing is left of it.
template <class Calls>
class FileReplacement {
 public:
  FileReplacement(Calls& calls, std::string path)
      : calls_(calls),
        path_(std::move(path)),
        mode_(mode_to_keep()),
        temporary_(free_name()),
        file_(open_temporary()) {
    if (mode_) static_cast<void>(calls_.chmod(file_.number(), *mode_));
  }
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;
  ~FileReplacement() {
    if (!renamed_) calls_.unlink(temporary_.c_str());
  }

  void write(std::span<const std::byte> bytes) { file_.write(bytes); }

  /// Puts the file in its place, durably. An IoError of the last step, fsync of the directory, means that the
  /// new file is in its place, but may be the old one again after a power failure.
  void commit() {
    file_.sync();
    file_.close();
    if (calls_.rename(temporary_.c_str(), path_.c_str()) != 0) detail::throw_io_error("rename", temporary_);
    renamed_ = true;
    OpenFile<Calls> directory(calls_, directory_of(path_), O_RDONLY | O_DIRECTORY);
    directory.sync();
    directory.close();
  }

 private:
  static std::string directory_of(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
  }

  std::string free_name() const { return path_ + ".tmp-" + std::to_string(::getpid()); }

  // A file of that name was left by a process that is gone, unless another thread saves to the same path.
  OpenFile<Calls> open_temporary() {
    for (int number = 1;; ++number) {
      try {
        return OpenFile<Calls>(calls_, temporary_, O_WRONLY | O_CREAT | O_EXCL, replaces_ ? 0600 : 0666);
      } catch (const IoError& error) {
        if (error.code != std::errc::file_exists || number == 100) {
          renamed_ = true;  // not ours to remove
          throw;
        }
        temporary_ = free_name() + '-' + std::to_string(number);
      }
    }
  }

  // Of the file that is replaced. A device or a folder is not.
  std::optional<mode_t> mode_to_keep() {
    const int old = calls_.open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    replaces_ = old >= 0 || errno != ENOENT;
    if (old < 0) return {};
    struct stat status{};
    const bool known = calls_.stat(old, &status) == 0;
    calls_.close(old);
    if (!known) return {};
    if (!S_ISREG(status.st_mode))
      throw IoError("replace", path_, std::make_error_code(std::errc::operation_not_supported));
    return status.st_mode & 07777U;
  }

  Calls& calls_;
  std::string path_;
  bool replaces_ = false;  // a file whose mode is kept; nobody else sees the new one before it has it
  std::optional<mode_t> mode_;
  std::string temporary_;
  bool renamed_ = false;
  OpenFile<Calls> file_;
};

}  // namespace keyfold::detail
