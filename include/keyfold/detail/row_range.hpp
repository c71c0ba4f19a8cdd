// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

/// What the readers of text files share.
namespace keyfold::detail {

/// "id, status, amount"
template <class Row>
std::string names_text() {
  std::string out;
  for (const auto name : column_names<Row>) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

/// The values of a file, read one at a time: an input range that a merge takes as its source. `Reader` has a
/// `bool read(value_type&)`, which is false at the end and throws for what it cannot read.
/// Thread safety: one thread. Iterators are invalid once the range is moved.
template <class Reader>
class RowRange {
 public:
  using value_type = typename Reader::value_type;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = RowRange::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = value_type&;
    using pointer = value_type*;

    iterator() = default;
    explicit iterator(RowRange& rows) : rows_(&rows) {}

    /// The value, which may be moved from.
    reference operator*() const noexcept { return rows_->row_; }
    iterator& operator++() {
      rows_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t /*end*/) const noexcept { return rows_->done_; }

   private:
    RowRange* rows_ = nullptr;
  };

  explicit RowRange(Reader reader) : reader_(std::move(reader)) {}

  /// Reads the first value; to be called once. Throws what incrementing the iterator does.
  [[nodiscard]] iterator begin() {
    advance();
    return iterator(*this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void advance() { done_ = !reader_.read(row_); }

  Reader reader_;
  value_type row_{};
  bool done_ = false;
};

template <class Reader>
auto all_of(RowRange<Reader> rows) {
  std::vector<typename Reader::value_type> out;
  for (auto& row : rows) out.push_back(std::move(row));
  return out;
}

}  // namespace keyfold::detail
