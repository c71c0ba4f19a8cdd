// Tables keyed by one value of any type.
#pragma once

#include <keyfold/keyfold.hpp>

#include <initializer_list>
#include <vector>

namespace keyfold_test {

template <class T>
struct Keyed {
  T key{};
  int value = 0;
};

template <class T>
using TableBy = keyfold::Table<Keyed<T>, keyfold::Key<&Keyed<T>::key>>;
template <class T>
using OrderedBy = keyfold::Table<Keyed<T>, keyfold::OrderedKey<&Keyed<T>::key>>;

// A table of these keys with the values 1, 2, ...
template <class T>
TableBy<T> table_of(std::initializer_list<T> keys) {
  TableBy<T> table;
  int value = 0;
  for (const T& key : keys) table.insert({key, ++value});
  return table;
}

// The value of the row with this key, 0 if there is none.
template <class Table, class... Key>
int value_at(const Table& table, const Key&... key) {
  const auto* row = table.find(key...);
  return row == nullptr ? 0 : row->value;
}

template <class Table>
std::vector<int> values_of(const Table& table) {
  std::vector<int> values;
  for (const auto& row : table) values.push_back(row.value);
  return values;
}

}  // namespace keyfold_test
