// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace keyfold::detail {

/// A text that nobody changes, or none: a pointer, whose copies share the text. Different threads may copy
/// and destroy different copies.
class SharedText {
  struct Shared {
    std::string text;
    std::atomic<std::size_t> users{1};
  };

 public:
  SharedText() = default;
  /// Throws std::bad_alloc.
  explicit SharedText(std::string text) : at_(address_of(new Shared{std::move(text)}) | counted) {}
  /// A text that is never destroyed.
  static SharedText lasting(const std::string& text) noexcept { return SharedText(address_of(&text)); }
  static SharedText lasting(const std::string&&) = delete;

  SharedText(const SharedText& other) noexcept : at_(other.at_) {
    if (is_counted()) shared().users.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : at_(std::exchange(other.at_, 0)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~SharedText() {
    if (is_counted()) leave();
  }

  explicit operator bool() const noexcept { return at_ != 0; }

  /// Requires: there is one.
  const std::string& operator*() const noexcept {
    return is_counted() ? shared().text : *reinterpret_cast<const std::string*>(at_);
  }
  const std::string* operator->() const noexcept { return &**this; }

  /// Bytes of the text and what counts its users; none for one that is never destroyed.
  std::size_t bytes() const noexcept { return is_counted() ? sizeof(Shared) + shared().text.capacity() : 0; }

 private:
  static constexpr std::uintptr_t counted = 1;

  explicit SharedText(std::uintptr_t at) noexcept : at_(at) {}

  static std::uintptr_t address_of(const void* object) noexcept {
    return reinterpret_cast<std::uintptr_t>(object);
  }
  bool is_counted() const noexcept { return (at_ & counted) != 0; }
  void leave() noexcept {
    if (shared().users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &shared();
  }
  Shared& shared() const noexcept { return *reinterpret_cast<Shared*>(at_ & ~counted); }

  std::uintptr_t at_ = 0;  // of a Shared, and 1; or of a text that is never destroyed
};

}  // namespace keyfold::detail
