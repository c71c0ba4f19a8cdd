// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace keyfold::detail {

/// What a write needs of std::vector, of elements whose moves cannot fail. Each element type of a std::vector
/// takes 30 ms to compile in each source file with a table, and one of this 3 ms.
///
/// Whatever throws leaves it as it was.
template <class T, class Allocator = std::allocator<T>>
class List {
 public:
  List() = default;
  explicit List(Allocator allocator) noexcept : allocator_(allocator) {}
  /// So many value-initialised elements.
  explicit List(std::size_t size) { resize(size); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { free(); }

  T* begin() noexcept { return first_; }
  T* end() noexcept { return last_; }
  const T* begin() const noexcept { return first_; }
  const T* end() const noexcept { return last_; }
  T* data() noexcept { return first_; }
  const T* data() const noexcept { return first_; }

  bool empty() const noexcept { return first_ == last_; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(last_ - first_); }
  std::size_t capacity() const noexcept { return static_cast<std::size_t>(limit_ - first_); }
  Allocator get_allocator() const noexcept { return allocator_; }

  T& operator[](std::size_t i) noexcept { return first_[i]; }
  const T& operator[](std::size_t i) const noexcept { return first_[i]; }
  T& back() noexcept { return last_[-1]; }

  /// The arguments must not refer to an element.
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (last_ == limit_) move_to(empty() ? 1 : 2 * size());
    T* const added = ::new (static_cast<void*>(last_)) T(std::forward<Arguments>(arguments)...);
    ++last_;
    return *added;
  }
  void push_back(const T& element) { emplace_back(element); }
  void push_back(T&& element) { emplace_back(std::move(element)); }

  void reserve(std::size_t capacity) {
    if (capacity > this->capacity()) move_to(capacity);
  }
  /// Only grows.
  void resize(std::size_t size) {
    assert(size >= this->size());
    reserve(size);
    while (this->size() < size) ::new (static_cast<void*>(last_++)) T();
  }

  void clear() noexcept {
    while (last_ != first_) (--last_)->~T();
  }
  /// Gives the memory back, too.
  void free() noexcept {
    clear();
    if (first_ != nullptr) allocator_.deallocate(first_, capacity());
    first_ = last_ = limit_ = nullptr;
  }
  void swap(List& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(limit_, other.limit_);
  }

 private:
  static_assert(std::is_nothrow_move_constructible_v<T>);

  void move_to(std::size_t capacity) {
    T* const fresh = allocator_.allocate(capacity);
    T* to = fresh;
    for (T* from = first_; from != last_; ++from, ++to) {
      ::new (static_cast<void*>(to)) T(std::move(*from));
      from->~T();
    }
    if (first_ != nullptr) allocator_.deallocate(first_, this->capacity());
    first_ = fresh;
    last_ = to;
    limit_ = fresh + capacity;
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
  T* limit_ = nullptr;
  [[no_unique_address]] Allocator allocator_;
};

}  // namespace keyfold::detail
