// A program that is run each day: it loads its table where there is one, goes on from it, and saves it again.
// Three days of it, and a file that was damaged on the way.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

struct Part {
  int id = 0;
  std::string name;
  std::optional<int> stock;
  bool operator==(const Part&) const = default;
};
BOOST_DESCRIBE_STRUCT(Part, (), (id, name, stock))

using Parts = kf::Table<Part, kf::Key<&Part::id>, kf::OrderedBy<&Part::name>>;

void run_day(const std::filesystem::path& file, std::uint64_t day, const std::vector<Part>& delivered) {
  Parts parts = std::filesystem::exists(file) ? kf::load<Parts>(file) : Parts();
  const auto result = parts.once("deliveries", day).upsert(delivered);
  std::cout << "day " << day << ": " << (result.already_applied() ? "was loaded before" : "loaded")
            << ", version " << parts.version() << ", " << parts.size() << " parts\n";
  parts.tag("day " + std::to_string(day), parts.version());
  kf::save(parts, file);
}

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "keyfold-example-snapshot";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const auto file = folder / "parts.kfs";

  run_day(file, 1, {{1, "bolt", 100}, {2, "nut", {}}});
  run_day(file, 2, {{2, "nut", 50}, {3, "gear", 7}});
  run_day(file, 2, {{2, "nut", 50}, {3, "gear", 7}});  // started again by mistake

  const Parts parts = kf::load<Parts>(file);
  std::cout << "\nfrom the first day to the second:\n"
            << kf::print(parts.diff(parts.tags().at("day 1"), parts.version())) << "by name:\n"
            << kf::print(parts.by<&Part::name>());

  // One bit in the middle, as a bad disk would do it.
  std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekg(300);
  const int byte = damaged.get();
  damaged.seekp(300);
  damaged.put(static_cast<char>(byte ^ 4));
  damaged.close();
  try {
    static_cast<void>(kf::load<Parts>(file));
  } catch (const kf::CorruptSnapshot& error) {
    std::cout << "\n" << std::filesystem::path(error.file).filename().string() << " is refused\n";
  }
  std::filesystem::remove_all(folder);
}
