// Writes the stores of this folder, one that was closed and one whose process died, in the present format:
//     write_stores tests/golden
// A format that was released is never written again; its files stay as they are, and golden_test reads them.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "support/store_samples.hpp"

int main(int argc, char* argv[]) {
  if (argc != 2) {
    std::cerr << "usage: write_stores FOLDER\n";
    return 2;
  }
  const std::string version = "_v" + std::to_string(keyfold::detail::journal_format);
  for (const bool closed : {true, false}) {
    const auto folder = std::filesystem::path(argv[1]) / ((closed ? "store" : "killed_store") + version);
    std::filesystem::create_directories(folder);
    for (const auto& [name, bytes] : store_samples::parcel_store(closed)) {
      std::ofstream out(folder / name, std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
  }
}
