// Where the source rows of a merge come from: ranges of every kind, what is moved and what is not, the table
// itself.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>
#include <range/v3/view/all.hpp>
#include <range/v3/view/concat.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/generate_n.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/istream.hpp>
#include <range/v3/view/move.hpp>
#include <range/v3/view/ref.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <forward_list>
#include <istream>
#include <list>
#include <memory>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;

namespace {

struct Item {
  int id = 0;
  std::string text;
  int count = 0;
  bool operator==(const Item&) const = default;
};
BOOST_DESCRIBE_STRUCT(Item, (), (id, text, count))

std::istream& operator>>(std::istream& stream, Item& item) {
  return stream >> item.id >> item.text >> item.count;
}

using Items = kf::Table<Item, kf::Key<&Item::id>>;
using Rows = std::vector<Item>;
using Ids = std::vector<int>;

const std::string long_text = "a text that is longer than the small buffer of any string";

template <class Table>
Ids ids(const Table& table) {
  Ids out;
  for (const auto& row : table) out.push_back(row.id);
  return out;
}

Rows rows_of(const Items& items) { return {items.begin(), items.end()}; }

// The ids of a table that was loaded from this source.
template <class Source>
Ids loaded(Source&& source) {
  Items items;
  items.merge(std::forward<Source>(source))
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
  return ids(items);
}

Items some_items() {
  Items items;
  items.append({{1, long_text, 10}, {2, long_text, 20}, {3, long_text, 30}});
  return items;
}

// A single-pass range of ids 0, 1, ... made as it is read; its iterator can only be moved.
struct Generator {
  explicit Generator(int rows, int throwing_at = -1) : count(rows), throw_at(throwing_at) {}

  class Iterator {
   public:
    using value_type = Item;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Generator& from) : from_(&from) {}
    Iterator(Iterator&&) = default;
    Iterator& operator=(Iterator&&) = default;

    Item operator*() const {
      ++from_->read;
      if (from_->next == from_->throw_at) throw std::runtime_error("no more");
      return {from_->next, long_text, 0};
    }
    Iterator& operator++() {
      ++from_->next;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) {
      return it.from_->next == it.from_->count;
    }

   private:
    Generator* from_;
  };

  Iterator begin() {
    ++begun;
    return Iterator(*this);
  }
  std::default_sentinel_t end() const { return std::default_sentinel; }

  int begun = 0;
  int read = 0;
  int next = 0;
  int count;
  int throw_at;
};

// Tells how it was copied and moved.
struct Traced {
  int id = 0;
  int value = 0;

  Traced() = default;
  Traced(int row_id, int row_value) : id(row_id), value(row_value) {}
  Traced(const Traced& other) : id(other.id), value(other.value) { ++copies; }
  Traced(Traced&& other) noexcept : id(other.id), value(std::exchange(other.value, -1)) {}
  Traced& operator=(const Traced& other) {
    id = other.id;
    value = other.value;
    ++copies;
    return *this;
  }
  Traced& operator=(Traced&& other) noexcept {
    id = other.id;
    value = std::exchange(other.value, -1);
    return *this;
  }
  ~Traced() = default;
  bool operator==(const Traced& other) const { return id == other.id && value == other.value; }

  static inline int copies = 0;
};

using TracedTable = kf::Table<Traced, kf::Key<&Traced::id>>;

std::vector<Traced> traced(int count) {
  std::vector<Traced> out;
  for (int id = 0; id < count; ++id) out.emplace_back(id, 100 + id);
  return out;
}

// How many rows are copied when a table with rows 0 to 4 is merged with this source.
template <class Source>
int copies_of(Source&& source) {
  TracedTable table;
  for (int id = 0; id < 5; ++id) table.insert(Traced(id, 0));
  Traced::copies = 0;
  table.merge(std::forward<Source>(source))
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .execute();
  const int copies = Traced::copies;
  for (const Traced& row : table) CHECK(row.value == 100 + row.id);
  return copies;
}

}  // namespace

// --- Kinds of range

