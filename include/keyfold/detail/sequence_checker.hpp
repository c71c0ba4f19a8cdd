// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/sequence_codec.hpp>
#include <keyfold/detail/type_skipper.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keyfold::detail {

/// Columns of the program, each by its number among those of a file; `no_position` where the file has none.
struct ColumnPlaces {
  std::vector<std::size_t> places{};
  std::size_t stored = 0;  // how many columns the file has
  bool same = false;       // in the same order
};

/// Checks sequences of which only the name of the type is known.
class SequenceChecker {
 public:
  /// Throws DecodeError if the name is no type. The name must outlive the checker.
  explicit SequenceChecker(std::string_view type) : skipper_(type) {}

  void check(std::string_view sequence) const {
    ByteReader in(std::as_bytes(std::span(sequence)));
    skipper_.skip(in);
    if (in.left() != 0) in.fail("a sequence is longer than it should be");
  }

  /// The sequences of a key, those of its columns in the order of the program.
  std::string arranged(bool live, std::string_view sequences, const ColumnPlaces& columns) const {
    ByteReader in(std::as_bytes(std::span(sequences)));
    const unsigned flags = detail::get_u8(in);
    detail::check_sequence_flags(in, flags, live);
    for (const unsigned part : {has_set, has_erased, has_base}) {
      if ((flags & part) != 0) skipper_.skip(in);
    }
    const std::size_t common = in.offset();
    std::vector<std::string_view> parts;
    if ((flags & has_columns) != 0) {
      if (columns.stored == 0) in.fail("a key has sequences of columns that rows do not have");
      parts.reserve(std::min(columns.stored, sequences.size()));
      for (std::size_t i = 0; i < columns.stored; ++i) {
        const std::size_t from = in.offset();
        if (detail::get_flag(in)) skipper_.skip(in);
        parts.push_back(sequences.substr(from, in.offset() - from));
      }
    }
    if (in.left() != 0) in.fail("more is remembered of a key than its sequences");
    if (columns.same || parts.empty()) return std::string(sequences);
    std::string out(sequences.substr(0, common));
    for (const std::size_t place : columns.places)
      out += place == no_position ? std::string_view("\0", 1) : parts[place];
    return out;
  }

 private:
  TypeSkipper skipper_;
};

}  // namespace keyfold::detail
