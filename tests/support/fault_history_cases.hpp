// The operations of history and time travel that the fault tests run.
#pragma once

#include "support/fault_cases.hpp"

namespace keyfold_test {

template <class TableType>
class FaultHistoryCases : public FaultCases<TableType> {
 public:
  using Base = FaultCases<TableType>;
  using Table = TableType;
  using typename Base::Place;
  using typename Base::Row;
  using typename Base::Rows;
  using typename Base::Value;

  /// As few_rows(), with version 1 tagged.
  static Place tagged() {
    Place place = Base::few_rows();
    place.table.tag("start", 1);
    return place;
  }

  /// As few_rows(), with versions 0 and 2 expired and version 1 kept by its tag.
  static Place expired() {
    Place place = tagged();
    place.table.expire(kf::keep_last(1));
    return place;
  }

  /// As expired(), with nothing any more that keeps version 1.
  static Place untagged() {
    Place place = expired();
    place.table.untag("start");
    return place;
  }

  /// As few_rows(), in a table that keeps two versions.
  static Place forgetful() {
    kf::TableOptions options = frozen_clock();
    options.retention = kf::keep_last(2);
    Place place{Table(options), Table(options)};
    place.table.append(rows({{10, 110, 1, 3, 5}, {20, 120, 2, 2, 5}}));
    place.table.upsert(item_of<Value>({10, 110, 1, 3, 6}));
    place.table.erase(value_of<Value>(20));
    return place;
  }

  /// A table where it is the clock, which may fail, that tells which versions are kept.
  static Place forgetful_by_time() {
    kf::TableOptions options = frozen_clock();
    options.retention = kf::keep_for(std::chrono::microseconds(-1));  // the clock stands still
    Place place{Table(options), Table(options)};
    place.table.append(rows({{10, 110, 1, 3, 5}, {20, 120, 2, 2, 5}}));
    return place;
  }

  static std::vector<FaultCase> writes() {
    return {
        on(
            "restore of an older version", counts(4, 5, 2, 1, 2, 0, 0), &tagged,
            [](Place& place, const Rows&) { return place.table.restore(1); }, Rows{}),
        on(
            "restore of a tag", counts(4, 5, 2, 1, 2, 0, 0), &expired,
            [](Place& place, const Rows&) { return place.table.restore("start"); }, Rows{}),
        on(
            "restore of the empty table", counts(4, 9, 0, 0, 9, 0, 0), &tagged,
            [](Place& place, const Rows&) { return place.table.restore(0); }, Rows{}),
        on(
            "undo", counts(4, 3, 1, 2, 0, 0, 0), &tagged,
            [](Place& place, const Rows&) { return place.table.undo(2); }, Rows{}),
        on(
            "undo that conflicts", "Error", &tagged,
            [](Place& place, const Rows&) { return place.table.undo(1); }, Rows{}),
        on(
            "apply", counts(4, 5, 2, 1, 2, 0, 0), &tagged,
            [](Place& place, const Rows&) {
              const auto changes = [&] {
                const FaultPause pause;
                return place.table.diff(3, 1);
              }();
              return place.table.apply(changes);
            },
            Rows{}),
        on(
            "a key that comes back", counts(4, 1, 1, 0, 0, 0, 0), &tagged,
            [](Place& place, const Rows& source) { return place.table.append(source); },
            rows({{90, 190, 3, 2, 4}})),
        on(
            "a write once", counts(4, 1, 1, 0, 0, 0, 0), &tagged,
            [](Place& place, const Rows& source) { return place.table.once("app", 7).append(source); },
            rows({{110, 210, 1, 1, 1}})),
    };
  }

  static std::vector<FaultCase> bookkeeping() {
    return {
        on(
            "tag", "2 tags", &tagged,
            [](Place& place, const Rows&) {
              place.table.tag("a name beyond the small buffer of a string", 2);
              return said_tags(place);
            },
            Rows{}),
        on(
            "expire", "2 gone", &tagged,
            [](Place& place, const Rows&) { return said_gone(place.table.expire(kf::keep_last(1)).size()); },
            Rows{}),
        on(
            "expire of what a tag kept", "1 gone", &untagged,
            [](Place& place, const Rows&) { return said_gone(place.table.expire(kf::keep_last(1)).size()); },
            Rows{}),
        on(
            "copy of a table with tags and expired versions", "copied 9", &expired,
            [](Place& place, const Rows&) {
              place.other = Table(place.table);
              return Base::said("copied ", place.other.size());
            },
            Rows{}),
    };
  }

