// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/function_ref.hpp>
#include <keyfold/fwd.hpp>

namespace keyfold::detail {

/// The readers in other threads, as a table sees them that is in a SharedTable.
class TableReaders {
 public:
  TableReaders() = default;
  TableReaders(const TableReaders&) = delete;
  TableReaders& operator=(const TableReaders&) = delete;
  virtual ~TableReaders() = default;

  /// Waits until nobody reads, and lets nobody begin. May be nested. Only for who has the turn to write.
  virtual void shut_out() noexcept = 0;
  virtual void let_in() noexcept = 0;

  /// Reads as a reader does.
  virtual void read(FunctionRef<void()> reading) = 0;

  /// The first version that a read point needs; the largest number if there is none.
  virtual Version oldest_read() const = 0;
};

/// Keeps readers out while a table is changed; nothing for a table that is not shared.
class WithoutReaders {
 public:
  explicit WithoutReaders(TableReaders* readers) noexcept : readers_(readers) {
    if (readers_ != nullptr) readers_->shut_out();
  }
  WithoutReaders(const WithoutReaders&) = delete;
  WithoutReaders& operator=(const WithoutReaders&) = delete;
  ~WithoutReaders() {
    if (readers_ != nullptr) readers_->let_in();
  }

 private:
  TableReaders* readers_;
};

}  // namespace keyfold::detail
