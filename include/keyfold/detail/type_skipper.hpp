// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/archive.hpp>
#include <keyfold/detail/bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keyfold::detail {

/// Passes over values of a type that is known by its name only.
class TypeSkipper {
 public:
  /// Throws DecodeError if the name is no type.
  explicit TypeSkipper(std::string_view name) : text_(name), left_(name) {
    nodes_.reserve(16);
    parse(0);
    if (!left_.empty()) refuse();
  }

  /// Throws DecodeError.
  void skip(ByteReader& in) const { skip(0, in, 0); }

  /// Passes over one part of a record only. Requires: part < parts().
  void skip_part(std::size_t part, ByteReader& in) const { skip(nodes_[0].children[part], in, 1); }
  std::size_t parts() const noexcept { return nodes_[0].children.size(); }

 private:
  enum class Kind : std::uint8_t { fixed, text, optional, array, sequence, variant, list, object, same };

  struct Node {
    Kind kind = Kind::fixed;
    std::uint64_t number = 0;  // bytes of a fixed one; elements of an array; levels of `same`
    bool is_record = false;
    std::size_t record = 0;  // node of the record that it is in
    std::vector<std::size_t> children{};
  };

  static constexpr std::uint64_t size_limit = std::uint64_t{1} << 40U;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  [[noreturn]] void refuse() const {
    throw DecodeError(text_.size() - left_.size(), "'" + std::string(text_.substr(0, 100)) + "' is no type");
  }

  std::string_view word() {
    const std::size_t size = std::min(left_.find_first_of("(),:/"), left_.size());
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }
  bool accept(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse();
  }
  std::uint64_t number() {
    const std::string_view digits = word();
    std::uint64_t out = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9' || out > size_limit) refuse();
      out = out * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (digits.empty()) refuse();
    return out;
  }

  static std::uint64_t scalar_size(std::string_view name) {
    constexpr std::pair<std::string_view, std::uint64_t> sizes[] = {
        {"bool", 1},   {"char", 1},   {"int8", 1},    {"uint8", 1},   {"int16", 2},
        {"uint16", 2}, {"int32", 4},  {"uint32", 4},  {"float32", 4}, {"int64", 8},
        {"date", 4},   {"uint64", 8}, {"float64", 8}, {"nothing", 0}};
    for (const auto& [known, size] : sizes) {
      if (known == name) return size;
    }
    return size_limit;
  }

  std::size_t parse(unsigned depth) {
    if (depth > nesting_limit) refuse();
    const std::size_t at = nodes_.size();
    nodes_.emplace_back().record = record_;
    const std::string_view name = word();
    if (const std::uint64_t size = scalar_size(name); size != size_limit) {
      nodes_[at].number = size;
    } else if (name == "text") {
      nodes_[at].kind = Kind::text;
    } else if (name == "object") {
      nodes_[at].kind = Kind::object;
    } else {
      expect('(');
      parse_arguments(at, name, depth + 1);
      expect(')');
      fix(at);
    }
    return at;
  }

  void parse_arguments(std::size_t at, std::string_view name, unsigned depth) {
    if (name == "enum" || name == "time") {
      add(at, Kind::sequence, depth);
    } else if (name == "duration") {
      add(at, Kind::sequence, depth);
      expect(',');
      number();
      expect('/');
      number();
    } else if (name == "optional") {
      add(at, Kind::optional, depth);
    } else if (name == "array") {
      const std::uint64_t count = number();
      expect(',');
      add(at, Kind::array, depth);
      nodes_[at].number = count;
    } else if (name == "list" || name == "set") {
      add(at, Kind::list, depth);
    } else if (name == "map") {
      add(at, Kind::list, depth);
      expect(',');
      add(at, Kind::list, depth);
    } else if (name == "tuple") {
      add_some(at, Kind::sequence, depth);
    } else if (name == "variant") {
      add_some(at, Kind::variant, depth);
    } else if (name == "record") {
      parse_record(at, depth);
    } else if (name == "same") {
      nodes_[at].kind = Kind::same;
      nodes_[at].number = enclosing_record(number());
    } else {
      refuse();
    }
  }

