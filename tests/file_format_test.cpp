// The worked example of docs/file-format.md is what save() writes.
#include <keyfold/snapshot.hpp>

#include <fstream>
#include <sstream>

#include "support/catch.hpp"
#include "support/snapshot_bytes.hpp"
#include "support/snapshot_samples.hpp"

namespace {

// The tests run in the project's folder.
std::string bytes_of_the_page() {
  std::ifstream page("docs/file-format.md");
  REQUIRE(page);
  std::string line;
  while (std::getline(page, line) && line != "```hex") {
  }
  std::string bytes;
  while (std::getline(page, line) && line != "```") {
    CHECK(std::stoul(line.substr(0, 4), nullptr, 16) == bytes.size());
    std::istringstream hex(line.substr(6, 26));
    for (std::string byte; hex >> byte;) bytes += static_cast<char>(std::stoi(byte, nullptr, 16));
  }
  return bytes;
}

}  // namespace

TEST_CASE("the worked example of the file format is a snapshot of the table it tells of") {
  const std::string bytes = bytes_of_the_page();
  CHECK(bytes == keyfold_test::saved(snapshot_samples::stock_table()));
  const auto table = keyfold_test::loaded<snapshot_samples::StockTable>(bytes);
  CHECK(table.at(7).name == "tea");
  CHECK(table.history().front().timestamp() == keyfold::Timestamp(std::chrono::seconds(1)));
}
