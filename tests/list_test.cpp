#include <keyfold/detail/list.hpp>

#include <cstdint>
#include <limits>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using keyfold::detail::List;

namespace {

// Counts those that live.
struct Counted {
  explicit Counted(int number) : value(number) { ++alive; }
  Counted(Counted&& other) noexcept : value(std::exchange(other.value, -1)) { ++alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --alive; }

  int value;
  static inline int alive = 0;
};

struct alignas(128) Wide {
  int value = 7;
};

// Has memory for so many requests, and counts the bytes that are out.
class Short : public std::pmr::memory_resource {
 public:
  explicit Short(int requests) : left_(requests) {}
  std::size_t out = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (left_ == 0) throw std::bad_alloc();
    --left_;
    out += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    out -= bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  int left_;
};

}  // namespace

TEST_CASE("a list has what was put into it, in order, however far it grows") {
  List<std::string> list;
  std::vector<std::string> expected;
  CHECK(list.empty());
  for (int i = 0; i < 1000; ++i) {
    const std::string text = std::to_string(i) + " is longer than what a string has in itself";
    const std::string& added = list.emplace_back(text);
    CHECK(&added == &list.back());
    expected.push_back(text);
  }
  CHECK(list.size() == 1000);
  CHECK(std::vector<std::string>(list.begin(), list.end()) == expected);
  CHECK(list[999] == expected[999]);
}

TEST_CASE("growing doubles, so that adding costs the same whatever the size") {
  List<int> list;
  int growths = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto before = list.capacity();
    list.push_back(i);
    if (list.capacity() != before) ++growths;
  }
  CHECK(growths == 18);  // 1, 2, 4, ... 131,072
}

TEST_CASE("elements end once: with clear(), with free(), and with the list") {
  {
    List<Counted> list;
    for (int i = 0; i < 9; ++i) list.emplace_back(i);
    CHECK(Counted::alive == 9);
    CHECK(list[8].value == 8);
    const auto capacity = list.capacity();
    list.clear();
    CHECK(Counted::alive == 0);
    CHECK(list.capacity() == capacity);
    list.emplace_back(1);
    list.free();
    CHECK(Counted::alive == 0);
    CHECK(list.capacity() == 0);
    list.emplace_back(2);
    CHECK(Counted::alive == 1);
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("resize() adds zeros") {
  List<std::uint64_t> list(3);
  list[2] = 5;
  list.resize(100);
  CHECK(list.size() == 100);
  CHECK(list[2] == 5);
  std::uint64_t sum = 0;
  for (const std::uint64_t number : list) sum += number;
  CHECK(sum == 5);
}

TEST_CASE("elements lie as their type asks for") {
  List<Wide> list;
  for (int i = 0; i < 20; ++i) list.emplace_back();
  for (const Wide& wide : list) {
    CHECK(reinterpret_cast<std::uintptr_t>(&wide) % 128 == 0);
    CHECK(wide.value == 7);
  }
}

TEST_CASE("a list that gets no memory is as before, and gives back what it had") {
  Short memory(2);
  {
    List<Counted> list(memory);
    list.emplace_back(1);
    list.emplace_back(2);
    CHECK_THROWS_AS(list.emplace_back(3), std::bad_alloc);
    CHECK_THROWS_AS(list.reserve(3), std::bad_alloc);
    CHECK(list.size() == 2);
    CHECK(list[0].value == 1);
    CHECK(list[1].value == 2);
    CHECK(Counted::alive == 2);
    CHECK(memory.out == 2 * sizeof(Counted));
  }
  CHECK(memory.out == 0);
}

TEST_CASE("a size that no memory has is refused") {
  List<Wide> list;
  CHECK_THROWS_AS(list.reserve(std::numeric_limits<std::size_t>::max() / 64), std::bad_alloc);
  CHECK(list.capacity() == 0);
}

TEST_CASE("swap() exchanges what lists have") {
  List<int> one;
  List<int> other;
  one.push_back(1);
  other.push_back(2);
  other.push_back(3);
  one.swap(other);
  CHECK(one.size() == 2);
  CHECK(one[1] == 3);
  CHECK(other.size() == 1);
}
