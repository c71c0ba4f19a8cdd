// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/key_sequences.hpp>
#include <keyfold/detail/sequence_codec.hpp>
#include <keyfold/detail/sequence_state.hpp>
#include <keyfold/snapshot_error.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What apply_changes() remembers for current rows (SCD type 1): for each key the sequences that its row
/// cannot show, and the deletes of keys that no row has.
namespace keyfold::detail {

/// The type of the sequences of a state.
template <class Seq>
struct SequenceOrigin {
  static std::string type() { return detail::sequence_text<Seq>(); }
  static std::string name() { return detail::sequence_name<Seq>(); }
};

/// Nobody has claimed them: what the file says, and which file, should they prove wrong.
template <>
struct SequenceOrigin<StoredSequence> {
  std::string text{};
  std::string file{};
  std::uint64_t offset = 0;
  bool of_log = false;

  const std::string& type() const noexcept { return text; }
  const std::string& name() const noexcept { return text; }

  [[noreturn]] void refuse(const std::string& what_is_wrong) const {
    if (of_log) throw CorruptJournal(file, offset, what_is_wrong);
    throw CorruptSnapshot(file, offset, what_is_wrong);
  }
};

/// A state of current rows, whatever the type of its sequences: what files see of it.
template <class Key>
class AnyCurrentState : public SequenceState {
 public:
  using Visit = std::function<void(const Key&, const StoredKey&)>;

  // Each throws UnsavableSequence.

  /// The type of the sequences, as files name it.
  virtual std::string type() const = 0;
  virtual std::optional<std::string> stored_truncate() const = 0;
  /// First the tombstones, in the order in which they came in.
  virtual void for_each_stored(const Visit& visit) const = 0;

  virtual std::size_t size() const noexcept = 0;
};

/// Likewise a change of it.
template <class Key>
class AnyCurrentUpdate : public SequenceUpdate {
 public:
  /// No StoredKey: the key is forgotten.
  using Visit = std::function<void(const Key&, const StoredKey*)>;

  virtual std::string type() const = 0;
  virtual std::optional<std::string> stored_truncate() const = 0;
  virtual void for_each_stored(const Visit& visit) const = 0;

  virtual std::size_t size() const noexcept = 0;
  virtual bool has_columns() const noexcept = 0;

  std::size_t keep = static_cast<std::size_t>(-1);  // so many tombstones
  Timestamp keep_since = Timestamp::min();          // those that came in from then on
};

template <class Key, class Seq>
class CurrentState final : public AnyCurrentState<Key> {
 public:
  using States = KeyedStates<Key, KeySequences<Seq>>;
  using Item = typename States::Item;

  std::unique_ptr<SequenceState> clone() const override {
    auto copy = std::make_unique<CurrentState>();
    copy->origin = origin;
    for (const Item* item = oldest_; item != nullptr; item = item->newer) copy->put(copy_of(*item));
    keys.for_each([&](const Item& item) {
      if (item.value.live) copy->put(copy_of(item));
    });
    if (truncated != nullptr) copy->truncated = std::make_unique<const Seq>(*truncated);
    return copy;
  }

  std::size_t bytes() const noexcept override {
    return keys.bytes() + (truncated != nullptr ? sizeof(Seq) : 0);
  }

  std::string describe() const override { return "current rows by " + std::string(origin.name()); }

  std::string type() const override { return origin.type(); }
  std::optional<std::string> stored_truncate() const override {
    return truncated != nullptr ? std::optional(detail::stored_sequence(*truncated)) : std::nullopt;
  }
  void for_each_stored(const typename AnyCurrentState<Key>::Visit& visit) const override {
    ByteBuffer buffer;
    for (const Item* item = oldest_; item != nullptr; item = item->newer)
      visit(item->key, detail::stored_key_of(item->value, buffer));
    keys.for_each([&](const Item& item) {
      if (item.value.live) visit(item.key, detail::stored_key_of(item.value, buffer));
    });
  }
  std::size_t size() const noexcept override { return keys.size(); }

  /// What a file has, if it is of this sort; rows have so many columns. Throws FeedMismatch, and
  /// CorruptSnapshot or CorruptJournal for sequences that no feed can have left.
  static std::unique_ptr<CurrentState> claim(const SequenceState& known, std::size_t columns) {
    const auto* const stored = dynamic_cast<const CurrentState<Key, StoredSequence>*>(&known);
    if constexpr (SavableSequence<Seq>) {
      if (stored != nullptr && stored->origin.text == SequenceOrigin<Seq>::type())
        return decoded(*stored, columns);
    }
    throw FeedMismatch(known.describe(), CurrentState().describe());
  }

