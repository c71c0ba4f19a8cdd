// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_journal.hpp>
#include <keyfold/detail/commit_log.hpp>
#include <keyfold/detail/constraints.hpp>
#include <keyfold/detail/key_index.hpp>
#include <keyfold/detail/log.hpp>
#include <keyfold/detail/node_pool.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/detail/sequence_state.hpp>
#include <keyfold/detail/subscribers.hpp>
#include <keyfold/error.hpp>
#include <keyfold/key.hpp>
#include <keyfold/options.hpp>

#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index/sequenced_index.hpp>
#include <boost/multi_index_container.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace keyfold {

namespace detail {

/// Reads the key of an index from a slot, for Boost.MultiIndex.
template <class Row, class Parts>
struct SlotKey {
  using result_type = key_view_t<Parts, Row>;
  result_type operator()(const Slot<Row>& slot) const { return Parts::of(slot.get()); }
};

// Every index of the container is non-unique: while a write is carried out the old and the new row both stand
// in it. Uniqueness is judged on the final state, by validate().

template <class Row, class KeySpec>
struct row_order {
  using type = boost::multi_index::sequenced<>;
};
template <class Row, auto... P>
struct row_order<Row, OrderedKey<P...>> {
  using type = boost::multi_index::ordered_non_unique<SlotKey<Row, Parts<P...>>, KeyLess>;
};

template <class Row, class Spec>
struct secondary_index {
  using type = boost::multi_index::hashed_non_unique<SlotKey<Row, parts_of<Spec>>, KeyHash, KeyEqual>;
};
template <class Row, auto... P>
struct secondary_index<Row, OrderedBy<P...>> {
  using type = boost::multi_index::ordered_non_unique<SlotKey<Row, Parts<P...>>, KeyLess>;
};

/// The elements equal to a key of any comparable type, in an ordered or a hashed index.
template <class Index, class Key>
auto equal_range_of(const Index& index, const Key& key) {
  if constexpr (requires { index.key_comp(); }) {
    return index.equal_range(key, KeyLess{});
  } else {
    return index.equal_range(key, KeyHash{}, KeyEqual{});
  }
}

/// The state of a table: rows in Boost.MultiIndex (their order and the secondary indexes), the primary key in
/// an index of its own beside it, and the version log.
template <class Row, class KeySpec, class... Specs>
struct Core {
  using RowType = Row;
  using SlotType = Slot<Row>;
  using KeyParts = parts_of<KeySpec>;
  using Indexes = std::tuple<Specs...>;
  using Rows = boost::multi_index::multi_index_container<
      SlotType,
      boost::multi_index::indexed_by<typename row_order<Row, KeySpec>::type,
                                     typename secondary_index<Row, Specs>::type...>,
      PoolAllocator<SlotType>>;

  static constexpr bool ordered = spec_traits<KeySpec>::ordered;
  static constexpr bool has_trees = ordered || (spec_traits<Specs>::ordered || ...);

  /// `retain` applies the retention of the options after a commit. By pointer, so that a table without
  /// options does not have it compiled.
  explicit Core(TableOptions table_options, void (*retain_rule)(Core&) noexcept = nullptr)
      : options(std::move(table_options)),
        retain(retain_rule),
        pool(*options.memory, sizeof(typename Rows::final_node_type),
             alignof(typename Rows::final_node_type)),
        rows(typename Rows::ctor_args_list(), PoolAllocator<SlotType>(pool)),
        keys(*options.memory),
        graves(*options.memory),
        log(std::make_shared<CommitLog<Row>>(key_functions<KeyParts, Row>, *options.memory)) {
    static_assert(alignof(typename Rows::final_node_type) >= alignof(SlotType),
                  "keyfold: rows that are aligned to more than 128 bytes cannot be kept in a table");
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  static auto key_of(const Row& row) { return KeyParts::of(row); }

  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash) const {
    return keys.find(hash,
                     [&](const SlotType& slot) { return detail::equal_values(key_of(slot.get()), key); });
  }
  template <class Key>
  const SlotType* find(const Key& key) const {
    return find(key, detail::hash_of(key));
  }
  /// Likewise; `candidate`: what the index of keys has said of this hash since it last changed.
  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash, const SlotType* candidate) const {
    if (candidate == nullptr) return nullptr;
    return detail::equal_values(key_of(candidate->get()), key) ? candidate : find(key, hash);
  }

  /// All rows, in the order of the first index.
  const Rows& scan() const noexcept { return rows; }

  /// The rows equal to a key in index number `N` (from 0) of the secondary indexes, as a pair of iterators.
  template <std::size_t N, class Key>
  auto matching(const Key& key) const {
    return detail::equal_range_of(secondary<N>(), key);
  }

