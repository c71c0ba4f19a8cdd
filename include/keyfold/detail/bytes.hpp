// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <keyfold/error.hpp>

/// Bytes to be written and bytes that were read. Numbers have a fixed width, the lowest byte first.
namespace keyfold::detail {

using Bytes = std::vector<std::byte>;

/// A buffer that grows. Unlike a vector it does not zero what is about to be written.
class ByteBuffer {
 public:
  const std::byte* data() const noexcept { return data_.get(); }
  std::byte* data() noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::span<const std::byte> bytes() const noexcept { return {data(), size_}; }
  void clear() noexcept { size_ = 0; }

  /// Requires: size <= size().
  void truncate(std::size_t size) noexcept {
    assert(size <= size_);
    size_ = size;
  }

  /// Makes room for `count` bytes at the end, to be written by the caller. Strong guarantee.
  std::byte* extend(std::size_t count) {
    if (count > capacity_ - size_) grow(count);
    return data_.get() + std::exchange(size_, size_ + count);
  }
  void append(const void* from, std::size_t count) {
    if (count != 0) std::memcpy(extend(count), from, count);
  }

 private:
  [[gnu::noinline]] void grow(std::size_t count) {
    const std::size_t wanted = std::max({size_ + count, capacity_ * 2, std::size_t{256}});
    std::unique_ptr<std::byte[]> larger(new std::byte[wanted]);
    if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = wanted;
  }

  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Bytes do not say what they should. The callers of decoders turn it into an error that names the file.
class DecodeError : public std::runtime_error {
 public:
  DecodeError(std::size_t wrong_offset, const std::string& what_is_wrong)
      : std::runtime_error(what_is_wrong), offset(wrong_offset) {}

  std::size_t offset;  ///< in the bytes of the reader
};

/// Reads bytes from front to back, never past their end.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes) noexcept
      : first_(bytes.data()), at_(first_), end_(first_ + bytes.size()) {}

  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  std::size_t offset() const noexcept { return static_cast<std::size_t>(at_ - first_); }

  /// The next `count` bytes. Throws DecodeError if there are fewer.
  const std::byte* take(std::size_t count) {
    if (count > left()) fail_early();
    return std::exchange(at_, at_ + count);
  }

  /// Ends the reader `count` bytes from here; returns how many bytes that hides.
  std::size_t limit(std::size_t count) {
    if (count > left()) fail("a length goes beyond the end");
    return static_cast<std::size_t>(std::exchange(end_, at_ + count) - at_) - count;
  }
  /// Shows again what limit() has hidden.
  void unlimit(std::size_t hidden) noexcept { end_ += hidden; }

  [[noreturn]] void fail(const std::string& what_is_wrong) const {
    throw DecodeError(offset(), what_is_wrong);
  }

 private:
  [[noreturn]] [[gnu::noinline]] void fail_early() const { fail("it ends too early"); }

  const std::byte* first_ = nullptr;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
};

template <class Number>
  requires std::is_arithmetic_v<Number>
void store_number(std::byte* to, Number number) noexcept {
  std::memcpy(to, &number, sizeof number);
  if constexpr (std::endian::native != std::endian::little) std::reverse(to, to + sizeof number);
}

template <class Number>
  requires std::is_arithmetic_v<Number>
Number load_number(const std::byte* from) noexcept {
  std::byte bytes[sizeof(Number)];
  std::memcpy(bytes, from, sizeof bytes);
  if constexpr (std::endian::native != std::endian::little) std::reverse(bytes, bytes + sizeof bytes);
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

template <class Number>
void put_number(ByteBuffer& out, Number number) {
  detail::store_number(out.extend(sizeof number), number);
}
template <class Number>
void put_number(Bytes& out, Number number) {
  out.resize(out.size() + sizeof number);
  detail::store_number(out.data() + out.size() - sizeof number, number);
}
inline void put_u8(ByteBuffer& out, std::uint8_t number) { detail::put_number(out, number); }
inline void put_u32(ByteBuffer& out, std::uint32_t number) { detail::put_number(out, number); }
inline void put_u64(ByteBuffer& out, std::uint64_t number) { detail::put_number(out, number); }

template <class Number>
Number get_number(ByteReader& in) {
  return detail::load_number<Number>(in.take(sizeof(Number)));
}
inline std::uint8_t get_u8(ByteReader& in) { return detail::get_number<std::uint8_t>(in); }
inline std::uint32_t get_u32(ByteReader& in) { return detail::get_number<std::uint32_t>(in); }
inline std::uint64_t get_u64(ByteReader& in) { return detail::get_number<std::uint64_t>(in); }

/// The number of elements of something, 4 bytes.
inline void put_count(ByteBuffer& out, std::size_t count) {
  if (count > std::numeric_limits<std::uint32_t>::max()) {
    throw Error("a text or container of " + std::to_string(count) +
                " elements cannot be saved; the limit is 4294967295");
  }
  detail::put_u32(out, static_cast<std::uint32_t>(count));
}

inline void put_text(ByteBuffer& out, std::string_view text) {
  detail::put_count(out, text.size());
  out.append(text.data(), text.size());
}
inline std::string_view get_text(ByteReader& in) {
  const std::size_t size = detail::get_u32(in);
  return {reinterpret_cast<const char*>(in.take(size)), size};
}

/// A flag, which is 0 or 1.
inline bool get_flag(ByteReader& in) {
  const std::uint8_t flag = detail::get_u8(in);
  if (flag > 1) in.fail("a flag is neither 0 nor 1");
  return flag != 0;
}

}  // namespace keyfold::detail
