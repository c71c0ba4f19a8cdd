// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/crc.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define KEYFOLD_CRC32_INSTRUCTION
#endif

/// CRC-32C (Castagnoli, RFC 3720 B.4): by the instruction of SSE 4.2 where the processor has it, else by
/// Boost.CRC, some twenty times slower.
namespace keyfold::detail {

/// `seed` is the CRC of what stands before the bytes, or 0.
inline std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
  // Boost.CRC takes the state before reflection, and the checksum is the state after it and a complement.
  std::uint32_t state = 0;
  for (std::uint32_t bit = 0; bit < 32; ++bit) state |= ((~seed >> bit) & 1U) << (31U - bit);
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc(state);
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

#ifdef KEYFOLD_CRC32_INSTRUCTION
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_instruction(std::span<const std::byte> bytes,
                                                                          std::uint32_t seed) noexcept {
  std::uint64_t state = ~seed;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(*at));
  return ~narrow;
}
#endif

/// `seed` is the CRC of what stands before the bytes, or 0.
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0) noexcept {
#ifdef KEYFOLD_CRC32_INSTRUCTION
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_instruction(bytes, seed);
#endif
  return crc32c_portable(bytes, seed);
}

}  // namespace keyfold::detail

#undef KEYFOLD_CRC32_INSTRUCTION
