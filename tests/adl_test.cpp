// Functions of the user's with the names of keyfold's own must neither be called nor get in the way.
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
namespace shop {
struct Money {
  int cents = 0;
  friend auto operator<=>(const Money&, const Money&) = default;
};
template <class T>
std::uint64_t hash_of(const T&) {
  return 1;
}
template <class T>
bool is_nan(const T&) {
  return true;
}
template <class T>
bool has_value(const T&) {
  return false;
}
template <class A, class B>
bool equal_values(const A&, const B&) {
  return false;
}
template <class A, class B>
bool less_values(const A&, const B&) {
  return false;
}
template <class T>
std::string row_text(const T&) {
  return "";
}
template <class... T>
void validate(const T&...) {}
template <class... T>
void apply(T&&...) {}
template <class A, class B>
bool same_row(const A&, const B&) {
  return true;
}
template <class... T>
int call(T&&...) {
  return 0;
}
template <class... T>
void assign(T&&...) {}
template <class... T>
int read(T&&...) {
  return 0;
}
template <class... T>
int find(T&&...) {
  return 0;
}
template <class... T>
int describe(T&&...) {
  return 0;
}
template <class... T>
int holds(T&&...) {
  return 0;
}
template <class... T>
int evaluate(T&&...) {
  return 0;
}
template <class... T>
int operand(T&&...) {
  return 0;
}
template <class... T>
int add_slot(T&&...) {
  return 0;
}
template <class... T>
int make_newest(T&&...) {
  return 0;
}
template <class... T>
int row_at(T&&...) {
  return 0;
}
template <class... T>
int key_text(T&&...) {
  return 0;
}
template <class... T>
int hold_row(T&&...) {
  return 0;
}
template <class... T>
int append_value(T&&...) {
  return 0;
}
template <class... T>
int to_change_set(T&&...) {
  return 0;
}
}  // namespace shop
template <>
struct std::hash<shop::Money> {
  std::size_t operator()(const shop::Money& m) const { return static_cast<std::size_t>(m.cents); }
};
#include <keyfold/keyfold.hpp>

#include "support/catch.hpp"

#include <boost/describe/class.hpp>

#include <vector>

namespace kf = keyfold;

namespace shop {
struct Item {
  Money price;
  int n{};
  std::string s;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (price, n, s))
}  // namespace shop
// keyfold::detail has one of this name, too.
template <class Rows>
std::string text_of(const Rows&) {
  return "the user's";
}

TEST_CASE("a function of the user's that takes a table has no rival") {
  CHECK(text_of(kf::Table<shop::Item, kf::Key<&shop::Item::n>>()) == "the user's");
}

TEST_CASE("functions of the user's with natural names are left alone") {
  using shop::Item;
  kf::Table<Item, kf::OrderedKey<&Item::price>, kf::UniqueBy<&Item::n>, kf::OrderedBy<&Item::s>> items;
  items.append({{{1}, 1, "a"}, {{2}, 2, "b"}});
  items.merge(std::vector<Item>{{{1}, 5, "c"}, {{3}, 6, "d"}})
      .when_matched(kf::source<&Item::n> > kf::target<&Item::n>)
      .update(kf::target<&Item::s> = kf::source<&Item::s>)
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source()
      .erase()
      .execute();
  CHECK(std::vector<Item>(items.begin(), items.end()) == std::vector<Item>{{{1}, 1, "c"}, {{3}, 6, "d"}});

  auto copy = items;
  copy.restore(1);
  CHECK(copy.at(shop::Money{1}).s == "a");
  copy.undo(3);
  CHECK(copy.diff(2, 4).empty());
  copy.expire(kf::keep_last(1));
  items.apply(items.diff(2, 1));
  CHECK(items.at(shop::Money{2}).s == "b");
}

TEST_CASE("a source may be of numbers") {
  using shop::Item;
  kf::Table<Item, kf::Key<&Item::n>> items;
  items.upsert({{{1}, 1, "a"}, {{2}, 2, "b"}});
  const std::vector<int> numbers{1, 3};
  const auto by_number = [](int number) { return number; };
  CHECK(items.merge(numbers).on<by_number>().when_matched().erase().execute().metrics().deleted == 1);

  const std::vector<bool> flags{false};
  const auto two_or_nine = [](bool flag) { return flag ? 9 : 2; };
  CHECK(items.merge(flags).on<two_or_nine>().when_matched().erase().execute().metrics().deleted == 1);
  CHECK(items.empty());
}
