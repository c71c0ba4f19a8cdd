// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/member.hpp>
#include <keyfold/detail/value.hpp>

#include <string>
#include <utility>

/// Duplicate policies: what becomes of source rows with one key, before anything is matched. Rows that
/// survive keep their source order.
namespace keyfold {

/// The `count` latest versions stay readable, older ones expire; the present never does. Made by
/// `keep_last(count)`.
struct KeepLastVersions {
  std::size_t count;
};

namespace detail {

struct DuplicatePolicy {};

/// No policy: duplicates are judged where they act, see docs/merge-semantics.md.
struct NoPolicy : DuplicatePolicy {};

struct Reject : DuplicatePolicy {
  void print(std::string& out) const { out += "REJECT"; }
};

struct KeepFirst : DuplicatePolicy {
  template <class Source>
  constexpr bool prefers_later(const Source&, const Source&) const noexcept {
    return false;
  }
  void print(std::string& out) const { out += "KEEP FIRST"; }
};

struct KeepLast : DuplicatePolicy {
  /// keep_last(n), for expire() and for the retention of a table.
  constexpr KeepLastVersions operator()(std::size_t count) const noexcept { return {count}; }

  template <class Source>
  constexpr bool prefers_later(const Source&, const Source&) const noexcept {
    return true;
  }
  void print(std::string& out) const { out += "KEEP LAST"; }
};

template <auto Member>
struct LatestBy : DuplicatePolicy {
  template <class Source>
  constexpr bool prefers_later(const Source& earlier, const Source& later) const {
    static_assert(Readable<Member, Source>,
                  "keyfold: latest_by names a member of another type than the source row");
    return !detail::less_values(detail::read<Member>(later), detail::read<Member>(earlier));
  }
  void print(std::string& out) const {
    out += "LATEST BY source.";
    out += member_name<Member>;
  }
};

template <class Function>
struct Fold : DuplicatePolicy {
  Function function;

  void print(std::string& out) const { out += "FOLD"; }
};

}  // namespace detail

/// Two source rows with one key are an error: DuplicateSourceKey, whether or not a clause fires for them.
inline constexpr detail::Reject reject{};

/// The first source row of each key counts, the others are dropped.
inline constexpr detail::KeepFirst keep_first{};

/// The last source row of each key counts, the others are dropped. `keep_last(n)` is a rule of expiry: the n
/// latest versions stay.
inline constexpr detail::KeepLast keep_last{};

/// The source row with the greatest `Member` counts; of equal ones the last. Empty optionals come first, NaN
/// last.
template <auto Member>
inline constexpr detail::LatestBy<Member> latest_by{};

/// Source rows of one key are folded, in order, into one that takes the place of the first:
/// `function(folded, next)` takes the row folded so far as an rvalue and the next row, and returns a row.
template <class Function>
[[nodiscard]] constexpr auto fold(Function function) {
  return detail::Fold<Function>{{}, std::move(function)};
}

}  // namespace keyfold
