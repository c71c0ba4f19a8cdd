// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// store
#ifndef KEYFOLD_SINGLE_STORE
#define KEYFOLD_SINGLE_STORE

// detail/core_access
#ifndef KEYFOLD_SINGLE_DETAIL_CORE_ACCESS
#define KEYFOLD_SINGLE_DETAIL_CORE_ACCESS

#include <memory>
#include <utility>

namespace keyfold::detail {

template <class Table>
struct core_of;
template <class Row, class KeySpec, class... Indexes>
struct core_of<Table<Row, KeySpec, Indexes...>> {
  using type = Core<Row, KeySpec, Indexes...>;
};

template <class T>
concept AnyTable = requires { typename core_of<T>::type; };

/// Reaches the state of a table, for what saves and loads it whole.
struct CoreAccess {
  template <class Table>
  using core_t = typename core_of<Table>::type;

  template <class Table>
  static const core_t<Table>& core(const Table& table) noexcept {
    return *table.core_;
  }
  template <class Table>
  static core_t<Table>& core(Table& table) noexcept {
    return *table.core_;
  }
  template <class Table>
  static Table table_of(std::unique_ptr<core_t<Table>> core) {
    return Table(std::move(core));
  }
};

}  // namespace keyfold::detail
#endif

// detail/disk
#ifndef KEYFOLD_SINGLE_DETAIL_DISK
#define KEYFOLD_SINGLE_DETAIL_DISK

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <system_error>
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
#endif

// detail/store_state
#ifndef KEYFOLD_SINGLE_DETAIL_STORE_STATE
#define KEYFOLD_SINGLE_DETAIL_STORE_STATE

// detail/journal
#ifndef KEYFOLD_SINGLE_DETAIL_JOURNAL
#define KEYFOLD_SINGLE_DETAIL_JOURNAL

// detail/journal_image
#ifndef KEYFOLD_SINGLE_DETAIL_JOURNAL_IMAGE
#define KEYFOLD_SINGLE_DETAIL_JOURNAL_IMAGE

// detail/frame
#ifndef KEYFOLD_SINGLE_DETAIL_FRAME
#define KEYFOLD_SINGLE_DETAIL_FRAME

// detail/crc32c
#ifndef KEYFOLD_SINGLE_DETAIL_CRC32C
#define KEYFOLD_SINGLE_DETAIL_CRC32C

#include <boost/crc.hpp>

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define KEYFOLD_CRC32_INSTRUCTION
#endif

/// CRC-32C (Castagnoli, RFC 3720 B.4): by the instruction of SSE 4.2 where the processor has it, else by
/// Boost.CRC, some fifty times slower.
namespace keyfold::detail {

/// `seed` is the CRC of what stands before the bytes, or 0.
inline std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
  // Boost.CRC takes the state before reflection, and the checksum is the state after it and a complement.
  std::uint32_t state = 0;
  for (std::uint32_t bit = 0; bit < 32; ++bit) state |= ((~seed >> bit) & 1U) << (31U - bit);
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc(state);
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

/// What a CRC state becomes when `Count` zero bytes follow: a product with x^(8 Count) modulo the polynomial,
/// by a table for each byte of the state.
template <std::size_t Count>
class Crc32cZeros {
 public:
  constexpr Crc32cZeros() {
    std::uint32_t power = std::uint32_t{1} << 31U;  // the polynomial 1; the coefficient of x^31 is bit 0
    for (std::size_t bit = 0; bit < 8 * Count; ++bit) power = times_x(power);
    for (std::size_t byte = 4; byte-- > 0;) {
      for (std::uint32_t bit = 128; bit != 0; bit /= 2, power = times_x(power)) table_[byte][bit] = power;
    }
    for (auto& table : table_) {
      for (std::size_t value = 1; value < 256; ++value) {
        const std::size_t rest = value & (value - 1);
        if (rest != 0) table[value] = table[rest] ^ table[value ^ rest];
      }
    }
  }

  constexpr std::uint32_t operator()(std::uint32_t state) const noexcept {
    return table_[0][state & 0xFFU] ^ table_[1][state >> 8U & 0xFFU] ^ table_[2][state >> 16U & 0xFFU] ^
           table_[3][state >> 24U];
  }

 private:
  static constexpr std::uint32_t times_x(std::uint32_t polynomial) noexcept {
    return polynomial >> 1U ^ ((polynomial & 1U) != 0 ? 0x82F63B78U : 0U);
  }

  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

#ifdef KEYFOLD_CRC32_INSTRUCTION
/// The instruction takes three cycles, and one can be begun in each of them. So long inputs go through it as
/// three streams side by side, after Gopal, Ozturk, Guilford and others, "Fast CRC computation for iSCSI
/// polynomial using CRC32 instruction" (Intel, 2011).
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_instruction(std::span<const std::byte> bytes,
                                                                          std::uint32_t seed) noexcept {
  constexpr std::size_t stream = 1024;
  static constexpr Crc32cZeros<stream> skip_stream;
  const auto word_at = [](const std::byte* from) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    return word;
  };
  std::uint64_t state = ~seed;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * stream; left -= 3 * stream, at += 3 * stream) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < stream; i += 8) {
      state = _mm_crc32_u64(state, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + stream + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * stream + i));
    }
    state = skip_stream(static_cast<std::uint32_t>(state)) ^ second;
    state = skip_stream(static_cast<std::uint32_t>(state)) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) state = _mm_crc32_u64(state, word_at(at));
  auto narrow = static_cast<std::uint32_t>(state);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(*at));
  return ~narrow;
}
#endif

/// `seed` is the CRC of what stands before the bytes, or 0.
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0) noexcept {
#ifdef KEYFOLD_CRC32_INSTRUCTION
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_instruction(bytes, seed);
#endif
  return crc32c_portable(bytes, seed);
}

}  // namespace keyfold::detail

#undef KEYFOLD_CRC32_INSTRUCTION
#endif

#include <algorithm>
#include <optional>

/// The layout of a store's files: see docs/store-format.md.
namespace keyfold::detail {

using ByteSpan = std::span<const std::byte>;

inline constexpr std::uint32_t journal_format = 1;

/// How files are checked. A policy, so that tests can show what goes wrong without.
struct FrameChecks {
  static std::uint32_t sum(ByteSpan bytes, std::uint32_t seed = 0) noexcept {
    return detail::crc32c(bytes, seed);
  }
  static constexpr bool seeks_promises =
      true;  // whether what is behind a bad frame is asked if it was promised
};

using Magic = std::array<char, 8>;
inline constexpr Magic log_magic{'K', 'F', 'L', 'O', 'G', '\r', '\n', '\x1A'};
inline constexpr Magic state_magic{'K', 'F', 'S', 'N', 'P', '\r', '\n', '\x1A'};
inline constexpr Magic clean_magic{'K', 'F', 'C', 'L', 'N', '\r', '\n', '\x1A'};

/// What the three kinds of file begin with: magic, format, a zero, `Count` numbers, and a CRC of all that.
template <std::size_t Count>
struct FileHeader {
  static constexpr std::size_t size = 8 + 4 + 4 + Count * 8 + 4;

  template <class Checks>
  static void append(Bytes& out, const Magic& magic, const std::array<std::uint64_t, Count>& numbers) {
    const std::size_t start = out.size();
    for (const char c : magic) out.push_back(static_cast<std::byte>(c));
    detail::put_number(out, journal_format);
    detail::put_number(out, std::uint32_t{0});
    for (const std::uint64_t number : numbers) detail::put_number(out, number);
    detail::put_number(out, Checks::sum(ByteSpan(out).subspan(start)));
  }

  /// Throws CorruptJournal, UnsupportedFormat.
  template <class Checks>
  static std::array<std::uint64_t, Count> read(ByteSpan file, const Magic& magic, const std::string& path) {
    if (file.size() < size) throw CorruptJournal(path, file.size(), "it ends within its header");
    if (!std::ranges::equal(file.first(8), magic, {}, [](std::byte b) { return static_cast<char>(b); }))
      throw CorruptJournal(path, 0, "it does not begin as such a file does");
    const auto format = detail::load_number<std::uint32_t>(file.data() + 8);
    if (format == 0 || format > journal_format)
      throw UnsupportedFormat("'" + path + "'", format, journal_format);
    if (detail::load_number<std::uint32_t>(file.data() + size - 4) != Checks::sum(file.first(size - 4)))
      throw CorruptJournal(path, 0, "its header does not have the checksum it states");
    std::array<std::uint64_t, Count> numbers{};
    for (std::size_t i = 0; i < Count; ++i)
      numbers[i] = detail::load_number<std::uint64_t>(file.data() + 16 + 8 * i);
    return numbers;
  }
};

struct LogHeader {
  using Layout = FileHeader<4>;

  std::uint64_t generation = 0;
  std::uint64_t id = 0;
  std::uint64_t base = 0;     // number of the last frame before this log
  std::uint64_t durable = 0;  // frames up to this number are promised

  template <class Checks>
  void append(Bytes& out) const {
    Layout::append<Checks>(out, log_magic, {generation, id, base, durable});
  }
  template <class Checks>
  static LogHeader read(ByteSpan file, const std::string& path) {
    const auto [generation, id, base, durable] = Layout::read<Checks>(file, log_magic, path);
    return {generation, id, base, durable};
  }
};

struct SnapshotHeader {
  using Layout = FileHeader<2>;
  static constexpr std::size_t trailer = 8 + 4;

  std::uint64_t generation = 0;
  std::uint64_t base = 0;  // number of the last frame that it contains

  template <class Checks>
  void append(Bytes& out) const {
    Layout::append<Checks>(out, state_magic, {generation, base});
  }
  template <class Checks>
  static SnapshotHeader read(ByteSpan file, const std::string& path) {
    const auto [generation, base] = Layout::read<Checks>(file, state_magic, path);
    return {generation, base};
  }
};

struct CleanMarker {
  using Layout = FileHeader<4>;

  std::uint64_t generation = 0;
  std::uint64_t id = 0;    // of the log
  std::uint64_t size = 0;  // of the log
  std::uint64_t last = 0;  // number of its last frame

  template <class Checks>
  void append(Bytes& out) const {
    Layout::append<Checks>(out, clean_magic, {generation, id, size, last});
  }
  template <class Checks>
  static CleanMarker read(ByteSpan file, const std::string& path) {
    const auto [generation, id, size, last] = Layout::read<Checks>(file, clean_magic, path);
    if (file.size() != Layout::size) throw CorruptJournal(path, Layout::size, "it goes on behind its end");
    return {generation, id, size, last};
  }
};

struct FrameHeader {
  static constexpr std::size_t size = 32;
  static constexpr std::uint32_t magic = 0x4D52464B;

  std::uint32_t length = 0;
  std::uint64_t number = 0;
  std::uint64_t durable = 0;  // frames up to this number were on the medium when this one was written
  std::uint32_t payload_crc = 0;

  /// The header of the frame at `offset` of the log `id`; nothing if none stands there.
  template <class Checks>
  static std::optional<FrameHeader> read(ByteSpan file, std::uint64_t id, std::size_t offset) {
    if (offset > file.size() || file.size() - offset < size) return {};
    const std::byte* const at = file.data() + offset;
    if (detail::load_number<std::uint32_t>(at) != magic) return {};
    if (detail::load_number<std::uint32_t>(at + 28) !=
        header_sum<Checks>(file.subspan(offset, 28), id, offset))
      return {};
    return FrameHeader{detail::load_number<std::uint32_t>(at + 4), detail::load_number<std::uint64_t>(at + 8),
                       detail::load_number<std::uint64_t>(at + 16),
                       detail::load_number<std::uint32_t>(at + 24)};
  }

  /// Writes the header of a frame, in front of its payload; it is to stand at `offset` of the log `id`.
  template <class Checks>
  static void put(std::span<std::byte> frame, std::uint64_t id, std::uint64_t offset, std::uint64_t number,
                  std::uint64_t durable) {
    const ByteSpan payload = frame.subspan(size);
    std::byte* const to = frame.data();
    detail::store_number(to, magic);
    detail::store_number(to + 4, static_cast<std::uint32_t>(payload.size()));
    detail::store_number(to + 8, number);
    detail::store_number(to + 16, durable);
    detail::store_number(to + 24, Checks::sum(payload));
    detail::store_number(to + 28, header_sum<Checks>(frame.first(size - 4), id, offset));
  }

  /// Appends a frame to `out`.
  template <class Checks>
  static void append_frame(Bytes& out, std::uint64_t id, std::uint64_t offset, std::uint64_t number,
                           std::uint64_t durable, ByteSpan payload) {
    const std::size_t start = out.size();
    out.resize(start + size);
    out.insert(out.end(), payload.begin(), payload.end());
    put<Checks>(std::span(out).subspan(start), id, offset, number, durable);
  }

 private:
  template <class Checks>
  static std::uint32_t header_sum(ByteSpan header, std::uint64_t id, std::uint64_t offset) {
    std::array<std::byte, 16> place{};
    detail::store_number(place.data(), id);
    detail::store_number(place.data() + 8, offset);
    return Checks::sum(header, Checks::sum(place));
  }
};

}  // namespace keyfold::detail
#endif

#include <charconv>
#include <string_view>

/// Reading a store's directory, and telling what a crash leaves from damage. Changes nothing on disk.
namespace keyfold::detail {

inline constexpr std::string_view clean_name = "CLEAN";

inline std::string snapshot_name(std::uint64_t generation) {
  return "snapshot-" + std::to_string(generation);
}
inline std::string log_name(std::uint64_t generation) { return "log-" + std::to_string(generation); }

/// Whether damage ends the reading, or only what precedes it is read.
enum class OnDamage : std::uint8_t { fail, salvage };

/// What a directory holds.
struct JournalImage {
  std::uint64_t generation = 0;  // 0: there is no store in it yet
  LogHeader header{};
  Bytes snapshot_file{};
  Bytes log_file{};
  std::size_t end = 0;     // of the good frames
  std::uint64_t last = 0;  // number of the last good frame
  bool clean = false;
  std::vector<std::string> leftovers{};    // files that mean nothing
  std::optional<CorruptJournal> damage{};  // that ended a salvage
  std::uint64_t frames_lost = 0;           // that something says there were after the last good one

  ByteSpan snapshot() const noexcept {
    return ByteSpan(snapshot_file)
        .subspan(SnapshotHeader::Layout::size,
                 snapshot_file.size() - SnapshotHeader::Layout::size - SnapshotHeader::trailer);
  }
  std::size_t torn_bytes() const noexcept { return log_file.size() - end; }

  /// Calls `visit(payload, number, offset)` with each good frame.
  template <class Visit>
  void for_each_frame(Visit visit) const {
    std::uint64_t number = header.base;
    for (std::size_t at = LogHeader::Layout::size; at < end;) {
      const auto length = detail::load_number<std::uint32_t>(log_file.data() + at + 4);
      visit(ByteSpan(log_file).subspan(at + FrameHeader::size, length), ++number, at);
      at += FrameHeader::size + length;
    }
  }
};

template <class Disk, class Checks>
class JournalReader {
 public:
  JournalReader(const Disk& disk, OnDamage on_damage) : disk_(disk), on_damage_(on_damage) {}

  JournalImage read() {
    list();
    if (snapshots_.empty()) return nothing_yet();
    image_.generation = *std::ranges::max_element(snapshots_);
    sort_out_others();
    read_snapshot();
    read_log();
    return std::move(image_);
  }

 private:
  void list() {
    for (const std::string& name : disk_.list()) {
      if (is_temporary(name)) image_.leftovers.push_back(name);
      if (name == clean_name) marked_ = true;
      if (const auto number = number_in(name, "snapshot-")) snapshots_.push_back(*number);
      if (const auto number = number_in(name, "log-")) logs_.push_back(*number);
    }
  }

  static bool is_temporary(std::string_view name) {
    if (!name.ends_with(".tmp")) return false;
    name.remove_suffix(4);
    return name == clean_name || number_in(name, "snapshot-") || number_in(name, "log-");
  }

  static std::optional<std::uint64_t> number_in(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return {};
    const std::string_view digits = name.substr(prefix.size());
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size() || number == 0 || digits.front() == '0')
      return {};
    return number;
  }

  // The first log is made before the first snapshot, so that alone it may be what a crash has left.
  JournalImage nothing_yet() {
    if (marked_)
      throw CorruptJournal(disk_.path(std::string(clean_name)), 0, "the files it vouches for are missing");
    for (const std::uint64_t log : logs_) {
      if (log != 1) throw CorruptJournal(disk_.path(log_name(log)), 0, "its snapshot is missing");
      require_empty(log);
    }
    return std::move(image_);
  }

  // A log without its snapshot is from a checkpoint that did not come to its end; nothing was added to it.
  void require_empty(std::uint64_t log) {
    if (disk_.read(log_name(log)).size() > LogHeader::Layout::size)
      throw CorruptJournal(disk_.path(log_name(log)), 0, "it has commits, but its snapshot is missing");
    image_.leftovers.push_back(log_name(log));
  }

  void sort_out_others() {
    for (const std::uint64_t other : snapshots_)
      if (other != image_.generation) image_.leftovers.push_back(snapshot_name(other));
    for (const std::uint64_t other : logs_) {
      if (other > image_.generation) require_empty(other);
      if (other < image_.generation) image_.leftovers.push_back(log_name(other));
    }
  }

  void read_snapshot() {
    const std::string path = disk_.path(snapshot_name(image_.generation));
    image_.snapshot_file = disk_.read(snapshot_name(image_.generation));
    const ByteSpan file = image_.snapshot_file;
    const auto header = SnapshotHeader::read<Checks>(file, path);
    const std::size_t around = SnapshotHeader::Layout::size + SnapshotHeader::trailer;
    if (file.size() < around) throw CorruptJournal(path, file.size(), "it ends too early");
    const std::byte* const trailer = file.data() + file.size() - SnapshotHeader::trailer;
    if (detail::load_number<std::uint64_t>(trailer) != file.size() - around)
      throw CorruptJournal(path, file.size(), "it is not as long as it states");
    if (detail::load_number<std::uint32_t>(trailer + 8) != Checks::sum(file.first(file.size() - 4)))
      throw CorruptJournal(path, SnapshotHeader::Layout::size,
                           "its contents do not have the checksum it states");
    if (header.generation != image_.generation) throw CorruptJournal(path, 16, "it is of another generation");
    base_ = header.base;
  }

  void read_log() {
    log_path_ = disk_.path(log_name(image_.generation));
    if (!read_log_header()) return;
    if (image_.header.generation != image_.generation)
      throw CorruptJournal(log_path_, 16, "it is of another generation");
    if (image_.header.base != base_)
      throw CorruptJournal(log_path_, 32, "it does not go on where its snapshot ends");
    read_frames();
    if (marked_) check_marker();
    if (image_.end != image_.log_file.size() || image_.last < image_.header.durable) judge_end();
  }

  // Without the header no frame can be told from rubbish.
  bool read_log_header() {
    image_.last = base_;
    try {
      if (std::ranges::find(logs_, image_.generation) == logs_.end())
        throw CorruptJournal(log_path_, 0, "it is missing");
      image_.log_file = disk_.read(log_name(image_.generation));
      image_.header = LogHeader::read<Checks>(image_.log_file, log_path_);
      return true;
    } catch (const CorruptJournal& damage) {
      if (on_damage_ == OnDamage::fail) throw;
      image_.damage = damage;
      return false;
    }
  }

