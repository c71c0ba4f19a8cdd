// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/column.hpp>
#include <keyfold/constraint.hpp>
#include <keyfold/detail/row_condition.hpp>
#include <keyfold/error.hpp>
#include <keyfold/key.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The named conditions that the rows of a table must meet.
namespace keyfold::detail {

/// Which row is meant: its position in the source, or that it is one of the table.
template <class Row>
std::string describe(const Row& row, Position position) {
  std::string out = position == no_position ? "a row of the table" : "source row " + std::to_string(position);
  if (const std::string columns = detail::row_text(row); !columns.empty()) out += ' ' + columns;
  return out;
}

/// A row that a constraint has judged: one that is in the table, or one that a write makes.
template <class Row>
std::string judged_row(const Row& row, Position position, bool written) {
  if (!written) return detail::describe(row, no_position);
  std::string out = position == no_position
                        ? "a row that the write makes"
                        : "the row that source row " + std::to_string(position) + " makes";
  if (const std::string columns = detail::row_text(row); !columns.empty()) out += ' ' + columns;
  return out;
}

/// A constraint whatever its condition is made of. Copies of a table share the condition.
template <class Row>
struct Check {
  Constraint about;
  std::shared_ptr<const void> condition;
  bool (*violated)(const void* condition, const Row& row);
};

/// In the order in which they were given.
template <class Row>
using Checks = std::vector<Check<Row>>;

/// As SQL judges a CHECK: unknown does not violate it.
template <class Condition, class Row>
bool violates(const void* condition, const Row& row) {
  return detail::is_false(detail::truth_for(*static_cast<const Condition*>(condition), row));
}

template <class KeyParts, class Row>
void require_met(const Check<Row>& check, const Row& row, Position position, bool written) {
  if (!check.violated(check.condition.get(), row)) return;
  const auto& [name, condition] = check.about;
  const std::string key = detail::key_text(KeyParts::of(row));
  throw CheckViolation("the constraint '" + name + "', " + condition + ", is violated by " +
                           detail::judged_row(row, position, written) + " with key " + key +
                           "; correct the row or leave it out, or drop the constraint with unrequire()",
                       name, condition, key, position);
}

template <class Row>
auto find_check(const Checks<Row>& checks, std::string_view name) {
  return std::ranges::find_if(checks, [&](const auto& check) { return check.about.name == name; });
}

/// Throws ConstraintExists, CheckViolation, and what the condition throws. Strong guarantee. O(table).
template <class CoreType, class Condition>
void add_check(CoreType& core, std::string name, Condition condition) {
  using Row = typename CoreType::RowType;
  const auto present = detail::find_check<Row>(core.checks, name);
  if (present != core.checks.end()) throw ConstraintExists(name, present->about.condition);
  std::string text = detail::condition_text(condition);
  Check<Row> check{{std::move(name), std::move(text)},
                   std::make_shared<const Condition>(std::move(condition)),
                   &violates<Condition, Row>};
  for (const auto& slot : core.scan())
    detail::require_met<typename CoreType::KeyParts, Row>(check, slot.get(), no_position, false);
  core.checks.push_back(std::move(check));
}

/// Throws ConstraintNotFound.
template <class CoreType>
void remove_check(CoreType& core, std::string_view name) {
  const auto at = detail::find_check<typename CoreType::RowType>(core.checks, name);
  if (at == core.checks.end()) throw ConstraintNotFound(std::string(name));
  core.checks.erase(at);
}

template <class Row>
std::vector<Constraint> constraints_of(const Checks<Row>& checks) {
  std::vector<Constraint> out;
  for (const auto& check : checks) out.push_back(check.about);
  return out;
}

}  // namespace keyfold::detail
