// A table that is written to while it is read, without a SharedTable: ThreadSanitizer must report it, or the
// runs in which it reports nothing prove nothing.
#include <keyfold/keyfold.hpp>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

struct Account {
  int id = 0;
  long cents = 0;
  bool operator==(const Account&) const = default;
};

}  // namespace

int main() {
  kf::Table<Account, kf::Key<&Account::id>> accounts;
  accounts.append({{1, 100}, {2, 200}});
  // Relaxed: it lets them run at once, and orders nothing.
  std::atomic<bool> reading{false};
  long sum = 0;
  std::thread reader([&] {
    for (int i = 0; i < 1000; ++i) {
      sum += accounts.at(1).cents;
      reading.store(true, std::memory_order_relaxed);
    }
  });
  while (!reading.load(std::memory_order_relaxed)) {
  }
  for (long i = 0; i < 100; ++i) accounts.upsert(Account{1, i});
  reader.join();
  std::printf("%d\n", sum != 0);
}
