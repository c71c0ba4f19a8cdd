// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/bytes.hpp>
#include <keyfold/storage_error.hpp>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/// The file operations of a store, as a policy: tests put a disk with power cuts in its place.
namespace keyfold::detail {

/// An open file; closed at the end.
class PosixFile {
 public:
  PosixFile() = default;
  PosixFile(int descriptor, std::string name) noexcept : descriptor_(descriptor), name_(std::move(name)) {}
  PosixFile(PosixFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), name_(std::move(other.name_)) {}
  PosixFile& operator=(PosixFile other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    name_.swap(other.name_);
    return *this;
  }
  ~PosixFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int descriptor() const noexcept { return descriptor_; }
  const std::string& name() const noexcept { return name_; }

 private:
  int descriptor_ = -1;
  std::string name_;
};

/// One directory of the file system. Names are those of files in it. All operations throw IoError; one that
/// throws may be repeated, but for the syncs.
class PosixDisk {
 public:
  using File = PosixFile;
  using Lock = PosixFile;

  /// Makes the directory if it is not there.
  explicit PosixDisk(const std::filesystem::path& directory) : path_(directory) {
    const std::vector<std::filesystem::path> parents = unsettled_parents();
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) throw IoError("create directory", path_.string(), error);
    directory_ = open_file(AT_FDCWD, path_.string(), O_RDONLY | O_DIRECTORY);
    for (const auto& parent : parents) {
      const PosixFile above = open_file(AT_FDCWD, parent.string(), O_RDONLY | O_DIRECTORY);
      if (::fsync(above.descriptor()) != 0) throw IoError("fsync", parent.string(), last_error());
    }
  }

  /// How a file is named in messages.
  std::string path(const std::string& name) const { return (path_ / name).string(); }

  std::vector<std::string> list() const {
    const int copy = open_at(directory_.descriptor(), ".", O_RDONLY | O_DIRECTORY);
    const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(copy));
    if (stream == nullptr) {
      const int error = errno;
      ::close(copy);
      fail("list", ".", error);
    }
    std::vector<std::string> names;
    for (errno = 0; const dirent* entry = ::readdir(stream.get()); errno = 0)
      names.emplace_back(entry->d_name);
    if (errno != 0) fail("list", ".", errno);
    std::erase(names, ".");
    std::erase(names, "..");
    return names;
  }

  Bytes read(const std::string& name) const {
    const PosixFile file = open_file(directory_.descriptor(), name, O_RDONLY);
    struct stat status{};
    if (::fstat(file.descriptor(), &status) != 0) fail("read", name, errno);
    Bytes bytes(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ::ssize_t count =
          ::pread(file.descriptor(), bytes.data() + done, bytes.size() - done, static_cast<::off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("read", name, errno);
      if (count == 0) break;  // it has become shorter
      done += static_cast<std::size_t>(count);
    }
    bytes.resize(done);
    return bytes;
  }

  /// A new, empty file to append to, in place of an old one.
  File create(const std::string& name) {
    return open_file(directory_.descriptor(), name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  }
  File open_to_append(const std::string& name) {
    return open_file(directory_.descriptor(), name, O_WRONLY | O_APPEND);
  }

  /// Appends some of the bytes, and returns how many: at least one, if there are any.
  std::size_t write(File& file, std::span<const std::byte> bytes) {
    ::ssize_t count = 0;
    do {
      count = ::write(file.descriptor(), bytes.data(), bytes.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) fail("write", file.name(), errno);
    if (count == 0 && !bytes.empty()) fail("write", file.name(), EIO);
    return static_cast<std::size_t>(count);
  }

  void truncate(File& file, std::uint64_t size) {
    if (::ftruncate(file.descriptor(), static_cast<::off_t>(size)) != 0) fail("truncate", file.name(), errno);
  }

  /// Returns once the bytes of the file, and its size, are on the medium.
  void sync(File& file) {
#ifdef F_FULLFSYNC
    const int result = ::fcntl(file.descriptor(), F_FULLFSYNC);
#else
    const int result = ::fdatasync(file.descriptor());
#endif
    if (result != 0) fail("fsync", file.name(), errno);
  }

  void rename(const std::string& from, const std::string& to) {
    if (::renameat(directory_.descriptor(), from.c_str(), directory_.descriptor(), to.c_str()) != 0)
      fail("rename", from, errno);
  }
  void remove(const std::string& name) {
    if (::unlinkat(directory_.descriptor(), name.c_str(), 0) != 0) fail("remove", name, errno);
  }

  /// Returns once the names are on the medium.
  void sync_directory() {
    if (::fsync(directory_.descriptor()) != 0) fail("fsync", ".", errno);
  }

  /// Locks a file, and makes it if need be, until the result is destroyed. Throws StoreLocked.
  Lock lock(const std::string& name) {
    PosixFile file = open_file(directory_.descriptor(), name, O_RDWR | O_CREAT);
#ifdef F_OFD_SETLK
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    const int result = ::fcntl(file.descriptor(), F_OFD_SETLK, &range);
#else
    const int result = ::flock(file.descriptor(), LOCK_EX | LOCK_NB);
#endif
    if (result != 0 && (errno == EAGAIN || errno == EACCES)) throw StoreLocked(path(name));
    if (result != 0) fail("lock", name, errno);
    return file;
  }

  /// A number that no other log has, as far as chance goes.
  std::uint64_t draw() {
    std::random_device device;
    return std::uint64_t{device()} << 32U | device();
  }

 private:
  struct CloseDirectory {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
  };

  [[noreturn]] void fail(const char* operation, const std::string& name, int error) const {
    throw IoError(operation, path(name), std::error_code(error, std::generic_category()));
  }

  int open_at(int directory, const std::string& name, int flags) const {
    int descriptor = -1;
    do {
      descriptor = ::openat(directory, name.c_str(), flags | O_CLOEXEC, 0666);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) fail("open", name, errno);
    return descriptor;
  }

  PosixFile open_file(int directory, std::string name, int flags) const {
    const int descriptor = open_at(directory, name, flags);
    return {descriptor, std::move(name)};
  }

  static std::error_code last_error() { return {errno, std::generic_category()}; }

  // The name of a directory stands in the one above it. Whoever made the directory may not have come to sync
  // that, so it is done for one that is there, too, if only we may. Nothing has to last of a mount point.
  std::vector<std::filesystem::path> unsettled_parents() const {
    auto path = std::filesystem::absolute(path_).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    std::vector<std::filesystem::path> parents;
    struct stat here{};
    if (::stat(path.c_str(), &here) == 0) {
      struct stat above{};
      const auto parent = path.parent_path();
      if (::stat(parent.c_str(), &above) == 0 && above.st_dev == here.st_dev &&
          ::access(parent.c_str(), R_OK) == 0)
        parents.push_back(parent);
      return parents;
    }
    std::error_code ignored;
    do {
      path = path.parent_path();
      parents.push_back(path);
    } while (!std::filesystem::exists(path, ignored) && path.has_relative_path());
    return parents;
  }

  std::filesystem::path path_;
  PosixFile directory_;
};

}  // namespace keyfold::detail
