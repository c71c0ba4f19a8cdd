// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

#include <keyfold/keyfold.hpp>

// debezium
#ifndef KEYFOLD_SINGLE_DEBEZIUM
#define KEYFOLD_SINGLE_DEBEZIUM

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

/// Change events as Debezium writes them, as a feed for apply_changes(). Needs no JSON library: json.hpp reads
/// and writes such messages, or another reader makes envelopes of them. See docs/debezium.md.
namespace keyfold::debezium {

/// An envelope. Any type with members `op` (a character or text), `before` and `after` (optionals or
/// pointers) will do in its place; so will an op that is absent, as in the tombstone that follows a delete.
template <class Row, class Sequence = std::uint64_t>
struct Event {
  char op = '\0';  ///< c: create, u: update, d: delete, r: read by a snapshot; zero: a tombstone
  std::optional<Row> before{};
  std::optional<Row> after{};
  Sequence sequence{};  ///< such as the log position of the change
};

/// An envelope that makes no sense: an unknown op, or one without the row that it needs.
class InvalidEvent : public Error {
 public:
  InvalidEvent(std::string op_text, Position event_position, const std::string& what)
      : Error("the change event at position " + std::to_string(event_position) + " has the op '" + op_text +
              "' " + what),
        op(std::move(op_text)),
        position(event_position) {}

  std::string op;
  Position position;  ///< in the range of envelopes, counting from 0
};

/// A change as apply_changes() takes it: the row after it, or for a delete the row before it.
template <class Row, class SequenceType = std::uint64_t>
struct Change : Row {
  char op = '\0';
  SequenceType sequence{};

  bool is_delete() const noexcept { return op == 'd'; }
};

/// The sequence of an envelope by its position, for topics without a log position: `first` is the offset of
/// the first envelope of the range, so that ranges that follow one another are in order.
struct FromOffset {
  std::uint64_t first;
};
[[nodiscard]] constexpr FromOffset from_offset(std::uint64_t first) noexcept { return {first}; }

/// The default: the member `sequence` of the envelope.
struct BySequence {
  template <class Envelope>
  constexpr decltype(auto) operator()(const Envelope& event) const {
    return (event.sequence);
  }
};

namespace detail {

/// The op as text; empty for none.
template <class Op>
std::string op_text(const Op& op) {
  if constexpr (keyfold::detail::is_optional_v<Op>) {
    return op ? op_text(*op) : std::string();
  } else if constexpr (keyfold::detail::StringLike<Op>) {
    return std::string(keyfold::detail::as_text(op));
  } else {
    static_assert(std::same_as<Op, char>,
                  "keyfold: the op of a change event is a char, a text or an optional of these");
    return op == '\0' ? std::string() : std::string(1, op);
  }
}

template <class Envelope>
using row_of = std::remove_cvref_t<decltype(*std::declval<const Envelope&>().after)>;

template <class Sequence, class Envelope>
auto sequence_of(const Sequence& sequence, const Envelope& event, [[maybe_unused]] Position position) {
  if constexpr (std::same_as<Sequence, FromOffset>) {
    return sequence.first + position;
  } else {
    return std::remove_cvref_t<std::invoke_result_t<const Sequence&, const Envelope&>>(
        std::invoke(sequence, event));
  }
}

/// The change of an envelope; none for a tombstone.
template <class Envelope, class Sequence>
auto change_of(const Envelope& event, const Sequence& sequence, Position position) {
  using Made = Change<row_of<Envelope>, decltype(detail::sequence_of(sequence, event, position))>;
  const std::string op = detail::op_text(event.op);
  if (op.empty() && !event.before && !event.after) return std::optional<Made>();
  const bool deletes = op == "d";
  if (!deletes && op != "c" && op != "u" && op != "r") {
    throw InvalidEvent(op, position, "that is none of c, u, d and r; filter such events out");
  }
  const auto& image = deletes ? event.before : event.after;
  if (!image) {
    throw InvalidEvent(op, position,
                       deletes ? "but no row before it; let the source log old rows, or at least their keys"
                               : "but no row after it");
  }
  return std::optional<Made>(Made{*image, op.front(), detail::sequence_of(sequence, event, position)});
}

}  // namespace detail

/// The changes of a range of envelopes, without the tombstones: a single-pass range, made by changes().
template <class Range, class Sequence>
class Changes {
 public:
  class Iterator;

  Changes(Range&& events, Sequence sequence)
      : events_(std::forward<Range>(events)), sequence_(std::move(sequence)) {}

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  using Envelopes = std::remove_reference_t<Range>;
  using Envelope = std::ranges::range_value_t<Envelopes>;

  Range events_;  // a reference for an lvalue
  Sequence sequence_;
};

template <class Range, class Sequence>
class Changes<Range, Sequence>::Iterator {
 public:
  using value_type = typename decltype(detail::change_of(std::declval<const Envelope&>(),
                                                         std::declval<const Sequence&>(), 0))::value_type;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(Changes& changes) : changes_(&changes), at_(std::ranges::begin(changes.events_)) {
    settle();
  }
  Iterator(Iterator&&) = default;
  Iterator& operator=(Iterator&&) = default;

  value_type operator*() const { return *current_; }
  Iterator& operator++() {
    ++at_;
    ++position_;
    settle();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end(); }

 private:
  bool at_end() const { return at_ == std::ranges::end(changes_->events_); }

  // Goes on to the next envelope that is no tombstone.
  void settle() {
    for (; !at_end(); ++at_, ++position_) {
      const Envelope& event = *at_;
      current_ = detail::change_of(event, changes_->sequence_, position_);
      if (current_) return;
    }
  }

  Changes* changes_;
  std::ranges::iterator_t<Envelopes> at_;
  std::optional<value_type> current_;
  Position position_ = 0;
};

/// The changes of a range of envelopes, for apply_changes(). `sequence`: a member or callable that gives the
/// sequence of an envelope, or from_offset(first). An lvalue is referred to. Reading throws InvalidEvent.
template <std::ranges::input_range Range, class Sequence = BySequence>
[[nodiscard]] auto changes(Range&& events, Sequence sequence = {}) {
  return Changes<Range, Sequence>(std::forward<Range>(events), std::move(sequence));
}

/// table.apply_changes(changes(events, sequence)) with the sequence and the deletes given: to be completed
/// with further parts, and executed.
template <class Table, std::ranges::input_range Range, class Sequence = BySequence>
auto apply_changes(Table& table, Range&& events, Sequence sequence = {}) {
  using Made = std::ranges::range_value_t<Changes<Range, Sequence>>;
  return table.apply_changes(debezium::changes(std::forward<Range>(events), std::move(sequence)))
      .template sequence_by<&Made::sequence>()
      .apply_as_deletes(source<&Made::op> == 'd');
}

}  // namespace keyfold::debezium

/// The columns of a change are those of its row.
template <class Row, class Sequence>
  requires keyfold::HasColumns<Row>
struct keyfold::columns_of<keyfold::debezium::Change<Row, Sequence>> : keyfold::columns_of<Row> {};
#endif
