// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/incoming.hpp>
#include <keyfold/detail/join.hpp>
#include <keyfold/detail/range_forgotten.hpp>
#include <keyfold/detail/replace_plan.hpp>
#include <keyfold/detail/row_condition.hpp>
#include <keyfold/error.hpp>
#include <keyfold/merge.hpp>

#include <concepts>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// The verbs that load whole sets of rows: see docs/load.md.
namespace keyfold {

/// A base of Writes, and so of Table. Each verb is one commit, all-or-nothing.
///
/// A verb that replaces takes rows of the table's type, or rows that have all of its columns by name; a
/// container given as an rvalue has its rows moved from. A row that comes in with the key of a row that
/// leaves is an update of it, and is `unchanged` if nothing differs; with the key of a row that stays it is
/// a DuplicateKey. Two rows that come in with one key are a DuplicateSourceKey, unless duplicates() says
/// otherwise. All throw UniqueViolation, InvalidKey and CheckViolation, too, and what the source, the
/// conditions and the rows throw.
template <class Self, class Target, class Row>
class Loads : public mistakes::RangeForgotten<Row> {
 public:
  using Result = MergeResult<Row>;

  using mistakes::RangeForgotten<Row>::overwrite;
  using mistakes::RangeForgotten<Row>::replace_where;
  using mistakes::RangeForgotten<Row>::replace_using;
  using mistakes::RangeForgotten<Row>::replace_on;

  /// Replaces all rows (SQL's INSERT OVERWRITE): an empty source empties the table. O(table + rows).
  template <std::ranges::input_range Source>
  Result overwrite(Source&& rows) {
    check_replacing<Source, false>();
    return write("OVERWRITE", {}, [&]<class Core>(const Core& core, auto& plan) {
      const auto all = [](const auto&) { return true; };
      detail::ReplacePlanner<Core> planner(core, plan);
      for_each_incoming<Core, Source>(rows, plan, [&](auto& row, Position position) {
        planner.arrive(detail::hold_row<Row>(row, position), position, all);
      });
      planner.remove_leaving(all);
    });
  }
  Result overwrite(std::initializer_list<Row> rows) { return overwrite(std::vector<Row>(rows)); }

  /// Replaces the rows for which the condition is true (INSERT INTO ... REPLACE WHERE). It is an expression
  /// over target columns or callable as `bool(const Row&)`. Throws ReplaceWhereMismatch if it is not true for
  /// a row that comes in; `unchecked().replace_where()` lets such rows in. An empty source removes the rows.
  /// O(table + rows).
  template <class Condition, std::ranges::input_range Source>
  Result replace_where(Condition condition, Source&& rows) {
    check_replacing<Source, true>();
    if constexpr (detail::check_row_condition<Condition, Row>()) {
      const std::string text = detail::condition_text(condition);
      return write("REPLACE WHERE", text + (Self::checks ? "" : " UNCHECKED"),
                   [&]<class Core>(const Core& core, auto& plan) {
                     const auto leaves = [&](const auto& slot) {
                       return detail::holds_for(condition, slot.get());
                     };
                     detail::ReplacePlanner<Core> planner(core, plan);
                     for_each_incoming<Core, Source>(rows, plan, [&](auto& row, Position position) {
                       detail::Holder<Row> held = detail::hold_row<Row>(row, position);
                       if (Self::checks && !detail::holds_for(condition, std::as_const(held).get()))
                         detail::refuse_mismatch<Core>(text, held.get(), position);
                       planner.arrive(std::move(held), position, leaves);
                     });
                     planner.remove_leaving(leaves);
                   });
    }
  }
  template <class Condition>
  Result replace_where(Condition condition, std::initializer_list<Row> rows) {
    return replace_where(std::move(condition), std::vector<Row>(rows));
  }

  /// Replaces the rows that are equal in these members to a row that comes in (INSERT INTO ... REPLACE
  /// USING): every month, shop or day that the source has rows of. As in SQL an empty optional is equal to
  /// nothing; values are equal as the parts of a key are. An empty source removes nothing. O(table + rows) on
  /// average; O(rows that leave or come in) where the members are the key or those of an index.
  template <auto... Members, std::ranges::input_range Source>
  Result replace_using(Source&& rows) {
    static_assert(sizeof...(Members) > 0,
                  "keyfold: replace_using<>() names the members in which rows must be equal");
    static_assert((detail::Readable<Members, Row> && ...),
                  "keyfold: replace_using<>() names a member of another type than the table's rows");
    check_replacing<Source, false>();
    using Columns = detail::Parts<Members...>;
    return write("REPLACE USING", using_text<Members...>(), [&]<class Core>(const Core& core, auto& plan) {
      std::vector<detail::Incoming<Row>> incoming;
      for_each_incoming<Core, Source>(rows, plan, [&](auto& row, Position position) {
        incoming.push_back({detail::hold_row<Row>(row, position), position});
      });
      detail::ReplaceUsing<Core, Columns>(core, plan, std::move(incoming)).run();
    });
  }
  template <auto... Members>
  Result replace_using(std::initializer_list<Row> rows) {
    return replace_using<Members...>(std::vector<Row>(rows));
  }