TEST_CASE("containers of every kind are sources") {
  CHECK(loaded(Rows{{1, "", 0}, {2, "", 0}}) == Ids{1, 2});
  CHECK(loaded(std::list<Item>{{1, "", 0}, {2, "", 0}}) == Ids{1, 2});
  CHECK(loaded(std::deque<Item>{{1, "", 0}, {2, "", 0}}) == Ids{1, 2});
  CHECK(loaded(std::forward_list<Item>{{1, "", 0}, {2, "", 0}}) == Ids{1, 2});
  CHECK(loaded(std::array<Item, 2>{{{1, "", 0}, {2, "", 0}}}) == Ids{1, 2});
  Item array[] = {{1, "", 0}, {2, "", 0}};
  CHECK(loaded(array) == Ids{1, 2});
  CHECK(loaded(std::span<Item>(array)) == Ids{1, 2});
  CHECK(loaded(std::span<const Item>(array)) == Ids{1, 2});
  const auto by_text = [](const Item& a, const Item& b) { return a.text < b.text; };
  CHECK(loaded(std::set<Item, decltype(by_text)>({{2, "b", 0}, {1, "a", 0}}, by_text)) == Ids{1, 2});
}

TEST_CASE("a braced list of rows is a source") {
  Items items;
  items.merge({{1, "a", 0}, {2, "b", 0}}).when_not_matched().insert_all().execute();
  CHECK(ids(items) == Ids{1, 2});
}

TEST_CASE("an empty source is legal") {
  auto items = some_items();
  const auto result = items.merge(Rows()).when_matched().erase().when_not_matched().insert_all().execute();
  CHECK(result.metrics() == kf::Metrics());
  CHECK_FALSE(result.committed());
  CHECK(items.upsert(Rows()).metrics().source_rows == 0);
  CHECK(items.merge(Rows()).duplicates(kf::keep_last).when_matched().erase().execute().metrics() ==
        kf::Metrics());
  CHECK(items.merge(Rows()).when_not_matched_by_source().erase().execute().metrics().deleted == 3);
}

TEST_CASE("a stream is a source that is read once") {
  std::istringstream stream("1 one 10 2 two 20 3 three 30");
  CHECK(loaded(ranges::istream<Item>(stream)) == Ids{1, 2, 3});
}

TEST_CASE("each row of a stream is itself, though the stream reads into one place") {
  std::ostringstream text;
  for (int id = 0; id < 100; ++id) text << id << " text" << id << ' ' << 7 * id << ' ';
  std::istringstream stream(text.str());
  Items items;
  items.merge(ranges::istream<Item>(stream)).when_not_matched().insert_all().execute();
  int wrong = 0;
  for (int id = 0; id < 100; ++id) wrong += items.at(id) != Item{id, "text" + std::to_string(id), 7 * id};
  CHECK(items.size() == 100);
  CHECK(wrong == 0);
}

TEST_CASE("a generator with an iterator that can only be moved is read exactly once") {
  Generator generator(100);
  Items items;
  const auto result = items.merge(generator).when_not_matched().insert_all().execute();
  CHECK(result.metrics().inserted == 100);
  CHECK(generator.begun == 1);
  CHECK(generator.read == 100);
  CHECK(loaded(Generator(3)) == Ids{0, 1, 2});
}

TEST_CASE("a generator is read once under a duplicate policy and by append, too") {
  Generator first(70);
  Items items;
  items.merge(first).duplicates(kf::keep_first).when_not_matched().insert_all().execute();
  CHECK(items.size() == 70);
  CHECK(first.begun == 1);
  CHECK(first.read == 70);
  Generator second(70);
  items.clear();
  items.append(second);
  CHECK(items.size() == 70);
  CHECK(second.read == 70);
}

TEST_CASE("range-v3 views are sources") {
  const Rows rows = {{1, "a", 1}, {2, "b", 2}, {3, "c", 3}, {4, "d", 4}};
  const auto even = [](const Item& item) { return item.id % 2 == 0; };
  const auto numbered = [](int id) { return Item{id, "", 0}; };
  CHECK(loaded(rows | ranges::views::filter(even)) == Ids{2, 4});
  CHECK(loaded(rows | ranges::views::take(3)) == Ids{1, 2, 3});
  CHECK(loaded(ranges::views::iota(5, 8) | ranges::views::transform(numbered)) == Ids{5, 6, 7});
  CHECK(loaded(rows | ranges::views::transform([](Item item) {
                 item.id += 10;
                 return item;
               }) |
               ranges::views::filter([](const Item& item) { return item.id != 12; })) == Ids{11, 13, 14});
  const Rows more = {{9, "", 0}};
  CHECK(loaded(ranges::views::concat(rows, more)) == Ids{1, 2, 3, 4, 9});
  int next = 0;
  CHECK(loaded(ranges::views::generate_n([&] { return numbered(next++); }, 3)) == Ids{0, 1, 2});
  auto filtered = rows | ranges::views::filter(even);
  CHECK(loaded(filtered) == Ids{2, 4});  // a view that is an lvalue
}

