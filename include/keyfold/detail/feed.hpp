// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/detail/assign.hpp>
#include <keyfold/detail/clause.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/member.hpp>
#include <keyfold/detail/source_key.hpp>
#include <keyfold/detail/value.hpp>
#include <keyfold/duplicates.hpp>
#include <keyfold/error.hpp>
#include <keyfold/options.hpp>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

/// What apply_changes() is told about a feed of change events, as a value: which members are the key and the
/// sequence, what is a delete, which columns are copied.
namespace keyfold::detail {

enum class FeedPart : std::uint8_t {
  keys,
  sequence,
  deletes,
  truncates,
  nulls,
  columns,
  tombstones,
  ties,
  intervals,
  track
};

template <auto... Members>
struct FeedKeys {
  static constexpr FeedPart part = FeedPart::keys;
  using SourceParts = Parts<Members...>;
};

template <class Source, auto... Members>
struct sequence_of_members {
  using type = std::tuple<unwrap_optional_t<member_value_t<Members, Source>>...>;
};
template <class Source, auto Member>
struct sequence_of_members<Source, Member> {
  using type = unwrap_optional_t<member_value_t<Member, Source>>;
};

template <auto... Members>
struct FeedSequence {
  static constexpr FeedPart part = FeedPart::sequence;
  void print(std::string& out) const {
    out += " SEQUENCE BY ";
    append_names<Members...>(out);
  }
};

template <class Condition>
struct FeedDeletes {
  static constexpr FeedPart part = FeedPart::deletes;
  Condition condition;
  void print(std::string& out) const {
    out += " APPLY AS DELETE WHEN ";
    detail::print_condition(out, condition);
  }
};

template <class Condition>
struct FeedTruncates {
  static constexpr FeedPart part = FeedPart::truncates;
  Condition condition;
  void print(std::string& out) const {
    out += " APPLY AS TRUNCATE WHEN ";
    detail::print_condition(out, condition);
  }
};

struct FeedNulls {
  static constexpr FeedPart part = FeedPart::nulls;
  static void print(std::string& out) { out += " IGNORE NULL UPDATES"; }
};

template <bool only, auto... Members>
struct FeedColumns {
  static constexpr FeedPart part = FeedPart::columns;
  static constexpr bool includes(std::string_view name) {
    return ((member_name<Members> == name) || ...) == only;
  }
  static void print(std::string& out) {
    out += only ? " COLUMNS " : " COLUMNS * EXCEPT ";
    append_names<Members...>(out);
  }
};

/// Which deletes are remembered.
using TombstoneRule = std::variant<KeepLastVersions, KeepFor>;

struct FeedTombstones {
  static constexpr FeedPart part = FeedPart::tombstones;
  TombstoneRule rule;
  void print(std::string& out) const {
    out += " TOMBSTONES KEEP ";
    if (const auto* last = std::get_if<KeepLastVersions>(&rule)) {
      out += "LAST " + std::to_string(last->count);
    } else {
      out += "FOR " + std::to_string(std::get<KeepFor>(rule).duration.count()) + " MICROSECONDS";
    }
  }
};

struct FeedTies {
  static constexpr FeedPart part = FeedPart::ties;
  static void print(std::string& out) { out += " ON TIE REJECT"; }
};

template <auto FromMember, auto ToMember>
struct FeedIntervals {
  static constexpr FeedPart part = FeedPart::intervals;
  static constexpr auto from = FromMember;
  static constexpr auto to = ToMember;
  static void print(std::string& out) { out += " STORED AS SCD TYPE 2"; }
};

template <auto... Members>
struct FeedTrack {
  static constexpr FeedPart part = FeedPart::track;
  template <class Row>
  static bool same(const Row& a, const Row& b) {
    return (detail::equal_values(detail::read<Members>(a), detail::read<Members>(b)) && ...);
  }
  static void print(std::string& out) {
    out += " TRACK HISTORY ON ";
    append_names<Members...>(out);
  }
};

/// A feed as far as it is described. Immutable: each further part makes another type.
template <class RowType, class SourceType, class... Options>
struct Feed {
  using Row = RowType;
  using Source = SourceType;

  Pack<Options...> options;

  template <FeedPart part>
  static constexpr bool has = ((Options::part == part) || ...);

  template <FeedPart part>
  static constexpr std::size_t index = [] {
    std::size_t at = 0;
    static_cast<void>(((Options::part == part || (++at, false)) || ...));
    return at;
  }();

