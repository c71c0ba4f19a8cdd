#include <keyfold/keyfold.hpp>

#include <boost/describe/enum.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using namespace std::chrono_literals;

namespace {

enum class Status { open, closed };
BOOST_DESCRIBE_ENUM(Status, open, closed)

struct Row {
  int id = 0;
  std::string name;
  std::optional<int> count;
  std::optional<bool> flag;
  std::optional<std::string> note;
  double ratio = 0;
  bool current = false;
  Status status = Status::open;
  kf::Timestamp at{};
  int twice() const { return 2 * id; }
};

struct Change {
  std::uint32_t id = 0;
  char op = 'U';
  std::string name;
  std::optional<int> count;
  std::optional<bool> flag;
  std::optional<std::string> note;
  std::int64_t big = 0;
  std::uint64_t huge = 0;
  std::optional<std::int64_t> balance;
  std::optional<std::uint64_t> views;
  float ratio = 0;
  Status status = Status::open;
  kf::Timestamp at{};
  std::chrono::sys_days day{};
};

template <auto Member>
constexpr auto& t = kf::target<Member>;
template <auto Member>
constexpr auto& s = kf::source<Member>;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

// The value of an expression on these rows.
template <class Expression>
auto value(const Expression& expression, const Row& target, const Change& source = {}) {
  return expression(kf::detail::Scope<Row, Change>{target, source});
}
template <class Expression>
auto value(const Expression& expression, const Change& source) {
  return value(expression, Row(), source);
}

// Whether a condition holds on these rows: unknown does not.
template <class Expression, class... Rows>
bool holds(const Expression& expression, const Rows&... rows) {
  return kf::detail::is_true(value(expression, rows...));
}

using kf::detail::text_of;

using Truth = std::optional<bool>;
constexpr Truth yes = true;
constexpr Truth no = false;
constexpr Truth unknown = std::nullopt;
constexpr std::array truths = {yes, no, unknown};

Row row(int id) {
  Row out;
  out.id = id;
  return out;
}
Row flagged(Truth flag) {
  Row out;
  out.flag = flag;
  return out;
}
Change flagging(Truth flag) {
  Change out;
  out.flag = flag;
  return out;
}

}  // namespace

TEST_CASE("columns read the row of their side") {
  Change change;
  change.id = 7;
  CHECK(value(t<&Row::id>, row(3), change) == 3);
  CHECK(value(s<&Change::id>, row(3), change) == 7);
  CHECK(value(t<&Row::twice>, row(3), change) == 6);
}

TEST_CASE("comparisons of numbers give every operator's truth") {
  const auto compared = [](int id) {
    return std::array{holds(t<&Row::id> == 5, row(id)), holds(t<&Row::id> != 5, row(id)),
                      holds(t<&Row::id> < 5, row(id)),  holds(t<&Row::id> <= 5, row(id)),
                      holds(t<&Row::id> > 5, row(id)),  holds(t<&Row::id> >= 5, row(id))};
  };
  CHECK(compared(4) == std::array{false, true, true, true, false, false});
  CHECK(compared(5) == std::array{true, false, false, true, false, true});
  CHECK(compared(6) == std::array{false, true, false, false, true, true});
}

TEST_CASE("a literal may stand on the left") {
  const auto compared = [](int id) {
    return std::array{holds(5 == t<&Row::id>, row(id)), holds(5 != t<&Row::id>, row(id)),
                      holds(5 < t<&Row::id>, row(id)),  holds(5 <= t<&Row::id>, row(id)),
                      holds(5 > t<&Row::id>, row(id)),  holds(5 >= t<&Row::id>, row(id))};
  };
  CHECK(compared(4) == std::array{false, true, false, false, true, true});
  CHECK(compared(5) == std::array{true, false, false, true, false, true});
  CHECK(compared(6) == std::array{false, true, true, true, false, false});
}

TEST_CASE("comparisons without optionals are plain bool") {
  STATIC_REQUIRE(std::same_as<decltype(value(t<&Row::id> == 5, Row())), bool>);
  STATIC_REQUIRE(std::same_as<decltype(value(t<&Row::id> == 5 && !(t<&Row::name> < "x"), Row())), bool>);
  STATIC_REQUIRE(std::same_as<decltype(value(t<&Row::count> == 5, Row())), Truth>);
}

