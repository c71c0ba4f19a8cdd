// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/column_fault.hpp>
#include <keyfold/detail/excerpt.hpp>
#include <keyfold/detail/utf8.hpp>

#include <boost/json/basic_parser_impl.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// One JSON text with its numbers as they were written and the place of each value, neither of which a
/// boost::json::value keeps. Boost.JSON's parser reads it.
namespace keyfold::detail {

enum class JsonKind : std::uint8_t { null, boolean, number, text, array, object };

struct JsonNode {
  JsonKind kind = JsonKind::null;
  std::string_view key{};   // in an object
  std::string_view text{};  // of a text, unescaped; of a number or literal, as it stands in the document
  std::size_t offset = 0;
  std::size_t end = 0;  // index of the node after this one and those in it
};

/// A value in a document; valid until another one is parsed.
class JsonValue {
 public:
  JsonValue(const std::vector<JsonNode>& nodes, std::size_t index) noexcept : nodes_(&nodes), index_(index) {}

  [[nodiscard]] JsonKind kind() const noexcept { return node().kind; }
  [[nodiscard]] bool is_null() const noexcept { return kind() == JsonKind::null; }
  [[nodiscard]] std::string_view key() const noexcept { return node().key; }
  [[nodiscard]] std::string_view text() const noexcept { return node().text; }
  [[nodiscard]] std::size_t offset() const noexcept { return node().offset; }

  /// Calls visit(JsonValue) for each member or element.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (std::size_t i = index_ + 1; i < node().end; i = (*nodes_)[i].end) visit(JsonValue(*nodes_, i));
  }

  /// The member of this name, if this is an object that has it.
  [[nodiscard]] std::optional<JsonValue> member(std::string_view name) const {
    std::optional<JsonValue> found;
    if (kind() == JsonKind::object) {
      for_each([&](JsonValue value) {
        if (value.key() == name) found = value;
      });
    }
    return found;
  }

 private:
  [[nodiscard]] const JsonNode& node() const noexcept { return (*nodes_)[index_]; }

  const std::vector<JsonNode>* nodes_;
  std::size_t index_;
};

/// Takes Boost.JSON's events. It follows the document itself, since they do not tell where they are.
class JsonBuilder {
  using ErrorCode = boost::json::error_code;
  using Text = boost::json::string_view;

 public:
  static constexpr auto max_array_size = static_cast<std::size_t>(-1);
  static constexpr auto max_object_size = static_cast<std::size_t>(-1);
  static constexpr auto max_string_size = static_cast<std::size_t>(-1);
  static constexpr auto max_key_size = static_cast<std::size_t>(-1);

  void start(std::string_view document) {
    document_ = document;
    at_ = 0;
    nodes_.clear();
    open_.clear();
    texts_.clear();
    texts_.reserve(document.size());  // no text is longer than what it is written as, so that none moves
    part_ = 0;
    key_ = {};
  }

  [[nodiscard]] const std::vector<JsonNode>& nodes() const noexcept { return nodes_; }

