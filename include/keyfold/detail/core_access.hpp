// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/fwd.hpp>

#include <memory>
#include <utility>

namespace keyfold::detail {

template <class Table>
struct core_of;
template <class Row, class KeySpec, class... Indexes>
struct core_of<Table<Row, KeySpec, Indexes...>> {
  using type = Core<Row, KeySpec, Indexes...>;
};

template <class T>
concept AnyTable = requires { typename core_of<T>::type; };

/// Reaches the state of a table, for what saves and loads it whole.
struct CoreAccess {
  template <class Table>
  using core_t = typename core_of<Table>::type;

  template <class Table>
  static const core_t<Table>& core(const Table& table) noexcept {
    return *table.core_;
  }
  template <class Table>
  static core_t<Table>& core(Table& table) noexcept {
    return *table.core_;
  }
  template <class Table>
  static Table table_of(std::unique_ptr<core_t<Table>> core) {
    return Table(std::move(core));
  }
};

}  // namespace keyfold::detail