  /// Index number `N` (from 0) of the secondary indexes.
  template <std::size_t N>
  const auto& secondary() const noexcept {
    return rows.template get<N + 1>();
  }

  /// Calls `visit(index, parts)` for each index that is ordered: of the key, secondary ones.
  template <class Visit>
  void for_each_tree(Visit visit) const {
    if constexpr (ordered) visit(rows.template get<0>(), KeyParts());
    [&]<std::size_t... N>(std::index_sequence<N...>) {
      [[maybe_unused]] const auto visit_tree = [&]<class Spec>(const auto& index, std::type_identity<Spec>) {
        if constexpr (spec_traits<Spec>::ordered) visit(index, parts_of<Spec>());
      };
      (visit_tree(secondary<N>(), std::type_identity<Specs>()), ...);
    }(std::index_sequence_for<Specs...>());
  }

  /// What apply_changes() remembers beside the rows, owned by `sequences`; null before the first of it.
  const SequenceState* sequence_state() const noexcept { return sequences.get(); }

  Timestamp now() const { return options.clock(); }

  Version version() const noexcept { return log->latest(); }

  Plan<Row> new_plan() noexcept {
    plan_memory.most_kept = std::max(PlanMemory<Row>::least_kept, pool.bytes() / 8);
    return Plan<Row>(++epoch, plan_memory);
  }

  /// The newest change of a key that no row has, or null.
  template <class Key>
  LogEntry<Row>* find_grave(const Key& key, std::uint64_t hash) const {
    return graves.find(hash, [&](const LogEntry<Row>& entry) {
      return detail::equal_values(key_of(entry.before().get()), key);
    });
  }

  /// The newest change of a key, whether or not a row has it now; null if the log has none.
  template <class Key>
  LogEntry<Row>* newest_change(const Key& key, std::uint64_t hash) const {
    const SlotType* slot = find(key, hash);
    return slot != nullptr ? slot->newest : find_grave(key, hash);
  }

  TableOptions options;
  void (*retain)(Core&) noexcept;
  /// Tells subscribers of commits. Null while there was none, so that a table without does not have it
  /// compiled.
  void (*tell)(Core&, std::vector<std::exception_ptr>&) noexcept = nullptr;
  NodePool pool;  // of `rows`
  Rows rows;
  KeyIndex<const SlotType> keys;
  KeyIndex<LogEntry<Row>> graves;       // keys without a row, by the change that took the row away
  std::shared_ptr<CommitLog<Row>> log;  // never shared for keeps, see MergeResult
  std::map<std::string, Version, std::less<>> tags;
  std::map<std::string, std::uint64_t, std::less<>> applied;  // by application: its last number, see once()
  Checks<Row> checks;                                         // see Table::require()
  std::shared_ptr<Subscribers<Row>> subscribers = std::make_shared<Subscribers<Row>>();
  std::unique_ptr<SequenceState> sequences;
  std::uint64_t sequences_changed = 0;  // how often
  std::uint64_t next_order = 0;
  std::uint32_t epoch = 0;
  PlanMemory<Row> plan_memory;
  CommitJournal<Row>* journal = nullptr;  // of a store, which owns it
  bool writing = false;
};

/// The number of the index made of exactly these parts; size of `Indexes` if there is none.
template <class Parts, class Indexes>
inline constexpr std::size_t index_number = 0;
template <class Parts, class First, class... Rest>
inline constexpr std::size_t index_number<Parts, std::tuple<First, Rest...>> =
    std::is_same_v<parts_of<First>, Parts> ? 0 : 1 + index_number<Parts, std::tuple<Rest...>>;

/// Marks a core as being written to; refuses a write from within a write.
class WriteScope {
 public:
  explicit WriteScope(bool& writing) : writing_(writing) {
    if (writing) throw ReentrantWrite();
    writing = true;
  }
  WriteScope(const WriteScope&) = delete;
  WriteScope& operator=(const WriteScope&) = delete;
  ~WriteScope() { writing_ = false; }

 private:
  bool& writing_;
};

/// Throws InvalidKey if a part of the key is NaN.
template <auto... Members, class Key>
void require_valid_key(Parts<Members...>, const Key& key, Position position) {
  if (!detail::is_nan(key)) return;
  constexpr std::array<std::string_view, sizeof...(Members)> names{member_name<Members>...};
  std::size_t part = 0;
  std::apply(
      [&](const auto&... value) { static_cast<void>(((detail::is_nan(value) || (++part, false)) || ...)); },
      key);
  throw InvalidKey(std::string(names[part]), position);
}

}  // namespace detail
}  // namespace keyfold
