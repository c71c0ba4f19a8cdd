// The rows that are measured, and batches of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

namespace keyfold_bench {

using Random = std::mt19937_64;

/// 32 bytes, found by a 64-bit number.
struct Payment {
  std::int64_t id = 0;
  std::int64_t updated_at = 0;
  double amount = 0;
  std::int32_t status = 0;

  static constexpr const char* name = "A";
  bool operator==(const Payment&) const = default;
};

/// Three strings, two of them on the heap, found by one of those.
struct Product {
  std::string sku;       // 16 characters
  std::string title;     // 24 characters
  std::string category;  // up to 11 characters
  double price = 0;
  std::int64_t updated_at = 0;

  static constexpr const char* name = "B";
  bool operator==(const Product&) const = default;
};

inline std::string random_text(Random& random, std::size_t length) {
  static constexpr char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUV";
  std::string text(length, ' ');
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < length; ++i, bits >>= 5U) {
    if (i % 12 == 0) bits = random();
    text[i] = letters[bits & 31U];
  }
  return text;
}

template <class Row>
Row make_row(Random& random);

template <>
inline Payment make_row(Random& random) {
  return {static_cast<std::int64_t>(random()), 0, static_cast<double>(random() % 100'000) / 100, 1};
}
template <>
inline Product make_row(Random& random) {
  return {random_text(random, 16), random_text(random, 24), "category " + std::to_string(random() % 20),
          static_cast<double>(random() % 100'000) / 100, 0};
}

inline void touch(Payment& row) {
  ++row.updated_at;
  row.amount += 1;
}
inline void touch(Product& row) {
  ++row.updated_at;
  row.price += 1;
}

template <class Row>
using Batches = std::vector<std::vector<Row>>;

/// What source rows do.
enum class Mix {
  mixed,    // of ten rows five are new, four update one of the table, and one is the same as in the table
  inserts,  // all are new
  updates   // all update a row of the table
};

inline std::size_t affected_of(Mix mix, std::size_t rows) { return mix == Mix::mixed ? rows / 10 * 9 : rows; }

/// Makes batches for a table that it follows. Keys are random and not repeated in a batch.
template <class Row>
class Workload {
 public:
  explicit Workload(std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) table_.push_back(make_row<Row>(random_));
  }

  const std::vector<Row>& table() const noexcept { return table_; }

  std::vector<Row> next_batch(std::size_t size, Mix mix = Mix::mixed) {
    std::vector<Row> batch;
    batch.reserve(size);
    std::unordered_set<std::size_t> used;
    const std::size_t before = table_.size();
    for (std::size_t i = 0; i < size; ++i, ++made_) {
      if (mix == Mix::inserts || (mix == Mix::mixed && made_ % 2 == 0)) {
        batch.push_back(table_.emplace_back(make_row<Row>(random_)));
      } else {
        Row& row = table_[unused(used, before)];
        if (mix == Mix::updates || made_ % 10 != 9) touch(row);
        batch.push_back(row);
      }
    }
    std::ranges::shuffle(batch, random_);
    return batch;
  }

  Batches<Row> next_batches(std::size_t count, std::size_t size, Mix mix = Mix::mixed) {
    Batches<Row> batches;
    while (batches.size() < count) batches.push_back(next_batch(size, mix));
    return batches;
  }

 private:
  std::size_t unused(std::unordered_set<std::size_t>& used, std::size_t count) {
    while (true) {
      const std::size_t index = random_() % count;
      if (used.insert(index).second) return index;
    }
  }

  Random random_{2026};
  std::vector<Row> table_;
  std::size_t made_ = 0;
};

}  // namespace keyfold_bench
