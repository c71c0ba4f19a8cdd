// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// json
#ifndef KEYFOLD_SINGLE_JSON
#define KEYFOLD_SINGLE_JSON

// debezium
#ifndef KEYFOLD_SINGLE_DEBEZIUM
#define KEYFOLD_SINGLE_DEBEZIUM

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

/// Change events as Debezium writes them, as a feed for apply_changes(). Needs no JSON library: json.hpp reads
/// and writes such messages, or another reader makes envelopes of them. See docs/debezium.md.
namespace keyfold::debezium {

/// An envelope. Any type with members `op` (a character or text), `before` and `after` (optionals or
/// pointers) will do in its place; so will an op that is absent, as in the tombstone that follows a delete.
template <class Row, class Sequence = std::uint64_t>
struct Event {
  char op = '\0';  ///< c: create, u: update, d: delete, r: read by a snapshot; zero: a tombstone
  std::optional<Row> before{};
  std::optional<Row> after{};
  Sequence sequence{};  ///< such as the log position of the change
};

/// An envelope that makes no sense: an unknown op, or one without the row that it needs.
class InvalidEvent : public Error {
 public:
  InvalidEvent(std::string op_text, Position event_position, const std::string& what)
      : Error("the change event at position " + std::to_string(event_position) + " has the op '" + op_text +
              "' " + what),
        op(std::move(op_text)),
        position(event_position) {}

  std::string op;
  Position position;  ///< in the range of envelopes, counting from 0
};

/// A change as apply_changes() takes it: the row after it, or for a delete the row before it.
template <class Row, class SequenceType = std::uint64_t>
struct Change : Row {
  char op = '\0';
  SequenceType sequence{};

  bool is_delete() const noexcept { return op == 'd'; }
};

/// The sequence of an envelope by its position, for topics without a log position: `first` is the offset of
/// the first envelope of the range, so that ranges that follow one another are in order.
struct FromOffset {
  std::uint64_t first;
};
[[nodiscard]] constexpr FromOffset from_offset(std::uint64_t first) noexcept { return {first}; }

/// The default: the member `sequence` of the envelope.
struct BySequence {
  template <class Envelope>
  constexpr decltype(auto) operator()(const Envelope& event) const {
    return (event.sequence);
  }
};

namespace detail {

/// The op as text; empty for none.
template <class Op>
std::string op_text(const Op& op) {
  if constexpr (keyfold::detail::is_optional_v<Op>) {
    return op ? op_text(*op) : std::string();
  } else if constexpr (keyfold::detail::StringLike<Op>) {
    return std::string(keyfold::detail::as_text(op));
  } else {
    static_assert(std::same_as<Op, char>,
                  "keyfold: the op of a change event is a char, a text or an optional of these");
    return op == '\0' ? std::string() : std::string(1, op);
  }
}

template <class Envelope>
using row_of = std::remove_cvref_t<decltype(*std::declval<const Envelope&>().after)>;

template <class Sequence, class Envelope>
auto sequence_of(const Sequence& sequence, const Envelope& event, [[maybe_unused]] Position position) {
  if constexpr (std::same_as<Sequence, FromOffset>) {
    return sequence.first + position;
  } else {
    return std::remove_cvref_t<std::invoke_result_t<const Sequence&, const Envelope&>>(
        std::invoke(sequence, event));
  }
}

/// The change of an envelope; none for a tombstone.
template <class Envelope, class Sequence>
auto change_of(const Envelope& event, const Sequence& sequence, Position position) {
  using Made = Change<row_of<Envelope>, decltype(detail::sequence_of(sequence, event, position))>;
  const std::string op = detail::op_text(event.op);
  if (op.empty() && !event.before && !event.after) return std::optional<Made>();
  const bool deletes = op == "d";
  if (!deletes && op != "c" && op != "u" && op != "r") {
    throw InvalidEvent(op, position, "that is none of c, u, d and r; filter such events out");
  }
  const auto& image = deletes ? event.before : event.after;
  if (!image) {
    throw InvalidEvent(op, position,
                       deletes ? "but no row before it; let the source log old rows, or at least their keys"
                               : "but no row after it");
  }
  return std::optional<Made>(Made{*image, op.front(), detail::sequence_of(sequence, event, position)});
}

}  // namespace detail

/// The changes of a range of envelopes, without the tombstones: a single-pass range, made by changes().
template <class Range, class Sequence>
class Changes {
 public:
  class Iterator;

  Changes(Range&& events, Sequence sequence)
      : events_(std::forward<Range>(events)), sequence_(std::move(sequence)) {}

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  using Envelopes = std::remove_reference_t<Range>;
  using Envelope = std::ranges::range_value_t<Envelopes>;

  Range events_;  // a reference for an lvalue
  Sequence sequence_;
};

template <class Range, class Sequence>
class Changes<Range, Sequence>::Iterator {
 public:
  using value_type = typename decltype(detail::change_of(std::declval<const Envelope&>(),
                                                         std::declval<const Sequence&>(), 0))::value_type;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(Changes& changes) : changes_(&changes), at_(std::ranges::begin(changes.events_)) {
    settle();
  }
  Iterator(Iterator&&) = default;
  Iterator& operator=(Iterator&&) = default;

  value_type operator*() const { return *current_; }
  Iterator& operator++() {
    ++at_;
    ++position_;
    settle();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end(); }

 private:
  bool at_end() const { return at_ == std::ranges::end(changes_->events_); }

  // Goes on to the next envelope that is no tombstone.
  void settle() {
    for (; !at_end(); ++at_, ++position_) {
      const Envelope& event = *at_;
      current_ = detail::change_of(event, changes_->sequence_, position_);
      if (current_) return;
    }
  }

  Changes* changes_;
  std::ranges::iterator_t<Envelopes> at_;
  std::optional<value_type> current_;
  Position position_ = 0;
};

/// The changes of a range of envelopes, for apply_changes(). `sequence`: a member or callable that gives the
/// sequence of an envelope, or from_offset(first). An lvalue is referred to. Reading throws InvalidEvent.
template <std::ranges::input_range Range, class Sequence = BySequence>
[[nodiscard]] auto changes(Range&& events, Sequence sequence = {}) {
  return Changes<Range, Sequence>(std::forward<Range>(events), std::move(sequence));
}

/// table.apply_changes(changes(events, sequence)) with the sequence and the deletes given: to be completed
/// with further parts, and executed.
template <class Table, std::ranges::input_range Range, class Sequence = BySequence>
auto apply_changes(Table& table, Range&& events, Sequence sequence = {}) {
  using Made = std::ranges::range_value_t<Changes<Range, Sequence>>;
  return table.apply_changes(debezium::changes(std::forward<Range>(events), std::move(sequence)))
      .template sequence_by<&Made::sequence>()
      .apply_as_deletes(source<&Made::op> == 'd');
}

}  // namespace keyfold::debezium

/// The columns of a change are those of its row.
template <class Row, class Sequence>
  requires keyfold::HasColumns<Row>
struct keyfold::columns_of<keyfold::debezium::Change<Row, Sequence>> : keyfold::columns_of<Row> {};
#endif

