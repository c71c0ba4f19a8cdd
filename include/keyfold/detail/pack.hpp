// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <utility>

namespace keyfold::detail {

template <std::size_t number, class T>
struct PackElement {
  T value;
};

template <std::size_t number, class T>
constexpr const T& value_of(const PackElement<number, T>& element) noexcept {
  return element.value;
}

template <class Numbers, class... Ts>
struct PackOf;

/// The clauses of a merge, or the assignments of a clause: a tuple that is an aggregate and knows little,
/// since every sentence makes a type of its own, and std::tuple costs its compiler several times as much.
template <std::size_t... numbers, class... Ts>
struct PackOf<std::index_sequence<numbers...>, Ts...> : PackElement<numbers, Ts>... {
  template <std::size_t number>
  constexpr const auto& get() const noexcept {
    return detail::value_of<number>(*this);
  }

  template <class Visit>
  constexpr void for_each(Visit&& visit) const {
    (visit(static_cast<const PackElement<numbers, Ts>&>(*this).value), ...);
  }

  /// Visits in order until `visit` returns true; tells whether it did.
  template <class Visit>
  constexpr bool any(Visit&& visit) const {
    return (visit(static_cast<const PackElement<numbers, Ts>&>(*this).value) || ...);
  }

  template <class T>
  constexpr auto with(T added) && {
    return PackOf<std::make_index_sequence<sizeof...(Ts) + 1>, Ts..., T>{
        {std::move(static_cast<PackElement<numbers, Ts>&>(*this).value)}..., {std::move(added)}};
  }
};

template <class... Ts>
using Pack = PackOf<std::index_sequence_for<Ts...>, Ts...>;

}  // namespace keyfold::detail
