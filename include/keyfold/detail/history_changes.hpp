// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/history_state.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/source_rows.hpp>
#include <keyfold/detail/timeline.hpp>

#include <algorithm>
#include <cassert>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

/// Planning apply_changes() for history rows (SCD type 2). The events of each key that the feed touches are
/// gathered from its rows, from what is remembered and from the feed; its rows are derived from them anew and
/// compared with those that are there.
namespace keyfold::detail {

template <class Done, auto... Rest>
struct split_last;
template <auto... Done, auto Last>
struct split_last<Parts<Done...>, Last> {
  using front = Parts<Done...>;
  using last = Parts<Last>;
};
template <auto... Done, auto First, auto Second, auto... Rest>
struct split_last<Parts<Done...>, First, Second, Rest...>
    : split_last<Parts<Done..., First>, Second, Rest...> {};

/// A key without its last part, and that part.
template <class KeyParts>
struct split_key;
template <auto... P>
struct split_key<Parts<P...>> : split_last<Parts<>, P...> {};

template <class CoreType, class Feed, class Declared>
class HistoryPlanner {
 public:
  using Row = typename CoreType::RowType;
  using Source = typename Feed::Source;
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;
  using EntityParts = typename split_key<typename CoreType::KeyParts>::front;
  using Key = FeedKey<Feed, EntityParts>;
  using Sequences = FeedSequences<Feed>;
  using Seq = typename Sequences::type;
  using State = HistoryState<typename Key::Stored, Row, Seq>;
  using Item = typename State::Item;
  using Update = HistoryUpdate<State>;

  HistoryPlanner(const CoreType& core, const Feed& feed, Plan<Row>& plan)
      : core_(core), feed_(feed), plan_(plan) {}

  void run(typename Traits::Range& range) {
    find_state();
    AllRows<Declared, Source> all(range);
    Position position = 0;
    for (const Pointer row : all.pointers) read(row, position++);
    find_rows();
    for (Progress& key : keys_) rebuild(key);
    plan_.sequences = std::move(update_);
    assert(source_rows_add_up());
  }

 private:
  using Incoming = IncomingEvent<Pointer, Seq>;
  using History = Timeline<Feed, Key, Incoming, Seq>;
  using RowSpan = typename History::RowSpan;

  struct Progress {
    std::uint64_t hash = 0;
    Item* item = nullptr;
    std::vector<Incoming> events{};
    std::vector<const Slot<Row>*> slots{};
  };

  Metrics& metrics() noexcept { return plan_.metrics; }

  void find_state() {
    if (core_.sequence_state() == nullptr) return;
    state_ = dynamic_cast<const State*>(core_.sequence_state());
    if (state_ == nullptr) throw FeedMismatch(core_.sequence_state()->describe(), State().describe());
  }

  void read(Pointer row, Position position) {
    ++metrics().source_rows;
    Seq at = Sequences::of(*row, position);
    const auto key = Key::of(*row);
    detail::require_valid_key(typename Key::SourceParts{}, key, position);
    Progress& progress = progress_of(key);
    const bool erase = detail::event_is<FeedPart::deletes>(feed_, *row);
    progress.events.push_back({row, position, erase, std::move(at)});
  }

  template <class KeyTuple>
  Progress* find(const KeyTuple& key, std::uint64_t hash) const {
    return index_.find(hash, [&](const Progress& other) {
      return detail::equal_values(Key::of(*other.events.front().row), key);
    });
  }

  template <class KeyTuple>
  Progress& progress_of(const KeyTuple& key) {
    const std::uint64_t hash = detail::hash_of(key);
    if (Progress* known = find(key, hash)) return *known;
    index_.reserve_one(hash);
    Progress& made = keys_.emplace_back();
    made.hash = hash;
    if (state_ != nullptr) made.item = state_->keys.find(key, hash);
    index_.insert(hash, &made);
    return made;
  }

  // --- The rows of the keys

  static constexpr std::size_t index_number = detail::index_number<EntityParts, typename CoreType::Indexes>;