TEST_CASE("a comparison with an empty optional is unknown for every operator") {
  Row empty;
  Change full;
  full.count = 1;
  const auto all_unknown = [](const auto&... comparison) { return ((comparison == unknown) && ...); };
  CHECK(all_unknown(value(t<&Row::count> == 1, empty), value(t<&Row::count> != 1, empty),
                    value(t<&Row::count> < 1, empty), value(t<&Row::count> <= 1, empty),
                    value(t<&Row::count> > 1, empty), value(t<&Row::count> >= 1, empty)));
  CHECK(all_unknown(value(s<&Change::count> == t<&Row::count>, empty, full),
                    value(t<&Row::count> != s<&Change::count>, empty, full),
                    value(t<&Row::count> == s<&Change::count>, empty),    // both are empty
                    value(t<&Row::count> >= s<&Change::count>, empty)));  // both are empty
}

TEST_CASE("a comparison of optionals that are there is that of their values") {
  Row target;
  Change source;
  target.count = 1;
  source.count = 2;
  CHECK(value(t<&Row::count> < s<&Change::count>, target, source) == yes);
  CHECK(value(t<&Row::count> > s<&Change::count>, target, source) == no);
  CHECK(value(t<&Row::count> == 1, target) == yes);
  CHECK(value(1 != t<&Row::count>, target) == no);
}

TEST_CASE("a comparison with nullopt is unknown, and no condition") {
  Row target;
  CHECK(value(t<&Row::count> == std::nullopt, target) == unknown);
  target.count = 1;
  CHECK(value(t<&Row::count> == std::nullopt, target) == unknown);
  CHECK(value(std::nullopt != t<&Row::count>, target) == unknown);
  CHECK_FALSE(holds(t<&Row::count> != std::nullopt, target));
}

TEST_CASE("AND is Kleene's") {
  constexpr std::array<std::array<Truth, 3>, 3> table = {{{yes, no, unknown},        // yes AND ...
                                                          {no, no, no},              // no AND ...
                                                          {unknown, no, unknown}}};  // unknown AND ...
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      INFO(a << " AND " << b);
      CHECK(value(t<&Row::flag> && s<&Change::flag>, flagged(truths[a]), flagging(truths[b])) == table[a][b]);
    }
  }
}

TEST_CASE("OR is Kleene's") {
  constexpr std::array<std::array<Truth, 3>, 3> table = {
      {{yes, yes, yes}, {yes, no, unknown}, {yes, unknown, unknown}}};
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      INFO(a << " OR " << b);
      CHECK(value(t<&Row::flag> || s<&Change::flag>, flagged(truths[a]), flagging(truths[b])) == table[a][b]);
    }
  }
}

TEST_CASE("NOT leaves unknown unknown") {
  CHECK(value(!t<&Row::flag>, flagged(yes)) == no);
  CHECK(value(!t<&Row::flag>, flagged(no)) == yes);
  CHECK(value(!t<&Row::flag>, flagged(unknown)) == unknown);
  CHECK(value(!(t<&Row::count> == 1), Row()) == unknown);
  CHECK(value(!(t<&Row::id> == 1), row(1)) == false);
}

TEST_CASE("logic mixes values that may be empty with values that are not") {
  CHECK(value(t<&Row::flag> && t<&Row::current>, flagged(unknown)) == no);
  CHECK(value(t<&Row::current> || t<&Row::flag>, flagged(unknown)) == unknown);
  CHECK(value(t<&Row::flag> || true, flagged(unknown)) == yes);
  CHECK(value(true && t<&Row::flag>, flagged(no)) == no);
}

TEST_CASE("unknown is no condition that holds, and neither is its negation") {
  CHECK_FALSE(holds(t<&Row::count> == 1, Row()));
  CHECK_FALSE(holds(!(t<&Row::count> == 1), Row()));
  CHECK_FALSE(holds(t<&Row::count> == 1 || t<&Row::count> != 1, Row()));
  CHECK(holds(t<&Row::count> == 1 || kf::is_null(t<&Row::count>), Row()));
}

