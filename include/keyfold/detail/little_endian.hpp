// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Whole numbers in files: fixed width, the lowest byte first, whatever the machine does.
namespace keyfold::detail {

using Bytes = std::vector<std::byte>;

template <std::unsigned_integral Number>
void append_number(Bytes& out, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    out.push_back(static_cast<std::byte>(number >> (8 * i) & 0xFFU));
}

/// Requires: sizeof(Number) bytes at `from`.
template <std::unsigned_integral Number>
Number number_at(const std::byte* from) noexcept {
  Number number = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;)
    number = static_cast<Number>(number << 8U | std::to_integer<Number>(from[i]));
  return number;
}

}  // namespace keyfold::detail
