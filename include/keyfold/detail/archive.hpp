// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/bytes.hpp>
#include <keyfold/detail/codec_kind.hpp>
#include <keyfold/detail/fixed_codec.hpp>
#include <keyfold/storage_error.hpp>

#include <boost/archive/detail/common_iarchive.hpp>
#include <boost/archive/detail/common_oarchive.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/serialization/collection_size_type.hpp>
#include <boost/serialization/item_version_type.hpp>
#include <boost/serialization/level.hpp>
#include <boost/serialization/tracking.hpp>
#include <boost/serialization/version.hpp>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

/// The codec of rows: values to bytes and back. What is described is written column by column; a class with
/// a serialize() of the user's is asked to write itself to an archive of Boost.Serialization's kind, which
/// hands its members back to the codec. docs/file-format.md has the bytes of each type.
namespace keyfold::detail {

/// How deep values may be nested, so that no file can exhaust the stack.
inline constexpr unsigned nesting_limit = 64;

/// A duration or time that counts with something of no fixed size.
template <class T>
consteval bool is_uncounted() {
  if constexpr (codec_kind_v<T> == CodecKind::duration || codec_kind_v<T> == CodecKind::time_point) {
    return detail::encoded_size<T>() == varying;
  } else {
    return false;
  }
}

template <class T>
consteval void require_codec() {
  constexpr bool reference = Reference<T>;
  constexpr bool long_number = std::same_as<T, long double>;
  constexpr bool function = std::is_function_v<T>;
  static_assert(!function,
                "keyfold: a column that is a function cannot be saved; list data members only, or give the "
                "class a serialize()");
  static_assert(!is_uncounted<T>(), "keyfold: a duration whose count is no plain number cannot be saved");
  static_assert(!reference || codec_kind_v<T> != CodecKind::none,
                "keyfold: a pointer or view cannot be saved; save what it points to, or a key");
  static_assert(!long_number,
                "keyfold: a long double cannot be saved, since its bytes differ between platforms");
  static_assert(codec_kind_v<T> != CodecKind::none || reference || long_number || function,
                "keyfold: this class cannot be saved; describe it with BOOST_DESCRIBE_STRUCT or columns_of, "
                "or give it a serialize()");
}

/// Elements whose bytes in memory are those in a file.
template <class Container>
concept Block = std::ranges::contiguous_range<Container> && std::endian::native == std::endian::little &&
                std::is_arithmetic_v<typename Container::value_type> &&
                !std::same_as<typename Container::value_type, bool> &&
                requires(Container& container) { container.resize(1); };

/// An element takes a byte at the least, so that a count can be judged by the bytes that follow it.
template <class Element>
consteval std::size_t least_size() {
  constexpr std::size_t size = detail::encoded_size<Element>();
  if constexpr (codec_kind_v<Element> == CodecKind::object) return 8;
  if constexpr (codec_kind_v<Element> == CodecKind::text || codec_kind_v<Element> == CodecKind::container)
    return 4;
  return size == varying || size == 0 ? 1 : size;
}

template <class T>
consteval void check_object() {
  using boost::serialization::implementation_level;
  using boost::serialization::tracking_level;
  static_assert(tracking_level<T>::value != boost::serialization::track_always,
                "keyfold: this class asks Boost.Serialization to track its objects, which rows cannot be; "
                "remove its BOOST_CLASS_TRACKING");
  static_assert(
      implementation_level<T>::value != boost::serialization::primitive_type &&
          implementation_level<T>::value != boost::serialization::not_serializable,
      "keyfold: this class is no object to Boost.Serialization; remove its BOOST_CLASS_IMPLEMENTATION");
}

class Encoder;
class Decoder;

template <class T>
inline constexpr bool is_bookkeeping =
    std::same_as<T, boost::archive::version_type> || std::same_as<T, boost::archive::object_id_type> ||
    std::same_as<T, boost::archive::object_reference_type> ||
    std::same_as<T, boost::archive::class_id_type> ||
    std::same_as<T, boost::archive::class_id_reference_type> ||
    std::same_as<T, boost::archive::class_id_optional_type> ||
    std::same_as<T, boost::archive::class_name_type> || std::same_as<T, boost::archive::tracking_type>;

/// What a user's serialize() writes to.
class OutputArchive : public boost::archive::detail::common_oarchive<OutputArchive> {
 public:
  explicit OutputArchive(Encoder& encoder) : encoder_(&encoder) {}

