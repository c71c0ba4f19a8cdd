// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/excerpt.hpp>
#include <keyfold/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

/// The public error of csv.hpp, apart from it because the parser below detail/ throws it.
namespace keyfold {

/// A CSV file that cannot be read into rows, or a row that cannot be written as CSV.
class CsvError : public Error {
 public:
  CsvError(std::string file_name, std::size_t line_number, std::string column_name, std::size_t field_number,
           const std::string& what_and_what_to_do)
      : Error(detail::said_of(place(file_name, line_number, column_name, field_number), what_and_what_to_do)),
        file(std::move(file_name)),
        line(line_number),
        column(std::move(column_name)),
        field(field_number) {}

  std::string file;  ///< path of the file, or the name given for the stream
  std::size_t line;  ///< physical line from 1 on which the field or record begins; 0 for the file as a whole
  std::string column;  ///< name of the column; empty where the error is of no one column
  std::size_t field;   ///< number of the field in its record, from 1; 0 where the error is of no one field

 private:
  static std::string place(const std::string& file, std::size_t line, const std::string& column,
                           std::size_t field) {
    std::string out = file;
    if (line != 0) out += ':' + std::to_string(line);
    if (field != 0) out += ": field " + std::to_string(field);
    if (!column.empty())
      out += (field != 0 ? " (column " : ": column ") + detail::excerpt(column) + (field != 0 ? ")" : "");
    return out;
  }
};

}  // namespace keyfold