  void read_frames() {
    const ByteSpan file = image_.log_file;
    image_.last = image_.header.base;
    image_.end = LogHeader::Layout::size;
    while (const auto frame = FrameHeader::read<Checks>(file, image_.header.id, image_.end)) {
      const ByteSpan rest = file.subspan(image_.end + FrameHeader::size);
      if (frame->number != image_.last + 1 || frame->durable > image_.last || frame->length > rest.size())
        break;
      if (Checks::sum(rest.first(frame->length)) != frame->payload_crc) break;
      image_.last = frame->number;
      image_.end += FrameHeader::size + frame->length;
    }
  }

  void check_marker() {
    const std::string path = disk_.path(std::string(clean_name));
    CleanMarker marker;
    try {
      marker = CleanMarker::read<Checks>(disk_.read(std::string(clean_name)), path);
      if (marker.generation != image_.generation || marker.id != image_.header.id)
        throw CorruptJournal(path, 16, "it vouches for another log");
    } catch (const CorruptJournal& damage) {
      if (on_damage_ == OnDamage::fail) throw;
      image_.damage = damage;
      return;
    }
    image_.clean =
        marker.size == image_.end && marker.last == image_.last && image_.end == image_.log_file.size();
    if (image_.clean) return;
    damaged("what stands here is not what was there when the store was closed");
    there_was(marker.last);
  }

  // The missing frame was promised if anything says that it was on the medium.
  void judge_end() {
    const std::uint64_t missing = image_.last + 1;
    if (image_.header.durable >= missing) return damaged("a commit that was on the medium is missing");
    if (!Checks::seeks_promises) return;
    for (std::size_t at = image_.end; at + FrameHeader::size <= image_.log_file.size(); ++at) {
      const auto later = FrameHeader::read<Checks>(image_.log_file, image_.header.id, at);
      if (later && later->durable >= missing)
        return damaged("a commit that was on the medium is missing, and later ones stand behind it");
    }
  }

  void damaged(const std::string& what) {
    const CorruptJournal damage(log_path_, image_.end, what);
    if (on_damage_ == OnDamage::fail) throw damage;
    if (image_.damage) return;
    image_.damage = damage;
    there_was(image_.header.durable);
    for (std::size_t at = image_.end; at + FrameHeader::size <= image_.log_file.size(); ++at) {
      if (const auto later = FrameHeader::read<Checks>(image_.log_file, image_.header.id, at))
        there_was(later->number);
    }
  }

  void there_was(std::uint64_t frame) noexcept {
    if (frame > image_.last) image_.frames_lost = std::max(image_.frames_lost, frame - image_.last);
  }

  const Disk& disk_;
  OnDamage on_damage_;
  JournalImage image_;
  std::vector<std::uint64_t> snapshots_;
  std::vector<std::uint64_t> logs_;
  std::string log_path_;
  std::uint64_t base_ = 0;
  bool marked_ = false;
};

/// Throws IoError, UnsupportedFormat, CorruptJournal.
template <class Checks, class Disk>
JournalImage read_journal(const Disk& disk, OnDamage on_damage = OnDamage::fail) {
  return JournalReader<Disk, Checks>(disk, on_damage).read();
}

}  // namespace keyfold::detail
#endif

#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>

/// Writing a store's directory: see docs/durability.md for the order of operations and why.
namespace keyfold::detail {

template <class Disk>
void write_all(Disk& disk, typename Disk::File& file, ByteSpan bytes) {
  while (!bytes.empty()) bytes = bytes.subspan(disk.write(file, bytes));
}

/// Where a checkpoint writes its state to.
template <class Disk, class Checks>
class SnapshotSink {
 public:
  SnapshotSink(Disk& disk, typename Disk::File& file, const SnapshotHeader& header)
      : disk_(disk), file_(file) {
    header.append<Checks>(buffer_);
  }

  void write(ByteSpan bytes) {
    length_ += bytes.size();
    if (bytes.size() >= direct_size) {
      put(buffer_);
      buffer_.clear();
      return put(bytes);
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }

  /// Bytes written so far.
  std::uint64_t size() const noexcept { return length_; }

  void finish() {
    detail::put_number(buffer_, length_);
    sum_ = Checks::sum(buffer_, sum_);
    const std::uint32_t sum = sum_;
    detail::put_number(buffer_, sum);
    detail::write_all(disk_, file_, buffer_);
  }

 private:
  static constexpr std::size_t direct_size = std::size_t{4} << 10U;  // so much is not copied

  void put(ByteSpan bytes) {
    sum_ = Checks::sum(bytes, sum_);
    detail::write_all(disk_, file_, bytes);
  }

  Disk& disk_;
  typename Disk::File& file_;
  Bytes buffer_;
  std::uint64_t length_ = 0;
  std::uint32_t sum_ = 0;
};

/// The log of a store, and its checkpoints. Frames are opaque.
///
/// Threads: sync() may run beside append(); everything else needs the journal for itself.
template <class Disk, class Checks = FrameChecks>
class Journal {
 public:
  using File = typename Disk::File;
  using Sink = SnapshotSink<Disk, Checks>;

  /// Steps 3 to 6 of opening, for what read_journal() has read. A journal without a generation takes a
  /// checkpoint() before anything else. Throws IoError; what is on disk is then still good.
  Journal(Disk& disk, const JournalImage& image)
      : disk_(disk), generation_(image.generation), last_(image.last), durable_(image.last) {
    disk_.sync_directory();
    for (const std::string& name : image.leftovers) disk_.remove(name);
    if (generation_ != 0) image.clean ? go_on(image) : copy_log(image);
  }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Appends a frame, which is not durable before sync(). Throws IoError: it is not there; StoreFailed.
  void append(ByteSpan payload) {
    frame_.resize(FrameHeader::size);
    frame_.insert(frame_.end(), payload.begin(), payload.end());
    append_in_place(frame_);
  }

  /// The same without a copy: `frame` has room for the header in front of the payload.
  void append_in_place(std::span<std::byte> frame) {
    if (frame.size() - FrameHeader::size > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("keyfold: one commit may take at most 4 GiB in the log");
    const std::lock_guard guard(mutex_);
    require_writable();
    FrameHeader::put<Checks>(frame, id_, size_, last_ + 1, durable_);
    unsynced_ = true;
    try {
      detail::write_all(disk_, log_, frame);
    } catch (...) {
      take_back();
      throw;
    }
    size_ += frame.size();
    ++last_;
  }

  /// Makes all frames durable. Throws IoError: they are in doubt; StoreFailed.
  void sync() {
    const std::lock_guard one_at_a_time(sync_mutex_);
    std::unique_lock guard(mutex_);
    require_writable();
    const std::uint64_t appended = last_;
    if (!std::exchange(unsynced_, false)) return;
    guard.unlock();
    end_if_thrown([&] { disk_.sync(log_); });
    guard.lock();
    durable_ = appended;
  }

  /// Begins a new generation with a state that `write_state(sink)` writes. Throws IoError, and what
  /// `write_state` throws: the present generation stays, and can be written to unless it was an fsync or the
  /// final rename that failed; StoreFailed.
  template <class WriteState>
  void checkpoint(WriteState&& write_state) {
    const std::lock_guard one_at_a_time(sync_mutex_);
    const std::lock_guard guard(mutex_);
    require_writable();
    const std::uint64_t next = generation_ + 1;
    const std::string snapshot = snapshot_name(next);
    const std::string log = log_name(next);
    const std::string old_snapshot = snapshot_name(generation_);
    const std::string old_log = log_name(generation_);
    const std::string temporary = snapshot + ".tmp";
    std::uint64_t next_id = 0;
    File next_log;
    try {
      next_id = disk_.draw();
      next_log = disk_.create(log);
      write_header(next_log, {next, next_id, last_, last_});
      end_if_thrown([&] { disk_.sync(next_log); });
      end_if_thrown([&] { disk_.sync_directory(); });
      write_snapshot(temporary, {next, last_}, write_state);
      end_if_thrown([&] { disk_.rename(temporary, snapshot); });
    } catch (...) {
      if (!failure_) {
        remove_quietly(temporary);
        remove_quietly(log);
      }
      throw;
    }
    end_if_thrown([&] { disk_.sync_directory(); });
    if (generation_ != 0) {
      remove_quietly(old_snapshot);
      remove_quietly(old_log);
    }
    log_ = std::move(next_log);
    generation_ = next;
    id_ = next_id;
    size_ = LogHeader::Layout::size;
    durable_ = last_;
    unsynced_ = false;
  }

  /// Makes everything durable and vouches for it; nothing can be written afterwards, whether or not it
  /// throws. Throws IoError.
  void close() {
    end_if_thrown([&] {
      const auto closed = std::make_exception_ptr(IoError("close", disk_.path(log_name(generation_)), {}));
      sync();
      const std::lock_guard guard(mutex_);
      const std::string name(clean_name);
      const std::string temporary = name + ".tmp";
      Bytes marker;
      CleanMarker{generation_, id_, size_, last_}.append<Checks>(marker);
      File file = disk_.create(temporary);
      detail::write_all(disk_, file, marker);
      disk_.sync(file);
      disk_.rename(temporary, name);
      disk_.sync_directory();
      end_writing(closed);
    });
  }

  /// Number of the last frame, and of the last one that is durable.
  std::uint64_t last() const {
    const std::lock_guard guard(mutex_);
    return last_;
  }
  std::uint64_t durable() const {
    const std::lock_guard guard(mutex_);
    return durable_;
  }
  /// Bytes in the log.
  std::uint64_t log_size() const {
    const std::lock_guard guard(mutex_);
    return size_;
  }
  std::uint64_t generation() const noexcept { return generation_; }

  /// What has ended writing, if anything.
  std::optional<IoError> failure() const {
    const std::lock_guard guard(failure_mutex_);
    if (!failure_) return {};
    try {
      std::rethrow_exception(failure_);
    } catch (const IoError& error) {
      return error;
    } catch (...) {  // there was no memory to say what has failed
      return IoError("write", disk_.path(log_name(generation_)),
                     std::make_error_code(std::errc::not_enough_memory));
    }
  }

 private:
  void require_writable() const {
    if (const auto cause = failure()) throw StoreFailed(*cause);
  }

  // Takes no memory, which may be what is missing.
  void end_writing(const std::exception_ptr& cause) noexcept {
    const std::lock_guard guard(failure_mutex_);
    if (!failure_) failure_ = cause;
  }

  // Nothing that failed to reach the medium can be tried again: the kernel may have dropped it. What is
  // thrown in place of an IoError, for want of memory, ends writing all the same.
  template <class Operation>
  void end_if_thrown(Operation&& operation) {
    try {
      operation();
    } catch (...) {
      end_writing(std::current_exception());
      throw;
    }
  }

  // The bytes of a frame that was not written to its end would stand in the way of the next one.
  void take_back() noexcept {
    const auto cause = std::current_exception();
    try {
      disk_.truncate(log_, size_);
    } catch (...) {
      end_writing(cause);
    }
  }

  void remove_quietly(const std::string& name) noexcept {
    try {
      disk_.remove(name);
    } catch (...) {  // NOLINT(bugprone-empty-catch): it is a leftover, which the next opening removes
    }
  }

  void write_header(File& file, const LogHeader& header) {
    Bytes bytes;
    header.append<Checks>(bytes);
    detail::write_all(disk_, file, bytes);
  }

  template <class WriteState>
  void write_snapshot(const std::string& name, const SnapshotHeader& header, WriteState& write_state) {
    File file = disk_.create(name);
    Sink sink(disk_, file, header);
    write_state(sink);
    sink.finish();
    end_if_thrown([&] { disk_.sync(file); });
  }

  void go_on(const JournalImage& image) {
    disk_.remove(std::string(clean_name));
    disk_.sync_directory();
    log_ = disk_.open_to_append(log_name(generation_));
    id_ = image.header.id;
    size_ = image.end;
  }

  void copy_log(const JournalImage& image) {
    const std::string temporary = log_name(generation_) + ".tmp";
    id_ = disk_.draw();
    log_ = disk_.create(temporary);
    Bytes bytes;
    LogHeader{generation_, id_, image.header.base, last_}.append<Checks>(bytes);
    size_ = 0;
    const auto flush = [&] {
      detail::write_all(disk_, log_, bytes);
      size_ += bytes.size();
      bytes.clear();
    };
    image.for_each_frame([&](ByteSpan payload, std::uint64_t number, std::size_t) {
      FrameHeader::append_frame<Checks>(bytes, id_, size_ + bytes.size(), number, number - 1, payload);
      if (bytes.size() >= copy_size) flush();
    });
    flush();
    disk_.sync(log_);
    disk_.rename(temporary, log_name(generation_));
    disk_.sync_directory();
  }

  static constexpr std::size_t copy_size = std::size_t{1} << 20U;

  Disk& disk_;
  std::uint64_t generation_;
  std::uint64_t id_ = 0;
  std::uint64_t size_ = 0;  // of the log
  std::uint64_t last_;
  std::uint64_t durable_;
  bool unsynced_ = false;  // the log has been written to, or a failed write taken back, since the last sync
  File log_;
  Bytes frame_;
  mutable std::mutex sync_mutex_;  // before mutex_
  mutable std::mutex mutex_;
  mutable std::mutex failure_mutex_;  // after mutex_
  std::exception_ptr failure_;
};

}  // namespace keyfold::detail
#endif

// detail/snapshot_reader
#ifndef KEYFOLD_SINGLE_DETAIL_SNAPSHOT_READER
#define KEYFOLD_SINGLE_DETAIL_SNAPSHOT_READER

// detail/chunks
#ifndef KEYFOLD_SINGLE_DETAIL_CHUNKS
#define KEYFOLD_SINGLE_DETAIL_CHUNKS

/// The frame of a snapshot: a preamble and chunks. Checksums run on from chunk to chunk, so that each of them
/// stands for everything before it, too. docs/file-format.md tells it byte by byte.
namespace keyfold::detail {

inline constexpr std::array<unsigned char, 8> snapshot_magic{0x8B, 'K', 'F', 'S', '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t snapshot_format = 1;
inline constexpr std::size_t preamble_size = 16;
inline constexpr std::size_t chunk_header_size = 16;
inline constexpr std::size_t checksum_size = 4;
inline constexpr std::size_t chunk_target = std::size_t{256} * 1024;

enum class ChunkKind : std::uint32_t { header = 1, data = 2, end = 3 };

/// Chunks of kinds from here on may be passed over by a reader that does not know them.
inline constexpr std::uint32_t first_optional_kind = 0x80000000U;

/// Writes chunks to `sink(std::span<const std::byte>)`. Elements are put into buffer(); each is whole in one
/// chunk.
template <class Sink>
class ChunkWriter {
 public:
  explicit ChunkWriter(Sink& sink) : sink_(sink) {
    std::byte* const preamble = buffer_.extend(preamble_size);
    std::memcpy(preamble, snapshot_magic.data(), snapshot_magic.size());
    detail::store_number(preamble + 8, snapshot_format);
    checksum_ = detail::crc32c({preamble, 12});
    detail::store_number(preamble + 12, checksum_);
    send();
  }

  ByteBuffer& buffer() noexcept { return buffer_; }

  bool is_full() const noexcept { return buffer_.size() >= chunk_target; }

  /// Ends a chunk, if there is anything in it.
  void flush(ChunkKind kind) {
    if (buffer_.size() == chunk_header_size) return;
    std::byte* const header = buffer_.data();
    detail::store_number(header, static_cast<std::uint32_t>(kind));
    detail::store_number(header + 4, static_cast<std::uint64_t>(buffer_.size() - chunk_header_size));
    checksum_ = detail::crc32c({header, 12}, checksum_);
    detail::store_number(header + 12, checksum_);
    checksum_ = detail::crc32c(buffer_.bytes().subspan(chunk_header_size), checksum_);
    detail::put_u32(buffer_, checksum_);
    send();
  }

  /// The last chunk, which tells the size of all.
  void finish() {
    const std::size_t payload = sizeof(std::uint64_t);
    detail::put_u64(buffer_, sent_ + chunk_header_size + payload + checksum_size);
    flush(ChunkKind::end);
  }

 private:
  void send() {
    sink_(buffer_.bytes());
    sent_ += buffer_.size();
    buffer_.clear();
    buffer_.extend(chunk_header_size);
  }

  Sink& sink_;
  ByteBuffer buffer_;  // begins with room for the header
  std::uint64_t sent_ = 0;
  std::uint32_t checksum_ = 0;
};

/// Reads chunks from a source with two members: `read(to, count)` returns how many bytes it got, fewer than
/// asked for at the end only; `left()` is how many bytes there still are. Memory is taken for bytes that are
/// there, never for a size that is only claimed.
template <class Source>
class ChunkReader {
 public:
  ChunkReader(Source& source, std::string file) : source_(source), file_(std::move(file)) { read_preamble(); }

  /// The payload of the header.
  ByteReader& header() {
    if (next() != ChunkKind::header) fail("its header is missing");
    return payload_;
  }

  /// The next element, of which there is at least one byte.
  ByteReader& element() {
    if (payload_.left() == 0) next_data();
    return payload_;
  }

  /// Requires that everything has been read.
  void finish() {
    if (payload_.left() != 0) payload_.fail("more is there than was told");
    if (next() != ChunkKind::end) fail("more is there than was told");
    const std::uint64_t size = detail::get_u64(payload_);
    if (payload_.left() != 0 || size != consumed_) fail("it has another size than it should");
  }

  /// How many bytes are still to come, at most.
  std::uint64_t left() const { return source_.left() + payload_.left(); }

  /// Where an offset of the payload is in the file.
  std::uint64_t offset_of(std::size_t payload_offset) const noexcept {
    return payload_start_ + payload_offset;
  }

  const std::string& file() const noexcept { return file_; }

  [[noreturn]] void fail(const std::string& what_is_wrong) const { fail_at(consumed_, what_is_wrong); }

 private:
  [[noreturn]] void fail_at(std::uint64_t offset, const std::string& what_is_wrong) const {
    throw CorruptSnapshot(file_, offset, what_is_wrong);
  }

  void read(std::byte* to, std::size_t count) {
    if (source_.read(to, count) != count) fail("it ends too early");
    consumed_ += count;
  }

  void read_preamble() {
    std::array<std::byte, preamble_size> preamble{};
    consumed_ = source_.read(preamble.data(), preamble.size());
    if (consumed_ == 0) throw CorruptSnapshot::no_snapshot(file_, "it is empty");
    const auto magic = std::min(snapshot_magic.size(), static_cast<std::size_t>(consumed_));
    if (std::memcmp(preamble.data(), snapshot_magic.data(), magic) != 0)
      throw CorruptSnapshot::no_snapshot(file_, "it does not begin as one");
    if (consumed_ != preamble.size()) fail("it ends too early");
    checksum_ = detail::crc32c(std::span(preamble).first(12));
    if (checksum_ != detail::load_number<std::uint32_t>(&preamble[12]))
      fail_at(0, "the checksum of its beginning is wrong");
    const auto format = detail::load_number<std::uint32_t>(&preamble[8]);
    if (format != snapshot_format)
      throw UnsupportedFormat("the snapshot '" + file_ + "'", format, snapshot_format);
  }

  [[gnu::noinline]] void next_data() {
    while (payload_.left() == 0) {
      if (next() != ChunkKind::data) fail("it ends before all of it was told");
    }
  }

  ChunkKind next() {
    while (true) {
      const auto kind = read_chunk();
      if (kind >= 1 && kind <= 3) return static_cast<ChunkKind>(kind);
      if (kind < first_optional_kind)
        throw UnsupportedFormat("a chunk of the snapshot '" + file_ + "'", kind, 3);
      payload_ = ByteReader();
    }
  }

  std::uint32_t read_chunk() {
    std::array<std::byte, chunk_header_size> header{};
    read(header.data(), header.size());
    checksum_ = detail::crc32c(std::span(header).first(12), checksum_);
    if (checksum_ != detail::load_number<std::uint32_t>(&header[12]))
      fail_at(consumed_ - header.size(), "the checksum of a chunk's header is wrong");
    const auto size = detail::load_number<std::uint64_t>(&header[4]);
    if (size > source_.left()) fail("it ends too early");
    read_payload(static_cast<std::size_t>(size));
    return detail::load_number<std::uint32_t>(header.data());
  }

  void read_payload(std::size_t size) {
    buffer_.clear();
    std::byte* const bytes = buffer_.extend(size);
    payload_start_ = consumed_;
    read(bytes, size);
    checksum_ = detail::crc32c({bytes, size}, checksum_);
    std::array<std::byte, checksum_size> stored{};
    read(stored.data(), stored.size());
    if (checksum_ != detail::load_number<std::uint32_t>(stored.data()))
      fail_at(payload_start_, "the checksum of the chunk that begins there is wrong");
    payload_ = ByteReader({bytes, size});
  }

  Source& source_;
  std::string file_;
  ByteBuffer buffer_;
  ByteReader payload_;
  std::uint64_t consumed_ = 0;
  std::uint64_t payload_start_ = 0;
  std::uint32_t checksum_ = 0;
};

}  // namespace keyfold::detail
#endif

// detail/schema
#ifndef KEYFOLD_SINGLE_DETAIL_SCHEMA
#define KEYFOLD_SINGLE_DETAIL_SCHEMA

// detail/type_skipper
#ifndef KEYFOLD_SINGLE_DETAIL_TYPE_SKIPPER
#define KEYFOLD_SINGLE_DETAIL_TYPE_SKIPPER

namespace keyfold::detail {

/// Passes over values of a type that is known by its name only.
class TypeSkipper {
 public:
  /// Throws DecodeError if the name is no type.
  explicit TypeSkipper(std::string_view name) : text_(name), left_(name) {
    nodes_.reserve(16);
    parse(0);
    if (!left_.empty()) refuse();
  }