// The views of libstdc++ 12 are no ranges to clang before 16, whose concepts look too early.
#if !defined(__clang__) || __clang_major__ >= 16
TEST_CASE("standard views are sources") {
  Rows rows = {{1, "a", 1}, {2, "b", 2}, {3, "c", 3}};
  CHECK(loaded(std::views::all(rows)) == Ids{1, 2, 3});
  CHECK(loaded(std::ranges::subrange(rows.begin() + 1, rows.end())) == Ids{2, 3});
  CHECK(loaded(std::views::counted(rows.begin(), 2)) == Ids{1, 2});
  CHECK(loaded(std::views::single(Item{5, "", 0})) == Ids{5});
  CHECK(loaded(std::views::empty<Item>).empty());
  std::istringstream stream("7 seven 70 8 eight 80");
  CHECK(loaded(std::ranges::istream_view<Item>(stream)) == Ids{7, 8});
}

TEST_CASE("rows behind a standard view are copied, and stay as they are") {
  auto rows = traced(10);
  CHECK(copies_of(std::views::all(rows)) == 10);
  CHECK(copies_of(std::ranges::subrange(rows.begin(), rows.end())) == 10);
  CHECK(rows == traced(10));
}
#endif

TEST_CASE("source rows that can only be moved are sources") {
  struct Parcel {
    int id = 0;
    std::unique_ptr<std::string> text;
  };
  std::vector<Parcel> parcels;
  parcels.push_back({1, std::make_unique<std::string>("one")});
  parcels.push_back({7, std::make_unique<std::string>("seven")});
  auto items = some_items();
  items.merge(std::move(parcels))
      .on<&Parcel::id>()
      .when_matched()
      .update(kf::target<&Item::text> = [](const Item&, const Parcel& parcel) { return *parcel.text; })
      .when_not_matched()
      .insert([](const Parcel& parcel) { return Item{parcel.id, *parcel.text, 0}; })
      .execute();
  CHECK(items.at(1).text == "one");
  CHECK(items.at(7).text == "seven");

  const auto made = [](int id) { return Parcel{id, std::make_unique<std::string>("made")}; };
  items.merge(ranges::views::iota(0, 50) | ranges::views::transform(made))
      .on<&Parcel::id>()
      .duplicates(kf::keep_last)
      .when_not_matched()
      .insert([](const Parcel& parcel) { return Item{parcel.id, *parcel.text, 0}; })
      .execute();
  CHECK(items.size() == 50);
}

TEST_CASE("positions count over blocks of every size") {
  for (const std::size_t count : {1U, 2U, 31U, 32U, 33U, 63U, 64U, 65U, 100U}) {
    Rows rows;
    for (std::size_t i = 0; i < count; ++i) rows.push_back({static_cast<int>(i), "", 0});
    Items items;
    CHECK(items.merge(rows).when_not_matched().insert_all().execute().metrics().inserted == count);
    try {
      items.merge(rows)
          .when_matched(kf::source<&Item::id> == static_cast<int>(count) - 1)
          .raise("last")
          .execute();
      FAIL("no exception");
    } catch (const kf::ClauseRaised& error) {
      CHECK(error.position == count - 1);
    }
  }
}

TEST_CASE("an exception of the source passes through and changes nothing") {
  auto items = some_items();
  const auto before = rows_of(items);
  CHECK_THROWS_AS(
      items.merge(Generator(100, 70)).when_matched().erase().when_not_matched().insert_all().execute(),
      std::runtime_error);
  CHECK_THROWS_AS(items.append(Generator(100, 2)), std::runtime_error);
  CHECK_THROWS_AS(
      items.merge(Generator(100, 99)).duplicates(kf::keep_last).when_not_matched().insert_all().execute(),
      std::runtime_error);
  CHECK(rows_of(items) == before);
  CHECK(items.version() == 1);
  CHECK(items.upsert(Generator(100)).metrics().inserted == 97);
}

// --- What is moved

TEST_CASE("rows of an rvalue container are moved into the table") {
  CHECK(copies_of(traced(10)) == 0);
  auto rows = traced(10);
  CHECK(copies_of(std::move(rows)) == 0);
  std::deque<Traced> deque;
  for (auto& row : traced(10)) deque.push_back(row);
  CHECK(copies_of(std::move(deque)) == 0);
}

