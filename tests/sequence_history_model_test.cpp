// Feeds of history rows into tables that are saved and loaded, and into stores that are opened again.
#include "support/sequence_program.hpp"

using namespace keyfold_test;

namespace {

struct Dated {
  int id = 0;
  std::optional<int> a;
  int b = -1;
  int from = 0;
  std::optional<int> to;
  bool operator==(const Dated&) const = default;
};

struct HistoryFeeds {
  using Row = Dated;
  static constexpr unsigned kinds = 4;

  static std::string feed(auto& target, unsigned kind, const std::vector<SparseEvent>& events) {
    const auto base = [&] {
      return target.apply_changes(events)
          .template sequence_by<&SparseEvent::seq>()
          .apply_as_deletes(kf::source<&SparseEvent::op> == 'D')
          .template scd2<&Dated::from, &Dated::to>()
          .ignore_null_updates();
    };
    switch (kind) {
      case 0:
        return outcome_of(base().execute());
      case 1:
        return outcome_of(base().template track<&Dated::a>().execute());
      case 2:
        return outcome_of(base().on_tie(kf::reject).execute());
      default:
        return outcome_of(target.apply_changes(dense(events))
                              .template sequence_by<&FeedEvent::seq>()
                              .apply_as_deletes(kf::source<&FeedEvent::op> == 'D')
                              .template scd2<&Dated::from, &Dated::to>()
                              .template track<&Dated::b>()
                              .execute());
    }
  }

  static Row row(unsigned id, unsigned a) {
    return {static_cast<int>(id % 3), {}, 50, static_cast<int>(a % 9), static_cast<int>(a % 9 + 3)};
  }
};

using History = kf::Table<Dated, kf::Key<&Dated::id, &Dated::from>>;
using HistoryInOrder = kf::Table<Dated, kf::OrderedKey<&Dated::id, &Dated::from>>;

}  // namespace

template <>
struct keyfold::columns_of<Dated>
    : keyfold::Columns<&Dated::id, &Dated::a, &Dated::b, &Dated::from, &Dated::to> {};

TEST_CASE("a table of history rows that is saved and loaded goes on as if it had not been") {
  check_programs<HistoryFeeds, History, Reloaded>("history rows reloaded", 1500);
}

TEST_CASE("a store of history rows that is opened again goes on as if it had not been closed") {
  check_programs<HistoryFeeds, History, Reopened>("history rows reopened", 1000);
  check_programs<HistoryFeeds, HistoryInOrder, Reopened>("ordered history rows reopened", 500);
}
