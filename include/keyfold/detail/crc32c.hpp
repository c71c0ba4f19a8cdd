// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/crc.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define KEYFOLD_CRC32_INSTRUCTION
#endif

/// CRC-32C (Castagnoli, RFC 3720 B.4): by the instruction of SSE 4.2 where the processor has it, else by
/// Boost.CRC, some fifty times slower.
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

/// What a CRC state becomes when `Count` zero bytes follow: a product with x^(8 Count) modulo the polynomial,
/// by a table for each byte of the state.
template <std::size_t Count>
class Crc32cZeros {
 public:
  constexpr Crc32cZeros() {
    std::uint32_t power = std::uint32_t{1} << 31U;  // the polynomial 1; the coefficient of x^31 is bit 0
    for (std::size_t bit = 0; bit < 8 * Count; ++bit) power = times_x(power);
    for (std::size_t byte = 4; byte-- > 0;) {
      for (std::uint32_t bit = 128; bit != 0; bit /= 2, power = times_x(power)) table_[byte][bit] = power;
    }
    for (auto& table : table_) {
      for (std::size_t value = 1; value < 256; ++value) {
        const std::size_t rest = value & (value - 1);
        if (rest != 0) table[value] = table[rest] ^ table[value ^ rest];
      }
    }
  }

  constexpr std::uint32_t operator()(std::uint32_t state) const noexcept {
    return table_[0][state & 0xFFU] ^ table_[1][state >> 8U & 0xFFU] ^ table_[2][state >> 16U & 0xFFU] ^
           table_[3][state >> 24U];
  }

 private:
  static constexpr std::uint32_t times_x(std::uint32_t polynomial) noexcept {
    return polynomial >> 1U ^ ((polynomial & 1U) != 0 ? 0x82F63B78U : 0U);
  }

  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

#ifdef KEYFOLD_CRC32_INSTRUCTION
/// The instruction takes three cycles, and one can be begun in each of them. So long inputs go through it as
/// three streams side by side, after Gopal, Ozturk, Guilford and others, "Fast CRC computation for iSCSI
/// polynomial using CRC32 instruction" (Intel, 2011).
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_instruction(std::span<const std::byte> bytes,
                                                                          std::uint32_t seed) noexcept {
  constexpr std::size_t stream = 1024;
  static constexpr Crc32cZeros<stream> skip_stream;
  const auto word_at = [](const std::byte* from) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    return word;
  };
  std::uint64_t state = ~seed;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * stream; left -= 3 * stream, at += 3 * stream) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < stream; i += 8) {
      state = _mm_crc32_u64(state, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + stream + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * stream + i));
    }
    state = skip_stream(static_cast<std::uint32_t>(state)) ^ second;
    state = skip_stream(static_cast<std::uint32_t>(state)) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) state = _mm_crc32_u64(state, word_at(at));
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
