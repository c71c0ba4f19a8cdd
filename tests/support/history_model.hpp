// A model of a table's history that keeps a full copy of each version, and works out every change, order and
// error by plain loops over them. Nothing of keyfold's log or planning is used.
#pragma once

#include <keyfold/fwd.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace keyfold_test {

struct Item {
  int id = 0;
  int group = 0;
  std::optional<int> code;
  std::string text;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (id, group, code, text))

inline std::ostream& operator<<(std::ostream& out, const Item& item) {
  out << '(' << item.id << ' ' << item.group << ' ';
  return (item.code ? out << *item.code : out << '-') << ' ' << item.text << ')';
}

inline constexpr int ids = 7;  // keys are 0 to ids - 1

using State = std::vector<Item>;

struct ItemChange {
  std::optional<Item> before;
  std::optional<Item> after;
  bool operator==(const ItemChange&) const = default;

  bool touches(int id) const { return (before && before->id == id) || (after && after->id == id); }
  bool moves_key() const { return before && after && before->id != after->id; }
};
using ItemChanges = std::vector<ItemChange>;

enum class Outcome { done, illegal, conflict, expired, not_found, tag_not_found, tag_exists };

inline const Item* find_item(const State& rows, int id) {
  const auto at = std::ranges::find(rows, id, &Item::id);
  return at == rows.end() ? nullptr : &*at;
}

/// For each key the row before and the row after, where they differ; by key.
inline std::map<int, ItemChange> naive_diff(const State& from, const State& to) {
  std::map<int, ItemChange> out;
  for (int id = 0; id < ids; ++id) {
    ItemChange change;
    if (const Item* row = find_item(from, id)) change.before = *row;
    if (const Item* row = find_item(to, id)) change.after = *row;
    if (change.before != change.after) out[id] = change;
  }
  return out;
}

class HistoryModel {
 public:
  struct Version {
    State rows;
    ItemChanges changes;
    keyfold::Timestamp time{};
  };

  explicit HistoryModel(bool ordered) : ordered_(ordered), versions_(1) {}

  keyfold::Version latest() const { return versions_.size() - 1; }
  keyfold::Version oldest() const { return oldest_; }
  const State& present() const { return versions_.back().rows; }
  const Version& at(keyfold::Version version) const { return versions_[version]; }
  Version& newest() { return versions_.back(); }
  const std::map<std::string, keyfold::Version>& tags() const { return tags_; }

  bool in_sequence(keyfold::Version version) const { return version >= oldest_ && version <= latest(); }
  bool readable(keyfold::Version version) const { return in_sequence(version) || pinned_.contains(version); }
  Outcome reading(keyfold::Version version) const {
    if (version > latest()) return Outcome::not_found;
    return readable(version) ? Outcome::done : Outcome::expired;
  }

  /// The version of a time, and whether it can be read. After an expiry a tagged version is known to have
  /// been current at its own time only, unless the commit that followed it is still known, too.
  std::pair<Outcome, keyfold::Version> at_time(keyfold::Timestamp time) const {
    keyfold::Version found = 0;
    for (keyfold::Version v = 1; v <= latest() && versions_[v].time <= time; ++v) found = v;
    if (found == 0) return {Outcome::not_found, 0};
    const bool alone = found < latest() && !readable(found + 1);
    if (!readable(found) || (alone && versions_[found].time != time)) return {Outcome::expired, found};
    return {Outcome::done, found};
  }

  /// Makes the next version, if the rows would be legal. Without changes there is one only if the write says
  /// something.
  Outcome commit(const ItemChanges& changes, keyfold::Timestamp now, bool says_something) {
    State next = applied(changes);
    if (!legal(next)) return Outcome::illegal;
    if (changes.empty() && !says_something) return Outcome::done;
    const auto earliest = versions_.back().time + keyfold::Timestamp::duration(1);
    const auto time = latest() == 0 ? now : std::max(now, earliest);
    versions_.push_back({std::move(next), changes, time});
    return Outcome::done;
  }

  // --- What writes change, in the order of the write