  template <class T>
  void save_override(const T& value);
  void save_binary(const void* from, std::size_t count);

 private:
  Encoder* encoder_;
};

/// What a user's serialize() reads from.
class InputArchive : public boost::archive::detail::common_iarchive<InputArchive> {
 public:
  explicit InputArchive(Decoder& decoder) : decoder_(&decoder) {}

  template <class T>
  void load_override(T& value);
  template <class T>
  void load_override(const T& wrapper) {
    load_override(const_cast<T&>(wrapper));
  }
  void load_binary(void* to, std::size_t count);

 private:
  Decoder* decoder_;
};

/// Goes a level down while it lives.
class NestingScope {
 public:
  explicit NestingScope(unsigned& depth) noexcept : depth_(depth) { ++depth_; }
  NestingScope(const NestingScope&) = delete;
  NestingScope& operator=(const NestingScope&) = delete;
  ~NestingScope() { --depth_; }

 private:
  unsigned& depth_;
};

/// Writes values behind each other into a buffer. Throws std::bad_alloc, what a user's serialize() throws,
/// and Error for a value that a decoder would refuse; then there is rubbish at the end of the buffer.
class Encoder {
 public:
  explicit Encoder(ByteBuffer& out) noexcept : out_(out) {}

  ByteBuffer& out() noexcept { return out_; }

  template <class T>
  void put(const T& value) {
    constexpr CodecKind kind = codec_kind_v<T>;
    detail::require_codec<T>();
    if constexpr (FixedSize<T>) {
      detail::put_fixed(out_.extend(detail::encoded_size<T>()), value);
    } else if constexpr (kind == CodecKind::text) {
      detail::put_text(out_, value);
    } else if constexpr (kind == CodecKind::optional) {
      detail::put_u8(out_, value ? 1 : 0);
      if (value) put(*value);
    } else if constexpr (kind == CodecKind::array) {
      for (const auto& element : value) put(element);
    } else if constexpr (kind == CodecKind::tuple) {
      std::apply([this](const auto&... part) { (this->put(part), ...); }, value);
    } else if constexpr (kind == CodecKind::variant) {
      put_variant(value);
    } else if constexpr (kind == CodecKind::container) {
      put_container(value);
    } else if constexpr (kind == CodecKind::wrapper) {
      boost::serialization::serialize_adl(archive(), const_cast<T&>(value), 0U);
    } else if constexpr (kind == CodecKind::object) {
      put_object(value);
    } else if constexpr (kind == CodecKind::record) {
      const NestingScope scope = descend();
      put_columns(columns_list<T>{}, value);
    }
  }

 private:
  [[nodiscard]] NestingScope descend() {
    if (depth_ >= nesting_limit) {
      throw Error("a value is nested " + std::to_string(depth_ + 1) +
                  " levels deep; the limit of a file is " + std::to_string(nesting_limit));
    }
    return NestingScope(depth_);
  }

  OutputArchive& archive() {
    if (archive_ == nullptr) archive_ = std::make_unique<OutputArchive>(*this);
    return *archive_;
  }

  template <auto... Members, class Row>
  void put_columns(MemberList<Members...>, const Row& row) {
    (put(row.*Members), ...);
  }

  template <class Variant>
  void put_variant(const Variant& value) {
    static_assert(std::variant_size_v<Variant> < 256,
                  "keyfold: a variant to be saved has 255 alternatives at most");
    if (value.valueless_by_exception()) throw Error("a variant without a value cannot be saved");
    detail::put_u8(out_, static_cast<std::uint8_t>(value.index()));
    std::visit([this](const auto& alternative) { this->put(alternative); }, value);
  }

