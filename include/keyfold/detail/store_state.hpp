// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_journal.hpp>
#include <keyfold/detail/journal.hpp>
#include <keyfold/detail/snapshot_reader.hpp>
#include <keyfold/detail/snapshot_source.hpp>
#include <keyfold/detail/store_record.hpp>
#include <keyfold/durability.hpp>
#include <keyfold/options.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// What stands between a table and the files of its store.
namespace keyfold::detail {

/// The state in front of a log: the schema of the rows in that log, and a snapshot of the table.
template <class CoreType, class Sink>
void write_state(const CoreType& core, Sink& sink) {
  ByteBuffer schema;
  detail::put_schema(schema, detail::schema_of<typename CoreType::RowType>());
  ByteBuffer size;
  detail::put_u32(size, static_cast<std::uint32_t>(schema.size()));
  sink.write(size.bytes());
  sink.write(schema.bytes());
  detail::write_snapshot(core, [&sink](std::span<const std::byte> bytes) { sink.write(bytes); });
}

/// A table made again from the files of a store.
template <class CoreType>
struct Restored {
  std::unique_ptr<CoreType> core;
  std::uint64_t records = 0;               // of the log, carried out
  bool same_schema = true;                 // the program's is that of the log
  std::optional<CorruptJournal> damage{};  // that ended a salvage
};

/// Throws CorruptJournal, CorruptSnapshot, SchemaMismatch, UnsupportedFormat, and what rows throw.
template <class CoreType, class Disk>
class Restorer {
 public:
  using Row = typename CoreType::RowType;

  Restorer(const Disk& disk, const JournalImage& image, OnDamage on_damage)
      : disk_(disk), image_(image), on_damage_(on_damage) {}

  Restored<CoreType> run(const TableOptions& options) {
    const std::string path = disk_.path(snapshot_name(image_.generation));
    std::optional<RowDecoder<Row>> rows;
    try {
      ByteReader in(image_.snapshot());
      const std::uint32_t size = detail::get_u32(in);
      ByteReader schema_bytes(std::span(in.take(size), size));
      schema_ = detail::get_schema(schema_bytes);
      MemorySource source(image_.snapshot().subspan(in.offset()));
      restored_.core = detail::read_snapshot<CoreType>(source, path, options);
      if (source.left() != 0) throw CorruptJournal(path, in.offset(), "there is more after its end");
      rows.emplace(schema_);
    } catch (const DecodeError& error) {
      throw CorruptJournal(path, SnapshotHeader::Layout::size + error.offset, error.what());
    }
    restored_.same_schema = schema_ == detail::schema_of<Row>();
    replay_log(*rows);
    CoreType& core = *restored_.core;
    core.subscribers->skip_to(core.version());
    detail::apply_retention(core);
    detail::try_sweep(core);
    return std::move(restored_);
  }

 private:
  void replay_log(const RowDecoder<Row>& rows) {
    RecordReplayer<CoreType> replayer(*restored_.core, rows, disk_.path(log_name(image_.generation)));
    image_.for_each_frame([&](ByteSpan payload, std::uint64_t, std::size_t offset) {
      if (!restored_.damage) replay(replayer, payload, offset);
    });
  }

  void replay(RecordReplayer<CoreType>& replayer, ByteSpan payload, std::size_t offset) {
    const auto damaged = [&](const char* what) {
      if (on_damage_ == OnDamage::fail && schema_.is_object && !restored_.same_schema) refuse_class(what);
      CorruptJournal damage(disk_.path(log_name(image_.generation)), offset, what);
      if (on_damage_ == OnDamage::fail) throw damage;
      restored_.damage = std::move(damage);
    };
    try {
      replayer.replay(payload, offset);
      ++restored_.records;
    } catch (const DecodeError& error) {
      damaged(error.what());
    } catch (const UnsupportedFormat&) {
      throw;
    } catch (const UniqueViolation&) {  // of an index that the program has not had when it wrote this
      throw;
    } catch (const Error& error) {
      damaged(error.what());
    }
  }

  // Records have keys as the class had them that wrote them, and do not say how.
  [[noreturn]] void refuse_class(const char* what) const {
    const auto version = [](const StoredSchema& schema) {
      return "class version " + std::to_string(schema.class_version);
    };
    throw SchemaMismatch("<row>", version(schema_), version(detail::schema_of<Row>()),
                         "its log cannot be read with it (" + std::string(what) +
                             "); open it with the program that wrote it, take a checkpoint() and close it");
  }