  template <FeedPart part>
  using At = std::tuple_element_t<index<part>, std::tuple<Options...>>;

  template <FeedPart part>
  const auto& get() const noexcept {
    return options.template get<index<part>>();
  }

  template <class Option>
  Feed<Row, Source, Options..., Option> with(Option option) && {
    static_assert(!has<Option::part>, "keyfold: this part of apply_changes() is given already");
    return {std::move(options).with(std::move(option))};
  }
};

// --- The key

/// The words of a feed for a key that is not found, see source_part.
struct FeedWords {
  template <bool found>
  struct KeyFound {
    static_assert(found,
                  "keyfold: cannot find the key of the feed; name its members with .keys<&Source::member>()");
  };
};

template <class Feed, class TargetParts>
struct feed_source_parts {
  using type = typename default_source_parts<TargetParts, typename Feed::Source, FeedWords>::type;
};
template <class Feed, class TargetParts>
  requires(Feed::template has<FeedPart::keys>)
struct feed_source_parts<Feed, TargetParts> {
  using type = typename Feed::template At<FeedPart::keys>::SourceParts;
};

/// The key of an event, and the members of the table's rows that it is compared with.
template <class Feed, class TargetParts>
struct FeedKey : SourceKey<typename Feed::Row, typename Feed::Source, TargetParts,
                           typename feed_source_parts<Feed, TargetParts>::type> {
  using Base = SourceKey<typename Feed::Row, typename Feed::Source, TargetParts,
                         typename feed_source_parts<Feed, TargetParts>::type>;
  using typename Base::SourceParts;
  static_assert(SourceParts::size == TargetParts::size,
                "keyfold: keys<>() needs one member of the source for each part of the table's key, without "
                "valid_from for scd2<>()");

  /// The key as it is kept beside the rows.
  using Stored = stored_key_t<TargetParts, typename Feed::Row>;

  /// Of the key of an event or of a row. Throws ValueOutOfRange for a number that no row can have as its key.
  template <class Tuple>
  static Stored stored(const Tuple& key) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Stored(part_of<I>(std::get<I>(key))...);
    }(std::make_index_sequence<TargetParts::size>());
  }

 private:
  template <std::size_t I, class Value>
  static auto part_of(const Value& value) {
    using Part = std::tuple_element_t<I, Stored>;
    constexpr bool is_view = std::same_as<Part, std::string> && std::same_as<Value, std::string_view>;
    if constexpr (std::same_as<Value, Part> || is_view) {
      return Part(value);
    } else {
      Part part{};
      detail::assign(part, value, name_of<I>(SourceParts{}));
      return part;
    }
  }
  template <std::size_t I, auto... Members>
  static constexpr std::string_view name_of(Parts<Members...>) {
    return std::get<I>(std::tuple(member_name<Members>...));
  }
};
// --- The sequence

template <class Seq>
bool same_sequence(const Seq& a, const Seq& b) {
  return !detail::less_values(a, b) && !detail::less_values(b, a);
}

template <class T>
concept SequencePart = std::copy_constructible<T> && requires(const T& a) {
  { a < a } -> std::convertible_to<bool>;
};

template <auto Member, class Source>
auto sequence_part(const Source& event, Position position) {
  const auto& value = detail::read<Member>(event);
  if (!detail::has_value(value) || detail::is_nan(value)) {
    throw InvalidSequence(std::string(member_name<Member>), position, detail::has_value(value));
  }
  return unwrap_optional_t<member_value_t<Member, Source>>(detail::value_of(value));
}

/// Whether `Member` itself, and not another one of its name, is a column of the events.
template <auto Member, class Source>
constexpr bool is_column() {
  if constexpr (has_column_named<Source, Member>()) {
    return std::same_as<Parts<Member>, Parts<std::get<column_index<Source>(member_name<Member>)>(
                                           columns_list<Source>::pointers)>>;
  } else {
    return false;
  }
}

/// The member of a row that holds the sequence of the event that made it, if the row has one.
template <auto Member, class Row, class Source>
constexpr auto row_sequence_member() {
  if constexpr (Readable<Member, Row>) {
    return Member;
  } else if constexpr (has_column_named<Row, Member>() && is_column<Member, Source>()) {
    return std::get<column_index<Row>(member_name<Member>)>(columns_list<Row>::pointers);
  } else {
    return nullptr;
  }
}