  /// Throws DecodeError.
  void skip(ByteReader& in) const { skip(0, in, 0); }

  /// Passes over one part of a record only. Requires: part < parts().
  void skip_part(std::size_t part, ByteReader& in) const { skip(nodes_[0].children[part], in, 1); }
  std::size_t parts() const noexcept { return nodes_[0].children.size(); }

 private:
  enum class Kind : std::uint8_t { fixed, text, optional, array, sequence, variant, list, object, same };

  struct Node {
    Kind kind = Kind::fixed;
    std::uint64_t number = 0;  // bytes of a fixed one; elements of an array; levels of `same`
    bool is_record = false;
    std::size_t record = 0;  // node of the record that it is in
    std::vector<std::size_t> children{};
  };

  static constexpr std::uint64_t size_limit = std::uint64_t{1} << 40U;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  [[noreturn]] void refuse() const {
    throw DecodeError(text_.size() - left_.size(), "'" + std::string(text_.substr(0, 100)) + "' is no type");
  }

  std::string_view word() {
    const std::size_t size = std::min(left_.find_first_of("(),:/"), left_.size());
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }
  bool accept(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse();
  }
  std::uint64_t number() {
    const std::string_view digits = word();
    std::uint64_t out = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9' || out > size_limit) refuse();
      out = out * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (digits.empty()) refuse();
    return out;
  }

  static std::uint64_t scalar_size(std::string_view name) {
    constexpr std::pair<std::string_view, std::uint64_t> sizes[] = {
        {"bool", 1},   {"char", 1},   {"int8", 1},    {"uint8", 1},   {"int16", 2},
        {"uint16", 2}, {"int32", 4},  {"uint32", 4},  {"float32", 4}, {"int64", 8},
        {"date", 4},   {"uint64", 8}, {"float64", 8}, {"nothing", 0}};
    for (const auto& [known, size] : sizes) {
      if (known == name) return size;
    }
    return size_limit;
  }

  std::size_t parse(unsigned depth) {
    if (depth > nesting_limit) refuse();
    const std::size_t at = nodes_.size();
    nodes_.emplace_back().record = record_;
    const std::string_view name = word();
    if (const std::uint64_t size = scalar_size(name); size != size_limit) {
      nodes_[at].number = size;
    } else if (name == "text") {
      nodes_[at].kind = Kind::text;
    } else if (name == "object") {
      nodes_[at].kind = Kind::object;
    } else {
      expect('(');
      parse_arguments(at, name, depth + 1);
      expect(')');
      fix(at);
    }
    return at;
  }

  void parse_arguments(std::size_t at, std::string_view name, unsigned depth) {
    if (name == "enum" || name == "time") {
      add(at, Kind::sequence, depth);
    } else if (name == "duration") {
      add(at, Kind::sequence, depth);
      expect(',');
      number();
      expect('/');
      number();
    } else if (name == "optional") {
      add(at, Kind::optional, depth);
    } else if (name == "array") {
      const std::uint64_t count = number();
      expect(',');
      add(at, Kind::array, depth);
      nodes_[at].number = count;
    } else if (name == "list" || name == "set") {
      add(at, Kind::list, depth);
    } else if (name == "map") {
      add(at, Kind::list, depth);
      expect(',');
      add(at, Kind::list, depth);
    } else if (name == "tuple") {
      add_some(at, Kind::sequence, depth);
    } else if (name == "variant") {
      add_some(at, Kind::variant, depth);
    } else if (name == "record") {
      parse_record(at, depth);
    } else if (name == "same") {
      nodes_[at].kind = Kind::same;
      nodes_[at].number = enclosing_record(number());
    } else {
      refuse();
    }
  }

  void add(std::size_t at, Kind kind, unsigned depth) {
    nodes_[at].kind = kind;
    const std::size_t child = parse(depth);
    nodes_[at].children.push_back(child);
  }
  void add_some(std::size_t at, Kind kind, unsigned depth) {
    nodes_[at].kind = kind;
    if (!left_.empty() && left_.front() == ')') return;
    do {
      add(at, kind, depth);
    } while (accept(','));
  }

  void parse_record(std::size_t at, unsigned depth) {
    nodes_[at].kind = Kind::sequence;
    nodes_[at].is_record = true;
    const std::size_t outer = std::exchange(record_, at);
    if (left_.empty() || left_.front() != ')') {
      do {
        if (word().empty()) refuse();
        expect(':');
        add(at, Kind::sequence, depth);
      } while (accept(','));
    }
    record_ = outer;
  }

  // `levels` records up, counted from 1.
  std::size_t enclosing_record(std::uint64_t levels) const {
    std::size_t at = record_;
    for (; levels > 1 && at != none; --levels) at = nodes_[at].record;
    if (levels != 1 || at == none) refuse();
    return at;
  }

  // A sequence or array all of whose parts have a fixed size has one, too.
  void fix(std::size_t at) {
    Node& node = nodes_[at];
    if (node.kind != Kind::sequence && node.kind != Kind::array) return;
    std::uint64_t sum = 0;
    for (const std::size_t child : node.children) {
      if (nodes_[child].kind != Kind::fixed && (node.kind != Kind::array || node.number != 0)) return;
      sum += nodes_[child].number;
    }
    if (node.kind == Kind::array) {
      if (node.number != 0 && sum > size_limit / node.number) refuse();
      sum *= node.number;
    }
    if (sum > size_limit) refuse();
    node.kind = Kind::fixed;
    node.number = sum;
  }

  void skip(std::size_t at, ByteReader& in, unsigned depth) const {
    if (depth > 4 * nesting_limit) in.fail("values are nested too deep");
    const Node& node = nodes_[at];
    switch (node.kind) {
      case Kind::fixed:
        in.take(node.number);
        break;
      case Kind::text:
        detail::get_text(in);
        break;
      case Kind::optional:
        if (detail::get_flag(in)) skip(node.children[0], in, depth + 1);
        break;
      case Kind::array:
        for (std::uint64_t i = 0; i < node.number; ++i) skip(node.children[0], in, depth + 1);
        break;
      case Kind::sequence:
        for (const std::size_t child : node.children) skip(child, in, depth + 1);
        break;
      case Kind::variant:
        skip_variant(node, in, depth);
        break;
      case Kind::list:
        skip_list(node, in, depth);
        break;
      case Kind::object:
        in.take(std::size_t{detail::get_u32(in)} + sizeof(std::uint32_t));
        break;
      case Kind::same:
        skip(node.number, in, depth + 1);
        break;
    }
  }

  void skip_variant(const Node& node, ByteReader& in, unsigned depth) const {
    const std::size_t index = detail::get_u8(in);
    if (index >= node.children.size()) in.fail("a variant has an alternative that its type has not");
    skip(node.children[index], in, depth + 1);
  }

  void skip_list(const Node& node, ByteReader& in, unsigned depth) const {
    const std::uint64_t count = detail::get_u32(in);
    if (count > in.left()) in.fail("more elements than the bytes can hold");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t before = in.offset();
      for (const std::size_t child : node.children) skip(child, in, depth + 1);
      if (in.offset() == before) in.take(1);
    }
  }

  std::string_view text_;
  std::string_view left_;
  std::size_t record_ = none;
  std::vector<Node> nodes_;
};

}  // namespace keyfold::detail
#endif

// schema
#ifndef KEYFOLD_SINGLE_SCHEMA
#define KEYFOLD_SINGLE_SCHEMA

namespace keyfold {

/// A column that has another name in older files.
struct RenamedColumn {
  std::string_view stored;  ///< its name in the file
  std::string_view now;     ///< the member of the row type
};

/// Customization point: what has become of columns that older files have. Specialise it beside the row type
/// and give what there is of these members:
///
///     template <> struct keyfold::schema_changes<Order> {
///       static constexpr keyfold::RenamedColumn renamed[] = {{"state", "status"}};
///       static constexpr std::string_view dropped[] = {"legacy_code"};
///     };
///
/// A column that only the row type has keeps the value it has in `Row{}`. One that only the file has is
/// skipped, unless the row type has also gained one of the same type: that may be the same column under a new
/// name, so it is a SchemaMismatch until it stands in `renamed` or in `dropped`.
template <class Row>
struct schema_changes {};

}  // namespace keyfold
#endif

#include <type_traits>
#include <unordered_set>

/// What rows are made of, as a file says it, and rows of files that say something else than the program.
namespace keyfold::detail {

struct StoredColumn {
  std::string name;
  std::string type;
  bool operator==(const StoredColumn&) const = default;
};

struct StoredSchema {
  bool is_object = false;           // rows write themselves with serialize()
  std::uint32_t class_version = 0;  // of the row, as Boost.Serialization knows it
  std::vector<StoredColumn> columns{};
  bool operator==(const StoredSchema&) const = default;
};

template <class Row, auto... Members>
std::vector<StoredColumn> stored_columns(MemberList<Members...>) {
  return {{std::string(member_name<Members>), detail::type_text_in<member_t<Members>, Row>()}...};
}

/// Each failure is a sentence.
template <class Row>
consteval bool require_row() {
  static_assert(codec_kind_v<Row> == CodecKind::object || codec_kind_v<Row> == CodecKind::record,
                "keyfold: a row to be saved needs a column list (BOOST_DESCRIBE_STRUCT or columns_of) or a "
                "serialize()");
  static_assert(std::is_default_constructible_v<Row>,
                "keyfold: a row to be loaded must be default constructible");
  return true;
}

template <class Row>
StoredSchema schema_of() {
  static_assert(require_row<Row>());
  constexpr CodecKind kind = codec_kind_v<Row>;
  StoredSchema schema;
  schema.is_object = kind == CodecKind::object;
  if constexpr (kind == CodecKind::object) {
    schema.class_version = static_cast<std::uint32_t>(boost::serialization::version<Row>::value);
  } else if constexpr (kind == CodecKind::record) {
    schema.columns = detail::stored_columns<Row>(columns_list<Row>{});
  }
  return schema;
}

inline void put_schema(ByteBuffer& out, const StoredSchema& schema) {
  detail::put_u8(out, schema.is_object ? 1 : 0);
  detail::put_u32(out, schema.class_version);
  detail::put_count(out, schema.columns.size());
  for (const StoredColumn& column : schema.columns) {
    detail::put_text(out, column.name);
    detail::put_text(out, column.type);
  }
}

/// Throws DecodeError.
inline StoredSchema get_schema(ByteReader& in) {
  StoredSchema schema;
  schema.is_object = detail::get_flag(in);
  schema.class_version = detail::get_u32(in);
  const std::size_t count = detail::get_u32(in);
  if (count > in.left() / 8) in.fail("more columns than the bytes can hold");
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    std::string name(detail::get_text(in));
    if (!names.insert(name).second) in.fail("the column '" + name + "' is there twice");
    schema.columns.push_back({std::move(name), std::string(detail::get_text(in))});
  }
  return schema;
}

inline auto has_column(const StoredSchema& schema) {
  return [&schema](std::string_view name) {
    return std::ranges::find(schema.columns, name, &StoredColumn::name) != schema.columns.end();
  };
}

template <class Row>
consteval bool renames_to_columns() {
  if constexpr (HasColumns<Row>) {
    for (const RenamedColumn& column : schema_changes<Row>::renamed) {
      if (column_index<Row>(column.now) >= column_count<Row>) return false;
    }
  }
  return true;
}

/// `has(name)` tells whether the file has a column of that name: one that has the new name was written since.
template <class Row, class Has>
std::string_view name_now(std::string_view stored, [[maybe_unused]] Has has) {
  if constexpr (requires { schema_changes<Row>::renamed; }) {
    static_assert(renames_to_columns<Row>(),
                  "keyfold: schema_changes<>::renamed gives a new name that is no column of the row type");
    for (const RenamedColumn& column : schema_changes<Row>::renamed) {
      if (column.stored == stored && !has(column.now)) return column.now;
    }
  }
  return stored;
}

template <class Row>
bool is_dropped(std::string_view stored) {
  if constexpr (requires { schema_changes<Row>::dropped; }) {
    for (const std::string_view name : schema_changes<Row>::dropped) {
      if (name == stored) return true;
    }
  }
  return false;
}

/// Reads rows that were written under some schema into the row type of the program.
template <class Row>
class RowDecoder {
 public:
  /// Throws SchemaMismatch, UnsupportedFormat, DecodeError if a type that is to be skipped is none.
  explicit RowDecoder(const StoredSchema& stored) {
    const StoredSchema present = detail::schema_of<Row>();
    if (stored.is_object != present.is_object) refuse_row(stored);
    if (stored.class_version > present.class_version)
      throw UnsupportedFormat("the class of the rows", stored.class_version, present.class_version);
    if (stored.columns == present.columns) return;
    evolved_ = true;
    names_.reserve(stored.columns.size());
    for (std::size_t i = 0; i < stored.columns.size(); ++i) add_step(stored.columns[i], i, stored, present);
    for (const Step& step : steps_) {
      if (step.get == nullptr) check_skipped(stored.columns[step.column], present);
    }
    prepare_to_skip(stored);
  }

  /// Throws what Decoder throws.
  void read(Decoder& in, Row& row) const {
    if (!evolved_) return in.get(row);
    if constexpr (codec_kind_v<Row> == CodecKind::record) {
      const NestingScope scope = in.descend();
      for (const Step& step : steps_) {
        if (step.get != nullptr) {
          step.get(in, row);
        } else {
          skipper_->skip_part(step.column, in.in());
        }
      }
    }
  }

  /// The fewest bytes that a row can take in the file.
  std::size_t least_size() const noexcept { return evolved_ ? 0 : detail::least_size<Row>(); }

 private:
  struct Step {
    void (*get)(Decoder&, Row&);  // null: the column is skipped
    std::size_t column;           // its number in the file
  };

  [[noreturn]] static void refuse_row(const StoredSchema& stored) {
    const char* const object = "an object that writes itself";
    const char* const record = "columns";
    throw SchemaMismatch("<row>", stored.is_object ? object : record, stored.is_object ? record : object,
                         "load it into the row type that wrote it, and copy its rows");
  }

  void add_step(const StoredColumn& column, std::size_t number, const StoredSchema& stored,
                const StoredSchema& present) {
    const std::string_view name = detail::name_now<Row>(column.name, has_column(stored));
    for (std::size_t i = 0; i < present.columns.size(); ++i) {
      if (present.columns[i].name != name) continue;
      if (present.columns[i].type != column.type) {
        throw SchemaMismatch(column.name, column.type, present.columns[i].type,
                             "give the column its old type, or give the new one another name and name the "
                             "old one in schema_changes<>::dropped");
      }
      for (const std::string_view earlier : names_) {
        if (earlier == name)
          throw SchemaMismatch(column.name, column.type, "column '" + std::string(name) + "' for two",
                               "correct schema_changes<>::renamed");
      }
      names_.push_back(name);
      steps_.push_back({getter(i), number});
      return;
    }
    steps_.push_back({nullptr, number});
  }

  // A column that has gone beside one that has come may have been renamed, and nobody said so.
  void check_skipped(const StoredColumn& column, const StoredSchema& present) const {
    if (detail::is_dropped<Row>(column.name)) return;
    for (const StoredColumn& gained : present.columns) {
      if (gained.type != column.type || std::ranges::find(names_, gained.name) != names_.end()) continue;
      throw SchemaMismatch(
          column.name, column.type,
          "no such column, but a column '" + gained.name + "' that the file has not",
          "say in schema_changes<>::renamed that it is that one, or in schema_changes<>::dropped "
          "that it is gone, unless the file is that of another table");
    }
  }

  // The row as one record, since a column may hold rows.
  void prepare_to_skip(const StoredSchema& stored) {
    if (std::ranges::all_of(steps_, [](const Step& step) { return step.get != nullptr; })) return;
    std::string text;
    for (const StoredColumn& column : stored.columns)
      text += (text.empty() ? "" : ",") + column.name + ':' + column.type;
    record_ = std::make_unique<const std::string>("record(" + text + ')');
    skipper_.emplace(*record_);
    if (skipper_->parts() != stored.columns.size())
      throw DecodeError(0, "the name or type of a column is none");
  }

  template <auto Member>
  static void get_column(Decoder& in, Row& row) {
    in.get(row.*Member);
  }
  static auto getter(std::size_t column) -> void (*)(Decoder&, Row&) {
    if constexpr (codec_kind_v<Row> == CodecKind::record) {
      return [&]<auto... Members>(MemberList<Members...>) {
        constexpr void (*getters[])(Decoder&, Row&) = {&RowDecoder::get_column<Members>...};
        return getters[column];
      }(columns_list<Row>{});
    } else {
      return nullptr;
    }
  }

  bool evolved_ = false;
  std::vector<Step> steps_;
  std::vector<std::string_view> names_;  // of the program's columns that the file has
  std::unique_ptr<const std::string> record_;
  std::optional<TypeSkipper> skipper_;
};

}  // namespace keyfold::detail
#endif

// detail/sequence_reader
#ifndef KEYFOLD_SINGLE_DETAIL_SEQUENCE_READER
#define KEYFOLD_SINGLE_DETAIL_SEQUENCE_READER

// detail/sequence_checker
#ifndef KEYFOLD_SINGLE_DETAIL_SEQUENCE_CHECKER
#define KEYFOLD_SINGLE_DETAIL_SEQUENCE_CHECKER

namespace keyfold::detail {

/// Columns of the program, each by its number among those of a file; `no_position` where the file has none.
struct ColumnPlaces {
  std::vector<std::size_t> places{};
  std::size_t stored = 0;  // how many columns the file has
  bool same = false;       // in the same order
};

/// Checks sequences of which only the name of the type is known.
class SequenceChecker {
 public:
  /// Throws DecodeError if the name is no type. The name must outlive the checker.
  explicit SequenceChecker(std::string_view type) : skipper_(type) {}

