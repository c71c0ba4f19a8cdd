// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/current_state.hpp>
#include <keyfold/detail/current_ties.hpp>
#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/source_rows.hpp>

#include <algorithm>
#include <cassert>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// Planning apply_changes() for current rows (SCD type 1).
///
/// The state of a key is a function of the set of its events, whatever their order: the newest delete, and of
/// each column the newest upsert after that delete. So events are taken as they come, each against the
/// sequences that are known so far.
namespace keyfold::detail {

template <class CoreType, class Feed, class Declared>
class CurrentPlanner {
 public:
  using Row = typename CoreType::RowType;
  using Source = typename Feed::Source;
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;
  using Key = FeedKey<Feed, typename CoreType::KeyParts>;
  using Sequences = FeedSequences<Feed>;
  using Seq = typename Sequences::type;
  using Columns = FeedRow<Feed, Key>;
  using State = CurrentState<typename Key::Stored, Seq>;
  using Item = typename State::Item;
  using Update = CurrentUpdate<typename Key::Stored, Seq>;

  CurrentPlanner(const CoreType& core, const Feed& feed, Plan<Row>& plan)
      : core_(core), feed_(feed), plan_(plan) {}

  void run(typename Traits::Range& range) {
    find_state();
    AllRows<Declared, Source> all(range);
    read_events(all.pointers);
    if (truncate_ != nullptr) visit_table();
    for (const Event& event : events_) take(event);
    if constexpr (rejects_ties)
      Ties(state_).refuse(events_, keys_, [this](const Item& item) { return visited(item); });
    remember_keys();
    for (Progress& key : keys_) finish(key);
    drop_truncated();
    keep_state();
    assert(plan_.source_rows_add_up());
  }

 private:
  using Kind = EventKind;
  using Event = CurrentEvent<Pointer, Seq>;
  using Progress = CurrentProgress<Row, Pointer, Seq, Item>;
  using Ties = CurrentTies<CoreType, Key, Event, Progress, State>;

  static constexpr bool by_column = Columns::ignores_nulls;
  static constexpr bool resets_columns = by_column || Columns::keeps_columns;
  static constexpr bool rejects_ties = Feed::template has<FeedPart::ties>;
  static constexpr std::size_t columns = column_count<Row>;

  Metrics& metrics() noexcept { return plan_.metrics; }

  void find_state() {
    if (core_.sequence_state() == nullptr) return;
    state_ = dynamic_cast<const State*>(core_.sequence_state());
    if (state_ != nullptr) return;
    change().made = State::claim(*core_.sequence_state(), columns);
    state_ = change().made.get();
  }

  // --- Events

  void read_events(const List<Pointer>& rows) {
    events_.reserve(rows.size());
    for (const Pointer row : rows) {
      const Position position = events_.size();
      events_.push_back({row, position, kind_of(*row), Sequences::of(*row, position)});
      const Event& event = events_.back();
      if (event.kind == Kind::truncate) read_truncate(event);
    }
    if (truncate_ != nullptr && !late(truncate_->at)) return;
    truncate_ = nullptr;
  }

  Kind kind_of(const Source& event) const {
    if (detail::event_is<FeedPart::truncates>(feed_, event)) return Kind::truncate;
    return detail::event_is<FeedPart::deletes>(feed_, event) ? Kind::erase : Kind::upsert;
  }

  // Of all truncates only the newest counts.
  void read_truncate(const Event& event) {
    if constexpr (rejects_ties) {
      if (state_ != nullptr && state_->truncated != nullptr)
        Ties::refuse_truncate(*state_->truncated, no_position, event);
    }
    if (truncate_index_ == no_position || !detail::less_values(event.at, events_[truncate_index_].at))
      truncate_index_ = event.position;
    truncate_ = &events_[truncate_index_];
  }

  // The truncate that an event at this position meets, or null.
  const Seq* truncated_at(Position position) const noexcept {
    if (truncate_ != nullptr && truncate_->position < position) return &truncate_->at;
    return state_ != nullptr ? state_->truncated.get() : nullptr;
  }
  bool late(const Seq& at, Position position = 0) const {
    const Seq* truncated = truncated_at(position);
    return truncated != nullptr && detail::less_values(at, *truncated);
  }

