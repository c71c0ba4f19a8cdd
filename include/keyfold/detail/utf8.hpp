// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

/// UTF-8, told from bytes that are not (Unicode, table 3-7).
namespace keyfold::detail {

struct CodePoint {
  char32_t value;
  std::size_t bytes;
  bool valid;  // false: `value` is a byte that is not part of well-formed UTF-8
};

/// Bytes of the sequence that `lead` begins; 1 if it begins none.
constexpr std::size_t sequence_length(unsigned char lead) noexcept {
  if (lead < 0xC2 || lead > 0xF4) return 1;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

constexpr bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Overlong forms, surrogates and what lies above U+10FFFF are not well-formed (Unicode, table 3-7).
constexpr bool is_scalar_value(char32_t value, std::size_t bytes) noexcept {
  if (bytes == 3) return value >= 0x800 && (value < 0xD800 || value > 0xDFFF);
  return bytes != 4 || (value >= 0x10000 && value <= 0x10FFFF);
}

/// Requires: text is not empty.
constexpr CodePoint first_code_point(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  const CodePoint lone{lead, 1, lead < 0x80};
  const std::size_t bytes = sequence_length(lead);
  if (bytes == 1 || text.size() < bytes) return lone;
  char32_t value = lead & (0x7FU >> bytes);
  for (const char byte : text.substr(1, bytes - 1)) {
    if (!is_continuation(byte)) return lone;
    value = value << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return is_scalar_value(value, bytes) ? CodePoint{value, bytes, true} : lone;
}

/// Whether the next eight bytes are ASCII, if that can be told at once.
constexpr bool begins_with_ascii_word(std::string_view text) noexcept {
  std::uint64_t word = 0;
  if (std::is_constant_evaluated() || text.size() < sizeof word) return false;
  std::memcpy(&word, text.data(), sizeof word);
  return (word & 0x8080808080808080U) == 0;
}

/// Offset of the first byte that is not part of well-formed UTF-8; text.size() where all are.
constexpr std::size_t utf8_error(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      at += begins_with_ascii_word(text.substr(at)) ? sizeof(std::uint64_t) : 1;
      continue;
    }
    const CodePoint c = first_code_point(text.substr(at));
    if (!c.valid) return at;
    at += c.bytes;
  }
  return at;
}

}  // namespace keyfold::detail
