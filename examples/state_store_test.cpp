// Unit tests of a service whose state is a table. A batch is a test case: what it changes is compared whole,
// and so is what a failed one leaves. Each test begins from a tag, to which the table is restored.
#include <keyfold/keyfold.hpp>

#include <functional>
#include <iostream>
#include <string>
#include <vector>

struct Seat {
  std::string number;
  std::string guest;
  bool operator==(const Seat&) const = default;
};
BOOST_DESCRIBE_STRUCT(Seat, (), (number, guest))

// What is tested: guests take free seats, and one seat each.
class Seats {
 public:
  using Table = kf::Table<Seat, kf::Key<&Seat::number>, kf::UniqueBy<&Seat::guest>>;

  kf::MergeResult<Seat> book(const std::vector<Seat>& wishes) {
    return table.merge(wishes)
        .when_matched().raise("this seat is taken")
        .when_not_matched().insert_all()
        .execute();
  }
  kf::MergeResult<Seat> swap(const std::string& a, const std::string& b) {
    return table.upsert({{a, table.at(b).guest}, {b, table.at(a).guest}});
  }

  Table table;
};

int failures = 0;
void expect(bool holds, const char* what) {
  if (!holds) ++failures;
  std::cout << (holds ? "  ok      " : "  FAILED  ") << what << '\n';
}

template <class Error>
void expect_refused(Seats& seats, const char* what, const std::function<void(Seats&)>& write) {
  const std::vector<Seat> before(seats.table.begin(), seats.table.end());
  try {
    write(seats);
    expect(false, what);
  } catch (const Error&) {
    expect(std::vector<Seat>(seats.table.begin(), seats.table.end()) == before, what);
  }
}

int main() {
  Seats seats;
  seats.book({{"1A", "ann"}, {"1B", "bob"}});
  seats.table.tag("two guests", seats.table.version());
  const auto test = [&](const char* name, const std::function<void()>& body) {
    std::cout << name << '\n';
    seats.table.restore("two guests");
    body();
  };
  using Change = kf::Change<Seat>;

  test("booking", [&] {
    const auto changes = seats.book({{"2A", "eve"}}).changes();
    expect(changes.size() == 1 && changes[0] == Change::insert({"2A", "eve"}),
           "the seat is added, and nothing else");
    expect_refused<kf::ClauseRaised>(seats, "a taken seat",
                                     [](Seats& s) { s.book({{"3A", "joe"}, {"1A", "kim"}}); });
    expect_refused<kf::UniqueViolation>(seats, "a second seat", [](Seats& s) { s.book({{"3A", "ann"}}); });
  });
  test("swapping", [&] {
    expect(seats.table.size() == 2, "the booking of the test before is gone");
    const auto changes = seats.swap("1A", "1B").changes();
    expect(changes[0] == Change::update({"1A", "ann"}, {"1A", "bob"}), "ann's seat is bob's");
    expect_refused<kf::KeyNotFound>(seats, "an empty seat", [](Seats& s) { s.swap("1A", "9Z"); });
  });
  std::cout << (failures == 0 ? "all passed\n" : "some failed\n");
  return failures;
}
