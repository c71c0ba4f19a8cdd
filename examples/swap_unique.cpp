// Uniqueness is judged by the table as it is after the whole merge: values may be swapped, passed on and reused.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <iostream>
#include <optional>
#include <string>

struct Passenger {
  int id = 0;
  std::string name;
  std::optional<std::string> seat;  // without a seat: exempt from the constraint
};
BOOST_DESCRIBE_STRUCT(Passenger, (), (id, name, seat))

int main() {
  kf::Table<Passenger, kf::Key<&Passenger::id>, kf::UniqueBy<&Passenger::seat>> passengers;
  passengers.append({{1, "Ann", "12A"}, {2, "Bo", "12B"}, {3, "Cid", std::nullopt}, {4, "Di", std::nullopt}});

  // Ann and Bo swap seats: row by row there would be two on 12B for a moment.
  const auto swapped = passengers.upsert({{1, "Ann", "12B"}, {2, "Bo", "12A"}});
  std::cout << kf::print(swapped.changes());

  // Ann gives up her seat, and Cid takes it.
  const auto passed_on = passengers.upsert({{3, "Cid", "12B"}, {1, "Ann", std::nullopt}});
  std::cout << kf::print(passed_on.changes());

  // Keys may be swapped, too: the row keeps its place, and both are updates.
  struct Renumber {
    int from, to;
  };
  const std::vector<Renumber> renumber{{1, 2}, {2, 1}};
  const auto renumbered = passengers.merge(renumber)
                              .on<&Renumber::from>()
                              .when_matched().update(kf::target<&Passenger::id> = kf::source<&Renumber::to>)
                              .execute();
  std::cout << kf::print(renumbered.changes());

  // Di wants a seat that stays taken: nothing happens, and the error tells who has it.
  try {
    passengers.upsert({{4, "Di", "12A"}, {5, "Eve", "14C"}});
  } catch (const kf::UniqueViolation& error) {
    std::cout << error.what() << '\n';
  }
  std::cout << kf::print(passengers) << "seat 12B: " << passengers.by<&Passenger::seat>().find("12B")->name << '\n';
}
