// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/as_of.hpp>
#include <keyfold/constraint.hpp>
#include <keyfold/detail/commit.hpp>
#include <keyfold/detail/copy.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/expiry.hpp>
#include <keyfold/detail/gdb_printers.hpp>
#include <keyfold/detail/memory_usage.hpp>
#include <keyfold/detail/replay.hpp>
#include <keyfold/detail/time_travel.hpp>
#include <keyfold/error.hpp>
#include <keyfold/history.hpp>
#include <keyfold/index.hpp>
#include <keyfold/memory.hpp>
#include <keyfold/merge.hpp>
#include <keyfold/options.hpp>
#include <keyfold/subscription.hpp>
#include <keyfold/transaction.hpp>
#include <keyfold/writer.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace keyfold {

namespace detail {
struct CoreAccess;
}  // namespace detail

/// Rows of a plain struct, unique by key, in memory. Every write is one atomic commit with a version, counts
/// and a record in the history. Threads: any number may read at once; a write, preview() included, needs the
/// table for itself.
///
///     keyfold::Table<Order, keyfold::Key<&Order::id>, keyfold::OrderedBy<&Order::day>> orders;
///
/// Writes give the strong guarantee: whatever throws, the table, its indexes, history, version and counters
/// are as before. References and pointers to a row, and iterators to it, stay valid until that row is updated
/// or deleted.
///
/// A table that was moved from may only be destroyed or assigned to.
template <class RowType, class KeySpec, class... Indexes>
class Table
    : public Writes<Table<RowType, KeySpec, Indexes...>, Table<RowType, KeySpec, Indexes...>, RowType> {
  static_assert(std::copy_constructible<RowType>,
                "keyfold: a row must be copyable, since history keeps its old images");
  static_assert(
      detail::spec_traits<KeySpec>::is_key,
      "keyfold: the second argument of Table is its key, as in Key<&Row::id> or OrderedKey<&Row::id>");
  static_assert(
      (detail::spec_traits<Indexes>::is_index && ...),
      "keyfold: after its key a Table takes indexes: OrderedBy<...>, HashedBy<...> or UniqueBy<...>");

  using Parts = detail::parts_of<KeySpec>;
  static_assert(Parts::template readable<RowType>, "keyfold: a part of the key is not a member of the row");
  static_assert((detail::parts_of<Indexes>::template readable<RowType> && ...),
                "keyfold: a part of an index is not a member of the row");

  using Core = detail::Core<RowType, KeySpec, Indexes...>;
  using Specs = std::tuple<Indexes...>;
  template <class Asked>
  static constexpr std::size_t number_of = detail::index_number<Asked, Specs>;

 public:
  using Row = RowType;
  using Result = MergeResult<Row>;

  using value_type = Row;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using const_reference = const Row&;
  using const_iterator = RowIterator<Row, typename Core::Rows::const_iterator, !Core::ordered>;
  using iterator = const_iterator;

  /// An empty table, at version 0.
  Table() : core_(std::make_unique<Core>(TableOptions{})) {}
  explicit Table(TableOptions options)
      : core_(std::make_unique<Core>(std::move(options), &detail::apply_retention<Core>)) {}

  /// Copies the rows and the whole history, with tags; not the subscriptions. O(rows + history). Strong
  /// guarantee.
  Table(const Table& other) : core_(detail::CoreCopy<Core>(*other.core_).take()) {}
  Table(Table&&) noexcept = default;
  /// Assigning replaces everything, so that subscriptions to what was there end. Throws ReentrantWrite from
  /// within a write or a callback of this table; moving must not be done there.
  Table& operator=(const Table& other) {
    if (core_ != nullptr && (core_->writing || core_->subscribers->telling())) throw ReentrantWrite();
    if (this != &other) core_ = detail::CoreCopy<Core>(*other.core_).take();
    return *this;
  }
  Table& operator=(Table&&) noexcept = default;
  ~Table() = default;

  // --- Reading

  [[nodiscard]] size_type size() const noexcept { return core_->rows.size(); }
  [[nodiscard]] bool empty() const noexcept { return core_->rows.empty(); }

  /// Rows in insertion order; in key order for a table with an OrderedKey. An updated row keeps its place.
  [[nodiscard]] const_iterator begin() const noexcept { return const_iterator(core_->rows.begin()); }
  [[nodiscard]] const_iterator end() const noexcept { return const_iterator(core_->rows.end()); }

  /// The row with this key, or null. One value for each part of the key; anything comparable with the part
  /// will do: `std::string_view` finds `std::string` without an allocation. O(1) on average.
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... key) const {
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: find() needs one value for each part of the key");
    const auto* slot = core_->find(detail::lookup_key<Parts, Row>(key...));
    return slot == nullptr ? nullptr : &slot->get();
  }

  /// The row with this key. Throws KeyNotFound.
  template <class... Values>
  const Row& at(const Values&... key) const {
    if (const Row* row = find(key...)) return *row;
    throw KeyNotFound(detail::key_text(detail::lookup_key<Parts, Row>(key...)));
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    return find(key...) != nullptr;
  }

  /// The index over exactly these members: a secondary index, or the key of a table with an OrderedKey.
  template <auto... Members>
  [[nodiscard]] auto by() const noexcept {
    using Asked = detail::Parts<Members...>;
    if constexpr (Core::ordered && std::is_same_v<Asked, Parts>) {
      return IndexView<Row, typename Core::Rows, Asked, true>(core_->rows);
    } else {
      static_assert(number_of<Asked> < std::tuple_size_v<Specs>,
                    "keyfold: by<> names members that no index of the table is made of; give the table "
                    "OrderedBy<...>, HashedBy<...> or UniqueBy<...> of them");
      using Spec = std::tuple_element_t<number_of<Asked>, Specs>;
      const auto& index = core_->template secondary<number_of<Asked>>();
      return IndexView<Row, std::remove_cvref_t<decltype(index)>, Asked, detail::spec_traits<Spec>::ordered>(
          index);
    }
  }

  // --- Writing: see Writes

  /// Writes with metadata that is stored with the commit.
  Writer<Table, Row> metadata(std::string text) {
    return Writer<Table, Row>(*this).metadata(std::move(text));
  }

  /// Writes that happen once: see MergeBuilder::once().
  Writer<Table, Row> once(std::string app, std::uint64_t number) {
    return Writer<Table, Row>(*this).once(std::move(app), number);
  }

  /// Writes whose incoming rows are made unique by key first: see Writer::duplicates().
  template <class Policy>
  auto duplicates(Policy policy) {
    return Writer<Table, Row>(*this).duplicates(std::move(policy));
  }

  /// `unchecked().replace_where()` takes rows that do not meet its condition.
  auto unchecked() { return Writer<Table, Row>(*this).unchecked(); }

  // --- Constraints: see docs/constraint.md

  /// From now on every row that a write inserts or updates must meet this condition, an expression over
  /// target columns or callable as `bool(const Row&)`; else the write throws CheckViolation. As in SQL's
  /// CHECK a condition that is unknown, since a value is absent, is met. Text literals given as `const char*`
  /// must outlive the table and its copies.
  ///
  /// Throws CheckViolation naming the first row that does not meet it now, ConstraintExists, ReentrantWrite
  /// within a write, and what the condition throws. Strong guarantee. O(table).
  template <class Condition>
  void require(std::string name, Condition condition) {
    if constexpr (detail::check_row_condition<Condition, Row>()) {
      const detail::WriteScope scope(core_->writing);
      detail::add_check(*core_, std::move(name), std::move(condition));
    }
  }

  /// Removes a constraint. Throws ConstraintNotFound, ReentrantWrite within a write.
  void unrequire(std::string_view name) {
    const detail::WriteScope scope(core_->writing);
    detail::remove_check(*core_, name);
  }

  /// In the order in which they were given.
  [[nodiscard]] std::vector<Constraint> constraints() const {
    return detail::constraints_of<Row>(core_->checks);
  }

  /// Begins a transaction: several writes, one version. `metadata("...").transaction()` adds something to its
  /// commit.
  Transaction<Table> transaction() { return transaction({}); }

  // --- History and time travel: see docs/history.md
  //
  // A version is named by its number, by a time (the last commit not after it) or by a tag. What cannot be
  // read throws VersionNotFound, VersionExpired or TagNotFound before anything else happens.

  /// Version of the last commit; 0 before the first.
  [[nodiscard]] Version version() const noexcept { return core_->version(); }

  /// The commits that are kept, in ascending order.
  [[nodiscard]] History<Row> history() const noexcept { return History<Row>(*core_->log); }

  /// The table as of a version: a view that copies no row.
  [[nodiscard]] AsOfView<Table> as_of(Version version) const {
    return AsOfView<Table>(*core_, checked(version));
  }
  [[nodiscard]] AsOfView<Table> as_of(Timestamp time) const { return as_of(core_->log->version_at(time)); }
  [[nodiscard]] AsOfView<Table> as_of(std::string_view tag) const { return as_of(tagged(tag)); }

  /// Every change of the versions in (after, up_to], in order. Copies rows: O(changes).
  [[nodiscard]] ChangeFeed<Row> changes(Version after, Version up_to) const;
  [[nodiscard]] ChangeFeed<Row> changes(Version after) const { return changes(after, version()); }

  /// Every change of the commits made from `from` to `up_to`, both included.
  [[nodiscard]] ChangeFeed<Row> changes(Timestamp from, Timestamp up_to = Timestamp::max()) const;

  /// The net changes that lead from one version to the other, back in time too. O(changes between them) on
  /// average.
  [[nodiscard]] ChangeSet<Row> diff(Version from, Version to) const {
    return detail::net_changes(*core_, checked(from), checked(to));
  }

  /// The changes of one key, oldest first, as far as they are kept.
  template <class... Values>
  [[nodiscard]] ChangeFeed<Row> history_of(const Values&... key) const;

  /// Makes the table equal to an older version, as a new commit; none if it is equal already. Rows that come
  /// back stand at the end, in the order they had. O(changes since) on average.
  Result restore(Version version) { return restore({}, version); }
  Result restore(Timestamp time) { return restore({}, time); }
  Result restore(std::string_view tag) { return restore({}, tag); }

  /// Reverts one commit, as a new commit. Throws ChangeConflict naming the keys that a later commit has
  /// touched; VersionExpired if the changes of the commit are gone: its version has expired, or only a tag
  /// keeps it.
  Result undo(Version version) { return undo({}, version); }

  /// Names a version; it stays readable when others expire. Throws TagExists if the name is on another
  /// version.
  void tag(std::string name, Version version);

  /// Removes a tag. Throws TagNotFound.
  void untag(std::string_view name);

  /// The tags and their versions, by name.
  [[nodiscard]] const std::map<std::string, Version, std::less<>>& tags() const noexcept {
    return core_->tags;
  }

  /// Lets old versions go, but for tagged ones: `expire(keep_last(n))`, `expire(older_than(time))`. The
  /// present stays. Frees the memory they took, and returns the versions that went, ascending. Strong
  /// guarantee; should memory be too short to tidy up, what they took is freed by the next expiry.
  template <class Rule>
  std::vector<Version> expire(const Rule& rule);

  /// What expire() would let go.
  template <class Rule>
  [[nodiscard]] std::vector<Version> expire(const Rule& rule, DryRun) const {
    return detail::expiring(*core_, first_kept(rule));
  }

  /// The last number that once() recorded for an application; none before the first.
  [[nodiscard]] std::optional<std::uint64_t> last_applied(std::string_view app) const {
    const auto at = core_->applied.find(app);
    return at == core_->applied.end() ? std::nullopt : std::optional(at->second);
  }

  /// Calls `callback(const Commit<Row>&)` once for each commit from now on, after it, in version order. A
  /// write that a callback makes is done at once; its own commit is told when everybody has heard of the
  /// present one. What a callback throws hurts neither the commit nor the other callbacks: see
  /// MergeResult::subscriber_errors(). A callback must not destroy the table or assign to it.
  template <class Callback>
  Subscription subscribe(Callback callback);

  /// Tells the present rows first, as one commit of inserts with the operation "REPLAY", and then what the
  /// callback itself has written meanwhile. What the first call throws passes through, and nothing is
  /// subscribed. Copies the rows.
  template <class Callback>
  Subscription subscribe(Callback callback, Replay);

  /// Bytes held by rows, indexes and history, without what rows and keys allocate themselves. O(commits);
  /// where rows have throwing moves, O(changes).
  [[nodiscard]] MemoryUsage memory_usage() const noexcept;

 private:
  template <class, class, class>
  friend class MergeBuilder;
  template <class, class, class>
  friend class ApplyChanges;
  template <class, class, class>
  friend class Writes;
  template <class>
  friend class AsOfView;
  template <class>
  friend class Transaction;
  friend struct detail::CoreAccess;

  explicit Table(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}

  Result restore(detail::CommitNote note, Version version) {
    note.operation = "RESTORE";
    note.parameters = detail::SharedText("TO VERSION " + std::to_string(checked(version)));
    return write(std::move(note), [&](auto& plan) { detail::plan_restore(*core_, plan, version); });
  }
  Result restore(detail::CommitNote note, Timestamp time) {
    return restore(std::move(note), core_->log->version_at(time));
  }
  Result restore(detail::CommitNote note, std::string_view tag) {
    return restore(std::move(note), tagged(tag));
  }
  Result undo(detail::CommitNote note, Version version);

  Version checked(Version version) const {
    core_->log->require_readable(version);
    return version;
  }
  Version tagged(std::string_view name) const {
    const auto at = core_->tags.find(name);
    if (at == core_->tags.end()) throw TagNotFound(std::string(name));
    return at->second;
  }

  template <class Rule>
  Version first_kept(const Rule& rule) const;

  template <class Callback>
  Subscription subscribe_since(Version since, Callback callback);

  template <class, class, class, bool>
  friend class Writer;
  Transaction<Table> transaction(detail::CommitNote note) {
    return Transaction<Table>(*core_, std::move(note));
  }

  // What the verbs of Writes are made of.

  using CoreType = Core;
  Core& core() noexcept { return *core_; }
  Table& target() noexcept { return *this; }
  static detail::CommitNote note() noexcept { return {}; }

  /// `fill(plan)` plans the write.
  Result write(detail::CommitNote&& note, detail::Fill<Row> fill) {
    return detail::commit(*core_, std::move(note), fill);
  }
  ChangeSet<Row> preview_plan(detail::Fill<Row> fill) { return detail::preview(*core_, fill); }

  std::unique_ptr<Core> core_;
};

