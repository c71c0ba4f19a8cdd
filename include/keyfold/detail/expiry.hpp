// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/core.hpp>
#include <keyfold/detail/table_readers.hpp>
#include <keyfold/options.hpp>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

/// Letting old versions go. expire() decides what is readable from now on; Sweep frees what no readable
/// version needs. A sweep that fails for want of memory changes nothing and is made up for by the next.
namespace keyfold::detail {

/// Rewrites the log before the oldest version of the unbroken sequence. Of the entries of a key between two
/// kept versions only the oldest is needed: its before image is what the earlier version reads. Those up to
/// the earliest kept version are not needed at all.
template <class CoreType>
class Sweep {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;
  using Block = LogBlock<Row>;

  /// Works out the new blocks; allocates them. Only reads what readers read. Throws std::bad_alloc and what
  /// the user's hashes and comparisons throw.
  explicit Sweep(CoreType& core) : core_(core), log_(*core.log), kept_(log_.pinned) {
    if (kept_.empty() || kept_.back() != log_.oldest - 1) kept_.push_back(log_.oldest - 1);
    for (const Block& block : log_.retired) {
      for (Entry* entry = const_cast<Block&>(block).first(); entry != nullptr; entry = block.next(entry))
        visit(*entry);
    }
    allocate();
  }

  /// Afterwards the old blocks are this object's, and nothing leads to them.
  void run() noexcept {
    for (Run& run : runs_) {
      if (run.interval != 0 && run.keep != Keep::nothing) move_bottom(run);
      set_below(resolve(run.above), run);
    }
    log_.retired.swap(blocks_);
  }

 private:
  enum class Keep : std::uint8_t { nothing, insert, update, erase };

  /// What leads to an entry: its row, the next change of the key, or the index of graves.
  struct Above {
    const Slot<Row>* slot = nullptr;
    Entry* entry = nullptr;
    std::uint64_t grave_hash = 0;  // if neither of the others
  };

  /// The entries of one key in one interval, newest (top) to oldest (bottom).
  struct Run {
    Above above;
    Entry* top = nullptr;
    Entry* bottom = nullptr;
    Entry* kept = nullptr;  // the bottom's new place
    std::uint64_t order = 0;
    std::size_t interval = 0;  // between kept_[interval - 1] and kept_[interval]
    Keep keep = Keep::nothing;
  };

  std::size_t interval_of(const Entry& entry) const {
    return static_cast<std::size_t>(std::lower_bound(kept_.begin(), kept_.end(), entry.version()) -
                                    kept_.begin());
  }

  void visit(Entry& entry) {
    const Above above = find_above(entry);
    const std::size_t interval = interval_of(entry);
    if (above.entry != nullptr && above.entry->version() <= kept_[interval])
      return;  // not the top of its run
    Run run{.above = above, .top = &entry, .interval = interval};
    descend(run);
    runs_.push_back(run);
  }

  // An entry that ends a life has no link upwards: the key leads to it from the top.
  // One walk down the chain tells it for all its ends.
  Above find_above(Entry& entry) {
    if (entry.leaves_row()) return {entry.newer_slot(), entry.newer_entry(), 0};
    if (const auto at = above_ends_.find(&entry); at != above_ends_.end()) return {nullptr, at->second, 0};
    const auto key = CoreType::key_of(entry.before().get());
    const std::uint64_t hash = detail::hash_of(key);
    const Slot<Row>* slot = core_.find(key, hash);
    Entry* newest = slot != nullptr ? slot->newest : core_.find_grave(key, hash);
    if (newest == &entry) return {slot, nullptr, hash};
    for (Entry* newer = newest; newer->older() != nullptr; newer = newer->older()) {
      Entry* const older = newer->older();
      if (!older->leaves_row() && older->version() < log_.oldest) above_ends_.emplace(older, newer);
    }
    return {nullptr, above_ends_.at(&entry), 0};
  }

  void descend(Run& run) {
    const Entry* ending = nullptr;  // of the life that the walk is in
    for (Entry* entry = run.top; entry != nullptr && interval_of(*entry) == run.interval;
         entry = entry->older()) {
      if (!entry->leaves_row()) ending = entry;
      run.bottom = entry;
      if (!entry->has_before() && entry->older() != nullptr && interval_of(*entry->older()) == run.interval)
        ending = nullptr;
    }
    if (run.bottom->has_before()) {
      run.keep = ending != nullptr ? Keep::erase : Keep::update;
      if (ending != nullptr) run.order = ending->order();
    } else if (run.above.slot != nullptr || (run.above.entry != nullptr && run.above.entry->has_before())) {
      run.keep = Keep::insert;  // the key has a row above, which began here
    }
  }

