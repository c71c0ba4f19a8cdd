// One rule, written with expressions and with lambdas: what keyfold_bench times, and what machine_code
// compiles.
#pragma once

#include <keyfold/keyfold.hpp>

#include "rows.hpp"

namespace keyfold_bench {

namespace as_expression {

inline constexpr auto newer =
    kf::source<&Payment::updated_at> > kf::target<&Payment::updated_at>&& kf::source<&Payment::status> != 9;
inline constexpr auto time = kf::target<&Payment::updated_at> = kf::source<&Payment::updated_at>;
inline constexpr auto amount = kf::target<&Payment::amount> =
    kf::target<&Payment::amount> + kf::source<&Payment::amount>;

}  // namespace as_expression

namespace as_lambda {

inline constexpr auto newer = [](const Payment& target, const Payment& source) {
  return source.updated_at > target.updated_at && source.status != 9;
};
inline constexpr auto time = kf::target<&Payment::updated_at> = [](const Payment&, const Payment& source) {
  return source.updated_at;
};
inline constexpr auto amount = kf::target<&Payment::amount> =
    [](const Payment& target, const Payment& source) { return target.amount + source.amount; };

}  // namespace as_lambda

}  // namespace keyfold_bench