  void find_rows() {
    if constexpr (index_number < std::tuple_size_v<typename CoreType::Indexes>) {
      for (Progress& key : keys_)
        take_rows(key, core_.template matching<index_number>(Key::of(*key.events.front().row)));
    } else if constexpr (CoreType::ordered) {
      for (Progress& key : keys_)
        take_rows(key, detail::equal_range_of(core_.scan(), Key::of(*key.events.front().row)));
    } else if (!keys_.empty()) {
      for (const Slot<Row>& slot : core_.scan()) {
        const auto key = EntityParts::of(slot.get());
        if (Progress* progress = find(key, detail::hash_of(key))) progress->slots.push_back(&slot);
      }
    }
    for (Progress& key : keys_) {
      std::ranges::sort(key.slots, [](const Slot<Row>* a, const Slot<Row>* b) {
        return detail::less_values(History::from(*a), History::from(*b));
      });
    }
  }

  template <class Pair>
  static void take_rows(Progress& key, const Pair& range) {
    for (auto it = range.first; it != range.second; ++it) key.slots.push_back(&*it);
  }

  // --- One key

  void rebuild(Progress& key) {
    const std::vector<Incoming*> events = untied(key);
    const History history(key.slots, key.item != nullptr ? &key.item->value : nullptr, events);
    if constexpr (Feed::template has<FeedPart::ties>) {
      if (!history.ties().empty()) refuse_tie(no_position, *history.ties().front());
    }
    match(key.slots, history.spans(), events);
    for (const auto& [span, slot] : matched_) slot != nullptr ? update(*span, *slot) : insert(key, *span);
    matched_.clear();
    count_idle(key);
    remember(key, history);
  }

  // Finds the row that each span was so far, and erases the others. Both are in order.
  void match(const std::vector<const Slot<Row>*>& slots, const std::vector<RowSpan>& spans,
             const std::vector<Incoming*>& events) {
    auto slot = slots.begin();
    for (const RowSpan& span : spans) {
      const Seq& at = *span.events.front()->at;
      for (; slot != slots.end() && less(History::from(**slot), at); ++slot) erase(events, **slot);
      const bool found = slot != slots.end() && !less(at, History::from(**slot));
      matched_.push_back({&span, found ? *slot++ : nullptr});
    }
    for (; slot != slots.end(); ++slot) erase(events, **slot);
  }

  // The events in order; of ties the one later in the source.
  std::vector<Incoming*> untied(Progress& key) {
    std::vector<Incoming*> all;
    for (Incoming& event : key.events) all.push_back(&event);
    std::ranges::stable_sort(all, less, event_at);
    std::vector<Incoming*> kept;
    for (Incoming* event : all) {
      if (!kept.empty() && !detail::less_values(kept.back()->at, event->at)) {
        if constexpr (Feed::template has<FeedPart::ties>) refuse_tie(kept.back()->position, *event);
        kept.back()->counted = true;
        ++metrics().dropped_duplicates;
        kept.back() = event;
      } else {
        kept.push_back(event);
      }
    }
    return kept;
  }

  [[noreturn]] static void refuse_tie(Position first, const Incoming& event) {
    detail::refuse_tie(detail::key_text(Key::of(*event.row)), detail::literal_text(event.at), first,
                       event.position);
  }

  // --- Its rows

  // `events`: as untied() gives them.
  void erase(const std::vector<Incoming*>& events, const Slot<Row>& slot) {
    Planned<Row>& entry = plan_.touch(slot);
    entry.outcome = Outcome::erase;
    ++metrics().deleted;
    const auto found = std::ranges::lower_bound(events, History::from(slot), less, event_at);
    if (found == events.end() || !(*found)->erase || less(History::from(slot), (*found)->at)) {
      ++metrics().not_matched_by_source_deleted;
      return;
    }
    (*found)->counted = true;
    entry.position = (*found)->position;
    ++metrics().matched_deleted;
  }

  void insert(const Progress& key, const RowSpan& span) {
    Planned<Row>& entry = plan_.add();
    entry.after = Holder<Row>(History::row_of(span));
    entry.outcome = Outcome::insert;
    ++metrics().inserted;
    const Incoming* event = count(span, true);
    split_ += event == nullptr ? 1U : 0U;
    entry.position = event != nullptr ? event->position : key.events.front().position;
  }