  static bool on_document_begin(ErrorCode&) { return true; }
  static bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode&) { return open(JsonKind::object); }
  bool on_object_end(std::size_t, ErrorCode&) {
    refuse_twins(open_.back());
    return close();
  }
  bool on_array_begin(ErrorCode&) { return open(JsonKind::array); }
  bool on_array_end(std::size_t, ErrorCode&) { return close(); }
  bool on_key_part(Text part, std::size_t, ErrorCode&) { return append(part); }
  bool on_key(Text part, std::size_t size, ErrorCode&) {
    key_ = take_string(token(), part, size);
    return true;
  }
  bool on_string_part(Text part, std::size_t, ErrorCode&) { return append(part); }
  bool on_string(Text part, std::size_t size, ErrorCode&) {
    JsonNode& node = add(JsonKind::text);
    node.text = take_string(node.offset, part, size);
    return true;
  }
  static bool on_number_part(Text, ErrorCode&) { return true; }
  bool on_int64(std::int64_t, Text text, ErrorCode&) { return add_number(text); }
  bool on_uint64(std::uint64_t, Text text, ErrorCode&) { return add_number(text); }
  bool on_double(double, Text text, ErrorCode&) { return add_number(text); }
  bool on_bool(bool value, ErrorCode&) { return add_literal(JsonKind::boolean, value ? 4 : 5); }
  bool on_null(ErrorCode&) { return add_literal(JsonKind::null, 4); }
  static bool on_comment_part(Text, ErrorCode&) { return true; }
  static bool on_comment(Text, ErrorCode&) { return true; }

 private:
  // The next token begins here.
  std::size_t token() noexcept {
    while (at_ < document_.size() && is_between_tokens(document_[at_])) ++at_;
    return at_;
  }

  static bool is_between_tokens(char c) noexcept {
    return c == ',' || c == ':' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }

  /// Whether what the parser tells is the document from `begin` on, and not a copy of it or the rest only.
  bool stands_at(std::size_t begin, Text told) const noexcept {
    return told.data() == document_.data() + begin;
  }

  /// The text of the string whose quote is at `begin`, of which `last` ends `size` bytes.
  std::string_view take_string(std::size_t begin, Text last, std::size_t size) {
    if (last.size() == size && stands_at(begin + 1, last)) {  // nothing is escaped
      at_ = begin + size + 2;
      return document_.substr(begin + 1, size);
    }
    append(last);
    skip_string(begin);
    return take_text();
  }

  void skip_string(std::size_t begin) {
    std::size_t i = begin + 1;
    while (i < document_.size() && document_[i] != '"') i += document_[i] == '\\' ? 2 : 1;
    at_ = i + 1;
  }

  JsonNode& add(JsonKind kind) {
    JsonNode& node = nodes_.emplace_back(JsonNode{kind, key_});
    node.offset = token();
    node.end = nodes_.size();
    key_ = {};
    return node;
  }

  bool add_literal(JsonKind kind, std::size_t size) {
    JsonNode& node = add(kind);
    node.text = document_.substr(node.offset, size);
    at_ += size;
    return true;
  }

  bool add_number(Text told) {
    const std::size_t begin = token();
    if (stands_at(begin, told)) return add_literal(JsonKind::number, told.size());
    const std::size_t end = std::min(document_.find_first_not_of("0123456789+-.eE", begin), document_.size());
    return add_literal(JsonKind::number, end - begin);
  }

  bool open(JsonKind kind) {
    add(kind);
    open_.push_back(nodes_.size() - 1);
    ++at_;
    return true;
  }

  bool close() {
    nodes_[open_.back()].end = nodes_.size();
    open_.pop_back();
    at_ = token() + 1;
    return true;
  }

  bool append(Text part) {
    texts_.append(part.data(), part.size());
    return true;
  }

  std::string_view take_text() {
    const std::string_view text = std::string_view(texts_).substr(part_);
    part_ = texts_.size();
    return text;
  }

  void refuse_twins(std::size_t object) {
    keys_.clear();
    for (std::size_t i = object + 1; i < nodes_.size(); i = nodes_[i].end) keys_.push_back(i);
    if (keys_.size() <= few_keys) {
      for (auto first = keys_.begin(); first != keys_.end(); ++first) {
        for (auto second = first + 1; second != keys_.end(); ++second) refuse_equal(*first, *second);
      }
    } else {
      std::ranges::sort(keys_, {}, [&](std::size_t i) { return std::pair(nodes_[i].key, i); });
      for (auto key = keys_.begin() + 1; key != keys_.end(); ++key) refuse_equal(*(key - 1), *key);
    }
  }

  void refuse_equal(std::size_t first, std::size_t second) const {
    if (nodes_[first].key != nodes_[second].key) return;
    throw ColumnFault{nodes_[second].offset,
                      {},
                      "the member " + excerpt(nodes_[second].key) + " is given twice; remove one of the two"};
  }

  static constexpr std::size_t few_keys = 16;  // to compare each with each

  std::string_view document_;
  std::size_t at_ = 0;  // what stands before this has been told
  std::vector<JsonNode> nodes_;
  std::vector<std::size_t> open_;
  std::vector<std::size_t> keys_;
  std::string texts_;
  std::size_t part_ = 0;  // of texts_: where the text begins that is being told
  std::string_view key_;  // of the next value
};

class JsonDocument {
 public:
  /// The value in `document`, which must outlive it. Throws: ColumnFault.
  [[nodiscard]] JsonValue parse(std::string_view document) {
    parser_.reset();
    parser_.handler().start(document);
    boost::json::error_code error;
    std::size_t read = parser_.write_some(false, document.data(), document.size(), error);
    if (error) refuse(document, read, error);
    read = std::min(document.find_first_not_of(" \t\r\n", read), document.size());
    if (read != document.size()) {
      throw ColumnFault{read, {}, "more text follows the value; write one value a line"};
    }
    return {parser_.handler().nodes(), 0};
  }

 private:
  [[noreturn]] static void refuse(std::string_view document, std::size_t at,
                                  const boost::json::error_code& error) {
    if (const std::size_t bad = utf8_error(document); bad != document.size())
      throw ColumnFault{bad, {}, "a byte here is not UTF-8; JSON must be: convert the file"};
    if (error == boost::json::error::incomplete)
      throw ColumnFault{
          at, {}, "the line ends inside a value; is the file cut off, or the value on many lines?"};
    if (error == boost::json::error::too_deep)
      throw ColumnFault{at, {}, "values are nested more than 32 deep; leave them out"};
    throw ColumnFault{at, {}, "this is not JSON (" + error.message() + "); correct the line"};
  }

  boost::json::basic_parser<JsonBuilder> parser_{boost::json::parse_options()};
};

}  // namespace keyfold::detail
