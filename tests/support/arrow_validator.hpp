// A consumer of the Arrow C data interface that believes nothing: every rule of its specification, and of the
// columnar format below it, that a producer can break for the types that are exported. Shares no code with
// the exporter but the two structs.
#pragma once

#include <keyfold/detail/arrow_abi.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace keyfold_test {

// Everything that is wrong; empty if all is well.
class ArrowValidator {
 public:
  ArrowValidator(const ArrowSchema& schema, const ArrowArray& array) { check(schema, &array, ""); }
  explicit ArrowValidator(const ArrowSchema& schema) { check(schema, nullptr, ""); }

  const std::string& problems() const { return problems_; }

 private:
  void expect(bool holds, const std::string& path, const std::string& rule) {
    if (!holds) problems_ += (path.empty() ? "(root)" : path) + ": " + rule + '\n';
  }

  // Bytes of a value of fixed width; 0 for other formats.
  static std::size_t width(std::string_view format) {
    if (format == "c" || format == "C") return 1;
    if (format == "s" || format == "S") return 2;
    if (format == "i" || format == "I" || format == "f" || format == "tdD") return 4;
    if (format == "l" || format == "L" || format == "g") return 8;
    for (const std::string_view unit : {"s", "m", "u", "n"}) {
      if (format == "ts" + std::string(unit) + ":UTC" || format == "tD" + std::string(unit)) return 8;
    }
    return 0;
  }

  static bool large(std::string_view format) { return format == "U" || format == "+L"; }
  static bool text(std::string_view format) { return format == "u" || format == "U"; }
  static bool list(std::string_view format) { return format == "+l" || format == "+L"; }

  void check(const ArrowSchema& schema, const ArrowArray* array, const std::string& path) {
    expect(schema.release != nullptr, path, "the schema is released");
    expect(schema.format != nullptr, path, "the format is null");
    if (schema.release == nullptr || schema.format == nullptr) return;
    const std::string_view format = schema.format;
    const bool known = width(format) != 0 || format == "b" || text(format) || list(format) || format == "+s";
    expect(known, path, "unknown format " + std::string(format));
    expect((schema.flags &
            ~(ARROW_FLAG_NULLABLE | ARROW_FLAG_DICTIONARY_ORDERED | ARROW_FLAG_MAP_KEYS_SORTED)) == 0,
           path, "unknown flags");
    expect((schema.flags & (ARROW_FLAG_DICTIONARY_ORDERED | ARROW_FLAG_MAP_KEYS_SORTED)) == 0, path,
           "flags of a dictionary or map");
    expect(schema.dictionary == nullptr, path, "a dictionary");
    const bool nested = list(format) || format == "+s";
    expect(schema.n_children >= 0 && (nested || schema.n_children == 0), path, "children of a flat type");
    expect(!list(format) || schema.n_children == 1, path, "a list needs one child");
    expect(schema.n_children == 0 || schema.children != nullptr, path, "children are null");
    expect(path.empty() || (schema.name != nullptr && *schema.name != '\0'), path, "a child without a name");
    if (array != nullptr) check_array(schema, *array, path);
    if (!known || !problems_.empty()) return;
    for (std::int64_t i = 0; i < schema.n_children; ++i) {
      expect(schema.children[i] != nullptr, path, "a null child");
      if (schema.children[i] == nullptr) return;
      const std::string name = schema.children[i]->name != nullptr ? schema.children[i]->name : "?";
      check(*schema.children[i], array != nullptr ? array->children[i] : nullptr, path + '/' + name);
    }
  }

  void check_array(const ArrowSchema& schema, const ArrowArray& array, const std::string& path) {
    const std::string_view format = schema.format;
    expect(array.release != nullptr, path, "the array is released");
    if (array.release == nullptr) return;
    expect(array.length >= 0 && array.offset == 0, path, "length or offset");
    expect(array.null_count >= 0 && array.null_count <= array.length, path, "null count out of range");
    expect(array.dictionary == nullptr, path, "a dictionary");
    expect(array.n_children == schema.n_children, path, "array and schema differ in children");
    expect(array.n_children == 0 || array.children != nullptr, path, "children are null");
    const std::int64_t buffers = format == "+s" ? 1 : text(format) ? 3 : 2;
    expect(array.n_buffers == buffers, path, "number of buffers");
    expect(array.buffers != nullptr, path, "buffers are null");
    if (!problems_.empty()) return;

    for (std::int64_t i = 0; i < buffers; ++i) {
      const auto address = reinterpret_cast<std::uintptr_t>(array.buffers[i]);
      expect(address % 64 == 0, path, "buffer " + std::to_string(i) + " is not aligned to 64 bytes");
      expect(i == 0 || address != 0, path, "buffer " + std::to_string(i) + " is null");
    }
    check_validity(schema, array, path);
    if (text(format) || list(format)) check_offsets(schema, array, path);
    if (format == "+s") {
      for (std::int64_t i = 0; i < array.n_children; ++i)
        expect(array.children[i]->length >= array.length, path, "a child is shorter than its struct");
    }
  }