TEST_CASE("De Morgan's laws hold in three values") {
  for (const Truth a : truths) {
    for (const Truth b : truths) {
      const auto& x = t<&Row::flag>;
      const auto& y = s<&Change::flag>;
      CHECK(value(!(x && y), flagged(a), flagging(b)) == value(!x || !y, flagged(a), flagging(b)));
      CHECK(value(!(x || y), flagged(a), flagging(b)) == value(!x && !y, flagged(a), flagging(b)));
    }
  }
}

namespace {

struct Counting : kf::detail::ExpressionBase {
  [[maybe_unused]] static constexpr bool reads_source = false;
  [[maybe_unused]] static constexpr bool reads_target = false;
  int* evaluations;
  template <class Rows>
  bool operator()(const Rows&) const {
    ++*evaluations;
    return true;
  }
};

}  // namespace

TEST_CASE("the right side of AND and OR is evaluated only where it matters") {
  int evaluations = 0;
  const Counting right{{}, &evaluations};
  CHECK(value(t<&Row::flag> && right, flagged(no)) == no);
  CHECK(value(t<&Row::flag> || right, flagged(yes)) == yes);
  CHECK(value(t<&Row::current> && right, Row()) == false);
  CHECK(evaluations == 0);
  CHECK(value(t<&Row::flag> && right, flagged(unknown)) == unknown);
  CHECK(value(t<&Row::current> || right, Row()) == true);
  CHECK(evaluations == 2);
}

TEST_CASE("is_null tells whether an optional is empty") {
  Row target;
  CHECK(value(kf::is_null(t<&Row::count>), target));
  target.count = 0;
  CHECK_FALSE(value(kf::is_null(t<&Row::count>), target));
  CHECK_FALSE(value(kf::is_null(t<&Row::id>), target));
  CHECK(value(!kf::is_null(t<&Row::count>), target));
  CHECK(value(kf::is_null(t<&Row::note> + "x"), target));
}

TEST_CASE("same is equality that knows what empty is") {
  Row target;
  Change source;
  const auto same = kf::same(t<&Row::count>, s<&Change::count>);
  CHECK(value(same, target, source));
  target.count = 1;
  CHECK_FALSE(value(same, target, source));
  source.count = 1;
  CHECK(value(same, target, source));
  source.count = 2;
  CHECK_FALSE(value(same, target, source));
  CHECK(value(!same, target, source));
  STATIC_REQUIRE(std::same_as<decltype(value(same, target, source)), bool>);
}

TEST_CASE("same takes literals, nullopt and values of other types") {
  Row target;
  CHECK(value(kf::same(t<&Row::count>, std::nullopt), target));
  CHECK_FALSE(value(kf::same(t<&Row::count>, 0), target));
  target.count = 5;
  CHECK_FALSE(value(kf::same(std::nullopt, t<&Row::count>), target));
  CHECK(value(kf::same(5U, t<&Row::count>), target));
  CHECK_FALSE(value(kf::same(t<&Row::id>, std::nullopt), target));
  target.note = "x";
  CHECK(value(kf::same(t<&Row::note>, "x"), target));
}

TEST_CASE("same calls two NaN the same, == does not") {
  Row target;
  target.ratio = nan_value;
  Change source;
  source.ratio = std::numeric_limits<float>::quiet_NaN();
  CHECK(value(kf::same(t<&Row::ratio>, nan_value), target));
  CHECK(value(kf::same(t<&Row::ratio>, s<&Change::ratio>), target, source));
  CHECK_FALSE(value(t<&Row::ratio> == nan_value, target));
  CHECK(value(t<&Row::ratio> != nan_value, target));
  CHECK_FALSE(value(t<&Row::ratio> < nan_value, target));
  CHECK_FALSE(value(t<&Row::ratio> >= nan_value, target));
}

