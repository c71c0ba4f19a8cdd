// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/csv_error.hpp>
#include <keyfold/detail/csv_value.hpp>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace keyfold::detail {

/// Writes the header when it is made and then a record for each row. Requires: the stream outlives it.
template <class Row>
class CsvWriter {
  static_assert(HasColumns<Row>,
                "keyfold: CSV needs the column list of the row; describe it or specialise columns_of");

 public:
  CsvWriter(std::ostream& stream, std::string name, char separator, std::string_view line_end)
      : stream_(stream), name_(std::move(name)), separator_(separator), line_end_(line_end) {
    for (const auto column : column_names<Row>) append(column, false);
    end_record();
  }

  void write(const Row& row) {
    detail::for_each_column<Row>(
        [&]<auto Member, std::size_t I>() { append_value(detail::read<Member>(row), I); });
    end_record();
  }

  void finish() {
    stream_.flush();
    if (!stream_) throw CsvError(name_, line_, {}, 0, "cannot be written further; is its disk full?");
  }

 private:
  template <class Value>
  void append_value(const Value& value, std::size_t column) {
    using Plain = unwrap_optional_t<Value>;
    static_assert(CsvWritable<Plain>,
                  "keyfold: CSV does not know the type of this column; specialise keyfold::csv_value for it");
    if (!detail::has_value(value)) return append({}, false);
    const std::optional<std::string> text = csv_value<Plain>::text(detail::value_of(value));
    if (!text) refuse(column, csv_value<Plain>::expected());
    append(*text, text->empty() && (is_optional_v<Value> || column_count<Row> == 1));
  }

  /// Quotes are needed where the text would not come back, and ask for by `quoted` where it would come back
  /// absent.
  void append(std::string_view text, bool quoted) {
    if (fields_++ != 0) record_ += separator_;
    if (!quoted && !needs_quotes(text)) {
      record_ += text;
      return;
    }
    record_ += '"';
    for (const char c : text) {
      if (c == '"') record_ += '"';
      record_ += c;
    }
    record_ += '"';
  }

  [[nodiscard]] bool needs_quotes(std::string_view text) const {
    return std::ranges::any_of(text,
                               [&](char c) { return c == '"' || c == '\r' || c == '\n' || c == separator_; });
  }

  void end_record() {
    record_ += line_end_;
    stream_.write(record_.data(), static_cast<std::streamsize>(record_.size()));
    line_ += static_cast<std::size_t>(std::ranges::count(record_, '\n'));
    record_.clear();
    fields_ = 0;
  }

  [[noreturn]] void refuse(std::size_t column, const std::string& expected) const {
    throw CsvError(name_, line_, std::string(column_names<Row>[column]), column + 1,
                   "the value cannot be written as " + expected + "; correct the row, or leave it out");
  }

  std::ostream& stream_;
  std::string name_;
  char separator_;
  std::string_view line_end_;
  std::string record_;
  std::size_t fields_ = 0;
  std::size_t line_ = 1;
};

}  // namespace keyfold::detail
