// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/journal_image.hpp>

#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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
