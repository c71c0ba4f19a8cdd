// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/prefetch.hpp>
#include <keyfold/detail/range_v3.hpp>
#include <keyfold/key.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <tuple>
#include <utility>

// Iterators over a table and over one of its indexes, which table.by<...>() gives.
namespace keyfold {

/// Walks the rows of a table or of one of its indexes; dereferences to `const Row&`. Valid until the row it
/// stands on is updated or deleted. `memory_order`: one row after the other lies behind it in memory, as far
/// as no row was deleted.
template <class Row, class Base, bool memory_order = false>
class RowIterator {
 public:
  using value_type = Row;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using pointer = const Row*;
  using iterator_category = typename std::iterator_traits<Base>::iterator_category;

  RowIterator() = default;
  explicit RowIterator(Base base) : base_(base) {}

  reference operator*() const { return base_->get(); }
  pointer operator->() const { return &base_->get(); }

  RowIterator& operator++() {
    if constexpr (memory_order) prefetch_ahead();
    ++base_;
    return *this;
  }
  RowIterator operator++(int) {
    RowIterator before = *this;
    ++*this;
    return before;
  }
  RowIterator& operator--()
    requires std::bidirectional_iterator<Base>
  {
    --base_;
    return *this;
  }
  RowIterator operator--(int)
    requires std::bidirectional_iterator<Base>
  {
    RowIterator before = *this;
    --base_;
    return before;
  }

  friend bool operator==(const RowIterator& a, const RowIterator& b) { return a.base_ == b.base_; }

 private:
  // The links between rows are read one after the other; this starts loading those to come.
  void prefetch_ahead() const noexcept {
    constexpr std::size_t node = sizeof(*base_) + 2 * sizeof(void*);
    constexpr std::size_t cache_line = 64;
    constexpr std::size_t distance = std::size_t{5} * 1024;
    const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(&*base_) + distance;
    for (std::size_t offset = 0; offset < node; offset += cache_line)
      detail::prefetch(reinterpret_cast<const void*>(ahead + offset));
  }

  // Iterators that belong to no table are equal, which those of Boost.MultiIndex do not see to.
  static Base of_no_table() {
    if constexpr (std::is_constructible_v<Base, std::nullptr_t>) {
      return Base(nullptr);
    } else {
      return Base();
    }
  }

  Base base_ = of_no_table();
};

/// Rows from one iterator to another: a view, as cheap to copy as its iterators.
template <class Iterator>
class RowRange : public detail::ViewBase {
 public:
  RowRange() = default;
  RowRange(Iterator first, Iterator last) : first_(std::move(first)), last_(std::move(last)) {}

  [[nodiscard]] Iterator begin() const { return first_; }
  [[nodiscard]] Iterator end() const { return last_; }
  [[nodiscard]] bool empty() const { return first_ == last_; }

  /// Requires: not empty().
  [[nodiscard]] decltype(auto) front() const { return *first_; }

 private:
  Iterator first_{};
  Iterator last_{};
};

/// A secondary index as a range of rows: in the order of its parts for OrderedBy (and OrderedKey), in no
/// particular order for HashedBy and UniqueBy. A view of one pointer, valid while the table lives; the rules
/// of RowIterator hold.
///
/// Lookup values are those of the index's parts, or anything comparable with them: `std::string_view` finds
/// `std::string` without an allocation. An ordered index can be asked for its leading parts only.
template <class Row, class Index, class Parts, bool ordered>
class IndexView : public detail::ViewBase {
 public:
  using iterator = RowIterator<Row, typename Index::const_iterator>;
  using const_iterator = iterator;
  using Rows = RowRange<iterator>;

  IndexView() = default;
  explicit IndexView(const Index& index) noexcept : index_(&index) {}

  [[nodiscard]] std::size_t size() const noexcept { return index_->size(); }
  [[nodiscard]] bool empty() const noexcept { return index_->empty(); }
  [[nodiscard]] iterator begin() const { return iterator(index_->begin()); }
  [[nodiscard]] iterator end() const { return iterator(index_->end()); }

  /// The rows equal to these values. O(log n) in an ordered index, O(1) on average in a hashed one.
  template <class... Values>
  [[nodiscard]] Rows equal_range(const Values&... values) const {
    static_assert(sizeof...(Values) > 0, "keyfold: equal_range() needs at least one lookup value");
    static_assert(ordered || sizeof...(Values) == Parts::size,
                  "keyfold: a hashed index needs a lookup value for each of its parts");
    const auto [first, last] = detail::equal_range_of(*index_, detail::lookup_key<Parts, Row>(values...));
    return Rows(iterator(first), iterator(last));
  }

  /// The first row equal to these values, or null.
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... values) const {
    const Rows rows = equal_range(values...);
    return rows.empty() ? nullptr : &rows.front();
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... values) const {
    return find(values...) != nullptr;
  }

  /// The rows from `low` up to but not including `high`, in order; none if high is before low. A bound is a
  /// value of the first part, or a std::tuple of values of the leading parts. O(log n).
  template <class Low, class High>
  [[nodiscard]] Rows range(const Low& low, const High& high) const {
    static_assert(ordered, "keyfold: range() needs an ordered index: OrderedBy or OrderedKey");
    const auto from = bound(low);
    const auto to = bound(high);
    const auto first = index_->lower_bound(from, detail::KeyLess{});
    const bool to_is_longer = std::tuple_size_v<decltype(from)> < std::tuple_size_v<decltype(to)>;
    const bool ascending = detail::less_values(from, to) || (to_is_longer && !detail::less_values(to, from));
    return Rows(iterator(first), iterator(ascending ? index_->lower_bound(to, detail::KeyLess{}) : first));
  }

 private:
  template <class Bound>
  static auto bound(const Bound& value) {
    if constexpr (detail::is_tuple_v<Bound> && Parts::size > 1) {
      return std::apply([](const auto&... part) { return detail::lookup_key<Parts, Row>(part...); }, value);
    } else {
      return detail::lookup_key<Parts, Row>(value);
    }
  }

  const Index* index_ = nullptr;
};

}  // namespace keyfold

// Their iterators outlive them.

template <class Iterator>
inline constexpr bool std::ranges::enable_view<keyfold::RowRange<Iterator>> = true;
template <class Iterator>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::RowRange<Iterator>> = true;

template <class Row, class Index, class Parts, bool ordered>
inline constexpr bool std::ranges::enable_view<keyfold::IndexView<Row, Index, Parts, ordered>> = true;
template <class Row, class Index, class Parts, bool ordered>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::IndexView<Row, Index, Parts, ordered>> =
    true;