  void allocate() {
    std::vector<EntryCounts> counts(kept_.size());
    for (const Run& run : runs_) {
      if (run.interval == 0 || run.keep == Keep::nothing) continue;
      EntryCounts& count = counts[run.interval];
      ++(run.keep != Keep::insert ? count.images : run.bottom->is_first() ? count.firsts : count.bare);
    }
    for (const EntryCounts& count : counts) blocks_.emplace_back(core_.log->arena, count);
    if (kept_.size() == 1) return;  // one interval, of which nothing is kept
    // From the top of each chain down, so that what leads to a run has its final place when the run is
    // reached.
    std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.interval > b.interval; });
    for (const Run& run : runs_) bottoms_.emplace(run.bottom, &run);
  }

  void move_bottom(Run& run) noexcept {
    Block& block = blocks_[run.interval];
    Entry& from = *run.bottom;
    if (run.keep == Keep::insert && from.is_first()) {
      run.kept = block.add_first(from.version());
      return;
    }
    if (run.keep == Keep::insert) {
      run.kept = block.add(LogKind::insert, from.version(), nullptr);
    } else {
      const LogKind kind = run.keep == Keep::erase ? LogKind::erase : LogKind::update;
      run.kept = block.add(kind, from.version(), nullptr, std::move(from.before()));
      if (run.keep == Keep::erase) run.kept->set_order(run.order);
    }
    run.kept->set_older(from.older());
  }

  // Where what led to an entry stands now.
  Above resolve(Above above) const noexcept {
    while (above.entry != nullptr) {
      const auto at = bottoms_.find(above.entry);
      if (at == bottoms_.end()) break;
      const Run& run = *at->second;
      if (run.kept != nullptr) return {nullptr, run.kept, 0};
      above = run.above;
    }
    return above;
  }

  void set_below(const Above& above, const Run& run) noexcept {
    Entry* below = run.kept;
    if (below == nullptr && run.interval != 0) below = run.bottom->older();
    if (run.kept != nullptr && run.kept->leaves_row()) {
      above.slot != nullptr ? run.kept->set_newer(above.slot) : run.kept->set_newer(above.entry);
    }
    if (above.slot != nullptr) {
      above.slot->newest = below;
    } else if (above.entry != nullptr) {
      above.entry->set_older(below);
    } else if (below != nullptr) {
      core_.graves.replace(above.grave_hash, run.top, below);
    } else {
      core_.graves.erase(above.grave_hash, run.top);
    }
  }

  CoreType& core_;
  CommitLog<Row>& log_;
  std::vector<Version>
      kept_;  // bounds of the intervals, ascending: pinned versions, and the last one retired
  std::vector<Run> runs_;
  std::unordered_map<const Entry*, const Run*> bottoms_;
  std::unordered_map<const Entry*, Entry*>
      above_ends_;  // the next change of the key, after the end of a life
  std::vector<Block> blocks_;
};

/// The first version that an expiry rule leaves readable, tags aside.
template <class CoreType>
Version first_kept(const CoreType& core, const KeepLastVersions& rule) {
  const Version latest = core.version();
  const Version span = std::max<Version>(rule.count, 1) - 1;
  return latest > span ? latest - span : 0;
}
template <class CoreType>
Version first_kept(const CoreType& core, const OlderThan& rule) {
  const auto& records = core.log->records;
  const auto first =
      std::lower_bound(records.begin(), records.end(), rule.time,
                       [](const auto& record, Timestamp time) { return record.timestamp < time; });
  if (first == records.begin()) return core.log->oldest;
  return first == records.end() ? core.version() : first->version;
}
template <class CoreType>
Version first_kept(const CoreType& core, const KeepFor& rule) {
  if (core.log->empty()) return 0;
  return detail::first_kept(core, OlderThan{detail::start_of(rule, core.log->records.back().timestamp)});
}

/// The first version that a read point of a shared table needs; the largest number if there is none.
template <class Row>
Version oldest_read(const CommitLog<Row>& log) {
  return log.readers == nullptr ? std::numeric_limits<Version>::max() : log.readers->oldest_read();
}

/// Whether nothing may expire: a read point reads a tagged version among those that have expired.
template <class Row>
bool expiry_waits(const CommitLog<Row>& log) {
  return detail::oldest_read(log) < log.oldest;
}

