// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/bytes.hpp>
#include <keyfold/detail/crc32c.hpp>
#include <keyfold/storage_error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

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
