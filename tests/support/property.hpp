// rapidcheck properties inside Catch2 tests (rapidcheck's own <rapidcheck/catch.h> knows one major of Catch2
// only).
#pragma once

#include <rapidcheck.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "support/catch.hpp"

namespace keyfold_test {

// `count` times the environment's KEYFOLD_TEST_SCALE (a factor such as 0.1; absent: 1), at least 1.
inline int scaled(int count) {
  const char* const text = std::getenv("KEYFOLD_TEST_SCALE");
  const double factor = text != nullptr ? std::strtod(text, nullptr) : 1.0;
  const int result = static_cast<int>(count * factor);
  return result < 1 ? 1 : result;
}

// The number in the environment's variable, for long runs; scaled(count) without.
inline std::size_t wanted(const char* variable, int count) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : static_cast<std::size_t>(scaled(count));
}

// Checks `property` on scaled(count) random inputs; fails the running test with the shrunk counterexample
// and the seed. RC_PARAMS="seed=..." reruns one; it may also set every other rapidcheck parameter but the
// count.
template <class Property>
void check_property(const std::string& description, int count, Property&& property) {
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = description;
  auto parameters = rc::detail::configuration().testParams;
  parameters.maxSuccess = scaled(count);
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, parameters);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  INFO(description << ", seed " << parameters.seed << "\n" << message.str());
  REQUIRE(result.template is<rc::detail::SuccessResult>());
}

}  // namespace keyfold_test
