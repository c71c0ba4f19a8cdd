// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/json_document.hpp>
#include <keyfold/detail/json_error.hpp>
#include <keyfold/detail/json_value.hpp>

#include <cstddef>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

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
      require_object(value);
      JsonObjectReader<Row>(rules_).read(value, row);
    });
    return true;
  }

 private:
  static void require_object(const JsonValue& value) {
    if (value.kind() == JsonKind::object) return;
    throw ColumnFault{value.offset(),
                      {},
                      found_text(value) + " where an object with the columns " + names_text<Row>() +
                          " is needed; write one row a line"};
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
