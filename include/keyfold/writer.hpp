// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_note.hpp>
#include <keyfold/duplicates.hpp>
#include <keyfold/writes.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace keyfold {

/// Writes with something added: `table.once("loader", 7).append(rows)`, `table.metadata("load 7").clear()`,
/// `table.duplicates(keep_last).overwrite(rows)`. Refers to the table.
template <class Target, class Row, class Policy = detail::NoPolicy, bool checks_rows = true>
class [[nodiscard]] Writer : public Writes<Writer<Target, Row, Policy, checks_rows>, Target, Row> {
 public:
  explicit Writer(Target& target, detail::CommitNote note = {}, Policy policy = {})
      : target_(&target), note_(std::move(note)), policy_(std::move(policy)) {}

  /// As MergeBuilder::metadata().
  Writer metadata(std::string text) && {
    note_.metadata = detail::SharedText(std::move(text));
    return std::move(*this);
  }

  /// As MergeBuilder::once().
  Writer once(std::string app, std::uint64_t number) && {
    note_.once = {{std::move(app), number}};
    return std::move(*this);
  }

  /// What becomes of rows with one key among those that come in: reject, keep_first, keep_last,
  /// latest_by<...> or fold(f). The key of a row of another type are its members named like the parts of the
  /// table's key.
  template <class NewPolicy>
  auto duplicates(NewPolicy policy) && {
    static_assert(
        std::is_base_of_v<detail::DuplicatePolicy, NewPolicy>,
        "keyfold: duplicates() takes reject, keep_first, keep_last, latest_by<&Source::member> or fold(f)");
    static_assert(std::same_as<Policy, detail::NoPolicy>, "keyfold: duplicates() is given already");
    return Writer<Target, Row, NewPolicy, checks_rows>(*target_, std::move(note_), std::move(policy));
  }

  /// As Table::restore().
  auto restore(Version version) &&
    requires requires(Target& target) { target.restore(version); }
  {
    check_no_rows();
    return target_->restore(std::move(note_), version);
  }
  auto restore(Timestamp time) &&
    requires requires(Target& target) { target.restore(time); }
  {
    check_no_rows();
    return target_->restore(std::move(note_), time);
  }
  auto restore(std::string_view tag) &&
    requires requires(Target& target) { target.restore(tag); }
  {
    check_no_rows();
    return target_->restore(std::move(note_), tag);
  }

  /// As Table::undo().
  auto undo(Version version) &&
    requires requires(Target& target) { target.undo(version); }
  {
    check_no_rows();
    return target_->undo(std::move(note_), version);
  }

  /// Begins a transaction whose commit has this added.
  auto transaction() &&
    requires requires(Target& target) { target.transaction(); }
  {
    check_no_rows();
    return target_->transaction(std::move(note_));
  }

  /// Lets replace_where() take rows that do not meet its condition.
  auto unchecked() && {
    return Writer<Target, Row, Policy, false>(*target_, std::move(note_), std::move(policy_));
  }

 private:
  friend class Writes<Writer, Target, Row>;
  friend class Loads<Writer, Target, Row>;

  static constexpr bool checks = checks_rows;

  static constexpr void check_no_rows() {
    static_assert(std::same_as<Policy, detail::NoPolicy> && checks_rows,
                  "keyfold: duplicates() and unchecked() stand before a write that takes rows; to restore(), "
                  "undo() and transaction() they mean nothing");
  }

  Target& target() noexcept { return *target_; }
  detail::CommitNote note() const { return note_; }
  const Policy& policy() const noexcept { return policy_; }

  Target* target_;
  detail::CommitNote note_;
  Policy policy_;
};

}  // namespace keyfold
