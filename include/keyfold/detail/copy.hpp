// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/core.hpp>

#include <memory>
#include <unordered_map>

namespace keyfold::detail {

/// Copies a table with its history, but without its subscribers.
template <class CoreType>
class CoreCopy {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;

  explicit CoreCopy(const CoreType& from)
      : from_(from), to_(std::make_unique<CoreType>(from.options, from.retain)) {
    copy_log();
    copy_rows();
    for (const auto& [old_entry, entry] : entries_) link(*old_entry, *entry);
    to_->graves.presize(from.graves.size());
    from.graves.for_each(
        [this](std::uint64_t hash, const Entry& grave) { to_->graves.add(hash, copy_of(&grave)); });
    to_->tags = from.tags;
    to_->applied = from.applied;
    to_->checks = from.checks;
    if (from.sequences != nullptr) to_->sequences = from.sequences->clone();
    to_->next_order = from.next_order;
    to_->subscribers->skip_to(from.version());
  }

  std::unique_ptr<CoreType> take() { return std::move(to_); }

 private:
  void copy_log() {
    const CommitLog<Row>& from = *from_.log;
    CommitLog<Row>& to = *to_->log;
    for (const LogBlock<Row>& block : from.retired) to.retired.push_back(copy_block(block));
    for (const CommitRecord<Row>& record : from.records) {
      CommitRecord<Row>& copy = to.records.emplace_back();
      copy.version = record.version;
      copy.timestamp = record.timestamp;
      copy.operation = record.operation;
      copy.parameters = record.parameters;
      copy.metadata = record.metadata;
      copy.table_size = record.table_size;
      copy.metrics = record.metrics.get();
      copy.has_changes = record.has_changes;
      copy.block = copy_block(record.block);
    }
    to.operations = from.operations;
    to.oldest = from.oldest;
    to.pinned = from.pinned;
    to.first_commit = from.first_commit;
    to.last_expired = from.last_expired;
    to.record_bytes = from.record_bytes;
    to.unswept = from.unswept;
    to.swept = from.swept;
  }

  LogBlock<Row> copy_block(const LogBlock<Row>& from) {
    LogBlock<Row> to(to_->log->arena, from.counts());
    for (const Entry* entry = from.first(); entry != nullptr; entry = from.next(entry))
      entries_[entry] = add_copy(to, *entry);
    return to;
  }

  static Entry* add_copy(LogBlock<Row>& to, const Entry& entry) {
    if (entry.is_first()) return to.add_first(entry.version());
    if (!entry.has_before()) return to.add(entry.kind(), entry.version(), nullptr);
    return to.add(entry.kind(), entry.version(), nullptr, Holder<Row>(entry.before().get()));
  }

  void copy_rows() {
    to_->keys.presize(from_.rows.size());
    for (const Slot<Row>& slot : from_.rows) {
      const Slot<Row>& copy = *add_slot(*to_, Holder<Row>(slot.get()));
      to_->keys.add(detail::hash_of(CoreType::key_of(copy.get())), &copy);
      copy.order = slot.order;
      if (slot.newest != nullptr) detail::make_newest(copy, copy_of(slot.newest));
    }
  }

  // Rows have linked themselves to the newest change of their key.
  void link(const Entry& from, Entry& to) {
    if (!from.is_first()) to.set_older(copy_of(from.older()));
    if (!from.leaves_row()) {
      to.set_order(from.order());
    } else if (from.newer_slot() == nullptr) {
      to.set_newer(copy_of(from.newer_entry()));
    }
  }

  Entry* copy_of(const Entry* entry) const { return entry == nullptr ? nullptr : entries_.at(entry); }

  const CoreType& from_;
  std::unique_ptr<CoreType> to_;
  std::unordered_map<const Entry*, Entry*> entries_;
};

}  // namespace keyfold::detail
