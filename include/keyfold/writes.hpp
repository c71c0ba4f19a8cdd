// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/source_rows.hpp>
#include <keyfold/merge.hpp>

#include <array>
#include <concepts>
#include <initializer_list>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace keyfold {

/// The verbs that write, each one commit and all-or-nothing: whatever throws, the table, its indexes, its
/// history, its version and its counters are as before. A base of Table and of Writer.
template <class Self, class Table, class Row>
class Writes {
 public:
  using Result = MergeResult<Row>;

  /// Starts a merge of these rows, see docs/merge-semantics.md. An lvalue is referred to, an rvalue is kept;
  /// a container given as an rvalue has its rows moved from.
  template <std::ranges::input_range Source>
  auto merge(Source&& rows) {
    return with_rule(std::forward<Source>(rows), merge_rule<Row, std::ranges::range_value_t<Source>>());
  }
  auto merge(std::initializer_list<Row> rows) { return merge(std::vector<Row>(rows)); }

  /// Executes a rule made by merge_rule().
  template <std::ranges::input_range Source, class... RuleArguments>
  Result merge(Source&& rows, const MergeRule<RuleArguments...>& rule) {
    return with_rule(std::forward<Source>(rows), rule).execute();
  }

  /// What merge(rows, rule) would do, with all its errors, without doing it.
  template <std::ranges::input_range Source, class... RuleArguments>
  [[nodiscard]] ChangeSet<Row> preview(Source&& rows, const MergeRule<RuleArguments...>& rule) {
    return with_rule(std::forward<Source>(rows), rule).preview();
  }

  /// merge(rows).when_matched().update_all().when_not_matched().insert_all().execute()
  template <std::ranges::input_range Source>
    requires(!std::convertible_to<Source, Row>)
  Result upsert(Source&& rows) {
    return merge(std::forward<Source>(rows))
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .execute();
  }
  Result upsert(std::initializer_list<Row> rows) { return upsert(std::vector<Row>(rows)); }
  Result upsert(Row row) { return upsert(std::array<Row, 1>{std::move(row)}); }

  /// Adds rows. Throws DuplicateKey if a key is in the table already or is given twice, UniqueViolation,
  /// InvalidKey.
  template <std::ranges::input_range Source>
  Result append(Source&& rows) {
    using Value = std::ranges::range_value_t<Source>;
    detail::check_insert_all<Row, Value>();
    return self().table().write(note("APPEND"), [&](auto& plan) {
      detail::for_each_block<Source, Value>(rows, [&](const auto& block, Position first) {
        for (std::size_t i = 0; i < block.size(); ++i)
          plan.insert(detail::hold_row<Row>(*block[i]), first + i);
      });
    });
  }
  Result append(std::initializer_list<Row> rows) { return append(std::vector<Row>(rows)); }

  /// Adds one row. Throws as append() does.
  Result insert(Row row) {
    return self().table().write(note("INSERT"),
                                [&](auto& plan) { plan.insert(detail::Holder<Row>(std::move(row)), 0); });
  }

  /// Deletes the row with this key; without one, nothing happens and no version is made.
  template <class... Values>
  Result erase(const Values&... key) {
    return self().table().erase_key(note("DELETE"), key...);
  }

  /// Deletes all rows. The history stays.
  Result clear() {
    return self().table().write(note("TRUNCATE"), [&](auto& plan) { self().table().plan_clear(plan); });
  }

  /// Carries out changes, of this table or of another one with the same key: replication. Throws
  /// ChangeConflict naming all keys where a row to be updated or erased is not as it was before the change,
  /// or an insert meets a row.
  Result apply(const ChangeSet<Row>& changes) {
    return self().table().apply_changes_of(note("APPLY"), changes);
  }

 private:
  constexpr Self& self() noexcept { return static_cast<Self&>(*this); }

  template <class Source, class Rule>
  auto with_rule(Source&& rows, Rule rule) {
    static_assert(std::is_same_v<typename Rule::Row, Row>,
                  "keyfold: this rule was made for another type of target row");
    static_assert(detail::SourceRow<std::ranges::range_value_t<Source>, typename Rule::Source>,
                  "keyfold: this rule was made for another type of source row");
    if constexpr (std::is_same_v<Source,
                                 Table>) {  // a table as a source is only read, be it the target itself
      return with_rule(static_cast<const Table&>(rows), std::move(rule));
    } else if constexpr (std::is_const_v<Source>) {  // a const rvalue cannot be moved on: copy it once
      return with_rule(std::remove_const_t<Source>(rows), std::move(rule));
    } else {
      return MergeBuilder<Table, Source, Rule>(self().table(), std::forward<Source>(rows), std::move(rule),
                                               self().note());
    }
  }

  detail::CommitNote note(std::string_view operation) {
    detail::CommitNote made = self().note();
    made.operation = operation;
    return made;
  }
};

/// Writes to a table with something added: `table.once("loader", 7).append(rows)`, `table.metadata("load
/// 7").clear()`. Refers to the table.
template <class Table, class Row>
class [[nodiscard]] Writer : public Writes<Writer<Table, Row>, Table, Row> {
 public:
  Writer(Table& table, detail::CommitNote note) : table_(&table), note_(std::move(note)) {}

  /// As MergeBuilder::metadata().
  Writer metadata(std::string text) && {
    note_.metadata = std::move(text);
    return std::move(*this);
  }

  /// As MergeBuilder::once().
  Writer once(std::string app, std::uint64_t number) && {
    note_.once = detail::AppNumber{std::move(app), number};
    return std::move(*this);
  }

 private:
  friend class Writes<Writer, Table, Row>;

  Table& table() noexcept { return *table_; }
  detail::CommitNote note() const { return note_; }

  Table* table_;
  detail::CommitNote note_;
};

}  // namespace keyfold
