// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cassert>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

namespace keyfold::detail {

/// Memory of a resource, or of `new` where there is none.
inline void* take_memory(std::pmr::memory_resource* memory, std::size_t bytes, std::size_t alignment) {
  if (memory != nullptr) return memory->allocate(bytes, alignment);
  if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(bytes, std::align_val_t(alignment));
  return ::operator new(bytes);
}
inline void give_back(std::pmr::memory_resource* memory, void* taken, std::size_t bytes,
                      std::size_t alignment) noexcept {
  if (memory != nullptr) return memory->deallocate(taken, bytes, alignment);
  if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
    return ::operator delete(taken, std::align_val_t(alignment));
  ::operator delete(taken);
}

/// What a write needs of std::vector, of elements whose moves cannot fail. Every source file with a table
/// pays for each element type: 30 ms for one of std::vector, a tenth of that for this.
///
/// Whatever throws leaves it as it was.
template <class T>
class List {
 public:
  List() = default;
  explicit List(std::pmr::memory_resource& memory) noexcept : memory_(&memory) {}
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
  /// Requires: made with it.
  std::pmr::memory_resource& memory() const noexcept { return *memory_; }

  T& operator[](std::size_t i) noexcept { return first_[i]; }
  const T& operator[](std::size_t i) const noexcept { return first_[i]; }
  T& front() noexcept { return *first_; }
  T& back() noexcept { return last_[-1]; }

  /// The arguments must not refer to an element.
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (last_ == limit_) move_to(last_ == first_ ? 1 : 2 * size());
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
    static_assert(std::is_nothrow_default_constructible_v<T>);
    reserve(size);
    T* const end = first_ + size;
    for (T* at = last_; at != end; ++at) ::new (static_cast<void*>(at)) T();
    last_ = end;
  }

  void clear() noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (T* at = first_; at != last_; ++at) at->~T();
    }
    last_ = first_;
  }
  /// Gives the memory back, too.
  void free() noexcept {
    clear();
    release();
    first_ = last_ = limit_ = nullptr;
  }
  /// Requires: both have the same memory.
  void swap(List& other) noexcept {
    assert(memory_ == other.memory_);
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(limit_, other.limit_);
  }

 private:
  static_assert(std::is_nothrow_move_constructible_v<T>);
  static constexpr std::size_t element_size =
      sizeof(T);  // NOLINT(bugprone-sizeof-expression): of pointers, too

  void move_to(std::size_t capacity) {
    if (capacity > std::numeric_limits<std::size_t>::max() / 2 / element_size)
      throw std::bad_array_new_length();
    T* const fresh = static_cast<T*>(detail::take_memory(memory_, capacity * element_size, alignof(T)));
    T* to = fresh;
    for (T* from = first_; from != last_; ++from, ++to) {
      ::new (static_cast<void*>(to)) T(std::move(*from));
      from->~T();
    }
    release();
    first_ = fresh;
    last_ = to;
    limit_ = fresh + capacity;
  }
  void release() noexcept {
    if (first_ != nullptr)
      detail::give_back(memory_, static_cast<void*>(first_), capacity() * element_size, alignof(T));
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
  T* limit_ = nullptr;
  std::pmr::memory_resource* memory_ = nullptr;
};

}  // namespace keyfold::detail
