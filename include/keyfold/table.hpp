// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/copy.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/merge_plan.hpp>
#include <keyfold/error.hpp>
#include <keyfold/history.hpp>
#include <keyfold/index.hpp>
#include <keyfold/merge.hpp>

#include <array>
#include <cassert>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace keyfold {

/// Rows of a plain struct, unique by key, in memory. Every write is one atomic commit with a version, counts and a
/// record in the history. Threads: any number may read at once; a write, preview() included, needs the table for
/// itself.
///
///     keyfold::Table<Order, keyfold::Key<&Order::id>, keyfold::OrderedBy<&Order::day>> orders;
///
/// Writes give the strong guarantee: whatever throws, the table, its indexes, history, version and counters are as
/// before. References and pointers to a row, and iterators to it, stay valid until that row is updated or deleted.
///
/// A table that was moved from may only be destroyed or assigned to.
template <class RowType, class KeySpec, class... Indexes>
class Table {
  static_assert(std::copy_constructible<RowType>, "keyfold: a row must be copyable, since history keeps its old images");
  static_assert(detail::spec_traits<KeySpec>::is_key,
                "keyfold: the second argument of Table is its key, as in Key<&Row::id> or OrderedKey<&Row::id>");
  static_assert((detail::spec_traits<Indexes>::is_index && ...),
                "keyfold: after its key a Table takes indexes: OrderedBy<...>, HashedBy<...> or UniqueBy<...>");

  using Parts = detail::parts_of<KeySpec>;
  static_assert(Parts::template readable<RowType>, "keyfold: a part of the key is not a member of the row");
  static_assert((detail::parts_of<Indexes>::template readable<RowType> && ...),
                "keyfold: a part of an index is not a member of the row");

  using Core = detail::Core<RowType, KeySpec, Indexes...>;
  using Specs = std::tuple<Indexes...>;
  template <class Asked>
  static constexpr std::size_t number_of = detail::index_number<Asked, Specs>;

 public:
  using Row = RowType;
  using Result = MergeResult<Row>;

  using value_type = Row;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using const_reference = const Row&;
  using const_iterator = RowIterator<Row, typename Core::Rows::const_iterator>;
  using iterator = const_iterator;

  /// An empty table, at version 0.
  explicit Table(TableOptions options = {}) : core_(std::make_unique<Core>(std::move(options))) {}

  /// Copies the rows and the whole history. O(rows + changes in the history). Strong guarantee.
  Table(const Table& other) : core_(detail::copy_core(*other.core_)) {}
  Table(Table&&) noexcept = default;
  Table& operator=(const Table& other) {
    core_ = detail::copy_core(*other.core_);
    return *this;
  }
  Table& operator=(Table&&) noexcept = default;
  ~Table() = default;

  // --- Reading ---------------------------------------------------------------------------------------------------

  [[nodiscard]] size_type size() const noexcept { return core_->rows.size(); }
  [[nodiscard]] bool empty() const noexcept { return core_->rows.empty(); }

  /// Rows in insertion order; in key order for a table with an OrderedKey. An updated row keeps its place.
  [[nodiscard]] const_iterator begin() const noexcept { return const_iterator(core_->rows.begin()); }
  [[nodiscard]] const_iterator end() const noexcept { return const_iterator(core_->rows.end()); }

