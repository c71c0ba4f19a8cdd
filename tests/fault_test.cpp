// That the fault tests would notice: operations that are broken on purpose, each of which they must catch.
#include "support/fault_cases.hpp"

using namespace keyfold_test;

namespace {

using Table = IndexedTable<Plain>;
using Row = Table::Row;
using Place = World<Table>;

FaultReport report_on(FaultCheck<Table>::Operation operation) {
  return FaultCheck<Table>(&FaultCases<Table>::few_rows, std::move(operation)).run();
}

bool found(const FaultReport& report, const std::string& text) {
  const auto says_so = [&](const std::string& failure) { return failure.find(text) != std::string::npos; };
  return std::ranges::any_of(report.failures, says_so);
}

std::string done() { return "done"; }
void happen() { Faults::happen(Event::call); }
Row row_of(const Numbers& numbers) { return item_of<Plain>(numbers); }

// Rows are const to users of a table; only a broken operation would do this.
Row& writable(Place& place, int id) { return const_cast<Row&>(place.table.at(Plain(id))); }

}  // namespace

TEST_CASE("a sound operation has no failures") {
  const FaultReport report = report_on([](Place& place) {
    place.table.insert(row_of({110, 210, 1, 1, 1}));
    return done();
  });
  CHECK(report.failures.empty());
  CHECK(report.events > 5);
  CHECK(report.thrown == 2 * report.events);
}

TEST_CASE("two commits in the place of one are caught") {
  const FaultReport report = report_on([](Place& place) {
    place.table.erase(Plain(20));
    place.table.insert(row_of({20, 120, 1, 1, 1}));
    return done();
  });
  CHECK(found(report, "the table has other rows than before"));
  CHECK(found(report, "the table has another version than before"));
  CHECK(found(report, "the table has another history than before"));
}

TEST_CASE("a write to the other table is caught") {
  const FaultReport report = report_on([](Place& place) {
    place.other.insert(row_of({1, 1, 1, 1, 1}));
    place.table.insert(row_of({110, 210, 1, 1, 1}));
    return done();
  });
  CHECK(found(report, "the other table has other rows than before"));
}

TEST_CASE("a row written in place before the fault is caught") {
  const FaultReport report = report_on([](Place& place) {
    Plain& amount = writable(place, 10).amount;
    const int before = amount.get();
    amount = Plain(77);
    happen();
    amount = Plain(before);
    return done();
  });
  CHECK(found(report, "the table has other rows than before"));
}

TEST_CASE("a stale index is caught") {
  const FaultReport report = report_on([](Place& place) {
    writable(place, 10).group = Plain(2);
    happen();
    return done();
  });
  CHECK(found(report, "index 1 does not find what a scan finds"));
}

TEST_CASE("a stale key is caught") {
  const FaultReport report = report_on([](Place& place) {
    writable(place, 10).id = Plain(11);
    happen();
    return done();
  });
  CHECK(found(report, "find() does not find a row of the table"));
}

TEST_CASE("a stale order is caught") {
  const FaultReport report = report_on([](Place& place) {
    writable(place, 10).rank = Plain(1);
    happen();
    return done();
  });
  CHECK(found(report, "index 0 is out of order"));
}

TEST_CASE("a broken unique index is caught") {
  const FaultReport report = report_on([](Place& place) {
    writable(place, 10).code = Plain(120);
    happen();
    return done();
  });
  CHECK(found(report, "index 2 holds a value twice"));
}

TEST_CASE("rows that moved elsewhere are caught") {
  const FaultReport report = report_on([](Place& place) {
    place.table = Table(place.table);
    happen();
    return done();
  });
  CHECK(found(report, "the table has rows elsewhere"));
}

TEST_CASE("a fault that is swallowed is caught") {
  const FaultReport report = report_on([](Place& place) {
    try {
      place.table.insert(row_of({110, 210, 1, 1, 1}));
    } catch (const InjectedFault&) {
      return std::string("gave up");
    }
    return done();
  });
  CHECK(found(report, "came to 'gave up' instead of 'done'"));
  CHECK(found(report, "the table differs from that of a clean run"));
}

TEST_CASE("a second try that does not end as a clean run is caught") {
  int tries = 0;
  const FaultReport report = report_on([&](Place& place) {
    place.table.insert(row_of({110 + ++tries, 210, 1, 1, 1}));
    return done();
  });
  CHECK(found(report, "the table differs from that of a clean run"));
}

TEST_CASE("leaked memory is caught") {
  std::vector<std::unique_ptr<int>> leaked;
  leaked.reserve(10'000);
  const FaultReport report = report_on([&](Place&) {
    leaked.push_back(std::make_unique<int>(1));
    happen();
    return done();
  });
  CHECK(found(report, "memory leaked"));
}

TEST_CASE("leaked values and dead values are caught") {
  struct Buffer {
    alignas(Plain) std::byte bytes[sizeof(Plain)]{};
    Plain* value = nullptr;
  };
  std::vector<Buffer> leaked;
  leaked.reserve(10'000);
  const FaultReport leak = report_on([&](Place&) {
    Buffer& buffer = leaked.emplace_back();
    buffer.value = ::new (buffer.bytes) Plain(1);
    happen();
    return done();
  });
  CHECK(found(leak, "values leaked"));
  for (Buffer& buffer : leaked) std::destroy_at(buffer.value);

  const FaultReport dead = report_on([&](Place&) {
    happen();
    leaked.front().value->get();
    return done();
  });
  CHECK(found(dead, "a value was used that does not live"));
}

TEST_CASE("single faults and faults from then on differ") {
  Faults::arm(2, FaultMode::single);
  CHECK_FALSE(Faults::fails(Event::call));
  CHECK(Faults::fails(Event::call));
  CHECK_FALSE(Faults::fails(Event::call));
  CHECK(Faults::disarm() == 3);
  Faults::arm(2, FaultMode::from_then_on);
  CHECK_FALSE(Faults::fails(Event::call));
  CHECK(Faults::fails(Event::call));
  CHECK(Faults::fails(Event::call));
  CHECK(Faults::disarm() == 3);
}

TEST_CASE("every form of operator new can fail") {
  const auto fails = [](auto make) {
    Faults::arm(1, FaultMode::single);
    bool thrown = false;
    try {
      thrown = make() == nullptr;
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    Faults::disarm();
    return thrown;
  };
  struct alignas(64) Wide {
    char bytes[64];
  };
  CHECK(fails([] { return new int; }));
  CHECK(fails([] { return new int[4]; }));
  CHECK(fails([] { return new Wide; }));
  CHECK(fails([] { return new Wide[4]; }));
  CHECK(fails([] { return new (std::nothrow) int; }));
  CHECK(fails([] { return new (std::nothrow) int[4]; }));
  CHECK(fails([] { return new (std::nothrow) Wide; }));
  CHECK(fails([] { return new (std::nothrow) Wide[4]; }));
}