/// The tagged versions before `first`, ascending.
template <class CoreType>
std::vector<Version> tagged_before(const CoreType& core, Version first) {
  std::vector<Version> versions;
  for (const auto& [name, version] : core.tags) {
    if (version < first) versions.push_back(version);
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions;
}

/// The versions that would no longer be readable, ascending.
template <class CoreType>
std::vector<Version> expiring(const CoreType& core, Version first) {
  if (detail::expiry_waits(*core.log)) return {};
  const std::vector<Version> all_tagged = detail::tagged_before(core, first);
  const auto tagged = [&](Version version) {
    return std::binary_search(all_tagged.begin(), all_tagged.end(), version);
  };
  std::vector<Version> versions;
  for (const Version version : core.log->pinned) {
    if (!tagged(version)) versions.push_back(version);
  }
  for (Version version = core.log->oldest; version < first; ++version) {
    if (!tagged(version)) versions.push_back(version);
  }
  return versions;
}

/// Makes all versions before `first` unreadable but for the tagged ones; `announce()` is called when nothing
/// else can fail, and not if there is nothing to do. Strong guarantee.
template <class CoreType, class Announce>
void retire(CoreType& core, Version first, Announce announce) {
  auto& log = *core.log;
  if (first == log.oldest && log.pinned.empty()) return;
  std::vector<Version> pinned = detail::tagged_before(core, first);
  const auto kept_whole =
      std::lower_bound(log.records.begin(), log.records.end(), first,
                       [](const auto& record, Version version) { return record.version < version; });
  const std::size_t blocks = log.retired.size() + static_cast<std::size_t>(kept_whole - log.records.begin());
  if (blocks > log.retired.capacity()) log.retired.reserve(std::max(blocks, 2 * log.retired.capacity()));

  announce();

  // From here on nothing fails.
  for (auto record = log.records.begin(); record != kept_whole; ++record) {
    log.last_expired = record->timestamp;
    if (!record->has_changes) continue;
    log.unswept += record->block.bytes();
    log.record_bytes -= record->block.bytes();
    log.retired.push_back(std::move(record->block));
    record->has_changes = false;
  }
  auto out = kept_whole;
  for (auto record = kept_whole; record != log.records.begin();) {
    --record;
    if (std::binary_search(pinned.begin(), pinned.end(), record->version) && --out != record)
      *out = std::move(*record);
  }
  log.records.erase(log.records.begin(), out);
  log.pinned.swap(pinned);
  log.oldest = first;
}

/// Frees what retired versions leave behind. Strong guarantee. Readers of a shared table are kept out only
/// while what leads to the old blocks is changed; should one have come to read a tagged version among those
/// that have expired, it is put off.
template <class CoreType>
void sweep(CoreType& core) {
  auto& log = *core.log;
  if (log.retired.empty()) return;
  Sweep<CoreType> sweep(core);
  const WithoutReaders changing(log.readers.get());
  if (detail::expiry_waits(log)) return;
  sweep.run();
  log.unswept = 0;
  log.swept = 0;
  for (const auto& block : log.retired) log.swept += block.bytes();
  core.graves.shrink();
  core.keys.shrink();
}

/// sweep(), put off to the next time if it fails.
template <class CoreType>
void try_sweep(CoreType& core) noexcept {
  try {
    detail::sweep(core);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing was changed
  }
}

/// Applies the table's retention after a commit. It must not fail, and is made up for later if it does. It
/// sweeps when it pays: when as much is to be freed as the last sweep has left, and a quarter of what is
/// kept, so that the cost of a commit grows neither with what tags hold nor with the changes that stay.
template <class CoreType>
void apply_retention(CoreType& core) noexcept {
  if (!core.options.retention) return;
  try {
    const Version wanted =
        std::visit([&](const auto& rule) { return detail::first_kept(core, rule); }, *core.options.retention);
    if (wanted <= core.log->oldest) return;
    {
      const WithoutReaders expiring(core.log->readers.get());
      const Version first = std::min(wanted, detail::oldest_read(*core.log));
      if (first <= core.log->oldest) return;
      detail::retire(core, first, [] {});
    }
    const std::size_t kept = core.log->record_bytes;
    if (core.log->unswept >= std::max(core.log->swept, kept / 4)) detail::try_sweep(core);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next commit tries again
  }
}

}  // namespace keyfold::detail
