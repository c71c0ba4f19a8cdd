// Damage done to the files of a journal: each bit flipped, each length cut, each file lost.
#pragma once

#include <keyfold/detail/journal.hpp>

#include <functional>
#include <string>

#include "support/journal_program.hpp"

namespace keyfold_test {

enum class End : std::uint8_t { closed, killed };

constexpr std::uint32_t commits_before_checkpoint = 3;
constexpr std::uint32_t commits_in_log = 5;

// The state of a checkpoint after the first three.
inline constexpr auto write_commits = [](auto& sink) {
  for (std::uint32_t commit = 1; commit <= commits_before_checkpoint; ++commit) {
    Bytes bytes;
    keyfold::detail::put_number(bytes, commit);
    sink.write(bytes);
  }
};

// A directory with a snapshot of three commits, and five more in the log, each synced.
template <class Checks = keyfold::detail::FrameChecks>
MemoryDisk written_directory(End end) {
  MemoryDisk disk(7);
  Journal<MemoryDisk, Checks> journal(disk, keyfold::detail::read_journal<Checks>(disk));
  journal.checkpoint([](auto&) {});
  for (std::uint32_t commit = 1; commit <= commits_before_checkpoint + commits_in_log; ++commit) {
    journal.append(payload_of(commit));
    journal.sync();
    if (commit == commits_before_checkpoint) journal.checkpoint(write_commits);
  }
  if (end == End::closed) journal.close();
  return disk;
}

// What opening a damaged directory came to.
struct Opened {
  bool refused = false;
  Commits commits;
};

template <class Checks>
Opened open_directory(const MemoryDisk& disk) {
  try {
    const auto image = keyfold::detail::read_journal<Checks>(disk);
    const auto commits = commits_in(image);
    return {false, commits ? *commits : Commits{0}};
  } catch (const keyfold::CorruptJournal&) {
    return {true, {}};
  } catch (const keyfold::UnsupportedFormat&) {
    return {true, {}};
  }
}

struct Damage {
  std::size_t done = 0;
  std::size_t refused = 0;
  std::size_t last_commit_lost = 0;  // and nothing else
  std::string wrong;                 // the first damage that was believed
};

// `lost_at_most` is how many commits may go unnoticed at the end.
template <class Checks>
void judge(Damage& damage, const MemoryDisk& disk, std::size_t lost_at_most, const std::string& what) {
  ++damage.done;
  const std::size_t all = commits_before_checkpoint + commits_in_log;
  const Opened opened = open_directory<Checks>(disk);
  if (opened.refused) {
    ++damage.refused;
    return;
  }
  bool right = opened.commits.size() <= all && opened.commits.size() + lost_at_most >= all;
  for (std::size_t i = 0; right && i < opened.commits.size(); ++i) right = opened.commits[i] == i + 1;
  if (opened.commits.size() + 1 == all) ++damage.last_commit_lost;
  if (!right && damage.wrong.empty()) damage.wrong = what;
}

// Flips each bit of each file.
template <class Checks = keyfold::detail::FrameChecks>
Damage flip_every_bit(End end) {
  const MemoryDisk intact = written_directory<Checks>(end);
  Damage damage;
  MemoryDisk disk = intact.copy();
  for (const std::string& name : intact.list()) {
    for (std::size_t bit = 0; bit < 8 * intact.read(name).size(); ++bit) {
      std::byte& byte = disk.contents(name)[bit / 8];
      byte ^= std::byte{1} << (bit % 8);
      judge<Checks>(damage, disk, end == End::closed ? 0 : 1, name + ", bit " + std::to_string(bit));
      byte ^= std::byte{1} << (bit % 8);
    }
  }
  return damage;
}

// Cuts each file at each length below its own.
template <class Checks = keyfold::detail::FrameChecks>
Damage cut_everywhere(End end) {
  const MemoryDisk intact = written_directory<Checks>(end);
  Damage damage;
  for (const std::string& name : intact.list()) {
    for (std::size_t size = 0; size < intact.read(name).size(); ++size) {
      MemoryDisk disk = intact.copy();
      disk.contents(name).resize(size);
      // Frames that were never written and frames that are gone look the same, after a kill.
      const std::size_t lost = end == End::closed || !name.starts_with("log") ? 0 : commits_in_log;
      judge<Checks>(damage, disk, lost, name + " cut to " + std::to_string(size));
    }
  }
  return damage;
}

}  // namespace keyfold_test
