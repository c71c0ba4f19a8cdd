// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/current_changes.hpp>
#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/history_changes.hpp>

#include <type_traits>

/// Which planner a feed takes, and the checks of the feed as a whole.
namespace keyfold::detail {

template <class Intervals, class Row>
using from_value_t = member_value_t<Intervals::from, Row>;

template <class Core, class Feed>
constexpr bool check_intervals() {
  using Row = typename Core::RowType;
  using Intervals = typename Feed::template At<FeedPart::intervals>;
  using From = from_value_t<Intervals, Row>;
  using Seq = typename FeedSequences<Feed>::type;
  constexpr bool ends_with_from =
      std::is_same_v<typename split_key<typename Core::KeyParts>::last, Parts<Intervals::from>> &&
      Core::KeyParts::size > 1;
  static_assert(ends_with_from,
                "keyfold: scd2<&Row::valid_from, &Row::valid_to>() needs a table whose key is the key of the "
                "events and then valid_from, as in Key<&Row::id, &Row::valid_from>");
  static_assert(
      std::is_same_v<From, Seq>,
      "keyfold: scd2<&Row::valid_from, &Row::valid_to>() needs a valid_from of the type of the sequence");
  static_assert(
      std::is_same_v<member_value_t<Intervals::to, Row>, std::optional<From>>,
      "keyfold: scd2<&Row::valid_from, &Row::valid_to>() needs a valid_to that is a std::optional of "
      "the type of valid_from; it is empty for the current row");
  static_assert(!Feed::template has<FeedPart::truncates>,
                "keyfold: scd2<>() keeps every row it ever had; apply_as_truncates() is for current rows");
  static_assert(!Feed::template has<FeedPart::tombstones>,
                "keyfold: scd2<>() shows deletes in its rows; tombstones() is for current rows");
  return ends_with_from && std::is_same_v<From, Seq> &&
         std::is_same_v<member_value_t<Intervals::to, Row>, std::optional<From>>;
}

template <class Core, class Feed>
constexpr bool check_feed() {
  static_assert(
      Feed::template has<FeedPart::sequence>,
      "keyfold: apply_changes() needs sequence_by<&Source::member>(); it tells which of two events is "
      "newer");
  static_assert(Feed::template has<FeedPart::intervals> || !Feed::template has<FeedPart::track>,
                "keyfold: track<>() belongs to scd2<>(); a table of current rows keeps no history");
  if constexpr (!Feed::template has<FeedPart::sequence>) {
    return false;
  } else if constexpr (Feed::template has<FeedPart::intervals>) {
    return check_intervals<Core, Feed>();
  } else {
    return true;
  }
}

/// Stands for the planner of a feed that does not compile, so that its sentence is the only error.
struct NoPlanner {
  struct Key {
    using SourceParts = Parts<>;
  };
  template <class... Arguments>
  explicit NoPlanner(const Arguments&...) noexcept {}
  template <class Range>
  void run(const Range&) const noexcept {}
};

template <class Core, class Feed, class Declared>
constexpr auto choose_planner() {
  if constexpr (!check_feed<Core, Feed>()) {
    return std::type_identity<NoPlanner>{};
  } else if constexpr (Feed::template has<FeedPart::intervals>) {
    using Planner = HistoryPlanner<Core, Feed, Declared>;
    FeedRow<Feed, typename Planner::Key>::check();
    return std::type_identity<Planner>{};
  } else {
    using Planner = CurrentPlanner<Core, Feed, Declared>;
    FeedRow<Feed, typename Planner::Key>::check();
    return std::type_identity<Planner>{};
  }
}

template <class Core, class Feed, class Declared>
using feed_planner = typename decltype(choose_planner<Core, Feed, Declared>())::type;

}  // namespace keyfold::detail
