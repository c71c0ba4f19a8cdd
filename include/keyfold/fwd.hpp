// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

/// The vocabulary of the core, and its templates for those who only name them. Costs no other header of
/// keyfold.
namespace keyfold {

/// Number of a commit: version 0 is the empty table, each commit makes the next number.
using Version = std::uint64_t;

/// Commit times: UTC, in microseconds.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// Position of a source row in its batch, counting from 0; `no_position` when a row did not come from the
/// batch.
using Position = std::size_t;
inline constexpr Position no_position = static_cast<Position>(-1);

// key.hpp
template <auto... Parts>
struct Key;
template <auto... Parts>
struct OrderedKey;
template <auto... Parts>
struct OrderedBy;
template <auto... Parts>
struct HashedBy;
template <auto... Parts>
struct UniqueBy;

// column.hpp
template <auto... Members>
struct Columns;
template <auto... Members>
struct Ignored;
template <class Row>
struct columns_of;
template <class Row>
class ColumnMask;

// change.hpp
enum class ChangeKind : std::uint8_t;
template <class Row>
class Change;
template <class Row>
class ChangeSet;

// history.hpp
struct Metrics;
template <class Row>
class Commit;
template <class Row>
class History;

// merge.hpp
template <class Row>
class MergeResult;
template <class Target, class Source, class Rule>
class MergeBuilder;
template <class Row, class Source, class Match, class Policy, class... Clauses>
class MergeRule;

// transaction.hpp
template <class Table>
class Transaction;

// load.hpp
template <class Self, class Target, class Row>
class Loads;

// writes.hpp
template <class Self, class Target, class Row>
class Writes;

// constraint.hpp
struct Constraint;

// apply_changes.hpp
template <class Target, class Source, class Feed>
class ApplyChanges;

// shared_table.hpp
template <class Shared>
class SharedTable;

// table.hpp
struct TableOptions;
template <class Row, class KeySpec, class... Indexes>
class Table;

}  // namespace keyfold