TEST_CASE("integers of different sign and width compare by value") {
  Change source;
  source.id = 4294967295U;
  source.huge = std::numeric_limits<std::uint64_t>::max();
  source.big = -1;
  CHECK_FALSE(value(t<&Row::id> == s<&Change::id>, row(-1), source));
  CHECK(value(t<&Row::id> < s<&Change::id>, row(-1), source));
  CHECK(value(s<&Change::huge> > s<&Change::big>, source));
  CHECK_FALSE(value(s<&Change::huge> == s<&Change::big>, source));
  CHECK(value(s<&Change::big> == t<&Row::id>, row(-1), source));
  CHECK(value(s<&Change::id> > -1, source));
  CHECK(value(s<&Change::huge> != -1, source));
  CHECK(value(t<&Row::id> <= 0U, row(-1)));
}

TEST_CASE("a number compares with a character and a bool by value") {
  Change source;
  source.op = 'D';
  CHECK(holds(s<&Change::op> == 'D', source));
  CHECK(holds(s<&Change::op> != 'U', source));
  CHECK(holds(s<&Change::op> < 'E', source));
  CHECK(holds(t<&Row::current> == false, Row()));
  CHECK_FALSE(holds(t<&Row::current> == true, Row()));
}

TEST_CASE("an integer compares with a fraction") {
  CHECK(value(t<&Row::id> > 4.5, row(5)));
  CHECK_FALSE(value(t<&Row::id> == 4.5, row(5)));
  CHECK(value(t<&Row::id> == 5.0, row(5)));
  Row target;
  target.ratio = 0.5;
  Change source;
  source.ratio = 0.5F;
  CHECK(value(t<&Row::ratio> == s<&Change::ratio>, target, source));
}

TEST_CASE("text compares with text of every kind") {
  Row target;
  target.name = "bob";
  Change source;
  source.name = "bob";
  source.note = "carl";
  char buffer[] = "bob";
  const char* pointer = "bob";
  CHECK(holds(t<&Row::name> == "bob", target));
  CHECK(holds(t<&Row::name> == buffer, target));
  CHECK(holds(t<&Row::name> == pointer, target));
  CHECK(holds(t<&Row::name> == std::string("bob"), target));
  CHECK(holds(t<&Row::name> == std::string_view("bob"), target));
  CHECK(holds(t<&Row::name> == s<&Change::name>, target, source));
  CHECK(holds(t<&Row::name> < s<&Change::note>, target, source));
  CHECK(holds("bo" < t<&Row::name>, target));
  CHECK(holds(t<&Row::name> < "bobby", target));
  CHECK_FALSE(holds(t<&Row::name> == "Bob", target));
}

TEST_CASE("a string operand is kept as a copy") {
  Row target;
  target.name = "a name that does not fit a small buffer";
  const auto condition = [&] {
    const std::string gone = target.name;
    return t<&Row::name> == gone;
  }();
  CHECK(holds(condition, target));
  CHECK(text_of(condition) == "(target.name = 'a name that does not fit a small buffer')");
}

TEST_CASE("enumerations and times compare") {
  Row target;
  Change source;
  target.status = Status::closed;
  CHECK(holds(t<&Row::status> == Status::closed, target));
  CHECK(holds(t<&Row::status> != s<&Change::status>, target, source));
  CHECK(holds(t<&Row::status> > s<&Change::status>, target, source));

  source.day = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2);
  target.at = source.day + 1h;
  source.at = source.day + 1h;
  CHECK(holds(t<&Row::at> == s<&Change::at>, target, source));
  CHECK(holds(t<&Row::at> > s<&Change::day>, target, source));
  CHECK(holds(t<&Row::at> < source.day + 2h, target, source));
}

TEST_CASE("arithmetic is that of C++") {
  Change source;
  source.big = 10;
  CHECK(value(t<&Row::id> + 2, row(5)) == 7);
  CHECK(value(t<&Row::id> - 7, row(5)) == -2);
  CHECK(value(3 * t<&Row::id>, row(5)) == 15);
  CHECK(value(t<&Row::id> * t<&Row::id> - s<&Change::big>, row(5), source) == 15);
  CHECK(value(t<&Row::id> + 0.5, row(5)) == 5.5);
  CHECK(value(t<&Row::id> + t<&Row::id> * 2, row(5)) == 15);
  STATIC_REQUIRE(std::same_as<decltype(value(t<&Row::id> + s<&Change::big>, Row(), Change())), std::int64_t>);
}

