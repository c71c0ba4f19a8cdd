// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/member.hpp>
#include <keyfold/detail/value.hpp>

#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/serialization/serialization.hpp>
#include <boost/serialization/wrapper.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

/// How a type is written to files; told at compile time.
namespace keyfold::detail {

class OutputArchive;

enum class CodecKind : std::uint8_t {
  boolean,
  number,
  enumeration,
  duration,
  time_point,
  date,
  nothing,  // std::monostate
  text,     // std::string
  optional,
  array,  // std::array, or an array of C
  tuple,  // std::tuple, std::pair
  variant,
  container,  // what can be cleared and filled again: vector, list, set, map...
  wrapper,    // what Boost.Serialization wraps a value in: nvp, array_wrapper...
  object,     // has a serialize() of the user's or of Boost.Serialization
  record,     // has a column list
  none
};

// --- Has the user written a serialize()?

struct HasTheName {
  int serialize;
};
template <class T>
struct MemberProbe : T, HasTheName {};

/// Whether a class has a member called serialize, private ones too: then the name is ambiguous in the probe.
template <class T>
concept SerializeMember =
    std::is_class_v<T> && !std::is_final_v<T> && !requires { &MemberProbe<T>::serialize; };

template <class T>
concept OpenSerializeMember = requires(T& value, OutputArchive& archive) { value.serialize(archive, 0U); };

/// Converts to T&, which Boost's own serialize(Archive&, T&, unsigned), a template for all types, cannot
/// take.
template <class T>
struct ReferenceProbe {
  operator T&() const;  // NOLINT(google-explicit-constructor)
};

/// Whether there is a serialize(Archive&, T&, unsigned) beside T or in boost::serialization.
template <class T>
concept SerializeFunction =
    std::is_class_v<T> &&
    (requires(OutputArchive& archive) {
      serialize(archive, ReferenceProbe<T>{}, boost::serialization::version_type(0));
    } || requires(OutputArchive& archive, T& value) { serialize(archive, value, 0U); });

template <class T>
concept UserSerialized = SerializeMember<T> || OpenSerializeMember<T> || SerializeFunction<T>;

/// An instance of a class template: what Boost.Serialization may know although no probe can tell.
template <class T>
inline constexpr bool is_instance = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_instance<Template<Arguments...>> = true;
template <template <class, std::size_t> class Template, class First, std::size_t second>
inline constexpr bool is_instance<Template<First, second>> = true;
template <template <std::size_t> class Template, std::size_t argument>
inline constexpr bool is_instance<Template<argument>> = true;

// --- The kinds

template <class T>
inline constexpr bool is_text_v = false;
template <class Traits, class Allocator>
inline constexpr bool is_text_v<std::basic_string<char, Traits, Allocator>> = true;

template <class T>
inline constexpr bool is_std_array_v = false;
template <class T, std::size_t size>
inline constexpr bool is_std_array_v<std::array<T, size>> = true;

template <class T>
concept Fillable = std::ranges::input_range<const T> && std::default_initializable<T> &&
                   requires(T& container, typename T::value_type element) {
                     container.clear();
                     container.size();
                     requires requires { container.push_back(std::move(element)); } ||
                                  requires { container.insert(std::move(element)); };
                   };

/// What refers to something elsewhere: a pointer of any sort, a view of a text.
template <class T>
concept Reference = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T> ||
                    std::same_as<T, std::string_view> || requires(const T& value) {
                      typename T::element_type;
                      value.get();
                    };

template <class T>
consteval CodecKind codec_kind_of_class() {
  using enum CodecKind;
  if constexpr (is_duration_v<T>) {
    return duration;
  } else if constexpr (is_time_point_v<T>) {
    return time_point;
  } else if constexpr (std::same_as<T, std::chrono::year_month_day>) {
    return date;
  } else if constexpr (std::same_as<T, std::monostate>) {
    return nothing;
  } else if constexpr (is_text_v<T>) {
    return text;
  } else if constexpr (is_optional_v<T>) {
    return optional;
  } else if constexpr (is_std_array_v<T>) {
    return array;
  } else if constexpr (is_tuple_v<T>) {
    return tuple;
  } else if constexpr (is_variant_v<T>) {
    return variant;
  } else if constexpr (boost::serialization::is_wrapper<T>::type::value) {
    return wrapper;
  } else if constexpr (Reference<T>) {
    return none;
  } else if constexpr (UserSerialized<T>) {
    return object;
  } else if constexpr (HasColumns<T>) {
    return record;
  } else if constexpr (Fillable<T>) {
    return container;
  } else {
    return is_instance<T> ? object : none;
  }
}

template <class T>
consteval CodecKind codec_kind() {
  using enum CodecKind;
  if constexpr (std::is_class_v<T>) {
    return detail::codec_kind_of_class<T>();
  } else if constexpr (std::same_as<T, bool>) {
    return boolean;
  } else if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, long double>) {
    return number;
  } else if constexpr (std::is_enum_v<T>) {
    return enumeration;
  } else {
    return std::is_array_v<T> ? array : none;
  }
}

template <class T>
inline constexpr CodecKind codec_kind_v = codec_kind<T>();