  void update(const RowSpan& span, const Slot<Row>& slot) {
    std::optional<Holder<Row>> after = changed(span, slot);
    if (!after) {
      count_unchanged(span);
      return;
    }
    Planned<Row>& entry = plan_.touch(slot);
    entry.after = std::move(after);
    entry.outcome = Outcome::update;
    ++metrics().updated;
    const Incoming* event = count(span, false);
    if (event == nullptr) {
      ++metrics().not_matched_by_source_updated;
    } else {
      ++metrics().matched_updated;
      entry.position = event->position;
    }
  }

  static std::optional<Holder<Row>> changed(const RowSpan& span, const Slot<Row>& slot) {
    if (!span.row && same_end(span, slot)) return std::nullopt;
    Holder<Row> made(History::row_of(span));
    if (detail::same_or(false, slot.get(), std::as_const(made).get())) return std::nullopt;
    return made;
  }

  static bool same_end(const RowSpan& span, const Slot<Row>& slot) {
    const std::optional<Seq>& end = History::to(slot);
    return span.end == nullptr ? !end : end && detail::equal_values(*span.end->at, *end);
  }

  // --- Counting: every event once, for the row that it makes or ends

  // The event that a changed row is owed to, if it is one of the feed's. Its others were folded into that.
  const Incoming* count(const RowSpan& span, bool inserted) {
    const Incoming* first = nullptr;
    for (const auto* event : span.events) {
      if (event->incoming == nullptr) continue;
      event->incoming->counted = true;
      if (first != nullptr) ++metrics().dropped_duplicates;
      if (first == nullptr) first = event->incoming;
    }
    if (first != nullptr || inserted || !span.ends_by_delete()) return first;
    Incoming* end = span.end->incoming;
    if (end == nullptr || end->counted) return nullptr;
    end->counted = true;
    return end;
  }

  void count_unchanged(const RowSpan& span) {
    for (const auto* event : span.events) {
      if (event->incoming == nullptr) continue;
      event->incoming->counted = true;
      ++metrics().unchanged;
    }
  }

  // Deletes that end no row, or one that is owed to another event.
  void count_idle(const Progress& key) {
    for (const Incoming& event : key.events) metrics().skipped += event.counted ? 0U : 1U;
  }

  bool source_rows_add_up() const noexcept {
    const Metrics& m = plan_.metrics;
    return m.source_rows + split_ == m.inserted + m.matched_updated + m.matched_deleted + m.unchanged +
                                         m.skipped + m.dropped_duplicates + m.dropped_late;
  }

  // --- What is remembered

  void remember(const Progress& key, const History& history) {
    auto hidden = history.hidden();
    if (hidden.empty() && key.item == nullptr) return;
    if (update_ == nullptr) update_ = std::make_unique<Update>();
    if (hidden.empty()) {
      update_->changes.push_back({key.item, nullptr});
      return;
    }
    const Incoming& first = key.events.front();
    const auto named = Key::of(*first.row);
    auto stored = detail::naming_row([&] { return RowName{detail::key_text(named), first.position}; },
                                     [&] { return Key::stored(named); });
    update_->changes.push_back(
        {key.item, std::make_unique<Item>(Item{std::move(stored), std::move(hidden), key.hash})});
  }

  static constexpr auto less = [](const Seq& a, const Seq& b) { return detail::less_values(a, b); };
  static constexpr auto history_from = [](const Slot<Row>* slot) -> const Seq& {
    return History::from(*slot);
  };
  static constexpr auto event_at = [](const Incoming* event) -> const Seq& { return event->at; };

  const CoreType& core_;
  const Feed& feed_;
  Plan<Row>& plan_;
  const State* state_ = nullptr;
  std::deque<Progress> keys_;
  KeyIndex<Progress> index_;
  std::vector<std::pair<const RowSpan*, const Slot<Row>*>> matched_;
  std::unique_ptr<Update> update_;
  std::size_t split_ = 0;  // rows that came of a row that a late event split, see track()
};

}  // namespace keyfold::detail
