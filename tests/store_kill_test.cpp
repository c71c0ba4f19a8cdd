// A process that writes to a store on the real file system is killed, again and again.
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe.hpp>

#include <chrono>
#include <iostream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/catch.hpp"
#include "support/memory_disk.hpp"
#include "support/property.hpp"
#include "support/temporary_directory.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace {

constexpr std::uint64_t keys = 50;

struct Count {
  std::uint64_t key = 0;
  std::uint64_t number = 0;
  std::string text;
  bool operator==(const Count&) const = default;
};
BOOST_DESCRIBE_STRUCT(Count, (), (key, number, text))

using Counts = kf::Table<Count, kf::Key<&Count::key>>;
using CountStore = kf::Store<Counts>;

Count count_number(std::uint64_t number) { return {number % keys, number, std::string(number % 100, 't')}; }

kf::StoreOptions options_of(kf::Durability durability) {
  kf::StoreOptions options;
  options.durability = durability;
  options.checkpoint_bytes = 30'000;
  options.table.retention = kf::keep_last(20);
  return options;
}

// Counts on, and says each number that was acknowledged.
[[noreturn]] void write_until_killed(const std::filesystem::path& directory, kf::Durability durability,
                                     int out) {
  try {
    auto store = CountStore::open(directory, options_of(durability));
    for (std::uint64_t number = store.table().version() + 1;; ++number) {
      store.once("counter", number).upsert({count_number(number)});
      if (::write(out, &number, sizeof number) != sizeof number) ::_exit(2);
    }
  } catch (...) {
    ::_exit(3);
  }
}

// Lets a process write for a while and kills it; returns the last number it has acknowledged, 0 for none.
std::uint64_t kill_a_writer(const std::filesystem::path& directory, kf::Durability durability, Dice& dice) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    write_until_killed(directory, durability, ends[1]);
  }
  ::close(ends[1]);
  std::uint64_t last = 0;
  if (!dice.one_in(8)) {  // else it is killed while it opens
    static_cast<void>(!::read(ends[0], &last, sizeof last));
  }
  std::this_thread::sleep_for(std::chrono::microseconds(dice.below(6000)));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  for (std::uint64_t number = 0; ::read(ends[0], &number, sizeof number) == sizeof number;) last = number;
  ::close(ends[0]);
  return last;
}

void check_rows(const Counts& table, std::uint64_t last) {
  REQUIRE(table.size() == std::min(last, keys));
  for (std::uint64_t number = last > keys ? last - keys + 1 : 1; number <= last; ++number) {
    const Count* found = table.find(number % keys);
    REQUIRE(found != nullptr);
    REQUIRE(*found == count_number(number));
  }
}

void kill_writers(kf::Durability durability, std::size_t rounds) {
  const TemporaryDirectory directory;
  Dice dice(static_cast<std::uint64_t>(durability.mode) + 5);
  std::uint64_t known = 0;
  std::uint64_t more = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::uint64_t acknowledged = std::max(known, kill_a_writer(directory.path, durability, dice));
    auto store = CountStore::open(directory.path, options_of(durability));
    const std::uint64_t found = store.table().version();
    INFO("round " << round);
    REQUIRE(found >= acknowledged);
    REQUIRE(found <= acknowledged + 1);
    REQUIRE(store.table().last_applied("counter").value_or(0) == found);
    check_rows(store.table(), found);
    if (found >= 20) {
      REQUIRE(store.table().history().size() == 20);
      check_rows(store.table().as_of(found - 19).to_table(), found - 19);
    }
    known = found;
    more += found - acknowledged;
  }
  constexpr const char* names[] = {"every_commit", "interval", "buffered"};
  std::cout << "kill -9, " << names[static_cast<std::size_t>(durability.mode)] << ": " << rounds
            << " writers killed, " << known << " commits, no acknowledged one lost, " << more
            << " there without having been acknowledged\n";
}

// In each mode a third of them.
std::size_t wanted_rounds() { return (wanted("KEYFOLD_KILL_ROUNDS", 300) + 2) / 3; }

}  // namespace

TEST_CASE("a killed writer has lost no acknowledged commit: every_commit") {
  kill_writers(kf::durability::every_commit, wanted_rounds());
}

TEST_CASE("a killed writer has lost no acknowledged commit: interval") {
  kill_writers(kf::durability::interval(std::chrono::milliseconds(2)), wanted_rounds());
}

TEST_CASE("a killed writer has lost no acknowledged commit: buffered") {
  kill_writers(kf::durability::buffered, wanted_rounds());
}
