#include <keyfold/detail/holder.hpp>

#include <string>

#include "support/catch.hpp"
#include "support/throwing.hpp"

using keyfold::detail::Holder;
using keyfold::detail::NothrowMovable;
using namespace keyfold_test;

namespace {

struct ThrowingAssignment {
  ThrowingAssignment() = default;
  ThrowingAssignment(const ThrowingAssignment&) = default;
  ThrowingAssignment(ThrowingAssignment&&) noexcept = default;
  ThrowingAssignment& operator=(const ThrowingAssignment&) = default;
  ThrowingAssignment& operator=(ThrowingAssignment&&) noexcept(false) { return *this; }
};

struct ConstMember {
  const int id;
};

template <class Row>
constexpr bool moves_without_throwing =
    std::is_nothrow_move_constructible_v<Holder<Row>> && std::is_nothrow_move_assignable_v<Holder<Row>>;

}  // namespace

TEST_CASE("a holder never throws when it moves, whatever its row does") {
  static_assert(NothrowMovable<int> && NothrowMovable<std::string> && NothrowMovable<Item<Plain>>);
  static_assert(!NothrowMovable<Item<ThrowingMoves>> && !NothrowMovable<ThrowingAssignment> &&
                !NothrowMovable<ConstMember>);
  static_assert(moves_without_throwing<int> && moves_without_throwing<Item<std::string>>);
  static_assert(moves_without_throwing<Item<ThrowingMoves>> && moves_without_throwing<ThrowingAssignment>);
  static_assert(moves_without_throwing<ConstMember>);
  static_assert(!std::is_copy_constructible_v<Holder<Item<ThrowingMoves>>>);
}

TEST_CASE("rows whose moves cannot fail are kept in place") {
  static_assert(sizeof(Holder<std::string>) == sizeof(std::string));
  static_assert(sizeof(Holder<Item<Plain>>) == sizeof(Item<Plain>));
  static_assert(sizeof(Holder<ConstMember>) == sizeof(void*));
  const Holder<int> held(7);
  CHECK(static_cast<const void*>(&held.get()) == static_cast<const void*>(&held));
}

TEST_CASE("a row that may fail to move keeps its address when its holder moves") {
  Holder<ThrowingMoves> held(ThrowingMoves(5));
  const ThrowingMoves* address = &held.get();
  Holder<ThrowingMoves> other = std::move(held);
  CHECK(&other.get() == address);
  Holder<ThrowingMoves> third(ThrowingMoves(6));
  third = std::move(other);
  CHECK(&third.get() == address);
  CHECK(third.get().get() == 5);
}

TEST_CASE("a holder takes an rvalue and copies an lvalue") {
  std::string text = "a text beyond the small buffer of a string";
  const Holder<std::string> copy(text);
  CHECK(copy.get() == text);
  CHECK_FALSE(text.empty());
  const char* const characters = text.data();
  const Holder<std::string> moved(std::move(text));
  CHECK(moved.get().data() == characters);
}

TEST_CASE("a holder that cannot be made leaks nothing") {
  const auto blocks = Faults::live_blocks;
  const auto values = ThrowingMoves::live;
  {
    const ThrowingMoves row(1);
    for (std::uint64_t nth = 1; nth <= 2; ++nth) {  // the allocation, and the copy
      Faults::arm(nth, FaultMode::single);
      bool thrown = false;
      try {
        const Holder<ThrowingMoves> held(row);
      } catch (...) {
        thrown = true;
      }
      CHECK(thrown);
      CHECK(Faults::disarm() == nth);
    }
  }
  CHECK(Faults::live_blocks == blocks);
  CHECK(ThrowingMoves::live == values);
}
