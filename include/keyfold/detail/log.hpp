// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/arena.hpp>
#include <keyfold/detail/holder.hpp>
#include <keyfold/fwd.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

/// The version log: what each commit changed, as before images. A chain per key leads from a row through its
/// older images; a commit is one block of the log. The image after a change is the next newer one, or the row
/// itself, so nothing is stored twice: an update costs 24 bytes beyond the row it replaced, an insert 16.
namespace keyfold::detail {

template <class Row>
struct LogEntry;

/// A row in the table: the element that Boost.MultiIndex keeps. The container's keys are read from `row`;
/// writes that leave them alone change it in place, hence mutable.
template <class Row>
struct Slot {
  explicit Slot(Holder<Row>&& held) noexcept : row(std::move(held)) {}

  const Row& get() const noexcept { return row.get(); }

  mutable Holder<Row> row;
  mutable std::uint64_t mark = 0;           // the plan that touched it last, and where: see Plan
  mutable std::uint64_t order = 0;          // ascending with insertion: its place among rows that are gone
  mutable LogEntry<Row>* newest = nullptr;  // head of its chain in the log
};

enum class LogKind : std::uint8_t {
  insert,
  update,
  erase,
  rekey_out,  // an update that changed the key: the row leaves its old key...
  rekey_in    // ...and, in the entry that follows, arrives at the new one
};

/// One change of one key. Behind it in memory stands a link to the change before, unless it is a key's first,
/// and then a before image, unless it has none (insert, rekey_in).
template <class Row>
struct LogEntry {
  LogEntry(LogKind kind, bool is_first, Version version) noexcept
      : stamp_(version << version_shift | (is_first ? first_flag : 0U) | static_cast<std::uint64_t>(kind)) {}

  LogKind kind() const noexcept { return static_cast<LogKind>(stamp_ & kind_mask); }
  Version version() const noexcept { return stamp_ >> version_shift; }

  /// Whether it inserts a key of which there was no change before. Nothing can be older.
  bool is_first() const noexcept { return (stamp_ & first_flag) != 0; }

  /// Whether its key had a row before. A key without one begins a life here.
  bool has_before() const noexcept { return kind() != LogKind::insert && kind() != LogKind::rekey_in; }

  /// Whether its key has a row afterwards. If not, a life of the key ends here.
  bool leaves_row() const noexcept { return kind() != LogKind::erase && kind() != LogKind::rekey_out; }

  /// The change before this one of the same key, or null.
  LogEntry* older() const noexcept { return is_first() ? nullptr : *older_link(); }
  /// Requires: not is_first().
  void set_older(LogEntry* entry) noexcept {
    assert(!is_first());
    *older_link() = entry;
  }

  Holder<Row>& before() noexcept {
    assert(has_before());
    return *std::launder(reinterpret_cast<Holder<Row>*>(behind(before_offset)));
  }
  const Holder<Row>& before() const noexcept { return const_cast<LogEntry*>(this)->before(); }

  /// The row this change left behind. Requires: leaves_row().
  const Row& after() const noexcept {
    assert(leaves_row() && newer_ != 0);
    const Slot<Row>* slot = newer_slot();
    return slot != nullptr ? slot->get() : newer_entry()->before().get();
  }

  /// What stands above it in the chain: the row, or the next change. Requires: leaves_row().
  const Slot<Row>* newer_slot() const noexcept {
    return (newer_ & slot_tag) != 0 ? reinterpret_cast<const Slot<Row>*>(newer_ & ~slot_tag) : nullptr;
  }
  LogEntry* newer_entry() const noexcept {
    return (newer_ & slot_tag) == 0 ? reinterpret_cast<LogEntry*>(newer_) : nullptr;
  }
  void set_newer(const Slot<Row>* slot) noexcept {
    newer_ = reinterpret_cast<std::uintptr_t>(slot) | slot_tag;
  }
  void set_newer(const LogEntry* entry) noexcept { newer_ = reinterpret_cast<std::uintptr_t>(entry); }

  /// The place that the row had in the order of rows. Requires: not leaves_row().
  std::uint64_t order() const noexcept { return newer_; }
  void set_order(std::uint64_t order) noexcept { newer_ = order; }

  // Layout in a LogBlock: the entry, the link, the before image.
  static constexpr std::size_t round_up(std::size_t bytes, std::size_t to) noexcept {
    return (bytes + to - 1) / to * to;
  }
  static constexpr std::size_t header = 2 * sizeof(std::uint64_t);
  static constexpr std::size_t alignment = std::max(alignof(std::uint64_t), alignof(Holder<Row>));
  static constexpr std::size_t before_offset = round_up(header + sizeof(LogEntry*), alignof(Holder<Row>));
  static constexpr std::size_t first_size = round_up(header, alignment);
  static constexpr std::size_t bare_size = round_up(header + sizeof(LogEntry*), alignment);
  static constexpr std::size_t image_size = round_up(before_offset + sizeof(Holder<Row>), alignment);

  std::size_t size() const noexcept {
    return is_first() ? first_size : has_before() ? image_size : bare_size;
  }

 private:
  static constexpr std::uint64_t kind_mask = 7;
  static constexpr std::uint64_t first_flag = 8;
  static constexpr std::uint64_t version_shift = 4;
  static constexpr std::uint64_t slot_tag = 1;

