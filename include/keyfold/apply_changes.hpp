// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/feed.hpp>
#include <keyfold/detail/feed_planner.hpp>
#include <keyfold/detail/write_input.hpp>
#include <keyfold/fwd.hpp>
#include <keyfold/merge.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace keyfold {

/// A load of change events that is being put together; nothing happens before execute() or preview(). It
/// refers to the table, and to the events where they are an lvalue. See docs/apply_changes.md.
///
/// Any order and any batching of one set of events, whose sequences differ for each key, ends in the same
/// rows as the events one by one in the order of their sequences.
template <class Target, class SourceRange, class FeedType>
class [[nodiscard("nothing happens before execute() or preview()")]] ApplyChanges {
 public:
  using Feed = FeedType;
  using Row = typename Feed::Row;
  using Source = typename Feed::Source;

  ApplyChanges(detail::WriteInput<Target, SourceRange>&& input, Feed feed)
      : input_(std::move(input)), feed_(std::move(feed)) {}

  /// The key of an event, part by part. Default: its members named like the parts of the table's key. With
  /// scd2<>(): without `valid_from`.
  template <auto... Members>
  auto keys() && {
    static_assert(sizeof...(Members) > 0,
                  "keyfold: keys<>() names the members of the events that are their key");
    static_assert((detail::Readable<Members, Source> && ...),
                  "keyfold: keys<>() names a member of another type than the events");
    return std::move(*this).with(detail::FeedKeys<Members...>{});
  }

  /// What tells which of two events of a key is newer: a member, or several to be compared in turn. Required.
  /// Of equal events the one later in the source, or in a later load, is newer.
  template <auto... Members>
  auto sequence_by() && {
    static_assert(sizeof...(Members) > 0, "keyfold: sequence_by<>() names the members that order the events");
    static_assert((detail::Readable<Members, Source> && ...),
                  "keyfold: sequence_by<>() names a member of another type than the events");
    static_assert(
        (detail::SequencePart<detail::unwrap_optional_t<detail::member_value_t<Members, Source>>> && ...),
        "keyfold: sequence_by<>() needs members that compare with <");
    return std::move(*this).with(detail::FeedSequence<Members...>{});
  }

  /// Events for which this holds delete the row with their key. An expression over the source, or a callable
  /// as `bool(const Source&)`.
  template <class Condition>
  auto apply_as_deletes(Condition condition) && {
    detail::check_event_condition<Condition, Source>();
    return std::move(*this).with(detail::FeedDeletes<Condition>{std::move(condition)});
  }

  /// Events for which this holds delete all rows that are not newer than they are; their key does not matter.
  template <class Condition>
  auto apply_as_truncates(Condition condition) && {
    detail::check_event_condition<Condition, Source>();
    return std::move(*this).with(detail::FeedTruncates<Condition>{std::move(condition)});
  }

  /// An empty std::optional in an event leaves the column as it is.
  auto ignore_null_updates() && { return std::move(*this).with(detail::FeedNulls{}); }

  /// Copies all columns of the events that the row has by name, but these. The key is always copied.
  template <auto... Members>
  auto columns_except() && {
    return std::move(*this).template choose<false, Members...>();
  }
  /// Copies these columns of the events only. The key is always copied.
  template <auto... Members>
  auto columns_only() && {
    return std::move(*this).template choose<true, Members...>();
  }

  /// How long deletes are remembered: `keep_last(n)` of them, or `keep_for(duration)` by the table's clock.
  /// Default: for ever. An event older than a forgotten delete is taken for new.
  template <class Rule>
  auto tombstones(Rule rule) && {
    constexpr bool known = std::is_same_v<Rule, KeepLastVersions> || std::is_same_v<Rule, KeepFor>;
    static_assert(known, "keyfold: tombstones() takes keep_last(n) or keep_for(duration)");
    if constexpr (known) return std::move(*this).with(detail::FeedTombstones{rule});
  }

