// Random damage to bytes, and the files of a corpus to do it to.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace keyfold_test {

using Random = std::mt19937_64;

inline std::size_t below(Random& random, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
}

/// A number at which a program may stumble.
inline std::uint64_t odd_number(Random& random) {
  constexpr std::uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       3,
                                       4,
                                       5,
                                       7,
                                       8,
                                       255,
                                       256,
                                       65535,
                                       0x7FFFFFFF,
                                       0x80000000,
                                       0xFFFFFFFF,
                                       0x100000000,
                                       0x7FFFFFFFFFFFFFFF,
                                       0x8000000000000000,
                                       UINT64_MAX};
  return numbers[below(random, std::size(numbers))];
}

/// Changes some of the bytes, of which there is at least one, but not how many they are.
inline void change_somewhere(std::string& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size());
  switch (below(random, 4)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2: {
      const std::uint64_t number = odd_number(random);
      const std::size_t width = std::min<std::size_t>(random() % 2 == 0 ? 4 : 8, bytes.size() - at);
      std::memcpy(&bytes[at], &number, width);
      break;
    }
    default: {
      const std::size_t count = std::min<std::size_t>(below(random, 24) + 1, bytes.size() - at);
      const std::string part = bytes.substr(below(random, bytes.size()), count);
      bytes.replace(at, part.size(), part);
      break;
    }
  }
}

/// Every file in a folder of seeds, but for programs.
inline void add_corpus(std::vector<std::string>& out, const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".cpp") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
}

}  // namespace keyfold_test
