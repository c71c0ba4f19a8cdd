// All or nothing: whatever throws, the table, its indexes, its history and its version are as before.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

struct Account {
  std::string iban;
  long cents = 0;
};
BOOST_DESCRIBE_STRUCT(Account, (), (iban, cents))

struct Booking {
  std::string iban;
  long cents = 0;
};
BOOST_DESCRIBE_STRUCT(Booking, (), (iban, cents))

// Any callable may be a value; this one refuses an overdraft in the middle of a batch.
long book(const Account& account, const Booking& booking) {
  if (account.cents + booking.cents < 0) throw std::domain_error("overdraft of " + account.iban);
  return account.cents + booking.cents;
}

int main() {
  kf::Table<Account, kf::Key<&Account::iban>, kf::OrderedBy<&Account::cents>> accounts;
  accounts.append({{"NO01", 500}, {"NO02", 100}, {"NO03", 0}});

  const auto post = [&](const std::vector<Booking>& bookings) {
    try {
      const auto result = accounts.merge(bookings)
                              .when_matched().update(kf::target<&Account::cents> = kf::named("book", book))
                              .when_not_matched().raise("no such account")
                              .execute();
      std::cout << "posted: " << result.metrics() << '\n';
    } catch (const std::exception& error) {
      std::cout << "nothing posted: " << error.what() << '\n';
    }
  };

  post({{"NO01", -200}, {"NO03", 250}, {"NO02", -100}});
  post({{"NO01", -100}, {"NO03", 300}, {"NO02", -200}});  // the last row fails
  post({{"NO01", -100}, {"NO04", 100}});                  // and so does this
  post({{"NO01", -100}, {"NO03", 50}, {"NO01", 25}});     // two bookings for one account

  std::cout << "version " << accounts.version() << ", " << accounts.history().size() << " commits\n"
            << kf::print(accounts.by<&Account::cents>());
}