// detail/json_error
#ifndef KEYFOLD_SINGLE_DETAIL_JSON_ERROR
#define KEYFOLD_SINGLE_DETAIL_JSON_ERROR

// detail/excerpt
#ifndef KEYFOLD_SINGLE_DETAIL_EXCERPT
#define KEYFOLD_SINGLE_DETAIL_EXCERPT

#include <string_view>

namespace keyfold::detail {

/// Text of a file for a message: one line, at most 60 bytes, in quotes; bytes that would not print are shown
/// as `?`.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t limit = 60;
  std::string out = "'";
  for (const char c : text.substr(0, limit))
    out += static_cast<unsigned char>(c) < ' ' || c == '\x7F' ? '?' : c;
  return out += text.size() > limit ? "...'" : "'";
}

/// "test.csv:1: column 'x' is missing", "test.csv:1: column 'x': a quote stands": without a colon where the
/// place is the subject of what is said.
inline std::string said_of(std::string place, const std::string& what) {
  return std::move(place) + (what.starts_with("is ") ? " " : ": ") + what;
}

}  // namespace keyfold::detail
#endif

/// The public error of json.hpp, apart from it because the reader below detail/ throws it.
namespace keyfold {

/// A line that is not the JSON of a row or event, or a row that has no JSON.
class JsonError : public Error {
 public:
  JsonError(std::string file_name, std::size_t line_number, std::size_t byte_offset, std::string column_name,
            const std::string& what_and_what_to_do)
      : Error(detail::said_of(place(file_name, line_number, byte_offset, column_name), what_and_what_to_do)),
        file(std::move(file_name)),
        line(line_number),
        offset(byte_offset),
        column(std::move(column_name)) {}

  std::string file;    ///< path of the file, or the name given for the stream
  std::size_t line;    ///< from 1; 0 for the file as a whole
  std::size_t offset;  ///< bytes of the line before the place; what() shows it plus one. 0 when writing
  std::string column;  ///< as "stock", "after.stock" or "tags[2]"; empty where the error is of no one column

 private:
  static std::string place(const std::string& file, std::size_t line, std::size_t offset,
                           const std::string& column) {
    std::string out = file;
    if (line != 0) out += ':' + std::to_string(line) + ':' + std::to_string(offset + 1);
    if (!column.empty()) out += ": column " + detail::excerpt(column);
    return out;
  }
};

}  // namespace keyfold
#endif

// detail/json_events
#ifndef KEYFOLD_SINGLE_DETAIL_JSON_EVENTS
#define KEYFOLD_SINGLE_DETAIL_JSON_EVENTS

// detail/json_rows
#ifndef KEYFOLD_SINGLE_DETAIL_JSON_ROWS
#define KEYFOLD_SINGLE_DETAIL_JSON_ROWS

// detail/json_document
#ifndef KEYFOLD_SINGLE_DETAIL_JSON_DOCUMENT
#define KEYFOLD_SINGLE_DETAIL_JSON_DOCUMENT

// detail/column_fault
#ifndef KEYFOLD_SINGLE_DETAIL_COLUMN_FAULT
#define KEYFOLD_SINGLE_DETAIL_COLUMN_FAULT

namespace keyfold::detail {

/// What is wrong with a value that is read or written, while it is not known yet in which row and file it is:
/// who knows that makes an error of it.
struct ColumnFault {
  std::size_t offset;  // in the document that is read; else 0
  std::string column;
  std::string message;
};

/// To be used where the fault passes through the column, or the element, of this name.
inline void prepend_name(ColumnFault& fault, std::string name) {
  if (!fault.column.empty() && !fault.column.starts_with('[')) name += '.';
  fault.column.insert(0, name);
}

}  // namespace keyfold::detail
#endif

// detail/utf8
#ifndef KEYFOLD_SINGLE_DETAIL_UTF8
#define KEYFOLD_SINGLE_DETAIL_UTF8

#include <cstring>

/// UTF-8, told from bytes that are not (Unicode, table 3-7).
namespace keyfold::detail {

struct CodePoint {
  char32_t value;
  std::size_t bytes;
  bool valid;  // false: `value` is a byte that is not part of well-formed UTF-8
};

/// Bytes of the sequence that `lead` begins; 1 if it begins none.
constexpr std::size_t sequence_length(unsigned char lead) noexcept {
  if (lead < 0xC2 || lead > 0xF4) return 1;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

constexpr bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Overlong forms, surrogates and what lies above U+10FFFF are not well-formed (Unicode, table 3-7).
constexpr bool is_scalar_value(char32_t value, std::size_t bytes) noexcept {
  if (bytes == 3) return value >= 0x800 && (value < 0xD800 || value > 0xDFFF);
  return bytes != 4 || (value >= 0x10000 && value <= 0x10FFFF);
}

/// Requires: text is not empty.
constexpr CodePoint first_code_point(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  const CodePoint lone{lead, 1, lead < 0x80};
  const std::size_t bytes = sequence_length(lead);
  if (bytes == 1 || text.size() < bytes) return lone;
  char32_t value = lead & (0x7FU >> bytes);
  for (const char byte : text.substr(1, bytes - 1)) {
    if (!is_continuation(byte)) return lone;
    value = value << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return is_scalar_value(value, bytes) ? CodePoint{value, bytes, true} : lone;
}

/// Whether the next eight bytes are ASCII, if that can be told at once.
constexpr bool begins_with_ascii_word(std::string_view text) noexcept {
  std::uint64_t word = 0;
  if (std::is_constant_evaluated() || text.size() < sizeof word) return false;
  std::memcpy(&word, text.data(), sizeof word);
  return (word & 0x8080808080808080U) == 0;
}

/// Offset of the first byte that is not part of well-formed UTF-8; text.size() where all are.
constexpr std::size_t utf8_error(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      at += begins_with_ascii_word(text.substr(at)) ? sizeof(std::uint64_t) : 1;
      continue;
    }
    const CodePoint c = first_code_point(text.substr(at));
    if (!c.valid) return at;
    at += c.bytes;
  }
  return at;
}

}  // namespace keyfold::detail
#endif

#include <boost/json/basic_parser_impl.hpp>

#include <algorithm>
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
#endif

// detail/json_value
#ifndef KEYFOLD_SINGLE_DETAIL_JSON_VALUE
#define KEYFOLD_SINGLE_DETAIL_JSON_VALUE

// detail/csv_value
#ifndef KEYFOLD_SINGLE_DETAIL_CSV_VALUE
#define KEYFOLD_SINGLE_DETAIL_CSV_VALUE

#include <charconv>
#include <chrono>
#include <concepts>
#include <limits>

/// The text of single values in a CSV file. csv.hpp says what a specialisation of csv_value must have.
namespace keyfold {

template <class T>
struct csv_value;

namespace detail {

template <class T>
concept CsvReadable = requires(std::string_view text) {
  { csv_value<T>::parse(text) } -> std::convertible_to<std::optional<T>>;
  { csv_value<T>::expected() } -> std::convertible_to<std::string>;
};

template <class T>
concept CsvWritable = requires(const T& value) {
  { csv_value<T>::text(value) } -> std::convertible_to<std::optional<std::string>>;
  { csv_value<T>::expected() } -> std::convertible_to<std::string>;
};

template <class T>
concept CsvNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                    !std::same_as<T, char32_t>;

template <class T>
concept CsvEnum = std::is_enum_v<T>;

/// Times whose every value is a whole number of microseconds, the finest fraction that is written.
template <class Duration>
concept CsvTime = std::convertible_to<Duration, std::chrono::microseconds>;

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

template <class T>
std::string number_text(T number) {
  std::string out;
  detail::append_number(out, number);
  return out;
}

/// Takes a time apart from the front; once something does not stand where it must, failed() stays true.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(text) {}

