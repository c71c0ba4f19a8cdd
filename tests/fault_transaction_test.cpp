// Faults in transactions: in each of their writes, in what they read, and in the commit.
#include <stdexcept>

#include "support/fault_history_cases.hpp"

using namespace keyfold_test;

namespace {

template <class TableType>
class TransactionCases : public FaultHistoryCases<TableType> {
 public:
  using Base = FaultHistoryCases<TableType>;
  using Table = TableType;
  using typename Base::Place;
  using typename Base::Row;
  using typename Base::Rows;
  using typename Base::Value;
  using Transaction = kf::Transaction<Table>;

  static std::vector<FaultCase> all() {
    return {
        Base::on(
            "a transaction", counts(4, 6, 2, 2, 2, 0, 0), &Base::tagged,
            [](Place& place, const Rows& source) {
              auto tx = place.table.transaction();
              write(tx, source);
              return tx.commit();
            },
            source_rows()),
        Base::on(
            "a transaction once, with metadata", counts(4, 6, 2, 2, 2, 0, 0), &Base::tagged,
            [](Place& place, const Rows& source) {
              auto tx = place.table.once("app", 7).metadata("text beyond the small buffer").transaction();
              write(tx, source);
              tx.once("another application with a long name", 1).erase(value_of<Value>(1000));
              return tx.commit();
            },
            source_rows()),
        Base::on(
            "a transaction whose commit is tried again", counts(4, 6, 2, 2, 2, 0, 0), &Base::tagged,
            [](Place& place, const Rows& source) {
              auto tx = place.table.transaction();
              {
                const FaultPause pause;
                write(tx, source);
              }
              const State before = rows_of_transaction(tx);
              try {
                return tx.commit();
              } catch (const kf::Error&) {
                throw;
              } catch (...) {
                const FaultPause pause;
                require(rows_of_transaction(tx).rows == before.rows, "the commit changed the transaction");
                throw;
              }
            },
            source_rows()),
        Base::on(
            "the preview of a transaction", "previewed 4", &Base::tagged,
            [](Place& place, const Rows& source) {
              auto tx = place.table.transaction();
              tx.upsert(source);
              tx.erase(value_of<Value>(20));
              return Base::said("previewed ", tx.preview().size());
            },
            source_rows()),
        Base::on(
            "reading a transaction", "10 read", &Base::tagged,
            [](Place& place, const Rows& source) {
              auto tx = place.table.transaction();
              tx.append(source);
              std::size_t found = 0;
              for (const Row& row : tx) found += tx.find(row.id) == &row && tx.contains(row.id);
              const FaultPause pause;
              return std::to_string(found) + " read";
            },
            Base::rows({{210, 310, 1, 1, 1}})),
        Base::on(
            "a transaction that violates a key", "DuplicateKey table row 0", &Base::tagged,
            [](Place& place, const Rows& source) {
              auto tx = place.table.transaction();
              tx.insert(item_of<Value>({210, 310, 1, 1, 1}));
              tx.append(source);
              return tx.commit();
            },
            Base::rows({{210, 311, 1, 1, 1}})),
    };
  }

 private:
  static Rows source_rows() {
    return Base::rows({{10, 110, 1, 3, 6}, {110, 210, 1, 1, 1}, {120, 220, 2, 2, 2}});
  }

  static void require(bool holds, const char* text) {
    if (!holds) throw std::logic_error(text);
  }

  static State rows_of_transaction(const Transaction& tx) {
    const FaultPause pause;
    State state;
    for (const auto& row : tx) state.rows.push_back(numbers_of(row));
    return state;
  }

  // Runs a write; if a fault ends it, the transaction must be as it was before.
  template <class Write>
  static void run(Transaction& tx, Write write) {
    const State before = rows_of_transaction(tx);
    try {
      write();
    } catch (...) {
      const State after = rows_of_transaction(tx);
      const FaultPause pause;
      require(after.rows == before.rows, "a write that failed changed the transaction");
      throw;
    }
  }

  // On nine rows: 2 inserted (110 and 120), 2 updated (10, and 30 becomes 35), 2 deleted (40 and 50).
  static void write(Transaction& tx, const Rows& source) {
    run(tx, [&] { tx.upsert(source); });
    run(tx, [&] { tx.erase(value_of<Value>(20)); });
    run(tx, [&] { tx.insert(item_of<Value>({20, 120, 2, 2, 5})); });  // and is back as it was
    run(tx, [&] { tx.erase(value_of<Value>(40)); });
    run(tx, [&] {
      tx.merge(Base::rows({{30, -1, 1, 2, 35}}))
          .when_matched()
          .update(kf::target<&Row::id> = kf::source<&Row::amount>)
          .execute();
    });
    run(tx, [&] {
      tx.merge(Rows())
          .when_not_matched_by_source(kf::target<&Row::id> == value_of<Value>(50))
          .erase()
          .execute();
    });
  }
};

template <class Table>
void check() {
  check_cases(TransactionCases<Table>::all());
}

}  // namespace

TEST_CASE("a fault in a transaction of a table with secondary indexes changes nothing") {
  check<IndexedTable<Plain>>();
}

TEST_CASE("a fault in a transaction of a table with an ordered key changes nothing") {
  check<OrderedTable<std::string>>();
}

TEST_CASE("a fault in a transaction of a table of rows that may fail to move changes nothing") {
  check<HashedTable<ThrowingMoves>>();
}
