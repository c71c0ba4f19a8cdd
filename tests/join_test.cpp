// replace_on finds its candidates by hash; what it finds must be what trying all pairs finds.
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::rows_of;

namespace {

enum class Colour : std::uint8_t { red, green };

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Target {
  int id = 0;
  std::int64_t wide = 0;
  std::uint64_t unsigned_wide = 0;
  double fraction = 0;
  std::string text{};
  std::optional<int> maybe{};
  Colour colour = Colour::red;
  std::chrono::seconds delay{};
  std::variant<int, double> either{};

  std::int64_t doubled() const { return 2 * wide; }
};

struct Source {
  int id = 0;
  std::int8_t narrow = 0;
  std::int64_t wide = 0;
  float small_fraction = 0;
  double fraction = 0;
  long double long_fraction = 0;
  std::string_view text{};
  const char* pointer = "";
  std::optional<std::int64_t> maybe{};
  std::optional<double> maybe_fraction{};
  Colour colour = Colour::red;
  std::chrono::minutes delay{};
  std::chrono::seconds delay_in_seconds{};
  std::variant<int, double> either{};
};

constexpr std::int64_t beyond_double = (std::int64_t{1} << 53) + 1;

std::vector<Target> targets() {
  return {{.id = 1, .wide = -1, .unsigned_wide = 0xFFFF'FFFF'FFFF'FFFF, .text = "a"},
          {.id = 2, .wide = 1, .unsigned_wide = 1, .fraction = 1, .text = "b", .maybe = 1},
          {.id = 3, .wide = beyond_double, .fraction = -0.0, .colour = Colour::green},
          {.id = 4, .wide = beyond_double - 1, .fraction = nan, .text = "a", .maybe = 0},
          {.id = 5, .fraction = 0.1F, .delay = std::chrono::seconds(60), .either = nan},
          {.id = 6, .fraction = 0.1, .maybe = 1, .delay = std::chrono::seconds(1), .either = 1.0},
          {.id = 7, .wide = 2, .fraction = 9007199254740992.0, .either = 1}};
}

std::vector<Source> sources() {
  return {{.narrow = -1, .wide = beyond_double, .small_fraction = 0.1F, .text = "a", .pointer = "a"},
          {.narrow = 1, .fraction = nan, .long_fraction = 1, .text = "zz", .maybe = 1, .either = nan},
          {.wide = 2, .fraction = 0.0, .maybe_fraction = 1.0, .colour = Colour::green},
          {.wide = beyond_double - 1, .fraction = 0.1, .long_fraction = beyond_double, .either = 1.0},
          {.narrow = 2,
           .maybe_fraction = nan,
           .delay = std::chrono::minutes(1),
           .delay_in_seconds = std::chrono::seconds(1)}};
}

/// The rows that leave: those that replace_on() deletes, since no incoming row has a key of theirs.
template <class Condition>
std::vector<int> leaving(const Condition& condition, const std::vector<Source>& rows) {
  using Table = kf::Table<Target, kf::Key<&Target::id>>;
  Table table;
  table.append(targets());
  kf::detail::Join<Target, Source, Condition> join(condition);
  for (const Source& row : rows) join.add(row);
  join.build();
  std::vector<int> out;
  for (const Target& target : table) {
    if (join.holds_for(target)) out.push_back(target.id);
  }
  return out;
}

template <class Condition>
std::vector<int> leaving_by_all_pairs(const Condition& condition, const std::vector<Source>& rows) {
  std::vector<int> out;
  for (const Target& target : targets()) {
    bool found = false;
    for (const Source& row : rows) {
      found = found || kf::detail::is_true(condition(kf::detail::Scope<Target, Source>{target, row}));
    }
    if (found) out.push_back(target.id);
  }
  return out;
}

template <class Condition>
constexpr std::size_t hashed_terms =
    std::tuple_size_v<decltype(kf::detail::equalities_of<Target, Source>(std::declval<const Condition&>()))>;

/// Checks a condition that is joined by so many hashed terms.
template <std::size_t terms, class Condition>
void check(const Condition& condition, const std::vector<int>& expected) {
  static_assert(hashed_terms<Condition> == terms);
  INFO(kf::detail::text_of(condition));
  CHECK(leaving(condition, sources()) == expected);
  CHECK(leaving_by_all_pairs(condition, sources()) == expected);
}

template <auto Member>
constexpr auto s = kf::source<Member>;
template <auto Member>
constexpr auto t = kf::target<Member>;

}  // namespace

TEST_CASE("integers of any width and sign are joined by value") {
  check<1>(s<&Source::narrow> == t<&Target::wide>, {1, 2, 5, 6, 7});
  check<1>(t<&Target::unsigned_wide> == s<&Source::narrow>, {2, 3, 4, 5, 6, 7});  // -1 is not the largest
  check<1>(kf::same(s<&Source::narrow>, t<&Target::wide>), {1, 2, 5, 6, 7});
  check<1>(s<&Source::wide> == t<&Target::wide>, {3, 4, 5, 6, 7});
}

TEST_CASE("floating-point numbers are joined by value, NaN by same() only") {
  check<1>(s<&Source::fraction> == t<&Target::fraction>, {1, 3, 6});
  check<1>(kf::same(s<&Source::fraction>, t<&Target::fraction>), {1, 3, 4, 6});
  check<1>(s<&Source::small_fraction> == t<&Target::fraction>, {1, 3, 5});  // 0.1F is not 0.1
}

TEST_CASE("whole numbers and fractions are joined by hash only where comparing them does not round") {
  check<1>(s<&Source::narrow> == t<&Target::fraction>, {1, 2, 3});
  // 2^53 + 1 becomes 2^53 when it is compared to a double.
  check<0>(s<&Source::wide> == t<&Target::fraction>, {1, 3, 7});
  check<0>(s<&Source::long_fraction> == t<&Target::wide>, {2, 3, 5, 6});
}

TEST_CASE("texts of any type are joined by value, but not pointers") {
  check<1>(s<&Source::text> == t<&Target::text>, {1, 3, 4, 5, 6, 7});
  check<0>(kf::same(s<&Source::pointer>, t<&Target::text>), {1, 3, 4, 5, 6, 7});
}

TEST_CASE("absent values are joined by same() only") {
  check<1>(s<&Source::maybe> == t<&Target::maybe>, {2, 6});
  check<1>(kf::same(s<&Source::maybe>, t<&Target::maybe>), {1, 2, 3, 5, 6, 7});
  check<1>(s<&Source::maybe_fraction> == t<&Target::maybe>, {2, 6});
  check<1>(kf::same(t<&Target::maybe>, s<&Source::maybe_fraction>), {1, 2, 3, 5, 6, 7});
}

TEST_CASE("enumerations and durations of one type are joined by value, others by trying all") {
  check<1>(s<&Source::colour> == t<&Target::colour>, {1, 2, 3, 4, 5, 6, 7});
  check<1>(s<&Source::delay_in_seconds> == t<&Target::delay>, {1, 2, 3, 4, 6, 7});
  check<0>(s<&Source::delay> == t<&Target::delay>, {1, 2, 3, 4, 5, 7});
  check<0>(kf::same(s<&Source::either>, t<&Target::either>), {1, 2, 3, 4, 5, 6});
}

TEST_CASE("a computed column is joined by its value") {
  check<1>(s<&Source::wide> == t<&Target::doubled>, {2, 5, 6});
}

TEST_CASE("equalities are found wherever && joins them, and the rest is asked of candidates only") {
  check<2>(s<&Source::text> == t<&Target::text> && s<&Source::narrow> == t<&Target::wide>, {1, 5, 6, 7});
  check<2>((s<&Source::narrow> == t<&Target::wide> && t<&Target::id> > 1) &&
               (s<&Source::wide> >= 0 && kf::same(t<&Target::colour>, s<&Source::colour>)),
           {2, 5, 6, 7});
  check<0>(s<&Source::text> == t<&Target::text> || s<&Source::narrow> == t<&Target::wide>,
           {1, 2, 3, 4, 5, 6, 7});
  check<0>(!(s<&Source::text> == t<&Target::text>), {1, 2, 3, 4, 5, 6, 7});
  check<0>(s<&Source::narrow> != t<&Target::wide>, {1, 2, 3, 4, 5, 6, 7});
  check<0>(s<&Source::narrow> == 1, {1, 2, 3, 4, 5, 6, 7});
  check<0>(s<&Source::narrow> + 1 == t<&Target::wide>, {2, 5, 6, 7});
}

TEST_CASE("no rows join nothing") {
  const auto hashed = s<&Source::narrow> == t<&Target::wide>;
  CHECK(leaving(hashed, {}).empty());
  CHECK(leaving(!hashed, {}).empty());
}

namespace {

struct Wide {
  int id = 0;
  int group = 0;
  int rank = 0;
};
BOOST_DESCRIBE_STRUCT(Wide, (), (id, group, rank))
using Wides = kf::Table<Wide, kf::Key<&Wide::id>>;

struct Counted {
  static inline std::size_t comparisons = 0;
  int value = 0;
  friend bool operator==(const Counted& a, const Counted& b) {
    ++comparisons;
    return a.value == b.value;
  }
  friend bool operator<(const Counted& a, const Counted& b) {
    ++comparisons;
    return a.value < b.value;
  }
  friend std::size_t hash_value(const Counted& counted) { return static_cast<std::size_t>(counted.value); }
};
struct Row {
  int id = 0;
  Counted group;
  Counted rank;
};
BOOST_DESCRIBE_STRUCT(Row, (), (id, group, rank))

}  // namespace

TEST_CASE("replace_on compares a target row with its candidates, not with the whole source") {
  constexpr int count = 2000;
  kf::Table<Row, kf::Key<&Row::id>> table;
  std::vector<Row> incoming;
  for (int i = 0; i < count; ++i) {
    table.insert({i, {i}, {1}});
    incoming.push_back({count + i, {i + count / 2}, {2}});
  }
  const auto condition =
      kf::source<&Row::group> == kf::target<&Row::group> && kf::source<&Row::rank> > kf::target<&Row::rank>;
  Counted::comparisons = 0;
  CHECK(table.replace_on(condition, incoming).metrics().deleted == count / 2);
  CHECK(Counted::comparisons < 6 * count);
}

TEST_CASE("replace_on takes a whole source with one value in linear time") {
  constexpr int count = 2000;
  kf::Table<Row, kf::Key<&Row::id>> table;
  std::vector<Row> incoming;
  for (int i = 0; i < count; ++i) {
    table.insert({i, {7}, {1}});
    incoming.push_back({count + i, {7}, {2}});
  }
  Counted::comparisons = 0;
  CHECK(table.replace_on(kf::source<&Row::group> == kf::target<&Row::group>, incoming).metrics().deleted ==
        count);
  CHECK(Counted::comparisons < 6 * count);
}

TEST_CASE("a hundred thousand rows are replaced by a condition on a pair") {
  Wides table;
  std::vector<Wide> rows;
  for (int id = 0; id < 100'000; ++id) rows.push_back({id, id / 2, id % 7});
  table.append(rows);
  for (Wide& row : rows) row.id += 100'000;
  const auto result = table.replace_on(kf::source<&Wide::group> == kf::target<&Wide::group> &&
                                           kf::source<&Wide::rank> == kf::target<&Wide::rank>,
                                       rows);
  CHECK(result.metrics().deleted == 100'000);
}
