// expect: keyfold: CSV does not know the type of this column; specialise keyfold::csv_value for it
#include <keyfold/csv.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <sstream>
#include <string>

struct Price {
  std::string sku;
#ifdef KEYFOLD_MISTAKE
  std::chrono::steady_clock::time_point at;
#else
  std::chrono::system_clock::duration at{};
#endif
};
BOOST_DESCRIBE_STRUCT(Price, (), (sku, at))

auto prices(std::istream& stream) { return keyfold::read_csv<Price>(stream); }
