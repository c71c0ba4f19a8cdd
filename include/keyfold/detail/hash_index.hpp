// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/arena.hpp>
#include <keyfold/detail/list.hpp>
#include <keyfold/detail/prefetch.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <utility>

namespace keyfold::detail {

/// An item and the hash of its key.
struct HashEntry {
  std::uint64_t hash = 0;
  void* item = nullptr;  // null: free
};

/// An index from 64-bit hashes to items that live elsewhere: extendible hashing (Fagin, Nievergelt, Pippenger
/// and Strong, ACM TODS 4, 1979). The high bits of a hash choose a segment, the low bits a cache line in it.
/// Within a segment, linear probing from line to line with backward-shift deletion (after Knuth, The Art of
/// Computer Programming 3, 6.4, algorithm R), so there are no tombstones.
///
/// The entries of a line stand at its front, and an entry stands in a line behind its own only if all lines
/// between are full. Mostly one line says all; it is searched without a branch, since a processor could not
/// guess where in it an entry is.
///
/// A segment that fills up doubles until it has 64 KiB, and then splits in two. So the index grows a little
/// at a time: no insertion pays for a rehash of the whole.
///
/// insert(), erase() and replace() never allocate nor throw, lookups throw only what the caller's equality
/// does. Several items may have one hash, and even one key: that is the caller's business, and lets a write
/// swap keys in any order.
class HashIndex {
 public:
  using Entry = HashEntry;

  explicit HashIndex(std::pmr::memory_resource& memory = *std::pmr::new_delete_resource()) noexcept
      : directory_(memory), segments_(memory) {}
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;
  ~HashIndex() { clear(); }

  /// The item with this hash for which `equal(item)`, or null.
  template <class Equal>
  void* find(std::uint64_t hash, Equal equal) const {
    if (directory_.empty()) return nullptr;
    const Table table = table_of(hash);
    for (std::size_t at = line_of(hash, table.mask);; at = next_line(at, table.mask)) {
      const Entry* const line = table.entries + at;
      for (std::size_t i = first_like(line, hash); i < line_size; ++i) {
        if (line[i].hash == hash && line[i].item != nullptr && equal(line[i].item)) return line[i].item;
      }
      if (!is_full(line)) return nullptr;
    }
  }

  /// Starts loading what find(hash) reads first.
  void prefetch(std::uint64_t hash) const noexcept {
    if (directory_.empty()) return;
    const Table table = table_of(hash);
    detail::prefetch(table.entries + line_of(hash, table.mask));
  }

  /// The first item that find(hash) would compare: worth a prefetch, no answer.
  void* candidate(std::uint64_t hash) const noexcept {
    if (directory_.empty()) return nullptr;
    const Table table = table_of(hash);
    for (std::size_t at = line_of(hash, table.mask);; at = next_line(at, table.mask)) {
      const Entry* const line = table.entries + at;
      const Entry& found = line[first_like(line, hash)];
      if ((found.hash == hash) | (found.item == nullptr)) return found.item;
    }
  }

  /// Makes insertions of these hashes free of allocation, until something else is inserted.
  /// `for_each_hash(visit)` calls `visit(hash)` for each of the `count`, and may be called several times.
  /// Throws what the memory resource throws; strong guarantee.
  template <class ForEachHash>
  void reserve(std::size_t count, ForEachHash for_each_hash) {
    if (count == 0) return;
    presize(count);
    do {
      crowded_.clear();
      ++round_;
      for_each_hash([&](std::uint64_t hash) { expect(hash); });
      for (const std::uint64_t hash : crowded_) {
        const Segment& segment = segment_of(hash);
        make_room(hash, segment.used + segment.expected, size_ + count);
      }
    } while (!crowded_.empty());
  }
  /// Likewise, for one.
  void reserve_one(std::uint64_t hash) {
    if (directory_.empty()) presize(1);
    while (segment_of(hash).is_full()) make_room(hash, segment_of(hash).used + 1, size_ + 1);
  }

