// A replica: another table, with an index of its own, that applies the changes of every commit. One that was
// away catches up from the feed; one that was written to elsewhere says what does not fit.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <string>

struct Account {
  int id = 0;
  std::string owner;
  int balance = 0;
  bool operator==(const Account&) const = default;
};
BOOST_DESCRIBE_STRUCT(Account, (), (id, owner, balance))

using Accounts = kf::Table<Account, kf::Key<&Account::id>>;
using Replica =
    kf::Table<Account, kf::OrderedKey<&Account::id>, kf::OrderedBy<&Account::owner, &Account::id>>;

int main() {
  Accounts accounts;
  Replica replica;
  kf::Subscription live =
      accounts.subscribe([&](const kf::Commit<Account>& commit) { replica.apply(commit.changes()); });
  accounts.append({{3, "Cid", 30}, {1, "Ann", 10}, {2, "Bo", 20}});
  accounts.upsert({{1, "Ann", 11}, {4, "Ann", 40}});
  std::cout << "the replica at version " << replica.version() << ":\n" << kf::print(replica);
  std::cout << "of Ann:\n"
            << kf::print(replica.by<&Account::owner, &Account::id>().equal_range("Ann")) << '\n';

  // Away for three commits: their net effect is one change set.
  live.reset();
  const kf::Version seen = accounts.version();
  accounts.upsert({{1, "Ann", 12}, {5, "Di", 50}});
  accounts.erase(5);
  accounts.upsert({{1, "Ann", 13}, {2, "Bo", 22}});
  std::cout << accounts.changes(seen).size() << " changes missed, net "
            << accounts.diff(seen, accounts.version()).size() << ":\n"
            << kf::print(replica.apply(accounts.diff(seen, accounts.version())).changes());

  // Somebody writes to the replica: what no longer fits is refused as a whole, and named.
  replica.upsert({{2, "Bo", 99}, {3, "Cid", 99}});
  const auto changes = accounts.upsert({{1, "Ann", 14}, {2, "Bo", 23}, {3, "Cid", 31}}).changes();
  try {
    replica.apply(changes);
  } catch (const kf::ChangeConflict& conflict) {
    std::cout << "\nconflicting accounts:";
    for (const std::string& key : conflict.keys) std::cout << ' ' << key;
    std::cout << "; Ann still has " << replica.at(1).balance << '\n';
  }
}
