// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>
#include <type_traits>

/// What a key part or column is: a data member, a const member function or a captureless callable; how it is
/// read from a row and what it is called.
namespace keyfold::detail {

template <class Pointer>
struct member_owner {
  using type = void;  // a callable belongs to no row type
};
template <class Value, class Owner>
struct member_owner<Value Owner::*> {
  using type = Owner;
};

/// The type whose member `Member` is; void for a callable.
template <auto Member>
using owner_of = typename member_owner<std::remove_cv_t<decltype(Member)>>::type;

template <auto Member>
inline constexpr bool is_data_member = std::is_member_object_pointer_v<decltype(Member)>;

/// Whether `Member` can be read from a const Row.
template <auto Member, class Row>
concept Readable = [] {
  if constexpr (std::is_member_pointer_v<decltype(Member)>) {
    return std::is_base_of_v<owner_of<Member>, Row> && std::is_invocable_v<decltype(Member), const Row&>;
  } else {
    return std::is_invocable_v<decltype(Member), const Row&>;
  }
}();

template <auto Member, class Row>
constexpr decltype(auto) read(const Row& row) {
  if constexpr (is_data_member<Member>) {
    return (row.*Member);
  } else if constexpr (std::is_member_pointer_v<decltype(Member)>) {
    return (row.*Member)();
  } else {
    return Member(row);
  }
}

template <auto Member, class Row>
using member_value_t = std::remove_cvref_t<decltype(read<Member>(std::declval<const Row&>()))>;

// The compilers print the member of a free function's only template parameter in full; nowhere else reliably
// so.
template <auto Member>
constexpr std::string_view spelled() {
  return __PRETTY_FUNCTION__;
}

constexpr std::string_view last_name(std::string_view text) {
  const auto start = text.find("Member = ") + 9;
  const auto more = text.find("; std::string_view = ", start);  // g++ goes on with what the return type is
  text = text.substr(start, (more != std::string_view::npos ? more : text.rfind(']')) - start);
  while (!text.empty() && (text.back() == ')' || text.back() == ' ')) text.remove_suffix(1);
  return text.substr(text.rfind(':') + 1);
}

/// The name of a member as written in the source; "<callable>" for a callable.
template <auto Member>
inline constexpr std::string_view member_name =
    std::is_member_pointer_v<decltype(Member)> ? last_name(spelled<Member>())
                                               : std::string_view("<callable>");

/// "(a, b)" or, for a single member, "a": how an index is called in messages.
template <auto First, auto... Rest, class String>
void append_names(String& out) {
  if constexpr (sizeof...(Rest) == 0) {
    out += member_name<First>;
  } else {
    out += '(';
    out += member_name<First>;
    ((out += ", ", out += member_name<Rest>), ...);
    out += ')';
  }
}

}  // namespace keyfold::detail
