// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/log.hpp>
#include <keyfold/detail/node_pool.hpp>
#include <keyfold/detail/packed_metrics.hpp>
#include <keyfold/detail/shared_text.hpp>
#include <keyfold/detail/table_readers.hpp>
#include <keyfold/error.hpp>
#include <keyfold/fwd.hpp>
#include <keyfold/metrics.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keyfold::detail {

/// A commit as the log keeps it.
template <class Row>
struct CommitRecord {
  CommitRecord() = default;
  /// Takes the texts of the note. Throws std::bad_alloc, and what the memory resource of the arena throws.
  CommitRecord(Version own_version, Timestamp time, CommitNote& note, const Metrics& counts, Arena& arena,
               const EntryCounts& entries)
      : version(own_version),
        timestamp(time),
        operation(note.operation),
        parameters(std::move(note.parameters)),
        metadata(std::move(note.metadata)),
        metrics(counts),
        block(arena, entries) {}

  Version version = 0;
  Timestamp timestamp{};
  std::string_view operation{};  // static storage, or in the log's `operations`
  SharedText parameters{};
  SharedText metadata{};
  std::size_t table_size = 0;  // rows, after the commit
  [[no_unique_address]] PackedMetrics metrics{};
  bool has_changes = true;  // false for a tagged version that is older than `oldest`: its block is retired
  LogBlock<Row> block{};
};

/// The version log: the commits whose versions can be read, and what older blocks they still need.
///
/// Version v is read by undoing, for each key, the entries with a version above v; so the block of a commit
/// serves the versions before it. All versions from `oldest` on can be read, and of those before it the
/// tagged ones.
template <class Row>
class CommitLog {
 public:
  using Record = CommitRecord<Row>;
  static constexpr std::size_t records_together =
      std::max<std::size_t>(512 / sizeof(Record), 1);  // as libstdc++ has them in a deque

  CommitLog(const KeyFunctions<Row>& key_functions, std::pmr::memory_resource& memory)
      : key(key_functions),
        arena(memory),
        record_pool(memory, records_together * sizeof(Record), alignof(Record)),
        records(PoolAllocator<Record>(record_pool)) {}

  bool empty() const noexcept { return records.empty(); }
  Version latest() const noexcept { return empty() ? 0 : records.back().version; }

  bool readable(Version version) const noexcept {
    return (version >= oldest && version <= latest()) ||
           std::binary_search(pinned.begin(), pinned.end(), version);
  }

  /// Throws VersionNotFound, VersionExpired.
  void require_readable(Version version) const {
    if (version > latest()) throw VersionNotFound(version, latest());
    if (!readable(version)) throw VersionExpired(version, oldest);
  }

  /// The record of a version, or null: version 0 has none.
  const Record* find(Version version) const noexcept {
    const auto is_before = [](const Record& record, Version wanted) { return record.version < wanted; };
    const auto at = std::lower_bound(records.begin(), records.end(), version, is_before);
    return at != records.end() && at->version == version ? &*at : nullptr;
  }

  /// The version that was current at this time: that of the last commit not after it.
  /// Throws VersionNotFound before the first commit, VersionExpired where the version is gone or cannot be
  /// told.
  Version version_at(Timestamp time) const {
    if (!first_commit || time < *first_commit) throw VersionNotFound(time, latest());
    const auto after = std::ranges::upper_bound(records, time, {}, &Record::timestamp);
    if (after == records.begin()) throw VersionExpired(time, oldest);
    const Record& found = *std::prev(after);
    const bool next_is_known = after == records.end() || after->version == found.version + 1;
    if (!next_is_known && found.timestamp != time) throw VersionExpired(time, oldest);
    require_readable(found.version);
    return found.version;
  }

  /// Rows at a readable version.
  std::size_t table_size(Version version) const noexcept {
    return version == 0 ? 0 : find(version)->table_size;
  }

  const KeyFunctions<Row>& key;
  Arena arena;
  std::shared_ptr<TableReaders> readers;                       // of a table that is shared, else null
  std::vector<std::shared_ptr<const std::string>> operations;  // where those of loaded commits are stored
  NodePool record_pool;
  std::deque<Record, PoolAllocator<Record>>
      records;                         // ascending; a deque: they keep their address while others come and go
  std::vector<LogBlock<Row>> retired;  // ascending: blocks of expired versions that pinned ones may need
  Version oldest = 0;
  std::vector<Version> pinned;  // tagged versions before `oldest`, ascending
  std::optional<Timestamp> first_commit;
  std::optional<Timestamp> last_expired;  // time of version oldest - 1
  std::size_t record_bytes = 0;           // in the blocks of `records`
  std::size_t unswept = 0;                // bytes retired since the last sweep
  std::size_t swept = 0;                  // bytes that the last sweep left in `retired`
};

/// A microsecond later. After the last time there is none: it is its own successor.
constexpr Timestamp tick_after(Timestamp time) noexcept {
  return time == Timestamp::max() ? time : time + Timestamp::duration(1);
}

/// The change as its key sees it: an update that changes the key takes the row from one key and gives it to
/// another.
template <class Row>
Change<Row> change_of_key(const LogEntry<Row>& entry) {
  if (!entry.has_before()) return Change<Row>::insert(entry.after());
  if (!entry.leaves_row()) return Change<Row>::erase(entry.before().get());
  return Change<Row>::update(entry.before().get(), entry.after());
}

/// The change of a commit that an entry begins; `rekey_in` entries are part of the one before.
template <class Row>
Change<Row> change_of(const LogBlock<Row>& block, const LogEntry<Row>& entry) {
  if (entry.kind() != LogKind::rekey_out) return detail::change_of_key(entry);
  return Change<Row>::update(entry.before().get(), block.next(&entry)->after());
}

/// Calls `visit` with each change of a commit, as a value. Throws VersionExpired once the commit has lost
/// them.
template <class Row, class Visit>
void for_each_change(const CommitLog<Row>& log, const CommitRecord<Row>& record, Visit visit) {
  if (!record.has_changes) throw VersionExpired::of_changes(record.version, log.oldest);
  for (const auto* entry = record.block.first(); entry != nullptr; entry = record.block.next(entry)) {
    if (entry->kind() != LogKind::rekey_in) visit(detail::change_of(record.block, *entry));
  }
}

template <class Row>
ChangeSet<Row> changes_of(const CommitLog<Row>& log, const CommitRecord<Row>& record) {
  std::vector<Change<Row>> changes;
  detail::for_each_change(log, record, [&](Change<Row>&& change) { changes.push_back(std::move(change)); });
  return ChangeSet<Row>(std::move(changes), log.key);
}

}  // namespace keyfold::detail
