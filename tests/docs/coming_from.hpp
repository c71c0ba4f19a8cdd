// What the cells of docs/coming-from.md run on; coming_from.sh makes the program.
#pragma once

#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>
#include <keyfold/snapshot.hpp>

#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

// A cell shows what is written, not what is done with the result.
#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Wunused-value"

inline int failures = 0;

inline void run(const char* place, void (*cell)()) {
  try {
    cell();
  } catch (const std::exception& error) {
    ++failures;
    std::cout << place << ": " << error.what() << '\n';
  }
}