  /// "YYYY-MM-DD"
  std::chrono::sys_days date() {
    const std::chrono::year year{digits(4)};
    skip('-');
    const std::chrono::month month{static_cast<unsigned>(digits(2))};
    skip('-');
    const std::chrono::year_month_day date{year, month, std::chrono::day{static_cast<unsigned>(digits(2))}};
    failed_ |= !date.ok();
    return failed_ ? std::chrono::sys_days{} : std::chrono::sys_days{date};
  }

  /// "Thh:mm:ssZ" or, with one to six digits, "Thh:mm:ss.ffffffZ"
  std::chrono::microseconds clock() {
    skip('T');
    const std::chrono::hours hours{below(24)};
    skip(':');
    const std::chrono::minutes minutes{below(60)};
    skip(':');
    const std::chrono::seconds seconds{below(60)};
    const std::chrono::microseconds rest = fraction();
    skip('Z');
    return hours + minutes + seconds + rest;
  }

  [[nodiscard]] bool failed() const noexcept { return failed_ || !rest_.empty(); }

 private:
  [[nodiscard]] bool at_digit() const noexcept {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }

  void skip(char expected) {
    failed_ |= !rest_.starts_with(expected);
    if (!failed_) rest_.remove_prefix(1);
  }

  int digits(int width) {
    int number = 0;
    for (; width > 0 && at_digit(); --width) {
      number = number * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    failed_ |= width > 0;
    return number;
  }

  int below(int limit) {
    const int number = digits(2);
    failed_ |= number >= limit;
    return number;
  }

  std::chrono::microseconds fraction() {
    std::chrono::microseconds sum{0};
    if (!rest_.starts_with('.')) return sum;
    rest_.remove_prefix(1);
    failed_ |= !at_digit();
    for (int unit = 100'000; unit != 0 && at_digit(); unit /= 10)
      sum += std::chrono::microseconds{unit * digits(1)};
    return sum;
  }

  std::string_view rest_;
  bool failed_ = false;
};

template <class Duration>
bool has_four_digit_year(std::chrono::sys_time<Duration> time) {
  using namespace std::chrono;
  return time >= sys_days(year{0} / January / 1) && time < sys_days(year{10'000} / January / 1);
}

}  // namespace detail

template <>
struct csv_value<std::string> {
  static std::string expected() { return "text"; }
  static std::optional<std::string> parse(std::string_view text) { return std::string(text); }
  static std::optional<std::string> text(const std::string& value) { return value; }
};

template <>
struct csv_value<char> {
  static std::string expected() { return "one character"; }
  static std::optional<char> parse(std::string_view text) {
    return text.size() == 1 ? std::optional(text.front()) : std::nullopt;
  }
  static std::optional<std::string> text(char value) { return std::string(1, value); }
};

template <>
struct csv_value<bool> {
  static std::string expected() { return "true, false, 1 or 0"; }
  static std::optional<bool> parse(std::string_view text) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    return std::nullopt;
  }
  static std::optional<std::string> text(bool value) { return value ? "true" : "false"; }
};

template <detail::CsvNumber T>
struct csv_value<T> {
  static std::string expected() {
    if constexpr (std::floating_point<T>) return "a number such as -1.5 or 2e10";
    using Limits = std::numeric_limits<T>;
    return "a whole number from " + detail::number_text(Limits::min()) + " to " +
           detail::number_text(Limits::max());
  }
  static std::optional<T> parse(std::string_view text) { return detail::parse_number<T>(text); }
  static std::optional<std::string> text(T value) { return detail::number_text(value); }
};

/// A described enum by the names of its enumerators, another by its number.
template <detail::CsvEnum T>
struct csv_value<T> {
  using Number = std::underlying_type_t<T>;
  static constexpr bool described = boost::describe::has_describe_enumerators<T>::value;

  static std::string expected() {
    if constexpr (described) {
      std::string out = "one of";
      for_each_enumerator(
          [&](const char* name, T) { out += std::string(out.ends_with("of") ? " " : ", ") + name; });
      return out;
    } else {
      return csv_value<Number>::expected();
    }
  }
  static std::optional<T> parse(std::string_view text) {
    std::optional<T> result;
    if constexpr (described) {
      for_each_enumerator([&](const char* name, T value) {
        if (text == name) result = value;
      });
    } else if (const auto number = csv_value<Number>::parse(text)) {
      result = static_cast<T>(*number);
    }
    return result;
  }
  static std::optional<std::string> text(T value) {
    std::optional<std::string> result;
    if constexpr (described) {
      for_each_enumerator([&](const char* name, T enumerator) {
        if (value == enumerator && !result) result = name;
      });
    } else {
      result = csv_value<Number>::text(static_cast<Number>(value));
    }
    return result;
  }

 private:
  template <class Visitor>
  static void for_each_enumerator(Visitor&& visit) {
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
        [&](auto e) { visit(e.name, e.value); });
  }
};

/// By their count, in their own unit.
template <class Rep, class Period>
struct csv_value<std::chrono::duration<Rep, Period>> {
  using Duration = std::chrono::duration<Rep, Period>;
  static std::string expected() { return csv_value<Rep>::expected(); }
  static std::optional<Duration> parse(std::string_view text) {
    const auto count = csv_value<Rep>::parse(text);
    return count ? std::optional(Duration(*count)) : std::nullopt;
  }
  static std::optional<std::string> text(Duration value) { return csv_value<Rep>::text(value.count()); }
};

/// ISO 8601 in UTC, years 0000 to 9999; days without a time of day.
template <detail::CsvTime Duration>
struct csv_value<std::chrono::sys_time<Duration>> {
  using Time = std::chrono::sys_time<Duration>;
  static constexpr bool days_only = std::same_as<Duration, std::chrono::days>;

  static std::string expected() {
    return days_only ? "a date such as 2026-10-04" : "a UTC time such as 2026-10-04T12:00:00Z";
  }
  static std::optional<Time> parse(std::string_view text) {
    detail::TimeText source(text);
    std::chrono::sys_time<std::chrono::microseconds> exact = source.date();
    if constexpr (!days_only) exact += source.clock();
    const auto time = std::chrono::floor<Duration>(exact);
    return source.failed() || time != exact ? std::nullopt : std::optional(time);
  }
  static std::optional<std::string> text(Time value) {
    if (!detail::has_four_digit_year(value)) return std::nullopt;
    std::string out;
    detail::append_time(out, value);
    return out;
  }
};

/// As sys_days; a date that the calendar does not have is not written.
template <>
struct csv_value<std::chrono::year_month_day> {
  using Days = csv_value<std::chrono::sys_days>;

