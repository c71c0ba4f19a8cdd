// Faults in the verbs that load, and in constraints.
#include "support/fault_load_cases.hpp"

using namespace keyfold_test;

TEST_CASE("a fault in a load of a table with a hashed key changes nothing") {
  FaultLoadCases<HashedTable<ThrowingMoves>>::check();
}

TEST_CASE("a fault in a load of a table with an ordered key changes nothing") {
  FaultLoadCases<OrderedTable<std::string>>::check();
}

TEST_CASE("a fault in a load of a table with secondary indexes changes nothing") {
  FaultLoadCases<IndexedTable<Plain>>::check();
}
