// A change feed with an operation on each row: clauses are tried in order, and the first that holds acts.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include <iostream>
#include <string>
#include <vector>

enum class Op { insert, update, remove };
BOOST_DESCRIBE_ENUM(Op, insert, update, remove)

struct Account {
  int id = 0;
  std::string owner;
  long balance = 0;
};
BOOST_DESCRIBE_STRUCT(Account, (), (id, owner, balance))

struct Event {
  Op op = Op::insert;
  int id = 0;
  std::string owner;
  long balance = 0;
};
BOOST_DESCRIBE_STRUCT(Event, (), (op, id, owner, balance))

int main() {
  kf::Table<Account, kf::Key<&Account::id>> accounts;
  accounts.append({{1, "Ann", 100}, {2, "Bo", 0}, {3, "Cid", 70}});

  const std::vector<Event> events{{Op::update, 1, "Ann", 120},
                                  {Op::remove, 2, "", 0},
                                  {Op::remove, 3, "", 0},  // has money in it: kept
                                  {Op::remove, 9, "", 0},  // is not there, and must not be inserted
                                  {Op::insert, 4, "Di", 5}};
  const auto result = accounts.merge(events)
                          .when_matched(kf::source<&Event::op> == Op::remove && kf::target<&Account::balance> > 0)
                              .do_nothing()
                          .when_matched(kf::source<&Event::op> == Op::remove)
                              .erase()
                          .when_matched()
                              .update_all()  // the columns that both have by name
                          .when_not_matched(kf::source<&Event::op> != Op::remove)
                              .insert_all()
                          .execute();
  std::cout << result.metrics() << '\n' << kf::print(result.changes()) << '\n' << kf::print(accounts);
}
