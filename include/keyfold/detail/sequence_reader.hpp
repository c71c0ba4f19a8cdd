// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/schema.hpp>
#include <keyfold/detail/sequence_checker.hpp>
#include <keyfold/detail/sequence_schema.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Reading what apply_changes() remembers. Checksums tell nothing about who wrote a file, so that all is
/// checked that planners rely on: keys, and the events of history rows. Sequences of current rows have a type
/// that only a feed knows; of these it is checked that they are values of the type that the file names.
namespace keyfold::detail {

/// Reads what is remembered of single keys.
template <class CoreType>
class RememberedReader {
 public:
  using Row = typename CoreType::RowType;
  using States = SequenceStates<CoreType>;
  using Key = typename States::Key;
  using Entity = typename States::Entity;
  using From = typename States::From;
  using Current = typename States::Stored::Item;
  using History = typename States::History::Item;

  /// Throws SchemaMismatch if the program's key or, for history rows, its sequence is of another type;
  /// DecodeError.
  RememberedReader(SequenceSchema schema, const RowDecoder<Row>& rows)
      : schema_(std::move(schema)), rows_(rows) {
    const bool history = schema_.form == SequenceForm::history;
    const bool known = history ? States::saves_history : States::saves_current;
    if (!known) refuse_type("<key>", schema_.key, "no key that such sequences are saved with");
    require_type("<key>", schema_.key,
                 history ? detail::sequence_name<Entity>() : detail::sequence_name<Key>());
    if (history) require_type("<sequence>", schema_.type, detail::sequence_name<From>());
    place_columns();
    if (!history) checker_.emplace(schema_.type);
  }
  RememberedReader(const RememberedReader&) = delete;
  RememberedReader& operator=(const RememberedReader&) = delete;

  const SequenceSchema& schema() const noexcept { return schema_; }

  /// Throws DecodeError.
  void check_truncate(const std::string& sequence) const { checker_->check(sequence); }

  template <class AnyKey>
  AnyKey get_key(ByteReader& in) const {
    AnyKey key{};
    Decoder decoder(in);
    std::apply([&](auto&... part) { (decoder.get(part), ...); }, key);
    if (detail::is_nan(key)) in.fail("a key that is remembered is NaN");
    return key;
  }

  /// Requires: States::saves_current.
  std::unique_ptr<Current> get_current(ByteReader& in) const {
    auto key = get_key<Key>(in);
    const std::uint64_t hash = detail::hash_of(key);
    auto item = std::make_unique<Current>(Current{std::move(key), {}, hash});
    auto& value = item->value;
    value.live = detail::get_flag(in);
    if (!value.live) value.erased_at = Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(in)));
    value.bytes = checker_->arranged(value.live, detail::get_text(in), columns_);
    return item;
  }

  /// Requires: States::saves_history.
  std::unique_ptr<History> get_history(ByteReader& in) const {
    auto key = get_key<Entity>(in);
    const std::uint64_t hash = detail::hash_of(key);
    auto item = std::make_unique<History>(History{std::move(key), {}, hash});
    const std::uint32_t count = detail::get_u32(in);
    if (count == 0) in.fail("a key is remembered without events");
    if (count > in.left()) in.fail("more events than the bytes can hold");
    Decoder decoder(in);
    for (std::uint32_t i = 0; i < count; ++i) item->value.push_back(get_event(decoder, item->key));
    check_order(in, item->value);
    return item;
  }

 private:
  using Event = typename States::History::Event;

  static void require_type(const char* of, const std::string& stored, const std::string& present) {
    if (stored != present) refuse_type(of, stored, present);
  }
  [[noreturn]] static void refuse_type(const char* of, const std::string& stored,
                                       const std::string& present) {
    throw SchemaMismatch(
        of, stored, present,
        "load it into a table with the key that was fed, and append its rows to the other one");
  }

  void place_columns() {
    std::vector<std::string> now;
    now.reserve(schema_.columns.size());
    const auto has = [this](std::string_view name) {
      return std::ranges::find(schema_.columns, name) != schema_.columns.end();
    };
    for (const std::string& column : schema_.columns) now.emplace_back(detail::name_now<Row>(column, has));
    const std::vector<std::string> present = detail::sequence_columns<Row>();
    columns_.stored = now.size();
    columns_.same = now == present;
    for (const std::string& column : present) {
      const auto at = std::ranges::find(now, column);
      columns_.places.push_back(at == now.end() ? no_position : static_cast<std::size_t>(at - now.begin()));
    }
  }

  Event get_event(Decoder& decoder, const Entity& key) const {
    ByteReader& in = decoder.in();
    const unsigned flags = detail::get_u8(in);
    const bool has_row = (flags & 1U) != 0;
    if (flags > 7 || (!has_row && flags != 0)) in.fail("an event has unknown flags");
    Event event{detail::get_sequence<From>(decoder), std::nullopt, {}};
    event.folded = (flags & 2U) != 0;
    if (has_row) {
      rows_.read(decoder, event.row.emplace());
      if (!detail::equal_values(history_parts<typename CoreType::KeyParts>::entity::of(*event.row), key))
        in.fail("an event is of another key than that it is remembered for");
    }
    if ((flags & 4U) != 0) event.given = get_given(in);
    return event;
  }

  std::vector<bool> get_given(ByteReader& in) const {
    if (columns_.stored == 0) in.fail("an event tells of columns that rows do not have");
    std::vector<bool> stored;
    stored.reserve(columns_.stored);
    for (std::size_t i = 0; i < columns_.stored; ++i) stored.push_back(detail::get_flag(in));
    std::vector<bool> given;
    given.reserve(columns_.places.size());
    for (const std::size_t place : columns_.places) given.push_back(place != no_position && stored[place]);
    return given;
  }

  static void check_order(ByteReader& in, const std::vector<Event>& events) {
    std::vector<const From*> times;
    for (const Event& event : events) times.push_back(&event.at);
    const auto less = [](const From* a, const From* b) { return detail::less_values(*a, *b); };
    std::ranges::sort(times, less);
    const auto same =
        std::ranges::adjacent_find(times, [&](const From* a, const From* b) { return !less(a, b); });
    if (same != times.end()) in.fail("two events of a key have the same sequence");
  }

  SequenceSchema schema_;
  const RowDecoder<Row>& rows_;
  ColumnPlaces columns_;
  std::optional<SequenceChecker> checker_;
};

