// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/sequence_schema.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Writing what apply_changes() remembers: whole for a snapshot, and each change of it for a log.
namespace keyfold::detail {

/// Writes what is remembered of a key.
class RememberedWriter {
 public:
  explicit RememberedWriter(ByteBuffer& out) : out_(out), encoder_(out) {}

  template <class Key>
  void put_key(const Key& key) {
    std::apply([this](const auto&... part) { (encoder_.put(part), ...); }, key);
  }

  template <class Key>
  void put_current(const Key& key, const StoredKey& stored) {
    put_key(key);
    detail::put_u8(out_, stored.live ? 1 : 0);
    if (!stored.live) detail::put_number(out_, std::int64_t{stored.erased_at.time_since_epoch().count()});
    detail::put_count(out_, stored.sequences.size());
    out_.append(stored.sequences.data(), stored.sequences.size());
  }

  template <class Key, class Event>
  void put_history(const Key& key, const std::vector<Event>& events) {
    put_key(key);
    detail::put_count(out_, events.size());
    for (const Event& event : events) {
      const unsigned flags = (event.row ? 1U : 0U) | (event.folded ? 2U : 0U) | (event.complete() ? 0U : 4U);
      detail::put_u8(out_, static_cast<std::uint8_t>(flags));
      encoder_.put(event.at);
      if (event.row) encoder_.put(*event.row);
      for (const bool given : event.given) detail::put_u8(out_, given ? 1 : 0);
    }
  }

 private:
  ByteBuffer& out_;
  Encoder encoder_;
};

/// All that a table remembers, as a snapshot has it. The same state gives the same bytes: tombstones stand in
/// the order in which they came, all else in the order of its bytes.
template <class CoreType>
class RememberedState {
 public:
  using States = SequenceStates<CoreType>;

  /// Throws UnsavableSequence, and what a user's serialize() throws.
  explicit RememberedState(const SequenceState* state) {
    if (state == nullptr) return;
    schema_.columns = detail::sequence_columns<typename CoreType::RowType>();
    if (!take_current(*state) && !take_history(*state)) throw UnsavableSequence();
  }

  void put_header(ByteBuffer& out) const {
    detail::put_sequence_schema(out, schema_);
    if (schema_.form == SequenceForm::none) return;
    detail::put_optional_text(out, truncated_);
    detail::put_u64(out, items_.size());
  }

  std::size_t size() const noexcept { return items_.size(); }
  std::span<const std::byte> operator[](std::size_t i) const noexcept {
    return bytes_.bytes().subspan(items_[i].offset, items_[i].size);
  }

 private:
  struct Item {
    std::size_t offset;
    std::size_t size;
    std::uint64_t start;  // its first bytes, which tell most of them apart
  };

  bool take_current(const SequenceState& state) {
    if constexpr (States::saves_current) {
      const auto* const current = dynamic_cast<const typename States::Current*>(&state);
      if (current != nullptr) take(*current);
      return current != nullptr;
    }
    return false;
  }
  bool take_history(const SequenceState& state) {
    if constexpr (States::saves_history) {
      const auto* const history = dynamic_cast<const typename States::History*>(&state);
      if (history != nullptr) take(*history);
      return history != nullptr;
    }
    return false;
  }

  void take(const typename States::Current& current) {
    schema_.form = SequenceForm::current;
    schema_.key = detail::sequence_text<typename States::Key>();
    schema_.type = current.type();
    truncated_ = current.stored_truncate();
    items_.reserve(current.size());
    RememberedWriter writer(bytes_);
    std::size_t tombstones = 0;
    current.for_each_stored([&](const auto& key, const StoredKey& stored) {
      const std::size_t offset = bytes_.size();
      writer.put_current(key, stored);
      end_item(offset);
      if (!stored.live) ++tombstones;
    });
    sort_from(tombstones);
  }

