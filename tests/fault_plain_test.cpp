// Faults in operations on rows whose copies, but not moves, may throw.
#include "support/fault_cases.hpp"

using namespace keyfold_test;

using Value = Plain;

TEST_CASE("a fault in a table with a hashed key changes nothing") { FaultCases<HashedTable<Value>>::check(); }

TEST_CASE("a fault in a table with an ordered key changes nothing") {
  FaultCases<OrderedTable<Value>>::check();
}

TEST_CASE("a fault in a table with secondary indexes changes nothing") {
  using Cases = FaultCases<IndexedTable<Value>>;
  Cases::check();
  check_cases(Cases::secondary_indexes());
  check_injected({Event::default_construct, Event::copy_construct, Event::copy_assign, Event::hash,
                  Event::equal, Event::less, Event::call, Event::iterate, Event::allocate});
}