TEST_CASE("rows that are made while they are read are moved into the table") {
  CHECK(copies_of(ranges::views::iota(0, 10) |
                  ranges::views::transform([](int id) { return Traced(id, 100 + id); })) == 0);
  auto rows = traced(10);
  CHECK(copies_of(rows | ranges::views::move) == 0);  // the caller says so
}

TEST_CASE("the text of a moved row is the text of the source") {
  Rows rows = {{1, long_text, 1}, {5, long_text, 5}};
  const char* const first = rows[0].text.data();
  const char* const second = rows[1].text.data();
  auto items = some_items();
  items.merge(std::move(rows)).when_matched().update_all().when_not_matched().insert_all().execute();
  CHECK(items.at(1).text.data() == first);
  CHECK(items.at(5).text.data() == second);

  Rows more = {{6, long_text, 6}};
  const char* const third = more[0].text.data();
  items.append(std::move(more));
  CHECK(items.at(6).text.data() == third);

  Item single{7, long_text, 7};
  const char* const fourth = single.text.data();
  items.insert(std::move(single));
  CHECK(items.at(7).text.data() == fourth);
}

TEST_CASE("rows of an lvalue container are copied, and it stays as it is") {
  auto rows = traced(10);
  CHECK(copies_of(rows) == 10);
  CHECK(rows == traced(10));
  const auto constant = traced(10);
  CHECK(copies_of(constant) == 10);
  CHECK(copies_of(std::move(constant)) == 10);  // NOLINT(performance-move-const-arg): const all the same
}

TEST_CASE("rows behind a view are copied, and stay as they are") {
  auto rows = traced(10);
  CHECK(copies_of(std::span(rows)) == 10);
  CHECK(copies_of(ranges::views::all(rows)) == 10);
  CHECK(copies_of(ranges::views::ref(rows)) == 10);
  CHECK(copies_of(rows | ranges::views::take(10)) == 10);
  CHECK(copies_of(rows | ranges::views::filter([](const Traced&) { return true; })) == 10);
  CHECK(rows == traced(10));
}

TEST_CASE("a view of rows inside other rows leaves them as they are") {
  struct Wrapped {
    Traced row;
  };
  std::vector<Wrapped> wrapped;
  for (auto& row : traced(10)) wrapped.push_back({row});
  CHECK(copies_of(wrapped | ranges::views::transform(&Wrapped::row)) == 10);
  for (const Wrapped& each : wrapped) CHECK(each.row.value == 100 + each.row.id);
}

TEST_CASE("an unchanged row is not copied") {
  auto rows = traced(10);
  TracedTable table;
  table.append(rows);
  Traced::copies = 0;
  CHECK(table.upsert(rows).metrics().unchanged == 10);
  CHECK(Traced::copies == 0);
}

TEST_CASE("a source row that matches several target rows gives all of them its values") {
  kf::Table<Item, kf::Key<&Item::id>, kf::HashedBy<&Item::count>> items;
  items.append({{1, "a", 7}, {2, "b", 7}, {3, "c", 7}});
  const auto result = items.merge(Rows{{9, long_text, 7}})
                          .on<&Item::count>(kf::by<&Item::count>)
                          .when_matched()
                          .update(kf::target<&Item::text> = kf::source<&Item::text>)
                          .execute();
  CHECK(result.metrics().updated == 3);
  for (const Item& item : items) CHECK(item.text == long_text);
}

TEST_CASE("a whole row taken by several target rows is whole for each, and only their keys collide") {
  kf::Table<Item, kf::Key<&Item::id>, kf::HashedBy<&Item::count>> items;
  items.append({{1, "a", 7}, {2, "b", 7}});
  try {
    items.merge(Rows{{9, long_text, 7}})
        .on<&Item::count>(kf::by<&Item::count>)
        .when_matched()
        .update_all()
        .execute();
    FAIL("no exception");
  } catch (const kf::DuplicateKey& error) {
    CHECK(error.key == "9");
    CHECK(error.first_position == 0);
    CHECK(error.second_position == 0);
  }
}

TEST_CASE("preview does not move rows out of their container") {
  auto items = some_items();
  auto merge = items.merge(Rows{{1, long_text, 99}}).when_matched().update_all();
  CHECK(merge.preview()[0].after()->text == long_text);
  CHECK(merge.preview()[0].after()->text == long_text);
  std::move(merge).execute();
  CHECK(items.at(1) == Item{1, long_text, 99});
}

