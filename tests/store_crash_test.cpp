// Power cuts, kills and disk errors at every operation of a store. What is there afterwards must be the table
// as it was after some write, to the last byte of its snapshot: rows, history, times, tags, numbers and what
// feeds have left; and not before the last one that was promised.
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>

#include <boost/describe.hpp>

#include <algorithm>
#include <array>
#include <iostream>
#include <sstream>

#include "support/catch.hpp"
#include "support/memory_disk.hpp"
#include "support/property.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace {

struct Part {
  int id = 0;
  std::string name;
  std::optional<int> bin;
  bool operator==(const Part&) const = default;
};
BOOST_DESCRIBE_STRUCT(Part, (), (id, name, bin))

using Parts = kf::Table<Part, kf::Key<&Part::id>, kf::UniqueBy<&Part::bin>>;
using PartStore = kf::Store<Parts, SharedDisk>;

std::string saved(const Parts& table) {
  std::ostringstream out;
  kf::save(table, out);
  return std::move(out).str();
}

// One write, to be done to a store and to a copy of its table.
struct Write {
  std::size_t verb;
  int a;
  int b;
  std::vector<Part> rows;
};

// Events by the names of parts, which grow; each deletes, or sets what it brings.
struct PartEvent {
  int id = 0;
  std::string name;
  std::optional<int> bin;
};
BOOST_DESCRIBE_STRUCT(PartEvent, (), (id, name, bin))

template <class Target>
void feed(Target& target, const Write& write) {
  std::vector<PartEvent> events;
  for (const Part& part : write.rows) events.push_back({part.id, part.name, part.bin});
  target.apply_changes(std::move(events))
      .template sequence_by<&PartEvent::name>()
      .apply_as_deletes([&write](const PartEvent& event) {
        return event.name.size() % 4 == static_cast<std::size_t>(write.b % 4);
      })
      .ignore_null_updates()
      .execute();
}

template <class Target>
void perform(Target& target, const Parts& table, const Write& write) {
  const auto version = table.version() == 0 ? 0 : static_cast<kf::Version>(write.a) % table.version() + 1;
  switch (write.verb) {
    case 0:
      target.erase(write.a % 8);
      break;
    case 1:
      target.tag("tag" + std::to_string(write.b % 3), version);
      break;
    case 2:
      target.untag("tag" + std::to_string(write.b % 3));
      break;
    case 3:
      target.restore(version);
      break;
    case 4:
      target.once("loader", static_cast<std::uint64_t>(write.b)).upsert(write.rows);
      break;
    case 5:
      target.metadata("note").upsert(write.rows);
      break;
    case 6: {
      auto transaction = target.transaction();
      transaction.upsert(write.rows);
      transaction.erase(write.b % 8);
      transaction.commit();
      break;
    }
    case 7:
      target.merge(write.rows)
          .when_matched()
          .erase()
          .when_not_matched()
          .insert_all()
          .when_not_matched_by_source(kf::target<&Part::id> == write.a % 8)
          .update(kf::target<&Part::id> = write.b % 8 + 8)
          .execute();
      break;
    case 8:
      target.expire(kf::keep_last(static_cast<std::size_t>(write.b % 6)));
      break;
    case 9:
    case 10:
      feed(target, write);
      break;
    case 11: {
      auto transaction = target.transaction();
      feed(transaction, write);
      transaction.erase(write.b % 8);
      feed(transaction, write);
      transaction.commit();
      break;
    }
    default:
      target.upsert(write.rows);
  }
}

class StoreProgram {
 public:
  StoreProgram(std::uint64_t seed, kf::Durability durability, bool promises_too_much = false)
      : disk(seed + 99), dice_(seed), promises_too_much_(promises_too_much) {
    options_.durability = durability;
    options_.checkpoint_bytes = 4000;
    options_.table.clock = [this] { return now_; };
    states_.push_back(saved(Parts(options_.table)));
  }

