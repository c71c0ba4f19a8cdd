// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace keyfold::detail {

/// Rows whose moves cannot fail are kept in place.
template <class Row>
concept NothrowMovable = std::is_nothrow_move_constructible_v<Row> &&
                         std::is_nothrow_move_assignable_v<Row> && std::is_nothrow_destructible_v<Row>;

/// Holds one row and moves without ever throwing, whatever the row's own moves do: a row that cannot promise
/// that is kept behind a pointer. This is what lets a planned write be carried out without a step that can
/// fail.
template <class Row>
class Holder {
 public:
  explicit Holder(Row&& row) : row_(std::make_unique<Row>(std::move(row))) {}
  explicit Holder(const Row& row) : row_(std::make_unique<Row>(row)) {}
  /// Of the row that `make()` returns, which is not moved.
  template <class Make>
  Holder(std::in_place_t, Make make) : row_(new Row(make())) {}

  const Row& get() const noexcept { return *row_; }
  Row& get() noexcept { return *row_; }

 private:
  std::unique_ptr<Row> row_;
};

template <NothrowMovable Row>
class Holder<Row> {
 public:
  explicit Holder(Row&& row) noexcept : row_(std::move(row)) {}
  explicit Holder(const Row& row) : row_(row) {}
  template <class Make>
  Holder(std::in_place_t, Make make) : row_(make()) {}

  const Row& get() const noexcept { return row_; }
  Row& get() noexcept { return row_; }

 private:
  Row row_;
};

}  // namespace keyfold::detail
