// A disk in memory with an opinion about fsync: whatever was not synced may be there after a cut of power, or
// not, or in part, or as zeros or rubbish; each write and each change of a name by itself.
#pragma once

#include <keyfold/detail/bytes.hpp>
#include <keyfold/storage_error.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace keyfold_test {

using keyfold::detail::Bytes;

// Thrown by the operation at which power is cut, and by all after it.
struct PowerCut {};

// Small and fast; good enough to choose accidents (SplitMix64, Steele et al., OOPSLA 2014).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t draw() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(draw() % bound); }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// What a disk, or a program that uses one, may get wrong: see journal_broken_test.cpp.
enum class Flaw : std::uint8_t {
  none,
  no_log_sync,
  no_snapshot_sync,
  no_directory_sync,
  snapshot_renamed_before_sync,
  old_generation_removed_early,
  failed_sync_ignored,
  marker_stays,
  marker_removed_without_sync,
  opened_without_directory_sync,
  failed_write_stays,
  short_write_ignored
};

class MemoryDisk {
  struct Inode {
    struct Op {
      bool is_truncate;
      std::size_t offset;  // or the size to truncate to
      Bytes bytes;
    };
    Bytes now;      // what a reader sees
    Bytes durable;  // without the operations in `pending`
    std::vector<Op> pending;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

 public:
  struct File {
    std::shared_ptr<Inode> inode;
    std::string name;
  };
  // What goes wrong at an operation.
  enum class Fault : std::uint8_t { none, power_cut, error };

  explicit MemoryDisk(std::uint64_t seed = 0, Flaw disk_flaw = Flaw::none) : flaw(disk_flaw), dice_(seed) {}

  // --- The policy

