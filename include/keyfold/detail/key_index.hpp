// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/prefetch.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace keyfold::detail {

/// An item and the hash of its key.
template <class Item>
struct Hashed {
  std::uint64_t hash = 0;
  Item* item = nullptr;
};

/// An open-addressing index from 64-bit hashes to items that live elsewhere. Linear probing with
/// backward-shift deletion (Knuth, The Art of Computer Programming 3, 6.4, algorithm R), so there are no
/// tombstones.
///
/// It grows step by step: after a growth the items of the old array move over a few at each insertion, whole
/// runs at a time, so that no single insertion pays for a rehash.
///
/// Only reserve() allocates; the rest is noexcept but for the caller's equality. Several items may have one
/// hash, and even one key: that is the caller's business, and lets a write swap keys in any order.
template <class Item>
class KeyIndex {
 public:
  /// The item with this hash for which `equal(item)`, or null.
  template <class Equal>
  Item* find(std::uint64_t hash, Equal equal) const {
    Item* item = find_in(current_, hash, equal);
    return item != nullptr ? item : find_in(previous_, hash, equal);
  }

  /// Starts loading what find(hash) reads first.
  void prefetch(std::uint64_t hash) const noexcept {
    if (!current_.empty()) detail::prefetch(&current_[home(current_, hash)]);
    if (!previous_.empty()) detail::prefetch(&previous_[home(previous_, hash)]);
  }

  /// The first item that find(hash) would compare: worth a prefetch, no answer.
  Item* candidate(std::uint64_t hash) const noexcept {
    return find(hash, [](const Item&) { return true; });
  }

  /// Gives memory back when less than an eighth of it is in use. Throws std::bad_alloc; strong guarantee.
  void shrink() {
    if (size_ >= current_.size() / 8) return;
    std::size_t capacity = minimum_capacity;
    while (limit(capacity) < size_ * 2) capacity *= 2;
    if (capacity >= current_.size()) return;
    Entries smaller(size_ == 0 ? 0 : capacity);
    migrate(previous_.size());
    current_.swap(smaller);
    for (const Entry& entry : smaller) {
      if (entry.item != nullptr) place(entry.hash, entry.item);
    }
  }

  /// Makes the next `additional` insertions free of allocation. Throws std::bad_alloc; strong guarantee.
  void reserve(std::size_t additional) {
    const std::size_t wanted = size_ + additional;
    if (wanted <= limit(current_.size())) return;
    std::size_t capacity = current_.empty() ? minimum_capacity : current_.size() * 2;
    while (limit(capacity) < wanted) capacity *= 2;
    std::vector<Entry> larger(capacity);
    migrate(previous_.size());
    previous_ = std::exchange(current_, std::move(larger));
    cursor_ = 0;
    left_ = previous_.size();
  }

  /// Requires: reserved room.
  void insert(std::uint64_t hash, Item* item) noexcept {
    assert(size_ < limit(current_.size()));
    place(hash, item);
    ++size_;
    migrate(positions_per_insert);
  }

  /// Inserts items by their places, so that memory is walked from the front to the back: a place found by
  /// chance costs a search of the page tables. Returns an item for which `equal(item, other)` holds with one
  /// that is there, or null. Requires: reserved room; an index that has not grown since it was empty;
  /// `sorted` as large as `items`.
  template <class Equal>
  Item* insert_new(std::span<const Hashed<Item>> items, std::span<Hashed<Item>> sorted, Equal equal) {
    if (items.empty()) return nullptr;
    assert(previous_.empty() && size_ + items.size() <= limit(current_.size()));
    sort_by_place(items, sorted);
    for (const Hashed<Item>& added : sorted.first(items.size())) {
      std::size_t at = home(current_, added.hash);
      for (; current_[at].item != nullptr; at = next(current_, at)) {
        if (current_[at].hash == added.hash && equal(*added.item, *current_[at].item)) return added.item;
      }
      current_[at] = added;
      ++size_;
    }
    return nullptr;
  }

  /// Requires: the item is in the index with this hash.
  void erase(std::uint64_t hash, const Item* item) noexcept {
    auto& table = entry_of(current_, hash, item) != nullptr ? current_ : previous_;
    close_gap(table, static_cast<std::size_t>(entry_of(table, hash, item) - table.data()));
    --size_;
  }

