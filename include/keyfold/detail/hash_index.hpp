// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/arena.hpp>
#include <keyfold/detail/hash_line.hpp>
#include <keyfold/detail/list.hpp>
#include <keyfold/detail/prefetch.hpp>

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <utility>

namespace keyfold::detail {

/// An index from 64-bit hashes to items that live elsewhere: extendible hashing (Fagin, Nievergelt, Pippenger
/// and Strong, ACM TODS 4, 1979). The high bits of a hash choose a segment, the low bits a line in it. Within
/// a segment, linear probing from line to line with backward-shift deletion (after Knuth, The Art of Computer
/// Programming 3, 6.4, algorithm R), so there are no tombstones: an item stands in a line behind its own only
/// if all lines between are full. Mostly one line says all.
///
/// A segment that fills up doubles until it has 64 KiB, and then splits in two. So the index grows a little
/// at a time: no insertion pays for a rehash of the whole.
///
/// insert(), erase() and replace() never allocate nor throw, lookups throw only what the caller's equality
/// does. Several items may have one hash, and even one key: that is the caller's business, and lets a write
/// swap keys in any order.
class HashIndex {
 public:
  explicit HashIndex(std::pmr::memory_resource& memory = *std::pmr::new_delete_resource()) noexcept
      : directory_(memory), segments_(memory) {}
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;
  ~HashIndex() { clear(); }

  /// The item with this hash for which `equal(item)`, or null.
  template <class Equal>
  void* find(std::uint64_t hash, Equal equal) const {
    const Table table = table_of(hash);
    for (std::size_t at = table.line_of(hash);; at = table.line_after(at)) {
      const HashLine& line = table.lines[at];
      for (unsigned places = line.like(hash); places != 0; places &= places - 1) {
        const unsigned place = detail::first_place(places);
        void* const item = line.items[place];
        if (line.hashes[place] == hash && item != nullptr && equal(item)) return item;
      }
      if (!line.is_full()) return nullptr;
    }
  }

  /// Starts loading what find(hash) reads first.
  void prefetch(std::uint64_t hash) const noexcept {
    const Table& table = table_of(hash);
    detail::prefetch(table.lines + table.line_of(hash));
  }

  /// An item that find(hash) may find, or null if it finds nothing: worth a prefetch, no answer.
  void* candidate(std::uint64_t hash) const noexcept {
    const Table table = table_of(hash);
    for (std::size_t at = table.line_of(hash);; at = table.line_after(at)) {
      const HashLine& line = table.lines[at];
      const unsigned places = line.like(hash);
      // Of a line that is not full the last place is free.
      if (int{places != 0} | int{!line.is_full()})
        return line.items[detail::first_place(places | 1U << HashLine::last)];
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
    std::size_t lines = smallest;
    while (lines < full && limit(lines) < count) lines *= 2;
    unsigned depth = 0;
    while ((limit(lines) / 8 * 7) << depth < count && lines == full) ++depth;
    build(depth, lines);
  }

  /// Requires: reserved room.
  void insert(std::uint64_t hash, void* item) noexcept {
    const Table& table = table_of(hash);
    assert(!segments_[table.segment].is_full());
    place(table, hash, item);
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
    close_gap(table, place_of(table, hash, item));
    --segments_[table.segment].used;
    --size_;
  }

  /// Lets `to` stand where `from` stood. Requires: `from` is in the index with this hash.
  void replace(std::uint64_t hash, const void* from, void* to) noexcept {
    const Table& table = table_of(hash);
    const Place place = place_of(table, hash, from);
    table.lines[place.line].items[place.number] = to;
  }

  /// Calls `visit(hash, item)` for every item, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Segment& segment : segments_) segment.for_each(visit);
  }

