// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/expiry.hpp>
#include <keyfold/detail/schema.hpp>
#include <keyfold/detail/sequence_replay.hpp>
#include <keyfold/detail/sequence_writer.hpp>
#include <keyfold/detail/snapshot_writer.hpp>
#include <keyfold/detail/validate.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// What the frames of a store's log hold: see docs/store-format.md. Written from a plan that is about to be
/// carried out; read into a plan that is carried out again.
namespace keyfold::detail {

enum class RecordKind : std::uint8_t { commit = 1, tag, untag, expire, remember };

enum class StoredChange : std::uint8_t { insert = 1, update, rekey, erase };

template <class CoreType>
class RecordWriter {
 public:
  using Row = typename CoreType::RowType;

  /// In front of each record are `room` bytes that belong to whoever asked for it.
  RecordWriter(const CoreType& core, std::size_t room) : core_(core), room_(room), encoder_(buffer_) {}

  std::span<std::byte> commit(const CommitRecord<Row>& record, const std::vector<AppNumber>& once,
                              const Plan<Row>& plan) {
    begin(RecordKind::commit);
    detail::put_u64(buffer_, record.version);
    detail::put_number(buffer_, std::int64_t{record.timestamp.time_since_epoch().count()});
    detail::put_text(buffer_, record.operation);
    put_optional(record.parameters ? std::optional<std::string_view>(*record.parameters) : std::nullopt);
    put_optional(record.metadata ? std::optional<std::string_view>(*record.metadata) : std::nullopt);
    const Metrics metrics = record.metrics.get();
    for (const auto field : metric_fields) detail::put_u64(buffer_, metrics.*field);
    detail::put_count(buffer_, once.size());
    for (const AppNumber& number : once) {
      detail::put_text(buffer_, number.app);
      detail::put_u64(buffer_, number.number);
    }
    put_updates(plan.sequences.get());
    for (const Planned<Row>& entry : plan.entries) put_change(entry);
    return whole();
  }

  /// Empty if there is nothing to remember.
  std::span<std::byte> remember(const SequenceUpdate& update) {
    begin(RecordKind::remember);
    return put_updates(&update) != 0 ? whole() : std::span<std::byte>();
  }
  std::span<std::byte> tag(std::string_view name, Version version) {
    begin(RecordKind::tag);
    detail::put_text(buffer_, name);
    detail::put_u64(buffer_, version);
    return whole();
  }
  std::span<std::byte> untag(std::string_view name) {
    begin(RecordKind::untag);
    detail::put_text(buffer_, name);
    return whole();
  }
  std::span<std::byte> expire(Version first) {
    begin(RecordKind::expire);
    detail::put_u64(buffer_, first);
    return whole();
  }

 private:
  // Each record says what retention had let go of when it was made.
  void begin(RecordKind kind) {
    buffer_.clear();
    buffer_.extend(room_);
    detail::put_u8(buffer_, static_cast<std::uint8_t>(kind));
    detail::put_u64(buffer_, core_.log->oldest);
  }

  // A transaction hands over those of its loads.
  std::size_t put_updates(const SequenceUpdate* update) {
    if (const auto* const handover = dynamic_cast<const SequenceHandover*>(update)) {
      detail::put_count(buffer_, handover->stored().size());
      for (const std::string& stored : handover->stored()) buffer_.append(stored.data(), stored.size());
      return handover->stored().size();
    }
    const std::size_t count_at = buffer_.size();
    detail::put_u32(buffer_, 0);
    const bool says_something = update != nullptr && detail::put_sequence_update<CoreType>(buffer_, *update);
    if (says_something) detail::store_number(buffer_.data() + count_at, std::uint32_t{1});
    return says_something ? 1 : 0;
  }

  void put_optional(std::optional<std::string_view> text) {
    detail::put_u8(buffer_, text ? 1 : 0);
    if (text) detail::put_text(buffer_, *text);
  }

