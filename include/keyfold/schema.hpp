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
/// A column that only the row type has keeps the value it has in `Row{}`. One that only the file has is
/// skipped, unless the row type has also gained one of the same type: that may be the same column under a new
/// name, so it is a SchemaMismatch until it stands in `renamed` or in `dropped`.
template <class Row>
struct schema_changes {};

}  // namespace keyfold
