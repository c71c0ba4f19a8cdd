// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/key_index.hpp>
#include <keyfold/detail/list.hpp>
#include <keyfold/detail/source_key.hpp>
#include <keyfold/duplicates.hpp>
#include <keyfold/error.hpp>

#include <concepts>
#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <utility>

/// Source rows with the same key, before a merge looks at them.
namespace keyfold::detail {

/// A source row that survived the duplicate policy.
template <class Pointer>
struct Survivor {
  Pointer row{};  // null: dropped
  Position position = 0;
};

[[noreturn]] inline void refuse_source_rows(const std::string& index, const std::string& key, Position first,
                                            Position second, const char* advice) {
  throw DuplicateSourceKey("source rows " + std::to_string(first) + " and " + std::to_string(second) +
                               " have the same key " + key + advice,
                           index, key, first, second);
}

/// Applies a duplicate policy by key. Keeps the source order of the rows that survive.
template <class Key, class Policy, class Source, class Pointer>
class Deduplicator {
 public:
  Deduplicator(const Policy& policy, const List<Pointer>& rows) : policy_(policy) {
    survivors.reserve(rows.size());
    seen_.presize(rows.size());
    for (const Pointer row : rows) add(row);
  }

  List<Survivor<Pointer>> survivors;
  std::size_t dropped = 0;

 private:
  static constexpr bool folds = requires(const Policy& policy) { policy.function; };
  struct Nothing {};

  void add(Pointer row) {
    const Position position = survivors.size();
    if constexpr (!Key::by_key) {
      if (detail::has_empty_part(Key::of(*row))) {  // it matches nothing, so it has no duplicates
        survivors.push_back({row, position});
        return;
      }
    }
    const std::uint64_t hash = detail::hash_of(Key::of(*row));
    Survivor<Pointer>* earlier = seen_.find(hash, [&](const Survivor<Pointer>& s) {
      return detail::equal_values(Key::of(*s.row), Key::of(*row));
    });
    Survivor<Pointer>& added = survivors.emplace_back(Survivor<Pointer>{row, position});
    if (earlier == nullptr) {
      seen_.add(hash, &added);
    } else {
      ++dropped;
      resolve(*earlier, added, hash);
    }
  }

  void resolve(Survivor<Pointer>& earlier, Survivor<Pointer>& later, std::uint64_t hash) {
    if constexpr (std::same_as<Policy, Reject>) {
      refuse_source_rows(Key::SourceParts::name(), detail::key_text(Key::of(*later.row)), earlier.position,
                         later.position,
                         "; the policy is reject: remove one of them, or choose keep_last or latest_by");
    } else if constexpr (folds) {
      fold_into(earlier, later);
    } else if (policy_.prefers_later(*earlier.row, *later.row)) {
      seen_.replace(hash, &earlier, &later);
      earlier.row = nullptr;
    } else {
      later.row = nullptr;
    }
  }

  void fold_into(Survivor<Pointer>& earlier, Survivor<Pointer>& later) {
    static_assert(std::is_invocable_r_v<Source, decltype(policy_.function), Source&&, const Source&>,
                  "keyfold: fold(f) needs f callable as Source(Source&& folded, const Source& next)");
    Source next = *later.row;
    Source folded = policy_.function(copy_or_move(earlier.row), std::as_const(next));
    if (!detail::equal_values(Key::of(folded), Key::of(next))) {
      throw Error("fold() made a row with key " + detail::key_text(Key::of(folded)) + " of rows with key " +
                  detail::key_text(Key::of(next)) + "; the folded row must keep the key");
    }
    earlier.row = &folded_.emplace_back(std::move(folded));
    later.row = nullptr;
  }

  static Source copy_or_move(Pointer row) { return Source(std::move(*row)); }

  const Policy& policy_;
  [[no_unique_address]] std::conditional_t<folds, std::deque<Source>, Nothing> folded_;
  KeyIndex<Survivor<Pointer>> seen_;
};

}  // namespace keyfold::detail