  /// Gives memory back when less than an eighth of it is in use. Throws what the memory resource throws;
  /// strong guarantee.
  void shrink() {
    if (size_ >= lines_ * HashLine::size / 8) return;
    HashIndex smaller(memory());
    smaller.reserve(size_, [&](auto visit) { for_each([&](std::uint64_t hash, void*) { visit(hash); }); });
    for_each([&](std::uint64_t hash, void* item) { smaller.insert(hash, item); });
    swap(smaller);
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept {
    return lines_ * sizeof(HashLine) + directory_.capacity() * sizeof(Table) +
           segments_.capacity() * sizeof(Segment);
  }

 private:
  /// What a search needs of a segment.
  struct Table {
    std::size_t line_of(std::uint64_t hash) const noexcept { return hash & mask; }
    std::size_t line_after(std::size_t line) const noexcept { return (line + 1) & mask; }

    HashLine* lines;
    std::uint32_t mask;  // the number of lines, a power of two, less one
    std::uint32_t segment;
  };

  struct Segment {
    bool is_full() const noexcept { return used == limit(lines); }
    template <class Visit>
    void for_each(Visit visit) const {
      for (const HashLine* line = first; line != first + lines; ++line) {
        for (std::size_t i = 0; i < HashLine::size && line->items[i] != nullptr; ++i)
          visit(line->hashes[i], line->items[i]);
      }
    }
    Table table(std::size_t number) const noexcept {
      return {first, static_cast<std::uint32_t>(lines - 1), static_cast<std::uint32_t>(number)};
    }

    HashLine* first;
    std::size_t lines;
    unsigned depth;             // of the high bits of a hash, so many are the same for all its items
    std::size_t used = 0;       // places
    std::uint64_t round = 0;    // of reserve(), in which...
    std::size_t expected = 0;   // ...so many more are expected
    std::uint64_t crowded = 0;  // the round in which that was too many
  };

  /// Where an item stands.
  struct Place {
    std::size_t line;
    std::size_t number;
  };

  static constexpr std::size_t smallest = 4;
  static constexpr std::size_t full = 1024;  // lines of a segment that splits rather than grows: 64 KiB

  // Places of so many lines that are used at the most: three quarters.
  static constexpr std::size_t limit(std::size_t lines) noexcept { return lines * HashLine::size / 4 * 3; }

  std::pmr::memory_resource& memory() const noexcept { return directory_.memory(); }

  std::size_t number_of(std::uint64_t hash) const noexcept { return (hash >> 1U) >> shift_; }
  const Table& table_of(std::uint64_t hash) const noexcept { return tables_[number_of(hash)]; }
  Segment& segment_of(std::uint64_t hash) noexcept { return segments_[table_of(hash).segment]; }

  // --- Lines

  static Place place_of(const Table& table, std::uint64_t hash, const void* item) noexcept {
    for (std::size_t at = table.line_of(hash);; at = table.line_after(at)) {
      for (std::size_t i = 0; i < HashLine::size; ++i)
        if (table.lines[at].items[i] == item) return {at, i};
    }
  }

  static void place(const Table& table, std::uint64_t hash, void* item) noexcept {
    std::size_t at = table.line_of(hash);
    while (table.lines[at].is_full()) at = table.line_after(at);
    table.lines[at].add(hash, item);
  }

  static void close_gap(const Table& table, Place gap) noexcept {
    for (;;) {
      HashLine& line = table.lines[gap.line];
      const std::size_t last = line.used() - 1;
      const bool was_full = line.is_full();
      line.set(gap.number, line.hashes[last], line.items[last]);
      line.set(last, 0, nullptr);
      if (!was_full) return;
      const Place mover = mover_to(table, gap.line);
      if (mover.line == gap.line) return;
      const HashLine& from = table.lines[mover.line];
      line.set(last, from.hashes[mover.number], from.items[mover.number]);
      gap = mover;
    }
  }

  // An item behind this line that may stand in it, or a place in this line if there is none.
  static Place mover_to(const Table& table, std::size_t line) noexcept {
    for (std::size_t at = table.line_after(line);; at = table.line_after(at)) {
      const HashLine& next = table.lines[at];
      const std::size_t distance = (at - line) & table.mask;
      for (std::size_t i = 0; i < HashLine::size && next.items[i] != nullptr; ++i)
        if (((at - table.line_of(next.hashes[i])) & table.mask) >= distance) return {at, i};
      if (!next.is_full()) return {line, 0};
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
    if (segment.used + segment.expected <= limit(segment.lines) || segment.crowded == round_) return;
    segment.crowded = round_;
    crowded_.push_back(hash);
  }

  Segment make_segment(std::size_t lines, unsigned depth) {
    const std::size_t bytes = lines * sizeof(HashLine);
    auto* first = static_cast<std::byte*>(memory().allocate(bytes, alignof(HashLine)));
    if (lines == full) detail::populate(first, first + bytes);
    return {static_cast<HashLine*>(std::memset(first, 0, bytes)), lines, depth};
  }
  void release(const Segment& segment) noexcept {
    memory().deallocate(segment.first, segment.lines * sizeof(HashLine), alignof(HashLine));
  }

  // The segment of this hash gets room for `need` items, if half of them go to each half of it. Splits do not
  // help where too many of the `total` hashes are alike.
  void make_room(std::uint64_t hash, std::size_t need, std::size_t total) {
    const Segment& segment = segment_of(hash);
    if (need <= limit(segment.lines)) return;
    const auto deepest = static_cast<unsigned>(std::bit_width(total / (full / 8))) + 1;
    if (segment.lines < full || segment.depth >= deepest) {
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
    const std::uint32_t number = table_of(hash).segment;
    Segment larger = make_segment(segment.lines * 2, segment.depth);
    larger.used = segment.used;
    const Table table = larger.table(number);
    segment.for_each([&](std::uint64_t other, void* item) { place(table, other, item); });
    lines_ += segment.lines;
    release(segment);
    segment = larger;
    point_to(hash, number, number);
  }

  void split_segment(std::uint64_t hash) {
    if (segment_of(hash).depth == 63U - shift_) double_directory();
    const std::uint32_t number = table_of(hash).segment;
    const unsigned depth = segments_[number].depth + 1;
    const std::size_t lines = segments_[number].lines;
    segments_.reserve(segments_.size() == segments_.capacity() ? segments_.size() * 2 : 0);
    Segment low = make_segment(lines, depth);
    Segment high = low;
    try {
      high = make_segment(lines, depth);
    } catch (...) {
      release(low);
      throw;
    }
    segments_[number].for_each([&](std::uint64_t other, void* item) {
      Segment& half = ((other >> (64U - depth)) & 1U) == 0 ? low : high;
      place(half.table(0), other, item);
      ++half.used;
    });
    lines_ += lines;
    release(segments_[number]);
    segments_[number] = low;
    segments_.push_back(high);
    point_to(hash, number, static_cast<std::uint32_t>(segments_.size() - 1));
  }

  // Of the places in the directory that lead to one segment, half are to lead to `low`, the others to `high`.
  void point_to(std::uint64_t hash, std::uint32_t low, std::uint32_t high) noexcept {
    const unsigned depth = segments_[low].depth - (low == high ? 0U : 1U);  // that all of them share
    const std::size_t count = std::size_t{1} << (63U - shift_ - depth);
    const std::size_t first = number_of(hash) / count * count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t number = i < count / 2 ? low : high;
      directory_[first + i] = segments_[number].table(number);
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
    tables_ = directory_.data();
    --shift_;
  }

  void build(unsigned depth, std::size_t lines) {
    HashIndex made(memory());
    made.shift_ = 63U - depth;
    const std::size_t count = std::size_t{1} << depth;
    made.directory_.reserve(count);
    made.segments_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      made.segments_.push_back(made.make_segment(lines, depth));
      made.directory_.push_back(made.segments_.back().table(i));
      made.lines_ += lines;
    }
    made.tables_ = made.directory_.data();
    swap(made);
  }

  // --- The whole

  void clear() noexcept {
    for (const Segment& segment : segments_) release(segment);
  }

  void swap(HashIndex& other) noexcept {
    directory_.swap(other.directory_);
    segments_.swap(other.segments_);
    std::swap(tables_, other.tables_);
    std::swap(shift_, other.shift_);
    std::swap(size_, other.size_);
    std::swap(lines_, other.lines_);
    std::swap(round_, other.round_);
  }

  /// Where lookups of an empty index end. Never written.
  static inline HashLine no_line{};
  static inline const Table no_table{&no_line, 0, 0};

  const Table* tables_ = &no_table;  // the directory
  List<Table> directory_;            // by the highest bits of a hash, 63 - shift_
  List<Segment> segments_;
  unsigned shift_ = 63;
  std::size_t size_ = 0;
  std::size_t lines_ = 0;        // of all segments
  std::uint64_t round_ = 0;      // of reserve()
  List<std::uint64_t> crowded_;  // a hash of each segment with too little room for what is expected
};

}  // namespace keyfold::detail
