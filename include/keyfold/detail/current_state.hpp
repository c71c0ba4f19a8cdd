// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/sequence_state.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// What apply_changes() remembers for current rows (SCD type 1): for each key the sequences that its row
/// cannot show, and the deletes of keys that no row has.
namespace keyfold::detail {

/// The sequences of one key. An absent sequence is before every other.
template <class Seq>
struct KeySequences {
  bool live = false;                        // a row has the key
  std::optional<Seq> set{};                 // the newest upsert of the row
  std::optional<Seq> erased{};              // the newest delete or truncate
  std::optional<Seq> base{};                // how new those columns are that no upsert gave a value
  bool fed = false;                         // `base` is the first upsert after the newest delete; else what
                                            // the row was when another write brought it
  std::vector<std::optional<Seq>> columns;  // for each column the newest upsert that gave it a value;
                                            // empty: `set` for those that feeds set
  Timestamp erased_at{};                    // when the delete came in

  /// Forgets the row, which a delete took away.
  void kill(const Seq& at) {
    live = false;
    set.reset();
    base.reset();
    fed = false;
    columns.clear();
    erased = at;
  }
};

template <class Seq>
std::size_t heap_bytes(const KeySequences<Seq>& value) noexcept {
  return value.columns.capacity() * sizeof(std::optional<Seq>);
}

template <class Seq>
bool before(const std::optional<Seq>& a, const Seq& b) {
  return !a || detail::less_values(*a, b);
}
template <class Seq>
bool not_after(const std::optional<Seq>& a, const Seq& b) {
  return !a || !detail::less_values(b, *a);
}

template <class Key, class Seq>
class CurrentState final : public SequenceState {
 public:
  using States = KeyedStates<Key, KeySequences<Seq>>;
  using Item = typename States::Item;

  std::unique_ptr<SequenceState> clone() const override {
    auto copy = std::make_unique<CurrentState>();
    copy->keys.reserve(keys.size());
    for (const Item* item = oldest_; item != nullptr; item = item->newer) copy->add(copy_of(*item));
    keys.for_each([&](const Item& item) {
      if (item.value.live) copy->add(copy_of(item));
    });
    if (truncated != nullptr) copy->truncated = std::make_unique<const Seq>(*truncated);
    return copy;
  }

  std::size_t bytes() const noexcept override {
    return keys.bytes() + (truncated != nullptr ? sizeof(Seq) : 0);
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

  States keys;
  std::unique_ptr<const Seq> truncated;  // the newest truncate

 private:
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
class CurrentUpdate final : public SequenceUpdate {
 public:
  using State = CurrentState<Key, Seq>;
  using Item = typename State::Item;

  void stage(std::unique_ptr<SequenceState>& place) override {
    if (place == nullptr) made_ = std::make_unique<State>();
    state_ = made_ != nullptr ? made_.get() : static_cast<State*>(place.get());
    state_->keys.reserve(detail::count_added(changes));
    place_ = &place;
  }

  void publish() noexcept override {
    if (made_ != nullptr) *place_ = std::move(made_);
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
    forget();
  }

  std::vector<ItemChange<Item>> changes;
  std::unique_ptr<const Seq> truncated;
  std::size_t keep = static_cast<std::size_t>(-1);  // so many tombstones
  Timestamp keep_since = Timestamp::min();          // those that came in from then on

 private:
  void forget() noexcept {
    while (state_->tombstones() > keep ||
           (state_->oldest() != nullptr && state_->oldest()->value.erased_at < keep_since)) {
      state_->drop(*state_->oldest());
    }
  }

  std::unique_ptr<State> made_;
  State* state_ = nullptr;
  std::unique_ptr<SequenceState>* place_ = nullptr;
};

}  // namespace keyfold::detail
