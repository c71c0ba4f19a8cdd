// What is compared: keyfold, and two loops that a programmer would write by hand. The loops know no
// atomicity, no history and no changes; they only count.
#pragma once

#include <keyfold/keyfold.hpp>

#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/member.hpp>
#include <boost/multi_index_container.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <vector>

#include "rows.hpp"

namespace keyfold_bench {

struct Counts {
  std::size_t inserted = 0;
  std::size_t updated = 0;
  std::size_t unchanged = 0;

  bool operator==(const Counts&) const = default;
};

template <class Row>
struct KeyOf;
template <>
struct KeyOf<Payment> {
  static constexpr auto member = &Payment::id;
  using Type = std::int64_t;
};
template <>
struct KeyOf<Product> {
  static constexpr auto member = &Product::sku;
  using Type = std::string;
};

template <class Row>
class Keyfold {
 public:
  static constexpr const char* name = "keyfold";

  void fill(const std::vector<Row>& rows) { table_.append(rows); }

  void upsert(const std::vector<Row>& batch) { add(table_.upsert(batch).metrics()); }
  void upsert(const Row& row) { add(table_.upsert(row).metrics()); }

  std::size_t size() const { return table_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  void add(const keyfold::Metrics& metrics) {
    counts_.inserted += metrics.inserted;
    counts_.updated += metrics.updated;
    counts_.unchanged += metrics.unchanged;
  }

  keyfold::Table<Row, keyfold::Key<KeyOf<Row>::member>> table_;
  Counts counts_;
};

template <class Row>
class FlatMap {
 public:
  static constexpr const char* name = "flat_map";

  void fill(const std::vector<Row>& rows) {
    for (const Row& row : rows) rows_.emplace(row.*KeyOf<Row>::member, row);
  }

  void upsert(const std::vector<Row>& batch) {
    for (const Row& row : batch) upsert(row);
  }
  void upsert(const Row& row) {
    const auto [it, inserted] = rows_.try_emplace(row.*KeyOf<Row>::member, row);
    if (inserted) {
      ++counts_.inserted;
    } else if (it->second == row) {
      ++counts_.unchanged;
    } else {
      it->second = row;
      ++counts_.updated;
    }
  }

  std::size_t size() const { return rows_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  boost::unordered_flat_map<typename KeyOf<Row>::Type, Row> rows_;
  Counts counts_;
};

template <class Row>
class MultiIndex {
 public:
  static constexpr const char* name = "multi_index";

  void fill(const std::vector<Row>& rows) {
    for (const Row& row : rows) rows_.insert(row);
  }

  void upsert(const std::vector<Row>& batch) {
    for (const Row& row : batch) upsert(row);
  }
  void upsert(const Row& row) {
    const auto it = rows_.find(row.*KeyOf<Row>::member);
    if (it == rows_.end()) {
      rows_.insert(row);
      ++counts_.inserted;
    } else if (*it == row) {
      ++counts_.unchanged;
    } else {
      rows_.modify(it, [&](Row& stored) { stored = row; });
      ++counts_.updated;
    }
  }

  std::size_t size() const { return rows_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  using Key = boost::multi_index::member<Row, typename KeyOf<Row>::Type, KeyOf<Row>::member>;
  boost::multi_index_container<Row, boost::multi_index::indexed_by<boost::multi_index::hashed_unique<Key>>>
      rows_;
  Counts counts_;
};

}  // namespace keyfold_bench
