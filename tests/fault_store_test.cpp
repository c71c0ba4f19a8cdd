// Faults in a store: at every allocation and operation of the rows, and at every file operation, while it is
// opened, written to, checkpointed, closed. In memory a write is made or not; on disk is what was
// acknowledged, and nothing else but a commit in doubt.
#include <keyfold/store.hpp>

#include <array>
#include <functional>
#include <iostream>
#include <optional>

#include "support/fault_check.hpp"
#include "support/memory_disk.hpp"
#include "support/property.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace keyfold_test {
template <class Archive, bool nothrow_moves>
void serialize(Archive& archive, Fragile<nothrow_moves>& value, const unsigned) {
  int number = value.get();
  archive & number;
  if constexpr (Archive::is_loading::value) value = Fragile<nothrow_moves>(number);
}
}  // namespace keyfold_test

namespace {

// --- A disk whose operations fail

enum class DiskFault : std::uint8_t { none, error, error_for_good, error_and_no_memory, short_write };

constexpr std::array disk_faults{DiskFault::error, DiskFault::error_for_good, DiskFault::error_and_no_memory,
                                 DiskFault::short_write};

// The operations on a disk, the nth of which fails, from 1.
struct Operations {
  explicit Operations(MemoryDisk& used) : disk(used) {}

  void fail(DiskFault fault, std::size_t nth) {
    kind = fault;
    to_fail = nth;
    count = 0;
    failed = false;
  }
  bool next() {
    ++count;
    const bool fails = kind == DiskFault::error_for_good ? count >= to_fail : count == to_fail;
    return kind != DiskFault::none && fails;
  }

  MemoryDisk& disk;
  DiskFault kind = DiskFault::none;
  std::size_t to_fail = 0;
  std::size_t count = 0;
  bool failed = false;
};

// As on the real disk, those operations that name a file may want memory before they begin, and each where it
// should tell what has failed.
class FaultyDisk {
 public:
  using File = MemoryDisk::File;
  using Lock = MemoryDisk::Lock;

  explicit FaultyDisk(Operations& operations) : operations_(&operations) {}

  std::string path(const std::string& name) const { return name; }
  std::vector<std::string> list() const {
    want_memory();
    return run(Changes::no, [&] { return disk().list(); });
  }
  Bytes read(const std::string& name) const {
    want_memory();
    return run(Changes::no, [&] { return disk().read(name); });
  }
  File create(const std::string& name) const {
    want_memory();
    return run(Changes::yes, [&] { return disk().create(name); });
  }
  File open_to_append(const std::string& name) const {
    want_memory();
    return run(Changes::yes, [&] { return disk().open_to_append(name); });
  }
  std::size_t write(File& file, std::span<const std::byte> bytes) const {
    return run(Changes::yes, [&] {
      if (!shortened_) return disk().write(file, bytes);
      shortened_ = false;
      return disk().write(file, bytes.first((bytes.size() + 1) / 2));
    });
  }
  void truncate(File& file, std::uint64_t size) const {
    run(Changes::yes, [&] { disk().truncate(file, size); });
  }
  void sync(File& file) const {
    run(Changes::yes, [&] { disk().sync(file); });
  }
  void rename(const std::string& from, const std::string& to) const {
    run(Changes::yes, [&] { disk().rename(from, to); });
  }
  void remove(const std::string& name) const {
    run(Changes::yes, [&] { disk().remove(name); });
  }
  void sync_directory() const {
    run(Changes::yes, [&] { disk().sync_directory(); });
  }
  Lock lock(const std::string& name) const {
    want_memory();
    return run(Changes::no, [&] { return disk().lock(name); });
  }
  std::uint64_t draw() const { return disk().draw(); }

 private:
  enum class Changes : bool { no, yes };

  MemoryDisk& disk() const { return operations_->disk; }
  static void want_memory() {
    if (Faults::fails(Event::allocate)) throw InjectedBadAlloc();
  }

  template <class Operation>
  std::invoke_result_t<Operation> run(Changes changes, Operation operation) const {
    const FaultPause pause;
    shortened_ = false;
    if (operations_->next()) {
      operations_->failed = true;
      shortened_ = operations_->kind == DiskFault::short_write;
      if (!shortened_) return failing(changes, operation);
    }
    return operation();
  }