  std::string path(const std::string& name) const { return name; }

  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto& [name, inode] : names_) names.push_back(name);
    return names;
  }
  Bytes read(const std::string& name) const { return names_.at(name)->now; }

  File create(const std::string& name) {
    const bool fails = begins_to_fail();
    if (!fails || dice_.one_in(2)) {
      auto& inode = names_[name];
      if (inode == nullptr) {
        inode = std::make_shared<Inode>();
        pending_names_.push_back({Rename::created, "", name, inode});
      } else {
        truncate_to(*inode, 0);
      }
    }
    if (fails) fail("open", name);
    after();
    return {names_.at(name), name};
  }
  File open_to_append(const std::string& name) {
    if (begins_to_fail()) fail("open", name);
    after();
    return {names_.at(name), name};
  }

  // Sometimes less than is asked for. A write that fails has written less than all of it.
  std::size_t write(File& file, std::span<const std::byte> bytes) {
    const bool fails = begins_to_fail();
    std::size_t count = bytes.size();
    if (fails) count = dice_.below(bytes.size());
    if (!fails && short_writes && dice_.one_in(8)) count = 1 + dice_.below(bytes.size());
    Inode& inode = *file.inode;
    if (count != 0) {
      const auto part = bytes.first(count);
      inode.pending.push_back({false, inode.now.size(), Bytes(part.begin(), part.end())});
      inode.now.insert(inode.now.end(), part.begin(), part.end());
    }
    if (fails) fail("write", file.name);
    after();
    return flaw == Flaw::short_write_ignored ? bytes.size() : count;
  }

  void truncate(File& file, std::uint64_t size) {
    if (flaw == Flaw::failed_write_stays) return;
    if (begins_to_fail()) fail("truncate", file.name);
    truncate_to(*file.inode, static_cast<std::size_t>(size));
    after();
  }

  void sync(File& file) {
    if (flaw == Flaw::no_log_sync && file.name.starts_with("log")) return;
    if (flaw == Flaw::no_snapshot_sync && file.name.starts_with("snapshot")) return;
    if (flaw == Flaw::snapshot_renamed_before_sync && file.name.starts_with("snapshot")) {
      unsynced_ = file;
      return;
    }
    if (begins_to_fail()) {
      // The kernel has tried, and takes the pages for clean from now on.
      for (const auto& op : file.inode->pending)
        if (dice_.one_in(2)) carry_out(file.inode->durable, op);
      file.inode->pending.clear();
      if (flaw == Flaw::failed_sync_ignored) return after();
      fail("fsync", file.name);
    }
    for (const auto& op : file.inode->pending) carry_out(file.inode->durable, op);
    file.inode->pending.clear();
    after();
  }

  void rename(const std::string& from, const std::string& to) {
    if (flaw == Flaw::old_generation_removed_early && from.starts_with("snapshot"))
      remove_generation_before(to);
    const bool fails = begins_to_fail();
    if (!fails || dice_.one_in(2)) {
      const auto inode = names_.at(from);
      names_.erase(from);
      names_[to] = inode;
      pending_names_.push_back({Rename::moved, from, to, inode});
    }
    if (fails) fail("rename", from);
    after();
    if (unsynced_.inode != nullptr && from.starts_with("snapshot")) {
      carry_out_all(*unsynced_.inode);
      unsynced_ = {};
    }
  }

  void remove(const std::string& name) {
    if (flaw == Flaw::marker_stays && name == "CLEAN") return;
    const bool fails = begins_to_fail();
    if (names_.find(name) == names_.end()) fail("remove", name);
    if (!fails || dice_.one_in(2)) {
      names_.erase(name);
      pending_names_.push_back({Rename::removed, name, "", nullptr});
    }
    if (fails) fail("remove", name);
    after();
    skip_directory_sync_ = flaw == Flaw::marker_removed_without_sync && name == "CLEAN";
  }

  // One that fails leaves the names to the next.
  void sync_directory() {
    if (flaw == Flaw::no_directory_sync || std::exchange(skip_directory_sync_, false)) return;
    if (begins_to_fail()) fail("fsync", ".");
    durable_names_ = names_;
    pending_names_.clear();
    after();
  }

  struct Lock {
    std::shared_ptr<bool> held;
    Lock() = default;
    explicit Lock(std::shared_ptr<bool> flag) : held(std::move(flag)) { *held = true; }
    Lock(Lock&&) = default;
    Lock& operator=(Lock&&) = default;
    ~Lock() {
      if (held != nullptr) *held = false;
    }
  };
  Lock lock(const std::string& name) {
    if (*locked_) throw keyfold::StoreLocked(name);
    return Lock(locked_);
  }

  std::uint64_t draw() { return ++drawn_ * 0x9E3779B97F4A7C15U; }

  // --- Accidents

  // The operation number `at` from now on (0 is the next one) goes wrong.
  void schedule(Fault fault, std::size_t at) {
    fault_ = fault;
    until_fault_ = at;
  }
  std::size_t operations() const { return operations_; }
  bool fault_happened() const { return fault_ == Fault::none; }

  // The process does nothing more.
  void die() { dead_ = true; }

  // The process is gone, and what the kernel has stays.
  void kill() {
    schedule(Fault::none, 0);
    dead_ = false;
    skip_directory_sync_ = flaw == Flaw::opened_without_directory_sync;
    unsynced_ = {};
  }

  // Power is gone, too.
  void cut_power() {
    kill();
    const std::size_t luck = dice_.below(4);  // 0: nothing is lost; 1: all that can be; else: each by itself
    for (const Rename& op : pending_names_)
      if (luck == 0 || (luck > 1 && dice_.one_in(2))) carry_out(durable_names_, op);
    pending_names_.clear();
    names_ = durable_names_;
    for (const auto& [name, inode] : names_) {
      for (const auto& op : inode->pending) lose(*inode, op, luck);
      inode->pending.clear();
      inode->now = inode->durable;
    }
  }

  // Direct access, for damage.
  Bytes& contents(const std::string& name) {
    names_.at(name)->durable = names_.at(name)->now;
    names_.at(name)->pending.clear();
    return names_.at(name)->now;
  }
  void forget(const std::string& name) { names_.erase(name); }
  MemoryDisk copy() const {
    MemoryDisk result(*this);
    result.names_.clear();
    for (const auto& [name, inode] : names_) result.names_[name] = std::make_shared<Inode>(*inode);
    result.durable_names_ = result.names_;
    result.pending_names_.clear();
    result.locked_ = std::make_shared<bool>(false);
    return result;
  }

  Flaw flaw;
  bool short_writes = true;

 private:
  struct Rename {
    enum Kind : std::uint8_t { created, moved, removed } kind;
    std::string from;
    std::string to;
    std::shared_ptr<Inode> inode;
  };

  bool begins_to_fail() {
    if (dead_) throw PowerCut();
    ++operations_;
    if (fault_ == Fault::none || until_fault_-- != 0) return false;
    if (std::exchange(fault_, Fault::none) == Fault::error) return true;
    dead_ = dying_ = true;
    return false;
  }
  // Power goes when the operation has been begun: it is among what may be lost.
  void after() {
    if (std::exchange(dying_, false)) throw PowerCut();
  }
  [[noreturn]] void fail(const char* operation, const std::string& name) {
    throw keyfold::IoError(
        operation, name,
        std::make_error_code(dice_.one_in(2) ? std::errc::io_error : std::errc::no_space_on_device));
  }

  static void truncate_to(Inode& inode, std::size_t size) {
    inode.pending.push_back({true, size, {}});
    inode.now.resize(size);
  }
  static void carry_out(Bytes& to, const Inode::Op& op) {
    if (op.is_truncate) return to.resize(op.offset);
    if (to.size() < op.offset + op.bytes.size()) to.resize(op.offset + op.bytes.size());
    std::ranges::copy(op.bytes, to.begin() + static_cast<std::ptrdiff_t>(op.offset));
  }
  static void carry_out_all(Inode& inode) {
    for (const auto& op : inode.pending) carry_out(inode.durable, op);
    inode.pending.clear();
  }
  void carry_out(Names& names, const Rename& op) {
    const bool both =
        op.kind == Rename::moved && dice_.one_in(4);  // the new name is there, the old one still
    if (!op.from.empty() && !both) names.erase(op.from);
    if (!op.to.empty()) names[op.to] = op.inode;
  }

  void lose(Inode& inode, const Inode::Op& op, std::size_t luck) {
    const std::size_t fate = luck == 0 ? 0 : luck == 1 ? 1 : dice_.below(6);
    if (fate == 0) return carry_out(inode.durable, op);
    if (fate == 1) return;
    Inode::Op left = op;
    if (!op.is_truncate && !op.bytes.empty()) {
      const std::size_t from = dice_.below(op.bytes.size());
      const std::size_t to = from + dice_.below(op.bytes.size() - from + 1);
      if (fate == 2) left.bytes.resize(from);
      if (fate == 3)
        std::fill_n(left.bytes.begin() + static_cast<std::ptrdiff_t>(from), to - from, std::byte{0});
      for (std::size_t i = from; fate == 4 && i < to; ++i)
        left.bytes[i] = static_cast<std::byte>(dice_.draw());
      // A block that belonged to this file before, or to another one.
      for (std::size_t i = from; fate == 5 && i < to && !inode.durable.empty(); ++i)
        left.bytes[i] = inode.durable[(i + op.offset / 2) % inode.durable.size()];
    }
    carry_out(inode.durable, left);
  }

  void remove_generation_before(const std::string& snapshot) {
    const std::string before = std::to_string(std::stoull(snapshot.substr(snapshot.find('-') + 1)) - 1);
    for (const std::string& name : {"snapshot-" + before, "log-" + before})
      if (names_.contains(name)) remove(name);
  }

  Names names_;
  Names durable_names_;
  std::vector<Rename> pending_names_;
  std::shared_ptr<bool> locked_ = std::make_shared<bool>(false);
  Dice dice_;
  File unsynced_;
  std::uint64_t drawn_ = 0;
  std::size_t operations_ = 0;
  Fault fault_ = Fault::none;
  std::size_t until_fault_ = 0;
  bool dead_ = false;
  bool dying_ = false;
  bool skip_directory_sync_ = false;
};

// A disk that outlives the stores that use it.
struct SharedDisk {
  using File = MemoryDisk::File;
  using Lock = MemoryDisk::Lock;

  std::string path(const std::string& name) const { return disk->path(name); }
  std::vector<std::string> list() const { return disk->list(); }
  Bytes read(const std::string& name) const { return disk->read(name); }
  File create(const std::string& name) const { return disk->create(name); }
  File open_to_append(const std::string& name) const { return disk->open_to_append(name); }
  std::size_t write(File& file, std::span<const std::byte> bytes) const { return disk->write(file, bytes); }
  void truncate(File& file, std::uint64_t size) const { disk->truncate(file, size); }
  void sync(File& file) const { disk->sync(file); }
  void rename(const std::string& from, const std::string& to) const { disk->rename(from, to); }
  void remove(const std::string& name) const { disk->remove(name); }
  void sync_directory() const { disk->sync_directory(); }
  Lock lock(const std::string& name) const { return disk->lock(name); }
  std::uint64_t draw() const { return disk->draw(); }

  MemoryDisk* disk;
};

}  // namespace keyfold_test