TEST_CASE("arithmetic with an empty optional is empty") {
  Row target;
  Change source;
  source.count = 4;
  CHECK(value(t<&Row::count> + 1, target) == std::nullopt);
  CHECK(value(1 - t<&Row::count>, target) == std::nullopt);
  CHECK(value(s<&Change::count> * t<&Row::count>, target, source) == std::nullopt);
  target.count = 3;
  CHECK(value(s<&Change::count> * t<&Row::count>, target, source) == 12);
  CHECK(value(s<&Change::count> + 1, target, source) == 5);
  CHECK(value((t<&Row::count> + 1) > 3, target) == yes);
}

TEST_CASE("times add and subtract") {
  Row target;
  target.at = kf::Timestamp(1000000us);
  Change source;
  source.at = kf::Timestamp(3000000us);
  CHECK(value(t<&Row::at> + 2s, target) == source.at);
  CHECK(value(s<&Change::at> - t<&Row::at>, target, source) == 2s);
  CHECK(holds(s<&Change::at> - t<&Row::at> > 1s, target, source));
}

TEST_CASE("plus joins text") {
  Row target;
  target.name = "Ada";
  Change source;
  source.name = "Lovelace";
  CHECK(value(t<&Row::name> + " " + s<&Change::name>, target, source) == "Ada Lovelace");
  CHECK(value("Dr. " + t<&Row::name>, target) == "Dr. Ada");
  CHECK(value(t<&Row::name> + s<&Change::note>, target, source) == std::nullopt);
  source.note = "!";
  CHECK(value(t<&Row::name> + s<&Change::note>, target, source) == "Ada!");
}

TEST_CASE("coalesce takes the first value that is there") {
  Row target;
  Change source;
  CHECK(value(kf::coalesce(t<&Row::count>, 9), target) == 9);
  CHECK(value(kf::coalesce(t<&Row::count>, s<&Change::count>), target, source) == std::nullopt);
  source.count = 2;
  CHECK(value(kf::coalesce(t<&Row::count>, s<&Change::count>), target, source) == 2);
  CHECK(value(kf::coalesce(t<&Row::count>, s<&Change::count>, 9), target, source) == 2);
  target.count = 1;
  CHECK(value(kf::coalesce(t<&Row::count>, s<&Change::count>, 9), target, source) == 1);
  CHECK(value(kf::coalesce(t<&Row::id>, 9), row(4)) == 4);
}

TEST_CASE("coalesce is optional only if its last operand is") {
  STATIC_REQUIRE(std::same_as<decltype(value(kf::coalesce(t<&Row::count>, 9), Row())), int>);
  STATIC_REQUIRE(std::same_as<decltype(value(kf::coalesce(t<&Row::count>, s<&Change::count>), Row())),
                              std::optional<int>>);
  STATIC_REQUIRE(
      std::same_as<decltype(value(kf::coalesce(t<&Row::count>, s<&Change::count>, 9), Row())), int>);
}

TEST_CASE("coalesce of text owns its text") {
  Row target;
  const auto either = kf::coalesce(t<&Row::note>, "none");
  CHECK(value(either, target) == "none");
  target.note = "some";
  CHECK(value(either, target) == "some");
  CHECK(value(kf::coalesce(t<&Row::note>, s<&Change::note>, std::string("x")), Row()) == "x");
  CHECK(value(kf::coalesce(t<&Row::note>, "none") + "!", Row()) == "none!");
}

TEST_CASE("coalesce keeps a negative number beside an unsigned one") {
  Row target;
  target.count = -1;
  CHECK(value(kf::coalesce(t<&Row::count>, std::int64_t{0}), target) == -1);
  CHECK(std::cmp_equal(value(kf::coalesce(t<&Row::count>, s<&Change::id>), target), -1));
}

