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

template <class Orders>
Orders make_five_versions() {
  Orders orders;
  orders.append({{1, "ann", "open", 500}, {2, "bob", "open", 900}});
  orders.tag("monday", 1);
  orders.upsert({{2, "bob", "paid", 900}});
  orders.upsert({{3, std::nullopt, "open", 120}});
  orders.upsert({{1, "ann", "paid", 500}});
  orders.erase(3);
  return orders;
}

template <class Order>
std::vector<Order> make_some_orders() {
  return {{1, "ann", "sent", 500}, {4, "eve", "open", 10}};
}

inline int failures = 0;

inline void run(const char* place, void (*cell)()) {
  try {
    cell();
  } catch (const std::exception& error) {
    ++failures;
    std::cout << place << ": " << error.what() << '\n';
  }
}
