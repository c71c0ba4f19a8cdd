// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/member.hpp>
#include <keyfold/detail/value.hpp>

#include <boost/pfr/core.hpp>

#include <cstddef>
#include <cstdlib>
#include <tuple>
#include <type_traits>
#include <utility>

/// The fields of an aggregate: whether a list of members names them all, and a field by field comparison.
namespace keyfold::detail {

template <auto... Members>
struct MemberList {
  static constexpr std::size_t size = sizeof...(Members);
  static constexpr std::tuple<decltype(Members)...> pointers{Members...};

  template <class Row>
  static constexpr bool belong_to = (Readable<Members, Row> && ...);

  /// All members are Row's own, none inherited.
  template <class Row>
  static constexpr bool all_own = (std::is_same_v<owner_of<Members>, Row> && ...);
};

/// Converts to any field of Row, but not to Row itself or a base of it.
template <class Row>
struct AnyField {
  template <class Field>
    requires(!std::is_base_of_v<Field, Row>)
  operator Field() const {  // NOLINT(google-explicit-constructor): brace initialisation must find it
    std::abort();           // never called; without a body compilers warn
  }
};

template <class Row, std::size_t... I>
constexpr bool initializable_from(std::index_sequence<I...>) {
  return requires { Row{(static_cast<void>(I), AnyField<Row>{})...}; };
}

/// Converts to a base of Row only.
template <class Row>
struct AnyBase {
  template <class Base>
    requires(std::is_base_of_v<Base, Row> && !std::is_same_v<Base, Row>)
  operator Base() const {  // NOLINT(google-explicit-constructor): brace initialisation must find it
    std::abort();          // never called; without a body compilers warn
  }
};

/// Whether the initializer after the first `before` ones fills a whole field: it does not where a C array
/// begins.
template <class Row, std::size_t... Before, std::size_t... After>
constexpr bool starts_a_field(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires {
    Row{(static_cast<void>(Before), AnyField<Row>{})..., {}, (static_cast<void>(After), AnyField<Row>{})...};
  };
}

template <class Row, std::size_t... I>
constexpr bool without_arrays(std::index_sequence<I...>) {
  return (
      starts_a_field<Row>(std::make_index_sequence<I>(), std::make_index_sequence<sizeof...(I) - I - 1>()) &&
      ...);
}

/// Aggregates that Boost.PFR can take apart: without bases and not too wide.
template <class Row>
concept Decomposable = std::is_aggregate_v<Row> && !std::is_polymorphic_v<Row> && !requires {
  Row{AnyBase<Row>{}};
} && !initializable_from<Row>(std::make_index_sequence<65>());

/// A field that is a C array takes one initializer for each element.
template <class Field>
inline constexpr std::size_t initializers_for = 1;
template <class Element, std::size_t count>
inline constexpr std::size_t initializers_for<Element[count]> = count * initializers_for<Element>;

template <class Value, class Owner>
constexpr std::size_t initializers(Value Owner::*) {
  return initializers_for<Value>;
}

template <auto... Members>
constexpr std::size_t initializers(MemberList<Members...>) {
  return (std::size_t{0} + ... + initializers(Members));
}

/// Whether `Listed` and `Ignored` together name every field of the aggregate Row. Always true where it cannot
/// be known: classes with constructors or private members, and lists that reach into a base.
template <class Row, class Listed, class Ignored>
constexpr bool complete = [] {
  if constexpr (std::is_aggregate_v<Row> && Listed::template all_own<Row>) {
    return !initializable_from<Row>(
        std::make_index_sequence<initializers(Listed{}) + initializers(Ignored{}) + 1>());
  } else {
    return true;
  }
}();

template <class Row, std::size_t... I>
constexpr bool comparable_fields(std::index_sequence<I...> fields) {
  if constexpr (without_arrays<Row>(fields)) {
    return (std::equality_comparable<boost::pfr::tuple_element_t<I, Row>> && ...);
  } else {
    return false;
  }
}

/// A defaulted operator== calls a row with NaN different from itself; this compares such a row field by
/// field.
template <class Row>
constexpr bool same_fields_with_nan([[maybe_unused]] const Row& a, [[maybe_unused]] const Row& b) {
  if constexpr (Decomposable<Row>) {
    constexpr auto fields = std::make_index_sequence<boost::pfr::tuple_size_v<Row>>();
    if constexpr (comparable_fields<Row>(fields)) {
      return !static_cast<bool>(b == b) && [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (detail::equal_values(boost::pfr::get<I>(a), boost::pfr::get<I>(b)) && ...);
      }(fields);
    }
  }
  return false;
}

}  // namespace keyfold::detail