  static std::string expected() { return Days::expected(); }
  static std::optional<std::chrono::year_month_day> parse(std::string_view text) {
    const auto days = Days::parse(text);
    return days ? std::optional(std::chrono::year_month_day(*days)) : std::nullopt;
  }
  static std::optional<std::string> text(std::chrono::year_month_day date) {
    return date.ok() ? Days::text(date) : std::nullopt;
  }
};

}  // namespace keyfold
#endif

// detail/row_range
#ifndef KEYFOLD_SINGLE_DETAIL_ROW_RANGE
#define KEYFOLD_SINGLE_DETAIL_ROW_RANGE

/// What the readers of text files share.
namespace keyfold::detail {

/// "id, status, amount"
template <class Row>
std::string names_text() {
  std::string out;
  for (const auto name : column_names<Row>) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

/// The values of a file, read one at a time: an input range that a merge takes as its source. `Reader` has a
/// `bool read(value_type&)`, which is false at the end and throws for what it cannot read.
/// Thread safety: one thread. Iterators are invalid once the range is moved.
template <class Reader>
class RowRange {
 public:
  using value_type = typename Reader::value_type;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = RowRange::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = value_type&;
    using pointer = value_type*;

    iterator() = default;
    explicit iterator(RowRange& rows) : rows_(&rows) {}

    /// The value, which may be moved from.
    reference operator*() const noexcept { return rows_->row_; }
    iterator& operator++() {
      rows_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t /*end*/) const noexcept { return rows_->done_; }

   private:
    RowRange* rows_ = nullptr;
  };

  explicit RowRange(Reader reader) : reader_(std::move(reader)) {}

  /// Reads the first value; to be called once. Throws what incrementing the iterator does.
  [[nodiscard]] iterator begin() {
    advance();
    return iterator(*this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void advance() { done_ = !reader_.read(row_); }

  Reader reader_;
  value_type row_{};
  bool done_ = false;
};

template <class Reader>
auto all_of(RowRange<Reader> rows) {
  std::vector<typename Reader::value_type> out;
  for (auto& row : rows) out.push_back(std::move(row));
  return out;
}

}  // namespace keyfold::detail
#endif

#include <array>
#include <bitset>
#include <cmath>

/// Values as JSON and back. The text of a scalar is that of csv_value; this decides whether it stands in
/// quotes.
namespace keyfold {

/// How times and dates are written; both are read.
enum class JsonTimes : std::uint8_t {
  iso8601,  ///< "2026-10-04T12:00:00Z", as Debezium's ZonedTimestamp
  epoch  ///< a number: the count since 1970 in the column's own unit, as Debezium's MicroTimestamp and Date
};

namespace detail {

struct JsonRules {
  bool allow_missing = false;
  bool ignore_unknown = false;
  bool envelope = false;           // the row is in a change event of Debezium
  bool empty_unavailable = false;  // there, a value that Debezium does not have is taken for null
};

/// Requires: T is an optional.
template <class T>
constexpr void check_json_optional() {
  static_assert(!is_optional_v<typename T::value_type>,
                "keyfold: JSON has but one null; make the column a std::optional of no other one");
}

inline constexpr std::string_view unavailable_value = "__debezium_unavailable_value";

template <class T>
inline constexpr bool is_calendar_v = is_time_point_v<T> || std::same_as<T, std::chrono::year_month_day>;

/// What is written as the number that it holds: durations, and enums without names or a csv_value of the
/// user's.
template <class T>
concept JsonCount =
    is_duration_v<T> || (std::is_enum_v<T> && requires { requires !csv_value<T>::described; });

template <JsonCount T>
constexpr auto count_of(T value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else {
    return value.count();
  }
}
template <JsonCount T>
using count_t = decltype(count_of(T{}));

template <class T>
concept JsonSequence = std::ranges::input_range<const T> && std::default_initializable<T> &&
                       requires(T& sequence, typename T::value_type element) {
                         sequence.clear();
                         sequence.push_back(std::move(element));
                       };

// --- Writing

inline bool is_escaped_in_json(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

inline void append_json_escape(std::string& out, char c) {
  constexpr std::string_view known = "\"\\\n\r\t\b\f";
  constexpr std::string_view letters = "\"\\nrtbf";
  if (const auto at = known.find(c); at != std::string_view::npos) {
    out += '\\';
    out += letters[at];
  } else {
    out += c < 0x10 ? "\\u000" : "\\u001";
    out += "0123456789abcdef"[c & 0xF];
  }
}

/// Throws: ColumnFault for text that is not UTF-8.
inline void append_json_string(std::string& out, std::string_view text) {
  if (const std::size_t bad = utf8_error(text); bad != text.size()) {
    throw ColumnFault{0,
                      {},
                      "the text " + excerpt(text) + " is not UTF-8 at its byte " + std::to_string(bad) +
                          ", which JSON cannot hold; convert it, or leave the row out"};
  }
  out += '"';
  std::size_t written = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_escaped_in_json(text[at])) continue;
    out += text.substr(written, at - written);
    append_json_escape(out, text[at]);
    written = at + 1;
  }
  out += text.substr(written);
  out += '"';
}

template <std::floating_point T>
bool append_not_finite(std::string& out, T value) {
  if (std::isfinite(value)) return false;
  out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return true;
}

/// Empty for a date that the calendar does not have.
inline std::optional<std::chrono::days::rep> epoch_count(std::chrono::year_month_day date) {
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}
template <class Clock, class Duration>
std::optional<typename Duration::rep> epoch_count(std::chrono::time_point<Clock, Duration> time) {
  return time.time_since_epoch().count();
}

/// The text of a value, empty for one that has none.
template <class T>
std::optional<std::string> scalar_text(const T& value, JsonTimes times) {
  if constexpr (is_calendar_v<T>) {
    if (times == JsonTimes::epoch) {
      const auto count = epoch_count(value);
      return count ? std::optional(number_text(*count)) : std::nullopt;
    }
  }
  return csv_value<T>::text(value);
}

template <class T>
void append_scalar(std::string& out, const T& value, JsonTimes times) {
  static_assert(CsvWritable<T>,
                "keyfold: JSON does not know the type of this column; specialise keyfold::csv_value for it");
  if constexpr (std::floating_point<T>) {
    if (append_not_finite(out, value)) return;
  }
  if constexpr (CsvNumber<T>) return detail::append_number(out, value);
  if constexpr (std::same_as<T, std::string>) return append_json_string(out, value);
  const std::optional<std::string> text = scalar_text(value, times);
  if (!text) {
    throw ColumnFault{0,
                      {},
                      "the value cannot be written as " + std::string(csv_value<T>::expected()) +
                          "; correct the row, or leave it out"};
  }
  if (std::same_as<T, bool> || (is_calendar_v<T> && times == JsonTimes::epoch)) {
    out += *text;
  } else {
    append_json_string(out, *text);
  }
}

template <class T>
void append_json(std::string& out, const T& value, JsonTimes times);

template <class Row>
void append_object(std::string& out, const Row& row, JsonTimes times) {
  std::string_view name;
  try {
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      name = column_names<Row>[I];
      out += I == 0 ? "{\"" : ",\"";
      out += name;
      out += "\":";
      detail::append_json(out, detail::read<Member>(row), times);
    });
  } catch (ColumnFault& fault) {
    prepend_name(fault, std::string(name));
    throw;
  }
  out += column_count<Row> == 0 ? "{}" : "}";
}

template <class T>
void append_json(std::string& out, const T& value, JsonTimes times) {
  if constexpr (is_optional_v<T>) {
    detail::check_json_optional<T>();
    value ? detail::append_json(out, *value, times) : static_cast<void>(out += "null");
  } else if constexpr (!CsvWritable<T> && HasColumns<T>) {
    append_object(out, value, times);
  } else if constexpr (!CsvWritable<T> && JsonSequence<T>) {
    out += '[';
    for (auto&& element : value) {
      if (out.back() != '[') out += ',';
      detail::append_json<typename T::value_type>(out, element, times);
    }
    out += ']';
  } else if constexpr (JsonCount<T>) {
    append_scalar(out, count_of(value), times);
  } else {
    append_scalar(out, value, times);
  }
}

// --- Reading

inline std::string found_text(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::null:
      return "is null";
    case JsonKind::array:
      return "found an array";
    case JsonKind::object:
      return "found an object";
    case JsonKind::text:
      return "found the text " + excerpt(value.text());
    default:
      return "found " + excerpt(value.text());
  }
}

[[noreturn]] inline void refuse_value(const JsonValue& value, const std::string& expected) {
  const std::string remedy = value.is_null() ? "fill it in, or make the column a std::optional"
                                             : "correct the value, or change the type of the column";
  throw ColumnFault{value.offset(), {}, found_text(value) + " where " + expected + " is needed; " + remedy};
}

template <std::floating_point T>
std::optional<T> parse_not_finite(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<T>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<T>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<T>::infinity();
  return std::nullopt;
}

template <class T>
std::optional<T> parse_epoch(std::string_view text) {
  if constexpr (std::same_as<T, std::chrono::year_month_day>) {
    using namespace std::chrono;
    const auto day = detail::parse_epoch<sys_days>(text);
    const bool known =
        day && *day >= sys_days(year::min() / January / 1) && *day <= sys_days(year::max() / December / 31);
    return known ? std::optional(T(*day)) : std::nullopt;
  } else {
    const auto count = detail::parse_number<typename T::rep>(text);
    return count ? std::optional(T(typename T::duration(*count))) : std::nullopt;
  }
}

/// The value, if that is what stands there.
template <class T>
std::optional<T> parse_scalar(const JsonValue& value) {
  static_assert(CsvReadable<T>,
                "keyfold: JSON does not know the type of this column; specialise keyfold::csv_value for it");
  const bool number = value.kind() == JsonKind::number;
  const bool text = value.kind() == JsonKind::text;
  if constexpr (std::same_as<T, bool>) {
    if (!number && value.kind() != JsonKind::boolean) return std::nullopt;
  } else if constexpr (std::floating_point<T>) {
    if (text) return parse_not_finite<T>(value.text());
    if (!number) return std::nullopt;
  } else if constexpr (CsvNumber<T>) {
    if (!number) return std::nullopt;
  } else if constexpr (is_calendar_v<T>) {
    if (number) return detail::parse_epoch<T>(value.text());
    if (!text) return std::nullopt;
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, char> || std::is_enum_v<T>) {
    if (!text) return std::nullopt;
  } else {
    if (!text && !number) return std::nullopt;
  }
  return csv_value<T>::parse(value.text());
}

template <class T>
void read_json(const JsonValue& value, T& out, const JsonRules& rules);

template <class Row>
using ColumnSet = std::bitset<column_count<Row>>;

/// Reads the members of an object into the columns of the same name.
template <class Row>
class JsonObjectReader {
  static_assert(HasColumns<Row>,
                "keyfold: JSON needs the column list of the row; describe it or specialise columns_of");
  static_assert(std::default_initializable<Row>, "keyfold: JSON needs a row type with a default constructor");

