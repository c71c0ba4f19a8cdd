// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/csv_error.hpp>

#include <cstddef>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// RFC 4180 records, before they mean anything. Taken besides: LF for CRLF, a UTF-8 byte order mark, any
/// bytes inside a field. Refused: a quote inside an unquoted field, text after a closing quote, a carriage
/// return by itself.
namespace keyfold::detail {

struct CsvField {
  std::string text;
  bool quoted = false;
  std::size_t line = 0;

  [[nodiscard]] bool absent() const noexcept { return text.empty() && !quoted; }
};

class CsvRecords {
 public:
  /// Requires: the stream outlives this object.
  CsvRecords(std::istream& stream, std::string name, char separator)
      : stream_(&stream), name_(std::move(name)), separator_(separator) {
    skip_byte_order_mark();
  }
  CsvRecords(std::unique_ptr<std::istream> stream, std::string name, char separator)
      : CsvRecords(*stream, std::move(name), separator) {
    owned_ = std::move(stream);
  }

  /// Reads the next record. Returns: false at the end of the stream. Throws: CsvError.
  bool next() {
    size_ = 0;
    record_line_ = line_;
    if (peek() == end) return false;
    do {
      read_field(next_field());
    } while (take(separator_));
    take_line_end();
    return true;
  }

  /// The fields of the record that next() read; valid until it is called again.
  [[nodiscard]] std::span<const CsvField> fields() const noexcept { return {fields_.data(), size_}; }

  /// Whether that record is a line of nothing but blanks.
  [[nodiscard]] bool blank() const noexcept {
    return size_ == 1 && !fields_[0].quoted && fields_[0].text.find_first_not_of(" \t") == std::string::npos;
  }

  /// For a record of one field: what may separate several in it, as text for a message; else nothing.
  [[nodiscard]] std::string other_separator() const {
    if (size_ != 1 || fields_[0].quoted) return {};
    const auto at = fields_[0].text.find_first_of(",;\t|");
    if (at == std::string::npos) return {};
    return fields_[0].text[at] == '\t' ? "a tab" : std::string("'") + fields_[0].text[at] + "'";
  }

  /// The physical line, from 1, on which that record begins.
  [[nodiscard]] std::size_t line() const noexcept { return record_line_; }

  [[noreturn]] void fail(std::size_t line, std::string column, std::size_t field,
                         const std::string& message) const {
    throw CsvError(name_, line, std::move(column), field, message);
  }

 private:
  static constexpr int end = -1;
  static constexpr std::size_t block_size = 65536;

  void skip_byte_order_mark() {
    fill();
    if (buffer_.starts_with("\xEF\xBB\xBF")) position_ = 3;
  }

  void fill() {
    buffer_.resize(block_size);
    stream_->read(buffer_.data(), static_cast<std::streamsize>(block_size));
    if (stream_->bad()) fail(line_, {}, 0, "cannot be read further; check the file and its disk");
    buffer_.resize(static_cast<std::size_t>(stream_->gcount()));
    position_ = 0;
  }

  int peek() {
    if (position_ == buffer_.size() && !stream_->eof()) fill();
    return position_ == buffer_.size() ? end : static_cast<unsigned char>(buffer_[position_]);
  }

  /// Requires: peek() is not the end.
  char get() {
    const char c = buffer_[position_++];
    if (c == '\n') ++line_;
    return c;
  }

  bool take(char expected) {
    if (peek() != static_cast<unsigned char>(expected)) return false;
    get();
    return true;
  }

  CsvField& next_field() {
    if (size_ == fields_.size()) fields_.emplace_back();
    CsvField& field = fields_[size_++];
    field.text.clear();
    field.line = line_;
    return field;
  }

  void read_field(CsvField& field) {
    field.quoted = take('"');
    field.quoted ? read_quoted(field) : read_plain(field);
  }

  [[nodiscard]] bool ends_field(int c) const noexcept {
    return c == end || c == '\n' || c == '\r' || c == static_cast<unsigned char>(separator_);
  }

  void read_plain(CsvField& field) {
    while (!ends_field(peek())) {
      const std::size_t begin = position_;
      while (position_ != buffer_.size() && is_plain(buffer_[position_])) ++position_;
      field.text.append(buffer_, begin, position_ - begin);
      if (position_ != buffer_.size() && buffer_[position_] == '"') {
        fail(field.line, {}, size_,
             "a quote stands inside an unquoted field; quote the whole field and double its quotes");
      }
    }
  }

  [[nodiscard]] bool is_plain(char c) const noexcept {
    return c != '"' && c != '\n' && c != '\r' && c != separator_;
  }

  void read_quoted(CsvField& field) {
    for (;;) {
      if (peek() == end)
        fail(field.line, {}, size_, "the quote that opens here is never closed; is the file cut off?");
      const char c = get();
      if (c == '"' && !take('"')) break;
      field.text += c;
    }
    if (!ends_field(peek())) {
      fail(field.line, {}, size_, "text follows the closing quote; double the quotes inside a quoted field");
    }
  }

  void take_line_end() {
    if (take('\r') && peek() != '\n') {
      fail(line_, {}, size_, "a carriage return stands alone; end lines with LF or CRLF, or quote the field");
    }
    take('\n');
  }

  std::unique_ptr<std::istream> owned_;
  std::istream* stream_;
  std::string name_;
  char separator_;
  std::string buffer_;
  std::size_t position_ = 0;
  std::size_t line_ = 1;
  std::size_t record_line_ = 1;
  std::vector<CsvField>
      fields_;  // the first size_ are the record's; the others keep their memory for the next
  std::size_t size_ = 0;
};

}  // namespace keyfold::detail