  /// Replaces the rows for which the condition is true with a row that comes in (INSERT INTO ... REPLACE ON).
  /// It is an expression over both sides or callable as `bool(const Row&, const Source&)`. An empty source
  /// removes nothing. O(table + rows) on average if the condition is, or joins with &&, a column of the
  /// source compared to one of the target by == or same(); then candidates are found by hash. Else
  /// O(table * rows).
  template <class Condition, std::ranges::input_range Source>
  Result replace_on(Condition condition, Source&& rows) {
    using Value = std::ranges::range_value_t<Source>;
    check_replacing<Source, false>();
    if constexpr (detail::check_pair_condition<Condition, Row, Value>()) {
      return write(
          "REPLACE ON", detail::condition_text(condition), [&]<class Core>(const Core& core, auto& plan) {
            using Policy = std::remove_cvref_t<decltype(policy())>;
            const detail::IncomingRows<Core, Source, Value, Policy> incoming(rows, policy(), plan.metrics);
            detail::ReplacePlanner<Core> planner(core, plan);
            mark_joined<Value>(core, planner, condition, incoming);
            incoming.for_each([&](auto& row, Position position) {
              planner.arrive(detail::hold_row<Row>(row, position), position);
            });
            planner.remove_marked();
          });
    }
  }
  template <class Condition>
  Result replace_on(Condition condition, std::initializer_list<Row> rows) {
    return replace_on(std::move(condition), std::vector<Row>(rows));
  }

  /// Deletes the rows for which the condition is true: an expression over target columns, or callable as
  /// `bool(const Row&)`. O(table).
  template <class Condition>
  Result erase_where(Condition condition) {
    check_rows_none();
    if constexpr (detail::check_row_condition<Condition, Row>()) {
      std::string text = "WHERE " + detail::condition_text(condition);
      return run_on_table("DELETE", std::move(text),
                          merge_rule<Row>().when_not_matched_by_source(std::move(condition)).erase());
    }
  }

  /// Updates the rows for which the condition is true: by assignments `target<&Row::column> = value, ...`,
  /// whose values all read the old row, or by one callable as `Row(const Row&)`. The key may change. Throws
  /// DuplicateKey, UniqueViolation, InvalidKey, CheckViolation, ValueOutOfRange, and what the callables and
  /// the rows throw. O(table).
  template <class Condition, class... What>
  Result update_where(Condition condition, What... what) {
    check_rows_none();
    if constexpr (detail::check_row_condition<Condition, Row>() && detail::check_row_update<Row, What...>()) {
      std::string text = detail::update_text(what...) + " WHERE " + detail::condition_text(condition);
      return run_on_table(
          "UPDATE", std::move(text),
          merge_rule<Row>().when_not_matched_by_source(std::move(condition)).update(std::move(what)...));
    }
  }

 private:
  using WritesType = Writes<Self, Target, Row>;

  template <class Fill>
  Result write(std::string_view operation, std::string parameters, Fill fill) {
    return static_cast<WritesType&>(*this).write(operation, std::move(parameters), std::move(fill));
  }
  decltype(auto) policy() { return static_cast<WritesType&>(*this).policy_of_self(); }

  template <class Source, bool takes_unchecked>
  static constexpr void check_replacing() {
    WritesType::template check_settings<true, takes_unchecked>();
    detail::check_insert_all<Row, std::ranges::range_value_t<Source>>();
  }
  static constexpr void check_rows_none() { WritesType::template check_settings<false, false>(); }

  template <auto... Members>
  static std::string using_text() {
    const std::string names = detail::Parts<Members...>::name();  // of several members in parentheses
    return sizeof...(Members) == 1 ? '(' + names + ')' : names;
  }

  template <class Core, class Source, class Plan, class Take>
  void for_each_incoming(std::remove_reference_t<Source>& rows, Plan& plan, Take take) {
    detail::for_each_incoming<Core, Source, std::ranges::range_value_t<Source>>(rows, policy(), plan.metrics,
                                                                                take);
  }

  template <class Value, class Core, class Condition, class Incoming>
  static void mark_joined(const Core& core, detail::ReplacePlanner<Core>& planner, const Condition& condition,
                          const Incoming& incoming) {
    detail::Join<Row, Value, Condition> join(condition);
    incoming.for_each([&](const Value& row, Position) { join.add(row); });
    if (join.empty()) return;
    join.build();
    for (const auto& slot : core.scan()) {
      if (join.holds_for(slot.get())) planner.mark(slot);
    }
  }

  // A merge with an empty source.
  template <class Rule>
  Result run_on_table(std::string_view operation, std::string parameters, const Rule& rule) {
    return write(operation, std::move(parameters), [&]<class Core>(const Core& core, auto& plan) {
      std::span<const Row> nothing;
      detail::MergePlanner<Core, Rule, std::span<const Row>>(core, rule, plan).run(nothing);
    });
  }
};

}  // namespace keyfold
