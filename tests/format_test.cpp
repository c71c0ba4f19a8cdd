#include <keyfold/format.hpp>
#include <keyfold/keyfold.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/format_cases.hpp"

namespace kf = keyfold;
using keyfold_test::Bare;
using keyfold_test::check_formats;
using keyfold_test::Tea;

namespace {

// A row that is a range, which {fmt} would format as such.
struct Pair {
  int first = 0, second = 0;
  const int* begin() const { return &first; }
  const int* end() const { return &second + 1; }
};

}  // namespace

TEST_CASE("format: {fmt} takes what keyfold has") {
  check_formats(
      [](const char* pattern, const auto& value) { return fmt::format(fmt::runtime(pattern), value); });
}

TEST_CASE("format: patterns are checked when they are compiled, and a row can stand among other things") {
  CHECK(fmt::format("{} of {}", Tea{1, "a", {}}, kf::Metrics{}) ==
        "(id: 1, name: 'a', price: NULL) of source_rows=0");
  CHECK(fmt::format("{}", std::vector<Tea>{{1, "a", {}}}) == "[(id: 1, name: 'a', price: NULL)]");
}

TEST_CASE("format: a row is formatted only where its type asks for it") {
  CHECK(fmt::is_formattable<Tea>::value);
  CHECK_FALSE(fmt::is_formattable<Bare>::value);
  CHECK(fmt::format("{}", Pair{1, 2}) == "[1, 2]");
}

#ifdef __cpp_lib_format
TEST_CASE("format: std::format takes what keyfold has") {
  check_formats([](const char* pattern, const auto& value) {
    return std::vformat(pattern, std::make_format_args(value));
  });
  CHECK(std::format("{}", Tea{1, "a", {}}) == "(id: 1, name: 'a', price: NULL)");
}
#endif