  template <class Container>
  void put_container(const Container& container) {
    using Element = element_t<Container>;
    detail::put_count(out_, container.size());
    if constexpr (Block<Container>) {
      out_.append(std::ranges::data(container), container.size() * sizeof(Element));
    } else {
      for (const auto& element : container) put_element<Element>(element);
    }
  }
  template <class Element, class Stored>
  void put_element(const Stored& element) {
    if constexpr (std::same_as<Element, bool>) {
      detail::put_u8(out_, element ? 1 : 0);  // of a vector<bool>, too
    } else if constexpr (requires { typename Stored::first_type; }) {
      put(element.first);  // of a map the key is const
      put(element.second);
    } else {
      put(element);
    }
    if constexpr (detail::encoded_size<Element>() == 0) detail::put_u8(out_, 0);
  }

  // Framed, so that a reader can skip it and can tell when it is read in another way than it was written.
  template <class T>
  void put_object(const T& value) {
    detail::check_object<T>();
    const NestingScope scope = descend();
    const std::size_t frame = out_.size();
    out_.extend(2 * sizeof(std::uint32_t));
    constexpr unsigned version = static_cast<unsigned>(boost::serialization::version<T>::value);
    boost::serialization::serialize_adl(archive(), const_cast<T&>(value), version);
    const std::size_t size = out_.size() - frame - 2 * sizeof(std::uint32_t);
    if (size > std::numeric_limits<std::uint32_t>::max())
      throw Error("an object of 4 GiB or more cannot be saved");
    detail::store_number(out_.data() + frame, static_cast<std::uint32_t>(size));
    detail::store_number(out_.data() + frame + sizeof(std::uint32_t), static_cast<std::uint32_t>(version));
  }

  ByteBuffer& out_;
  unsigned depth_ = 0;
  std::unique_ptr<OutputArchive> archive_;
};

/// Reads what an Encoder wrote. Throws DecodeError, UnsupportedFormat for a class version that is newer than
/// the program's, std::bad_alloc, and what a user's serialize() throws; then the value is unspecified.
class Decoder {
 public:
  explicit Decoder(ByteReader& in) noexcept : in_(in) {}

  ByteReader& in() noexcept { return in_; }

  template <class T>
  void get(T& value) {
    constexpr CodecKind kind = codec_kind_v<T>;
    detail::require_codec<T>();
    if constexpr (FixedSize<T>) {
      detail::get_fixed(in_, in_.take(detail::encoded_size<T>()), value);
    } else if constexpr (kind == CodecKind::text) {
      value.assign(detail::get_text(in_));
    } else if constexpr (kind == CodecKind::optional) {
      value.reset();
      if (detail::get_flag(in_)) get(value.emplace());
    } else if constexpr (kind == CodecKind::array) {
      for (auto& element : value) get(element);
    } else if constexpr (kind == CodecKind::tuple) {
      std::apply([this](auto&... part) { (this->get(part), ...); }, value);
    } else if constexpr (kind == CodecKind::variant) {
      get_variant(value);
    } else if constexpr (kind == CodecKind::container) {
      get_container(value);
    } else if constexpr (kind == CodecKind::wrapper) {
      boost::serialization::serialize_adl(archive(), value, 0U);
    } else if constexpr (kind == CodecKind::object) {
      get_object(value);
    } else if constexpr (kind == CodecKind::record) {
      const NestingScope scope = descend();
      get_columns(columns_list<T>{}, value);
    }
  }

  [[nodiscard]] NestingScope descend() {
    if (depth_ >= nesting_limit) in_.fail("values are nested too deep");
    return NestingScope(depth_);
  }

 private:
  InputArchive& archive() {
    if (archive_ == nullptr) archive_ = std::make_unique<InputArchive>(*this);
    return *archive_;
  }

  template <auto... Members, class Row>
  void get_columns(MemberList<Members...>, Row& row) {
    static_assert((!std::is_const_v<member_t<Members>> && ...),
                  "keyfold: a column that is const cannot be loaded");
    (get(row.*Members), ...);
  }

