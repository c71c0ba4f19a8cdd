// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/history_state.hpp>
#include <keyfold/detail/log.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

/// The history of one key (SCD type 2) as a function of its events.
namespace keyfold::detail {

/// An event that a feed brings.
template <class Pointer, class Seq>
struct IncomingEvent {
  Pointer row;
  Position position;
  bool erase;
  Seq at;
  bool counted = false;  // in the metrics
};

/// An event of the timeline of a key: a row of the table, one that is remembered, or one that comes in.
template <class Row, class Seq, class Incoming>
struct TimelineEvent {
  const Seq* at;
  bool erase = false;
  const Slot<Row>* slot = nullptr;
  const RawEvent<Row, Seq>* raw = nullptr;  // also of incoming upserts
  Incoming* incoming = nullptr;
};

/// A row of the history: valid from its first event on.
template <class Row, class Event>
struct Span {
  std::vector<const Event*> events;  // the upserts it is made of
  const Event* end = nullptr;        // what ends it: null for the current row
  std::optional<Row> row{};          // none: it is the row of the table that its only event is

  const Row& get() const { return row ? *row : events.front()->slot->get(); }
  bool ends_by_delete() const noexcept { return end != nullptr && end->erase; }
};

/// Derives the rows of one key from its events.
template <class Feed, class Key, class Incoming, class SeqType>
class Timeline {
 public:
  using Row = typename Feed::Row;
  using Seq = SeqType;
  using Columns = FeedRow<Feed, Key>;
  using Intervals = typename Feed::template At<FeedPart::intervals>;
  using Raw = RawEvent<Row, Seq>;
  using Event = TimelineEvent<Row, Seq, Incoming>;
  using RowSpan = Span<Row, Event>;

  static const Seq& from(const Slot<Row>& slot) { return slot.get().*Intervals::from; }
  static const std::optional<Seq>& to(const Slot<Row>& slot) { return slot.get().*Intervals::to; }

  /// `slots`: the rows of the key, by ascending `from`. `incoming`: ascending, without ties.
  Timeline(const std::vector<const Slot<Row>*>& slots, const std::vector<Raw>* remembered,
           const std::vector<Incoming*>& incoming)
      : slots_(slots) {
    if (remembered != nullptr) add_remembered(*remembered);
    add_rows();
    add_ends();
    std::ranges::stable_sort(events_, earlier);
    add_incoming(incoming);
    derive();
  }

  const std::vector<RowSpan>& spans() const noexcept { return spans_; }

  /// The incoming events that were a tie with one that was there: `visit(incoming)`.
  const std::vector<Incoming*>& ties() const noexcept { return ties_; }

  /// The row that a span comes to.
  static Row row_of(const RowSpan& span) {
    Row row = span.get();
    row.*Intervals::from = *span.events.front()->at;
    if (span.end != nullptr) {
      row.*Intervals::to = *span.end->at;
    } else {
      (row.*Intervals::to).reset();
    }
    return row;
  }

  /// The events that the rows do not show.
  std::vector<Raw> hidden() const {
    std::vector<Raw> out;
    for (const Event* erase : idle_deletes_) out.push_back({*erase->at, std::nullopt, {}});
    for (const RowSpan& span : spans_) {
      if (span.events.size() == 1 && complete(*span.events.front())) continue;
      for (const Event* event : span.events) {
        out.push_back(event->raw != nullptr ? *event->raw : Raw{*event->at, event->slot->get(), {}});
        out.back().folded = event != span.events.front();
      }
    }
    return out;
  }

 private:
  static bool earlier(const Event& a, const Event& b) { return detail::less_values(*a.at, *b.at); }
  static bool complete(const Event& event) noexcept { return event.raw == nullptr || event.raw->complete(); }

  // --- The events that are known

  // What is remembered counts as far as the rows, which other writes may have changed, bear it out: deletes
  // outside of them, upserts where a row begins, or within one if they were folded into one.
  void add_remembered(const std::vector<Raw>& remembered) {
    for (const Raw& raw : remembered) {
      const bool counts = !raw.row ? !covered(raw.at) : raw.folded ? covered(raw.at) : begins(raw.at);
      if (counts) events_.push_back({&raw.at, !raw.row, nullptr, &raw});
    }
    std::ranges::stable_sort(events_, earlier);
    remembered_ = events_.size();
  }

  bool covered(const Seq& at) const {
    const auto after = std::ranges::upper_bound(slots_, at, less, slot_from);
    if (after == slots_.begin()) return false;
    const std::optional<Seq>& end = to(**std::prev(after));
    return !end || detail::less_values(at, *end);
  }

  bool begins(const Seq& at) const {
    const auto slot = std::ranges::lower_bound(slots_, at, less, slot_from);
    return slot != slots_.end() && !detail::less_values(at, from(**slot));
  }