  void take(const Event& event) {
    ++metrics().source_rows;
    if (event.kind == Kind::truncate) {
      take_truncate(event);
      return;
    }
    const auto key = Key::of(*event.row);
    detail::require_valid_key(typename Key::SourceParts{}, key, event.position);
    const std::uint64_t hash = detail::hash_of(key);
    Progress& progress = progress_of(key, hash, event.row, [&] { return core_.find(key, hash); });
    if constexpr (rejects_ties) Ties(state_).note(progress, event);
    const bool effective = !late(event.at, event.position) &&
                           (event.kind == Kind::erase ? erase(progress, event) : upsert(progress, event));
    if (!effective) {
      ++metrics().dropped_late;
      return;
    }
    ++progress.effective;
    progress.position = event.position;
  }

  void take_truncate(const Event& event) {
    if (&event == truncate_) {
      ++metrics().skipped;
      for (Progress& progress : keys_) {
        if (erase(progress, event) && !progress.now.live) progress.by_truncate = true;
      }
    } else if (overtaken(event)) {
      ++metrics().dropped_duplicates;
    } else {
      ++metrics().dropped_late;
    }
  }

  // A truncate that counted when it came, before a newer one did.
  bool overtaken(const Event& event) const {
    return truncate_ != nullptr && event.position < truncate_->position && !late(event.at);
  }

  // --- Keys

  template <class KeyTuple, class FindSlot>
  Progress& progress_of(const KeyTuple& key, std::uint64_t hash, Pointer event, FindSlot find_slot) {
    Progress* known = index_.find(hash, [&](const Progress& other) {
      return other.slot != nullptr ? detail::equal_values(CoreType::key_of(other.slot->get()), key)
                                   : detail::equal_values(Key::of(*other.first), key);
    });
    if (known != nullptr) return *known;
    index_.reserve_one(hash);
    Progress& made = keys_.emplace_back();
    made.slot = find_slot();
    made.first = event;
    made.hash = hash;
    if (state_ != nullptr) made.item = state_->keys.find(key, hash);
    start(made);
    index_.insert(hash, &made);
    return made;
  }

  // What is known of a key before the feed: rows may have come and gone by other writes.
  void start(Progress& key) {
    if (key.item != nullptr) key.now = key.item->value;
    if (key.slot == nullptr) {
      if (key.now.live) lose_row(key.now);
    } else {
      see_row(key);
    }
    if constexpr (rejects_ties) {
      key.known_set = key.now.set;
      key.known_erased = key.now.erased;
    }
  }

  // Another write took the row away: as a delete right after the newest upsert.
  static void lose_row(KeySequences<Seq>& now) {
    std::optional<Seq> at = std::max(now.erased, now.set, before_optional);
    now = {};
    now.erased = std::move(at);
  }

  // Another write may have brought the row, or a newer one.
  static void see_row(Progress& key) {
    KeySequences<Seq>& now = key.now;
    bool brought = !now.live;
    now.live = true;
    if constexpr (row_shows_sequence) {
      const std::optional<Seq> shown = Sequences::of_row(key.slot->get());
      if (shown && before(now.set, *shown)) {
        now.set = shown;
        brought = true;
      }
    }
    if (!brought) return;
    now.columns.clear();
    now.base = now.set;
    now.fed = false;
  }

  static bool before_optional(const std::optional<Seq>& a, const std::optional<Seq>& b) {
    return b && before(a, *b);
  }

  static constexpr bool row_shows_sequence = [] {
    if constexpr (Sequences::in_rows) {
      return Sequences::all_copied([]<auto Member>() {
        return Columns::template copied<row_sequence_member<Member, Row, Source>()>();
      });
    } else {
      return false;
    }
  }();

  /// A truncate concerns every row.
  void visit_table() {
    for (const Slot<Row>& slot : core_.scan()) {
      const auto key = CoreType::key_of(slot.get());
      progress_of(key, detail::hash_of(key), nullptr, [&] { return &slot; });
    }
  }

