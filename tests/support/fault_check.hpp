// Runs an operation once for each event in it, failing that event, and once more failing all from it on; each
// time the table must be exactly as before, and a second try must end as a clean run does.
#pragma once

#include <keyfold/keyfold.hpp>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/agreement.hpp"
#include "support/throwing.hpp"

namespace keyfold_test {

// --- What a table shows

using ChangeNumbers = std::pair<std::optional<Numbers>, std::optional<Numbers>>;

struct CommitNumbers {
  keyfold::Version version = 0;
  keyfold::Timestamp timestamp{};
  std::string operation;
  std::string parameters;
  std::string metadata;
  keyfold::Metrics metrics;
  std::vector<ChangeNumbers> changes;

  bool operator==(const CommitNumbers&) const = default;
};

/// Everything a table shows, as numbers.
struct State {
  std::vector<Numbers> rows;
  keyfold::Version version = 0;
  std::vector<CommitNumbers> commits;
  std::map<keyfold::Version, std::vector<Numbers>> versions;  // those that can be read
  std::map<std::string, keyfold::Version, std::less<>> tags;
  std::optional<std::uint64_t> applied;  // by "app"

  bool operator==(const State&) const = default;
};

/// Where the rows are, in the order of the table and of each index.
template <class Row>
using Places = std::vector<Addresses<Row>>;

template <class Row>
std::vector<ChangeNumbers> numbers_of(const keyfold::ChangeSet<Row>& changes) {
  std::vector<ChangeNumbers> out;
  for (const auto& change : changes) {
    ChangeNumbers numbers;
    if (change.before() != nullptr) numbers.first = numbers_of(*change.before());
    if (change.after() != nullptr) numbers.second = numbers_of(*change.after());
    out.push_back(numbers);
  }
  return out;
}

template <class Row>
CommitNumbers numbers_of(const keyfold::Commit<Row>& commit) {
  CommitNumbers numbers{commit.version(),
                        commit.timestamp(),
                        std::string(commit.operation()),
                        std::string(commit.parameters()),
                        std::string(commit.metadata()),
                        commit.metrics(),
                        {}};
  try {
    numbers.changes = numbers_of(commit.changes());
  } catch (const keyfold::VersionExpired&) {  // the version before it is gone
  }
  return numbers;
}

template <class Table>
State state_of(const Table& table) {
  State state;
  for (const auto& row : table) state.rows.push_back(numbers_of(row));
  state.version = table.version();
  for (const auto commit : table.history()) state.commits.push_back(numbers_of(commit));
  for (keyfold::Version version = 0; version <= table.version(); ++version) {
    try {
      for (const auto& row : table.as_of(version)) state.versions[version].push_back(numbers_of(row));
    } catch (const keyfold::VersionExpired&) {
    }
  }
  state.tags = table.tags();
  state.applied = table.last_applied("app");
  return state;
}

// The order in a hashed index is nobody's business: a failed write may have rehashed it.
template <class Spec, class Table>
auto place_in(const Table& table) {
  auto addresses = addresses_of(view_of(Spec{}, table));
  if (!is_ordered<Spec>) std::ranges::sort(addresses, std::less<>());
  return addresses;
}

template <class Row, class KeySpec, class... Specs>
Places<Row> places_of(const keyfold::Table<Row, KeySpec, Specs...>& table) {
  return {addresses_of(table), place_in<Specs>(table)...};
}

// --- What an operation comes to

/// As text: its counts, its change set, or what it says itself.
template <class Row>
std::string outcome_of(const keyfold::MergeResult<Row>& result) {
  const keyfold::Metrics& m = result.metrics();
  std::ostringstream out;
  out << 'v' << result.version() << (result.committed() ? " " : " no commit ") << "source " << m.source_rows
      << " inserted " << m.inserted << " updated " << m.updated << " deleted " << m.deleted << " unchanged "
      << m.unchanged << " skipped " << m.skipped << " dropped " << m.dropped_duplicates;
  return out.str();
}

inline std::string text_of(const std::optional<Numbers>& row) {
  if (!row) return "none";
  std::ostringstream out;
  out << '(' << row->id << ' ' << row->code << ' ' << row->group << ' ' << row->rank << ' ' << row->amount
      << ')';
  return out.str();
}

/// "(1 -1 0 0 5)->(1 -1 0 0 6) none->(2 -1 0 0 0)", a row being its id, code, group, rank and amount.
template <class Row>
std::string outcome_of(const keyfold::ChangeSet<Row>& changes) {
  std::string out;
  for (const auto& [before, after] : numbers_of(changes)) {
    out += (out.empty() ? "" : " ") + text_of(before) + "->" + text_of(after);
  }
  return out;
}

inline std::string outcome_of(std::string text) { return text; }

inline std::string text_of(keyfold::Position position) {
  return position == keyfold::no_position ? " table" : " row " + std::to_string(position);
}

/// "DuplicateKey row 2 table", and on the next line all it says.
inline std::string outcome_of(const keyfold::Error& error) {
  std::string out = "Error";
  const auto add = [&](const char* name, const auto& e) {
    out = name + text_of(e.first_position) + text_of(e.second_position);
  };
  if (const auto* unique = dynamic_cast<const keyfold::UniqueViolation*>(&error))
    add("UniqueViolation", *unique);
  if (const auto* key = dynamic_cast<const keyfold::DuplicateKey*>(&error)) add("DuplicateKey", *key);
  if (const auto* source = dynamic_cast<const keyfold::DuplicateSourceKey*>(&error))
    add("DuplicateSourceKey", *source);
  if (dynamic_cast<const keyfold::ClauseRaised*>(&error) != nullptr) out = "ClauseRaised";
  return out + '\n' + error.what();
}

// --- The check

/// What a run of all faults in one operation found.
struct FaultReport {
  std::uint64_t events = 0;  // of a clean run
  std::uint64_t thrown = 0;  // runs that a fault ended
  std::string outcome;       // of a clean run, see outcome_of()
  std::vector<std::string> failures;
};

/// A table to be written to, and one beside it that an operation may use.
template <class TableType>
struct World {
  using Table = TableType;
  using Row = typename Table::Row;
  using Value = typename Row::Value;

