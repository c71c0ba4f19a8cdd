// What tests of single merges compare.
#pragma once

#include <keyfold/keyfold.hpp>

#include <cstddef>
#include <ostream>
#include <vector>

#include "support/catch.hpp"

namespace keyfold_test {

// The rows of a table or of a range over one, in order.
template <class Range>
auto rows_of(const Range& range) {
  std::vector<std::remove_cvref_t<decltype(*range.begin())>> rows;
  for (const auto& row : range) rows.push_back(row);
  return rows;
}

// Updated, deleted and inserted rows.
struct Counts {
  std::size_t updated = 0;
  std::size_t deleted = 0;
  std::size_t inserted = 0;

  bool operator==(const Counts&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << counts.updated << '/' << counts.deleted << '/' << counts.inserted;
  }
};

template <class Row>
Counts counts_of(const keyfold::MergeResult<Row>& result) {
  return {result.metrics().updated, result.metrics().deleted, result.metrics().inserted};
}

// What a failed write must leave alone.
template <class Table>
class Unharmed {
 public:
  explicit Unharmed(const Table& table)
      : table_(table), rows_(rows_of(table)), version_(table.version()), commits_(table.history().size()) {}

  ~Unharmed() {
    CHECK(rows_of(table_) == rows_);
    CHECK(table_.version() == version_);
    CHECK(table_.history().size() == commits_);
  }
  Unharmed(const Unharmed&) = delete;
  Unharmed& operator=(const Unharmed&) = delete;

 private:
  const Table& table_;
  std::vector<typename Table::Row> rows_;
  keyfold::Version version_;
  std::size_t commits_;
};

// The exception of type `Error` that `call` throws; fails the test if it throws none.
template <class Error, class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no such exception");
  throw;  // not reached
}

}  // namespace keyfold_test