  void take(const typename States::History& history) {
    schema_.form = SequenceForm::history;
    schema_.key = detail::sequence_text<typename States::Entity>();
    schema_.type = detail::sequence_text<typename States::From>();
    items_.reserve(history.keys.size());
    RememberedWriter writer(bytes_);
    history.keys.for_each([&](const auto& item) {
      const std::size_t offset = bytes_.size();
      writer.put_history(item.key, item.value);
      end_item(offset);
    });
    sort_from(0);
  }

  void end_item(std::size_t offset) {
    std::uint64_t start = 0;
    const std::size_t size = bytes_.size() - offset;
    for (std::size_t i = 0; i < sizeof start; ++i)
      start = start << 8U | (i < size ? std::to_integer<std::uint64_t>(bytes_.data()[offset + i]) : 0U);
    items_.push_back({offset, size, start});
  }

  void sort_from(std::size_t first) {
    std::sort(items_.begin() + static_cast<std::ptrdiff_t>(first), items_.end(),
              [this](const Item& a, const Item& b) {
                if (a.start != b.start) return a.start < b.start;
                const int order =
                    std::memcmp(bytes_.data() + a.offset, bytes_.data() + b.offset, std::min(a.size, b.size));
                return order != 0 ? order < 0 : a.size < b.size;
              });
  }

  SequenceSchema schema_;
  std::optional<std::string> truncated_;
  ByteBuffer bytes_;
  std::vector<Item> items_;
};

template <class CoreType>
bool put_current_update(ByteBuffer& out, const typename SequenceStates<CoreType>::CurrentUpdate& update) {
  using States = SequenceStates<CoreType>;
  const std::optional<std::string> truncated = update.stored_truncate();
  const bool forgets = update.keep != static_cast<std::size_t>(-1) || update.keep_since != Timestamp::min();
  if (update.size() == 0 && !truncated && !forgets) return false;
  SequenceSchema schema{
      SequenceForm::current, detail::sequence_text<typename States::Key>(), update.type(), {}};
  if (update.has_columns()) schema.columns = detail::sequence_columns<typename CoreType::RowType>();
  detail::put_sequence_schema(out, schema);
  detail::put_optional_text(out, truncated);
  detail::put_u64(out, update.keep);
  detail::put_number(out, std::int64_t{update.keep_since.time_since_epoch().count()});
  detail::put_u64(out, update.size());
  RememberedWriter writer(out);
  update.for_each_stored([&](const auto& key, const StoredKey* stored) {
    detail::put_u8(out, stored != nullptr ? 1 : 0);
    stored != nullptr ? writer.put_current(key, *stored) : writer.put_key(key);
  });
  return true;
}

template <class CoreType>
bool put_history_update(ByteBuffer& out, const typename SequenceStates<CoreType>::HistoryUpdate& update) {
  using States = SequenceStates<CoreType>;
  if (update.changes.empty()) return false;
  detail::put_sequence_schema(out, {SequenceForm::history, detail::sequence_text<typename States::Entity>(),
                                    detail::sequence_text<typename States::From>(),
                                    detail::sequence_columns<typename CoreType::RowType>()});
  detail::put_u64(out, update.changes.size());
  RememberedWriter writer(out);
  for (const auto& change : update.changes) {
    detail::put_u8(out, change.fresh != nullptr ? 1 : 0);
    change.fresh != nullptr ? writer.put_history(change.fresh->key, change.fresh->value)
                            : writer.put_key(change.old->key);
  }
  return true;
}

/// What a load changes, as a log has it. Returns false, and writes nothing, if there is nothing to say.
/// Throws as RememberedState.
template <class CoreType>
bool put_sequence_update(ByteBuffer& out, const SequenceUpdate& update) {
  using States = SequenceStates<CoreType>;
  if constexpr (States::saves_current) {
    if (const auto* const current = dynamic_cast<const typename States::CurrentUpdate*>(&update))
      return detail::put_current_update<CoreType>(out, *current);
  }
  if constexpr (States::saves_history) {
    if (const auto* const history = dynamic_cast<const typename States::HistoryUpdate*>(&update))
      return detail::put_history_update<CoreType>(out, *history);
  }
  throw UnsavableSequence();
}

}  // namespace keyfold::detail