  void put_change(const Planned<Row>& entry) {
    switch (entry.outcome) {
      case Outcome::insert:
        put_kind(StoredChange::insert);
        return encoder_.put(row_after(entry));
      case Outcome::update:
        put_kind(entry.rekeyed ? StoredChange::rekey : StoredChange::update);
        if (entry.rekeyed) put_key(entry);
        return encoder_.put(row_after(entry));
      case Outcome::erase:
        put_kind(StoredChange::erase);
        return put_key(entry);
      case Outcome::seen:
      case Outcome::unchanged:
        break;
    }
  }

  void put_kind(StoredChange kind) { detail::put_u8(buffer_, static_cast<std::uint8_t>(kind)); }
  void put_key(const Planned<Row>& entry) {
    std::apply([this](const auto&... part) { (encoder_.put(stored_part_t<decltype(part)>(part)), ...); },
               CoreType::key_of(entry.slot->get()));
  }
  static const Row& row_after(const Planned<Row>& entry) noexcept {
    return entry.fresh != nullptr ? entry.fresh->get() : entry.after->get();
  }

  std::span<std::byte> whole() noexcept { return {buffer_.data(), buffer_.size()}; }

  const CoreType& core_;
  std::size_t room_;
  ByteBuffer buffer_;
  Encoder encoder_;
};

/// Carries out again what records say, on a core that nobody sees yet.
template <class CoreType>
class RecordReplayer {
 public:
  using Row = typename CoreType::RowType;

  /// `rows` reads the rows of the records, which are those of `file`.
  RecordReplayer(CoreType& core, const RowDecoder<Row>& rows, std::string file)
      : core_(core), rows_(rows), updates_(core, rows, std::move(file)) {}

  /// Throws DecodeError, UnsupportedFormat, and what rows throw; Error for a change that does not fit the
  /// table.
  void replay(std::span<const std::byte> payload, std::uint64_t offset) {
    ByteReader in(payload);
    updates_.clear(offset);
    const std::uint8_t kind = detail::get_u8(in);
    follow_retention(in);
    switch (static_cast<RecordKind>(kind)) {
      case RecordKind::commit:
        return commit(in);
      case RecordKind::tag:
        return tag(in);
      case RecordKind::untag:
        return untag(in);
      case RecordKind::expire:
        return expire(in);
      case RecordKind::remember:
        updates_.read(in);
        finish(in);
        return updates_.carry_out();
    }
    throw UnsupportedFormat("a record of the log", kind, static_cast<std::uint64_t>(RecordKind::remember));
  }

 private:
  void follow_retention(ByteReader& in) {
    const Version oldest = detail::get_u64(in);
    if (oldest == core_.log->oldest) return;
    if (oldest < core_.log->oldest || oldest > core_.version()) in.fail("its oldest version cannot be");
    detail::retire(core_, oldest, [] {});
  }