  template <class Operation>
  std::invoke_result_t<Operation> failing(Changes changes, Operation& operation) const {
    try {
      if (changes == Changes::no)
        throw kf::IoError("read", "a file", std::make_error_code(std::errc::io_error));
      disk().schedule(MemoryDisk::Fault::error, 0);
      return operation();
    } catch (const kf::IoError&) {
      if (operations_->kind == DiskFault::error_and_no_memory) throw InjectedBadAlloc();
      throw;
    }
  }

  Operations* operations_;
  mutable bool shortened_ = false;
};

// --- What is done

template <class Value>
using TableOf = kf::Table<Item<Value>, kf::Key<&Item<Value>::id>, kf::OrderedBy<&Item<Value>::rank>,
                          kf::UniqueBy<&Item<Value>::code>>;
template <class Value>
using StoreOf = kf::Store<TableOf<Value>, FaultyDisk>;

template <class Value>
Item<Value> row(int id, int code, int amount = 0) {
  return item_of<Value>({id, code, id % 2, 9 - id, amount});
}

template <class Value>
struct Verb {
  const char* name;
  std::function<void(StoreOf<Value>&)> run;
  kf::Durability durability = kf::durability::every_commit;
  std::uint64_t checkpoint_bytes = 1U << 20U;
  std::function<void(StoreOf<Value>&)> prepare{};  // without faults
};

template <class Value>
std::vector<Verb<Value>> verbs() {
  using Store = StoreOf<Value>;
  using Rows = std::vector<Item<Value>>;
  const auto upsert = [](Store& store) {
    store.upsert(Rows{row<Value>(1, 101, 7), row<Value>(3, 109), row<Value>(8, 108)});
  };
  return {
      {"upsert", upsert},
      {"upsert, buffered", upsert, kf::durability::buffered},
      {"upsert with a checkpoint", upsert, kf::durability::every_commit, 1},
      {"merge",
       [](Store& store) {
         store.metadata("text that is too long for the small buffer of a string")
             .merge(Rows{row<Value>(1, 101), row<Value>(3, 103)})
             .when_matched()
             .erase()
             .when_not_matched_by_source()
             .update([](const Item<Value>& old) {
               Item<Value> moved = old;
               moved.id = value_of<Value>(number_of(old.id) + 100);
               return moved;
             })
             .execute();
       }},
      {"a transaction",
       [](Store& store) {
         auto transaction = store.transaction();
         transaction.insert(row<Value>(9, 110));
         transaction.once("app", 6).erase(value_of<Value>(1));
         transaction.commit();
       }},
      {"restore", [](Store& store) { store.restore("first"); }},
      {"undo", [](Store& store) { store.undo(store.table().version()); }},
      {"tag", [](Store& store) { store.tag("a tag with a name beyond the small buffer", 2); }},
      {"untag", [](Store& store) { store.untag("first"); }},
      {"expire", [](Store& store) { store.expire(kf::keep_last(1)); }},
      {"checkpoint", [](Store& store) { store.checkpoint(); }},
      {"sync, buffered", [](Store& store) { store.sync(); }, kf::durability::buffered, 1U << 20U, upsert},
      {"verify", [](Store& store) { static_cast<void>(store.verify()); }},
      {"close", [](Store& store) { store.close(); }},
      {"close, buffered", [](Store& store) { store.close(); }, kf::durability::buffered, 1U << 20U, upsert},
  };
}

template <class Value>
kf::StoreOptions options_of(const Verb<Value>& verb) {
  kf::StoreOptions options;
  options.durability = verb.durability;
  options.checkpoint_bytes = verb.checkpoint_bytes;
  options.table.clock = [] { return kf::Timestamp(std::chrono::microseconds(1000)); };
  return options;
}

enum class End : std::uint8_t { closed, killed, torn };

// A directory with commits of all sorts, some in the snapshot and some in the log.
template <class Value>
MemoryDisk written(End end) {
  MemoryDisk disk(7);
  disk.short_writes = false;
  Operations operations(disk);
  {
    StoreOf<Value> store(FaultyDisk(operations), options_of(Verb<Value>{}));
    store.append(std::vector<Item<Value>>{row<Value>(1, 101), row<Value>(2, -1), row<Value>(4, 104)});
    store.tag("first", 1);
    store.upsert(row<Value>(2, 102));
    store.checkpoint();
    store.once("app", 5).insert(row<Value>(3, 103));
    store.erase(value_of<Value>(4));
    store.upsert(row<Value>(1, 106, 3));
    if (end == End::closed) store.close();
    disk.die();
  }
  disk.kill();
  if (end == End::torn) {
    Bytes& log = disk.contents("log-2");
    log.resize(log.size() + 21, std::byte{7});
    disk.create("snapshot-3.tmp");
  }
  return disk;
}

template <class Value>
State state_on(MemoryDisk& disk) {
  Operations operations(disk);
  StoreOf<Value> store(FaultyDisk(operations), options_of(Verb<Value>{}));
  State state = state_of(store.table());
  disk.die();
  return state;
}

// --- The check

enum class Thrown : std::uint8_t { nothing, fault, no_memory, io_error, in_doubt, store_failed, other };

template <class Action>
Thrown attempt(Action action) {
  try {
    action();
    return Thrown::nothing;
  } catch (const InjectedFault&) {
    return Thrown::fault;
  } catch (const InjectedBadAlloc&) {
    return Thrown::no_memory;
  } catch (const kf::CommitInDoubt&) {
    return Thrown::in_doubt;
  } catch (const kf::StoreFailed&) {
    return Thrown::store_failed;
  } catch (const kf::IoError&) {
    return Thrown::io_error;
  } catch (...) {
    return Thrown::other;
  }
}

// What fails: an event of memory and rows, or an operation of the disk.
struct Failing {
  std::uint64_t event = 0;
  FaultMode mode = FaultMode::single;
  std::size_t operation = 0;
  DiskFault disk = DiskFault::none;
};

struct Figures {
  std::uint64_t events = 0;
  std::uint64_t operations = 0;
  std::array<std::uint64_t, 7> thrown{};
};

template <class Value>
class StoreFaults {
 public:
  using Store = StoreOf<Value>;

