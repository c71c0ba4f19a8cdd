// Faults in loads of change events: neither the table nor what it remembers may change. Ties are refused, so
// that a second try would meet whatever a failed one had left behind.
#include "support/fault_cases.hpp"

#include <chrono>
#include <utility>

using namespace keyfold_test;

namespace {

// `amount` is the sequence, which the rows of the table show, too. They have columns that no event has.
template <class TableType>
class FeedFaults : public FaultCases<TableType> {
 public:
  using Base = FaultCases<TableType>;
  using Table = TableType;
  using typename Base::Changes;
  using typename Base::Place;
  using typename Base::Row;
  using typename Base::Source;
  using typename Base::Value;

  static std::vector<FaultCase> loads() {
    return {
        on("events of each kind", counts(4, 10, 1, 2, 1, 0, 2, 1),
           {{10, 2, 8, 'U'},   // updated
            {20, 3, 9, 'U'},   // updated
            {20, 2, 8, 'U'},   // late
            {30, 1, 6, 'U'},   // late: its row has 7
            {40, 0, 9, 'D'},   // deleted
            {110, 1, 4, 'U'},  // inserted
            {120, 1, 4, 'U'},  // folded into the next one
            {120, 1, 5, 'D'},  // no row, before and after
            {130, 0, 3, 'D'},  // likewise
            {170, 0, 1, 'U'}}  // late: deleted at 2
           ),
        on("a truncate", counts(4, 3, 1, 0, 7, 0, 1),  // all but the rows of amount 9
           {{0, 0, 8, 'T'}, {10, 2, 7, 'U'}, {150, 2, 9, 'U'}}),
        on("only what is remembered", "v3 no commit" + counts(3, 2, 0, 0, 0, 0, 2).substr(2),
           {{130, 0, 3, 'D'}, {160, 0, 4, 'D'}}),
        on("a tie", "Error", {{110, 0, 9, 'U'}, {110, 1, 9, 'U'}}),
        on("a late delete", counts(4, 2, 0, 1, 0, 0, 0, 1), {{100, 5, 9, 'U'}, {100, 0, 8, 'D'}}),
        Base::on(
            "deletes that are forgotten", counts(4, 2, 1, 0, 0, 0, 1), &fed,
            [](Place& place, const Changes& events) {
              return feed(place.table, events).tombstones(kf::keep_last(1)).execute();
            },
            changes({{130, 0, 3, 'D'}, {110, 0, 4, 'U'}})),
        Base::on(
            "deletes that are forgotten with time", counts(4, 2, 1, 0, 0, 0, 1), &fed,
            [](Place& place, const Changes& events) {
              return feed(place.table, events).tombstones(kf::keep_for(std::chrono::hours(1))).execute();
            },
            changes({{130, 0, 3, 'D'}, {110, 0, 4, 'U'}})),
        Base::on(
            "a single pass", counts(4, 2, 1, 0, 1, 0, 0), &fed,
            [](Place& place, const Changes& events) {
              return feed(place.table, SinglePass<Source>(events)).execute();
            },
            changes({{40, 0, 9, 'D'}, {110, 1, 4, 'U'}})),
        Base::on(
            "a preview", "(40 140 2 1 7)->none", &fed,
            [](Place& place, const Changes& events) { return feed(place.table, events).preview(); },
            changes({{40, 0, 9, 'D'}, {130, 1, 4, 'D'}})),
        Base::on(
            "a copy of a table that remembers", "copied, 1 late", &fed,
            [](Place& place, const Changes& events) {
              place.other = Table(place.table);
              const FaultPause pause;
              const auto late = feed(place.other, events).execute().metrics().dropped_late;
              return "copied, " + std::to_string(late) + " late";
            },
            changes({{170, 0, 1, 'U'}})),
        Base::on(
            "a transaction", counts(4, 2, 1, 0, 1, 0, 0), &fed,
            [](Place& place, const Changes& events) {
              auto tx = place.table.transaction();
              feed(tx, events).execute();
              return tx.commit();
            },
            changes({{40, 0, 9, 'D'}, {110, 1, 4, 'U'}, {130, 0, 3, 'D'}})),
        Base::on(
            "rows of the table's own type", counts(4, 2, 1, 1, 0, 0, 0), &fed,
            [](Place& place, const std::vector<Row>& events) {
              return place.table.apply_changes(events).template sequence_by<&Row::amount>().execute();
            },
            Base::rows({{10, 110, 1, 3, 8}, {110, 210, 1, 3, 8}})),
    };
  }

 private:
  using Base::changes;

  template <class Target, class Events>
  static auto feed(Target& target, Events&& events) {
    return target.apply_changes(std::forward<Events>(events))
        .template keys<&Source::id>()
        .template sequence_by<&Source::amount>()
        .apply_as_deletes(kf::source<&Source::op> == 'D')
        .apply_as_truncates(kf::named("truncates",
                                      [](const Source& event) {
                                        Base::called();
                                        return event.op == 'T';
                                      }))
        .on_tie(kf::reject);
  }

  /// As few_rows(), with the deletes of 170 at 2 and 180 at 3.
  static Place fed() {
    Place place = Base::few_rows();
    feed(place.table, changes({{170, 1, 2, 'D'}, {180, 1, 2, 'U'}, {180, 1, 3, 'D'}})).execute();
    return place;
  }