  void add(std::size_t at, Kind kind, unsigned depth) {
    nodes_[at].kind = kind;
    const std::size_t child = parse(depth);
    nodes_[at].children.push_back(child);
  }
  void add_some(std::size_t at, Kind kind, unsigned depth) {
    nodes_[at].kind = kind;
    if (!left_.empty() && left_.front() == ')') return;
    do {
      add(at, kind, depth);
    } while (accept(','));
  }

  void parse_record(std::size_t at, unsigned depth) {
    nodes_[at].kind = Kind::sequence;
    nodes_[at].is_record = true;
    const std::size_t outer = std::exchange(record_, at);
    if (left_.empty() || left_.front() != ')') {
      do {
        if (word().empty()) refuse();
        expect(':');
        add(at, Kind::sequence, depth);
      } while (accept(','));
    }
    record_ = outer;
  }

  // `levels` records up, counted from 1.
  std::size_t enclosing_record(std::uint64_t levels) const {
    std::size_t at = record_;
    for (; levels > 1 && at != none; --levels) at = nodes_[at].record;
    if (levels != 1 || at == none) refuse();
    return at;
  }

  // A sequence or array all of whose parts have a fixed size has one, too.
  void fix(std::size_t at) {
    Node& node = nodes_[at];
    if (node.kind != Kind::sequence && node.kind != Kind::array) return;
    std::uint64_t sum = 0;
    for (const std::size_t child : node.children) {
      if (nodes_[child].kind != Kind::fixed && (node.kind != Kind::array || node.number != 0)) return;
      sum += nodes_[child].number;
    }
    if (node.kind == Kind::array) {
      if (node.number != 0 && sum > size_limit / node.number) refuse();
      sum *= node.number;
    }
    if (sum > size_limit) refuse();
    node.kind = Kind::fixed;
    node.number = sum;
  }

  void skip(std::size_t at, ByteReader& in, unsigned depth) const {
    if (depth > 4 * nesting_limit) in.fail("values are nested too deep");
    const Node& node = nodes_[at];
    switch (node.kind) {
      case Kind::fixed:
        in.take(node.number);
        break;
      case Kind::text:
        detail::get_text(in);
        break;
      case Kind::optional:
        if (detail::get_flag(in)) skip(node.children[0], in, depth + 1);
        break;
      case Kind::array:
        for (std::uint64_t i = 0; i < node.number; ++i) skip(node.children[0], in, depth + 1);
        break;
      case Kind::sequence:
        for (const std::size_t child : node.children) skip(child, in, depth + 1);
        break;
      case Kind::variant:
        skip_variant(node, in, depth);
        break;
      case Kind::list:
        skip_list(node, in, depth);
        break;
      case Kind::object:
        in.take(std::size_t{detail::get_u32(in)} + sizeof(std::uint32_t));
        break;
      case Kind::same:
        skip(node.number, in, depth + 1);
        break;
    }
  }

  void skip_variant(const Node& node, ByteReader& in, unsigned depth) const {
    const std::size_t index = detail::get_u8(in);
    if (index >= node.children.size()) in.fail("a variant has an alternative that its type has not");
    skip(node.children[index], in, depth + 1);
  }

  void skip_list(const Node& node, ByteReader& in, unsigned depth) const {
    const std::uint64_t count = detail::get_u32(in);
    if (count > in.left()) in.fail("more elements than the bytes can hold");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t before = in.offset();
      for (const std::size_t child : node.children) skip(child, in, depth + 1);
      if (in.offset() == before) in.take(1);
    }
  }

  std::string_view text_;
  std::string_view left_;
  std::size_t record_ = none;
  std::vector<Node> nodes_;
};

}  // namespace keyfold::detail
