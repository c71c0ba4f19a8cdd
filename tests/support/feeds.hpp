// Random feeds of change events, and what their rows come to when they are taken one by one in the order of
// their sequences.
#pragma once

#include <keyfold/keyfold.hpp>

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace keyfold_test {

struct FeedRow {
  int id = 0;
  std::optional<int> a;
  int b = -1;
  int note = 7;  // no event has it
  int seq = 0;

  auto operator<=>(const FeedRow&) const = default;
};

/// 'U' sets what is given, 'D' deletes, 'T' truncates.
struct FeedEvent {
  int id = 0;
  char op = 'U';
  std::optional<int> a;
  int b = -1;
  int seq = 0;
};

/// The same with columns that may be absent.
struct SparseEvent {
  int id = 0;
  char op = 'U';
  std::optional<int> a;
  std::optional<int> b;
  int seq = 0;
};

inline std::string text_of(const SparseEvent& event) {
  const auto number = [](const std::optional<int>& value) {
    return value ? std::to_string(*value) : std::string("null");
  };
  return std::string(1, event.op) + " id " + std::to_string(event.id) + " a " + number(event.a) + " b " +
         number(event.b) + " seq " + std::to_string(event.seq);
}

inline std::string text_of(const std::vector<SparseEvent>& events) {
  std::string out;
  for (const SparseEvent& event : events) out += "  " + text_of(event) + '\n';
  return out;
}

inline std::string text_of(const std::vector<FeedRow>& rows) {
  std::string out;
  for (const FeedRow& row : rows) {
    out += "  id " + std::to_string(row.id) + " a " + (row.a ? std::to_string(*row.a) : "null") + " b " +
           std::to_string(row.b) + " note " + std::to_string(row.note) + " seq " + std::to_string(row.seq) +
           '\n';
  }
  return out;
}

inline FeedEvent dense(const SparseEvent& event) {
  return {event.id, event.op, event.a, event.b.value_or(-1), event.seq};
}
inline std::vector<FeedEvent> dense(const std::vector<SparseEvent>& events) {
  std::vector<FeedEvent> out;
  for (const SparseEvent& event : events) out.push_back(dense(event));
  return out;
}

/// `count` events over few keys, with sequences 2, 4, 6...; in the order of these.
inline std::vector<SparseEvent> random_events(std::mt19937& random, int count, bool truncates) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto value = [&] { return below(3) == 0 ? std::nullopt : std::optional<int>(below(4)); };
  std::vector<SparseEvent> events;
  for (int i = 0; i < count; ++i) {
    const int kind = below(10);
    const char op = kind < 6 ? 'U' : kind < 9 || !truncates ? 'D' : 'T';
    events.push_back({below(3), op, value(), value(), 2 * (i + 1)});
  }
  return events;
}

/// Rows that were there before the feed, with odd sequences.
inline std::vector<FeedRow> random_base(std::mt19937& random, int count) {
  std::vector<FeedRow> rows;
  for (int id = 0; id < 4; ++id) {
    if (random() % 2 == 0) continue;
    const int seq = 2 * static_cast<int>(random() % static_cast<unsigned>(count + 1)) + 1;
    rows.push_back({id, 50 + id, 60 + id, 9, seq});
  }
  return rows;
}

/// Calls `visit(batch)` for consecutive parts of random length.
template <class Event, class Visit>
void in_batches(std::mt19937& random, const std::vector<Event>& events, Visit visit) {
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 5, events.size() - at);
    visit(std::vector<Event>(events.begin() + static_cast<std::ptrdiff_t>(at),
                             events.begin() + static_cast<std::ptrdiff_t>(at + size)));
    at += size;
  }
}

/// The rows that the events come to in order. A base row is an upsert of all its columns, `note` included.
inline std::vector<FeedRow> expected_rows(const std::vector<FeedRow>& base,
                                          const std::vector<SparseEvent>& in_order, bool ignore_nulls) {
  std::map<int, FeedRow> rows;
  std::map<int, FeedRow> arrivals;  // base rows by sequence
  for (const FeedRow& row : base) arrivals.emplace(row.seq * 10 + row.id, row);
  auto next = arrivals.begin();
  const auto arrive_before = [&](int seq) {
    for (; next != arrivals.end() && next->second.seq < seq; ++next) rows[next->second.id] = next->second;
  };
  for (const SparseEvent& event : in_order) {
    arrive_before(event.seq);
    if (event.op == 'T') {
      rows.clear();
    } else if (event.op == 'D') {
      rows.erase(event.id);
    } else {
      FeedRow& row = rows[event.id];
      row.id = event.id;
      row.seq = event.seq;
      if (event.a || !ignore_nulls) row.a = event.a;
      if (event.b || !ignore_nulls) row.b = event.b.value_or(-1);
    }
  }
  arrive_before(1'000'000'000);
  std::vector<FeedRow> out;
  for (const auto& [id, row] : rows) out.push_back(row);
  return out;
}

/// The rows of a table in the order of their keys.
template <class Table>
auto sorted_rows(const Table& table) {
  std::vector<typename Table::Row> rows(table.begin(), table.end());
  std::ranges::sort(rows);
  return rows;
}

}  // namespace keyfold_test

template <>
struct keyfold::columns_of<keyfold_test::FeedRow>
    : keyfold::Columns<&keyfold_test::FeedRow::id, &keyfold_test::FeedRow::a, &keyfold_test::FeedRow::b,
                       &keyfold_test::FeedRow::note, &keyfold_test::FeedRow::seq> {};
template <>
struct keyfold::columns_of<keyfold_test::FeedEvent>
    : keyfold::Columns<&keyfold_test::FeedEvent::id, &keyfold_test::FeedEvent::op,
                       &keyfold_test::FeedEvent::a, &keyfold_test::FeedEvent::b,
                       &keyfold_test::FeedEvent::seq> {};
template <>
struct keyfold::columns_of<keyfold_test::SparseEvent>
    : keyfold::Columns<&keyfold_test::SparseEvent::id, &keyfold_test::SparseEvent::op,
                       &keyfold_test::SparseEvent::a, &keyfold_test::SparseEvent::b,
                       &keyfold_test::SparseEvent::seq> {};