  /// Makes an empty index as large as so many items will need. Throws what the memory resource throws; strong
  /// guarantee.
  void presize(std::size_t count) {
    if (count == 0 || !directory_.empty()) return;
    std::size_t capacity = smallest;
    while (capacity < full && limit(capacity) < count) capacity *= 2;
    unsigned depth = 0;
    while ((limit(capacity) / 8 * 7) << depth < count && capacity == full) ++depth;
    build(depth, capacity);
  }

  /// Requires: reserved room.
  void insert(std::uint64_t hash, void* item) noexcept {
    const Table& table = table_of(hash);
    assert(!segments_[table.segment].is_full());
    place(table.entries, table.mask, {hash, item});
    ++segments_[table.segment].used;
    ++size_;
  }

  /// Throws what the memory resource throws; strong guarantee.
  void add(std::uint64_t hash, void* item) {
    reserve_one(hash);
    insert(hash, item);
  }

  /// Adds the item, unless there is one with this hash for which `equal(other)`; returns that one, or null.
  /// Throws what the memory resource and `equal` throw; strong guarantee.
  template <class Equal>
  void* add_if_new(std::uint64_t hash, void* item, Equal equal) {
    reserve_one(hash);
    if (void* const other = find(hash, equal)) return other;
    insert(hash, item);
    return nullptr;
  }

  /// Requires: the item is in the index with this hash.
  void erase(std::uint64_t hash, const void* item) noexcept {
    const Table& table = table_of(hash);
    close_gap(table, static_cast<std::size_t>(&entry_of(table, hash, item) - table.entries));
    --segments_[table.segment].used;
    --size_;
  }

  /// Lets `to` stand where `from` stood. Requires: `from` is in the index with this hash.
  void replace(std::uint64_t hash, const void* from, void* to) noexcept {
    entry_of(table_of(hash), hash, from).item = to;
  }

  /// Calls `visit(hash, item)` for every item, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Segment& segment : segments_)
      segment.for_each([&](const Entry& entry) { visit(entry.hash, entry.item); });
  }

