// The operations that the fault tests run, over rows of any flavour in throwing.hpp and each of the tables
// below.
#pragma once

#include <keyfold/keyfold.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "support/fault_check.hpp"
#include "support/property.hpp"

namespace keyfold_test {

namespace kf = keyfold;

template <class Value>
using HashedTable = kf::Table<Item<Value>, kf::Key<&Item<Value>::id>>;
template <class Value>
using OrderedTable = kf::Table<Item<Value>, kf::OrderedKey<ReadId<Value>{}>>;
template <class Value>
using IndexedTable = kf::Table<Item<Value>, kf::Key<&Item<Value>::id>, kf::OrderedBy<&Item<Value>::rank>,
                               kf::HashedBy<&Item<Value>::group>, kf::UniqueBy<&Item<Value>::code>>;

struct FaultCase {
  std::string name;
  std::string expected;  // first line of a clean run's outcome
  std::function<FaultReport()> run;
};

/// Every event, unless KEYFOLD_TEST_SCALE shortens the tests.
inline std::uint64_t stride() { return static_cast<std::uint64_t>(std::ceil(100.0 / scaled(100))); }

inline void check_cases(const std::vector<FaultCase>& cases) {
  for (const FaultCase& c : cases) {
    const FaultReport report = c.run();
    std::string failures;
    for (const std::string& text : report.failures) failures += text + '\n';
    INFO(c.name << ", " << report.events << " events\n" << failures);
    CHECK(report.outcome.substr(0, report.outcome.find('\n')) == c.expected);
    CHECK((report.thrown > 0) == (report.events > 0));  // looking up strings cannot fail
    CHECK(report.failures.empty());
  }
}

/// Faults of these kinds must have been injected so far, if none was left out.
inline void check_injected(std::initializer_list<Event> events) {
  if (stride() > 1) return;
  for (const Event event : events) {
    INFO(event_names[static_cast<std::size_t>(event)]);
    CHECK((Faults::injected(event) > 0 || Faults::ignored(event)));
  }
}

inline kf::TableOptions frozen_clock() {
  kf::TableOptions options;
  options.clock = [] {
    Faults::happen(Event::call);
    return kf::Timestamp(std::chrono::microseconds(1000));
  };
  return options;
}

/// The outcome of the write that makes version `version`.
inline std::string counts(int version, int source, int inserted, int updated, int deleted, int unchanged,
                          int skipped, int dropped = 0) {
  std::ostringstream out;
  out << 'v' << version << " source " << source << " inserted " << inserted << " updated " << updated
      << " deleted " << deleted << " unchanged " << unchanged << " skipped " << skipped << " dropped "
      << dropped;
  return out.str();
}

template <class TableType>
class FaultCases {
 public:
  using Table = TableType;
  using Row = typename Table::Row;
  using Value = typename Row::Value;
  using Source = Change<Value>;
  using Place = World<Table>;
  using Rows = std::vector<Row>;
  using Changes = std::vector<Source>;

  // --- Tables to start from

  /// Nine rows and a history with changes of each kind; at version 3.
  static Place few_rows() {
    Place place{Table(frozen_clock()), Table(frozen_clock())};
    place.table.append(rows({{10, 110, 1, 3, 5},
                             {20, 120, 2, 2, 5},
                             {30, -1, 1, 2, 7},
                             {40, 140, 2, 1, 7},
                             {50, 150, 3, 1, 9},
                             {60, -1, 3, 3, 9},
                             {70, 170, 1, 2, 1},
                             {80, 180, 2, 1, 1},
                             {90, 190, 3, 2, 4}}));
    place.table.merge(changes({{90, 0, 0, 'D'}, {80, 0, 2, 'U'}, {70, 0, 75, 'K'}}))
        .template on<&Source::id>()
        .when_matched(op == 'D')
        .erase()
        .when_matched(op == 'K')
        .update(target_id = source_amount)
        .when_matched()
        .update(target_amount = source_amount)
        .execute();
    place.table.insert(item_of<Value>({100, 200, 1, 1, 1}));
    return place;
  }

