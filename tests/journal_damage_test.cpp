// Every bit of every file flipped, every length cut, every file lost: damage is refused and never believed.
#include <array>
#include <iostream>

#include "support/catch.hpp"
#include "support/journal_damage.hpp"

using namespace keyfold_test;

TEST_CASE("after a clean close every flipped bit of every file is detected") {
  const Damage damage = flip_every_bit(End::closed);
  std::cout << "log, snapshot and marker after a clean close: " << damage.refused << " of " << damage.done
            << " flips refused\n";
  CHECK(damage.done > 3000);
  CHECK(damage.refused == damage.done);
  CHECK(damage.wrong == "");
}

TEST_CASE("after a kill a flipped bit is detected but for the last commit, which may be lost") {
  const Damage damage = flip_every_bit(End::killed);
  std::cout << "log and snapshot after a kill: " << damage.refused << " of " << damage.done
            << " flips refused, " << damage.last_commit_lost
            << " have lost the last commit and nothing else\n";
  CHECK(damage.wrong == "");
  CHECK(damage.refused + damage.last_commit_lost == damage.done);
  // Exactly the bits of the last frame are undecidable.
  const std::size_t last = 32 + payload_of(commits_before_checkpoint + commits_in_log).size();
  CHECK(damage.last_commit_lost == 8 * last);
}

TEST_CASE("after a clean close every truncation of every file is detected") {
  const Damage damage = cut_everywhere(End::closed);
  std::cout << "log, snapshot and marker after a clean close: " << damage.refused << " of " << damage.done
            << " truncations refused\n";
  CHECK(damage.done > 400);
  CHECK(damage.refused == damage.done);
  CHECK(damage.wrong == "");
}

TEST_CASE(
    "after a kill a log that was cut is a beginning of itself, and a snapshot that was cut is refused") {
  const Damage damage = cut_everywhere(End::killed);
  std::cout << "log and snapshot after a kill: " << damage.refused << " of " << damage.done
            << " truncations refused, the others are the log as it was some commits before\n";
  CHECK(damage.done > 400);
  CHECK(damage.wrong == "");
}

TEST_CASE("a byte too many is detected in the marker and the snapshot, and in the log after a clean close") {
  for (const char* const name : {"CLEAN", "snapshot-2", "log-2"}) {
    MemoryDisk disk = written_directory(End::closed);
    disk.contents(name).push_back(std::byte{0});
    INFO(name);
    CHECK_THROWS_AS(keyfold::detail::read_journal<keyfold::detail::FrameChecks>(disk),
                    keyfold::CorruptJournal);
  }
}

TEST_CASE("a file that is missing is detected as long as others are left") {
  for (const End end : {End::closed, End::killed}) {
    for (const char* const name : {"snapshot-2", "log-2"}) {
      MemoryDisk disk = written_directory(end);
      disk.forget(name);
      INFO(name);
      CHECK(open_directory<keyfold::detail::FrameChecks>(disk).refused);
    }
  }
  MemoryDisk marker_only = written_directory(End::closed);
  marker_only.forget("snapshot-2");
  marker_only.forget("log-2");
  CHECK(open_directory<keyfold::detail::FrameChecks>(marker_only).refused);
}

TEST_CASE("two frames in the wrong order, and a frame of another log, are refused") {
  constexpr std::size_t header = keyfold::detail::LogHeader::Layout::size;
  const std::size_t first = 32 + payload_of(commits_before_checkpoint + 1).size();
  const std::size_t second = 32 + payload_of(commits_before_checkpoint + 2).size();
  {
    MemoryDisk disk = written_directory(End::killed);
    Bytes& log = disk.contents("log-2");
    const auto begin = log.begin() + header;
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>(first),
                begin + static_cast<std::ptrdiff_t>(first + second));
    CHECK(open_directory<keyfold::detail::FrameChecks>(disk).refused);
  }
  {
    MemoryDisk disk = written_directory(End::killed);
    Bytes foreign;
    keyfold::detail::FrameHeader::append_frame<keyfold::detail::FrameChecks>(
        foreign, 12345, header, commits_before_checkpoint + 1, commits_before_checkpoint,
        payload_of(commits_before_checkpoint + 1));
    REQUIRE(foreign.size() == first);
    std::ranges::copy(foreign, disk.contents("log-2").begin() + header);
    CHECK(open_directory<keyfold::detail::FrameChecks>(disk).refused);
  }
}