  void check_verb(const Verb<Value>& verb) {
    const MemoryDisk intact = written<Value>(End::killed);
    everywhere(verb.name, [&](const Failing& failing) {
      MemoryDisk disk = intact.copy();
      return run_verb(verb, disk, failing);
    });
  }

  void check_opening(End end) {
    const MemoryDisk intact = written<Value>(end);
    MemoryDisk at_first = intact.copy();
    before_ = state_on<Value>(at_first);
    everywhere("opening", [&](const Failing& failing) {
      MemoryDisk disk = intact.copy();
      return run_opening(disk, failing);
    });
  }

  void check_first_opening() {
    before_ = {};
    everywhere("the first opening", [&](const Failing& failing) {
      MemoryDisk disk(3);
      disk.short_writes = false;
      return run_opening(disk, failing);
    });
  }

  Figures figures;

 private:
  struct Events {
    std::uint64_t events;
    std::size_t operations;
  };

  // `run(failing)` does it all once and returns what was counted.
  template <class Run>
  void everywhere(const char* name, Run run) {
    context_ = name;
    const Events all = run(Failing{});
    REQUIRE(all.operations > 0);
    const auto stride = static_cast<std::uint64_t>(std::max(1, 100 / scaled(100)));
    for (std::uint64_t event = 1; event <= all.events; event += stride) {
      for (const FaultMode mode : {FaultMode::single, FaultMode::from_then_on}) {
        context_ = std::string(name) + ", event " + std::to_string(event) +
                   (mode == FaultMode::single ? "" : " and all after it");
        run_once(run, {.event = event, .mode = mode});
        ++figures.events;
      }
    }
    for (std::size_t operation = 1; operation <= all.operations; ++operation) {
      for (const DiskFault fault : disk_faults) {
        context_ = std::string(name) + ", disk operation " + std::to_string(operation) + ", fault " +
                   std::to_string(static_cast<int>(fault));
        run_once(run, {.operation = operation, .disk = fault});
        ++figures.operations;
      }
    }
  }