  // --- The rules; each returns whether the event made a difference

  bool erase(Progress& key, const Event& event) {
    KeySequences<Seq>& now = key.now;
    const Seq& at = event.at;
    if (now.erased && detail::less_values(at, *now.erased)) return false;
    const bool again = told_again(now, event);
    if (!now.live || (again ? ties(now.set, at) : not_after(now.set, at))) {
      now.kill(at);
      key.dirty = key.fresh = true;
      key.died = event.position;
      key.by_truncate = false;
      key.winner = nullptr;
      key.row.reset();
      return true;
    }
    if constexpr (resets_columns) {
      if (!again) {
        now.erased = at;
        key.dirty = true;
      }
      return reset_columns(key, at, again);
    } else {
      return false;  // the row was made after it
    }
  }

  // A delete that is known took away what there was when it came; the rest is newer, whoever brought it.
  bool told_again(const KeySequences<Seq>& now, const Event& event) const {
    if (event.kind == Kind::truncate && state_ != nullptr && state_->truncated != nullptr &&
        detail::same_sequence(*state_->truncated, event.at))
      return true;
    return ties(now.erased, event.at);
  }
  static bool ties(const std::optional<Seq>& known, const Seq& at) {
    return known && detail::same_sequence(*known, at);
  }

  bool upsert(Progress& key, const Event& event) {
    KeySequences<Seq>& now = key.now;
    if (now.erased && detail::less_values(event.at, *now.erased)) return false;
    begin(key, event.at);
    if constexpr (by_column) {
      return naming_event(event, [&] { return upsert_columns(key, event); });
    } else {
      if (now.live && !not_after(now.set, event.at)) return false;
      if (!now.columns.empty()) set_all_columns(key, event.at);
      set(key, event);
      key.winner = &event;
      return true;
    }
  }

  // The row begins with the oldest upsert that is known, however late that comes.
  static void begin(Progress& key, const Seq& at) {
    KeySequences<Seq>& now = key.now;
    if (now.live && !(now.fed && detail::less_values(at, *now.base))) return;
    now.base = at;
    now.fed = key.dirty = true;
  }

  void set(Progress& key, const Event& event) {
    key.now.live = true;
    key.now.set = event.at;
    key.dirty = key.touched = true;
    key.by_truncate = false;
  }

  bool upsert_columns(Progress& key, const Event& event) {
    KeySequences<Seq>& now = key.now;
    spread(key);
    open_row(key, *event.row);
    bool effective = !now.live || not_after(now.set, event.at);
    if (effective) set(key, event);
    Columns::for_each_copied(*event.row, [&]<auto Member, std::size_t I>(bool given) {
      if (!given || !not_after(now.columns[I], event.at)) return;
      Columns::template assign_given<Member>(*key.row, *event.row);
      now.columns[I] = event.at;
      effective = key.dirty = key.touched = true;
    });
    return effective;
  }

  // --- Columns

