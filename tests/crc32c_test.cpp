// The checksum of every file: published values, and both ways to compute it agree.
#include <keyfold/detail/crc32c.hpp>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

using keyfold::detail::crc32c;
using keyfold::detail::crc32c_portable;

namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TEST_CASE("CRC-32C has the values of RFC 3720, B.4") {
  std::string ascending;
  std::string descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  for (const auto crc : {+[](std::span<const std::byte> b) { return crc32c(b); },
                         +[](std::span<const std::byte> b) { return crc32c_portable(b, 0); }}) {
    CHECK(crc(bytes("")) == 0);
    CHECK(crc(bytes("123456789")) == 0xE3069283);
    CHECK(crc(bytes(std::string(32, '\0'))) == 0x8A9136AA);
    CHECK(crc(bytes(std::string(32, '\xFF'))) == 0x62A8AB43);
    CHECK(crc(bytes(ascending)) == 0x46DD794E);
    CHECK(crc(bytes(descending)) == 0x113FDB5C);
  }
}

TEST_CASE("CRC-32C goes on from the CRC of what stands before, whichever way either was computed") {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i * i + 3 * i));
  const std::uint32_t whole = crc32c_portable(bytes(text), 0);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto head = bytes(text).first(cut);
    const auto tail = bytes(text).subspan(cut);
    CHECK(crc32c(tail, crc32c(head)) == whole);
    CHECK(crc32c_portable(tail, crc32c(head)) == whole);
    CHECK(crc32c(tail, crc32c_portable(head, 0)) == whole);
  }
}

TEST_CASE(
    "CRC-32C of long inputs, which go through the processor in several streams, is that of the portable "
    "one") {
  std::string text(20000, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24U);
  for (const std::size_t size : {3071U, 3072U, 3073U, 6143U, 6144U, 6151U, 9216U, 19993U}) {
    for (const std::size_t start : {0U, 1U, 7U}) {
      const auto part = bytes(text).subspan(start, size);
      CHECK(crc32c(part) == crc32c_portable(part, 0));
      CHECK(crc32c(part, 0x12345678) == crc32c_portable(part, 0x12345678));
    }
  }
}