  /// Later rows of a key win. `erased_group`: that of by-source erases.
  ItemChanges upsert(const State& rows, std::optional<int> erased_group = {}) const {
    ItemChanges out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool superseded = std::any_of(rows.begin() + static_cast<std::ptrdiff_t>(i) + 1, rows.end(),
                                          [&](const Item& later) { return later.id == rows[i].id; });
      if (superseded) continue;
      const Item* present_row = find_item(present(), rows[i].id);
      if (present_row == nullptr) {
        out.push_back({{}, rows[i]});
      } else if (*present_row != rows[i]) {
        out.push_back({*present_row, rows[i]});
      }
    }
    for (const Item& row : present()) {
      if (row.group == erased_group && find_item(rows, row.id) == nullptr) out.push_back({row, {}});
    }
    return out;
  }

  /// Gives the rows of a group new keys.
  template <class NewKey>
  ItemChanges rekey(int group, NewKey new_key) const {
    ItemChanges out;
    for (const Item& row : present()) {
      Item after = row;
      after.id = new_key(row.id);
      if (row.group == group && after != row) out.push_back({row, after});
    }
    return out;
  }

  ItemChanges erase(int id) const {
    const Item* row = find_item(present(), id);
    return row == nullptr ? ItemChanges{} : ItemChanges{{*row, {}}};
  }

  ItemChanges clear() const {
    ItemChanges out;
    for (const Item& row : present()) out.push_back({row, {}});
    return out;
  }

  ItemChanges insert(const State& rows) const {
    ItemChanges out;
    for (const Item& row : rows) out.push_back({{}, row});
    return out;
  }

  /// By key; rows that come back stand at the end, in the order they had.
  ItemChanges restore(keyfold::Version version) const {
    ItemChanges out;
    const State& then = versions_[version].rows;
    for (const Item& row : present()) {
      const Item* old = find_item(then, row.id);
      if (old == nullptr) out.push_back({row, {}});
      if (old != nullptr && *old != row) out.push_back({row, *old});
    }
    for (const Item& row : then) {
      if (find_item(present(), row.id) == nullptr) out.push_back({{}, row});
    }
    return out;
  }

  ItemChanges undo(keyfold::Version version) const {
    ItemChanges out;
    for (const auto& [before, after] : versions_[version].changes) out.push_back({after, before});
    return out;
  }

  /// The keys that a version has touched, and a later one, too.
  std::set<int> overtaken(keyfold::Version version) const {
    std::set<int> out;
    const auto add_if_touched = [&](const auto& row) {
      if (!row) return;
      for (keyfold::Version v = version + 1; v <= latest(); ++v) {
        if (std::ranges::any_of(versions_[v].changes,
                                [&](const ItemChange& later) { return later.touches(row->id); })) {
          out.insert(row->id);
        }
      }
    };
    for (const ItemChange& change : versions_[version].changes) {
      add_if_touched(change.before);
      add_if_touched(change.after);
    }
    return out;
  }

  // --- Tags and expiry

  Outcome tag(const std::string& name, keyfold::Version version) {
    if (const Outcome read = reading(version); read != Outcome::done) return read;
    return tags_.try_emplace(name, version).first->second == version ? Outcome::done : Outcome::tag_exists;
  }
  Outcome untag(const std::string& name) {
    return tags_.erase(name) == 1 ? Outcome::done : Outcome::tag_not_found;
  }

  keyfold::Version first_of_last(std::size_t count) const {
    return latest() < count ? 0 : latest() + 1 - count;
  }
  keyfold::Version first_not_before(keyfold::Timestamp time) const {
    keyfold::Version first = 0;
    for (keyfold::Version v = 1; v <= latest() && versions_[v].time < time; ++v)
      first = std::min(v + 1, latest());
    return first;
  }

  /// Returns the versions that go.
  std::vector<keyfold::Version> expire(keyfold::Version first) {
    first = std::max(first, oldest_);
    std::vector<keyfold::Version> gone;
    std::set<keyfold::Version> pinned;
    for (keyfold::Version v = 0; v < first; ++v) {
      if (!readable(v)) continue;
      tagged(v) ? static_cast<void>(pinned.insert(v)) : gone.push_back(v);
    }
    pinned_ = std::move(pinned);
    oldest_ = first;
    return gone;
  }

 private:
  bool tagged(keyfold::Version version) const {
    return std::ranges::any_of(tags_, [&](const auto& tag) { return tag.second == version; });
  }

  State applied(const ItemChanges& changes) const {
    std::vector<std::optional<Item>> slots(present().begin(), present().end());
    State arrivals;
    for (const auto& [before, after] : changes) {
      if (!before) {
        arrivals.push_back(*after);
        continue;
      }
      const auto at = std::ranges::find(present(), before->id, &Item::id) - present().begin();
      slots[static_cast<std::size_t>(at)] = after;
    }
    State out;
    for (const auto& slot : slots) {
      if (slot) out.push_back(*slot);
    }
    out.insert(out.end(), arrivals.begin(), arrivals.end());
    if (ordered_) std::ranges::stable_sort(out, {}, &Item::id);
    return out;
  }

  static bool legal(const State& rows) {
    std::set<int> keys;
    std::set<int> codes;
    return std::ranges::all_of(rows, [&](const Item& row) {
      return keys.insert(row.id).second && (!row.code || codes.insert(*row.code).second);
    });
  }

  bool ordered_;
  std::vector<Version> versions_;
  std::map<std::string, keyfold::Version> tags_;
  std::set<keyfold::Version> pinned_;
  keyfold::Version oldest_ = 0;
};

}  // namespace keyfold_test