  /// 49 rows at version 2, the last of which made the key index grow: its old array has not moved wholly.
  static Place growing() {
    Place place{Table(frozen_clock()), Table(frozen_clock())};
    Rows first;
    for (int i = 1; i <= 48; ++i)
      first.push_back(item_of<Value>({i, i % 3 == 0 ? -1 : 100 + i, i % 5, i % 7, i}));
    place.table.append(first);
    place.table.insert(item_of<Value>({49, 149, 4, 0, 49}));
    return place;
  }

  /// As few_rows(), with rows in the other table.
  static Place two_tables() {
    Place place = few_rows();
    place.other.append(rows({{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {3, -1, 3, 3, 3}}));
    place.other.erase(value_of<Value>(2));
    return place;
  }

  // --- Cases

  static std::vector<FaultCase> merges() {
    return {
        on_few("update_all and insert_all", counts(4, 5, 2, 2, 0, 1, 0), &upsert_by_clauses,
               rows({{20, 120, 2, 2, 6},
                     {40, 140, 2, 1, 7},
                     {110, 210, 1, 2, 3},
                     {30, 130, 1, 3, 7},
                     {120, -1, 1, 2, 3}})),
        on_few("assignments, erase and by-source clauses", counts(4, 4, 1, 2, 3, 0, 1), &merge_by_assignments,
               assignment_source()),
        on_few("preview", previewed_assignments, &preview_by_assignments, assignment_source()),
        on_few("callables", counts(4, 4, 1, 4, 0, 0, 2), &merge_by_callables,
               changes({{20, 4, 8, 'U'}, {30, 1, 9, 'U'}, {110, 2, 1, 'U'}, {40, 1, 1, 'X'}})),
        on_few("a source that is read once", counts(4, 3, 1, 1, 0, 1, 0), &merge_single_pass,
               rows({{10, 110, 2, 3, 5}, {20, 120, 2, 2, 5}, {110, -1, 1, 1, 1}})),
        on_few("the table as its own source", counts(4, 9, 0, 8, 0, 1, 0), &merge_itself, rows({})),
        on_few("nothing changes",
               "v3 no commit source 2 inserted 0 updated 0 deleted 0 unchanged 2 skipped 0 dropped 0",
               &upsert_by_clauses, rows({{20, 120, 2, 2, 5}, {40, 140, 2, 1, 7}})),
        on_few("nothing changes, but there is metadata", counts(4, 1, 0, 0, 0, 1, 0), &merge_with_metadata,
               rows({{20, 120, 2, 2, 5}})),
        on_few("unchanged rows are rewritten", counts(4, 1, 0, 1, 0, 0, 0), &merge_rewriting,
               rows({{20, 120, 2, 2, 5}})),
        on_few("a clause raises", "ClauseRaised", &merge_raising,
               rows({{10, 110, 2, 3, 6}, {20, 120, 2, 2, 5}})),
        on_few("two source rows act on one row", "DuplicateSourceKey row 0 row 2", &upsert_by_clauses,
               rows({{20, 120, 2, 2, 6}, {110, 210, 1, 2, 3}, {20, 120, 2, 2, 7}})),
    };
  }

  static std::vector<FaultCase> moving_keys() {
    return {
        on_few("two keys swapped", counts(4, 2, 0, 2, 0, 0, 0), &rekey,
               changes({{10, 0, 20, 'K'}, {20, 0, 10, 'K'}})),
        on_few("three keys in a cycle", counts(4, 3, 0, 3, 0, 0, 0), &rekey,
               changes({{10, 0, 20, 'K'}, {20, 0, 30, 'K'}, {30, 0, 10, 'K'}})),
        on_few("a chain of keys with an erase and an insert at its ends", counts(4, 4, 1, 2, 1, 0, 0), &rekey,
               changes({{999, 0, 20, 'K'}, {20, 0, 40, 'K'}, {40, 0, 50, 'K'}, {50, 0, 0, 'D'}})),
        on_few("a key that another row holds", "DuplicateKey table row 1", &rekey,
               changes({{20, 0, 65, 'K'}, {10, 0, 40, 'K'}})),
        on_few("unique values swapped, in a cycle, freed and taken", counts(4, 7, 0, 7, 0, 0, 0),
               &upsert_by_clauses,
               rows({{10, 120, 1, 3, 5},
                     {20, 110, 2, 2, 5},
                     {40, 150, 2, 1, 7},
                     {50, 180, 3, 1, 9},
                     {80, 140, 2, 1, 2},
                     {75, -1, 1, 2, 1},
                     {60, 170, 3, 3, 9}})),
        on_few("rows moved in the secondary indexes", counts(4, 3, 0, 3, 0, 0, 0), &upsert_by_clauses,
               rows({{10, 110, 2, 1, 5}, {100, 200, 3, 1, 1}, {75, 170, 1, 9, 1}})),
        on("growth of the indexes by inserts", counts(3, 8, 7, 1, 0, 0, 0), &growing, &upsert_by_clauses,
           rows({{50, 150, 0, 0, 0},
                 {51, 151, 0, 0, 0},
                 {52, 152, 0, 0, 0},
                 {53, 153, 0, 0, 0},
                 {54, 154, 0, 0, 0},
                 {55, 155, 0, 0, 0},
                 {1, 101, 2, 2, 2},
                 {56, 156, 0, 0, 0}})),
        on("growth of the indexes by updates", counts(3, 6, 0, 5, 1, 0, 0), &growing, &rekey,
           changes({{1, 0, 2, 'K'},
                    {2, 0, 1, 'K'},
                    {3, 0, 0, 'D'},
                    {4, 0, 3, 'K'},
                    {5, 0, 55, 'K'},
                    {49, 0, 60, 'K'}})),
    };
  }

  static std::vector<FaultCase> duplicate_policies() {
    const Rows twice = rows({{20, 120, 2, 2, 8},
                             {110, 210, 1, 1, 1},
                             {20, 120, 2, 2, 6},
                             {30, -1, 1, 2, 7},
                             {110, 210, 1, 1, 3}});
    const Rows once = rows({{20, 120, 2, 2, 8}, {110, 210, 1, 1, 1}, {30, -1, 1, 2, 7}});
    const auto policy = [](auto given) {
      return [given](Place& place, const Rows& source) {
        return place.table.merge(source)
            .duplicates(given)
            .when_matched()
            .update_all()
            .when_not_matched()
            .insert_all()
            .execute();
      };
    };
    return {
        on_few("keep_first", counts(4, 5, 1, 1, 0, 1, 0, 2), policy(kf::keep_first), twice),
        on_few("keep_last", counts(4, 5, 1, 1, 0, 1, 0, 2), policy(kf::keep_last), twice),
        on_few("latest_by", counts(4, 5, 1, 1, 0, 1, 0, 2), policy(kf::latest_by<&Row::amount>), twice),
        on_few("fold", counts(4, 5, 1, 1, 0, 1, 0, 2), policy(kf::fold(&keep_ranks)), twice),
        on_few("fold, moving the rows", counts(4, 5, 1, 1, 0, 1, 0, 2), &merge_folding_rvalue, twice),
        on_few("reject", counts(4, 3, 1, 1, 0, 1, 0), policy(kf::reject), once),
        on_few("reject, refused", "DuplicateSourceKey row 0 row 2", policy(kf::reject), twice),
    };
  }

  static std::vector<FaultCase> other_writes() {
    const Rows new_rows =
        rows({{110, 210, 1, 1, 1}, {120, 220, 2, 2, 2}, {130, -1, 3, 3, 3}, {140, 240, 4, 4, 4}});
    const Rows mixed = rows({{20, 120, 3, 3, 8}, {110, 210, 1, 1, 1}, {30, -1, 1, 2, 7}});
    return {
        on_few("append", counts(4, 4, 4, 0, 0, 0, 0), &append, new_rows),
        on_few("append of a key that is there", "DuplicateKey table row 1", &append,
               rows({{110, 210, 1, 1, 1}, {20, 220, 1, 1, 1}})),
        on_few("append of a key twice", "DuplicateSourceKey row 0 row 1", &append,
               rows({{110, 210, 1, 1, 1}, {110, 220, 1, 1, 1}})),
        on_few("insert", counts(4, 1, 1, 0, 0, 0, 0), &insert, new_rows),
        on_few("upsert of rows", counts(4, 3, 1, 1, 0, 1, 0), &upsert, mixed),
        on_few("upsert of rows that may be moved from", counts(4, 3, 1, 1, 0, 1, 0), &upsert_rvalue, mixed),
        on_few("upsert of one row", counts(4, 1, 0, 1, 0, 0, 0), &upsert_one, mixed),
        on_few("erase", counts(4, 1, 0, 0, 1, 0, 0), &erase, rows({{40, 0, 0, 0, 0}})),
        on_few("erase of no row",
               "v3 no commit source 1 inserted 0 updated 0 deleted 0 unchanged 0 skipped 1 dropped 0", &erase,
               rows({{41, 0, 0, 0, 0}})),
        on_few("clear", counts(4, 0, 0, 0, 9, 0, 0), &clear, rows({})),
        on("clear while the key index grows", counts(3, 0, 0, 0, 49, 0, 0), &growing, &clear, rows({})),
    };
  }

  static std::vector<FaultCase> copies_and_reads() {
    return {
        on_few("copy construction", "copied 9", &copy_construct, rows({})),
        on("copy assignment", "assigned 9", &two_tables, &copy_assign, rows({})),
        on("self-assignment", "assigned 9", &two_tables, &self_assign, rows({})),
        on_few("changes() of a result",
               "(40 140 2 1 7)->none (10 110 1 3 5)->(20 110 1 3 5) (20 120 2 2 5)->(10 120 2 2 5)",
               &changes_of_result, changes({{40, 0, 0, 'D'}, {10, 0, 20, 'K'}, {20, 0, 10, 'K'}})),
        on_few("changes() of commits", "9 3 1", &changes_of_commits, rows({})),
        on_few("find, at and contains", "9 found", &find_all, rows({})),
    };
  }

  /// All that any table can do.
  static void check() {
    check_cases(merges());
    check_cases(moving_keys());
    check_cases(duplicate_policies());
    check_cases(other_writes());
    check_cases(copies_and_reads());
  }

  /// Needs IndexedTable.
  static std::vector<FaultCase> secondary_indexes() {
    return {
        on_few("matching through a hashed index", counts(4, 2, 0, 4, 0, 0, 1), &merge_by_group,
               changes({{0, 1, 33, 'U'}, {0, 7, 33, 'U'}})),
        on_few("matching through an ordered index", counts(4, 1, 0, 0, 3, 0, 0), &merge_by_rank,
               changes({{0, 0, 2, 'D'}})),
        on_few("matching through a unique index", counts(4, 2, 0, 2, 0, 0, 0), &merge_by_code,
               changes({{110, 120, 0, 'U'}, {120, 110, 0, 'U'}})),
        on_few("a unique value that another row holds", "UniqueViolation table row 1", &upsert_by_clauses,
               rows({{10, 110, 2, 3, 6}, {20, 140, 2, 2, 5}})),
        on_few("a unique value that two rows want", "UniqueViolation row 0 row 1", &upsert_by_clauses,
               rows({{10, 300, 2, 3, 6}, {110, 300, 2, 2, 5}})),
        on_few("lookups in the indexes", "9 9 7", &look_up_all, rows({})),
    };
  }

 protected:
  struct ChangeNumbers {
    int id;
    int group;
    int amount;
    char op;
  };

  static constexpr auto op = kf::source<&Source::op>;
  static constexpr auto source_id = kf::source<&Source::id>;
  static constexpr auto source_group = kf::source<&Source::group>;
  static constexpr auto source_amount = kf::source<&Source::amount>;
  static constexpr auto target_id = kf::target<&Row::id>;
  static constexpr auto target_code = kf::target<&Row::code>;
  static constexpr auto target_group = kf::target<&Row::group>;
  static constexpr auto target_rank = kf::target<&Row::rank>;
  static constexpr auto target_amount = kf::target<&Row::amount>;

  static Rows rows(std::initializer_list<Numbers> numbers) {
    Rows out;
    for (const Numbers& row : numbers) out.push_back(item_of<Value>(row));
    return out;
  }
  static Changes changes(std::initializer_list<ChangeNumbers> numbers) {
    Changes out;
    for (const auto& [id, group, amount, kind] : numbers) {
      out.push_back({value_of<Value>(id), value_of<Value>(group), value_of<Value>(amount), kind});
    }
    return out;
  }
  static Rows copy_of(const Rows& source) {
    const FaultPause pause;
    return source;
  }
  static void called() { Faults::happen(Event::call); }

  template <class Operation, class Input>
  static FaultCase on(std::string name, std::string expected, Place (*make)(), Operation operation,
                      Input input) {
    auto run = [=] {
      const auto attempt = [&](Place& place) {
        const auto result = operation(place, input);
        const FaultPause pause;
        return outcome_of(result);
      };
      return FaultCheck<Table>(make, attempt).run(stride());
    };
    return {std::move(name), std::move(expected), std::move(run)};
  }
  template <class Operation, class Input>
  static FaultCase on_few(std::string name, std::string expected, Operation operation, Input input) {
    return on(std::move(name), std::move(expected), &few_rows, std::move(operation), std::move(input));
  }

  // --- Operations: merges

  static auto upsert_by_clauses(Place& place, const Rows& source) {
    return place.table.merge(source).when_matched().update_all().when_not_matched().insert_all().execute();
  }

  static Changes assignment_source() {
    return changes({{20, 6, 50, 'U'}, {30, 0, 0, 'D'}, {40, 0, 3, 'U'}, {110, 4, 8, 'U'}});
  }

  // In words: deletes where told so, raises amounts (and swaps group and rank), inserts; of the rest deletes
  // those of rank 3, and gives those of group 3 the amount 99.
  static auto start_assignments(Place& place, const Changes& source) {
    return place.table.merge(source)
        .template on<&Source::id>()
        .when_matched(op == 'D')
        .erase()
        .when_matched(source_amount > target_amount)
        .update(target_amount = source_amount, target_rank = target_group, target_group = target_rank)
        .when_not_matched(op != 'D')
        .insert(target_id = source_id, target_amount = source_amount, target_group = source_group,
                target_rank = value_of<Value>(3))
        .when_not_matched_by_source(target_rank == value_of<Value>(3))
        .erase()
        .when_not_matched_by_source(target_group == value_of<Value>(3))
        .update(target_amount = value_of<Value>(99));
  }
  static auto merge_by_assignments(Place& place, const Changes& source) {
    return start_assignments(place, source).execute();
  }
  static auto preview_by_assignments(Place& place, const Changes& source) {
    return start_assignments(place, source).preview();
  }
  static inline const std::string previewed_assignments =
      "(20 120 2 2 5)->(20 120 2 2 50) (30 -1 1 2 7)->none none->(110 -1 4 3 8) (10 110 1 3 5)->none "
      "(50 150 3 1 9)->(50 150 3 1 99) (60 -1 3 3 9)->none";

  // Rows of code 140 match nothing; of the rest, those of group 3 get the amount 77.
  static auto merge_by_callables(Place& place, const Changes& source) {
    return place.table.merge(source)
        .template on<&Source::id>()
        .on_condition([](const Row& row, const Source&) {
          return called(), !row.code || *row.code != value_of<Value>(140);
        })
        .when_matched(
            [](const Row& row, const Source& change) { return called(), row.group != change.group; })
        .update([](const Row& row, const Source& change) {
          called();
          Row after = row;
          after.group = change.group;
          after.amount = change.amount;
          return after;
        })
        .when_matched()
        .do_nothing()
        .when_not_matched([](const Source& change) { return called(), change.op == 'U'; })
        .insert([](const Source& change) {
          called();
          return Row{change.id, change.group, change.group, change.amount, change.amount};
        })
        .when_not_matched_by_source([](const Row& row) {
          return called(), row.group == value_of<Value>(3) || row.code == value_of<Value>(140);
        })
        .update([](const Row& row) {
          called();
          Row after = row;
          after.amount = value_of<Value>(77);
          return after;
        })
        .execute();
  }

  static auto merge_single_pass(Place& place, const Rows& source) {
    return place.table.merge(SinglePass<Row>(source))
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .execute();
  }
  static auto merge_itself(Place& place, const Rows&) {
    return place.table.merge(place.table)
        .when_matched()
        .update(target_rank = target_amount, target_amount = target_rank)
        .execute();
  }
  static auto merge_with_metadata(Place& place, const Rows& source) {
    return place.table.merge(source)
        .when_matched()
        .update_all()
        .metadata("a text that is too long for the small buffer of a string")
        .execute();
  }
  static auto merge_rewriting(Place& place, const Rows& source) {
    return place.table.merge(source).rewrite_unchanged().when_matched().update_all().execute();
  }
  static auto merge_raising(Place& place, const Rows& source) {
    return place.table.merge(source)
        .when_matched(kf::source<&Row::amount> == target_amount)
        .raise("nothing new")
        .when_matched()
        .update_all()
        .execute();
  }
  static auto merge_folding_rvalue(Place& place, const Rows& source) {
    return place.table.merge(copy_of(source))
        .duplicates(kf::fold(&keep_ranks))
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .execute();
  }
  static Row keep_ranks(Row&& folded, const Row& next) {
    called();
    Row out = next;
    out.rank = folded.rank;
    return out;
  }

  // Gives rows the key in `amount`.
  static auto rekey(Place& place, const Changes& source) {
    return place.table.merge(source)
        .template on<&Source::id>()
        .when_matched(op == 'D')
        .erase()
        .when_matched()
        .update(target_id = source_amount)
        .when_not_matched()
        .insert(target_id = source_amount, target_group = source_group)
        .execute();
  }

  static auto merge_by_group(Place& place, const Changes& source) {
    return place.table.merge(source)
        .template on<&Source::group>(kf::by<&Row::group>)
        .when_matched()
        .update(target_amount = source_amount, target_rank = source_amount)
        .execute();
  }
  static auto merge_by_rank(Place& place, const Changes& source) {
    return place.table.merge(source)
        .template on<&Source::amount>(kf::by<&Row::rank>)
        .when_matched()
        .erase()
        .execute();
  }
  // Gives rows the code in `group`.
  static auto merge_by_code(Place& place, const Changes& source) {
    return place.table.merge(source)
        .template on<&Source::id>(kf::by<&Row::code>)
        .when_matched()
        .update(target_code = source_group)
        .execute();
  }

  // --- Operations: other writes

  static auto append(Place& place, const Rows& source) { return place.table.append(source); }
  static auto insert(Place& place, const Rows& source) { return place.table.insert(source.front()); }
  static auto upsert(Place& place, const Rows& source) { return place.table.upsert(source); }
  static auto upsert_rvalue(Place& place, const Rows& source) { return place.table.upsert(copy_of(source)); }
  static auto upsert_one(Place& place, const Rows& source) { return place.table.upsert(source.front()); }
  static auto erase(Place& place, const Rows& source) { return place.table.erase(source.front().id); }
  static auto clear(Place& place, const Rows&) { return place.table.clear(); }

  // --- Operations: copies and reads

  static std::string said(const char* text, std::size_t number) {
    const FaultPause pause;
    return text + std::to_string(number);
  }
  static auto copy_construct(Place& place, const Rows&) {
    place.other = Table(place.table);
    return said("copied ", place.other.size());
  }
  static auto copy_assign(Place& place, const Rows&) {
    place.other = place.table;
    return said("assigned ", place.other.size());
  }
  static auto self_assign(Place& place, const Rows&) {
    const Table& same = place.table;
    place.table = same;
    return said("assigned ", place.table.size());
  }
  static auto changes_of_result(Place& place, const Changes& source) {
    auto copy = [&] {
      const FaultPause pause;
      return Place{place.table, Table()};
    }();
    const auto result = [&] {
      const FaultPause pause;
      return rekey(copy, source);
    }();
    return result.changes();
  }
  static auto changes_of_commits(Place& place, const Rows&) {
    std::array<std::size_t, 3> sizes{};
    for (std::size_t i = 0; i < 3; ++i) sizes[i] = place.table.history()[i].changes().size();
    const FaultPause pause;
    return std::to_string(sizes[0]) + ' ' + std::to_string(sizes[1]) + ' ' + std::to_string(sizes[2]);
  }
  static auto find_all(Place& place, const Rows&) {
    std::size_t found = 0;
    for (const Row& row : place.table) {
      found +=
          &place.table.at(row.id) == &row && place.table.find(row.id) == &row && place.table.contains(row.id);
    }
    const FaultPause pause;
    return std::to_string(found) + " found";
  }
  static auto look_up_all(Place& place, const Rows&) {
    std::array<std::size_t, 3> found{};
    for (const Row& row : place.table) {
      found[0] += place.table.template by<&Row::rank>().contains(row.rank);
      found[1] += !place.table.template by<&Row::group>().equal_range(row.group).empty();
      found[2] += row.code && place.table.template by<&Row::code>().find(*row.code) == &row;
    }
    const FaultPause pause;
    return std::to_string(found[0]) + ' ' + std::to_string(found[1]) + ' ' + std::to_string(found[2]);
  }
};

}  // namespace keyfold_test
