// A row of five columns. Needs nothing of keyfold.
#pragma once

#include <string>
#include <vector>

struct Order {
  int id = 0;
  std::string customer;
  std::string status;
  double amount = 0;
  int version = 0;
  bool operator==(const Order&) const = default;
};

inline std::vector<Order> changes() { return {{1, "Ann", "open", 9.5, 1}, {1, "Ann", "paid", 9.5, 2}}; }
