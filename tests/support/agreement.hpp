// What must be true of any table at any time, checked by brute force over its public face: every index agrees
// with a full scan, and the history, replayed, ends in the rows.
#pragma once

#include <keyfold/table.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace keyfold_test {

template <class Row>
using Addresses = std::vector<const Row*>;

template <class Range>
auto addresses_of(const Range& rows) {
  Addresses<std::ranges::range_value_t<const Range>> out;
  for (const auto& row : rows) out.push_back(&row);
  return out;
}

template <class Row>
bool same_set(Addresses<Row> a, Addresses<Row> b) {
  std::ranges::sort(a, std::less<>());
  std::ranges::sort(b, std::less<>());
  return a == b;
}

/// The values of an index's parts in a row, read without keyfold.
template <template <auto...> class Spec, auto... Parts, class Row>
auto values_of(Spec<Parts...>, const Row& row) {
  return std::tuple<std::remove_cvref_t<decltype(std::invoke(Parts, row))>...>(std::invoke(Parts, row)...);
}

template <template <auto...> class Spec, auto... Parts, class Table>
auto view_of(Spec<Parts...>, const Table& table) {
  return table.template by<Parts...>();
}

template <class Spec>
inline constexpr bool is_ordered = false;
template <auto... Parts>
inline constexpr bool is_ordered<keyfold::OrderedKey<Parts...>> = true;
template <auto... Parts>
inline constexpr bool is_ordered<keyfold::OrderedBy<Parts...>> = true;

template <class Spec>
inline constexpr bool is_unique = false;
template <auto... Parts>
inline constexpr bool is_unique<keyfold::UniqueBy<Parts...>> = true;

template <class Spec, class Range>
bool ascending(const Range& rows) {
  bool sorted = true;
  const typename std::ranges::iterator_t<const Range> last = rows.end();
  auto it = rows.begin();
  if (it == last) return true;
  for (auto next = std::next(it); next != last; ++it, ++next) {
    sorted = sorted && !(values_of(Spec{}, *next) < values_of(Spec{}, *it));
  }
  return sorted;
}

template <class Value>
bool absent([[maybe_unused]] const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return !value.has_value();
  } else {
    return false;
  }
}

template <class Spec, class Table>
void check_index(const Table& table, const std::string& name, std::vector<std::string>& found) {
  using Row = typename Table::Row;
  const auto view = view_of(Spec{}, table);
  const Addresses<Row> all = addresses_of(table);
  if (view.size() != table.size()) found.push_back(name + " has another size than the table");
  if (!same_set(addresses_of(view), all)) found.push_back(name + " has other rows than the table");
  if (is_ordered<Spec> && !ascending<Spec>(view)) found.push_back(name + " is out of order");
  std::vector<decltype(values_of(Spec{}, *all.front()))> values;
  for (const Row* row : all) values.push_back(values_of(Spec{}, *row));
  for (std::size_t i = 0; i < all.size(); ++i) {
    Addresses<Row> equal;
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (values[j] == values[i]) equal.push_back(all[j]);
    }
    if (equal.front() != all[i]) continue;  // looked up already
    const auto looked_up =
        std::apply([&](const auto&... value) { return view.equal_range(value...); }, values[i]);
    if (!same_set(addresses_of(looked_up), equal)) found.push_back(name + " does not find what a scan finds");
    const bool exempt = std::apply([](const auto&... value) { return (absent(value) || ...); }, values[i]);
    if (is_unique<Spec> && !exempt && equal.size() > 1) found.push_back(name + " holds a value twice");
  }
}

template <class KeySpec, class Table>
void check_key(const Table& table, std::vector<std::string>& found) {
  using Row = typename Table::Row;
  const Addresses<Row> all = addresses_of(table);
  std::vector<decltype(values_of(KeySpec{}, *all.front()))> keys;
  for (const Row* row : all) keys.push_back(values_of(KeySpec{}, *row));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::ranges::count(keys, keys[i]) != 1) found.push_back("two rows have one key");
    const Row* looked_up = std::apply([&](const auto&... part) { return table.find(part...); }, keys[i]);
    if (looked_up != all[i]) found.push_back("find() does not find a row of the table");
  }
  if (is_ordered<KeySpec> && !ascending<KeySpec>(table)) found.push_back("the rows are out of key order");
}

template <class Table>
bool is_whole(const Table& table) {
  try {
    return table.as_of(0).empty();
  } catch (const keyfold::VersionExpired&) {
    return false;
  }
}

/// Replays the history, if nothing of it has expired: each commit takes its before images away, then adds its
/// after images.
template <class Table>
void check_history(const Table& table, std::vector<std::string>& found) {
  using Row = typename Table::Row;
  if (!is_whole(table)) return;
  std::vector<Row> rows;
  keyfold::Version last = 0;
  for (const auto commit : table.history()) {
    if (commit.version() != ++last) found.push_back("versions are not consecutive");
    const auto changes = commit.changes();
    const auto& metrics = commit.metrics();
    if (changes.size() != metrics.affected())
      found.push_back("a commit has other changes than its metrics say");
    for (const auto& change : changes) {
      if (change.before() == nullptr) continue;
      const auto it = std::ranges::find(rows, *change.before());
      if (it == rows.end()) {
        found.push_back("a before image is no row of the version before");
      } else {
        rows.erase(it);
      }
    }
    for (const auto& change : changes) {
      if (change.after() != nullptr) rows.push_back(*change.after());
    }
  }
  if (table.version() != last) found.push_back("version() is not that of the last commit");
  if (!std::ranges::is_permutation(rows, table)) found.push_back("the replayed history is not the table");
}

/// What is wrong with the indexes of a table; empty if nothing.
template <class Row, class KeySpec, class... Specs>
std::vector<std::string> index_disagreements(const keyfold::Table<Row, KeySpec, Specs...>& table) {
  std::vector<std::string> found;
  if (static_cast<std::size_t>(std::ranges::distance(table)) != table.size())
    found.push_back("size() is wrong");
  if (table.empty() != (table.size() == 0)) found.push_back("empty() is wrong");
  check_key<KeySpec>(table, found);
  if constexpr (is_ordered<KeySpec>) check_index<KeySpec>(table, "the key", found);
  [[maybe_unused]] std::size_t number = 0;
  (check_index<Specs>(table, "index " + std::to_string(number++), found), ...);
  return found;
}

/// What is wrong with the indexes and the history of a table; empty if nothing.
template <class Table>
std::vector<std::string> disagreements(const Table& table) {
  std::vector<std::string> found = index_disagreements(table);
  check_history(table, found);
  return found;
}

}  // namespace keyfold_test