  // From here on each column has its own sequence.
  void spread(Progress& key) {
    if (!key.now.columns.empty()) return;
    key.now.columns.resize(columns);
    if (!key.now.live) return;
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      if constexpr (Columns::template copied<Member>()) key.now.columns[I] = key.now.set;
    });
  }

  void set_all_columns(Progress& key, const Seq& at) {
    if constexpr (HasColumns<Row>) {
      detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
        if constexpr (Columns::template copied<Member>()) key.now.columns[I] = at;
      });
    }
  }

  // Lets the row be put together. Requires: by_column.
  void open_row(Progress& key, const Source& event) {
    if (key.row) return;
    if (key.slot != nullptr && !key.fresh) {
      key.row = key.slot->get();
    } else {
      key.row.emplace();
      Columns::set_key(*key.row, event);
    }
  }

  // A delete came after newer upserts: what is older than it goes back to the defaults. `again`: it is known.
  bool reset_columns(Progress& key, const Seq& at, bool again) {
    KeySequences<Seq>& now = key.now;
    const bool from_start = !again && not_after(now.base, at);
    bool visible = false;
    if constexpr (by_column) {
      spread(key);
      if (!key.row) key.row = key.slot->get();
      visible = reset_older(key, at, from_start);
    } else if (from_start && key.slot != nullptr && !key.fresh) {
      key.fresh = true;
      visible = reset_uncopied(key);
    }
    if (from_start) {  // as far as is known, the row begins with its newest upsert
      now.base = now.set;
      now.fed = true;
    }
    key.touched = key.touched || visible;
    return visible;
  }

  bool reset_older(Progress& key, const Seq& at, bool from_start) {
    bool reset = false;
    const Row defaults{};
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      if constexpr (!Columns::template special<Member>()) {
        std::optional<Seq>& set = key.now.columns[I];  // none where no event has the column
        if (set ? !not_after(set, at) : !from_start) return;
        if (set) key.dirty = true;
        set.reset();
        if constexpr (ValueComparable<member_value_t<Member, Row>>) {
          reset = reset || !detail::equal_values(*key.row.*Member, defaults.*Member);
        } else {
          reset = true;
        }
        *key.row.*Member = defaults.*Member;
      }
    });
    return reset;
  }

  // The columns that no event sets, of a row that stays.
  bool reset_uncopied(Progress& key) {
    const Row defaults{};
    key.row = key.slot->get();
    detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
      if constexpr (!Columns::template special<Member>() && !Columns::template copied<Member>())
        (*key.row).*Member = defaults.*Member;
    });
    return !detail::same_or(false, *key.row, key.slot->get());
  }

  // --- The outcome

  void finish(Progress& key) {
    const bool was = key.slot != nullptr;
    const bool is = key.now.live;
    if (was && is) {
      finish_row(key);
    } else if (was) {
      finish_erase(key);
    } else if (is) {
      count_folded(key, 1);
      plan_insert(key);
    } else {
      count_folded(key, key.by_truncate ? 0 : 1);
      if (!key.by_truncate && key.effective != 0) ++metrics().skipped;
    }
  }

  // All but `own` of the events of a key were folded into others.
  void count_folded(const Progress& key, std::size_t own) {
    if (key.effective > own) metrics().dropped_duplicates += key.effective - own;
  }

  void finish_erase(Progress& key) {
    Planned<Row>& entry = plan_.touch(*key.slot);
    entry.outcome = Outcome::erase;
    ++metrics().deleted;
    if (key.by_truncate) {
      count_folded(key, 0);
      ++metrics().not_matched_by_source_deleted;
      entry.position = truncate_->position;
    } else {
      count_folded(key, 1);
      ++metrics().matched_deleted;
      entry.position = key.position;
    }
  }

  void finish_row(Progress& key) {
    count_folded(key, 1);
    std::optional<Holder<Row>> after;
    if (key.touched) after = changed_row(key);
    if (!after) {
      if (key.effective != 0) ++metrics().unchanged;
      return;
    }
    Planned<Row>& entry = plan_.touch(*key.slot);
    entry.after = std::move(after);
    entry.outcome = Outcome::update;
    entry.position = key.position;
    ++metrics().updated;
    ++(key.effective != 0 ? metrics().matched_updated : metrics().not_matched_by_source_updated);
  }

  void plan_insert(Progress& key) {
    Planned<Row>& entry = plan_.add();
    if constexpr (Columns::whole && !key_as_is)
      Columns::require_key(static_cast<const Row&>(*key.winner->row), *key.first);
    entry.after = made_row(key);
    if constexpr (!Columns::whole) Columns::require_key(entry.after->get(), *key.first);
    entry.outcome = Outcome::insert;
    entry.position = key.position;
    ++metrics().inserted;
  }

  std::optional<Holder<Row>> changed_row(Progress& key) {
    if constexpr (Columns::whole) {
      if (key_as_is && detail::same_or(false, key.slot->get(), static_cast<const Row&>(*key.winner->row)))
        return std::nullopt;
    }
    Holder<Row> made = made_row(key);
    if (detail::same_or(false, key.slot->get(), std::as_const(made).get())) return std::nullopt;
    return made;
  }

  // The key of an event that is a row is the key of that row.
  static constexpr bool key_as_is = std::same_as<typename Key::SourceParts, typename Key::TargetParts>;

  Holder<Row> made_row(Progress& key) {
    if constexpr (by_column) {
      return Holder<Row>(std::move(*key.row));
    } else if (key.winner == nullptr) {
      return Holder<Row>(std::move(*key.row));
    } else {
      return naming_event(*key.winner, [&] { return row_of_winner(key); });
    }
  }

  Holder<Row> row_of_winner(const Progress& key) {
    auto& event = *key.winner->row;
    if constexpr (Columns::whole) {
      Holder<Row> made(std::in_place, [&] { return detail::row_of<Row>(event); });
      if constexpr (!key_as_is) Columns::set_key(made.get(), event);
      return made;
    } else {
      Row made = key.slot != nullptr && !key.fresh ? key.slot->get() : Row{};
      Columns::copy(made, event);
      return Holder<Row>(std::move(made));
    }
  }

  template <class Work>
  static decltype(auto) naming_event(const Event& event, Work work) {
    return detail::naming_row([&] { return RowName{detail::key_text(Key::of(*event.row)), event.position}; },
                              work);
  }

  // --- What is remembered

  // Deletes in the order in which they came, see CurrentState.
  void remember_keys() {
    std::vector<Progress*> dead;
    for (Progress& key : keys_) {
      if (!key.dirty) continue;
      if (key.now.live) {
        remember(key);
      } else {
        dead.push_back(&key);
      }
    }
    std::ranges::stable_sort(dead, std::less<>(), &Progress::died);
    for (Progress* key : dead) remember(*key);
  }

  void remember(Progress& key) {
    KeySequences<Seq>& now = key.now;
    if (!now.live && covered(now.erased)) {  // the truncate says it all
      if (key.item != nullptr) change().changes.push_back({key.item, nullptr});
      return;
    }
    if (!now.live) now.erased_at = time();
    auto stored = detail::stored_key<CoreType, Key>(key);
    change().changes.push_back(
        {key.item, std::make_unique<Item>(Item{std::move(stored), std::move(now), key.hash})});
    now.live = change().changes.back().fresh->value.live;  // NOLINT(bugprone-use-after-move): set anew
  }

  bool visited(const Item& item) const {
    return index_.find(item.hash, [&](const Progress& key) { return key.item == &item; }) != nullptr;
  }

  bool covered(const std::optional<Seq>& at) const {
    return truncate_ != nullptr && not_after(at, truncate_->at);
  }

  // Keys that no row had and no event names.
  void drop_truncated() {
    if (truncate_ == nullptr) return;
    change().truncated = std::make_unique<const Seq>(truncate_->at);
    if (state_ == nullptr) return;
    state_->keys.for_each([&](Item& item) {
      if (!visited(item) && covered(std::max(item.value.erased, item.value.set, before_optional)))
        change().changes.push_back({&item, nullptr});
    });
  }

  void keep_state() {
    if constexpr (Feed::template has<FeedPart::tombstones>) {
      const TombstoneRule& rule = feed_.template get<FeedPart::tombstones>().rule;
      if (state_ == nullptr && update_ == nullptr) return;
      if (const auto* last = std::get_if<KeepLastVersions>(&rule)) {
        change().keep = last->count;
      } else {
        change().keep_since = detail::start_of(std::get<KeepFor>(rule), time());
      }
    }
    plan_.sequences = std::move(update_);
  }

  Update& change() {
    if (update_ == nullptr) update_ = std::make_unique<Update>();
    return *update_;
  }

  Timestamp time() {
    if (!time_) time_ = core_.now();
    return *time_;
  }

  const CoreType& core_;
  const Feed& feed_;
  Plan<Row>& plan_;
  const State* state_ = nullptr;
  std::vector<Event> events_;
  Position truncate_index_ = no_position;
  const Event* truncate_ = nullptr;  // the truncate that counts
  std::deque<Progress> keys_;
  KeyIndex<Progress> index_;
  std::unique_ptr<Update> update_;
  std::optional<Timestamp> time_;
};

}  // namespace keyfold::detail
