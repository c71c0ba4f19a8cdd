// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/current_state.hpp>
#include <keyfold/detail/history_changes.hpp>
#include <keyfold/detail/history_state.hpp>
#include <keyfold/detail/sequence_codec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

/// What files say about the sequences that a table remembers.
namespace keyfold::detail {

enum class SequenceForm : std::uint8_t { none, current, history };

struct SequenceSchema {
  SequenceForm form = SequenceForm::none;
  std::string key{};  // types, as docs/file-format.md writes them
  std::string type{};
  std::vector<std::string> columns{};  // those that sequences of single columns are about, in their order
  bool operator==(const SequenceSchema&) const = default;
};

inline void put_sequence_schema(ByteBuffer& out, const SequenceSchema& schema) {
  detail::put_u8(out, static_cast<std::uint8_t>(schema.form));
  if (schema.form == SequenceForm::none) return;
  detail::put_text(out, schema.key);
  detail::put_text(out, schema.type);
  detail::put_count(out, schema.columns.size());
  for (const std::string& column : schema.columns) detail::put_text(out, column);
}

/// Throws DecodeError.
inline SequenceSchema get_sequence_schema(ByteReader& in) {
  SequenceSchema schema;
  const std::uint8_t form = detail::get_u8(in);
  if (form > static_cast<std::uint8_t>(SequenceForm::history)) in.fail("sequences have an unknown form");
  schema.form = static_cast<SequenceForm>(form);
  if (schema.form == SequenceForm::none) return schema;
  schema.key = detail::get_text(in);
  schema.type = detail::get_text(in);
  for (std::uint32_t left = detail::get_u32(in); left > 0; --left)
    schema.columns.emplace_back(detail::get_text(in));
  return schema;
}

inline void put_optional_text(ByteBuffer& out, const std::optional<std::string>& text) {
  detail::put_u8(out, text ? 1 : 0);
  if (text) detail::put_text(out, *text);
}
inline std::optional<std::string> get_optional_text(ByteReader& in) {
  if (!detail::get_flag(in)) return std::nullopt;
  return std::string(detail::get_text(in));
}

template <class Parts>
struct history_parts {
  static constexpr bool possible = false;
};
template <auto First, auto Second, auto... Rest>
struct history_parts<Parts<First, Second, Rest...>> {
  using entity = typename split_key<Parts<First, Second, Rest...>>::front;
  using from = typename split_key<Parts<First, Second, Rest...>>::last;
  static constexpr bool possible = true;
};

/// The states that a table can have. Only the sequences of current rows may be of any type; those of history
/// rows have that of the last part of the key.
template <class CoreType>
struct SequenceStates {
  using Row = typename CoreType::RowType;
  using KeyParts = typename CoreType::KeyParts;

  using Key = stored_key_t<KeyParts, Row>;
  using Current = AnyCurrentState<Key>;
  using CurrentUpdate = AnyCurrentUpdate<Key>;
  using Stored = CurrentState<Key, StoredSequence>;

  template <class Parts>
  static auto entity_of() {
    if constexpr (history_parts<Parts>::possible) {
      return std::type_identity<stored_key_t<typename history_parts<Parts>::entity, Row>>();
    } else {
      return std::type_identity<std::tuple<>>();
    }
  }
  template <class Parts>
  static auto from_of() {
    if constexpr (history_parts<Parts>::possible) {
      return std::type_identity<
          std::tuple_element_t<0, stored_key_t<typename history_parts<Parts>::from, Row>>>();
    } else {
      return std::type_identity<int>();
    }
  }
  using Entity = typename decltype(entity_of<KeyParts>())::type;
  using From = typename decltype(from_of<KeyParts>())::type;
  using History = HistoryState<Entity, Row, From>;
  using HistoryUpdate = detail::HistoryUpdate<History>;

  static constexpr bool saves_current = SavableSequence<Key>;
  static constexpr bool saves_history = history_parts<KeyParts>::possible && SavableSequence<Entity> &&
                                        SavableSequence<From> && SequencePart<From>;
};

template <auto... Members>
std::vector<std::string> texts_of(MemberList<Members...>) {
  return {std::string(member_name<Members>)...};
}
/// The columns that sequences of single columns are about.
template <class Row>
std::vector<std::string> sequence_columns() {
  if constexpr (HasColumns<Row>) {
    return detail::texts_of(columns_list<Row>{});
  } else {
    return {};
  }
}

}  // namespace keyfold::detail