  /// Gives memory back when less than an eighth of it is in use. Throws what the memory resource throws;
  /// strong guarantee.
  void shrink() {
    if (size_ >= places_ / 8) return;
    HashIndex smaller(memory());
    smaller.reserve(size_, [&](auto visit) { for_each([&](std::uint64_t hash, void*) { visit(hash); }); });
    for_each([&](std::uint64_t hash, void* item) { smaller.insert(hash, item); });
    swap(smaller);
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept {
    return places_ * sizeof(Entry) + directory_.capacity() * sizeof(Table) +
           segments_.capacity() * sizeof(Segment);
  }

 private:
  /// What a search needs of a segment.
  struct Table {
    Entry* entries = nullptr;
    std::uint32_t mask = 0;
    std::uint32_t segment = 0;
  };

  struct Segment {
    bool is_full() const noexcept { return used == limit(capacity); }
    template <class Visit>
    void for_each(Visit visit) const {
      for (std::size_t at = 0; at < capacity; ++at) {
        if (entries[at].item != nullptr) visit(entries[at]);
      }
    }

    Entry* entries;
    std::size_t capacity;  // a power of two
    unsigned depth;        // of the high bits of a hash, so many are the same for all its items
    std::size_t used = 0;
    std::uint64_t round = 0;    // of reserve(), in which...
    std::size_t expected = 0;   // ...so many more are expected
    std::uint64_t crowded = 0;  // the round in which that was too many
  };

  static constexpr std::size_t line_size = 4;  // entries of a cache line
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t smallest = 16;
  static constexpr std::size_t full = 4096;  // places of a segment that splits rather than grows: 64 KiB

  // Three quarters full at the most.
  static constexpr std::size_t limit(std::size_t capacity) noexcept { return capacity / 4 * 3; }

  std::pmr::memory_resource& memory() const noexcept { return directory_.memory(); }

  std::size_t number_of(std::uint64_t hash) const noexcept { return (hash >> 1U) >> (63U - depth_); }
  const Table& table_of(std::uint64_t hash) const noexcept { return directory_[number_of(hash)]; }
  Segment& segment_of(std::uint64_t hash) noexcept { return segments_[table_of(hash).segment]; }

  // --- Lines, by the place of their first entry. `mask`: the places of the segment, less one.

  static std::size_t line_of(std::uint64_t hash, std::size_t mask) noexcept {
    return hash & mask & ~(line_size - 1);
  }
  static std::size_t next_line(std::size_t line, std::size_t mask) noexcept {
    return (line + line_size) & mask;
  }
  static bool is_full(const Entry* line) noexcept { return line[line_size - 1].item != nullptr; }

  /// The first entry of a line that has this hash, or else its last.
  static std::size_t first_like(const Entry* line, std::uint64_t hash) noexcept {
    std::size_t first = line_size - 1;
    for (std::size_t i = line_size - 1; i-- > 0;) first = line[i].hash == hash ? i : first;
    return first;
  }

  static std::size_t used(const Entry* line) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < line_size; ++i) count += line[i].item != nullptr ? 1U : 0U;
    return count;
  }

  static Entry& entry_of(const Table& table, std::uint64_t hash, const void* item) noexcept {
    for (std::size_t at = line_of(hash, table.mask);; at = next_line(at, table.mask)) {
      for (std::size_t i = at; i < at + line_size; ++i)
        if (table.entries[i].item == item) return table.entries[i];
    }
  }

  static void place(Entry* entries, std::size_t mask, const Entry& entry) noexcept {
    std::size_t at = line_of(entry.hash, mask);
    while (is_full(entries + at)) at = next_line(at, mask);
    entries[at + used(entries + at)] = entry;
  }

  static void close_gap(const Table& table, std::size_t gap) noexcept {
    for (;;) {
      const std::size_t line = gap & ~(line_size - 1);
      Entry& last = table.entries[line + used(table.entries + line) - 1];
      const bool was_full = is_full(table.entries + line);
      table.entries[gap] = last;
      last = {};
      if (!was_full) return;
      const std::size_t mover = mover_to(table, line);
      if (mover == none) return;
      last = table.entries[mover];
      gap = mover;
    }
  }

  // An entry behind this line that may stand in it, or `none`.
  static std::size_t mover_to(const Table& table, std::size_t line) noexcept {
    for (std::size_t at = next_line(line, table.mask);; at = next_line(at, table.mask)) {
      const std::size_t distance = (at - line) & table.mask;
      for (std::size_t i = at; i < at + line_size && table.entries[i].item != nullptr; ++i)
        if (((at - line_of(table.entries[i].hash, table.mask)) & table.mask) >= distance) return i;
      if (!is_full(table.entries + at)) return none;
    }
  }

  // --- Room

  void expect(std::uint64_t hash) {
    Segment& segment = segment_of(hash);
    if (segment.round != round_) {
      segment.round = round_;
      segment.expected = 0;
    }
    ++segment.expected;
    if (segment.used + segment.expected <= limit(segment.capacity) || segment.crowded == round_) return;
    segment.crowded = round_;
    crowded_.push_back(hash);
  }

  Segment make_segment(std::size_t capacity, unsigned depth) {
    const std::size_t bytes = capacity * sizeof(Entry);
    auto* entries = static_cast<std::byte*>(memory().allocate(bytes, entry_alignment));
    if (capacity == full) detail::populate(entries, entries + bytes);
    return {static_cast<Entry*>(std::memset(entries, 0, bytes)), capacity, depth};
  }
  void release(const Segment& segment) noexcept {
    memory().deallocate(segment.entries, segment.capacity * sizeof(Entry), entry_alignment);
  }

  // The segment of this hash gets room for `need` items, if half of them go to each half of it. Splits do not
  // help where too many of the `total` hashes are alike.
  void make_room(std::uint64_t hash, std::size_t need, std::size_t total) {
    const Segment& segment = segment_of(hash);
    if (need <= limit(segment.capacity)) return;
    const auto deepest = static_cast<unsigned>(std::bit_width(total / (full / 8))) + 1;
    if (segment.capacity < full || segment.depth >= deepest) {
      double_segment(hash);
      make_room(hash, need, total);
    } else {
      const std::uint64_t half = std::uint64_t{1} << (63U - segment.depth);
      split_segment(hash);
      make_room(hash & ~half, need / 2, total);
      make_room(hash | half, need / 2, total);
    }
  }

  void double_segment(std::uint64_t hash) {
    Segment& segment = segment_of(hash);
    Segment larger = make_segment(segment.capacity * 2, segment.depth);
    larger.used = segment.used;
    segment.for_each([&](const Entry& entry) { place(larger.entries, larger.capacity - 1, entry); });
    places_ += segment.capacity;
    release(segment);
    segment = larger;
    point_to(hash, table_of(hash).segment, table_of(hash).segment);
  }

  void split_segment(std::uint64_t hash) {
    if (segment_of(hash).depth == depth_) double_directory();
    const unsigned depth = segment_of(hash).depth + 1;
    const std::size_t capacity = segment_of(hash).capacity;
    segments_.reserve(segments_.size() == segments_.capacity() ? segments_.size() * 2 : 0);
    Segment low = make_segment(capacity, depth);
    Segment high = low;
    try {
      high = make_segment(capacity, depth);
    } catch (...) {
      release(low);
      throw;
    }
    const std::uint32_t number = table_of(hash).segment;
    segments_[number].for_each([&](const Entry& entry) {
      Segment& half = ((entry.hash >> (64U - depth)) & 1U) == 0 ? low : high;
      place(half.entries, capacity - 1, entry);
      ++half.used;
    });
    places_ += capacity;
    release(segments_[number]);
    segments_[number] = low;
    segments_.push_back(high);
    point_to(hash, number, static_cast<std::uint32_t>(segments_.size() - 1));
  }

  // Of the places in the directory that lead to one segment, half are to lead to `low`, the others to `high`.
  void point_to(std::uint64_t hash, std::uint32_t low, std::uint32_t high) noexcept {
    const unsigned depth = segments_[low].depth - (low == high ? 0U : 1U);  // that all of them share
    const std::size_t count = std::size_t{1} << (depth_ - depth);
    const std::size_t first = number_of(hash) / count * count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t number = i < count / 2 ? low : high;
      const Segment& segment = segments_[number];
      directory_[first + i] = {segment.entries, static_cast<std::uint32_t>(segment.capacity - 1), number};
    }
  }

  void double_directory() {
    List<Table> larger(memory());
    larger.reserve(directory_.size() * 2);
    for (const Table& table : directory_) {
      larger.push_back(table);
      larger.push_back(table);
    }
    directory_.swap(larger);
    ++depth_;
  }

  void build(unsigned depth, std::size_t capacity) {
    HashIndex made(memory());
    made.depth_ = depth;
    const std::size_t count = std::size_t{1} << depth;
    made.directory_.reserve(count);
    made.segments_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      made.segments_.push_back(made.make_segment(capacity, depth));
      made.directory_.push_back({made.segments_.back().entries, static_cast<std::uint32_t>(capacity - 1),
                                 static_cast<std::uint32_t>(i)});
      made.places_ += capacity;
    }
    swap(made);
  }

  // --- The whole

  void clear() noexcept {
    for (const Segment& segment : segments_) release(segment);
  }

  void swap(HashIndex& other) noexcept {
    directory_.swap(other.directory_);
    segments_.swap(other.segments_);
    std::swap(depth_, other.depth_);
    std::swap(size_, other.size_);
    std::swap(places_, other.places_);
    std::swap(round_, other.round_);
  }

  static constexpr std::size_t entry_alignment = 64;  // a cache line has whole entries

  List<Table> directory_;  // by the highest `depth_` bits of a hash
  List<Segment> segments_;
  unsigned depth_ = 0;
  std::size_t size_ = 0;
  std::size_t places_ = 0;       // of all segments
  std::uint64_t round_ = 0;      // of reserve()
  List<std::uint64_t> crowded_;  // a hash of each segment with too little room for what is expected
};

}  // namespace keyfold::detail