template <class R, class K, class... I>
ChangeFeed<R> Table<R, K, I...>::changes(Version after, Version up_to) const {
  const auto& log = *core_->log;
  if (after < log.oldest) throw VersionExpired(after, log.oldest);
  log.require_readable(after);
  log.require_readable(up_to);
  ChangeFeed<Row> feed;
  const auto first = std::ranges::upper_bound(log.records, after, {}, &detail::CommitRecord<Row>::version);
  std::size_t count = 0;
  for (auto record = first; record != log.records.end() && record->version <= up_to; ++record)
    count += record->metrics.get().affected();
  feed.reserve(count);
  for (auto record = first; record != log.records.end() && record->version <= up_to; ++record) {
    detail::for_each_change(log, *record, [&](Change<Row>&& change) {
      feed.emplace_back(std::move(change), record->version, record->timestamp);
    });
  }
  return feed;
}

template <class R, class K, class... I>
ChangeFeed<R> Table<R, K, I...>::changes(Timestamp from, Timestamp up_to) const {
  const auto& log = *core_->log;
  if (log.last_expired && from <= *log.last_expired) throw VersionExpired(from, log.oldest);
  ChangeFeed<Row> feed;
  const auto first = std::ranges::lower_bound(log.records, from, {}, &detail::CommitRecord<Row>::timestamp);
  for (auto record = first; record != log.records.end() && record->timestamp <= up_to; ++record) {
    detail::for_each_change(log, *record, [&](Change<Row>&& change) {
      feed.emplace_back(std::move(change), record->version, record->timestamp);
    });
  }
  return feed;
}

