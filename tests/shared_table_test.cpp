// A table for several threads: what readers see while others write, who waits for whom, and what one thread
// may do within what. The preset tsan runs it under ThreadSanitizer.
#include <keyfold/keyfold.hpp>
#include <keyfold/shared_table.hpp>
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>

#include <boost/describe/class.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/property.hpp"
#include "support/rows.hpp"
#include "support/temporary_directory.hpp"

namespace kf = keyfold;
using keyfold_test::rows_of;
using keyfold_test::scaled;
using namespace std::chrono_literals;

namespace {

struct Account {
  int id = 0;
  std::string owner;
  long cents = 0;
  bool operator==(const Account&) const = default;
};
BOOST_DESCRIBE_STRUCT(Account, (), (id, owner, cents))

using Rows = std::vector<Account>;
using Accounts = kf::Table<Account, kf::Key<&Account::id>, kf::HashedBy<&Account::owner>>;
using Sorted = kf::Table<Account, kf::OrderedKey<&Account::id>>;
using Store = kf::Store<kf::Table<Account, kf::Key<&Account::id>>>;

std::string owner_of(int id) { return "the owner of account " + std::to_string(id); }

Rows accounts(int count, long cents = 100) {
  Rows rows;
  for (int id = 0; id < count; ++id) rows.push_back({id, owner_of(id), cents});
  return rows;
}

long sum_of(const Rows& rows) {
  long sum = 0;
  for (const Account& account : rows) sum += account.cents;
  return sum;
}

/// A thread that is waited for.
class Thread {
 public:
  template <class Work>
  explicit Thread(Work work) : thread_(std::move(work)) {}
  Thread(Thread&&) = default;
  ~Thread() {
    if (thread_.joinable()) thread_.join();
  }
  void join() { thread_.join(); }

 private:
  std::thread thread_;
};

/// Whether a counter stands still for a while. Gives up, and says no, if it never does.
bool comes_to_rest(const std::atomic<int>& counter) {
  int last = -1;
  for (int i = 0; i < 200; ++i) {
    const int now = counter.load();
    if (now == last) return true;
    last = now;
    std::this_thread::sleep_for(100ms);
  }
  return false;
}

}  // namespace

// --- Reading and writing

TEST_CASE("a shared table is read by value, and written to as a table is") {
  kf::SharedTable<Accounts> shared;
  CHECK(shared.version() == 0);
  shared.append(accounts(3));
  CHECK(shared.size() == 3);
  CHECK(shared.find(1) == Account{1, owner_of(1), 100});
  CHECK(shared.find(7) == std::nullopt);

  const auto result = shared.merge(Rows{{1, "a", 1}, {7, "b", 7}})
                          .when_matched()
                          .update_all()
                          .when_not_matched()
                          .insert_all()
                          .execute();
  CHECK(result.version() == 2);
  CHECK(result.metrics().updated == 1);
  CHECK(result.changes().size() == 2);
  CHECK(shared.merge(Rows{{1, "c", 1}}).when_matched().update_all().preview().size() == 1);
  CHECK(shared.find(1)->owner == "a");

  shared.metadata("why").erase(7);
  shared.once("loader", 4).insert({8, "d", 8});
  CHECK(shared.once("loader", 4).insert({9, "e", 9}).already_applied());
  shared.duplicates(kf::keep_last).upsert(Rows{{8, "f", 1}, {8, "g", 2}});
  shared.replace_where(kf::target<&Account::id> == 8, Rows{{8, "h", 3}});
  shared.apply_changes(Rows{{8, "i", 4}}).sequence_by<&Account::cents>().execute();
  CHECK(shared.find(8)->owner == "i");
  const auto count = shared.read([](const Accounts& table) {
    CHECK(table.history()[2].metadata() == "why");
    return table.by<&Account::owner>().equal_range("i").empty() ? 0 : 1;
  });
  CHECK(count == 1);
  const auto undone = shared.write([](Accounts& table) { return table.undo(table.version()).version(); });
  CHECK(undone == 8);
  CHECK(shared.version() == 8);
}