 public:
  explicit JsonObjectReader(const JsonRules& rules) noexcept : rules_(rules) {}

  /// Columns in `lenient` may be missing or null: then they keep their default. Throws: ColumnFault.
  void read(const JsonValue& object, Row& row, const ColumnSet<Row>& lenient = {}) const {
    if (object.kind() != JsonKind::object)
      refuse_value(object, "an object with the columns " + detail::names_text<Row>());
    row = Row();
    ColumnSet<Row> seen;
    std::size_t next = 0;  // members mostly come in the order of the columns
    object.for_each([&](const JsonValue& member) {
      const std::size_t column = find(member.key(), next);
      next = column + 1;
      if (column == column_count<Row>) return refuse_unknown(member);
      seen.set(column);
      if (!is_absent(member) || !lenient.test(column)) read_column(member, row, column);
    });
    if (!rules_.allow_missing) require_all(object, seen | lenient);
  }

 private:
  using ReadColumn = void (*)(const JsonValue&, Row&, const JsonRules&);

  template <auto Member>
  static void read_member(const JsonValue& value, Row& row, const JsonRules& rules) {
    static_assert(is_data_member<Member>, "keyfold: JSON can only be read into data members");
    if constexpr (is_data_member<Member>) detail::read_json(value, row.*Member, rules);
  }

  template <auto... Members>
  static constexpr auto readers(MemberList<Members...>) {
    return std::array<ReadColumn, sizeof...(Members)>{&read_member<Members>...};
  }

  static std::size_t find(std::string_view name, std::size_t likely) {
    return likely < column_count<Row> && column_names<Row>[likely] == name ? likely : column_index<Row>(name);
  }

  [[nodiscard]] bool is_absent(const JsonValue& value) const {
    return value.is_null() || (rules_.envelope && rules_.empty_unavailable && is_unavailable(value));
  }

  static bool is_unavailable(const JsonValue& value) {
    return value.kind() == JsonKind::text && value.text() == unavailable_value;
  }

  void read_column(const JsonValue& value, Row& row, std::size_t column) const {
    static constexpr auto read_columns = readers(columns_list<Row>{});
    try {
      if (rules_.envelope && is_unavailable(value)) return read_unavailable(read_columns[column], value, row);
      read_columns[column](value, row, rules_);
    } catch (ColumnFault& fault) {
      prepend_name(fault, std::string(column_names<Row>[column]));
      throw;
    }
  }

  void read_unavailable(ReadColumn read_null, const JsonValue& value, Row& row) const {
    if (!rules_.empty_unavailable) {
      throw ColumnFault{
          value.offset(),
          {},
          "the database did not log this unchanged value; let it log whole rows (in PostgreSQL: "
          "REPLICA IDENTITY FULL), or set EventOptions::empty_unavailable and load with "
          "ignore_null_updates()"};
    }
    const std::vector<JsonNode> null{{.offset = value.offset(), .end = 1}};
    read_null(JsonValue(null, 0), row, rules_);
  }

  void refuse_unknown(const JsonValue& member) const {
    if (rules_.ignore_unknown) return;
    throw ColumnFault{member.offset(), std::string(member.key()),
                      "is no column of the row, which has " + detail::names_text<Row>() +
                          "; rename it, or set JsonOptions::ignore_unknown_columns"};
  }