  /// Two events of a key with equal sequences are an error: SequenceTie.
  template <class Policy>
  auto on_tie(Policy) && {
    static_assert(std::is_same_v<Policy, detail::Reject>,
                  "keyfold: on_tie() takes reject; without it the later of two equal events wins");
    return std::move(*this).with(detail::FeedTies{});
  }

  /// Keeps the history of each key as rows (SCD type 2): the row of an upsert is valid from its sequence to
  /// that of the next event of its key. The table's key must be the key of the events and then `From`; `To`
  /// is a std::optional of the same type, empty for the current row.
  template <auto From, auto To>
  auto scd2() && {
    static_assert(detail::is_data_member<From> && detail::Readable<From, Row> && detail::is_data_member<To> &&
                      detail::Readable<To, Row>,
                  "keyfold: scd2<&Row::valid_from, &Row::valid_to>() names two data members of the row");
    return std::move(*this).with(detail::FeedIntervals<From, To>{});
  }

  /// With scd2<>(): only a change of these columns begins a new row; other changes update the row in place.
  template <auto... Members>
  auto track() && {
    static_assert(sizeof...(Members) > 0,
                  "keyfold: track<>() names the columns whose changes are kept as rows");
    static_assert((detail::Readable<Members, Row> && ...),
                  "keyfold: track<>() names a member of another type than the row");
    return std::move(*this).with(detail::FeedTrack<Members...>{});
  }

  /// Stored with the commit. A load with metadata makes a version even if it changes nothing.
  ApplyChanges metadata(std::string text) && {
    input_.note.metadata = detail::SharedText(std::move(text));
    return std::move(*this);
  }

  /// As MergeBuilder::once().
  ApplyChanges once(std::string app, std::uint64_t number) && {
    input_.note.once = {{std::move(app), number}};
    return std::move(*this);
  }

  /// Loads the events as one commit, "APPLY CHANGES". Reads the source once; a container that the load owns
  /// has its rows moved from, but not where the builder is an lvalue, which can be executed again. If no row
  /// changes there is no version; deletes and sequences are remembered all the same.
  ///
  /// Throws: InvalidSequence, InvalidKey, SequenceTie, FeedMismatch, UniqueViolation, ValueOutOfRange, and
  /// whatever the source, the conditions and the rows throw. Strong guarantee for the table and for what it
  /// remembers. Complexity: see docs/apply_changes.md.
  MergeResult<Row> execute() && { return execute_as<SourceRange>(std::move(input_.note)); }
  MergeResult<Row> execute() & { return execute_as<SourceRange&>(input_.note); }

  /// What execute() would do, with all its errors, without doing it. A single-pass source is read all the
  /// same, so that nothing is left to execute.
  [[nodiscard]] ChangeSet<Row> preview() { return input_.target->preview_plan(planner<SourceRange&>()); }

 private:
  using Core = typename Target::CoreType;

  template <class Option>
  auto with(Option option) && {
    auto feed = std::move(feed_).with(std::move(option));
    return ApplyChanges<Target, SourceRange, decltype(feed)>(std::move(input_), std::move(feed));
  }

  template <bool only, auto... Members>
  auto choose() && {
    static_assert((detail::Readable<Members, Source> && ...),
                  "keyfold: columns_only<>() and columns_except<>() name columns of the events");
    return std::move(*this).with(detail::FeedColumns<only, Members...>{});
  }

  // `Declared` tells whether rows may be moved from, see SourceTraits.
  template <class Declared>
  using Planner = detail::feed_planner<Core, Feed, Declared>;

  template <class Declared>
  auto planner() {
    return [this](auto& plan) { Planner<Declared>(input_.target->core(), feed_, plan).run(input_.source); };
  }

  template <class Declared>
  MergeResult<Row> execute_as(detail::CommitNote note) {
    note.operation = "APPLY CHANGES";
    note.parameters = detail::SharedText(detail::feed_text<typename Planner<Declared>::Key>(feed_));
    return input_.target->write(std::move(note), planner<Declared>());
  }

  detail::WriteInput<Target, SourceRange> input_;
  Feed feed_;
};

}  // namespace keyfold
