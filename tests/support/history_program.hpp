// Random programs of writes and travels on a table, each step of it compared with HistoryModel.
#pragma once

#include <keyfold/keyfold.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "support/history_model.hpp"
#include "support/property.hpp"

namespace keyfold_test {

namespace kf = keyfold;

enum class Verb {
  upsert,
  sync,
  rekey,
  erase,
  clear,
  insert,
  append,
  restore,
  restore_time,
  undo,
  undo_last,
  tag,
  untag,
  expire,
  expire_time,
  compare,
  copy,
  assign_moved,
  metadata,
  once,
  apply,
  apply_stale
};
inline constexpr std::array<std::string_view, 22> verb_names{
    "upsert",       "sync",         "rekey",     "erase", "clear", "insert",     "append",      "restore",
    "restore_time", "undo",         "undo_last", "tag",   "untag", "expire",     "expire_time", "compare",
    "copy",         "assign_moved", "metadata",  "once",  "apply", "apply_stale"};

struct Step {
  Verb verb{};
  int a = 0;
  int b = 0;
  int tick = 0;  // of the clock, in microseconds, before the step
  State rows;
};

inline std::ostream& operator<<(std::ostream& out, const Step& step) {
  out << verb_names[static_cast<std::size_t>(step.verb)] << ' ' << step.a << ' ' << step.b << " tick "
      << step.tick;
  for (const Item& row : step.rows) out << ' ' << row;
  return out;
}

struct Program {
  int keep_last = 0;  // retention; 0: none
  std::vector<Step> steps;
};

inline std::ostream& operator<<(std::ostream& out, const Program& program) {
  out << "keep_last " << program.keep_last << '\n';
  for (const Step& step : program.steps) out << "  " << step << '\n';
  return out;
}

// A number below `end`, evenly spread: inRange() alone keeps to small ones in small programs.
inline rc::Gen<int> below(int end) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }

inline rc::Gen<Item> any_item() {
  return rc::gen::map(below(ids * 3 * 5 * 2), [](int n) {
    Item item{
        n % ids, n / ids % 3, {}, n / (ids * 15) == 0 ? "a" : "text that is too long for the small buffer"};
    if (const int code = n / (ids * 3) % 5; code < 3) item.code = code;
    return item;
  });
}

inline rc::Gen<Verb> any_verb() {
  return rc::gen::weightedElement<Verb>(
      {{6, Verb::upsert},       {5, Verb::sync},         {6, Verb::rekey},       {4, Verb::erase},
       {1, Verb::clear},        {4, Verb::insert},       {2, Verb::append},      {4, Verb::restore},
       {2, Verb::restore_time}, {4, Verb::undo},         {3, Verb::undo_last},   {5, Verb::tag},
       {2, Verb::untag},        {3, Verb::expire},       {1, Verb::expire_time}, {5, Verb::compare},
       {2, Verb::copy},         {1, Verb::assign_moved}, {1, Verb::metadata},    {2, Verb::once},
       {2, Verb::apply},        {2, Verb::apply_stale}});
}

inline rc::Gen<Step> any_step() {
  return rc::gen::build<Step>(
      rc::gen::set(&Step::verb, any_verb()), rc::gen::set(&Step::a, below(60)),
      rc::gen::set(&Step::b, below(60)),
      rc::gen::set(&Step::tick, rc::gen::map(below(8), [](int n) { return n - 3; })),
      rc::gen::set(&Step::rows, rc::gen::resize(4, rc::gen::container<State>(any_item()))));
}

inline rc::Gen<Program> any_program() {
  const auto steps = rc::gen::scale(0.9, rc::gen::container<std::vector<Step>>(any_step()));
  return rc::gen::build<Program>(
      rc::gen::set(&Program::keep_last,
                   rc::gen::weightedOneOf<int>(
                       {{2, rc::gen::just(0)}, {1, rc::gen::map(below(5), [](int n) { return n + 1; })}})),
      rc::gen::set(&Program::steps, steps));
}

/// How often things happened, over all programs: a test of the test.
struct Tally {
  std::map<std::string, int> count;
  int& operator[](const std::string& what) { return count[what]; }
};