  std::byte* behind(std::size_t offset) const noexcept {
    return reinterpret_cast<std::byte*>(const_cast<LogEntry*>(this)) + offset;
  }
  LogEntry** older_link() const noexcept {
    return std::launder(reinterpret_cast<LogEntry**>(behind(header)));
  }

  std::uint64_t stamp_;  // version, first_flag, kind
  // Where a row is left: the next change of the same key, or its Slot (tagged) while there is none. Else its
  // order.
  std::uint64_t newer_ = 0;
};

/// How many entries of a block are the first of their keys, how many of the others have no before image, and
/// how many have one.
struct EntryCounts {
  std::size_t firsts = 0;
  std::size_t bare = 0;
  std::size_t images = 0;

  std::size_t all() const noexcept { return firsts + bare + images; }
  bool are_alike() const noexcept { return firsts == all() || bare == all() || images == all(); }
};

/// The entries of one commit, in memory that is taken before the commit; adding them cannot fail.
template <class Row>
class LogBlock {
 public:
  using Entry = LogEntry<Row>;

  LogBlock() = default;
  LogBlock(Arena& arena, const EntryCounts& room)
      : memory_(arena.allocate(bytes_of(room), Entry::alignment)) {}
  LogBlock(LogBlock&& other) noexcept
      : memory_(std::move(other.memory_)), counts_(std::exchange(other.counts_, {})) {}
  LogBlock& operator=(LogBlock other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(counts_, other.counts_);
    return *this;
  }
  ~LogBlock() {
    if constexpr (!std::is_trivially_destructible_v<Holder<Row>>) {
      for (Entry* entry = first(); entry != nullptr; entry = next(entry))
        if (entry->has_before()) std::destroy_at(&entry->before());
    }
  }

  /// Adds the insert of a key of which there was no change before.
  Entry* add_first(Version version) noexcept {
    Entry* entry = put_first(used() / Entry::alignment, version);
    ++counts_.firsts;
    return entry;
  }
  /// Adds an entry without a before image.
  Entry* add(LogKind kind, Version version, Entry* older) noexcept {
    Entry* entry = put(used() / Entry::alignment, kind, version, older);
    ++counts_.bare;
    return entry;
  }
  /// Adds an entry that takes over `before`.
  Entry* add(LogKind kind, Version version, Entry* older, Holder<Row>&& before) noexcept {
    Entry* entry = put(used() / Entry::alignment, kind, version, older, std::move(before));
    ++counts_.images;
    return entry;
  }

  /// Adds the like of an entry of another block, whose image it takes over. Its links are left to do.
  Entry* take_over(Entry& from) noexcept {
    if (from.is_first()) return add_first(from.version());
    Entry* entry = from.has_before() ? add(from.kind(), from.version(), nullptr, std::move(from.before()))
                                     : add(from.kind(), from.version(), nullptr);
    if (!from.leaves_row()) entry->set_order(from.order());
    return entry;
  }

  // The same in any order, each entry at its place: `place` counts alignments from the front of the block. No
  // entry is part of the block before close().

  Entry* put_first(std::size_t place, Version version) noexcept {
    return make(place, Entry::first_size, LogKind::insert, true, version);
  }
  Entry* put(std::size_t place, LogKind kind, Version version, Entry* older) noexcept {
    return link(make(place, Entry::bare_size, kind, false, version), older);
  }
  Entry* put(std::size_t place, LogKind kind, Version version, Entry* older, Holder<Row>&& before) noexcept {
    Entry* entry = make(place, Entry::image_size, kind, false, version);
    ::new (at(place) + Entry::before_offset) Holder<Row>(std::move(before));
    return link(entry, older);
  }
  /// Requires: so many entries stand in a row.
  void close(const EntryCounts& counts) noexcept {
    counts_ = counts;
    assert(used() <= bytes());
  }

  const Entry* first() const noexcept { return const_cast<LogBlock*>(this)->first(); }
  Entry* first() noexcept { return used() == 0 ? nullptr : entry_at(0); }
  const Entry* next(const Entry* entry) const noexcept { return next(const_cast<Entry*>(entry)); }
  Entry* next(Entry* entry) const noexcept {
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(entry) - memory_.data()) + entry->size();
    return offset == used() ? nullptr : entry_at(offset);
  }

  const EntryCounts& counts() const noexcept { return counts_; }

  std::size_t bytes() const noexcept { return memory_.size(); }

  static constexpr std::size_t bytes_of(const EntryCounts& counts) noexcept {
    return counts.firsts * Entry::first_size + counts.bare * Entry::bare_size +
           counts.images * Entry::image_size;
  }

 private:
  std::size_t used() const noexcept { return bytes_of(counts_); }

  std::byte* at(std::size_t place) const noexcept { return memory_.data() + place * Entry::alignment; }
  Entry* entry_at(std::size_t offset) const noexcept {
    return std::launder(reinterpret_cast<Entry*>(memory_.data() + offset));
  }

  Entry* make(std::size_t place, [[maybe_unused]] std::size_t size, LogKind kind, bool is_first,
              Version version) noexcept {
    assert(place * Entry::alignment + size <= bytes());
    return ::new (at(place)) Entry(kind, is_first, version);
  }
  static Entry* link(Entry* entry, Entry* older) noexcept {
    ::new (reinterpret_cast<std::byte*>(entry) + Entry::header) Entry*(older);
    if (older != nullptr && older->leaves_row()) older->set_newer(entry);
    return entry;
  }

  ArenaBlock memory_;
  EntryCounts counts_;
};

}  // namespace keyfold::detail
