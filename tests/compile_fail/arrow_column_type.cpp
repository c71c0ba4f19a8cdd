// expect: keyfold: Arrow has no type for this column; leave it out, or give its type a keyfold::csv_value to export it as text
#include <keyfold/arrow.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <string>
#include <vector>

struct Price {
  std::string sku;
#ifdef KEYFOLD_MISTAKE
  std::chrono::steady_clock::time_point at;
#else
  std::chrono::system_clock::duration at{};
#endif
};
BOOST_DESCRIBE_STRUCT(Price, (), (sku, at))

void give(const std::vector<Price>& prices, ArrowArray* array) { keyfold::export_arrow(prices, array); }
