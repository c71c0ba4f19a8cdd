// Power cuts, kills and disk errors at every operation of a journal, recovery included. Nothing promised may
// be lost, nothing may be there that was not committed, and no accident may be taken for damage.
#include <cstdlib>
#include <iostream>

#include "support/catch.hpp"
#include "support/journal_program.hpp"
#include "support/property.hpp"

using namespace keyfold_test;

namespace {

// KEYFOLD_POWER_CUTS sets the number; KEYFOLD_TEST_SCALE scales what is tested without.
std::size_t wanted_power_cuts() {
  if (const char* const text = std::getenv("KEYFOLD_POWER_CUTS")) return std::strtoull(text, nullptr, 10);
  return static_cast<std::size_t>(scaled(500'000));
}

}  // namespace

TEST_CASE("no acknowledged commit is lost, whatever happens at whichever operation") {
  const Lives lives = run_lives(1, wanted_power_cuts());
  std::cout << "journal: " << lives.power_cuts << " cuts of power in " << lives.lives << " lives, "
            << (lives.wrong.empty() ? "none" : "the last one") << " wrong\n";
  CHECK(lives.wrong == "");
}
