// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/value.hpp>
#include <keyfold/fwd.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// What apply_changes() remembers of one key of current rows.
namespace keyfold::detail {

/// The sequences of one key. An absent sequence is before every other.
template <class Seq>
struct KeySequences {
  bool live = false;                        // a row has the key
  std::optional<Seq> set{};                 // the newest upsert of the row
  std::optional<Seq> erased{};              // the newest delete or truncate
  std::optional<Seq> base{};                // how new those columns are that no upsert gave a value
  bool fed = false;                         // `base` is the first upsert after the newest delete; else what
                                            // the row was when another write brought it
  std::vector<std::optional<Seq>> columns;  // for each column the newest upsert that gave it a value;
                                            // empty: `set` for those that feeds set
  Timestamp erased_at{};                    // when the delete came in

  /// Forgets the row, which a delete took away.
  void kill(const Seq& at) {
    live = false;
    set.reset();
    base.reset();
    fed = false;
    columns.clear();
    erased = at;
  }
};

template <class Seq>
std::size_t heap_bytes(const KeySequences<Seq>& value) noexcept {
  return value.columns.capacity() * sizeof(std::optional<Seq>);
}

/// Stands for a sequence whose type only a file has named so far: its bytes.
struct StoredSequence {
  std::string bytes;
};

/// The sequences of a key whose type is not known: all but what a tombstone is judged by as bytes.
template <>
struct KeySequences<StoredSequence> {
  bool live = false;
  std::string bytes{};
  Timestamp erased_at{};
};

inline std::size_t heap_bytes(const KeySequences<StoredSequence>& value) noexcept {
  return value.bytes.capacity();
}

template <class Seq>
bool before(const std::optional<Seq>& a, const Seq& b) {
  return !a || detail::less_values(*a, b);
}
template <class Seq>
bool not_after(const std::optional<Seq>& a, const Seq& b) {
  return !a || !detail::less_values(b, *a);
}

}  // namespace keyfold::detail
