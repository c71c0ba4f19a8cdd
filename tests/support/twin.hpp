// A table and its model, kept in step: every write goes to both, and whatever can be seen of the table is
// compared.
#pragma once

#include "support/model.hpp"
#include "support/property.hpp"

#include <map>
#include <set>

namespace keyfold_test {

// What a condition throws on its own account.
struct UsersOwn {};

namespace model {

// The exception that `call` throws as the model puts it; nothing if it throws none.
template <class Call>
std::optional<Failure> failure_of(Call call) {
  try {
    call();
  } catch (const keyfold::DuplicateSourceKey& e) {
    return Failure{Fault::duplicate_source_key, e.first_position, e.second_position, e.key};
  } catch (const keyfold::DuplicateKey& e) {
    return Failure{Fault::duplicate_key, e.first_position, e.second_position, e.key};
  } catch (const keyfold::UniqueViolation& e) {
    return Failure{Fault::unique_violation, e.first_position, e.second_position, e.key};
  } catch (const keyfold::InvalidKey& e) {
    return Failure{Fault::invalid_key, e.position, e.position, {}};
  } catch (const keyfold::ClauseRaised& e) {
    return Failure{Fault::raised, e.position, e.position, e.key};
  } catch (const keyfold::ValueOutOfRange&) {
    return Failure{Fault::out_of_range, keyfold::no_position, keyfold::no_position, {}};
  } catch (const UsersOwn&) {
    return Failure{Fault::users_own, keyfold::no_position, keyfold::no_position, {}};
  }
  return std::nullopt;
}

inline std::string to_text(const Failure& failure) {
  return "fault " + std::to_string(static_cast<int>(failure.fault)) + " of " + std::to_string(failure.first) +
         " and " + std::to_string(failure.second) + ", key '" + failure.key + "'";
}

}  // namespace model

// How often each thing happened over a whole test, to see that it was worth running.
struct Tally {
  std::map<model::Fault, int> faults;
  std::map<std::string, int> effective;  // writes that changed something, by what they were
  int rekeyed = 0;
};

// What an index finds must be what a scan of the rows finds.
template <class Schema, class Found, class Matches>
void check_found(const typename Schema::Table& table, const std::vector<typename Schema::Row>& rows,
                 const Found& found, Matches matches) {
  std::set<const typename Schema::Row*> seen;
  for (const auto& row : found) {
    RC_ASSERT(matches(row));
    RC_ASSERT(Schema::find(table, row) == &row);
    seen.insert(&row);
  }
  RC_ASSERT(seen.size() == static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), matches)));
}

// `Schema` adds to what the model needs: Table, text(row), check_indexes(table, rows) and a key to find() by.
template <class Schema>
class Twin {
 public:
  using Row = typename Schema::Row;
  using Table = typename Schema::Table;
  using Write = model::Write<Row>;
  using Lines = std::vector<std::string>;

  Twin(bool record_empty_commits, Tally& tally)
      : table_(options(record_empty_commits)), record_empty_(record_empty_commits), tally_(tally) {}

  Table& table() { return table_; }
  const std::vector<Row>& rows() const { return rows_; }

  // `any_order`: the documentation does not say in which order the changes of one source row come.
  template <class Call>
  void write(const std::string& what, const Write& expected, std::string_view operation,
             const std::optional<std::string>& metadata, bool any_order, Call call) {
    const std::map<std::string, const Row*> addresses = unchanged_rows(expected);
    std::optional<keyfold::MergeResult<Row>> result;
    const auto failure = model::failure_of([&] { result.emplace(call(table_)); });
    if (!agree(expected, failure)) return check_state();
    rows_ = expected.rows;
    const bool commits = expected.metrics.affected() != 0 || metadata || record_empty_;
    if (commits) history_.push_back({changes_text(expected.changes, any_order), any_order});
    RC_ASSERT(result->committed() == commits);
    RC_ASSERT(result->version() == history_.size());
    check_metrics(result->metrics(), expected.metrics);
    RC_ASSERT(changes_text(result->changes(), any_order) == (commits ? history_.back().changes : Lines()));
    if (commits) check_commit(expected, operation, metadata);
    check_state();
    for (const auto& [text, row] : addresses) RC_ASSERT(Schema::find(table_, *row) == row);
    count(what, expected);
  }

  template <class Call>
  void preview(const Write& expected, bool any_order, Call call) {
    std::optional<keyfold::ChangeSet<Row>> changes;
    const auto failure = model::failure_of([&] { changes.emplace(call(table_)); });
    if (agree(expected, failure)) {
      RC_ASSERT(changes_text(*changes, any_order) == changes_text(expected.changes, any_order));
    }
    check_state();
  }

  // What older commits tell must survive all that came after them.
  void check_history() const {
    RC_ASSERT(table_.history().size() == history_.size());
    for (std::size_t i = 0; i < history_.size(); ++i) {
      RC_ASSERT(changes_text(table_.history()[i].changes(), history_[i].any_order) == history_[i].changes);
    }
  }

 private:
  struct Past {
    Lines changes;
    bool any_order;
  };

