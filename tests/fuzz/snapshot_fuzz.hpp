// What is done with bytes that may be a snapshot: the body of the fuzz target and of its replay as a test.
#pragma once

#include <keyfold/snapshot.hpp>

#include <cstdlib>
#include <string>

#include "support/snapshot_bytes.hpp"
#include "support/snapshot_samples.hpp"

namespace snapshot_samples {

/// Wide with fewer columns, so that stored ones are skipped by the names of their types.
struct Narrow {
  std::int32_t id = 0;
  std::string text;
  bool operator==(const Narrow&) const = default;
};
BOOST_DESCRIBE_STRUCT(Narrow, (), (id, text))
using NarrowTable = kf::Table<Narrow, kf::Key<&Narrow::id>>;

}  // namespace snapshot_samples

namespace keyfold_test {

inline void demand(bool holds) {
  if (!holds) std::abort();
}

/// Events for the tables that take some: what is remembered is asked for.
template <class Table>
void feed(Table& table) {
  using namespace snapshot_samples;
  try {
    if constexpr (std::is_same_v<Table, ParcelTable>)
      feed_parcels(table,
                   {{1, 'U', {}, 1, 15}, {2, 'D', {}, {}, 21}, {3, 'U', "x", 1, 21}, {0, 'T', {}, {}, 12}});
    if constexpr (std::is_same_v<Table, FareTable>)
      feed_fares(table, {{1, 'U', 15, {}, 1}, {2, 'U', 4, "x", {}}, {1, 'D', 20, {}, {}}});
  } catch (const keyfold::Error&) {
  }
}

/// Reads all that a table shows, and writes to it.
template <class Table>
void exercise(Table table) {
  namespace kf = keyfold;
  std::size_t seen = 0;
  for (const auto& row : table) {
    demand(std::apply([&](const auto&... part) { return table.find(part...); },
                      kf::detail::CoreAccess::core_t<Table>::key_of(row)) == &row);
    ++seen;
  }
  demand(seen == table.size());
  std::vector<kf::Version> readable;
  for (const auto commit : table.history()) readable.push_back(commit.version());
  readable.push_back(0);
  for (const kf::Version version : readable) {
    try {
      const auto view = table.as_of(version);
      std::size_t rows = 0;
      for (const auto& row : view) {
        static_cast<void>(row);
        ++rows;
      }
      if (version >= kf::detail::CoreAccess::core(table).log->oldest) demand(rows == view.size());
      static_cast<void>(table.diff(version, table.version()));
      static_cast<void>(table.changes(version));
    } catch (const kf::Error&) {
    }
  }
  for (const auto commit : table.history()) {
    try {
      static_cast<void>(commit.changes());
    } catch (const kf::VersionExpired&) {
    }
  }
  feed(table);
  const std::string bytes = saved(table);
  demand(saved(loaded<Table>(bytes)) == bytes);
  demand(saved(Table(table)) == bytes);
  try {
    Table back(table);
    back.undo(back.version());
  } catch (const kf::Error&) {
  }
  if (!readable.empty()) {
    try {
      Table back(table);
      back.restore(readable.front());
    } catch (const kf::Error&) {
    }
  }
  table.clear();
  table.expire(kf::keep_last(1));
  demand(table.empty());
}

/// Returns whether the bytes were loaded. Aborts, or worse, if something is wrong.
template <class Table>
bool try_to_load(const std::string& bytes) {
  std::optional<Table> table;
  try {
    table = loaded<Table>(bytes);
  } catch (const keyfold::Error&) {
    return false;
  }
  exercise(*std::move(table));
  return true;
}

inline bool fuzz_snapshot(const std::string& bytes) {
  using namespace snapshot_samples;
  bool taken = try_to_load<WideTable>(bytes);
  taken = try_to_load<NarrowTable>(bytes) || taken;
  taken = try_to_load<PersonTable>(bytes) || taken;
  taken = try_to_load<ParcelTable>(bytes) || taken;
  taken = try_to_load<FareTable>(bytes) || taken;
  return try_to_load<TickTable>(bytes) || taken;
}

}  // namespace keyfold_test
