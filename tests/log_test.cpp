#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/log.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/throwing.hpp"

using keyfold::detail::Holder;
using keyfold::detail::LogBlock;
using keyfold::detail::LogEntry;
using keyfold::detail::LogKind;
using keyfold::detail::make_newest;
using keyfold::detail::Slot;
using namespace keyfold_test;

namespace {

keyfold::detail::Arena arena(*std::pmr::new_delete_resource());

struct Byte {
  unsigned char value = 0;
};
struct Odd {
  unsigned char bytes[13]{};
};
struct alignas(16) Sixteen {
  int value = 0;
};
struct alignas(64) Wide {
  int value = 0;
};
struct alignas(256) VeryWide {
  int value = 0;
};

bool aligned(const void* address, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

template <class Row>
Holder<Row> held(Row&& row) {
  return Holder<Row>(std::move(row));
}

// Every mixture of entries, first ones, bare ones and those with an image, that has three entries.
template <class Row>
void check_layout() {
  for (int mixture = 0; mixture < 27; ++mixture) {
    const std::array<int, 3> kinds{mixture % 3, mixture / 3 % 3, mixture / 9};
    const auto count = [&](int kind) { return static_cast<std::size_t>(std::ranges::count(kinds, kind)); };
    LogBlock<Row> block(arena, {count(0), count(1), count(2)});
    LogEntry<Row> below(LogKind::erase, false, 0);
    std::vector<const LogEntry<Row>*> added;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto version = static_cast<keyfold::Version>(i + 1);
      added.push_back(kinds[i] == 0   ? block.add_first(version)
                      : kinds[i] == 1 ? block.add(LogKind::insert, version, &below)
                                      : block.add(LogKind::erase, version, &below, held(Row{})));
    }
    std::vector<const LogEntry<Row>*> walked;
    for (const auto* entry = block.first(); entry != nullptr; entry = block.next(entry))
      walked.push_back(entry);
    REQUIRE(walked == added);

    const char* end = reinterpret_cast<const char*>(block.first()) + block.bytes();
    for (std::size_t i = 0; i < 3; ++i) {
      const auto* entry = added[i];
      const char* limit = i < 2 ? reinterpret_cast<const char*>(added[i + 1]) : end;
      REQUIRE(aligned(entry, alignof(LogEntry<Row>)));
      REQUIRE(entry->version() == i + 1);
      REQUIRE(entry->is_first() == (kinds[i] == 0));
      REQUIRE(entry->has_before() == (kinds[i] == 2));
      REQUIRE(entry->older() == (kinds[i] == 0 ? nullptr : &below));
      const char* const link = reinterpret_cast<const char*>(entry + 1);
      REQUIRE(link + (kinds[i] == 0 ? 0 : sizeof(void*)) <= limit);
      if (!entry->has_before()) continue;
      const char* image = reinterpret_cast<const char*>(&entry->before());
      REQUIRE(aligned(image, alignof(Holder<Row>)));
      REQUIRE(image >= link + sizeof(void*));
      REQUIRE(image + sizeof(Holder<Row>) <= limit);
    }
  }
}

/// A row of the table with its slot, as a write would make it.
struct Rows {
  explicit Rows(int value) : slot(Holder<Plain>(Plain(value))) {}
  Slot<Plain> slot;
};

LogEntry<Plain>* insert(LogBlock<Plain>& block, const Slot<Plain>& slot, keyfold::Version version) {
  auto* entry = block.add(LogKind::insert, version, nullptr);
  make_newest(slot, entry);
  return entry;
}

LogEntry<Plain>* update(LogBlock<Plain>& block, const Slot<Plain>& slot, keyfold::Version version,
                        int value) {
  auto* entry = block.add(LogKind::update, version, slot.newest, std::move(slot.row));
  make_newest(slot, entry);
  slot.row = Holder<Plain>(Plain(value));
  return entry;
}

}  // namespace

TEST_CASE("entries and images are aligned and do not overlap, whatever the row") {
  check_layout<Byte>();
  check_layout<Odd>();
  check_layout<std::int64_t>();
  check_layout<Sixteen>();
  check_layout<Wide>();
  check_layout<VeryWide>();
  check_layout<std::string>();
  check_layout<Item<Plain>>();
  check_layout<Item<ThrowingMoves>>();  // behind a pointer
}

