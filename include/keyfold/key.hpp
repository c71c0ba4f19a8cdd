// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/member.hpp>
#include <keyfold/detail/text.hpp>
#include <keyfold/detail/value.hpp>
#include <keyfold/fwd.hpp>

/// The key of a table and its secondary indexes, named by the members they are made of.
///
/// A part is a pointer to a data member, a pointer to a const member function, or a captureless callable
/// `(const Row&)`. Parts compare as detail/value.hpp says: an empty optional equals itself, -0.0 equals 0.0.
/// NaN as a part of the primary key is refused with `InvalidKey`; in a secondary index it equals itself and
/// comes last.
namespace keyfold {

/// Primary key: unique, found by hash. Rows iterate in insertion order.
/// Requires: each part has ==, and std::hash or hash_value().
template <auto... Parts>
struct Key {};

/// Primary key: unique, found by hash. Rows iterate in key order.
/// Requires: each part has ==, <, and std::hash or hash_value().
template <auto... Parts>
struct OrderedKey {};

/// Secondary index, not unique, in the order of its parts: supports range(lo, hi) and lookups by a leading
/// part.
template <auto... Parts>
struct OrderedBy {};

/// Secondary index, not unique, found by hash.
template <auto... Parts>
struct HashedBy {};

/// Unique constraint with its index, found by hash. Rows with an empty optional in any part are exempt, as in
/// SQL.
template <auto... Parts>
struct UniqueBy {};

namespace detail {

/// A list of members, as the key of a row.
template <auto... Members>
struct Parts {
  static constexpr std::size_t size = sizeof...(Members);

  /// The key as a tuple: references to data members, values of functions.
  template <class Row>
  static constexpr auto of(const Row& row) {
    return std::tuple<decltype(detail::read<Members>(row))...>(detail::read<Members>(row)...);
  }

  template <class Row>
  static constexpr bool readable = (Readable<Members, Row> && ...);

  static std::string name() {
    std::string out;
    append_names<Members...>(out);
    return out;
  }
};

template <class Spec>
struct spec_traits {
  static constexpr bool is_key = false;
  static constexpr bool is_index = false;
};
template <auto... P>
struct spec_traits<Key<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: a key needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = true, is_index = false, ordered = false, unique = true;
};
template <auto... P>
struct spec_traits<OrderedKey<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: a key needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = true, is_index = false, ordered = true, unique = true;
};
template <auto... P>
struct spec_traits<OrderedBy<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: an index needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = false, is_index = true, ordered = true, unique = false;
};
template <auto... P>
struct spec_traits<HashedBy<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: an index needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = false, is_index = true, ordered = false, unique = false;
};
template <auto... P>
struct spec_traits<UniqueBy<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: a unique constraint needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = false, is_index = true, ordered = false, unique = true;
};

template <class Spec>
using parts_of = typename spec_traits<Spec>::parts;

template <class Parts, class Row>
using key_view_t = decltype(Parts::of(std::declval<const Row&>()));

// Function objects for Boost.MultiIndex and for keyfold's own index; all accept keys of mixed types.
struct KeyEqual {
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return detail::equal_values(a, b);
  }
};
struct KeyLess {
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return detail::less_values(a, b);
  }
};
struct KeyHash {
  template <class Tuple>
  constexpr std::size_t operator()(const Tuple& key) const {
    return detail::hash_of(key);
  }
};

template <class Tuple>
constexpr bool has_empty_part(const Tuple& key) {
  return std::apply([](const auto&... part) { return (!detail::has_value(part) || ...); }, key);
}

/// The arguments of find(k...) as a key of table or index `Parts`.
template <class Parts, class Row, class... Arguments>
constexpr auto lookup_key(const Arguments&... arguments) {
  static_assert(sizeof...(Arguments) <= Parts::size, "keyfold: more lookup values than the key has parts");
  using View = key_view_t<Parts, Row>;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<decltype(detail::as_lookup<std::remove_cvref_t<std::tuple_element_t<I, View>>>(
        arguments))...>(detail::as_lookup<std::remove_cvref_t<std::tuple_element_t<I, View>>>(arguments)...);
  }(std::index_sequence_for<Arguments...>());
}

}  // namespace detail
}  // namespace keyfold