  void commit(ByteReader& in) {
    const Version version = detail::get_u64(in);
    if (version != core_.version() + 1) in.fail("its version is not the next one");
    CommitNote note;
    note.timestamp = Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(in)));
    if (!core_.log->empty() && *note.timestamp < detail::tick_after(core_.log->records.back().timestamp))
      in.fail("it is older than the commit before it");
    note.operation = stored_operation(detail::get_text(in));
    if (detail::get_flag(in)) note.parameters = stored_parameters(detail::get_text(in));
    if (detail::get_flag(in)) note.metadata = SharedText(std::string(detail::get_text(in)));
    Metrics metrics;
    for (const auto field : metric_fields) metrics.*field = static_cast<std::size_t>(detail::get_u64(in));
    for (std::uint32_t left = detail::get_u32(in); left > 0; --left) {
      std::string app(detail::get_text(in));
      note.once.push_back({std::move(app), detail::get_u64(in)});
    }
    updates_.read(in);
    Plan<Row> plan = core_.new_plan();
    read_changes(in, plan);
    check(in, plan.metrics, metrics);
    plan.metrics = metrics;
    detail::validate(core_, plan);
    detail::apply(core_, plan, std::move(note));
    updates_.carry_out();
  }

  std::string_view stored_operation(std::string_view text) {
    auto& known = core_.log->operations;
    for (const auto& operation : known) {
      if (*operation == text) return *operation;
    }
    return *known.emplace_back(std::make_shared<const std::string>(text));
  }

  SharedText stored_parameters(std::string_view text) {
    if (!parameters_ || *parameters_ != text) parameters_ = SharedText(std::string(text));
    return parameters_;
  }

  // Positions in the source are not kept, and no error of these changes names them.
  void read_changes(ByteReader& in, Plan<Row>& plan) {
    Decoder decoder(in);
    while (in.left() != 0) {
      const std::uint8_t kind = detail::get_u8(in);
      switch (static_cast<StoredChange>(kind)) {
        case StoredChange::insert:
          plan.insert(get_row(decoder), no_position);
          break;
        case StoredChange::update: {
          Holder<Row> row = get_row(decoder);
          const Slot<Row>& slot = slot_of(in, plan, CoreType::key_of(row.get()));
          plan.update(slot, std::move(row), no_position);
          break;
        }
        case StoredChange::rekey: {
          const Slot<Row>& slot = get_slot(decoder, plan);
          plan.update(slot, get_row(decoder), no_position);
          break;
        }
        case StoredChange::erase:
          plan.erase(get_slot(decoder, plan), no_position);
          break;
        default:
          in.fail("a change has an unknown kind");
      }
    }
  }

  Holder<Row> get_row(Decoder& decoder) const {
    Row row{};
    rows_.read(decoder, row);
    return Holder<Row>(std::move(row));
  }

  const Slot<Row>& get_slot(Decoder& decoder, Plan<Row>& plan) const {
    stored_key_t<typename CoreType::KeyParts, Row> key{};
    std::apply([&](auto&... part) { (decoder.get(part), ...); }, key);
    return slot_of(decoder.in(), plan, key);
  }

  template <class Key>
  const Slot<Row>& slot_of(ByteReader& in, Plan<Row>& plan, const Key& key) const {
    const Slot<Row>* slot = core_.find(key);
    if (slot == nullptr) in.fail("it changes a row that is not there");
    if (plan.touched(*slot) != nullptr) in.fail("it changes a row twice");
    return *slot;
  }

  static void check(ByteReader& in, const Metrics& counted, const Metrics& stored) {
    const bool right = counted.inserted == stored.inserted && counted.updated == stored.updated &&
                       counted.deleted == stored.deleted &&
                       stored.updated == stored.matched_updated + stored.not_matched_by_source_updated &&
                       stored.deleted == stored.matched_deleted + stored.not_matched_by_source_deleted;
    if (!right) in.fail("its counts are not those of its changes");
  }

  void tag(ByteReader& in) {
    std::string name(detail::get_text(in));
    const Version version = detail::get_u64(in);
    finish(in);
    if (!core_.log->readable(version)) in.fail("it tags a version that cannot be read");
    if (!core_.tags.try_emplace(std::move(name), version).second) in.fail("it gives a tag that is there");
  }

  void untag(ByteReader& in) {
    const auto at = core_.tags.find(detail::get_text(in));
    finish(in);
    if (at == core_.tags.end()) in.fail("it removes a tag that is not there");
    core_.tags.erase(at);
  }

  void expire(ByteReader& in) {
    const Version first = detail::get_u64(in);
    finish(in);
    if (first < core_.log->oldest || first > core_.version())
      in.fail("it lets versions go that are not there");
    detail::retire(core_, first, [] {});
    detail::try_sweep(core_);
  }

  static void finish(ByteReader& in) {
    if (in.left() != 0) in.fail("more is there than was told");
  }

  CoreType& core_;
  const RowDecoder<Row>& rows_;
  SequenceReplayer<CoreType> updates_;
  SharedText parameters_;  // of the last commit that has some
};

}  // namespace keyfold::detail
