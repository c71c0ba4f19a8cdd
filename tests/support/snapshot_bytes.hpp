// Snapshots as bytes: what a test needs to make them, change them and seal them again.
#pragma once

#include <keyfold/snapshot.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

namespace keyfold_test {

template <class Table>
std::string saved(const Table& table, const keyfold::SaveOptions& options = {}) {
  std::ostringstream out;
  keyfold::save(table, out, options);
  return out.str();
}

/// From memory, without a stream between.
template <class Table>
Table loaded(const std::string& bytes, keyfold::LoadOptions options = {}) {
  keyfold::detail::MemorySource source(std::as_bytes(std::span(bytes)));
  return keyfold::detail::load_from<Table>(source, "<bytes>", options);
}

/// Makes all checksums right that can be, as far as the bytes have chunks. What a checksum cannot see is what
/// is left to be tested.
inline void seal(std::string& bytes) {
  namespace detail = keyfold::detail;
  const auto part = [&](std::size_t from, std::size_t count) {
    return std::as_bytes(std::span(bytes)).subspan(from, count);
  };
  const auto put = [&](std::size_t at, std::uint32_t checksum) {
    detail::store_number(reinterpret_cast<std::byte*>(bytes.data()) + at, checksum);
  };
  if (bytes.size() < 16) return;
  std::uint32_t checksum = detail::crc32c(part(0, 12));
  put(12, checksum);
  std::size_t at = 16;
  while (bytes.size() - at >= 16) {
    checksum = detail::crc32c(part(at, 12), checksum);
    put(at + 12, checksum);
    const auto size = detail::load_number<std::uint64_t>(part(at + 4, 8).data());
    at += 16;
    if (size > bytes.size() - at || bytes.size() - at - size < 4) return;
    checksum = detail::crc32c(part(at, size), checksum);
    put(at + size, checksum);
    at += size + 4;
  }
}

/// Puts other bytes in place of `count` ones of a chunk's payload, as many as they are, and makes sizes and
/// checksums right.
inline std::string spliced(std::string bytes, std::size_t at, std::size_t count, const std::string& others) {
  namespace detail = keyfold::detail;
  const auto place = [&](std::size_t offset) { return reinterpret_cast<std::byte*>(bytes.data()) + offset; };
  std::size_t chunk = 16;
  const auto size = [&] { return detail::load_number<std::uint64_t>(place(chunk + 4)); };
  while (at >= chunk + 16 + size() + 4) chunk += 16 + size() + 4;
  detail::store_number(place(chunk + 4), std::uint64_t{size() + others.size() - count});
  bytes.replace(at, count, others);
  detail::store_number(place(bytes.size() - 12), std::uint64_t{bytes.size()});
  seal(bytes);
  return bytes;
}

}  // namespace keyfold_test
