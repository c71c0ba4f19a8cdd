// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace keyfold::detail {

/// Text of a file for a message: one line, at most 60 bytes, in quotes; bytes that would not print are shown
/// as `?`.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t limit = 60;
  std::string out = "'";
  for (const char c : text.substr(0, limit))
    out += static_cast<unsigned char>(c) < ' ' || c == '\x7F' ? '?' : c;
  return out += text.size() > limit ? "...'" : "'";
}

/// "test.csv:1: column 'x' is missing", "test.csv:1: column 'x': a quote stands": without a colon where the
/// place is the subject of what is said.
inline std::string said_of(std::string place, const std::string& what) {
  return std::move(place) + (what.starts_with("is ") ? " " : ": ") + what;
}

}  // namespace keyfold::detail
