// The same upserts beside databases. A race of its own, so that their memory traffic does not disturb the
// others.
#include "databases.hpp"

#include "keyfold_bench/options.hpp"
#include "keyfold_bench/race.hpp"

namespace keyfold_bench {
namespace {

template <class Row>
void register_row(const Options& options) {
  add_races<Row>(options, "database", {1, 1000, 100'000}, Mix::mixed, [](Race<Row>& race) {
    race.template enter<TableOf<Row>>("keyfold");
#ifdef KEYFOLD_BENCH_SQLITE
    race.template enter<Sqlite<Row>>("sqlite");
#endif
#ifdef KEYFOLD_BENCH_LMDB
    race.template enter<Lmdb<Row>>("lmdb");
#endif
#ifdef KEYFOLD_BENCH_ROCKSDB
    race.template enter<Rocksdb<Row>>("rocksdb");
#endif
  });
}

}  // namespace

void register_databases(const Options& options) {
  register_row<Payment>(options);
  register_row<Product>(options);
}

}  // namespace keyfold_bench
