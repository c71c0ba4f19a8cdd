// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <string>

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