  static FaultCase on(std::string name, std::string expected,
                      std::initializer_list<typename Base::ChangeNumbers> events) {
    return Base::on(
        std::move(name), std::move(expected), &fed,
        [](Place& place, const Changes& source) { return feed(place.table, source).execute(); },
        changes(events));
  }
};

// --- History rows: `group` is when a row begins, `code` when it ends

template <class Value>
using HistoryTable = kf::Table<Item<Value>, kf::Key<&Item<Value>::id, &Item<Value>::group>>;
template <class Value>
using OrderedHistoryTable = kf::Table<Item<Value>, kf::OrderedKey<&Item<Value>::id, &Item<Value>::group>>;
template <class Value>
using IndexedHistoryTable = kf::Table<Item<Value>, kf::Key<&Item<Value>::id, &Item<Value>::group>,
                                      kf::HashedBy<&Item<Value>::id>, kf::OrderedBy<&Item<Value>::amount>>;

template <class TableType>
class HistoryFaults : public FaultCases<TableType> {
 public:
  using Base = FaultCases<TableType>;
  using Table = TableType;
  using typename Base::Changes;
  using typename Base::Place;
  using typename Base::Row;
  using typename Base::Source;
  using typename Base::Value;

  static std::vector<FaultCase> loads() {
    return {
        // 10 is split at 15; 20 ends at 30; 30 begins; 40 has no row to end.
        on("events of each kind", counts(3, 4, 2, 2, 0, 0, 1), feed,
           {{10, 15, 1, 'U'}, {20, 30, 0, 'D'}, {30, 10, 1, 'U'}, {40, 10, 1, 'D'}}),
        on("only what is remembered", "v2 no commit" + counts(2, 2, 0, 0, 0, 0, 2).substr(2), feed,
           {{40, 10, 0, 'D'}, {10, 5, 0, 'D'}}),
        on("a tie", "Error", feed, {{10, 15, 1, 'U'}, {10, 15, 2, 'U'}}),
        // 50 was one row for the events at 10 and 20.
        on("a tracked row that is split", counts(3, 1, 2, 1, 0, 0, 0), tracked, {{50, 15, 9, 'U'}}),
        on("two events that make one row", counts(3, 2, 1, 1, 0, 0, 0, 1), tracked,
           {{50, 30, 6, 'U'}, {50, 40, 6, 'U'}}),
        Base::on(
            "a copy of a history", "copied, 2 inserted", &fed,
            [](Place& place, const Changes& events) {
              place.other = Table(place.table);
              const FaultPause pause;
              return "copied, " + std::to_string(tracked(place.other, events).execute().metrics().inserted) +
                     " inserted";
            },
            changes({{50, 15, 9, 'U'}})),
        Base::on(
            "a transaction", counts(3, 3, 2, 1, 0, 0, 0), &fed,
            [](Place& place, const Changes& events) {
              auto tx = place.table.transaction();
              tracked(tx, events).execute();
              return tx.commit();
            },
            changes({{50, 15, 9, 'U'}, {40, 10, 1, 'D'}})),
    };
  }

 private:
  using Base::changes;

  static constexpr auto feed = [](auto& target, const Changes& events) {
    return target.apply_changes(events)
        .template keys<&Source::id>()
        .template sequence_by<&Source::group>()
        .apply_as_deletes(kf::source<&Source::op> == 'D')
        .on_tie(kf::reject)
        .template scd2<&Row::group, &Row::code>();
  };
  static constexpr auto tracked = [](auto& target, const Changes& events) {
    return feed(target, events).template track<&Row::amount>();
  };

  /// Rows that events made, and some that they did not.
  static Place fed() {
    Place place{Table(frozen_clock()), Table(frozen_clock())};
    place.table.append(Base::rows({{10, 20, 10, 0, 1}, {10, -1, 20, 0, 2}, {20, -1, 10, 0, 1}}));
    tracked(place.table, changes({{50, 10, 5, 'U'}, {50, 20, 5, 'U'}, {60, 10, 0, 'D'}})).execute();
    return place;
  }

  template <class Feed>
  static FaultCase on(std::string name, std::string expected, Feed load,
                      std::initializer_list<typename Base::ChangeNumbers> events) {
    return Base::on(
        std::move(name), std::move(expected), &fed,
        [load](Place& place, const Changes& source) { return load(place.table, source).execute(); },
        changes(events));
  }
};

}  // namespace

TEST_CASE("a fault in a load of change events changes nothing") {
  check_cases(FeedFaults<HashedTable<Plain>>::loads());
  check_cases(FeedFaults<IndexedTable<ThrowingMoves>>::loads());
}

TEST_CASE("a fault in a load of change events of strings changes nothing") {
  check_cases(FeedFaults<OrderedTable<std::string>>::loads());
}

TEST_CASE("a fault in a load of a history changes nothing") {
  check_cases(HistoryFaults<HistoryTable<Plain>>::loads());
  check_cases(HistoryFaults<OrderedHistoryTable<ThrowingMoves>>::loads());
  check_cases(HistoryFaults<IndexedHistoryTable<std::string>>::loads());
}

TEST_CASE("faults of every kind were injected") {
  check_injected({Event::copy_construct, Event::copy_assign, Event::hash, Event::equal, Event::less,
                  Event::call, Event::iterate, Event::allocate});
}