  void check(std::string_view sequence) const {
    ByteReader in(std::as_bytes(std::span(sequence)));
    skipper_.skip(in);
    if (in.left() != 0) in.fail("a sequence is longer than it should be");
  }

  /// The sequences of a key, those of its columns in the order of the program.
  std::string arranged(bool live, std::string_view sequences, const ColumnPlaces& columns) const {
    ByteReader in(std::as_bytes(std::span(sequences)));
    const unsigned flags = detail::get_u8(in);
    detail::check_sequence_flags(in, flags, live);
    for (const unsigned part : {has_set, has_erased, has_base}) {
      if ((flags & part) != 0) skipper_.skip(in);
    }
    const std::size_t common = in.offset();
    std::vector<std::string_view> parts;
    if ((flags & has_columns) != 0) {
      if (columns.stored == 0) in.fail("a key has sequences of columns that rows do not have");
      parts.reserve(std::min(columns.stored, sequences.size()));
      for (std::size_t i = 0; i < columns.stored; ++i) {
        const std::size_t from = in.offset();
        if (detail::get_flag(in)) skipper_.skip(in);
        parts.push_back(sequences.substr(from, in.offset() - from));
      }
    }
    if (in.left() != 0) in.fail("more is remembered of a key than its sequences");
    if (columns.same || parts.empty()) return std::string(sequences);
    std::string out(sequences.substr(0, common));
    for (const std::size_t place : columns.places)
      out += place == no_position ? std::string_view("\0", 1) : parts[place];
    return out;
  }

 private:
  TypeSkipper skipper_;
};

}  // namespace keyfold::detail
#endif

// detail/sequence_schema
#ifndef KEYFOLD_SINGLE_DETAIL_SEQUENCE_SCHEMA
#define KEYFOLD_SINGLE_DETAIL_SEQUENCE_SCHEMA

#include <tuple>

/// What files say about the sequences that a table remembers.
namespace keyfold::detail {

enum class SequenceForm : std::uint8_t { none, current, history };

struct SequenceSchema {
  SequenceForm form = SequenceForm::none;
  std::string key{};  // types, as docs/file-format.md writes them
  std::string type{};
  std::vector<std::string> columns{};  // those that sequences of single columns are about, in their order
  bool operator==(const SequenceSchema&) const = default;
};

inline void put_sequence_schema(ByteBuffer& out, const SequenceSchema& schema) {
  detail::put_u8(out, static_cast<std::uint8_t>(schema.form));
  if (schema.form == SequenceForm::none) return;
  detail::put_text(out, schema.key);
  detail::put_text(out, schema.type);
  detail::put_count(out, schema.columns.size());
  for (const std::string& column : schema.columns) detail::put_text(out, column);
}

/// Throws DecodeError.
inline SequenceSchema get_sequence_schema(ByteReader& in) {
  SequenceSchema schema;
  const std::uint8_t form = detail::get_u8(in);
  if (form > static_cast<std::uint8_t>(SequenceForm::history)) in.fail("sequences have an unknown form");
  schema.form = static_cast<SequenceForm>(form);
  if (schema.form == SequenceForm::none) return schema;
  schema.key = detail::get_text(in);
  schema.type = detail::get_text(in);
  for (std::uint32_t left = detail::get_u32(in); left > 0; --left)
    schema.columns.emplace_back(detail::get_text(in));
  return schema;
}

inline void put_optional_text(ByteBuffer& out, const std::optional<std::string>& text) {
  detail::put_u8(out, text ? 1 : 0);
  if (text) detail::put_text(out, *text);
}
inline std::optional<std::string> get_optional_text(ByteReader& in) {
  if (!detail::get_flag(in)) return std::nullopt;
  return std::string(detail::get_text(in));
}

template <class Parts>
struct history_parts {
  static constexpr bool possible = false;
};
template <auto First, auto Second, auto... Rest>
struct history_parts<Parts<First, Second, Rest...>> {
  using entity = typename split_key<Parts<First, Second, Rest...>>::front;
  using from = typename split_key<Parts<First, Second, Rest...>>::last;
  static constexpr bool possible = true;
};

/// The states that a table can have. Only the sequences of current rows may be of any type; those of history
/// rows have that of the last part of the key.
template <class CoreType>
struct SequenceStates {
  using Row = typename CoreType::RowType;
  using KeyParts = typename CoreType::KeyParts;

  using Key = stored_key_t<KeyParts, Row>;
  using Current = AnyCurrentState<Key>;
  using CurrentUpdate = AnyCurrentUpdate<Key>;
  using Stored = CurrentState<Key, StoredSequence>;

  template <class Parts>
  static auto entity_of() {
    if constexpr (history_parts<Parts>::possible) {
      return std::type_identity<stored_key_t<typename history_parts<Parts>::entity, Row>>();
    } else {
      return std::type_identity<std::tuple<>>();
    }
  }
  template <class Parts>
  static auto from_of() {
    if constexpr (history_parts<Parts>::possible) {
      return std::type_identity<
          std::tuple_element_t<0, stored_key_t<typename history_parts<Parts>::from, Row>>>();
    } else {
      return std::type_identity<int>();
    }
  }
  using Entity = typename decltype(entity_of<KeyParts>())::type;
  using From = typename decltype(from_of<KeyParts>())::type;
  using History = HistoryState<Entity, Row, From>;
  using HistoryUpdate = detail::HistoryUpdate<History>;

  static constexpr bool saves_current = SavableSequence<Key>;
  static constexpr bool saves_history = history_parts<KeyParts>::possible && SavableSequence<Entity> &&
                                        SavableSequence<From> && SequencePart<From>;
};

template <auto... Members>
std::vector<std::string> texts_of(MemberList<Members...>) {
  return {std::string(member_name<Members>)...};
}
/// The columns that sequences of single columns are about.
template <class Row>
std::vector<std::string> sequence_columns() {
  if constexpr (HasColumns<Row>) {
    return detail::texts_of(columns_list<Row>{});
  } else {
    return {};
  }
}

}  // namespace keyfold::detail
#endif

/// Reading what apply_changes() remembers. Checksums tell nothing about who wrote a file, so that all is
/// checked that planners rely on: keys, and the events of history rows. Sequences of current rows have a type
/// that only a feed knows; of these it is checked that they are values of the type that the file names.
namespace keyfold::detail {

/// Reads what is remembered of single keys.
template <class CoreType>
class RememberedReader {
 public:
  using Row = typename CoreType::RowType;
  using States = SequenceStates<CoreType>;
  using Key = typename States::Key;
  using Entity = typename States::Entity;
  using From = typename States::From;
  using Current = typename States::Stored::Item;
  using History = typename States::History::Item;

  /// Throws SchemaMismatch if the program's key or, for history rows, its sequence is of another type;
  /// DecodeError.
  RememberedReader(SequenceSchema schema, const RowDecoder<Row>& rows)
      : schema_(std::move(schema)), rows_(rows) {
    const bool history = schema_.form == SequenceForm::history;
    const bool known = history ? States::saves_history : States::saves_current;
    if (!known) refuse_type("<key>", schema_.key, "no key that such sequences are saved with");
    require_type("<key>", schema_.key,
                 history ? detail::sequence_name<Entity>() : detail::sequence_name<Key>());
    if (history) require_type("<sequence>", schema_.type, detail::sequence_name<From>());
    place_columns();
    if (!history) checker_.emplace(schema_.type);
  }
  RememberedReader(const RememberedReader&) = delete;
  RememberedReader& operator=(const RememberedReader&) = delete;

  const SequenceSchema& schema() const noexcept { return schema_; }

  /// Throws DecodeError.
  void check_truncate(const std::string& sequence) const { checker_->check(sequence); }

  template <class AnyKey>
  AnyKey get_key(ByteReader& in) const {
    AnyKey key{};
    Decoder decoder(in);
    std::apply([&](auto&... part) { (decoder.get(part), ...); }, key);
    if (detail::is_nan(key)) in.fail("a key that is remembered is NaN");
    return key;
  }

  /// Requires: States::saves_current.
  std::unique_ptr<Current> get_current(ByteReader& in) const {
    auto key = get_key<Key>(in);
    const std::uint64_t hash = detail::hash_of(key);
    auto item = std::make_unique<Current>(Current{std::move(key), {}, hash});
    auto& value = item->value;
    value.live = detail::get_flag(in);
    if (!value.live) value.erased_at = Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(in)));
    value.bytes = checker_->arranged(value.live, detail::get_text(in), columns_);
    return item;
  }

  /// Requires: States::saves_history.
  std::unique_ptr<History> get_history(ByteReader& in) const {
    auto key = get_key<Entity>(in);
    const std::uint64_t hash = detail::hash_of(key);
    auto item = std::make_unique<History>(History{std::move(key), {}, hash});
    const std::uint32_t count = detail::get_u32(in);
    if (count == 0) in.fail("a key is remembered without events");
    if (count > in.left()) in.fail("more events than the bytes can hold");
    Decoder decoder(in);
    for (std::uint32_t i = 0; i < count; ++i) item->value.push_back(get_event(decoder, item->key));
    check_order(in, item->value);
    return item;
  }

 private:
  using Event = typename States::History::Event;

  static void require_type(const char* of, const std::string& stored, const std::string& present) {
    if (stored != present) refuse_type(of, stored, present);
  }
  [[noreturn]] static void refuse_type(const char* of, const std::string& stored,
                                       const std::string& present) {
    throw SchemaMismatch(
        of, stored, present,
        "load it into a table with the key that was fed, and append its rows to the other one");
  }

  void place_columns() {
    std::vector<std::string> now;
    now.reserve(schema_.columns.size());
    const auto has = [this](std::string_view name) {
      return std::ranges::find(schema_.columns, name) != schema_.columns.end();
    };
    for (const std::string& column : schema_.columns) now.emplace_back(detail::name_now<Row>(column, has));
    const std::vector<std::string> present = detail::sequence_columns<Row>();
    columns_.stored = now.size();
    columns_.same = now == present;
    for (const std::string& column : present) {
      const auto at = std::ranges::find(now, column);
      columns_.places.push_back(at == now.end() ? no_position : static_cast<std::size_t>(at - now.begin()));
    }
  }

  Event get_event(Decoder& decoder, const Entity& key) const {
    ByteReader& in = decoder.in();
    const unsigned flags = detail::get_u8(in);
    const bool has_row = (flags & 1U) != 0;
    if (flags > 7 || (!has_row && flags != 0)) in.fail("an event has unknown flags");
    Event event{detail::get_sequence<From>(decoder), std::nullopt, {}};
    event.folded = (flags & 2U) != 0;
    if (has_row) {
      rows_.read(decoder, event.row.emplace());
      if (!detail::equal_values(history_parts<typename CoreType::KeyParts>::entity::of(*event.row), key))
        in.fail("an event is of another key than that it is remembered for");
    }
    if ((flags & 4U) != 0) event.given = get_given(in);
    return event;
  }

  std::vector<bool> get_given(ByteReader& in) const {
    if (columns_.stored == 0) in.fail("an event tells of columns that rows do not have");
    std::vector<bool> stored;
    stored.reserve(columns_.stored);
    for (std::size_t i = 0; i < columns_.stored; ++i) stored.push_back(detail::get_flag(in));
    std::vector<bool> given;
    given.reserve(columns_.places.size());
    for (const std::size_t place : columns_.places) given.push_back(place != no_position && stored[place]);
    return given;
  }

  static void check_order(ByteReader& in, const std::vector<Event>& events) {
    std::vector<const From*> times;
    for (const Event& event : events) times.push_back(&event.at);
    const auto less = [](const From* a, const From* b) { return detail::less_values(*a, *b); };
    std::ranges::sort(times, less);
    const auto same =
        std::ranges::adjacent_find(times, [&](const From* a, const From* b) { return !less(a, b); });
    if (same != times.end()) in.fail("two events of a key have the same sequence");
  }

  SequenceSchema schema_;
  const RowDecoder<Row>& rows_;
  ColumnPlaces columns_;
  std::optional<SequenceChecker> checker_;
};

/// Reads all that a snapshot remembers.
template <class CoreType>
class RememberedLoader {
 public:
  using Row = typename CoreType::RowType;
  using States = SequenceStates<CoreType>;

  /// The part of the header. Throws as RememberedReader.
  void read_header(ByteReader& in, const RowDecoder<Row>& rows) {
    SequenceSchema schema = detail::get_sequence_schema(in);
    if (schema.form == SequenceForm::none) return;
    reader_.emplace(std::move(schema), rows);
    std::optional<std::string> truncated = detail::get_optional_text(in);
    count_ = detail::get_u64(in);
    if (reader_->schema().form == SequenceForm::history) {
      if (truncated) in.fail("history rows are never truncated");
      history_ = std::make_unique<typename States::History>();
      return;
    }
    current_ = std::make_unique<typename States::Stored>();
    current_->origin.text = reader_->schema().type;
    if (!truncated) return;
    reader_->check_truncate(*truncated);
    current_->truncated = std::make_unique<const StoredSequence>(StoredSequence{std::move(*truncated)});
  }

  /// How many keys there are to read().
  std::uint64_t size() const noexcept { return count_; }

  void read([[maybe_unused]] ByteReader& in) {
    if (current_ != nullptr) {
      if constexpr (States::saves_current) add(in, current_->keys, *current_, reader_->get_current(in));
    } else {
      if constexpr (States::saves_history) add(in, history_->keys, history_->keys, reader_->get_history(in));
    }
  }

  /// All is read: from here on.
  std::unique_ptr<SequenceState> take(const std::string& file, std::uint64_t offset) {
    if (current_ == nullptr) return std::move(history_);
    current_->origin.file = file;
    current_->origin.offset = offset;
    return std::move(current_);
  }

 private:
  template <class Keys, class State, class Item>
  void add(ByteReader& in, Keys& keys, State& state, std::unique_ptr<Item> item) {
    if (keys.find(item->key, item->hash) != nullptr) in.fail("a key is remembered twice");
    keys.reserve_one(item->hash);
    state.add(std::move(item));
  }

  std::optional<RememberedReader<CoreType>> reader_;
  std::uint64_t count_ = 0;
  std::unique_ptr<typename States::Stored> current_;
  std::unique_ptr<typename States::History> history_;
};

}  // namespace keyfold::detail
#endif

// detail/snapshot_writer
#ifndef KEYFOLD_SINGLE_DETAIL_SNAPSHOT_WRITER
#define KEYFOLD_SINGLE_DETAIL_SNAPSHOT_WRITER

// detail/sequence_writer
#ifndef KEYFOLD_SINGLE_DETAIL_SEQUENCE_WRITER
#define KEYFOLD_SINGLE_DETAIL_SEQUENCE_WRITER

/// Writing what apply_changes() remembers: whole for a snapshot, and each change of it for a log.
namespace keyfold::detail {

/// Writes what is remembered of a key.
class RememberedWriter {
 public:
  explicit RememberedWriter(ByteBuffer& out) : out_(out), encoder_(out) {}

  template <class Key>
  void put_key(const Key& key) {
    std::apply([this](const auto&... part) { (encoder_.put(part), ...); }, key);
  }

  template <class Key>
  void put_current(const Key& key, const StoredKey& stored) {
    put_key(key);
    detail::put_u8(out_, stored.live ? 1 : 0);
    if (!stored.live) detail::put_number(out_, std::int64_t{stored.erased_at.time_since_epoch().count()});
    detail::put_count(out_, stored.sequences.size());
    out_.append(stored.sequences.data(), stored.sequences.size());
  }

  template <class Key, class Event>
  void put_history(const Key& key, const std::vector<Event>& events) {
    put_key(key);
    detail::put_count(out_, events.size());
    for (const Event& event : events) {
      const unsigned flags = (event.row ? 1U : 0U) | (event.folded ? 2U : 0U) | (event.complete() ? 0U : 4U);
      detail::put_u8(out_, static_cast<std::uint8_t>(flags));
      encoder_.put(event.at);
      if (event.row) encoder_.put(*event.row);
      for (const bool given : event.given) detail::put_u8(out_, given ? 1 : 0);
    }
  }

 private:
  ByteBuffer& out_;
  Encoder encoder_;
};

/// All that a table remembers, as a snapshot has it. The same state gives the same bytes: tombstones stand in
/// the order in which they came, all else in the order of its bytes.
template <class CoreType>
class RememberedState {
 public:
  using States = SequenceStates<CoreType>;

  /// Throws UnsavableSequence, and what a user's serialize() throws.
  explicit RememberedState(const SequenceState* state) {
    if (state == nullptr) return;
    schema_.columns = detail::sequence_columns<typename CoreType::RowType>();
    if (!take_current(*state) && !take_history(*state)) throw UnsavableSequence();
  }

  void put_header(ByteBuffer& out) const {
    detail::put_sequence_schema(out, schema_);
    if (schema_.form == SequenceForm::none) return;
    detail::put_optional_text(out, truncated_);
    detail::put_u64(out, items_.size());
  }

  std::size_t size() const noexcept { return items_.size(); }
  std::span<const std::byte> operator[](std::size_t i) const noexcept {
    return bytes_.bytes().subspan(items_[i].offset, items_[i].size);
  }

 private:
  struct Item {
    std::size_t offset;
    std::size_t size;
    std::uint64_t start;  // its first bytes, which tell most of them apart
  };

  bool take_current(const SequenceState& state) {
    if constexpr (States::saves_current) {
      const auto* const current = dynamic_cast<const typename States::Current*>(&state);
      if (current != nullptr) take(*current);
      return current != nullptr;
    }
    return false;
  }
  bool take_history(const SequenceState& state) {
    if constexpr (States::saves_history) {
      const auto* const history = dynamic_cast<const typename States::History*>(&state);
      if (history != nullptr) take(*history);
      return history != nullptr;
    }
    return false;
  }

  void take(const typename States::Current& current) {
    schema_.form = SequenceForm::current;
    schema_.key = detail::sequence_text<typename States::Key>();
    schema_.type = current.type();
    truncated_ = current.stored_truncate();
    items_.reserve(current.size());
    RememberedWriter writer(bytes_);
    std::size_t tombstones = 0;
    current.for_each_stored([&](const auto& key, const StoredKey& stored) {
      const std::size_t offset = bytes_.size();
      writer.put_current(key, stored);
      end_item(offset);
      if (!stored.live) ++tombstones;
    });
    sort_from(tombstones);
  }

  void take(const typename States::History& history) {
    schema_.form = SequenceForm::history;
    schema_.key = detail::sequence_text<typename States::Entity>();
    schema_.type = detail::sequence_text<typename States::From>();
    items_.reserve(history.keys.size());
    RememberedWriter writer(bytes_);
    history.keys.for_each([&](const auto& item) {
      const std::size_t offset = bytes_.size();
      writer.put_history(item.key, item.value);
      end_item(offset);
    });
    sort_from(0);
  }

  void end_item(std::size_t offset) {
    std::uint64_t start = 0;
    const std::size_t size = bytes_.size() - offset;
    for (std::size_t i = 0; i < sizeof start; ++i)
      start = start << 8U | (i < size ? std::to_integer<std::uint64_t>(bytes_.data()[offset + i]) : 0U);
    items_.push_back({offset, size, start});
  }

  void sort_from(std::size_t first) {
    std::sort(items_.begin() + static_cast<std::ptrdiff_t>(first), items_.end(),
              [this](const Item& a, const Item& b) {
                if (a.start != b.start) return a.start < b.start;
                const int order =
                    std::memcmp(bytes_.data() + a.offset, bytes_.data() + b.offset, std::min(a.size, b.size));
                return order != 0 ? order < 0 : a.size < b.size;
              });
  }

