// What is compared: tables of keyfold, and two loops that a programmer would write by hand. The loops know no
// atomicity, no history and no changes; they only count.
//
// An engine is filled by append() and takes upserts, one commit each, of a batch or of a row.
#pragma once

#include <keyfold/keyfold.hpp>

#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/member.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index_container.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rows.hpp"

namespace keyfold_bench {

/// The key of a row, and the column that has a secondary index where one is measured.
template <class Row>
struct KeyOf;
template <>
struct KeyOf<Payment> {
  static constexpr auto member = &Payment::id;
  static constexpr auto indexed = &Payment::amount;
  using Type = std::int64_t;
};
template <>
struct KeyOf<Product> {
  static constexpr auto member = &Product::sku;
  static constexpr auto indexed = &Product::price;
  using Type = std::string;
};

template <class Row, class... Indexes>
using TableOf = keyfold::Table<Row, keyfold::Key<KeyOf<Row>::member>, Indexes...>;

inline std::size_t affected_by(std::size_t count) { return count; }
inline std::size_t affected_by(std::int64_t count) { return static_cast<std::size_t>(count); }
template <class Row>
std::size_t affected_by(const keyfold::MergeResult<Row>& result) {
  return result.metrics().affected();
}

/// One commit for each batch; a batch of one takes the path of single rows. Returns how many rows were
/// inserted or changed. A function of its own, so that a profiler can tell its time from that of making
/// batches.
template <class Engine, class Row>
[[gnu::noinline]] std::int64_t upsert_all(Engine& engine, const Batches<Row>& batches) {
  constexpr bool takes_rows = requires { engine.upsert(batches.front().front()); };
  std::size_t affected = 0;
  for (const auto& batch : batches) {
    if constexpr (takes_rows) {
      if (batch.size() == 1) {
        affected += affected_by(engine.upsert(batch.front()));
        continue;
      }
    }
    affected += affected_by(engine.upsert(batch));
  }
  return static_cast<std::int64_t>(affected);
}

template <class Row>
class FlatMap {
 public:
  void append(const std::vector<Row>& rows) {
    for (const Row& row : rows) rows_.emplace(row.*KeyOf<Row>::member, row);
  }

  std::size_t upsert(const std::vector<Row>& batch) {
    std::size_t affected = 0;
    for (const Row& row : batch) affected += upsert(row);
    return affected;
  }
  std::size_t upsert(const Row& row) {
    const auto [it, inserted] = rows_.try_emplace(row.*KeyOf<Row>::member, row);
    if (inserted) return 1;
    if (it->second == row) return 0;
    it->second = row;
    return 1;
  }

  const Row* find(const typename KeyOf<Row>::Type& key) const {
    const auto it = rows_.find(key);
    return it == rows_.end() ? nullptr : &it->second;
  }
  std::size_t size() const { return rows_.size(); }

 private:
  boost::unordered_flat_map<typename KeyOf<Row>::Type, Row> rows_;
};

/// `Indexes` are those of the container beside its hashed one.
template <class Row, class... Indexes>
class MultiIndex {
 public:
  void append(const std::vector<Row>& rows) {
    for (const Row& row : rows) rows_.insert(row);
  }

  std::size_t upsert(const std::vector<Row>& batch) {
    std::size_t affected = 0;
    for (const Row& row : batch) affected += upsert(row);
    return affected;
  }
  std::size_t upsert(const Row& row) {
    const auto it = rows_.find(row.*KeyOf<Row>::member);
    if (it == rows_.end()) {
      rows_.insert(row);
      return 1;
    }
    if (*it == row) return 0;
    rows_.modify(it, [&](Row& stored) { stored = row; });
    return 1;
  }

  const Row* find(const typename KeyOf<Row>::Type& key) const {
    const auto it = rows_.find(key);
    return it == rows_.end() ? nullptr : &*it;
  }
  std::size_t size() const { return rows_.size(); }

 private:
  using Key = boost::multi_index::member<Row, typename KeyOf<Row>::Type, KeyOf<Row>::member>;
  boost::multi_index_container<
      Row, boost::multi_index::indexed_by<boost::multi_index::hashed_unique<Key>, Indexes...>>
      rows_;
};

/// One ordered index beside the key, on either side.
template <class Row>
using IndexedTable = TableOf<Row, keyfold::OrderedBy<KeyOf<Row>::indexed>>;
template <class Row>
using IndexedMultiIndex = MultiIndex<Row, boost::multi_index::ordered_non_unique<
                                              boost::multi_index::member<Row, double, KeyOf<Row>::indexed>>>;

}  // namespace keyfold_bench
