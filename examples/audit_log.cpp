// An audit log with undo: who changed what, when, and in whose name it was taken back. The history of the
// table is the log; metadata carries the name.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

struct Limit {
  std::string account;
  int euros = 0;
  std::string approved_by;
};
BOOST_DESCRIBE_STRUCT(Limit, (), (account, euros, approved_by))

using Limits = kf::Table<Limit, kf::Key<&Limit::account>>;

kf::TableOptions from_nine_o_clock() {
  auto time = std::make_shared<kf::Timestamp>(std::chrono::sys_days(std::chrono::year(2026) / 10 / 4) +
                                              std::chrono::hours(8));
  return {.clock = [time] { return *time += std::chrono::hours(1); }};
}

int main() {
  Limits limits(from_nine_o_clock());
  limits.metadata("ann: import").append({{"A-1", 100, "ann"}, {"A-2", 500, "ann"}, {"A-3", 900, "ann"}});
  limits.metadata("bob: raise A-1").upsert(Limit{"A-1", 1000, "bob"});
  limits.metadata("bob: close small ones").erase_where(kf::target<&Limit::euros> < 600);
  limits.metadata("eve: raise A-3").upsert(Limit{"A-3", 950, "eve"});

  std::cout << "Who touched A-1?\n";
  for (const auto& change : limits.history_of("A-1")) {
    const auto commit = limits.history()[change.version() - 1];
    std::cout << "  " << to_string(change.kind()) << " at version " << change.version() << ", "
              << commit.metadata() << '\n';
  }

  std::cout << "\nWhat did bob do since eleven?\n";
  const auto eleven =
      kf::Timestamp(std::chrono::sys_days(std::chrono::year(2026) / 10 / 4)) + std::chrono::hours(11);
  for (const kf::Commit<Limit>& commit : limits.history()) {
    if (commit.timestamp() >= eleven && commit.metadata().starts_with("bob"))
      std::cout << kf::print(commit.changes());
  }

  std::cout << "\nClosing was a mistake: version 3 is taken back, what eve did since stays.\n";
  limits.metadata("ann: undo of version 3").undo(3);
  std::cout << kf::print(limits);

  std::cout << "\nVersion 1 can no longer be taken back alone:\n";
  try {
    limits.metadata("ann: undo of version 1").undo(1);
  } catch (const kf::ChangeConflict& conflict) {
    std::cout << "  changed since:";
    for (const std::string& account : conflict.keys) std::cout << ' ' << account;
    std::cout << '\n';
  }
  std::cout << '\n' << kf::print(limits.history(), kf::max_width(24));
}
