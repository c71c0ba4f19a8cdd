// Values, rows, callables and sources all of whose operations are events of the fault counter.
#pragma once

#include <keyfold/column.hpp>

#include <compare>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/faults.hpp"

namespace keyfold_test {

/// A number every operation of which may fail, except the destructor and, if so asked, the moves. Knows how
/// many of its kind live, and whether it is used or destroyed where none lives.
template <bool nothrow_moves>
class Fragile {
 public:
  Fragile() : value_(0) { begin(Event::default_construct); }
  explicit Fragile(int value) noexcept : value_(value) { ++live; }
  Fragile(const Fragile& other) : value_(other.get()) { begin(Event::copy_construct); }
  Fragile(Fragile&& other) noexcept(nothrow_moves) : value_(other.get()) {
    if constexpr (nothrow_moves) {
      ++live;
    } else {
      begin(Event::move_construct);
    }
    other.value_ = moved_from;
  }
  Fragile& operator=(const Fragile& other) {
    Faults::happen(Event::copy_assign);
    value_ = other.get();
    return *this;
  }
  Fragile& operator=(Fragile&& other) noexcept(nothrow_moves) {
    if constexpr (!nothrow_moves) Faults::happen(Event::move_assign);
    const int taken = other.get();
    other.value_ = moved_from;
    value_ = taken;
    return *this;
  }
  ~Fragile() {
    get();
    self_ = nullptr;
    --live;
  }

  int get() const noexcept {
    if (self_ != this) ++misuses;
    return value_;
  }

  friend bool operator==(const Fragile& a, const Fragile& b) {
    Faults::happen(Event::equal);
    return a.get() == b.get();
  }
  friend std::weak_ordering operator<=>(const Fragile& a, const Fragile& b) {
    Faults::happen(Event::less);
    return a.get() <=> b.get();
  }
  friend std::size_t hash_value(const Fragile& value) {
    Faults::happen(Event::hash);
    return static_cast<std::size_t>(value.get());
  }
  friend std::string to_string(const Fragile& value) { return std::to_string(value.get()); }

  static constexpr int moved_from = -1;
  static inline std::ptrdiff_t live = 0;
  static inline std::ptrdiff_t misuses = 0;

 private:
  void begin(Event event) {
    Faults::happen(event);
    ++live;
  }

  int value_;
  const Fragile* self_ = this;
};

using Plain = Fragile<true>;
using ThrowingMoves = Fragile<false>;

/// A value of the flavour from a number, and back; the order of numbers is kept.
template <class Value>
Value value_of(int number) {
  if constexpr (std::same_as<Value, std::string>) {
    char text[64];
    std::snprintf(text, sizeof text, "%06d, too long for the small buffer of a string", number);
    return text;
  } else {
    return Value(number);
  }
}
template <bool nothrow_moves>
int number_of(const Fragile<nothrow_moves>& value) {
  return value.get();
}
inline int number_of(const std::string& value) { return value.empty() ? 0 : std::stoi(value); }

template <class Value>
std::ptrdiff_t live_values() {
  if constexpr (std::same_as<Value, std::string>) {
    return 0;
  } else {
    return Value::live;
  }
}
template <class Value>
std::ptrdiff_t misused_values() {
  if constexpr (std::same_as<Value, std::string>) {
    return 0;
  } else {
    return Value::misuses;
  }
}

// --- Rows

/// The target row, and a source row of the same type.
template <class ValueType>
struct Item {
  using Value = ValueType;

  Value id{};
  std::optional<Value> code{};
  Value group{};
  Value rank{};
  Value amount{};

  bool operator==(const Item&) const = default;
};

/// A source row of another type.
template <class ValueType>
struct Change {
  using Value = ValueType;

  Value id{};
  Value group{};
  Value amount{};
  char op = 'U';
};

/// A row as plain numbers; code -1 stands for none.
struct Numbers {
  int id = 0;
  int code = -1;
  int group = 0;
  int rank = 0;
  int amount = 0;

  auto operator<=>(const Numbers&) const = default;
};

template <class Value>
Item<Value> item_of(const Numbers& row) {
  const auto code = row.code < 0 ? std::nullopt : std::optional<Value>(value_of<Value>(row.code));
  return {value_of<Value>(row.id), code, value_of<Value>(row.group), value_of<Value>(row.rank),
          value_of<Value>(row.amount)};
}

template <class Value>
Numbers numbers_of(const Item<Value>& row) {
  return {number_of(row.id), row.code ? number_of(*row.code) : -1, number_of(row.group), number_of(row.rank),
          number_of(row.amount)};
}

/// A key part that is a callable and makes a new value each time it is read. Not so where Boost.MultiIndex
/// checks its invariants: there it reads keys in steps that must not fail.
template <class Value>
struct ReadId {
#ifdef BOOST_MULTI_INDEX_ENABLE_INVARIANT_CHECKING
  const Value& operator()(const Item<Value>& row) const { return row.id; }
#else
  Value operator()(const Item<Value>& row) const { return row.id; }
#endif
};

// --- Sources

/// A source that can be read once, whose iterators cannot be copied, and that makes its rows as it goes.
template <class Row>
class SinglePass {
 public:
  class Iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(const std::vector<Row>& rows) noexcept
        : at_(rows.data()), end_(rows.data() + rows.size()) {}
    Iterator(Iterator&&) = default;
    Iterator& operator=(Iterator&&) = default;

    Row operator*() const {
      Faults::happen(Event::iterate);
      return *at_;
    }
    Iterator& operator++() {
      Faults::happen(Event::iterate);
      ++at_;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) {
      Faults::happen(Event::iterate);
      return it.at_ == it.end_;
    }

   private:
    const Row* at_;
    const Row* end_;
  };

  explicit SinglePass(const std::vector<Row>& rows) noexcept : rows_(&rows) {}

  Iterator begin() {
    Faults::happen(Event::iterate);
    return Iterator(*rows_);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  const std::vector<Row>* rows_;
};

}  // namespace keyfold_test

template <class Value>
struct keyfold::columns_of<keyfold_test::Item<Value>>
    : keyfold::Columns<&keyfold_test::Item<Value>::id, &keyfold_test::Item<Value>::code,
                       &keyfold_test::Item<Value>::group, &keyfold_test::Item<Value>::rank,
                       &keyfold_test::Item<Value>::amount> {};

template <class Value>
struct keyfold::columns_of<keyfold_test::Change<Value>>
    : keyfold::Columns<&keyfold_test::Change<Value>::id, &keyfold_test::Change<Value>::group,
                       &keyfold_test::Change<Value>::amount, &keyfold_test::Change<Value>::op> {};