TEST_CASE("coalesce brings a literal to the sign of a column of 64 bits") {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto balance = kf::coalesce(s<&Change::balance>, std::uint64_t{5});
  const auto count = kf::coalesce(t<&Row::count>, std::uint64_t{5'000'000'000});
  const auto views = kf::coalesce(s<&Change::views>, 5);
  STATIC_REQUIRE(std::same_as<decltype(value(balance, Change())), std::int64_t>);
  STATIC_REQUIRE(std::same_as<decltype(value(count, Row())), std::int64_t>);
  STATIC_REQUIRE(std::same_as<decltype(value(views, Change())), std::uint64_t>);

  CHECK(value(balance, Change()) == 5);
  CHECK(value(count, Row()) == 5'000'000'000);
  CHECK(value(views, Change()) == 5);

  Change source;
  source.balance = -1;
  source.views = most;
  CHECK(value(balance, source) == -1);
  CHECK(value(views, source) == most);
  Row target;
  target.count = -1;
  CHECK(value(count, target) == -1);
}

TEST_CASE("coalesce refuses a literal that has not the sign of a column of 64 bits") {
  CHECK_THROWS_AS(value(kf::coalesce(s<&Change::views>, -1), Change()), kf::ValueOutOfRange);
  CHECK_THROWS_AS(
      value(kf::coalesce(s<&Change::balance>, std::numeric_limits<std::uint64_t>::max()), Change()),
      kf::ValueOutOfRange);
}

TEST_CASE("columns print with their side") {
  CHECK(text_of(t<&Row::name>) == "target.name");
  CHECK(text_of(s<&Change::big>) == "source.big");
  CHECK(text_of(t<&Row::twice>) == "target.twice");
}

TEST_CASE("operators print as SQL writes them") {
  CHECK(text_of(s<&Change::at> > t<&Row::at>) == "(source.at > target.at)");
  CHECK(text_of(t<&Row::id> == 5) == "(target.id = 5)");
  CHECK(text_of(t<&Row::id> != 5) == "(target.id <> 5)");
  CHECK(text_of(t<&Row::id> < 5) == "(target.id < 5)");
  CHECK(text_of(t<&Row::id> <= 5) == "(target.id <= 5)");
  CHECK(text_of(5 >= t<&Row::id>) == "(5 >= target.id)");
  CHECK(text_of(!(t<&Row::id> == 5)) == "(NOT (target.id = 5))");
  CHECK(text_of(t<&Row::current> && t<&Row::flag> || !t<&Row::current>) ==
        "((target.current AND target.flag) OR (NOT target.current))");
  CHECK(text_of(t<&Row::id> + 1 - t<&Row::id> * 2) == "((target.id + 1) - (target.id * 2))");
  CHECK(text_of(kf::is_null(t<&Row::note>)) == "(target.note IS NULL)");
  CHECK(text_of(kf::same(t<&Row::note>, s<&Change::note>)) ==
        "(target.note IS NOT DISTINCT FROM source.note)");
  CHECK(text_of(kf::coalesce(t<&Row::note>, s<&Change::note>, "-")) ==
        "coalesce(target.note, coalesce(source.note, '-'))");
}

TEST_CASE("literals print as SQL writes them") {
  const auto text = [](const auto& literal) { return text_of(t<&Row::id> == literal); };
  CHECK(text(5) == "(target.id = 5)");
  CHECK(text(-7LL) == "(target.id = -7)");
  CHECK(text(2.5) == "(target.id = 2.5)");
  CHECK(text(std::numeric_limits<std::uint64_t>::max()) == "(target.id = 18446744073709551615)");
  CHECK(text(std::int8_t{65}) == "(target.id = 65)");
  CHECK(text(true) == "(target.id = true)");
  CHECK(text(std::nullopt) == "(target.id = NULL)");
}

TEST_CASE("text and time literals print in quotes") {
  Row target;
  CHECK(text_of(s<&Change::op> == 'D') == "(source.op = 'D')");
  CHECK(text_of(t<&Row::name> == "it's") == "(target.name = 'it''s')");
  CHECK(text_of(t<&Row::name> == std::string("")) == "(target.name = '')");
  CHECK(text_of(t<&Row::status> == Status::closed) == "(target.status = closed)");
  const auto day = std::chrono::sys_days(std::chrono::year(2026) / 10 / 4);
  CHECK(text_of(t<&Row::at> < kf::Timestamp(day + 9h + 5min)) == "(target.at < '2026-10-04T09:05:00Z')");
  CHECK(text_of(t<&Row::at> < kf::Timestamp(day + 1us)) == "(target.at < '2026-10-04T00:00:00.000001Z')");
  CHECK(text_of(s<&Change::day> == day) == "(source.day = '2026-10-04')");
  CHECK(text_of(t<&Row::count> == std::optional<int>(3)) == "(target.count = 3)");
  CHECK(text_of(t<&Row::count> == std::optional<int>()) == "(target.count = NULL)");
}

TEST_CASE("expressions are constants where their operands are") {
  constexpr auto condition = s<&Change::op> == 'D' && t<&Row::id> > 3;
  STATIC_REQUIRE(std::is_empty_v<std::remove_cvref_t<decltype(t<&Row::id>)>>);
  Change deleted;
  deleted.op = 'D';
  CHECK(holds(condition, row(4), deleted));
  CHECK_FALSE(holds(condition, row(3), deleted));
  CHECK_FALSE(holds(condition, row(4), Change()));
}

TEST_CASE("expressions know which sides they read") {
  constexpr auto both = s<&Change::big> > t<&Row::id>;
  STATIC_REQUIRE(both.reads_source);
  STATIC_REQUIRE(both.reads_target);
  constexpr auto target_only = kf::is_null(t<&Row::note>) || t<&Row::id> == 1;
  STATIC_REQUIRE_FALSE(target_only.reads_source);
  STATIC_REQUIRE(target_only.reads_target);
  constexpr auto source_only = !(kf::coalesce(s<&Change::count>, 0) + 1 == 2);
  STATIC_REQUIRE(source_only.reads_source);
  STATIC_REQUIRE_FALSE(source_only.reads_target);
}

namespace {

using Table = kf::Table<Row, kf::Key<&Row::id>>;

Change change(std::uint32_t id, std::optional<int> count) {
  Change out;
  out.id = id;
  out.count = count;
  return out;
}

Table table_of(std::vector<Row> rows) {
  Table table;
  table.append(std::move(rows));
  return table;
}

}  // namespace

TEST_CASE("a named callable prints under its name, an unnamed one as <condition>") {
  auto table = table_of({row(1)});
  const auto newer = [](const Row&, const Change& change) { return change.op == 'U'; };
  const std::vector<Change> changes = {change(1, {})};
  const auto rule = table.merge(changes)
                        .on<&Change::id>()
                        .when_matched(kf::named("newer", newer))
                        .do_nothing()
                        .when_matched(newer)
                        .update(kf::target<&Row::name> =
                                    kf::named("greeting", [](const Row&, const Change&) { return "hi"; }))
                        .when_matched()
                        .erase()
                        .metadata("so that there is a commit")
                        .execute();
  CHECK(rule.metrics().skipped == 1);
  CHECK(table.history().back().parameters() ==
        "ON source.id = target.id WHEN MATCHED AND newer THEN DO NOTHING "
        "WHEN MATCHED AND <condition> THEN UPDATE SET name = greeting WHEN MATCHED THEN DELETE");
}

TEST_CASE("a merge acts only where its condition is true") {
  const auto with_count = [](int id, std::optional<int> count) {
    Row out = row(id);
    out.count = count;
    return out;
  };
  const std::vector<Change> changes = {change(1, 5), change(2, 5), change(3, {}), change(4, {})};
  const auto erased_if = [&](auto condition) {
    auto table = table_of({with_count(1, 4), with_count(2, {}), with_count(3, 4), with_count(4, {})});
    table.merge(changes).on<&Change::id>().when_matched(condition).erase().execute();
    std::vector<int> left;
    for (const Row& r : table) left.push_back(r.id);
    return left;
  };
  const auto different = s<&Change::count> != t<&Row::count>;
  CHECK(erased_if(different) == std::vector<int>{2, 3, 4});
  CHECK(erased_if(!different) == std::vector<int>{1, 2, 3, 4});
  CHECK(erased_if(!kf::same(s<&Change::count>, t<&Row::count>)) == std::vector<int>{4});
}
