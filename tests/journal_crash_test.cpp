// Power cuts, kills and disk errors at every operation of a journal, recovery included. Nothing promised may
// be lost, nothing may be there that was not committed, and no accident may be taken for damage.
// optimised
#include <iostream>

#include "support/catch.hpp"
#include "support/journal_program.hpp"
#include "support/property.hpp"

using namespace keyfold_test;

TEST_CASE("no acknowledged commit is lost, whatever happens at whichever operation") {
  const Lives lives = run_lives(1, wanted("KEYFOLD_POWER_CUTS", 500'000));
  std::cout << "journal: " << lives.power_cuts << " cuts of power in " << lives.lives << " lives, "
            << (lives.wrong.empty() ? "none" : "the last one") << " wrong\n";
  CHECK(lives.wrong == "");
}
