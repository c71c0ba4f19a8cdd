// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// snapshot
#ifndef KEYFOLD_SINGLE_SNAPSHOT
#define KEYFOLD_SINGLE_SNAPSHOT

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

// detail/files
#ifndef KEYFOLD_SINGLE_DETAIL_FILES
#define KEYFOLD_SINGLE_DETAIL_FILES

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

// detail/snapshot_reader
#ifndef KEYFOLD_SINGLE_DETAIL_SNAPSHOT_READER
#define KEYFOLD_SINGLE_DETAIL_SNAPSHOT_READER

// detail/chunks
#ifndef KEYFOLD_SINGLE_DETAIL_CHUNKS
#define KEYFOLD_SINGLE_DETAIL_CHUNKS

// detail/crc32c
#ifndef KEYFOLD_SINGLE_DETAIL_CRC32C
#define KEYFOLD_SINGLE_DETAIL_CRC32C

#include <boost/crc.hpp>

#include <array>
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

#include <string_view>
#include <vector>

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

#include <filesystem>

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
#endif
