// Random programs of feeds and other writes on a table that is saved and loaded, or kept in a store that is
// opened again, on the way: each write must come to the same as on a table that only ever was in memory, and
// what is remembered must be the same to the last byte.
#pragma once

#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/feeds.hpp"
#include "support/memory_disk.hpp"
#include "support/property.hpp"
#include "support/snapshot_bytes.hpp"

namespace keyfold_test {

namespace kf = keyfold;

// A time that both sides see.
struct SharedClock {
  kf::Timestamp now{};
  kf::TableOptions options() {
    kf::TableOptions out;
    out.clock = [this] { return now; };
    return out;
  }
};

// --- The tables to be compared

template <class Table>
class Reloaded {
 public:
  explicit Reloaded(kf::TableOptions options) : options_(options), table_(options) {}

  Table& target() { return table_; }
  const Table& table() const { return table_; }
  void interrupt(std::mt19937&) { table_ = loaded<Table>(saved(table_), {.table = options_}); }

 private:
  kf::TableOptions options_;
  Table table_;
};

template <class Table>
class Reopened {
 public:
  explicit Reopened(kf::TableOptions options) : options_(std::move(options)) { open(); }

  auto& target() { return *store_; }
  const Table& table() const { return store_->table(); }
  void interrupt(std::mt19937& random) {
    if (random() % 4 == 0) store_->checkpoint();
    if (random() % 2 == 0) store_->close();
    disk_.die();
    store_.reset();
    disk_.kill();
    open();
  }

 private:
  using Store = kf::Store<Table, SharedDisk>;
  void open() {
    store_ = std::make_unique<Store>(SharedDisk{&disk_},
                                     kf::StoreOptions{.table = options_, .checkpoint_bytes = 4000});
  }

  kf::TableOptions options_;
  MemoryDisk disk_;
  std::unique_ptr<Store> store_;  // last: it uses the disk
};

// --- Writes

struct FeedWrite {
  unsigned verb;
  unsigned a;
  std::vector<SparseEvent> events;
};

template <class Row>
std::string outcome_of(const kf::MergeResult<Row>& result) {
  std::string out = result.committed() ? "version" : "no version";
  for (const auto field : kf::detail::metric_fields) out += ' ' + std::to_string(result.metrics().*field);
  return out;
}

template <class Feeds, class Table>
std::string perform(auto& target, const Table& table, const FeedWrite& write) {
  using Row = typename Feeds::Row;
  try {
    switch (write.verb) {
      case 0:
        return outcome_of(target.upsert(Feeds::row(write.a, write.a / 3)));
      case 1:
        return outcome_of(target.erase_where(kf::target<&Row::id> == static_cast<int>(write.a % 3)));
      case 2:
        return outcome_of(target.restore(write.a % (table.version() + 1)));
      case 3: {
        auto transaction = target.transaction();
        std::string out = Feeds::feed(transaction, write.a % Feeds::kinds, write.events);
        transaction.upsert(Feeds::row(write.a, write.a));
        out += Feeds::feed(transaction, write.a / 7 % Feeds::kinds, write.events);
        return out + outcome_of(transaction.commit());
      }
      case 4:
        return outcome_of(target.clear());
      case 5:
        target.expire(kf::keep_last(write.a % 4));
        return {};
      default:
        return Feeds::feed(target, write.a % Feeds::kinds, write.events);
    }
  } catch (const kf::Error& error) {
    return error.what();
  }
}

inline FeedWrite any_write(std::mt19937& random) {
  FeedWrite write{static_cast<unsigned>(random() % 14), static_cast<unsigned>(random() % 1000), {}};
  const std::size_t count = 1 + random() % 4;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = [&] { return random() % 3 == 0 ? std::nullopt : std::optional<int>(random() % 4); };
    const auto kind = random() % 14;
    const char op = kind < 8 ? 'U' : kind < 13 ? 'D' : 'T';
    write.events.push_back(
        {static_cast<int>(random() % 4), op, value(), value(), static_cast<int>(random() % 24)});
  }
  return write;
}

template <class Feeds, class Table, template <class> class Subject>
void check_programs(const std::string& description, int count) {
  check_property(description, count, [&](unsigned seed) {
    std::mt19937 random(seed);
    SharedClock clock;
    Subject<Table> subject(clock.options());
    Table expected(clock.options());
    const std::size_t steps = 1 + random() % 14;
    for (std::size_t step = 0; step < steps; ++step) {
      clock.now += std::chrono::microseconds(random() % 20);
      if (random() % 3 == 0) subject.interrupt(random);
      const FeedWrite write = any_write(random);
      const std::string outcome = perform<Feeds>(expected, expected, write);
      const std::string found = perform<Feeds>(subject.target(), subject.table(), write);
      if (found != outcome)
        RC_FAIL("verb " + std::to_string(write.verb) + " of step " + std::to_string(step) + " comes to '" +
                found + "' and not to '" + outcome + "'\n" + text_of(write.events));
      RC_ASSERT(saved(subject.table()) == saved(expected));
    }
  });
}

}  // namespace keyfold_test
