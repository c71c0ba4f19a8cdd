// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/current_changes.hpp>

namespace keyfold::detail {

template <class Core, class Feed>
constexpr void check_feed() {
  static_assert(Feed::template has<FeedPart::sequence>,
                "keyfold: apply_changes() needs sequence_by<&Source::member>(); it tells which of two events is "
                "newer");
  static_assert(!Feed::template has<FeedPart::track>,
                "keyfold: track<>() belongs to scd2<>(); a table of current rows keeps no history");
}

/// The planner of a feed, checked.
template <class Core, class Feed, class Declared>
struct feed_planner {
  static constexpr auto choose() {
    check_feed<Core, Feed>();
    return std::type_identity<CurrentPlanner<Core, Feed, Declared>>{};
  }
  using type = typename decltype(choose())::type;
};

}  // namespace keyfold::detail