  static keyfold::TableOptions options(bool record_empty_commits) {
    keyfold::TableOptions options;
    options.clock = [] { return keyfold::Timestamp(); };
    options.record_empty_commits = record_empty_commits;
    return options;
  }

  // Returns whether both succeed.
  bool agree(const Write& expected, const std::optional<model::Failure>& seen) {
    Lines possible;
    for (const model::Failure& failure : expected.failures) possible.push_back(to_text(failure));
    RC_LOG() << "failures that would be right: " << rc::toString(possible) << "\n";
    if (!seen) {
      RC_ASSERT(expected.failures.empty());
      return true;
    }
    const auto fits = [&](const model::Failure& failure) { return failure.fits(*seen); };
    if (std::none_of(expected.failures.begin(), expected.failures.end(), fits)) RC_FAIL(to_text(*seen));
    ++tally_.faults[seen->fault];
    return false;
  }

  template <class Rows>
  static Lines text(const Rows& rows) {
    Lines out;
    for (const Row& row : rows) out.push_back(Schema::text(row));
    return out;
  }

  static std::string change_text(const Row* before, const Row* after) {
    return (before != nullptr ? Schema::text(*before) : "") + " -> " +
           (after != nullptr ? Schema::text(*after) : "");
  }
  static Lines ordered(Lines lines, bool any_order) {
    if (any_order) std::sort(lines.begin(), lines.end());
    return lines;
  }
  static Lines changes_text(const keyfold::ChangeSet<Row>& changes, bool any_order) {
    Lines out;
    for (const auto& change : changes) out.push_back(change_text(change.before(), change.after()));
    return ordered(std::move(out), any_order);
  }
  static Lines changes_text(const std::vector<model::Change<Row>>& changes, bool any_order) {
    Lines out;
    for (const auto& [before, after] : changes) {
      out.push_back(change_text(before ? &*before : nullptr, after ? &*after : nullptr));
    }
    return ordered(std::move(out), any_order);
  }

  void check_metrics(const keyfold::Metrics& seen, const keyfold::Metrics& expected) {
    RC_ASSERT(seen.source_rows == expected.source_rows);
    RC_ASSERT(seen.inserted == expected.inserted);
    RC_ASSERT(seen.updated == expected.updated);
    RC_ASSERT(seen.deleted == expected.deleted);
    RC_ASSERT(seen.unchanged == expected.unchanged);
    RC_ASSERT(seen.skipped == expected.skipped);
    RC_ASSERT(seen.matched_updated == expected.matched_updated);
    RC_ASSERT(seen.matched_deleted == expected.matched_deleted);
    RC_ASSERT(seen.not_matched_by_source_updated == expected.not_matched_by_source_updated);
    RC_ASSERT(seen.not_matched_by_source_deleted == expected.not_matched_by_source_deleted);
    RC_ASSERT(seen.dropped_duplicates == expected.dropped_duplicates);
    RC_ASSERT(seen.dropped_late == expected.dropped_late);
    RC_ASSERT(seen == expected);
  }

  void check_commit(const Write& expected, std::string_view operation,
                    const std::optional<std::string>& metadata) {
    const auto commit = table_.history().back();
    RC_ASSERT(commit.version() == history_.size());
    RC_ASSERT(commit.operation() == operation);
    RC_ASSERT(commit.metadata() == metadata.value_or(""));
    RC_ASSERT(commit.metrics() == expected.metrics);
    RC_ASSERT(commit.timestamp() ==
              keyfold::Timestamp(std::chrono::microseconds(history_.size() - 1)));  // the clock stands still
  }

  void check_state() {
    RC_ASSERT(table_.version() == history_.size());
    RC_ASSERT(table_.history().size() == history_.size());
    RC_ASSERT(table_.size() == rows_.size());
    RC_ASSERT(text(table_) == text(rows_));
    for (const Row& row : rows_) {
      const Row* found = Schema::find(table_, row);
      RC_ASSERT(found != nullptr);
      RC_ASSERT(Schema::text(*found) == Schema::text(row));
    }
    Schema::check_indexes(table_, rows_);
  }

  // The rows that the write leaves alone, and where they are.
  std::map<std::string, const Row*> unchanged_rows(const Write& expected) const {
    std::map<std::string, const Row*> out;
    std::set<std::string> changed;
    for (const auto& change : expected.changes) {
      if (change.before) changed.insert(Schema::text(*change.before));
    }
    for (const Row& row : table_) {
      if (expected.failures.empty() && !changed.contains(Schema::text(row)))
        out.emplace(Schema::text(row), &row);
    }
    return out;
  }

  void count(const std::string& what, const Write& expected) {
    if (expected.metrics.affected() != 0) ++tally_.effective[what];
    for (const auto& change : expected.changes) {
      if (change.before && change.after && !Schema::same_key(*change.before, *change.after)) ++tally_.rekeyed;
    }
  }

  Table table_;
  bool record_empty_;
  std::vector<Row> rows_;
  std::vector<Past> history_;
  Tally& tally_;
};

}  // namespace keyfold_test