  /// Strong guarantee.
  void put(std::unique_ptr<Item> item) {
    keys.reserve_one(item->hash);
    add(std::move(item));
  }
  void add(std::unique_ptr<Item> item) noexcept { link(keys.add(std::move(item))); }
  void replace(Item& old, std::unique_ptr<Item> fresh) noexcept {
    unlink(old);
    link(keys.replace(old, std::move(fresh)));
  }
  void drop(Item& item) noexcept {
    unlink(item);
    keys.drop(item);
  }

  std::size_t tombstones() const noexcept { return tombstones_; }
  Item* oldest() const noexcept { return oldest_; }

  /// Forgets tombstones but so many, and those that came in before a time.
  void forget(std::size_t keep, Timestamp since) noexcept {
    while (tombstones() > keep || (oldest() != nullptr && oldest()->value.erased_at < since)) drop(*oldest());
  }

  States keys;
  std::unique_ptr<const Seq> truncated;  // the newest truncate
  [[no_unique_address]] SequenceOrigin<Seq> origin;

 private:
  static std::unique_ptr<CurrentState> decoded(const CurrentState<Key, StoredSequence>& stored,
                                               std::size_t columns) {
    try {
      auto made = std::make_unique<CurrentState>();
      const auto add = [&](const auto& item) {
        made->put(std::make_unique<Item>(
            Item{item.key, detail::sequences_of<Seq>(item.value, columns), item.hash}));
      };
      for (const auto* item = stored.oldest(); item != nullptr; item = item->newer) add(*item);
      stored.keys.for_each([&](const auto& item) {
        if (item.value.live) add(item);
      });
      if (stored.truncated != nullptr)
        made->truncated = std::make_unique<const Seq>(detail::sequence_of<Seq>(*stored.truncated));
      return made;
    } catch (const DecodeError& error) {
      stored.origin.refuse(error.what());
    }
  }

  static std::unique_ptr<Item> copy_of(const Item& item) {
    return std::make_unique<Item>(Item{item.key, item.value, item.hash});
  }

  // Tombstones stand in a list, in the order in which they came in.
  void link(Item& item) noexcept {
    if (item.value.live) return;
    item.older = newest_;
    (newest_ != nullptr ? newest_->newer : oldest_) = &item;
    newest_ = &item;
    ++tombstones_;
  }
  void unlink(Item& item) noexcept {
    if (item.value.live) return;
    (item.older != nullptr ? item.older->newer : oldest_) = item.newer;
    (item.newer != nullptr ? item.newer->older : newest_) = item.older;
    --tombstones_;
  }

  Item* oldest_ = nullptr;
  Item* newest_ = nullptr;
  std::size_t tombstones_ = 0;
};

/// The change that a feed makes to that state.
template <class Key, class Seq>
class CurrentUpdate final : public AnyCurrentUpdate<Key> {
 public:
  using State = CurrentState<Key, Seq>;
  using Item = typename State::Item;

  void stage(std::unique_ptr<SequenceState>& place) override {
    if (place == nullptr && made == nullptr) made = std::make_unique<State>();
    state_ = made != nullptr ? made.get() : static_cast<State*>(place.get());
    state_->keys.reserve_for(changes);
    place_ = &place;
  }

  void publish() noexcept override {
    if (made != nullptr) *place_ = std::move(made);
    for (ItemChange<Item>& change : changes) {
      if (change.fresh == nullptr) {
        state_->drop(*change.old);
      } else if (change.old == nullptr) {
        state_->add(std::move(change.fresh));
      } else {
        state_->replace(*change.old, std::move(change.fresh));
      }
    }
    if (truncated != nullptr) state_->truncated = std::move(truncated);
    state_->forget(this->keep, this->keep_since);
  }

  std::string type() const override { return SequenceOrigin<Seq>::type(); }
  std::optional<std::string> stored_truncate() const override {
    return truncated != nullptr ? std::optional(detail::stored_sequence(*truncated)) : std::nullopt;
  }
  void for_each_stored(const typename AnyCurrentUpdate<Key>::Visit& visit) const override {
    ByteBuffer buffer;
    for (const ItemChange<Item>& change : changes) {
      if (change.fresh == nullptr) {
        visit(change.old->key, nullptr);
      } else {
        const StoredKey stored = detail::stored_key_of(change.fresh->value, buffer);
        visit(change.fresh->key, &stored);
      }
    }
  }
  std::size_t size() const noexcept override { return changes.size(); }
  bool has_columns() const noexcept override {
    return std::ranges::any_of(changes, [](const ItemChange<Item>& change) {
      return change.fresh != nullptr && !change.fresh->value.columns.empty();
    });
  }

  std::vector<ItemChange<Item>> changes;
  std::unique_ptr<const Seq> truncated;
  std::unique_ptr<State> made;  // the state, if the table has none of this type

 private:
  State* state_ = nullptr;
  std::unique_ptr<SequenceState>* place_ = nullptr;
};

}  // namespace keyfold::detail
