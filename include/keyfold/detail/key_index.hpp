// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/hash_index.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace keyfold::detail {

/// An item and the hash of its key.
template <class Item>
struct Hashed {
  std::uint64_t hash = 0;
  Item* item = nullptr;
};

/// A HashIndex of items of one type. Lookups are compiled for each; what moves entries is compiled once.
template <class Item>
class KeyIndex : HashIndex {
 public:
  using HashIndex::bytes;
  using HashIndex::HashIndex;
  using HashIndex::prefetch;
  using HashIndex::presize;
  using HashIndex::reserve;
  using HashIndex::reserve_one;
  using HashIndex::shrink;
  using HashIndex::size;

  template <class Equal>
  Item* find(std::uint64_t hash, Equal equal) const {
    return typed(HashIndex::find(hash, [&](void* item) { return equal(*typed(item)); }));
  }
  Item* candidate(std::uint64_t hash) const noexcept { return typed(HashIndex::candidate(hash)); }

  void insert(std::uint64_t hash, Item* item) noexcept { HashIndex::insert(hash, untyped(item)); }
  void add(std::uint64_t hash, Item* item) { HashIndex::add(hash, untyped(item)); }
  template <class Equal>
  Item* add_if_new(std::uint64_t hash, Item* item, Equal equal) {
    return typed(
        HashIndex::add_if_new(hash, untyped(item), [&](void* other) { return equal(*typed(other)); }));
  }

  /// Adds items in the order of their places, so that memory is walked from the front to the back: a place
  /// found by chance costs a search of the page tables. Returns an item for which `equal(item, other)` holds
  /// with one that is there, or null. Requires: `sorted` as large as `items`. Throws what the memory resource
  /// and `equal` throw.
  template <class Equal>
  Item* add_new(std::span<const Hashed<Item>> items, std::span<Hashed<Item>> sorted, Equal equal) {
    sort_by_place(items, sorted);
    for (const Hashed<Item>& added : sorted.first(items.size())) {
      const auto is_same = [&](const Item& other) { return equal(*added.item, other); };
      if (add_if_new(added.hash, added.item, is_same) != nullptr) return added.item;
    }
    return nullptr;
  }

  void erase(std::uint64_t hash, const Item* item) noexcept { HashIndex::erase(hash, item); }
  void replace(std::uint64_t hash, const Item* from, Item* to) noexcept {
    HashIndex::replace(hash, from, untyped(to));
  }

  template <class Visit>
  void for_each(Visit visit) const {
    HashIndex::for_each([&](std::uint64_t hash, void* item) { visit(hash, *typed(item)); });
  }

 private:
  static Item* typed(void* item) noexcept { return static_cast<Item*>(item); }
  static void* untyped(Item* item) noexcept { return const_cast<void*>(static_cast<const void*>(item)); }

  // By the highest bits of the hash only.
  static void sort_by_place(std::span<const Hashed<Item>> items, std::span<Hashed<Item>> sorted) noexcept {
    const auto digit = [](const Hashed<Item>& entry) { return entry.hash >> 56U; };
    std::array<std::size_t, 257> starts{};
    for (const Hashed<Item>& entry : items) ++starts[digit(entry) + 1];
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    for (const Hashed<Item>& entry : items) sorted[starts[digit(entry)]++] = entry;
  }
};

}  // namespace keyfold::detail
