// Faults in time travel, and in what follows a commit.
#include "support/fault_history_cases.hpp"

using namespace keyfold_test;

namespace {

template <class Table>
void check() {
  using Cases = FaultHistoryCases<Table>;
  check_cases(Cases::writes());
  check_cases(Cases::bookkeeping());
  check_cases(Cases::reads());
  check_cases(Cases::subscribers());
  check_cases(Cases::after_the_commit());
}

}  // namespace

TEST_CASE("a fault in the history of a table with secondary indexes changes nothing") {
  check<IndexedTable<Plain>>();
}

TEST_CASE("a fault in the history of a table with an ordered key changes nothing") {
  check<OrderedTable<std::string>>();
}

TEST_CASE("a fault in the history of a table of rows that may fail to move changes nothing") {
  check<HashedTable<ThrowingMoves>>();
}