  static void require_all(const JsonValue& object, const ColumnSet<Row>& seen) {
    for (std::size_t i = 0; i < column_count<Row>; ++i) {
      if (seen.test(i)) continue;
      throw ColumnFault{object.offset(), std::string(column_names<Row>[i]),
                        "is missing; add it, or set JsonOptions::allow_missing_columns"};
    }
  }

  const JsonRules& rules_;
};

template <class Sequence>
void read_sequence(const JsonValue& value, Sequence& out, const JsonRules& rules) {
  if (value.kind() != JsonKind::array) refuse_value(value, "an array");
  out.clear();
  std::size_t index = 0;
  try {
    value.for_each([&](const JsonValue& element) {
      typename Sequence::value_type read{};
      detail::read_json(element, read, rules);
      out.push_back(std::move(read));
      ++index;
    });
  } catch (ColumnFault& fault) {
    prepend_name(fault, '[' + std::to_string(index) + ']');
    throw;
  }
}

template <class T>
void read_json(const JsonValue& value, T& out, const JsonRules& rules) {
  if constexpr (is_optional_v<T>) {
    detail::check_json_optional<T>();
    if (value.is_null()) return out.reset();
    detail::read_json(value, out.emplace(), rules);
  } else if constexpr (!CsvReadable<T> && HasColumns<T>) {
    JsonObjectReader<T>(rules).read(value, out);
  } else if constexpr (!CsvReadable<T> && JsonSequence<T>) {
    read_sequence(value, out, rules);
  } else {
    std::optional<T> parsed;
    if constexpr (JsonCount<T>) {
      const auto count = parse_scalar<count_t<T>>(value);
      if (count) parsed = T(*count);
    } else {
      parsed = parse_scalar<T>(value);
    }
    if (!parsed) refuse_value(value, csv_value<T>::expected());
    out = *std::move(parsed);
  }
}

}  // namespace detail
}  // namespace keyfold
#endif

#include <istream>
#include <memory>
#include <ostream>

/// Lines of JSON as rows, and rows as lines.
namespace keyfold::detail {

/// The lines of a stream, each parsed when it is asked for.
class JsonLines {
 public:
  /// Requires: the stream outlives this object.
  JsonLines(std::istream& stream, std::string name) : stream_(&stream), name_(std::move(name)) {}
  JsonLines(std::unique_ptr<std::istream> stream, std::string name) : JsonLines(*stream, std::move(name)) {
    owned_ = std::move(stream);
  }

  /// Goes to the next line. Returns: false at the end of the stream. Throws: JsonError.
  bool next() {
    const bool found = static_cast<bool>(std::getline(*stream_, line_));
    if (stream_->bad()) {
      throw JsonError(name_, number_ + 1, 0, {}, "cannot be read further; check the file and its disk");
    }
    if (!found) return false;
    begin_ = ++number_ == 1 && line_.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // a byte order mark
    return true;
  }

  [[nodiscard]] bool blank() const noexcept {
    return line_.find_first_not_of(" \t\r", begin_) == std::string::npos;
  }

  /// Calls read(JsonValue) with the value of the line. Throws: JsonError for the faults of either.
  template <class Read>
  void parse(Read&& read) {
    try {
      read(document_->parse(std::string_view(line_).substr(begin_)));
    } catch (ColumnFault& fault) {
      throw JsonError(name_, number_, begin_ + fault.offset, std::move(fault.column), fault.message);
    }
  }

 private:
  std::unique_ptr<std::istream> owned_;
  std::istream* stream_;
  std::string name_;
  std::unique_ptr<JsonDocument> document_ =
      std::make_unique<JsonDocument>();  // Boost's parser cannot be moved
  std::string line_;
  std::size_t number_ = 0;
  std::size_t begin_ = 0;
};

template <class Row>
class JsonReader {
 public:
  using value_type = Row;

  JsonReader(JsonLines lines, const JsonRules& rules) : lines_(std::move(lines)), rules_(rules) {}

  /// Reads the next row. Returns: false at the end. Throws: JsonError.
  bool read(Row& row) {
    do {
      if (!lines_.next()) return false;
    } while (lines_.blank());
    lines_.parse([&](const JsonValue& value) {
      if (value.kind() != JsonKind::object) refuse_line(value);
      JsonObjectReader<Row>(rules_).read(value, row);
    });
    return true;
  }

 private:
  [[noreturn]] static void refuse_line(const JsonValue& value) {
    const bool array = value.kind() == JsonKind::array;
    throw ColumnFault{value.offset(),
                      {},
                      found_text(value) + " where a row is needed, an object with the columns " +
                          names_text<Row>() + "; write one object a line" +
                          (array ? ", without an array around them" : "")};
  }

  JsonLines lines_;
  JsonRules rules_;
};

/// Writes lines that are made with append(std::string&), which may throw ColumnFault. Requires: the stream
/// outlives it.
class JsonWriter {
 public:
  JsonWriter(std::ostream& stream, std::string name) : stream_(stream), name_(std::move(name)) {}

  template <class Append>
  void write(Append&& append) {
    line_.clear();
    ++number_;
    try {
      append(line_);
    } catch (ColumnFault& fault) {
      throw JsonError(name_, number_, 0, std::move(fault.column), fault.message);
    }
    line_ += '\n';
    stream_.write(line_.data(), static_cast<std::streamsize>(line_.size()));
  }

  void finish() {
    stream_.flush();
    if (!stream_) throw JsonError(name_, number_, 0, {}, "cannot be written further; is its disk full?");
  }

 private:
  std::ostream& stream_;
  std::string name_;
  std::string line_;
  std::size_t number_ = 0;
};

template <class Range>
void write_json_rows(JsonWriter writer, Range& rows, JsonTimes times) {
  static_assert(HasColumns<std::ranges::range_value_t<Range>>,
                "keyfold: JSON needs the column list of the row; describe it or specialise columns_of");
  if constexpr (HasColumns<std::ranges::range_value_t<Range>>) {
    for (const auto& row : rows) {
      writer.write([&](std::string& line) { append_object(line, row, times); });
    }
  }
  writer.finish();
}

}  // namespace keyfold::detail
#endif

#include <span>

/// Debezium's envelope as JSON.
namespace keyfold::detail {

template <auto Member, class Row>
inline constexpr bool is_listed =
    is_data_member<Member> && column_index<Row>(member_name<Member>) < column_count<Row>;

/// What stands for a table in the events: the row, and the columns of its key.
template <class RowType, auto... Key>
struct EventRows {
  using Row = RowType;
  using KeyParts = Parts<Key...>;

