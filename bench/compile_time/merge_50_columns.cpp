// The merge of merge.cpp with a row of 50 columns.
#include <keyfold/keyfold.hpp>

#include <string>
#include <vector>

// clang-format off
struct Order {
  int id = 0, version = 0;
  int c2 = 0, c3 = 0, c4 = 0, c5 = 0, c6 = 0, c7 = 0, c8 = 0, c9 = 0, c10 = 0;
  int c11 = 0, c12 = 0, c13 = 0, c14 = 0, c15 = 0, c16 = 0, c17 = 0, c18 = 0, c19 = 0;
  double c20 = 0, c21 = 0, c22 = 0, c23 = 0, c24 = 0, c25 = 0, c26 = 0, c27 = 0, c28 = 0, c29 = 0;
  std::string c30, c31, c32, c33, c34, c35, c36, c37, c38, c39;
  std::string c40, c41, c42, c43, c44, c45, c46, c47, c48, c49;
};
template <>
struct kf::columns_of<Order> : kf::Columns<
    &Order::id, &Order::version, &Order::c2, &Order::c3, &Order::c4, &Order::c5, &Order::c6, &Order::c7, &Order::c8, &Order::c9,
    &Order::c10, &Order::c11, &Order::c12, &Order::c13, &Order::c14, &Order::c15, &Order::c16, &Order::c17, &Order::c18, &Order::c19,
    &Order::c20, &Order::c21, &Order::c22, &Order::c23, &Order::c24, &Order::c25, &Order::c26, &Order::c27, &Order::c28, &Order::c29,
    &Order::c30, &Order::c31, &Order::c32, &Order::c33, &Order::c34, &Order::c35, &Order::c36, &Order::c37, &Order::c38, &Order::c39,
    &Order::c40, &Order::c41, &Order::c42, &Order::c43, &Order::c44, &Order::c45, &Order::c46, &Order::c47, &Order::c48, &Order::c49> {};
// clang-format on

int main() {
  std::vector<Order> changes(2);
  changes[1].version = 1;
  kf::Table<Order, kf::Key<&Order::id>> orders;
  orders.merge(changes)
      .duplicates(kf::keep_last)
      .when_matched(kf::source<&Order::version> > kf::target<&Order::version>)
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
  return static_cast<int>(orders.size());
}