/// A member of a container as it is read: the key of a map is not const there.
template <class T>
struct readable_element {
  using type = T;
};
template <class Key, class Value>
struct readable_element<std::pair<const Key, Value>> {
  using type = std::pair<Key, Value>;
};
template <class Container>
using element_t = typename readable_element<typename Container::value_type>::type;

template <class Array>
struct array_traits;
template <class T, std::size_t count>
struct array_traits<T[count]> {
  using element = T;
  static constexpr std::size_t size = count;
};
template <class T, std::size_t count>
struct array_traits<std::array<T, count>> {
  using element = T;
  static constexpr std::size_t size = count;
};

template <class Member>
struct member_type;
template <class Value, class Owner>
struct member_type<Value Owner::*> {
  using type = Value;
};
template <auto Member>
using member_t = typename member_type<std::remove_cv_t<decltype(Member)>>::type;

// --- Sizes

/// Bytes that each value of T takes in a file; `varying` if they are not the same for all.
inline constexpr std::size_t varying = static_cast<std::size_t>(-1);

template <class T>
consteval std::size_t encoded_size();

template <class... T>
consteval std::size_t sum_of_sizes() {
  std::size_t sum = 0;
  for (const std::size_t size : {std::size_t{0}, detail::encoded_size<T>()...}) {
    if (size == varying) return varying;
    sum += size;
  }
  return sum;
}

template <class T>
struct size_of_all;
template <class... T>
struct size_of_all<std::tuple<T...>> {
  static constexpr std::size_t value = detail::sum_of_sizes<T...>();
};
template <class A, class B>
struct size_of_all<std::pair<A, B>> {
  static constexpr std::size_t value = detail::sum_of_sizes<A, B>();
};
template <auto... Members>
struct size_of_all<MemberList<Members...>> {
  static_assert((is_data_member<Members> && ...),
                "keyfold: a column that is a function cannot be saved; list data members only, or give the "
                "class a serialize()");
  static constexpr std::size_t value = detail::sum_of_sizes<member_t<Members>...>();
};

template <class T>
consteval std::size_t encoded_size() {
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (kind == CodecKind::boolean) {
    return 1;
  } else if constexpr (kind == CodecKind::number || kind == CodecKind::enumeration) {
    return sizeof(T);
  } else if constexpr (kind == CodecKind::duration) {
    return detail::encoded_size<typename T::rep>();
  } else if constexpr (kind == CodecKind::time_point) {
    return detail::encoded_size<typename T::duration>();
  } else if constexpr (kind == CodecKind::date) {
    return 4;
  } else if constexpr (kind == CodecKind::nothing) {
    return 0;
  } else if constexpr (kind == CodecKind::array) {
    using Traits = array_traits<T>;
    constexpr std::size_t one = detail::encoded_size<typename Traits::element>();
    return Traits::size == 0 ? 0 : one == varying ? varying : one * Traits::size;
  } else if constexpr (kind == CodecKind::tuple) {
    return size_of_all<T>::value;
  } else if constexpr (kind == CodecKind::record) {
    return size_of_all<columns_list<T>>::value;
  } else {
    return varying;
  }
}

/// Values that are written to memory with one check for room.
template <class T>
concept FixedSize = encoded_size<T>() != varying;

template <class T>
consteval bool is_bitwise();

template <class List>
inline constexpr bool are_bitwise = false;
template <auto... Members>
inline constexpr bool are_bitwise<MemberList<Members...>> = (is_bitwise<member_t<Members>>() && ...);

/// Whether the bytes of T in memory are those in a file, if its columns stand in memory as they are listed
/// and without gaps, and any bytes will do.
template <class T>
consteval bool is_bitwise() {
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (std::endian::native != std::endian::little || !std::is_trivially_copyable_v<T>) {
    return false;
  } else if constexpr (kind == CodecKind::number) {
    return true;
  } else if constexpr (kind == CodecKind::duration || kind == CodecKind::time_point) {
    return sizeof(T) == detail::encoded_size<T>();
  } else if constexpr (kind == CodecKind::record) {
    return are_bitwise<columns_list<T>>;
  } else {
    return false;
  }
}

/// What the bits of a described enum may be: those of its enumerators, so that flags can be combined.
template <class Enum>
constexpr auto allowed_bits() {
  using Bits = std::make_unsigned_t<std::underlying_type_t<Enum>>;
  if constexpr (boost::describe::has_describe_enumerators<Enum>::value) {
    Bits bits = 0;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<Enum>>(
        [&](auto described) { bits = static_cast<Bits>(bits | static_cast<Bits>(described.value)); });
    return bits;
  } else {
    return static_cast<Bits>(~Bits{0});
  }
}

template <class Enum>
constexpr bool is_allowed(std::underlying_type_t<Enum> value) {
  using Underlying = std::underlying_type_t<Enum>;
  if constexpr (std::same_as<Underlying, bool>) {
    return true;
  } else {
    using Bits = std::make_unsigned_t<Underlying>;
    return (static_cast<Bits>(value) & static_cast<Bits>(~allowed_bits<Enum>())) == 0;
  }
}

}  // namespace keyfold::detail