  static std::vector<FaultCase> reads() {
    return {
        on(
            "as_of", "9 found", &tagged,
            [](Place& place, const Rows&) {
              const auto view = place.table.as_of(1);
              std::size_t found = 0;
              for (const Row& row : view) found += view.find(row.id) == &row && view.contains(row.id);
              const FaultPause pause;
              return std::to_string(found) + " found";
            },
            Rows{}),
        on(
            "to_table", "copied 9", &tagged,
            [](Place& place, const Rows&) {
              place.other = place.table.as_of(1).to_table();
              return Base::said("copied ", place.other.size());
            },
            Rows{}),
        on(
            "diff", "(75 170 1 2 1)->none", &tagged,
            [](Place& place, const Rows&) {
              const auto changes = place.table.diff(2, 1);
              const FaultPause pause;
              kf::ChangeSet<Row> erased(std::vector{*std::ranges::find_if(
                  changes, [](const auto& c) { return c.kind() == kf::ChangeKind::erase; })});
              return outcome_of(erased);
            },
            Rows{}),
        on(
            "changes", "13 changes", &tagged,
            [](Place& place, const Rows&) {
              const auto feed = place.table.changes(0);
              const FaultPause pause;
              return std::to_string(feed.size()) + " changes";
            },
            Rows{}),
        on(
            "history_of", "2 changes", &tagged,
            [](Place& place, const Rows& source) {
              const auto feed = place.table.history_of(source.front().id);
              const FaultPause pause;
              return std::to_string(feed.size()) + " changes";
            },
            rows({{80, 0, 0, 0, 0}})),
    };
  }

  static std::vector<FaultCase> subscribers() {
    return {
        on(
            "subscribe", "told 0", &tagged,
            [](Place& place, const Rows&) {
              const auto subscription = place.table.subscribe([](const kf::Commit<Row>&) { Base::called(); });
              return Base::said("told ", 0);
            },
            Rows{}),
        on(
            "subscribe with the present rows", "told 9", &tagged,
            [](Place& place, const Rows&) {
              std::size_t told = 0;
              const auto subscription = place.table.subscribe(
                  [&](const kf::Commit<Row>& commit) {
                    Base::called();
                    told += commit.changes().size();
                  },
                  kf::replay);
              return Base::said("told ", told);
            },
            Rows{}),
    };
  }

  /// What happens once a write is made cannot undo it: the callbacks may fail, the write not.
  static std::vector<FaultCase> after_the_commit() {
    return {
        on("a write that is told", counts(4, 1, 1, 0, 0, 0, 0), &tagged, &told_write,
           rows({{110, 210, 1, 1, 1}})),
        on("a write to a table that forgets", counts(4, 1, 1, 0, 0, 0, 0), &forgetful, &write_and_catch_up,
           rows({{20, 120, 1, 1, 1}})),
        on("a write to a table that forgets by time", counts(2, 1, 1, 0, 0, 0, 0), &forgetful_by_time,
           &write_and_catch_up, rows({{30, 130, 1, 1, 1}})),
    };
  }

 protected:
  using Base::on;
  using Base::rows;

  static std::string said_tags(Place& place) {
    const FaultPause pause;
    return std::to_string(place.table.tags().size()) + " tags";
  }
  static std::string said_gone(std::size_t number) {
    const FaultPause pause;
    return std::to_string(number) + " gone";
  }

  // What a fault kept from expiring does so with the next commit.
  static auto write_and_catch_up(Place& place, const Rows& source) {
    const auto result = place.table.append(source);
    const FaultPause pause;
    place.table.upsert(item_of<Value>({10, 110, 1, 3, 50}));
    return result;
  }

  static auto told_write(Place& place, const Rows& source) {
    std::vector<kf::Subscription> subscriptions;
    {
      const FaultPause pause;
      for (int i = 0; i < 3; ++i) {
        subscriptions.push_back(place.table.subscribe([](const kf::Commit<Row>& commit) {
          Base::called();
          static_cast<void>(commit.changes());
        }));
      }
    }
    return place.table.append(source);
  }
};

}  // namespace keyfold_test
