// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/archive.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// Types as files name them, such as `optional(list(int32))`. The grammar is in docs/file-format.md.
namespace keyfold::detail {

template <class Number>
std::string number_text() {
  if constexpr (std::same_as<Number, char>) {
    return "char";
  } else {
    const char* const kind = std::is_floating_point_v<Number> ? "float"
                             : std::is_signed_v<Number>       ? "int"
                                                              : "uint";
    return kind + std::to_string(8 * sizeof(Number));
  }
}

/// The records that a type is part of, outermost first, by the address of something each type has of its own.
using Enclosing = std::vector<const void*>;

template <class T>
inline constexpr char identity_of = 0;

template <class T>
std::string type_text(Enclosing& enclosing);

template <class... T>
std::string type_texts(Enclosing& enclosing) {
  std::string out;
  ((out += out.empty() ? "" : ",", out += detail::type_text<T>(enclosing)), ...);
  return '(' + out + ')';
}

template <class T>
struct type_texts_of;
template <template <class...> class Template, class... T>
struct type_texts_of<Template<T...>> {
  static std::string get(Enclosing& enclosing) { return detail::type_texts<T...>(enclosing); }
};

template <class Container>
std::string container_text(Enclosing& enclosing) {
  using Element = element_t<Container>;
  if constexpr (requires { typename Container::mapped_type; }) {
    return "map" +
           detail::type_texts<typename Container::key_type, typename Container::mapped_type>(enclosing);
  } else {
    constexpr bool is_set = requires { typename Container::key_type; };
    return (is_set ? "set" : "list") + detail::type_texts<Element>(enclosing);
  }
}

template <auto... Members>
std::string record_text(MemberList<Members...>, Enclosing& enclosing) {
  std::string out;
  ((out += out.empty() ? "" : ",", out += member_name<Members>, out += ':',
    out += detail::type_text<member_t<Members>>(enclosing)),
   ...);
  return "record(" + out + ')';
}

template <class Record>
std::string record_text(Enclosing& enclosing) {
  for (std::size_t i = 0; i < enclosing.size(); ++i) {
    if (enclosing[i] == &identity_of<Record>) return "same(" + std::to_string(enclosing.size() - i) + ')';
  }
  enclosing.push_back(&identity_of<Record>);
  std::string out = detail::record_text(columns_list<Record>{}, enclosing);
  enclosing.pop_back();
  return out;
}

template <class T>
std::string type_text(Enclosing& enclosing) {
  constexpr CodecKind kind = codec_kind_v<T>;
  detail::require_codec<T>();
  if constexpr (kind == CodecKind::boolean) {
    return "bool";
  } else if constexpr (kind == CodecKind::number) {
    return detail::number_text<T>();
  } else if constexpr (kind == CodecKind::enumeration) {
    return "enum(" + detail::type_text<std::underlying_type_t<T>>(enclosing) + ')';
  } else if constexpr (kind == CodecKind::duration) {
    return "duration(" + detail::type_text<typename T::rep>(enclosing) + ',' +
           std::to_string(T::period::num) + '/' + std::to_string(T::period::den) + ')';
  } else if constexpr (kind == CodecKind::time_point) {
    return "time(" + detail::type_text<typename T::duration>(enclosing) + ')';
  } else if constexpr (kind == CodecKind::date) {
    return "date";
  } else if constexpr (kind == CodecKind::nothing) {
    return "nothing";
  } else if constexpr (kind == CodecKind::text) {
    return "text";
  } else if constexpr (kind == CodecKind::optional) {
    return "optional" + detail::type_texts<typename T::value_type>(enclosing);
  } else if constexpr (kind == CodecKind::array) {
    using Traits = array_traits<T>;
    return "array(" + std::to_string(Traits::size) + ',' +
           detail::type_text<typename Traits::element>(enclosing) + ')';
  } else if constexpr (kind == CodecKind::tuple) {
    return "tuple" + type_texts_of<T>::get(enclosing);
  } else if constexpr (kind == CodecKind::variant) {
    return "variant" + type_texts_of<T>::get(enclosing);
  } else if constexpr (kind == CodecKind::container) {
    return detail::container_text<T>(enclosing);
  } else if constexpr (kind == CodecKind::record) {
    return detail::record_text<T>(enclosing);
  } else {
    return "object";
  }
}

/// The name of a column's type; `Row` is the row it is in.
template <class T, class Row>
std::string type_text_in() {
  Enclosing enclosing{&identity_of<Row>};
  return detail::type_text<T>(enclosing);
}

}  // namespace keyfold::detail