template <class R, class K, class... I>
template <class... Values>
ChangeFeed<R> Table<R, K, I...>::history_of(const Values&... key) const {
  static_assert(sizeof...(Values) == Parts::size,
                "keyfold: history_of() needs one value for each part of the key");
  const auto wanted = detail::lookup_key<Parts, Row>(key...);
  const auto& log = *core_->log;
  ChangeFeed<Row> feed;
  const auto* entry = core_->newest_change(wanted, detail::hash_of(wanted));
  std::vector<const detail::LogEntry<Row>*> entries;
  for (; entry != nullptr && entry->version() >= log.oldest; entry = entry->older()) entries.push_back(entry);
  for (auto at = entries.rbegin(); at != entries.rend(); ++at) {
    const Version version = (*at)->version();
    feed.emplace_back(detail::change_of_key(**at), version, log.find(version)->timestamp);
  }
  return feed;
}

template <class R, class K, class... I>
typename Table<R, K, I...>::Result Table<R, K, I...>::undo(detail::CommitNote note, Version version) {
  const auto& log = *core_->log;
  if (version == 0) throw VersionNotFound(version, log.latest());
  log.require_readable(version);
  const auto& record = *log.find(version);
  if (!record.has_changes) throw VersionExpired::of_changes(version, log.oldest);
  note.operation = "UNDO";
  note.parameters = detail::SharedText("VERSION " + std::to_string(version));
  return write(std::move(note), [&](auto& plan) {
    detail::ChangePlanner<Core> planner(*core_, plan);
    planner.undo(record.block);
    planner.finish_undo(version);
  });
}

