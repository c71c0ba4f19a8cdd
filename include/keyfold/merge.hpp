// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/merge_plan.hpp>
#include <keyfold/detail/merge_syntax.hpp>
#include <keyfold/detail/write.hpp>
#include <keyfold/detail/write_input.hpp>
#include <keyfold/history.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace keyfold {

/// What a write did. A value; `changes()` reads the table's history.
template <class Row>
class MergeResult {
 public:
  MergeResult(const detail::Written& written, const std::shared_ptr<detail::CommitLog<Row>>& log,
              std::vector<std::exception_ptr> subscriber_errors = {}) noexcept
      : written_(written),
        log_(log),
        readers_(log->readers),
        subscriber_errors_(std::move(subscriber_errors)) {}

  /// The table's version after the write.
  [[nodiscard]] Version version() const noexcept { return written_.version; }

  /// Whether the write made a version. One that changed nothing does not, see docs/merge-semantics.md; nor
  /// does one within a transaction, before the transaction is committed.
  [[nodiscard]] bool committed() const noexcept { return written_.committed; }

  /// Whether once() skipped the write, since its number was recorded before.
  [[nodiscard]] bool already_applied() const noexcept { return written_.already_applied; }

  [[nodiscard]] const Metrics& metrics() const noexcept { return written_.metrics; }

  /// What the write changed, with before and after rows (SQL's RETURNING). Copies the rows: O(changes).
  /// Throws TableGone when the table no longer exists, or the transaction that the write was part of has
  /// ended; VersionExpired when the version has expired.
  [[nodiscard]] ChangeSet<Row> changes() const {
    if (written_.record == 0) return {};
    if (readers_ == nullptr) return recorded_changes();
    ChangeSet<Row> changes;
    readers_->read([&] { changes = recorded_changes(); });
    return changes;
  }

  /// What subscribers threw when they were told of this write, as far as there was memory to keep it. The
  /// write stands, and the others were told.
  [[nodiscard]] const std::vector<std::exception_ptr>& subscriber_errors() const noexcept {
    return subscriber_errors_;
  }

 private:
  // Holds the log, and so only while its table cannot go.
  ChangeSet<Row> recorded_changes() const {
    const auto log = log_.lock();
    if (log == nullptr)
      throw TableGone("result, or the transaction it was part of,", "ask for changes() before that");
    const auto* record = log->find(written_.record);
    if (record == nullptr) throw VersionExpired(written_.record, log->oldest);
    return detail::changes_of(*log, *record);
  }

  detail::Written written_;
  std::weak_ptr<const detail::CommitLog<Row>> log_;
  std::shared_ptr<detail::TableReaders> readers_;  // of a table that was shared when it was written to
  std::vector<std::exception_ptr> subscriber_errors_;
};

/// The clauses of a merge as a value: built once, run many times, possibly constexpr.
///
///     constexpr auto rule = keyfold::merge_rule<Order,
///     Change>().on<&Change::id>().when_matched().update_all(); orders.merge(changes, rule);
template <class RowType, class SourceType, class MatchType, class Policy, class... Clauses>
class [[nodiscard]] MergeRule
    : public detail::MergeSyntax<MergeRule<RowType, SourceType, MatchType, Policy, Clauses...>> {
 public:
  using Row = RowType;
  using Source = SourceType;
  using Match = MatchType;
  using PolicyType = Policy;
  using Rule = MergeRule;

  constexpr MergeRule(Match match, Policy policy, detail::Pack<Clauses...> clauses, bool rewrite_unchanged)
      : match_(std::move(match)),
        policy_(std::move(policy)),
        clauses_(std::move(clauses)),
        rewrite_unchanged_(rewrite_unchanged) {}

  /// The clauses as history records them, in SQL's words.
  [[nodiscard]] std::string text() const {
    std::string out;
    clauses_.for_each([&](const auto& clause) {
      if (!out.empty()) out += ' ';
      clause.print(out);
    });
    return out;
  }

  // For the planner and the grammar.

  template <detail::ClauseKind kind>
  static constexpr bool has_unconditional_clause = ((Clauses::kind == kind && Clauses::unconditional) || ...);
  template <detail::ClauseKind kind>
  static constexpr bool has_clause = ((Clauses::kind == kind) || ...);
  static constexpr std::size_t clause_count = sizeof...(Clauses);

  /// Whether all rules of this type have the same text().
  static constexpr bool has_fixed_text =
      std::same_as<typename Match::Condition, detail::Always> && std::same_as<Policy, detail::NoPolicy> &&
      ((Clauses::unconditional && std::is_empty_v<typename Clauses::ActionType>) && ...);

  constexpr const Match& match() const noexcept { return match_; }
  constexpr const Policy& policy() const noexcept { return policy_; }
  constexpr const detail::Pack<Clauses...>& clauses() const noexcept { return clauses_; }
  constexpr bool rewrites_unchanged() const noexcept { return rewrite_unchanged_; }

  constexpr MergeRule&& rule() noexcept { return std::move(*this); }
  template <class Other>
  constexpr Other with(Other other) && {
    return other;
  }

  template <class Clause>
  constexpr auto with_clause(Clause clause) && {
    return MergeRule<Row, Source, Match, Policy, Clauses..., Clause>(
        std::move(match_), std::move(policy_), std::move(clauses_).with(std::move(clause)),
        rewrite_unchanged_);
  }
  template <class NewPolicy>
  constexpr auto with_policy(NewPolicy policy) && {
    return MergeRule<Row, Source, Match, NewPolicy, Clauses...>(std::move(match_), std::move(policy),
                                                                std::move(clauses_), rewrite_unchanged_);
  }
  template <class NewMatch>
  constexpr auto with_match(NewMatch match) && {
    return MergeRule<Row, Source, NewMatch, Policy, Clauses...>(std::move(match), std::move(policy_),
                                                                std::move(clauses_), rewrite_unchanged_);
  }
  constexpr auto rewriting() && {
    return MergeRule(std::move(match_), std::move(policy_), std::move(clauses_), true);
  }

 private:
  Match match_;
  Policy policy_;
  detail::Pack<Clauses...> clauses_;
  bool rewrite_unchanged_;
};

