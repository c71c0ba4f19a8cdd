// A merge whose condition and assignments are expressions, beside the same one with lambdas.
#include <cstddef>
#include <cstdint>

#include "engines.hpp"
#include "keyfold_bench/options.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rows.hpp"
#include "rules.hpp"

namespace keyfold_bench {
namespace {

template <class Newer, class... Assignments>
std::int64_t merge_all(TableOf<Payment>& table, const Batches<Payment>& batches, Newer newer,
                       Assignments... assignments) {
  std::size_t affected = 0;
  for (const auto& batch : batches) {
    affected += affected_by(table.merge(batch)
                                .when_matched(newer)
                                .update(assignments...)
                                .when_not_matched()
                                .insert_all()
                                .execute());
  }
  return static_cast<std::int64_t>(affected);
}

void conditions(benchmark::State& state, const Options& options) {
  constexpr std::size_t batch_size = 1000;
  const std::size_t count = std::max<std::size_t>(1, options.round_rows / batch_size);
  Workload<Payment> workload(options.rows);
  Batches<Payment> batches;
  TableOf<Payment> one;
  TableOf<Payment> other;
  one.append(workload.table());
  other.append(workload.table());

  const std::size_t rows = count * batch_size;
  const auto affected = static_cast<std::int64_t>(rows / 10 * 9);
  Contest contest(Rehearse::no, options.only);
  contest.enter("expression", rows, affected, [&] {
    return merge_all(one, batches, as_expression::newer, as_expression::time, as_expression::amount);
  });
  contest.enter("lambda", rows, affected, [&] {
    return merge_all(other, batches, as_lambda::newer, as_lambda::time, as_lambda::amount);
  });
  run(state, contest, [&] { batches = workload.next_batches(count, batch_size); });
  report_ratios(state, contest);
}

}  // namespace

void register_conditions(const Options& options) {
  add(options, "condition/" + label<Payment>(options), options.rounds, conditions);
}

}  // namespace keyfold_bench