  /// Columns that the row before a change need not have. None where the key is not known.
  static ColumnSet<Row> lenient_before() {
    ColumnSet<Row> out;
    if constexpr (sizeof...(Key) > 0 && (is_listed<Key, Row> && ...)) {
      out.set();
      (out.reset(column_index<Row>(member_name<Key>)), ...);
    }
    return out;
  }
};

template <class Of, auto... Key>
struct event_rows {
  static_assert((is_listed<Key, Of> && ...),
                "keyfold: json_events<Row, &Row::id>() names columns of the row, those of its key");
  using type = EventRows<Of, Key...>;
};
template <class Row, auto... Part, class... Indexes>
struct event_rows<Table<Row, Key<Part...>, Indexes...>> {
  using type = EventRows<Row, Part...>;
};
template <class Row, auto... Part, class... Indexes>
struct event_rows<Table<Row, OrderedKey<Part...>, Indexes...>> {
  using type = EventRows<Row, Part...>;
};

template <class Of, auto... Key>
using event_rows_t = typename event_rows<Of, Key...>::type;

template <class Of>
inline constexpr bool is_table = false;
template <class Row, class Key, class... Indexes>
inline constexpr bool is_table<Table<Row, Key, Indexes...>> = true;

template <class Of>
struct written_rows : event_rows<Of> {
  static_assert(is_table<Of>,
                "keyfold: debezium::write_json<Table>() names the type of the table whose changes it writes");
};
template <class Of>
using written_rows_t = typename written_rows<Of>::type;
template <class Of>
using written_row_t = typename written_rows_t<Of>::Row;

template <class Rows>
class JsonEventReader {
  using Row = typename Rows::Row;

 public:
  using value_type = debezium::Event<Row>;

  JsonEventReader(JsonLines lines, const JsonRules& rules, std::string sequence)
      : lines_(std::move(lines)), rules_(rules), sequence_(std::move(sequence)) {}

  /// Reads the next envelope; a blank line is a tombstone. Returns: false at the end. Throws: JsonError.
  bool read(value_type& event) {
    if (!lines_.next()) return false;
    event = value_type();
    if (!lines_.blank()) lines_.parse([&](const JsonValue& message) { read_message(message, event); });
    return true;
  }

 private:
  // A converter with schemas puts the envelope beside its schema.
  void read_message(const JsonValue& message, value_type& event) const {
    const auto payload = message.member("payload");
    const JsonValue envelope = payload && !message.member("op") ? *payload : message;
    if (!envelope.is_null()) read_envelope(envelope, event);
  }

  void read_envelope(const JsonValue& envelope, value_type& event) const {
    const auto op = envelope.member("op");
    if (!op) {
      throw ColumnFault{envelope.offset(), "op",
                        "is missing, so that this is no change event; read plain rows, as an unwrapping "
                        "transform makes them, with json_rows()"};
    }
    if (op->kind() != JsonKind::text || op->text().size() != 1)
      throw ColumnFault{op->offset(), "op", found_text(*op) + " where one of c, u, d and r is needed"};
    event.op = op->text().front();
    read_image(envelope, "before", event.before, before_lenient_);
    read_image(envelope, "after", event.after, {});
    if (!sequence_.empty()) event.sequence = read_sequence(envelope);
  }

  void read_image(const JsonValue& envelope, const char* name, std::optional<Row>& image,
                  const ColumnSet<Row>& lenient) const {
    const auto found = envelope.member(name);
    if (!found || found->is_null()) return;
    try {
      JsonObjectReader<Row>(rules_).read(*found, image.emplace(), lenient);
    } catch (ColumnFault& fault) {
      prepend_name(fault, name);
      throw;
    }
  }

  [[nodiscard]] std::uint64_t read_sequence(const JsonValue& envelope) const {
    JsonValue at = envelope;
    for (std::size_t begin = 0; begin <= sequence_.size();) {
      const std::size_t end = std::min(sequence_.find('.', begin), sequence_.size());
      const auto member = at.member(std::string_view(sequence_).substr(begin, end - begin));
      if (!member) refuse_sequence(at, "is missing");
      at = *member;
      begin = end + 1;
    }
    const auto number = detail::parse_number<std::uint64_t>(at.text());
    if (!number) refuse_sequence(at, found_text(at) + " where a whole number that is not negative is needed");
    return *number;
  }

  [[noreturn]] void refuse_sequence(const JsonValue& at, const std::string& what) const {
    throw ColumnFault{
        at.offset(), sequence_,
        what + "; name another member in EventOptions::sequence, or none and use from_offset()"};
  }

  JsonLines lines_;
  JsonRules rules_;
  std::string sequence_;
  ColumnSet<Row> before_lenient_ = Rows::lenient_before();
};

/// Where changes come from.
struct EventSource {
  Version version;
  Timestamp time;
};

template <class Row>
void append_image(std::string& out, const char* name, const Row* row, JsonTimes times) {
  out += '"';
  out += name;
  out += "\":";
  if (row == nullptr) {
    out += "null";
    return;
  }
  try {
    append_object(out, *row, times);
  } catch (ColumnFault& fault) {
    prepend_name(fault, name);
    throw;
  }
}

template <class Row>
void append_event(std::string& out, char op, const Row* before, const Row* after, const EventSource& source,
                  JsonTimes times) {
  using namespace std::chrono;
  const std::string milliseconds =
      number_text(floor<std::chrono::milliseconds>(source.time).time_since_epoch().count());
  out += '{';
  append_image(out, "before", before, times);
  out += ',';
  append_image(out, "after", after, times);
  out += ",\"source\":{\"connector\":\"keyfold\",\"ts_ms\":" + milliseconds +
         ",\"ts_us\":" + number_text(source.time.time_since_epoch().count()) +
         ",\"lsn\":" + number_text(source.version) + "},\"op\":\"";
  out += op;
  out += "\",\"ts_ms\":" + milliseconds + '}';
}

/// Writes the changes of one version. Those that leave a key come first, since a row that arrives at the key
/// in the same version has the same sequence and must be the later one.
template <class Rows>
class JsonEventWriter {
  using Row = typename Rows::Row;
  using Parts = typename Rows::KeyParts;

 public:
  JsonEventWriter(JsonWriter writer, JsonTimes times) : writer_(std::move(writer)), times_(times) {}

  /// `changes`: a range of Change<Row>.
  template <class Changes>
  void write(const Changes& changes, const EventSource& source) {
    for (const Change<Row>& change : changes) {
      if (leaves_key(change)) write_event('d', change.before(), nullptr, source);
    }
    for (const Change<Row>& change : changes) {
      if (change.after() == nullptr) continue;
      const bool arrives = change.before() == nullptr || leaves_key(change);
      write_event(arrives ? 'c' : 'u', arrives ? nullptr : change.before(), change.after(), source);
    }
  }

  void finish() { writer_.finish(); }

 private:
  static bool leaves_key(const Change<Row>& change) {
    if (change.before() == nullptr) return false;
    return change.after() == nullptr ||
           !detail::equal_values(Parts::of(*change.before()), Parts::of(*change.after()));
  }

  void write_event(char op, const Row* before, const Row* after, const EventSource& source) {
    writer_.write([&](std::string& line) { append_event(line, op, before, after, source, times_); });
  }

  JsonWriter writer_;
  JsonTimes times_;
};

/// Runs of changes of one version, which a feed has one after the other.
template <class Rows, class Row>
void write_feed(JsonEventWriter<Rows>& writer, std::span<const FeedChange<Row>> feed) {
  while (!feed.empty()) {
    const EventSource source{feed.front().version(), feed.front().timestamp()};
    const auto end = std::ranges::find_if(
        feed, [&](const FeedChange<Row>& change) { return change.version() != source.version; });
    const auto count = static_cast<std::size_t>(end - feed.begin());
    writer.write(feed.first(count), source);
    feed = feed.subspan(count);
  }
}

}  // namespace keyfold::detail
#endif