  const Disk& disk_;
  const JournalImage& image_;
  OnDamage on_damage_;
  StoredSchema schema_;
  Restored<CoreType> restored_;
};

/// Brings commits to the medium at intervals, in a thread of its own.
template <class JournalType>
class Flusher {
 public:
  Flusher(JournalType& journal, std::chrono::milliseconds period)
      : thread_([this, &journal, period]() mutable {
          std::unique_lock guard(mutex_);
          period = std::clamp(period, std::chrono::milliseconds(1), std::chrono::milliseconds(86'400'000));
          while (!stop_.wait_for(guard, period, [this] { return stopped_; })) {
            guard.unlock();
            try {
              journal.sync();
            } catch (...) {  // the next write says so
              return;
            }
            guard.lock();
          }
        }) {}
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  ~Flusher() {
    {
      const std::lock_guard guard(mutex_);
      stopped_ = true;
    }
    stop_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the others
};

/// Writes what happens to a table to its journal.
template <class CoreType, class Disk, class Checks>
class StoreJournal final : public CommitJournal<typename CoreType::RowType> {
 public:
  using Row = typename CoreType::RowType;

  StoreJournal(CoreType& core, Disk& disk, const JournalImage& image, Durability durability,
               std::uint64_t checkpoint_bytes)
      : core_(core),
        records_(core, FrameHeader::size),
        journal_(disk, image),
        durability_(durability),
        checkpoint_bytes_(checkpoint_bytes),
        first_version_(core.version()),
        first_frame_(journal_.last()) {
    next_attempt_ = image.snapshot_file.size();
    if (journal_.generation() == 0) checkpoint();
    if (durability.mode == Durability::Mode::interval) flusher_.emplace(journal_, durability.period);
  }

  void commit(const CommitRecord<Row>& record, const std::vector<AppNumber>& once,
              const Plan<Row>& plan) override {
    write(records_.commit(record, once, plan), [&] { return "version " + std::to_string(record.version); });
  }
  void remember(const SequenceUpdate& update) override {
    const auto record = records_.remember(update);
    if (record.empty()) return;
    write_other(record, [] { return std::string("what the load remembers"); });
  }
  std::string stored(const SequenceUpdate& update) const override {
    ByteBuffer out;
    detail::put_sequence_update<CoreType>(out, update);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }
  void tag(std::string_view name, Version version) override {
    write_other(records_.tag(name, version), [&] { return "the tag '" + std::string(name) + "'"; });
  }
  void untag(std::string_view name) override {
    write_other(records_.untag(name), [&] { return "the end of the tag '" + std::string(name) + "'"; });
  }
  void expire(Version first) override {
    write_other(records_.expire(first), [&] { return "the expiry up to version " + std::to_string(first); });
  }

  // A log that is as long as the last snapshot has cost as much as writing the next one will.
  void published() noexcept override {
    if (journal_.log_size() < std::max(checkpoint_bytes_, next_attempt_)) return;
    try {
      checkpoint();
    } catch (...) {
      checkpoint_error_ = std::current_exception();
      next_attempt_ = 2 * journal_.log_size();
    }
  }

  void checkpoint() {
    std::uint64_t bytes = 0;
    journal_.checkpoint([&](auto& sink) {
      detail::write_state(core_, sink);
      bytes = sink.size();
    });
    next_attempt_ = bytes;
    checkpoint_error_ = nullptr;
  }

  void sync() { journal_.sync(); }

  void close() {
    flusher_.reset();
    journal_.close();
  }

  /// The last version that a cut of power cannot reach.
  Version durable_version() const {
    const std::uint64_t durable = journal_.durable();
    const auto others = std::ranges::upper_bound(other_frames_, durable) - other_frames_.begin();
    return first_version_ + (durable - first_frame_) - static_cast<std::uint64_t>(others);
  }

  const Journal<Disk, Checks>& journal() const noexcept { return journal_; }
  std::exception_ptr checkpoint_error() const noexcept { return checkpoint_error_; }

 private:
  template <class Describe>
  void write(std::span<std::byte> frame, Describe describe) {
    journal_.append_in_place(frame);
    if (durability_.mode != Durability::Mode::every_commit) return;
    try {
      journal_.sync();
    } catch (const IoError& error) {
      throw CommitInDoubt(error, describe());
    }
  }

  template <class Describe>
  void write_other(std::span<std::byte> frame, Describe describe) {
    other_frames_.push_back(journal_.last() + 1);
    try {
      write(frame, describe);
    } catch (const CommitInDoubt&) {
      throw;
    } catch (...) {
      other_frames_.pop_back();
      throw;
    }
  }

  CoreType& core_;
  RecordWriter<CoreType> records_;
  Journal<Disk, Checks> journal_;
  Durability durability_;
  std::uint64_t checkpoint_bytes_;
  std::uint64_t next_attempt_ = 0;           // size of the log
  Version first_version_;                    // when the store was opened
  std::uint64_t first_frame_;                // the last one at that time
  std::vector<std::uint64_t> other_frames_;  // since then that are no commits, ascending
  std::exception_ptr checkpoint_error_;
  std::optional<Flusher<Journal<Disk, Checks>>> flusher_;  // last: it uses the journal
};

}  // namespace keyfold::detail
