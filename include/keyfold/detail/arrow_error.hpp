// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/error.hpp>
#include <keyfold/fwd.hpp>

#include <string>
#include <utility>

/// The public error of arrow.hpp, apart from it because what is below detail/ throws it.
namespace keyfold {

/// A row that Arrow cannot hold.
class ArrowError : public Error {
 public:
  ArrowError(std::string column_name, Position row_position, const std::string& what_and_what_to_do)
      : Error((row_position == no_position ? std::string() : "row " + std::to_string(row_position) + ", ") +
              "column '" + column_name + "': " + what_and_what_to_do),
        column(std::move(column_name)),
        position(row_position) {}

  std::string column;  ///< as "name", "after.name" or "tags[2]"
  Position position;   ///< of the row, from 0; no_position where the column as a whole is too much
};

}  // namespace keyfold
