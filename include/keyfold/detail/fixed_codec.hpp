// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/bytes.hpp>
#include <keyfold/detail/codec_kind.hpp>
#include <keyfold/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

/// The codec of values whose bytes in a file are always as many: numbers, enums, times, and what is made of
/// them.
namespace keyfold::detail {

/// Throws unless a described enum has a value that its enumerators make up.
template <class Enum>
void require_allowed(Enum value) {
  const auto number = static_cast<std::underlying_type_t<Enum>>(value);
  if (!detail::is_allowed<Enum>(number))
    throw Error("an enum has the value " + std::to_string(number) +
                ", which its described enumerators do not make up; describe all of them");
}

template <class T>
std::byte* put_fixed(std::byte* to, const T& value);

/// Whether columns follow each other in memory as they are listed. Compilers know.
template <auto... Members, class Row>
bool are_in_a_row(MemberList<Members...>, const Row& row) noexcept {
  const auto* at = reinterpret_cast<const std::byte*>(&row);
  return ((reinterpret_cast<const std::byte*>(&(row.*Members)) ==
           std::exchange(at, at + detail::encoded_size<member_t<Members>>())) &&
          ...);
}

template <auto... Members, class Row>
std::byte* put_fixed_columns(MemberList<Members...> columns, std::byte* to, const Row& row) {
  if constexpr (detail::is_bitwise<Row>()) {
    constexpr std::size_t size = detail::encoded_size<Row>();
    if (detail::are_in_a_row(columns, row)) {
      std::memcpy(to, &row, size);
      return to + size;
    }
  }
  ((to = detail::put_fixed(to, row.*Members)), ...);
  return to;
}

/// Writes a value of fixed size; returns the end of it.
template <class T>
std::byte* put_fixed(std::byte* to, const T& value) {
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (kind == CodecKind::boolean) {
    *to = static_cast<std::byte>(value ? 1 : 0);
    return to + 1;
  } else if constexpr (kind == CodecKind::number) {
    detail::store_number(to, value);
    return to + sizeof value;
  } else if constexpr (kind == CodecKind::enumeration) {
    detail::require_allowed(value);
    return detail::put_fixed(to, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (kind == CodecKind::duration) {
    return detail::put_fixed(to, value.count());
  } else if constexpr (kind == CodecKind::time_point) {
    return detail::put_fixed(to, value.time_since_epoch());
  } else if constexpr (kind == CodecKind::date) {
    detail::store_number(to, static_cast<std::int16_t>(int{value.year()}));
    to[2] = static_cast<std::byte>(unsigned{value.month()});
    to[3] = static_cast<std::byte>(unsigned{value.day()});
    return to + 4;
  } else if constexpr (kind == CodecKind::array) {
    if constexpr (array_traits<T>::size != 0) {
      for (const auto& element : value) to = detail::put_fixed(to, element);
    }
    return to;
  } else if constexpr (kind == CodecKind::tuple) {
    std::apply([&](const auto&... part) { ((to = detail::put_fixed(to, part)), ...); }, value);
    return to;
  } else if constexpr (kind == CodecKind::record) {
    return detail::put_fixed_columns(columns_list<T>{}, to, value);
  } else {
    static_assert(kind == CodecKind::nothing);
    return to;
  }
}

template <class T>
const std::byte* get_fixed(const ByteReader& in, const std::byte* from, T& value);

template <auto... Members, class Row>
const std::byte* get_fixed_columns(MemberList<Members...> columns, const ByteReader& in,
                                   const std::byte* from, Row& row) {
  if constexpr (detail::is_bitwise<Row>()) {
    constexpr std::size_t size = detail::encoded_size<Row>();
    if (detail::are_in_a_row(columns, row)) {
      std::memcpy(static_cast<void*>(&row), from, size);
      return from + size;
    }
  }
  ((from = detail::get_fixed(in, from, row.*Members)), ...);
  return from;
}

/// Reads a value of fixed size, whose bytes are known to be there; returns their end.
template <class T>
const std::byte* get_fixed(const ByteReader& in, const std::byte* from, T& value) {
  static_assert(!std::is_const_v<T>, "keyfold: a column that is const cannot be loaded");
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (kind == CodecKind::boolean) {
    if (std::to_integer<unsigned>(*from) > 1) in.fail("a bool is neither 0 nor 1");
    value = *from != std::byte{0};
    return from + 1;
  } else if constexpr (kind == CodecKind::number) {
    value = detail::load_number<T>(from);
    return from + sizeof value;
  } else if constexpr (kind == CodecKind::enumeration) {
    std::underlying_type_t<T> number{};
    from = detail::get_fixed(in, from, number);
    if (!detail::is_allowed<T>(number)) in.fail("an enum has a value that its enumerators do not make up");
    value = static_cast<T>(number);
    return from;
  } else if constexpr (kind == CodecKind::duration) {
    typename T::rep count{};
    from = detail::get_fixed(in, from, count);
    value = T(count);
    return from;
  } else if constexpr (kind == CodecKind::time_point) {
    typename T::duration since{};
    from = detail::get_fixed(in, from, since);
    value = T(since);
    return from;
  } else if constexpr (kind == CodecKind::date) {
    value = std::chrono::year_month_day(std::chrono::year(detail::load_number<std::int16_t>(from)),
                                        std::chrono::month(std::to_integer<unsigned>(from[2])),
                                        std::chrono::day(std::to_integer<unsigned>(from[3])));
    return from + 4;
  } else if constexpr (kind == CodecKind::array) {
    if constexpr (array_traits<T>::size != 0) {
      for (auto& element : value) from = detail::get_fixed(in, from, element);
    }
    return from;
  } else if constexpr (kind == CodecKind::tuple) {
    std::apply([&](auto&... part) { ((from = detail::get_fixed(in, from, part)), ...); }, value);
    return from;
  } else if constexpr (kind == CodecKind::record) {
    return detail::get_fixed_columns(columns_list<T>{}, in, from, value);
  } else {
    static_assert(kind == CodecKind::nothing);
    return from;
  }
}

}  // namespace keyfold::detail
