// What a commit would cost without history. keyfold has no switch for that; but its log is a template, so a
// row type of this program can have a log of its own, one that remembers nothing. All else in a write is the
// very same code: planning, validation, indexes, staging, the record of the commit with its counts and text.
#pragma once

#include <keyfold/keyfold.hpp>

#include <cstddef>

namespace keyfold_bench {

/// A row whose changes are kept as usual, and one whose changes are not. Both derive from the row that is
/// measured, so that they differ in nothing else.
template <class Row>
struct Remembered : Row {};
template <class Row>
struct Forgotten : Row {};

}  // namespace keyfold_bench

/// No allocation, no before image, no chain: every change is the same entry. Good for inserts and updates of
/// a table whose past nobody asks for, and for nothing else.
template <class Row>
class keyfold::detail::LogBlock<keyfold_bench::Forgotten<Row>> {
 public:
  using Entry = LogEntry<keyfold_bench::Forgotten<Row>>;

  LogBlock() = default;
  LogBlock(Arena&, const EntryCounts&) {}

  Entry* add_first(Version) noexcept { return &nothing_; }
  Entry* add(LogKind, Version, Entry*) noexcept { return &nothing_; }
  Entry* add(LogKind, Version, Entry*, Holder<keyfold_bench::Forgotten<Row>>&&) noexcept { return &nothing_; }
  Entry* put_first(std::size_t, Version) noexcept { return &nothing_; }
  Entry* put(std::size_t, LogKind, Version, Entry*) noexcept { return &nothing_; }
  Entry* put(std::size_t, LogKind, Version, Entry*, Holder<keyfold_bench::Forgotten<Row>>&&) noexcept {
    return &nothing_;
  }
  void close(const EntryCounts&) noexcept {}

  const Entry* first() const noexcept { return nullptr; }
  Entry* first() noexcept { return nullptr; }
  const Entry* next(const Entry*) const noexcept { return nullptr; }
  Entry* next(Entry*) const noexcept { return nullptr; }
  std::size_t bytes() const noexcept { return 0; }
  static constexpr std::size_t bytes_of(const EntryCounts&) noexcept { return 0; }

 private:
  inline static Entry nothing_{LogKind::insert, true, 0};
};