  SequenceSchema schema_;
  std::optional<std::string> truncated_;
  ByteBuffer bytes_;
  std::vector<Item> items_;
};

template <class CoreType>
bool put_current_update(ByteBuffer& out, const typename SequenceStates<CoreType>::CurrentUpdate& update) {
  using States = SequenceStates<CoreType>;
  const std::optional<std::string> truncated = update.stored_truncate();
  const bool forgets = update.keep != static_cast<std::size_t>(-1) || update.keep_since != Timestamp::min();
  if (update.size() == 0 && !truncated && !forgets) return false;
  SequenceSchema schema{
      SequenceForm::current, detail::sequence_text<typename States::Key>(), update.type(), {}};
  if (update.has_columns()) schema.columns = detail::sequence_columns<typename CoreType::RowType>();
  detail::put_sequence_schema(out, schema);
  detail::put_optional_text(out, truncated);
  detail::put_u64(out, update.keep);
  detail::put_number(out, std::int64_t{update.keep_since.time_since_epoch().count()});
  detail::put_u64(out, update.size());
  RememberedWriter writer(out);
  update.for_each_stored([&](const auto& key, const StoredKey* stored) {
    detail::put_u8(out, stored != nullptr ? 1 : 0);
    stored != nullptr ? writer.put_current(key, *stored) : writer.put_key(key);
  });
  return true;
}

template <class CoreType>
bool put_history_update(ByteBuffer& out, const typename SequenceStates<CoreType>::HistoryUpdate& update) {
  using States = SequenceStates<CoreType>;
  if (update.changes.empty()) return false;
  detail::put_sequence_schema(out, {SequenceForm::history, detail::sequence_text<typename States::Entity>(),
                                    detail::sequence_text<typename States::From>(),
                                    detail::sequence_columns<typename CoreType::RowType>()});
  detail::put_u64(out, update.changes.size());
  RememberedWriter writer(out);
  for (const auto& change : update.changes) {
    detail::put_u8(out, change.fresh != nullptr ? 1 : 0);
    change.fresh != nullptr ? writer.put_history(change.fresh->key, change.fresh->value)
                            : writer.put_key(change.old->key);
  }
  return true;
}

/// What a load changes, as a log has it. Returns false, and writes nothing, if there is nothing to say.
/// Throws as RememberedState.
template <class CoreType>
bool put_sequence_update(ByteBuffer& out, const SequenceUpdate& update) {
  using States = SequenceStates<CoreType>;
  if constexpr (States::saves_current) {
    if (const auto* const current = dynamic_cast<const typename States::CurrentUpdate*>(&update))
      return detail::put_current_update<CoreType>(out, *current);
  }
  if constexpr (States::saves_history) {
    if (const auto* const history = dynamic_cast<const typename States::HistoryUpdate*>(&update))
      return detail::put_history_update<CoreType>(out, *history);
  }
  throw UnsavableSequence();
}

}  // namespace keyfold::detail
#endif

#include <cassert>
#include <functional>

/// Writing a table with its history. Changes are numbered in the order of the log, and whatever leads down to
/// a change, a row or a later change of its key, names it by its number.
namespace keyfold::detail {

/// Called with the rows done and the rows in all; returns whether to go on. May be empty.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

enum class ParametersAre : std::uint8_t { absent, text, those_before };

template <auto... Members>
std::vector<std::string> key_names(Parts<Members...>) {
  return {std::string(member_name<Members>)...};
}

template <auto Member, auto... Columns>
consteval bool is_among(MemberList<Columns...>) {
  return (std::is_same_v<Parts<Member>, Parts<Columns>> || ...);
}

/// A part of a key that is not among the columns would be lost with the row it belongs to.
template <class Row, auto Member>
consteval bool is_saved() {
  if constexpr (codec_kind_v<Row> == CodecKind::record && std::is_member_object_pointer_v<decltype(Member)>) {
    return detail::is_among<Member>(columns_list<Row>{});
  } else {
    return true;
  }
}

template <class Row, auto... Members>
consteval bool are_saved(Parts<Members...>) {
  return (detail::is_saved<Row, Members>() && ...);
}

template <class Row, class KeySpec, class... Indexes>
void require_keys_saved(const Core<Row, KeySpec, Indexes...>&) {
  static_assert(
      detail::are_saved<Row>(parts_of<KeySpec>{}) && (detail::are_saved<Row>(parts_of<Indexes>{}) && ...),
      "keyfold: a member of the key or of an index is not in the column list, so that it would not be "
      "saved; list it");
}

/// The numbers of the entries of a log, found by their addresses.
template <class Row>
class EntryNumbers {
 public:
  using Entry = LogEntry<Row>;

  explicit EntryNumbers(const CommitLog<Row>& log) {
    for (const LogBlock<Row>& block : log.retired) add(block);
    for (const CommitRecord<Row>& record : log.records) add(record.block);
    std::ranges::sort(ranges_, std::less<>(), &Range::first);
  }

  std::uint64_t size() const noexcept { return size_; }

  /// Requires: an entry of the log.
  std::uint64_t operator()(const Entry* entry) const noexcept {
    const auto* const address = reinterpret_cast<const std::byte*>(entry);
    if (!holds(last_, address)) {
      const auto above = std::ranges::upper_bound(ranges_, address, std::less<>(), &Range::first);
      last_ = static_cast<std::size_t>(above - ranges_.begin()) - 1;
    }
    const Range& range = ranges_[last_];
    const auto offset = static_cast<std::size_t>(address - range.first);
    if (range.size_of_each != 0) return range.number + offset / range.size_of_each;
    const auto at = std::ranges::lower_bound(range.offsets, offset);
    assert(at != range.offsets.end() && *at == offset);
    return range.number + static_cast<std::uint64_t>(at - range.offsets.begin());
  }

 private:
  struct Range {
    const std::byte* first;
    const std::byte* end;
    std::uint64_t number;              // of its first entry
    std::size_t size_of_each;          // 0: they differ in size
    std::vector<std::size_t> offsets;  // if they do
  };

  bool holds(std::size_t range, const std::byte* address) const noexcept {
    return range < ranges_.size() && !std::less<>()(address, ranges_[range].first) &&
           std::less<>()(address, ranges_[range].end);
  }

  void add(const LogBlock<Row>& block) {
    if (block.first() == nullptr) return;
    const EntryCounts& counts = block.counts();
    const auto* const first = reinterpret_cast<const std::byte*>(block.first());
    const std::size_t size = block.first()->size();
    Range range{first, first + LogBlock<Row>::bytes_of(counts), size_, counts.are_alike() ? size : 0, {}};
    if (range.size_of_each == 0) {
      range.offsets.reserve(counts.all());
      for (const auto* entry = block.first(); entry != nullptr; entry = block.next(entry))
        range.offsets.push_back(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(entry) - first));
    }
    ranges_.push_back(std::move(range));
    size_ += counts.all();
  }

  std::vector<Range> ranges_;
  std::uint64_t size_ = 0;
  mutable std::size_t last_ = 0;  // where the entry asked for last was
};

/// Writes one snapshot to `sink(std::span<const std::byte>)`.
template <class CoreType, class Sink>
class SnapshotWriter {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;

  SnapshotWriter(const CoreType& core, Sink& sink, const Progress& progress)
      : core_(core),
        log_(*core.log),
        progress_(progress),
        numbers_(log_),
        remembered_(core.sequences.get()),
        chunks_(sink),
        encoder_(chunks_.buffer()) {}

  void run() {
    tell_progress();
    put_header();
    chunks_.flush(ChunkKind::header);
    for (const LogBlock<Row>& block : log_.retired) {
      put_counts(block);
      end_element();
      put_entries<true>(block);
    }
    for (const CommitRecord<Row>& record : log_.records) {
      put_record(record);
      end_element();
      put_entries<false>(record.block);
    }
    put_rows();
    put_names(core_.tags);
    put_names(core_.applied);
    put_remembered();
    chunks_.flush(ChunkKind::data);
    tell_progress();
    chunks_.finish();
  }

 private:
  static constexpr std::size_t prefetch_distance = 12;  // rows

  ByteBuffer& out() noexcept { return chunks_.buffer(); }

  void end_element() {
    if (!chunks_.is_full()) return;
    chunks_.flush(ChunkKind::data);
    tell_progress();
  }

  void tell_progress() {
    if (!progress_) return;
    const auto state = [this] { return std::tuple(core_.version(), log_.oldest, core_.tags.size()); };
    const auto before = state();
    if (!progress_(rows_done_, core_.rows.size())) throw Cancelled("save()");
    if (state() != before)
      throw Error("the progress callback wrote to the table that is saved; nothing was saved");
  }

  void put_time(const std::optional<Timestamp>& time) {
    detail::put_u8(out(), time ? 1 : 0);
    detail::put_number(out(), time ? std::int64_t{time->time_since_epoch().count()} : std::int64_t{0});
  }

  void put_header() {
    detail::put_schema(out(), detail::schema_of<Row>());
    detail::put_u8(out(), CoreType::ordered ? 1 : 0);
    const auto key = detail::key_names(typename CoreType::KeyParts{});
    detail::put_count(out(), key.size());
    for (const std::string& name : key) detail::put_text(out(), name);
    const bool empty_version_pinned = !log_.pinned.empty() && log_.pinned.front() == 0;
    detail::put_u64(out(), log_.latest());
    detail::put_u64(out(), log_.oldest);
    detail::put_u8(out(), empty_version_pinned ? 1 : 0);
    put_time(log_.first_commit);
    put_time(log_.last_expired);
    detail::put_u64(out(), core_.next_order);
    for (const std::uint64_t count : {std::uint64_t{log_.retired.size()}, std::uint64_t{log_.records.size()},
                                      numbers_.size(), std::uint64_t{core_.rows.size()},
                                      std::uint64_t{core_.tags.size()}, std::uint64_t{core_.applied.size()}})
      detail::put_u64(out(), count);
    remembered_.put_header(out());
  }

  void put_counts(const LogBlock<Row>& block) {
    const EntryCounts& counts = block.counts();
    detail::put_u64(out(), counts.firsts + counts.bare);
    detail::put_u64(out(), counts.images);
  }

  void put_record(const CommitRecord<Row>& record) {
    detail::put_u64(out(), record.version);
    detail::put_number(out(), std::int64_t{record.timestamp.time_since_epoch().count()});
    detail::put_text(out(), record.operation);
    put_parameters(record.parameters);
    detail::put_u8(out(), record.metadata ? 1 : 0);
    if (record.metadata) detail::put_text(out(), *record.metadata);
    const Metrics metrics = record.metrics.get();
    for (const auto field : metric_fields) detail::put_u64(out(), metrics.*field);
    detail::put_u64(out(), record.table_size);
    put_counts(record.block);
  }

  void put_parameters(const SharedText& parameters) {
    using enum ParametersAre;
    const bool repeated = parameters && parameters_ != nullptr && *parameters == *parameters_;
    const auto form = !parameters ? absent : repeated ? those_before : text;
    detail::put_u8(out(), static_cast<std::uint8_t>(form));
    if (form == text) detail::put_text(out(), *parameters);
    if (parameters) parameters_ = &*parameters;
  }

  std::uint64_t reference_to(const Entry* entry) const noexcept {
    return entry == nullptr ? 0 : numbers_(entry) + 1;
  }

  template <bool is_retired>
  void put_entries(const LogBlock<Row>& block) {
    constexpr std::size_t largest = 1 + 3 * sizeof(std::uint64_t);
    for (const Entry* entry = block.first(); entry != nullptr; entry = block.next(entry)) {
      detail::prefetch(reinterpret_cast<const std::byte*>(entry) + prefetch_distance * Entry::image_size);
      std::byte* const start = out().extend(largest);
      *start = static_cast<std::byte>(entry->kind());
      std::byte* to = put_number(start + 1, reference_to(entry->older()));
      if constexpr (is_retired) to = put_number(to, entry->version());
      if (!entry->leaves_row()) to = put_number(to, entry->order());
      out().truncate(out().size() - (largest - static_cast<std::size_t>(to - start)));
      if (entry->has_before()) encoder_.put(entry->before().get());
      end_element();
    }
  }

  void put_rows() {
    const Slot<Row>* previous = nullptr;
    for (const Slot<Row>& slot : core_.rows) {
      if (previous != nullptr) prefetch_ahead(*previous, slot);
      previous = &slot;
      if constexpr (FixedSize<Row>) {
        std::byte* to = out().extend(detail::encoded_size<Row>() + 2 * sizeof(std::uint64_t));
        put_links(detail::put_fixed(to, slot.get()), slot);
      } else {
        encoder_.put(slot.get());
        put_links(out().extend(2 * sizeof(std::uint64_t)), slot);
      }
      ++rows_done_;
      end_element();
    }
  }
  // Rows that came one after the other mostly lie so in memory; then this saves waiting for each of them. A
  // wrong guess is harmless.
  static void prefetch_ahead(const Slot<Row>& previous, const Slot<Row>& slot) noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(&slot);
    const auto there = here + prefetch_distance * (here - reinterpret_cast<std::uintptr_t>(&previous));
    detail::prefetch(reinterpret_cast<const void*>(there));
    detail::prefetch(reinterpret_cast<const void*>(there + sizeof slot));
  }
  void put_links(std::byte* to, const Slot<Row>& slot) {
    put_number(put_number(to, reference_to(slot.newest)), slot.order);
  }

  static std::byte* put_number(std::byte* to, std::uint64_t number) noexcept {
    detail::store_number(to, number);
    return to + sizeof number;
  }

  template <class Names>
  void put_names(const Names& names) {
    for (const auto& [name, number] : names) {
      detail::put_text(out(), name);
      detail::put_u64(out(), number);
      end_element();
    }
  }

  void put_remembered() {
    for (std::size_t i = 0; i < remembered_.size(); ++i) {
      out().append(remembered_[i].data(), remembered_[i].size());
      end_element();
    }
  }

  const CoreType& core_;
  const CommitLog<Row>& log_;
  const Progress& progress_;
  EntryNumbers<Row> numbers_;
  RememberedState<CoreType> remembered_;
  ChunkWriter<Sink> chunks_;
  Encoder encoder_;
  const std::string* parameters_ = nullptr;
  std::uint64_t rows_done_ = 0;
};

/// Writes a table to `sink(std::span<const std::byte>)`. Throws what the sink throws, Cancelled,
/// UnsavableSequence, Error for a value that could not be loaded, and what a user's serialize() and progress
/// callback throw.
template <class CoreType, class Sink>
void write_snapshot(const CoreType& core, Sink&& sink, const Progress& progress = {}) {
  detail::require_keys_saved(core);
  // Who reads a shared table may save it while another thread plans a write.
  if (core.log->readers == nullptr && core.writing)
    throw Error("a table cannot be saved in the middle of a write to it; save it afterwards");
  SnapshotWriter<CoreType, std::remove_reference_t<Sink>>(core, sink, progress).run();
}

}  // namespace keyfold::detail
#endif

/// Reading a table with its history into a core that nobody sees before it is whole. Checksums only tell that
/// bytes are those that were written; so everything that later code relies on is checked besides.
namespace keyfold::detail {

template <class CoreType, class Source>
class SnapshotReader {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;
  using Block = LogBlock<Row>;

  SnapshotReader(Source& source, std::string file, TableOptions options, const Progress& progress)
      : core_(std::make_unique<CoreType>(std::move(options), &detail::apply_retention<CoreType>)),
        log_(*core_->log),
        progress_(progress),
        chunks_(source, std::move(file)) {}

  std::unique_ptr<CoreType> run() {
    try {
      read();
      return std::move(core_);
    } catch (const DecodeError& error) {
      throw CorruptSnapshot(chunks_.file(), chunks_.offset_of(error.offset), error.what());
    }
  }

 private:
  struct Header {
    std::uint64_t latest, oldest, retired, records, entries, rows, tags, applied;
    bool empty_version_pinned;
  };

  /// An entry, by its number, and what it says of the one below it.
  struct Link {
    std::size_t entry;
    std::uint64_t older;
  };

  static constexpr std::size_t least_entry = 9;       // kind, older
  static constexpr std::size_t least_remembered = 5;  // without the key
  static constexpr std::uint64_t min_keys_at_once = 65536;

  void read() {
    read_header();
    read_log();
    link_entries();
    check_log();
    read_rows();
    find_graves();
    check_secondaries(std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>());
    read_names();
    read_remembered();
    chunks_.finish();
    core_->subscribers->skip_to(log_.latest());
  }

  ByteReader& element() {
    in_ = &chunks_.element();
    return *in_;
  }
  [[noreturn]] void fail(const std::string& what_is_wrong) const { in_->fail(what_is_wrong); }
  [[noreturn]] [[gnu::noinline]] void fail(const char* what_is_wrong) const { in_->fail(what_is_wrong); }
  void require(bool holds, const char* what_is_wrong) const {
    if (!holds) fail(what_is_wrong);
  }

  // A number of things that take so many bytes each, at the least.
  std::uint64_t get_number_of_things(std::size_t bytes) {
    const std::uint64_t count = detail::get_u64(*in_);
    require(count <= chunks_.left() / bytes, "more is told than the bytes can hold");
    return count;
  }