  /// Lets `to` stand where `from` stood. Requires: `from` is in the index with this hash.
  void replace(std::uint64_t hash, const Item* from, Item* to) noexcept {
    Entry* entry = entry_of(current_, hash, from);
    if (entry == nullptr) entry = entry_of(previous_, hash, from);
    assert(entry != nullptr);
    entry->item = to;
  }

  /// Calls `visit(hash, item)` for every item, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Entries* table : {&current_, &previous_}) {
      for (const Entry& entry : *table) {
        if (entry.item != nullptr) visit(entry.hash, *entry.item);
      }
    }
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return (current_.capacity() + previous_.capacity()) * sizeof(Entry); }

 private:
  using Entry = Hashed<Item>;          // item null: free
  using Entries = std::vector<Entry>;  // its size is a power of two, or 0

  static constexpr std::size_t minimum_capacity = 16;
  static constexpr std::size_t positions_per_insert = 16;  // of the old array, moved at each insertion

  // Three quarters full at the most. The old array, as full as that, has moved long before the new one fills
  // up.
  static constexpr std::size_t limit(std::size_t capacity) noexcept { return capacity / 4 * 3; }

  static std::size_t home(const Entries& table, std::uint64_t hash) noexcept {
    return hash & (table.size() - 1);
  }
  static std::size_t next(const Entries& table, std::size_t at) noexcept {
    return (at + 1) & (table.size() - 1);
  }

  template <class Equal>
  static Item* find_in(const Entries& table, std::uint64_t hash, Equal& equal) {
    if (table.empty()) return nullptr;
    for (std::size_t at = home(table, hash); table[at].item != nullptr; at = next(table, at)) {
      if (table[at].hash == hash && equal(*table[at].item)) return table[at].item;
    }
    return nullptr;
  }

  static Entry* entry_of(Entries& table, std::uint64_t hash, const Item* item) noexcept {
    if (table.empty()) return nullptr;
    std::size_t at = home(table, hash);
    while (table[at].item != nullptr && table[at].item != item) at = next(table, at);
    return table[at].item != nullptr ? &table[at] : nullptr;
  }

  // By the highest bits of the place only.
  void sort_by_place(std::span<const Entry> items, std::span<Entry> sorted) const noexcept {
    constexpr std::size_t digit_bits = 8;
    const std::size_t place_bits = std::bit_width(current_.size()) - 1;
    const std::size_t shift = std::max(place_bits, digit_bits) - digit_bits;
    const auto digit = [&](const Entry& entry) { return home(current_, entry.hash) >> shift; };
    std::array<std::size_t, (std::size_t{1} << digit_bits) + 1> starts{};
    for (const Entry& entry : items) ++starts[digit(entry) + 1];
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    for (const Entry& entry : items) sorted[starts[digit(entry)]++] = entry;
  }

  void place(std::uint64_t hash, Item* item) noexcept {
    std::size_t at = home(current_, hash);
    while (current_[at].item != nullptr) at = next(current_, at);
    current_[at] = {hash, item};
  }

  static void close_gap(Entries& table, std::size_t gap) noexcept {
    const std::size_t mask = table.size() - 1;
    for (std::size_t at = next(table, gap); table[at].item != nullptr; at = next(table, at)) {
      const std::size_t from_home = (at - home(table, table[at].hash)) & mask;
      const std::size_t from_gap = (at - gap) & mask;
      if (from_home >= from_gap) {
        table[gap] = table[at];
        gap = at;
      }
    }
    table[gap] = {};
  }

  // Stops only where a run ends, so that what is left in the old array can still be found by probing.
  void migrate(std::size_t positions) noexcept {
    for (; left_ != 0 && (positions != 0 || previous_[cursor_].item != nullptr); --left_) {
      if (Entry& entry = previous_[cursor_]; entry.item != nullptr) {
        place(entry.hash, entry.item);
        entry = {};
      }
      cursor_ = next(previous_, cursor_);
      if (positions != 0) --positions;
    }
    if (left_ == 0 && !previous_.empty()) previous_ = Entries();  // not = {}, which would keep the memory
  }

  Entries current_;
  Entries previous_;        // being emptied after a growth
  std::size_t cursor_ = 0;  // where in previous_
  std::size_t left_ = 0;    // how many of its positions are still to move
  std::size_t size_ = 0;
};

}  // namespace keyfold::detail
