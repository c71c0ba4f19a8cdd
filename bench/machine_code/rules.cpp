// The same rule twice, each half a function that `compare` finds by its name.
#include "rules.hpp"

namespace {

using keyfold_bench::Payment;
using Rows = kf::detail::Scope<Payment, Payment>;
constexpr auto matched = kf::detail::ClauseKind::matched;

template <class Assignment>
void assign(Payment& out, const Assignment& assignment, const Payment& target, const Payment& source) {
  kf::detail::run_assignment<matched>(out, assignment, Rows{target, source});
}

}  // namespace

// NOLINTBEGIN(misc-use-internal-linkage)
#define KEYFOLD_BENCH_RULE(form)                                                                \
  extern "C" bool condition_##form(const Payment& target, const Payment& source) {              \
    return kf::detail::holds<matched>(keyfold_bench::as_##form::newer, Rows{target, source});   \
  }                                                                                             \
  extern "C" void copied_##form(Payment& out, const Payment& target, const Payment& source) {   \
    assign(out, keyfold_bench::as_##form::time, target, source);                                \
  }                                                                                             \
  extern "C" void computed_##form(Payment& out, const Payment& target, const Payment& source) { \
    assign(out, keyfold_bench::as_##form::amount, target, source);                              \
  }

KEYFOLD_BENCH_RULE(expression)
KEYFOLD_BENCH_RULE(lambda)

extern "C" bool condition_by_hand(const Payment& target, const Payment& source) {
  return source.updated_at > target.updated_at && source.status != 9;
}
extern "C" void copied_by_hand(Payment& out, const Payment&, const Payment& source) {
  out.updated_at = source.updated_at;
}
extern "C" void computed_by_hand(Payment& out, const Payment& target, const Payment& source) {
  out.amount = target.amount + source.amount;
}
