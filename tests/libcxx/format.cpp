// The formatters for std::format, and that the library can be used with libc++.
#include <cstdlib>
#include <iostream>

static int failures = 0;
#define CHECK(...)                                                            \
  if (!(__VA_ARGS__)) {                                                       \
    std::cout << __FILE__ << ':' << __LINE__ << ": " << #__VA_ARGS__ << '\n'; \
    ++failures;                                                               \
  }

#include "support/format_cases.hpp"

int main() {
  keyfold_test::check_formats([](const char* pattern, const auto& value) {
    return std::vformat(pattern, std::make_format_args(value));
  });
  CHECK(std::format("{}", keyfold_test::Tea{1, "a", {}}) == "(id: 1, name: 'a', price: NULL)");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