template <auto Member, class Row, class Source>
constexpr bool holds_sequence() {
  using Value = unwrap_optional_t<member_value_t<Member, Source>>;
  constexpr auto member = row_sequence_member<Member, Row, Source>();
  if constexpr (std::is_null_pointer_v<std::remove_cv_t<decltype(member)>>) {
    return false;
  } else {
    return std::same_as<unwrap_optional_t<member_value_t<member, Row>>, Value>;
  }
}

template <class Feed, class Option = typename Feed::template At<FeedPart::sequence>>
struct FeedSequences;
template <class Feed, auto... Members>
struct FeedSequences<Feed, FeedSequence<Members...>> {
  using Row = typename Feed::Row;
  using Source = typename Feed::Source;
  using type = typename sequence_of_members<Source, Members...>::type;

  /// Throws InvalidSequence.
  static type of(const Source& event, Position position) {
    return type(detail::sequence_part<Members>(event, position)...);
  }

  /// Whether rows hold their sequence themselves, as far as the members are concerned.
  static constexpr bool in_rows = (holds_sequence<Members, Row, Source>() && ...);

  template <class Copied>
  static constexpr bool all_copied(Copied copied) {
    return (copied.template operator()<Members>() && ...);
  }

  /// The sequence that a row shows; none if a part of it is absent or NaN.
  static std::optional<type> of_row(const Row& row) {
    if (!(present(detail::read<row_sequence_member<Members, Row, Source>()>(row)) && ...))
      return std::nullopt;
    return type(detail::value_of(detail::read<row_sequence_member<Members, Row, Source>()>(row))...);
  }

 private:
  template <class Value>
  static bool present(const Value& value) {
    return detail::has_value(value) && !detail::is_nan(value);
  }
};

// --- The columns

/// How the columns of an event become those of a row.
template <class Feed, class Key>
struct FeedRow {
  using Row = typename Feed::Row;
  using Source = typename Feed::Source;

  static constexpr bool ignores_nulls = Feed::template has<FeedPart::nulls>;
  static constexpr bool has_intervals = Feed::template has<FeedPart::intervals>;

  /// The event is a row and replaces it as a whole.
  static constexpr bool whole =
      std::derived_from<Source, Row> && !ignores_nulls && !Feed::template has<FeedPart::columns>;

  static constexpr bool listed = HasColumns<Row> && HasColumns<Source>;

  static constexpr void check() {
    static_assert(
        whole || listed,
        "keyfold: apply_changes() needs the column lists of the row and the event to copy columns by "
        "name; use BOOST_DESCRIBE_STRUCT or columns_of");
    static_assert(whole || std::is_default_constructible_v<Row>,
                  "keyfold: apply_changes() with events of another type, with chosen columns or with "
                  "ignore_null_updates() needs a default constructible row");
  }

  /// Part of the key, or set by scd2: not copied by name.
  template <auto Member>
  static constexpr bool special() {
    if constexpr (has_intervals) {
      using Intervals = typename Feed::template At<FeedPart::intervals>;
      if (member_name<Member> == member_name<Intervals::from>) return true;
      if (member_name<Member> == member_name<Intervals::to>) return true;
    }
    return in_key<Member>(typename Key::TargetParts{});
  }

  /// Whether the column of a row is set from the events.
  template <auto Member>
  static constexpr bool copied() {
    if constexpr (whole) {
      return true;
    } else if constexpr (special<Member>() || !has_column_named<Source, Member>()) {
      return false;
    } else if constexpr (Feed::template has<FeedPart::columns>) {
      return Feed::template At<FeedPart::columns>::includes(member_name<Member>);
    } else {
      return true;
    }
  }

  /// Whether a column keeps what it was when a row is updated.
  static constexpr bool keeps_columns = [] {
    if constexpr (whole || !listed) {
      return false;
    } else {
      return []<auto... Members>(MemberList<Members...>) {
        return ((!special<Members>() && !copied<Members>()) || ...);
      }(columns_list<Row>{});
    }
  }();

