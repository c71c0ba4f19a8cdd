// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/write.hpp>
#include <keyfold/history.hpp>
#include <keyfold/merge.hpp>

#include <exception>
#include <memory_resource>
#include <type_traits>
#include <utility>
#include <vector>

/// A write to a table, from the plan to the last subscriber.
namespace keyfold::detail {

/// What tells the subscribers of a core that has some, see Core::tell.
template <class CoreType>
void tell_each(CoreType& core, std::vector<std::exception_ptr>& errors) noexcept {
  const auto subscribers = core.subscribers;  // a callback may do anything to the table
  const auto commit_of = [&](Version version) {
    return Commit<typename CoreType::RowType>(*core.log, *core.log->find(version));
  };
  subscribers->tell(commit_of, [&] { return core.version(); }, errors);
}

/// Tells subscribers of commits they have not heard of yet; then old versions may go.
template <class CoreType>
void tell_subscribers(CoreType& core, std::vector<std::exception_ptr>& errors) noexcept {
  if (core.subscribers->telling()) return;  // a callback wrote this: the call that tells goes on with it
  if (core.tell == nullptr || core.subscribers->empty()) {
    core.subscribers->skip_to(core.version());
  } else {
    core.tell(core, errors);
  }
  if (core.retain != nullptr) core.retain(core);
}

/// Tells subscribers when a scope ends; what they throw then is nobody's.
template <class CoreType>
class TellAtTheEnd {
 public:
  explicit TellAtTheEnd(CoreType& core) noexcept : core_(core) {}
  TellAtTheEnd(const TellAtTheEnd&) = delete;
  TellAtTheEnd& operator=(const TellAtTheEnd&) = delete;
  ~TellAtTheEnd() {
    std::vector<std::exception_ptr> errors;
    detail::tell_subscribers(core_, errors);
  }

 private:
  CoreType& core_;
};

template <class Row, class Callback>
constexpr void check_subscriber() {
  static_assert(std::is_invocable_v<Callback&, const Commit<Row>&>,
                "keyfold: a subscriber is callable with a const Commit<Row>&");
}

/// The present rows as a commit of inserts. It has rows of its own: whoever is told of it may write.
template <class Row>
class Replayed {
 public:
  template <class Rows>
  Replayed(const Rows& rows, const CommitLog<Row>& log)
      : arena_(*std::pmr::new_delete_resource()), rows_(arena_, {.images = rows.size()}) {
    record.version = log.latest();
    if (!log.empty()) record.timestamp = log.records.back().timestamp;
    record.operation = "REPLAY";
    record.metrics = Metrics{.source_rows = rows.size(), .inserted = rows.size()};
    record.table_size = rows.size();
    record.block = LogBlock<Row>(arena_, {.firsts = rows.size()});
    for (const auto& slot : rows) {
      const auto* row = rows_.add(LogKind::erase, record.version, nullptr, Holder<Row>(slot.get()));
      record.block.add_first(record.version)->set_newer(row);
    }
  }

  CommitRecord<Row> record;

 private:
  Arena arena_;
  LogBlock<Row> rows_;
};

/// Strong guarantee.
template <class CoreType>
MergeResult<typename CoreType::RowType> commit(CoreType& core, CommitNote&& note,
                                               Fill<typename CoreType::RowType> fill) {
  const Written written = detail::write(core, std::move(note), fill);
  std::vector<std::exception_ptr> errors;
  if (written.committed) detail::tell_subscribers(core, errors);
  if (core.journal != nullptr) core.journal->published();
  return {written, core.log, std::move(errors)};
}

}  // namespace keyfold::detail
