// The files of a store as the system has them: every operation that fails is an IoError that names itself,
// its file and its cause, and what a signal interrupts goes on.
#include <keyfold/detail/disk.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>

#include <pthread.h>
#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace kf = keyfold;
using namespace keyfold_test;
using keyfold::detail::Bytes;
using keyfold::detail::PosixDisk;

namespace {

Bytes bytes(std::string_view text) {
  const auto span = std::as_bytes(std::span(text));
  return {span.begin(), span.end()};
}

template <class Operation>
void refused(Operation operation, const std::string& name, const std::filesystem::path& file,
             std::errc cause) {
  try {
    operation();
    FAIL("it did not fail: " + name);
  } catch (const kf::IoError& error) {
    CHECK(error.operation == name);
    CHECK(error.file == file.string());
    CHECK(error.code == cause);
  }
}

/// Interrupts the system calls of this thread, every millisecond.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action{};
    action.sa_handler = [](int) { ++count; };
    ::sigaction(SIGUSR1, &action, &before_);
    thread_ = std::thread([this, interrupted = ::pthread_self()] {
      while (!over_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ::pthread_kill(interrupted, SIGUSR1);
      }
    });
  }
  ~Interruptions() {
    over_ = true;
    thread_.join();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }

  static inline std::atomic<int> count = 0;

 private:
  struct sigaction before_{};
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

void wait_for_interruptions(int some) {
  const int before = Interruptions::count;
  while (Interruptions::count < before + some) std::this_thread::yield();
}

}  // namespace

TEST_CASE("what is written to a disk is read from it, under any name it was given") {
  const TemporaryDirectory directory;
  PosixDisk disk(directory.path / "new" / "newer");
  {
    PosixDisk::File file = disk.create("a");
    CHECK(disk.write(file, bytes("tea and cake")) == 12);
    CHECK(disk.write(file, {}) == 0);
    disk.truncate(file, 3);
    file = disk.open_to_append("a");
    CHECK(disk.write(file, bytes("pot")) == 3);
    disk.sync(file);
  }
  disk.rename("a", "b");
  disk.create("c");
  disk.sync_directory();
  CHECK(disk.read("b") == bytes("teapot"));
  CHECK(disk.read("c").empty());
  auto names = disk.list();
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"b", "c"});
  disk.remove("b");
  CHECK(disk.list() == std::vector<std::string>{"c"});
  disk.create("c");
  CHECK(disk.draw() != disk.draw());
}

TEST_CASE("a file that is not there, or is none, is an IoError") {
  const TemporaryDirectory directory;
  PosixDisk disk(directory.path);
  std::filesystem::create_directory(directory.path / "folder");
  const auto none = directory.path / "none";
  refused([&] { (void)disk.read("none"); }, "open", none, std::errc::no_such_file_or_directory);
  refused([&] { disk.open_to_append("none"); }, "open", none, std::errc::no_such_file_or_directory);
  refused([&] { disk.rename("none", "some"); }, "rename", none, std::errc::no_such_file_or_directory);
  refused([&] { disk.remove("none"); }, "remove", none, std::errc::no_such_file_or_directory);
  const auto folder = directory.path / "folder";
  refused([&] { (void)disk.read("folder"); }, "read", folder, std::errc::is_a_directory);
  refused([&] { disk.create("folder"); }, "open", folder, std::errc::is_a_directory);
  refused([&] { (void)disk.lock("folder"); }, "open", folder, std::errc::is_a_directory);
}

TEST_CASE("a directory that cannot be is an IoError") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path / "file") << "text";
  const auto file = directory.path / "file";
  refused([&] { PosixDisk disk(file / "below"); }, "create directory", file / "below",
          std::errc::not_a_directory);
  refused([&] { PosixDisk disk(file); }, "create directory", file, std::errc::not_a_directory);
  CHECK(std::filesystem::file_size(file) == 4);
}

TEST_CASE("a directory that is gone has no files, and takes none") {
  const TemporaryDirectory directory;
  PosixDisk disk(directory.path / "gone");
  std::filesystem::remove(directory.path / "gone");
  CHECK(disk.list().empty());
  refused([&] { disk.create("a"); }, "open", directory.path / "gone" / "a",
          std::errc::no_such_file_or_directory);
}

#ifdef __linux__
TEST_CASE("a full disk, and a file that cannot be cut or synced, are IoErrors") {
  PosixDisk disk("/dev");
  PosixDisk::File file = disk.open_to_append("full");
  refused([&] { disk.write(file, bytes("tea")); }, "write", "/dev/full", std::errc::no_space_on_device);
  refused([&] { disk.truncate(file, 0); }, "truncate", "/dev/full", std::errc::invalid_argument);
  refused([&] { disk.sync(file); }, "fsync", "/dev/full", std::errc::invalid_argument);
  refused([] { PosixDisk("/proc").sync_directory(); }, "fsync", "/proc/.", std::errc::invalid_argument);
}

TEST_CASE("a directory whose name cannot reach the medium is an IoError, but for a mount point") {
  refused([] { PosixDisk disk("/proc/self"); }, "fsync", "/proc", std::errc::invalid_argument);
  CHECK_FALSE(PosixDisk("/proc").list().empty());
  const auto device = [](const char* path) {
    struct stat status{};
    return ::stat(path, &status) == 0 ? status.st_dev : 0;
  };
  // Often a tmpfs, which can be synced, in a sysfs, which cannot.
  if (device("/sys/fs") != device("/sys/fs/cgroup")) CHECK_NOTHROW(PosixDisk("/sys/fs/cgroup"));
}
#endif

TEST_CASE("a file is locked once, also within a process, until the lock is destroyed") {
  const TemporaryDirectory directory;
  PosixDisk disk(directory.path);
  {
    const PosixDisk::Lock lock = disk.lock("LOCK");
    PosixDisk other(directory.path);
    try {
      (void)other.lock("LOCK");
      FAIL("it was locked twice");
    } catch (const kf::StoreLocked& error) {
      CHECK(error.file == (directory.path / "LOCK").string());
    }
  }
  CHECK_NOTHROW(disk.lock("LOCK"));
}

TEST_CASE("opening and writing go on after a signal") {
  const TemporaryDirectory directory;
  PosixDisk disk(directory.path);
  REQUIRE(::mkfifo((directory.path / "pipe").c_str(), 0600) == 0);
  const Interruptions interruptions;
  // A pipe opens when its other end does, and takes more than fits into it when there is somebody who reads.
  std::size_t read = 0;
  std::thread reader([&] {
    ::sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    wait_for_interruptions(3);
    std::ifstream pipe(directory.path / "pipe");
    wait_for_interruptions(3);
    while (pipe.get() != std::ifstream::traits_type::eof()) ++read;
  });
  const Bytes much(std::size_t{1} << 20U);
  std::size_t written = 0;
  {
    PosixDisk::File file = disk.open_to_append("pipe");
    while (written < much.size()) written += disk.write(file, std::span(much).subspan(written));
  }
  reader.join();
  CHECK(read == much.size());
}
