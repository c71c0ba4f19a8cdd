// expect: keyfold: JSON does not know the type of this column; specialise keyfold::csv_value for it
#include <keyfold/json.hpp>

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

void write(std::ostream& stream) { keyfold::write_json(stream, std::vector<Price>()); }