  std::optional<Timestamp> get_time() {
    const bool is_there = detail::get_flag(*in_);
    const auto time = get_timestamp();
    return is_there ? std::optional(time) : std::nullopt;
  }
  Timestamp get_timestamp() { return Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(*in_))); }

  // --- The header

  void read_header() {
    in_ = &chunks_.header();
    ByteReader& in = *in_;
    const StoredSchema schema = detail::get_schema(in);
    rows_.emplace(schema);
    check_key(in, schema);
    header_.latest = detail::get_u64(in);
    header_.oldest = log_.oldest = detail::get_u64(in);
    header_.empty_version_pinned = detail::get_flag(in);
    log_.first_commit = get_time();
    log_.last_expired = get_time();
    core_->next_order = detail::get_u64(in);
    header_.retired = get_number_of_things(2 * sizeof(std::uint64_t));
    header_.records = get_number_of_things(1);
    header_.entries = get_number_of_things(least_entry);
    header_.rows = get_number_of_things(2 * sizeof(std::uint64_t) + rows_->least_size());
    header_.tags = get_number_of_things(12);
    header_.applied = get_number_of_things(12);
    remembered_.read_header(in, *rows_);
    require(remembered_.size() <= chunks_.left() / least_remembered, "more is told than the bytes can hold");
    require(in.left() == 0, "more is there than was told");
    require(header_.oldest <= header_.latest, "its oldest version is later than its latest");
    require(header_.latest < std::uint64_t{1} << 60U, "a version is too large");
    require(core_->next_order < std::uint64_t{1} << 60U, "a row's place in their order is too large");
  }

  void check_key(ByteReader& in, const StoredSchema& schema) {
    const bool ordered = detail::get_flag(in);
    std::vector<std::string> names;
    std::uint32_t count = detail::get_u32(in);
    for (; count > 0; --count)
      names.emplace_back(detail::name_now<Row>(detail::get_text(in), detail::has_column(schema)));
    const auto present = detail::key_names(typename CoreType::KeyParts{});
    if (ordered == CoreType::ordered && names == present) return;
    throw SchemaMismatch("<key>", key_text(ordered, names), key_text(CoreType::ordered, present),
                         "load it into a table with the key it has, and append its rows to the other one");
  }
  static std::string key_text(bool ordered, const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
    return (ordered ? "OrderedKey(" : "Key(") + out + ')';
  }

  // --- The log

  void read_log() {
    entries_.reserve(header_.entries);
    log_.retired.reserve(header_.retired);
    for (std::uint64_t i = 0; i < header_.retired; ++i) {
      element();
      log_.retired.push_back(read_block(std::nullopt));
    }
    for (std::uint64_t i = 0; i < header_.records; ++i) {
      read_record();
      CommitRecord<Row>& record = log_.records.back();
      record.block = read_block(record.version);
      record.has_changes = record.version >= log_.oldest;
      require(record.has_changes || record.block.first() == nullptr, "an expired version has changes");
      log_.record_bytes += record.block.bytes();
    }
    for (const Block& block : log_.retired) log_.swept += block.bytes();
    if (entries_.size() != header_.entries) chunks_.fail("it has another number of changes than was told");
  }

  void read_record() {
    ByteReader& in = element();
    CommitRecord<Row> record;
    record.version = detail::get_u64(in);
    record.timestamp = get_timestamp();
    record.operation = stored_operation(detail::get_text(in));
    record.parameters = get_parameters();
    if (detail::get_flag(in)) record.metadata = SharedText(std::string(detail::get_text(in)));
    Metrics metrics;
    for (const auto field : metric_fields) metrics.*field = static_cast<std::size_t>(detail::get_u64(in));
    record.metrics = metrics;
    record.table_size = static_cast<std::size_t>(detail::get_u64(in));
    log_.records.push_back(std::move(record));
  }

  std::string_view stored_operation(std::string_view text) {
    for (const auto& known : log_.operations) {
      if (*known == text) return *known;
    }
    require(log_.operations.size() < 256, "its commits have too many operations");
    return *log_.operations.emplace_back(std::make_shared<const std::string>(text));
  }

  SharedText get_parameters() {
    switch (static_cast<ParametersAre>(detail::get_u8(*in_))) {
      case ParametersAre::absent:
        return {};
      case ParametersAre::text:
        return parameters_ = SharedText(std::string(detail::get_text(*in_)));
      case ParametersAre::those_before:
        require(static_cast<bool>(parameters_), "parameters refer to others that are not there");
        return parameters_;
    }
    fail("parameters have an unknown form");
  }

  // A block of a commit has its version; in a retired one each entry has its own.
  Block read_block(std::optional<Version> version) {
    std::uint64_t bare = get_number_of_things(least_entry);
    std::uint64_t images = get_number_of_things(least_entry + rows_->least_size());
    require(bare + images <= header_.entries - entries_.size(), "it has more changes than was told");
    const bool has_bare = bare > 0;  // some of which may be smaller, as first entries
    Block block(has_bare ? scratch_ : log_.arena, {.bare = bare, .images = images});
    const std::size_t first = entries_.size();
    while (bare + images > 0) read_entry(block, version, bare, images);
    check_key_changes(first);
    return !has_bare || may_stay(block) ? std::move(block) : settle(block, first);
  }

  // A copy of a block of little but images takes more memory than it saves.
  static bool may_stay(const Block& block) noexcept {
    const std::size_t unused = block.bytes() - Block::bytes_of(block.counts());
    return Arena::has_own_segment(block.bytes()) && unused <= block.bytes() / 8;
  }

  Block settle(Block& block, std::size_t number) {
    Block settled(log_.arena, block.counts());
    for (Entry* entry = block.first(); entry != nullptr; entry = block.next(entry))
      entries_[number++] = settled.take_over(*entry);
    return settled;
  }

  void read_entry(Block& block, std::optional<Version> block_version, std::uint64_t& bare,
                  std::uint64_t& images) {
    ByteReader& in = element();
    const std::uint8_t number = detail::get_u8(in);
    require(number <= static_cast<std::uint8_t>(LogKind::rekey_in), "a change has an unknown kind");
    const auto kind = static_cast<LogKind>(number);
    const std::uint64_t older = detail::get_u64(in);
    if (older != 0) links_.push_back({entries_.size(), older});
    const Version version = block_version ? *block_version : detail::get_u64(in);
    require(version > 0 && (block_version || version < log_.oldest), "a change has an impossible version");
    const bool has_before = kind != LogKind::insert && kind != LogKind::rekey_in;
    const bool leaves_row = kind != LogKind::erase && kind != LogKind::rekey_out;
    const std::uint64_t order = leaves_row ? 0 : get_order();
    std::uint64_t& left = has_before ? images : bare;
    require(left > 0, "a commit has more changes than was told");
    --left;
    const bool is_first = kind == LogKind::insert && older == 0;
    Entry* const entry = has_before ? block.add(kind, version, nullptr, get_row())
                         : is_first ? block.add_first(version)
                                    : block.add(kind, version, nullptr);
    if (!leaves_row) entry->set_order(order);
    entries_.push_back(entry);
  }

  std::uint64_t get_order() {
    const std::uint64_t order = detail::get_u64(*in_);
    require(order < core_->next_order, "a row has a place beyond the last one");
    return order;
  }

  Holder<Row> get_row() {
    Row row{};
    if (decoder_ == nullptr) decoder_ = std::make_unique<Decoder>(*in_);
    rows_->read(*decoder_, row);
    if (detail::is_nan(CoreType::key_of(row))) fail("the key of a row is NaN");
    return Holder<Row>(std::move(row));
  }

  // A row leaves its key and arrives at another one in two entries, one after the other.
  void check_key_changes(std::size_t first) const {
    for (std::size_t i = first; i <= entries_.size(); ++i) {
      const bool arrives = i < entries_.size() && entries_[i]->kind() == LogKind::rekey_in;
      const bool left = i > first && entries_[i - 1]->kind() == LogKind::rekey_out;
      require(arrives == left, "half of a key change is missing");
    }
  }

  // --- Chains

  Entry* take_below(std::uint64_t reference) {
    require(reference <= entries_.size(), "a change is referred to that is not there");
    const std::size_t number = static_cast<std::size_t>(reference) - 1;
    require(!reached_[number], "a change is referred to twice");
    reached_[number] = true;
    return entries_[number];
  }

  // An end of a life can stand below a row only where expiry took what was between.
  bool may_stand_below_row(const Entry& entry) const noexcept {
    return entry.leaves_row() || entry.version() < log_.oldest;
  }

  void link_entries() {
    reached_.resize(entries_.size());
    for (const Link& link : links_) {
      Entry& entry = *entries_[link.entry];
      Entry& older = *take_below(link.older);
      if (entry.has_before()) {
        require(older.version() < entry.version() && may_stand_below_row(older),
                "changes of a key do not fit");
      } else {
        require(older.version() <= entry.version() && !older.leaves_row(), "changes of a key do not fit");
      }
      entry.set_older(&older);
      if (older.leaves_row()) older.set_newer(&entry);
    }
    links_ = {};
  }

  void check_log() {
    const auto& records = log_.records;
    if (header_.empty_version_pinned) log_.pinned.push_back(0);
    Version expected = std::max<Version>(log_.oldest, 1);  // from here on there is one for each version
    for (std::size_t i = 0; i < records.size(); ++i) {
      const CommitRecord<Row>& record = records[i];
      if (i > 0) {
        require(record.version > records[i - 1].version, "versions do not ascend");
        require(record.timestamp >= records[i - 1].timestamp, "times do not ascend");
      }
      if (record.version < log_.oldest) {
        require(record.version > 0, "version 0 has a commit");
        log_.pinned.push_back(record.version);
      } else {
        require(record.version == expected++, "a version is missing");
      }
    }
    require(expected == header_.latest + 1 || header_.latest == 0, "a version is missing");
    require(log_.latest() == header_.latest, "it has another latest version than was told");
    require(log_.oldest > 0 || !header_.empty_version_pinned, "version 0 is kept twice");
    const bool has_first = log_.first_commit.has_value();
    require(has_first == !records.empty(), "the time of the first commit is missing");
    require(!has_first || *log_.first_commit <= records.front().timestamp, "times do not ascend");
    check_sizes();
  }

  // From the present back, as far as all changes are there; before that there cannot be more rows than keys.
  void check_sizes() {
    std::uint64_t size = header_.rows;
    for (auto record = log_.records.rbegin(); record != log_.records.rend(); ++record) {
      if (!record->has_changes) {
        require(record->table_size <= header_.rows + header_.entries,
                "a version has more rows than there are");
        continue;
      }
      require(record->table_size == size, "a version has another number of rows than was told");
      std::array<std::size_t, 5> kinds{};
      for (const auto* entry = record->block.first(); entry != nullptr; entry = record->block.next(entry))
        ++kinds[static_cast<std::size_t>(entry->kind())];
      const auto [inserts, updates, erases, departures, arrivals] = kinds;
      const Metrics metrics = record->metrics.get();
      require(metrics.inserted == inserts && metrics.updated == updates + departures &&
                  metrics.deleted == erases && departures == arrivals,
              "the counts of a version are not those of its changes");
      size += erases;
      size -= inserts;
      require(size <= header_.rows + header_.entries, "a version has more rows than there are");
    }
    require(log_.oldest > 0 || size == 0, "version 0 has rows");
  }

  // --- Rows

  void read_rows() {
    core_->keys.presize(header_.rows);
    keyless_.reserve(
        std::clamp<std::uint64_t>(header_.rows, 1, std::max(min_keys_at_once, header_.rows / 8)));
    sorted_.resize(keyless_.capacity());
    std::uint64_t least_order = 0;
    for (std::uint64_t done = 0; done < header_.rows;) {
      tell_progress(done);
      const std::uint64_t stop = std::min<std::uint64_t>(header_.rows, done + 4096);
      for (; done < stop; ++done) read_row(least_order);
    }
    index_keys();
    keyless_ = {};
    sorted_ = {};
    tell_progress(header_.rows);
  }

  void tell_progress(std::uint64_t done) const {
    if (progress_ && !progress_(done, header_.rows)) throw Cancelled("load()");
  }

  void read_row(std::uint64_t& least_order) {
    ByteReader& in = element();
    const Slot<Row>& slot = *detail::add_slot(*core_, get_row());
    const std::uint64_t newest = detail::get_u64(in);
    slot.order = get_order();
    if constexpr (!CoreType::ordered) {
      require(slot.order >= least_order, "rows are not in their order");
      least_order = slot.order + 1;
    }
    if (newest != 0) {
      Entry* const entry = take_below(newest);
      require(may_stand_below_row(*entry), "the last change of a row took it away");
      slot.newest = entry;
      if (entry->leaves_row()) entry->set_newer(&slot);
    } else {
      require(log_.oldest > 0, "a row has come without a change");
    }
    const auto key = CoreType::key_of(slot.get());
    check_chain(key, slot.newest);
    keyless_.push_back({detail::hash_of(key), &slot});
    if (keyless_.size() == keyless_.capacity()) index_keys();
  }

  // Rows enter the index of keys many at a time.
  void index_keys() {
    const auto is_same = [](const Slot<Row>& a, const Slot<Row>& b) {
      return detail::equal_values(CoreType::key_of(a.get()), CoreType::key_of(b.get()));
    };
    const Slot<Row>* const twice = core_->keys.add_new(keyless_, sorted_, is_same);
    if (twice != nullptr)
      fail("the key " + detail::key_text(CoreType::key_of(twice->get())) + " is there twice");
    keyless_.clear();
  }

  // --- What the rows and the log make together

  // The changes that nothing leads to are the last ones of keys without a row.
  void find_graves() {
    const auto graves = static_cast<std::size_t>(std::ranges::count(reached_, false));
    core_->graves.presize(graves);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (reached_[i]) continue;
      Entry& entry = *entries_[i];
      require(!entry.leaves_row(), "a change leaves a row that is not there");
      const auto key = CoreType::key_of(entry.before().get());
      const std::uint64_t hash = detail::hash_of(key);
      require(core_->newest_change(key, hash) == nullptr && core_->find(key, hash) == nullptr,
              "a key has two lives at once");
      core_->graves.add(hash, &entry);
      check_chain(key, &entry);
    }
  }

  template <class Key>
  void check_chain(const Key& key, const Entry* newest) const {
    for (const Entry* entry = newest; entry != nullptr; entry = entry->older()) {
      if (entry->has_before()) {
        require(detail::equal_values(CoreType::key_of(entry->before().get()), key),
                "changes of different keys are linked");
      }
      const bool begins = entry->older() == nullptr && !entry->has_before();
      require(entry->older() != nullptr || begins || log_.oldest > 0, "a row has come without a change");
    }
  }

  template <std::size_t... N>
  void check_secondaries(std::index_sequence<N...>) const {
    (check_secondary<N>(), ...);
  }

  // Equal rows stand beside each other in an index.
  template <std::size_t N>
  void check_secondary() const {
    using Spec = std::tuple_element_t<N, typename CoreType::Indexes>;
    using KeyOf = parts_of<Spec>;
    if constexpr (spec_traits<Spec>::unique) {
      const Row* previous = nullptr;
      for (const Slot<Row>& slot : core_->template secondary<N>()) {
        const Row& row = slot.get();
        const auto key = KeyOf::of(row);
        if (previous != nullptr && !detail::has_empty_part(key) &&
            detail::equal_values(KeyOf::of(*previous), key)) {
          throw UniqueViolation("two rows of the snapshot have the unique " + KeyOf::name() + " = " +
                                    detail::key_text(key) + "; load it into a table without that constraint",
                                KeyOf::name(), detail::key_text(key), no_position, no_position);
        }
        previous = &row;
      }
    }
  }

  void read_names() {
    for (std::uint64_t i = 0; i < header_.tags; ++i) {
      std::string name(detail::get_text(element()));
      const Version version = detail::get_u64(*in_);
      require(log_.readable(version), "a tag is on a version that cannot be read");
      require(core_->tags.try_emplace(std::move(name), version).second, "a tag is there twice");
    }
    for (std::uint64_t i = 0; i < header_.applied; ++i) {
      std::string app(detail::get_text(element()));
      const std::uint64_t number = detail::get_u64(*in_);
      require(core_->applied.try_emplace(std::move(app), number).second, "an application is there twice");
    }
  }

  void read_remembered() {
    for (std::uint64_t i = 0; i < remembered_.size(); ++i) remembered_.read(element());
    core_->sequences = remembered_.take(chunks_.file(), chunks_.offset_of(in_->offset()));
  }

  std::unique_ptr<CoreType> core_;
  CommitLog<Row>& log_;
  const Progress& progress_;
  ChunkReader<Source> chunks_;
  ByteReader* in_ = nullptr;
  Header header_{};
  std::optional<RowDecoder<Row>> rows_;
  std::unique_ptr<Decoder> decoder_;
  RememberedLoader<CoreType> remembered_;
  SharedText parameters_;
  std::vector<Entry*> entries_;
  Arena scratch_{*core_->options.memory};  // of blocks that are being read
  std::vector<Link> links_;
  std::vector<bool> reached_;                     // by a row or a later change
  std::vector<Hashed<const Slot<Row>>> keyless_;  // rows that are not in the index of keys yet
  std::vector<Hashed<const Slot<Row>>> sorted_;   // scratch
};

/// Reads what write_snapshot() wrote: see ChunkReader for the source. Throws CorruptSnapshot, SchemaMismatch,
/// UnsupportedFormat, UniqueViolation, Cancelled, what the source throws, and what the rows' own functions
/// throw.
template <class CoreType, class Source>
std::unique_ptr<CoreType> read_snapshot(Source& source, std::string file, TableOptions options,
                                        const Progress& progress = {}) {
  return SnapshotReader<CoreType, Source>(source, std::move(file), std::move(options), progress).run();
}

}  // namespace keyfold::detail
#endif

// detail/snapshot_source
#ifndef KEYFOLD_SINGLE_DETAIL_SNAPSHOT_SOURCE
#define KEYFOLD_SINGLE_DETAIL_SNAPSHOT_SOURCE

// detail/files
#ifndef KEYFOLD_SINGLE_DETAIL_FILES
#define KEYFOLD_SINGLE_DETAIL_FILES

#include <cstdio>

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
#endif

#include <ios>
#include <istream>
#include <ostream>

/// Where snapshots come from and go to. A source knows how many bytes it still has, so that no length in a
/// damaged file can ask for more memory than there are bytes.
namespace keyfold::detail {

/// Bytes in memory.
class MemorySource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  std::uint64_t left() const noexcept { return bytes_.size(); }
  std::size_t read(std::byte* to, std::size_t count) noexcept {
    count = std::min(count, bytes_.size());
    if (count != 0) std::memcpy(to, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return count;
  }

 private:
  std::span<const std::byte> bytes_;
};

/// Reads everything that `read(to, count)` gives.
template <class Read>
ByteBuffer read_to_end(Read read) {
  constexpr std::size_t step = std::size_t{64} * 1024;
  ByteBuffer out;
  while (true) {
    const std::size_t before = out.size();
    const std::size_t got = read(out.extend(step), step);
    out.truncate(before + got);
    if (got < step) return out;
  }
}

/// A file. What has no size, as a pipe, is read to its end first.
template <class Calls>
class FileSource {
 public:
  FileSource(Calls& calls, const std::string& path) : file_(calls, path, O_RDONLY) {
    const auto [size, is_regular] = file_.size();
    left_ = size;
    if (is_regular) return;
    all_ = detail::read_to_end([this](std::byte* to, std::size_t count) { return file_.read(to, count); });
    memory_ = MemorySource(all_.bytes());
  }

  std::uint64_t left() const noexcept { return left_ + memory_.left(); }
  std::uint64_t done() const noexcept { return done_; }
  std::size_t read(std::byte* to, std::size_t count) {
    const std::size_t got = memory_.left() != 0 ? memory_.read(to, count) : file_.read(to, count);
    left_ -= std::min<std::uint64_t>(left_, got);
    done_ += got;
    return got;
  }

 private:
  OpenFile<Calls> file_;
  std::uint64_t left_ = 0;
  std::uint64_t done_ = 0;
  ByteBuffer all_;
  MemorySource memory_{{}};
};

[[noreturn]] inline void throw_stream_error(const char* operation) {
  throw IoError(operation, "<stream>", std::make_error_code(std::errc::io_error));
}

/// A stream, whatever it throws itself.
class StreamSource {
 public:
  explicit StreamSource(std::istream& stream) : stream_(stream) {
    left_ = size_ahead();
    if (left_ != unknown) return;
    left_ = 0;
    all_ = detail::read_to_end([this](std::byte* to, std::size_t count) { return read_stream(to, count); });
    memory_ = MemorySource(all_.bytes());
  }

  std::uint64_t left() const noexcept { return left_ + memory_.left(); }
  std::size_t read(std::byte* to, std::size_t count) {
    if (memory_.left() != 0) return memory_.read(to, count);
    const std::size_t got = read_stream(to, static_cast<std::size_t>(std::min<std::uint64_t>(count, left_)));
    left_ -= got;
    return got;
  }

 private:
  static constexpr std::uint64_t unknown = UINT64_MAX;

  std::uint64_t size_ahead() {
    try {
      if (!stream_) detail::throw_stream_error("read");
      std::streambuf& buffer = *stream_.rdbuf();
      const std::streamoff here = buffer.pubseekoff(0, std::ios_base::cur, std::ios_base::in);
      if (here < 0) return unknown;
      const std::streamoff end = buffer.pubseekoff(0, std::ios_base::end, std::ios_base::in);
      const std::streamoff back = buffer.pubseekoff(here, std::ios_base::beg, std::ios_base::in);
      if (end < here || back != here) detail::throw_stream_error("seek");
      return static_cast<std::uint64_t>(end - here);
    } catch (const std::ios_base::failure&) {
      detail::throw_stream_error("seek");
    }
  }

  std::size_t read_stream(std::byte* to, std::size_t count) {
    try {
      stream_.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count));
    } catch (const std::ios_base::failure&) {
      if (!stream_.eof()) detail::throw_stream_error("read");
    }
    if (stream_.bad()) detail::throw_stream_error("read");
    return static_cast<std::size_t>(stream_.gcount());
  }

  std::istream& stream_;
  std::uint64_t left_ = 0;
  ByteBuffer all_;
  MemorySource memory_{{}};
};

class StreamSink {
 public:
  explicit StreamSink(std::ostream& stream) : stream_(stream) { check(); }