  /// The row with this key, or null. One value for each part of the key; anything comparable with the part will do:
  /// `std::string_view` finds `std::string` without an allocation. O(1) on average.
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... key) const {
    static_assert(sizeof...(Values) == Parts::size, "keyfold: find() needs one value for each part of the key");
    const auto* slot = core_->find(detail::lookup_key<Parts, Row>(key...));
    return slot == nullptr ? nullptr : &slot->get();
  }

  /// The row with this key. Throws KeyNotFound.
  template <class... Values>
  const Row& at(const Values&... key) const {
    if (const Row* row = find(key...)) return *row;
    throw KeyNotFound(detail::key_text(detail::lookup_key<Parts, Row>(key...)));
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    return find(key...) != nullptr;
  }

  /// The index over exactly these members: a secondary index, or the key of a table with an OrderedKey.
  template <auto... Members>
  [[nodiscard]] auto by() const noexcept {
    using Asked = detail::Parts<Members...>;
    if constexpr (Core::ordered && std::is_same_v<Asked, Parts>) {
      return IndexView<Row, typename Core::Rows, Asked, true>(core_->rows);
    } else {
      static_assert(number_of<Asked> < std::tuple_size_v<Specs>,
                    "keyfold: by<> names members that no index of the table is made of");
      using Spec = std::tuple_element_t<number_of<Asked>, Specs>;
      const auto& index = core_->template secondary<number_of<Asked>>();
      return IndexView<Row, std::remove_cvref_t<decltype(index)>, Asked, detail::spec_traits<Spec>::ordered>(index);
    }
  }

  // --- Merging ---------------------------------------------------------------------------------------------------

  /// Starts a merge of these rows, see docs/merge-semantics.md. An lvalue is referred to, an rvalue is kept; a
  /// container given as an rvalue has its rows moved from.
  template <std::ranges::input_range Source>
  auto merge(Source&& rows) {
    auto rule = merge_rule<Row, std::ranges::range_value_t<Source>>();
    return MergeBuilder<Table, Source, decltype(rule)>(*this, std::forward<Source>(rows), std::move(rule));
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
    return merge(std::forward<Source>(rows)).when_matched().update_all().when_not_matched().insert_all().execute();
  }
  Result upsert(std::initializer_list<Row> rows) { return upsert(std::vector<Row>(rows)); }
  Result upsert(Row row) { return upsert(std::array<Row, 1>{std::move(row)}); }

  // --- Other writes ----------------------------------------------------------------------------------------------

  /// Adds rows. Throws DuplicateKey if a key is in the table already or is given twice, UniqueViolation, InvalidKey.
  template <std::ranges::input_range Source>
  Result append(Source&& rows) {
    using Value = std::ranges::range_value_t<Source>;
    detail::check_insert_all<Row, Value>();
    return write({"APPEND", nullptr, {}}, [&](auto& plan) {
      detail::for_each_block<Source, Value>(rows, [&](const auto& block, Position first) {
        for (std::size_t i = 0; i < block.size(); ++i) add_insert(plan, detail::hold_row<Row>(*block[i]), first + i);
      });
    });
  }
  Result append(std::initializer_list<Row> rows) { return append(std::vector<Row>(rows)); }

  /// Adds one row. Throws as append() does.
  Result insert(Row row) {
    return write({"INSERT", nullptr, {}},
                 [&](auto& plan) { add_insert(plan, detail::Holder<Row>(std::move(row)), 0); });
  }

  /// Deletes the row with this key; without one, nothing happens and no version is made.
  template <class... Values>
  Result erase(const Values&... key) {
    static_assert(sizeof...(Values) == Parts::size, "keyfold: erase() needs one value for each part of the key");
    const auto wanted = detail::lookup_key<Parts, Row>(key...);
    auto parameters = std::make_shared<const std::string>("WHERE " + Parts::name() + " = " + detail::key_text(wanted));
    return write({"DELETE", std::move(parameters), {}}, [&](auto& plan) {
      plan.metrics.source_rows = 1;
      const auto* slot = core_->find(wanted);
      if (slot == nullptr) {
        plan.metrics.skipped = 1;
        return;
      }
      plan.touch(*slot).outcome = detail::Outcome::erase;
      plan.metrics.deleted = plan.metrics.matched_deleted = 1;
    });
  }

  /// Deletes all rows. The history stays.
  Result clear() {
    return write({"TRUNCATE", nullptr, {}}, [&](auto& plan) {
      for (const auto& slot : core_->rows) plan.touch(slot).outcome = detail::Outcome::erase;
      plan.metrics.deleted = plan.metrics.not_matched_by_source_deleted = core_->rows.size();
    });
  }

  // --- History ---------------------------------------------------------------------------------------------------

  /// Version of the last commit; 0 before the first.
  [[nodiscard]] Version version() const noexcept { return core_->version(); }

  /// The commits, in ascending order.
  [[nodiscard]] History<Row> history() const noexcept { return History<Row>(*core_->log); }

 private:
  template <class, class, class>
  friend class MergeBuilder;

  template <class Source, class Rule>
  auto with_rule(Source&& rows, const Rule& rule) {
    static_assert(std::is_same_v<typename Rule::Row, Row>, "keyfold: this rule was made for another type of target row");
    static_assert(std::derived_from<std::ranges::range_value_t<Source>, typename Rule::Source>,
                  "keyfold: this rule was made for another type of source row");
    return MergeBuilder<Table, Source, Rule>(*this, std::forward<Source>(rows), rule);
  }

  template <class Source, class Rule>
  Result execute_merge(std::remove_reference_t<Source>& rows, const Rule& rule, std::optional<std::string> metadata) {
    auto parameters = std::make_shared<const std::string>(detail::merge_text<Core>(rule));
    return write({"MERGE", std::move(parameters), std::move(metadata)}, [&](auto& plan) {
      detail::MergePlanner<Core, Rule, Source>(*core_, rule, plan).run(rows);
    });
  }

  template <class Source, class Rule>
  ChangeSet<Row> preview_merge(std::remove_reference_t<Source>& rows, const Rule& rule) {
    const detail::WriteScope scope(core_->writing);
    auto plan = core_->new_plan();
    detail::MergePlanner<Core, Rule, Source>(*core_, rule, plan).run(rows);
    detail::validate(*core_, plan);
    return detail::to_change_set(plan);
  }

  // The one path of every write: plan, validate, apply.
  template <class Fill>
  Result write(detail::CommitNote note, Fill fill) {
    const detail::WriteScope scope(core_->writing);
    auto plan = core_->new_plan();
    fill(plan);
    detail::validate(*core_, plan);
    const bool committed = detail::apply(*core_, plan, std::move(note));
    return Result(version(), committed, plan.metrics, core_->log);
  }

  static void add_insert(detail::Plan<Row>& plan, detail::Holder<Row> row, Position position) {
    auto& entry = plan.add();
    entry.after = std::move(row);
    entry.outcome = detail::Outcome::insert;
    entry.position = position;
    ++plan.metrics.source_rows;
    ++plan.metrics.inserted;
  }

  std::unique_ptr<Core> core_;
};

}  // namespace keyfold
