// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/bytes.hpp>
#include <keyfold/detail/files.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <system_error>

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
