// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/chunks.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/prefetch.hpp>
#include <keyfold/detail/schema.hpp>
#include <keyfold/detail/sequence_writer.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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