/// Reads all that a snapshot remembers.
template <class CoreType>
class RememberedLoader {
 public:
  using Row = typename CoreType::RowType;
  using States = SequenceStates<CoreType>;

  /// The part of the header. Throws as RememberedReader.
  void read_header(ByteReader& in, const RowDecoder<Row>& rows) {
    SequenceSchema schema = detail::get_sequence_schema(in);
    if (schema.form == SequenceForm::none) return;
    reader_.emplace(std::move(schema), rows);
    std::optional<std::string> truncated = detail::get_optional_text(in);
    count_ = detail::get_u64(in);
    if (reader_->schema().form == SequenceForm::history) {
      if (truncated) in.fail("history rows are never truncated");
      history_ = std::make_unique<typename States::History>();
      return;
    }
    current_ = std::make_unique<typename States::Stored>();
    current_->origin.text = reader_->schema().type;
    if (!truncated) return;
    reader_->check_truncate(*truncated);
    current_->truncated = std::make_unique<const StoredSequence>(StoredSequence{std::move(*truncated)});
  }

  /// How many keys there are to read().
  std::uint64_t size() const noexcept { return count_; }

  void read([[maybe_unused]] ByteReader& in) {
    if (current_ != nullptr) {
      if constexpr (States::saves_current) add(in, current_->keys, *current_, reader_->get_current(in));
    } else {
      if constexpr (States::saves_history) add(in, history_->keys, history_->keys, reader_->get_history(in));
    }
  }

  /// All is read: from here on.
  std::unique_ptr<SequenceState> take(const std::string& file, std::uint64_t offset) {
    if (current_ == nullptr) return std::move(history_);
    current_->origin.file = file;
    current_->origin.offset = offset;
    return std::move(current_);
  }

 private:
  template <class Keys, class State, class Item>
  void add(ByteReader& in, Keys& keys, State& state, std::unique_ptr<Item> item) {
    if (keys.find(item->key, item->hash) != nullptr) in.fail("a key is remembered twice");
    keys.reserve_one(item->hash);
    state.add(std::move(item));
  }

  std::optional<RememberedReader<CoreType>> reader_;
  std::uint64_t count_ = 0;
  std::unique_ptr<typename States::Stored> current_;
  std::unique_ptr<typename States::History> history_;
};

}  // namespace keyfold::detail
