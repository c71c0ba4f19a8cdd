// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/key_index.hpp>
#include <keyfold/detail/value.hpp>
#include <keyfold/fwd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// What apply_changes() remembers beside the rows: sequences and deletes that rows cannot show.
namespace keyfold::detail {

/// Of unknown types: only the planner that made it knows them, and asks by dynamic_cast.
class SequenceState {
 public:
  SequenceState() = default;
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;
  virtual ~SequenceState() = default;

  virtual std::unique_ptr<SequenceState> clone() const = 0;
  virtual std::size_t bytes() const noexcept = 0;

  /// Which feeds it is of, for messages: "current rows by int64".
  virtual std::string describe() const = 0;
};

/// A planned change of that state, carried out beside the rows of the plan.
class SequenceUpdate {
 public:
  SequenceUpdate() = default;
  SequenceUpdate(const SequenceUpdate&) = delete;
  SequenceUpdate& operator=(const SequenceUpdate&) = delete;
  virtual ~SequenceUpdate() = default;

  /// Whatever can fail, without a change that anybody sees. Requires: `place` holds the state for which the
  /// update was planned.
  virtual void stage(std::unique_ptr<SequenceState>& place) = 0;
  virtual void publish() noexcept = 0;
};

/// Hands the state of a transaction to its table.
class SequenceHandover final : public SequenceUpdate {
 public:
  /// `stored`: the updates of the transaction as a journal writes them, if the table has one.
  SequenceHandover(std::unique_ptr<SequenceState>& from, std::vector<std::string> stored) noexcept
      : from_(&from), stored_(std::move(stored)) {}

  const std::vector<std::string>& stored() const noexcept { return stored_; }

  void stage(std::unique_ptr<SequenceState>& place) override { place_ = &place; }
  void publish() noexcept override { *place_ = std::move(*from_); }

 private:
  std::unique_ptr<SequenceState>* from_;
  std::unique_ptr<SequenceState>* place_ = nullptr;
  std::vector<std::string> stored_;
};

/// A value for each of some keys. Items stay where they are; they are replaced as a whole, which cannot fail.
/// `heap_bytes(value)`: what a value holds outside itself.
template <class KeyType, class ValueType>
class KeyedStates {
 public:
  struct Item {
    KeyType key;
    ValueType value;
    std::uint64_t hash;
    Item* older = nullptr;  // of a list that the owner may keep, see CurrentState
    Item* newer = nullptr;
  };

  KeyedStates() = default;
  KeyedStates(const KeyedStates&) = delete;
  KeyedStates& operator=(const KeyedStates&) = delete;
  ~KeyedStates() {
    index_.for_each([](std::uint64_t, Item& item) { delete &item; });
  }

  template <class Key>
  Item* find(const Key& key, std::uint64_t hash) const {
    return index_.find(hash, [&](const Item& item) { return detail::equal_values(item.key, key); });
  }
  template <class Visit>
  void for_each(Visit visit) const {
    index_.for_each([&](std::uint64_t, Item& item) { visit(item); });
  }

  /// Makes add() of one with this hash possible. Strong guarantee.
  void reserve_one(std::uint64_t hash) { index_.reserve_one(hash); }
  /// Makes add() possible of what is added by all of the changes. Strong guarantee.
  template <class Changes>
  void reserve_for(const Changes& changes) {
    const auto is_added = [](const auto& change) { return change.old == nullptr; };
    index_.reserve(static_cast<std::size_t>(std::ranges::count_if(changes, is_added)), [&](auto visit) {
      for (const auto& change : changes) {
        if (is_added(change)) visit(change.fresh->hash);
      }
    });
  }

  /// Requires: reserved room.
  Item& add(std::unique_ptr<Item> item) noexcept {
    index_.insert(item->hash, item.get());
    held_ += heap_bytes(item->value);
    return *item.release();
  }
  /// Lets `fresh`, of the same key, stand for `old`, which dies.
  Item& replace(Item& old, std::unique_ptr<Item> fresh) noexcept {
    index_.replace(old.hash, &old, fresh.get());
    held_ += heap_bytes(fresh->value);
    held_ -= heap_bytes(old.value);
    delete &old;
    return *fresh.release();
  }
  void drop(Item& item) noexcept {
    index_.erase(item.hash, &item);
    held_ -= heap_bytes(item.value);
    delete &item;
  }

  std::size_t size() const noexcept { return index_.size(); }
  std::size_t bytes() const noexcept { return index_.bytes() + size() * sizeof(Item) + held_; }

 private:
  KeyIndex<Item> index_;
  std::size_t held_ = 0;
};

/// What an update does to a key: a fresh item for an old one, for none, or none for an old one.
template <class Item>
struct ItemChange {
  Item* old = nullptr;
  std::unique_ptr<Item> fresh;
};

}  // namespace keyfold::detail
