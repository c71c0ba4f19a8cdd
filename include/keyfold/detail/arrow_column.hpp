// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/arrow_abi.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

/// Finished columns, and their handing over to a consumer of the C data interface.
namespace keyfold::detail {

/// Memory as Arrow recommends it: aligned to 64 bytes, and a multiple of them long.
template <class T>
struct ArrowAllocator {
  using value_type = T;
  static constexpr std::size_t alignment = 64;

  ArrowAllocator() = default;
  template <class Other>
  ArrowAllocator(const ArrowAllocator<Other>&) noexcept {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return static_cast<T*>(::operator new(bytes, std::align_val_t(alignment)));
  }
  void deallocate(T* memory, std::size_t) noexcept { ::operator delete(memory, std::align_val_t(alignment)); }
  bool operator==(const ArrowAllocator&) const = default;
};

template <class T>
using ArrowVector = std::vector<T, ArrowAllocator<T>>;

/// Keeps the memory of a vector; null for a buffer that is left out.
using ArrowBuffer = std::shared_ptr<const void>;

/// The buffer is not null, whatever the vector has.
template <class T>
ArrowBuffer arrow_buffer(ArrowVector<T> values) {
  if (values.empty()) values.reserve(1);
  const auto kept = std::make_shared<const ArrowVector<T>>(std::move(values));
  return {kept, kept->data()};
}

struct ArrowColumn {
  std::string name{};
  std::string format;
  bool nullable = false;
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  std::vector<ArrowBuffer> buffers{};  // the first one tells which values are there
  std::vector<ArrowColumn> children{};
};

/// An ArrowArray or ArrowSchema that is released unless it is moved away.
template <class Struct>
struct ArrowOwner {
  Struct owned{};

  ArrowOwner() = default;
  ArrowOwner(const ArrowOwner&) = delete;
  ArrowOwner& operator=(const ArrowOwner&) = delete;
  ~ArrowOwner() {
    if (owned.release != nullptr) owned.release(&owned);
  }

  void move_to(Struct* target) noexcept {
    *target = owned;
    owned.release = nullptr;
  }
};

/// What private_data points to. Children have their own, so that they outlive a parent that they were moved
/// out of.
template <class Struct>
struct ArrowChildren {
  std::deque<ArrowOwner<Struct>> owners{};
  std::vector<Struct*> pointers{};

  Struct& add() {
    pointers.push_back(nullptr);
    return *(pointers.back() = &owners.emplace_back().owned);
  }
};

struct ArrowArrayData : ArrowChildren<ArrowArray> {
  std::vector<ArrowBuffer> kept{};
  std::vector<const void*> buffers{};
};

struct ArrowSchemaData : ArrowChildren<ArrowSchema> {
  std::string format{};
  std::string name{};
};

template <class Struct, class Data>
void release_arrow(Struct* released) {
  delete static_cast<Data*>(released->private_data);
  released->release = nullptr;
}

/// Requires: `array` is not in use. If this throws it is not in use either.
inline void make_array(ArrowColumn&& column, ArrowArray& array) {
  auto data = std::make_unique<ArrowArrayData>();
  for (const ArrowBuffer& buffer : column.buffers) data->buffers.push_back(buffer.get());
  data->kept = std::move(column.buffers);
  for (ArrowColumn& child : column.children) detail::make_array(std::move(child), data->add());
  array = {.length = column.length,
           .null_count = column.null_count,
           .offset = 0,
           .n_buffers = static_cast<std::int64_t>(data->buffers.size()),
           .n_children = static_cast<std::int64_t>(data->pointers.size()),
           .buffers = data->buffers.data(),
           .children = data->pointers.data(),
           .dictionary = nullptr,
           .release = &release_arrow<ArrowArray, ArrowArrayData>,
           .private_data = data.release()};  // the last, since the others need it
}

/// As make_array().
inline void make_schema(const ArrowColumn& column, ArrowSchema& schema) {
  auto data = std::make_unique<ArrowSchemaData>();
  data->format = column.format;
  data->name = column.name;
  for (const ArrowColumn& child : column.children) detail::make_schema(child, data->add());
  schema = {.format = data->format.c_str(),
            .name = data->name.c_str(),
            .metadata = nullptr,
            .flags = column.nullable ? ARROW_FLAG_NULLABLE : 0,
            .n_children = static_cast<std::int64_t>(data->pointers.size()),
            .children = data->pointers.data(),
            .dictionary = nullptr,
            .release = &release_arrow<ArrowSchema, ArrowSchemaData>,
            .private_data = data.release()};  // the last, since the others need it
}

}  // namespace keyfold::detail