  bool is_remembered(const Seq& at) const {
    const auto end = events_.begin() + static_cast<std::ptrdiff_t>(remembered_);
    const auto found = std::lower_bound(events_.begin(), end, at, [](const Event& event, const Seq& value) {
      return detail::less_values(*event.at, value);
    });
    return found != end && !detail::less_values(at, *found->at);
  }

  void add_rows() {
    for (const Slot<Row>* slot : slots_) {
      if (!is_remembered(from(*slot))) events_.push_back({&from(*slot), false, slot});
    }
  }

  // Where a row ends and none begins there was a delete.
  void add_ends() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::optional<Seq>& end = to(*slots_[i]);
      if (!end || !detail::less_values(from(*slots_[i]), *end)) continue;
      const bool open = i + 1 == slots_.size() || detail::less_values(*end, from(*slots_[i + 1]));
      if (open && !is_remembered(*end)) events_.push_back({&*end, true});
    }
  }

  void add_incoming(const std::vector<Incoming*>& incoming) {
    std::vector<Event> known = std::move(events_);
    events_.clear();
    events_.reserve(known.size() + incoming.size());
    auto next = known.begin();
    for (Incoming* event : incoming) {
      while (next != known.end() && detail::less_values(*next->at, event->at)) events_.push_back(*next++);
      if (next != known.end() && !detail::less_values(event->at, *next->at)) {
        ties_.push_back(event);
        ++next;
      }
      const Raw* raw = event->erase ? nullptr : &made_.emplace_back(raw_of(*event));
      events_.push_back({&event->at, event->erase, nullptr, raw, event});
    }
    events_.insert(events_.end(), next, known.end());
  }

  // --- An incoming event as a row

  static Raw raw_of(const Incoming& event) {
    Raw raw =
        detail::naming_row([&] { return RowName{detail::key_text(Key::of(*event.row)), event.position}; },
                           [&] { return copied(event); });
    Columns::require_key(*raw.row, *event.row);
    return raw;
  }

  static Raw copied(const Incoming& event) {
    if constexpr (Columns::whole) {
      Raw raw{event.at, static_cast<const Row&>(*event.row), {}};
      Columns::set_key(*raw.row, *event.row);
      return raw;
    } else if constexpr (Columns::ignores_nulls) {
      return given_of(event);
    } else {
      Raw raw{event.at, Row{}, {}};
      Columns::copy(*raw.row, *event.row);
      return raw;
    }
  }

  static Raw given_of(const Incoming& event) {
    Raw raw{event.at, Row{}, std::vector<bool>(column_count<Row>, true)};
    Columns::set_key(*raw.row, *event.row);
    bool all = true;
    Columns::for_each_copied(*event.row, [&]<auto Member, std::size_t I>(bool given) {
      if (given) {
        Columns::template assign_given<Member>(*raw.row, *event.row);
      } else {
        raw.given[I] = all = false;
      }
    });
    if (all) raw.given.clear();
    return raw;
  }

  // --- The rows

  void derive() {
    bool open = false;
    for (const Event& event : events_) {
      if (event.erase) {
        if (open) {
          spans_.back().end = &event;
        } else {
          idle_deletes_.push_back(&event);
        }
        open = false;
      } else {
        take_upsert(event, open);
        open = true;
      }
    }
  }

  void take_upsert(const Event& event, bool open) {
    std::optional<Row> row;
    if (event.raw != nullptr) row = filled(*event.raw, open ? &spans_.back().get() : nullptr);
    if constexpr (Feed::template has<FeedPart::track>) {
      using Track = typename Feed::template At<FeedPart::track>;
      if (open && Track::same(spans_.back().get(), row ? *row : event.slot->get())) {
        spans_.back().row.emplace(row ? std::move(*row) : event.slot->get());
        spans_.back().events.push_back(&event);
        return;
      }
    }
    if (open) spans_.back().end = &event;
    spans_.push_back({{&event}, nullptr, std::move(row)});
  }

  // What an event does not bring stays as it was.
  static Row filled(const Raw& raw, [[maybe_unused]] const Row* current) {
    Row row = *raw.row;
    if constexpr (HasColumns<Row>) {
      if (raw.complete() || current == nullptr) return row;
      detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
        if constexpr (is_data_member<Member>) {
          if (!raw.given[I]) row.*Member = current->*Member;
        }
      });
    }
    return row;
  }

  static constexpr auto less = [](const Seq& a, const Seq& b) { return detail::less_values(a, b); };
  static constexpr auto slot_from = [](const Slot<Row>* slot) -> const Seq& { return from(*slot); };

  const std::vector<const Slot<Row>*>& slots_;
  std::vector<Event> events_;
  std::size_t remembered_ = 0;
  std::deque<Raw> made_;
  std::vector<RowSpan> spans_;
  std::vector<const Event*> idle_deletes_;
  std::vector<Incoming*> ties_;
};

}  // namespace keyfold::detail