TEST_CASE("an entry costs 24 bytes beyond its image, and the first of a key 16") {
  CHECK(LogBlock<std::int64_t>(arena, {.firsts = 1000}).bytes() == 16'000);
  CHECK(LogBlock<std::int64_t>(arena, {.bare = 1000}).bytes() == 24'000);
  CHECK(LogBlock<std::int64_t>(arena, {.images = 1000}).bytes() == 32'000);
}

TEST_CASE("an entry knows its kind and version") {
  constexpr keyfold::Version great = (std::uint64_t{1} << 60U) - 1;
  LogBlock<std::int64_t> block(arena, {1, 2, 3});
  const auto* first = block.add_first(great);
  const auto* insert = block.add(LogKind::insert, great, nullptr);
  const auto* rekey_in = block.add(LogKind::rekey_in, 2, nullptr);
  const auto* update = block.add(LogKind::update, 3, nullptr, held(std::int64_t{1}));
  const auto* erase = block.add(LogKind::erase, 4, nullptr, held(std::int64_t{2}));
  const auto* rekey_out = block.add(LogKind::rekey_out, great, nullptr, held(std::int64_t{3}));
  CHECK(insert->version() == great);
  CHECK(rekey_out->version() == great);
  CHECK(first->version() == great);
  CHECK(first->kind() == LogKind::insert);
  CHECK_FALSE(first->has_before());
  CHECK(first->leaves_row());
  CHECK(insert->kind() == LogKind::insert);
  CHECK(rekey_in->kind() == LogKind::rekey_in);
  CHECK(update->kind() == LogKind::update);
  CHECK(erase->kind() == LogKind::erase);
  CHECK(rekey_out->kind() == LogKind::rekey_out);
  CHECK_FALSE(insert->has_before());
  CHECK_FALSE(rekey_in->has_before());
  CHECK(update->before().get() == 1);
  CHECK(erase->before().get() == 2);
  CHECK(rekey_out->before().get() == 3);
  CHECK(insert->leaves_row());
  CHECK(rekey_in->leaves_row());
  CHECK(update->leaves_row());
  CHECK_FALSE(erase->leaves_row());
  CHECK_FALSE(rekey_out->leaves_row());
}

TEST_CASE("a chain leads from the row to its older images, and back up to the row") {
  Rows row(10);
  LogBlock<Plain> first(arena, {.bare = 1});
  LogBlock<Plain> second(arena, {.images = 1});
  LogBlock<Plain> third(arena, {.images = 1});
  const auto* inserted = insert(first, row.slot, 1);
  CHECK(&inserted->after() == &row.slot.get());
  const auto* updated = update(second, row.slot, 2, 20);
  const auto* again = update(third, row.slot, 3, 30);

  CHECK(row.slot.newest == again);
  CHECK(again->older() == updated);
  CHECK(updated->older() == inserted);
  CHECK(inserted->older() == nullptr);

  CHECK(inserted->after().get() == 10);
  CHECK(updated->before().get().get() == 10);
  CHECK(updated->after().get() == 20);
  CHECK(again->before().get().get() == 20);
  CHECK(again->after().get() == 30);
  CHECK(&again->after() == &row.slot.get());
}

TEST_CASE("the image of an erased row is where its chain ends") {
  Rows row(10);
  LogBlock<Plain> block(arena, {.bare = 1, .images = 2});
  const auto* inserted = insert(block, row.slot, 1);
  const auto* updated = update(block, row.slot, 2, 20);
  const auto* erased = block.add(LogKind::erase, 3, row.slot.newest, std::move(row.slot.row));
  CHECK(inserted->after().get() == 10);
  CHECK(updated->after().get() == 20);
  CHECK(&updated->after() == &erased->before().get());
  CHECK(erased->older() == updated);
}

TEST_CASE("a block destroys its images, each once") {
  const auto values = Plain::live;
  const auto misused = Plain::misuses;
  const auto blocks = Faults::live_blocks;
  {
    LogBlock<Plain> block(arena, {.bare = 2, .images = 3});
    block.add(LogKind::insert, 1, nullptr);
    for (int i = 0; i < 3; ++i) block.add(LogKind::erase, 1, nullptr, held(Plain(i)));
    CHECK(Plain::live == values + 3);

    LogBlock<Plain> moved(std::move(block));
    CHECK(Plain::live == values + 3);
    CHECK(block.first() == nullptr);  // NOLINT(bugprone-use-after-move): it is empty, by contract
    CHECK(block.bytes() == 0);
    CHECK(moved.first()->kind() == LogKind::insert);

    LogBlock<Plain> other(arena, {.images = 1});
    other.add(LogKind::erase, 2, nullptr, held(Plain(7)));
    CHECK(Plain::live == values + 4);
    other = std::move(moved);
    CHECK(Plain::live == values + 3);
    CHECK(other.first()->version() == 1);
  }
  CHECK(Plain::live == values);
  CHECK(Plain::misuses == misused);
  CHECK(Faults::live_blocks == blocks);
}

TEST_CASE("a block that was filled only in part destroys what it has") {
  const auto values = Plain::live;
  {
    LogBlock<Plain> block(arena, {.bare = 5, .images = 5});
    block.add(LogKind::erase, 1, nullptr, held(Plain(1)));
    CHECK(Plain::live == values + 1);
  }
  CHECK(Plain::live == values);
}

TEST_CASE("an empty block allocates nothing") {
  Faults::count();
  {
    const LogBlock<std::int64_t> none;
    const LogBlock<std::int64_t> empty(arena, {});
    CHECK(none.first() == nullptr);
    CHECK(empty.first() == nullptr);
    CHECK(empty.bytes() == 0);
  }
  Faults::disarm();
}

TEST_CASE("a block is one allocation at the most, and adding to it none") {
  keyfold::detail::Arena fresh(*std::pmr::new_delete_resource());
  Faults::count();
  {
    LogBlock<std::int64_t> block(fresh, {.bare = 2, .images = 2});
    block.add(LogKind::insert, 1, nullptr);
    block.add(LogKind::erase, 1, nullptr, held(std::int64_t{1}));
    block.add(LogKind::erase, 1, nullptr, held(std::int64_t{2}));
    block.add(LogKind::insert, 1, nullptr);
  }
  CHECK(Faults::disarm() == 1);
}

TEST_CASE("the changes of a block are those that were added, with a change of key as one update") {
  Rows kept(1);
  Rows leaving(2);
  Rows arriving(3);
  LogBlock<Plain> earlier(arena, {.bare = 2});
  insert(earlier, kept.slot, 1);
  insert(earlier, leaving.slot, 1);

  LogBlock<Plain> block(arena, {.bare = 2, .images = 3});
  update(block, kept.slot, 2, 10);
  block.add(LogKind::rekey_out, 2, leaving.slot.newest, std::move(leaving.slot.row));
  make_newest(arriving.slot, block.add(LogKind::rekey_in, 2, nullptr));
  Rows gone(4);
  block.add(LogKind::erase, 2, nullptr, std::move(gone.slot.row));
  Rows added(5);
  insert(block, added.slot, 2);

  const keyfold::detail::CommitLog<Plain> log(
      keyfold::detail::key_functions<keyfold::detail::Parts<&Plain::get>, Plain>,
      *std::pmr::new_delete_resource());
  keyfold::detail::CommitRecord<Plain> record;
  record.version = 2;
  record.block = std::move(block);
  const auto changes = keyfold::detail::changes_of(log, record);
  using Pair = std::pair<std::optional<int>, std::optional<int>>;
  std::vector<Pair> seen;
  for (const auto& change : changes) {
    Pair pair;
    if (change.before() != nullptr) pair.first = change.before()->get();
    if (change.after() != nullptr) pair.second = change.after()->get();
    seen.push_back(pair);
  }
  CHECK(seen == std::vector<Pair>{{1, 10}, {2, 3}, {4, std::nullopt}, {std::nullopt, 5}});
}

TEST_CASE("a commit of one row costs its record and its entry") {
  if constexpr (sizeof(void*) == 8) {
    CHECK(sizeof(keyfold::detail::CommitRecord<Plain>) <= 128);
  }
}

TEST_CASE("copies of a shared text are one text, which goes with the last of them") {
  using keyfold::detail::SharedText;
  const std::string long_text(100, 'x');
  SharedText none;
  CHECK_FALSE(static_cast<bool>(none));
  CHECK(none.bytes() == 0);

  SharedText first(long_text);
  const SharedText second = first;
  CHECK(&*first == &*second);
  CHECK(first.bytes() >= long_text.size());
  none = std::move(first);
  CHECK_FALSE(static_cast<bool>(first));  // NOLINT(bugprone-use-after-move): what is left is none
  CHECK(*none == long_text);
  none = second;
  const SharedText& self = none;
  none = self;
  CHECK(*none == long_text);
  none = SharedText();
  CHECK(*second == long_text);

  static const std::string lasting = "lasting";
  const SharedText third = SharedText::lasting(lasting);
  const SharedText fourth = third;
  CHECK(&*fourth == &lasting);
  CHECK(fourth.bytes() == 0);
}