  void operator()(std::span<const std::byte> bytes) {
    try {
      stream_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    } catch (const std::ios_base::failure&) {
      detail::throw_stream_error("write");
    }
    check();
  }
  void finish() {
    try {
      stream_.flush();
    } catch (const std::ios_base::failure&) {
      detail::throw_stream_error("flush");
    }
    check();
  }

 private:
  void check() const {
    if (!stream_) detail::throw_stream_error("write");
  }

  std::ostream& stream_;
};

}  // namespace keyfold::detail
#endif

// detail/store_record
#ifndef KEYFOLD_SINGLE_DETAIL_STORE_RECORD
#define KEYFOLD_SINGLE_DETAIL_STORE_RECORD

// detail/sequence_replay
#ifndef KEYFOLD_SINGLE_DETAIL_SEQUENCE_REPLAY
#define KEYFOLD_SINGLE_DETAIL_SEQUENCE_REPLAY

/// Carrying out again what a log says that apply_changes() has remembered.
namespace keyfold::detail {

template <class CoreType>
class SequenceReplayer {
 public:
  using Row = typename CoreType::RowType;
  using States = SequenceStates<CoreType>;

  SequenceReplayer(CoreType& core, const RowDecoder<Row>& rows, std::string file)
      : core_(core), rows_(rows), file_(std::move(file)) {}

  /// Begins a record, which stands at this offset of the file.
  void clear(std::uint64_t offset) {
    offset_ = offset;
    updates_.clear();
  }

  /// Throws DecodeError, SchemaMismatch.
  void read(ByteReader& in) {
    for (std::uint32_t left = detail::get_u32(in); left > 0; --left) read_update(in);
  }

  /// Throws std::bad_alloc only.
  void carry_out() {
    for (Update& update : updates_) {
      if constexpr (States::saves_current) {
        if (update.form == SequenceForm::current) carry_out_current(update);
      }
      if constexpr (States::saves_history) {
        if (update.form == SequenceForm::history) carry_out_history(update);
      }
    }
    if (!updates_.empty()) ++core_.sequences_changed;
    updates_.clear();
  }

 private:
  using Stored = typename States::Stored;
  using History = typename States::History;

  template <class Key, class Item>
  struct Change {
    Key key{};
    std::unique_ptr<Item> fresh{};  // none: the key is forgotten
  };
  struct Update {
    SequenceForm form = SequenceForm::none;
    std::string type{};
    std::optional<std::string> truncated{};
    std::size_t keep = 0;
    Timestamp keep_since{};
    std::vector<Change<typename States::Key, typename Stored::Item>> current{};
    std::vector<Change<typename States::Entity, typename History::Item>> history{};
  };

  void read_update(ByteReader& in) {
    SequenceSchema schema = detail::get_sequence_schema(in);
    if (schema.form == SequenceForm::none) in.fail("an update of sequences has no form");
    if (!reader_ || !(reader_->schema() == schema)) reader_.emplace(std::move(schema), rows_);
    Update update;
    update.form = reader_->schema().form;
    update.type = reader_->schema().type;
    check_kind(in, update);
    if (update.form == SequenceForm::current) {
      update.truncated = detail::get_optional_text(in);
      if (update.truncated) reader_->check_truncate(*update.truncated);
      update.keep = static_cast<std::size_t>(detail::get_u64(in));
      update.keep_since = Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(in)));
    }
    const std::uint64_t count = detail::get_u64(in);
    if (count > in.left()) in.fail("more keys than the bytes can hold");
    for (std::uint64_t i = 0; i < count; ++i) read_change(in, update);
    updates_.push_back(std::move(update));
  }

  // All feeds of a table are of one kind.
  void check_kind(ByteReader& in, const Update& update) const {
    const Update* const before = updates_.empty() ? nullptr : &updates_.back();
    const auto* const stored = dynamic_cast<const Stored*>(core_.sequences.get());
    const bool fits = before != nullptr ? before->form == update.form && before->type == update.type
                      : core_.sequences == nullptr ? true
                      : stored != nullptr
                          ? update.form == SequenceForm::current && stored->origin.text == update.type
                          : update.form == SequenceForm::history;
    if (!fits) in.fail("a feed is of another kind than those before it");
  }

  void read_change(ByteReader& in, Update& update) const {
    [[maybe_unused]] const bool remembered = detail::get_flag(in);
    if constexpr (States::saves_current) {
      if (update.form == SequenceForm::current) {
        auto& change = update.current.emplace_back();
        remembered ? void(change.fresh = reader_->get_current(in))
                   : void(change.key = reader_->template get_key<typename States::Key>(in));
      }
    }
    if constexpr (States::saves_history) {
      if (update.form == SequenceForm::history) {
        auto& change = update.history.emplace_back();
        remembered ? void(change.fresh = reader_->get_history(in))
                   : void(change.key = reader_->template get_key<typename States::Entity>(in));
      }
    }
  }

  void carry_out_current(Update& update) {
    if (core_.sequences == nullptr) {
      auto made = std::make_unique<Stored>();
      made->origin = {update.type, file_, offset_, true};
      core_.sequences = std::move(made);
    }
    auto& state = static_cast<Stored&>(*core_.sequences);
    for (auto& change : update.current) carry_out(state.keys, state, change);
    if (update.truncated)
      state.truncated = std::make_unique<const StoredSequence>(StoredSequence{std::move(*update.truncated)});
    state.forget(update.keep, update.keep_since);
  }

  void carry_out_history(Update& update) {
    if (core_.sequences == nullptr) core_.sequences = std::make_unique<History>();
    auto& state = static_cast<History&>(*core_.sequences);
    for (auto& change : update.history) carry_out(state.keys, state.keys, change);
  }

  template <class Keys, class State, class Change>
  static void carry_out(Keys& keys, State& state, Change& change) {
    const auto find = [&keys](const auto& key) { return keys.find(key, detail::hash_of(key)); };
    auto* const old = find(change.fresh != nullptr ? change.fresh->key : change.key);
    if (change.fresh == nullptr) {
      if (old != nullptr) state.drop(*old);
    } else if (old != nullptr) {
      state.replace(*old, std::move(change.fresh));
    } else {
      keys.reserve_one(change.fresh->hash);
      state.add(std::move(change.fresh));
    }
  }

  CoreType& core_;
  const RowDecoder<Row>& rows_;
  std::string file_;
  std::uint64_t offset_ = 0;
  std::optional<RememberedReader<CoreType>> reader_;
  std::vector<Update> updates_;
};

}  // namespace keyfold::detail
#endif

/// What the frames of a store's log hold: see docs/store-format.md. Written from a plan that is about to be
/// carried out; read into a plan that is carried out again.
namespace keyfold::detail {

enum class RecordKind : std::uint8_t { commit = 1, tag, untag, expire, remember };

enum class StoredChange : std::uint8_t { insert = 1, update, rekey, erase };

template <class CoreType>
class RecordWriter {
 public:
  using Row = typename CoreType::RowType;

  /// In front of each record are `room` bytes that belong to whoever asked for it.
  RecordWriter(const CoreType& core, std::size_t room) : core_(core), room_(room), encoder_(buffer_) {}

  std::span<std::byte> commit(const CommitRecord<Row>& record, const std::vector<AppNumber>& once,
                              const Plan<Row>& plan) {
    begin(RecordKind::commit);
    detail::put_u64(buffer_, record.version);
    detail::put_number(buffer_, std::int64_t{record.timestamp.time_since_epoch().count()});
    detail::put_text(buffer_, record.operation);
    put_optional(record.parameters ? std::optional<std::string_view>(*record.parameters) : std::nullopt);
    put_optional(record.metadata ? std::optional<std::string_view>(*record.metadata) : std::nullopt);
    const Metrics metrics = record.metrics.get();
    for (const auto field : metric_fields) detail::put_u64(buffer_, metrics.*field);
    detail::put_count(buffer_, once.size());
    for (const AppNumber& number : once) {
      detail::put_text(buffer_, number.app);
      detail::put_u64(buffer_, number.number);
    }
    put_updates(plan.sequences.get());
    for (const Planned<Row>& entry : plan.entries) put_change(entry);
    return whole();
  }

  /// Empty if there is nothing to remember.
  std::span<std::byte> remember(const SequenceUpdate& update) {
    begin(RecordKind::remember);
    return put_updates(&update) != 0 ? whole() : std::span<std::byte>();
  }
  std::span<std::byte> tag(std::string_view name, Version version) {
    begin(RecordKind::tag);
    detail::put_text(buffer_, name);
    detail::put_u64(buffer_, version);
    return whole();
  }
  std::span<std::byte> untag(std::string_view name) {
    begin(RecordKind::untag);
    detail::put_text(buffer_, name);
    return whole();
  }
  std::span<std::byte> expire(Version first) {
    begin(RecordKind::expire);
    detail::put_u64(buffer_, first);
    return whole();
  }

 private:
  // Each record says what retention had let go of when it was made.
  void begin(RecordKind kind) {
    buffer_.clear();
    buffer_.extend(room_);
    detail::put_u8(buffer_, static_cast<std::uint8_t>(kind));
    detail::put_u64(buffer_, core_.log->oldest);
  }

  // A transaction hands over those of its loads.
  std::size_t put_updates(const SequenceUpdate* update) {
    if (const auto* const handover = dynamic_cast<const SequenceHandover*>(update)) {
      detail::put_count(buffer_, handover->stored().size());
      for (const std::string& stored : handover->stored()) buffer_.append(stored.data(), stored.size());
      return handover->stored().size();
    }
    const std::size_t count_at = buffer_.size();
    detail::put_u32(buffer_, 0);
    const bool says_something = update != nullptr && detail::put_sequence_update<CoreType>(buffer_, *update);
    if (says_something) detail::store_number(buffer_.data() + count_at, std::uint32_t{1});
    return says_something ? 1 : 0;
  }

  void put_optional(std::optional<std::string_view> text) {
    detail::put_u8(buffer_, text ? 1 : 0);
    if (text) detail::put_text(buffer_, *text);
  }

  void put_change(const Planned<Row>& entry) {
    switch (entry.outcome) {
      case Outcome::insert:
        put_kind(StoredChange::insert);
        return encoder_.put(row_after(entry));
      case Outcome::update:
        put_kind(entry.rekeyed ? StoredChange::rekey : StoredChange::update);
        if (entry.rekeyed) put_key(entry);
        return encoder_.put(row_after(entry));
      case Outcome::erase:
        put_kind(StoredChange::erase);
        return put_key(entry);
      case Outcome::seen:
      case Outcome::unchanged:
        break;
    }
  }

  void put_kind(StoredChange kind) { detail::put_u8(buffer_, static_cast<std::uint8_t>(kind)); }
  void put_key(const Planned<Row>& entry) {
    std::apply([this](const auto&... part) { (encoder_.put(stored_part_t<decltype(part)>(part)), ...); },
               CoreType::key_of(entry.slot->get()));
  }
  static const Row& row_after(const Planned<Row>& entry) noexcept {
    return entry.fresh != nullptr ? entry.fresh->get() : entry.after->get();
  }

  std::span<std::byte> whole() noexcept { return {buffer_.data(), buffer_.size()}; }

  const CoreType& core_;
  std::size_t room_;
  ByteBuffer buffer_;
  Encoder encoder_;
};

/// Carries out again what records say, on a core that nobody sees yet.
template <class CoreType>
class RecordReplayer {
 public:
  using Row = typename CoreType::RowType;

  /// `rows` reads the rows of the records, which are those of `file`.
  RecordReplayer(CoreType& core, const RowDecoder<Row>& rows, std::string file)
      : core_(core), rows_(rows), updates_(core, rows, std::move(file)) {}

  /// Throws DecodeError, UnsupportedFormat, and what rows throw; Error for a change that does not fit the
  /// table.
  void replay(std::span<const std::byte> payload, std::uint64_t offset) {
    ByteReader in(payload);
    updates_.clear(offset);
    const std::uint8_t kind = detail::get_u8(in);
    follow_retention(in);
    switch (static_cast<RecordKind>(kind)) {
      case RecordKind::commit:
        return commit(in);
      case RecordKind::tag:
        return tag(in);
      case RecordKind::untag:
        return untag(in);
      case RecordKind::expire:
        return expire(in);
      case RecordKind::remember:
        updates_.read(in);
        finish(in);
        return updates_.carry_out();
    }
    throw UnsupportedFormat("a record of the log", kind, static_cast<std::uint64_t>(RecordKind::remember));
  }

 private:
  void follow_retention(ByteReader& in) {
    const Version oldest = detail::get_u64(in);
    if (oldest == core_.log->oldest) return;
    if (oldest < core_.log->oldest || oldest > core_.version()) in.fail("its oldest version cannot be");
    detail::retire(core_, oldest, [] {});
  }

  void commit(ByteReader& in) {
    const Version version = detail::get_u64(in);
    if (version != core_.version() + 1) in.fail("its version is not the next one");
    CommitNote note;
    note.timestamp = Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(in)));
    if (!core_.log->empty() && *note.timestamp < detail::tick_after(core_.log->records.back().timestamp))
      in.fail("it is older than the commit before it");
    note.operation = stored_operation(detail::get_text(in));
    if (detail::get_flag(in)) note.parameters = stored_parameters(detail::get_text(in));
    if (detail::get_flag(in)) note.metadata = SharedText(std::string(detail::get_text(in)));
    Metrics metrics;
    for (const auto field : metric_fields) metrics.*field = static_cast<std::size_t>(detail::get_u64(in));
    for (std::uint32_t left = detail::get_u32(in); left > 0; --left) {
      std::string app(detail::get_text(in));
      note.once.push_back({std::move(app), detail::get_u64(in)});
    }
    updates_.read(in);
    Plan<Row> plan = core_.new_plan();
    read_changes(in, plan);
    check(in, plan.metrics, metrics);
    plan.metrics = metrics;
    detail::validate(core_, plan);
    detail::apply(core_, plan, std::move(note));
    updates_.carry_out();
  }

  std::string_view stored_operation(std::string_view text) {
    auto& known = core_.log->operations;
    for (const auto& operation : known) {
      if (*operation == text) return *operation;
    }
    return *known.emplace_back(std::make_shared<const std::string>(text));
  }

  SharedText stored_parameters(std::string_view text) {
    if (!parameters_ || *parameters_ != text) parameters_ = SharedText(std::string(text));
    return parameters_;
  }

  // Positions in the source are not kept, and no error of these changes names them.
  void read_changes(ByteReader& in, Plan<Row>& plan) {
    Decoder decoder(in);
    while (in.left() != 0) {
      const std::uint8_t kind = detail::get_u8(in);
      switch (static_cast<StoredChange>(kind)) {
        case StoredChange::insert:
          plan.insert(get_row(decoder), no_position);
          break;
        case StoredChange::update: {
          Holder<Row> row = get_row(decoder);
          const Slot<Row>& slot = slot_of(in, plan, CoreType::key_of(row.get()));
          plan.update(slot, std::move(row), no_position);
          break;
        }
        case StoredChange::rekey: {
          const Slot<Row>& slot = get_slot(decoder, plan);
          plan.update(slot, get_row(decoder), no_position);
          break;
        }
        case StoredChange::erase:
          plan.erase(get_slot(decoder, plan), no_position);
          break;
        default:
          in.fail("a change has an unknown kind");
      }
    }
  }

  Holder<Row> get_row(Decoder& decoder) const {
    Row row{};
    rows_.read(decoder, row);
    return Holder<Row>(std::move(row));
  }

  const Slot<Row>& get_slot(Decoder& decoder, Plan<Row>& plan) const {
    stored_key_t<typename CoreType::KeyParts, Row> key{};
    std::apply([&](auto&... part) { (decoder.get(part), ...); }, key);
    return slot_of(decoder.in(), plan, key);
  }

  template <class Key>
  const Slot<Row>& slot_of(ByteReader& in, Plan<Row>& plan, const Key& key) const {
    const Slot<Row>* slot = core_.find(key);
    if (slot == nullptr) in.fail("it changes a row that is not there");
    if (plan.touched(*slot) != nullptr) in.fail("it changes a row twice");
    return *slot;
  }

  static void check(ByteReader& in, const Metrics& counted, const Metrics& stored) {
    const bool right = counted.inserted == stored.inserted && counted.updated == stored.updated &&
                       counted.deleted == stored.deleted &&
                       stored.updated == stored.matched_updated + stored.not_matched_by_source_updated &&
                       stored.deleted == stored.matched_deleted + stored.not_matched_by_source_deleted;
    if (!right) in.fail("its counts are not those of its changes");
  }

  void tag(ByteReader& in) {
    std::string name(detail::get_text(in));
    const Version version = detail::get_u64(in);
    finish(in);
    if (!core_.log->readable(version)) in.fail("it tags a version that cannot be read");
    if (!core_.tags.try_emplace(std::move(name), version).second) in.fail("it gives a tag that is there");
  }

  void untag(ByteReader& in) {
    const auto at = core_.tags.find(detail::get_text(in));
    finish(in);
    if (at == core_.tags.end()) in.fail("it removes a tag that is not there");
    core_.tags.erase(at);
  }

  void expire(ByteReader& in) {
    const Version first = detail::get_u64(in);
    finish(in);
    if (first < core_.log->oldest || first > core_.version())
      in.fail("it lets versions go that are not there");
    detail::retire(core_, first, [] {});
    detail::try_sweep(core_);
  }

  static void finish(ByteReader& in) {
    if (in.left() != 0) in.fail("more is there than was told");
  }

  CoreType& core_;
  const RowDecoder<Row>& rows_;
  SequenceReplayer<CoreType> updates_;
  SharedText parameters_;  // of the last commit that has some
};

}  // namespace keyfold::detail
#endif

// durability
#ifndef KEYFOLD_SINGLE_DURABILITY
#define KEYFOLD_SINGLE_DURABILITY

#include <chrono>

namespace keyfold {

/// When a commit of a store reaches the medium. Whatever is chosen, an acknowledged commit survives the death
/// of the process; the modes differ in what a cut of power may take. docs/durability.md has the promises in
/// full.
struct Durability {
  enum class Mode : std::uint8_t { every_commit, interval, buffered };
  Mode mode = Mode::every_commit;
  std::chrono::milliseconds period{};  // of `interval`

  bool operator==(const Durability&) const = default;
};

namespace durability {

/// A commit is acknowledged when it is on the medium: nothing that was acknowledged is ever lost.
inline constexpr Durability every_commit{};

/// A thread of the store brings commits to the medium this often: a cut of power takes at most the commits
/// acknowledged within this time and that of two fsyncs.
[[nodiscard]] constexpr Durability interval(std::chrono::milliseconds period) noexcept {
  return {Durability::Mode::interval, period};
}

/// Commits reach the medium when the system likes, at the latest with sync(), checkpoint() or close(): a cut
/// of power takes at most the commits since the last of these.
inline constexpr Durability buffered{Durability::Mode::buffered, {}};

}  // namespace durability
}  // namespace keyfold
#endif

#include <condition_variable>
#include <thread>

/// What stands between a table and the files of its store.
namespace keyfold::detail {

/// The state in front of a log: the schema of the rows in that log, and a snapshot of the table.
template <class CoreType, class Sink>
void write_state(const CoreType& core, Sink& sink) {
  ByteBuffer schema;
  detail::put_schema(schema, detail::schema_of<typename CoreType::RowType>());
  ByteBuffer size;
  detail::put_u32(size, static_cast<std::uint32_t>(schema.size()));
  sink.write(size.bytes());
  sink.write(schema.bytes());
  detail::write_snapshot(core, [&sink](std::span<const std::byte> bytes) { sink.write(bytes); });
}

/// A table made again from the files of a store.
template <class CoreType>
struct Restored {
  std::unique_ptr<CoreType> core;
  std::uint64_t records = 0;               // of the log, carried out
  bool same_schema = true;                 // the program's is that of the log
  std::optional<CorruptJournal> damage{};  // that ended a salvage
};

/// Throws CorruptJournal, CorruptSnapshot, SchemaMismatch, UnsupportedFormat, and what rows throw.
template <class CoreType, class Disk>
class Restorer {
 public:
  using Row = typename CoreType::RowType;