// --- The table itself

TEST_CASE("a table can be merged into itself") {
  auto items = some_items();
  CHECK(items.merge(items).when_matched().update_all().execute().metrics().unchanged == 3);
  items.merge(items)
      .when_matched()
      .update(kf::target<&Item::count> = kf::target<&Item::count> + kf::source<&Item::count>)
      .execute();
  CHECK(items.at(2).count == 40);
  CHECK(items.upsert(items).metrics().unchanged == 3);
  CHECK_THROWS_AS(items.append(items), kf::DuplicateKey);
  CHECK(items.merge(items).when_matched().erase().execute().metrics().deleted == 3);
  CHECK(items.empty());
}

TEST_CASE("a view of the table is a safe source of it") {
  auto items = some_items();
  const auto moved_on = [](Item item) {
    item.id += 1;
    return item;
  };
  const auto result = items.merge(items | ranges::views::transform(moved_on))
                          .when_matched()
                          .update(kf::target<&Item::count> = kf::source<&Item::count>)
                          .when_not_matched()
                          .insert_all()
                          .execute();
  CHECK(result.metrics().updated == 2);
  CHECK(result.metrics().inserted == 1);
  CHECK(rows_of(items) ==
        Rows{{1, long_text, 10}, {2, long_text, 10}, {3, long_text, 20}, {4, long_text, 30}});

  const auto small = [](const Item& item) { return item.count <= 10; };
  items.merge(items | ranges::views::filter(small)).when_matched().erase().execute();
  CHECK(ids(items) == Ids{3, 4});
  items.merge(items | ranges::views::take(1)).when_not_matched_by_source().erase().execute();
  CHECK(ids(items) == Ids{3});
}

TEST_CASE("a table in key order can be merged into itself while keys change") {
  kf::Table<Item, kf::OrderedKey<&Item::id>> items;
  items.append({{1, "a", 0}, {2, "b", 0}, {3, "c", 0}});
  items.merge(items).when_matched().update(kf::target<&Item::id> = 10 - kf::source<&Item::id>).execute();
  CHECK(ids(items) == Ids{7, 8, 9});
  CHECK(items.at(9).text == "a");
}

TEST_CASE("a row of the table can be given to a write of the table") {
  auto items = some_items();
  CHECK(items.upsert(items.at(1)).metrics().unchanged == 1);
  CHECK_THROWS_AS(items.insert(*items.begin()), kf::DuplicateKey);
  items.erase(items.begin()->id);
  CHECK(ids(items) == Ids{2, 3});
}

TEST_CASE("another table is a source that stays as it is") {
  auto items = some_items();
  auto other = some_items();
  other.upsert({{3, "other", 3}, {4, "other", 4}});
  items.upsert(other);
  CHECK(rows_of(items) == rows_of(other));
  CHECK(other.at(4).text == "other");
  items.upsert(std::move(other));
  CHECK(items.size() == 4);
}

// --- Writing while writing

TEST_CASE("a write from inside a write of the same table is refused") {
  auto items = some_items();
  const auto before = rows_of(items);
  const Rows rows = {{1, "x", 1}, {8, "x", 1}};
  const auto refused = [&](auto&& write) {
    CHECK_THROWS_AS(write(), kf::ReentrantWrite);
    CHECK(rows_of(items) == before);
    CHECK(items.version() == 1);
  };
  SECTION("a condition") {
    refused([&] {
      items.merge(rows)
          .when_matched([&](const Item&, const Item&) { return items.erase(3).committed(); })
          .erase()
          .execute();
    });
  }
  SECTION("a condition of an unmatched source row") {
    refused([&] {
      items.merge(rows)
          .when_not_matched([&](const Item& item) { return items.insert(item).committed(); })
          .insert_all()
          .execute();
    });
  }
  SECTION("a value") {
    refused([&] {
      items.merge(rows)
          .when_matched()
          .update(kf::target<&Item::count> =
                      [&](const Item&, const Item&) { return static_cast<int>(items.clear().version()); })
          .execute();
    });
  }
  SECTION("a row") {
    refused([&] {
      items.merge(rows)
          .when_not_matched_by_source()
          .update([&](const Item& item) {
            items.upsert(item);
            return item;
          })
          .execute();
    });
  }
  SECTION("the source") {
    refused([&] {
      items.append(ranges::views::iota(50, 55) | ranges::views::transform([&](int id) {
                     items.insert({id + 100, "", 0});
                     return Item{id, "", 0};
                   }));
    });
  }
  SECTION("a fold") {
    refused([&] {
      items.merge(Rows{{1, "", 1}, {1, "", 2}})
          .duplicates(kf::fold([&](const Item& a, const Item&) {
            items.clear();
            return a;
          }))
          .when_matched()
          .erase()
          .execute();
    });
  }
  SECTION("a preview from inside a write") {
    refused([&] {
      items.merge(rows)
          .when_matched([&](const Item&, const Item&) {
            return items.merge(rows).when_matched().erase().preview().empty();
          })
          .erase()
          .execute();
    });
  }
  SECTION("a write from inside a preview") {
    refused([&] {
      static_cast<void>(items.merge(rows)
                            .when_matched([&](const Item&, const Item&) { return items.clear().committed(); })
                            .erase()
                            .preview());
    });
  }
  CHECK(items.upsert(rows).metrics().inserted == 1);  // the table is free again
}