  Table table;
  Table other;
};

template <class Table>
class FaultCheck {
 public:
  using Row = typename Table::Row;
  using Value = typename Row::Value;
  using Make = std::function<World<Table>()>;
  using Operation = std::function<std::string(World<Table>&)>;

  FaultCheck(Make make, Operation operation) : make_(std::move(make)), operation_(std::move(operation)) {
#ifdef BOOST_MULTI_INDEX_ENABLE_INVARIANT_CHECKING
    // Its checks hash and compare in steps that must not fail, and that otherwise do neither.
    for (const Event event : {Event::hash, Event::equal, Event::less}) Faults::ignore(event);
#endif
  }

  /// Runs the faults of every `stride`-th event.
  FaultReport run(std::uint64_t stride = 1) {
    clean_run();
    for (std::uint64_t nth = 1; nth <= report_.events; nth += stride) {
      for (const FaultMode mode : {FaultMode::single, FaultMode::from_then_on}) faulty_run(nth, mode);
    }
    return report_;
  }

 private:
  void clean_run() {
    World<Table> world = make_();
    Faults::count();
    report_.outcome = attempt(world);
    report_.events = Faults::disarm();
    after_ = state_of(world.table);
    other_after_ = state_of(world.other);
    for (const std::string& text : disagreements(world.table)) fail("clean run: " + text);
    for (const std::string& text : disagreements(world.other)) fail("clean run, other table: " + text);
  }

  void faulty_run(std::uint64_t nth, FaultMode mode) {
    context_ = "event " + std::to_string(nth) + (mode == FaultMode::single ? "" : " and all after it");
    const std::ptrdiff_t values = live_values<Value>();
    const std::ptrdiff_t misused = misused_values<Value>();
    const std::ptrdiff_t blocks = Faults::live_blocks;
    const std::size_t failures = report_.failures.size();
    try_and_retry(nth, mode);
    if (live_values<Value>() != values) fail("values leaked, or died twice");
    if (misused_values<Value>() != misused) fail("a value was used that does not live");
    const bool all_well = report_.failures.size() == failures;  // messages of failures are allocated, too
    if (all_well && Faults::live_blocks != blocks) fail("memory leaked, or was freed twice");
  }

  void try_and_retry(std::uint64_t nth, FaultMode mode) {
    World<Table> world = make_();
    const State before = state_of(world.table);
    const State other_before = state_of(world.other);
    const Places<Row> places = places_of(world.table);
    const Places<Row> other_places = places_of(world.other);

    std::string outcome;
    bool thrown = true;
    Faults::arm(nth, mode);
    try {
      outcome = attempt(world);
      thrown = false;
    } catch (const InjectedFault&) {
    } catch (const InjectedBadAlloc&) {
    }
    Faults::disarm();

    if (thrown) {
      ++report_.thrown;
      expect_untouched(world.table, before, places, "the table");
      expect_untouched(world.other, other_before, other_places, "the other table");
      outcome = attempt(world);
    }
    expect(outcome == report_.outcome, "came to '" + outcome + "' instead of '" + report_.outcome + "'");
    expect(state_of(world.table) == after_, "the table differs from that of a clean run");
    expect(state_of(world.other) == other_after_, "the other table differs from that of a clean run");
    expect_no(index_disagreements(world.table), "afterwards ");
    expect_no(index_disagreements(world.other), "afterwards, other table: ");
  }

  void expect_untouched(const Table& table, const State& state, const Places<Row>& places,
                        const std::string& name) {
    const State now = state_of(table);
    expect(now.rows == state.rows, name + " has other rows than before");
    expect(now.version == state.version, name + " has another version than before");
    expect(now.commits == state.commits, name + " has another history than before");
    expect(now.versions == state.versions, name + " has other rows in old versions than before");
    expect(now.tags == state.tags, name + " has other tags than before");
    expect(now.applied == state.applied, name + " remembers another number of once() than before");
    expect(places_of(table) == places,
           name + " has rows elsewhere, or an index in another order, than before");
    expect_no(index_disagreements(table), name + ": ");
  }

  // An error of keyfold's own is an outcome like another; faults pass.
  std::string attempt(World<Table>& world) {
    try {
      return operation_(world);
    } catch (const keyfold::Error& error) {
      const FaultPause pause;
      return outcome_of(error);
    }
  }

  void expect(bool holds, const std::string& text) {
    if (!holds) fail(text);
  }
  void expect_no(const std::vector<std::string>& found, const std::string& prefix) {
    for (const std::string& text : found) fail(prefix + text);
  }
  void fail(const std::string& text) {
    if (report_.failures.size() < 20) report_.failures.push_back(context_ + ": " + text);
  }

  Make make_;
  Operation operation_;
  FaultReport report_;
  State after_;
  State other_after_;
  std::string context_ = "no fault";
};

}  // namespace keyfold_test