#include <filesystem>
#include <fstream>

/// Optional header: rows, and change events in Debezium's envelope, as lines of JSON (NDJSON). Needs
/// Boost.JSON: link keyfold::json, or include <boost/json/src.hpp> in one source file. See docs/json.md.
namespace keyfold {

/// How a file differs from the plain form.
struct JsonOptions {
  bool allow_missing_columns = false;    ///< a column that an object lacks keeps the default of its member
  bool ignore_unknown_columns = false;   ///< skip members that are no column of the row
  JsonTimes times = JsonTimes::iso8601;  ///< for writing; reading takes both
};

/// The rows of a file, read one at a time: an input range that a merge takes as its source, whose rows may be
/// moved from. begin() and increments throw JsonError. Thread safety: one thread.
template <class Row>
using JsonRows = detail::RowRange<detail::JsonReader<Row>>;

namespace detail {

inline JsonLines open_json(const std::filesystem::path& file) {
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  if (!*stream) throw JsonError(file.string(), 0, 0, {}, "cannot be opened; check the path and its rights");
  return {std::move(stream), file.string()};
}

inline std::ofstream create_json(const std::filesystem::path& file) {
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw JsonError(file.string(), 0, 0, {}, "cannot be created; check the path and its rights");
  return stream;
}

inline JsonRules rules_of(const JsonOptions& options) {
  return {.allow_missing = options.allow_missing_columns, .ignore_unknown = options.ignore_unknown_columns};
}

}  // namespace detail

/// The rows of `file`, an object a line, read while they are iterated. Blank lines are skipped.
/// Throws: JsonError if it cannot be opened.
template <class Row>
[[nodiscard]] JsonRows<Row> json_rows(const std::filesystem::path& file, const JsonOptions& options = {}) {
  return JsonRows<Row>({detail::open_json(file), detail::rules_of(options)});
}

/// The rows of `stream`, called `name` in errors. Requires: the stream outlives the range.
template <class Row>
[[nodiscard]] JsonRows<Row> json_rows(std::istream& stream, std::string name = "<stream>",
                                      const JsonOptions& options = {}) {
  return JsonRows<Row>({{stream, std::move(name)}, detail::rules_of(options)});
}

/// Returns: all rows, in order. Throws: JsonError for the first thing that is wrong.
template <class Row>
[[nodiscard]] std::vector<Row> read_json(const std::filesystem::path& file, const JsonOptions& options = {}) {
  return detail::all_of(json_rows<Row>(file, options));
}

template <class Row>
[[nodiscard]] std::vector<Row> read_json(std::istream& stream, std::string name = "<stream>",
                                         const JsonOptions& options = {}) {
  return detail::all_of(json_rows<Row>(stream, std::move(name), options));
}

/// Writes an object a line for each row; read_json reads the same rows back.
/// Throws: JsonError when a value has no JSON that could be read back, or the stream refuses to take it.
template <std::ranges::input_range Rows>
void write_json(std::ostream& stream, Rows&& rows, const JsonOptions& options = {}) {
  detail::write_json_rows({stream, "<stream>"}, rows, options.times);
}

/// Replaces `file`. Not atomic: a failure leaves the part that was written.
template <std::ranges::input_range Rows>
void write_json(const std::filesystem::path& file, Rows&& rows, const JsonOptions& options = {}) {
  std::ofstream stream = detail::create_json(file);
  detail::write_json_rows({stream, file.string()}, rows, options.times);
}

namespace debezium {

/// How events are read.
struct EventOptions {
  JsonOptions rows{};                   ///< for the rows before and after
  std::string sequence = "source.lsn";  ///< where Event::sequence stands; empty: nowhere, it stays 0
  bool empty_unavailable = false;       ///< a value that the database did not log is an empty optional
};

}  // namespace debezium

namespace detail {

inline JsonRules rules_of(const debezium::EventOptions& options) {
  JsonRules rules = rules_of(options.rows);
  rules.envelope = true;
  rules.empty_unavailable = options.empty_unavailable;
  return rules;
}

}  // namespace detail

namespace debezium {

/// The envelopes of a file, an input range for changes() and apply_changes().
template <class Of, auto... Key>
using JsonEvents =
    keyfold::detail::RowRange<keyfold::detail::JsonEventReader<keyfold::detail::event_rows_t<Of, Key...>>>;

/// The envelopes of `file`, one a line, with or without the schema that a converter puts around them. `Of` is
/// the table that they are for, or a row type and the columns of its key. A row before a change must have the
/// columns of the key; others may be missing or null, as databases log them, and keep their defaults.
/// A blank line or `null` is a tombstone. Throws: JsonError, here or from begin() and increments.
template <class Of, auto... Key>
[[nodiscard]] JsonEvents<Of, Key...> json_events(const std::filesystem::path& file,
                                                 const EventOptions& options = {}) {
  return JsonEvents<Of, Key...>(
      {keyfold::detail::open_json(file), keyfold::detail::rules_of(options), options.sequence});
}

/// The envelopes of `stream`, called `name` in errors. Requires: the stream outlives the range.
template <class Of, auto... Key>
[[nodiscard]] JsonEvents<Of, Key...> json_events(std::istream& stream, std::string name = "<stream>",
                                                 const EventOptions& options = {}) {
  return JsonEvents<Of, Key...>(
      {{stream, std::move(name)}, keyfold::detail::rules_of(options), options.sequence});
}

/// Writes an envelope a line for each change of the feed that Table::changes() returned. `source.lsn` is the
/// version, `source.ts_us` its time. A change of the key is a delete and a create, and within a version the
/// deletes come first: apply_changes() of the lines makes the same changes. Throws: as keyfold::write_json.
template <class Table>
void write_json(std::ostream& stream, const ChangeFeed<keyfold::detail::written_row_t<Table>>& feed,
                const JsonOptions& options = {}) {
  keyfold::detail::JsonEventWriter<keyfold::detail::written_rows_t<Table>> writer({stream, "<stream>"},
                                                                                  options.times);
  keyfold::detail::write_feed(writer, std::span(feed));
  writer.finish();
}

/// The changes of a write that had, or shall have, this version and time.
template <class Table>
void write_json(std::ostream& stream, const ChangeSet<keyfold::detail::written_row_t<Table>>& changes,
                Version version, Timestamp time, const JsonOptions& options = {}) {
  keyfold::detail::JsonEventWriter<keyfold::detail::written_rows_t<Table>> writer({stream, "<stream>"},
                                                                                  options.times);
  writer.write(changes, {version, time});
  writer.finish();
}

/// The changes of a commit, as subscribe() tells them.
template <class Table>
void write_json(std::ostream& stream, const Commit<keyfold::detail::written_row_t<Table>>& commit,
                const JsonOptions& options = {}) {
  debezium::write_json<Table>(stream, commit.changes(), commit.version(), commit.timestamp(), options);
}

}  // namespace debezium
}  // namespace keyfold
#endif