/// Starts a rule that merges rows of type Source into a table of rows of type Row.
template <class Row, class Source = Row>
constexpr auto merge_rule() {
  using Match = detail::Match<void, void, detail::Always>;
  return MergeRule<Row, Source, Match, detail::NoPolicy>(Match{}, detail::NoPolicy{}, detail::Pack<>{},
                                                         false);
}

namespace detail {

/// The rule of upsert().
template <class Row, class Source>
inline constexpr auto upsert_rule =
    merge_rule<Row, Source>().when_matched().update_all().when_not_matched().insert_all();

}  // namespace detail

/// A merge that is being put together; nothing happens before execute() or preview(). It refers to the table,
/// and to the source where that is an lvalue.
template <class Target, class SourceRange, class RuleType>
class [[nodiscard("nothing happens before execute() or preview()")]] MergeBuilder
    : public detail::MergeSyntax<MergeBuilder<Target, SourceRange, RuleType>> {
 public:
  using Rule = RuleType;
  using Row = typename Rule::Row;
  using Source = typename Rule::Source;

  MergeBuilder(detail::WriteInput<Target, SourceRange>&& input, Rule rule)
      : input_(std::move(input)), rule_(std::move(rule)) {}

  /// Stored with the commit. A merge with metadata makes a version even if it changes nothing.
  MergeBuilder metadata(std::string text) && {
    input_.note.metadata = detail::SharedText(std::move(text));
    return std::move(*this);
  }

  /// Numbers the write for an application: it is skipped, and its source not read, unless the number is above
  /// the last one recorded for that application. The number is recorded with the commit, even if nothing else
  /// changes.
  MergeBuilder once(std::string app, std::uint64_t number) && {
    input_.note.once = {{std::move(app), number}};
    return std::move(*this);
  }

  /// Runs the merge as one commit. Reads the source once; a container that the merge owns has its rows moved
  /// from, but not where the builder is an lvalue, which can be executed again.
  ///
  /// Throws: DuplicateSourceKey, DuplicateKey, UniqueViolation, InvalidKey, ClauseRaised, ValueOutOfRange,
  /// and whatever the source, the conditions and the rows throw. Strong guarantee for the table; a source
  /// that the merge owns is gone. Complexity: O(source rows) on average, plus O(table) with a
  /// when_not_matched_by_source clause.
  MergeResult<Row> execute() && {
    return run<SourceRange>(*input_.target, input_.source, rule_, std::move(input_.note));
  }
  MergeResult<Row> execute() & {
    return run<SourceRange&>(*input_.target, input_.source, rule_, detail::CommitNote(input_.note));
  }

  /// What execute() would do, with all its errors, without doing it. A single-pass source is read all the
  /// same, so that nothing is left to execute.
  [[nodiscard]] ChangeSet<Row> preview() {
    return input_.target->preview_plan(planner<SourceRange&>(*input_.target, input_.source, rule_));
  }

  /// What execute() does. `Declared` tells whether rows may be moved from, see SourceTraits.
  template <class Declared>
  static MergeResult<Row> run(Target& target, std::remove_reference_t<SourceRange>& source, const Rule& rule,
                              detail::CommitNote&& note) {
    note.operation = "MERGE";
    note.parameters = detail::shared_merge_text<typename Target::CoreType>(rule);
    return target.write(std::move(note), planner<Declared>(target, source, rule));
  }

  // For the grammar.

  constexpr Rule&& rule() noexcept { return std::move(rule_); }
  template <class NewRule>
  auto with(NewRule rule) && {
    return MergeBuilder<Target, SourceRange, NewRule>(std::move(input_), std::move(rule));
  }

 private:
  template <class Declared>
  static auto planner(Target& target, std::remove_reference_t<SourceRange>& source, const Rule& rule) {
    static_assert(Rule::clause_count > 0,
                  "keyfold: a merge without a clause does nothing; add a when_... clause");
    return [&](auto& plan) {
      detail::MergePlanner<typename Target::CoreType, Rule, Declared>(target.core(), rule, plan).run(source);
    };
  }

  detail::WriteInput<Target, SourceRange> input_;
  Rule rule_;
};

}  // namespace keyfold
