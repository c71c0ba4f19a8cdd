// The verbs that load, and constraints, as the fault tests run them.
#pragma once

#include "support/fault_cases.hpp"

namespace keyfold_test {

template <class TableType>
class FaultLoadCases : public FaultCases<TableType> {
 public:
  using Base = FaultCases<TableType>;
  using Table = TableType;
  using typename Base::Place;
  using typename Base::Row;
  using typename Base::Rows;
  using typename Base::Value;

  static std::vector<FaultCase> replacements() {
    return {
        Base::on_few(
            "overwrite", counts(4, 3, 1, 1, 7, 1, 0),
            [](Place& place, const Rows& source) { return place.table.overwrite(source); }, all_new()),
        Base::on_few(
            "overwrite with rows of its own", counts(4, 3, 1, 1, 7, 1, 0),
            [](Place& place, const Rows& source) { return place.table.overwrite(Base::copy_of(source)); },
            all_new()),
        Base::on_few(
            "overwrite from a single-pass source", counts(4, 3, 1, 1, 7, 1, 0),
            [](Place& place, const Rows& source) { return place.table.overwrite(SinglePass<Row>(source)); },
            all_new()),
        Base::on_few(
            "overwrite with a key twice", "DuplicateSourceKey row 0 row 2",
            [](Place& place, const Rows& source) { return place.table.overwrite(source); },
            rows({{20, 120, 2, 2, 6}, {110, 110, 1, 1, 1}, {20, 120, 2, 2, 7}})),
        Base::on(
            "overwrite while the key index grows", counts(3, 3, 1, 2, 47, 0, 0), &Base::growing,
            [](Place& place, const Rows& source) { return place.table.overwrite(source); },
            rows({{20, 120, 2, 2, 6}, {30, -1, 1, 2, 7}, {110, 110, 1, 1, 1}})),
        Base::on_few(
            "replace_where", counts(4, 2, 1, 1, 2, 0, 0),
            [](Place& place, const Rows& source) {
              return place.table.replace_where(target_group == value_of<Value>(2), source);
            },
            of_group_two()),
        Base::on_few(
            "replace_where of a row outside the condition", "Error",
            [](Place& place, const Rows& source) {
              return place.table.replace_where(target_group == value_of<Value>(2), source);
            },
            rows({{20, 120, 2, 2, 6}, {110, 210, 1, 1, 1}})),
        Base::on_few(
            "replace_where with the key of a row that stays", "DuplicateKey table row 0",
            [](Place& place, const Rows& source) {
              return place.table.replace_where(target_group == value_of<Value>(2), source);
            },
            rows({{10, 110, 2, 3, 5}})),
        Base::on_few(
            "replace_using", counts(4, 2, 1, 1, 2, 0, 0),
            [](Place& place, const Rows& source) {
              return place.table.template replace_using<&Row::group>(source);
            },
            of_group_two()),
        Base::on_few(
            "replace_using by what may be absent", counts(4, 3, 2, 1, 1, 0, 0),
            [](Place& place, const Rows& source) {
              return place.table.template replace_using<&Row::code>(source);
            },
            rows({{10, 110, 1, 3, 6}, {130, 120, 1, 1, 1}, {140, -1, 1, 1, 1}})),
        Base::on_few(
            "replace_using by the key", counts(4, 3, 1, 1, 0, 1, 0),
            [](Place& place, const Rows& source) {
              return place.table.template replace_using<&Row::id>(source);
            },
            rows({{20, 120, 2, 2, 6}, {30, -1, 1, 2, 7}, {110, 210, 1, 1, 1}})),
        Base::on_few(
            "replace_on by hash", counts(4, 2, 1, 1, 1, 0, 0),
            [](Place& place, const Rows& source) {
              return place.table.replace_on(
                  kf::source<&Row::group> == target_group && kf::source<&Row::amount> > target_amount,
                  source);
            },
            rows({{20, 120, 2, 2, 6}, {120, 180, 2, 1, 6}})),
        Base::on_few(
            "replace_on by trying all", counts(4, 2, 1, 1, 2, 0, 0),
            [](Place& place, const Rows& source) {
              return place.table.replace_on(
                  [](const Row& target, const Row& row) { return Base::called(), target.group == row.group; },
                  Base::copy_of(source));
            },
            of_group_two()),
    };
  }

  static std::vector<FaultCase> transactions() {
    return {
        Base::on_few(
            "loads in a transaction", counts(4, 4, 1, 1, 2, 0, 0),
            [](Place& place, const Rows& source) {
              auto transaction = place.table.transaction();
              transaction.replace_where(target_group == value_of<Value>(2), source);
              transaction.template replace_using<&Row::group>(source);
              transaction.replace_on(kf::source<&Row::id> == kf::target<&Row::id>, source);
              return transaction.commit();
            },
            of_group_two()),
    };
  }

