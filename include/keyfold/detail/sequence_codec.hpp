// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/archive.hpp>
#include <keyfold/detail/key_sequences.hpp>
#include <keyfold/detail/type_text.hpp>
#include <keyfold/error.hpp>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// Sequences of feeds as bytes. Only the feeds of a program know their types; so what a feed makes also knows
/// how to write itself, and files keep sequences as bytes beside the name of their type until a feed asks for
/// them. docs/file-format.md has the bytes.
namespace keyfold::detail {

// --- Types that can be saved: asked for every feed, whether or not anybody saves its table

template <class... Enclosing>
struct Savable {
  template <class T>
  static consteval bool is() {
    using enum CodecKind;
    constexpr CodecKind kind = codec_kind_v<T>;
    if constexpr ((std::same_as<T, Enclosing> || ...)) {
      return true;
    } else if constexpr (kind == none || kind == wrapper) {
      return false;
    } else if constexpr (kind == object) {
      return UserSerialized<T> &&
             boost::serialization::tracking_level<T>::value != boost::serialization::track_always &&
             boost::serialization::implementation_level<T>::value >=
                 boost::serialization::object_serializable;
    } else if constexpr (kind == duration) {
      return is<typename T::rep>();
    } else if constexpr (kind == time_point) {
      return is<typename T::duration>();
    } else if constexpr (kind == optional) {
      return is<typename T::value_type>();
    } else if constexpr (kind == array) {
      return is<typename array_traits<T>::element>();
    } else if constexpr (kind == tuple || kind == variant) {
      return all_of<T>::value;
    } else if constexpr (kind == container) {
      return std::default_initializable<element_t<T>> && is<element_t<T>>();
    } else if constexpr (kind == record) {
      return Savable<T, Enclosing...>::are_columns(columns_list<T>{});
    } else {
      return true;
    }
  }

  template <auto... Members>
  static consteval bool are_columns(MemberList<Members...>) {
    return (is_column<Members>() && ...);
  }

 private:
  template <auto Member>
  static consteval bool is_column() {
    if constexpr (is_data_member<Member>) {
      return !std::is_const_v<member_t<Member>> && is<member_t<Member>>();
    } else {
      return false;
    }
  }

  template <class T>
  struct all_of;
  template <template <class...> class Template, class... T>
  struct all_of<Template<T...>> {
    static constexpr bool value = (is<T>() && ...);
  };
};

template <class T>
concept SavableSequence = std::default_initializable<T> && Savable<>::is<T>();

/// The type as files name it. Throws UnsavableSequence.
template <class T>
std::string sequence_text() {
  if constexpr (SavableSequence<T>) {
    Enclosing none;
    return detail::type_text<T>(none);
  } else {
    throw UnsavableSequence();
  }
}

/// The same for messages.
template <class T>
std::string sequence_name() {
  if constexpr (SavableSequence<T>) {
    return detail::sequence_text<T>();
  } else {
    return "a class that files have no name for";
  }
}

// --- The sequences of a key

enum SequenceFlag : unsigned {
  has_set = 1,
  has_erased = 2,
  has_base = 4,
  base_was_fed = 8,
  has_columns = 16,
  all_sequence_flags = 31
};

/// What files have of a key beside the key.
struct StoredKey {
  bool live = false;
  Timestamp erased_at{};
  std::span<const std::byte> sequences{};
};

/// Refers to `out`, or to the value.
template <class Seq>
StoredKey stored_key_of(const KeySequences<Seq>& value, ByteBuffer& out) {
  out.clear();
  if constexpr (SavableSequence<Seq>) {
    const unsigned flags = (value.set ? has_set : 0U) | (value.erased ? has_erased : 0U) |
                           (value.base ? has_base : 0U) | (value.fed ? base_was_fed : 0U) |
                           (value.columns.empty() ? 0U : has_columns);
    detail::put_u8(out, static_cast<std::uint8_t>(flags));
    Encoder encoder(out);
    for (const std::optional<Seq>* part : {&value.set, &value.erased, &value.base}) {
      if (*part) encoder.put(**part);
    }
    for (const std::optional<Seq>& column : value.columns) encoder.put(column);
    return {value.live, value.erased_at, out.bytes()};
  } else {
    throw UnsavableSequence();
  }
}
inline StoredKey stored_key_of(const KeySequences<StoredSequence>& value, ByteBuffer&) {
  return {value.live, value.erased_at, std::as_bytes(std::span(value.bytes))};
}

/// The bytes of one sequence.
template <class Seq>
std::string stored_sequence(const Seq& value) {
  if constexpr (std::same_as<Seq, StoredSequence>) {
    return value.bytes;
  } else if constexpr (SavableSequence<Seq>) {
    ByteBuffer out;
    Encoder(out).put(value);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  } else {
    throw UnsavableSequence();
  }
}

inline void check_sequence_flags(const ByteReader& in, unsigned flags, bool live) {
  if (flags > all_sequence_flags) in.fail("what is remembered of a key has unknown flags");
  if ((flags & base_was_fed) != 0 && (flags & has_base) == 0) in.fail("a first upsert is missing");
  if (!live && flags != has_erased) in.fail("a deleted key is remembered with something else than its end");
}

template <class Seq>
Seq get_sequence(Decoder& decoder) {
  Seq value{};
  decoder.get(value);
  if (detail::is_nan(value)) decoder.in().fail("a sequence is NaN");
  return value;
}

/// Reads the sequences of a key of a row with so many columns. Throws DecodeError.
template <class Seq>
KeySequences<Seq> sequences_of(const KeySequences<StoredSequence>& stored, std::size_t columns) {
  ByteReader in(std::as_bytes(std::span(stored.bytes)));
  Decoder decoder(in);
  const unsigned flags = detail::get_u8(in);
  detail::check_sequence_flags(in, flags, stored.live);
  KeySequences<Seq> value;
  value.live = stored.live;
  value.erased_at = stored.erased_at;
  value.fed = (flags & base_was_fed) != 0;
  if ((flags & has_set) != 0) value.set = detail::get_sequence<Seq>(decoder);
  if ((flags & has_erased) != 0) value.erased = detail::get_sequence<Seq>(decoder);
  if ((flags & has_base) != 0) value.base = detail::get_sequence<Seq>(decoder);
  if ((flags & has_columns) != 0) {
    value.columns.resize(columns);
    for (std::optional<Seq>& column : value.columns) {
      if (detail::get_flag(in)) column = detail::get_sequence<Seq>(decoder);
    }
  }
  assert(in.left() == 0);  // the SequenceChecker has seen to it
  return value;
}
template <class Seq>
Seq sequence_of(const StoredSequence& stored) {
  ByteReader in(std::as_bytes(std::span(stored.bytes)));
  Decoder decoder(in);
  Seq value = detail::get_sequence<Seq>(decoder);
  assert(in.left() == 0);
  return value;
}

}  // namespace keyfold::detail
