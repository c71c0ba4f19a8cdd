// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/current_state.hpp>
#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

/// The events of a feed for current rows and what they have made of each key, and the check of
/// on_tie(reject).
namespace keyfold::detail {

enum class EventKind : std::uint8_t { upsert, erase, truncate };

/// An event of a feed for current rows.
template <class Pointer, class Seq>
struct CurrentEvent {
  Pointer row;
  Position position;
  EventKind kind;
  Seq at;
};

/// What has become of a key so far.
template <class Row, class Pointer, class Seq, class Item>
struct CurrentProgress {
  using Event = CurrentEvent<Pointer, Seq>;

  const Slot<Row>* slot = nullptr;  // its row in the table
  Pointer first = nullptr;          // an event that names the key, if no row does
  Item* item = nullptr;             // what is remembered of it
  std::uint64_t hash = 0;
  KeySequences<Seq> now{};
  bool dirty = false;               // `now` differs from what is remembered
  Position died = no_position;      // the delete or truncate that counts last
  bool by_truncate = false;         // it was a truncate that took the row away
  bool fresh = false;               // the row starts from the defaults
  bool touched = false;             // the row is another one now
  const Event* winner = nullptr;    // the event that makes the whole of the row
  std::optional<Row> row{};         // the row as it is put together column by column
  std::size_t effective = 0;        // events that were not late
  Position position = no_position;  // of the last of them
  std::optional<Seq> known_set{};   // of `now`, before the feed; only to reject ties
  std::optional<Seq> known_erased{};
  std::vector<const Event*> events{};  // likewise
};

/// The key of a progress as it is remembered.
template <class CoreType, class Key, class Progress>
auto stored_key(const Progress& key) {
  if (key.slot != nullptr) return Key::stored(CoreType::key_of(key.slot->get()));
  const auto named = Key::of(*key.first);
  return detail::naming_row([&] { return RowName{detail::key_text(named), key.position}; },
                            [&] { return Key::stored(named); });
}

/// Refuses equal sequences of a key: in a feed, and between a feed and what is remembered of earlier ones,
/// that is of each key the newest upsert and delete, and the newest truncate. A truncate is an event of every
/// key.
template <class CoreType, class Key, class Event, class Progress, class State>
class CurrentTies {
 public:
  using Seq = decltype(Event::at);

  explicit CurrentTies(const State* state) noexcept : state_(state) {}

  /// Throws SequenceTie if the truncate `event` is equal to another one.
  static void refuse_truncate(const Seq& at, Position position, const Event& event) {
    if (detail::same_sequence(at, event.at))
      detail::refuse_tie("every key", detail::literal_text(event.at), position, event.position);
  }

  /// An event of a key: throws SequenceTie if it is equal to one that is remembered.
  void note(Progress& key, const Event& event) const {
    refuse_known(key.known_set, event);
    refuse_known(key.known_erased, event);
    if (state_ != nullptr && state_->truncated != nullptr)
      refuse_known(std::optional<Seq>(*state_->truncated), event);
    key.events.push_back(&event);
  }

  /// All events are noted. `visited(item)`: whether the feed names a key that is remembered.
  template <class Events, class Keys, class Visited>
  void refuse(const Events& events, Keys& keys, Visited visited) const {
    const std::vector<const Event*> truncates = sorted_truncates(events);
    for (std::size_t i = 1; i < truncates.size(); ++i)
      refuse_truncate(truncates[i - 1]->at, truncates[i - 1]->position, *truncates[i]);
    if (!truncates.empty()) refuse_truncates_of_known(truncates, keys, visited);
    for (Progress& key : keys) refuse_within(key, truncates);
  }

 private:
  static constexpr auto earlier = [](const Event* a, const Event* b) {
    return detail::less_values(a->at, b->at);
  };

  static void refuse_known(const std::optional<Seq>& known, const Event& event) {
    if (known && detail::same_sequence(*known, event.at)) refuse_pair(no_position, event);
  }
  static void refuse_pair(Position first, const Event& second) {
    detail::refuse_tie(detail::key_text(Key::of(*second.row)), detail::literal_text(second.at), first,
                       second.position);
  }

  template <class Events>
  static std::vector<const Event*> sorted_truncates(const Events& events) {
    std::vector<const Event*> truncates;
    for (const Event& event : events) {
      if (event.kind == EventKind::truncate) truncates.push_back(&event);
    }
    std::ranges::stable_sort(truncates, earlier);
    return truncates;
  }

  static void refuse_within(Progress& key, const std::vector<const Event*>& truncates) {
    std::ranges::stable_sort(key.events, earlier);
    for (std::size_t i = 0; i < key.events.size(); ++i) {
      const Event& event = *key.events[i];
      if (i != 0 && !earlier(key.events[i - 1], &event)) refuse_pair(key.events[i - 1]->position, event);
      const auto truncate = std::ranges::lower_bound(truncates, &event, earlier);
      if (truncate != truncates.end() && !earlier(&event, *truncate))
        refuse_pair((*truncate)->position, event);
    }
  }

  // The keys that the feed names, and those that are remembered only.
  template <class Keys, class Visited>
  void refuse_truncates_of_known(const std::vector<const Event*>& sorted, const Keys& keys,
                                 Visited visited) const {
    const auto refuse_one = [&](const std::optional<Seq>& known, const auto& key) {
      if (!known) return;
      const auto found = std::ranges::lower_bound(sorted, *known, seq_less, at_of);
      if (found == sorted.end() || !detail::same_sequence((*found)->at, *known)) return;
      detail::refuse_tie(detail::key_text(key()), detail::literal_text(*known), no_position,
                         (*found)->position);
    };
    for (const Progress& progress : keys) {
      const auto key = [&] { return detail::stored_key<CoreType, Key>(progress); };
      refuse_one(progress.known_set, key);
      refuse_one(progress.known_erased, key);
    }
    if (state_ == nullptr) return;
    state_->keys.for_each([&](const typename State::Item& item) {
      if (visited(item)) return;
      const auto key = [&]() -> const auto& { return item.key; };
      refuse_one(item.value.set, key);
      refuse_one(item.value.erased, key);
    });
  }

  static constexpr auto seq_less = [](const Seq& a, const Seq& b) { return detail::less_values(a, b); };
  static constexpr auto at_of = [](const Event* event) -> const Seq& { return event->at; };

  const State* state_;
};

}  // namespace keyfold::detail