  static std::vector<FaultCase> policies() {
    return {
        Base::on_few(
            "overwrite after keep_last", counts(4, 4, 1, 1, 7, 1, 0, 1),
            [](Place& place, const Rows& source) {
              return place.table.duplicates(kf::keep_last).overwrite(source);
            },
            rows({{20, 120, 2, 2, 5}, {20, 120, 2, 2, 6}, {30, -1, 1, 2, 7}, {110, 110, 1, 1, 1}})),
        Base::on_few(
            "replace_on after fold", counts(4, 3, 1, 1, 2, 0, 0, 1),
            [](Place& place, const Rows& source) {
              const auto folded = kf::fold([](Row&& row, const Row& next) {
                Base::called();
                row.amount = next.amount;
                return std::move(row);
              });
              return place.table.duplicates(folded).replace_on(kf::source<&Row::group> == target_group,
                                                               source);
            },
            rows({{20, 120, 2, 2, 5}, {120, 140, 2, 1, 1}, {20, 120, 2, 2, 6}})),
        Base::on_few(
            "append after latest_by", counts(4, 3, 2, 0, 0, 0, 0, 1),
            [](Place& place, const Rows& source) {
              return place.table.duplicates(kf::latest_by<&Row::rank>).append(source);
            },
            rows({{110, 210, 1, 2, 1}, {120, 220, 1, 1, 1}, {110, 230, 1, 1, 1}})),
    };
  }

  static std::vector<FaultCase> without_source() {
    return {
        Base::on_few(
            "erase_where", counts(4, 0, 0, 0, 3, 0, 0),
            [](Place& place, const Rows&) {
              return place.table.erase_where(target_group == value_of<Value>(2));
            },
            Rows{}),
        Base::on_few(
            "update_where by assignments", counts(4, 0, 0, 4, 0, 0, 0),
            [](Place& place, const Rows&) {
              return place.table.update_where(target_rank == value_of<Value>(1),
                                              target_amount = value_of<Value>(50),
                                              target_rank = target_group);
            },
            Rows{}),
        Base::on_few(
            "update_where by a callable", counts(4, 0, 0, 2, 0, 0, 0),
            [](Place& place, const Rows&) {
              return place.table.update_where([](const Row& row) { return Base::called(), !row.code; },
                                              [](const Row& row) {
                                                Row next = row;
                                                next.amount = value_of<Value>(50);
                                                return next;
                                              });
            },
            Rows{}),
    };
  }

  static std::vector<FaultCase> constraints() {
    return {
        Base::on_few(
            "require", "1 constraints",
            [](Place& place, const Rows&) {
              place.table.require(long_name, target_amount > value_of<Value>(0));
              return said_constraints(place.table);
            },
            Rows{}),
        Base::on_few(
            "require that a row does not meet", "Error",
            [](Place& place, const Rows&) {
              place.table.require(long_name, target_amount > value_of<Value>(1));
              return said_constraints(place.table);
            },
            Rows{}),
        Base::on(
            "unrequire", "0 constraints", &guarded,
            [](Place& place, const Rows&) {
              place.table.unrequire(long_name);
              return said_constraints(place.table);
            },
            Rows{}),
        Base::on(
            "a write that meets a constraint", counts(4, 3, 1, 1, 7, 1, 0), &guarded,
            [](Place& place, const Rows& source) { return place.table.overwrite(source); }, all_new()),
        Base::on(
            "a write that violates a constraint", "Error", &guarded,
            [](Place& place, const Rows& source) { return place.table.append(source); },
            rows({{110, 210, 1, 1, 1}, {120, 220, 1, 1, 0}})),
        Base::on(
            "copy of a table with a constraint", "1 constraints", &guarded,
            [](Place& place, const Rows&) {
              place.other = Table(place.table);
              return said_constraints(place.other);
            },
            Rows{}),
    };
  }

  static void check() {
    check_cases(replacements());
    check_cases(transactions());
    check_cases(policies());
    check_cases(without_source());
    check_cases(constraints());
  }

 private:
  using Base::rows;
  using Base::target_amount;
  using Base::target_group;
  using Base::target_rank;

  static constexpr const char* long_name = "a name beyond the small buffer of a string";

  static Place guarded() {
    Place place = Base::few_rows();
    place.table.require(long_name, target_amount > value_of<Value>(0));
    return place;
  }
  static std::string said_constraints(const Table& table) {
    const FaultPause pause;
    return std::to_string(table.constraints().size()) + " constraints";
  }

  // One row changed, one the same, one new with a code that is freed.
  static Rows all_new() { return rows({{20, 120, 2, 2, 6}, {30, -1, 1, 2, 7}, {110, 110, 1, 1, 1}}); }

  // Of the rows 20, 40 and 80 that are of this group one changes, and a new one has the code of another.
  static Rows of_group_two() { return rows({{20, 120, 2, 2, 6}, {120, 140, 2, 1, 1}}); }
};

}  // namespace keyfold_test