template <class R, class K, class... I>
void Table<R, K, I...>::tag(std::string name, Version version) {
  core_->log->require_readable(version);
  const auto [at, added] = core_->tags.try_emplace(std::move(name), version);
  if (!added && at->second != version) throw TagExists(at->first, at->second);
  if (!added || core_->journal == nullptr) return;
  try {
    core_->journal->tag(at->first, version);
  } catch (...) {
    core_->tags.erase(at);
    throw;
  }
}

template <class R, class K, class... I>
void Table<R, K, I...>::untag(std::string_view name) {
  tagged(name);
  if (core_->journal != nullptr) core_->journal->untag(name);
  core_->tags.erase(core_->tags.find(name));
}

template <class R, class K, class... I>
template <class Rule>
Version Table<R, K, I...>::first_kept(const Rule& rule) const {
  static_assert(
      std::same_as<Rule, KeepLastVersions> || std::same_as<Rule, KeepFor> || std::same_as<Rule, OlderThan>,
      "keyfold: expire() takes keep_last(versions), older_than(time) or keep_for(duration)");
  // Commits that subscribers are still to be told of stay, and what read points need.
  const Version told = core_->subscribers->telling() ? core_->subscribers->told() : version();
  const Version limit = std::min(told, detail::oldest_read(*core_->log));
  return std::max(core_->log->oldest, std::min(detail::first_kept(*core_, rule), limit));
}

