// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/clause.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/merge_plan.hpp>
#include <keyfold/detail/merge_syntax.hpp>
#include <keyfold/detail/source_rows.hpp>
#include <keyfold/duplicates.hpp>
#include <keyfold/metrics.hpp>

#include <concepts>

/// The rows that come in with a write that is not a merge, after its duplicate policy.
namespace keyfold::detail {

/// All of them at once, each at one place while this object lives. A policy compares them by the members
/// that are named like the table's key.
template <class CoreType, class Declared, class Source, class Policy>
class IncomingRows {
 public:
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;

  IncomingRows(typename Traits::Range& range, const Policy& policy, Metrics& metrics)
      : all_(range), unique_(policy, checked(all_)) {
    metrics.source_rows += unique_.dropped;
    metrics.dropped_duplicates += unique_.dropped;
  }

  /// Calls `visit(row, position)` in the order of the source.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& survivor : unique_.survivors) {
      if (survivor.row != nullptr) visit(*survivor.row, survivor.position);
    }
  }

 private:
  using Key = MatchKey<CoreType, Match<void, void, Always>, Source>;

  static const List<Pointer>& checked(const AllRows<Declared, Source>& all) {
    Position position = 0;
    for (const Pointer row : all.pointers)
      detail::require_valid_key(typename Key::SourceParts{}, Key::of(*row), position++);
    return all.pointers;
  }

  AllRows<Declared, Source> all_;
  Deduplicator<Key, Policy, Source, Pointer> unique_;
};

template <class CoreType, class Declared, class Source>
class IncomingRows<CoreType, Declared, Source, NoPolicy> {
 public:
  IncomingRows(typename SourceTraits<Declared, Source>::Range& range, const NoPolicy&, Metrics&)
      : all_(range) {}

  template <class Visit>
  void for_each(Visit visit) const {
    for (Position i = 0; i < all_.pointers.size(); ++i) visit(*all_.pointers[i], i);
  }

 private:
  AllRows<Declared, Source> all_;
};

/// Calls `take(row, position)` for each row, which need not live any longer. Without a policy the rows are
/// never all there at once.
template <class CoreType, class Declared, class Source, class Policy, class Take>
void for_each_incoming(typename SourceTraits<Declared, Source>::Range& range, const Policy& policy,
                       Metrics& metrics, Take take) {
  if constexpr (std::same_as<Policy, NoPolicy>) {
    detail::for_each_block<Declared, Source>(range, [&](const auto& block, Position first) {
      for (Position i = 0; i < block.size(); ++i) take(*block[i], first + i);
    });
  } else {
    IncomingRows<CoreType, Declared, Source, Policy>(range, policy, metrics).for_each(take);
  }
}

}  // namespace keyfold::detail
