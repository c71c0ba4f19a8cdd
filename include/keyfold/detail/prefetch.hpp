// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <tuple>
#include <type_traits>

namespace keyfold::detail {

// Whoever calls a function that does nothing but prefetch calls, for GCC, a function without effect, and the
// call goes. The empty statement is an effect.

/// Starts loading what stands there. Any address will do.
inline void prefetch(const void* address) noexcept {
  __builtin_prefetch(address);
  asm volatile("");
}
inline void prefetch_to_write(const void* address) noexcept {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

/// The cache lines of an object that lies there, or would lie there: all, unless it is very large.
template <class Object>
void prefetch_lines(const Object* object) noexcept {
  constexpr std::size_t cache_line = 64;
  constexpr std::size_t most = 8 * cache_line;
  constexpr std::size_t bytes = sizeof(Object) < most ? sizeof(Object) : most;
  const auto first = reinterpret_cast<std::uintptr_t>(object);
  for (std::size_t offset = 0; offset < bytes; offset += cache_line)
    detail::prefetch(reinterpret_cast<const void*>(first + offset));
  detail::prefetch(reinterpret_cast<const void*>(first + sizeof(Object) - 1));
}

/// A part of a key, as a tuple has it, whose value lies outside the row: the text of a std::string, or what a
/// view leads to. Of ranges only: what else is called data() may do anything.
template <class Part>
concept KeptElsewhere = (std::is_lvalue_reference_v<Part> || std::is_trivially_copyable_v<Part>) &&
                        std::ranges::contiguous_range<const std::remove_reference_t<Part>>;

template <class Key>
inline constexpr bool is_kept_elsewhere = false;
template <class... Parts>
inline constexpr bool is_kept_elsewhere<std::tuple<Parts...>> = (KeptElsewhere<Parts> || ...);

template <class Part>
void prefetch_part(const Part& part) {
  if constexpr (KeptElsewhere<const Part&>) detail::prefetch(std::ranges::data(part));
}

/// What parts of a key keep elsewhere.
template <class... Parts>
void prefetch_elsewhere(const std::tuple<Parts...>& key) {
  std::apply([](const auto&... part) { (detail::prefetch_part(part), ...); }, key);
}

}  // namespace keyfold::detail
