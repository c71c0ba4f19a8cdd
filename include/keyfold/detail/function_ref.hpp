// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace keyfold::detail {

template <class Signature>
class FunctionRef;

/// A callable by reference, its type erased, so that what takes it is compiled once for all callables. For
/// calls that are rare: one for a write, or for a block of rows.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, FunctionRef>)
  FunctionRef(
      Callable&& callable) noexcept  // NOLINT(google-explicit-constructor): it stands for the callable
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* erased, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(erased))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(callable_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* callable_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace keyfold::detail
