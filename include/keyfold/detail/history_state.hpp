// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/sequence_codec.hpp>
#include <keyfold/detail/sequence_state.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What apply_changes() remembers for history rows (SCD type 2): the events that no row shows as they were.
namespace keyfold::detail {

/// An event as it came in.
template <class Row, class Seq>
struct RawEvent {
  Seq at;
  std::optional<Row> row;   // none: a delete
  std::vector<bool> given;  // for each column whether the event brought a value; empty: all
  bool folded = false;      // into a row that an earlier event began; else a row begins with it

  bool complete() const noexcept { return given.empty(); }
};

template <class Row, class Seq>
std::size_t heap_bytes(const std::vector<RawEvent<Row, Seq>>& events) noexcept {
  std::size_t bytes = events.capacity() * sizeof(RawEvent<Row, Seq>);
  for (const RawEvent<Row, Seq>& event : events) bytes += event.given.capacity() / 8;
  return bytes;
}

template <class Key, class Row, class Seq>
class HistoryState final : public SequenceState {
 public:
  using Event = RawEvent<Row, Seq>;
  using States = KeyedStates<Key, std::vector<Event>>;
  using Item = typename States::Item;

  std::unique_ptr<SequenceState> clone() const override {
    auto copy = std::make_unique<HistoryState>();
    keys.for_each([&](const Item& item) {
      copy->keys.reserve_one(item.hash);
      copy->keys.add(std::make_unique<Item>(Item{item.key, item.value, item.hash}));
    });
    return copy;
  }

  std::size_t bytes() const noexcept override { return keys.bytes(); }

  std::string describe() const override { return "history rows by " + detail::sequence_name<Seq>(); }

  States keys;
};

/// The change that a feed makes to that state.
template <class State>
class HistoryUpdate final : public SequenceUpdate {
 public:
  using Item = typename State::Item;

  void stage(std::unique_ptr<SequenceState>& place) override {
    if (place == nullptr) made_ = std::make_unique<State>();
    state_ = made_ != nullptr ? made_.get() : static_cast<State*>(place.get());
    state_->keys.reserve_for(changes);
    place_ = &place;
  }

  void publish() noexcept override {
    if (made_ != nullptr) *place_ = std::move(made_);
    for (ItemChange<Item>& change : changes) {
      if (change.fresh == nullptr) {
        state_->keys.drop(*change.old);
      } else if (change.old == nullptr) {
        state_->keys.add(std::move(change.fresh));
      } else {
        state_->keys.replace(*change.old, std::move(change.fresh));
      }
    }
  }

  std::vector<ItemChange<Item>> changes;

 private:
  std::unique_ptr<State> made_;
  State* state_ = nullptr;
  std::unique_ptr<SequenceState>* place_ = nullptr;
};

}  // namespace keyfold::detail
