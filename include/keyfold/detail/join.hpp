// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/clause.hpp>
#include <keyfold/detail/expression_nodes.hpp>
#include <keyfold/detail/key_index.hpp>
#include <keyfold/detail/value.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Finding whether a condition over two rows holds for a target row and any of many source rows, without
/// trying them all: a hash join on those equalities that the condition cannot do without.
namespace keyfold::detail {

/// Whether numbers of both types that compare equal have one hash. Not so where comparing them rounds.
template <class Whole, class Fraction>
inline constexpr bool compares_exactly =
    std::numeric_limits<Whole>::digits <= std::min(std::numeric_limits<Fraction>::digits, 53);

/// Whether equal values of these types, be it by == or by same(), have one hash and are equal_values().
template <class A, class B>
constexpr bool hashes_alike() {
  using X = unwrap_optional_t<A>;
  using Y = unwrap_optional_t<B>;
  if constexpr (Arithmetic<X> && Arithmetic<Y>) {
    if constexpr (std::integral<X> == std::integral<Y>) {
      return true;
    } else if constexpr (std::integral<X>) {
      return compares_exactly<X, Y>;
    } else {
      return compares_exactly<Y, X>;
    }
  } else if constexpr (StringLike<X> && StringLike<Y>) {
    return std::is_class_v<X> && std::is_class_v<Y>;  // a pointer compares by its address
  } else if constexpr (!std::same_as<X, Y> || std::is_pointer_v<X> || is_variant_v<X>) {
    return false;
  } else {
    return std::is_enum_v<X> || is_duration_v<X> || is_time_point_v<X> || StdHashable<X> || AdlHashable<X>;
  }
}

/// An equality between a column of the source and one of the target, as it stands in a condition.
template <class SourceColumn, class TargetColumn, bool null_safe>
struct Equality {
  SourceColumn source;
  TargetColumn target;

  /// Whether a row with this value is equal to no other.
  template <class Value>
  static constexpr bool equals_nothing(const Value& value) {
    return !null_safe && (!detail::has_value(value) || detail::is_nan(value));
  }
};

template <class Row, class Source, bool null_safe, class A, class B>
constexpr auto equality_of(const A&, const B&) {
  return std::tuple<>();
}
template <class Row, class Source, bool null_safe, auto S, auto T>
constexpr auto equality_of(const Column<Side::source, S>& a, const Column<Side::target, T>& b) {
  if constexpr (hashes_alike<member_value_t<S, Source>, member_value_t<T, Row>>()) {
    return std::tuple(Equality<Column<Side::source, S>, Column<Side::target, T>, null_safe>{a, b});
  } else {
    return std::tuple<>();
  }
}
template <class Row, class Source, bool null_safe, auto T, auto S>
constexpr auto equality_of(const Column<Side::target, T>& a, const Column<Side::source, S>& b) {
  return detail::equality_of<Row, Source, null_safe>(b, a);
}

/// The terms that a condition joins with &&.
template <class Condition>
inline constexpr std::size_t term_count = 1;
template <class A, class B>
inline constexpr std::size_t term_count<Logic<And, A, B>> = term_count<A> + term_count<B>;

/// The equalities among the terms that a condition joins with &&, as a tuple.
template <class Row, class Source, class Condition>
constexpr auto equalities_of(const Condition&) {
  return std::tuple<>();
}
template <class Row, class Source, class A, class B>
constexpr auto equalities_of(const Comparison<Equal, A, B>& comparison) {
  return detail::equality_of<Row, Source, false>(comparison.a, comparison.b);
}
template <class Row, class Source, class A, class B>
constexpr auto equalities_of(const Same<A, B>& comparison) {
  return detail::equality_of<Row, Source, true>(comparison.a, comparison.b);
}
template <class Row, class Source, class A, class B>
constexpr auto equalities_of(const Logic<And, A, B>& both) {
  return std::tuple_cat(detail::equalities_of<Row, Source>(both.a),
                        detail::equalities_of<Row, Source>(both.b));
}

/// Source rows, asked whether a condition holds for a target row and any of them. The rows must outlive it.
template <class Row, class Source, class Condition>
class Join {
 public:
  explicit Join(const Condition& condition)
      : condition_(condition), equalities_(detail::equalities_of<Row, Source>(condition)) {}

  void add(const Source& row) { items_.push_back({&row}); }
  bool empty() const noexcept { return items_.empty(); }

  /// Requires: all rows are added, and it is called once.
  void build() {
    if constexpr (hashed) {
      groups_.presize(items_.size());
      for (Item& item : items_) group(item);
    }
  }

  /// Whether the condition holds for this row and any of the source. O(1) on average where the equalities are
  /// the whole condition, else O(source rows that are equal to it so far); O(source rows) without any.
  bool holds_for(const Row& target) const {
    if constexpr (!hashed) {
      return std::ranges::any_of(items_, [&](const Item& item) { return holds(target, item); });
    } else {
      const auto values = target_values(target);
      if (equals_nothing(values)) return false;
      const Item* item = find(values, detail::hash_of(values));
      if constexpr (term_count<Condition> == equality_count) return item != nullptr && holds(target, *item);
      while (item != nullptr && !holds(target, *item)) item = item->next;
      return item != nullptr;
    }
  }

 private:
  using Equalities = decltype(detail::equalities_of<Row, Source>(std::declval<const Condition&>()));
  static constexpr std::size_t equality_count = std::tuple_size_v<Equalities>;
  static constexpr bool hashed = equality_count > 0;

  struct Item {
    const Source* row;
    Item* next = nullptr;  // another row with the same values
  };

  bool holds(const Row& target, const Item& item) const {
    return detail::holds<ClauseKind::matched>(condition_, Scope<Row, Source>{target, *item.row});
  }

  // The values on one side of the equalities: references to data members, values of functions.
  auto source_values(const Source& row) const {
    const Scope<NoRow, Source> rows{no_row, row};
    return std::apply(
        [&](const auto&... equality) {
          return std::tuple<decltype(equality.source(rows))...>(equality.source(rows)...);
        },
        equalities_);
  }
  auto target_values(const Row& row) const {
    const Scope<Row, NoRow> rows{row, no_row};
    return std::apply(
        [&](const auto&... equality) {
          return std::tuple<decltype(equality.target(rows))...>(equality.target(rows)...);
        },
        equalities_);
  }

  template <class Values>
  static bool equals_nothing(const Values& values) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::tuple_element_t<I, Equalities>::equals_nothing(std::get<I>(values)) || ...);
    }(std::make_index_sequence<equality_count>());
  }

  template <class Values>
  Item* find(const Values& values, std::uint64_t hash) const {
    return groups_.find(
        hash, [&](const Item& item) { return detail::equal_values(source_values(*item.row), values); });
  }

  void group(Item& item) {
    const auto values = source_values(*item.row);
    if (equals_nothing(values)) return;
    const std::uint64_t hash = detail::hash_of(values);
    if (Item* first = find(values, hash)) {
      item.next = std::exchange(first->next, &item);
    } else {
      groups_.add(hash, &item);
    }
  }

  static constexpr NoRow no_row{};

  const Condition& condition_;
  Equalities equalities_;
  std::vector<Item> items_;
  KeyIndex<Item> groups_;  // the first row of each combination of values
};

}  // namespace keyfold::detail