TEST_CASE("a transaction of a shared table is committed when its body is through, and not when it throws") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(2));
  const auto move = [&](long cents, bool fails) {
    return shared.transaction([&](auto& tx) {
      tx.upsert(Account{0, owner_of(0), tx.at(0).cents - cents});
      CHECK(shared.find(0)->cents == 100);
      if (fails) throw std::runtime_error("no");
      tx.upsert(Account{1, owner_of(1), tx.at(1).cents + cents});
    });
  };
  CHECK_THROWS_AS(move(10, true), std::runtime_error);
  CHECK(shared.version() == 1);
  CHECK(move(10, false).version() == 2);
  CHECK(shared.find(0)->cents == 90);
  CHECK(shared.find(1)->cents == 110);
}

TEST_CASE("a write that fails leaves a shared table as it was, and others may go on") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(2));
  CHECK_THROWS_AS(shared.append(accounts(3)), kf::DuplicateKey);
  CHECK_THROWS_AS(shared.write([](Accounts&) { throw std::runtime_error("no"); }), std::runtime_error);
  CHECK_THROWS_AS(shared.read([](const Accounts& table) { return table.at(9).cents; }), kf::KeyNotFound);
  Thread([&] { shared.upsert(Account{2, "c", 0}); }).join();
  CHECK(shared.version() == 2);
}

TEST_CASE("a store can be shared") {
  const keyfold_test::TemporaryDirectory directory;
  {
    kf::SharedTable<Store> shared(Store::open(directory.path / "accounts"));
    shared.append(accounts(3));
    const auto point = shared.read_point();
    shared.transaction([](auto& tx) { tx.erase(1); });
    shared.write([](Store& store) { store.checkpoint(); });
    CHECK(shared.read([](const Store::Table& table) { return table.size(); }) == 2);
    CHECK(point.rows() == accounts(3));
  }
  CHECK(Store::open(directory.path / "accounts").table().version() == 2);
}

// --- Read points

TEST_CASE("a read point goes on reading its version") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(3));
  const auto first = shared.read_point();
  shared.overwrite(Rows{{1, "a", 1}, {5, "b", 5}});
  const auto second = shared.read_point();
  shared.write([](Accounts& table) { table.tag("two", 2); });
  shared.clear();

  CHECK(first.version() == 1);
  CHECK(first.rows() == accounts(3));
  CHECK(first.size() == 3);
  CHECK(first.find(1) == Account{1, owner_of(1), 100});
  CHECK(first.find(5) == std::nullopt);
  CHECK(first.contains(2));
  CHECK(second.at(5).owner == "b");
  CHECK_THROWS_AS(second.at(2), kf::KeyNotFound);
  CHECK(shared.read_point("two").rows() == second.rows());
  CHECK(shared.read_point(kf::Version{0}).empty());
  CHECK(shared.read_point(kf::Timestamp::max()).version() == 3);
  CHECK_THROWS_AS(shared.read_point(kf::Version{4}), kf::VersionNotFound);
  CHECK_THROWS_AS(shared.read_point("three"), kf::TagNotFound);
}

TEST_CASE("what a read point reads does not expire") {
  kf::SharedTable<Accounts> shared;
  for (int i = 1; i <= 5; ++i) shared.upsert(accounts(300, i));
  const auto expire = [&] {
    return shared.write([](Accounts& table) { return table.expire(kf::keep_last(1)); });
  };
  using Versions = std::vector<kf::Version>;

  auto point = std::optional(shared.read_point(kf::Version{3}));
  auto later = std::optional(shared.read_point());
  CHECK(shared.read([](const Accounts& table) { return table.expire(kf::keep_last(1), kf::dry_run); }) ==
        Versions{0, 1, 2});
  CHECK(expire() == Versions{0, 1, 2});
  CHECK(point->rows() == accounts(300, 3));
  std::optional copy = point;
  point.reset();
  CHECK(expire().empty());
  CHECK(copy->rows() == accounts(300, 3));
  copy.reset();
  CHECK(expire() == Versions{3, 4});
  CHECK(later->rows() == accounts(300, 5));
  CHECK_THROWS_AS(shared.read_point(kf::Version{3}), kf::VersionExpired);
}

TEST_CASE("a retention waits for read points") {
  kf::TableOptions options;
  options.retention = kf::keep_last(1);
  kf::SharedTable<Accounts> shared{Accounts(options)};
  shared.append(accounts(300, 1));
  auto point = std::optional(shared.read_point());
  for (int i = 2; i <= 9; ++i) shared.upsert(accounts(300, i));
  CHECK(point->rows() == accounts(300, 1));
  const auto oldest = [&] {
    return shared.read([](const Accounts& table) { return table.history()[0].version(); });
  };
  CHECK(oldest() == 1);
  point.reset();
  shared.upsert(accounts(300, 10));
  CHECK(oldest() == 10);
}