TEST_CASE("a write from the clock is refused") {
  std::unique_ptr<Items> items;
  kf::TableOptions options;
  options.clock = [&] {
    items->clear();
    return kf::Timestamp();
  };
  items = std::make_unique<Items>(options);
  CHECK_THROWS_AS(items->insert({1, "", 0}), kf::ReentrantWrite);
  CHECK(items->empty());
  CHECK(items->version() == 0);
}

TEST_CASE("a refused inner write may be handled, and the outer one goes on") {
  auto items = some_items();
  int refused = 0;
  items.merge(Rows{{1, "x", 1}})
      .when_matched([&](const Item&, const Item&) {
        try {
          items.clear();
        } catch (const kf::ReentrantWrite&) {
          ++refused;
        }
        return true;
      })
      .update_all()
      .execute();
  CHECK(refused == 1);
  CHECK(items.at(1).text == "x");
  CHECK(items.size() == 3);
}

TEST_CASE("another table may be written to from inside a write") {
  auto items = some_items();
  Items log;
  items.merge(Rows{{1, "x", 1}, {2, "y", 2}})
      .when_matched([&](const Item& target, const Item&) { return log.insert(target).committed(); })
      .update_all()
      .execute();
  CHECK(ids(log) == Ids{1, 2});
  CHECK(log.at(1).text == long_text);
}

// --- Many rows

TEST_CASE("two hundred thousand rows") {
#ifdef BOOST_MULTI_INDEX_ENABLE_INVARIANT_CHECKING
  constexpr int count = 4000;  // every write of a row looks at all rows
#else
  constexpr int count = 200000;
#endif
  Rows rows;
  rows.reserve(count);
  for (int id = 0; id < count; ++id) rows.push_back({id, "", id % 1000});
  std::mt19937 random(7);
  std::ranges::shuffle(rows, random);
  Items items;
  CHECK(items.upsert(rows).metrics().inserted == count);

  // Every id twice as large: the even half is there, the other half is new.
  for (Item& row : rows) row.id *= 2;
  std::ranges::shuffle(rows, random);
  const auto result = items.merge(rows)
                          .when_matched(kf::source<&Item::count> < 500)
                          .erase()
                          .when_matched()
                          .update(kf::target<&Item::count> = -1)
                          .when_not_matched()
                          .insert_all()
                          .when_not_matched_by_source()
                          .update(kf::target<&Item::text> = "odd")
                          .execute();
  const auto& metrics = result.metrics();
  CHECK(metrics.source_rows == count);
  CHECK(metrics.matched_deleted == count / 4);  // half of the ids are there, half of these have a count < 500
  CHECK(metrics.matched_updated == count / 4);
  CHECK(metrics.inserted == count / 2);
  CHECK(metrics.not_matched_by_source_updated == count / 2);
  CHECK(items.size() == count + count / 4);
  int wrong = 0;
  for (int id = 0; id < 2 * count; ++id) {
    const Item* const item = items.find(id);
    const int original = id / 2;
    if (id % 2 == 1) {
      wrong +=
          id < count ? item == nullptr || item->text != "odd" || item->count != id % 1000 : item != nullptr;
    } else if (id < count) {
      wrong += original % 1000 < 500 ? item != nullptr : item == nullptr || item->count != -1;
    } else {
      wrong += item == nullptr || item->count != original % 1000;
    }
  }
  CHECK(wrong == 0);
  CHECK(result.changes().size() == count + count / 2);
}