  template <class Variant>
  void get_variant(Variant& value) {
    constexpr std::size_t size = std::variant_size_v<Variant>;
    const std::size_t index = detail::get_u8(in_);
    if (index >= size) in_.fail("a variant has an alternative that its type has not");
    boost::mp11::mp_with_index<size>(index, [&](auto number) { get(value.template emplace<number>()); });
  }

  template <class Container>
  void get_container(Container& container) {
    using Element = element_t<Container>;
    const std::size_t count = detail::get_u32(in_);
    if (count > in_.left() / detail::least_size<Element>()) in_.fail("more elements than the bytes can hold");
    container.clear();
    if constexpr (Block<Container>) {
      container.resize(count);
      if (count != 0)
        std::memcpy(std::ranges::data(container), in_.take(count * sizeof(Element)), count * sizeof(Element));
    } else {
      // An element may take more memory than bytes, and what is told may not be true.
      if constexpr (requires { container.reserve(count); })
        container.reserve(std::min<std::size_t>(count, in_.left() / sizeof(Element) + 1));
      for (std::size_t i = 0; i < count; ++i) add_element<Element>(container);
      if (container.size() != count) in_.fail("an element of a set or map is there twice");
    }
  }
  template <class Element, class Container>
  void add_element(Container& container) {
    Element element{};
    get(element);
    if constexpr (detail::encoded_size<Element>() == 0) static_cast<void>(detail::get_u8(in_));
    if constexpr (requires { container.push_back(std::move(element)); }) {
      container.push_back(std::move(element));
    } else {
      container.insert(container.end(), std::move(element));
    }
  }

  template <class T>
  void get_object(T& value) {
    detail::check_object<T>();
    const NestingScope scope = descend();
    const std::uint32_t size = detail::get_u32(in_);
    const std::uint32_t stored = detail::get_u32(in_);
    constexpr unsigned version = static_cast<unsigned>(boost::serialization::version<T>::value);
    if (stored > version) throw UnsupportedFormat("an object of a row", stored, version);
    const std::size_t hidden = in_.limit(size);
    boost::serialization::serialize_adl(archive(), value, stored);
    if (in_.left() != 0) in_.fail("serialize() has not read all that was written");
    in_.unlimit(hidden);
  }

  ByteReader& in_;
  unsigned depth_ = 0;
  std::unique_ptr<InputArchive> archive_;
};

template <class T>
void OutputArchive::save_override(const T& value) {
  if constexpr (std::same_as<T, boost::serialization::collection_size_type>) {
    encoder_->put(static_cast<std::uint64_t>(std::size_t{value}));
  } else if constexpr (std::same_as<T, boost::serialization::item_version_type>) {
    encoder_->put(static_cast<std::uint32_t>(static_cast<unsigned>(value)));
  } else if constexpr (!is_bookkeeping<T>) {
    encoder_->put(value);
  }
}
inline void OutputArchive::save_binary(const void* from, std::size_t count) {
  encoder_->out().append(from, count);
}

template <class T>
void InputArchive::load_override(T& value) {
  if constexpr (std::same_as<T, boost::serialization::collection_size_type>) {
    std::uint64_t count = 0;
    decoder_->get(count);
    if (count > decoder_->in().left()) decoder_->in().fail("more elements than the bytes can hold");
    value = boost::serialization::collection_size_type(static_cast<std::size_t>(count));
  } else if constexpr (std::same_as<T, boost::serialization::item_version_type>) {
    std::uint32_t version = 0;
    decoder_->get(version);
    value = boost::serialization::item_version_type(version);
  } else if constexpr (!is_bookkeeping<T>) {
    decoder_->get(value);
  }
}
inline void InputArchive::load_binary(void* to, std::size_t count) {
  std::memcpy(to, decoder_->in().take(count), count);
}

/// A row, and back: for what keeps rows one by one. Who has many makes an Encoder or a RowDecoder for all.
template <class Row>
void encode_row(ByteBuffer& out, const Row& row) {
  Encoder(out).put(row);
}
template <class Row>
Row decode_row(ByteReader& in) {
  Row row{};
  Decoder(in).get(row);
  return row;
}

}  // namespace keyfold::detail
