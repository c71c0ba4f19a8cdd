// Feeds of current rows into tables that are saved and loaded, and into stores that are opened again.
#include "support/sequence_program.hpp"

using namespace keyfold_test;

namespace {

// What is common to all events: they are sequenced by one number, by several members, or by a text.
struct ByNumber {
  template <class Event>
  static auto sequenced(auto builder) {
    return std::move(builder).template sequence_by<&Event::seq>();
  }
};
struct ByMembers {
  template <class Event>
  static auto sequenced(auto builder) {
    return std::move(builder).template sequence_by<&Event::seq, &Event::op>();
  }
};
struct ByText {
  template <class Event>
  static auto sequenced(auto builder) {
    constexpr auto text = [](const Event& event) { return std::string(static_cast<std::size_t>(event.seq), 'x'); };
    return std::move(builder).template sequence_by<text>();
  }
};

// Feeds of several kinds into rows with current values.
template <class Sequencer>
struct CurrentFeeds {
  using Row = FeedRow;
  static constexpr unsigned kinds = 6;

  template <class Event>
  static auto builder(auto& target, std::vector<Event> events) {
    return Sequencer::template sequenced<Event>(target.apply_changes(std::move(events)))
        .apply_as_deletes(kf::source<&Event::op> == 'D')
        .apply_as_truncates(kf::source<&Event::op> == 'T');
  }

  static std::string feed(auto& target, unsigned kind, const std::vector<SparseEvent>& events) {
    switch (kind) {
      case 0:
        return outcome_of(builder(target, events).ignore_null_updates().execute());
      case 1:
        return outcome_of(builder(target, dense(events)).tombstones(kf::keep_last(2)).execute());
      default:
        if constexpr (std::same_as<Sequencer, ByNumber>) return more(target, kind, events);
        return outcome_of(builder(target, dense(events)).execute());
    }
  }
  static std::string more(auto& target, unsigned kind, const std::vector<SparseEvent>& events) {
    switch (kind) {
      case 2:
        return outcome_of(builder(target, dense(events)).on_tie(kf::reject).execute());
      case 3:
        return outcome_of(
            builder(target, dense(events)).tombstones(kf::keep_for(std::chrono::microseconds(30))).execute());
      case 4:
        return outcome_of(
            builder(target, events).template columns_only<&SparseEvent::b>().ignore_null_updates().execute());
      default:
        return outcome_of(builder(target, events).ignore_null_updates().on_tie(kf::reject).execute());
    }
  }

  static Row row(unsigned id, unsigned a) {
    return {static_cast<int>(id % 3), {}, 50, 9, static_cast<int>(a % 9)};
  }
};

using Current = kf::Table<FeedRow, kf::Key<&FeedRow::id>>;
using CurrentInOrder = kf::Table<FeedRow, kf::OrderedKey<&FeedRow::id>, kf::OrderedBy<&FeedRow::b>>;

}  // namespace

TEST_CASE("a table that is saved and loaded goes on judging events as if it had not been") {
  check_programs<CurrentFeeds<ByNumber>, Current, Reloaded>("reloaded, by a number", 2000);
  check_programs<CurrentFeeds<ByMembers>, Current, Reloaded>("reloaded, by several members", 1000);
}

TEST_CASE("a store that is opened again goes on judging events as if it had not been closed") {
  check_programs<CurrentFeeds<ByNumber>, Current, Reopened>("reopened, by a number", 1500);
  check_programs<CurrentFeeds<ByText>, CurrentInOrder, Reopened>("reopened, by a text", 500);
}
