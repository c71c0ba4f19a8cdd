// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/apply_changes.hpp>
#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/incoming.hpp>
#include <keyfold/detail/range_forgotten.hpp>
#include <keyfold/detail/replay.hpp>
#include <keyfold/duplicates.hpp>
#include <keyfold/load.hpp>
#include <keyfold/merge.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keyfold {

/// The verbs that write, each one commit and all-or-nothing: whatever throws, the table, its indexes, its
/// history, its version and its counters are as before. A base of Table and of Writer. See Loads for more
/// verbs.
template <class Self, class Target, class Row>
class Writes : public Loads<Self, Target, Row> {
 public:
  using Result = MergeResult<Row>;

  using mistakes::RangeForgotten<Row>::merge;
  using mistakes::RangeForgotten<Row>::preview;
  using mistakes::RangeForgotten<Row>::upsert;
  using mistakes::RangeForgotten<Row>::patch;
  using mistakes::RangeForgotten<Row>::apply_changes;
  using mistakes::RangeForgotten<Row>::append;
  using mistakes::RangeForgotten<Row>::insert;
  using mistakes::RangeForgotten<Row>::apply;

  /// Starts a merge of these rows, see docs/merge-semantics.md. An lvalue is referred to, an rvalue is kept;
  /// a container given as an rvalue has its rows moved from.
  template <std::ranges::input_range Source>
  auto merge(Source&& rows) {
    return start_merge(std::forward<Source>(rows), merge_rule<Row, std::ranges::range_value_t<Source>>());
  }
  auto merge(std::initializer_list<Row> rows) { return merge(std::vector<Row>(rows)); }

  /// Executes a rule made by merge_rule().
  template <std::ranges::input_range Source, class... RuleArguments>
  Result merge(Source&& rows, const MergeRule<RuleArguments...>& rule) {
    return with_rule(std::forward<Source>(rows), rule,
                     [this]<class Range, class Whole>(Range&& source, Whole all) {
                       return MergeBuilder<Target, Range, Whole>::template run<Range>(self().target(), source,
                                                                                      all, self().note());
                     });
  }

  /// What merge(rows, rule) would do, with all its errors, without doing it.
  template <std::ranges::input_range Source, class... RuleArguments>
  [[nodiscard]] ChangeSet<Row> preview(Source&& rows, const MergeRule<RuleArguments...>& rule) {
    return start_merge(std::forward<Source>(rows), rule).preview();
  }

  /// merge(rows).when_matched().update_all().when_not_matched().insert_all().execute()
  template <std::ranges::input_range Source>
    requires(!std::convertible_to<Source, Row>)
  Result upsert(Source&& rows) {
    return merge(std::forward<Source>(rows), detail::upsert_rule<Row, std::ranges::range_value_t<Source>>);
  }
  Result upsert(std::initializer_list<Row> rows) { return upsert(std::vector<Row>(rows)); }
  Result upsert(Row row) { return upsert(std::array<Row, 1>{std::move(row)}); }

  /// Updates rows column by column: an empty std::optional in a source row leaves its column as it is. A row
  /// with a new key starts from the defaults of Row. The same as
  /// merge(rows).when_matched().update_present().when_not_matched().insert_present().execute()
  template <std::ranges::input_range Source>
  Result patch(Source&& rows) {
    return merge(std::forward<Source>(rows))
        .when_matched()
        .update_present()
        .when_not_matched()
        .insert_present()
        .execute();
  }

  /// Starts a load of change events, see docs/apply_changes.md. An lvalue is referred to, an rvalue is kept;
  /// a container given as an rvalue has its rows moved from.
  template <std::ranges::input_range Source>
  auto apply_changes(Source&& events) {
    check_settings<false, false>();
    using Event = std::ranges::range_value_t<Source>;
    if constexpr (std::is_same_v<Source, Target>) {
      return apply_changes(static_cast<const Target&>(events));
    } else if constexpr (std::is_const_v<Source>) {
      return apply_changes(std::remove_const_t<Source>(events));
    } else {
      return ApplyChanges<Target, Source, detail::Feed<Row, Event>>(
          {&self().target(), std::forward<Source>(events), self().note()}, {});
    }
  }
  auto apply_changes(std::initializer_list<Row> events) { return apply_changes(std::vector<Row>(events)); }

  /// Adds rows. Throws DuplicateKey if a key is in the table already or is given twice, UniqueViolation,
  /// InvalidKey.
  template <std::ranges::input_range Source>
  Result append(Source&& rows) {
    using Value = std::ranges::range_value_t<Source>;
    check_settings<true, false>();
    detail::check_insert_all<Row, Value>();
    return write("APPEND", {}, [&]<class Core>(const Core&, auto& plan) {
      plan.entries.reserve(detail::rows_to_expect<Source, Value>(rows));
      detail::for_each_incoming<Core, Source, Value>(
          rows, policy_of_self(), plan.metrics,
          [&](auto& row, Position position) { plan.insert(detail::hold_row<Row>(row, position), position); });
    });
  }
  Result append(std::initializer_list<Row> rows) { return append(std::vector<Row>(rows)); }