  Restorer(const Disk& disk, const JournalImage& image, OnDamage on_damage)
      : disk_(disk), image_(image), on_damage_(on_damage) {}

  Restored<CoreType> run(const TableOptions& options) {
    const std::string path = disk_.path(snapshot_name(image_.generation));
    std::optional<RowDecoder<Row>> rows;
    try {
      ByteReader in(image_.snapshot());
      const std::uint32_t size = detail::get_u32(in);
      ByteReader schema_bytes(std::span(in.take(size), size));
      schema_ = detail::get_schema(schema_bytes);
      MemorySource source(image_.snapshot().subspan(in.offset()));
      restored_.core = detail::read_snapshot<CoreType>(source, path, options);
      if (source.left() != 0) throw CorruptJournal(path, in.offset(), "there is more after its end");
      rows.emplace(schema_);
    } catch (const DecodeError& error) {
      throw CorruptJournal(path, SnapshotHeader::Layout::size + error.offset, error.what());
    }
    restored_.same_schema = schema_ == detail::schema_of<Row>();
    replay_log(*rows);
    CoreType& core = *restored_.core;
    core.subscribers->skip_to(core.version());
    detail::apply_retention(core);
    detail::try_sweep(core);
    return std::move(restored_);
  }

 private:
  void replay_log(const RowDecoder<Row>& rows) {
    RecordReplayer<CoreType> replayer(*restored_.core, rows, disk_.path(log_name(image_.generation)));
    image_.for_each_frame([&](ByteSpan payload, std::uint64_t, std::size_t offset) {
      if (!restored_.damage) replay(replayer, payload, offset);
    });
  }

  void replay(RecordReplayer<CoreType>& replayer, ByteSpan payload, std::size_t offset) {
    const auto damaged = [&](const char* what) {
      if (on_damage_ == OnDamage::fail && schema_.is_object && !restored_.same_schema) refuse_class(what);
      CorruptJournal damage(disk_.path(log_name(image_.generation)), offset, what);
      if (on_damage_ == OnDamage::fail) throw damage;
      restored_.damage = std::move(damage);
    };
    try {
      replayer.replay(payload, offset);
      ++restored_.records;
    } catch (const DecodeError& error) {
      damaged(error.what());
    } catch (const UnsupportedFormat&) {
      throw;
    } catch (const UniqueViolation&) {  // of an index that the program has not had when it wrote this
      throw;
    } catch (const Error& error) {
      damaged(error.what());
    }
  }

  // Records have keys as the class had them that wrote them, and do not say how.
  [[noreturn]] void refuse_class(const char* what) const {
    const auto version = [](const StoredSchema& schema) {
      return "class version " + std::to_string(schema.class_version);
    };
    throw SchemaMismatch("<row>", version(schema_), version(detail::schema_of<Row>()),
                         "its log cannot be read with it (" + std::string(what) +
                             "); open it with the program that wrote it, take a checkpoint() and close it");
  }

  const Disk& disk_;
  const JournalImage& image_;
  OnDamage on_damage_;
  StoredSchema schema_;
  Restored<CoreType> restored_;
};

/// Brings commits to the medium at intervals, in a thread of its own.
template <class JournalType>
class Flusher {
 public:
  Flusher(JournalType& journal, std::chrono::milliseconds period)
      : thread_([this, &journal, period]() mutable {
          std::unique_lock guard(mutex_);
          period = std::clamp(period, std::chrono::milliseconds(1), std::chrono::milliseconds(86'400'000));
          while (!stop_.wait_for(guard, period, [this] { return stopped_; })) {
            guard.unlock();
            try {
              journal.sync();
            } catch (...) {  // the next write says so
              return;
            }
            guard.lock();
          }
        }) {}
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  ~Flusher() {
    {
      const std::lock_guard guard(mutex_);
      stopped_ = true;
    }
    stop_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the others
};

/// Writes what happens to a table to its journal.
template <class CoreType, class Disk, class Checks>
class StoreJournal final : public CommitJournal<typename CoreType::RowType> {
 public:
  using Row = typename CoreType::RowType;

  StoreJournal(CoreType& core, Disk& disk, const JournalImage& image, Durability durability,
               std::uint64_t checkpoint_bytes)
      : core_(core),
        records_(core, FrameHeader::size),
        journal_(disk, image),
        durability_(durability),
        checkpoint_bytes_(checkpoint_bytes),
        first_version_(core.version()),
        first_frame_(journal_.last()) {
    next_attempt_ = image.snapshot_file.size();
    if (journal_.generation() == 0) checkpoint();
    if (durability.mode == Durability::Mode::interval) flusher_.emplace(journal_, durability.period);
  }

  void commit(const CommitRecord<Row>& record, const std::vector<AppNumber>& once,
              const Plan<Row>& plan) override {
    write(records_.commit(record, once, plan), [&] { return "version " + std::to_string(record.version); });
  }
  void remember(const SequenceUpdate& update) override {
    const auto record = records_.remember(update);
    if (record.empty()) return;
    write_other(record, [] { return std::string("what the load remembers"); });
  }
  std::string stored(const SequenceUpdate& update) const override {
    ByteBuffer out;
    detail::put_sequence_update<CoreType>(out, update);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }
  void tag(std::string_view name, Version version) override {
    write_other(records_.tag(name, version), [&] { return "the tag '" + std::string(name) + "'"; });
  }
  void untag(std::string_view name) override {
    write_other(records_.untag(name), [&] { return "the end of the tag '" + std::string(name) + "'"; });
  }
  void expire(Version first) override {
    write_other(records_.expire(first), [&] { return "the expiry up to version " + std::to_string(first); });
  }

  // A log that is as long as the last snapshot has cost as much as writing the next one will.
  void published() noexcept override {
    if (journal_.log_size() < std::max(checkpoint_bytes_, next_attempt_)) return;
    try {
      checkpoint();
    } catch (...) {
      checkpoint_error_ = std::current_exception();
      next_attempt_ = 2 * journal_.log_size();
    }
  }

  void checkpoint() {
    std::uint64_t bytes = 0;
    journal_.checkpoint([&](auto& sink) {
      detail::write_state(core_, sink);
      bytes = sink.size();
    });
    next_attempt_ = bytes;
    checkpoint_error_ = nullptr;
  }

  void sync() { journal_.sync(); }

  void close() {
    flusher_.reset();
    journal_.close();
  }

  /// The last version that a cut of power cannot reach.
  Version durable_version() const {
    const std::uint64_t durable = journal_.durable();
    const auto others = std::ranges::upper_bound(other_frames_, durable) - other_frames_.begin();
    return first_version_ + (durable - first_frame_) - static_cast<std::uint64_t>(others);
  }

  const Journal<Disk, Checks>& journal() const noexcept { return journal_; }
  std::exception_ptr checkpoint_error() const noexcept { return checkpoint_error_; }

 private:
  template <class Describe>
  void write(std::span<std::byte> frame, Describe describe) {
    journal_.append_in_place(frame);
    if (durability_.mode != Durability::Mode::every_commit) return;
    try {
      journal_.sync();
    } catch (const IoError& error) {
      throw CommitInDoubt(error, describe());
    }
  }

  template <class Describe>
  void write_other(std::span<std::byte> frame, Describe describe) {
    other_frames_.push_back(journal_.last() + 1);
    try {
      write(frame, describe);
    } catch (const CommitInDoubt&) {
      throw;
    } catch (...) {
      other_frames_.pop_back();
      throw;
    }
  }

  CoreType& core_;
  RecordWriter<CoreType> records_;
  Journal<Disk, Checks> journal_;
  Durability durability_;
  std::uint64_t checkpoint_bytes_;
  std::uint64_t next_attempt_ = 0;           // size of the log
  Version first_version_;                    // when the store was opened
  std::uint64_t first_frame_;                // the last one at that time
  std::vector<std::uint64_t> other_frames_;  // since then that are no commits, ascending
  std::exception_ptr checkpoint_error_;
  std::optional<Flusher<Journal<Disk, Checks>>> flusher_;  // last: it uses the journal
};

}  // namespace keyfold::detail
#endif

// Store: a table that is kept in a directory.
namespace keyfold {

namespace detail {

template <class TableType>
struct stored_row {
  static_assert(AnyTable<TableType>, "keyfold: a store is of a table: Store<Table<Row, Key<&Row::id>>>");
  using type = void;
};
template <AnyTable TableType>
struct stored_row<TableType> {
  using type = typename TableType::Row;
  static_assert(require_row<type>());
};

}  // namespace detail

struct StoreOptions {
  /// Of the table. Retention applies to what is stored, too; the clock gives the times of commits.
  TableOptions table{};

  Durability durability = durability::every_commit;

  /// A checkpoint is taken by itself once the log is larger than this, and than the last checkpoint.
  std::uint64_t checkpoint_bytes = std::uint64_t{64} << 20U;
};

/// How a store was found when it was opened.
struct Recovery {
  bool clean = false;            ///< it was closed, and its files were vouched for
  std::uint64_t replayed = 0;    ///< commits, tags, expiries, loads without a version that the log had
  std::uint64_t torn_bytes = 0;  ///< cut from the end of the log: of a commit that was never acknowledged
  std::string torn_file{};       ///< where
  std::uint64_t torn_offset = 0;
};

/// What verify() has read.
struct Verified {
  Version version = 0;
  std::uint64_t snapshot_bytes = 0;
  std::uint64_t log_bytes = 0;
};

/// What salvage() has made.
struct Salvaged {
  Version version = 0;                     ///< that the new store has
  std::optional<CorruptJournal> damage{};  ///< why it has no later one; nothing if the log was intact
  std::uint64_t left_behind = 0;  ///< later commits, tags and expiries that are known to have been made
};

/// A table on disk: a directory with a snapshot and a log of commits. What is promised in which mode stands
/// in docs/durability.md. Threads: as for a table; a store is written to by one thread at a time.
///
///     auto store = keyfold::Store<Orders>::open("orders.kf");
///     store.upsert(rows);                            // on the medium when it returns
///     const Order* order = store.table().find(7);
///
/// It has the writes of a table. A write that throws IoError is not made, neither in memory nor on disk; one
/// that throws CommitInDoubt is not in memory and may be on disk, and StoreFailed is thrown from then on,
/// while reading goes on. Constraints and subscriptions are the program's: give them again after opening.
/// What apply_changes() remembers is kept; it throws UnsavableSequence where that has a type that files
/// cannot have.
template <class TableType, class Disk = detail::PosixDisk>
class Store : public Writes<Store<TableType, Disk>, TableType, typename detail::stored_row<TableType>::type> {
  using Core = std::remove_cvref_t<decltype(detail::CoreAccess::core(std::declval<TableType&>()))>;
  using Checks = detail::FrameChecks;

 public:
  using Table = TableType;
  using Row = typename Table::Row;
  using Result = MergeResult<Row>;

  /// Opens a directory, or makes one with an empty table. Throws StoreLocked; IoError; CorruptJournal or
  /// CorruptSnapshot for damage that no crash can do, SchemaMismatch, UnsupportedFormat: then nothing is
  /// changed on disk. O(rows + history + log).
  [[nodiscard]] static Store open(const std::filesystem::path& directory, const StoreOptions& options = {}) {
    return Store(Disk(directory), options);
  }

  /// As open(), on a disk of any kind.
  explicit Store(Disk disk, const StoreOptions& options = {})
      : state_(std::make_unique<State>(std::move(disk), options)) {}

  /// Closes the store; should that fail, it is opened as after a crash. close() tells.
  ~Store() = default;
  Store(Store&&) noexcept = default;
  Store& operator=(Store&&) noexcept = default;

  /// The table, to read. It can be read after close() and after a failure, too.
  [[nodiscard]] const Table& table() const noexcept { return state_->table; }

  [[nodiscard]] const Recovery& recovered() const noexcept { return state_->recovery; }

  // --- Writing beside the verbs of Writes: as for Table

  auto metadata(std::string text) { return writer().metadata(std::move(text)); }
  auto once(std::string app, std::uint64_t number) { return writer().once(std::move(app), number); }
  template <class Policy>
  auto duplicates(Policy policy) {
    return writer().duplicates(std::move(policy));
  }
  auto unchecked() { return writer().unchecked(); }
  [[nodiscard]] Transaction<Table> transaction() { return state_->table.transaction(); }

  template <class Point>
  Result restore(const Point& version_time_or_tag) {
    return state_->table.restore(version_time_or_tag);
  }
  Result undo(Version version) { return state_->table.undo(version); }
  void tag(std::string name, Version version) { state_->table.tag(std::move(name), version); }
  void untag(std::string_view name) { state_->table.untag(name); }
  template <class Rule>
  std::vector<Version> expire(const Rule& rule) {
    return state_->table.expire(rule);
  }

  template <class Condition>
  void require(std::string name, Condition condition) {
    state_->table.require(std::move(name), std::move(condition));
  }
  void unrequire(std::string_view name) { state_->table.unrequire(name); }
  template <class... Arguments>
  [[nodiscard]] Subscription subscribe(Arguments&&... callback) {
    return state_->table.subscribe(std::forward<Arguments>(callback)...);
  }

  // --- Durability

  /// Brings all commits to the medium. Throws IoError: they are in doubt; StoreFailed.
  void sync() { state_->journal.sync(); }

  /// The last version that a cut of power cannot reach.
  [[nodiscard]] Version durable_version() const { return state_->journal.durable_version(); }

  /// Writes the table as it is, with its history, and begins a new log: the next opening is quicker. Throws
  /// IoError; StoreFailed; Error for a row that could not be read again, and what rows throw. Whatever
  /// throws, nothing is lost. O(rows + history).
  void checkpoint() { state_->journal.checkpoint(); }

  /// Why the last checkpoint that the store took by itself has failed; null if it has not. It is tried again
  /// when the log has doubled.
  [[nodiscard]] std::exception_ptr checkpoint_error() const noexcept {
    return state_->journal.checkpoint_error();
  }

  /// Reads the files again, all of them, and rebuilds the table from them. Throws as open(); CorruptJournal
  /// if they do not lead to the present version. O(rows + history + log).
  Verified verify() const { return state_->verify(); }

  /// Ends writing, vouches for the files, so that from then on each flipped bit is detected, and unlocks the
  /// directory. Throws IoError, StoreFailed; the store is then opened as after a crash. The second time
  /// nothing happens.
  void close() { state_->close(); }

  /// Copies what can be read of a damaged store into a new one, in a directory that has none: the snapshot,
  /// and the commits up to the damage. Those behind it cannot be used, since they build on what is missing.
  /// Throws StoreLocked; IoError; CorruptJournal or CorruptSnapshot if the snapshot itself is damaged.
  static Salvaged salvage(const std::filesystem::path& damaged, const std::filesystem::path& fresh) {
    if (!std::filesystem::exists(damaged))
      throw IoError("open", damaged.string(), std::make_error_code(std::errc::no_such_file_or_directory));
    return salvage(Disk(damaged), Disk(fresh));
  }
  static Salvaged salvage(Disk damaged, Disk fresh);

 private:
  template <class, class, class>
  friend class Writes;
  template <class, class, class>
  friend class Loads;
  template <class>
  friend class SharedTable;

  struct State;

  // What the verbs of Writes are made of.

  Table& target() noexcept { return state_->table; }
  static detail::CommitNote note() noexcept { return {}; }
  Writer<Table, Row> writer() { return Writer<Table, Row>(state_->table); }

  std::unique_ptr<State> state_;
};

template <class TableType, class Disk>
struct Store<TableType, Disk>::State {
  using StoreJournal = detail::StoreJournal<Core, Disk, Checks>;

  State(Disk used_disk, const StoreOptions& options)
      : State(std::move(used_disk), options, detail::JournalImage()) {}

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    detail::CoreAccess::core(table).journal = nullptr;
    try {
      close();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the next opening finds what there is
    }
  }

  void close() {
    if (!lock) return;
    const auto released = std::exchange(lock, std::nullopt);
    journal.close();
  }

  Verified verify() const {
    const auto image = detail::read_journal<Checks>(disk);
    const auto restored =
        detail::Restorer<Core, Disk>(disk, image, detail::OnDamage::fail).run(TableOptions{});
    if (restored.core->version() != table.version() || image.torn_bytes() != 0)
      throw CorruptJournal(disk.path(detail::log_name(image.generation)), image.end,
                           "it ends at version " + std::to_string(restored.core->version()) +
                               " and the table is at " + std::to_string(table.version()));
    return {restored.core->version(), image.snapshot_file.size(), image.log_file.size()};
  }

  Disk disk;
  std::optional<typename Disk::Lock> lock;  // until it is closed
  Recovery recovery;
  bool same_schema = true;  // the program's and that of the log
  Table table;              // sets the two above
  StoreJournal journal;     // uses the disk and the table

 private:
  // The image is needed while the members are made, and not afterwards.
  State(Disk used_disk, const StoreOptions& options, detail::JournalImage&& image)
      : disk(std::move(used_disk)),
        lock(disk.lock("LOCK")),
        table(read(image, options.table)),
        journal(detail::CoreAccess::core(table), disk, image, options.durability, options.checkpoint_bytes) {
    if (!same_schema) journal.checkpoint();  // a log has rows of one schema only
    detail::CoreAccess::core(table).journal = &journal;
  }

  Table read(detail::JournalImage& image, const TableOptions& options) {
    image = detail::read_journal<Checks>(disk);
    if (image.generation == 0) return Table(options);
    auto restored = detail::Restorer<Core, Disk>(disk, image, detail::OnDamage::fail).run(options);
    recovery.clean = image.clean;
    recovery.replayed = restored.records;
    recovery.torn_bytes = image.torn_bytes();
    if (recovery.torn_bytes != 0) {
      recovery.torn_file = disk.path(detail::log_name(image.generation));
      recovery.torn_offset = image.end;
    }
    same_schema = restored.same_schema;
    return detail::CoreAccess::table_of<Table>(std::move(restored.core));
  }
};

template <class TableType, class Disk>
Salvaged Store<TableType, Disk>::salvage(Disk damaged, Disk fresh) {
  const auto lock = damaged.lock("LOCK");
  const auto fresh_lock = fresh.lock("LOCK");
  const auto image = detail::read_journal<Checks>(damaged, detail::OnDamage::salvage);
  if (image.generation == 0)
    throw IoError("salvage", damaged.path(detail::snapshot_name(1)),
                  std::make_error_code(std::errc::no_such_file_or_directory));
  const auto nothing = detail::read_journal<Checks>(fresh);
  if (nothing.generation != 0)
    throw IoError("salvage into", fresh.path(detail::snapshot_name(nothing.generation)),
                  std::make_error_code(std::errc::file_exists));
  auto restored = detail::Restorer<Core, Disk>(damaged, image, detail::OnDamage::salvage).run(TableOptions{});
  detail::Journal<Disk, Checks> journal(fresh, nothing);
  journal.checkpoint([&](auto& sink) { detail::write_state(*restored.core, sink); });
  journal.close();
  const bool by_replay = restored.damage.has_value();
  const std::uint64_t unused = by_replay ? image.last - image.header.base - restored.records : 0;
  return {restored.core->version(), by_replay ? restored.damage : image.damage, image.frames_lost + unused};
}

}  // namespace keyfold
#endif
