// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/sequence_reader.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Carrying out again what a log says that apply_changes() has remembered.
namespace keyfold::detail {

template <class CoreType>
class SequenceReplayer {
 public:
  using Row = typename CoreType::RowType;
  using States = SequenceStates<CoreType>;

  SequenceReplayer(CoreType& core, const RowDecoder<Row>& rows, std::string file)
      : core_(core), rows_(rows), file_(std::move(file)) {}

  /// Begins a record, which stands at this offset of the file.
  void clear(std::uint64_t offset) {
    offset_ = offset;
    updates_.clear();
  }

  /// Throws DecodeError, SchemaMismatch.
  void read(ByteReader& in) {
    for (std::uint32_t left = detail::get_u32(in); left > 0; --left) read_update(in);
  }

  /// Throws std::bad_alloc only.
  void carry_out() {
    for (Update& update : updates_) {
      if constexpr (States::saves_current) {
        if (update.form == SequenceForm::current) carry_out_current(update);
      }
      if constexpr (States::saves_history) {
        if (update.form == SequenceForm::history) carry_out_history(update);
      }
    }
    if (!updates_.empty()) ++core_.sequences_changed;
    updates_.clear();
  }

 private:
  using Stored = typename States::Stored;
  using History = typename States::History;

  template <class Key, class Item>
  struct Change {
    Key key{};
    std::unique_ptr<Item> fresh{};  // none: the key is forgotten
  };
  struct Update {
    SequenceForm form = SequenceForm::none;
    std::string type{};
    std::optional<std::string> truncated{};
    std::size_t keep = 0;
    Timestamp keep_since{};
    std::vector<Change<typename States::Key, typename Stored::Item>> current{};
    std::vector<Change<typename States::Entity, typename History::Item>> history{};
  };

  void read_update(ByteReader& in) {
    SequenceSchema schema = detail::get_sequence_schema(in);
    if (schema.form == SequenceForm::none) in.fail("an update of sequences has no form");
    if (!reader_ || !(reader_->schema() == schema)) reader_.emplace(std::move(schema), rows_);
    Update update;
    update.form = reader_->schema().form;
    update.type = reader_->schema().type;
    check_kind(in, update);
    if (update.form == SequenceForm::current) {
      update.truncated = detail::get_optional_text(in);
      if (update.truncated) reader_->check_truncate(*update.truncated);
      update.keep = static_cast<std::size_t>(detail::get_u64(in));
      update.keep_since = Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(in)));
    }
    const std::uint64_t count = detail::get_u64(in);
    if (count > in.left()) in.fail("more keys than the bytes can hold");
    for (std::uint64_t i = 0; i < count; ++i) read_change(in, update);
    updates_.push_back(std::move(update));
  }

  // All feeds of a table are of one kind.
  void check_kind(ByteReader& in, const Update& update) const {
    const Update* const before = updates_.empty() ? nullptr : &updates_.back();
    const auto* const stored = dynamic_cast<const Stored*>(core_.sequences.get());
    const bool fits = before != nullptr ? before->form == update.form && before->type == update.type
                      : core_.sequences == nullptr ? true
                      : stored != nullptr
                          ? update.form == SequenceForm::current && stored->origin.text == update.type
                          : update.form == SequenceForm::history;
    if (!fits) in.fail("a feed is of another kind than those before it");
  }

  void read_change(ByteReader& in, Update& update) const {
    [[maybe_unused]] const bool remembered = detail::get_flag(in);
    if constexpr (States::saves_current) {
      if (update.form == SequenceForm::current) {
        auto& change = update.current.emplace_back();
        remembered ? void(change.fresh = reader_->get_current(in))
                   : void(change.key = reader_->template get_key<typename States::Key>(in));
      }
    }
    if constexpr (States::saves_history) {
      if (update.form == SequenceForm::history) {
        auto& change = update.history.emplace_back();
        remembered ? void(change.fresh = reader_->get_history(in))
                   : void(change.key = reader_->template get_key<typename States::Entity>(in));
      }
    }
  }

  void carry_out_current(Update& update) {
    if (core_.sequences == nullptr) {
      auto made = std::make_unique<Stored>();
      made->origin = {update.type, file_, offset_, true};
      core_.sequences = std::move(made);
    }
    auto& state = static_cast<Stored&>(*core_.sequences);
    for (auto& change : update.current) carry_out(state.keys, state, change);
    if (update.truncated)
      state.truncated = std::make_unique<const StoredSequence>(StoredSequence{std::move(*update.truncated)});
    state.forget(update.keep, update.keep_since);
  }

  void carry_out_history(Update& update) {
    if (core_.sequences == nullptr) core_.sequences = std::make_unique<History>();
    auto& state = static_cast<History&>(*core_.sequences);
    for (auto& change : update.history) carry_out(state.keys, state.keys, change);
  }

  template <class Keys, class State, class Change>
  static void carry_out(Keys& keys, State& state, Change& change) {
    const auto find = [&keys](const auto& key) { return keys.find(key, detail::hash_of(key)); };
    auto* const old = find(change.fresh != nullptr ? change.fresh->key : change.key);
    if (change.fresh == nullptr) {
      if (old != nullptr) state.drop(*old);
    } else if (old != nullptr) {
      state.replace(*old, std::move(change.fresh));
    } else {
      keys.reserve_one(change.fresh->hash);
      state.add(std::move(change.fresh));
    }
  }

  CoreType& core_;
  const RowDecoder<Row>& rows_;
  std::string file_;
  std::uint64_t offset_ = 0;
  std::optional<RememberedReader<CoreType>> reader_;
  std::vector<Update> updates_;
};

}  // namespace keyfold::detail