  template <class Run>
  void run_once(Run& run, const Failing& failing) {
    const std::ptrdiff_t values = live_values<Value>();
    const std::ptrdiff_t misused = misused_values<Value>();
    const std::ptrdiff_t blocks = Faults::live_blocks;
    run(failing);
    expect(live_values<Value>() == values, "values leaked, or died twice");
    expect(misused_values<Value>() == misused, "a value was used that does not live");
    expect(Faults::live_blocks == blocks, "memory leaked, or was freed twice");
  }

  Events run_verb(const Verb<Value>& verb, MemoryDisk& disk, const Failing& failing) {
    const bool clean_run = failing.event == 0 && failing.operation == 0;
    Operations operations(disk);
    Events counted{};
    Thrown last{};
    bool in_doubt = false;
    {
      Store store(FaultyDisk(operations), options_of(verb));
      if (verb.prepare) verb.prepare(store);
      if (clean_run) before_ = state_of(store.table());
      const auto run = [&] { verb.run(store); };
      last = fail_in(operations, failing, counted, run);
      in_doubt = last == Thrown::in_doubt || (operations.failed && last == Thrown::no_memory);
      if (clean_run) {
        expect(last == Thrown::nothing, "the clean run throws");
        after_ = state_of(store.table());
      }
      expect(state_of(store.table()) == (last == Thrown::nothing ? after_ : before_), "the table is another");
      if (last != Thrown::nothing) {
        last = attempt(run);  // the disk is well again
        expect(last == Thrown::nothing || last == Thrown::store_failed, "the second try throws");
        expect(state_of(store.table()) == (last == Thrown::nothing ? after_ : before_),
               "after a second try the table is another");
      }
      disk.die();
    }
    // In the other modes a cut of power may take more.
    if (verb.durability == kf::durability::every_commit && (failing.event + failing.operation) % 2 == 1) {
      disk.cut_power();
    } else {
      disk.kill();
    }
    const State found = state_on<Value>(disk);
    expect(found == (last == Thrown::nothing ? after_ : before_) || (in_doubt && found == after_),
           "on disk is something else");
    return counted;
  }

  Events run_opening(MemoryDisk& disk, const Failing& failing) {
    Operations operations(disk);
    Events counted{};
    std::optional<Store> store;
    fail_in(operations, failing, counted,
            [&] { store.emplace(FaultyDisk(operations), options_of(Verb<Value>{})); });
    if (store) expect(state_of(store->table()) == before_, "it was opened, and is another");
    disk.die();
    store.reset();
    (failing.event + failing.operation) % 2 == 1 ? disk.cut_power() : disk.kill();
    expect(state_on<Value>(disk) == before_, "on disk is something else");
    return counted;
  }

  template <class Action>
  Thrown fail_in(Operations& operations, const Failing& failing, Events& counted, Action action) {
    operations.fail(failing.disk, failing.operation);
    failing.event == 0 ? Faults::count() : Faults::arm(failing.event, failing.mode);
    const Thrown thrown = attempt(action);
    counted = {Faults::disarm(), operations.count};
    operations.kind = DiskFault::none;
    ++figures.thrown[static_cast<std::size_t>(thrown)];
    expect(thrown != Thrown::other, "something else is thrown");
    return thrown;
  }

  void expect(bool holds, const char* text) {
    if (holds) return;
    INFO(context_);
    FAIL_CHECK(text);
  }

  std::string context_;
  State before_;
  State after_;
};

template <class Value>
void check_everything() {
  StoreFaults<Value> faults;
  for (const Verb<Value>& verb : verbs<Value>()) faults.check_verb(verb);
  for (const End end : {End::closed, End::killed, End::torn}) faults.check_opening(end);
  faults.check_first_opening();
  const auto thrown = [&](Thrown what) { return faults.figures.thrown[static_cast<std::size_t>(what)]; };
  std::cout << "store: " << faults.figures.events << " faults of memory and rows, "
            << faults.figures.operations << " of the disk; " << thrown(Thrown::in_doubt)
            << " commits in doubt\n";
  for (const Thrown what : {Thrown::fault, Thrown::no_memory, Thrown::io_error, Thrown::in_doubt})
    CHECK(thrown(what) > 0);
}

}  // namespace

TEST_CASE("a store keeps its promises whatever fails: rows that move without throwing") {
  check_everything<Plain>();
}

TEST_CASE("a store keeps its promises whatever fails: rows whose moves throw") {
  check_everything<ThrowingMoves>();
}
