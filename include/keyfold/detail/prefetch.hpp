// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>

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

/// The first and the last byte of an object: all of it, if it is not larger than two cache lines.
template <class Object>
void prefetch_object(const Object& object) noexcept {
  const auto* bytes = reinterpret_cast<const char*>(&object);
  detail::prefetch(bytes);
  detail::prefetch(bytes + sizeof(Object) - 1);
}

/// All cache lines of an object that lies there, or would lie there.
template <class Object>
void prefetch_lines(const Object* object) noexcept {
  constexpr std::size_t cache_line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(object);
  for (std::size_t offset = 0; offset < sizeof(Object); offset += cache_line)
    detail::prefetch(reinterpret_cast<const void*>(first + offset));
}

}  // namespace keyfold::detail
