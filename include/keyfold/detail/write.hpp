// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/commit_note.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/function_ref.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/table_readers.hpp>
#include <keyfold/detail/validate.hpp>
#include <keyfold/metrics.hpp>

#include <utility>
#include <vector>

/// The one path of every write: plan, validate, apply.
namespace keyfold::detail {

/// What has become of a write.
struct Written {
  Version version = 0;           // of the table after it
  Version record = 0;            // where the log has its changes; 0 if it made none
  bool committed = false;        // it made a version
  bool already_applied = false;  // once() skipped it
  Metrics metrics{};
};

template <class CoreType>
bool already_applied(const CoreType& core, const std::vector<AppNumber>& once) {
  for (const AppNumber& next : once) {
    const auto last = core.applied.find(next.app);
    if (last != core.applied.end() && next.number <= last->second) return true;
  }
  return false;
}

/// Plans a write.
template <class Row>
using Fill = FunctionRef<void(Plan<Row>&)>;

/// Strong guarantee.
template <class CoreType>
Written write(CoreType& core, CommitNote&& note, Fill<typename CoreType::RowType> fill) {
  if (detail::already_applied(core, note.once)) return {.version = core.version(), .already_applied = true};
  const WriteScope scope(core.writing);
  auto plan = core.new_plan();
  fill(plan);
  detail::validate(core, plan);
  const WithoutReaders publishing(core.log->readers.get());
  const bool committed = detail::apply(core, plan, std::move(note));
  const Version version = core.version();
  return {version, committed ? version : 0, committed, false, plan.metrics};
}

/// What write() would change, with all its errors.
template <class CoreType>
ChangeSet<typename CoreType::RowType> preview(CoreType& core, Fill<typename CoreType::RowType> fill) {
  const WriteScope scope(core.writing);
  auto plan = core.new_plan();
  fill(plan);
  detail::validate(core, plan);
  return detail::to_change_set(plan, core.log->key);
}

}  // namespace keyfold::detail