  // Opens, writes, and ends in one way or another. Returns what is wrong, or nothing.
  std::string live() {
    try {
      PartStore store(SharedDisk{&disk}, options_);
      if (std::string wrong = check(saved(store.table())); !wrong.empty()) return wrong;
      in_doubt_ = false;
      for (std::size_t left = 1 + dice_.below(6); left > 0 && !in_doubt_; --left) {
        if (std::string wrong = step(store); !wrong.empty()) return wrong;
      }
      if (dice_.one_in(3)) {
        store.close();
        durable_ = acknowledged_;
      }
      disk.die();
    } catch (const PowerCut&) {
    } catch (const kf::IoError&) {
    } catch (const kf::Error& error) {
      return std::string("an accident is taken for something else: ") + error.what();
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
  std::string check(const std::string& found) {
    const auto from = states_.begin() + static_cast<std::ptrdiff_t>(acknowledged_);
    const auto at = std::find(from, states_.end(), found);
    if (at == states_.end())
      return std::ranges::find(states_, found) == states_.end() ? "a table that never was"
                                                                : "a promise is broken";
    states_.erase(at + 1, states_.end());
    acknowledged_ = durable_ = states_.size() - 1;
    return {};
  }

  std::string step(PartStore& store) {
    now_ += std::chrono::microseconds(dice_.below(3));
    if (dice_.one_in(8)) {
      dice_.one_in(2) ? store.checkpoint() : store.sync();
      durable_ = acknowledged_;
      if (store.durable_version() != store.table().version()) return "what was synced is not called durable";
      return {};
    }
    const Write write = any_write();
    Parts after(store.table());
    if (!try_on_copy(after, write)) return {};
    const std::string before = saved(store.table());
    const std::string expected = saved(after);
    states_.push_back(expected);
    try {
      perform(store, store.table(), write);
    } catch (const kf::CommitInDoubt&) {
      in_doubt_ = true;
      return saved(store.table()) == before ? "" : "a commit in doubt is in memory";
    } catch (const kf::IoError&) {
      states_.pop_back();
      return saved(store.table()) == before ? "" : "a commit that failed is in memory";
    }
    acknowledged_ = states_.size() - 1;
    if (promises_too_much_ || options_.durability.mode == kf::Durability::Mode::every_commit)
      durable_ = acknowledged_;
    return saved(store.table()) == expected
               ? std::string()
               : "the table is not as one in memory would be, verb " + std::to_string(write.verb);
  }

  Write any_write() {
    Write write{dice_.below(20), static_cast<int>(dice_.below(100)), static_cast<int>(dice_.below(12)), {}};
    for (int id = static_cast<int>(dice_.below(3)); id < 8; id += 1 + static_cast<int>(dice_.below(5))) {
      Part part{id, std::string(dice_.below(40), 'n'), {}};
      if (dice_.one_in(2)) part.bin = static_cast<int>(dice_.below(6));
      write.rows.push_back(part);
    }
    return write;
  }

  // Whether it can be done at all.
  static bool try_on_copy(Parts& copy, const Write& write) {
    try {
      perform(copy, copy, write);
      return true;
    } catch (const kf::Error&) {
      return false;
    }
  }

  Dice dice_;
  bool promises_too_much_;
  bool in_doubt_ = false;
  kf::Timestamp now_{};
  kf::StoreOptions options_;
  std::vector<std::string> states_;  // all that may be there, in order
  std::size_t acknowledged_ = 0;     // of them, what must be there now
  std::size_t durable_ = 0;          // and after a cut of power
};

struct Total {
  std::size_t lives = 0;
  std::size_t power_cuts = 0;
  std::string wrong;
};

constexpr std::array modes{kf::durability::every_commit, kf::durability::buffered};

Total run(std::uint64_t seed, std::size_t power_cuts, bool promises_too_much = false) {
  Total total;
  for (std::uint64_t number = seed; total.power_cuts < power_cuts && total.wrong.empty(); ++number) {
    bool reached = true;
    for (std::size_t at = 0; reached && total.wrong.empty(); ++at) {
      StoreProgram program(number, modes[number % 2], promises_too_much);
      Dice dice(number * 1000003 + at);
      for (std::size_t round = 0; round < 5 && total.wrong.empty(); ++round) {
        const auto fault = dice.one_in(4) ? MemoryDisk::Fault::error : MemoryDisk::Fault::power_cut;
        if (round == 0 || round == 4) {
          program.disk.schedule(MemoryDisk::Fault::none, 0);
        } else {
          program.disk.schedule(fault, round == 1 ? at : dice.below(30));
        }
        ++total.lives;
        total.wrong = program.live();
        if (round == 1) reached = program.disk.fault_happened();
        dice.one_in(5) ? program.kill() : program.cut_power();
      }
      if (!total.wrong.empty())
        total.wrong += " (program " + std::to_string(number) + ", operation " + std::to_string(at) + ")";
      total.power_cuts += program.power_cuts;
    }
  }
  return total;
}

}  // namespace

TEST_CASE(
    "a store that is opened after an accident is what it was after some write, and after all promised ones") {
  const Total total = run(1, wanted("KEYFOLD_POWER_CUTS", 500'000) / 50);
  std::cout << "store: " << total.power_cuts << " cuts of power in " << total.lives << " lives, "
            << (total.wrong.empty() ? "none" : "the last one") << " wrong\n";
  CHECK(total.wrong == "");
}

TEST_CASE("a store that promises more than it keeps is caught") { CHECK(run(1, 5'000, true).wrong != ""); }
