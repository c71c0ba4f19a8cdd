// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/excerpt.hpp>
#include <keyfold/error.hpp>

#include <cstddef>
#include <string>
#include <utility>

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
