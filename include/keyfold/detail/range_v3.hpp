// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

/// Tells range-v3 what keyfold's views are, where range-v3 is installed and KEYFOLD_NO_RANGE_V3 is not
/// defined. Nothing else in keyfold knows of it.
#if !defined(KEYFOLD_NO_RANGE_V3) && __has_include(<range/v3/range_fwd.hpp>)
#include <range/v3/range_fwd.hpp>

namespace keyfold {

template <class Iterator>
class RowRange;
template <class Row, class Index, class Parts, bool ordered>
class IndexView;
template <class Row>
class History;
template <class Table>
class AsOfView;

namespace detail {
using ViewBase = ranges::view_base;
}  // namespace detail
}  // namespace keyfold

template <class Iterator>
inline constexpr bool ranges::enable_borrowed_range<keyfold::RowRange<Iterator>> = true;
template <class Row, class Index, class Parts, bool ordered>
inline constexpr bool ranges::enable_borrowed_range<keyfold::IndexView<Row, Index, Parts, ordered>> = true;
template <class Row>
inline constexpr bool ranges::enable_borrowed_range<keyfold::History<Row>> = true;
template <class Table>
inline constexpr bool ranges::enable_borrowed_range<keyfold::AsOfView<Table>> = true;

#else

namespace keyfold::detail {
struct ViewBase {};
}  // namespace keyfold::detail

#endif