template <class R, class K, class... I>
template <class Rule>
std::vector<Version> Table<R, K, I...>::expire(const Rule& rule) {
  const detail::WriteScope scope(core_->writing);
  if (detail::expiry_waits(*core_->log)) return {};
  const Version first = first_kept(rule);
  std::vector<Version> gone = detail::expiring(*core_, first);
  detail::retire(*core_, first, [&] {
    if (core_->journal != nullptr) core_->journal->expire(first);
  });
  detail::try_sweep(*core_);
  return gone;
}

template <class R, class K, class... I>
template <class Callback>
Subscription Table<R, K, I...>::subscribe(Callback callback) {
  return subscribe_since(version(), std::move(callback));
}

template <class R, class K, class... I>
template <class Callback>
Subscription Table<R, K, I...>::subscribe(Callback callback, Replay) {
  detail::check_subscriber<Row, Callback>();
  const Version since = version();
  const detail::TellAtTheEnd of_what_is_written_here(*core_);
  {
    const detail::Replayed<Row> present(core_->rows, *core_->log);
    const typename detail::Subscribers<Row>::Telling telling(*core_->subscribers);
    static_cast<void>(std::invoke(callback, Commit<Row>(*core_->log, present.record)));
  }
  return subscribe_since(since, std::move(callback));
}

template <class R, class K, class... I>
template <class Callback>
Subscription Table<R, K, I...>::subscribe_since(Version since, Callback callback) {
  detail::check_subscriber<Row, Callback>();
  using Subscriber = detail::CallbackSubscriber<Row, Callback>;
  const std::shared_ptr<detail::Subscriber<Row>> subscriber =
      std::make_shared<Subscriber>(std::move(callback), since);
  Subscription subscription(core_->subscribers, subscriber);
  core_->subscribers->add(subscriber);
  core_->tell = &detail::tell_each<CoreType>;
  return subscription;
}

template <class R, class K, class... I>
MemoryUsage Table<R, K, I...>::memory_usage() const noexcept {
  return detail::memory_usage_of(*core_);
}

}  // namespace keyfold