  void check_validity(const ArrowSchema& schema, const ArrowArray& array, const std::string& path) {
    const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
    expect(bits != nullptr || array.null_count == 0, path, "nulls, but no bitmap");
    expect((schema.flags & ARROW_FLAG_NULLABLE) != 0 || array.null_count == 0, path,
           "nulls in what is not nullable");
    if (bits == nullptr) return;
    std::int64_t nulls = array.length;
    for (std::int64_t i = 0; i < array.length; ++i) nulls -= bits[i / 8] >> (i % 8) & 1;
    expect(nulls == array.null_count, path, "null count is not that of the bitmap");
  }

  void check_offsets(const ArrowSchema& schema, const ArrowArray& array, const std::string& path) {
    const std::string_view format = schema.format;
    std::int64_t before = offset(format, array, 0);
    expect(before == 0, path, "the first offset is not 0");
    for (std::int64_t i = 1; i <= array.length; ++i) {
      const std::int64_t here = offset(format, array, i);
      expect(here >= before, path, "offsets descend");
      before = here;
    }
    if (list(format))
      expect(array.children[0]->length >= before, path, "the elements are fewer than the offsets say");
    if (text(format) && problems_.empty()) {
      const std::string_view bytes(static_cast<const char*>(array.buffers[2]),
                                   static_cast<std::size_t>(before));
      expect(utf8(bytes), path, "not UTF-8");
    }
  }

 public:
  static std::int64_t offset(std::string_view format, const ArrowArray& array, std::int64_t index) {
    return large(format) ? static_cast<const std::int64_t*>(array.buffers[1])[index]
                         : static_cast<const std::int32_t*>(array.buffers[1])[index];
  }

 private:
  static bool utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      const auto lead = static_cast<unsigned char>(text[i]);
      const int length = lead < 0x80   ? 1
                         : lead < 0xC2 ? 0
                         : lead < 0xE0 ? 2
                         : lead < 0xF0 ? 3
                         : lead < 0xF5 ? 4
                                       : 0;
      if (length == 0 || i + static_cast<std::size_t>(length) > text.size()) return false;
      std::uint32_t point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
      for (int k = 1; k < length; ++k) {
        const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
        if (next >> 6 != 2) return false;
        point = point << 6 | (next & 0x3FU);
      }
      constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
      if (point < least[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
      i += static_cast<std::size_t>(length);
    }
    return true;
  }

  std::string problems_;
};

// "id:l name:u? before:+s?{id:l}": names, formats, and what may be null.
inline std::string arrow_type(const ArrowSchema& schema) {
  std::string out = schema.format;
  if ((schema.flags & ARROW_FLAG_NULLABLE) != 0) out += '?';
  if (schema.n_children == 0) return out;
  out += '{';
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (i != 0) out += ' ';
    out += std::string(schema.children[i]->name) + ':' + arrow_type(*schema.children[i]);
  }
  return out + '}';
}

// Value `index` as text, read from the buffers: `{1 'tea' null [2 3]}`.
inline std::string arrow_value(const ArrowSchema& schema, const ArrowArray& array, std::int64_t index) {
  const std::string_view format = schema.format;
  const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  if (bits != nullptr && (bits[index / 8] >> (index % 8) & 1) == 0) return "null";
  const auto number = [&]<class T>(T value) {
    std::memcpy(&value,
                static_cast<const char*>(array.buffers[1]) + static_cast<std::size_t>(index) * sizeof(T),
                sizeof(T));
    std::ostringstream out;
    out.precision(17);
    out << +value;
    return out.str();
  };
  if (format == "b") {
    return (static_cast<const std::uint8_t*>(array.buffers[1])[index / 8] >> (index % 8) & 1) != 0 ? "true"
                                                                                                   : "false";
  }
  if (format == "c") return number(std::int8_t{});
  if (format == "C") return number(std::uint8_t{});
  if (format == "s") return number(std::int16_t{});
  if (format == "S") return number(std::uint16_t{});
  if (format == "i" || format == "tdD") return number(std::int32_t{});
  if (format == "I") return number(std::uint32_t{});
  if (format == "L") return number(std::uint64_t{});
  if (format == "f") return number(float{});
  if (format == "g") return number(double{});
  std::string out;
  if (format == "+s") {
    for (std::int64_t i = 0; i < array.n_children; ++i)
      out += (i == 0 ? "" : " ") + arrow_value(*schema.children[i], *array.children[i], index);
    return '{' + out + '}';
  }
  if (format != "u" && format != "U" && !format.starts_with("+")) return number(std::int64_t{});
  const std::int64_t begin = ArrowValidator::offset(format, array, index);
  const std::int64_t end = ArrowValidator::offset(format, array, index + 1);
  if (!format.starts_with("+"))
    return '\'' +
           std::string(static_cast<const char*>(array.buffers[2]) + begin,
                       static_cast<const char*>(array.buffers[2]) + end) +
           '\'';
  for (std::int64_t i = begin; i < end; ++i)
    out += (i == begin ? "" : " ") + arrow_value(*schema.children[0], *array.children[0], i);
  return '[' + out + ']';
}

inline std::vector<std::string> arrow_values(const ArrowSchema& schema, const ArrowArray& array) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < array.length; ++i) out.push_back(arrow_value(schema, array, i));
  return out;
}

}  // namespace keyfold_test