  /// Sets the columns of `out` that are copied, the key first.
  static void copy(Row& out, const Source& event) {
    set_key(out, event);
    detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
      if constexpr (copied<Member>()) {
        using Given = decltype(detail::read_by_name<Member>(event));
        static_assert(
            AssignableColumn<member_value_t<Member, Row>, Given>,
            "keyfold: apply_changes() found a column of this name in the events whose type does not "
            "convert; leave it out with columns_except<>()");
        detail::assign(out.*Member, detail::read_by_name<Member>(event), member_name<Member>);
      }
    });
  }

  /// Visits the copied columns as `visit.template operator()<Member, index>(given)`: whether the event brings
  /// a value.
  template <class Visit>
  static void for_each_copied(const Source& event, Visit visit) {
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      if constexpr (copied<Member>()) {
        visit.template operator()<Member, I>(detail::has_value(detail::read_by_name<Member>(event)));
      }
    });
  }

  /// Sets a column to the value that the event brings.
  template <auto Member>
  static void assign_given(Row& out, const Source& event) {
    const auto& value = detail::value_of(detail::read_by_name<Member>(event));
    static_assert(AssignableColumn<member_value_t<Member, Row>, decltype(value)>,
                  "keyfold: apply_changes() found a column of this name in the events whose type does not "
                  "convert; leave it out with columns_except<>()");
    detail::assign(out.*Member, value, member_name<Member>);
  }

  static void set_key(Row& out, const Source& event) {
    set_key(out, event, typename Key::TargetParts{}, typename Key::SourceParts{});
  }

  /// Where the key is computed, only the columns of the events can make it come out right. Throws Error.
  static void require_key(const Row& made, const Source& event) {
    if constexpr (!assignable_key(typename Key::TargetParts{})) {
      if (detail::equal_values(Key::TargetParts::of(made), Key::of(event))) return;
      throw Error("the row made of the event with key " + detail::key_text(Key::of(event)) + " has the key " +
                  detail::key_text(Key::TargetParts::of(made)) +
                  "; a computed key needs the columns it is made of among those that are copied");
    }
  }

 private:
  template <auto... P>
  static constexpr bool assignable_key(Parts<P...>) {
    return (is_data_member<P> && ...);
  }

  template <auto Member, auto... P>
  static constexpr bool in_key(Parts<P...>) {
    return ((is_data_member<P> && member_name<P> == member_name<Member>) || ...);
  }

  template <auto... T, auto... S>
  static void set_key(Row& out, const Source& event, Parts<T...>, Parts<S...>) {
    (set_part<T, S>(out, event), ...);
  }
  template <auto Target, auto From>
  static void set_part(Row& out, const Source& event) {
    if constexpr (is_data_member<Target>) {
      static_assert(AssignableColumn<member_value_t<Target, Row>, decltype(detail::read<From>(event))>,
                    "keyfold: a member of keys<>() does not convert to its part of the table's key");
      detail::assign(out.*Target, detail::read<From>(event), member_name<Target>);
    }
  }
};

// --- Conditions

template <class Condition, class Source>
constexpr void check_event_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    // Said.
  } else if constexpr (Expression<Condition>) {
    static_assert(!Condition::reads_target,
                  "keyfold: a condition of apply_changes() sees the event only; read source columns");
    static_assert(Condition::template fits<NoRow, Source>,
                  "keyfold: a condition of apply_changes() reads a column of another type than the event");
  } else {
    constexpr bool callable = takes_rows<ClauseKind::not_matched, Condition, NoRow, Source>();
    static_assert(callable,
                  "keyfold: a condition of apply_changes() must be an expression or callable as "
                  "bool(const Source&)");
    if constexpr (callable) {
      using Result = decltype(detail::call<ClauseKind::not_matched>(
          std::declval<const Condition&>(), std::declval<const Scope<NoRow, Source>&>()));
      static_assert(Truth<std::remove_cvref_t<Result>>, "keyfold: a callable condition must return bool");
    }
  }
}

template <FeedPart part, class Feed>
bool event_is(const Feed& feed, const typename Feed::Source& event) {
  if constexpr (Feed::template has<part>) {
    static constexpr NoRow none{};
    return detail::holds<ClauseKind::not_matched>(feed.template get<part>().condition,
                                                  Scope<NoRow, typename Feed::Source>{none, event});
  } else {
    return false;
  }
}

/// A feed as history records it: "KEYS (id) SEQUENCE BY seq APPLY AS DELETE WHEN ...".
template <class Key, class Feed>
std::string feed_text(const Feed& feed) {
  std::string out = "KEYS (";
  [&]<auto... Members>(Parts<Members...>) {
    const char* separator = "";
    ((out += separator, out += member_name<Members>, separator = ", "), ...);
  }(typename Key::SourceParts{});
  out += ')';
  feed.options.for_each([&](const auto& option) {
    if constexpr (requires { option.print(out); }) option.print(out);
  });
  return out;
}

[[noreturn]] inline void refuse_tie(std::string key, std::string sequence, Position first, Position second) {
  throw SequenceTie(std::move(key), std::move(sequence), first, second);
}

}  // namespace keyfold::detail