  /// Adds one row. Throws as append() does.
  Result insert(Row row) {
    check_settings<false, false>();
    return write("INSERT", {},
                 [&](const auto&, auto& plan) { plan.insert(detail::Holder<Row>(std::move(row)), 0); });
  }

  /// Deletes the row with this key; without one, nothing happens and no version is made.
  template <class... Values>
  Result erase(const Values&... key) {
    check_settings<false, false>();
    using Core = typename Target::CoreType;
    using Parts = typename Core::KeyParts;
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: erase() needs one value for each part of the key");
    const auto wanted = detail::lookup_key<Parts, Row>(key...);
    return write("DELETE", "WHERE " + Parts::name() + " = " + detail::key_text(wanted),
                 [&](const Core& core, auto& plan) {
                   if (const auto* slot = core.find(wanted)) {
                     plan.erase(*slot, 0);
                   } else {
                     plan.metrics.source_rows = plan.metrics.skipped = 1;
                   }
                 });
  }

  /// Deletes all rows. The history stays.
  Result clear() {
    check_settings<false, false>();
    return write("TRUNCATE", {}, [](const auto& core, auto& plan) {
      for (const auto& slot : core.scan()) plan.remove(slot);
    });
  }

  /// Carries out changes, of this table or of another one with the same key: replication. Throws
  /// ChangeConflict naming all keys where a row to be updated or erased is not as it was before the change,
  /// or an insert meets a row.
  Result apply(const ChangeSet<Row>& changes) {
    check_settings<false, false>();
    return write("APPLY", {}, [&]<class Core>(const Core& core, auto& plan) {
      detail::ChangePlanner<Core> planner(core, plan);
      Position position = 0;
      for (const Change<Row>& change : changes) planner.apply(change, position++);
      planner.check_arrivals();
      planner.finish();
    });
  }

 private:
  friend class Loads<Self, Target, Row>;

  constexpr Self& self() noexcept { return static_cast<Self&>(*this); }

  // What Writer may have in their place.

  static constexpr bool checks = true;  // see unchecked()
  static constexpr detail::NoPolicy policy() noexcept { return {}; }

  decltype(auto) policy_of_self() { return self().policy(); }

  static constexpr bool has_policy() {
    using Policy = std::remove_cvref_t<decltype(std::declval<Writes&>().policy_of_self())>;
    return !std::same_as<Policy, detail::NoPolicy>;
  }

  template <bool takes_policy, bool takes_unchecked>
  static constexpr void check_settings() {
    static_assert(takes_policy || !has_policy(),
                  "keyfold: duplicates() is about rows that come in; this verb takes none");
    static_assert(takes_unchecked || Self::checks, "keyfold: unchecked() is about replace_where() only");
  }

  // Calls `finish<Source>(rows, rule)` with the rule as the settings have it.
  template <class Source, class Rule, class Finish>
  auto with_rule(Source&& rows, Rule rule, Finish finish) {
    check_settings<true, false>();
    static_assert(std::is_same_v<typename Rule::Row, Row>,
                  "keyfold: this rule was made for another type of target row");
    static_assert(detail::SourceRow<std::ranges::range_value_t<Source>, typename Rule::Source>,
                  "keyfold: this rule was made for another type of source row");
    if constexpr (std::is_same_v<Source,
                                 Target>) {  // a table as a source is only read, be it the target itself
      return with_rule(static_cast<const Target&>(rows), std::move(rule), finish);
    } else if constexpr (std::is_const_v<Source>) {  // a const rvalue cannot be moved on: copy it once
      return with_rule(std::remove_const_t<Source>(rows), std::move(rule), finish);
    } else {
      return finish.template operator()<Source>(std::forward<Source>(rows), with_policy(std::move(rule)));
    }
  }
  template <class Source, class Rule>
  auto start_merge(Source&& rows, Rule rule) {
    return with_rule(std::forward<Source>(rows), std::move(rule),
                     [this]<class Range, class Whole>(Range&& source, Whole all) {
                       return MergeBuilder<Target, Range, Whole>(
                           {&self().target(), std::forward<Range>(source), self().note()}, std::move(all));
                     });
  }
  template <class Rule>
  auto with_policy(Rule rule) {
    if constexpr (has_policy()) {
      return std::move(rule).duplicates(policy_of_self());
    } else {
      return rule;
    }
  }

  // `fill(core, plan)` plans the write.
  template <class Fill>
  Result write(std::string_view operation, std::string parameters, Fill fill) {
    Target& target = self().target();
    detail::CommitNote note = self().note();
    note.operation = operation;
    if constexpr (has_policy()) {
      parameters += parameters.empty() ? "DUPLICATES " : " DUPLICATES ";
      policy_of_self().print(parameters);
    }
    if (!parameters.empty()) note.parameters = detail::SharedText(std::move(parameters));
    return target.write(std::move(note), [&](auto& plan) { fill(std::as_const(target.core()), plan); });
  }
};

}  // namespace keyfold
