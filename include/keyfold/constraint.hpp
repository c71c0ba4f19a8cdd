// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>

namespace keyfold {

/// A condition that every row of a table meets, as Table::constraints() lists it.
struct Constraint {
  std::string name;
  std::string condition;  ///< as text; "<condition>" for a callable without a name

  bool operator==(const Constraint&) const = default;
};

}  // namespace keyfold
