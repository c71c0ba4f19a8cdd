// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/frame.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