TEST_CASE("what a retention lets go of is freed beside the readers") {
  struct Parcel {
    int id = 0;
    std::shared_ptr<const int> content;
  };
  using Parcels = kf::Table<Parcel, kf::Key<&Parcel::id>>;
  int freed = 0;
  int read = 0;
  kf::TableOptions options;
  options.retention = kf::keep_last(1);
  kf::SharedTable<Parcels> shared{Parcels(options)};
  std::vector<Thread> readers;
  const auto parcel = [&](int number) {
    const auto free = [&](const int* content) {
      delete content;
      if (++freed > 3) return;  // the others go with the table
      std::promise<void> done;
      const auto is_done = done.get_future();
      readers.emplace_back([&shared, promise = std::move(done)]() mutable {
        static_cast<void>(shared.size());
        promise.set_value();
      });
      if (is_done.wait_for(2s) == std::future_status::ready) ++read;
    };
    return Parcel{1, std::shared_ptr<const int>(new int(number), free)};
  };
  for (int i = 1; freed < 3 && i < 20; ++i) shared.upsert(parcel(i));
  CHECK(freed == 3);
  CHECK(read == 3);
}

TEST_CASE("a read point at a tagged version among expired ones keeps everything, its tag gone or not") {
  kf::SharedTable<Accounts> shared;
  for (int i = 1; i <= 5; ++i) shared.upsert(accounts(300, i));
  shared.write([](Accounts& table) {
    table.tag("two", 2);
    table.tag("three", 3);
    table.expire(kf::keep_last(1));
  });
  auto point = std::optional(shared.read_point("two"));
  const auto expire = [&] {
    return shared.write([](Accounts& table) { return table.expire(kf::keep_last(1)); });
  };
  shared.write([](Accounts& table) { table.untag("two"); });
  shared.write([](Accounts& table) { table.untag("three"); });
  shared.upsert(accounts(300, 6));
  CHECK(
      shared.read([](const Accounts& table) { return table.expire(kf::keep_last(1), kf::dry_run); }).empty());
  CHECK(expire().empty());
  CHECK(point->rows() == accounts(300, 2));
  point.reset();
  CHECK(expire() == std::vector<kf::Version>{2, 3, 5});
}

TEST_CASE("a read point says when its table is gone") {
  std::optional<kf::SharedTable<Accounts>> shared(std::in_place);
  shared->append(accounts(3));
  const auto first = shared->read_point();
  shared->write([](Accounts& table) {
    table = Accounts();
    table.append(accounts(2));
  });
  CHECK_THROWS_AS(first.size(), kf::TableGone);
  CHECK_THROWS_AS(first.find(1), kf::TableGone);
  CHECK_THROWS_AS(first.rows(), kf::TableGone);

  shared->upsert(accounts(600));
  const auto second = shared->read_point();
  shared->erase(1);
  shared->write([](Accounts& table) { table.expire(kf::keep_last(1)); });
  CHECK(second.rows() == accounts(600));
  CHECK_THROWS_AS(second.for_each([&](const Account&) { shared.reset(); }), kf::TableGone);
  CHECK_THROWS_AS(second.contains(1), kf::TableGone);
  CHECK(second.version() == 2);
}

TEMPLATE_TEST_CASE("rows are visited in order, and the table may be used meanwhile", "", Accounts, Sorted) {
  kf::SharedTable<TestType> shared;
  shared.append(accounts(1000));
  const auto point = shared.read_point();
  Rows seen;
  point.for_each([&](const Account& account) {
    seen.push_back(account);
    shared.erase(999 - account.id);
    shared.insert({5000 + account.id, "new", 0});
    CHECK(point.contains(999 - account.id));
  });
  CHECK(seen == accounts(1000));
  CHECK(point.rows() == accounts(1000));
  CHECK(shared.size() == 1000);

  int visited = 0;
  CHECK_THROWS_AS(point.for_each([&](const Account&) {
    if (++visited == 700) throw std::runtime_error("enough");
  }),
                  std::runtime_error);
  CHECK(visited == 700);
  shared.clear();
  CHECK(point.rows() == accounts(1000));
}

// --- One thread within another call

