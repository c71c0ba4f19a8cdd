// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Whole numbers in files: fixed width, the lowest byte first, whatever the machine does.
namespace keyfold::detail {

using Bytes = std::vector<std::byte>;

/// Returns the place behind it. Requires: sizeof(Number) bytes at `to`.
template <std::unsigned_integral Number>
std::byte* put_number_at(std::byte* to, Number number) noexcept {
  for (std::size_t i = 0; i < sizeof(Number); ++i) to[i] = static_cast<std::byte>(number >> (8 * i) & 0xFFU);
  return to + sizeof(Number);
}

template <std::unsigned_integral Number>
void append_number(Bytes& out, Number number) {
  out.resize(out.size() + sizeof(Number));
  detail::put_number_at(out.data() + out.size() - sizeof(Number), number);
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