template <class Table>
class HistoryRun {
  using Changes = kf::ChangeSet<Item>;
  using Result = kf::MergeResult<Item>;

 public:
  HistoryRun(int keep_last, bool ordered, Tally& tally)
      : keep_last_(static_cast<std::size_t>(keep_last)), model_(ordered), table_(options()), tally_(tally) {}

  /// If it is there, the table is replaced by what it makes of the table, now and then.
  std::function<Table(const Table&, kf::TableOptions)> reload;

  void run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      *now_ += std::chrono::microseconds(step.tick);
      do_step(step);
      if (reload && step.b % 4 == 0) {
        table_ = reload(table_, options());
        ++tally_["reloaded"];
      }
      check_present();
      check_version(static_cast<kf::Version>(step.a) % (model_.latest() + 3));
    }
    for (kf::Version v = 0; v <= model_.latest() + 1; ++v) check_version(v);
    check_times();
    for (int id = 0; id < ids; ++id) check_history_of(id);
  }

 private:
  struct Plan {
    Outcome outcome = Outcome::done;  // of planning it
    ItemChanges changes = {};
    bool says_something = false;
  };

  kf::TableOptions options() {
    kf::TableOptions out;
    out.clock = [now = now_] { return *now; };
    if (keep_last_ != 0) out.retention = kf::keep_last(keep_last_);
    return out;
  }

  kf::Version some_version(int number) const {
    return static_cast<kf::Version>(number) % (model_.latest() + 2);
  }
  kf::Version kept_version(int number) const {
    std::vector<kf::Version> kept;
    for (kf::Version v = 0; v <= model_.latest(); ++v) {
      if (model_.readable(v)) kept.push_back(v);
    }
    return kept[static_cast<std::size_t>(number) % kept.size()];
  }

  void do_step(const Step& step) {
    const int group = step.b % 3;
    const auto new_key = [&](int id) { return (id * (1 + step.a % 3) + step.a / 3) % ids; };
    switch (step.verb) {
      case Verb::upsert:
        return write({.changes = model_.upsert(step.rows)}, [&] { return upsert(table_, step.rows); });
      case Verb::sync:
        return write({.changes = model_.upsert(step.rows, group)}, [&] { return sync(step.rows, group); });
      case Verb::rekey:
        return write({.changes = model_.rekey(group, new_key)}, [&] { return rekey(group, new_key); });
      case Verb::erase:
        return write({.changes = model_.erase(step.a % ids)}, [&] { return table_.erase(step.a % ids); });
      case Verb::clear:
        return write({.changes = model_.clear()}, [&] { return table_.clear(); });
      case Verb::insert:
        if (step.rows.empty()) return;
        return write({.changes = model_.insert({step.rows[0]})}, [&] { return table_.insert(step.rows[0]); });
      case Verb::append:
        return write({.changes = model_.insert(step.rows)}, [&] { return table_.append(step.rows); });
      case Verb::restore:
        return restore(some_version(step.a));
      case Verb::restore_time:
        return restore_time(some_time(step));
      case Verb::undo:
        return undo(some_version(step.a));
      case Verb::undo_last:
        return undo(model_.latest());
      case Verb::tag:
        return tag(step);
      case Verb::untag:
        return untag(step);
      case Verb::expire:
        return expire(kf::keep_last(static_cast<std::size_t>(step.a % 8)),
                      model_.first_of_last(static_cast<std::size_t>(std::max(1, step.a % 8))));
      case Verb::expire_time:
        return expire(kf::older_than(some_time(step)), model_.first_not_before(some_time(step)));
      case Verb::compare:
        return compare(step);
      case Verb::copy:
        return copy();
      case Verb::assign_moved:
        return assign_moved();
      case Verb::metadata:
        return write({.changes = model_.upsert(step.rows), .says_something = true},
                     [&] { return upsert(table_.metadata("note"), step.rows); });
      case Verb::once:
        return once(step);
      case Verb::apply:
        return apply(step);
      case Verb::apply_stale:
        return apply_stale(step);
    }
  }

  // --- Writes

  template <class Writes>
  static Result upsert(Writes&& table, const State& rows) {
    return table.merge(rows)
        .duplicates(kf::keep_last)
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .execute();
  }
  Result sync(const State& rows, int group) {
    return table_.merge(rows)
        .duplicates(kf::keep_last)
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .when_not_matched_by_source(kf::target<&Item::group> == group)
        .erase()
        .execute();
  }
  template <class NewKey>
  Result rekey(int group, NewKey new_key) {
    const State no_rows;
    const auto moved = [&](Item item) {
      item.id = new_key(item.id);
      return item;
    };
    return table_.merge(no_rows)
        .when_not_matched_by_source(kf::target<&Item::group> == group)
        .update(moved)
        .execute();
  }

  template <class Call>
  Outcome outcome_of(Call call) {
    try {
      call();
      return Outcome::done;
    } catch (const kf::DuplicateKey&) {
      return Outcome::illegal;
    } catch (const kf::UniqueViolation&) {
      return Outcome::illegal;
    } catch (const kf::ChangeConflict& error) {
      conflicts_ = std::set<std::string>(error.keys.begin(), error.keys.end());
      return Outcome::conflict;
    } catch (const kf::VersionExpired& error) {
      RC_ASSERT(error.oldest == model_.oldest());
      return Outcome::expired;
    } catch (const kf::VersionNotFound& error) {
      RC_ASSERT(error.latest == model_.latest());
      return Outcome::not_found;
    } catch (const kf::TagNotFound&) {
      return Outcome::tag_not_found;
    } catch (const kf::TagExists&) {
      return Outcome::tag_exists;
    }
  }

  template <class Call>
  void write(const Plan& plan, Call call) {
    const kf::Version before = model_.latest();
    Outcome expected = plan.outcome;
    if (expected == Outcome::done) expected = model_.commit(plan.changes, *now_, plan.says_something);
    const Outcome seen = outcome_of(call);
    RC_ASSERT(seen == expected);
    RC_ASSERT(table_.version() == model_.latest());
    ++tally_[expected == Outcome::done ? "written" : "refused"];
    if (model_.latest() != before) committed();
  }

  // The changes of the commit are those of the model; where the order is left open, the model takes the
  // table's.
  void committed() {
    const auto commit = table_.history().back();
    RC_ASSERT(commit.version() == model_.latest());
    RC_ASSERT(commit.timestamp() == model_.newest().time);
    const ItemChanges seen = changes_of(commit.changes());
    RC_ASSERT(std::ranges::is_permutation(seen, model_.newest().changes));
    model_.newest().changes = seen;
    tally_["rekeyed"] += std::ranges::any_of(seen, &ItemChange::moves_key) ? 1 : 0;
    replica_.apply(commit.changes());
    if (keep_last_ != 0 && model_.first_of_last(keep_last_) > model_.oldest())
      model_.expire(model_.first_of_last(keep_last_));
  }

  template <class Range>
  static ItemChanges changes_of(const Range& changes) {
    ItemChanges out;
    for (const auto& change : changes) {
      ItemChange& made = out.emplace_back();
      if (change.before() != nullptr) made.before = *change.before();
      if (change.after() != nullptr) made.after = *change.after();
    }
    return out;
  }

  void restore(kf::Version version) {
    Plan plan{.outcome = model_.reading(version)};
    if (plan.outcome == Outcome::done) plan.changes = model_.restore(version);
    write(plan, [&] { table_.restore(version); });
    if (plan.outcome == Outcome::done) check_restored(version);
  }
  void restore_time(kf::Timestamp time) {
    Plan plan{.outcome = model_.at_time(time).first};
    if (plan.outcome == Outcome::done) plan.changes = model_.restore(model_.at_time(time).second);
    write(plan, [&] { table_.restore(time); });
    if (plan.outcome == Outcome::done) check_restored(model_.at_time(time).second);
  }
  void check_restored(kf::Version version) {
    RC_ASSERT(std::ranges::is_permutation(State(table_.begin(), table_.end()), model_.at(version).rows));
    ++tally_["restored"];
  }

  void undo(kf::Version version) {
    Plan plan{.outcome = version == 0 ? Outcome::not_found : model_.reading(version)};
    std::set<int> overtaken;
    if (plan.outcome == Outcome::done) {
      if (!model_.in_sequence(version)) plan.outcome = Outcome::expired;
      overtaken = model_.overtaken(version);
      plan.changes = model_.undo(version);
    }
    if (plan.outcome == Outcome::done && !overtaken.empty()) plan.outcome = Outcome::conflict;
    write(plan, [&] { table_.undo(version); });
    if (plan.outcome != Outcome::conflict) return;
    std::set<std::string> keys;
    for (const int id : overtaken) keys.insert(std::to_string(id));
    RC_ASSERT(conflicts_ == keys);
    ++tally_["undo refused"];
  }

  void once(const Step& step) {
    const auto number = static_cast<std::uint64_t>(step.b % 8);
    const std::string app = step.a % 2 == 0 ? "loader" : "other";
    const auto last = applied_.find(app);
    const bool skips = last != applied_.end() && number <= last->second;
    const kf::Version before = table_.version();
    bool skipped = false;
    const auto call = [&] { skipped = upsert(table_.once(app, number), step.rows).already_applied(); };
    if (skips) {
      call();
    } else {
      write({.changes = model_.upsert(step.rows), .says_something = true}, call);
      if (table_.version() != before) applied_[app] = number;
    }
    RC_ASSERT(skipped == skips);
    RC_ASSERT((table_.last_applied(app).has_value()) == applied_.contains(app));
    if (applied_.contains(app)) RC_ASSERT(*table_.last_applied(app) == applied_[app]);
  }

  // A net change back to an older version; its inserts stand in the order of the set.
  void apply(const Step& step) {
    const Changes changes = table_.diff(model_.latest(), kept_version(step.a));
    write({.changes = changes_of(changes)}, [&] { table_.apply(changes); });
  }

  // The changes of an old commit, many of which do not fit any more.
  void apply_stale(const Step& step) {
    const kf::Version version = kept_version(step.a);
    if (version == 0 || !model_.in_sequence(version)) return;
    const ItemChanges& changes = model_.at(version).changes;
    if (std::ranges::any_of(changes, &ItemChange::moves_key)) return;
    std::set<std::string> misfits;
    for (const auto& [before, after] : changes) {
      const int id = before ? before->id : after->id;
      const Item* present = find_item(model_.present(), id);
      const bool fits = before ? present != nullptr && *present == *before : present == nullptr;
      if (!fits) misfits.insert(std::to_string(id));
    }
    const Changes set = table_.history()[table_.history().size() - 1 - (model_.latest() - version)].changes();
    write({.outcome = misfits.empty() ? Outcome::done : Outcome::conflict, .changes = changes},
          [&] { table_.apply(set); });
    if (!misfits.empty()) RC_ASSERT(conflicts_ == misfits);
    ++tally_[misfits.empty() ? "applied" : "apply refused"];
  }

  // --- Tags, expiry, copies

  static std::string tag_name(int number) { return "tag" + std::to_string(number % 3); }

  void tag(const Step& step) {
    const kf::Version version = some_version(step.a);
    const Outcome expected = model_.tag(tag_name(step.b), version);
    RC_ASSERT(outcome_of([&] { table_.tag(tag_name(step.b), version); }) == expected);
    ++tally_["tag"];
  }
  void untag(const Step& step) {
    const Outcome expected = model_.untag(tag_name(step.b));
    RC_ASSERT(outcome_of([&] { table_.untag(tag_name(step.b)); }) == expected);
  }

  template <class Rule>
  void expire(const Rule& rule, kf::Version first) {
    const auto dry = table_.expire(rule, kf::dry_run);
    const auto gone = table_.expire(rule);
    RC_ASSERT(dry == gone);
    RC_ASSERT(gone == model_.expire(first));
    RC_ASSERT(table_.expire(rule).empty());
    tally_["expired"] += gone.empty() ? 0 : 1;
  }

  void copy() {
    const std::size_t size = table_.size();
    Table copied(table_);
    table_.clear();  // must leave the copy alone
    RC_ASSERT(copied.size() == size);
    table_ = copied;
    copied.clear();
    ++tally_["copied"];
  }
  void assign_moved() {
    Table moved(std::move(table_));
    table_ = std::move(moved);
  }

  // --- Reading

  void check_present() {
    RC_ASSERT(State(table_.begin(), table_.end()) == model_.present());
    RC_ASSERT(State(replica_.begin(), replica_.end()) == model_.present());
    RC_ASSERT(table_.version() == model_.latest());
    RC_ASSERT(table_.tags().size() == model_.tags().size());
    for (const Item& row : model_.present()) {
      if (row.code) RC_ASSERT(*table_.template by<&Item::code>().find(*row.code) == row);
    }
    std::size_t in_groups = 0;
    for (int group = 0; group < 3; ++group) {
      for (const Item& row : table_.template by<&Item::group>().equal_range(group)) {
        RC_ASSERT(row.group == group);
        ++in_groups;
      }
    }
    RC_ASSERT(in_groups == table_.size());
  }

  void check_version(kf::Version version) {
    const Outcome expected = model_.reading(version);
    if (expected != Outcome::done) return check_unreadable(version, expected);
    const auto view = table_.as_of(version);
    const State& rows = model_.at(version).rows;
    RC_ASSERT(view.version() == version);
    RC_ASSERT(State(view.begin(), view.end()) == rows);
    RC_ASSERT(view.size() == rows.size());
    for (int id = 0; id < ids; ++id) {
      const Item* row = find_item(rows, id);
      const Item* found = view.find(id);
      RC_ASSERT((found != nullptr) == (row != nullptr));
      if (row != nullptr) RC_ASSERT(*found == *row);
    }
    ++tally_[model_.in_sequence(version) ? "read" : "read by tag"];
  }

  void check_unreadable(kf::Version version, Outcome expected) {
    const auto refuses = [&](auto call) { RC_ASSERT(outcome_of(call) == expected); };
    refuses([&] { static_cast<void>(table_.as_of(version)); });
    refuses([&] { static_cast<void>(table_.diff(version, model_.latest())); });
    refuses([&] { static_cast<void>(table_.diff(model_.latest(), version)); });
    refuses([&] { static_cast<void>(table_.changes(version, version)); });
    try {
      static_cast<void>(table_.as_of(version));
    } catch (const kf::VersionExpired& error) {
      RC_ASSERT(error.requested == version);
    } catch (const kf::VersionNotFound& error) {
      RC_ASSERT(error.requested == version);
    }
    ++tally_["unreadable"];
  }

  kf::Timestamp some_time(const Step& step) const {
    const auto near = model_.at(static_cast<kf::Version>(step.a) % (model_.latest() + 1)).time;
    return (near == kf::Timestamp() ? *now_ : near) + std::chrono::microseconds(step.b % 5 - 2);
  }

  void check_times() {
    for (kf::Version v = 1; v <= model_.latest(); ++v) {
      for (const int offset : {-1, 0, 1}) {
        const kf::Timestamp time = model_.at(v).time + std::chrono::microseconds(offset);
        const auto [outcome, version] = model_.at_time(time);
        kf::Version seen = 0;
        RC_ASSERT(outcome_of([&] { seen = table_.as_of(time).version(); }) == outcome);
        if (outcome == Outcome::done) RC_ASSERT(seen == version);
      }
    }
  }

  // A row that leaves its key and one that arrives at it in the same commit are an erase and an insert of the
  // key.
  void check_history_of(int id) {
    ItemChanges expected;
    std::vector<kf::Version> versions;
    for (kf::Version v = std::max<kf::Version>(1, model_.oldest()); v <= model_.latest(); ++v) {
      for (const bool leaving : {true, false}) {
        for (const ItemChange& change : model_.at(v).changes) {
          const bool leaves =
              change.before && change.before->id == id && (!change.after || change.after->id != id);
          const bool arrives = change.after && change.after->id == id && !leaves;
          if (leaving ? !leaves : !arrives) continue;
          expected.push_back(leaves ? ItemChange{change.before, {}} : change);
          if (!leaves && change.moves_key()) expected.back().before.reset();
          versions.push_back(v);
        }
      }
    }
    const auto feed = table_.history_of(id);
    RC_ASSERT(changes_of(feed) == expected);
    for (std::size_t i = 0; i < feed.size(); ++i) {
      RC_ASSERT(feed[i].version() == versions[i]);
      RC_ASSERT(feed[i].timestamp() == model_.at(versions[i]).time);
    }
  }

  static std::map<int, ItemChange> by_key(const Changes& changes) {
    std::map<int, ItemChange> out;
    for (const ItemChange& change : changes_of(changes))
      out[change.before ? change.before->id : change.after->id] = change;
    RC_ASSERT(out.size() == changes.size());
    return out;
  }

  void compare(const Step& step) {
    const kf::Version a = kept_version(step.a);
    const kf::Version b = kept_version(step.b);
    const Changes net = table_.diff(a, b);
    RC_ASSERT(by_key(net) == naive_diff(model_.at(a).rows, model_.at(b).rows));
    RC_ASSERT(by_key(net.inverse()) == naive_diff(model_.at(b).rows, model_.at(a).rows));
    const auto even = [](const auto& change) {
      return (change.before() ? change.before() : change.after())->id % 2 == 0;
    };
    for (const auto& change : net.filter(even)) RC_ASSERT(even(change));
    RC_ASSERT(net.filter(even).size() +
                  net.filter([&](const auto& change) { return !even(change); }).size() ==
              net.size());
    if (step.tick == 0) travel(a, b, net);
    if (a <= b && model_.in_sequence(a)) feed(a, b, net);
    ++tally_["compared"];
  }

  // The version a, taken out, becomes b by the changes between them.
  void travel(kf::Version a, kf::Version b, const Changes& net) {
    auto taken = table_.as_of(a).to_table();
    RC_ASSERT(State(taken.begin(), taken.end()) == model_.at(a).rows);
    taken.apply(net);
    RC_ASSERT(std::ranges::is_permutation(State(taken.begin(), taken.end()), model_.at(b).rows));
    taken.apply(net.inverse());
    RC_ASSERT(std::ranges::is_permutation(State(taken.begin(), taken.end()), model_.at(a).rows));
  }

  void feed(kf::Version a, kf::Version b, const Changes& net) {
    ItemChanges expected;
    std::vector<kf::Version> versions;
    for (kf::Version v = a + 1; v <= b; ++v) {
      for (const ItemChange& change : model_.at(v).changes) {
        expected.push_back(change);
        versions.push_back(v);
      }
    }
    const auto changes = table_.changes(a, b);
    RC_ASSERT(changes_of(changes) == expected);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      RC_ASSERT(changes[i].version() == versions[i]);
      RC_ASSERT(changes[i].timestamp() == model_.at(versions[i]).time);
    }
    if (a != b) RC_ASSERT(changes_of(table_.changes(model_.at(a + 1).time, model_.at(b).time)) == expected);
    Changes composed;
    for (const auto commit : table_.history()) {
      if (commit.version() > a && commit.version() <= b) composed = composed.then(commit.changes());
    }
    RC_ASSERT(by_key(composed) == by_key(net));
    RC_ASSERT(composed.then(composed.inverse()).empty());
  }

  std::size_t keep_last_;
  std::shared_ptr<kf::Timestamp> now_ = std::make_shared<kf::Timestamp>(std::chrono::hours(1));
  HistoryModel model_;
  Table table_;
  Table replica_;
  Tally& tally_;
  std::map<std::string, std::uint64_t> applied_;
  std::set<std::string> conflicts_;
};

/// Runs `count` programs, scaled, and sees to it that each kind of thing happened.
template <class Table>
void check_history_programs(const std::string& description, int count, bool ordered,
                            std::function<Table(const Table&, kf::TableOptions)> reload = {}) {
  Tally tally;
  check_property(description, count, [&] {
    const Program program = *any_program();
    HistoryRun<Table> run(program.keep_last, ordered, tally);
    run.reload = reload;
    run.run(program.steps);
  });
  if (scaled(100) < 50) return;

  for (const char* what :
       {"written", "refused", "rekeyed", "restored", "undo refused", "apply refused", "applied", "tag",
        "expired", "copied", "read", "read by tag", "unreadable", "compared"}) {
    INFO(what);
    CHECK(tally[what] >= scaled(count) / 20);
  }
}

}  // namespace keyfold_test