TEST_CASE("a reader may read again, and not write") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(3));
  const auto point = shared.read_point();
  shared.read([&](const Accounts& table) {
    CHECK(shared.find(1)->cents == table.at(1).cents);
    CHECK(point.rows().size() == 3);
    CHECK(shared.read([](const Accounts& again) { return again.version(); }) == 1);
    CHECK_THROWS_AS(shared.erase(1), kf::ReentrantWrite);
    CHECK_THROWS_AS(shared.write([](Accounts&) {}), kf::ReentrantWrite);
    kf::SharedTable<Accounts> other;
    other.append(table);
    CHECK(other.size() == 3);
  });
  shared.erase(1);
  CHECK(shared.size() == 2);
}

TEST_CASE("a reader may save the table while a write is planned") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(3));
  std::stringstream file;
  const auto save = [&](const Account&, const Account&) {
    Thread([&] { shared.read([&](const Accounts& table) { kf::save(table, file); }); }).join();
    return true;
  };
  shared.merge(accounts(1, 0)).when_matched(save).erase().execute();
  CHECK(shared.size() == 2);
  CHECK(rows_of(kf::load<Accounts>(file)) == accounts(3));
}

TEST_CASE("a writer that reads may not write within that") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(3));
  shared.transaction([&](auto& tx) {
    shared.read([&](const Accounts& table) {
      const Account& first = table.at(1);
      CHECK_THROWS_AS(shared.erase(1), kf::ReentrantWrite);
      CHECK_THROWS_AS(shared.write([](Accounts& t) { t.clear(); }), kf::ReentrantWrite);
      tx.upsert(Account{1, "later", first.cents});
      CHECK(shared.read([&](const Accounts& again) { return &again.at(1) == &first; }));
    });
  });
  CHECK(shared.version() == 2);
  shared.write([&](Accounts& table) {
    shared.read([&](const Accounts&) { CHECK_THROWS_AS(shared.erase(1), kf::ReentrantWrite); });
    table.erase(2);
    shared.erase(0);
  });
  CHECK(shared.find(1)->owner == "later");
  CHECK(shared.size() == 1);
}

TEST_CASE("a reader that reads again does not wait for a writer that waits for it") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(3));
  std::atomic<int> reads{0};
  std::atomic<bool> written{false};
  std::optional<Thread> writer;
  std::optional<Thread> others;
  shared.read([&](const Accounts&) {
    writer.emplace([&] {
      shared.erase(1);
      written = true;
    });
    others.emplace([&] {
      for (; !written; ++reads) static_cast<void>(shared.size());
    });
    CHECK(comes_to_rest(reads));  // nobody gets in while a writer waits
    CHECK_FALSE(written);
    CHECK(shared.find(1).has_value());
  });
  writer.reset();
  others.reset();
  CHECK_FALSE(shared.find(1).has_value());
}

TEST_CASE("conditions and sources of a write may read the shared table") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(3));
  const auto richer = [&](const Account& target, const Account& source) {
    return source.cents > shared.find(target.id)->cents && shared.version() == 1;
  };
  shared.merge(Rows{{0, "a", 200}, {1, "b", 50}}).when_matched(richer).update_all().execute();
  CHECK(shared.find(0)->owner == "a");
  CHECK(shared.find(1)->owner == owner_of(1));
  const auto writes = [&](const Account&) { return shared.erase(1).committed(); };
  CHECK_THROWS_AS(shared.erase_where(writes), kf::ReentrantWrite);
  shared.write([&](Accounts& table) {
    table.erase(2);
    CHECK(shared.size() == 2);
    shared.insert({7, "c", 0});
  });
  CHECK(shared.version() == 4);
}

TEST_CASE("a subscriber may read the shared table and write to it") {
  kf::SharedTable<Accounts> shared;
  std::vector<kf::Version> told;
  auto subscription = shared.write([&](Accounts& table) {
    return table.subscribe([&](const kf::Commit<Account>& commit) {
      told.push_back(commit.version());
      CHECK(shared.version() >= commit.version());
      CHECK(shared.read_point(commit.version()).size() == commit.version());
      if (commit.version() == 1) shared.insert({77, "answer", 0});
    });
  });
  shared.insert({1, "a", 0});
  CHECK(told == std::vector<kf::Version>{1, 2});
  shared.write([&](Accounts& table) {
    table.insert({2, "b", 0});
    subscription.reset();
  });
  shared.insert({3, "c", 0});
  CHECK(told == std::vector<kf::Version>{1, 2, 3});
}

// --- Several threads

