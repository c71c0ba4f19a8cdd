// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace keyfold {

/// A column that has another name in older files.
struct RenamedColumn {
  std::string_view stored;  ///< its name in the file
  std::string_view now;     ///< the member of the row type
};

/// Customization point: what has become of columns that older files have. Specialise it beside the row type
/// and give what there is of these members:
///
///     template <> struct keyfold::schema_changes<Order> {
///       static constexpr keyfold::RenamedColumn renamed[] = {{"state", "status"}};
///       static constexpr std::string_view dropped[] = {"legacy_code"};
///     };
///
/// A column that is in the file, but neither in the row type nor named here, is a SchemaMismatch: nothing is
/// dropped silently. A column that only the row type has keeps the value it has in `Row{}`.
template <class Row>
struct schema_changes {};

}  // namespace keyfold