TEST_CASE("CorruptJournal names the file and the offset of the damage") {
  MemoryDisk disk = written_directory(End::killed);
  constexpr std::size_t header = keyfold::detail::LogHeader::Layout::size;
  const std::size_t second = header + 32 + payload_of(commits_before_checkpoint + 1).size();
  disk.contents("log-2")[second + 33] ^= std::byte{4};
  try {
    keyfold::detail::read_journal<keyfold::detail::FrameChecks>(disk);
    FAIL("it was believed");
  } catch (const keyfold::CorruptJournal& damage) {
    CHECK(damage.file == "log-2");
    CHECK(damage.offset == second);
  }
}

TEST_CASE("a salvage reads what precedes the damage and counts what is lost") {
  MemoryDisk disk = written_directory(End::closed);
  constexpr std::size_t header = keyfold::detail::LogHeader::Layout::size;
  const std::size_t second = header + 32 + payload_of(commits_before_checkpoint + 1).size();
  disk.contents("log-2")[second + 5] ^= std::byte{1};
  const auto image =
      keyfold::detail::read_journal<keyfold::detail::FrameChecks>(disk, keyfold::detail::OnDamage::salvage);
  CHECK(commits_in(image) == Commits{1, 2, 3, 4});
  REQUIRE(image.damage);
  CHECK(image.damage->offset == second);
  CHECK(image.frames_lost == commits_in_log - 1);
}

TEST_CASE("a salvage of a log whose header is damaged has the snapshot") {
  MemoryDisk disk = written_directory(End::closed);
  disk.contents("log-2")[30] ^= std::byte{1};
  const auto image =
      keyfold::detail::read_journal<keyfold::detail::FrameChecks>(disk, keyfold::detail::OnDamage::salvage);
  CHECK(commits_in(image) == Commits{1, 2, 3});
  CHECK(image.damage);
}

TEST_CASE("a salvage of a log whose marker is damaged has all of it") {
  MemoryDisk disk = written_directory(End::closed);
  disk.contents("CLEAN")[20] ^= std::byte{1};
  const auto image =
      keyfold::detail::read_journal<keyfold::detail::FrameChecks>(disk, keyfold::detail::OnDamage::salvage);
  CHECK(commits_in(image) == Commits{1, 2, 3, 4, 5, 6, 7, 8});
  REQUIRE(image.damage);
  CHECK(image.damage->file == "CLEAN");
  CHECK_FALSE(image.clean);
}

TEST_CASE("a newer format is named as such, whatever else the file says") {
  for (const char* const name : {"CLEAN", "snapshot-2", "log-2"}) {
    MemoryDisk disk = written_directory(End::closed);
    disk.contents(name)[8] = std::byte{2};
    INFO(name);
    try {
      keyfold::detail::read_journal<keyfold::detail::FrameChecks>(disk);
      FAIL("it was read");
    } catch (const keyfold::UnsupportedFormat& error) {
      CHECK(error.found == 2);
      CHECK(error.known == 1);
    }
  }
}

TEST_CASE("rubbish in place of any file ends in a typed error, and takes no more memory than the file") {
  Dice dice(11);
  for (int round = 0; round < 3000; ++round) {
    MemoryDisk disk = written_directory(End::closed);
    for (const std::string& name : disk.list()) {
      Bytes& bytes = disk.contents(name);
      const std::size_t from = dice.one_in(2) ? 0 : dice.below(bytes.size());
      for (std::size_t i = from; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(dice.draw());
    }
    REQUIRE(open_directory<keyfold::detail::FrameChecks>(disk).refused);
  }
}