TEST_CASE("a writer does not wait for a scan that is being visited") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(2000));
  const auto point = shared.read_point();
  Rows seen;
  point.for_each([&](const Account& account) {
    seen.push_back(account);
    if (account.id % 100 == 0) Thread([&] { shared.erase(account.id + 50); }).join();
  });
  CHECK(seen == accounts(2000));
  CHECK(shared.version() == 21);
}

TEST_CASE("read points may be read while their table is destroyed") {
  std::optional<kf::SharedTable<Accounts>> shared(std::in_place);
  shared->append(accounts(500));
  const auto point = shared->read_point();
  std::atomic<int> reads{0};
  bool gone = false;
  bool right = true;
  Thread reader([&] {
    try {
      for (;; ++reads) right = right && point.rows().size() == 500;
    } catch (const kf::TableGone&) {
      gone = true;
    }
  });
  while (reads < 10) std::this_thread::yield();
  shared.reset();
  reader.join();
  CHECK(gone);
  CHECK(right);
}

TEST_CASE("what a write has changed may be asked for while its table is replaced") {
  kf::SharedTable<Accounts> shared;
  const auto result = shared.append(accounts(50));
  std::atomic<bool> asks{false};
  bool gone = false;
  std::optional<Thread> asking;
  shared.write([&](Accounts& table) {
    asking.emplace([&] {
      asks = true;
      try {
        static_cast<void>(result.changes());
      } catch (const kf::TableGone&) {
        gone = true;
      }
    });
    while (!asks) std::this_thread::yield();
    std::this_thread::sleep_for(50ms);  // it waits for the table by now
    table = Accounts();
  });
  asking.reset();
  CHECK(gone);
}

TEMPLATE_TEST_CASE("readers never see half a commit", "", Accounts, Sorted) {
  // Transfers by two writers in every way there is; the sum stays.
  constexpr int count = 600;
  constexpr long total = count * 100L;
  kf::TableOptions options;
  options.retention = kf::keep_last(8);
  kf::SharedTable<TestType> shared{TestType(options)};
  shared.append(accounts(count));
  shared.write([](TestType& table) { table.tag("first", 1); });
  std::atomic<int> writers{2};
  std::atomic<int> wrong{0};
  std::atomic<int> scans{0};
  const int commits = scaled(150);

  const auto transfer = [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
    for (int i = 0; i < commits; ++i) {
      if (below(4) == 0) shared.write([&](TestType& table) { table.expire(kf::keep_last(3)); });
      const int from = below(count);
      const int to = (from + 1 + below(count - 1)) % count;
      const auto moved = [&](const Account& target, const Account& source) {
        return Account{target.id, target.owner, target.cents + source.cents};
      };
      if (below(4) == 0) {
        shared.transaction([&](auto& tx) {
          const Account gone = tx.at(from);
          tx.erase(from);
          tx.upsert(Account{to, owner_of(to), tx.at(to).cents + gone.cents});
          tx.insert({from, owner_of(from), 0});
        });
      } else if (below(8) == 0) {
        const auto kept = shared.read_point();  // with the changes that are asked for below
        const Rows rotated = kept.rows();
        const auto result =
            shared.merge(rotated)
                .when_matched()
                .update([&](const Account& target, const Account&) {
                  return Account{(target.id + 1) % count, owner_of((target.id + 1) % count), target.cents};
                })
                .execute();
        if (result.changes().size() != static_cast<std::size_t>(count)) ++wrong;
      } else {
        shared.merge(Rows{{from, "", -7}, {to, "", 7}}).when_matched().update(moved).execute();
      }
    }
    --writers;
  };
  const auto scan = [&] {
    while (writers != 0) {
      const auto point = scans % 2 == 0 ? shared.read_point() : shared.read_point("first");
      const Rows rows = point.rows();
      if (sum_of(rows) != total || rows.size() != point.size()) ++wrong;
      for (int id = 0; id < count; id += 50) {
        const auto row = point.find(id);
        if (!row || std::ranges::find(rows, *row) == rows.end()) ++wrong;
      }
      if (rows != point.rows()) ++wrong;
      ++scans;
    }
  };
  const auto look = [&] {
    while (writers != 0) {
      const bool right = shared.read([](const TestType& table) {
        return sum_of(rows_of(table)) == total && table.size() == count &&
               table.version() == table.history().back().version() &&
               (table.version() == 1 || sum_of(rows_of(table.as_of(table.version() - 1))) == total);
      });
      if (!right) ++wrong;
      const auto found = shared.find(7);
      if (!found || found->owner != owner_of(7)) ++wrong;
    }
  };

  std::vector<Thread> threads;
  threads.emplace_back([&] { transfer(1); });
  threads.emplace_back([&] { transfer(2); });
  threads.emplace_back(scan);
  threads.emplace_back(look);
  threads.clear();
  CHECK(wrong == 0);
  CHECK(scans > 0);
  CHECK(sum_of(shared.read_point().rows()) == total);
}

