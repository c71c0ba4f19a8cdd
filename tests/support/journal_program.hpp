// Random lives of a journal on a disk with accidents, and what must be there after each: the promises of
// docs/durability.md, kept in books of its own.
#pragma once

#include <keyfold/detail/journal.hpp>

#include <optional>
#include <string>
#include <vector>

#include "support/memory_disk.hpp"

namespace keyfold_test {

using keyfold::detail::ByteSpan;
using keyfold::detail::Journal;
using keyfold::detail::JournalImage;

// Commits are numbers; the payload of a frame is its number and some filler that belongs to it.
using Commits = std::vector<std::uint32_t>;

inline Bytes payload_of(std::uint32_t commit) {
  Dice dice(commit);
  Bytes bytes;
  keyfold::detail::put_number(bytes, commit);
  bytes.resize(4 + dice.below(dice.one_in(16) ? 300 : 40));
  for (std::size_t i = 4; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(dice.draw());
  return bytes;
}

// What the directory holds; nothing if a payload is not one that was written.
inline std::optional<Commits> commits_in(const JournalImage& image) {
  Commits commits;
  bool sound = true;
  if (image.generation != 0) {
    const ByteSpan snapshot = image.snapshot();
    sound = snapshot.size() % 4 == 0;
    for (std::size_t at = 0; at + 4 <= snapshot.size(); at += 4)
      commits.push_back(keyfold::detail::load_number<std::uint32_t>(snapshot.data() + at));
  }
  image.for_each_frame([&](ByteSpan payload, std::uint64_t number, std::size_t) {
    commits.push_back(payload.size() < 4 ? 0 : keyfold::detail::load_number<std::uint32_t>(payload.data()));
    sound = sound && std::ranges::equal(payload, payload_of(commits.back())) && number == commits.size();
  });
  return sound ? std::optional(commits) : std::nullopt;
}

enum class Mode : std::uint8_t { every_commit, buffered };

// How the program around the journal may be wrong, beside the flaws of the disk.
struct Habits {
  bool acknowledges_before_sync = false;
  bool trusts_what_it_reads =
      false;  // goes on in the log of a process that was killed, instead of copying it
};

template <class Checks = keyfold::detail::FrameChecks>
class JournalProgram {
 public:
  JournalProgram(std::uint64_t seed, Mode mode, Flaw flaw = Flaw::none, Habits habits = {})
      : disk(seed * 2 + 1, flaw), dice_(seed), mode_(mode), habits_(habits) {}

  // One life: opens, does some operations, and ends in one way or another. A fault may be scheduled on the
  // disk before. Returns what is wrong, or nothing.
  std::string live() {
    try {
      keyfold::detail::JournalImage image = keyfold::detail::read_journal<Checks>(disk);
      if (std::string wrong = check(image); !wrong.empty()) return wrong;
      const Commits found = *commits_in(image);
      if (habits_.trusts_what_it_reads) trust(image);
      Journal<MemoryDisk, Checks> journal(disk, image);
      // From here on it is told to the world.
      begun_ = found;
      acknowledged_ = durable_ = begun_.size();
      if (image.generation == 0) journal.checkpoint([](auto&) {});
      work(journal);
    } catch (const PowerCut&) {
    } catch (const keyfold::IoError&) {  // opening, or the first checkpoint, failed
    } catch (const keyfold::CorruptJournal& damage) {
      return std::string("an accident is taken for damage: ") + damage.what();
    } catch (const std::exception& error) {
      return std::string("unexpected: ") + error.what();
    }
    return {};
  }

  void cut_power() {
    disk.cut_power();
    acknowledged_ = durable_;
    ++power_cuts;
  }
  void kill() { disk.kill(); }

  MemoryDisk disk;
  std::size_t power_cuts = 0;

 private:
  // What is there must be a beginning of what was begun, and have what was promised.
  std::string check(const JournalImage& image) const {
    const auto found = commits_in(image);
    if (!found) return "a payload that was never written";
    if (found->size() > begun_.size() || !std::equal(found->begin(), found->end(), begun_.begin()))
      return "commits that were never made, or not in this order";
    if (found->size() < acknowledged_)
      return "of " + std::to_string(acknowledged_) + " promised commits only " +
             std::to_string(found->size()) + " are there";
    return {};
  }

  void trust(JournalImage& image) {
    if (image.generation == 0) return;
    auto log = disk.open_to_append(keyfold::detail::log_name(image.generation));
    disk.truncate(log, image.end);
    disk.sync(log);
    if (!image.clean) keyfold::detail::write_all(disk, marker_ = disk.create("CLEAN"), Bytes(1));
    image.clean = true;
  }

  template <class AnyJournal>
  void work(AnyJournal& journal) {
    for (std::size_t steps = 1 + dice_.below(7); steps > 0 && !journal.failure(); --steps) {
      try {
        step(journal);
      } catch (const keyfold::IoError&) {  // the store says whether it goes on
      }
    }
    if (dice_.one_in(3) && !journal.failure()) {
      try {
        journal.close();
        promise_all();
      } catch (const keyfold::IoError&) {
      }
    }
  }

  template <class AnyJournal>
  void step(AnyJournal& journal) {
    switch (dice_.below(8)) {
      case 0:
        journal.checkpoint([this](auto& sink) { this->write_state(sink); });
        return promise_all();
      case 1:
        journal.sync();
        return promise_all();
      default:
        return commit(journal);
    }
  }

  template <class AnyJournal>
  void commit(AnyJournal& journal) {
    begun_.push_back(++next_);
    try {
      journal.append(payload_of(next_));
    } catch (const keyfold::IoError&) {  // it is not there, and never will be
      begun_.pop_back();
      throw;
    }
    if (mode_ == Mode::buffered || habits_.acknowledges_before_sync) acknowledged_ = begun_.size();
    if (mode_ == Mode::buffered) return;
    if (habits_.acknowledges_before_sync) durable_ = begun_.size();
    journal.sync();
    promise_all();
  }

  void promise_all() { acknowledged_ = durable_ = begun_.size(); }

  template <class Sink>
  void write_state(Sink& sink) {
    for (const std::uint32_t commit : begun_) {
      Bytes bytes;
      keyfold::detail::put_number(bytes, commit);
      sink.write(bytes);
    }
  }

  Dice dice_;
  Mode mode_;
  Habits habits_;
  MemoryDisk::File marker_;
  Commits begun_;                 // all that may be there, in order
  std::size_t acknowledged_ = 0;  // of them, what must be there now
  std::size_t durable_ = 0;       // and after a cut of power
  std::uint32_t next_ = 0;
};

// What has become of many lives.
struct Lives {
  std::size_t lives = 0;
  std::size_t power_cuts = 0;
  std::string wrong;  // the first thing that was wrong
};

// Runs programs until something is wrong, or `power_cuts` were survived. In each, an accident happens at one
// operation of its first lives, chosen so that every operation has its turn; then more accidents, at random.
template <class Checks = keyfold::detail::FrameChecks>
Lives run_lives(std::uint64_t seed, std::size_t power_cuts, Flaw flaw = Flaw::none, Habits habits = {}) {
  Lives total;
  const auto live = [&](JournalProgram<Checks>& program, std::uint64_t number, std::size_t at) {
    ++total.lives;
    total.wrong = program.live();
    if (!total.wrong.empty()) {
      total.wrong += " (program " + std::to_string(number) + ", operation " + std::to_string(at) + ")";
      return false;
    }
    return true;
  };
  for (std::uint64_t number = seed; total.power_cuts < power_cuts; ++number) {
    const Mode mode = number % 2 == 0 ? Mode::every_commit : Mode::buffered;
    bool reached = true;
    for (std::size_t at = 0; reached; ++at) {
      JournalProgram<Checks> program(number, mode, flaw, habits);
      Dice dice(number * 1000003 + at);
      if (number % 3 != 0 && !live(program, number, at)) return total;  // a life before the accident
      const std::size_t rounds = 2 + dice.below(4);
      for (std::size_t round = 0; round < rounds; ++round) {
        const auto fault = dice.one_in(4) ? MemoryDisk::Fault::error : MemoryDisk::Fault::power_cut;
        program.disk.schedule(fault, round == 0 ? at : dice.below(30));
        if (!live(program, number, at)) return total;
        if (round == 0) reached = program.disk.fault_happened();
        dice.one_in(5) ? program.kill() : program.cut_power();
      }
      program.disk.schedule(MemoryDisk::Fault::none, 0);
      if (!live(program, number, at)) return total;
      total.power_cuts += program.power_cuts;
    }
  }
  return total;
}

}  // namespace keyfold_test
