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
#include <utility>

/// The version log: what each commit changed, as before images. A chain per key leads from a row through its
/// older images; a commit is one block of the log. The image after a change is the next newer one, or the row
/// itself, so nothing is stored twice and an update costs 24 bytes beyond the row it replaced.
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

/// One change of one key. A before image follows it in memory unless it has none (insert, rekey_in).
template <class Row>
struct LogEntry {
  LogEntry(LogKind kind, Version version, LogEntry* older_entry) noexcept
      : older(older_entry), stamp_(version << kind_bits | static_cast<std::uint64_t>(kind)) {
    if (older != nullptr && older->leaves_row()) older->set_newer(this);
  }

  LogKind kind() const noexcept { return static_cast<LogKind>(stamp_ & kind_mask); }
  Version version() const noexcept { return stamp_ >> kind_bits; }

  /// Whether its key had a row before. A key without one begins a life here.
  bool has_before() const noexcept { return kind() != LogKind::insert && kind() != LogKind::rekey_in; }

  /// Whether its key has a row afterwards. If not, a life of the key ends here.
  bool leaves_row() const noexcept { return kind() != LogKind::erase && kind() != LogKind::rekey_out; }

  Holder<Row>& before() noexcept {
    assert(has_before());
    return *std::launder(reinterpret_cast<Holder<Row>*>(reinterpret_cast<std::byte*>(this) + before_offset));
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

  // Layout in a LogBlock: the entry, and behind it the before image.
  static constexpr std::size_t round_up(std::size_t bytes, std::size_t to) noexcept {
    return (bytes + to - 1) / to * to;
  }
  static constexpr std::size_t header = 3 * sizeof(std::uint64_t);
  static constexpr std::size_t alignment = std::max(alignof(std::uint64_t), alignof(Holder<Row>));
  static constexpr std::size_t before_offset = round_up(header, alignof(Holder<Row>));
  static constexpr std::size_t bare_size = round_up(header, alignment);
  static constexpr std::size_t image_size = round_up(before_offset + sizeof(Holder<Row>), alignment);

  std::size_t size() const noexcept { return has_before() ? image_size : bare_size; }

  LogEntry* older;  // the change before this one of the same key, or null

 private:
  static constexpr std::uint64_t kind_bits = 3;
  static constexpr std::uint64_t kind_mask = 7;
  static constexpr std::uint64_t slot_tag = 1;

  std::uint64_t stamp_;  // version and kind
  // Where a row is left: the next change of the same key, or its Slot (tagged) while there is none. Else its
  // order.
  std::uint64_t newer_ = 0;
};

/// How many entries of a block have a before image, and how many have none.
struct EntryCounts {
  std::size_t bare = 0;
  std::size_t images = 0;
};

/// The entries of one commit, in memory that is taken before the commit; adding them cannot fail.
template <class Row>
class LogBlock {
 public:
  using Entry = LogEntry<Row>;

  LogBlock() = default;
  LogBlock(Arena& arena, std::size_t bare_entries, std::size_t image_entries)
      : memory_(arena.allocate(bare_entries * Entry::bare_size + image_entries * Entry::image_size,
                               Entry::alignment)) {}
  LogBlock(LogBlock&& other) noexcept
      : memory_(std::move(other.memory_)),
        used_(std::exchange(other.used_, 0)),
        bare_(std::exchange(other.bare_, 0)) {}
  LogBlock& operator=(LogBlock other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(used_, other.used_);
    std::swap(bare_, other.bare_);
    return *this;
  }
  ~LogBlock() {
    for (Entry* entry = first(); entry != nullptr;) {
      Entry* following = next(entry);
      if (entry->has_before()) std::destroy_at(&entry->before());
      std::destroy_at(entry);
      entry = following;
    }
  }

  /// Adds an entry without a before image.
  Entry* add(LogKind kind, Version version, Entry* older) noexcept {
    assert(used_ + Entry::bare_size <= bytes());
    auto* entry = ::new (memory_.data() + used_) Entry(kind, version, older);
    used_ += entry->size();
    bare_ += entry->has_before() ? 0U : 1U;
    return entry;
  }

  /// Adds an entry that takes over `before`.
  Entry* add(LogKind kind, Version version, Entry* older, Holder<Row>&& before) noexcept {
    assert(used_ + Entry::image_size <= bytes());
    ::new (memory_.data() + used_ + Entry::before_offset) Holder<Row>(std::move(before));
    return add(kind, version, older);
  }

  // The same in any order, each entry at its place: `place` counts alignments from the front of the block. No
  // entry is part of the block before close().

  Entry* put(std::size_t place, LogKind kind, Version version, Entry* older) noexcept {
    return ::new (memory_.data() + place * Entry::alignment) Entry(kind, version, older);
  }
  Entry* put(std::size_t place, LogKind kind, Version version, Entry* older, Holder<Row>&& before) noexcept {
    std::byte* const at = memory_.data() + place * Entry::alignment;
    ::new (at + Entry::before_offset) Holder<Row>(std::move(before));
    return ::new (at) Entry(kind, version, older);
  }
  /// Requires: so many entries stand in a row.
  void close(const EntryCounts& counts) noexcept {
    used_ = counts.bare * Entry::bare_size + counts.images * Entry::image_size;
    bare_ = counts.bare;
    assert(used_ <= bytes());
  }

  const Entry* first() const noexcept { return used_ == 0 ? nullptr : entry_at(0); }
  Entry* first() noexcept { return used_ == 0 ? nullptr : entry_at(0); }
  const Entry* next(const Entry* entry) const noexcept { return next(const_cast<Entry*>(entry)); }
  Entry* next(Entry* entry) const noexcept {
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(entry) - memory_.data()) + entry->size();
    return offset == used_ ? nullptr : entry_at(offset);
  }

  EntryCounts counts() const noexcept {
    return {bare_, (used_ - bare_ * Entry::bare_size) / Entry::image_size};
  }

  std::size_t bytes() const noexcept { return memory_.size(); }

 private:
  Entry* entry_at(std::size_t offset) const noexcept {
    return std::launder(reinterpret_cast<Entry*>(memory_.data() + offset));
  }

  ArenaBlock memory_;
  std::size_t used_ = 0;
  std::size_t bare_ = 0;  // entries without a before image
};

}  // namespace keyfold::detail
