// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/fwd.hpp>

#include <concepts>
#include <ranges>
#include <type_traits>

namespace keyfold::detail {

template <class T>
inline constexpr bool is_merge_rule = false;
template <class... RuleArguments>
inline constexpr bool is_merge_rule<MergeRule<RuleArguments...>> = true;

template <class T, class Row>
concept RowsOrRow = std::ranges::input_range<T> || std::convertible_to<T, Row>;

/// A view that remembers what it has found, for example, has no begin() while it is const.
template <class T>
struct check_const {
  static_assert(std::ranges::input_range<T> || !std::ranges::input_range<std::remove_cvref_t<T>&>,
                "keyfold: this range cannot be read while it is const; declare it without const");
};

}  // namespace keyfold::detail

/// Not in detail: of a base class of Table, functions beside it are candidates for a user's f(table).
namespace keyfold::mistakes {

/// Overloads of the verbs that take rows, for what is no range of rows: each says what to call instead. Row
/// is what a list in braces would be, as in `append({1, "open"})`.
template <class Row>
class RangeForgotten {
 public:
  template <class Given = Row>
  auto merge(Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: merge() takes a range of rows; give one row as std::array{row}, or call "
                  "upsert(row)");
  }
  template <class Given = Row, class Rule>
  auto merge(Given&&, const Rule&)
    requires(!std::ranges::input_range<Given> || !detail::is_merge_rule<Rule>)
  {
    static_cast<void>(detail::check_const<Given>{});
    check_rule<Given, Rule>();
  }
  template <class Given = Row, class Rule>
  auto preview(Given&&, const Rule&)
    requires(!std::ranges::input_range<Given> || !detail::is_merge_rule<Rule>)
  {
    static_cast<void>(detail::check_const<Given>{});
    check_rule<Given, Rule>();
  }
  template <class Given = Row>
  auto preview(Given&&) {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(!std::same_as<Given, Given>,
                  "keyfold: preview() of a table takes rows and a rule; without a rule write "
                  "merge(rows).when_...().preview()");
  }
  template <class Given, class... More>
  auto upsert(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !detail::RowsOrRow<Given, Row>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && detail::RowsOrRow<Given, Row>,
                  "keyfold: upsert() takes a row of the table or one range of rows; give one row of another "
                  "type as std::array{row}");
  }
  template <class Given = Row, class... More>
  auto patch(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: patch() takes one range of rows; give one row as std::array{row}");
  }
  template <class Given = Row, class... More>
  auto apply_changes(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: apply_changes() takes one range of events; give one event as std::array{event}");
  }
  template <class Given = Row, class... More>
  auto append(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: append() takes one range of rows; insert(row) adds one");
  }
  template <class... Given>
  auto insert(Given&&...)
    requires(sizeof...(Given) != 1 || !(std::convertible_to<Given, Row> && ...))
  {
    static_assert(sizeof...(Given) == 1 && (std::convertible_to<Given, Row> && ...),
                  "keyfold: insert() takes one row of the table, insert({...}); append(rows) adds a range");
  }
  template <class Given = Row, class... More>
  auto overwrite(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: overwrite() takes one range of rows, all that the table is to have; upsert(row) "
                  "writes one row");
  }
  template <class Condition, class Given = Row>
  auto replace_where(const Condition&, Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: replace_where() takes a condition and a range of rows; give one row as "
                  "std::array{row}");
  }
  template <auto... Members, class Given = Row>
  auto replace_using(Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: replace_using<>() takes a range of rows; give one row as std::array{row}");
  }
  template <class Condition, class Given = Row>
  auto replace_on(const Condition&, Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: replace_on() takes a condition and a range of rows; give one row as "
                  "std::array{row}");
  }
  template <class Given>
  auto apply(const Given&)
    requires(!std::convertible_to<const Given&, const ChangeSet<Row>&>)
  {
    static_assert(std::convertible_to<const Given&, const ChangeSet<Row>&>,
                  "keyfold: apply() takes a ChangeSet of the table's rows, as diff() and changes() of a "
                  "result give it; upsert(rows) writes rows");
  }

 private:
  template <class Given, class Rule>
  static constexpr void check_rule() {
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: a rule is run on a range of rows; give one row as std::array{row}");
    static_assert(
        detail::is_merge_rule<Rule>,
        "keyfold: the rule of a merge is made by merge_rule<Row, Source>(), and its last clause has "
        "an action");
  }
};

}  // namespace keyfold::mistakes
