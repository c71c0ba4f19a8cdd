// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/csv_error.hpp>
#include <keyfold/detail/csv_records.hpp>
#include <keyfold/detail/csv_value.hpp>
#include <keyfold/detail/excerpt.hpp>
#include <keyfold/detail/row_range.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Records as rows: the header says which field is which column.
namespace keyfold::detail {

template <class Row>
class CsvReader {
  static_assert(HasColumns<Row>,
                "keyfold: CSV needs the column list of the row; describe it or specialise columns_of");
  static_assert(std::default_initializable<Row>, "keyfold: CSV needs a row type with a default constructor");

 public:
  using value_type = Row;

  /// Reads the header.
  CsvReader(CsvRecords records, bool allow_missing_columns, bool ignore_unknown_columns)
      : records_(std::move(records)) {
    place_.fill(nowhere);
    if (!records_.next()) {
      records_.fail(0, {}, 0, "is empty; its first line must name the columns: " + names_text<Row>());
    }
    if (records_.blank()) {
      records_.fail(1, {}, 0, "the first line is blank; it must name the columns: " + names_text<Row>());
    }
    width_ = records_.fields().size();
    for (std::size_t i = 0; i < width_; ++i) place_column(i, ignore_unknown_columns);
    if (!allow_missing_columns) require_all_columns();
  }

  /// Reads the next row into `row`. Returns: false, and leaves `row` alone, at the end of the file.
  bool read(Row& row) {
    if (!records_.next()) return false;
    if (const auto found = records_.fields().size(); found != width_) {
      if (records_.blank()) records_.fail(records_.line(), {}, 0, "the line is blank; remove it");
      records_.fail(records_.line(), {}, 0,
                    "the record has " + std::to_string(found) + " fields, the header " +
                        std::to_string(width_) + "; is a separator or a quote missing?");
    }
    row = Row();
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      static_assert(is_data_member<Member>, "keyfold: CSV can only be read into data members");
      if (place_[I] != nowhere) assign(row.*Member, records_.fields()[place_[I]], I);
    });
    return true;
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  void place_column(std::size_t field, bool ignore_unknown_columns) {
    const std::string& name = records_.fields()[field].text;
    const std::size_t column = column_index<Row>(name);
    if (column == column_count<Row>) {
      if (ignore_unknown_columns) return;
      records_.fail(1, name, field + 1,
                    "is no column of the row, which has " + names_text<Row>() + "; " +
                        remedy("the first line names the columns: rename this one, or set "
                               "CsvOptions::ignore_unknown_columns"));
    }
    if (place_[column] != nowhere) {
      const std::string first = std::to_string(place_[column] + 1);
      records_.fail(1, name, field + 1, "is named by field " + first + " too; remove or rename one of them");
    }
    place_[column] = field;
  }

  void require_all_columns() const {
    const auto missing = std::ranges::find(place_, nowhere);
    if (missing == place_.end()) return;
    records_.fail(1, std::string(column_names<Row>[static_cast<std::size_t>(missing - place_.begin())]), 0,
                  "is missing in the header; " + remedy("add it, or set CsvOptions::allow_missing_columns"));
  }

  [[nodiscard]] std::string remedy(const std::string& unless_separator) const {
    const std::string other = records_.other_separator();
    return other.empty() ? unless_separator
                         : "if " + other + " separates the fields, set CsvOptions::separator";
  }

  template <class Value>
  void assign(Value& value, const CsvField& field, std::size_t column) const {
    using Plain = unwrap_optional_t<Value>;
    static_assert(CsvReadable<Plain>,
                  "keyfold: CSV does not know the type of this column; specialise keyfold::csv_value for it");
    if constexpr (is_optional_v<Value>) {
      if (field.absent()) return value.reset();
    }
    std::optional<Plain> parsed = csv_value<Plain>::parse(field.text);
    if (!parsed) refuse(field, column, csv_value<Plain>::expected());
    if constexpr (is_optional_v<Value>) {
      value = std::move(parsed);
    } else {
      value = *std::move(parsed);
    }
  }

  [[noreturn]] void refuse(const CsvField& field, std::size_t column, const std::string& expected) const {
    const std::string found = field.absent() ? "is empty" : "found " + excerpt(field.text);
    const std::string remedy = field.absent() ? "fill it in, or make the column a std::optional"
                                              : "correct the field, or change the type of the column";
    records_.fail(field.line, std::string(column_names<Row>[column]), place_[column] + 1,
                  found + " where " + expected + " is needed; " + remedy);
  }

  CsvRecords records_;
  std::array<std::size_t, column_count<Row>> place_{};  // the field of each column
  std::size_t width_ = 0;
};

}  // namespace keyfold::detail