TEST_CASE("a store is read beside its writer, which takes checkpoints") {
  const keyfold_test::TemporaryDirectory directory;
  kf::StoreOptions options;
  options.durability = kf::durability::buffered;
  options.checkpoint_bytes = 1000;
  kf::SharedTable<Store> shared(Store::open(directory.path / "accounts", options));
  shared.append(accounts(100));
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  Thread reader([&] {
    while (!done) {
      if (sum_of(shared.read_point().rows()) != 10000) ++wrong;
    }
  });
  const int commits = scaled(60);
  for (int i = 0; i < commits; ++i) {
    shared.transaction([&](auto& tx) {
      tx.upsert(Account{i % 100, owner_of(i % 100), tx.at(i % 100).cents - 1});
      tx.upsert(Account{(i + 1) % 100, owner_of((i + 1) % 100), tx.at((i + 1) % 100).cents + 1});
    });
  }
  done = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(shared.write([](Store& store) { return store.verify().version; }) == shared.version());
}

TEST_CASE("neither readers nor writers that come one after the other keep the others out") {
  kf::SharedTable<Accounts> shared;
  shared.append(accounts(10));
  std::atomic<int> writers{2};
  std::atomic<int> reads{0};
  std::vector<Thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) shared.write([](Accounts& table) { table.upsert(Account{1, "a", 1}); });
      while (reads < 100) shared.write([](Accounts& table) { table.upsert(Account{1, "a", 1}); });
      --writers;
    });
    threads.emplace_back([&] {
      for (; writers != 0; ++reads) shared.read([](const Accounts&) { std::this_thread::sleep_for(100us); });
    });
  }
  threads.clear();
  CHECK(reads >= 100);
}

// --- The contract of Table itself

TEST_CASE("all const operations of a table, and the preparation of transactions, may run at once") {
  Accounts table;
  table.require("not negative", kf::target<&Account::cents> >= 0);
  for (int i = 1; i <= 4; ++i) table.upsert(accounts(50 + i, i));
  table.erase_where(kf::target<&Account::id> == 3);
  table.tag("two", 2);
  table.apply_changes(Rows{{60, "a", 1}}).sequence_by<&Account::cents>().execute();
  const Accounts& reads = table;
  const auto last = reads.version();

  const auto everything = [&] {
    std::size_t seen = 0;
    for (const Account& account : reads) seen += static_cast<std::size_t>(account.cents);
    seen += reads.size() + reads.at(1).owner.size() + (reads.find(3) == nullptr ? 1U : 0U);
    seen += reads.by<&Account::owner>().equal_range(owner_of(2)).front().owner.size();
    for (const kf::Version version : {kf::Version{1}, last}) {
      const auto view = reads.as_of(version);
      seen += rows_of(view).size() + view.size() + view.at(2).owner.size() + view.to_table().size();
    }
    seen += reads.as_of("two").size() + reads.as_of(kf::Timestamp::max()).size();
    for (const auto& commit : reads.history())
      seen += commit.changes().size() + commit.parameters().size() + commit.operation().size();
    seen += reads.changes(1).size() + reads.changes(kf::Timestamp{}).size() + reads.diff(1, last).size();
    seen += reads.diff(last, 2).inverse().size() + reads.history_of(3).size();
    seen += reads.memory_usage().total() + reads.tags().size() + reads.constraints().size();
    seen += reads.expire(kf::keep_last(2), kf::dry_run).size() + reads.last_applied("x").value_or(1);
    const Accounts copy = reads;
    Sorted other;
    seen += copy.size() + other.upsert(reads).metrics().inserted;
    auto tx = table.transaction();
    tx.upsert(Account{1, "mine", 1});
    tx.erase(2);
    return seen + rows_of(tx).size();
  };
  const std::size_t expected = everything();
  std::atomic<int> wrong{0};
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        if (everything() != expected) ++wrong;
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
  CHECK(table.version() == last);
}
