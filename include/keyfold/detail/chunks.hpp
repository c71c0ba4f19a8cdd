// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/bytes.hpp>
#include <keyfold/detail/crc32c.hpp>
#include <keyfold/snapshot_error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

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
