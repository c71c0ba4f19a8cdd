// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
// Made by scripts/amalgamate from the headers in include/keyfold. Change those.
#pragma once

// keyfold

/// The core of keyfold: tables, merges, history. Free of iostream; print.hpp and csv.hpp are on their own.

// apply_changes

// detail/commit_note

// detail/shared_text

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace keyfold::detail {

/// A text that nobody changes, or none: a pointer, whose copies share the text. Different threads may copy
/// and destroy different copies.
class SharedText {
  struct Shared {
    std::string text;
    std::atomic<std::size_t> users{1};
  };

 public:
  SharedText() = default;
  /// Throws std::bad_alloc.
  explicit SharedText(std::string text) : at_(address_of(new Shared{std::move(text)}) | counted) {}
  /// A text that is never destroyed.
  static SharedText lasting(const std::string& text) noexcept { return SharedText(address_of(&text)); }
  static SharedText lasting(const std::string&&) = delete;

  SharedText(const SharedText& other) noexcept : at_(other.at_) {
    if (is_counted()) shared().users.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : at_(std::exchange(other.at_, 0)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~SharedText() {
    if (is_counted()) leave();
  }

  explicit operator bool() const noexcept { return at_ != 0; }

  /// Requires: there is one.
  const std::string& operator*() const noexcept {
    return is_counted() ? shared().text : *reinterpret_cast<const std::string*>(at_);
  }
  const std::string* operator->() const noexcept { return &**this; }

  /// Bytes of the text and what counts its users; none for one that is never destroyed.
  std::size_t bytes() const noexcept { return is_counted() ? sizeof(Shared) + shared().text.capacity() : 0; }

 private:
  static constexpr std::uintptr_t counted = 1;

  explicit SharedText(std::uintptr_t at) noexcept : at_(at) {}

  static std::uintptr_t address_of(const void* object) noexcept {
    return reinterpret_cast<std::uintptr_t>(object);
  }
  bool is_counted() const noexcept { return (at_ & counted) != 0; }
  void leave() noexcept {
    if (shared().users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &shared();
  }
  Shared& shared() const noexcept { return *reinterpret_cast<Shared*>(at_ & ~counted); }

  std::uintptr_t at_ = 0;  // of a Shared, and 1; or of a text that is never destroyed
};

}  // namespace keyfold::detail

// fwd

#include <chrono>

/// The vocabulary of the core, and its templates for those who only name them. Costs no other header of
/// keyfold.
namespace keyfold {

/// Number of a commit: version 0 is the empty table, each commit makes the next number.
using Version = std::uint64_t;

/// Commit times: UTC, in microseconds.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// Position of a source row in its batch, counting from 0; `no_position` when a row did not come from the
/// batch.
using Position = std::size_t;
inline constexpr Position no_position = static_cast<Position>(-1);

// key.hpp
template <auto... Parts>
struct Key;
template <auto... Parts>
struct OrderedKey;
template <auto... Parts>
struct OrderedBy;
template <auto... Parts>
struct HashedBy;
template <auto... Parts>
struct UniqueBy;

// column.hpp
template <auto... Members>
struct Columns;
template <auto... Members>
struct Ignored;
template <class Row>
struct columns_of;
template <class Row>
class ColumnMask;

// change.hpp
enum class ChangeKind : std::uint8_t;
template <class Row>
class Change;
template <class Row>
class ChangeSet;

// history.hpp
struct Metrics;
template <class Row>
class Commit;
template <class Row>
class History;

// merge.hpp
template <class Row>
class MergeResult;
template <class Target, class Source, class Rule>
class MergeBuilder;
template <class Row, class Source, class Match, class Policy, class... Clauses>
class MergeRule;

// transaction.hpp
template <class Table>
class Transaction;

// load.hpp
template <class Self, class Target, class Row>
class Loads;

// writes.hpp
template <class Self, class Target, class Row>
class Writes;

// constraint.hpp
struct Constraint;

// apply_changes.hpp
template <class Target, class Source, class Feed>
class ApplyChanges;

// shared_table.hpp
template <class Shared>
class SharedTable;

// table.hpp
struct TableOptions;
template <class Row, class KeySpec, class... Indexes>
class Table;

}  // namespace keyfold

#include <optional>
#include <string_view>
#include <vector>

namespace keyfold::detail {

/// Numbers the writes of an application, see once().
struct AppNumber {
  std::string app;
  std::uint64_t number;
};

/// What a commit says about itself beside its changes.
struct CommitNote {
  std::string_view operation{};  // static storage
  SharedText parameters{};
  SharedText metadata{};
  std::vector<AppNumber> once{};
  std::optional<Timestamp> timestamp{};  // of a commit that is made again from a journal
};

}  // namespace keyfold::detail

// detail/feed

// column

// detail/fields

// detail/member

#include <type_traits>

/// What a key part or column is: a data member, a const member function or a captureless callable; how it is
/// read from a row and what it is called.
namespace keyfold::detail {

template <class Pointer>
struct member_owner {
  using type = void;  // a callable belongs to no row type
};
template <class Value, class Owner>
struct member_owner<Value Owner::*> {
  using type = Owner;
};

/// The type whose member `Member` is; void for a callable.
template <auto Member>
using owner_of = typename member_owner<std::remove_cv_t<decltype(Member)>>::type;

template <auto Member>
inline constexpr bool is_data_member = std::is_member_object_pointer_v<decltype(Member)>;

/// Whether `Member` can be read from a const Row.
template <auto Member, class Row>
concept Readable = [] {
  if constexpr (std::is_member_pointer_v<decltype(Member)>) {
    return std::is_base_of_v<owner_of<Member>, Row> && std::is_invocable_v<decltype(Member), const Row&>;
  } else {
    return std::is_invocable_v<decltype(Member), const Row&>;
  }
}();

template <auto Member, class Row>
constexpr decltype(auto) read(const Row& row) {
  if constexpr (is_data_member<Member>) {
    return (row.*Member);
  } else if constexpr (std::is_member_pointer_v<decltype(Member)>) {
    return (row.*Member)();
  } else {
    return Member(row);
  }
}

template <auto Member, class Row>
using member_value_t = std::remove_cvref_t<decltype(read<Member>(std::declval<const Row&>()))>;

// The compilers print the member of a free function's only template parameter in full; nowhere else reliably
// so.
template <auto Member>
constexpr std::string_view spelled() {
  return __PRETTY_FUNCTION__;
}

constexpr std::string_view last_name(std::string_view text) {
  const auto start = text.find("Member = ") + 9;
  const auto more = text.find("; std::string_view = ", start);  // g++ goes on with what the return type is
  text = text.substr(start, (more != std::string_view::npos ? more : text.rfind(']')) - start);
  while (!text.empty() && (text.back() == ')' || text.back() == ' ')) text.remove_suffix(1);
  return text.substr(text.rfind(':') + 1);
}

/// The name of a member as written in the source; "<callable>" for a callable.
template <auto Member>
inline constexpr std::string_view member_name =
    std::is_member_pointer_v<decltype(Member)> ? last_name(spelled<Member>())
                                               : std::string_view("<callable>");

/// "(a, b)" or, for a single member, "a": how an index is called in messages.
template <auto First, auto... Rest, class String>
void append_names(String& out) {
  if constexpr (sizeof...(Rest) == 0) {
    out += member_name<First>;
  } else {
    out += '(';
    out += member_name<First>;
    ((out += ", ", out += member_name<Rest>), ...);
    out += ')';
  }
}

}  // namespace keyfold::detail

// detail/value

#include <boost/mp11/algorithm.hpp>

#include <algorithm>
#include <bit>
#include <compare>
#include <concepts>
#include <functional>
#include <limits>
#include <ranges>
#include <tuple>
#include <variant>

/// Equality, order and hash of single values as keys and columns see them: strings of any type compare as
/// text, integers by value whatever their width and sign, an empty optional equals itself and comes first,
/// NaN equals itself and comes last, -0.0 equals 0.0.
namespace keyfold::detail {

template <class T>
inline constexpr bool is_optional_v = false;
template <class T>
inline constexpr bool is_optional_v<std::optional<T>> = true;

template <class T>
inline constexpr bool is_nullable_v = is_optional_v<T> || std::same_as<T, std::nullopt_t>;

template <class T>
struct unwrap_optional {
  using type = T;
};
template <class T>
struct unwrap_optional<std::optional<T>> {
  using type = T;
};
template <class T>
using unwrap_optional_t = typename unwrap_optional<T>::type;

template <class T>
inline constexpr bool is_tuple_v = false;
template <class... T>
inline constexpr bool is_tuple_v<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple_v<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_tuple_of_one = false;
template <class T>
inline constexpr bool is_tuple_of_one<std::tuple<T>> = true;

template <class T>
inline constexpr bool is_duration_v = false;
template <class Rep, class Period>
inline constexpr bool is_duration_v<std::chrono::duration<Rep, Period>> = true;

template <class T>
inline constexpr bool is_time_point_v = false;
template <class Clock, class Duration>
inline constexpr bool is_time_point_v<std::chrono::time_point<Clock, Duration>> = true;

template <class T>
inline constexpr bool is_string_v = false;
template <class Traits, class Allocator>
inline constexpr bool is_string_v<std::basic_string<char, Traits, Allocator>> = true;
template <class Traits>
inline constexpr bool is_string_v<std::basic_string_view<char, Traits>> = true;
template <>
inline constexpr bool is_string_v<const char*> = true;
template <>
inline constexpr bool is_string_v<char*> = true;
template <std::size_t size>
inline constexpr bool is_string_v<char[size]> = true;

/// What compares as text. A type of the user's that converts to text keeps its own ==, < and hash.
template <class T>
concept StringLike = is_string_v<T>;

template <StringLike T>
constexpr std::string_view as_text(const T& text) noexcept {
  return std::string_view(text);
}

/// A char array is text up to its first zero, or all of it.
template <std::size_t size>
constexpr std::string_view as_text(const char (&text)[size]) noexcept {
  return std::string_view(text, size).substr(0, std::string_view(text, size).find('\0'));
}

template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;

/// A type that holds the values of both numbers exactly: an integer beside a floating-point number needs the
/// mantissa of long double.
template <class A, class B>
using exact_common_t =
    std::conditional_t<std::integral<A> != std::integral<B>, long double, std::common_type_t<A, B>>;

template <class T>
inline constexpr bool is_variant_v = false;
template <class... T>
inline constexpr bool is_variant_v<std::variant<T...>> = true;

/// Sequences that may hold NaN, which their own operator== would call different from itself.
template <class T>
concept FloatingSequence = std::ranges::input_range<const T> && !StringLike<T> && !requires {
  typename T::key_type;
} && std::floating_point<unwrap_optional_t<std::ranges::range_value_t<const T>>>;

template <class T>
constexpr bool has_value([[maybe_unused]] const T& value) noexcept {
  if constexpr (std::same_as<T, std::nullopt_t>) {
    return false;
  } else if constexpr (is_optional_v<T>) {
    return value.has_value();
  } else {
    return true;
  }
}

template <class T>
constexpr const auto& value_of(const T& value) noexcept {
  if constexpr (is_optional_v<T>) {
    return *value;
  } else {
    return value;
  }
}

/// Calls with what the variant holds. Requires: it holds something.
template <class Variant, class Function>
constexpr auto of_alternative(const Variant& value, const Function& function) {
  return boost::mp11::mp_with_index<std::variant_size_v<Variant>>(
      value.index(), [&](auto index) { return function(std::get<index>(value)); });
}

template <class T>
constexpr bool is_nan([[maybe_unused]] const T& value) {
  if constexpr (std::floating_point<T>) {
    return value != value;
  } else if constexpr (is_optional_v<T>) {
    return value && is_nan(*value);
  } else if constexpr (is_tuple_v<T>) {
    return std::apply([](const auto&... parts) { return (detail::is_nan(parts) || ...); }, value);
  } else if constexpr (is_variant_v<T>) {
    return !value.valueless_by_exception() &&
           detail::of_alternative(value, [](const auto& held) { return detail::is_nan(held); });
  } else {
    return false;
  }
}

template <class A, class B>
constexpr bool equal_values(const A& a, const B& b);

template <class A, class B, std::size_t... I>
constexpr bool equal_elements(const A& a, const B& b, std::index_sequence<I...>) {
  return (detail::equal_values(std::get<I>(a), std::get<I>(b)) && ...);
}

template <class A, class B>
constexpr bool equal_values(const A& a, const B& b) {
  if constexpr (is_nullable_v<A> || is_nullable_v<B>) {
    if constexpr (std::same_as<A, std::nullopt_t> || std::same_as<B, std::nullopt_t>) {
      return detail::has_value(a) == detail::has_value(b);
    } else {
      return detail::has_value(a) && has_value(b)
                 ? detail::equal_values(detail::value_of(a), detail::value_of(b))
                 : detail::has_value(a) == detail::has_value(b);
    }
  } else if constexpr (StringLike<A> && StringLike<B>) {
    return detail::as_text(a) == detail::as_text(b);
  } else if constexpr (std::integral<A> && std::integral<B>) {
    return std::cmp_equal(+a, +b);
  } else if constexpr (Arithmetic<A> && Arithmetic<B>) {
    const auto x = static_cast<exact_common_t<A, B>>(a);
    const auto y = static_cast<exact_common_t<A, B>>(b);
    return x == y || (x != x && y != y);
  } else if constexpr (is_tuple_v<A> && is_tuple_v<B>) {
    return detail::equal_elements(a, b, std::make_index_sequence<std::tuple_size_v<A>>());
  } else if constexpr (std::same_as<A, B> && is_variant_v<A>) {
    if (a.index() != b.index() || a.valueless_by_exception()) return a.index() == b.index();
    return boost::mp11::mp_with_index<std::variant_size_v<A>>(
        a.index(), [&](auto index) { return detail::equal_values(std::get<index>(a), std::get<index>(b)); });
  } else if constexpr (std::same_as<A, B> && FloatingSequence<A>) {
    auto x = std::ranges::begin(a);
    auto y = std::ranges::begin(b);
    while (x != std::ranges::end(a) && y != std::ranges::end(b) && equal_values(*x, *y)) ++x, ++y;
    return x == std::ranges::end(a) && y == std::ranges::end(b);
  } else {
    return static_cast<bool>(a == b);
  }
}

/// Whether equal_values() has an answer for the two types.
template <class A, class B>
concept HaveEquality = std::same_as<A, std::nullopt_t> || std::same_as<B, std::nullopt_t> ||
                       (StringLike<unwrap_optional_t<A>> && StringLike<unwrap_optional_t<B>>) ||
                       requires(const unwrap_optional_t<A>& a, const unwrap_optional_t<B>& b) { a == b; };

template <class A, class B>
constexpr bool less_values(const A& a, const B& b);

template <std::size_t I, class A, class B>
constexpr bool less_from(const A& a, const B& b) {
  if constexpr (I < std::tuple_size_v<A> && I < std::tuple_size_v<B>) {
    if (detail::less_values(std::get<I>(a), std::get<I>(b))) return true;
    if (detail::less_values(std::get<I>(b), std::get<I>(a))) return false;
    return detail::less_from<I + 1>(a, b);
  } else {
    return false;
  }
}

/// A strict weak order; tuples are compared on their common prefix, so that a short key finds a range of long
/// ones.
template <class A, class B>
constexpr bool less_values(const A& a, const B& b) {
  if constexpr (is_nullable_v<A> || is_nullable_v<B>) {
    if constexpr (std::same_as<A, std::nullopt_t> || std::same_as<B, std::nullopt_t>) {
      return !detail::has_value(a) && has_value(b);
    } else {
      return detail::has_value(b) &&
             (!detail::has_value(a) || detail::less_values(detail::value_of(a), detail::value_of(b)));
    }
  } else if constexpr (StringLike<A> && StringLike<B>) {
    return detail::as_text(a) < detail::as_text(b);
  } else if constexpr (std::integral<A> && std::integral<B>) {
    return std::cmp_less(+a, +b);
  } else if constexpr (Arithmetic<A> && Arithmetic<B>) {
    const auto x = static_cast<exact_common_t<A, B>>(a);
    const auto y = static_cast<exact_common_t<A, B>>(b);
    return x < y || (x == x && y != y);
  } else if constexpr (is_tuple_v<A> && is_tuple_v<B>) {
    return detail::less_from<0>(a, b);
  } else if constexpr (std::same_as<A, B> && is_variant_v<A>) {
    if (a.index() != b.index()) return a.index() + 1 < b.index() + 1;  // one that holds nothing comes first
    if (a.valueless_by_exception()) return false;
    return boost::mp11::mp_with_index<std::variant_size_v<A>>(
        a.index(), [&](auto index) { return detail::less_values(std::get<index>(a), std::get<index>(b)); });
  } else if constexpr (std::same_as<A, B> && FloatingSequence<A>) {
    return std::lexicographical_compare(
        std::ranges::begin(a), std::ranges::end(a), std::ranges::begin(b), std::ranges::end(b),
        [](const auto& x, const auto& y) { return detail::less_values(x, y); });
  } else {
    return static_cast<bool>(a < b);
  }
}

/// Multiply and fold, as wyhash does: two instructions that spread every input bit over the whole word.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(value ^ 0x9E3779B97F4A7C15U) * 0xA0761D6478BD642FU;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

template <class T>
concept StdHashable = requires(const T& value) {
  { std::hash<T>{}(value) } -> std::convertible_to<std::size_t>;
};

template <class T>
concept AdlHashable = requires(const T& value) {
  { hash_value(value) } -> std::convertible_to<std::size_t>;
};

inline constexpr std::uint64_t absent_hash = 0x6A09E667F3BCC909U;

/// A whole number hashes as the integer does, so that either finds the other.
constexpr std::uint64_t hash_of_number(double number) noexcept {
  constexpr double two_to_63 = 9223372036854775808.0;
  if (number != number) return absent_hash;
  if (number >= -two_to_63 && number < two_to_63) {
    const auto whole = static_cast<std::int64_t>(number);
    if (static_cast<double>(whole) == number) return detail::mix(static_cast<std::uint64_t>(whole));
  } else if (number >= two_to_63 && number < 2 * two_to_63) {
    return detail::mix(static_cast<std::uint64_t>(number));
  }
  return detail::mix(std::bit_cast<std::uint64_t>(number));
}

template <class T>
constexpr std::uint64_t hash_of(const T& value) {
  if constexpr (std::same_as<T, std::nullopt_t>) {
    return absent_hash;
  } else if constexpr (is_optional_v<T>) {
    return value ? detail::hash_of(*value) : absent_hash;
  } else if constexpr (StringLike<T>) {
    return std::hash<std::string_view>{}(detail::as_text(value));
  } else if constexpr (std::integral<T>) {
    return detail::mix(static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_enum_v<T>) {
    return detail::hash_of(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::floating_point<T>) {
    return detail::hash_of_number(static_cast<double>(value));
  } else if constexpr (is_duration_v<T>) {
    return detail::hash_of(value.count());
  } else if constexpr (is_time_point_v<T>) {
    return detail::hash_of(value.time_since_epoch().count());
  } else if constexpr (is_tuple_of_one<T>) {
    return detail::hash_of(std::get<0>(value));  // spread already
  } else if constexpr (is_tuple_v<T>) {
    std::uint64_t hash = 0;
    std::apply([&](const auto&... parts) { ((hash = detail::mix(hash + detail::hash_of(parts))), ...); },
               value);
    return hash;
  } else if constexpr (is_variant_v<T>) {
    if (value.valueless_by_exception()) return absent_hash;
    return detail::mix(value.index() +
                       detail::of_alternative(value, [](const auto& held) { return detail::hash_of(held); }));
  } else if constexpr (StdHashable<T>) {
    return detail::mix(std::hash<T>{}(value));
  } else {
    static_assert(
        AdlHashable<T>,
        "keyfold: a key part of this type needs a std::hash specialisation or a hash_value() function");
    return detail::mix(hash_value(value));
  }
}

/// A lookup argument in the form in which it can be compared with, and hashed like, a stored value of type
/// Part.
template <class Part, class Argument>
constexpr decltype(auto) as_lookup(const Argument& argument) {
  using Value = unwrap_optional_t<Part>;
  using Given = unwrap_optional_t<Argument>;
  static_assert(!is_nullable_v<Argument> || is_optional_v<Part>,
                "keyfold: an empty optional cannot be looked up in a column that is never empty");
  if constexpr (std::same_as<Given, Value> || std::same_as<Given, std::nullopt_t> ||
                (Arithmetic<Given> && Arithmetic<Value> &&
                 (std::integral<Given> || std::floating_point<Value>)) ||
                (is_optional_v<Argument> && StringLike<Given> && StringLike<Value>)) {
    return (argument);
  } else if constexpr (StringLike<Given> && StringLike<Value>) {
    return detail::as_text(argument);
  } else {
    static_assert(
        std::convertible_to<const Given&, Value> && !(std::floating_point<Given> && std::integral<Value>),
        "keyfold: a lookup value does not have the type of its key part");
    if constexpr (is_optional_v<Argument>) {
      return argument ? Part(static_cast<Value>(*argument)) : Part();
    } else {
      return static_cast<Value>(argument);
    }
  }
}

/// as_lookup() for a value of declared type Given: a reference is looked up as it is, while a value that was
/// computed is kept, lest the result refer to something gone.
template <class Part, class Given>
constexpr decltype(auto) as_lookup_of(Given&& given) {
  using Looked = decltype(detail::as_lookup<Part>(given));
  using Value = std::remove_cvref_t<Given>;
  if constexpr (std::is_lvalue_reference_v<Given>) {
    return detail::as_lookup<Part>(given);
  } else if constexpr (std::is_reference_v<Looked> || std::same_as<Looked, std::string_view>) {
    return Value(std::forward<Given>(given));
  } else {
    return detail::as_lookup<Part>(given);
  }
}

}  // namespace keyfold::detail

#include <boost/pfr/core.hpp>

#include <cstdlib>

/// The fields of an aggregate: whether a list of members names them all, and a field by field comparison.
namespace keyfold::detail {

template <auto... Members>
struct MemberList {
  static constexpr std::size_t size = sizeof...(Members);
  static constexpr std::tuple<decltype(Members)...> pointers{Members...};

  template <class Row>
  static constexpr bool belong_to = (Readable<Members, Row> && ...);

  /// All members are Row's own, none inherited.
  template <class Row>
  static constexpr bool all_own = (std::is_same_v<owner_of<Members>, Row> && ...);
};

/// Converts to any field of Row, but not to Row itself or a base of it.
template <class Row>
struct AnyField {
  template <class Field>
    requires(!std::is_base_of_v<Field, Row>)
  operator Field() const {  // NOLINT(google-explicit-constructor): brace initialisation must find it
    std::abort();           // never called; without a body compilers warn
  }
};

template <class Row, std::size_t... I>
constexpr bool initializable_from(std::index_sequence<I...>) {
  return requires { Row{(static_cast<void>(I), AnyField<Row>{})...}; };
}

/// Converts to a base of Row only.
template <class Row>
struct AnyBase {
  template <class Base>
    requires(std::is_base_of_v<Base, Row> && !std::is_same_v<Base, Row>)
  operator Base() const {  // NOLINT(google-explicit-constructor): brace initialisation must find it
    std::abort();          // never called; without a body compilers warn
  }
};

/// Whether the initializer after the first `before` ones fills a whole field: it does not where a C array
/// begins.
template <class Row, std::size_t... Before, std::size_t... After>
constexpr bool starts_a_field(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires {
    Row{(static_cast<void>(Before), AnyField<Row>{})..., {}, (static_cast<void>(After), AnyField<Row>{})...};
  };
}

template <class Row, std::size_t... I>
constexpr bool without_arrays(std::index_sequence<I...>) {
  return (
      starts_a_field<Row>(std::make_index_sequence<I>(), std::make_index_sequence<sizeof...(I) - I - 1>()) &&
      ...);
}

/// Aggregates that Boost.PFR can take apart: without bases and not too wide.
template <class Row>
concept Decomposable = std::is_aggregate_v<Row> && !std::is_polymorphic_v<Row> && !requires {
  Row{AnyBase<Row>{}};
} && !initializable_from<Row>(std::make_index_sequence<65>());

/// A field that is a C array takes one initializer for each element.
template <class Field>
inline constexpr std::size_t initializers_for = 1;
template <class Element, std::size_t count>
inline constexpr std::size_t initializers_for<Element[count]> = count * initializers_for<Element>;

template <class Value, class Owner>
constexpr std::size_t initializers(Value Owner::*) {
  return initializers_for<Value>;
}

template <auto... Members>
constexpr std::size_t initializers(MemberList<Members...>) {
  return (std::size_t{0} + ... + initializers(Members));
}

/// Whether `Listed` and `Ignored` together name every field of the aggregate Row. Always true where it cannot
/// be known: classes with constructors or private members, and lists that reach into a base.
template <class Row, class Listed, class Ignored>
constexpr bool complete = [] {
  if constexpr (std::is_aggregate_v<Row> && Listed::template all_own<Row>) {
    return !initializable_from<Row>(
        std::make_index_sequence<initializers(Listed{}) + initializers(Ignored{}) + 1>());
  } else {
    return true;
  }
}();

template <class Row, std::size_t... I>
constexpr bool comparable_fields(std::index_sequence<I...> fields) {
  if constexpr (without_arrays<Row>(fields)) {
    return (std::equality_comparable<boost::pfr::tuple_element_t<I, Row>> && ...);
  } else {
    return false;
  }
}

/// A defaulted operator== calls a row with NaN different from itself; this compares such a row field by
/// field.
template <class Row>
constexpr bool same_fields_with_nan([[maybe_unused]] const Row& a, [[maybe_unused]] const Row& b) {
  if constexpr (Decomposable<Row>) {
    constexpr auto fields = std::make_index_sequence<boost::pfr::tuple_size_v<Row>>();
    if constexpr (comparable_fields<Row>(fields)) {
      return !static_cast<bool>(b == b) && [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (detail::equal_values(boost::pfr::get<I>(a), boost::pfr::get<I>(b)) && ...);
      }(fields);
    }
  }
  return false;
}

}  // namespace keyfold::detail

// detail/text

#include <boost/describe/enum.hpp>
#include <boost/describe/enumerators.hpp>

#include <array>
#include <charconv>

/// Values as text, without iostream: for messages, for the recorded clauses and for print.hpp. A type of the
/// user's is shown through an ADL `to_string(value)`; described enums by their enumerator.
namespace keyfold::detail {

template <class T>
concept AdlText = requires(const T& value) {
  { to_string(value) } -> std::convertible_to<std::string>;
};

/// Not a filesystem path, say, which is made of paths without an end.
template <class T>
concept RangeOfOthers =
    std::ranges::input_range<const T> && !std::same_as<std::ranges::range_value_t<const T>, T>;

enum class Style : std::uint8_t {
  plain,   ///< as a table cell: text unquoted
  literal  ///< as SQL would write it: text, characters and times in single quotes
};

inline void append_text(std::string& out, std::string_view text, Style style) {
  if (style == Style::plain) {
    out += text;
    return;
  }
  out += '\'';
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  out += '\'';
}

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  out.append(buffer.data(), end.ptr);
}

inline void append_padded(std::string& out, long long number, std::size_t width) {
  const auto start = out.size();
  detail::append_number(out, number);
  const auto length = out.size() - start;
  if (length < width) out.insert(start, width - length, '0');
}

/// ISO 8601 in UTC; the fraction is left out when it is zero. A time whose year the calendar of <chrono> does
/// not have is told in days since 1970-01-01.
template <class Duration>
void append_time(std::string& out, std::chrono::sys_time<Duration> time) {
  using namespace std::chrono;
  // floor<days>(time) and time - day would overflow at the ends of Duration.
  auto day = time_point_cast<days>(time);
  auto rest = time.time_since_epoch() % days(1);
  if (rest < rest.zero()) {
    day -= days(1);
    rest += days(1);
  }
  if (day < sys_days(year::min() / January / 1) || day > sys_days(year::max() / December / 31)) {
    detail::append_number(out, day.time_since_epoch().count());
    out += " days since 1970-01-01";
    return;
  }
  const year_month_day date{day};
  detail::append_padded(out, int{date.year()}, 4);
  out += '-';
  detail::append_padded(out, unsigned{date.month()}, 2);
  out += '-';
  detail::append_padded(out, unsigned{date.day()}, 2);
  if constexpr (!std::same_as<Duration, days>) {
    // In plain numbers: hh_mm_ss takes a third of what this function takes to compile.
    const std::int64_t fraction = duration_cast<microseconds>(rest).count();
    const std::int64_t second = fraction / 1'000'000;
    out += 'T';
    detail::append_padded(out, second / 3600, 2);
    out += ':';
    detail::append_padded(out, second / 60 % 60, 2);
    out += ':';
    detail::append_padded(out, second % 60, 2);
    if (fraction % 1'000'000 != 0) {
      out += '.';
      detail::append_padded(out, fraction % 1'000'000, 6);
    }
    out += 'Z';
  }
}

template <class Enum>
void append_enum(std::string& out, Enum value) {
  if constexpr (boost::describe::has_describe_enumerators<Enum>::value) {
    const auto start = out.size();
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<Enum>>([&](auto described) {
      if (out.size() == start && described.value == value) out += described.name;
    });
    if (out.size() != start) return;
  }
  detail::append_number(out, +static_cast<std::underlying_type_t<Enum>>(value));
}

template <class T>
void append_value(std::string& out, const T& value, Style style);

template <class Tuple>
void append_list(std::string& out, const Tuple& values) {
  const char* separator = "(";
  std::apply(
      [&](const auto&... value) {
        ((out += separator, detail::append_value(out, value, Style::literal), separator = ", "), ...);
      },
      values);
  out += ')';
}

template <class T>
void append_value(std::string& out, const T& value, Style style) {
  if constexpr (std::same_as<T, std::nullopt_t> || std::same_as<T, std::monostate>) {
    out += "NULL";
  } else if constexpr (is_optional_v<T>) {
    value ? detail::append_value(out, *value, style) : detail::append_value(out, std::nullopt, style);
  } else if constexpr (StringLike<T>) {
    detail::append_text(out, detail::as_text(value), style);
  } else if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::same_as<T, char>) {
    detail::append_text(out, std::string_view(&value, 1), style);
  } else if constexpr (AdlText<T>) {
    out += to_string(value);
  } else if constexpr (std::convertible_to<const T&, std::string_view> && !std::same_as<T, std::nullptr_t>) {
    detail::append_text(out, static_cast<std::string_view>(value), style);
  } else if constexpr (std::convertible_to<const T&, std::string> && !std::same_as<T, std::nullptr_t>) {
    detail::append_text(out, std::string(value), style);
  } else if constexpr (Arithmetic<T>) {
    detail::append_number(out, +value);
  } else if constexpr (std::is_enum_v<T>) {
    detail::append_enum(out, value);
  } else if constexpr (is_duration_v<T>) {
    detail::append_number(out, value.count());
  } else if constexpr (is_time_point_v<T>) {
    if constexpr (std::same_as<typename T::clock, std::chrono::system_clock>) {
      if (style == Style::literal) out += '\'';
      detail::append_time(out, value);
      if (style == Style::literal) out += '\'';
    } else {
      detail::append_number(out, value.time_since_epoch().count());
    }
  } else if constexpr (is_tuple_v<T>) {
    detail::append_list(out, value);
  } else if constexpr (is_variant_v<T>) {
    if (value.valueless_by_exception()) {
      out += "<valueless>";
    } else {
      detail::of_alternative(value, [&](const auto& held) { detail::append_value(out, held, style); });
    }
  } else if constexpr (RangeOfOthers<T>) {
    const char* separator = "[";
    for (const auto& element : value) {
      out += separator;
      detail::append_value(out, element, Style::literal);
      separator = ", ";
    }
    out += separator[0] == '[' ? "[]" : "]";
  } else {
    out += "<value>";
  }
}

template <class T>
std::string literal_text(const T& value) {
  std::string out;
  detail::append_value(out, value, Style::literal);
  return out;
}

/// The text of a key: its only part, or "(a, b)". Long keys are cut, since they end up in messages.
template <class... Parts>
std::string key_text(const std::tuple<Parts...>& key) {
  constexpr std::size_t limit = 200;
  std::string out;
  if constexpr (sizeof...(Parts) == 1) {
    detail::append_value(out, std::get<0>(key), Style::literal);
  } else {
    detail::append_list(out, key);
  }
  if (out.size() > limit) out.replace(limit, std::string::npos, "...");
  return out;
}

}  // namespace keyfold::detail

#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>

#include <bitset>

/// The column list of a row type: what update_all() and insert_all() copy, what decides whether a row would
/// change, what is printed and saved. A row type without a list works with every clause that names its
/// columns.
namespace keyfold {

/// Leaves members out of the column list: `struct columns_of<Row> : Columns<&Row::id>, Ignored<&Row::cache>
/// {};`
template <auto... Members>
struct Ignored {
  using ignored_members = detail::MemberList<Members...>;
};

/// The columns of a row, in order; no limit to their number.
template <auto... Members>
struct Columns {
  using members = detail::MemberList<Members...>;
};

namespace detail {

template <class Row>
concept Described = boost::describe::has_describe_members<Row>::value;

template <class... Descriptors>
constexpr auto described_members(boost::mp11::mp_list<Descriptors...>) -> MemberList<Descriptors::pointer...>;

template <class Row>
using described_list =
    boost::describe::describe_members<Row, boost::describe::mod_any_access | boost::describe::mod_inherited>;

template <class Row>
struct default_columns {};

}  // namespace detail

/// The columns that BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_CLASS lists; to be combined with `Ignored`.
template <class Row>
struct DescribedColumns {
  using members = decltype(detail::described_members(
      boost::mp11::mp_rename<detail::described_list<Row>, boost::mp11::mp_list>{}));
};

template <detail::Described Row>
struct detail::default_columns<Row> : DescribedColumns<Row> {};

/// Customization point: specialise it for a row type that Boost.Describe does not describe.
///
///     template <> struct keyfold::columns_of<Order> : keyfold::Columns<&Order::id, &Order::status> {};
///
/// A list that misses a member of an aggregate is a compile error; name it in `Ignored` to leave it out on
/// purpose.
template <class Row>
struct columns_of : detail::default_columns<Row> {};

/// Whether the columns of a row type are known.
template <class Row>
concept HasColumns = requires { typename columns_of<Row>::members; };

namespace detail {

template <class Row>
struct ignored_of {
  using type = MemberList<>;
};
template <class Row>
  requires requires { typename columns_of<Row>::ignored_members; }
struct ignored_of<Row> {
  using type = typename columns_of<Row>::ignored_members;
};

template <class Row>
struct checked_columns {
  using members = typename columns_of<Row>::members;
  static_assert(members::template belong_to<Row>, "keyfold: the column list names a member of another type");
  static_assert(
      complete<Row, members, typename ignored_of<Row>::type>,
      "keyfold: the column list misses a member of the row; list it, or name it in keyfold::Ignored");
};

template <class Row>
using columns_list = typename checked_columns<Row>::members;

/// Calls `visit.template operator()<Member, index>()` for each column of Row.
template <class Row, class Visitor>
constexpr void for_each_column(Visitor&& visit) {
  [&]<auto... Members, std::size_t... I>(MemberList<Members...>, std::index_sequence<I...>) {
    (visit.template operator()<Members, I>(), ...);
  }(columns_list<Row>{}, std::make_index_sequence<columns_list<Row>::size>());
}

template <auto... Members>
constexpr auto names_of(MemberList<Members...>) -> std::array<std::string_view, sizeof...(Members)> {
  return {member_name<Members>...};
}

// Whether nothing of a row would change is judged by its columns where they are known and comparable, else by
// its own operator==. A row type with neither counts every update.

template <class T>
concept ValueComparable = requires(const T& a) {
  { a == a } -> std::convertible_to<bool>;
};

template <class Row, auto... Members>
constexpr bool comparable_columns(MemberList<Members...>) {
  return (ValueComparable<member_value_t<Members, Row>> && ...);
}

template <class Row>
concept ComparableColumns = HasColumns<Row> && comparable_columns<Row>(typename columns_of<Row>::members{});

template <class Row>
concept RowComparable = ComparableColumns<Row> || std::equality_comparable<Row>;

template <auto... Members, class Row>
constexpr bool same_columns(MemberList<Members...>, const Row& a, const Row& b) {
  return (detail::equal_values(detail::read<Members>(a), detail::read<Members>(b)) && ...);
}

template <RowComparable Row>
constexpr bool same_row(const Row& a, const Row& b) {
  if constexpr (ComparableColumns<Row>) {
    return detail::same_columns(columns_list<Row>{}, a, b);
  } else {
    return static_cast<bool>(a == b) || detail::same_fields_with_nan(a, b);
  }
}

/// Whether two rows are the same; `otherwise` for a row type that cannot tell.
template <class Row>
bool same_or(bool otherwise, [[maybe_unused]] const Row& a, [[maybe_unused]] const Row& b) {
  if constexpr (RowComparable<Row>) {
    return detail::same_row(a, b);
  } else {
    return otherwise;
  }
}

}  // namespace detail

/// Number of columns of a row type; 0 when they are not known.
template <class Row>
inline constexpr std::size_t column_count = 0;
template <HasColumns Row>
inline constexpr std::size_t column_count<Row> = detail::columns_list<Row>::size;

/// Names of the columns, in order.
template <HasColumns Row>
inline constexpr std::array<std::string_view, column_count<Row>> column_names =
    detail::names_of(detail::columns_list<Row>{});

/// Index of the column called `name`, or column_count<Row> when there is none.
template <HasColumns Row>
constexpr std::size_t column_index(std::string_view name) noexcept {
  std::size_t index = 0;
  while (index < column_count<Row> && column_names<Row>[index] != name) ++index;
  return index;
}

/// A set of columns of a row type, as `Change::columns()` returns it. Empty for rows without a column list.
template <class Row>
class ColumnMask {
 public:
  ColumnMask() = default;

  [[nodiscard]] static constexpr std::size_t size() noexcept { return column_count<Row>; }
  [[nodiscard]] bool test(std::size_t index) const { return bits_.test(index); }
  [[nodiscard]] std::size_t count() const noexcept { return bits_.count(); }
  [[nodiscard]] bool any() const noexcept { return bits_.any(); }
  void set(std::size_t index) { bits_.set(index); }
  void set_all() noexcept { bits_.set(); }

  /// Whether the column `Member` is in the set.
  template <auto Member>
  [[nodiscard]] bool contains() const {
    constexpr std::size_t index = column_index<Row>(detail::member_name<Member>);
    static_assert(index < column_count<Row>, "keyfold: this member is not in the column list of the row");
    return bits_.test(index);
  }

  /// Names of the columns in the set, in column order.
  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> out;
    if constexpr (HasColumns<Row>) {
      for (std::size_t i = 0; i < size(); ++i) {
        if (bits_.test(i)) out.push_back(column_names<Row>[i]);
      }
    }
    return out;
  }

  bool operator==(const ColumnMask&) const = default;

 private:
  std::bitset<column_count<Row>> bits_;
};

namespace detail {

/// Appends a row as "(id: 1, status: 'new')"; nothing for rows without a column list.
template <class Row>
void append_row(std::string& out, [[maybe_unused]] const Row& row) {
  if constexpr (HasColumns<Row>) {
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      out += I == 0 ? "(" : ", ";
      out += member_name<Member>;
      out += ": ";
      detail::append_value(out, detail::read<Member>(row), Style::literal);
    });
    out += ')';
  }
}

/// That for messages, cut to a line.
template <class Row>
std::string row_text(const Row& row) {
  constexpr std::size_t limit = 300;
  std::string out;
  detail::append_row(out, row);
  if (out.size() > limit + 1) out.replace(limit, std::string::npos, "...)");
  return out;
}

}  // namespace detail
}  // namespace keyfold

// detail/assign

// error

#include <stdexcept>

/// The typed errors of the core. Each derives from `Error`, carries what went wrong as public members, and
/// says in what() what to do next. Exceptions thrown by the user's own code are never wrapped.
namespace keyfold {

/// Base of every exception that keyfold throws on its own account.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `at()` was asked for a key that no row has.
class KeyNotFound : public Error {
 public:
  explicit KeyNotFound(std::string key_text)
      : Error("no row has the key " + key_text + "; use find() or contains() where a key may be absent"),
        key(std::move(key_text)) {}

  std::string key;
};

/// Two rows would have the same primary key once the write is done.
class DuplicateKey : public Error {
 public:
  DuplicateKey(const std::string& message, std::string index_name, std::string key_text, Position first,
               Position second)
      : Error(message),
        index(std::move(index_name)),
        key(std::move(key_text)),
        first_position(first),
        second_position(second) {}

  std::string index;        ///< names of the key's columns, as in "(sku, day)"
  std::string key;          ///< the key both rows claim
  Position first_position;  ///< source position of the one row; no_position for a row that stays in the table
  Position second_position;  ///< source position of the other row
};

/// Two source rows claim one row: both act on the same target row, or both bring the same new key.
class DuplicateSourceKey : public DuplicateKey {
 public:
  using DuplicateKey::DuplicateKey;
};

/// Two rows would be equal in a unique index once the write is done.
class UniqueViolation : public Error {
 public:
  UniqueViolation(const std::string& message, std::string index_name, std::string key_text, Position first,
                  Position second)
      : Error(message),
        index(std::move(index_name)),
        key(std::move(key_text)),
        first_position(first),
        second_position(second) {}

  std::string index;        ///< names of the index's columns
  std::string key;          ///< the values both rows claim
  Position first_position;  ///< source position of the one row; no_position for a row that stays in the table
  Position second_position;  ///< source position of the other row, or no_position
};

/// A row that came in with replace_where() does not meet its condition.
class ReplaceWhereMismatch : public Error {
 public:
  ReplaceWhereMismatch(const std::string& message, std::string condition_text, std::string key_text,
                       Position row_position)
      : Error(message),
        condition(std::move(condition_text)),
        key(std::move(key_text)),
        position(row_position) {}

  std::string condition;  ///< as history would have recorded it
  std::string key;
  Position position;  ///< source position of the first such row
};

/// A key part is NaN, which no lookup could ever find again.
class InvalidKey : public Error {
 public:
  InvalidKey(std::string column_name, Position row_position)
      : Error("the key part '" + column_name + "' is NaN" + at(row_position) +
              "; a key must equal itself: filter such rows out or give them another key"),
        column(std::move(column_name)),
        position(row_position) {}

  std::string column;
  Position position;  ///< source position of the row, or no_position

 private:
  static std::string at(Position position) {
    return position == no_position ? std::string() : " in source row " + std::to_string(position);
  }
};

/// The sequence of a change event is absent or NaN, so that it is neither before nor after another one.
class InvalidSequence : public Error {
 public:
  InvalidSequence(std::string column_name, Position row_position, bool is_nan)
      : Error("the sequence '" + column_name + "' of source row " + std::to_string(row_position) +
              (is_nan ? " is NaN" : " is NULL") +
              "; every change event needs a sequence that can be compared: filter such events out or give "
              "them one"),
        column(std::move(column_name)),
        position(row_position) {}

  std::string column;
  Position position;  ///< source position of the event
};

/// Two change events of one key have the same sequence, and the feed says on_tie(reject).
class SequenceTie : public Error {
 public:
  SequenceTie(std::string key_text, std::string sequence_text, Position first, Position second)
      : Error((first == no_position ? "an earlier event" : "source row " + std::to_string(first)) +
              " and source row " + std::to_string(second) + " both change the row with key " + key_text +
              " at the sequence " + sequence_text +
              "; add a member to sequence_by<>() that tells them apart, or leave out on_tie(reject) so that "
              "the later one wins"),
        key(std::move(key_text)),
        sequence(std::move(sequence_text)),
        first_position(first),
        second_position(second) {}

  std::string key;          ///< "every key" if both truncate the table
  std::string sequence;     ///< the sequence they share, as text
  Position first_position;  ///< source position; no_position for an event of an earlier feed
  Position second_position;
};

/// The table was fed with change events of another kind before: another type of sequence, or the other SCD
/// type. What is remembered of those events says nothing about these.
class FeedMismatch : public Error {
 public:
  FeedMismatch(std::string remembered_feeds, std::string this_feed)
      : Error("this table was fed with events of " + remembered_feeds + ", and these are of " + this_feed +
              "; sequence its feeds alike, or load this one into a table of its own"),
        remembered(std::move(remembered_feeds)),
        given(std::move(this_feed)) {}

  std::string remembered;  ///< "current rows by int64", or "history rows by ..."
  std::string given;       ///< likewise; types as docs/file-format.md writes them
};

/// A `raise("message")` clause fired.
class ClauseRaised : public Error {
 public:
  ClauseRaised(const std::string& raised, std::string key_text, Position row_position)
      : Error(raised + " (raised by a clause for the row with key " + key_text + ")"),
        message(raised),
        key(std::move(key_text)),
        position(row_position) {}

  std::string message;  ///< the text given to raise()
  std::string key;
  Position position;  ///< source position; no_position for a clause of when_not_matched_by_source
};

/// A row would violate a constraint of the table, see Table::require().
class CheckViolation : public Error {
 public:
  CheckViolation(const std::string& message, std::string constraint_name, std::string condition_text,
                 std::string key_text, Position row_position)
      : Error(message),
        constraint(std::move(constraint_name)),
        condition(std::move(condition_text)),
        key(std::move(key_text)),
        position(row_position) {}

  std::string constraint;
  std::string condition;
  std::string key;
  Position position;  ///< source position of the row, or no_position
};

/// A constraint of this name is there already.
class ConstraintExists : public Error {
 public:
  ConstraintExists(std::string constraint_name, const std::string& condition)
      : Error("the table has a constraint '" + constraint_name + "' already, " + condition +
              "; unrequire() it first, or choose another name"),
        constraint(std::move(constraint_name)) {}

  std::string constraint;
};

/// No constraint has this name.
class ConstraintNotFound : public Error {
 public:
  explicit ConstraintNotFound(std::string constraint_name)
      : Error("the table has no constraint '" + constraint_name + "'; constraints() lists them"),
        constraint(std::move(constraint_name)) {}

  std::string constraint;
};

/// An assignment would not fit the type of its column.
class ValueOutOfRange final : public Error {
 public:
  ValueOutOfRange(std::string column_name, std::string value_text, std::string key_text = {},
                  Position row_position = no_position)
      : Error("the value " + value_text + of_row(key_text, row_position) + " does not fit column '" +
              column_name + "'; widen the column or limit the value in the assignment"),
        column(std::move(column_name)),
        value(std::move(value_text)),
        key(std::move(key_text)),
        position(row_position) {}

  std::string column;
  std::string value;  ///< as text
  std::string key;    ///< of the row that it is for; empty where no row was found or made yet
  Position position;  ///< source position of the row, or no_position

 private:
  static std::string of_row(const std::string& key, Position position) {
    std::string out;
    if (!key.empty()) out += " for the row with key " + key;
    if (position != no_position) out += " from source row " + std::to_string(position);
    return out;
  }
};

/// A condition, assignment or callback wrote to the table whose write, or read(), it is part of.
class ReentrantWrite : public Error {
 public:
  ReentrantWrite()
      : Error(
            "this table is in the middle of another write, or is being read by this thread; conditions, "
            "assignments, source ranges and what SharedTable::read() is given may read the table but not "
            "write to it") {}
};

/// A version that can no longer be read was asked for.
class VersionExpired : public Error {
 public:
  VersionExpired(Version version, Version oldest_version)
      : VersionExpired("version " + std::to_string(version) + " has", version, oldest_version) {}
  VersionExpired(Timestamp time, Version oldest_version)
      : VersionExpired("the version at " + detail::literal_text(time) + " has", 0, oldest_version) {}

  /// The changes of a commit went with the version before it, while its own version is kept by a tag.
  static VersionExpired of_changes(Version version, Version oldest_version) {
    return {"what version " + std::to_string(version) + " has changed cannot be told, since version " +
                std::to_string(version - 1) + " has",
            version - 1, oldest_version};
  }

  Version requested;  ///< 0 when a time was asked for
  Version oldest;     ///< from here on every version is readable

 private:
  VersionExpired(const std::string& what, Version version, Version oldest_version)
      : Error(
            what + " expired; the oldest version that is kept, beside tagged ones, is " +
            std::to_string(oldest_version) +
            ": read that or a later one. To keep a version, tag() it before it expires; to keep more, change "
            "the retention or what is given to expire()"),
        requested(version),
        oldest(oldest_version) {}
};

/// A version, or the version at a time, that never was.
class VersionNotFound : public Error {
 public:
  VersionNotFound(Version version, Version latest_version)
      : Error((version == 0 ? "no commit has made version 0, the empty table"
                            : "there is no version " + std::to_string(version)) +
              "; the latest is " + std::to_string(latest_version) +
              ", and history() has those that are kept"),
        requested(version),
        latest(latest_version) {}
  VersionNotFound(Timestamp time, Version latest_version)
      : Error("there was no version yet at " + detail::literal_text(time) + "; the latest version is " +
              std::to_string(latest_version) + ", and history() has the time of the first"),
        requested(0),
        latest(latest_version) {}

  Version requested;  ///< 0 when a time was asked for
  Version latest;
};

/// No version is tagged with this name.
class TagNotFound : public Error {
 public:
  explicit TagNotFound(std::string tag_name)
      : Error("no version is tagged '" + tag_name + "'; tags() lists the tags"), name(std::move(tag_name)) {}

  std::string name;
};

/// The name is the tag of another version.
class TagExists : public Error {
 public:
  TagExists(std::string tag_name, Version tagged_version)
      : Error("the tag '" + tag_name + "' is on version " + std::to_string(tagged_version) +
              " already; untag() it first, or choose another name"),
        name(std::move(tag_name)),
        version(tagged_version) {}

  std::string name;
  Version version;
};

/// Changes do not fit the rows they meet: apply() found rows other than its before images, or undo() rows
/// that a later commit has touched. Nothing was changed.
class ChangeConflict : public Error {
 public:
  /// Of apply().
  explicit ChangeConflict(std::vector<std::string> conflicting)
      : Error("the changes do not fit " + rows_text(conflicting) +
              " as the table is now; compare the rows named in `keys`, then apply the changes that still "
              "hold"),
        keys(std::move(conflicting)) {}
  /// Of undo().
  ChangeConflict(std::vector<std::string> conflicting, Version undone_version)
      : Error("version " + std::to_string(undone_version) +
              " cannot be undone: later versions have changed " + rows_text(conflicting) +
              ", too; history_of() tells which: undo those first, or write the rows named in `keys` as they "
              "should be"),
        keys(std::move(conflicting)),
        undone(undone_version) {}

  std::vector<std::string> keys;  ///< of all conflicting changes, in the order of the changes
  Version undone = 0;             ///< that undo() was asked to revert; 0 for apply()

 private:
  static std::string rows_text(const std::vector<std::string>& keys) {
    std::string text = "the row with key " + keys.front();
    if (keys.size() > 1) text += " and " + std::to_string(keys.size() - 1) + " more";
    return text;
  }
};

/// A view, a result or a transaction was used after its table had gone, or a result of a write in a
/// transaction after the end of that one.
class TableGone : public Error {
 public:
  /// `what` has lost its table: "view".
  TableGone(const std::string& what, const std::string& what_to_do)
      : Error("the table of this " + what + " no longer exists, or another one was assigned to it; " +
              what_to_do) {}
};

/// A transaction was used after the table had changed under it: what it has read may not be so any more.
class TransactionConflict : public Error {
 public:
  TransactionConflict(Version version_at_start, Version latest_version)
      : Error((version_at_start == latest_version
                   ? "the table, still at version " + std::to_string(latest_version) +
                         ", has remembered a load of change events since the transaction began"
                   : "the table was at version " + std::to_string(version_at_start) +
                         " when the transaction began and is at version " + std::to_string(latest_version) +
                         " now") +
              "; begin a new transaction and do its writes again"),
        started(version_at_start),
        latest(latest_version) {}

  Version started;
  Version latest;  ///< equal to `started` after a load of change events that made no version
};

/// A transaction was used after commit() or rollback().
class TransactionEnded : public Error {
 public:
  TransactionEnded() : Error("this transaction has been committed or rolled back; begin a new one") {}
};

/// Sequences of apply_changes() were to be saved, or written by a store, and have a type that files cannot
/// have: a pointer, or a class that is neither described nor has a serialize().
class UnsavableSequence : public Error {
 public:
  UnsavableSequence()
      : Error(
            "apply_changes() has sequenced this table by a type that cannot be saved; describe that class "
            "with "
            "BOOST_DESCRIBE_STRUCT or columns_of, give it a serialize(), or sequence by its members") {}
};

}  // namespace keyfold

/// Assigning values to columns: as SQL does it, with an error rather than a silently changed value.
namespace keyfold::detail {

template <class T>
concept NumberLike = Arithmetic<T> || std::is_enum_v<T>;

/// Whether a column of type To takes a value of type From. Text does not become numbers nor numbers text, and
/// what may be empty does not go where a value must be.
template <class To, class From>
concept AssignableColumn =
    std::is_assignable_v<To&, From> && !(is_nullable_v<std::remove_cvref_t<From>> && !is_optional_v<To>) &&
    !(StringLike<unwrap_optional_t<To>> && NumberLike<unwrap_optional_t<std::remove_cvref_t<From>>> &&
      !std::same_as<unwrap_optional_t<std::remove_cvref_t<From>>, char>);

template <std::integral To, class From>
constexpr bool in_range_of(From value) noexcept {
  if constexpr (std::floating_point<From>) {
    constexpr auto least = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto beyond =
        static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;  // a power of two: exact
    return (value >= least || value > least - 1) && value < beyond;
  } else {
    return !std::cmp_less(+value, +std::numeric_limits<To>::min()) &&
           !std::cmp_greater(+value, +std::numeric_limits<To>::max());
  }
}

template <std::floating_point To, std::floating_point From>
constexpr bool in_range_of(From value) noexcept {
  if constexpr (std::numeric_limits<To>::max_exponent >= std::numeric_limits<From>::max_exponent) {
    return true;
  } else {
    constexpr From most = static_cast<From>(std::numeric_limits<To>::max());
    return (value >= -most && value <= most) ||
           value - value != 0;  // infinity and NaN fit every floating type
  }
}

/// Whether the number is the same in the other type; of floating-point numbers only the range counts.
template <class To, class From>
constexpr bool fits(From value) noexcept {
  if constexpr (std::same_as<To, From>) {
    return true;
  } else if constexpr (std::integral<To>) {
    return detail::in_range_of<To>(value) && static_cast<From>(static_cast<To>(value)) == value;
  } else if constexpr (std::integral<From>) {
    return static_cast<long double>(static_cast<To>(value)) == static_cast<long double>(value);
  } else {
    return detail::in_range_of<To>(value);
  }
}

template <class To, class From>
constexpr To to_number(From value, std::string_view column) {
  if (!detail::fits<To>(value)) throw ValueOutOfRange(std::string(column), detail::literal_text(value));
  return static_cast<To>(value);
}

/// Throws ValueOutOfRange when a number does not fit the column. Requires: AssignableColumn.
template <class To, class From>
constexpr void assign(To& column, From&& value, std::string_view name) {
  using Value = unwrap_optional_t<To>;
  using Given = std::remove_cvref_t<From>;
  if constexpr (std::same_as<To, Given>) {
    column = std::forward<From>(value);
  } else if constexpr (Arithmetic<Value> && Arithmetic<Given>) {
    column = detail::to_number<Value>(value, name);
  } else if constexpr (Arithmetic<Value> && std::is_enum_v<Given>) {
    column = detail::to_number<Value>(+value, name);  // an unscoped enumeration, which converts
  } else if constexpr (Arithmetic<Value> && NumberLike<unwrap_optional_t<Given>>) {
    if (value) {
      detail::assign(column, *value, name);
    } else {
      column = std::nullopt;
    }
  } else {
    column = std::forward<From>(value);
  }
}

/// Which row a value is for.
struct RowName {
  std::string key;  // as text; empty if it has none yet
  Position position;
};

template <class Name>
[[noreturn, gnu::cold, gnu::noinline]] void rethrow_named(const ValueOutOfRange& error, const Name& name) {
  const bool named = error.position != no_position || !error.key.empty();  // by a write within this one
  if (named) throw;
  RowName row = name();
  throw ValueOutOfRange(error.column, error.value, std::move(row.key), row.position);
}

/// Does `work`; the error about a value that does not fit names the row, which is what `name` returns then.
template <class Name, class Work>
decltype(auto) naming_row(Name name, Work work) {
  try {
    return work();
  } catch (const ValueOutOfRange& error) {
    detail::rethrow_named(error, name);
  }
}

}  // namespace keyfold::detail

// detail/clause

// detail/expression_nodes

/// The nodes that expressions are made of. Each evaluates itself against a Scope, prints itself, and knows
/// which sides it reads.
namespace keyfold::detail {

enum class Side : std::uint8_t { source, target };

/// Stands for the side a clause does not have.
struct NoRow {};

/// The rows an expression may read.
template <class Target, class Source>
struct Scope {
  const Target& target;
  const Source& source;
};

struct ExpressionBase {};

template <class T>
concept Expression = std::is_base_of_v<ExpressionBase, T>;

template <class... T>
concept AnyExpression = (Expression<T> || ...);

template <class Expr>
std::string text_of(const Expr& expression) {
  std::string out;
  expression.print(out);
  return out;
}

/// A column belongs to a row type if its member does; a callable if it accepts such a row.
template <auto Member, class Row>
concept ColumnOf = std::is_same_v<Row, void> || Readable<Member, Row>;

template <class Column, class Value>
struct Assignment;

template <Side side, auto Member>
struct Column : ExpressionBase {
  static constexpr bool reads_source = side == Side::source;
  static constexpr bool reads_target = side == Side::target;
  static constexpr std::string_view name = member_name<Member>;

  template <class Target, class Source>
  static constexpr bool fits = side == Side::source ? ColumnOf<Member, Source> : ColumnOf<Member, Target>;

  template <class Target, class Source>
  constexpr decltype(auto) operator()(const Scope<Target, Source>& rows) const {
    if constexpr (side == Side::source) {
      return detail::read<Member>(rows.source);
    } else {
      return detail::read<Member>(rows.target);
    }
  }

  void print(std::string& out) const {
    out += side == Side::source ? "source." : "target.";
    out += name;
  }

  /// An assignment for update() and insert(): nothing is written here.
  template <class Value>
  constexpr auto operator=(Value value) const;  // NOLINT(misc-unconventional-assign-operator)

  // Assignments that there are not: the compiler says so.

  template <class Value>
  constexpr auto operator+=(const Value& value) const {
    return calculated(value);
  }
  template <class Value>
  constexpr auto operator-=(const Value& value) const {
    return calculated(value);
  }
  template <class Value>
  constexpr auto operator*=(const Value& value) const {
    return calculated(value);
  }

 private:
  template <class Value>
  constexpr auto calculated(const Value& value) const {
    static_assert(!std::same_as<Value, Value>,
                  "keyfold: an assignment that calculates is written "
                  "target<&Row::column> = target<&Row::column> + value");
    return *this = value;
  }
};

template <class T>
struct Literal : ExpressionBase {
  static constexpr bool reads_source = false;
  static constexpr bool reads_target = false;
  template <class, class>
  static constexpr bool fits = true;

  T value;

  constexpr explicit Literal(T literal) : value(std::move(literal)) {}

  template <class Rows>
  constexpr const T& operator()(const Rows&) const noexcept {
    return value;
  }
  void print(std::string& out) const { detail::append_value(out, value, Style::literal); }
};

template <class T>
struct operand_of {
  using type = Literal<T>;
};
template <Expression T>
struct operand_of<T> {
  using type = T;
};
template <std::size_t size>
struct operand_of<char[size]> {
  using type = Literal<std::string_view>;
};
template <>
struct operand_of<const char*> {
  using type = Literal<std::string_view>;
};
template <>
struct operand_of<char*> {
  using type = Literal<std::string>;  // not a literal: keep a copy
};

/// The node for an operand: an expression as it is, anything else as a literal.
template <class T>
using Operand = typename operand_of<T>::type;

template <class T>
constexpr auto operand(const T& value) {
  if constexpr (Expression<T>) {
    return value;
  } else if constexpr (std::is_array_v<T>) {
    return Operand<T>(detail::as_text(value));
  } else {
    return Operand<T>(value);
  }
}

template <class A, class B>
struct BinaryNode : ExpressionBase {
  static constexpr bool reads_source = A::reads_source || B::reads_source;
  static constexpr bool reads_target = A::reads_target || B::reads_target;
  template <class Target, class Source>
  static constexpr bool fits = A::template fits<Target, Source> && B::template fits<Target, Source>;
};

template <class A, class B>
void print_infix(std::string& out, const A& a, std::string_view symbol, const B& b) {
  out += '(';
  a.print(out);
  out += ' ';
  out += symbol;
  out += ' ';
  b.print(out);
  out += ')';
}

/// Calls `operation` with the values; numbers of two types are brought to their common type first.
template <class A, class B, class Operation>
constexpr auto with_common_type(const A& a, const B& b, Operation operation) {
  if constexpr (Arithmetic<A> && Arithmetic<B>) {
    using Common = std::common_type_t<A, B>;
    return operation(static_cast<Common>(a), static_cast<Common>(b));
  } else {
    return operation(a, b);
  }
}

// Comparison operations, on values that are there.

struct Equal {
  static constexpr std::string_view symbol = "=";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    if constexpr (std::integral<A> && std::integral<B>) {
      return std::cmp_equal(+a, +b);
    } else {
      static_assert(
          requires { a == b; }, "keyfold: the two sides of a comparison have types without a common ==");
      return detail::with_common_type(a, b,
                                      [](const auto& x, const auto& y) { return static_cast<bool>(x == y); });
    }
  }
};
struct NotEqual {
  static constexpr std::string_view symbol = "<>";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    return !Equal::apply(a, b);
  }
};
struct Less {
  static constexpr std::string_view symbol = "<";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    if constexpr (std::integral<A> && std::integral<B>) {
      return std::cmp_less(+a, +b);
    } else {
      static_assert(
          requires { a < b; }, "keyfold: the two sides of a comparison have types without a common <");
      return detail::with_common_type(a, b,
                                      [](const auto& x, const auto& y) { return static_cast<bool>(x < y); });
    }
  }
};
struct LessEqual {
  static constexpr std::string_view symbol = "<=";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    if constexpr (std::integral<A> && std::integral<B>) {
      return std::cmp_less_equal(+a, +b);
    } else {
      static_assert(
          requires { a <= b; }, "keyfold: the two sides of a comparison have types without a common <=");
      return detail::with_common_type(a, b,
                                      [](const auto& x, const auto& y) { return static_cast<bool>(x <= y); });
    }
  }
};
struct Greater {
  static constexpr std::string_view symbol = ">";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    return Less::apply(b, a);
  }
};
struct GreaterEqual {
  static constexpr std::string_view symbol = ">=";
  template <class A, class B>
  static constexpr bool apply(const A& a, const B& b) {
    return LessEqual::apply(b, a);
  }
};

/// bool, or std::optional<bool> where an operand may be absent: SQL's unknown.
template <class Operation, class A, class B>
struct Comparison : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    return compare(a(rows), b(rows));
  }
  void print(std::string& out) const { detail::print_infix(out, a, Operation::symbol, b); }

 private:
  template <class X, class Y>
  static constexpr auto compare(const X& x, const Y& y) {
    if constexpr (std::same_as<X, std::nullopt_t> || std::same_as<Y, std::nullopt_t>) {
      return std::optional<bool>();
    } else if constexpr (is_optional_v<X> || is_optional_v<Y>) {
      if (!detail::has_value(x) || !detail::has_value(y)) return std::optional<bool>();
      return std::optional<bool>(Operation::apply(detail::value_of(x), detail::value_of(y)));
    } else {
      return Operation::apply(x, y);
    }
  }
};

/// Text whose + and - would be arithmetic of pointers; a class has operators of its own.
template <class T>
concept TextPointer = StringLike<T> && !std::is_class_v<T>;

template <class Operation, class A, class B>
struct check_arithmetic {
  static_assert(std::is_invocable_v<Operation, const A&, const B&> && !TextPointer<A> && !TextPointer<B>,
                "keyfold: the two sides of an arithmetic operator have types without it");
  static constexpr bool value = true;
};

struct Plus {
  static constexpr std::string_view symbol = "+";
  template <class A, class B>
  static constexpr auto apply(const A& a, const B& b) {
    if constexpr (StringLike<A> && StringLike<B>) {
      std::string out(detail::as_text(a));
      out += detail::as_text(b);
      return out;
    } else {
      static_assert(check_arithmetic<std::plus<>, A, B>::value);
      return detail::with_common_type(a, b, [](const auto& x, const auto& y) { return x + y; });
    }
  }
};
struct Minus {
  static constexpr std::string_view symbol = "-";
  template <class A, class B>
  static constexpr auto apply(const A& a, const B& b) {
    static_assert(check_arithmetic<std::minus<>, A, B>::value);
    return detail::with_common_type(a, b, [](const auto& x, const auto& y) { return x - y; });
  }
};
struct Times {
  static constexpr std::string_view symbol = "*";
  template <class A, class B>
  static constexpr auto apply(const A& a, const B& b) {
    static_assert(check_arithmetic<std::multiplies<>, A, B>::value);
    return detail::with_common_type(a, b, [](const auto& x, const auto& y) { return x * y; });
  }
};

template <class Operation, class A, class B>
struct Arithmetics : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    return compute(a(rows), b(rows));
  }
  void print(std::string& out) const { detail::print_infix(out, a, Operation::symbol, b); }

 private:
  template <class X, class Y>
  static constexpr auto compute(const X& x, const Y& y) {
    if constexpr (is_optional_v<X> || is_optional_v<Y>) {
      using Result = decltype(Operation::apply(detail::value_of(x), detail::value_of(y)));
      if (!detail::has_value(x) || !detail::has_value(y)) return std::optional<Result>();
      return std::optional<Result>(Operation::apply(detail::value_of(x), detail::value_of(y)));
    } else {
      return Operation::apply(x, y);
    }
  }
};

/// Whether a value, or the one in an optional, says true or false. A function would always say true.
template <class T>
concept Truth = std::is_constructible_v<bool, unwrap_optional_t<T>> && !StringLike<unwrap_optional_t<T>> &&
                !requires(const unwrap_optional_t<T>& value) {
                  requires std::is_function_v<std::remove_pointer_t<decltype(+value)>>;
                };

template <class T>
struct check_logic_operand {
  static_assert(Truth<T>,
                "keyfold: an operand of a logical operator must be true or false; compare the value with "
                "something, and give a callable as the whole condition");
  static constexpr bool value = true;
};

/// Whether a condition holds: unknown does not.
template <class T>
constexpr bool is_true(const T& truth) {
  if constexpr (is_optional_v<T>) {
    return truth.has_value() && static_cast<bool>(*truth);
  } else {
    return static_cast<bool>(truth);
  }
}

template <class T>
constexpr bool is_false(const T& truth) {
  if constexpr (is_optional_v<T>) {
    return truth.has_value() && !static_cast<bool>(*truth);
  } else {
    return !static_cast<bool>(truth);
  }
}

struct And {
  static constexpr std::string_view symbol = "AND";
  static constexpr bool settled_by = false;
};
struct Or {
  static constexpr std::string_view symbol = "OR";
  static constexpr bool settled_by = true;
};

/// AND and OR in three-valued logic; the right side is evaluated only if the left one does not settle the
/// result.
template <class Operation, class A, class B>
struct Logic : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    constexpr bool settled_by = Operation::settled_by;
    using X = std::remove_cvref_t<decltype(a(rows))>;
    using Y = std::remove_cvref_t<decltype(b(rows))>;
    static_assert(check_logic_operand<X>::value && check_logic_operand<Y>::value);
    if constexpr (is_optional_v<X> || is_optional_v<Y>) {
      const X& x = a(rows);
      if (settles<settled_by>(x)) return std::optional<bool>(settled_by);
      const Y& y = b(rows);
      if (settles<settled_by>(y)) return std::optional<bool>(settled_by);
      return detail::has_value(x) && has_value(y) ? std::optional<bool>(!settled_by) : std::nullopt;
    } else if constexpr (settled_by) {
      return static_cast<bool>(a(rows)) || static_cast<bool>(b(rows));
    } else {
      return static_cast<bool>(a(rows)) && static_cast<bool>(b(rows));
    }
  }
  void print(std::string& out) const { detail::print_infix(out, a, Operation::symbol, b); }

 private:
  template <bool value, class T>
  static constexpr bool settles(const T& truth) {
    return value ? detail::is_true(truth) : detail::is_false(truth);
  }
};

template <class A>
struct UnaryNode : ExpressionBase {
  static constexpr bool reads_source = A::reads_source;
  static constexpr bool reads_target = A::reads_target;
  template <class Target, class Source>
  static constexpr bool fits = A::template fits<Target, Source>;
};

template <class A>
struct Not : UnaryNode<A> {
  A a;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    using X = std::remove_cvref_t<decltype(a(rows))>;
    static_assert(check_logic_operand<X>::value);
    if constexpr (is_optional_v<X>) {
      const X& x = a(rows);
      return x ? std::optional<bool>(!static_cast<bool>(*x)) : std::nullopt;
    } else {
      return !static_cast<bool>(a(rows));
    }
  }
  void print(std::string& out) const {
    out += "(NOT ";
    a.print(out);
    out += ')';
  }
};

template <class A>
struct IsNull : UnaryNode<A> {
  A a;

  template <class Rows>
  constexpr bool operator()(const Rows& rows) const {
    return !detail::has_value(a(rows));
  }
  void print(std::string& out) const {
    out += '(';
    a.print(out);
    out += " IS NULL)";
  }
};

template <class A, class B>
struct Same : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr bool operator()(const Rows& rows) const {
    return compare(a(rows), b(rows));
  }
  void print(std::string& out) const { detail::print_infix(out, a, "IS NOT DISTINCT FROM", b); }

 private:
  template <class X, class Y>
  static constexpr bool compare(const X& x, const Y& y) {
    static_assert(HaveEquality<X, Y>, "keyfold: the two sides of same() have types without a common ==");
    return detail::equal_values(x, y);
  }
};

template <class T>
struct is_literal : std::false_type {};
template <class T>
struct is_literal<Literal<T>> : std::true_type {
  using type = T;
};

/// A type for the value of either operand, A of type X or B of type Y. Text is copied. Integers keep their
/// value; where no type holds those of both, a literal is brought to the sign of the other operand.
template <class A, class B, class X, class Y>
constexpr auto chosen_type() {
  if constexpr (StringLike<X> && StringLike<Y>) {
    return std::type_identity<std::string>();
  } else if constexpr (std::integral<X> && std::integral<Y> && std::is_signed_v<X> != std::is_signed_v<Y>) {
    using Unsigned = std::conditional_t<std::is_signed_v<X>, Y, X>;
    if constexpr (sizeof(Unsigned) < sizeof(std::int64_t)) {
      return std::type_identity<std::int64_t>();
    } else {
      static_assert(is_literal<A>::value || is_literal<B>::value,
                    "keyfold: no integer type holds the signed and the unsigned operand of coalesce(); "
                    "bring them to one type in a callable");
      using Kept = std::conditional_t<is_literal<A>::value, Y, X>;
      return std::type_identity<std::conditional_t<std::is_signed_v<Kept>, std::int64_t, std::uint64_t>>();
    }
  } else {
    static_assert(
        requires { typename std::common_type_t<X, Y>; },
        "keyfold: the operands of coalesce() have no common type");
    return std::common_type<X, Y>();
  }
}

template <class A, class B>
struct Coalesce : BinaryNode<A, B> {
  A a;
  B b;

  template <class Rows>
  constexpr auto operator()(const Rows& rows) const {
    return choose(a(rows), b(rows));
  }
  void print(std::string& out) const {
    out += "coalesce(";
    a.print(out);
    out += ", ";
    b.print(out);
    out += ')';
  }

 private:
  template <class X, class Y>
  static constexpr auto choose(const X& x, const Y& y) {
    using Value = typename decltype(chosen_type<A, B, unwrap_optional_t<X>, unwrap_optional_t<Y>>())::type;
    using Result = std::conditional_t<is_optional_v<Y>, std::optional<Value>, Value>;
    if (detail::has_value(x)) return Result(chosen<Value>(detail::value_of(x)));
    if (detail::has_value(y)) return Result(chosen<Value>(detail::value_of(y)));
    return Result();
  }

  template <class Value, class X>
  static constexpr Value chosen(const X& x) {
    if constexpr (Arithmetic<X>) {
      return detail::to_number<Value>(x, "coalesce()");
    } else if constexpr (StringLike<X>) {
      return Value(detail::as_text(x));
    } else {
      return Value(x);
    }
  }
};

template <class Callable>
struct Named {
  std::string_view name;
  Callable callable;
};

template <class T>
inline constexpr bool is_named_v = false;
template <class Callable>
inline constexpr bool is_named_v<Named<Callable>> = true;

/// `target<Member> = value`; the value is an expression, or a callable judged by the clause it stands in.
template <class Column, class Value>
struct Assignment {
  Value value;
};

template <class T>
inline constexpr bool is_assignment_v = false;
template <class C, class V>
inline constexpr bool is_assignment_v<Assignment<C, V>> = true;

template <Side side, auto Member>
template <class Value>
constexpr auto Column<side, Member>::operator=(Value value) const {
  static_assert(side == Side::target,
                "keyfold: only a column of the target can be assigned; a comparison is written ==");
  static_assert(side != Side::target || is_data_member<Member>,
                "keyfold: only a data member can be assigned, not a function");
  if constexpr (Expression<Value>) {
    return Assignment<Column, Value>{std::move(value)};
  } else {
    return Assignment<Column, Operand<Value>>{Operand<Value>(std::move(value))};
  }
}

}  // namespace keyfold::detail

// detail/holder

#include <memory>

namespace keyfold::detail {

/// Rows whose moves cannot fail are kept in place.
template <class Row>
concept NothrowMovable = std::is_nothrow_move_constructible_v<Row> &&
                         std::is_nothrow_move_assignable_v<Row> && std::is_nothrow_destructible_v<Row>;

/// Holds one row and moves without ever throwing, whatever the row's own moves do: a row that cannot promise
/// that is kept behind a pointer. This is what lets a planned write be carried out without a step that can
/// fail.
template <class Row>
class Holder {
 public:
  explicit Holder(Row&& row) : row_(std::make_unique<Row>(std::move(row))) {}
  explicit Holder(const Row& row) : row_(std::make_unique<Row>(row)) {}
  /// Of the row that `make()` returns, which is not moved.
  template <class Make>
  Holder(std::in_place_t, Make make) : row_(new Row(make())) {}

  const Row& get() const noexcept { return *row_; }
  Row& get() noexcept { return *row_; }

 private:
  std::unique_ptr<Row> row_;
};

template <NothrowMovable Row>
class Holder<Row> {
 public:
  explicit Holder(Row&& row) noexcept : row_(std::move(row)) {}
  explicit Holder(const Row& row) : row_(row) {}
  template <class Make>
  Holder(std::in_place_t, Make make) : row_(make()) {}

  const Row& get() const noexcept { return row_; }
  Row& get() noexcept { return row_; }

 private:
  Row row_;
};

}  // namespace keyfold::detail

// detail/pack

namespace keyfold::detail {

template <std::size_t number, class T>
struct PackElement {
  T value;
};

template <std::size_t number, class T>
constexpr const T& value_of(const PackElement<number, T>& element) noexcept {
  return element.value;
}

template <class Numbers, class... Ts>
struct PackOf;

/// The clauses of a merge, or the assignments of a clause: a tuple that is an aggregate and knows little,
/// since every sentence makes a type of its own, and std::tuple costs its compiler several times as much.
template <std::size_t... numbers, class... Ts>
struct PackOf<std::index_sequence<numbers...>, Ts...> : PackElement<numbers, Ts>... {
  template <std::size_t number>
  constexpr const auto& get() const noexcept {
    return detail::value_of<number>(*this);
  }

  template <class Visit>
  constexpr void for_each(Visit&& visit) const {
    (visit(static_cast<const PackElement<numbers, Ts>&>(*this).value), ...);
  }

  /// Visits in order until `visit` returns true; tells whether it did.
  template <class Visit>
  constexpr bool any(Visit&& visit) const {
    return (visit(static_cast<const PackElement<numbers, Ts>&>(*this).value) || ...);
  }

  template <class T>
  constexpr auto with(T added) && {
    return PackOf<std::make_index_sequence<sizeof...(Ts) + 1>, Ts..., T>{
        {std::move(static_cast<PackElement<numbers, Ts>&>(*this).value)}..., {std::move(added)}};
  }
};

template <class... Ts>
using Pack = PackOf<std::index_sequence_for<Ts...>, Ts...>;

}  // namespace keyfold::detail

/// The clauses of a merge: their conditions and actions as values, checked against the row types they run on.
namespace keyfold::detail {

enum class ClauseKind : std::uint8_t { matched, not_matched, not_matched_by_source };

template <ClauseKind kind>
inline constexpr bool has_target = kind != ClauseKind::not_matched;
template <ClauseKind kind>
inline constexpr bool has_source = kind != ClauseKind::not_matched_by_source;

// --- Callables, in whatever clause they stand

template <class Callable>
constexpr const auto& callable_of(const Callable& callable) noexcept {
  if constexpr (is_named_v<Callable>) {
    return callable.callable;
  } else {
    return callable;
  }
}

template <class Callable>
using CallableOf = std::remove_cvref_t<decltype(callable_of(std::declval<const Callable&>()))>;

/// Whether `Callable` takes the rows that a clause of this kind has.
template <ClauseKind kind, class Callable, class Target, class Source>
constexpr bool takes_rows() {
  using F = const CallableOf<Callable>&;
  if constexpr (kind == ClauseKind::matched) {
    return std::is_invocable_v<F, const Target&, const Source&>;
  } else if constexpr (kind == ClauseKind::not_matched) {
    return std::is_invocable_v<F, const Source&>;
  } else {
    return std::is_invocable_v<F, const Target&>;
  }
}

template <ClauseKind kind, class Callable, class Target, class Source>
constexpr decltype(auto) call(const Callable& callable, const Scope<Target, Source>& rows) {
  if constexpr (kind == ClauseKind::matched) {
    return detail::callable_of(callable)(rows.target, rows.source);
  } else if constexpr (kind == ClauseKind::not_matched) {
    return detail::callable_of(callable)(rows.source);
  } else {
    return detail::callable_of(callable)(rows.target);
  }
}

// --- Conditions

/// The condition of a clause without one.
struct Always {};

template <ClauseKind kind, class Expr, class Target, class Source>
constexpr void check_sides() {
  static_assert(has_target<kind> || !Expr::reads_target,
                "keyfold: a when_not_matched clause has no target row; read source columns only");
  static_assert(has_source<kind> || !Expr::reads_source,
                "keyfold: a when_not_matched_by_source clause has no source row; read target columns only");
  static_assert(
      Expr::template fits<Target, Source>,
      "keyfold: an expression reads a column of another row type than the merge's target or source");
}

template <class Expr, class Rows>
using value_in_t = std::remove_cvref_t<decltype(std::declval<const Expr&>()(std::declval<const Rows&>()))>;

/// The compile-time checks of a condition; each failure is a sentence. `in_on`: it stands in on_condition().
template <ClauseKind kind, class Condition, class Target, class Source, bool in_on = false>
constexpr void check_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    // Said.
  } else if constexpr (Expression<Condition>) {
    detail::check_sides<kind, Condition, Target, Source>();
    if constexpr (Condition::template fits<Target, Source>) {
      static_assert(Truth<value_in_t<Condition, Scope<Target, Source>>>,
                    "keyfold: a condition must be true or false; compare the value with something");
    }
  } else if constexpr (!std::same_as<Condition, Always>) {
    constexpr bool callable = takes_rows<kind, Condition, Target, Source>();
    static_assert(callable || !in_on,
                  "keyfold: a condition of on_condition must be an expression or callable as "
                  "bool(const Target&, const Source&)");
    static_assert(callable || kind != ClauseKind::matched || in_on,
                  "keyfold: a condition of when_matched must be an expression or callable as "
                  "bool(const Target&, const Source&)");
    static_assert(
        callable || kind != ClauseKind::not_matched,
        "keyfold: a condition of when_not_matched must be an expression or callable as bool(const Source&)");
    static_assert(callable || kind != ClauseKind::not_matched_by_source,
                  "keyfold: a condition of when_not_matched_by_source must be an expression or callable as "
                  "bool(const Target&)");
    if constexpr (callable) {
      using Result = decltype(detail::call<kind>(std::declval<const Condition&>(),
                                                 std::declval<Scope<Target, Source>&>()));
      static_assert(Truth<std::remove_cvref_t<Result>>, "keyfold: a callable condition must return bool");
    }
  }
}

template <ClauseKind kind, class Condition, class Target, class Source>
constexpr bool holds(const Condition& condition, const Scope<Target, Source>& rows) {
  if constexpr (std::same_as<Condition, Always>) {
    return true;
  } else if constexpr (Expression<Condition>) {
    return detail::is_true(condition(rows));
  } else {
    return detail::is_true(detail::call<kind>(condition, rows));
  }
}

template <class Condition>
void print_condition(std::string& out, const Condition& condition) {
  if constexpr (Expression<Condition>) {
    condition.print(out);
  } else if constexpr (is_named_v<Condition>) {
    out += condition.name;
  } else {
    out += "<condition>";
  }
}

// --- Assignments

/// A right-hand side that is a callable for the rows of its clause.
template <ClauseKind kind, class Value, class Target, class Source>
constexpr bool is_callable_value() {
  if constexpr (is_literal<Value>::value) {
    return takes_rows<kind, typename is_literal<Value>::type, Target, Source>();
  } else {
    return false;
  }
}

template <ClauseKind kind, class Value, class Target, class Source>
constexpr decltype(auto) evaluate(const Value& value, const Scope<Target, Source>& rows) {
  if constexpr (is_callable_value<kind, Value, Target, Source>()) {
    return detail::call<kind>(value.value, rows);
  } else {
    return value(rows);
  }
}

template <ClauseKind kind, class Row, class Target, class Source, class T>
struct check_assignment {
  static_assert(is_assignment_v<T>, "keyfold: an assignment is written target<&Row::column> = value");
};

template <ClauseKind kind, class Row, class Target, class Source, auto Member, class Value>
struct check_assignment<kind, Row, Target, Source, Assignment<Column<Side::target, Member>, Value>> {
  static_assert(Readable<Member, Row>,
                "keyfold: an assignment names a column of another row type than the target");

  static constexpr bool check() {
    detail::check_sides<kind, Value, Target, Source>();
    if constexpr (Readable<Member, Row> && Value::template fits<Target, Source>) {
      using Given = decltype(detail::evaluate<kind>(std::declval<const Value&>(),
                                                    std::declval<const Scope<Target, Source>&>()));
      using To = member_value_t<Member, Row>;
      static_assert(
          is_optional_v<To> || !is_nullable_v<std::remove_cvref_t<Given>>,
          "keyfold: a value that may be empty is assigned to a column that never is; give a default with "
          "coalesce()");
      static_assert(AssignableColumn<To, Given>,
                    "keyfold: the value of an assignment does not convert to the type of its column");
    }
    return true;
  }
};

/// Runs an assignment on `out`. Every right-hand side reads `rows`, that is the old row.
template <ClauseKind kind, class Row, class Target, class Source, auto Member, class Value>
constexpr void run_assignment(Row& out, const Assignment<Column<Side::target, Member>, Value>& assignment,
                              const Scope<Target, Source>& rows) {
  detail::assign(out.*Member, detail::evaluate<kind>(assignment.value, rows), member_name<Member>);
}

template <auto Member, class Value>
void print_assignment(std::string& out, const Assignment<Column<Side::target, Member>, Value>& assignment) {
  out += member_name<Member>;
  out += " = ";
  if constexpr (is_literal<Value>::value) {
    if constexpr (is_named_v<typename is_literal<Value>::type>) {
      out += assignment.value.value.name;
      return;
    }
  }
  assignment.value.print(out);
}

template <class Assignments>
void print_assignments(std::string& out, const Assignments& assignments) {
  const char* separator = "";
  assignments.for_each([&](const auto& assignment) {
    out += separator;
    detail::print_assignment(out, assignment);
    separator = ", ";
  });
}

// --- Columns by name

/// Whether a source type brings a value for column `Member` of a target: a column of the same name.
template <class Source, auto Member>
constexpr bool has_column_named() {
  if constexpr (HasColumns<Source>) {
    return column_index<Source>(member_name<Member>) < column_count<Source>;
  } else {
    return false;
  }
}

template <auto Member, class Source>
constexpr const auto& read_by_name(const Source& source) {
  constexpr std::size_t index = column_index<Source>(member_name<Member>);
  return source.*std::get<index>(columns_list<Source>::pointers);
}

template <auto Member, class Row, class Source>
struct check_column_by_name {
  static_assert(AssignableColumn<member_value_t<Member, Row>,
                                 decltype(detail::read_by_name<Member>(std::declval<const Source&>()))>,
                "keyfold: update_all() and insert_all() found a source column of this name whose type does "
                "not convert");
  static constexpr bool value = true;
};

/// What a patch brings for a column if it is there: the optional's value, else the value itself.
template <auto Member, class Source>
using present_value_t = unwrap_optional_t<
    std::remove_cvref_t<decltype(detail::read_by_name<Member>(std::declval<const Source&>()))>>;

template <auto Member, class Row, class Source>
struct check_present_column {
  static_assert(
      AssignableColumn<member_value_t<Member, Row>, const present_value_t<Member, Source>&>,
      "keyfold: update_present() and insert_present() found a source column of this name whose type "
      "does not convert");
  static constexpr bool value = true;
};

/// Named in the compiler's message: the part of the key that is missing.
template <auto Member, class Source>
struct insert_present_key {
  static_assert(has_column_named<Source, Member>(),
                "keyfold: insert_present() needs the key of the target among the columns of the source; the "
                "part named here is missing");
  static constexpr bool value = true;
};

/// Named in the compiler's message: the column that is missing.
template <auto Member, class Source>
struct insert_all_column {
  static_assert(
      has_column_named<Source, Member>(),
      "keyfold: insert_all() needs every column of the target in the source; the one named here is missing");
  static constexpr bool value = true;
};

template <class Row, class Source>
constexpr void check_column_lists() {
  static_assert(
      HasColumns<Row> && HasColumns<Source>,
      "keyfold: update_all() and insert_all() from another row type need the column lists of both types; "
      "use BOOST_DESCRIBE_STRUCT or columns_of");
}

template <class Row, class Source>
constexpr void check_patch_lists() {
  static_assert(HasColumns<Row> && HasColumns<Source>,
                "keyfold: update_present() and insert_present() need the column lists of both types; use "
                "BOOST_DESCRIBE_STRUCT or columns_of");
}

template <class Row, class Source>
constexpr void copy_columns_by_name(Row& out, const Source& source) {
  detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
    if constexpr (has_column_named<Source, Member>()) {
      if constexpr (check_column_by_name<Member, Row, Source>::value) {
        detail::assign(out.*Member, detail::read_by_name<Member>(source), member_name<Member>);
      }
    }
  });
}

/// Leaves the columns alone whose value in the patch is an empty optional.
template <class Row, class Source>
constexpr void copy_present_columns(Row& out, const Source& patch) {
  detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
    if constexpr (has_column_named<Source, Member>()) {
      if constexpr (check_present_column<Member, Row, Source>::value) {
        const auto& given = detail::read_by_name<Member>(patch);
        if constexpr (is_optional_v<std::remove_cvref_t<decltype(given)>>) {
          if (given) detail::assign(out.*Member, *given, member_name<Member>);
        } else {
          detail::assign(out.*Member, given, member_name<Member>);
        }
      }
    }
  });
}

/// The row that insert_all() makes of a source row. Moves from a row that is not const.
template <class Row, class Source>
Row row_of(Source& source) {
  if constexpr (!std::derived_from<Source, Row>) {
    Row made{};
    detail::copy_columns_by_name(made, std::as_const(source));
    return made;
  } else if constexpr (std::is_const_v<Source>) {
    return static_cast<const Row&>(source);
  } else {
    return static_cast<Row&&>(source);
  }
}
template <class Row, class Source>
Holder<Row> hold_row(Source& source, Position position) {
  return detail::naming_row(
      [&] { return RowName{{}, position}; },
      [&] { return Holder<Row>(std::in_place, [&] { return detail::row_of<Row>(source); }); });
}

/// The compile-time checks of insert_all(), each failure a sentence.
template <class Row, class Source>
constexpr void check_insert_all() {
  if constexpr (!std::derived_from<Source, Row>) {
    check_column_lists<Row, Source>();
    static_assert(std::is_default_constructible_v<Row>,
                  "keyfold: insert_all() from another row type needs a default constructible row");
    if constexpr (HasColumns<Row> && HasColumns<Source>) {
      []<auto... Members>(MemberList<Members...>) {
        static_assert((insert_all_column<Members, Source>::value && ...));
      }(columns_list<Row>{});
    }
  }
}

// --- Actions

struct DoNothing {
  void print(std::string& out) const { out += "DO NOTHING"; }
};

struct Raise {
  std::string_view message;
  void print(std::string& out) const {
    out += "RAISE ";
    detail::append_text(out, message, Style::literal);
  }
};

struct Erase {
  void print(std::string& out) const { out += "DELETE"; }
};

struct UpdateAll {
  void print(std::string& out) const { out += "UPDATE SET *"; }
};

struct InsertAll {
  void print(std::string& out) const { out += "INSERT *"; }
};

struct UpdatePresent {
  void print(std::string& out) const { out += "UPDATE SET PRESENT *"; }
};

struct InsertPresent {
  void print(std::string& out) const { out += "INSERT PRESENT *"; }
};

template <class... Assignments>
struct Update {
  Pack<Assignments...> assignments;
  void print(std::string& out) const {
    out += "UPDATE SET ";
    detail::print_assignments(out, assignments);
  }
};

template <class... Assignments>
struct Insert {
  Pack<Assignments...> assignments;
  void print(std::string& out) const {
    out += "INSERT SET ";
    detail::print_assignments(out, assignments);
  }
};

template <class Callable>
void print_callable(std::string& out, const Callable& callable) {
  if constexpr (is_named_v<Callable>) {
    out += callable.name;
  } else {
    out += "<row>";
  }
}

template <class Callable>
struct UpdateWith {
  Callable callable;
  void print(std::string& out) const {
    out += "UPDATE SET ROW ";
    detail::print_callable(out, callable);
  }
};

template <class Callable>
struct InsertWith {
  Callable callable;
  void print(std::string& out) const {
    out += "INSERT ROW ";
    detail::print_callable(out, callable);
  }
};

template <class Action>
inline constexpr bool is_update_v = false;
template <>
inline constexpr bool is_update_v<UpdateAll> = true;
template <>
inline constexpr bool is_update_v<UpdatePresent> = true;
template <class... A>
inline constexpr bool is_update_v<Update<A...>> = true;
template <class C>
inline constexpr bool is_update_v<UpdateWith<C>> = true;

template <class Action>
inline constexpr bool is_insert_v = false;
template <>
inline constexpr bool is_insert_v<InsertAll> = true;
template <>
inline constexpr bool is_insert_v<InsertPresent> = true;
template <class... A>
inline constexpr bool is_insert_v<Insert<A...>> = true;
template <class C>
inline constexpr bool is_insert_v<InsertWith<C>> = true;

template <ClauseKind clause_kind, class Condition, class Action>
struct Clause {
  static constexpr ClauseKind kind = clause_kind;
  static constexpr bool unconditional = std::same_as<Condition, Always>;
  using ActionType = Action;

  Condition condition;
  Action action;

  void print(std::string& out) const {
    out += kind == ClauseKind::matched       ? "WHEN MATCHED"
           : kind == ClauseKind::not_matched ? "WHEN NOT MATCHED"
                                             : "WHEN NOT MATCHED BY SOURCE";
    if constexpr (!unconditional) {
      out += " AND ";
      detail::print_condition(out, condition);
    }
    out += " THEN ";
    action.print(out);
  }
};

}  // namespace keyfold::detail

// detail/core

// detail/commit_journal

// detail/commit_log

// change

// detail/key_index

// detail/hash_index

// detail/arena

#include <cerrno>
#include <memory_resource>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/// Memory that is taken from the front of larger pieces.
namespace keyfold::detail {

/// Has the system provide pages now and together, for two thirds of what it costs to touch one after the
/// other. Where it cannot, nothing happens.
inline void populate([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::byte* end) noexcept {
#if defined(MADV_POPULATE_WRITE)
  constexpr std::uintptr_t page = 4096;
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(end) / page * page;
  if (first >= last) return;
  const int error = errno;
  static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE));
  errno = error;
#endif
}

/// A piece of memory that is taken from the front to the back.
class Stretch {
 public:
  Stretch(std::byte* begin, std::byte* end) noexcept : top_(begin), populated_(begin), end_(end) {}

  /// Null if there is no room.
  std::byte* take(std::size_t bytes, std::size_t alignment) noexcept {
    const std::uintptr_t at = (reinterpret_cast<std::uintptr_t>(top_) + alignment - 1) & ~(alignment - 1);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(end_);
    if (at > end || bytes > end - at) return nullptr;
    std::byte* taken = top_ + (at - reinterpret_cast<std::uintptr_t>(top_));
    top_ = taken + bytes;
    if (top_ > populated_) populate_to_top();
    return taken;
  }

  /// Undoes the last take.
  void put_back(std::byte* taken, std::size_t bytes) noexcept {
    if (taken + bytes == top_) top_ = taken;
  }

  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - top_); }

 private:
  static constexpr std::size_t step = std::size_t{64} * 1024;
  static constexpr std::size_t worth_a_call = std::size_t{16} * 1024;

  // Ahead of the top, but not where there is little: a small table is not to touch what it does not need.
  [[gnu::noinline]] void populate_to_top() noexcept {
    std::byte* const from = std::exchange(populated_, top_ + std::min(left(), step));
    if (static_cast<std::size_t>(populated_ - from) >= worth_a_call) detail::populate(from, populated_);
  }

  std::byte* top_;
  std::byte* populated_;
  std::byte* end_;
};

/// A piece of memory that several blocks are in, with this at its front. Given back when the last of them
/// goes.
class Segment {
 public:
  static Segment* make(std::pmr::memory_resource& memory, std::size_t bytes, std::size_t alignment) {
    const std::size_t size = sizeof(Segment) + bytes + alignment;
    return ::new (memory.allocate(size, alignof(Segment))) Segment(memory, size);
  }

  void use() noexcept { ++users_; }
  void leave() noexcept {
    if (--users_ == 0) memory_.deallocate(this, size_, alignof(Segment));
  }

  Stretch room;

 private:
  Segment(std::pmr::memory_resource& memory, std::size_t size) noexcept
      : room(reinterpret_cast<std::byte*>(this + 1), reinterpret_cast<std::byte*>(this) + size),
        memory_(memory),
        size_(size) {}

  std::pmr::memory_resource& memory_;
  std::size_t size_;
  std::size_t users_ = 1;
};

/// A block of an Arena, which may be gone before it.
class ArenaBlock {
 public:
  ArenaBlock() = default;
  /// Takes over a use of the segment.
  ArenaBlock(Segment& segment, std::byte* data, std::size_t size) noexcept
      : segment_(&segment), data_(data), size_(size) {}
  ArenaBlock(ArenaBlock&& other) noexcept
      : segment_(std::exchange(other.segment_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  ArenaBlock& operator=(ArenaBlock other) noexcept {
    std::swap(segment_, other.segment_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ArenaBlock() {
    if (segment_ == nullptr) return;
    segment_->room.put_back(data_, size_);
    segment_->leave();
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  Segment* segment_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Small blocks one behind the other in segments; a large one has a segment of its own. A segment goes when
/// its last block goes. Not synchronised: blocks of one arena are made and destroyed by one thread at a time.
class Arena {
 public:
  explicit Arena(std::pmr::memory_resource& memory) noexcept : memory_(&memory) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (current_ != nullptr) current_->leave();
  }

  /// Whether a block of so many bytes shares its segment with no other.
  static constexpr bool has_own_segment(std::size_t bytes) noexcept { return bytes > largest / 4; }

  /// Throws what the memory resource throws.
  ArenaBlock allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return {};
    if (has_own_segment(bytes)) return in(*Segment::make(*memory_, bytes, alignment), bytes, alignment);
    std::byte* data = current_ == nullptr ? nullptr : current_->room.take(bytes, alignment);
    if (data == nullptr) data = take_from_next(bytes, alignment);
    current_->use();
    return {*current_, data, bytes};
  }

 private:
  static constexpr std::size_t smallest = 512;
  static constexpr std::size_t largest = std::size_t{64} * 1024;

  [[gnu::noinline]] std::byte* take_from_next(std::size_t bytes, std::size_t alignment) {
    while (next_ < bytes * 4) next_ *= 2;
    Segment* fresh = Segment::make(*memory_, next_, alignment);
    if (current_ != nullptr) current_->leave();
    current_ = fresh;
    next_ = std::min(next_ * 2, largest);
    return current_->room.take(bytes, alignment);
  }

  static ArenaBlock in(Segment& segment, std::size_t bytes, std::size_t alignment) noexcept {
    return {segment, segment.room.take(bytes, alignment), bytes};
  }

  std::pmr::memory_resource* memory_;
  Segment* current_ = nullptr;
  std::size_t next_ = smallest;
};

}  // namespace keyfold::detail

// detail/hash_line

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace keyfold::detail {

/// A cache line of items and the hashes of their keys. The items stand at its front, before places that are
/// free, which have no item.
///
/// It is searched as a whole, without a branch: where in it an item is a processor could not guess.
struct alignas(64) HashLine {
  static constexpr std::size_t size = 4;
  static constexpr std::size_t last = size - 1;

  bool is_full() const noexcept { return items[last] != nullptr; }

  std::size_t used() const noexcept {
    std::size_t count = 0;
    for (void* const item : items) count += item != nullptr ? 1U : 0U;
    return count;
  }

  /// A bit for each place with this hash, from the lowest on.
  unsigned equal(std::uint64_t hash) const noexcept {
    unsigned places = 0;
    for (std::size_t i = 0; i < size; ++i) places |= (hashes[i] == hash ? 1U : 0U) << i;
    return places;
  }

  /// The same, and perhaps few others, at once.
  unsigned like(std::uint64_t hash) const noexcept {
#if defined(__SSE2__)
    const __m128 front = _mm_load_ps(reinterpret_cast<const float*>(hashes));
    const __m128 back = _mm_load_ps(reinterpret_cast<const float*>(hashes + size / 2));
    const __m128i low_halves = _mm_castps_si128(_mm_shuffle_ps(front, back, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(hash));
    return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(low_halves, wanted))));
#else
    return equal(hash);
#endif
  }

  /// Requires: not full.
  void add(std::uint64_t hash, void* item) noexcept { set(used(), hash, item); }
  void set(std::size_t place, std::uint64_t hash, void* item) noexcept {
    hashes[place] = hash;
    items[place] = item;
  }

  std::uint64_t hashes[size];
  void* items[size];
};

/// The first place of those that HashLine::like() tells. Requires: there is one.
inline unsigned first_place(unsigned places) noexcept {
  return static_cast<unsigned>(std::countr_zero(places));
}

}  // namespace keyfold::detail

// detail/list

#include <cassert>

namespace keyfold::detail {

/// Memory of a resource, or of `new` where there is none.
inline void* take_memory(std::pmr::memory_resource* memory, std::size_t bytes, std::size_t alignment) {
  if (memory != nullptr) return memory->allocate(bytes, alignment);
  if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(bytes, std::align_val_t(alignment));
  return ::operator new(bytes);
}
inline void give_back(std::pmr::memory_resource* memory, void* taken, std::size_t bytes,
                      std::size_t alignment) noexcept {
  if (memory != nullptr) return memory->deallocate(taken, bytes, alignment);
  if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
    return ::operator delete(taken, std::align_val_t(alignment));
  ::operator delete(taken);
}

/// What a write needs of std::vector, of elements whose moves cannot fail. Every source file with a table
/// pays for each element type: 30 ms for one of std::vector, a tenth of that for this.
///
/// Whatever throws leaves it as it was.
template <class T>
class List {
 public:
  List() = default;
  explicit List(std::pmr::memory_resource& memory) noexcept : memory_(&memory) {}
  /// So many value-initialised elements.
  explicit List(std::size_t size) { resize(size); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { free(); }

  T* begin() noexcept { return first_; }
  T* end() noexcept { return last_; }
  const T* begin() const noexcept { return first_; }
  const T* end() const noexcept { return last_; }
  T* data() noexcept { return first_; }
  const T* data() const noexcept { return first_; }

  bool empty() const noexcept { return first_ == last_; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(last_ - first_); }
  std::size_t capacity() const noexcept { return static_cast<std::size_t>(limit_ - first_); }
  /// Requires: made with it.
  std::pmr::memory_resource& memory() const noexcept { return *memory_; }

  T& operator[](std::size_t i) noexcept { return first_[i]; }
  const T& operator[](std::size_t i) const noexcept { return first_[i]; }
  T& front() noexcept { return *first_; }
  T& back() noexcept { return last_[-1]; }

  /// The arguments must not refer to an element.
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (last_ == limit_) move_to(last_ == first_ ? 1 : 2 * size());
    T* const added = ::new (static_cast<void*>(last_)) T(std::forward<Arguments>(arguments)...);
    ++last_;
    return *added;
  }
  void push_back(const T& element) { emplace_back(element); }
  void push_back(T&& element) { emplace_back(std::move(element)); }

  void reserve(std::size_t capacity) {
    if (capacity > this->capacity()) move_to(capacity);
  }
  /// Only grows.
  void resize(std::size_t size) {
    assert(size >= this->size());
    static_assert(std::is_nothrow_default_constructible_v<T>);
    reserve(size);
    T* const end = first_ + size;
    for (T* at = last_; at != end; ++at) ::new (static_cast<void*>(at)) T();
    last_ = end;
  }

  void clear() noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (T* at = first_; at != last_; ++at) at->~T();
    }
    last_ = first_;
  }
  /// Gives the memory back, too.
  void free() noexcept {
    clear();
    release();
    first_ = last_ = limit_ = nullptr;
  }
  /// Requires: both have the same memory.
  void swap(List& other) noexcept {
    assert(memory_ == other.memory_);
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(limit_, other.limit_);
  }

 private:
  static_assert(std::is_nothrow_move_constructible_v<T>);
  static constexpr std::size_t element_size =
      sizeof(T);  // NOLINT(bugprone-sizeof-expression): of pointers, too

  void move_to(std::size_t capacity) {
    if (capacity > std::numeric_limits<std::size_t>::max() / 2 / element_size)
      throw std::bad_array_new_length();
    T* const fresh = static_cast<T*>(detail::take_memory(memory_, capacity * element_size, alignof(T)));
    T* to = fresh;
    for (T* from = first_; from != last_; ++from, ++to) {
      ::new (static_cast<void*>(to)) T(std::move(*from));
      from->~T();
    }
    release();
    first_ = fresh;
    last_ = to;
    limit_ = fresh + capacity;
  }
  void release() noexcept {
    if (first_ != nullptr)
      detail::give_back(memory_, static_cast<void*>(first_), capacity() * element_size, alignof(T));
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
  T* limit_ = nullptr;
  std::pmr::memory_resource* memory_ = nullptr;
};

}  // namespace keyfold::detail

// detail/prefetch

namespace keyfold::detail {

// Whoever calls a function that does nothing but prefetch calls, for GCC, a function without effect, and the
// call goes. The empty statement is an effect.

/// Starts loading what stands there. Any address will do.
inline void prefetch(const void* address) noexcept {
  __builtin_prefetch(address);
  asm volatile("");
}
inline void prefetch_to_write(const void* address) noexcept {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

/// The cache lines of an object that lies there, or would lie there: all, unless it is very large.
template <class Object>
void prefetch_lines(const Object* object) noexcept {
  constexpr std::size_t cache_line = 64;
  constexpr std::size_t most = 8 * cache_line;
  constexpr std::size_t bytes = sizeof(Object) < most ? sizeof(Object) : most;
  const auto first = reinterpret_cast<std::uintptr_t>(object);
  for (std::size_t offset = 0; offset < bytes; offset += cache_line)
    detail::prefetch(reinterpret_cast<const void*>(first + offset));
  detail::prefetch(reinterpret_cast<const void*>(first + sizeof(Object) - 1));
}

/// A part of a key, as a tuple has it, whose value lies outside the row: the text of a std::string, or what a
/// view leads to. Of ranges only: what else is called data() may do anything.
template <class Part>
concept KeptElsewhere = (std::is_lvalue_reference_v<Part> || std::is_trivially_copyable_v<Part>) &&
                        std::ranges::contiguous_range<const std::remove_reference_t<Part>>;

template <class Key>
inline constexpr bool is_kept_elsewhere = false;
template <class... Parts>
inline constexpr bool is_kept_elsewhere<std::tuple<Parts...>> = (KeptElsewhere<Parts> || ...);

template <class Part>
void prefetch_part(const Part& part) {
  if constexpr (KeptElsewhere<const Part&>) detail::prefetch(std::ranges::data(part));
}

/// What parts of a key keep elsewhere.
template <class... Parts>
void prefetch_elsewhere(const std::tuple<Parts...>& key) {
  std::apply([](const auto&... part) { (detail::prefetch_part(part), ...); }, key);
}

}  // namespace keyfold::detail

#include <cstring>

namespace keyfold::detail {

/// An index from 64-bit hashes to items that live elsewhere: extendible hashing (Fagin, Nievergelt, Pippenger
/// and Strong, ACM TODS 4, 1979). The high bits of a hash choose a segment, the low bits a line in it. Within
/// a segment, linear probing from line to line with backward-shift deletion (after Knuth, The Art of Computer
/// Programming 3, 6.4, algorithm R), so there are no tombstones: an item stands in a line behind its own only
/// if all lines between are full. Mostly one line says all.
///
/// A segment that fills up doubles until it has 64 KiB, and then splits in two. So the index grows a little
/// at a time: no insertion pays for a rehash of the whole.
///
/// insert(), erase() and replace() never allocate nor throw, lookups throw only what the caller's equality
/// does. Several items may have one hash, and even one key: that is the caller's business, and lets a write
/// swap keys in any order.
class HashIndex {
 public:
  explicit HashIndex(std::pmr::memory_resource& memory = *std::pmr::new_delete_resource()) noexcept
      : directory_(memory), segments_(memory) {}
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;
  ~HashIndex() { clear(); }

  /// The item with this hash for which `equal(item)`, or null.
  template <class Equal>
  void* find(std::uint64_t hash, Equal equal) const {
    const Table table = table_of(hash);
    for (std::size_t at = table.line_of(hash);; at = table.line_after(at)) {
      const HashLine& line = table.lines[at];
      for (unsigned places = line.like(hash); places != 0; places &= places - 1) {
        const unsigned place = detail::first_place(places);
        void* const item = line.items[place];
        if (line.hashes[place] == hash && item != nullptr && equal(item)) return item;
      }
      if (!line.is_full()) return nullptr;
    }
  }

  /// Starts loading what find(hash) reads first.
  void prefetch(std::uint64_t hash) const noexcept {
    const Table& table = table_of(hash);
    detail::prefetch(table.lines + table.line_of(hash));
  }

  /// An item that find(hash) may find, or null if it finds nothing: worth a prefetch, no answer.
  void* candidate(std::uint64_t hash) const noexcept {
    const Table table = table_of(hash);
    for (std::size_t at = table.line_of(hash);; at = table.line_after(at)) {
      const HashLine& line = table.lines[at];
      const unsigned places = line.like(hash);
      // Of a line that is not full the last place is free.
      if (int{places != 0} | int{!line.is_full()})
        return line.items[detail::first_place(places | 1U << HashLine::last)];
    }
  }

  /// Makes insertions of these hashes free of allocation, until something else is inserted.
  /// `for_each_hash(visit)` calls `visit(hash)` for each of the `count`, and may be called several times.
  /// Throws what the memory resource throws; strong guarantee.
  template <class ForEachHash>
  void reserve(std::size_t count, ForEachHash for_each_hash) {
    if (count == 0) return;
    presize(count);
    do {
      crowded_.clear();
      ++round_;
      for_each_hash([&](std::uint64_t hash) { expect(hash); });
      for (const std::uint64_t hash : crowded_) {
        const Segment& segment = segment_of(hash);
        make_room(hash, segment.used + segment.expected, size_ + count);
      }
    } while (!crowded_.empty());
  }
  /// Likewise, for one.
  void reserve_one(std::uint64_t hash) {
    if (directory_.empty()) presize(1);
    while (segment_of(hash).is_full()) make_room(hash, segment_of(hash).used + 1, size_ + 1);
  }

  /// Makes an empty index as large as so many items will need. Throws what the memory resource throws; strong
  /// guarantee.
  void presize(std::size_t count) {
    if (count == 0 || !directory_.empty()) return;
    std::size_t lines = smallest;
    while (lines < full && limit(lines) < count) lines *= 2;
    unsigned depth = 0;
    while ((limit(lines) / 8 * 7) << depth < count && lines == full) ++depth;
    build(depth, lines);
  }

  /// Requires: reserved room.
  void insert(std::uint64_t hash, void* item) noexcept {
    const Table& table = table_of(hash);
    assert(!segments_[table.segment].is_full());
    place(table, hash, item);
    ++segments_[table.segment].used;
    ++size_;
  }

  /// Throws what the memory resource throws; strong guarantee.
  void add(std::uint64_t hash, void* item) {
    reserve_one(hash);
    insert(hash, item);
  }

  /// Adds the item, unless there is one with this hash for which `equal(other)`; returns that one, or null.
  /// Throws what the memory resource and `equal` throw; strong guarantee.
  template <class Equal>
  void* add_if_new(std::uint64_t hash, void* item, Equal equal) {
    reserve_one(hash);
    if (void* const other = find(hash, equal)) return other;
    insert(hash, item);
    return nullptr;
  }

  /// Requires: the item is in the index with this hash.
  void erase(std::uint64_t hash, const void* item) noexcept {
    const Table& table = table_of(hash);
    close_gap(table, place_of(table, hash, item));
    --segments_[table.segment].used;
    --size_;
  }

  /// Lets `to` stand where `from` stood. Requires: `from` is in the index with this hash.
  void replace(std::uint64_t hash, const void* from, void* to) noexcept {
    const Table& table = table_of(hash);
    const Place place = place_of(table, hash, from);
    table.lines[place.line].items[place.number] = to;
  }

  /// Calls `visit(hash, item)` for every item, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Segment& segment : segments_) segment.for_each(visit);
  }

  /// Gives memory back when less than an eighth of it is in use. Throws what the memory resource throws;
  /// strong guarantee.
  void shrink() {
    if (size_ >= lines_ * HashLine::size / 8) return;
    HashIndex smaller(memory());
    smaller.reserve(size_, [&](auto visit) { for_each([&](std::uint64_t hash, void*) { visit(hash); }); });
    for_each([&](std::uint64_t hash, void* item) { smaller.insert(hash, item); });
    swap(smaller);
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept {
    return lines_ * sizeof(HashLine) + directory_.capacity() * sizeof(Table) +
           segments_.capacity() * sizeof(Segment);
  }

 private:
  /// What a search needs of a segment.
  struct Table {
    std::size_t line_of(std::uint64_t hash) const noexcept { return hash & mask; }
    std::size_t line_after(std::size_t line) const noexcept { return (line + 1) & mask; }

    HashLine* lines;
    std::uint32_t mask;  // the number of lines, a power of two, less one
    std::uint32_t segment;
  };

  struct Segment {
    bool is_full() const noexcept { return used == limit(lines); }
    template <class Visit>
    void for_each(Visit visit) const {
      for (const HashLine* line = first; line != first + lines; ++line) {
        for (std::size_t i = 0; i < HashLine::size && line->items[i] != nullptr; ++i)
          visit(line->hashes[i], line->items[i]);
      }
    }
    Table table(std::size_t number) const noexcept {
      return {first, static_cast<std::uint32_t>(lines - 1), static_cast<std::uint32_t>(number)};
    }

    HashLine* first;
    std::size_t lines;
    unsigned depth;             // of the high bits of a hash, so many are the same for all its items
    std::size_t used = 0;       // places
    std::uint64_t round = 0;    // of reserve(), in which...
    std::size_t expected = 0;   // ...so many more are expected
    std::uint64_t crowded = 0;  // the round in which that was too many
  };

  /// Where an item stands.
  struct Place {
    std::size_t line;
    std::size_t number;
  };

  static constexpr std::size_t smallest = 4;
  static constexpr std::size_t full = 1024;  // lines of a segment that splits rather than grows: 64 KiB

  // Places of so many lines that are used at the most: three quarters.
  static constexpr std::size_t limit(std::size_t lines) noexcept { return lines * HashLine::size / 4 * 3; }

  std::pmr::memory_resource& memory() const noexcept { return directory_.memory(); }

  std::size_t number_of(std::uint64_t hash) const noexcept { return (hash >> 1U) >> shift_; }
  const Table& table_of(std::uint64_t hash) const noexcept { return tables_[number_of(hash)]; }
  Segment& segment_of(std::uint64_t hash) noexcept { return segments_[table_of(hash).segment]; }

  // --- Lines

  static Place place_of(const Table& table, std::uint64_t hash, const void* item) noexcept {
    for (std::size_t at = table.line_of(hash);; at = table.line_after(at)) {
      for (std::size_t i = 0; i < HashLine::size; ++i)
        if (table.lines[at].items[i] == item) return {at, i};
    }
  }

  static void place(const Table& table, std::uint64_t hash, void* item) noexcept {
    std::size_t at = table.line_of(hash);
    while (table.lines[at].is_full()) at = table.line_after(at);
    table.lines[at].add(hash, item);
  }

  static void close_gap(const Table& table, Place gap) noexcept {
    for (;;) {
      HashLine& line = table.lines[gap.line];
      const std::size_t last = line.used() - 1;
      const bool was_full = line.is_full();
      line.set(gap.number, line.hashes[last], line.items[last]);
      line.set(last, 0, nullptr);
      if (!was_full) return;
      const Place mover = mover_to(table, gap.line);
      if (mover.line == gap.line) return;
      const HashLine& from = table.lines[mover.line];
      line.set(last, from.hashes[mover.number], from.items[mover.number]);
      gap = mover;
    }
  }

  // An item behind this line that may stand in it, or a place in this line if there is none.
  static Place mover_to(const Table& table, std::size_t line) noexcept {
    for (std::size_t at = table.line_after(line);; at = table.line_after(at)) {
      const HashLine& next = table.lines[at];
      const std::size_t distance = (at - line) & table.mask;
      for (std::size_t i = 0; i < HashLine::size && next.items[i] != nullptr; ++i)
        if (((at - table.line_of(next.hashes[i])) & table.mask) >= distance) return {at, i};
      if (!next.is_full()) return {line, 0};
    }
  }

  // --- Room

  void expect(std::uint64_t hash) {
    Segment& segment = segment_of(hash);
    if (segment.round != round_) {
      segment.round = round_;
      segment.expected = 0;
    }
    ++segment.expected;
    if (segment.used + segment.expected <= limit(segment.lines) || segment.crowded == round_) return;
    segment.crowded = round_;
    crowded_.push_back(hash);
  }

  Segment make_segment(std::size_t lines, unsigned depth) {
    const std::size_t bytes = lines * sizeof(HashLine);
    auto* first = static_cast<std::byte*>(memory().allocate(bytes, alignof(HashLine)));
    if (lines == full) detail::populate(first, first + bytes);
    return {static_cast<HashLine*>(std::memset(first, 0, bytes)), lines, depth};
  }
  void release(const Segment& segment) noexcept {
    memory().deallocate(segment.first, segment.lines * sizeof(HashLine), alignof(HashLine));
  }

  // The segment of this hash gets room for `need` items, if half of them go to each half of it. Splits do not
  // help where too many of the `total` hashes are alike.
  void make_room(std::uint64_t hash, std::size_t need, std::size_t total) {
    const Segment& segment = segment_of(hash);
    if (need <= limit(segment.lines)) return;
    const auto deepest = static_cast<unsigned>(std::bit_width(total / (full / 8))) + 1;
    if (segment.lines < full || segment.depth >= deepest) {
      double_segment(hash);
      make_room(hash, need, total);
    } else {
      const std::uint64_t half = std::uint64_t{1} << (63U - segment.depth);
      split_segment(hash);
      make_room(hash & ~half, need / 2, total);
      make_room(hash | half, need / 2, total);
    }
  }

  void double_segment(std::uint64_t hash) {
    Segment& segment = segment_of(hash);
    const std::uint32_t number = table_of(hash).segment;
    Segment larger = make_segment(segment.lines * 2, segment.depth);
    larger.used = segment.used;
    const Table table = larger.table(number);
    segment.for_each([&](std::uint64_t other, void* item) { place(table, other, item); });
    lines_ += segment.lines;
    release(segment);
    segment = larger;
    point_to(hash, number, number);
  }

  void split_segment(std::uint64_t hash) {
    if (segment_of(hash).depth == 63U - shift_) double_directory();
    const std::uint32_t number = table_of(hash).segment;
    const unsigned depth = segments_[number].depth + 1;
    const std::size_t lines = segments_[number].lines;
    segments_.reserve(segments_.size() == segments_.capacity() ? segments_.size() * 2 : 0);
    Segment low = make_segment(lines, depth);
    Segment high = low;
    try {
      high = make_segment(lines, depth);
    } catch (...) {
      release(low);
      throw;
    }
    segments_[number].for_each([&](std::uint64_t other, void* item) {
      Segment& half = ((other >> (64U - depth)) & 1U) == 0 ? low : high;
      place(half.table(0), other, item);
      ++half.used;
    });
    lines_ += lines;
    release(segments_[number]);
    segments_[number] = low;
    segments_.push_back(high);
    point_to(hash, number, static_cast<std::uint32_t>(segments_.size() - 1));
  }

  // Of the places in the directory that lead to one segment, half are to lead to `low`, the others to `high`.
  void point_to(std::uint64_t hash, std::uint32_t low, std::uint32_t high) noexcept {
    const unsigned depth = segments_[low].depth - (low == high ? 0U : 1U);  // that all of them share
    const std::size_t count = std::size_t{1} << (63U - shift_ - depth);
    const std::size_t first = number_of(hash) / count * count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t number = i < count / 2 ? low : high;
      directory_[first + i] = segments_[number].table(number);
    }
  }

  void double_directory() {
    List<Table> larger(memory());
    larger.reserve(directory_.size() * 2);
    for (const Table& table : directory_) {
      larger.push_back(table);
      larger.push_back(table);
    }
    directory_.swap(larger);
    tables_ = directory_.data();
    --shift_;
  }

  void build(unsigned depth, std::size_t lines) {
    HashIndex made(memory());
    made.shift_ = 63U - depth;
    const std::size_t count = std::size_t{1} << depth;
    made.directory_.reserve(count);
    made.segments_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      made.segments_.push_back(made.make_segment(lines, depth));
      made.directory_.push_back(made.segments_.back().table(i));
      made.lines_ += lines;
    }
    made.tables_ = made.directory_.data();
    swap(made);
  }

  // --- The whole

  void clear() noexcept {
    for (const Segment& segment : segments_) release(segment);
  }

  void swap(HashIndex& other) noexcept {
    directory_.swap(other.directory_);
    segments_.swap(other.segments_);
    std::swap(tables_, other.tables_);
    std::swap(shift_, other.shift_);
    std::swap(size_, other.size_);
    std::swap(lines_, other.lines_);
    std::swap(round_, other.round_);
  }

  /// Where lookups of an empty index end. Never written.
  static inline HashLine no_line{};
  static inline const Table no_table{&no_line, 0, 0};

  const Table* tables_ = &no_table;  // the directory
  List<Table> directory_;            // by the highest bits of a hash, 63 - shift_
  List<Segment> segments_;
  unsigned shift_ = 63;
  std::size_t size_ = 0;
  std::size_t lines_ = 0;        // of all segments
  std::uint64_t round_ = 0;      // of reserve()
  List<std::uint64_t> crowded_;  // a hash of each segment with too little room for what is expected
};

}  // namespace keyfold::detail

#include <span>

namespace keyfold::detail {

/// An item and the hash of its key.
template <class Item>
struct Hashed {
  std::uint64_t hash = 0;
  Item* item = nullptr;
};

/// A HashIndex of items of one type. Lookups are compiled for each; what moves entries is compiled once.
template <class Item>
class KeyIndex : HashIndex {
 public:
  using HashIndex::bytes;
  using HashIndex::HashIndex;
  using HashIndex::prefetch;
  using HashIndex::presize;
  using HashIndex::reserve;
  using HashIndex::reserve_one;
  using HashIndex::shrink;
  using HashIndex::size;

  template <class Equal>
  Item* find(std::uint64_t hash, Equal equal) const {
    return typed(HashIndex::find(hash, [&](void* item) { return equal(*typed(item)); }));
  }
  Item* candidate(std::uint64_t hash) const noexcept { return typed(HashIndex::candidate(hash)); }

  void insert(std::uint64_t hash, Item* item) noexcept { HashIndex::insert(hash, untyped(item)); }
  void add(std::uint64_t hash, Item* item) { HashIndex::add(hash, untyped(item)); }
  template <class Equal>
  Item* add_if_new(std::uint64_t hash, Item* item, Equal equal) {
    return typed(
        HashIndex::add_if_new(hash, untyped(item), [&](void* other) { return equal(*typed(other)); }));
  }

  /// Adds items in the order of their places, so that memory is walked from the front to the back: a place
  /// found by chance costs a search of the page tables. Returns an item for which `equal(item, other)` holds
  /// with one that is there, or null. Requires: `sorted` as large as `items`. Throws what the memory resource
  /// and `equal` throw.
  template <class Equal>
  Item* add_new(std::span<const Hashed<Item>> items, std::span<Hashed<Item>> sorted, Equal equal) {
    sort_by_place(items, sorted);
    for (const Hashed<Item>& added : sorted.first(items.size())) {
      const auto is_same = [&](const Item& other) { return equal(*added.item, other); };
      if (add_if_new(added.hash, added.item, is_same) != nullptr) return added.item;
    }
    return nullptr;
  }

  void erase(std::uint64_t hash, const Item* item) noexcept { HashIndex::erase(hash, item); }
  void replace(std::uint64_t hash, const Item* from, Item* to) noexcept {
    HashIndex::replace(hash, from, untyped(to));
  }

  template <class Visit>
  void for_each(Visit visit) const {
    HashIndex::for_each([&](std::uint64_t hash, void* item) { visit(hash, *typed(item)); });
  }

 private:
  static Item* typed(void* item) noexcept { return static_cast<Item*>(item); }
  static void* untyped(Item* item) noexcept { return const_cast<void*>(static_cast<const void*>(item)); }

  // By the highest bits of the hash only.
  static void sort_by_place(std::span<const Hashed<Item>> items, std::span<Hashed<Item>> sorted) noexcept {
    const auto digit = [](const Hashed<Item>& entry) { return entry.hash >> 56U; };
    std::array<std::size_t, 257> starts{};
    for (const Hashed<Item>& entry : items) ++starts[digit(entry) + 1];
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    for (const Hashed<Item>& entry : items) sorted[starts[digit(entry)]++] = entry;
  }
};

}  // namespace keyfold::detail

#include <iterator>

namespace keyfold {

enum class ChangeKind : std::uint8_t { insert, update, erase };

[[nodiscard]] constexpr std::string_view to_string(ChangeKind kind) noexcept {
  switch (kind) {
    case ChangeKind::insert:
      return "insert";
    case ChangeKind::update:
      return "update";
    case ChangeKind::erase:
      break;
  }
  return "erase";
}

/// What happened to one row. A value: it holds copies of the row before and after, and outlives the table.
template <class Row>
class Change {
 public:
  [[nodiscard]] static Change insert(Row after) { return Change(std::nullopt, std::move(after)); }
  [[nodiscard]] static Change update(Row before, Row after) {
    return Change(std::move(before), std::move(after));
  }
  [[nodiscard]] static Change erase(Row before) { return Change(std::move(before), std::nullopt); }

  [[nodiscard]] ChangeKind kind() const noexcept {
    if (!before_) return ChangeKind::insert;
    return after_ ? ChangeKind::update : ChangeKind::erase;
  }

  /// The row before the change; null for an insert.
  [[nodiscard]] const Row* before() const noexcept { return before_ ? &*before_ : nullptr; }

  /// The row after the change; null for an erase.
  [[nodiscard]] const Row* after() const noexcept { return after_ ? &*after_ : nullptr; }

  /// The columns whose values differ; all columns for an insert or an erase. Empty without a column list.
  [[nodiscard]] ColumnMask<Row> columns() const {
    ColumnMask<Row> mask;
    if constexpr (HasColumns<Row>) {
      if (kind() != ChangeKind::update) {
        mask.set_all();
      } else {
        detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
          if (!detail::equal_values(detail::read<Member>(*before_), detail::read<Member>(*after_)))
            mask.set(I);
        });
      }
    }
    return mask;
  }

  /// The change that undoes this one.
  [[nodiscard]] Change inverse() const { return Change(after_, before_); }

  /// Equal if they do the same to the same row.
  friend bool operator==(const Change& a, const Change& b)
    requires detail::RowComparable<Row>
  {
    return same_image(a.before_, b.before_) && same_image(a.after_, b.after_);
  }

 private:
  Change(std::optional<Row> before, std::optional<Row> after)
      : before_(std::move(before)), after_(std::move(after)) {}

  static bool same_image(const std::optional<Row>& a, const std::optional<Row>& b) {
    return a && b ? detail::same_row(*a, *b) : a.has_value() == b.has_value();
  }

  std::optional<Row> before_;
  std::optional<Row> after_;
};

/// A change in a feed: of one version.
template <class Row>
class FeedChange : public Change<Row> {
 public:
  FeedChange(Change<Row> change, Version version, Timestamp timestamp)
      : Change<Row>(std::move(change)), version_(version), timestamp_(timestamp) {}

  [[nodiscard]] Version version() const noexcept { return version_; }
  [[nodiscard]] Timestamp timestamp() const noexcept { return timestamp_; }

 private:
  Version version_;
  Timestamp timestamp_;
};

/// Changes of many versions, in order.
template <class Row>
using ChangeFeed = std::vector<FeedChange<Row>>;

namespace detail {

/// The key of a row type without the type of its table.
template <class Row>
struct KeyFunctions {
  std::uint64_t (*hash)(const Row&);
  bool (*equal)(const Row&, const Row&);
};

template <class Parts, class Row>
inline constexpr KeyFunctions<Row> key_functions{
    [](const Row& row) { return detail::hash_of(Parts::of(row)); },
    [](const Row& a, const Row& b) { return detail::equal_values(Parts::of(a), Parts::of(b)); }};

}  // namespace detail

/// Changes of rows of one type, all at once: at most one leaves a key, and at most one arrives at it. What a
/// write did, or what preview() says it would do. A value, and a random access range of `const Change<Row>`,
/// in the order of the write: by source row, then what when_not_matched_by_source clauses did, in table
/// order.
template <class Row>
class ChangeSet {
 public:
  using value_type = Change<Row>;
  using const_iterator = typename std::vector<Change<Row>>::const_iterator;
  using iterator = const_iterator;

  ChangeSet() = default;
  explicit ChangeSet(std::vector<Change<Row>> changes) noexcept : changes_(std::move(changes)) {}
  ChangeSet(std::vector<Change<Row>> changes, const detail::KeyFunctions<Row>& key) noexcept
      : changes_(std::move(changes)), key_(&key) {}

  [[nodiscard]] std::size_t size() const noexcept { return changes_.size(); }
  [[nodiscard]] bool empty() const noexcept { return changes_.empty(); }
  [[nodiscard]] const_iterator begin() const noexcept { return changes_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return changes_.end(); }

  /// Requires: index < size().
  [[nodiscard]] const Change<Row>& operator[](std::size_t index) const {
    assert(index < size());
    return changes_[index];
  }

  /// The changes that undo these: inserts become erases, updates go back.
  [[nodiscard]] ChangeSet inverse() const {
    ChangeSet out;
    out.key_ = key_;
    out.changes_.reserve(size());
    for (const Change<Row>& change : changes_) out.changes_.push_back(change.inverse());
    return out;
  }

  /// The changes for which `keep(const Change&)` is true.
  template <class Keep>
  [[nodiscard]] ChangeSet filter(Keep keep) const {
    ChangeSet out;
    out.key_ = key_;
    std::ranges::copy_if(changes_, std::back_inserter(out.changes_), std::move(keep));
    return out;
  }

  /// The net effect of these changes and then `later` ones: for each key the row before and the row after, if
  /// they differ. An update that changes the key counts as an erase and an insert. O(size() + later.size())
  /// on average. Throws Error if neither set was made by a table, whose key tells which rows are the same.
  [[nodiscard]] ChangeSet then(const ChangeSet& later) const;

  friend bool operator==(const ChangeSet& a, const ChangeSet& b)
    requires detail::RowComparable<Row>
  {
    return a.changes_ == b.changes_;
  }

 private:
  std::vector<Change<Row>> changes_;
  const detail::KeyFunctions<Row>* key_ = nullptr;  // null for a set that no table made
};

namespace detail {

/// The change from one image of a row to another, null being absent; nothing if they are the same.
template <class Row>
std::optional<Change<Row>> net_change(const Row* before, const Row* after) {
  if (before == nullptr && after == nullptr) return std::nullopt;
  if (before == nullptr) return Change<Row>::insert(*after);
  if (after == nullptr) return Change<Row>::erase(*before);
  if (detail::same_or(false, *before, *after)) return std::nullopt;
  return Change<Row>::update(*before, *after);
}

/// Composes change sets by key.
template <class Row>
class Composer {
 public:
  Composer(const KeyFunctions<Row>& key, std::size_t changes) : key_(key) {
    nets_.reserve(changes * 2);
    by_key_.presize(changes * 2);
  }

  // The changes of a set happen at once: all rows leave their keys before any arrives.
  void add(const std::vector<Change<Row>>& changes) {
    for (const Change<Row>& change : changes) {
      if (change.before() != nullptr) net_of(*change.before(), change.before()).after = nullptr;
    }
    for (const Change<Row>& change : changes) {
      if (change.after() != nullptr) net_of(*change.after(), nullptr).after = change.after();
    }
  }

  std::vector<Change<Row>> result() const {
    std::vector<Change<Row>> out;
    for (const Net& net : nets_) {
      if (auto change = detail::net_change(net.before, net.after)) out.push_back(*std::move(change));
    }
    return out;
  }

 private:
  struct Net {
    const Row* row;  // one that has the key
    const Row* before;
    const Row* after = nullptr;
  };

  Net& net_of(const Row& row, const Row* before) {
    const std::uint64_t hash = key_.hash(row);
    if (Net* net = by_key_.find(hash, [&](const Net& known) { return key_.equal(*known.row, row); }))
      return *net;
    Net& net = nets_.emplace_back(Net{&row, before});
    by_key_.add(hash, &net);
    return net;
  }

  const KeyFunctions<Row>& key_;
  std::vector<Net> nets_;  // reserved: they keep their place
  KeyIndex<Net> by_key_;
};

}  // namespace detail

template <class Row>
ChangeSet<Row> ChangeSet<Row>::then(const ChangeSet& later) const {
  if (empty() && later.empty()) return {};
  const auto* key = key_ != nullptr ? key_ : later.key_;
  if (key == nullptr)
    throw Error(
        "no table made these change sets, so their key is not known; compose one of them with one that a "
        "table made");
  detail::Composer<Row> composer(*key, size() + later.size());
  composer.add(changes_);
  composer.add(later.changes_);
  return ChangeSet(composer.result(), *key);
}

}  // namespace keyfold

// detail/log

/// The version log: what each commit changed, as before images. A chain per key leads from a row through its
/// older images; a commit is one block of the log. The image after a change is the next newer one, or the row
/// itself, so nothing is stored twice: an update costs 24 bytes beyond the row it replaced, an insert 16.
namespace keyfold::detail {

template <class Row>
struct LogEntry;

/// A row in the table: the element that Boost.MultiIndex keeps. The container's keys are read from `row`;
/// writes that leave them alone change it in place, hence mutable.
template <class Row>
struct Slot {
  explicit Slot(Holder<Row>&& held) noexcept : row(std::move(held)) {}

  const Row& get() const noexcept { return row.get(); }

  mutable Holder<Row> row;
  mutable std::uint64_t mark = 0;           // the plan that touched it last, and where: see Plan
  mutable std::uint64_t order = 0;          // ascending with insertion: its place among rows that are gone
  mutable LogEntry<Row>* newest = nullptr;  // head of its chain in the log
};

enum class LogKind : std::uint8_t {
  insert,
  update,
  erase,
  rekey_out,  // an update that changed the key: the row leaves its old key...
  rekey_in    // ...and, in the entry that follows, arrives at the new one
};

/// One change of one key. Behind it in memory stands a link to the change before, unless it is a key's first,
/// and then a before image, unless it has none (insert, rekey_in).
template <class Row>
struct LogEntry {
  LogEntry(LogKind kind, bool is_first, Version version) noexcept
      : stamp_(version << version_shift | (is_first ? first_flag : 0U) | static_cast<std::uint64_t>(kind)) {}

  LogKind kind() const noexcept { return static_cast<LogKind>(stamp_ & kind_mask); }
  Version version() const noexcept { return stamp_ >> version_shift; }

  /// Whether it inserts a key of which there was no change before. Nothing can be older.
  bool is_first() const noexcept { return (stamp_ & first_flag) != 0; }

  /// Whether its key had a row before. A key without one begins a life here.
  bool has_before() const noexcept { return kind() != LogKind::insert && kind() != LogKind::rekey_in; }

  /// Whether its key has a row afterwards. If not, a life of the key ends here.
  bool leaves_row() const noexcept { return kind() != LogKind::erase && kind() != LogKind::rekey_out; }

  /// The change before this one of the same key, or null.
  LogEntry* older() const noexcept { return is_first() ? nullptr : *older_link(); }
  /// Requires: not is_first().
  void set_older(LogEntry* entry) noexcept {
    assert(!is_first());
    *older_link() = entry;
  }

  Holder<Row>& before() noexcept {
    assert(has_before());
    return *std::launder(reinterpret_cast<Holder<Row>*>(behind(before_offset)));
  }
  const Holder<Row>& before() const noexcept { return const_cast<LogEntry*>(this)->before(); }

  /// The row this change left behind. Requires: leaves_row().
  const Row& after() const noexcept {
    assert(leaves_row() && newer_ != 0);
    const Slot<Row>* slot = newer_slot();
    return slot != nullptr ? slot->get() : newer_entry()->before().get();
  }

  /// What stands above it in the chain: the row, or the next change. Requires: leaves_row().
  const Slot<Row>* newer_slot() const noexcept {
    return (newer_ & slot_tag) != 0 ? reinterpret_cast<const Slot<Row>*>(newer_ & ~slot_tag) : nullptr;
  }
  LogEntry* newer_entry() const noexcept {
    return (newer_ & slot_tag) == 0 ? reinterpret_cast<LogEntry*>(newer_) : nullptr;
  }
  void set_newer(const Slot<Row>* slot) noexcept {
    newer_ = reinterpret_cast<std::uintptr_t>(slot) | slot_tag;
  }
  void set_newer(const LogEntry* entry) noexcept { newer_ = reinterpret_cast<std::uintptr_t>(entry); }

  /// The place that the row had in the order of rows. Requires: not leaves_row().
  std::uint64_t order() const noexcept { return newer_; }
  void set_order(std::uint64_t order) noexcept { newer_ = order; }

  // Layout in a LogBlock: the entry, the link, the before image.
  static constexpr std::size_t round_up(std::size_t bytes, std::size_t to) noexcept {
    return (bytes + to - 1) / to * to;
  }
  static constexpr std::size_t header = 2 * sizeof(std::uint64_t);
  static constexpr std::size_t alignment = std::max(alignof(std::uint64_t), alignof(Holder<Row>));
  static constexpr std::size_t before_offset = round_up(header + sizeof(LogEntry*), alignof(Holder<Row>));
  static constexpr std::size_t first_size = round_up(header, alignment);
  static constexpr std::size_t bare_size = round_up(header + sizeof(LogEntry*), alignment);
  static constexpr std::size_t image_size = round_up(before_offset + sizeof(Holder<Row>), alignment);

  std::size_t size() const noexcept {
    return is_first() ? first_size : has_before() ? image_size : bare_size;
  }

 private:
  static constexpr std::uint64_t kind_mask = 7;
  static constexpr std::uint64_t first_flag = 8;
  static constexpr std::uint64_t version_shift = 4;
  static constexpr std::uint64_t slot_tag = 1;

  std::byte* behind(std::size_t offset) const noexcept {
    return reinterpret_cast<std::byte*>(const_cast<LogEntry*>(this)) + offset;
  }
  LogEntry** older_link() const noexcept {
    return std::launder(reinterpret_cast<LogEntry**>(behind(header)));
  }

  std::uint64_t stamp_;  // version, first_flag, kind
  // Where a row is left: the next change of the same key, or its Slot (tagged) while there is none. Else its
  // order.
  std::uint64_t newer_ = 0;
};

/// How many entries of a block are the first of their keys, how many of the others have no before image, and
/// how many have one.
struct EntryCounts {
  std::size_t firsts = 0;
  std::size_t bare = 0;
  std::size_t images = 0;

  std::size_t all() const noexcept { return firsts + bare + images; }
  bool are_alike() const noexcept { return firsts == all() || bare == all() || images == all(); }
};

/// The entries of one commit, in memory that is taken before the commit; adding them cannot fail.
template <class Row>
class LogBlock {
 public:
  using Entry = LogEntry<Row>;

  LogBlock() = default;
  LogBlock(Arena& arena, const EntryCounts& room)
      : memory_(arena.allocate(bytes_of(room), Entry::alignment)) {}
  LogBlock(LogBlock&& other) noexcept
      : memory_(std::move(other.memory_)), counts_(std::exchange(other.counts_, {})) {}
  LogBlock& operator=(LogBlock other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(counts_, other.counts_);
    return *this;
  }
  ~LogBlock() {
    if constexpr (!std::is_trivially_destructible_v<Holder<Row>>) {
      for (Entry* entry = first(); entry != nullptr; entry = next(entry))
        if (entry->has_before()) std::destroy_at(&entry->before());
    }
  }

  /// Adds the insert of a key of which there was no change before.
  Entry* add_first(Version version) noexcept {
    Entry* entry = put_first(used() / Entry::alignment, version);
    ++counts_.firsts;
    return entry;
  }
  /// Adds an entry without a before image.
  Entry* add(LogKind kind, Version version, Entry* older) noexcept {
    Entry* entry = put(used() / Entry::alignment, kind, version, older);
    ++counts_.bare;
    return entry;
  }
  /// Adds an entry that takes over `before`.
  Entry* add(LogKind kind, Version version, Entry* older, Holder<Row>&& before) noexcept {
    Entry* entry = put(used() / Entry::alignment, kind, version, older, std::move(before));
    ++counts_.images;
    return entry;
  }

  /// Adds the like of an entry of another block, whose image it takes over. Its links are left to do.
  Entry* take_over(Entry& from) noexcept {
    if (from.is_first()) return add_first(from.version());
    Entry* entry = from.has_before() ? add(from.kind(), from.version(), nullptr, std::move(from.before()))
                                     : add(from.kind(), from.version(), nullptr);
    if (!from.leaves_row()) entry->set_order(from.order());
    return entry;
  }

  // The same in any order, each entry at its place: `place` counts alignments from the front of the block. No
  // entry is part of the block before close().

  Entry* put_first(std::size_t place, Version version) noexcept {
    return make(place, Entry::first_size, LogKind::insert, true, version);
  }
  Entry* put(std::size_t place, LogKind kind, Version version, Entry* older) noexcept {
    return link(make(place, Entry::bare_size, kind, false, version), older);
  }
  Entry* put(std::size_t place, LogKind kind, Version version, Entry* older, Holder<Row>&& before) noexcept {
    Entry* entry = make(place, Entry::image_size, kind, false, version);
    ::new (at(place) + Entry::before_offset) Holder<Row>(std::move(before));
    return link(entry, older);
  }
  /// Requires: so many entries stand in a row.
  void close(const EntryCounts& counts) noexcept {
    counts_ = counts;
    assert(used() <= bytes());
  }

  const Entry* first() const noexcept { return const_cast<LogBlock*>(this)->first(); }
  Entry* first() noexcept { return used() == 0 ? nullptr : entry_at(0); }
  const Entry* next(const Entry* entry) const noexcept { return next(const_cast<Entry*>(entry)); }
  Entry* next(Entry* entry) const noexcept {
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(entry) - memory_.data()) + entry->size();
    return offset == used() ? nullptr : entry_at(offset);
  }

  const EntryCounts& counts() const noexcept { return counts_; }

  std::size_t bytes() const noexcept { return memory_.size(); }

  static constexpr std::size_t bytes_of(const EntryCounts& counts) noexcept {
    return counts.firsts * Entry::first_size + counts.bare * Entry::bare_size +
           counts.images * Entry::image_size;
  }

 private:
  std::size_t used() const noexcept { return bytes_of(counts_); }

  std::byte* at(std::size_t place) const noexcept { return memory_.data() + place * Entry::alignment; }
  Entry* entry_at(std::size_t offset) const noexcept {
    return std::launder(reinterpret_cast<Entry*>(memory_.data() + offset));
  }

  Entry* make(std::size_t place, [[maybe_unused]] std::size_t size, LogKind kind, bool is_first,
              Version version) noexcept {
    assert(place * Entry::alignment + size <= bytes());
    return ::new (at(place)) Entry(kind, is_first, version);
  }
  static Entry* link(Entry* entry, Entry* older) noexcept {
    ::new (reinterpret_cast<std::byte*>(entry) + Entry::header) Entry*(older);
    if (older != nullptr && older->leaves_row()) older->set_newer(entry);
    return entry;
  }

  ArenaBlock memory_;
  EntryCounts counts_;
};

}  // namespace keyfold::detail

// detail/node_pool

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEYFOLD_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define KEYFOLD_ASAN
#endif
#if defined(KEYFOLD_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace keyfold::detail {

/// Whether AddressSanitizer is to report accesses: a row that is gone is not to be read, though its cell is
/// still there.
inline void forbid([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(KEYFOLD_ASAN)
  __asan_poison_memory_region(memory, bytes);
#endif
}
inline void allow([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(KEYFOLD_ASAN)
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

/// Cells of one size, for the nodes of a container. They lie side by side in chunks that grow with the pool.
/// A chunk without a used cell is given back, unless cells are being taken from it.
///
/// A chunk consists of pages with a pointer to the chunk at their front, so that a cell finds its chunk by
/// its address. The free cells of a chunk are a list.
class NodePool {
 public:
  NodePool(std::pmr::memory_resource& memory, std::size_t cell_size, std::size_t alignment) noexcept
      : memory_(&memory), cell_(cell_size), alignment_(alignment) {
    page_ = std::bit_ceil(std::max(smallest_page, round_up(sizeof(Chunk)) + cell_ * least_cells));
    assert(cell_ >= sizeof(Free) && alignment_ >= alignof(Free));
  }
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;
  ~NodePool() {
    if (current_ != nullptr) release(current_);
  }

  /// Throws what the memory resource throws.
  void* allocate() {
    Chunk* chunk = current_;
    if (chunk == nullptr || !chunk->has_room()) chunk = next_chunk();
    ++chunk->used;
    if (Free* cell = chunk->free; cell != nullptr) {
      detail::allow(cell, cell_);
      chunk->free = cell->next;
      return cell;
    }
    std::byte* cell = chunk->fresh;
    chunk->fresh += cell_;
    if (static_cast<std::size_t>(chunk->page_end - chunk->fresh) < cell_) open_page(*chunk, sizeof(Chunk*));
    return cell;
  }

  void deallocate(void* cell) noexcept {
    Chunk* chunk = *reinterpret_cast<Chunk**>(reinterpret_cast<std::uintptr_t>(cell) & ~(page_ - 1));
    const bool had_room = chunk->has_room();
    chunk->free = ::new (cell) Free{chunk->free};
    detail::forbid(cell, cell_);
    --chunk->used;
    if (chunk == current_) return;
    if (!had_room) link(chunk);
    if (chunk->used == 0) {
      unlink(chunk);
      release(chunk);
    }
  }

  std::size_t cell_size() const noexcept { return cell_; }
  std::pmr::memory_resource& memory() const noexcept { return *memory_; }

  /// Of all chunks.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Free {
    Free* next;
  };

  struct Chunk {
    bool has_room() const noexcept { return free != nullptr || fresh != nullptr; }

    Chunk* self = this;  // as at the front of every page
    std::size_t size;
    Stretch pages;                  // that no cell was taken from yet
    std::byte* fresh = nullptr;     // the next cell of a page that was never used; null: no page is left
    std::byte* page_end = nullptr;  // of its page
    Free* free = nullptr;
    std::size_t used = 0;
    Chunk* previous = nullptr;  // in the list of those with room
    Chunk* next = nullptr;
  };

  static constexpr std::size_t smallest_page = 4096;
  static constexpr std::size_t least_cells = 8;
  static constexpr std::size_t largest_chunk = std::size_t{1024} * 1024;

  std::size_t round_up(std::size_t bytes) const noexcept {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  [[gnu::noinline]] Chunk* next_chunk() {
    Chunk* next = with_room_;
    if (next != nullptr) {
      unlink(next);
    } else {
      const std::size_t size = std::clamp(std::bit_floor(bytes_ | 1U), page_, std::max(page_, largest_chunk));
      auto* memory = static_cast<std::byte*>(memory_->allocate(size, page_));
      next = ::new (memory) Chunk{.size = size, .pages = Stretch(memory, memory + size)};
      open_page(*next, sizeof(Chunk));
      bytes_ += size;
    }
    return current_ = next;  // the old one is full
  }

  [[gnu::noinline]] void open_page(Chunk& chunk, std::size_t header) noexcept {
    std::byte* page = chunk.pages.take(page_, 1);
    chunk.fresh = chunk.page_end = nullptr;
    if (page == nullptr) return;
    if (page != reinterpret_cast<std::byte*>(&chunk)) ::new (page) Chunk*(&chunk);
    chunk.fresh = page + round_up(header);
    chunk.page_end = page + page_;
  }

  void link(Chunk* chunk) noexcept {
    chunk->previous = nullptr;
    chunk->next = with_room_;
    if (with_room_ != nullptr) with_room_->previous = chunk;
    with_room_ = chunk;
  }
  void unlink(Chunk* chunk) noexcept {
    (chunk->previous != nullptr ? chunk->previous->next : with_room_) = chunk->next;
    if (chunk->next != nullptr) chunk->next->previous = chunk->previous;
  }

  void release(Chunk* chunk) noexcept {
    bytes_ -= chunk->size;
    detail::allow(chunk, chunk->size);
    memory_->deallocate(chunk, chunk->size, page_);
  }

  std::pmr::memory_resource* memory_;
  std::size_t cell_;
  std::size_t alignment_;
  std::size_t page_;
  Chunk* current_ = nullptr;    // that cells are taken from; it is in no list
  Chunk* with_room_ = nullptr;  // others
  std::size_t bytes_ = 0;
};

/// Takes what is as large as a cell from a pool and the rest, such as arrays of buckets, from where the pool
/// has its memory.
template <class T>
class PoolAllocator {
 public:
  using value_type = T;

  explicit PoolAllocator(NodePool& pool) noexcept : pool_(&pool) {}
  template <class Other>
  PoolAllocator(const PoolAllocator<Other>& other) noexcept : pool_(&other.pool()) {}

  T* allocate(std::size_t count) {
    if (is_node(count)) return static_cast<T*>(pool_->allocate());
    if (count > static_cast<std::size_t>(-1) / size_of_one) throw std::bad_array_new_length();
    return static_cast<T*>(pool_->memory().allocate(count * size_of_one, alignof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (is_node(count)) return pool_->deallocate(static_cast<void*>(memory));
    pool_->memory().deallocate(static_cast<void*>(memory), count * size_of_one, alignof(T));
  }

  NodePool& pool() const noexcept { return *pool_; }

  template <class Other>
  bool operator==(const PoolAllocator<Other>& other) const noexcept {
    return pool_ == &other.pool();
  }

 private:
  bool is_node(std::size_t count) const noexcept { return count * size_of_one == pool_->cell_size(); }

  static constexpr std::size_t size_of_one =
      sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer

  NodePool* pool_;
};

}  // namespace keyfold::detail

// detail/packed_metrics

// metrics

namespace keyfold {

/// What a write did, counted in target rows, never in pairs of rows.
///
///     size after   = size before + inserted - deleted
///     affected()   = inserted + updated + deleted
///     source_rows  = inserted + matched_updated + matched_deleted + unchanged + skipped + dropped_duplicates
///                    + dropped_late (+ further source rows that fired the same unconditional erase())
///
/// The last line holds for merges that match on the key. A source row that matches several target rows
/// through a secondary index counts each of them, and is skipped only if no clause acts on any.
struct Metrics {
  std::size_t source_rows = 0;
  std::size_t inserted = 0;
  std::size_t updated = 0;    ///< matched_updated + not_matched_by_source_updated
  std::size_t deleted = 0;    ///< matched_deleted + not_matched_by_source_deleted
  std::size_t unchanged = 0;  ///< source rows whose update would not have changed the row
  std::size_t skipped = 0;    ///< source rows for which no clause, or do_nothing(), fired
  std::size_t matched_updated = 0;
  std::size_t matched_deleted = 0;
  std::size_t not_matched_by_source_updated = 0;
  std::size_t not_matched_by_source_deleted = 0;
  std::size_t dropped_duplicates =
      0;                         ///< source rows that the duplicate policy dropped or folded into another
  std::size_t dropped_late = 0;  ///< change events older than what the table has

  [[nodiscard]] constexpr std::size_t affected() const noexcept { return inserted + updated + deleted; }

  bool operator==(const Metrics&) const = default;
};

}  // namespace keyfold

namespace keyfold::detail {

inline constexpr std::array metric_fields{&Metrics::source_rows,
                                          &Metrics::inserted,
                                          &Metrics::updated,
                                          &Metrics::deleted,
                                          &Metrics::unchanged,
                                          &Metrics::skipped,
                                          &Metrics::matched_updated,
                                          &Metrics::matched_deleted,
                                          &Metrics::not_matched_by_source_updated,
                                          &Metrics::not_matched_by_source_deleted,
                                          &Metrics::dropped_duplicates,
                                          &Metrics::dropped_late};
static_assert(metric_fields.size() * sizeof(std::size_t) == sizeof(Metrics), "all of them");

/// Metrics as the log keeps them. Of a commit of few rows each count is a byte; a table that is written to
/// row by row has as many commits as rows.
class PackedMetrics {
 public:
  PackedMetrics() = default;
  /// Throws std::bad_alloc.
  PackedMetrics(const Metrics& metrics) {  // NOLINT(google-explicit-constructor): it stands for them
    std::size_t bits = 0;
    for (std::size_t i = metric_fields.size(); i > 0; --i) {
      const std::size_t count = metrics.*metric_fields[i - 1];
      bits |= count;
      if (i > first_high) {
        high_ = high_ << 8U | static_cast<std::uint32_t>(count);
      } else {
        low_ = low_ << 8U | count;
      }
    }
    if (bits > 0xFF) large_ = std::make_unique<const Metrics>(metrics);
  }

  Metrics get() const noexcept {
    if (large_ != nullptr) return *large_;
    Metrics metrics;
    for (std::size_t i = 0; i < metric_fields.size(); ++i)
      metrics.*metric_fields[i] = (i < first_high ? low_ >> 8U * i : high_ >> 8U * (i - first_high)) & 0xFFU;
    return metrics;
  }

  /// Bytes outside of it.
  std::size_t bytes() const noexcept { return large_ != nullptr ? sizeof(Metrics) : 0; }

 private:
  static constexpr std::size_t first_high = 8;
  static_assert(metric_fields.size() <= first_high + 4, "a byte for each");

  std::unique_ptr<const Metrics> large_;  // if a count is too large for a byte
  std::uint64_t low_ = 0;                 // the first counts, from the lowest byte up
  std::uint32_t high_ = 0;                // the others
};

}  // namespace keyfold::detail

// detail/table_readers

// detail/function_ref

namespace keyfold::detail {

template <class Signature>
class FunctionRef;

/// A callable by reference, its type erased, so that what takes it is compiled once for all callables. For
/// calls that are rare: one for a write, or for a block of rows.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, FunctionRef>)
  FunctionRef(
      Callable&& callable) noexcept  // NOLINT(google-explicit-constructor): it stands for the callable
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* erased, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(erased))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(callable_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* callable_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace keyfold::detail

namespace keyfold::detail {

/// The readers in other threads, as a table sees them that is in a SharedTable.
class TableReaders {
 public:
  TableReaders() = default;
  TableReaders(const TableReaders&) = delete;
  TableReaders& operator=(const TableReaders&) = delete;
  virtual ~TableReaders() = default;

  /// Waits until nobody reads, and lets nobody begin. May be nested. Only for who has the turn to write.
  virtual void shut_out() noexcept = 0;
  virtual void let_in() noexcept = 0;

  /// Reads as a reader does.
  virtual void read(FunctionRef<void()> reading) = 0;

  /// The first version that a read point needs; the largest number if there is none.
  virtual Version oldest_read() const = 0;
};

/// Keeps readers out while a table is changed; nothing for a table that is not shared.
class WithoutReaders {
 public:
  explicit WithoutReaders(TableReaders* readers) noexcept : readers_(readers) {
    if (readers_ != nullptr) readers_->shut_out();
  }
  WithoutReaders(const WithoutReaders&) = delete;
  WithoutReaders& operator=(const WithoutReaders&) = delete;
  ~WithoutReaders() {
    if (readers_ != nullptr) readers_->let_in();
  }

 private:
  TableReaders* readers_;
};

}  // namespace keyfold::detail

#include <deque>

namespace keyfold::detail {

/// A commit as the log keeps it.
template <class Row>
struct CommitRecord {
  CommitRecord() = default;
  /// Takes the texts of the note. Throws std::bad_alloc, and what the memory resource of the arena throws.
  CommitRecord(Version own_version, Timestamp time, CommitNote& note, const Metrics& counts, Arena& arena,
               const EntryCounts& entries)
      : version(own_version),
        timestamp(time),
        operation(note.operation),
        parameters(std::move(note.parameters)),
        metadata(std::move(note.metadata)),
        metrics(counts),
        block(arena, entries) {}

  Version version = 0;
  Timestamp timestamp{};
  std::string_view operation{};  // static storage, or in the log's `operations`
  SharedText parameters{};
  SharedText metadata{};
  std::size_t table_size = 0;  // rows, after the commit
  [[no_unique_address]] PackedMetrics metrics{};
  bool has_changes = true;  // false for a tagged version that is older than `oldest`: its block is retired
  LogBlock<Row> block{};
};

/// The version log: the commits whose versions can be read, and what older blocks they still need.
///
/// Version v is read by undoing, for each key, the entries with a version above v; so the block of a commit
/// serves the versions before it. All versions from `oldest` on can be read, and of those before it the
/// tagged ones.
template <class Row>
class CommitLog {
 public:
  using Record = CommitRecord<Row>;
  static constexpr std::size_t records_together =
      std::max<std::size_t>(512 / sizeof(Record), 1);  // as libstdc++ has them in a deque

  CommitLog(const KeyFunctions<Row>& key_functions, std::pmr::memory_resource& memory)
      : key(key_functions),
        arena(memory),
        record_pool(memory, records_together * sizeof(Record), alignof(Record)),
        records(PoolAllocator<Record>(record_pool)) {}

  bool empty() const noexcept { return records.empty(); }
  Version latest() const noexcept { return empty() ? 0 : records.back().version; }

  bool readable(Version version) const noexcept {
    return (version >= oldest && version <= latest()) ||
           std::binary_search(pinned.begin(), pinned.end(), version);
  }

  /// Throws VersionNotFound, VersionExpired.
  void require_readable(Version version) const {
    if (version > latest()) throw VersionNotFound(version, latest());
    if (!readable(version)) throw VersionExpired(version, oldest);
  }

  /// The record of a version, or null: version 0 has none.
  const Record* find(Version version) const noexcept {
    const auto is_before = [](const Record& record, Version wanted) { return record.version < wanted; };
    const auto at = std::lower_bound(records.begin(), records.end(), version, is_before);
    return at != records.end() && at->version == version ? &*at : nullptr;
  }

  /// The version that was current at this time: that of the last commit not after it.
  /// Throws VersionNotFound before the first commit, VersionExpired where the version is gone or cannot be
  /// told.
  Version version_at(Timestamp time) const {
    if (!first_commit || time < *first_commit) throw VersionNotFound(time, latest());
    const auto after = std::ranges::upper_bound(records, time, {}, &Record::timestamp);
    if (after == records.begin()) throw VersionExpired(time, oldest);
    const Record& found = *std::prev(after);
    const bool next_is_known = after == records.end() || after->version == found.version + 1;
    if (!next_is_known && found.timestamp != time) throw VersionExpired(time, oldest);
    require_readable(found.version);
    return found.version;
  }

  /// Rows at a readable version.
  std::size_t table_size(Version version) const noexcept {
    return version == 0 ? 0 : find(version)->table_size;
  }

  const KeyFunctions<Row>& key;
  Arena arena;
  std::shared_ptr<TableReaders> readers;                       // of a table that is shared, else null
  std::vector<std::shared_ptr<const std::string>> operations;  // where those of loaded commits are stored
  NodePool record_pool;
  std::deque<Record, PoolAllocator<Record>>
      records;                         // ascending; a deque: they keep their address while others come and go
  std::vector<LogBlock<Row>> retired;  // ascending: blocks of expired versions that pinned ones may need
  Version oldest = 0;
  std::vector<Version> pinned;  // tagged versions before `oldest`, ascending
  std::optional<Timestamp> first_commit;
  std::optional<Timestamp> last_expired;  // time of version oldest - 1
  std::size_t record_bytes = 0;           // in the blocks of `records`
  std::size_t unswept = 0;                // bytes retired since the last sweep
  std::size_t swept = 0;                  // bytes that the last sweep left in `retired`
};

/// A microsecond later. After the last time there is none: it is its own successor.
constexpr Timestamp tick_after(Timestamp time) noexcept {
  return time == Timestamp::max() ? time : time + Timestamp::duration(1);
}

/// The change as its key sees it: an update that changes the key takes the row from one key and gives it to
/// another.
template <class Row>
Change<Row> change_of_key(const LogEntry<Row>& entry) {
  if (!entry.has_before()) return Change<Row>::insert(entry.after());
  if (!entry.leaves_row()) return Change<Row>::erase(entry.before().get());
  return Change<Row>::update(entry.before().get(), entry.after());
}

/// The change of a commit that an entry begins; `rekey_in` entries are part of the one before.
template <class Row>
Change<Row> change_of(const LogBlock<Row>& block, const LogEntry<Row>& entry) {
  if (entry.kind() != LogKind::rekey_out) return detail::change_of_key(entry);
  return Change<Row>::update(entry.before().get(), block.next(&entry)->after());
}

/// Calls `visit` with each change of a commit, as a value. Throws VersionExpired once the commit has lost
/// them.
template <class Row, class Visit>
void for_each_change(const CommitLog<Row>& log, const CommitRecord<Row>& record, Visit visit) {
  if (!record.has_changes) throw VersionExpired::of_changes(record.version, log.oldest);
  for (const auto* entry = record.block.first(); entry != nullptr; entry = record.block.next(entry)) {
    if (entry->kind() != LogKind::rekey_in) visit(detail::change_of(record.block, *entry));
  }
}

template <class Row>
ChangeSet<Row> changes_of(const CommitLog<Row>& log, const CommitRecord<Row>& record) {
  std::vector<Change<Row>> changes;
  detail::for_each_change(log, record, [&](Change<Row>&& change) { changes.push_back(std::move(change)); });
  return ChangeSet<Row>(std::move(changes), log.key);
}

}  // namespace keyfold::detail

// detail/plan

// detail/sequence_state

/// What apply_changes() remembers beside the rows: sequences and deletes that rows cannot show.
namespace keyfold::detail {

/// Of unknown types: only the planner that made it knows them, and asks by dynamic_cast.
class SequenceState {
 public:
  SequenceState() = default;
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;
  virtual ~SequenceState() = default;

  virtual std::unique_ptr<SequenceState> clone() const = 0;
  virtual std::size_t bytes() const noexcept = 0;

  /// Which feeds it is of, for messages: "current rows by int64".
  virtual std::string describe() const = 0;
};

/// A planned change of that state, carried out beside the rows of the plan.
class SequenceUpdate {
 public:
  SequenceUpdate() = default;
  SequenceUpdate(const SequenceUpdate&) = delete;
  SequenceUpdate& operator=(const SequenceUpdate&) = delete;
  virtual ~SequenceUpdate() = default;

  /// Whatever can fail, without a change that anybody sees. Requires: `place` holds the state for which the
  /// update was planned.
  virtual void stage(std::unique_ptr<SequenceState>& place) = 0;
  virtual void publish() noexcept = 0;
};

/// Hands the state of a transaction to its table.
class SequenceHandover final : public SequenceUpdate {
 public:
  /// `stored`: the updates of the transaction as a journal writes them, if the table has one.
  SequenceHandover(std::unique_ptr<SequenceState>& from, std::vector<std::string> stored) noexcept
      : from_(&from), stored_(std::move(stored)) {}

  const std::vector<std::string>& stored() const noexcept { return stored_; }

  void stage(std::unique_ptr<SequenceState>& place) override { place_ = &place; }
  void publish() noexcept override { *place_ = std::move(*from_); }

 private:
  std::unique_ptr<SequenceState>* from_;
  std::unique_ptr<SequenceState>* place_ = nullptr;
  std::vector<std::string> stored_;
};

/// A value for each of some keys. Items stay where they are; they are replaced as a whole, which cannot fail.
/// `heap_bytes(value)`: what a value holds outside itself.
template <class KeyType, class ValueType>
class KeyedStates {
 public:
  struct Item {
    KeyType key;
    ValueType value;
    std::uint64_t hash;
    Item* older = nullptr;  // of a list that the owner may keep, see CurrentState
    Item* newer = nullptr;
  };

  KeyedStates() = default;
  KeyedStates(const KeyedStates&) = delete;
  KeyedStates& operator=(const KeyedStates&) = delete;
  ~KeyedStates() {
    index_.for_each([](std::uint64_t, Item& item) { delete &item; });
  }

  template <class Key>
  Item* find(const Key& key, std::uint64_t hash) const {
    return index_.find(hash, [&](const Item& item) { return detail::equal_values(item.key, key); });
  }
  template <class Visit>
  void for_each(Visit visit) const {
    index_.for_each([&](std::uint64_t, Item& item) { visit(item); });
  }

  /// Makes add() of one with this hash possible. Strong guarantee.
  void reserve_one(std::uint64_t hash) { index_.reserve_one(hash); }
  /// Makes add() possible of what is added by all of the changes. Strong guarantee.
  template <class Changes>
  void reserve_for(const Changes& changes) {
    const auto is_added = [](const auto& change) { return change.old == nullptr; };
    index_.reserve(static_cast<std::size_t>(std::ranges::count_if(changes, is_added)), [&](auto visit) {
      for (const auto& change : changes) {
        if (is_added(change)) visit(change.fresh->hash);
      }
    });
  }

  /// Requires: reserved room.
  Item& add(std::unique_ptr<Item> item) noexcept {
    index_.insert(item->hash, item.get());
    held_ += heap_bytes(item->value);
    return *item.release();
  }
  /// Lets `fresh`, of the same key, stand for `old`, which dies.
  Item& replace(Item& old, std::unique_ptr<Item> fresh) noexcept {
    index_.replace(old.hash, &old, fresh.get());
    held_ += heap_bytes(fresh->value);
    held_ -= heap_bytes(old.value);
    delete &old;
    return *fresh.release();
  }
  void drop(Item& item) noexcept {
    index_.erase(item.hash, &item);
    held_ -= heap_bytes(item.value);
    delete &item;
  }

  std::size_t size() const noexcept { return index_.size(); }
  std::size_t bytes() const noexcept { return index_.bytes() + size() * sizeof(Item) + held_; }

 private:
  KeyIndex<Item> index_;
  std::size_t held_ = 0;
};

/// What an update does to a key: a fresh item for an old one, for none, or none for an old one.
template <class Item>
struct ItemChange {
  Item* old = nullptr;
  std::unique_ptr<Item> fresh;
};

}  // namespace keyfold::detail

namespace keyfold::detail {

enum class Outcome : std::uint8_t {
  seen,       ///< matched, but no clause acts on it
  unchanged,  ///< an update that would not change it
  insert,
  // From here on a row goes to history:
  update,
  erase
};

/// What a write will do to one row.
template <class Row>
struct Planned {
  explicit Planned(const Slot<Row>* target) noexcept : slot(target) {}

  const Slot<Row>* slot;             // the row it acts on; null for an insert
  std::optional<Holder<Row>> after;  // the row it leaves behind: insert and update
  Position position = no_position;   // of the source row
  std::uint32_t clause = 0;          // that fired, by its number in the rule
  Outcome outcome = Outcome::seen;
  // An update keeps its key; an insert has a valid one, with `hash`, that no row has.
  bool key_known : 1 = false;

  // Filled in by validate():
  bool rekeyed : 1 = false;     // an update that changes the primary key
  bool relinked : 1 = false;    // an update that changes the key of an index: it needs a slot of its own
  bool replaced : 1 = false;    // another row arrives at the key that this one leaves
  std::uint32_t turn = 0;       // the number of its KeyTurn, from 1; 0: it has none
  std::uint32_t log_place = 0;  // where its entry begins in the block of the commit
  std::uint64_t hash = 0;       // of the key it arrives at or keeps; for an erase, of the one it leaves

  // Filled in by apply():
  const Slot<Row>* fresh = nullptr;  // the slot made for it

  bool leaves_row() const noexcept { return outcome == Outcome::insert || outcome == Outcome::update; }
  bool leaves_key() const noexcept { return outcome == Outcome::erase || rekeyed; }
  bool arrives_at_key() const noexcept { return outcome == Outcome::insert || rekeyed; }
  /// Whether there was no change of its key before, as far as is known.
  bool is_first() const noexcept { return outcome == Outcome::insert && turn == 0; }
  bool needs_slot() const noexcept { return outcome == Outcome::insert || rekeyed || relinked; }
};

/// What few planned rows have: one leaves a key that another arrives at, or a key comes back to life.
template <class Row>
struct KeyTurn {
  std::uint64_t hash_before = 0;  // of the key that a rekeyed update leaves
  const Planned<Row>* frees_key =
      nullptr;                     // for an arrival: the row that leaves its key in the same write, or...
  LogEntry<Row>* grave = nullptr;  // ...the last change of its key, which no row has now

  // Filled in by apply():
  LogEntry<Row>* left = nullptr;     // its entry at the key it leaves
  LogEntry<Row>* arrived = nullptr;  // its entry at the key it arrives at
};

/// Of planned rows: what they take in the log, and how many there are of what; each half of a number is a
/// count.
struct PlanSums {
  constexpr PlanSums& operator+=(const PlanSums& other) noexcept {
    firsts_and_bare += other.firsts_and_bare;
    images_and_departures += other.images_and_departures;
    log_size += other.log_size;
    return *this;
  }
  constexpr EntryCounts log() const noexcept {
    return {low(firsts_and_bare), high(firsts_and_bare), low(images_and_departures)};
  }
  constexpr std::size_t departures() const noexcept { return high(images_and_departures); }

  static constexpr std::uint64_t both(bool low, bool high) noexcept {
    return std::uint64_t{high} << 32U | std::uint64_t{low};
  }
  static constexpr std::size_t low(std::uint64_t number) noexcept { return number & 0xFFFF'FFFFU; }
  static constexpr std::size_t high(std::uint64_t number) noexcept { return number >> 32U; }

  std::uint64_t firsts_and_bare = 0;
  std::uint64_t images_and_departures = 0;
  std::uint64_t log_size = 0;  // in alignments of the log
};

/// What becomes of a planned row, as numbers to count with: of comparisons a compiler may make branches.
struct PlannedKind {
  PlanSums sums;
  std::uint8_t changes = 0;
  std::uint8_t arrives_at_key = 0;
};

/// By the outcome, and 8 more for an update that changes the key and an insert of a key that was there
/// before.
template <class Row>
inline constexpr auto planned_kinds = [] {
  using Logged = LogEntry<Row>;
  std::array<PlannedKind, 16> kinds;
  for (std::size_t number = 0; number < kinds.size(); ++number) {
    const auto outcome = static_cast<Outcome>(number % 8);
    const bool other = number >= 8;
    const bool insert = outcome == Outcome::insert;
    const bool rekeyed = outcome == Outcome::update && other;
    const bool first = insert && !other;
    const bool bare = rekeyed || (insert && other);
    const bool image = outcome == Outcome::update || outcome == Outcome::erase;
    const std::size_t log_size =
        (first ? Logged::first_size : 0) + (bare ? Logged::bare_size : 0) + (image ? Logged::image_size : 0);
    kinds[number].sums = {PlanSums::both(first, bare),
                          PlanSums::both(image, outcome == Outcome::erase || rekeyed),
                          log_size / Logged::alignment};
    kinds[number].changes = insert || image;
    kinds[number].arrives_at_key = insert || rekeyed;
  }
  return kinds;
}();

/// What is asked several times of a planned row that changes something: beside the plan, where it takes less
/// room in a cache.
struct PlanStep {
  PlanStep() = default;
  PlanStep(std::uint64_t entry_hash, std::size_t number, std::size_t arrives, std::size_t known) noexcept
      : hash(entry_hash), bits(known << 33U | arrives << 32U | number) {}

  std::uint32_t number() const noexcept { return static_cast<std::uint32_t>(bits); }
  bool arrives_at_key() const noexcept { return (bits >> 32U & 1U) != 0; }
  bool key_known() const noexcept { return (bits >> 33U & 1U) != 0; }

  std::uint64_t hash = 0;  // of the entry
  std::uint64_t bits = 0;
};

/// What a plan lies in, for one plan after the other.
template <class Row>
struct PlanMemory {
  List<Planned<Row>> entries;
  List<PlanStep> steps;
  std::size_t most_kept = least_kept;  // bytes of entries, of which the room is not given back

  static constexpr std::size_t least_kept = std::size_t{256} * 1024;
};

/// Some entries of a plan.
template <class Row>
class SomePlanned {
 public:
  SomePlanned(Planned<Row>* entries, const PlanStep* steps, std::size_t size) noexcept
      : entries_(entries), steps_(steps), size_(size) {}

  std::size_t size() const noexcept { return size_; }
  Planned<Row>& operator[](std::size_t i) const noexcept { return entries_[steps_[i].number()]; }
  const PlanStep& step(std::size_t i) const noexcept { return steps_[i]; }

  /// Calls `visit(hash)` for each key that one of them arrives at.
  template <class Visit>
  void for_each_arrival(Visit visit) const {
    for (const PlanStep* step = steps_; step != steps_ + size_; ++step)
      if (step->arrives_at_key()) visit(step->hash);
  }

 private:
  Planned<Row>* entries_;
  const PlanStep* steps_;
  std::size_t size_;
};

/// What a plan needs room for.
struct PlanCounts {
  /// Of rows at a key.
  std::size_t arrivals() const noexcept { return log.firsts + log.bare; }

  EntryCounts log;
  std::size_t departures = 0;  // of rows from a key
};

/// A write that is worked out but not carried out: at most one entry for each target row. Everything that can
/// throw on account of the user's code happens while it is made.
///
/// Which rows it touches is marked in the rows themselves, after Briggs and Torczon's sparse sets (ACM LOPLAS
/// 2, 1993): a row's mark points to an entry, and counts only if that entry points back. So marks need no
/// clearing, not even after an exception.
template <class Row>
class Plan {
 public:
  Plan(std::uint32_t epoch, PlanMemory<Row>& memory) noexcept
      : entries(memory.entries), memory_(memory), epoch_(epoch), steps_(memory.steps) {
    assert(entries.empty());
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    entries.clear();
    if (entries.capacity() * sizeof(Planned<Row>) <= memory_.most_kept) return;
    entries.free();
    steps_.free();
  }

  /// The entry for this row, or null. The epoch in the mark saves looking at the entries for rows not
  /// touched.
  Planned<Row>* touched(const Slot<Row>& slot) noexcept {
    if (slot.mark >> 32U != epoch_) return nullptr;
    const auto index = static_cast<std::uint32_t>(slot.mark);
    return index < entries.size() && entries[index].slot == &slot ? &entries[index] : nullptr;
  }
  const Planned<Row>* touched(const Slot<Row>& slot) const noexcept {
    return const_cast<Plan*>(this)->touched(slot);
  }

  /// A new entry for this row. Requires: it has none yet, or one that was only `seen`, which no longer
  /// counts.
  Planned<Row>& touch(const Slot<Row>& slot) {
    const std::size_t number = entries.size();
    Planned<Row>& entry = add(number, &slot);
    slot.mark = std::uint64_t{epoch_} << 32U | number;
    return entry;
  }

  /// An entry for a row that is not in the table yet.
  Planned<Row>& add() { return add(entries.size(), nullptr); }

  // Whole changes, for writes that are not made of clauses. Each counts as one source row.

  void insert(Holder<Row>&& row, Position position) {
    Planned<Row>& entry = add();
    entry.after = std::move(row);
    entry.outcome = Outcome::insert;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.inserted;
  }
  void update(const Slot<Row>& slot, Holder<Row>&& row, Position position) {
    Planned<Row>& entry = touch(slot);
    entry.after = std::move(row);
    entry.outcome = Outcome::update;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.updated;
    ++metrics.matched_updated;
  }
  /// An update that would change nothing.
  void keep(const Slot<Row>& slot, Position position) {
    Planned<Row>& entry = touch(slot);
    entry.outcome = Outcome::unchanged;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.unchanged;
  }
  void erase(const Slot<Row>& slot, Position position) {
    Planned<Row>& entry = touch(slot);
    entry.outcome = Outcome::erase;
    entry.position = position;
    ++metrics.source_rows;
    ++metrics.deleted;
    ++metrics.matched_deleted;
  }

  /// A row goes without a source row that says so.
  void remove(const Slot<Row>& slot) {
    touch(slot).outcome = Outcome::erase;
    ++metrics.deleted;
    ++metrics.not_matched_by_source_deleted;
  }

  KeyTurn<Row>& turn_of(Planned<Row>& entry) {
    if (entry.turn == 0) {
      turns.emplace_back();
      entry.turn = static_cast<std::uint32_t>(turns.size());
    }
    return turns[entry.turn - 1];
  }
  KeyTurn<Row>* turn_if_any(const Planned<Row>& entry) noexcept {
    return entry.turn == 0 ? nullptr : &turns[entry.turn - 1];
  }
  std::uint64_t hash_before(const Planned<Row>& entry) const noexcept {
    return entry.rekeyed ? turns[entry.turn - 1].hash_before : entry.hash;
  }

  /// Sorts out what there is to do, and where in the log it goes, once `complete(entry)` has said all of an
  /// entry. Loops over entries of one kind have no branch that a processor would have to guess for each row,
  /// and neither has this.
  template <class Complete>
  void set_out(Complete complete) {
    const std::size_t size = entries.size();
    if (steps_.size() < size) steps_.resize(size);
    PlanSums sums;
    PlanStep* front = steps_.begin();
    PlanStep* back = front + size;
    std::size_t number = 0;
    for (Planned<Row>& entry : entries) {
      complete(entry);
      assert(entry.turn == 0 || entry.rekeyed);
      const PlannedKind& kind = kind_of(entry, entry.rekeyed);
      entry.log_place = static_cast<std::uint32_t>(sums.log_size);
      sums += kind.sums;
      const unsigned slot = unsigned{kind.arrives_at_key} | unsigned{entry.relinked};
      const PlanStep step(entry.hash, number++, kind.arrives_at_key, entry.key_known);
      *front = step;
      front += slot;
      back[-1] = step;
      back -= kind.changes & ~slot;
    }
    count(sums);
    placed_ = static_cast<std::size_t>(front - steps_.begin());
    first_other_ = back;
    others_ = static_cast<std::size_t>(steps_.begin() + size - back);
  }

  /// Gives each entry another place in the log, now that all turns are known. Requires: set_out().
  void place_in_log() {
    PlanSums sums;
    for (Planned<Row>& entry : entries) {
      entry.log_place = static_cast<std::uint32_t>(sums.log_size);
      sums += kind_of(entry, entry.outcome == Outcome::insert ? entry.turn != 0 : entry.rekeyed).sums;
    }
    count(sums);
  }

  /// The entries that need a slot, in order: none before set_out().
  SomePlanned<Row> placed() noexcept { return {entries.data(), steps_.data(), placed_}; }
  /// The other entries that change something, in reverse order: none before set_out().
  SomePlanned<Row> others() noexcept { return {entries.data(), first_other_, others_}; }

  /// Whether each source row is counted once: an identity of every write that matches by key.
  bool source_rows_add_up() const noexcept {
    return metrics.source_rows == metrics.inserted + metrics.matched_updated + metrics.matched_deleted +
                                      metrics.unchanged + metrics.skipped + metrics.dropped_duplicates +
                                      metrics.dropped_late + extra_erasers;
  }

  List<Planned<Row>>& entries;
  List<KeyTurn<Row>> turns;
  PlanCounts counts;                          // by validate()
  std::unique_ptr<SequenceUpdate> sequences;  // what apply_changes() is to remember; may be null
  Metrics metrics;
  std::size_t extra_erasers = 0;  // further source rows that fired an unconditional erase() on an erased row

 private:
  static const PlannedKind& kind_of(const Planned<Row>& entry, bool other) noexcept {
    return planned_kinds<Row>[static_cast<std::size_t>(entry.outcome) | std::size_t{other} << 3U];
  }

  void count(const PlanSums& sums) {
    if (sums.log_size > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("keyfold: one write may move at most " +
                              std::to_string(LogEntry<Row>::alignment * 4) +
                              " GiB to history; write in several batches");
    counts = {sums.log(), sums.departures()};
  }

  [[gnu::always_inline]] Planned<Row>& add(std::size_t number, const Slot<Row>* slot) {
    if (number >= std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("keyfold: one write may touch fewer than 2^32 rows; write in several batches");
    return entries.emplace_back(slot);
  }

  PlanMemory<Row>& memory_;
  std::uint32_t epoch_;
  // Those of placed() from the front, those of others() from the back.
  List<PlanStep>& steps_;
  std::size_t placed_ = 0;
  const PlanStep* first_other_ = nullptr;
  std::size_t others_ = 0;
};

template <class Row>
ChangeSet<Row> to_change_set(const Plan<Row>& plan, const KeyFunctions<Row>& key) {
  std::vector<Change<Row>> changes;
  for (const Planned<Row>& entry : plan.entries) {
    if (entry.outcome == Outcome::insert) {
      changes.push_back(Change<Row>::insert(entry.after->get()));
    } else if (entry.outcome == Outcome::update) {
      changes.push_back(Change<Row>::update(entry.slot->get(), entry.after->get()));
    } else if (entry.outcome == Outcome::erase) {
      changes.push_back(Change<Row>::erase(entry.slot->get()));
    }
  }
  return ChangeSet<Row>(std::move(changes), key);
}

}  // namespace keyfold::detail

namespace keyfold::detail {

/// Hears of everything that changes a table, when all that can fail in memory has been done, and before
/// anybody sees it. What it throws undoes the change.
template <class Row>
class CommitJournal {
 public:
  CommitJournal() = default;
  CommitJournal(const CommitJournal&) = delete;
  CommitJournal& operator=(const CommitJournal&) = delete;
  virtual ~CommitJournal() = default;

  virtual void commit(const CommitRecord<Row>& record, const std::vector<AppNumber>& once,
                      const Plan<Row>& plan) = 0;

  /// apply_changes() has made no version, but remembers something.
  virtual void remember(const SequenceUpdate& update) = 0;

  /// An update as the journal writes it; empty if it says nothing.
  virtual std::string stored(const SequenceUpdate& update) const = 0;

  virtual void tag(std::string_view name, Version version) = 0;
  virtual void untag(std::string_view name) = 0;

  /// expire(), by hand; what retention does follows from the commits.
  virtual void expire(Version first) = 0;

  /// A write is published, and everybody has heard of it.
  virtual void published() noexcept = 0;
};

}  // namespace keyfold::detail

// detail/constraints

// constraint

namespace keyfold {

/// A condition that every row of a table meets, as Table::constraints() lists it.
struct Constraint {
  std::string name;
  std::string condition;  ///< as text; "<condition>" for a callable without a name

  bool operator==(const Constraint&) const = default;
};

}  // namespace keyfold

// detail/row_condition

/// Conditions outside of merges: on a row of the table, or on such a row and one that comes in.
namespace keyfold::detail {

template <class Expr, class Rows>
constexpr void check_truth() {
  static_assert(Truth<value_in_t<Expr, Rows>>,
                "keyfold: a condition must be true or false; compare the value with something");
}

template <class Result>
constexpr void check_result() {
  static_assert(Truth<std::remove_cvref_t<Result>>, "keyfold: a callable condition must return bool");
}

/// Whether the condition is one on rows of the table; if not, the compiler says why. Where it is false,
/// nothing more may be made of the condition, lest other errors come first.
template <class Condition, class Row>
constexpr bool check_row_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    return false;
  } else if constexpr (Expression<Condition>) {
    static_assert(!Condition::reads_source,
                  "keyfold: a condition on rows of the table has no source row; read target columns only");
    static_assert(Condition::template fits<Row, void>,
                  "keyfold: a condition reads a column of another row type than the table's");
    if constexpr (!Condition::reads_source && Condition::template fits<Row, void>) {
      check_truth<Condition, Scope<Row, NoRow>>();
      return true;
    }
  } else {
    constexpr bool callable = takes_rows<ClauseKind::not_matched_by_source, Condition, Row, NoRow>();
    static_assert(callable,
                  "keyfold: a condition on rows of the table must be an expression or callable as "
                  "bool(const Row&)");
    if constexpr (callable) {
      check_result<decltype(detail::callable_of(std::declval<const Condition&>())(
          std::declval<const Row&>()))>();
      return true;
    }
  }
  return false;
}

/// As check_row_condition(), for the condition of replace_on().
template <class Condition, class Row, class Source>
constexpr bool check_pair_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    return false;
  } else if constexpr (Expression<Condition>) {
    static_assert(
        Condition::template fits<Row, Source>,
        "keyfold: the condition of replace_on() reads a column of another row type than the table's "
        "or the source's");
    if constexpr (Condition::template fits<Row, Source>) {
      check_truth<Condition, Scope<Row, Source>>();
      return true;
    }
  } else {
    constexpr bool callable = takes_rows<ClauseKind::matched, Condition, Row, Source>();
    static_assert(callable,
                  "keyfold: the condition of replace_on() must be an expression or callable as "
                  "bool(const Row&, const Source&)");
    if constexpr (callable) {
      check_result<decltype(detail::callable_of(std::declval<const Condition&>())(
          std::declval<const Row&>(), std::declval<const Source&>()))>();
      return true;
    }
  }
  return false;
}

/// What a condition says of a row: SQL's true, false or unknown, as bool or std::optional<bool>.
template <class Condition, class Row>
constexpr auto truth_for(const Condition& condition, const Row& row) {
  if constexpr (Expression<Condition>) {
    constexpr NoRow no_row{};
    return condition(Scope<Row, NoRow>{row, no_row});
  } else {
    return detail::callable_of(condition)(row);
  }
}

template <class Condition, class Row>
constexpr bool holds_for(const Condition& condition, const Row& row) {
  return detail::is_true(detail::truth_for(condition, row));
}

template <class T>
inline constexpr bool assigns_from_source = false;
template <class Column, class Value>
inline constexpr bool assigns_from_source<Assignment<Column, Value>> = Value::reads_source;

/// As check_row_condition(), for what update_where() does to a row.
template <class Row, class... What>
constexpr bool check_row_update() {
  constexpr bool assignments = sizeof...(What) > 0 && (is_assignment_v<What> && ...);
  constexpr bool callable = !assignments && sizeof...(What) == 1 &&
                            (takes_rows<ClauseKind::not_matched_by_source, What, Row, NoRow>() && ...);
  static_assert(assignments || callable,
                "keyfold: update_where() takes assignments to target columns, or one callable as "
                "Row(const Row&)");
  static_assert(!(assigns_from_source<What> || ...),
                "keyfold: update_where() has no source row; its values read target columns only");
  return (assignments || callable) && !(assigns_from_source<What> || ...);
}

// g++ 12 takes a node of an expression that has no data, such as a column, for one that is not initialized.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// "SET a = 0, b = 1" or "SET ROW <row>".
template <class... What>
std::string update_text(const What&... what) {
  std::string out = "SET ";
  if constexpr ((is_assignment_v<What> && ...)) {
    const char* separator = "";
    ((out += separator, detail::print_assignment(out, what), separator = ", "), ...);
  } else {
    out += "ROW ";
    (detail::print_callable(out, what), ...);
  }
  return out;
}

template <class Condition>
std::string condition_text(const Condition& condition) {
  std::string out;
  detail::print_condition(out, condition);
  return out;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace keyfold::detail

// key

/// The key of a table and its secondary indexes, named by the members they are made of.
///
/// A part is a pointer to a data member, a pointer to a const member function, or a captureless callable
/// `(const Row&)`. Parts compare as detail/value.hpp says: an empty optional equals itself, -0.0 equals 0.0.
/// NaN as a part of the primary key is refused with `InvalidKey`; in a secondary index it equals itself and
/// comes last.
namespace keyfold {

/// Primary key: unique, found by hash. Rows iterate in insertion order.
/// Requires: each part has ==, and std::hash or hash_value().
template <auto... Parts>
struct Key {};

/// Primary key: unique, found by hash. Rows iterate in key order.
/// Requires: each part has ==, <, and std::hash or hash_value().
template <auto... Parts>
struct OrderedKey {};

/// Secondary index, not unique, in the order of its parts: supports range(lo, hi) and lookups by a leading
/// part.
template <auto... Parts>
struct OrderedBy {};

/// Secondary index, not unique, found by hash.
template <auto... Parts>
struct HashedBy {};

/// Unique constraint with its index, found by hash. Rows with an empty optional in any part are exempt, as in
/// SQL.
template <auto... Parts>
struct UniqueBy {};

namespace detail {

/// A list of members, as the key of a row.
template <auto... Members>
struct Parts {
  static constexpr std::size_t size = sizeof...(Members);

  /// The key as a tuple: references to data members, values of functions.
  template <class Row>
  static constexpr auto of(const Row& row) {
    return std::tuple<decltype(detail::read<Members>(row))...>(detail::read<Members>(row)...);
  }

  template <class Row>
  static constexpr bool readable = (Readable<Members, Row> && ...);

  static std::string name() {
    std::string out;
    append_names<Members...>(out);
    return out;
  }
};

template <class Spec>
struct spec_traits {
  static constexpr bool is_key = false;
  static constexpr bool is_index = false;
};
template <auto... P>
struct spec_traits<Key<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: a key needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = true, is_index = false, ordered = false, unique = true;
};
template <auto... P>
struct spec_traits<OrderedKey<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: a key needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = true, is_index = false, ordered = true, unique = true;
};
template <auto... P>
struct spec_traits<OrderedBy<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: an index needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = false, is_index = true, ordered = true, unique = false;
};
template <auto... P>
struct spec_traits<HashedBy<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: an index needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = false, is_index = true, ordered = false, unique = false;
};
template <auto... P>
struct spec_traits<UniqueBy<P...>> {
  static_assert(sizeof...(P) > 0, "keyfold: a unique constraint needs at least one part");
  using parts = Parts<P...>;
  static constexpr bool is_key = false, is_index = true, ordered = false, unique = true;
};

template <class Spec>
using parts_of = typename spec_traits<Spec>::parts;

template <class Parts, class Row>
using key_view_t = decltype(Parts::of(std::declval<const Row&>()));

// Function objects for Boost.MultiIndex and for keyfold's own index; all accept keys of mixed types.
struct KeyEqual {
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return detail::equal_values(a, b);
  }
};
struct KeyLess {
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return detail::less_values(a, b);
  }
};
struct KeyHash {
  template <class Tuple>
  constexpr std::size_t operator()(const Tuple& key) const {
    return detail::hash_of(key);
  }
};

template <class Tuple>
constexpr bool has_empty_part(const Tuple& key) {
  return std::apply([](const auto&... part) { return (!detail::has_value(part) || ...); }, key);
}

/// The arguments of find(k...) as a key of table or index `Parts`.
template <class Parts, class Row, class... Arguments>
constexpr auto lookup_key(const Arguments&... arguments) {
  static_assert(sizeof...(Arguments) <= Parts::size, "keyfold: more lookup values than the key has parts");
  using View = key_view_t<Parts, Row>;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<decltype(detail::as_lookup<std::remove_cvref_t<std::tuple_element_t<I, View>>>(
        arguments))...>(detail::as_lookup<std::remove_cvref_t<std::tuple_element_t<I, View>>>(arguments)...);
  }(std::index_sequence_for<Arguments...>());
}

}  // namespace detail
}  // namespace keyfold

/// The named conditions that the rows of a table must meet.
namespace keyfold::detail {

/// Which row is meant: its position in the source, or that it is one of the table.
template <class Row>
std::string describe(const Row& row, Position position) {
  std::string out = position == no_position ? "a row of the table" : "source row " + std::to_string(position);
  if (const std::string columns = detail::row_text(row); !columns.empty()) out += ' ' + columns;
  return out;
}

/// A row that a constraint has judged: one that is in the table, or one that a write makes.
template <class Row>
std::string judged_row(const Row& row, Position position, bool written) {
  if (!written) return detail::describe(row, no_position);
  std::string out = position == no_position
                        ? "a row that the write makes"
                        : "the row that source row " + std::to_string(position) + " makes";
  if (const std::string columns = detail::row_text(row); !columns.empty()) out += ' ' + columns;
  return out;
}

/// A constraint whatever its condition is made of. Copies of a table share the condition.
template <class Row>
struct Check {
  Constraint about;
  std::shared_ptr<const void> condition;
  bool (*violated)(const void* condition, const Row& row);
};

/// In the order in which they were given.
template <class Row>
using Checks = std::vector<Check<Row>>;

/// As SQL judges a CHECK: unknown does not violate it.
template <class Condition, class Row>
bool violates(const void* condition, const Row& row) {
  return detail::is_false(detail::truth_for(*static_cast<const Condition*>(condition), row));
}

template <class KeyParts, class Row>
void require_met(const Check<Row>& check, const Row& row, Position position, bool written) {
  if (!check.violated(check.condition.get(), row)) return;
  const auto& [name, condition] = check.about;
  const std::string key = detail::key_text(KeyParts::of(row));
  throw CheckViolation("the constraint '" + name + "', " + condition + ", is violated by " +
                           detail::judged_row(row, position, written) + " with key " + key +
                           "; correct the row or leave it out, or drop the constraint with unrequire()",
                       name, condition, key, position);
}

template <class Row>
auto find_check(const Checks<Row>& checks, std::string_view name) {
  return std::ranges::find_if(checks, [&](const auto& check) { return check.about.name == name; });
}

/// Throws ConstraintExists, CheckViolation, and what the condition throws. Strong guarantee. O(table).
template <class CoreType, class Condition>
void add_check(CoreType& core, std::string name, Condition condition) {
  using Row = typename CoreType::RowType;
  const auto present = detail::find_check<Row>(core.checks, name);
  if (present != core.checks.end()) throw ConstraintExists(name, present->about.condition);
  std::string text = detail::condition_text(condition);
  Check<Row> check{{std::move(name), std::move(text)},
                   std::make_shared<const Condition>(std::move(condition)),
                   &violates<Condition, Row>};
  for (const auto& slot : core.scan())
    detail::require_met<typename CoreType::KeyParts, Row>(check, slot.get(), no_position, false);
  core.checks.push_back(std::move(check));
}

/// Throws ConstraintNotFound.
template <class CoreType>
void remove_check(CoreType& core, std::string_view name) {
  const auto at = detail::find_check<typename CoreType::RowType>(core.checks, name);
  if (at == core.checks.end()) throw ConstraintNotFound(std::string(name));
  core.checks.erase(at);
}

template <class Row>
std::vector<Constraint> constraints_of(const Checks<Row>& checks) {
  std::vector<Constraint> out;
  for (const auto& check : checks) out.push_back(check.about);
  return out;
}

}  // namespace keyfold::detail

// detail/subscribers

#include <exception>

namespace keyfold::detail {

template <class Row>
struct Subscriber {
  explicit Subscriber(Version version) noexcept : since(version) {}
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;
  virtual ~Subscriber() = default;
  virtual void tell(const Commit<Row>& commit) = 0;

  Version since;       // it hears of later versions only
  bool active = true;  // false from the moment its token is gone
};

// Not a std::function, which takes no callback that can only be moved.
template <class Row, class Callback>
struct CallbackSubscriber final : Subscriber<Row> {
  CallbackSubscriber(Callback&& function, Version version)
      : Subscriber<Row>(version), callback(std::move(function)) {}
  void tell(const Commit<Row>& commit) override { static_cast<void>(std::invoke(callback, commit)); }

  Callback callback;
};

/// Who hears of commits. Shared by the table and the tokens, so that either may go first.
template <class Row>
class Subscribers {
 public:
  using Pointer = std::shared_ptr<Subscriber<Row>>;

  void add(Pointer subscriber) { list_.push_back(std::move(subscriber)); }

  // A subscriber may drop itself or others while being told: the list is only tidied up when nobody is.
  void remove(Subscriber<Row>& subscriber) noexcept {
    subscriber.active = false;
    if (!telling_) tidy();
  }

  /// While one lives, commits wait to be told.
  class Telling {
   public:
    explicit Telling(Subscribers& all) noexcept
        : subscribers_(all), within_another_(all.telling_.exchange(true)) {}
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;
    ~Telling() {
      subscribers_.telling_ = within_another_;
      if (!within_another_) subscribers_.tidy();
    }

   private:
    Subscribers& subscribers_;
    bool within_another_;
  };

  bool empty() const noexcept { return list_.empty(); }
  bool telling() const noexcept { return telling_; }

  /// Tells each subscriber of each commit in (told, latest()], in order, going on for commits that are made
  /// meanwhile. `commit_of(version)` makes the Commit. What subscribers throw is collected in `errors`.
  template <class CommitOf, class Latest>
  void tell(CommitOf commit_of, Latest latest, std::vector<std::exception_ptr>& errors) noexcept {
    const Telling telling(*this);
    while (told_ < latest()) {
      const Version version = ++told_;
      for (std::size_t i = 0; i < list_.size(); ++i) {
        const Pointer subscriber = list_[i];
        if (!subscriber->active || version <= subscriber->since) continue;
        try {
          subscriber->tell(commit_of(version));
        } catch (...) {
          keep(std::current_exception(), errors);
        }
      }
    }
  }

  /// The last version that everybody was told, or is being told now.
  Version told() const noexcept { return told_.load(std::memory_order_acquire); }
  void skip_to(Version version) noexcept { told_.store(version, std::memory_order_release); }

 private:
  // The commit is made and the others are still to be told: an error that there is no memory for is dropped.
  static void keep(std::exception_ptr error, std::vector<std::exception_ptr>& errors) noexcept {
    try {
      errors.push_back(std::move(error));
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

  // A callback may own the token of another one: it ends when the list is whole again.
  void tidy() noexcept {
    for (std::size_t i = 0; i < list_.size();) {
      if (list_[i]->active) {
        ++i;
      } else {
        const Pointer over = std::move(list_[i]);
        list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
        i = 0;  // its end may have changed the list
      }
    }
  }

  std::vector<Pointer> list_;
  // Readers of a shared table may ask for these while it tells.
  std::atomic<Version> told_{0};
  std::atomic<bool> telling_{false};
};

}  // namespace keyfold::detail

// options

// duplicates

/// Duplicate policies: what becomes of source rows with one key, before anything is matched. Rows that
/// survive keep their source order.
namespace keyfold {

/// The `count` latest versions stay readable, older ones expire; the present never does. Made by
/// `keep_last(count)`.
struct KeepLastVersions {
  std::size_t count;
};

namespace detail {

struct DuplicatePolicy {};

/// No policy: duplicates are judged where they act, see docs/merge-semantics.md.
struct NoPolicy : DuplicatePolicy {};

struct Reject : DuplicatePolicy {
  void print(std::string& out) const { out += "REJECT"; }
};

struct KeepFirst : DuplicatePolicy {
  template <class Source>
  constexpr bool prefers_later(const Source&, const Source&) const noexcept {
    return false;
  }
  void print(std::string& out) const { out += "KEEP FIRST"; }
};

struct KeepLast : DuplicatePolicy {
  /// keep_last(n), for expire() and for the retention of a table.
  constexpr KeepLastVersions operator()(std::size_t count) const noexcept { return {count}; }

  template <class Source>
  constexpr bool prefers_later(const Source&, const Source&) const noexcept {
    return true;
  }
  void print(std::string& out) const { out += "KEEP LAST"; }
};

template <auto Member>
struct LatestBy : DuplicatePolicy {
  template <class Source>
  constexpr bool prefers_later(const Source& earlier, const Source& later) const {
    static_assert(Readable<Member, Source>,
                  "keyfold: latest_by names a member of another type than the source row");
    return !detail::less_values(detail::read<Member>(later), detail::read<Member>(earlier));
  }
  void print(std::string& out) const {
    out += "LATEST BY source.";
    out += member_name<Member>;
  }
};

template <class Function>
struct Fold : DuplicatePolicy {
  Function function;

  void print(std::string& out) const { out += "FOLD"; }
};

}  // namespace detail

/// Two source rows with one key are an error: DuplicateSourceKey, whether or not a clause fires for them.
inline constexpr detail::Reject reject{};

/// The first source row of each key counts, the others are dropped.
inline constexpr detail::KeepFirst keep_first{};

/// The last source row of each key counts, the others are dropped. `keep_last(n)` is a rule of expiry: the n
/// latest versions stay.
inline constexpr detail::KeepLast keep_last{};

/// The source row with the greatest `Member` counts; of equal ones the last. Empty optionals come first, NaN
/// last.
template <auto Member>
inline constexpr detail::LatestBy<Member> latest_by{};

/// Source rows of one key are folded, in order, into one that takes the place of the first:
/// `function(folded, next)` takes the row folded so far as an rvalue and the next row, and returns a row.
template <class Function>
[[nodiscard]] constexpr auto fold(Function function) {
  return detail::Fold<Function>{{}, std::move(function)};
}

}  // namespace keyfold

// TableOptions: the clock, retention and memory of a table.
namespace keyfold {

/// Versions made before this time expire. The present never does.
struct OlderThan {
  Timestamp time;
};
[[nodiscard]] constexpr OlderThan older_than(Timestamp time) noexcept { return {time}; }

/// Versions made longer ago than this expire, seen from the time of the last commit.
struct KeepFor {
  std::chrono::microseconds duration;
};
[[nodiscard]] constexpr KeepFor keep_for(std::chrono::microseconds duration) noexcept { return {duration}; }

namespace detail {

/// So long before a time; the first of all times where that is before it. A negative duration is none.
constexpr Timestamp start_of(KeepFor rule, Timestamp until) noexcept {
  const auto span = rule.duration > Timestamp::duration::zero() ? rule.duration : Timestamp::duration::zero();
  return until < Timestamp::min() + span ? Timestamp::min() : until - span;
}

}  // namespace detail

/// Which old versions a table lets go of by itself: `keep_last(n)` or `keep_for(duration)`.
using Retention = std::variant<KeepLastVersions, KeepFor>;

/// Asks expire() what would go, without letting it go.
struct DryRun {};
inline constexpr DryRun dry_run{};

/// How a table is set up.
struct TableOptions {
  /// Where commit times come from.
  std::function<Timestamp()> clock = [] {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  };

  /// Whether a write that changes nothing makes a version all the same.
  bool record_empty_commits = false;

  /// Applied after each commit. Default: every version stays readable.
  std::optional<Retention> retention{};

  /// Where rows, indexes and history have their memory; not what rows allocate themselves, texts and large
  /// counts of commits, what apply_changes() remembers, or what a write needs while it runs and leaves to the
  /// next. Not null. Must outlive the table, its copies and its transactions, and be synchronised if several
  /// threads use those. Rows lie in a pool on top of it, the log in segments of up to 64 KiB, so that it is
  /// asked seldom and for much. What it throws is thrown by the write that asked, which then changes nothing.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

}  // namespace keyfold

#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index/sequenced_index.hpp>
#include <boost/multi_index_container.hpp>

#include <map>

namespace keyfold {

namespace detail {

/// Reads the key of an index from a slot, for Boost.MultiIndex.
template <class Row, class Parts>
struct SlotKey {
  using result_type = key_view_t<Parts, Row>;
  result_type operator()(const Slot<Row>& slot) const { return Parts::of(slot.get()); }
};

// Every index of the container is non-unique: while a write is carried out the old and the new row both stand
// in it. Uniqueness is judged on the final state, by validate().

template <class Row, class KeySpec>
struct row_order {
  using type = boost::multi_index::sequenced<>;
};
template <class Row, auto... P>
struct row_order<Row, OrderedKey<P...>> {
  using type = boost::multi_index::ordered_non_unique<SlotKey<Row, Parts<P...>>, KeyLess>;
};

template <class Row, class Spec>
struct secondary_index {
  using type = boost::multi_index::hashed_non_unique<SlotKey<Row, parts_of<Spec>>, KeyHash, KeyEqual>;
};
template <class Row, auto... P>
struct secondary_index<Row, OrderedBy<P...>> {
  using type = boost::multi_index::ordered_non_unique<SlotKey<Row, Parts<P...>>, KeyLess>;
};

/// The elements equal to a key of any comparable type, in an ordered or a hashed index.
template <class Index, class Key>
auto equal_range_of(const Index& index, const Key& key) {
  if constexpr (requires { index.key_comp(); }) {
    return index.equal_range(key, KeyLess{});
  } else {
    return index.equal_range(key, KeyHash{}, KeyEqual{});
  }
}

/// The state of a table: rows in Boost.MultiIndex (their order and the secondary indexes), the primary key in
/// an index of its own beside it, and the version log.
template <class Row, class KeySpec, class... Specs>
struct Core {
  using RowType = Row;
  using SlotType = Slot<Row>;
  using KeyParts = parts_of<KeySpec>;
  using Indexes = std::tuple<Specs...>;
  using Rows = boost::multi_index::multi_index_container<
      SlotType,
      boost::multi_index::indexed_by<typename row_order<Row, KeySpec>::type,
                                     typename secondary_index<Row, Specs>::type...>,
      PoolAllocator<SlotType>>;

  static constexpr bool ordered = spec_traits<KeySpec>::ordered;
  static constexpr bool has_trees = ordered || (spec_traits<Specs>::ordered || ...);

  /// `retain` applies the retention of the options after a commit. By pointer, so that a table without
  /// options does not have it compiled.
  explicit Core(TableOptions table_options, void (*retain_rule)(Core&) noexcept = nullptr)
      : options(std::move(table_options)),
        retain(retain_rule),
        pool(*options.memory, sizeof(typename Rows::final_node_type),
             alignof(typename Rows::final_node_type)),
        rows(typename Rows::ctor_args_list(), PoolAllocator<SlotType>(pool)),
        keys(*options.memory),
        graves(*options.memory),
        log(std::make_shared<CommitLog<Row>>(key_functions<KeyParts, Row>, *options.memory)) {
    static_assert(alignof(typename Rows::final_node_type) >= alignof(SlotType),
                  "keyfold: rows that are aligned to more than 128 bytes cannot be kept in a table");
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  static auto key_of(const Row& row) { return KeyParts::of(row); }

  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash) const {
    return keys.find(hash,
                     [&](const SlotType& slot) { return detail::equal_values(key_of(slot.get()), key); });
  }
  template <class Key>
  const SlotType* find(const Key& key) const {
    return find(key, detail::hash_of(key));
  }
  /// Likewise; `candidate`: what the index of keys has said of this hash since it last changed.
  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash, const SlotType* candidate) const {
    if (candidate == nullptr) return nullptr;
    return detail::equal_values(key_of(candidate->get()), key) ? candidate : find(key, hash);
  }

  /// All rows, in the order of the first index.
  const Rows& scan() const noexcept { return rows; }

  /// The rows equal to a key in index number `N` (from 0) of the secondary indexes, as a pair of iterators.
  template <std::size_t N, class Key>
  auto matching(const Key& key) const {
    return detail::equal_range_of(secondary<N>(), key);
  }

  /// Index number `N` (from 0) of the secondary indexes.
  template <std::size_t N>
  const auto& secondary() const noexcept {
    return rows.template get<N + 1>();
  }

  /// Calls `visit(index, parts)` for each index that is ordered: of the key, secondary ones.
  template <class Visit>
  void for_each_tree(Visit visit) const {
    if constexpr (ordered) visit(rows.template get<0>(), KeyParts());
    [&]<std::size_t... N>(std::index_sequence<N...>) {
      [[maybe_unused]] const auto visit_tree = [&]<class Spec>(const auto& index, std::type_identity<Spec>) {
        if constexpr (spec_traits<Spec>::ordered) visit(index, parts_of<Spec>());
      };
      (visit_tree(secondary<N>(), std::type_identity<Specs>()), ...);
    }(std::index_sequence_for<Specs...>());
  }

  /// What apply_changes() remembers beside the rows, owned by `sequences`; null before the first of it.
  const SequenceState* sequence_state() const noexcept { return sequences.get(); }

  Timestamp now() const { return options.clock(); }

  Version version() const noexcept { return log->latest(); }

  Plan<Row> new_plan() noexcept {
    plan_memory.most_kept = std::max(PlanMemory<Row>::least_kept, pool.bytes() / 8);
    return Plan<Row>(++epoch, plan_memory);
  }

  /// The newest change of a key that no row has, or null.
  template <class Key>
  LogEntry<Row>* find_grave(const Key& key, std::uint64_t hash) const {
    return graves.find(hash, [&](const LogEntry<Row>& entry) {
      return detail::equal_values(key_of(entry.before().get()), key);
    });
  }

  /// The newest change of a key, whether or not a row has it now; null if the log has none.
  template <class Key>
  LogEntry<Row>* newest_change(const Key& key, std::uint64_t hash) const {
    const SlotType* slot = find(key, hash);
    return slot != nullptr ? slot->newest : find_grave(key, hash);
  }

  TableOptions options;
  void (*retain)(Core&) noexcept;
  /// Tells subscribers of commits. Null while there was none, so that a table without does not have it
  /// compiled.
  void (*tell)(Core&, std::vector<std::exception_ptr>&) noexcept = nullptr;
  NodePool pool;  // of `rows`
  Rows rows;
  KeyIndex<const SlotType> keys;
  KeyIndex<LogEntry<Row>> graves;       // keys without a row, by the change that took the row away
  std::shared_ptr<CommitLog<Row>> log;  // never shared for keeps, see MergeResult
  std::map<std::string, Version, std::less<>> tags;
  std::map<std::string, std::uint64_t, std::less<>> applied;  // by application: its last number, see once()
  Checks<Row> checks;                                         // see Table::require()
  std::shared_ptr<Subscribers<Row>> subscribers = std::make_shared<Subscribers<Row>>();
  std::unique_ptr<SequenceState> sequences;
  std::uint64_t sequences_changed = 0;  // how often
  std::uint64_t next_order = 0;
  std::uint32_t epoch = 0;
  PlanMemory<Row> plan_memory;
  CommitJournal<Row>* journal = nullptr;  // of a store, which owns it
  bool writing = false;
};

/// The number of the index made of exactly these parts; size of `Indexes` if there is none.
template <class Parts, class Indexes>
inline constexpr std::size_t index_number = 0;
template <class Parts, class First, class... Rest>
inline constexpr std::size_t index_number<Parts, std::tuple<First, Rest...>> =
    std::is_same_v<parts_of<First>, Parts> ? 0 : 1 + index_number<Parts, std::tuple<Rest...>>;

/// Marks a core as being written to; refuses a write from within a write.
class WriteScope {
 public:
  explicit WriteScope(bool& writing) : writing_(writing) {
    if (writing) throw ReentrantWrite();
    writing = true;
  }
  WriteScope(const WriteScope&) = delete;
  WriteScope& operator=(const WriteScope&) = delete;
  ~WriteScope() { writing_ = false; }

 private:
  bool& writing_;
};

/// Throws InvalidKey if a part of the key is NaN.
template <auto... Members, class Key>
void require_valid_key(Parts<Members...>, const Key& key, Position position) {
  if (!detail::is_nan(key)) return;
  constexpr std::array<std::string_view, sizeof...(Members)> names{member_name<Members>...};
  std::size_t part = 0;
  std::apply(
      [&](const auto&... value) { static_cast<void>(((detail::is_nan(value) || (++part, false)) || ...)); },
      key);
  throw InvalidKey(std::string(names[part]), position);
}

}  // namespace detail
}  // namespace keyfold

// detail/source_key

/// The key of a source row, as it is looked up among the rows of a table.
namespace keyfold::detail {

/// The source's member for one part of the table's key: the part itself where source rows are target rows,
/// else the column of its name. `Verb` has the sentence for the compiler if there is none.
template <auto Part, class Source, class Verb>
struct source_part {
  static constexpr auto choose() {
    if constexpr (std::is_member_pointer_v<decltype(Part)>
                      ? Readable<Part, Source>
                      : std::is_invocable_v<decltype(Part), const Source&>) {
      return Part;
    } else if constexpr (has_column_named<Source, Part>()) {
      return std::get<column_index<Source>(member_name<Part>)>(columns_list<Source>::pointers);
    } else {
      static_cast<void>(typename Verb::template KeyFound<has_column_named<Source, Part>()>());
    }
  }
  static constexpr auto member = choose();
};

template <class KeyParts, class Source, class Verb>
struct default_source_parts;
template <auto... P, class Source, class Verb>
struct default_source_parts<Parts<P...>, Source, Verb> {
  using type = Parts<source_part<P, Source, Verb>::member...>;
};

/// A part of a key as it is kept: a function of the row may give a view.
template <class Part>
using stored_part_t = std::conditional_t<std::is_same_v<std::remove_cvref_t<Part>, std::string_view>,
                                         std::string, std::remove_cvref_t<Part>>;

template <class KeyView>
struct kept_key;
template <class... Parts>
struct kept_key<std::tuple<Parts...>> {
  using type = std::tuple<stored_part_t<Parts>...>;
};
/// A key of `Parts` as it is kept.
template <class Parts, class Row>
using stored_key_t = typename kept_key<key_view_t<Parts, Row>>::type;

/// The members of a source row that are its key, and those of the target that they are compared with.
template <class Row, class Source, class TargetPartsType, class SourcePartsType>
struct SourceKey {
  using TargetParts = TargetPartsType;
  using SourceParts = SourcePartsType;

  /// The key to look up: of references into the row, and of values where a part is computed.
  static auto of(const Source& row) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      auto parts = SourceParts::of(row);
      return std::tuple<KeptPart<I>...>(
          detail::as_lookup_of<TargetPart<I>, SourcePart<I>>(std::get<I>(std::move(parts)))...);
    }(std::make_index_sequence<TargetParts::size>());
  }

 protected:
  template <std::size_t I>
  using TargetPart = std::remove_cvref_t<std::tuple_element_t<I, key_view_t<TargetParts, Row>>>;

 private:
  template <std::size_t I>
  using SourcePart = std::tuple_element_t<I, key_view_t<SourceParts, Source>>;
  template <std::size_t I>
  using KeptPart =
      decltype(detail::as_lookup_of<TargetPart<I>, SourcePart<I>>(std::declval<SourcePart<I>&&>()));
};

}  // namespace keyfold::detail

/// What apply_changes() is told about a feed of change events, as a value: which members are the key and the
/// sequence, what is a delete, which columns are copied.
namespace keyfold::detail {

enum class FeedPart : std::uint8_t {
  keys,
  sequence,
  deletes,
  truncates,
  nulls,
  columns,
  tombstones,
  ties,
  intervals,
  track
};

template <auto... Members>
struct FeedKeys {
  static constexpr FeedPart part = FeedPart::keys;
  using SourceParts = Parts<Members...>;
};

template <class Source, auto... Members>
struct sequence_of_members {
  using type = std::tuple<unwrap_optional_t<member_value_t<Members, Source>>...>;
};
template <class Source, auto Member>
struct sequence_of_members<Source, Member> {
  using type = unwrap_optional_t<member_value_t<Member, Source>>;
};

template <auto... Members>
struct FeedSequence {
  static constexpr FeedPart part = FeedPart::sequence;
  void print(std::string& out) const {
    out += " SEQUENCE BY ";
    append_names<Members...>(out);
  }
};

template <class Condition>
struct FeedDeletes {
  static constexpr FeedPart part = FeedPart::deletes;
  Condition condition;
  void print(std::string& out) const {
    out += " APPLY AS DELETE WHEN ";
    detail::print_condition(out, condition);
  }
};

template <class Condition>
struct FeedTruncates {
  static constexpr FeedPart part = FeedPart::truncates;
  Condition condition;
  void print(std::string& out) const {
    out += " APPLY AS TRUNCATE WHEN ";
    detail::print_condition(out, condition);
  }
};

struct FeedNulls {
  static constexpr FeedPart part = FeedPart::nulls;
  static void print(std::string& out) { out += " IGNORE NULL UPDATES"; }
};

template <bool only, auto... Members>
struct FeedColumns {
  static constexpr FeedPart part = FeedPart::columns;
  static constexpr bool includes(std::string_view name) {
    return ((member_name<Members> == name) || ...) == only;
  }
  static void print(std::string& out) {
    out += only ? " COLUMNS " : " COLUMNS * EXCEPT ";
    append_names<Members...>(out);
  }
};

/// Which deletes are remembered.
using TombstoneRule = std::variant<KeepLastVersions, KeepFor>;

struct FeedTombstones {
  static constexpr FeedPart part = FeedPart::tombstones;
  TombstoneRule rule;
  void print(std::string& out) const {
    out += " TOMBSTONES KEEP ";
    if (const auto* last = std::get_if<KeepLastVersions>(&rule)) {
      out += "LAST " + std::to_string(last->count);
    } else {
      out += "FOR " + std::to_string(std::get<KeepFor>(rule).duration.count()) + " MICROSECONDS";
    }
  }
};

struct FeedTies {
  static constexpr FeedPart part = FeedPart::ties;
  static void print(std::string& out) { out += " ON TIE REJECT"; }
};

template <auto FromMember, auto ToMember>
struct FeedIntervals {
  static constexpr FeedPart part = FeedPart::intervals;
  static constexpr auto from = FromMember;
  static constexpr auto to = ToMember;
  static void print(std::string& out) { out += " STORED AS SCD TYPE 2"; }
};

template <auto... Members>
struct FeedTrack {
  static constexpr FeedPart part = FeedPart::track;
  template <class Row>
  static bool same(const Row& a, const Row& b) {
    return (detail::equal_values(detail::read<Members>(a), detail::read<Members>(b)) && ...);
  }
  static void print(std::string& out) {
    out += " TRACK HISTORY ON ";
    append_names<Members...>(out);
  }
};

/// A feed as far as it is described. Immutable: each further part makes another type.
template <class RowType, class SourceType, class... Options>
struct Feed {
  using Row = RowType;
  using Source = SourceType;

  Pack<Options...> options;

  template <FeedPart part>
  static constexpr bool has = ((Options::part == part) || ...);

  template <FeedPart part>
  static constexpr std::size_t index = [] {
    std::size_t at = 0;
    static_cast<void>(((Options::part == part || (++at, false)) || ...));
    return at;
  }();

  template <FeedPart part>
  using At = std::tuple_element_t<index<part>, std::tuple<Options...>>;

  template <FeedPart part>
  const auto& get() const noexcept {
    return options.template get<index<part>>();
  }

  template <class Option>
  Feed<Row, Source, Options..., Option> with(Option option) && {
    static_assert(!has<Option::part>, "keyfold: this part of apply_changes() is given already");
    return {std::move(options).with(std::move(option))};
  }
};

// --- The key

/// The words of a feed for a key that is not found, see source_part.
struct FeedWords {
  template <bool found>
  struct KeyFound {
    static_assert(found,
                  "keyfold: cannot find the key of the feed; name its members with .keys<&Source::member>()");
  };
};

template <class Feed, class TargetParts>
struct feed_source_parts {
  using type = typename default_source_parts<TargetParts, typename Feed::Source, FeedWords>::type;
};
template <class Feed, class TargetParts>
  requires(Feed::template has<FeedPart::keys>)
struct feed_source_parts<Feed, TargetParts> {
  using type = typename Feed::template At<FeedPart::keys>::SourceParts;
};

/// The key of an event, and the members of the table's rows that it is compared with.
template <class Feed, class TargetParts>
struct FeedKey : SourceKey<typename Feed::Row, typename Feed::Source, TargetParts,
                           typename feed_source_parts<Feed, TargetParts>::type> {
  using Base = SourceKey<typename Feed::Row, typename Feed::Source, TargetParts,
                         typename feed_source_parts<Feed, TargetParts>::type>;
  using typename Base::SourceParts;
  static_assert(SourceParts::size == TargetParts::size,
                "keyfold: keys<>() needs one member of the source for each part of the table's key, without "
                "valid_from for scd2<>()");

  /// The key as it is kept beside the rows.
  using Stored = stored_key_t<TargetParts, typename Feed::Row>;

  /// Of the key of an event or of a row. Throws ValueOutOfRange for a number that no row can have as its key.
  template <class Tuple>
  static Stored stored(const Tuple& key) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Stored(part_of<I>(std::get<I>(key))...);
    }(std::make_index_sequence<TargetParts::size>());
  }

 private:
  template <std::size_t I, class Value>
  static auto part_of(const Value& value) {
    using Part = std::tuple_element_t<I, Stored>;
    constexpr bool is_view = std::same_as<Part, std::string> && std::same_as<Value, std::string_view>;
    if constexpr (std::same_as<Value, Part> || is_view) {
      return Part(value);
    } else {
      Part part{};
      detail::assign(part, value, name_of<I>(SourceParts{}));
      return part;
    }
  }
  template <std::size_t I, auto... Members>
  static constexpr std::string_view name_of(Parts<Members...>) {
    return std::get<I>(std::tuple(member_name<Members>...));
  }
};
// --- The sequence

template <class Seq>
bool same_sequence(const Seq& a, const Seq& b) {
  return !detail::less_values(a, b) && !detail::less_values(b, a);
}

template <class T>
concept SequencePart = std::copy_constructible<T> && requires(const T& a) {
  { a < a } -> std::convertible_to<bool>;
};

template <auto Member, class Source>
auto sequence_part(const Source& event, Position position) {
  const auto& value = detail::read<Member>(event);
  if (!detail::has_value(value) || detail::is_nan(value)) {
    throw InvalidSequence(std::string(member_name<Member>), position, detail::has_value(value));
  }
  return unwrap_optional_t<member_value_t<Member, Source>>(detail::value_of(value));
}

/// Whether `Member` itself, and not another one of its name, is a column of the events.
template <auto Member, class Source>
constexpr bool is_column() {
  if constexpr (has_column_named<Source, Member>()) {
    return std::same_as<Parts<Member>, Parts<std::get<column_index<Source>(member_name<Member>)>(
                                           columns_list<Source>::pointers)>>;
  } else {
    return false;
  }
}

/// The member of a row that holds the sequence of the event that made it, if the row has one.
template <auto Member, class Row, class Source>
constexpr auto row_sequence_member() {
  if constexpr (Readable<Member, Row>) {
    return Member;
  } else if constexpr (has_column_named<Row, Member>() && is_column<Member, Source>()) {
    return std::get<column_index<Row>(member_name<Member>)>(columns_list<Row>::pointers);
  } else {
    return nullptr;
  }
}

template <auto Member, class Row, class Source>
constexpr bool holds_sequence() {
  using Value = unwrap_optional_t<member_value_t<Member, Source>>;
  constexpr auto member = row_sequence_member<Member, Row, Source>();
  if constexpr (std::is_null_pointer_v<std::remove_cv_t<decltype(member)>>) {
    return false;
  } else {
    return std::same_as<unwrap_optional_t<member_value_t<member, Row>>, Value>;
  }
}

template <class Feed, class Option = typename Feed::template At<FeedPart::sequence>>
struct FeedSequences;
template <class Feed, auto... Members>
struct FeedSequences<Feed, FeedSequence<Members...>> {
  using Row = typename Feed::Row;
  using Source = typename Feed::Source;
  using type = typename sequence_of_members<Source, Members...>::type;

  /// Throws InvalidSequence.
  static type of(const Source& event, Position position) {
    return type(detail::sequence_part<Members>(event, position)...);
  }

  /// Whether rows hold their sequence themselves, as far as the members are concerned.
  static constexpr bool in_rows = (holds_sequence<Members, Row, Source>() && ...);

  template <class Copied>
  static constexpr bool all_copied(Copied copied) {
    return (copied.template operator()<Members>() && ...);
  }

  /// The sequence that a row shows; none if a part of it is absent or NaN.
  static std::optional<type> of_row(const Row& row) {
    if (!(present(detail::read<row_sequence_member<Members, Row, Source>()>(row)) && ...))
      return std::nullopt;
    return type(detail::value_of(detail::read<row_sequence_member<Members, Row, Source>()>(row))...);
  }

 private:
  template <class Value>
  static bool present(const Value& value) {
    return detail::has_value(value) && !detail::is_nan(value);
  }
};

// --- The columns

/// How the columns of an event become those of a row.
template <class Feed, class Key>
struct FeedRow {
  using Row = typename Feed::Row;
  using Source = typename Feed::Source;

  static constexpr bool ignores_nulls = Feed::template has<FeedPart::nulls>;
  static constexpr bool has_intervals = Feed::template has<FeedPart::intervals>;

  /// The event is a row and replaces it as a whole.
  static constexpr bool whole =
      std::derived_from<Source, Row> && !ignores_nulls && !Feed::template has<FeedPart::columns>;

  static constexpr bool listed = HasColumns<Row> && HasColumns<Source>;

  static constexpr void check() {
    static_assert(
        whole || listed,
        "keyfold: apply_changes() needs the column lists of the row and the event to copy columns by "
        "name; use BOOST_DESCRIBE_STRUCT or columns_of");
    static_assert(whole || std::is_default_constructible_v<Row>,
                  "keyfold: apply_changes() with events of another type, with chosen columns or with "
                  "ignore_null_updates() needs a default constructible row");
  }

  /// Part of the key, or set by scd2: not copied by name.
  template <auto Member>
  static constexpr bool special() {
    if constexpr (has_intervals) {
      using Intervals = typename Feed::template At<FeedPart::intervals>;
      if (member_name<Member> == member_name<Intervals::from>) return true;
      if (member_name<Member> == member_name<Intervals::to>) return true;
    }
    return in_key<Member>(typename Key::TargetParts{});
  }

  /// Whether the column of a row is set from the events.
  template <auto Member>
  static constexpr bool copied() {
    if constexpr (whole) {
      return true;
    } else if constexpr (special<Member>() || !has_column_named<Source, Member>()) {
      return false;
    } else if constexpr (Feed::template has<FeedPart::columns>) {
      return Feed::template At<FeedPart::columns>::includes(member_name<Member>);
    } else {
      return true;
    }
  }

  /// Whether a column keeps what it was when a row is updated.
  static constexpr bool keeps_columns = [] {
    if constexpr (whole || !listed) {
      return false;
    } else {
      return []<auto... Members>(MemberList<Members...>) {
        return ((!special<Members>() && !copied<Members>()) || ...);
      }(columns_list<Row>{});
    }
  }();

  /// Sets the columns of `out` that are copied, the key first.
  static void copy(Row& out, const Source& event) {
    set_key(out, event);
    detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
      if constexpr (copied<Member>()) {
        using Given = decltype(detail::read_by_name<Member>(event));
        static_assert(
            AssignableColumn<member_value_t<Member, Row>, Given>,
            "keyfold: apply_changes() found a column of this name in the events whose type does not "
            "convert; leave it out with columns_except<>()");
        detail::assign(out.*Member, detail::read_by_name<Member>(event), member_name<Member>);
      }
    });
  }

  /// Visits the copied columns as `visit.template operator()<Member, index>(given)`: whether the event brings
  /// a value.
  template <class Visit>
  static void for_each_copied(const Source& event, Visit visit) {
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      if constexpr (copied<Member>()) {
        visit.template operator()<Member, I>(detail::has_value(detail::read_by_name<Member>(event)));
      }
    });
  }

  /// Sets a column to the value that the event brings.
  template <auto Member>
  static void assign_given(Row& out, const Source& event) {
    const auto& value = detail::value_of(detail::read_by_name<Member>(event));
    static_assert(AssignableColumn<member_value_t<Member, Row>, decltype(value)>,
                  "keyfold: apply_changes() found a column of this name in the events whose type does not "
                  "convert; leave it out with columns_except<>()");
    detail::assign(out.*Member, value, member_name<Member>);
  }

  static void set_key(Row& out, const Source& event) {
    set_key(out, event, typename Key::TargetParts{}, typename Key::SourceParts{});
  }

  /// Where the key is computed, only the columns of the events can make it come out right. Throws Error.
  static void require_key(const Row& made, const Source& event) {
    if constexpr (!assignable_key(typename Key::TargetParts{})) {
      if (detail::equal_values(Key::TargetParts::of(made), Key::of(event))) return;
      throw Error("the row made of the event with key " + detail::key_text(Key::of(event)) + " has the key " +
                  detail::key_text(Key::TargetParts::of(made)) +
                  "; a computed key needs the columns it is made of among those that are copied");
    }
  }

 private:
  template <auto... P>
  static constexpr bool assignable_key(Parts<P...>) {
    return (is_data_member<P> && ...);
  }

  template <auto Member, auto... P>
  static constexpr bool in_key(Parts<P...>) {
    return ((is_data_member<P> && member_name<P> == member_name<Member>) || ...);
  }

  template <auto... T, auto... S>
  static void set_key(Row& out, const Source& event, Parts<T...>, Parts<S...>) {
    (set_part<T, S>(out, event), ...);
  }
  template <auto Target, auto From>
  static void set_part(Row& out, const Source& event) {
    if constexpr (is_data_member<Target>) {
      static_assert(AssignableColumn<member_value_t<Target, Row>, decltype(detail::read<From>(event))>,
                    "keyfold: a member of keys<>() does not convert to its part of the table's key");
      detail::assign(out.*Target, detail::read<From>(event), member_name<Target>);
    }
  }
};

// --- Conditions

template <class Condition, class Source>
constexpr void check_event_condition() {
  static_assert(!is_assignment_v<Condition>, "keyfold: a condition is no assignment; compare with ==");
  if constexpr (is_assignment_v<Condition>) {
    // Said.
  } else if constexpr (Expression<Condition>) {
    static_assert(!Condition::reads_target,
                  "keyfold: a condition of apply_changes() sees the event only; read source columns");
    static_assert(Condition::template fits<NoRow, Source>,
                  "keyfold: a condition of apply_changes() reads a column of another type than the event");
  } else {
    constexpr bool callable = takes_rows<ClauseKind::not_matched, Condition, NoRow, Source>();
    static_assert(callable,
                  "keyfold: a condition of apply_changes() must be an expression or callable as "
                  "bool(const Source&)");
    if constexpr (callable) {
      using Result = decltype(detail::call<ClauseKind::not_matched>(
          std::declval<const Condition&>(), std::declval<const Scope<NoRow, Source>&>()));
      static_assert(Truth<std::remove_cvref_t<Result>>, "keyfold: a callable condition must return bool");
    }
  }
}

template <FeedPart part, class Feed>
bool event_is(const Feed& feed, const typename Feed::Source& event) {
  if constexpr (Feed::template has<part>) {
    static constexpr NoRow none{};
    return detail::holds<ClauseKind::not_matched>(feed.template get<part>().condition,
                                                  Scope<NoRow, typename Feed::Source>{none, event});
  } else {
    return false;
  }
}

/// A feed as history records it: "KEYS (id) SEQUENCE BY seq APPLY AS DELETE WHEN ...".
template <class Key, class Feed>
std::string feed_text(const Feed& feed) {
  std::string out = "KEYS (";
  [&]<auto... Members>(Parts<Members...>) {
    const char* separator = "";
    ((out += separator, out += member_name<Members>, separator = ", "), ...);
  }(typename Key::SourceParts{});
  out += ')';
  feed.options.for_each([&](const auto& option) {
    if constexpr (requires { option.print(out); }) option.print(out);
  });
  return out;
}

[[noreturn]] inline void refuse_tie(std::string key, std::string sequence, Position first, Position second) {
  throw SequenceTie(std::move(key), std::move(sequence), first, second);
}

}  // namespace keyfold::detail

// detail/feed_planner

// detail/current_changes

// detail/current_state

// detail/key_sequences

/// What apply_changes() remembers of one key of current rows.
namespace keyfold::detail {

/// The sequences of one key. An absent sequence is before every other.
template <class Seq>
struct KeySequences {
  bool live = false;                        // a row has the key
  std::optional<Seq> set{};                 // the newest upsert of the row
  std::optional<Seq> erased{};              // the newest delete or truncate
  std::optional<Seq> base{};                // how new those columns are that no upsert gave a value
  bool fed = false;                         // `base` is the first upsert after the newest delete; else what
                                            // the row was when another write brought it
  std::vector<std::optional<Seq>> columns;  // for each column the newest upsert that gave it a value;
                                            // empty: `set` for those that feeds set
  Timestamp erased_at{};                    // when the delete came in

  /// Forgets the row, which a delete took away.
  void kill(const Seq& at) {
    live = false;
    set.reset();
    base.reset();
    fed = false;
    columns.clear();
    erased = at;
  }
};

template <class Seq>
std::size_t heap_bytes(const KeySequences<Seq>& value) noexcept {
  return value.columns.capacity() * sizeof(std::optional<Seq>);
}

/// Stands for a sequence whose type only a file has named so far: its bytes.
struct StoredSequence {
  std::string bytes;
};

/// The sequences of a key whose type is not known: all but what a tombstone is judged by as bytes.
template <>
struct KeySequences<StoredSequence> {
  bool live = false;
  std::string bytes{};
  Timestamp erased_at{};
};

inline std::size_t heap_bytes(const KeySequences<StoredSequence>& value) noexcept {
  return value.bytes.capacity();
}

template <class Seq>
bool before(const std::optional<Seq>& a, const Seq& b) {
  return !a || detail::less_values(*a, b);
}
template <class Seq>
bool not_after(const std::optional<Seq>& a, const Seq& b) {
  return !a || !detail::less_values(b, *a);
}

}  // namespace keyfold::detail

// detail/sequence_codec

// detail/archive

// detail/bytes

/// Bytes to be written and bytes that were read. Numbers have a fixed width, the lowest byte first.
namespace keyfold::detail {

using Bytes = std::vector<std::byte>;

/// A buffer that grows. Unlike a vector it does not zero what is about to be written.
class ByteBuffer {
 public:
  const std::byte* data() const noexcept { return data_.get(); }
  std::byte* data() noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::span<const std::byte> bytes() const noexcept { return {data(), size_}; }
  void clear() noexcept { size_ = 0; }

  /// Requires: size <= size().
  void truncate(std::size_t size) noexcept {
    assert(size <= size_);
    size_ = size;
  }

  /// Makes room for `count` bytes at the end, to be written by the caller. Strong guarantee.
  std::byte* extend(std::size_t count) {
    if (count > capacity_ - size_) grow(count);
    return data_.get() + std::exchange(size_, size_ + count);
  }
  void append(const void* from, std::size_t count) {
    if (count != 0) std::memcpy(extend(count), from, count);
  }

 private:
  [[gnu::noinline]] void grow(std::size_t count) {
    const std::size_t wanted = std::max({size_ + count, capacity_ * 2, std::size_t{256}});
    std::unique_ptr<std::byte[]> larger(new std::byte[wanted]);
    if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = wanted;
  }

  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Bytes do not say what they should. The callers of decoders turn it into an error that names the file.
class DecodeError : public std::runtime_error {
 public:
  DecodeError(std::size_t wrong_offset, const std::string& what_is_wrong)
      : std::runtime_error(what_is_wrong), offset(wrong_offset) {}

  std::size_t offset;  ///< in the bytes of the reader
};

/// Reads bytes from front to back, never past their end.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes) noexcept
      : first_(bytes.data()), at_(first_), end_(first_ + bytes.size()) {}

  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  std::size_t offset() const noexcept { return static_cast<std::size_t>(at_ - first_); }

  /// The next `count` bytes. Throws DecodeError if there are fewer.
  const std::byte* take(std::size_t count) {
    if (count > left()) fail_early();
    return std::exchange(at_, at_ + count);
  }

  /// Ends the reader `count` bytes from here; returns how many bytes that hides.
  std::size_t limit(std::size_t count) {
    if (count > left()) fail("a length goes beyond the end");
    return static_cast<std::size_t>(std::exchange(end_, at_ + count) - at_) - count;
  }
  /// Shows again what limit() has hidden.
  void unlimit(std::size_t hidden) noexcept { end_ += hidden; }

  [[noreturn]] void fail(const std::string& what_is_wrong) const {
    throw DecodeError(offset(), what_is_wrong);
  }

 private:
  [[noreturn]] [[gnu::noinline]] void fail_early() const { fail("it ends too early"); }

  const std::byte* first_ = nullptr;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
};

template <class Number>
  requires std::is_arithmetic_v<Number>
void store_number(std::byte* to, Number number) noexcept {
  std::memcpy(to, &number, sizeof number);
  if constexpr (std::endian::native != std::endian::little) std::reverse(to, to + sizeof number);
}

template <class Number>
  requires std::is_arithmetic_v<Number>
Number load_number(const std::byte* from) noexcept {
  std::byte bytes[sizeof(Number)];
  std::memcpy(bytes, from, sizeof bytes);
  if constexpr (std::endian::native != std::endian::little) std::reverse(bytes, bytes + sizeof bytes);
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

template <class Number>
void put_number(ByteBuffer& out, Number number) {
  detail::store_number(out.extend(sizeof number), number);
}
template <class Number>
void put_number(Bytes& out, Number number) {
  out.resize(out.size() + sizeof number);
  detail::store_number(out.data() + out.size() - sizeof number, number);
}
inline void put_u8(ByteBuffer& out, std::uint8_t number) { detail::put_number(out, number); }
inline void put_u32(ByteBuffer& out, std::uint32_t number) { detail::put_number(out, number); }
inline void put_u64(ByteBuffer& out, std::uint64_t number) { detail::put_number(out, number); }

template <class Number>
Number get_number(ByteReader& in) {
  return detail::load_number<Number>(in.take(sizeof(Number)));
}
inline std::uint8_t get_u8(ByteReader& in) { return detail::get_number<std::uint8_t>(in); }
inline std::uint32_t get_u32(ByteReader& in) { return detail::get_number<std::uint32_t>(in); }
inline std::uint64_t get_u64(ByteReader& in) { return detail::get_number<std::uint64_t>(in); }

/// The number of elements of something, 4 bytes.
inline void put_count(ByteBuffer& out, std::size_t count) {
  if (count > std::numeric_limits<std::uint32_t>::max()) {
    throw Error("a text or container of " + std::to_string(count) +
                " elements cannot be saved; the limit is 4294967295");
  }
  detail::put_u32(out, static_cast<std::uint32_t>(count));
}

inline void put_text(ByteBuffer& out, std::string_view text) {
  detail::put_count(out, text.size());
  out.append(text.data(), text.size());
}
inline std::string_view get_text(ByteReader& in) {
  const std::size_t size = detail::get_u32(in);
  return {reinterpret_cast<const char*>(in.take(size)), size};
}

/// A flag, which is 0 or 1.
inline bool get_flag(ByteReader& in) {
  const std::uint8_t flag = detail::get_u8(in);
  if (flag > 1) in.fail("a flag is neither 0 nor 1");
  return flag != 0;
}

}  // namespace keyfold::detail

// detail/codec_kind

#include <boost/serialization/serialization.hpp>
#include <boost/serialization/wrapper.hpp>

/// How a type is written to files; told at compile time.
namespace keyfold::detail {

class OutputArchive;

enum class CodecKind : std::uint8_t {
  boolean,
  number,
  enumeration,
  duration,
  time_point,
  date,
  nothing,  // std::monostate
  text,     // std::string
  optional,
  array,  // std::array, or an array of C
  tuple,  // std::tuple, std::pair
  variant,
  container,  // what can be cleared and filled again: vector, list, set, map...
  wrapper,    // what Boost.Serialization wraps a value in: nvp, array_wrapper...
  object,     // has a serialize() of the user's or of Boost.Serialization
  record,     // has a column list
  none
};

// --- Has the user written a serialize()?

struct HasTheName {
  int serialize;
};
template <class T>
struct MemberProbe : T, HasTheName {};

/// Whether a class has a member called serialize, private ones too: then the name is ambiguous in the probe.
template <class T>
concept SerializeMember =
    std::is_class_v<T> && !std::is_final_v<T> && !requires { &MemberProbe<T>::serialize; };

template <class T>
concept OpenSerializeMember = requires(T& value, OutputArchive& archive) { value.serialize(archive, 0U); };

/// Converts to T&, which Boost's own serialize(Archive&, T&, unsigned), a template for all types, cannot
/// take.
template <class T>
struct ReferenceProbe {
  operator T&() const;  // NOLINT(google-explicit-constructor)
};

/// Whether there is a serialize(Archive&, T&, unsigned) beside T or in boost::serialization.
template <class T>
concept SerializeFunction =
    std::is_class_v<T> &&
    (requires(OutputArchive& archive) {
      serialize(archive, ReferenceProbe<T>{}, boost::serialization::version_type(0));
    } || requires(OutputArchive& archive, T& value) { serialize(archive, value, 0U); });

template <class T>
concept UserSerialized = SerializeMember<T> || OpenSerializeMember<T> || SerializeFunction<T>;

/// An instance of a class template: what Boost.Serialization may know although no probe can tell.
template <class T>
inline constexpr bool is_instance = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_instance<Template<Arguments...>> = true;
template <template <class, std::size_t> class Template, class First, std::size_t second>
inline constexpr bool is_instance<Template<First, second>> = true;
template <template <std::size_t> class Template, std::size_t argument>
inline constexpr bool is_instance<Template<argument>> = true;

// --- The kinds

template <class T>
inline constexpr bool is_text_v = false;
template <class Traits, class Allocator>
inline constexpr bool is_text_v<std::basic_string<char, Traits, Allocator>> = true;

template <class T>
inline constexpr bool is_std_array_v = false;
template <class T, std::size_t size>
inline constexpr bool is_std_array_v<std::array<T, size>> = true;

template <class T>
concept Fillable = std::ranges::input_range<const T> && std::default_initializable<T> &&
                   requires(T& container, typename T::value_type element) {
                     container.clear();
                     container.size();
                     requires requires { container.push_back(std::move(element)); } ||
                                  requires { container.insert(std::move(element)); };
                   };

/// What refers to something elsewhere: a pointer of any sort, a view of a text.
template <class T>
concept Reference = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T> ||
                    std::same_as<T, std::string_view> || requires(const T& value) {
                      typename T::element_type;
                      value.get();
                    };

template <class T>
consteval CodecKind codec_kind_of_class() {
  using enum CodecKind;
  if constexpr (is_duration_v<T>) {
    return duration;
  } else if constexpr (is_time_point_v<T>) {
    return time_point;
  } else if constexpr (std::same_as<T, std::chrono::year_month_day>) {
    return date;
  } else if constexpr (std::same_as<T, std::monostate>) {
    return nothing;
  } else if constexpr (is_text_v<T>) {
    return text;
  } else if constexpr (is_optional_v<T>) {
    return optional;
  } else if constexpr (is_std_array_v<T>) {
    return array;
  } else if constexpr (is_tuple_v<T>) {
    return tuple;
  } else if constexpr (is_variant_v<T>) {
    return variant;
  } else if constexpr (boost::serialization::is_wrapper<T>::type::value) {
    return wrapper;
  } else if constexpr (Reference<T>) {
    return none;
  } else if constexpr (UserSerialized<T>) {
    return object;
  } else if constexpr (HasColumns<T>) {
    return record;
  } else if constexpr (Fillable<T>) {
    return container;
  } else {
    return is_instance<T> ? object : none;
  }
}

template <class T>
consteval CodecKind codec_kind() {
  using enum CodecKind;
  if constexpr (std::is_class_v<T>) {
    return detail::codec_kind_of_class<T>();
  } else if constexpr (std::same_as<T, bool>) {
    return boolean;
  } else if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, long double>) {
    return number;
  } else if constexpr (std::is_enum_v<T>) {
    return enumeration;
  } else {
    return std::is_array_v<T> ? array : none;
  }
}

template <class T>
inline constexpr CodecKind codec_kind_v = codec_kind<T>();

/// A member of a container as it is read: the key of a map is not const there.
template <class T>
struct readable_element {
  using type = T;
};
template <class Key, class Value>
struct readable_element<std::pair<const Key, Value>> {
  using type = std::pair<Key, Value>;
};
template <class Container>
using element_t = typename readable_element<typename Container::value_type>::type;

template <class Array>
struct array_traits;
template <class T, std::size_t count>
struct array_traits<T[count]> {
  using element = T;
  static constexpr std::size_t size = count;
};
template <class T, std::size_t count>
struct array_traits<std::array<T, count>> {
  using element = T;
  static constexpr std::size_t size = count;
};

template <class Member>
struct member_type;
template <class Value, class Owner>
struct member_type<Value Owner::*> {
  using type = Value;
};
template <auto Member>
using member_t = typename member_type<std::remove_cv_t<decltype(Member)>>::type;

// --- Sizes

/// Bytes that each value of T takes in a file; `varying` if they are not the same for all.
inline constexpr std::size_t varying = static_cast<std::size_t>(-1);

template <class T>
consteval std::size_t encoded_size();

template <class... T>
consteval std::size_t sum_of_sizes() {
  std::size_t sum = 0;
  for (const std::size_t size : {std::size_t{0}, detail::encoded_size<T>()...}) {
    if (size == varying) return varying;
    sum += size;
  }
  return sum;
}

template <class T>
struct size_of_all;
template <class... T>
struct size_of_all<std::tuple<T...>> {
  static constexpr std::size_t value = detail::sum_of_sizes<T...>();
};
template <class A, class B>
struct size_of_all<std::pair<A, B>> {
  static constexpr std::size_t value = detail::sum_of_sizes<A, B>();
};
template <auto... Members>
struct size_of_all<MemberList<Members...>> {
  static_assert((is_data_member<Members> && ...),
                "keyfold: a column that is a function cannot be saved; list data members only, or give the "
                "class a serialize()");
  static constexpr std::size_t value = detail::sum_of_sizes<member_t<Members>...>();
};

template <class T>
consteval std::size_t encoded_size() {
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (kind == CodecKind::boolean) {
    return 1;
  } else if constexpr (kind == CodecKind::number || kind == CodecKind::enumeration) {
    return sizeof(T);
  } else if constexpr (kind == CodecKind::duration) {
    return detail::encoded_size<typename T::rep>();
  } else if constexpr (kind == CodecKind::time_point) {
    return detail::encoded_size<typename T::duration>();
  } else if constexpr (kind == CodecKind::date) {
    return 4;
  } else if constexpr (kind == CodecKind::nothing) {
    return 0;
  } else if constexpr (kind == CodecKind::array) {
    using Traits = array_traits<T>;
    constexpr std::size_t one = detail::encoded_size<typename Traits::element>();
    return Traits::size == 0 ? 0 : one == varying ? varying : one * Traits::size;
  } else if constexpr (kind == CodecKind::tuple) {
    return size_of_all<T>::value;
  } else if constexpr (kind == CodecKind::record) {
    return size_of_all<columns_list<T>>::value;
  } else {
    return varying;
  }
}

/// Values that are written to memory with one check for room.
template <class T>
concept FixedSize = encoded_size<T>() != varying;

template <class T>
consteval bool is_bitwise();

template <class List>
inline constexpr bool are_bitwise = false;
template <auto... Members>
inline constexpr bool are_bitwise<MemberList<Members...>> = (is_bitwise<member_t<Members>>() && ...);

/// Whether the bytes of T in memory are those in a file, if its columns stand in memory as they are listed
/// and without gaps, and any bytes will do.
template <class T>
consteval bool is_bitwise() {
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (std::endian::native != std::endian::little || !std::is_trivially_copyable_v<T>) {
    return false;
  } else if constexpr (kind == CodecKind::number) {
    return true;
  } else if constexpr (kind == CodecKind::duration || kind == CodecKind::time_point) {
    return sizeof(T) == detail::encoded_size<T>();
  } else if constexpr (kind == CodecKind::record) {
    return are_bitwise<columns_list<T>>;
  } else {
    return false;
  }
}

/// What the bits of a described enum may be: those of its enumerators, so that flags can be combined.
template <class Enum>
constexpr auto allowed_bits() {
  using Bits = std::make_unsigned_t<std::underlying_type_t<Enum>>;
  if constexpr (boost::describe::has_describe_enumerators<Enum>::value) {
    Bits bits = 0;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<Enum>>(
        [&](auto described) { bits = static_cast<Bits>(bits | static_cast<Bits>(described.value)); });
    return bits;
  } else {
    return static_cast<Bits>(~Bits{0});
  }
}

template <class Enum>
constexpr bool is_allowed(std::underlying_type_t<Enum> value) {
  using Underlying = std::underlying_type_t<Enum>;
  if constexpr (std::same_as<Underlying, bool>) {
    return true;
  } else {
    using Bits = std::make_unsigned_t<Underlying>;
    return (static_cast<Bits>(value) & static_cast<Bits>(~allowed_bits<Enum>())) == 0;
  }
}

}  // namespace keyfold::detail

// detail/fixed_codec

/// The codec of values whose bytes in a file are always as many: numbers, enums, times, and what is made of
/// them.
namespace keyfold::detail {

/// Throws unless a described enum has a value that its enumerators make up.
template <class Enum>
void require_allowed(Enum value) {
  const auto number = static_cast<std::underlying_type_t<Enum>>(value);
  if (!detail::is_allowed<Enum>(number))
    throw Error("an enum has the value " + std::to_string(number) +
                ", which its described enumerators do not make up; describe all of them");
}

template <class T>
std::byte* put_fixed(std::byte* to, const T& value);

/// Whether columns follow each other in memory as they are listed. Compilers know.
template <auto... Members, class Row>
bool are_in_a_row(MemberList<Members...>, const Row& row) noexcept {
  const auto* at = reinterpret_cast<const std::byte*>(&row);
  return ((reinterpret_cast<const std::byte*>(&(row.*Members)) ==
           std::exchange(at, at + detail::encoded_size<member_t<Members>>())) &&
          ...);
}

template <auto... Members, class Row>
std::byte* put_fixed_columns(MemberList<Members...> columns, std::byte* to, const Row& row) {
  if constexpr (detail::is_bitwise<Row>()) {
    constexpr std::size_t size = detail::encoded_size<Row>();
    if (detail::are_in_a_row(columns, row)) {
      std::memcpy(to, &row, size);
      return to + size;
    }
  }
  ((to = detail::put_fixed(to, row.*Members)), ...);
  return to;
}

/// Writes a value of fixed size; returns the end of it.
template <class T>
std::byte* put_fixed(std::byte* to, const T& value) {
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (kind == CodecKind::boolean) {
    *to = static_cast<std::byte>(value ? 1 : 0);
    return to + 1;
  } else if constexpr (kind == CodecKind::number) {
    detail::store_number(to, value);
    return to + sizeof value;
  } else if constexpr (kind == CodecKind::enumeration) {
    detail::require_allowed(value);
    return detail::put_fixed(to, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (kind == CodecKind::duration) {
    return detail::put_fixed(to, value.count());
  } else if constexpr (kind == CodecKind::time_point) {
    return detail::put_fixed(to, value.time_since_epoch());
  } else if constexpr (kind == CodecKind::date) {
    detail::store_number(to, static_cast<std::int16_t>(int{value.year()}));
    to[2] = static_cast<std::byte>(unsigned{value.month()});
    to[3] = static_cast<std::byte>(unsigned{value.day()});
    return to + 4;
  } else if constexpr (kind == CodecKind::array) {
    if constexpr (array_traits<T>::size != 0) {
      for (const auto& element : value) to = detail::put_fixed(to, element);
    }
    return to;
  } else if constexpr (kind == CodecKind::tuple) {
    std::apply([&](const auto&... part) { ((to = detail::put_fixed(to, part)), ...); }, value);
    return to;
  } else if constexpr (kind == CodecKind::record) {
    return detail::put_fixed_columns(columns_list<T>{}, to, value);
  } else {
    static_assert(kind == CodecKind::nothing);
    return to;
  }
}

template <class T>
const std::byte* get_fixed(const ByteReader& in, const std::byte* from, T& value);

template <auto... Members, class Row>
const std::byte* get_fixed_columns(MemberList<Members...> columns, const ByteReader& in,
                                   const std::byte* from, Row& row) {
  if constexpr (detail::is_bitwise<Row>()) {
    constexpr std::size_t size = detail::encoded_size<Row>();
    if (detail::are_in_a_row(columns, row)) {
      std::memcpy(static_cast<void*>(&row), from, size);
      return from + size;
    }
  }
  ((from = detail::get_fixed(in, from, row.*Members)), ...);
  return from;
}

/// Reads a value of fixed size, whose bytes are known to be there; returns their end.
template <class T>
const std::byte* get_fixed(const ByteReader& in, const std::byte* from, T& value) {
  static_assert(!std::is_const_v<T>, "keyfold: a column that is const cannot be loaded");
  constexpr CodecKind kind = codec_kind_v<T>;
  if constexpr (kind == CodecKind::boolean) {
    if (std::to_integer<unsigned>(*from) > 1) in.fail("a bool is neither 0 nor 1");
    value = *from != std::byte{0};
    return from + 1;
  } else if constexpr (kind == CodecKind::number) {
    value = detail::load_number<T>(from);
    return from + sizeof value;
  } else if constexpr (kind == CodecKind::enumeration) {
    std::underlying_type_t<T> number{};
    from = detail::get_fixed(in, from, number);
    if (!detail::is_allowed<T>(number)) in.fail("an enum has a value that its enumerators do not make up");
    value = static_cast<T>(number);
    return from;
  } else if constexpr (kind == CodecKind::duration) {
    typename T::rep count{};
    from = detail::get_fixed(in, from, count);
    value = T(count);
    return from;
  } else if constexpr (kind == CodecKind::time_point) {
    typename T::duration since{};
    from = detail::get_fixed(in, from, since);
    value = T(since);
    return from;
  } else if constexpr (kind == CodecKind::date) {
    value = std::chrono::year_month_day(std::chrono::year(detail::load_number<std::int16_t>(from)),
                                        std::chrono::month(std::to_integer<unsigned>(from[2])),
                                        std::chrono::day(std::to_integer<unsigned>(from[3])));
    return from + 4;
  } else if constexpr (kind == CodecKind::array) {
    if constexpr (array_traits<T>::size != 0) {
      for (auto& element : value) from = detail::get_fixed(in, from, element);
    }
    return from;
  } else if constexpr (kind == CodecKind::tuple) {
    std::apply([&](auto&... part) { ((from = detail::get_fixed(in, from, part)), ...); }, value);
    return from;
  } else if constexpr (kind == CodecKind::record) {
    return detail::get_fixed_columns(columns_list<T>{}, in, from, value);
  } else {
    static_assert(kind == CodecKind::nothing);
    return from;
  }
}

}  // namespace keyfold::detail

// storage_error

#include <system_error>

/// What files can do to a store. All of it derives from `Error`.
namespace keyfold {

/// An operation on a file failed. What it was for has not happened, unless a derived class says otherwise.
class IoError : public Error {
 public:
  IoError(const std::string& operation_name, const std::string& file_name, std::error_code error)
      : IoError(operation_name + " '" + file_name + "': " + error.message(), operation_name, file_name,
                error) {}

  std::string operation;  ///< such as "write" or "fsync"
  std::string file;
  std::error_code code;

 protected:
  IoError(const std::string& message, std::string operation_name, std::string file_name,
          std::error_code error)
      : Error(message), operation(std::move(operation_name)), file(std::move(file_name)), code(error) {}
};

/// The disk did not confirm a commit: the table does not have it, but the file may. Writing has ended for
/// this store, since after a failed fsync no later one can be believed; reading goes on. Opening the
/// directory again tells whether the commit was made.
class CommitInDoubt : public IoError {
 public:
  CommitInDoubt(const IoError& cause, const std::string& what_is_in_doubt)
      : IoError(std::string(cause.what()) + "; " + what_is_in_doubt +
                    " is in doubt and the store takes no more writes: open it again to see what it has",
                cause.operation, cause.file, cause.code) {}
};

/// The store takes no more writes, because an earlier one could not be made durable, or since it was closed:
/// then there is no `code`.
class StoreFailed : public IoError {
 public:
  explicit StoreFailed(const IoError& cause)
      : IoError(cause.code ? "the store takes no more writes since an operation failed (" +
                                 std::string(cause.what()) + "); open it again"
                           : "the store of '" + cause.file + "' was closed; open it again to write",
                cause.operation, cause.file, cause.code) {}
};

/// Another store, in this process or in another one, has the directory.
class StoreLocked : public Error {
 public:
  explicit StoreLocked(std::string locked_file)
      : Error("'" + locked_file + "' is locked: another store has this directory open; close that one first"),
        file(std::move(locked_file)) {}

  std::string file;
};

/// A file of a store is not as it was written, and no crash can have made it so. Nothing was changed on disk.
class CorruptJournal : public Error {
 public:
  CorruptJournal(std::string damaged_file, std::uint64_t damaged_offset, const std::string& what_is_wrong)
      : Error("'" + damaged_file + "' is damaged at byte " + std::to_string(damaged_offset) + ": " +
              what_is_wrong +
              "; restore it from a backup, or salvage() what can be read into a new directory"),
        file(std::move(damaged_file)),
        offset(damaged_offset) {}

  std::string file;
  std::uint64_t offset;
};

/// A file was written by a later version of the library, or of the program.
class UnsupportedFormat : public Error {
 public:
  UnsupportedFormat(const std::string& what_has_it, std::uint64_t found_number, std::uint64_t known_number)
      : Error(what_has_it + " has the format number " + std::to_string(found_number) +
              ", and this program knows up to " + std::to_string(known_number) +
              "; read it with the version that wrote it, or a later one"),
        found(found_number),
        known(known_number) {}

  std::uint64_t found;
  std::uint64_t known;
};

}  // namespace keyfold

#include <boost/archive/detail/common_iarchive.hpp>
#include <boost/archive/detail/common_oarchive.hpp>
#include <boost/serialization/collection_size_type.hpp>
#include <boost/serialization/item_version_type.hpp>
#include <boost/serialization/level.hpp>
#include <boost/serialization/tracking.hpp>
#include <boost/serialization/version.hpp>

/// The codec of rows: values to bytes and back. What is described is written column by column; a class with
/// a serialize() of the user's is asked to write itself to an archive of Boost.Serialization's kind, which
/// hands its members back to the codec. docs/file-format.md has the bytes of each type.
namespace keyfold::detail {

/// How deep values may be nested, so that no file can exhaust the stack.
inline constexpr unsigned nesting_limit = 64;

/// A duration or time that counts with something of no fixed size.
template <class T>
consteval bool is_uncounted() {
  if constexpr (codec_kind_v<T> == CodecKind::duration || codec_kind_v<T> == CodecKind::time_point) {
    return detail::encoded_size<T>() == varying;
  } else {
    return false;
  }
}

template <class T>
consteval void require_codec() {
  constexpr bool reference = Reference<T>;
  constexpr bool long_number = std::same_as<T, long double>;
  constexpr bool function = std::is_function_v<T>;
  static_assert(!function,
                "keyfold: a column that is a function cannot be saved; list data members only, or give the "
                "class a serialize()");
  static_assert(!is_uncounted<T>(), "keyfold: a duration whose count is no plain number cannot be saved");
  static_assert(!reference || codec_kind_v<T> != CodecKind::none,
                "keyfold: a pointer or view cannot be saved; save what it points to, or a key");
  static_assert(!long_number,
                "keyfold: a long double cannot be saved, since its bytes differ between platforms");
  static_assert(codec_kind_v<T> != CodecKind::none || reference || long_number || function,
                "keyfold: this class cannot be saved; describe it with BOOST_DESCRIBE_STRUCT or columns_of, "
                "or give it a serialize()");
}

/// Elements whose bytes in memory are those in a file.
template <class Container>
concept Block = std::ranges::contiguous_range<Container> && std::endian::native == std::endian::little &&
                std::is_arithmetic_v<typename Container::value_type> &&
                !std::same_as<typename Container::value_type, bool> &&
                requires(Container& container) { container.resize(1); };

/// An element takes a byte at the least, so that a count can be judged by the bytes that follow it.
template <class Element>
consteval std::size_t least_size() {
  constexpr std::size_t size = detail::encoded_size<Element>();
  if constexpr (codec_kind_v<Element> == CodecKind::object) return 8;
  if constexpr (codec_kind_v<Element> == CodecKind::text || codec_kind_v<Element> == CodecKind::container)
    return 4;
  return size == varying || size == 0 ? 1 : size;
}

template <class T>
consteval void check_object() {
  using boost::serialization::implementation_level;
  using boost::serialization::tracking_level;
  static_assert(tracking_level<T>::value != boost::serialization::track_always,
                "keyfold: this class asks Boost.Serialization to track its objects, which rows cannot be; "
                "remove its BOOST_CLASS_TRACKING");
  static_assert(
      implementation_level<T>::value != boost::serialization::primitive_type &&
          implementation_level<T>::value != boost::serialization::not_serializable,
      "keyfold: this class is no object to Boost.Serialization; remove its BOOST_CLASS_IMPLEMENTATION");
}

class Encoder;
class Decoder;

template <class T>
inline constexpr bool is_bookkeeping =
    std::same_as<T, boost::archive::version_type> || std::same_as<T, boost::archive::object_id_type> ||
    std::same_as<T, boost::archive::object_reference_type> ||
    std::same_as<T, boost::archive::class_id_type> ||
    std::same_as<T, boost::archive::class_id_reference_type> ||
    std::same_as<T, boost::archive::class_id_optional_type> ||
    std::same_as<T, boost::archive::class_name_type> || std::same_as<T, boost::archive::tracking_type>;

/// What a user's serialize() writes to.
class OutputArchive : public boost::archive::detail::common_oarchive<OutputArchive> {
 public:
  explicit OutputArchive(Encoder& encoder) : encoder_(&encoder) {}

  template <class T>
  void save_override(const T& value);
  void save_binary(const void* from, std::size_t count);

 private:
  Encoder* encoder_;
};

/// What a user's serialize() reads from.
class InputArchive : public boost::archive::detail::common_iarchive<InputArchive> {
 public:
  explicit InputArchive(Decoder& decoder) : decoder_(&decoder) {}

  template <class T>
  void load_override(T& value);
  template <class T>
  void load_override(const T& wrapper) {
    load_override(const_cast<T&>(wrapper));
  }
  void load_binary(void* to, std::size_t count);

 private:
  Decoder* decoder_;
};

/// Goes a level down while it lives.
class NestingScope {
 public:
  explicit NestingScope(unsigned& depth) noexcept : depth_(depth) { ++depth_; }
  NestingScope(const NestingScope&) = delete;
  NestingScope& operator=(const NestingScope&) = delete;
  ~NestingScope() { --depth_; }

 private:
  unsigned& depth_;
};

/// Writes values behind each other into a buffer. Throws std::bad_alloc, what a user's serialize() throws,
/// and Error for a value that a decoder would refuse; then there is rubbish at the end of the buffer.
class Encoder {
 public:
  explicit Encoder(ByteBuffer& out) noexcept : out_(out) {}

  ByteBuffer& out() noexcept { return out_; }

  template <class T>
  void put(const T& value) {
    constexpr CodecKind kind = codec_kind_v<T>;
    detail::require_codec<T>();
    if constexpr (FixedSize<T>) {
      detail::put_fixed(out_.extend(detail::encoded_size<T>()), value);
    } else if constexpr (kind == CodecKind::text) {
      detail::put_text(out_, value);
    } else if constexpr (kind == CodecKind::optional) {
      detail::put_u8(out_, value ? 1 : 0);
      if (value) put(*value);
    } else if constexpr (kind == CodecKind::array) {
      for (const auto& element : value) put(element);
    } else if constexpr (kind == CodecKind::tuple) {
      std::apply([this](const auto&... part) { (this->put(part), ...); }, value);
    } else if constexpr (kind == CodecKind::variant) {
      put_variant(value);
    } else if constexpr (kind == CodecKind::container) {
      put_container(value);
    } else if constexpr (kind == CodecKind::wrapper) {
      boost::serialization::serialize_adl(archive(), const_cast<T&>(value), 0U);
    } else if constexpr (kind == CodecKind::object) {
      put_object(value);
    } else if constexpr (kind == CodecKind::record) {
      const NestingScope scope = descend();
      put_columns(columns_list<T>{}, value);
    }
  }

 private:
  [[nodiscard]] NestingScope descend() {
    if (depth_ >= nesting_limit) {
      throw Error("a value is nested " + std::to_string(depth_ + 1) +
                  " levels deep; the limit of a file is " + std::to_string(nesting_limit));
    }
    return NestingScope(depth_);
  }

  OutputArchive& archive() {
    if (archive_ == nullptr) archive_ = std::make_unique<OutputArchive>(*this);
    return *archive_;
  }

  template <auto... Members, class Row>
  void put_columns(MemberList<Members...>, const Row& row) {
    (put(row.*Members), ...);
  }

  template <class Variant>
  void put_variant(const Variant& value) {
    static_assert(std::variant_size_v<Variant> < 256,
                  "keyfold: a variant to be saved has 255 alternatives at most");
    if (value.valueless_by_exception()) throw Error("a variant without a value cannot be saved");
    detail::put_u8(out_, static_cast<std::uint8_t>(value.index()));
    std::visit([this](const auto& alternative) { this->put(alternative); }, value);
  }

  template <class Container>
  void put_container(const Container& container) {
    using Element = element_t<Container>;
    detail::put_count(out_, container.size());
    if constexpr (Block<Container>) {
      out_.append(std::ranges::data(container), container.size() * sizeof(Element));
    } else {
      for (const auto& element : container) put_element<Element>(element);
    }
  }
  template <class Element, class Stored>
  void put_element(const Stored& element) {
    if constexpr (std::same_as<Element, bool>) {
      detail::put_u8(out_, element ? 1 : 0);  // of a vector<bool>, too
    } else if constexpr (requires { typename Stored::first_type; }) {
      put(element.first);  // of a map the key is const
      put(element.second);
    } else {
      put(element);
    }
    if constexpr (detail::encoded_size<Element>() == 0) detail::put_u8(out_, 0);
  }

  // Framed, so that a reader can skip it and can tell when it is read in another way than it was written.
  template <class T>
  void put_object(const T& value) {
    detail::check_object<T>();
    const NestingScope scope = descend();
    const std::size_t frame = out_.size();
    out_.extend(2 * sizeof(std::uint32_t));
    constexpr unsigned version = static_cast<unsigned>(boost::serialization::version<T>::value);
    boost::serialization::serialize_adl(archive(), const_cast<T&>(value), version);
    const std::size_t size = out_.size() - frame - 2 * sizeof(std::uint32_t);
    if (size > std::numeric_limits<std::uint32_t>::max())
      throw Error("an object of 4 GiB or more cannot be saved");
    detail::store_number(out_.data() + frame, static_cast<std::uint32_t>(size));
    detail::store_number(out_.data() + frame + sizeof(std::uint32_t), static_cast<std::uint32_t>(version));
  }

  ByteBuffer& out_;
  unsigned depth_ = 0;
  std::unique_ptr<OutputArchive> archive_;
};

/// Reads what an Encoder wrote. Throws DecodeError, UnsupportedFormat for a class version that is newer than
/// the program's, std::bad_alloc, and what a user's serialize() throws; then the value is unspecified.
class Decoder {
 public:
  explicit Decoder(ByteReader& in) noexcept : in_(in) {}

  ByteReader& in() noexcept { return in_; }

  template <class T>
  void get(T& value) {
    constexpr CodecKind kind = codec_kind_v<T>;
    detail::require_codec<T>();
    if constexpr (FixedSize<T>) {
      detail::get_fixed(in_, in_.take(detail::encoded_size<T>()), value);
    } else if constexpr (kind == CodecKind::text) {
      value.assign(detail::get_text(in_));
    } else if constexpr (kind == CodecKind::optional) {
      value.reset();
      if (detail::get_flag(in_)) get(value.emplace());
    } else if constexpr (kind == CodecKind::array) {
      for (auto& element : value) get(element);
    } else if constexpr (kind == CodecKind::tuple) {
      std::apply([this](auto&... part) { (this->get(part), ...); }, value);
    } else if constexpr (kind == CodecKind::variant) {
      get_variant(value);
    } else if constexpr (kind == CodecKind::container) {
      get_container(value);
    } else if constexpr (kind == CodecKind::wrapper) {
      boost::serialization::serialize_adl(archive(), value, 0U);
    } else if constexpr (kind == CodecKind::object) {
      get_object(value);
    } else if constexpr (kind == CodecKind::record) {
      const NestingScope scope = descend();
      get_columns(columns_list<T>{}, value);
    }
  }

  [[nodiscard]] NestingScope descend() {
    if (depth_ >= nesting_limit) in_.fail("values are nested too deep");
    return NestingScope(depth_);
  }

 private:
  InputArchive& archive() {
    if (archive_ == nullptr) archive_ = std::make_unique<InputArchive>(*this);
    return *archive_;
  }

  template <auto... Members, class Row>
  void get_columns(MemberList<Members...>, Row& row) {
    static_assert((!std::is_const_v<member_t<Members>> && ...),
                  "keyfold: a column that is const cannot be loaded");
    (get(row.*Members), ...);
  }

  template <class Variant>
  void get_variant(Variant& value) {
    constexpr std::size_t size = std::variant_size_v<Variant>;
    const std::size_t index = detail::get_u8(in_);
    if (index >= size) in_.fail("a variant has an alternative that its type has not");
    boost::mp11::mp_with_index<size>(index, [&](auto number) { get(value.template emplace<number>()); });
  }

  template <class Container>
  void get_container(Container& container) {
    using Element = element_t<Container>;
    const std::size_t count = detail::get_u32(in_);
    if (count > in_.left() / detail::least_size<Element>()) in_.fail("more elements than the bytes can hold");
    container.clear();
    if constexpr (Block<Container>) {
      container.resize(count);
      if (count != 0)
        std::memcpy(std::ranges::data(container), in_.take(count * sizeof(Element)), count * sizeof(Element));
    } else {
      // An element may take more memory than bytes, and what is told may not be true.
      if constexpr (requires { container.reserve(count); })
        container.reserve(std::min<std::size_t>(count, in_.left() / sizeof(Element) + 1));
      for (std::size_t i = 0; i < count; ++i) add_element<Element>(container);
      if (container.size() != count) in_.fail("an element of a set or map is there twice");
    }
  }
  template <class Element, class Container>
  void add_element(Container& container) {
    Element element{};
    get(element);
    if constexpr (detail::encoded_size<Element>() == 0) static_cast<void>(detail::get_u8(in_));
    if constexpr (requires { container.push_back(std::move(element)); }) {
      container.push_back(std::move(element));
    } else {
      container.insert(container.end(), std::move(element));
    }
  }

  template <class T>
  void get_object(T& value) {
    detail::check_object<T>();
    const NestingScope scope = descend();
    const std::uint32_t size = detail::get_u32(in_);
    const std::uint32_t stored = detail::get_u32(in_);
    constexpr unsigned version = static_cast<unsigned>(boost::serialization::version<T>::value);
    if (stored > version) throw UnsupportedFormat("an object of a row", stored, version);
    const std::size_t hidden = in_.limit(size);
    boost::serialization::serialize_adl(archive(), value, stored);
    if (in_.left() != 0) in_.fail("serialize() has not read all that was written");
    in_.unlimit(hidden);
  }

  ByteReader& in_;
  unsigned depth_ = 0;
  std::unique_ptr<InputArchive> archive_;
};

template <class T>
void OutputArchive::save_override(const T& value) {
  if constexpr (std::same_as<T, boost::serialization::collection_size_type>) {
    encoder_->put(static_cast<std::uint64_t>(std::size_t{value}));
  } else if constexpr (std::same_as<T, boost::serialization::item_version_type>) {
    encoder_->put(static_cast<std::uint32_t>(static_cast<unsigned>(value)));
  } else if constexpr (!is_bookkeeping<T>) {
    encoder_->put(value);
  }
}
inline void OutputArchive::save_binary(const void* from, std::size_t count) {
  encoder_->out().append(from, count);
}

template <class T>
void InputArchive::load_override(T& value) {
  if constexpr (std::same_as<T, boost::serialization::collection_size_type>) {
    std::uint64_t count = 0;
    decoder_->get(count);
    if (count > decoder_->in().left()) decoder_->in().fail("more elements than the bytes can hold");
    value = boost::serialization::collection_size_type(static_cast<std::size_t>(count));
  } else if constexpr (std::same_as<T, boost::serialization::item_version_type>) {
    std::uint32_t version = 0;
    decoder_->get(version);
    value = boost::serialization::item_version_type(version);
  } else if constexpr (!is_bookkeeping<T>) {
    decoder_->get(value);
  }
}
inline void InputArchive::load_binary(void* to, std::size_t count) {
  std::memcpy(to, decoder_->in().take(count), count);
}

/// A row, and back: for what keeps rows one by one. Who has many makes an Encoder or a RowDecoder for all.
template <class Row>
void encode_row(ByteBuffer& out, const Row& row) {
  Encoder(out).put(row);
}
template <class Row>
Row decode_row(ByteReader& in) {
  Row row{};
  Decoder(in).get(row);
  return row;
}

}  // namespace keyfold::detail

// detail/type_text

/// Types as files name them, such as `optional(list(int32))`. The grammar is in docs/file-format.md.
namespace keyfold::detail {

template <class Number>
std::string number_text() {
  if constexpr (std::same_as<Number, char>) {
    return "char";
  } else {
    const char* const kind = std::is_floating_point_v<Number> ? "float"
                             : std::is_signed_v<Number>       ? "int"
                                                              : "uint";
    return kind + std::to_string(8 * sizeof(Number));
  }
}

/// The records that a type is part of, outermost first, by the address of something each type has of its own.
using Enclosing = std::vector<const void*>;

template <class T>
inline constexpr char identity_of = 0;

template <class T>
std::string type_text(Enclosing& enclosing);

template <class... T>
std::string type_texts(Enclosing& enclosing) {
  std::string out;
  ((out += out.empty() ? "" : ",", out += detail::type_text<T>(enclosing)), ...);
  return '(' + out + ')';
}

template <class T>
struct type_texts_of;
template <template <class...> class Template, class... T>
struct type_texts_of<Template<T...>> {
  static std::string get(Enclosing& enclosing) { return detail::type_texts<T...>(enclosing); }
};

template <class Container>
std::string container_text(Enclosing& enclosing) {
  using Element = element_t<Container>;
  if constexpr (requires { typename Container::mapped_type; }) {
    return "map" +
           detail::type_texts<typename Container::key_type, typename Container::mapped_type>(enclosing);
  } else {
    constexpr bool is_set = requires { typename Container::key_type; };
    return (is_set ? "set" : "list") + detail::type_texts<Element>(enclosing);
  }
}

template <auto... Members>
std::string record_text(MemberList<Members...>, Enclosing& enclosing) {
  std::string out;
  ((out += out.empty() ? "" : ",", out += member_name<Members>, out += ':',
    out += detail::type_text<member_t<Members>>(enclosing)),
   ...);
  return "record(" + out + ')';
}

template <class Record>
std::string record_text(Enclosing& enclosing) {
  for (std::size_t i = 0; i < enclosing.size(); ++i) {
    if (enclosing[i] == &identity_of<Record>) return "same(" + std::to_string(enclosing.size() - i) + ')';
  }
  enclosing.push_back(&identity_of<Record>);
  std::string out = detail::record_text(columns_list<Record>{}, enclosing);
  enclosing.pop_back();
  return out;
}

template <class T>
std::string type_text(Enclosing& enclosing) {
  constexpr CodecKind kind = codec_kind_v<T>;
  detail::require_codec<T>();
  if constexpr (kind == CodecKind::boolean) {
    return "bool";
  } else if constexpr (kind == CodecKind::number) {
    return detail::number_text<T>();
  } else if constexpr (kind == CodecKind::enumeration) {
    return "enum(" + detail::type_text<std::underlying_type_t<T>>(enclosing) + ')';
  } else if constexpr (kind == CodecKind::duration) {
    return "duration(" + detail::type_text<typename T::rep>(enclosing) + ',' +
           std::to_string(T::period::num) + '/' + std::to_string(T::period::den) + ')';
  } else if constexpr (kind == CodecKind::time_point) {
    return "time(" + detail::type_text<typename T::duration>(enclosing) + ')';
  } else if constexpr (kind == CodecKind::date) {
    return "date";
  } else if constexpr (kind == CodecKind::nothing) {
    return "nothing";
  } else if constexpr (kind == CodecKind::text) {
    return "text";
  } else if constexpr (kind == CodecKind::optional) {
    return "optional" + detail::type_texts<typename T::value_type>(enclosing);
  } else if constexpr (kind == CodecKind::array) {
    using Traits = array_traits<T>;
    return "array(" + std::to_string(Traits::size) + ',' +
           detail::type_text<typename Traits::element>(enclosing) + ')';
  } else if constexpr (kind == CodecKind::tuple) {
    return "tuple" + type_texts_of<T>::get(enclosing);
  } else if constexpr (kind == CodecKind::variant) {
    return "variant" + type_texts_of<T>::get(enclosing);
  } else if constexpr (kind == CodecKind::container) {
    return detail::container_text<T>(enclosing);
  } else if constexpr (kind == CodecKind::record) {
    return detail::record_text<T>(enclosing);
  } else {
    return "object";
  }
}

/// The name of a column's type; `Row` is the row it is in.
template <class T, class Row>
std::string type_text_in() {
  Enclosing enclosing{&identity_of<Row>};
  return detail::type_text<T>(enclosing);
}

}  // namespace keyfold::detail

/// Sequences of feeds as bytes. Only the feeds of a program know their types; so what a feed makes also knows
/// how to write itself, and files keep sequences as bytes beside the name of their type until a feed asks for
/// them. docs/file-format.md has the bytes.
namespace keyfold::detail {

// --- Types that can be saved: asked for every feed, whether or not anybody saves its table

template <class... Enclosing>
struct Savable {
  template <class T>
  static consteval bool is() {
    using enum CodecKind;
    constexpr CodecKind kind = codec_kind_v<T>;
    if constexpr ((std::same_as<T, Enclosing> || ...)) {
      return true;
    } else if constexpr (kind == none || kind == wrapper) {
      return false;
    } else if constexpr (kind == object) {
      return UserSerialized<T> &&
             boost::serialization::tracking_level<T>::value != boost::serialization::track_always &&
             boost::serialization::implementation_level<T>::value >=
                 boost::serialization::object_serializable;
    } else if constexpr (kind == duration) {
      return is<typename T::rep>();
    } else if constexpr (kind == time_point) {
      return is<typename T::duration>();
    } else if constexpr (kind == optional) {
      return is<typename T::value_type>();
    } else if constexpr (kind == array) {
      return is<typename array_traits<T>::element>();
    } else if constexpr (kind == tuple || kind == variant) {
      return all_of<T>::value;
    } else if constexpr (kind == container) {
      return std::default_initializable<element_t<T>> && is<element_t<T>>();
    } else if constexpr (kind == record) {
      return Savable<T, Enclosing...>::are_columns(columns_list<T>{});
    } else {
      return true;
    }
  }

  template <auto... Members>
  static consteval bool are_columns(MemberList<Members...>) {
    return (is_column<Members>() && ...);
  }

 private:
  template <auto Member>
  static consteval bool is_column() {
    if constexpr (is_data_member<Member>) {
      return !std::is_const_v<member_t<Member>> && is<member_t<Member>>();
    } else {
      return false;
    }
  }

  template <class T>
  struct all_of;
  template <template <class...> class Template, class... T>
  struct all_of<Template<T...>> {
    static constexpr bool value = (is<T>() && ...);
  };
};

template <class T>
concept SavableSequence = std::default_initializable<T> && Savable<>::is<T>();

/// The type as files name it. Throws UnsavableSequence.
template <class T>
std::string sequence_text() {
  if constexpr (SavableSequence<T>) {
    Enclosing none;
    return detail::type_text<T>(none);
  } else {
    throw UnsavableSequence();
  }
}

/// The same for messages.
template <class T>
std::string sequence_name() {
  if constexpr (SavableSequence<T>) {
    return detail::sequence_text<T>();
  } else {
    return "a class that files have no name for";
  }
}

// --- The sequences of a key

enum SequenceFlag : unsigned {
  has_set = 1,
  has_erased = 2,
  has_base = 4,
  base_was_fed = 8,
  has_columns = 16,
  all_sequence_flags = 31
};

/// What files have of a key beside the key.
struct StoredKey {
  bool live = false;
  Timestamp erased_at{};
  std::span<const std::byte> sequences{};
};

/// Refers to `out`, or to the value.
template <class Seq>
StoredKey stored_key_of(const KeySequences<Seq>& value, ByteBuffer& out) {
  out.clear();
  if constexpr (SavableSequence<Seq>) {
    const unsigned flags = (value.set ? has_set : 0U) | (value.erased ? has_erased : 0U) |
                           (value.base ? has_base : 0U) | (value.fed ? base_was_fed : 0U) |
                           (value.columns.empty() ? 0U : has_columns);
    detail::put_u8(out, static_cast<std::uint8_t>(flags));
    Encoder encoder(out);
    for (const std::optional<Seq>* part : {&value.set, &value.erased, &value.base}) {
      if (*part) encoder.put(**part);
    }
    for (const std::optional<Seq>& column : value.columns) encoder.put(column);
    return {value.live, value.erased_at, out.bytes()};
  } else {
    throw UnsavableSequence();
  }
}
inline StoredKey stored_key_of(const KeySequences<StoredSequence>& value, ByteBuffer&) {
  return {value.live, value.erased_at, std::as_bytes(std::span(value.bytes))};
}

/// The bytes of one sequence.
template <class Seq>
std::string stored_sequence(const Seq& value) {
  if constexpr (std::same_as<Seq, StoredSequence>) {
    return value.bytes;
  } else if constexpr (SavableSequence<Seq>) {
    ByteBuffer out;
    Encoder(out).put(value);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  } else {
    throw UnsavableSequence();
  }
}

inline void check_sequence_flags(const ByteReader& in, unsigned flags, bool live) {
  if (flags > all_sequence_flags) in.fail("what is remembered of a key has unknown flags");
  if ((flags & base_was_fed) != 0 && (flags & has_base) == 0) in.fail("a first upsert is missing");
  if (!live && flags != has_erased) in.fail("a deleted key is remembered with something else than its end");
}

template <class Seq>
Seq get_sequence(Decoder& decoder) {
  Seq value{};
  decoder.get(value);
  if (detail::is_nan(value)) decoder.in().fail("a sequence is NaN");
  return value;
}

/// Reads the sequences of a key of a row with so many columns. Throws DecodeError.
template <class Seq>
KeySequences<Seq> sequences_of(const KeySequences<StoredSequence>& stored, std::size_t columns) {
  ByteReader in(std::as_bytes(std::span(stored.bytes)));
  Decoder decoder(in);
  const unsigned flags = detail::get_u8(in);
  detail::check_sequence_flags(in, flags, stored.live);
  KeySequences<Seq> value;
  value.live = stored.live;
  value.erased_at = stored.erased_at;
  value.fed = (flags & base_was_fed) != 0;
  if ((flags & has_set) != 0) value.set = detail::get_sequence<Seq>(decoder);
  if ((flags & has_erased) != 0) value.erased = detail::get_sequence<Seq>(decoder);
  if ((flags & has_base) != 0) value.base = detail::get_sequence<Seq>(decoder);
  if ((flags & has_columns) != 0) {
    value.columns.resize(columns);
    for (std::optional<Seq>& column : value.columns) {
      if (detail::get_flag(in)) column = detail::get_sequence<Seq>(decoder);
    }
  }
  assert(in.left() == 0);  // the SequenceChecker has seen to it
  return value;
}
template <class Seq>
Seq sequence_of(const StoredSequence& stored) {
  ByteReader in(std::as_bytes(std::span(stored.bytes)));
  Decoder decoder(in);
  Seq value = detail::get_sequence<Seq>(decoder);
  assert(in.left() == 0);
  return value;
}

}  // namespace keyfold::detail

// snapshot_error

/// What can go wrong with a snapshot beside IoError and UnsupportedFormat. All of it derives from `Error`.
namespace keyfold {

/// A snapshot is not as it was written, or is none. Nothing of it was loaded.
class CorruptSnapshot : public Error {
 public:
  CorruptSnapshot(std::string damaged_file, std::uint64_t damaged_offset, const std::string& what_is_wrong)
      : Error("the snapshot '" + damaged_file + "' cannot be believed, seen at byte " +
              std::to_string(damaged_offset) + ": " + what_is_wrong + "; load another copy of it"),
        file(std::move(damaged_file)),
        offset(damaged_offset) {}

  /// A file that never was a snapshot, for which `reason` is given.
  static CorruptSnapshot no_snapshot(std::string other_file, const std::string& reason) {
    return {"'" + other_file + "' is no snapshot of keyfold: " + reason +
                "; check the path: load() reads what save() wrote, Store::open() the directory of a store",
            std::move(other_file)};
  }

  std::string file;      ///< "<stream>" for a stream
  std::uint64_t offset;  ///< where something is wrong, or where the part begins whose checksum is

 private:
  CorruptSnapshot(const std::string& message, std::string other_file)
      : Error(message), file(std::move(other_file)), offset(0) {}
};

/// The rows that were stored are not made of the columns that the program's rows have.
class SchemaMismatch : public Error {
 public:
  SchemaMismatch(std::string column_name, std::string stored_type, std::string program_type,
                 const std::string& what_to_do)
      : Error("column '" + column_name + "' is stored as " + stored_type + " and the program has " +
              program_type + "; " + what_to_do),
        column(std::move(column_name)),
        stored(std::move(stored_type)),
        program(std::move(program_type)) {}

  std::string column;   ///< "<key>" if the tables have different keys, "<row>" if the rows differ as a whole
  std::string stored;   ///< type of the column in the file, as docs/file-format.md writes types
  std::string program;  ///< type of the column in the program; "no such column" if it has none
};

/// The progress callback of save() or load() asked to stop. Nothing was saved, or loaded.
class Cancelled : public Error {
 public:
  explicit Cancelled(const std::string& what_was_done)
      : Error(what_was_done + " was cancelled by its progress callback; nothing of it is left") {}
};

}  // namespace keyfold

/// What apply_changes() remembers for current rows (SCD type 1): for each key the sequences that its row
/// cannot show, and the deletes of keys that no row has.
namespace keyfold::detail {

/// The type of the sequences of a state.
template <class Seq>
struct SequenceOrigin {
  static std::string type() { return detail::sequence_text<Seq>(); }
  static std::string name() { return detail::sequence_name<Seq>(); }
};

/// Nobody has claimed them: what the file says, and which file, should they prove wrong.
template <>
struct SequenceOrigin<StoredSequence> {
  std::string text{};
  std::string file{};
  std::uint64_t offset = 0;
  bool of_log = false;

  const std::string& type() const noexcept { return text; }
  const std::string& name() const noexcept { return text; }

  [[noreturn]] void refuse(const std::string& what_is_wrong) const {
    if (of_log) throw CorruptJournal(file, offset, what_is_wrong);
    throw CorruptSnapshot(file, offset, what_is_wrong);
  }
};

/// A state of current rows, whatever the type of its sequences: what files see of it.
template <class Key>
class AnyCurrentState : public SequenceState {
 public:
  using Visit = std::function<void(const Key&, const StoredKey&)>;

  // Each throws UnsavableSequence.

  /// The type of the sequences, as files name it.
  virtual std::string type() const = 0;
  virtual std::optional<std::string> stored_truncate() const = 0;
  /// First the tombstones, in the order in which they came in.
  virtual void for_each_stored(const Visit& visit) const = 0;

  virtual std::size_t size() const noexcept = 0;
};

/// Likewise a change of it.
template <class Key>
class AnyCurrentUpdate : public SequenceUpdate {
 public:
  /// No StoredKey: the key is forgotten.
  using Visit = std::function<void(const Key&, const StoredKey*)>;

  virtual std::string type() const = 0;
  virtual std::optional<std::string> stored_truncate() const = 0;
  virtual void for_each_stored(const Visit& visit) const = 0;

  virtual std::size_t size() const noexcept = 0;
  virtual bool has_columns() const noexcept = 0;

  std::size_t keep = static_cast<std::size_t>(-1);  // so many tombstones
  Timestamp keep_since = Timestamp::min();          // those that came in from then on
};

template <class Key, class Seq>
class CurrentState final : public AnyCurrentState<Key> {
 public:
  using States = KeyedStates<Key, KeySequences<Seq>>;
  using Item = typename States::Item;

  std::unique_ptr<SequenceState> clone() const override {
    auto copy = std::make_unique<CurrentState>();
    copy->origin = origin;
    for (const Item* item = oldest_; item != nullptr; item = item->newer) copy->put(copy_of(*item));
    keys.for_each([&](const Item& item) {
      if (item.value.live) copy->put(copy_of(item));
    });
    if (truncated != nullptr) copy->truncated = std::make_unique<const Seq>(*truncated);
    return copy;
  }

  std::size_t bytes() const noexcept override {
    return keys.bytes() + (truncated != nullptr ? sizeof(Seq) : 0);
  }

  std::string describe() const override { return "current rows by " + std::string(origin.name()); }

  std::string type() const override { return origin.type(); }
  std::optional<std::string> stored_truncate() const override {
    return truncated != nullptr ? std::optional(detail::stored_sequence(*truncated)) : std::nullopt;
  }
  void for_each_stored(const typename AnyCurrentState<Key>::Visit& visit) const override {
    ByteBuffer buffer;
    for (const Item* item = oldest_; item != nullptr; item = item->newer)
      visit(item->key, detail::stored_key_of(item->value, buffer));
    keys.for_each([&](const Item& item) {
      if (item.value.live) visit(item.key, detail::stored_key_of(item.value, buffer));
    });
  }
  std::size_t size() const noexcept override { return keys.size(); }

  /// What a file has, if it is of this sort; rows have so many columns. Throws FeedMismatch, and
  /// CorruptSnapshot or CorruptJournal for sequences that no feed can have left.
  static std::unique_ptr<CurrentState> claim(const SequenceState& known, std::size_t columns) {
    const auto* const stored = dynamic_cast<const CurrentState<Key, StoredSequence>*>(&known);
    if constexpr (SavableSequence<Seq>) {
      if (stored != nullptr && stored->origin.text == SequenceOrigin<Seq>::type())
        return decoded(*stored, columns);
    }
    throw FeedMismatch(known.describe(), CurrentState().describe());
  }

  /// Strong guarantee.
  void put(std::unique_ptr<Item> item) {
    keys.reserve_one(item->hash);
    add(std::move(item));
  }
  void add(std::unique_ptr<Item> item) noexcept { link(keys.add(std::move(item))); }
  void replace(Item& old, std::unique_ptr<Item> fresh) noexcept {
    unlink(old);
    link(keys.replace(old, std::move(fresh)));
  }
  void drop(Item& item) noexcept {
    unlink(item);
    keys.drop(item);
  }

  std::size_t tombstones() const noexcept { return tombstones_; }
  Item* oldest() const noexcept { return oldest_; }

  /// Forgets tombstones but so many, and those that came in before a time.
  void forget(std::size_t keep, Timestamp since) noexcept {
    while (tombstones() > keep || (oldest() != nullptr && oldest()->value.erased_at < since)) drop(*oldest());
  }

  States keys;
  std::unique_ptr<const Seq> truncated;  // the newest truncate
  [[no_unique_address]] SequenceOrigin<Seq> origin;

 private:
  static std::unique_ptr<CurrentState> decoded(const CurrentState<Key, StoredSequence>& stored,
                                               std::size_t columns) {
    try {
      auto made = std::make_unique<CurrentState>();
      const auto add = [&](const auto& item) {
        made->put(std::make_unique<Item>(
            Item{item.key, detail::sequences_of<Seq>(item.value, columns), item.hash}));
      };
      for (const auto* item = stored.oldest(); item != nullptr; item = item->newer) add(*item);
      stored.keys.for_each([&](const auto& item) {
        if (item.value.live) add(item);
      });
      if (stored.truncated != nullptr)
        made->truncated = std::make_unique<const Seq>(detail::sequence_of<Seq>(*stored.truncated));
      return made;
    } catch (const DecodeError& error) {
      stored.origin.refuse(error.what());
    }
  }

  static std::unique_ptr<Item> copy_of(const Item& item) {
    return std::make_unique<Item>(Item{item.key, item.value, item.hash});
  }

  // Tombstones stand in a list, in the order in which they came in.
  void link(Item& item) noexcept {
    if (item.value.live) return;
    item.older = newest_;
    (newest_ != nullptr ? newest_->newer : oldest_) = &item;
    newest_ = &item;
    ++tombstones_;
  }
  void unlink(Item& item) noexcept {
    if (item.value.live) return;
    (item.older != nullptr ? item.older->newer : oldest_) = item.newer;
    (item.newer != nullptr ? item.newer->older : newest_) = item.older;
    --tombstones_;
  }

  Item* oldest_ = nullptr;
  Item* newest_ = nullptr;
  std::size_t tombstones_ = 0;
};

/// The change that a feed makes to that state.
template <class Key, class Seq>
class CurrentUpdate final : public AnyCurrentUpdate<Key> {
 public:
  using State = CurrentState<Key, Seq>;
  using Item = typename State::Item;

  void stage(std::unique_ptr<SequenceState>& place) override {
    if (place == nullptr && made == nullptr) made = std::make_unique<State>();
    state_ = made != nullptr ? made.get() : static_cast<State*>(place.get());
    state_->keys.reserve_for(changes);
    place_ = &place;
  }

  void publish() noexcept override {
    if (made != nullptr) *place_ = std::move(made);
    for (ItemChange<Item>& change : changes) {
      if (change.fresh == nullptr) {
        state_->drop(*change.old);
      } else if (change.old == nullptr) {
        state_->add(std::move(change.fresh));
      } else {
        state_->replace(*change.old, std::move(change.fresh));
      }
    }
    if (truncated != nullptr) state_->truncated = std::move(truncated);
    state_->forget(this->keep, this->keep_since);
  }

  std::string type() const override { return SequenceOrigin<Seq>::type(); }
  std::optional<std::string> stored_truncate() const override {
    return truncated != nullptr ? std::optional(detail::stored_sequence(*truncated)) : std::nullopt;
  }
  void for_each_stored(const typename AnyCurrentUpdate<Key>::Visit& visit) const override {
    ByteBuffer buffer;
    for (const ItemChange<Item>& change : changes) {
      if (change.fresh == nullptr) {
        visit(change.old->key, nullptr);
      } else {
        const StoredKey stored = detail::stored_key_of(change.fresh->value, buffer);
        visit(change.fresh->key, &stored);
      }
    }
  }
  std::size_t size() const noexcept override { return changes.size(); }
  bool has_columns() const noexcept override {
    return std::ranges::any_of(changes, [](const ItemChange<Item>& change) {
      return change.fresh != nullptr && !change.fresh->value.columns.empty();
    });
  }

  std::vector<ItemChange<Item>> changes;
  std::unique_ptr<const Seq> truncated;
  std::unique_ptr<State> made;  // the state, if the table has none of this type

 private:
  State* state_ = nullptr;
  std::unique_ptr<SequenceState>* place_ = nullptr;
};

}  // namespace keyfold::detail

// detail/current_ties

/// The events of a feed for current rows and what they have made of each key, and the check of
/// on_tie(reject).
namespace keyfold::detail {

enum class EventKind : std::uint8_t { upsert, erase, truncate };

/// An event of a feed for current rows.
template <class Pointer, class Seq>
struct CurrentEvent {
  Pointer row;
  Position position;
  EventKind kind;
  Seq at;
};

/// What has become of a key so far.
template <class Row, class Pointer, class Seq, class Item>
struct CurrentProgress {
  using Event = CurrentEvent<Pointer, Seq>;

  const Slot<Row>* slot = nullptr;  // its row in the table
  Pointer first = nullptr;          // an event that names the key, if no row does
  Item* item = nullptr;             // what is remembered of it
  std::uint64_t hash = 0;
  KeySequences<Seq> now{};
  bool dirty = false;               // `now` differs from what is remembered
  Position died = no_position;      // the delete or truncate that counts last
  bool by_truncate = false;         // it was a truncate that took the row away
  bool fresh = false;               // the row starts from the defaults
  bool touched = false;             // the row is another one now
  const Event* winner = nullptr;    // the event that makes the whole of the row
  std::optional<Row> row{};         // the row as it is put together column by column
  std::size_t effective = 0;        // events that were not late
  Position position = no_position;  // of the last of them
  std::optional<Seq> known_set{};   // of `now`, before the feed; only to reject ties
  std::optional<Seq> known_erased{};
  std::vector<const Event*> events{};  // likewise
};

/// The key of a progress as it is remembered.
template <class CoreType, class Key, class Progress>
auto stored_key(const Progress& key) {
  if (key.slot != nullptr) return Key::stored(CoreType::key_of(key.slot->get()));
  const auto named = Key::of(*key.first);
  return detail::naming_row([&] { return RowName{detail::key_text(named), key.position}; },
                            [&] { return Key::stored(named); });
}

/// Refuses equal sequences of a key: in a feed, and between a feed and what is remembered of earlier ones,
/// that is of each key the newest upsert and delete, and the newest truncate. A truncate is an event of every
/// key.
template <class CoreType, class Key, class Event, class Progress, class State>
class CurrentTies {
 public:
  using Seq = decltype(Event::at);

  explicit CurrentTies(const State* state) noexcept : state_(state) {}

  /// Throws SequenceTie if the truncate `event` is equal to another one.
  static void refuse_truncate(const Seq& at, Position position, const Event& event) {
    if (detail::same_sequence(at, event.at))
      detail::refuse_tie("every key", detail::literal_text(event.at), position, event.position);
  }

  /// An event of a key: throws SequenceTie if it is equal to one that is remembered.
  void note(Progress& key, const Event& event) const {
    refuse_known(key.known_set, event);
    refuse_known(key.known_erased, event);
    if (state_ != nullptr && state_->truncated != nullptr)
      refuse_known(std::optional<Seq>(*state_->truncated), event);
    key.events.push_back(&event);
  }

  /// All events are noted. `visited(item)`: whether the feed names a key that is remembered.
  template <class Events, class Keys, class Visited>
  void refuse(const Events& events, Keys& keys, Visited visited) const {
    const std::vector<const Event*> truncates = sorted_truncates(events);
    for (std::size_t i = 1; i < truncates.size(); ++i)
      refuse_truncate(truncates[i - 1]->at, truncates[i - 1]->position, *truncates[i]);
    if (!truncates.empty()) refuse_truncates_of_known(truncates, keys, visited);
    for (Progress& key : keys) refuse_within(key, truncates);
  }

 private:
  static constexpr auto earlier = [](const Event* a, const Event* b) {
    return detail::less_values(a->at, b->at);
  };

  static void refuse_known(const std::optional<Seq>& known, const Event& event) {
    if (known && detail::same_sequence(*known, event.at)) refuse_pair(no_position, event);
  }
  static void refuse_pair(Position first, const Event& second) {
    detail::refuse_tie(detail::key_text(Key::of(*second.row)), detail::literal_text(second.at), first,
                       second.position);
  }

  template <class Events>
  static std::vector<const Event*> sorted_truncates(const Events& events) {
    std::vector<const Event*> truncates;
    for (const Event& event : events) {
      if (event.kind == EventKind::truncate) truncates.push_back(&event);
    }
    std::ranges::stable_sort(truncates, earlier);
    return truncates;
  }

  static void refuse_within(Progress& key, const std::vector<const Event*>& truncates) {
    std::ranges::stable_sort(key.events, earlier);
    for (std::size_t i = 0; i < key.events.size(); ++i) {
      const Event& event = *key.events[i];
      if (i != 0 && !earlier(key.events[i - 1], &event)) refuse_pair(key.events[i - 1]->position, event);
      const auto truncate = std::ranges::lower_bound(truncates, &event, earlier);
      if (truncate != truncates.end() && !earlier(&event, *truncate))
        refuse_pair((*truncate)->position, event);
    }
  }

  // The keys that the feed names, and those that are remembered only.
  template <class Keys, class Visited>
  void refuse_truncates_of_known(const std::vector<const Event*>& sorted, const Keys& keys,
                                 Visited visited) const {
    const auto refuse_one = [&](const std::optional<Seq>& known, const auto& key) {
      if (!known) return;
      const auto found = std::ranges::lower_bound(sorted, *known, seq_less, at_of);
      if (found == sorted.end() || !detail::same_sequence((*found)->at, *known)) return;
      detail::refuse_tie(detail::key_text(key()), detail::literal_text(*known), no_position,
                         (*found)->position);
    };
    for (const Progress& progress : keys) {
      const auto key = [&] { return detail::stored_key<CoreType, Key>(progress); };
      refuse_one(progress.known_set, key);
      refuse_one(progress.known_erased, key);
    }
    if (state_ == nullptr) return;
    state_->keys.for_each([&](const typename State::Item& item) {
      if (visited(item)) return;
      const auto key = [&]() -> const auto& { return item.key; };
      refuse_one(item.value.set, key);
      refuse_one(item.value.erased, key);
    });
  }

  static constexpr auto seq_less = [](const Seq& a, const Seq& b) { return detail::less_values(a, b); };
  static constexpr auto at_of = [](const Event* event) -> const Seq& { return event->at; };

  const State* state_;
};

}  // namespace keyfold::detail

// detail/source_rows

/// Reading a source range exactly once, as pointers to its rows.
namespace keyfold::detail {

template <class Range>
inline constexpr bool is_array_v = false;
template <class T, std::size_t size>
inline constexpr bool is_array_v<std::array<T, size>> = true;

/// Containers, whose elements go with them. Of other ranges it cannot be known whose the elements are.
template <class Range>
concept OwnsElements = is_array_v<Range> || requires { typename Range::allocator_type; };

/// Whether a row of type T can be taken for one of type Source.
template <class T, class Source>
concept SourceRow = std::same_as<T, Source> || std::derived_from<T, Source>;

/// `Declared` is the type by which the merge holds its source: a reference for an lvalue.
template <class Declared, class Source>
struct SourceTraits {
  using Range = std::remove_reference_t<Declared>;
  using Reference = std::ranges::range_reference_t<Range>;

  /// Rows that stay where they are while the range lives; others are taken out one by one.
  static constexpr bool stable = std::ranges::forward_range<Range> && std::is_lvalue_reference_v<Reference> &&
                                 SourceRow<std::remove_cvref_t<Reference>, Source>;

  /// Rows that belong to the merge, so that they may be moved from.
  static constexpr bool movable = !stable || (!std::is_reference_v<Declared> && OwnsElements<Range> &&
                                              !std::is_const_v<std::remove_reference_t<Reference>>);

  using Pointer = std::conditional_t<movable, Source*, const Source*>;
};

/// All rows of a source at once; what the duplicate policies need.
template <class Declared, class Source>
class AllRows {
 public:
  using Traits = SourceTraits<Declared, Source>;

  explicit AllRows(typename Traits::Range& range) {
    for (auto&& row : range) {
      if constexpr (Traits::stable) {
        pointers.push_back(std::addressof(row));
      } else {
        pointers.push_back(std::addressof(rows_.emplace_back(std::forward<decltype(row)>(row))));
      }
    }
  }

  List<typename Traits::Pointer> pointers;

 private:
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<Traits::stable, Nothing, std::deque<Source>> rows_;
};

/// How many rows there is to be room for. The size of a source that does not lie in memory may be no more
/// than a promise.
template <class Declared, class Source>
std::size_t rows_to_expect([[maybe_unused]] typename SourceTraits<Declared, Source>::Range& range) {
  using Range = typename SourceTraits<Declared, Source>::Range;
  if constexpr (std::ranges::sized_range<Range>) {
    constexpr bool in_memory = std::ranges::contiguous_range<Range>;
    constexpr std::size_t most_on_trust = 65'536;
    const auto size = static_cast<std::size_t>(std::ranges::size(range));
    return in_memory ? size : std::min(size, most_on_trust);
  } else {
    return 0;
  }
}

/// The row of upsert(row).
template <class Range>
inline constexpr bool is_one_row = false;
template <class Row>
inline constexpr bool is_one_row<std::array<Row, 1>> = true;

/// So many rows are looked up at once that the cache misses of their lookups overlap.
inline constexpr std::size_t block_size = 32;

/// Hands the rows of a source to `take(pointers, first_position)` in blocks of at most `block_size`.
template <class Declared, class Source>
void for_each_block(
    typename SourceTraits<Declared, Source>::Range& range,
    FunctionRef<void(std::span<const typename SourceTraits<Declared, Source>::Pointer>, Position)> take) {
  using Traits = SourceTraits<Declared, Source>;
  std::vector<std::optional<Source>> rows;  // never grows, so that they stay where they are
  if constexpr (!Traits::stable) rows.reserve(block_size);
  std::array<typename Traits::Pointer, block_size> block;
  std::size_t size = 0;
  Position position = 0;
  const auto flush = [&] {
    take(std::span(block.data(), size), position);
    position += size;
    size = 0;
    rows.clear();
  };
  for (auto&& row : range) {
    if constexpr (Traits::stable) {
      block[size] = std::addressof(row);
    } else {
      block[size] = std::addressof(*rows.emplace_back(std::in_place, std::forward<decltype(row)>(row)));
    }
    if (++size == block_size) flush();
  }
  if (size != 0) flush();
}

}  // namespace keyfold::detail

/// Planning apply_changes() for current rows (SCD type 1).
///
/// The state of a key is a function of the set of its events, whatever their order: the newest delete, and of
/// each column the newest upsert after that delete. So events are taken as they come, each against the
/// sequences that are known so far.
namespace keyfold::detail {

template <class CoreType, class Feed, class Declared>
class CurrentPlanner {
 public:
  using Row = typename CoreType::RowType;
  using Source = typename Feed::Source;
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;
  using Key = FeedKey<Feed, typename CoreType::KeyParts>;
  using Sequences = FeedSequences<Feed>;
  using Seq = typename Sequences::type;
  using Columns = FeedRow<Feed, Key>;
  using State = CurrentState<typename Key::Stored, Seq>;
  using Item = typename State::Item;
  using Update = CurrentUpdate<typename Key::Stored, Seq>;

  CurrentPlanner(const CoreType& core, const Feed& feed, Plan<Row>& plan)
      : core_(core), feed_(feed), plan_(plan) {}

  void run(typename Traits::Range& range) {
    find_state();
    AllRows<Declared, Source> all(range);
    read_events(all.pointers);
    if (truncate_ != nullptr) visit_table();
    for (const Event& event : events_) take(event);
    if constexpr (rejects_ties)
      Ties(state_).refuse(events_, keys_, [this](const Item& item) { return visited(item); });
    remember_keys();
    for (Progress& key : keys_) finish(key);
    drop_truncated();
    keep_state();
    assert(plan_.source_rows_add_up());
  }

 private:
  using Kind = EventKind;
  using Event = CurrentEvent<Pointer, Seq>;
  using Progress = CurrentProgress<Row, Pointer, Seq, Item>;
  using Ties = CurrentTies<CoreType, Key, Event, Progress, State>;

  static constexpr bool by_column = Columns::ignores_nulls;
  static constexpr bool resets_columns = by_column || Columns::keeps_columns;
  static constexpr bool rejects_ties = Feed::template has<FeedPart::ties>;
  static constexpr std::size_t columns = column_count<Row>;

  Metrics& metrics() noexcept { return plan_.metrics; }

  void find_state() {
    if (core_.sequence_state() == nullptr) return;
    state_ = dynamic_cast<const State*>(core_.sequence_state());
    if (state_ != nullptr) return;
    change().made = State::claim(*core_.sequence_state(), columns);
    state_ = change().made.get();
  }

  // --- Events

  void read_events(const List<Pointer>& rows) {
    events_.reserve(rows.size());
    for (const Pointer row : rows) {
      const Position position = events_.size();
      events_.push_back({row, position, kind_of(*row), Sequences::of(*row, position)});
      const Event& event = events_.back();
      if (event.kind == Kind::truncate) read_truncate(event);
    }
    if (truncate_ != nullptr && !late(truncate_->at)) return;
    truncate_ = nullptr;
  }

  Kind kind_of(const Source& event) const {
    if (detail::event_is<FeedPart::truncates>(feed_, event)) return Kind::truncate;
    return detail::event_is<FeedPart::deletes>(feed_, event) ? Kind::erase : Kind::upsert;
  }

  // Of all truncates only the newest counts.
  void read_truncate(const Event& event) {
    if constexpr (rejects_ties) {
      if (state_ != nullptr && state_->truncated != nullptr)
        Ties::refuse_truncate(*state_->truncated, no_position, event);
    }
    if (truncate_index_ == no_position || !detail::less_values(event.at, events_[truncate_index_].at))
      truncate_index_ = event.position;
    truncate_ = &events_[truncate_index_];
  }

  // The truncate that an event at this position meets, or null.
  const Seq* truncated_at(Position position) const noexcept {
    if (truncate_ != nullptr && truncate_->position < position) return &truncate_->at;
    return state_ != nullptr ? state_->truncated.get() : nullptr;
  }
  bool late(const Seq& at, Position position = 0) const {
    const Seq* truncated = truncated_at(position);
    return truncated != nullptr && detail::less_values(at, *truncated);
  }

  void take(const Event& event) {
    ++metrics().source_rows;
    if (event.kind == Kind::truncate) {
      take_truncate(event);
      return;
    }
    const auto key = Key::of(*event.row);
    detail::require_valid_key(typename Key::SourceParts{}, key, event.position);
    const std::uint64_t hash = detail::hash_of(key);
    Progress& progress = progress_of(key, hash, event.row, [&] { return core_.find(key, hash); });
    if constexpr (rejects_ties) Ties(state_).note(progress, event);
    const bool effective = !late(event.at, event.position) &&
                           (event.kind == Kind::erase ? erase(progress, event) : upsert(progress, event));
    if (!effective) {
      ++metrics().dropped_late;
      return;
    }
    ++progress.effective;
    progress.position = event.position;
  }

  void take_truncate(const Event& event) {
    if (&event == truncate_) {
      ++metrics().skipped;
      for (Progress& progress : keys_) {
        if (erase(progress, event) && !progress.now.live) progress.by_truncate = true;
      }
    } else if (overtaken(event)) {
      ++metrics().dropped_duplicates;
    } else {
      ++metrics().dropped_late;
    }
  }

  // A truncate that counted when it came, before a newer one did.
  bool overtaken(const Event& event) const {
    return truncate_ != nullptr && event.position < truncate_->position && !late(event.at);
  }

  // --- Keys

  template <class KeyTuple, class FindSlot>
  Progress& progress_of(const KeyTuple& key, std::uint64_t hash, Pointer event, FindSlot find_slot) {
    Progress* known = index_.find(hash, [&](const Progress& other) {
      return other.slot != nullptr ? detail::equal_values(CoreType::key_of(other.slot->get()), key)
                                   : detail::equal_values(Key::of(*other.first), key);
    });
    if (known != nullptr) return *known;
    index_.reserve_one(hash);
    Progress& made = keys_.emplace_back();
    made.slot = find_slot();
    made.first = event;
    made.hash = hash;
    if (state_ != nullptr) made.item = state_->keys.find(key, hash);
    start(made);
    index_.insert(hash, &made);
    return made;
  }

  // What is known of a key before the feed: rows may have come and gone by other writes.
  void start(Progress& key) {
    if (key.item != nullptr) key.now = key.item->value;
    if (key.slot == nullptr) {
      if (key.now.live) lose_row(key.now);
    } else {
      see_row(key);
    }
    if constexpr (rejects_ties) {
      key.known_set = key.now.set;
      key.known_erased = key.now.erased;
    }
  }

  // Another write took the row away: as a delete right after the newest upsert.
  static void lose_row(KeySequences<Seq>& now) {
    std::optional<Seq> at = std::max(now.erased, now.set, before_optional);
    now = {};
    now.erased = std::move(at);
  }

  // Another write may have brought the row, or a newer one.
  static void see_row(Progress& key) {
    KeySequences<Seq>& now = key.now;
    bool brought = !now.live;
    now.live = true;
    if constexpr (row_shows_sequence) {
      const std::optional<Seq> shown = Sequences::of_row(key.slot->get());
      if (shown && before(now.set, *shown)) {
        now.set = shown;
        brought = true;
      }
    }
    if (!brought) return;
    now.columns.clear();
    now.base = now.set;
    now.fed = false;
  }

  static bool before_optional(const std::optional<Seq>& a, const std::optional<Seq>& b) {
    return b && before(a, *b);
  }

  static constexpr bool row_shows_sequence = [] {
    if constexpr (Sequences::in_rows) {
      return Sequences::all_copied([]<auto Member>() {
        return Columns::template copied<row_sequence_member<Member, Row, Source>()>();
      });
    } else {
      return false;
    }
  }();

  /// A truncate concerns every row.
  void visit_table() {
    for (const Slot<Row>& slot : core_.scan()) {
      const auto key = CoreType::key_of(slot.get());
      progress_of(key, detail::hash_of(key), nullptr, [&] { return &slot; });
    }
  }

  // --- The rules; each returns whether the event made a difference

  bool erase(Progress& key, const Event& event) {
    KeySequences<Seq>& now = key.now;
    const Seq& at = event.at;
    if (now.erased && detail::less_values(at, *now.erased)) return false;
    const bool again = told_again(now, event);
    if (!now.live || (again ? ties(now.set, at) : not_after(now.set, at))) {
      now.kill(at);
      key.dirty = key.fresh = true;
      key.died = event.position;
      key.by_truncate = false;
      key.winner = nullptr;
      key.row.reset();
      return true;
    }
    if constexpr (resets_columns) {
      if (!again) {
        now.erased = at;
        key.dirty = true;
      }
      return reset_columns(key, at, again);
    } else {
      return false;  // the row was made after it
    }
  }

  // A delete that is known took away what there was when it came; the rest is newer, whoever brought it.
  bool told_again(const KeySequences<Seq>& now, const Event& event) const {
    if (event.kind == Kind::truncate && state_ != nullptr && state_->truncated != nullptr &&
        detail::same_sequence(*state_->truncated, event.at))
      return true;
    return ties(now.erased, event.at);
  }
  static bool ties(const std::optional<Seq>& known, const Seq& at) {
    return known && detail::same_sequence(*known, at);
  }

  bool upsert(Progress& key, const Event& event) {
    KeySequences<Seq>& now = key.now;
    if (now.erased && detail::less_values(event.at, *now.erased)) return false;
    begin(key, event.at);
    if constexpr (by_column) {
      return naming_event(event, [&] { return upsert_columns(key, event); });
    } else {
      if (now.live && !not_after(now.set, event.at)) return false;
      if (!now.columns.empty()) set_all_columns(key, event.at);
      set(key, event);
      key.winner = &event;
      return true;
    }
  }

  // The row begins with the oldest upsert that is known, however late that comes.
  static void begin(Progress& key, const Seq& at) {
    KeySequences<Seq>& now = key.now;
    if (now.live && !(now.fed && detail::less_values(at, *now.base))) return;
    now.base = at;
    now.fed = key.dirty = true;
  }

  void set(Progress& key, const Event& event) {
    key.now.live = true;
    key.now.set = event.at;
    key.dirty = key.touched = true;
    key.by_truncate = false;
  }

  bool upsert_columns(Progress& key, const Event& event) {
    KeySequences<Seq>& now = key.now;
    spread(key);
    open_row(key, *event.row);
    bool effective = !now.live || not_after(now.set, event.at);
    if (effective) set(key, event);
    Columns::for_each_copied(*event.row, [&]<auto Member, std::size_t I>(bool given) {
      if (!given || !not_after(now.columns[I], event.at)) return;
      Columns::template assign_given<Member>(*key.row, *event.row);
      now.columns[I] = event.at;
      effective = key.dirty = key.touched = true;
    });
    return effective;
  }

  // --- Columns

  // From here on each column has its own sequence.
  void spread(Progress& key) {
    if (!key.now.columns.empty()) return;
    key.now.columns.resize(columns);
    if (!key.now.live) return;
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      if constexpr (Columns::template copied<Member>()) key.now.columns[I] = key.now.set;
    });
  }

  void set_all_columns(Progress& key, const Seq& at) {
    if constexpr (HasColumns<Row>) {
      detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
        if constexpr (Columns::template copied<Member>()) key.now.columns[I] = at;
      });
    }
  }

  // Lets the row be put together. Requires: by_column.
  void open_row(Progress& key, const Source& event) {
    if (key.row) return;
    if (key.slot != nullptr && !key.fresh) {
      key.row = key.slot->get();
    } else {
      key.row.emplace();
      Columns::set_key(*key.row, event);
    }
  }

  // A delete came after newer upserts: what is older than it goes back to the defaults. `again`: it is known.
  bool reset_columns(Progress& key, const Seq& at, bool again) {
    KeySequences<Seq>& now = key.now;
    const bool from_start = !again && not_after(now.base, at);
    bool visible = false;
    if constexpr (by_column) {
      spread(key);
      if (!key.row) key.row = key.slot->get();
      visible = reset_older(key, at, from_start);
    } else if (from_start && key.slot != nullptr && !key.fresh) {
      key.fresh = true;
      visible = reset_uncopied(key);
    }
    if (from_start) {  // as far as is known, the row begins with its newest upsert
      now.base = now.set;
      now.fed = true;
    }
    key.touched = key.touched || visible;
    return visible;
  }

  bool reset_older(Progress& key, const Seq& at, bool from_start) {
    bool reset = false;
    const Row defaults{};
    detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
      if constexpr (!Columns::template special<Member>()) {
        std::optional<Seq>& set = key.now.columns[I];  // none where no event has the column
        if (set ? !not_after(set, at) : !from_start) return;
        if (set) key.dirty = true;
        set.reset();
        if constexpr (ValueComparable<member_value_t<Member, Row>>) {
          reset = reset || !detail::equal_values(*key.row.*Member, defaults.*Member);
        } else {
          reset = true;
        }
        *key.row.*Member = defaults.*Member;
      }
    });
    return reset;
  }

  // The columns that no event sets, of a row that stays.
  bool reset_uncopied(Progress& key) {
    const Row defaults{};
    key.row = key.slot->get();
    detail::for_each_column<Row>([&]<auto Member, std::size_t>() {
      if constexpr (!Columns::template special<Member>() && !Columns::template copied<Member>())
        (*key.row).*Member = defaults.*Member;
    });
    return !detail::same_or(false, *key.row, key.slot->get());
  }

  // --- The outcome

  void finish(Progress& key) {
    const bool was = key.slot != nullptr;
    const bool is = key.now.live;
    if (was && is) {
      finish_row(key);
    } else if (was) {
      finish_erase(key);
    } else if (is) {
      count_folded(key, 1);
      plan_insert(key);
    } else {
      count_folded(key, key.by_truncate ? 0 : 1);
      if (!key.by_truncate && key.effective != 0) ++metrics().skipped;
    }
  }

  // All but `own` of the events of a key were folded into others.
  void count_folded(const Progress& key, std::size_t own) {
    if (key.effective > own) metrics().dropped_duplicates += key.effective - own;
  }

  void finish_erase(Progress& key) {
    Planned<Row>& entry = plan_.touch(*key.slot);
    entry.outcome = Outcome::erase;
    ++metrics().deleted;
    if (key.by_truncate) {
      count_folded(key, 0);
      ++metrics().not_matched_by_source_deleted;
      entry.position = truncate_->position;
    } else {
      count_folded(key, 1);
      ++metrics().matched_deleted;
      entry.position = key.position;
    }
  }

  void finish_row(Progress& key) {
    count_folded(key, 1);
    std::optional<Holder<Row>> after;
    if (key.touched) after = changed_row(key);
    if (!after) {
      if (key.effective != 0) ++metrics().unchanged;
      return;
    }
    Planned<Row>& entry = plan_.touch(*key.slot);
    entry.after = std::move(after);
    entry.outcome = Outcome::update;
    entry.position = key.position;
    ++metrics().updated;
    ++(key.effective != 0 ? metrics().matched_updated : metrics().not_matched_by_source_updated);
  }

  void plan_insert(Progress& key) {
    Planned<Row>& entry = plan_.add();
    if constexpr (Columns::whole && !key_as_is)
      Columns::require_key(static_cast<const Row&>(*key.winner->row), *key.first);
    entry.after = made_row(key);
    if constexpr (!Columns::whole) Columns::require_key(entry.after->get(), *key.first);
    entry.outcome = Outcome::insert;
    entry.position = key.position;
    ++metrics().inserted;
  }

  std::optional<Holder<Row>> changed_row(Progress& key) {
    if constexpr (Columns::whole) {
      if (key_as_is && detail::same_or(false, key.slot->get(), static_cast<const Row&>(*key.winner->row)))
        return std::nullopt;
    }
    Holder<Row> made = made_row(key);
    if (detail::same_or(false, key.slot->get(), std::as_const(made).get())) return std::nullopt;
    return made;
  }

  // The key of an event that is a row is the key of that row.
  static constexpr bool key_as_is = std::same_as<typename Key::SourceParts, typename Key::TargetParts>;

  Holder<Row> made_row(Progress& key) {
    if constexpr (by_column) {
      return Holder<Row>(std::move(*key.row));
    } else if (key.winner == nullptr) {
      return Holder<Row>(std::move(*key.row));
    } else {
      return naming_event(*key.winner, [&] { return row_of_winner(key); });
    }
  }

  Holder<Row> row_of_winner(const Progress& key) {
    auto& event = *key.winner->row;
    if constexpr (Columns::whole) {
      Holder<Row> made(std::in_place, [&] { return detail::row_of<Row>(event); });
      if constexpr (!key_as_is) Columns::set_key(made.get(), event);
      return made;
    } else {
      Row made = key.slot != nullptr && !key.fresh ? key.slot->get() : Row{};
      Columns::copy(made, event);
      return Holder<Row>(std::move(made));
    }
  }

  template <class Work>
  static decltype(auto) naming_event(const Event& event, Work work) {
    return detail::naming_row([&] { return RowName{detail::key_text(Key::of(*event.row)), event.position}; },
                              work);
  }

  // --- What is remembered

  // Deletes in the order in which they came, see CurrentState.
  void remember_keys() {
    std::vector<Progress*> dead;
    for (Progress& key : keys_) {
      if (!key.dirty) continue;
      if (key.now.live) {
        remember(key);
      } else {
        dead.push_back(&key);
      }
    }
    std::ranges::stable_sort(dead, std::less<>(), &Progress::died);
    for (Progress* key : dead) remember(*key);
  }

  void remember(Progress& key) {
    KeySequences<Seq>& now = key.now;
    if (!now.live && covered(now.erased)) {  // the truncate says it all
      if (key.item != nullptr) change().changes.push_back({key.item, nullptr});
      return;
    }
    if (!now.live) now.erased_at = time();
    auto stored = detail::stored_key<CoreType, Key>(key);
    change().changes.push_back(
        {key.item, std::make_unique<Item>(Item{std::move(stored), std::move(now), key.hash})});
    now.live = change().changes.back().fresh->value.live;  // NOLINT(bugprone-use-after-move): set anew
  }

  bool visited(const Item& item) const {
    return index_.find(item.hash, [&](const Progress& key) { return key.item == &item; }) != nullptr;
  }

  bool covered(const std::optional<Seq>& at) const {
    return truncate_ != nullptr && not_after(at, truncate_->at);
  }

  // Keys that no row had and no event names.
  void drop_truncated() {
    if (truncate_ == nullptr) return;
    change().truncated = std::make_unique<const Seq>(truncate_->at);
    if (state_ == nullptr) return;
    state_->keys.for_each([&](Item& item) {
      if (!visited(item) && covered(std::max(item.value.erased, item.value.set, before_optional)))
        change().changes.push_back({&item, nullptr});
    });
  }

  void keep_state() {
    if constexpr (Feed::template has<FeedPart::tombstones>) {
      const TombstoneRule& rule = feed_.template get<FeedPart::tombstones>().rule;
      if (state_ == nullptr && update_ == nullptr) return;
      if (const auto* last = std::get_if<KeepLastVersions>(&rule)) {
        change().keep = last->count;
      } else {
        change().keep_since = detail::start_of(std::get<KeepFor>(rule), time());
      }
    }
    plan_.sequences = std::move(update_);
  }

  Update& change() {
    if (update_ == nullptr) update_ = std::make_unique<Update>();
    return *update_;
  }

  Timestamp time() {
    if (!time_) time_ = core_.now();
    return *time_;
  }

  const CoreType& core_;
  const Feed& feed_;
  Plan<Row>& plan_;
  const State* state_ = nullptr;
  std::vector<Event> events_;
  Position truncate_index_ = no_position;
  const Event* truncate_ = nullptr;  // the truncate that counts
  std::deque<Progress> keys_;
  KeyIndex<Progress> index_;
  std::unique_ptr<Update> update_;
  std::optional<Timestamp> time_;
};

}  // namespace keyfold::detail

// detail/history_changes

// detail/history_state

/// What apply_changes() remembers for history rows (SCD type 2): the events that no row shows as they were.
namespace keyfold::detail {

/// An event as it came in.
template <class Row, class Seq>
struct RawEvent {
  Seq at;
  std::optional<Row> row;   // none: a delete
  std::vector<bool> given;  // for each column whether the event brought a value; empty: all
  bool folded = false;      // into a row that an earlier event began; else a row begins with it

  bool complete() const noexcept { return given.empty(); }
};

template <class Row, class Seq>
std::size_t heap_bytes(const std::vector<RawEvent<Row, Seq>>& events) noexcept {
  std::size_t bytes = events.capacity() * sizeof(RawEvent<Row, Seq>);
  for (const RawEvent<Row, Seq>& event : events) bytes += event.given.capacity() / 8;
  return bytes;
}

template <class Key, class Row, class Seq>
class HistoryState final : public SequenceState {
 public:
  using Event = RawEvent<Row, Seq>;
  using States = KeyedStates<Key, std::vector<Event>>;
  using Item = typename States::Item;

  std::unique_ptr<SequenceState> clone() const override {
    auto copy = std::make_unique<HistoryState>();
    keys.for_each([&](const Item& item) {
      copy->keys.reserve_one(item.hash);
      copy->keys.add(std::make_unique<Item>(Item{item.key, item.value, item.hash}));
    });
    return copy;
  }

  std::size_t bytes() const noexcept override { return keys.bytes(); }

  std::string describe() const override { return "history rows by " + detail::sequence_name<Seq>(); }

  States keys;
};

/// The change that a feed makes to that state.
template <class State>
class HistoryUpdate final : public SequenceUpdate {
 public:
  using Item = typename State::Item;

  void stage(std::unique_ptr<SequenceState>& place) override {
    if (place == nullptr) made_ = std::make_unique<State>();
    state_ = made_ != nullptr ? made_.get() : static_cast<State*>(place.get());
    state_->keys.reserve_for(changes);
    place_ = &place;
  }

  void publish() noexcept override {
    if (made_ != nullptr) *place_ = std::move(made_);
    for (ItemChange<Item>& change : changes) {
      if (change.fresh == nullptr) {
        state_->keys.drop(*change.old);
      } else if (change.old == nullptr) {
        state_->keys.add(std::move(change.fresh));
      } else {
        state_->keys.replace(*change.old, std::move(change.fresh));
      }
    }
  }

  std::vector<ItemChange<Item>> changes;

 private:
  std::unique_ptr<State> made_;
  State* state_ = nullptr;
  std::unique_ptr<SequenceState>* place_ = nullptr;
};

}  // namespace keyfold::detail

// detail/timeline

/// The history of one key (SCD type 2) as a function of its events.
namespace keyfold::detail {

/// An event that a feed brings.
template <class Pointer, class Seq>
struct IncomingEvent {
  Pointer row;
  Position position;
  bool erase;
  Seq at;
  bool counted = false;  // in the metrics
};

/// An event of the timeline of a key: a row of the table, one that is remembered, or one that comes in.
template <class Row, class Seq, class Incoming>
struct TimelineEvent {
  const Seq* at;
  bool erase = false;
  const Slot<Row>* slot = nullptr;
  const RawEvent<Row, Seq>* raw = nullptr;  // also of incoming upserts
  Incoming* incoming = nullptr;
};

/// A row of the history: valid from its first event on.
template <class Row, class Event>
struct Span {
  std::vector<const Event*> events;  // the upserts it is made of
  const Event* end = nullptr;        // what ends it: null for the current row
  std::optional<Row> row{};          // none: it is the row of the table that its only event is

  const Row& get() const { return row ? *row : events.front()->slot->get(); }
  bool ends_by_delete() const noexcept { return end != nullptr && end->erase; }
};

/// Derives the rows of one key from its events.
template <class Feed, class Key, class Incoming, class SeqType>
class Timeline {
 public:
  using Row = typename Feed::Row;
  using Seq = SeqType;
  using Columns = FeedRow<Feed, Key>;
  using Intervals = typename Feed::template At<FeedPart::intervals>;
  using Raw = RawEvent<Row, Seq>;
  using Event = TimelineEvent<Row, Seq, Incoming>;
  using RowSpan = Span<Row, Event>;

  static const Seq& from(const Slot<Row>& slot) { return slot.get().*Intervals::from; }
  static const std::optional<Seq>& to(const Slot<Row>& slot) { return slot.get().*Intervals::to; }

  /// `slots`: the rows of the key, by ascending `from`. `incoming`: ascending, without ties.
  Timeline(const std::vector<const Slot<Row>*>& slots, const std::vector<Raw>* remembered,
           const std::vector<Incoming*>& incoming)
      : slots_(slots) {
    if (remembered != nullptr) add_remembered(*remembered);
    add_rows();
    add_ends();
    std::ranges::stable_sort(events_, earlier);
    add_incoming(incoming);
    derive();
  }

  const std::vector<RowSpan>& spans() const noexcept { return spans_; }

  /// The incoming events that were a tie with one that was there: `visit(incoming)`.
  const std::vector<Incoming*>& ties() const noexcept { return ties_; }

  /// The row that a span comes to.
  static Row row_of(const RowSpan& span) {
    Row row = span.get();
    row.*Intervals::from = *span.events.front()->at;
    if (span.end != nullptr) {
      row.*Intervals::to = *span.end->at;
    } else {
      (row.*Intervals::to).reset();
    }
    return row;
  }

  /// The events that the rows do not show.
  std::vector<Raw> hidden() const {
    std::vector<Raw> out;
    for (const Event* erase : idle_deletes_) out.push_back({*erase->at, std::nullopt, {}});
    for (const RowSpan& span : spans_) {
      if (span.events.size() == 1 && complete(*span.events.front())) continue;
      for (const Event* event : span.events) {
        out.push_back(event->raw != nullptr ? *event->raw : Raw{*event->at, event->slot->get(), {}});
        out.back().folded = event != span.events.front();
      }
    }
    return out;
  }

 private:
  static bool earlier(const Event& a, const Event& b) { return detail::less_values(*a.at, *b.at); }
  static bool complete(const Event& event) noexcept { return event.raw == nullptr || event.raw->complete(); }

  // --- The events that are known

  // What is remembered counts as far as the rows, which other writes may have changed, bear it out: deletes
  // outside of them, upserts where a row begins, or within one if they were folded into one.
  void add_remembered(const std::vector<Raw>& remembered) {
    for (const Raw& raw : remembered) {
      const bool counts = !raw.row ? !covered(raw.at) : raw.folded ? covered(raw.at) : begins(raw.at);
      if (counts) events_.push_back({&raw.at, !raw.row, nullptr, &raw});
    }
    std::ranges::stable_sort(events_, earlier);
    remembered_ = events_.size();
  }

  bool covered(const Seq& at) const {
    const auto after = std::ranges::upper_bound(slots_, at, less, slot_from);
    if (after == slots_.begin()) return false;
    const std::optional<Seq>& end = to(**std::prev(after));
    return !end || detail::less_values(at, *end);
  }

  bool begins(const Seq& at) const {
    const auto slot = std::ranges::lower_bound(slots_, at, less, slot_from);
    return slot != slots_.end() && !detail::less_values(at, from(**slot));
  }

  bool is_remembered(const Seq& at) const {
    const auto end = events_.begin() + static_cast<std::ptrdiff_t>(remembered_);
    const auto found = std::lower_bound(events_.begin(), end, at, [](const Event& event, const Seq& value) {
      return detail::less_values(*event.at, value);
    });
    return found != end && !detail::less_values(at, *found->at);
  }

  void add_rows() {
    for (const Slot<Row>* slot : slots_) {
      if (!is_remembered(from(*slot))) events_.push_back({&from(*slot), false, slot});
    }
  }

  // Where a row ends and none begins there was a delete.
  void add_ends() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::optional<Seq>& end = to(*slots_[i]);
      if (!end || !detail::less_values(from(*slots_[i]), *end)) continue;
      const bool open = i + 1 == slots_.size() || detail::less_values(*end, from(*slots_[i + 1]));
      if (open && !is_remembered(*end)) events_.push_back({&*end, true});
    }
  }

  void add_incoming(const std::vector<Incoming*>& incoming) {
    std::vector<Event> known = std::move(events_);
    events_.clear();
    events_.reserve(known.size() + incoming.size());
    auto next = known.begin();
    for (Incoming* event : incoming) {
      while (next != known.end() && detail::less_values(*next->at, event->at)) events_.push_back(*next++);
      if (next != known.end() && !detail::less_values(event->at, *next->at)) {
        ties_.push_back(event);
        ++next;
      }
      const Raw* raw = event->erase ? nullptr : &made_.emplace_back(raw_of(*event));
      events_.push_back({&event->at, event->erase, nullptr, raw, event});
    }
    events_.insert(events_.end(), next, known.end());
  }

  // --- An incoming event as a row

  static Raw raw_of(const Incoming& event) {
    Raw raw =
        detail::naming_row([&] { return RowName{detail::key_text(Key::of(*event.row)), event.position}; },
                           [&] { return copied(event); });
    Columns::require_key(*raw.row, *event.row);
    return raw;
  }

  static Raw copied(const Incoming& event) {
    if constexpr (Columns::whole) {
      Raw raw{event.at, static_cast<const Row&>(*event.row), {}};
      Columns::set_key(*raw.row, *event.row);
      return raw;
    } else if constexpr (Columns::ignores_nulls) {
      return given_of(event);
    } else {
      Raw raw{event.at, Row{}, {}};
      Columns::copy(*raw.row, *event.row);
      return raw;
    }
  }

  static Raw given_of(const Incoming& event) {
    Raw raw{event.at, Row{}, std::vector<bool>(column_count<Row>, true)};
    Columns::set_key(*raw.row, *event.row);
    bool all = true;
    Columns::for_each_copied(*event.row, [&]<auto Member, std::size_t I>(bool given) {
      if (given) {
        Columns::template assign_given<Member>(*raw.row, *event.row);
      } else {
        raw.given[I] = all = false;
      }
    });
    if (all) raw.given.clear();
    return raw;
  }

  // --- The rows

  void derive() {
    bool open = false;
    for (const Event& event : events_) {
      if (event.erase) {
        if (open) {
          spans_.back().end = &event;
        } else {
          idle_deletes_.push_back(&event);
        }
        open = false;
      } else {
        take_upsert(event, open);
        open = true;
      }
    }
  }

  void take_upsert(const Event& event, bool open) {
    std::optional<Row> row;
    if (event.raw != nullptr) row = filled(*event.raw, open ? &spans_.back().get() : nullptr);
    if constexpr (Feed::template has<FeedPart::track>) {
      using Track = typename Feed::template At<FeedPart::track>;
      if (open && Track::same(spans_.back().get(), row ? *row : event.slot->get())) {
        spans_.back().row.emplace(row ? std::move(*row) : event.slot->get());
        spans_.back().events.push_back(&event);
        return;
      }
    }
    if (open) spans_.back().end = &event;
    spans_.push_back({{&event}, nullptr, std::move(row)});
  }

  // What an event does not bring stays as it was.
  static Row filled(const Raw& raw, [[maybe_unused]] const Row* current) {
    Row row = *raw.row;
    if constexpr (HasColumns<Row>) {
      if (raw.complete() || current == nullptr) return row;
      detail::for_each_column<Row>([&]<auto Member, std::size_t I>() {
        if constexpr (is_data_member<Member>) {
          if (!raw.given[I]) row.*Member = current->*Member;
        }
      });
    }
    return row;
  }

  static constexpr auto less = [](const Seq& a, const Seq& b) { return detail::less_values(a, b); };
  static constexpr auto slot_from = [](const Slot<Row>* slot) -> const Seq& { return from(*slot); };

  const std::vector<const Slot<Row>*>& slots_;
  std::vector<Event> events_;
  std::size_t remembered_ = 0;
  std::deque<Raw> made_;
  std::vector<RowSpan> spans_;
  std::vector<const Event*> idle_deletes_;
  std::vector<Incoming*> ties_;
};

}  // namespace keyfold::detail

/// Planning apply_changes() for history rows (SCD type 2). The events of each key that the feed touches are
/// gathered from its rows, from what is remembered and from the feed; its rows are derived from them anew and
/// compared with those that are there.
namespace keyfold::detail {

template <class Done, auto... Rest>
struct split_last;
template <auto... Done, auto Last>
struct split_last<Parts<Done...>, Last> {
  using front = Parts<Done...>;
  using last = Parts<Last>;
};
template <auto... Done, auto First, auto Second, auto... Rest>
struct split_last<Parts<Done...>, First, Second, Rest...>
    : split_last<Parts<Done..., First>, Second, Rest...> {};

/// A key without its last part, and that part.
template <class KeyParts>
struct split_key;
template <auto... P>
struct split_key<Parts<P...>> : split_last<Parts<>, P...> {};

template <class CoreType, class Feed, class Declared>
class HistoryPlanner {
 public:
  using Row = typename CoreType::RowType;
  using Source = typename Feed::Source;
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;
  using EntityParts = typename split_key<typename CoreType::KeyParts>::front;
  using Key = FeedKey<Feed, EntityParts>;
  using Sequences = FeedSequences<Feed>;
  using Seq = typename Sequences::type;
  using State = HistoryState<typename Key::Stored, Row, Seq>;
  using Item = typename State::Item;
  using Update = HistoryUpdate<State>;

  HistoryPlanner(const CoreType& core, const Feed& feed, Plan<Row>& plan)
      : core_(core), feed_(feed), plan_(plan) {}

  void run(typename Traits::Range& range) {
    find_state();
    AllRows<Declared, Source> all(range);
    Position position = 0;
    for (const Pointer row : all.pointers) read(row, position++);
    find_rows();
    for (Progress& key : keys_) rebuild(key);
    plan_.sequences = std::move(update_);
    assert(source_rows_add_up());
  }

 private:
  using Incoming = IncomingEvent<Pointer, Seq>;
  using History = Timeline<Feed, Key, Incoming, Seq>;
  using RowSpan = typename History::RowSpan;

  struct Progress {
    std::uint64_t hash = 0;
    Item* item = nullptr;
    std::vector<Incoming> events{};
    std::vector<const Slot<Row>*> slots{};
  };

  Metrics& metrics() noexcept { return plan_.metrics; }

  void find_state() {
    if (core_.sequence_state() == nullptr) return;
    state_ = dynamic_cast<const State*>(core_.sequence_state());
    if (state_ == nullptr) throw FeedMismatch(core_.sequence_state()->describe(), State().describe());
  }

  void read(Pointer row, Position position) {
    ++metrics().source_rows;
    Seq at = Sequences::of(*row, position);
    const auto key = Key::of(*row);
    detail::require_valid_key(typename Key::SourceParts{}, key, position);
    Progress& progress = progress_of(key);
    const bool erase = detail::event_is<FeedPart::deletes>(feed_, *row);
    progress.events.push_back({row, position, erase, std::move(at)});
  }

  template <class KeyTuple>
  Progress* find(const KeyTuple& key, std::uint64_t hash) const {
    return index_.find(hash, [&](const Progress& other) {
      return detail::equal_values(Key::of(*other.events.front().row), key);
    });
  }

  template <class KeyTuple>
  Progress& progress_of(const KeyTuple& key) {
    const std::uint64_t hash = detail::hash_of(key);
    if (Progress* known = find(key, hash)) return *known;
    index_.reserve_one(hash);
    Progress& made = keys_.emplace_back();
    made.hash = hash;
    if (state_ != nullptr) made.item = state_->keys.find(key, hash);
    index_.insert(hash, &made);
    return made;
  }

  // --- The rows of the keys

  static constexpr std::size_t index_number = detail::index_number<EntityParts, typename CoreType::Indexes>;

  void find_rows() {
    if constexpr (index_number < std::tuple_size_v<typename CoreType::Indexes>) {
      for (Progress& key : keys_)
        take_rows(key, core_.template matching<index_number>(Key::of(*key.events.front().row)));
    } else if constexpr (CoreType::ordered) {
      for (Progress& key : keys_)
        take_rows(key, detail::equal_range_of(core_.scan(), Key::of(*key.events.front().row)));
    } else if (!keys_.empty()) {
      for (const Slot<Row>& slot : core_.scan()) {
        const auto key = EntityParts::of(slot.get());
        if (Progress* progress = find(key, detail::hash_of(key))) progress->slots.push_back(&slot);
      }
    }
    for (Progress& key : keys_) {
      std::ranges::sort(key.slots, [](const Slot<Row>* a, const Slot<Row>* b) {
        return detail::less_values(History::from(*a), History::from(*b));
      });
    }
  }

  template <class Pair>
  static void take_rows(Progress& key, const Pair& range) {
    for (auto it = range.first; it != range.second; ++it) key.slots.push_back(&*it);
  }

  // --- One key

  void rebuild(Progress& key) {
    const std::vector<Incoming*> events = untied(key);
    const History history(key.slots, key.item != nullptr ? &key.item->value : nullptr, events);
    if constexpr (Feed::template has<FeedPart::ties>) {
      if (!history.ties().empty()) refuse_tie(no_position, *history.ties().front());
    }
    match(key.slots, history.spans(), events);
    for (const auto& [span, slot] : matched_) slot != nullptr ? update(*span, *slot) : insert(key, *span);
    matched_.clear();
    count_idle(key);
    remember(key, history);
  }

  // Finds the row that each span was so far, and erases the others. Both are in order.
  void match(const std::vector<const Slot<Row>*>& slots, const std::vector<RowSpan>& spans,
             const std::vector<Incoming*>& events) {
    auto slot = slots.begin();
    for (const RowSpan& span : spans) {
      const Seq& at = *span.events.front()->at;
      for (; slot != slots.end() && less(History::from(**slot), at); ++slot) erase(events, **slot);
      const bool found = slot != slots.end() && !less(at, History::from(**slot));
      matched_.push_back({&span, found ? *slot++ : nullptr});
    }
    for (; slot != slots.end(); ++slot) erase(events, **slot);
  }

  // The events in order; of ties the one later in the source.
  std::vector<Incoming*> untied(Progress& key) {
    std::vector<Incoming*> all;
    for (Incoming& event : key.events) all.push_back(&event);
    std::ranges::stable_sort(all, less, event_at);
    std::vector<Incoming*> kept;
    for (Incoming* event : all) {
      if (!kept.empty() && !detail::less_values(kept.back()->at, event->at)) {
        if constexpr (Feed::template has<FeedPart::ties>) refuse_tie(kept.back()->position, *event);
        kept.back()->counted = true;
        ++metrics().dropped_duplicates;
        kept.back() = event;
      } else {
        kept.push_back(event);
      }
    }
    return kept;
  }

  [[noreturn]] static void refuse_tie(Position first, const Incoming& event) {
    detail::refuse_tie(detail::key_text(Key::of(*event.row)), detail::literal_text(event.at), first,
                       event.position);
  }

  // --- Its rows

  // `events`: as untied() gives them.
  void erase(const std::vector<Incoming*>& events, const Slot<Row>& slot) {
    Planned<Row>& entry = plan_.touch(slot);
    entry.outcome = Outcome::erase;
    ++metrics().deleted;
    const auto found = std::ranges::lower_bound(events, History::from(slot), less, event_at);
    if (found == events.end() || !(*found)->erase || less(History::from(slot), (*found)->at)) {
      ++metrics().not_matched_by_source_deleted;
      return;
    }
    (*found)->counted = true;
    entry.position = (*found)->position;
    ++metrics().matched_deleted;
  }

  void insert(const Progress& key, const RowSpan& span) {
    Planned<Row>& entry = plan_.add();
    entry.after = Holder<Row>(History::row_of(span));
    entry.outcome = Outcome::insert;
    ++metrics().inserted;
    const Incoming* event = count(span, true);
    split_ += event == nullptr ? 1U : 0U;
    entry.position = event != nullptr ? event->position : key.events.front().position;
  }

  void update(const RowSpan& span, const Slot<Row>& slot) {
    std::optional<Holder<Row>> after = changed(span, slot);
    if (!after) {
      count_unchanged(span);
      return;
    }
    Planned<Row>& entry = plan_.touch(slot);
    entry.after = std::move(after);
    entry.outcome = Outcome::update;
    ++metrics().updated;
    const Incoming* event = count(span, false);
    if (event == nullptr) {
      ++metrics().not_matched_by_source_updated;
    } else {
      ++metrics().matched_updated;
      entry.position = event->position;
    }
  }

  static std::optional<Holder<Row>> changed(const RowSpan& span, const Slot<Row>& slot) {
    if (!span.row && same_end(span, slot)) return std::nullopt;
    Holder<Row> made(History::row_of(span));
    if (detail::same_or(false, slot.get(), std::as_const(made).get())) return std::nullopt;
    return made;
  }

  static bool same_end(const RowSpan& span, const Slot<Row>& slot) {
    const std::optional<Seq>& end = History::to(slot);
    return span.end == nullptr ? !end : end && detail::equal_values(*span.end->at, *end);
  }

  // --- Counting: every event once, for the row that it makes or ends

  // The event that a changed row is owed to, if it is one of the feed's. Its others were folded into that.
  const Incoming* count(const RowSpan& span, bool inserted) {
    const Incoming* first = nullptr;
    for (const auto* event : span.events) {
      if (event->incoming == nullptr) continue;
      event->incoming->counted = true;
      if (first != nullptr) ++metrics().dropped_duplicates;
      if (first == nullptr) first = event->incoming;
    }
    if (first != nullptr || inserted || !span.ends_by_delete()) return first;
    Incoming* end = span.end->incoming;
    if (end == nullptr || end->counted) return nullptr;
    end->counted = true;
    return end;
  }

  void count_unchanged(const RowSpan& span) {
    for (const auto* event : span.events) {
      if (event->incoming == nullptr) continue;
      event->incoming->counted = true;
      ++metrics().unchanged;
    }
  }

  // Deletes that end no row, or one that is owed to another event.
  void count_idle(const Progress& key) {
    for (const Incoming& event : key.events) metrics().skipped += event.counted ? 0U : 1U;
  }

  bool source_rows_add_up() const noexcept {
    const Metrics& m = plan_.metrics;
    return m.source_rows + split_ == m.inserted + m.matched_updated + m.matched_deleted + m.unchanged +
                                         m.skipped + m.dropped_duplicates + m.dropped_late;
  }

  // --- What is remembered

  void remember(const Progress& key, const History& history) {
    auto hidden = history.hidden();
    if (hidden.empty() && key.item == nullptr) return;
    if (update_ == nullptr) update_ = std::make_unique<Update>();
    if (hidden.empty()) {
      update_->changes.push_back({key.item, nullptr});
      return;
    }
    const Incoming& first = key.events.front();
    const auto named = Key::of(*first.row);
    auto stored = detail::naming_row([&] { return RowName{detail::key_text(named), first.position}; },
                                     [&] { return Key::stored(named); });
    update_->changes.push_back(
        {key.item, std::make_unique<Item>(Item{std::move(stored), std::move(hidden), key.hash})});
  }

  static constexpr auto less = [](const Seq& a, const Seq& b) { return detail::less_values(a, b); };
  static constexpr auto history_from = [](const Slot<Row>* slot) -> const Seq& {
    return History::from(*slot);
  };
  static constexpr auto event_at = [](const Incoming* event) -> const Seq& { return event->at; };

  const CoreType& core_;
  const Feed& feed_;
  Plan<Row>& plan_;
  const State* state_ = nullptr;
  std::deque<Progress> keys_;
  KeyIndex<Progress> index_;
  std::vector<std::pair<const RowSpan*, const Slot<Row>*>> matched_;
  std::unique_ptr<Update> update_;
  std::size_t split_ = 0;  // rows that came of a row that a late event split, see track()
};

}  // namespace keyfold::detail

/// Which planner a feed takes, and the checks of the feed as a whole.
namespace keyfold::detail {

template <class Intervals, class Row>
using from_value_t = member_value_t<Intervals::from, Row>;

template <class Core, class Feed>
constexpr bool check_intervals() {
  using Row = typename Core::RowType;
  using Intervals = typename Feed::template At<FeedPart::intervals>;
  using From = from_value_t<Intervals, Row>;
  using Seq = typename FeedSequences<Feed>::type;
  constexpr bool ends_with_from =
      std::is_same_v<typename split_key<typename Core::KeyParts>::last, Parts<Intervals::from>> &&
      Core::KeyParts::size > 1;
  static_assert(ends_with_from,
                "keyfold: scd2<&Row::valid_from, &Row::valid_to>() needs a table whose key is the key of the "
                "events and then valid_from, as in Key<&Row::id, &Row::valid_from>");
  static_assert(
      std::is_same_v<From, Seq>,
      "keyfold: scd2<&Row::valid_from, &Row::valid_to>() needs a valid_from of the type of the sequence");
  static_assert(
      std::is_same_v<member_value_t<Intervals::to, Row>, std::optional<From>>,
      "keyfold: scd2<&Row::valid_from, &Row::valid_to>() needs a valid_to that is a std::optional of "
      "the type of valid_from; it is empty for the current row");
  static_assert(!Feed::template has<FeedPart::truncates>,
                "keyfold: scd2<>() keeps every row it ever had; apply_as_truncates() is for current rows");
  static_assert(!Feed::template has<FeedPart::tombstones>,
                "keyfold: scd2<>() shows deletes in its rows; tombstones() is for current rows");
  return ends_with_from && std::is_same_v<From, Seq> &&
         std::is_same_v<member_value_t<Intervals::to, Row>, std::optional<From>>;
}

template <class Core, class Feed>
constexpr bool check_feed() {
  static_assert(
      Feed::template has<FeedPart::sequence>,
      "keyfold: apply_changes() needs sequence_by<&Source::member>(); it tells which of two events is "
      "newer");
  static_assert(Feed::template has<FeedPart::intervals> || !Feed::template has<FeedPart::track>,
                "keyfold: track<>() belongs to scd2<>(); a table of current rows keeps no history");
  if constexpr (!Feed::template has<FeedPart::sequence>) {
    return false;
  } else if constexpr (Feed::template has<FeedPart::intervals>) {
    return check_intervals<Core, Feed>();
  } else {
    return true;
  }
}

/// Stands for the planner of a feed that does not compile, so that its sentence is the only error.
struct NoPlanner {
  struct Key {
    using SourceParts = Parts<>;
  };
  template <class... Arguments>
  explicit NoPlanner(const Arguments&...) noexcept {}
  template <class Range>
  void run(const Range&) const noexcept {}
};

template <class Core, class Feed, class Declared>
constexpr auto choose_planner() {
  if constexpr (!check_feed<Core, Feed>()) {
    return std::type_identity<NoPlanner>{};
  } else if constexpr (Feed::template has<FeedPart::intervals>) {
    using Planner = HistoryPlanner<Core, Feed, Declared>;
    FeedRow<Feed, typename Planner::Key>::check();
    return std::type_identity<Planner>{};
  } else {
    using Planner = CurrentPlanner<Core, Feed, Declared>;
    FeedRow<Feed, typename Planner::Key>::check();
    return std::type_identity<Planner>{};
  }
}

template <class Core, class Feed, class Declared>
using feed_planner = typename decltype(choose_planner<Core, Feed, Declared>())::type;

}  // namespace keyfold::detail

// detail/write_input

namespace keyfold::detail {

/// What a merge or feed that is being put together has beside its rule, whose type changes with every clause.
template <class Target, class SourceRange>
struct WriteInput {
  Target* target;
  SourceRange source;  // a reference for an lvalue
  CommitNote note;
};

}  // namespace keyfold::detail

// merge

// detail/merge_plan

// detail/deduplicator

/// Source rows with the same key, before a merge looks at them.
namespace keyfold::detail {

/// A source row that survived the duplicate policy.
template <class Pointer>
struct Survivor {
  Pointer row{};  // null: dropped
  Position position = 0;
};

[[noreturn]] inline void refuse_source_rows(const std::string& index, const std::string& key, Position first,
                                            Position second, const char* advice) {
  throw DuplicateSourceKey("source rows " + std::to_string(first) + " and " + std::to_string(second) +
                               " have the same key " + key + advice,
                           index, key, first, second);
}

/// Applies a duplicate policy by key. Keeps the source order of the rows that survive.
template <class Key, class Policy, class Source, class Pointer>
class Deduplicator {
 public:
  Deduplicator(const Policy& policy, const List<Pointer>& rows) : policy_(policy) {
    survivors.reserve(rows.size());
    seen_.presize(rows.size());
    for (const Pointer row : rows) add(row);
  }

  List<Survivor<Pointer>> survivors;
  std::size_t dropped = 0;

 private:
  static constexpr bool folds = requires(const Policy& policy) { policy.function; };
  struct Nothing {};

  void add(Pointer row) {
    const Position position = survivors.size();
    if constexpr (!Key::by_key) {
      if (detail::has_empty_part(Key::of(*row))) {  // it matches nothing, so it has no duplicates
        survivors.push_back({row, position});
        return;
      }
    }
    const std::uint64_t hash = detail::hash_of(Key::of(*row));
    Survivor<Pointer>* earlier = seen_.find(hash, [&](const Survivor<Pointer>& s) {
      return detail::equal_values(Key::of(*s.row), Key::of(*row));
    });
    Survivor<Pointer>& added = survivors.emplace_back(Survivor<Pointer>{row, position});
    if (earlier == nullptr) {
      seen_.add(hash, &added);
    } else {
      ++dropped;
      resolve(*earlier, added, hash);
    }
  }

  void resolve(Survivor<Pointer>& earlier, Survivor<Pointer>& later, std::uint64_t hash) {
    if constexpr (std::same_as<Policy, Reject>) {
      refuse_source_rows(Key::SourceParts::name(), detail::key_text(Key::of(*later.row)), earlier.position,
                         later.position,
                         "; the policy is reject: remove one of them, or choose keep_last or latest_by");
    } else if constexpr (folds) {
      fold_into(earlier, later);
    } else if (policy_.prefers_later(*earlier.row, *later.row)) {
      seen_.replace(hash, &earlier, &later);
      earlier.row = nullptr;
    } else {
      later.row = nullptr;
    }
  }

  void fold_into(Survivor<Pointer>& earlier, Survivor<Pointer>& later) {
    static_assert(std::is_invocable_r_v<Source, decltype(policy_.function), Source&&, const Source&>,
                  "keyfold: fold(f) needs f callable as Source(Source&& folded, const Source& next)");
    Source next = *later.row;
    Source folded = policy_.function(copy_or_move(earlier.row), std::as_const(next));
    if (!detail::equal_values(Key::of(folded), Key::of(next))) {
      throw Error("fold() made a row with key " + detail::key_text(Key::of(folded)) + " of rows with key " +
                  detail::key_text(Key::of(next)) + "; the folded row must keep the key");
    }
    earlier.row = &folded_.emplace_back(std::move(folded));
    later.row = nullptr;
  }

  static Source copy_or_move(Pointer row) { return Source(std::move(*row)); }

  const Policy& policy_;
  [[no_unique_address]] std::conditional_t<folds, std::deque<Source>, Nothing> folded_;
  KeyIndex<Survivor<Pointer>> seen_;
};

}  // namespace keyfold::detail

// detail/merge_actions

/// What the clauses of a merge do to its plan.
namespace keyfold::detail {

/// Knows the rows and not the clauses, so that it is compiled once for all merges of a table.
template <class CoreType>
class MergeActions {
 protected:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;
  using Entry = Planned<Row>;

  MergeActions(const CoreType& core, Plan<Row>& plan, bool rewrites_unchanged) noexcept
      : core_(core), plan_(plan), rewrites_unchanged_(rewrites_unchanged) {}

  Metrics& metrics() noexcept { return plan_.metrics; }

  bool unchanged([[maybe_unused]] const Row& before, [[maybe_unused]] const Row& after) const {
    if constexpr (RowComparable<Row>) {
      return !rewrites_unchanged_ && same_row(before, after);
    } else {
      return false;
    }
  }

  Entry& entry_for(const SlotType& slot, Position position, std::uint32_t number) {
    Entry& entry =
        plan_.touch(slot);  // anew if it was only seen so far, so that changes keep the order of the source
    entry.position = position;
    entry.clause = number;
    return entry;
  }

  Entry& entry_for_insert(Position position) {
    Entry& entry = plan_.add();
    entry.position = position;
    return entry;
  }

  // Those that follow are told when `entry.after` is what a clause has made, if it has made anything.

  void write_update(Entry& entry, std::size_t& counter) noexcept {
    if (!entry.after) {
      entry.outcome = Outcome::unchanged;
      if (entry.position != no_position) ++metrics().unchanged;  // it counts source rows
      return;
    }
    entry.outcome = Outcome::update;
    ++metrics().updated;
    ++counter;
  }

  void write_insert(Entry& entry) noexcept {
    entry.outcome = Outcome::insert;
    ++metrics().inserted;
  }

  void write_erase(const SlotType& slot, Position position, std::uint32_t number, std::size_t& counter) {
    entry_for(slot, position, number).outcome = Outcome::erase;
    ++metrics().deleted;
    ++counter;
  }

  [[noreturn]] void refuse_second(const SlotType& slot, Position first, Position second) const {
    const std::string key = detail::key_text(CoreType::key_of(slot.get()));
    throw DuplicateSourceKey(
        "source rows " + std::to_string(first) + " and " + std::to_string(second) +
            " both act on the row with key " + key +
            "; give a duplicate policy with duplicates(), or a condition that only one of them meets",
        CoreType::KeyParts::name(), key, first, second);
  }

  template <class KeyTuple>
  [[noreturn]] static void raise(const Raise& action, const KeyTuple& key, Position position) {
    throw ClauseRaised(std::string(action.message), detail::key_text(key), position);
  }

  const CoreType& core_;
  Plan<Row>& plan_;

 private:
  bool rewrites_unchanged_;
};

}  // namespace keyfold::detail

// detail/merge_syntax

/// The grammar that merge() and merge_rule() share. Each call returns a new type that knows its clauses, so
/// that a sentence that makes no sense does not compile.
namespace keyfold {

namespace detail {

/// Names a secondary index in `.on<&Source::member>(by<&Row::member>)`.
template <auto... Members>
struct By {};

/// How source rows find target rows. `SourceParts` void: by the members named like the key. `IndexParts`
/// void: by the primary key.
template <class SourceParts, class IndexParts, class ConditionType>
struct Match {
  using Source = SourceParts;
  using Index = IndexParts;
  using Condition = ConditionType;

  Condition condition;
};

}  // namespace detail

/// The secondary index over these members of the target.
template <auto... Members>
inline constexpr detail::By<Members...> by{};

namespace detail {

template <class... Values>
inline constexpr bool not_only_assignments =
    sizeof...(Values) != 1 && (sizeof...(Values) == 0 || !(is_assignment_v<Values> && ...));

/// What may come after the action of a clause, and is not there before it: the compiler says so, once, since
/// the merge then goes on as if do_nothing() had been said.
template <class When>
class ActionForgotten {
 public:
  template <auto... Members, class... Arguments>
  constexpr auto on(Arguments... arguments) && {
    return with_action().template on<Members...>(std::move(arguments)...);
  }
  template <class Condition>
  constexpr auto on_condition(Condition condition) && {
    return with_action().on_condition(std::move(condition));
  }
  template <class Policy>
  constexpr auto duplicates(Policy policy) && {
    return with_action().duplicates(std::move(policy));
  }
  constexpr auto rewrite_unchanged() && { return with_action().rewrite_unchanged(); }

  template <class... Conditions>
  constexpr auto when_matched(Conditions... conditions) && {
    return with_action().when_matched(std::move(conditions)...);
  }
  template <class... Conditions>
  constexpr auto when_not_matched(Conditions... conditions) && {
    return with_action().when_not_matched(std::move(conditions)...);
  }
  template <class... Conditions>
  constexpr auto when_not_matched_by_source(Conditions... conditions) && {
    return with_action().when_not_matched_by_source(std::move(conditions)...);
  }

  auto metadata(std::string text) && { return with_action().metadata(std::move(text)); }
  auto once(std::string app, std::uint64_t number) && { return with_action().once(std::move(app), number); }
  auto execute() && { return with_action().execute(); }
  auto preview() && { return with_action().preview(); }

 private:
  constexpr auto with_action() {
    static_assert(When::kind_of_clause != ClauseKind::matched,
                  "keyfold: a when_matched clause has no action; right after it comes update_all(), "
                  "update(...), erase(), do_nothing() or raise(...)");
    static_assert(When::kind_of_clause != ClauseKind::not_matched,
                  "keyfold: a when_not_matched clause has no action; right after it comes insert_all(), "
                  "insert(...), do_nothing() or raise(...)");
    static_assert(When::kind_of_clause != ClauseKind::not_matched_by_source,
                  "keyfold: a when_not_matched_by_source clause has no action; right after it comes "
                  "update(...), erase(), do_nothing() or raise(...)");
    return static_cast<When&&>(*this).do_nothing();
  }
};

/// A clause whose condition is given and whose action is not.
template <class Host, ClauseKind kind, class Condition>
class [[nodiscard("a clause does nothing without an action")]] When
    : public ActionForgotten<When<Host, kind, Condition>> {
 public:
  using Row = typename Host::Row;
  using Source = typename Host::Source;
  using Target = std::conditional_t<has_target<kind>, Row, NoRow>;
  using Incoming = std::conditional_t<has_source<kind>, Source, NoRow>;
  static constexpr ClauseKind kind_of_clause = kind;

  constexpr When(Host&& host, Condition condition)
      : host_(std::move(host)), condition_(std::move(condition)) {}

  /// Sets every column that the source has by name; from a source of the row's own type, the whole row.
  constexpr auto update_all() && {
    static_assert(
        kind == ClauseKind::matched,
        "keyfold: update_all() belongs to when_matched; only there are both a target and a source row");
    if constexpr (!std::derived_from<Source, Row>) check_column_lists<Row, Source>();
    return std::move(*this).act(UpdateAll{});
  }

  /// Sets the columns that the source brings by name: one that is an empty std::optional there stays as it
  /// is. An optional of an optional tells absent, null and a value apart.
  constexpr auto update_present() && {
    static_assert(
        kind == ClauseKind::matched,
        "keyfold: update_present() belongs to when_matched; only there are both a target and a source row");
    check_patch_lists<Row, Source>();
    return std::move(*this).act(UpdatePresent{});
  }

  /// Sets columns: `target<&Row::a> = value, ...`. Every value reads the old row.
  template <class... Assignments>
    requires(sizeof...(Assignments) > 0 && (is_assignment_v<Assignments> && ...))
  constexpr auto update(Assignments... assignments) && {
    static_assert(kind != ClauseKind::not_matched,
                  "keyfold: update() has no target row after when_not_matched; insert()");
    static_assert((check_assignment<kind, Row, Target, Incoming, Assignments>::check() && ...));
    return std::move(*this).act(Update<Assignments...>{{{std::move(assignments)}...}});
  }

  /// Replaces the row by what `callable` makes of the rows of the clause.
  template <class Callable>
    requires(!is_assignment_v<Callable>)
  constexpr auto update(Callable callable) && {
    static_assert(kind != ClauseKind::not_matched,
                  "keyfold: update() has no target row after when_not_matched; insert()");
    check_maker<Callable>();
    return std::move(*this).act(UpdateWith<Callable>{std::move(callable)});
  }

  // Neither assignments nor one callable: the compiler says so.
  template <class... Values>
    requires(not_only_assignments<Values...>)
  constexpr auto update(Values...) && {
    static_assert(sizeof...(Values) > 0,
                  "keyfold: update() takes assignments or a callable; update_all() sets all columns");
    static_assert(sizeof...(Values) == 0 || !not_only_assignments<Values...>,
                  "keyfold: an assignment is written target<&Row::column> = value");
    return std::move(*this).act(DoNothing{});
  }

  /// Inserts the source row; from a source of another type, the row made of its columns by name.
  constexpr auto insert_all() && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert_all() belongs to when_not_matched");
    check_insert_all<Row, Source>();
    return std::move(*this).act(InsertAll{});
  }

  /// Inserts a default row with the columns set that the source brings by name; not those that are an empty
  /// std::optional there.
  constexpr auto insert_present() && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert_present() belongs to when_not_matched");
    check_patch_lists<Row, Source>();
    static_assert(std::is_default_constructible_v<Row>,
                  "keyfold: insert_present() needs a default constructible row");
    return std::move(*this).act(InsertPresent{});
  }

  /// Inserts a default row with these columns set.
  template <class... Assignments>
    requires(sizeof...(Assignments) > 0 && (is_assignment_v<Assignments> && ...))
  constexpr auto insert(Assignments... assignments) && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert() belongs to when_not_matched");
    static_assert(
        std::is_default_constructible_v<Row>,
        "keyfold: insert() by assignments needs a default constructible row; give a callable that makes one");
    static_assert((check_assignment<kind, Row, Target, Incoming, Assignments>::check() && ...));
    return std::move(*this).act(Insert<Assignments...>{{{std::move(assignments)}...}});
  }

  /// Inserts the row that `callable` makes of the source row.
  template <class Callable>
    requires(!is_assignment_v<Callable>)
  constexpr auto insert(Callable callable) && {
    static_assert(kind == ClauseKind::not_matched, "keyfold: insert() belongs to when_not_matched");
    check_maker<Callable>();
    return std::move(*this).act(InsertWith<Callable>{std::move(callable)});
  }

  // Neither assignments nor one callable: the compiler says so.
  template <class... Values>
    requires(not_only_assignments<Values...>)
  constexpr auto insert(Values...) && {
    static_assert(sizeof...(Values) > 0,
                  "keyfold: insert() takes assignments or a callable; insert_all() inserts the source row");
    static_assert(sizeof...(Values) == 0 || !not_only_assignments<Values...>,
                  "keyfold: an assignment is written target<&Row::column> = value");
    return std::move(*this).act(DoNothing{});
  }

  /// Deletes the target row.
  constexpr auto erase() && {
    static_assert(kind != ClauseKind::not_matched,
                  "keyfold: erase() has no target row after when_not_matched");
    return std::move(*this).act(Erase{});
  }

  /// Leaves the rows alone, and keeps later clauses from acting on them.
  constexpr auto do_nothing() && { return std::move(*this).act(DoNothing{}); }

  /// Throws ClauseRaised. `message` must outlive the merge; a string literal does.
  constexpr auto raise(std::string_view message) && { return std::move(*this).act(Raise{message}); }

 private:
  template <class Callable>
  static constexpr void check_maker() {
    static_assert(!Expression<Callable>, "keyfold: an assignment is written target<&Row::column> = value");
    constexpr bool callable = takes_rows<kind, Callable, Target, Incoming>();
    static_assert(callable,
                  "keyfold: the callable of update() takes (const Target&, const Source&), that of insert() "
                  "(const Source&), after when_not_matched_by_source (const Target&)");
    if constexpr (callable) {
      using Made = decltype(detail::call<kind>(std::declval<const Callable&>(),
                                               std::declval<const Scope<Target, Incoming>&>()));
      static_assert(std::is_convertible_v<Made, Row>,
                    "keyfold: the callable of update() or insert() must return a row");
    }
  }

  template <class Action>
  constexpr auto act(Action action) && {
    return std::move(host_).with(
        host_.rule().with_clause(Clause<kind, Condition, Action>{std::move(condition_), std::move(action)}));
  }

  Host host_;
  Condition condition_;
};

/// The clauses, as members of a host that has a `rule()` and can be made again `with(another rule)`.
template <class Host>
class MergeSyntax {
 public:
  /// The key of a source row, part by part. Default: its members named like the parts of the table's key.
  template <auto... Members>
  constexpr auto on() && {
    using S = typename Host::Source;
    static_assert(sizeof...(Members) > 0, "keyfold: on<>() names the members of the source that are its key");
    check_first_on();
    static_assert((Readable<Members, S> && ...),
                  "keyfold: on<>() names a member of another type than the source row");
    return std::move(*this).template match<Parts<Members...>, void>(old_condition());
  }

  // The member as an argument: the compiler says so.
  template <class Member, class... More>
    requires std::is_member_pointer_v<Member>
  constexpr auto on(Member, More...) && {
    static_assert(!std::is_member_pointer_v<Member>,
                  "keyfold: on<&Source::member>() names the key of the source between angle brackets");
    return std::move(self()).with(self().rule());
  }

  /// Matches through a secondary index of the target instead of its key.
  template <auto... Members, auto... Target>
  constexpr auto on(By<Target...>) && {
    using S = typename Host::Source;
    check_first_on();
    static_assert((Readable<Members, S> && ...),
                  "keyfold: on<>() names a member of another type than the source row");
    static_assert((Readable<Target, typename Host::Row> && ...),
                  "keyfold: by<> names a member of another type than the target row");
    static_assert(sizeof...(Members) == sizeof...(Target),
                  "keyfold: on<>() needs one source member for each member of by<>");
    return std::move(*this).template match<Parts<Members...>, Parts<Target...>>(old_condition());
  }

  /// A further condition on which rows match, over the target or both sides. Rows that fail it are not
  /// matched.
  template <class Condition>
  constexpr auto on_condition(Condition condition) && {
    detail::check_condition<ClauseKind::matched, Condition, typename Host::Row, typename Host::Source,
                            true>();
    using Old = typename Host::Rule::Match;
    static_assert(std::same_as<typename Old::Condition, Always>,
                  "keyfold: on_condition() is given already; join the conditions with &&");
    return std::move(*this).template match<typename Old::Source, typename Old::Index>(std::move(condition));
  }

  /// What becomes of source rows with one key: reject, keep_first, keep_last, latest_by<...> or fold(f).
  template <class Policy>
  constexpr auto duplicates(Policy policy) && {
    static_assert(
        std::is_base_of_v<DuplicatePolicy, Policy>,
        "keyfold: duplicates() takes reject, keep_first, keep_last, latest_by<&Source::member> or fold(f)");
    static_assert(std::same_as<typename Host::Rule::PolicyType, NoPolicy>,
                  "keyfold: duplicates() is given already");
    return std::move(self()).with(self().rule().with_policy(std::move(policy)));
  }

  /// Counts, records and notifies updates that change nothing, too.
  constexpr auto rewrite_unchanged() && { return std::move(self()).with(self().rule().rewriting()); }

  constexpr auto when_matched() && { return std::move(*this).template when<ClauseKind::matched>(Always{}); }
  template <class Condition>
  constexpr auto when_matched(Condition condition) && {
    return std::move(*this).template when<ClauseKind::matched>(std::move(condition));
  }

  constexpr auto when_not_matched() && {
    return std::move(*this).template when<ClauseKind::not_matched>(Always{});
  }
  template <class Condition>
  constexpr auto when_not_matched(Condition condition) && {
    return std::move(*this).template when<ClauseKind::not_matched>(std::move(condition));
  }

  constexpr auto when_not_matched_by_source() && {
    return std::move(*this).template when<ClauseKind::not_matched_by_source>(Always{});
  }
  template <class Condition>
  constexpr auto when_not_matched_by_source(Condition condition) && {
    return std::move(*this).template when<ClauseKind::not_matched_by_source>(std::move(condition));
  }

 private:
  constexpr Host& self() noexcept { return static_cast<Host&>(*this); }

  template <ClauseKind kind, class Condition>
  constexpr auto when(Condition condition) && {
    static_assert(
        !Host::Rule::template has_unconditional_clause<kind>,
        "keyfold: this clause can never act; a clause of its kind without a condition stands before it");
    check_condition<kind, Condition, std::conditional_t<has_target<kind>, typename Host::Row, NoRow>,
                    std::conditional_t<has_source<kind>, typename Host::Source, NoRow>>();
    return When<Host, kind, Condition>(std::move(self()), std::move(condition));
  }

  constexpr auto old_condition() { return self().rule().match().condition; }

  static constexpr void check_first_on() {
    static_assert(std::is_void_v<typename Host::Rule::Match::Source>, "keyfold: on<>() is given already");
  }

  template <class SourceParts, class IndexParts, class Condition>
  constexpr auto match(Condition condition) && {
    return std::move(self()).with(
        self().rule().with_match(Match<SourceParts, IndexParts, Condition>{std::move(condition)}));
  }
};

}  // namespace detail
}  // namespace keyfold

/// Planning a merge: reads the source, finds the target rows, evaluates the clauses. Nothing in the table
/// changes.
namespace keyfold::detail {

// --- The key of a source row

/// The words of a merge for a key that is not found, see source_part.
struct MergeWords {
  template <bool found>
  struct KeyFound {
    static_assert(found,
                  "keyfold: cannot find the key of the source; name its members with .on<&Source::member>()");
  };
};

template <class CoreType, class Match>
inline constexpr bool matches_by_key = std::is_void_v<typename Match::Index> ||
                                       std::is_same_v<typename Match::Index, typename CoreType::KeyParts>;

template <class CoreType, class Match>
using match_target_parts =
    std::conditional_t<matches_by_key<CoreType, Match>, typename CoreType::KeyParts, typename Match::Index>;

template <class CoreType, class Match, class Source>
using match_source_parts =
    typename std::conditional_t<std::is_void_v<typename Match::Source>,
                                default_source_parts<typename CoreType::KeyParts, Source, MergeWords>,
                                std::type_identity<typename Match::Source>>::type;

/// The key of a source row, and the index of the table that it is looked up in.
template <class CoreType, class Match, class Source>
struct MatchKey : SourceKey<typename CoreType::RowType, Source, match_target_parts<CoreType, Match>,
                            match_source_parts<CoreType, Match, Source>> {
  using Base = SourceKey<typename CoreType::RowType, Source, match_target_parts<CoreType, Match>,
                         match_source_parts<CoreType, Match, Source>>;
  static constexpr bool by_key = matches_by_key<CoreType, Match>;
  static_assert(Base::SourceParts::size == Base::TargetParts::size,
                "keyfold: on<>() needs one member of the source for each part of the table's key");
};

template <auto... S, auto... T>
void print_match(std::string& out, Parts<S...>, Parts<T...>) {
  const char* separator = "source.";
  ((out += separator, out += member_name<S>, out += " = target.", out += member_name<T>,
    separator = " AND source."),
   ...);
}

/// A merge as history records it: "ON source.id = target.id WHEN MATCHED THEN ...".
template <class CoreType, class Rule>
std::string merge_text(const Rule& rule) {
  using Key = MatchKey<CoreType, typename Rule::Match, typename Rule::Source>;
  std::string out = "ON ";
  detail::print_match(out, typename Key::SourceParts{}, typename Key::TargetParts{});
  if constexpr (!std::same_as<typename Rule::Match::Condition, Always>) {
    out += " AND ";
    detail::print_condition(out, rule.match().condition);
  }
  if constexpr (requires { rule.policy().print(out); }) {
    out += " DUPLICATES ";
    rule.policy().print(out);
  }
  return out + ' ' + rule.text();
}

/// For a commit. Commits by a rule such as that of upsert() share it.
template <class CoreType, class Rule>
SharedText shared_merge_text(const Rule& rule) {
  if constexpr (Rule::has_fixed_text) {
    static const std::string& text = *new std::string(detail::merge_text<CoreType>(rule));
    return SharedText::lasting(text);
  } else {
    return SharedText(detail::merge_text<CoreType>(rule));
  }
}

// --- The planner

template <class CoreType, class Rule, class Declared>
class MergePlanner : MergeActions<CoreType> {
  using Actions = MergeActions<CoreType>;
  using Actions::core_;
  using Actions::plan_;
  using Actions::refuse_second;
  using Actions::unchanged;

 public:
  using Row = typename CoreType::RowType;
  using Source = typename Rule::Source;
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;
  using Key = MatchKey<CoreType, typename Rule::Match, Source>;
  using SlotType = Slot<Row>;
  using Entry = Planned<Row>;

  MergePlanner(const CoreType& core, const Rule& rule, Plan<Row>& plan)
      : Actions(core, plan, rule.rewrites_unchanged()), rule_(rule) {}

  void run(typename Traits::Range& range) {
    plan_.entries.reserve(detail::rows_to_expect<Declared, Source>(range));
    if constexpr (!std::same_as<std::remove_cvref_t<decltype(rule_.policy())>, NoPolicy>) {
      take_survivors(range);
    } else if constexpr (is_one_row<typename Traits::Range>) {
      take_one(std::addressof(range.front()), 0);
    } else {
      detail::for_each_block<Declared, Source>(
          range, [this](std::span<const Pointer> rows, Position first) { take_block(rows, first); });
    }
    if constexpr (Rule::template has_clause<ClauseKind::not_matched_by_source>) visit_unmatched_targets();
    assert(!Key::by_key || plan_.source_rows_add_up());
  }

 private:
  /// Whether a row that takes the place of another, or comes in, has the key that it was looked up by.
  template <class Action>
  static constexpr bool keeps_key =
      (std::same_as<Action, UpdateAll> || std::same_as<Action, InsertAll>) && std::same_as<Source, Row> &&
      Key::by_key && std::same_as<typename Key::SourceParts, typename CoreType::KeyParts> &&
      std::same_as<typename Rule::Match::Condition, Always>;

  static constexpr bool marks_seen = Rule::template has_clause<ClauseKind::not_matched_by_source>;

  /// What has become of a source row.
  enum class Fate : std::uint8_t { not_matched, matched, acted };

  /// What the index of keys says before rows are compared.
  struct Lookup {
    std::uint64_t hash;
    const SlotType* candidate;
  };

  // --- Source rows

  Lookup look_up(std::uint64_t hash) const {
    if constexpr (Key::by_key) return {hash, core_.keys.candidate(hash)};
    return {hash, nullptr};
  }

  void take_one(Pointer row, Position position) {
    const auto key = Key::of(*row);
    if constexpr (Key::by_key) detail::require_valid_key(typename Key::SourceParts{}, key, position);
    const Lookup lookup = look_up(detail::hash_of(key));
    if (lookup.candidate != nullptr) detail::prefetch_lines(lookup.candidate);
    detail::naming_row([&] { return name_of(*row, position); }, [&] { take(row, position, lookup); });
  }

  void take_block(std::span<const Pointer> rows, Position first) {
    std::array<Lookup, block_size> lookups;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto key = Key::of(*rows[i]);
      lookups[i].hash = detail::hash_of(key);
      if constexpr (Key::by_key) {
        detail::require_valid_key(typename Key::SourceParts{}, key, first + i);
        core_.keys.prefetch(lookups[i].hash);
      }
    }
    if constexpr (Key::by_key) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        lookups[i] = look_up(lookups[i].hash);
        detail::prefetch_lines(lookups[i].candidate);
      }
      if constexpr (detail::is_kept_elsewhere<decltype(CoreType::key_of(std::declval<const Row&>()))>) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (const SlotType* slot = lookups[i].candidate)
            detail::prefetch_elsewhere(CoreType::key_of(slot->get()));
        }
      }
    }
    std::size_t i = 0;
    detail::naming_row([&] { return name_of(*rows[i], first + i); },
                       [&] {
                         for (; i < rows.size(); ++i) take(rows[i], first + i, lookups[i]);
                       });
  }

  static RowName name_of(const Source& row, Position position) {
    if constexpr (Key::by_key) return {detail::key_text(Key::of(row)), position};
    return {{}, position};
  }

  void take_survivors(typename Traits::Range& range) {
    AllRows<Declared, Source> all(range);
    if constexpr (Key::by_key) {
      Position position = 0;
      for (const Pointer row : all.pointers)
        detail::require_valid_key(typename Key::SourceParts{}, Key::of(*row), position++);
    }
    Deduplicator<Key, std::remove_cvref_t<decltype(rule_.policy())>, Source, Pointer> unique(rule_.policy(),
                                                                                             all.pointers);
    this->metrics().source_rows += unique.dropped;
    this->metrics().dropped_duplicates += unique.dropped;
    for (const auto& survivor : unique.survivors) {
      if (survivor.row == nullptr) continue;
      detail::naming_row([&] { return name_of(*survivor.row, survivor.position); },
                         [&] {
                           const Lookup lookup = look_up(detail::hash_of(Key::of(*survivor.row)));
                           take(survivor.row, survivor.position, lookup);
                         });
    }
  }

  void take(Pointer row, Position position, const Lookup& lookup) {
    ++this->metrics().source_rows;
    Fate fate = Fate::not_matched;
    if constexpr (Key::by_key) {
      const SlotType* slot = core_.find(Key::of(*row), lookup.hash, lookup.candidate);
      if (slot != nullptr) fate = take_pair(*slot, row, position, true);
    } else {
      const auto slots = index_matches(*row);
      for (const SlotType* slot : slots)
        fate = std::max(fate, take_pair(*slot, row, position, slot == slots.back()));
    }
    if (fate == Fate::not_matched) take_not_matched(row, position, lookup.hash);
    if (fate == Fate::matched) ++this->metrics().skipped;
  }

  std::vector<const SlotType*> index_matches(const Source& row) const {
    constexpr std::size_t number = index_number<typename Key::TargetParts, typename CoreType::Indexes>;
    static_assert(number < std::tuple_size_v<typename CoreType::Indexes>,
                  "keyfold: by<> names members that no index of the table is made of");
    std::vector<const SlotType*> slots;
    if (detail::has_empty_part(Key::of(row))) return slots;  // as in SQL: absent equals nothing
    const auto [first, last] = core_.template matching<number>(Key::of(row));
    for (auto it = first; it != last; ++it) slots.push_back(&*it);
    return slots;
  }

  // --- Matched

  // `last_use`: the source row may be moved from.
  Fate take_pair(const SlotType& slot, Pointer row, Position position, bool last_use) {
    const Scope<Row, Source> rows{slot.get(), *row};
    if (!detail::holds<ClauseKind::matched>(rule_.match().condition, rows)) return Fate::not_matched;
    bool acted = false;
    for_each_clause<ClauseKind::matched>([&](const auto& clause, std::uint32_t number) {
      if (!detail::holds<ClauseKind::matched>(clause.condition, rows)) return false;
      acted = act_on_pair(clause, number, slot, row, position, last_use);
      return true;
    });
    if constexpr (marks_seen) {
      if (!acted && plan_.touched(slot) == nullptr) plan_.touch(slot).position = position;
    }
    return acted ? Fate::acted : Fate::matched;
  }

  // Returns false if the clause does nothing.
  template <class Clause>
  bool act_on_pair(const Clause& clause, std::uint32_t number, const SlotType& slot, Pointer row,
                   Position position, [[maybe_unused]] bool last_use) {
    using Action = typename Clause::ActionType;
    if constexpr (std::same_as<Action, DoNothing>) {
      return false;
    } else if constexpr (std::same_as<Action, Raise>) {
      Actions::raise(clause.action, CoreType::key_of(slot.get()), position);
    } else {
      Entry* entry = plan_.touched(slot);
      if (entry != nullptr && entry->outcome != Outcome::seen) {
        if (!both_erase(clause, number, *entry)) refuse_second(slot, entry->position, position);
        ++plan_.extra_erasers;
        return true;
      }
      if constexpr (is_update_v<Action>) {
        Entry& update = this->entry_for(slot, position, number);
        make_updated(update.after, clause.action, slot.get(), row, last_use);
        update.key_known = keeps_key<Action>;
        this->write_update(update, this->metrics().matched_updated);
      } else {
        this->write_erase(slot, position, number, this->metrics().matched_deleted);
      }
      return true;
    }
  }

  template <class Clause>
  static bool both_erase(const Clause&, std::uint32_t number, const Entry& entry) {
    return std::same_as<typename Clause::ActionType, Erase> && Clause::unconditional &&
           entry.outcome == Outcome::erase && entry.clause == number;
  }

  // --- What a clause makes of a row, made where it stays; nothing if the row would not change

  using After = std::optional<Holder<Row>>;

  template <class Make>
  void make_changed(After& after, const Row& target, Make make) const {
    const Row& made = after.emplace(std::in_place, make).get();
    if (unchanged(target, made)) after.reset();
  }

  void make_updated(After& after, const UpdateAll&, const Row& target, Pointer row,
                    [[maybe_unused]] bool last_use) const {
    if constexpr (std::derived_from<Source, Row>) {
      if (unchanged(target, *row)) return;
      if (last_use) {
        make_row(after, *row);
      } else {
        make_row(after, std::as_const(*row));
      }
    } else {
      make_changed(after, target, [&] {
        Row made = target;
        detail::copy_columns_by_name(made, std::as_const(*row));
        return made;
      });
    }
  }

  void make_updated(After& after, const UpdatePresent&, const Row& target, Pointer row, bool) const {
    make_changed(after, target, [&] {
      Row made = target;
      detail::copy_present_columns(made, std::as_const(*row));
      return made;
    });
  }

  template <class... Assignments>
  void make_updated(After& after, const Update<Assignments...>& action, const Row& target, Pointer row,
                    bool) const {
    make_assigned<ClauseKind::matched>(after, action, target, Scope<Row, Source>{target, *row});
  }

  template <class Callable>
  void make_updated(After& after, const UpdateWith<Callable>& action, const Row& target, Pointer row,
                    bool) const {
    make_changed(after, target, [&]() -> Row {
      return detail::call<ClauseKind::matched>(action.callable, Scope<Row, Source>{target, *row});
    });
  }

  template <ClauseKind kind, class Action, class Rows>
  void make_assigned(After& after, const Action& action, const Row& target, const Rows& rows) const {
    make_changed(after, target, [&] {
      Row made = target;
      action.assignments.for_each(
          [&](const auto& assignment) { detail::run_assignment<kind>(made, assignment, rows); });
      return made;
    });
  }

  template <class From>
  static void make_row(After& after, From& from) {
    after.emplace(std::in_place, [&] { return detail::row_of<Row>(from); });
  }

  // --- Not matched

  void take_not_matched(Pointer row, Position position, std::uint64_t hash) {
    bool acted = false;
    const Scope<NoRow, Source> rows{no_row, *row};
    for_each_clause<ClauseKind::not_matched>([&](const auto& clause, std::uint32_t) {
      if (!detail::holds<ClauseKind::not_matched>(clause.condition, rows)) return false;
      using Action = typename std::remove_cvref_t<decltype(clause)>::ActionType;
      if constexpr (std::same_as<Action, Raise>) {
        Actions::raise(clause.action, Key::of(*row), position);
      } else if constexpr (is_insert_v<Action>) {
        Entry& entry = this->entry_for_insert(position);
        make_inserted(entry.after, clause.action, row);
        entry.key_known = keeps_key<Action>;
        entry.hash = hash;
        this->write_insert(entry);
        acted = true;
      }
      return true;
    });
    if (!acted) ++this->metrics().skipped;
  }

  static void make_inserted(After& after, const InsertAll&, Pointer row) { make_row(after, *row); }

  static void make_inserted(After& after, const InsertPresent&, Pointer row) {
    check_patch_key(typename CoreType::KeyParts{});
    after.emplace(std::in_place, [&] {
      Row made{};
      detail::copy_present_columns(made, std::as_const(*row));
      if constexpr (Key::by_key) require_key_of_patch(CoreType::key_of(made), Key::of(*row));
      return made;
    });
  }

  template <class Made, class Wanted>
  static void require_key_of_patch(const Made& made, const Wanted& wanted) {
    if (detail::equal_values(made, wanted)) return;
    throw Error("insert_present() made a row with key " + detail::key_text(made) + " of a patch with key " +
                detail::key_text(wanted) + "; a patch for a new row must bring its whole key by name");
  }

  template <auto... Parts>
  static constexpr void check_patch_key(detail::Parts<Parts...>) {
    static_assert((check_patch_key_part<Parts>() && ...));
  }
  // A computed part is judged by its value.
  template <auto Part>
  static constexpr bool check_patch_key_part() {
    if constexpr (std::is_member_object_pointer_v<decltype(Part)>) {
      return insert_present_key<Part, Source>::value;
    } else {
      return true;
    }
  }

  template <class... Assignments>
  static void make_inserted(After& after, const Insert<Assignments...>& action, Pointer row) {
    after.emplace(std::in_place, [&] {
      Row made{};
      const Scope<NoRow, Source> rows{no_row, *row};
      action.assignments.for_each([&](const auto& assignment) {
        detail::run_assignment<ClauseKind::not_matched>(made, assignment, rows);
      });
      return made;
    });
  }

  template <class Callable>
  static void make_inserted(After& after, const InsertWith<Callable>& action, Pointer row) {
    after.emplace(std::in_place, [&] {
      return Row(detail::call<ClauseKind::not_matched>(action.callable, Scope<NoRow, Source>{no_row, *row}));
    });
  }

  // --- Not matched by source

  void visit_unmatched_targets() {
    const SlotType* current = nullptr;
    const auto name = [&] {
      return RowName{detail::key_text(CoreType::key_of(current->get())), no_position};
    };
    detail::naming_row(name, [&] {
      for (const SlotType& slot : core_.scan()) {
        current = &slot;
        if (plan_.touched(slot) == nullptr) take_unmatched_target(slot);
      }
    });
  }

  void take_unmatched_target(const SlotType& slot) {
    const Scope<Row, NoRow> rows{slot.get(), no_row};
    for_each_clause<ClauseKind::not_matched_by_source>([&](const auto& clause, std::uint32_t number) {
      if (!detail::holds<ClauseKind::not_matched_by_source>(clause.condition, rows)) return false;
      using Action = typename std::remove_cvref_t<decltype(clause)>::ActionType;
      if constexpr (std::same_as<Action, Raise>) {
        Actions::raise(clause.action, CoreType::key_of(slot.get()), no_position);
      } else if constexpr (std::same_as<Action, Erase>) {
        this->write_erase(slot, no_position, number, this->metrics().not_matched_by_source_deleted);
      } else if constexpr (is_update_v<Action>) {
        Entry& update = this->entry_for(slot, no_position, number);
        make_updated_by_source(update.after, clause.action, slot.get());
        this->write_update(update, this->metrics().not_matched_by_source_updated);
      }
      return true;
    });
  }

  template <class... Assignments>
  void make_updated_by_source(After& after, const Update<Assignments...>& action, const Row& target) const {
    make_assigned<ClauseKind::not_matched_by_source>(after, action, target,
                                                     Scope<Row, NoRow>{target, no_row});
  }

  template <class Callable>
  void make_updated_by_source(After& after, const UpdateWith<Callable>& action, const Row& target) const {
    make_changed(after, target, [&]() -> Row {
      return detail::call<ClauseKind::not_matched_by_source>(action.callable,
                                                             Scope<Row, NoRow>{target, no_row});
    });
  }

  // --- Clauses

  // Calls `visit(clause, number)` for the clauses of a kind in written order until it returns true.
  template <ClauseKind kind, class Visit>
  void for_each_clause(Visit visit) {
    std::uint32_t number = 0;
    rule_.clauses().any([&](const auto& clause) {
      const std::uint32_t own = number++;
      if constexpr (std::remove_cvref_t<decltype(clause)>::kind == kind) {
        return visit(clause, own);
      } else {
        return false;
      }
    });
  }

  static constexpr NoRow no_row{};

  const Rule& rule_;
};

}  // namespace keyfold::detail

// detail/write

// detail/apply

// detail/tree_paths

/// Loads ahead what writes to an ordered index will read. A search in a large tree waits for memory at most
/// of its levels, one wait after the other; those of several searches in lockstep go on at the same time.
///
/// Boost.MultiIndex has no such search, so this reads its nodes itself. Where they cannot be had
/// (perhaps in another version), nothing is loaded, and nothing else changes.
namespace keyfold::detail {

template <class Index>
using tree_node_t = std::remove_pointer_t<decltype(std::declval<const Index&>().end().get_node())>;

/// An ordered index whose nodes can be had.
template <class Index>
concept OpenTree = requires(const tree_node_t<Index>& node) {
  { tree_node_t<Index>::from_impl(node.parent()) } -> std::convertible_to<const tree_node_t<Index>*>;
  { tree_node_t<Index>::from_impl(node.left()) } -> std::convertible_to<const tree_node_t<Index>*>;
  { tree_node_t<Index>::from_impl(node.right()) } -> std::convertible_to<const tree_node_t<Index>*>;
  { node.value() } -> std::same_as<const typename Index::value_type&>;
};

/// Trees with fewer nodes lie in the cache anyway.
inline constexpr std::size_t smallest_tree_to_load = 16384;
inline constexpr std::size_t paths_at_once = 16;

/// Loads the nodes that insertions of `count` keys will pass. `less(i, element)` tells whether key number `i`
/// comes before an element. Requires: count <= paths_at_once. Throws what `less` throws. O(count log n).
template <class Index, class Less>
void load_paths(const Index& index, std::size_t count, Less less) {
  assert(count <= paths_at_once);
  if constexpr (OpenTree<Index>) {
    using Node = tree_node_t<Index>;
    struct Search {
      std::size_t key;
      const Node* at;
    };
    std::array<Search, paths_at_once> searches;
    const Node* root = Node::from_impl(index.end().get_node()->parent());
    std::size_t under_way = root == nullptr ? 0 : count;
    for (std::size_t i = 0; i < under_way; ++i) searches[i] = {i, root};
    while (under_way != 0) {
      std::size_t going_on = 0;
      for (std::size_t i = 0; i < under_way; ++i) {
        const auto [key, at] = searches[i];
        const Node* next = Node::from_impl(less(key, at->value()) ? at->left() : at->right());
        detail::prefetch_lines(next);
        searches[going_on] = {key, next};
        going_on += next != nullptr ? 1U : 0U;
      }
      under_way = going_on;
    }
  }
}

/// Loads the nodes around an element, which its removal will link anew.
template <class Index>
void load_neighbours(const Index& index, const typename Index::value_type& element) noexcept {
  if constexpr (OpenTree<Index>) {
    using Node = tree_node_t<Index>;
    const Node* node = index.iterator_to(element).get_node();
    for (const Node* neighbour :
         {Node::from_impl(node->parent()), Node::from_impl(node->left()), Node::from_impl(node->right())})
      detail::prefetch_lines(neighbour);
  }
}

}  // namespace keyfold::detail

// detail/validate

// detail/hash_sieve

namespace keyfold::detail {

/// Tells most of many hashes apart, by one bit in 16 for each: what `is_alone` equals no other that was
/// added. Few are not, unless they are equal. Many times smaller than a hash table, and read without
/// guessing.
class HashSieve {
 public:
  /// For so many hashes. Throws std::bad_alloc.
  explicit HashSieve(std::size_t count)
      : cells_(count < 2 ? 0 : std::bit_ceil(count * bits_for_each / bits + 1)) {}

  void add(std::uint64_t hash) noexcept {
    if (cells_.empty()) return;
    Cell& cell = cells_[number_of(hash)];
    cell.twice |= cell.once & bit_of(hash);
    cell.once |= bit_of(hash);
  }
  bool is_alone(std::uint64_t hash) const noexcept {
    return cells_.empty() || (cells_[number_of(hash)].twice & bit_of(hash)) == 0;
  }

 private:
  struct Cell {
    std::uint64_t once = 0;
    std::uint64_t twice = 0;
  };
  static constexpr std::size_t bits = 64;
  static constexpr std::size_t bits_for_each = 16;

  std::size_t number_of(std::uint64_t hash) const noexcept { return (hash / bits) & (cells_.size() - 1); }
  static std::uint64_t bit_of(std::uint64_t hash) noexcept { return std::uint64_t{1} << (hash % bits); }

  List<Cell> cells_;
};

}  // namespace keyfold::detail

/// The last step of planning: works out which keys the planned rows leave and arrive at, and checks that the
/// table as it will be is legal. Only the final state counts, so swaps, chains and freed keys pass in any
/// order of rows.
namespace keyfold::detail {

template <class Parts, class Row>
std::string collision_text(const char* kind, const Row& first, Position first_position, const Row& second,
                           Position second_position) {
  return std::string(kind) + ' ' + Parts::name() + " = " + detail::key_text(Parts::of(second)) +
         " would be held by " + detail::describe(first, first_position) + " and by " +
         detail::describe(second, second_position);
}

/// Checks one unique key, primary or secondary, on the final state.
template <class CoreType, class Parts>
class UniqueCheck {
 public:
  using Row = typename CoreType::RowType;
  using Entry = Planned<Row>;

  /// `expected`: so many are not alone, roughly.
  explicit UniqueCheck(std::size_t expected = 0) noexcept : expected_(expected) {}

  /// A row arrives at its key. `alone`: no other arrives there. `holders(key, hash, visit)` visits the rows
  /// of the table that hold it now, and `leaves(entry)` tells whether a planned entry gives its key up.
  template <class Holders, class Leaves>
  void arrive(Plan<Row>& plan, Entry& entry, std::uint64_t hash, bool alone, Holders holders, Leaves leaves) {
    const auto key = Parts::of(entry.after->get());
    if (!alone) {
      if (!arrived_) arrived_.emplace().presize(expected_);
      const Entry* other = arrived_->add_if_new(hash, &entry, [&](const Entry& arrived) {
        return detail::equal_values(Parts::of(arrived.after->get()), key);
      });
      if (other != nullptr) refuse(*other, entry);
    }
    if (!primary || !entry.key_known) {
      holders(key, hash, [&](const Slot<Row>& holder) {
        Entry* planned = plan.touched(holder);
        if (planned == nullptr || !leaves(*planned)) refuse(holder, planned, entry);
        if constexpr (primary) {
          plan.turn_of(*planned);
          plan.turn_of(entry).frees_key = planned;
          planned->replaced = true;
        }
      });
    }
  }

 private:
  static constexpr bool primary = std::is_same_v<Parts, typename CoreType::KeyParts>;

  [[noreturn]] static void refuse(const Entry& first, const Entry& second) {
    const bool both_new = first.outcome == Outcome::insert && second.outcome == Outcome::insert;
    refuse(first.after->get(), first.position, second, both_new);
  }
  [[noreturn]] static void refuse(const Slot<Row>& holder, const Entry* planned, const Entry& second) {
    const bool updated = planned != nullptr && planned->outcome == Outcome::update;
    refuse(updated ? planned->after->get() : holder.get(), updated ? planned->position : no_position, second,
           false);
  }
  [[noreturn]] static void refuse(const Row& first, Position first_position, const Entry& second,
                                  bool both_new) {
    const Row& row = second.after->get();
    const std::string key = detail::key_text(Parts::of(row));
    const Position second_position = second.position;
    if constexpr (primary) {
      const std::string text =
          detail::collision_text<Parts>("the key", first, first_position, row, second_position);
      if (both_new && first_position != no_position) {
        throw DuplicateSourceKey(text + "; give a duplicate policy with duplicates(), or remove one of them",
                                 Parts::name(), key, first_position, second_position);
      }
      throw DuplicateKey(
          text + "; update the row that is there, as upsert() does, or erase it in the same write",
          Parts::name(), key, first_position, second_position);
    } else {
      throw UniqueViolation(
          detail::collision_text<Parts>("the unique", first, first_position, row, second_position) +
              "; change one of them, or erase one in the same write",
          Parts::name(), key, first_position, second_position);
    }
  }

  std::size_t expected_;
  std::optional<KeyIndex<const Entry>> arrived_;  // those that are not alone
};

template <class CoreType>
class Validator {
 public:
  using Row = typename CoreType::RowType;
  using KeyParts = typename CoreType::KeyParts;
  using Entry = Planned<Row>;

  Validator(const CoreType& core, Plan<Row>& plan) : core_(core), plan_(plan) {}

  void run() {
    if (plan_.metrics.affected() == 0) return;
    plan_.set_out([this](Entry& entry) {
      if (has_indexes || !entry.key_known) find_keys(entry);
    });
    if (plan_.counts.arrivals() != 0) {
      if (plan_.entries.size() == 1 && plan_.entries.front().key_known) {
        find_grave(plan_.entries.front());
      } else {
        check_primary();
      }
    }
    if (!plan_.turns.empty()) plan_.place_in_log();
    check_secondaries(std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>());
    if (!core_.checks.empty()) check_constraints();
  }

 private:
  static constexpr bool has_indexes = std::tuple_size_v<typename CoreType::Indexes> != 0;

  template <std::size_t N>
  using SpecAt = std::tuple_element_t<N, typename CoreType::Indexes>;

  // Hashes the keys left and arrived at, and sees which indexes an update moves in.
  [[gnu::noinline]] void find_keys(Entry& entry) {
    if (entry.outcome == Outcome::erase) {
      entry.hash = detail::hash_of(CoreType::key_of(entry.slot->get()));
    } else if (entry.outcome == Outcome::insert) {
      if (!entry.key_known) arrive_at_key(entry);
    } else if (entry.outcome == Outcome::update) {
      const Row& before = entry.slot->get();
      entry.rekeyed = !entry.key_known &&
                      !detail::equal_values(CoreType::key_of(before), CoreType::key_of(entry.after->get()));
      entry.relinked = relinked(before, entry.after->get(),
                                std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>());
      if (entry.rekeyed) plan_.turn_of(entry).hash_before = detail::hash_of(CoreType::key_of(before));
      if (entry.rekeyed || entry.relinked) arrive_at_key(entry);
    }
  }

  void arrive_at_key(Entry& entry) {
    const auto key = CoreType::key_of(entry.after->get());
    detail::require_valid_key(KeyParts{}, key, entry.position);
    entry.hash = detail::hash_of(key);
  }

  template <class Spec>
  static bool moves_in_index(const Row& before, const Row& after) {
    const auto from = parts_of<Spec>::of(before);
    const auto to = parts_of<Spec>::of(after);
    if constexpr (spec_traits<Spec>::ordered) {
      return detail::less_values(from, to) || detail::less_values(to, from);
    } else {
      return !detail::equal_values(from, to);
    }
  }

  template <std::size_t... N>
  static bool relinked(const Row& before, const Row& after, std::index_sequence<N...>) {
    return (moves_in_index<SpecAt<N>>(before, after) || ...);
  }

  void check_primary() {
    UniqueCheck<CoreType, KeyParts> check;
    const auto holders = [this](const auto& key, std::uint64_t hash, const auto& visit) {
      if (const auto* holder = core_.find(key, hash)) visit(*holder);
    };
    const auto leaves = [](const Entry& planned) { return planned.leaves_key(); };
    constexpr std::size_t ahead = 16;
    const auto placed = plan_.placed();
    HashSieve arrivals(plan_.counts.arrivals());
    placed.for_each_arrival([&](std::uint64_t hash) { arrivals.add(hash); });
    const bool no_graves = core_.graves.size() == 0;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (i + ahead < placed.size()) prefetch(placed.step(i + ahead));
      const PlanStep& step = placed.step(i);
      if (!step.arrives_at_key()) continue;
      const bool alone = arrivals.is_alone(step.hash);
      if (alone && step.key_known() && no_graves) continue;
      check.arrive(plan_, placed[i], step.hash, alone, holders, leaves);
      find_grave(placed[i]);
    }
  }

  void prefetch(const PlanStep& step) const noexcept {
    if (step.arrives_at_key() && !step.key_known()) core_.keys.prefetch(step.hash);
  }

  void find_grave(Entry& entry) {
    if (core_.graves.size() == 0) return;
    if (const auto* turn = plan_.turn_if_any(entry); turn != nullptr && turn->frees_key != nullptr) return;
    auto* grave = core_.find_grave(CoreType::key_of(entry.after->get()), entry.hash);
    if (grave != nullptr) plan_.turn_of(entry).grave = grave;
  }

  template <std::size_t... N>
  void check_secondaries(std::index_sequence<N...>) {
    (check_secondary<N>(), ...);
  }

  template <std::size_t N>
  void check_secondary() {
    using Spec = SpecAt<N>;
    using Parts = parts_of<Spec>;
    if constexpr (spec_traits<Spec>::unique) {
      UniqueCheck<CoreType, Parts> check(plan_.entries.size());
      const auto holders = [&](const auto& key, std::uint64_t, const auto& visit) {
        const auto [first, last] = core_.template matching<N>(key);
        for (auto it = first; it != last; ++it) visit(*it);
      };
      const auto leaves = [](const Entry& planned) {
        return planned.outcome == Outcome::erase ||
               (planned.outcome == Outcome::update &&
                moves_in_index<Spec>(planned.slot->get(), planned.after->get()));
      };
      for (Entry& entry : plan_.entries) {
        if (!entry.leaves_row() || detail::has_empty_part(Parts::of(entry.after->get()))) continue;
        if (entry.outcome == Outcome::update && !moves_in_index<Spec>(entry.slot->get(), entry.after->get()))
          continue;
        check.arrive(plan_, entry, detail::hash_of(Parts::of(entry.after->get())), plan_.entries.size() == 1,
                     holders, leaves);
      }
    }
  }

  void check_constraints() const {
    for (const Entry& entry : plan_.entries) {
      if (!entry.leaves_row()) continue;
      for (const auto& check : core_.checks)
        detail::require_met<KeyParts, Row>(check, entry.after->get(), entry.position, true);
    }
  }

  const CoreType& core_;
  Plan<Row>& plan_;
};

/// Throws DuplicateKey, DuplicateSourceKey, UniqueViolation, InvalidKey or CheckViolation, or what the user's
/// comparisons throw.
template <class CoreType>
void validate(const CoreType& core, Plan<typename CoreType::RowType>& plan) {
  Validator<CoreType>(core, plan).run();
}

}  // namespace keyfold::detail

namespace keyfold::detail {

/// Puts a row into the container, at the end or in key order. Throws what Boost.MultiIndex and the user's
/// hashes and comparisons throw; strong guarantee.
template <class CoreType>
const typename CoreType::SlotType* add_slot(CoreType& core, Holder<typename CoreType::RowType>&& row) {
  if constexpr (CoreType::ordered) {
    return &*core.rows.emplace(std::move(row)).first;
  } else {
    return &*core.rows.emplace_back(std::move(row)).first;
  }
}

template <class Row>
void make_newest(const Slot<Row>& slot, LogEntry<Row>* entry) noexcept {
  entry->set_newer(&slot);
  slot.newest = entry;
}

/// Carries out a validated plan, all or nothing.
///
/// First everything that can fail: room in the key index and the log, and a slot in the container for each
/// row that is new or changes the key of an index, beside the old one. A failure takes those slots out again,
/// which needs no comparison and no memory. Then publish(), which cannot fail: it moves rows into and out of
/// slots, changes pointers, and unlinks what is gone.
template <class CoreType>
class Applier {
 public:
  using Row = typename CoreType::RowType;
  using Entry = Planned<Row>;

  Applier(CoreType& core, Plan<Row>& plan) noexcept : core_(core), plan_(plan) {}
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  ~Applier() {
    if (!published_) undo();
  }

  [[gnu::always_inline]] void stage(CommitNote&& note) {
    if (!note.once.empty()) number_apps(note.once);
    record(note);
    make_room();
    add_slots();
    if (core_.journal != nullptr) core_.journal->commit(*made_, note.once, plan_);
  }

  [[gnu::always_inline]] void publish() noexcept {
    published_ = true;
    for (const Numbered& numbered : numbered_) numbered.app->second = numbered.number;
    if (plan_.entries.size() == 1) {
      carry_out(plan_.entries.front());
    } else {
      carry_out_all();
    }
    made_->block.close(plan_.counts.log);
    for (const KeyTurn<Row>& turn : plan_.turns) {
      if (turn.frees_key != nullptr) turn.arrived->set_older(plan_.turns[turn.frees_key->turn - 1].left);
    }
    made_->table_size = core_.rows.size();
    core_.log->record_bytes += made_->block.bytes();
    if (!core_.log->first_commit) core_.log->first_commit = made_->timestamp;
  }

 private:
  static constexpr std::size_t prefetch_distance = 8;

  /// An application whose last number this commit sets.
  struct Numbered {
    typename decltype(CoreType::applied)::iterator app;
    bool added;
    std::uint64_t number;
  };

  [[gnu::noinline]] void undo() noexcept {
    for (const Entry& entry : plan_.entries) {
      if (entry.fresh != nullptr) core_.rows.erase(core_.rows.iterator_to(*entry.fresh));
    }
    if (made_ != nullptr) core_.log->records.pop_back();
    for (const Numbered& numbered : numbered_) {
      if (numbered.added) core_.applied.erase(numbered.app);
    }
  }

  [[gnu::noinline]] void number_apps(const std::vector<AppNumber>& once) {
    numbered_.reserve(once.size());
    for (const AppNumber& next : once) {
      const auto [app, added] = core_.applied.insert({next.app, std::uint64_t{0}});
      numbered_.push_back({app, added, next.number});
    }
  }

  [[gnu::always_inline]] void record(CommitNote& note) {
    auto& records = core_.log->records;
    Timestamp time = note.timestamp ? *note.timestamp : core_.options.clock();
    Version version = 1;
    if (!records.empty()) {
      const CommitRecord<Row>& last = records.back();
      time = std::max(time, detail::tick_after(last.timestamp));
      version = last.version + 1;
    }
    made_ = &records.emplace_back(version, time, note, plan_.metrics, core_.log->arena, plan_.counts.log);
  }

  [[gnu::always_inline]] void make_room() {
    const PlanCounts& counts = plan_.counts;
    if (plan_.entries.size() == 1) {
      const Entry& entry = plan_.entries.front();
      if (entry.arrives_at_key()) core_.keys.reserve_one(entry.hash);
      if (entry.leaves_key()) core_.graves.reserve_one(plan_.hash_before(entry));
      return;
    }
    core_.keys.reserve(counts.arrivals(), [this](auto visit) { plan_.placed().for_each_arrival(visit); });
    core_.graves.reserve(counts.departures, [this](auto visit) {
      for (const Entry& entry : plan_.entries) {
        if (entry.leaves_key()) visit(plan_.hash_before(entry));
      }
    });
  }

  void carry_out(Entry& entry) noexcept {
    if (entry.needs_slot()) {
      place(entry);
    } else if (entry.outcome == Outcome::update) {
      update_in_place(entry);
    } else if (entry.outcome == Outcome::erase) {
      leave(entry, LogKind::erase);
    }
  }

  void carry_out_all() noexcept {
    const auto placed = plan_.placed();
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (i + prefetch_distance < placed.size()) core_.keys.prefetch(placed.step(i + prefetch_distance).hash);
      prefetch_leaving(placed, i);
      place(placed[i]);
    }
    const auto others = plan_.others();
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (i + 2 * prefetch_distance < others.size())
        detail::prefetch_lines(others[i + 2 * prefetch_distance].slot);
      if (i + prefetch_distance < others.size())
        detail::prefetch_to_write(others[i + prefetch_distance].slot->newest);
      prefetch_leaving(others, i);
      Entry& entry = others[i];
      entry.outcome == Outcome::update ? update_in_place(entry) : leave(entry, LogKind::erase);
    }
  }

  void place(Entry& entry) noexcept {
    if (entry.outcome == Outcome::insert) {
      arrive(entry, entry.log_place, LogKind::insert, core_.next_order++);
    } else {
      replace(entry);
    }
  }

  void add_slots() {
    const auto placed = plan_.placed();
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (i % paths_at_once == 0) load_paths(placed, i);
      placed[i].fresh = detail::add_slot(core_, std::move(*placed[i].after));
    }
  }

  bool has_large_trees() const noexcept {
    return CoreType::has_trees && core_.rows.size() >= smallest_tree_to_load;
  }

  // The places in ordered indexes of the next entries.
  void load_paths(const SomePlanned<Row>& placed, std::size_t first) const {
    if constexpr (CoreType::has_trees) {
      const std::size_t count = std::min(paths_at_once, placed.size() - first);
      if (!has_large_trees() || count == 1) return;
      core_.for_each_tree([&]<class Parts>(const auto& index, Parts) {
        detail::load_paths(index, count, [&](std::size_t i, const Slot<Row>& slot) {
          return detail::less_values(Parts::of(placed[first + i].after->get()), Parts::of(slot.get()));
        });
      });
    }
  }

  // What is written when the slots of entries to come leave ordered indexes.
  void prefetch_leaving(const SomePlanned<Row>& entries, std::size_t i) const noexcept {
    if constexpr (CoreType::has_trees) {
      if (!has_large_trees()) return;
      const auto leaving = [&](std::size_t number) -> const Slot<Row>* {
        if (number >= entries.size()) return nullptr;
        const Entry& entry = entries[number];
        return entry.outcome == Outcome::erase || entry.needs_slot() ? entry.slot : nullptr;
      };
      if (const auto* slot = leaving(i + 2 * prefetch_distance)) detail::prefetch_lines(slot);
      if (const auto* slot = leaving(i + prefetch_distance))
        core_.for_each_tree([&](const auto& index, auto) { detail::load_neighbours(index, *slot); });
    }
  }

  LogBlock<Row>& block() noexcept { return made_->block; }
  Version version() const noexcept { return made_->version; }

  void update_in_place(Entry& entry) noexcept {
    const Slot<Row>& slot = *entry.slot;
    detail::make_newest(
        slot, block().put(entry.log_place, LogKind::update, version(), slot.newest, std::move(slot.row)));
    slot.row = std::move(*entry.after);
  }

  // The row goes on in another slot, at the same place in the order of rows.
  [[gnu::noinline]] void replace(Entry& entry) noexcept {
    const Slot<Row>& fresh = *entry.fresh;
    const std::uint64_t order = entry.slot->order;
    if constexpr (!CoreType::ordered) {
      core_.rows.relocate(core_.rows.iterator_to(*entry.slot), core_.rows.iterator_to(fresh));
    }
    if (entry.rekeyed) {
      leave(entry, LogKind::rekey_out);
      arrive(entry, entry.log_place + LogEntry<Row>::image_size / LogEntry<Row>::alignment, LogKind::rekey_in,
             order);
    } else {
      fresh.order = order;
      core_.keys.replace(entry.hash, entry.slot, &fresh);
      detail::make_newest(fresh, move_to_log(entry, LogKind::update));
    }
  }

  void arrive(Entry& entry, std::size_t place, LogKind kind, std::uint64_t order) noexcept {
    KeyTurn<Row>* turn = plan_.turn_if_any(entry);
    LogEntry<Row>* grave = turn != nullptr ? turn->grave : nullptr;
    LogEntry<Row>* arrived =
        entry.is_first() ? block().put_first(place, version()) : block().put(place, kind, version(), grave);
    entry.fresh->order = order;
    detail::make_newest(*entry.fresh, arrived);
    core_.keys.insert(entry.hash, entry.fresh);
    if (turn != nullptr) turn->arrived = arrived;
    if (grave != nullptr) core_.graves.erase(entry.hash, grave);
  }

  [[gnu::noinline]] void leave(Entry& entry, LogKind kind) noexcept {
    const std::uint64_t order = entry.slot->order;
    const std::uint64_t hash = plan_.hash_before(entry);
    core_.keys.erase(hash, entry.slot);
    LogEntry<Row>* left = move_to_log(entry, kind);
    left->set_order(order);
    if (KeyTurn<Row>* turn = plan_.turn_if_any(entry)) turn->left = left;
    if (!entry.replaced) core_.graves.insert(hash, left);
  }

  // Unlinks first: an index must not see the row that is left once it is moved from.
  LogEntry<Row>* move_to_log(const Entry& entry, LogKind kind) noexcept {
    auto node = core_.rows.extract(core_.rows.iterator_to(*entry.slot));
    return block().put(entry.log_place, kind, version(), node.value().newest, std::move(node.value().row));
  }

  CoreType& core_;
  Plan<Row>& plan_;
  List<Numbered> numbered_;
  CommitRecord<Row>* made_ = nullptr;
  bool published_ = false;
};

inline void check_identities([[maybe_unused]] const Metrics& metrics,
                             [[maybe_unused]] std::size_t size_before,
                             [[maybe_unused]] std::size_t size_after) {
  assert(size_after == size_before + metrics.inserted - metrics.deleted);
  assert(metrics.updated == metrics.matched_updated + metrics.not_matched_by_source_updated);
  assert(metrics.deleted == metrics.matched_deleted + metrics.not_matched_by_source_deleted);
}

template <class CoreType>
void publish_sequences(CoreType& core, Plan<typename CoreType::RowType>& plan) noexcept {
  if (plan.sequences == nullptr) return;
  plan.sequences->publish();
  ++core.sequences_changed;
}

/// Carries out a validated plan as one commit. Returns whether a version was made. What apply_changes()
/// remembers is kept in any case.
/// Exception safety: strong. Complexity: O(entries) on average, and what the secondary indexes cost.
template <class CoreType>
bool apply(CoreType& core, Plan<typename CoreType::RowType>& plan, CommitNote&& note) {
  if (plan.sequences != nullptr) plan.sequences->stage(core.sequences);
  const auto says_something = [&] {
    return note.metadata || !note.once.empty() || note.timestamp || core.options.record_empty_commits;
  };
  if (plan.metrics.affected() == 0 && !says_something()) {
    if (plan.sequences != nullptr && core.journal != nullptr) core.journal->remember(*plan.sequences);
    detail::publish_sequences(core, plan);
    return false;
  }
  const std::size_t size_before = core.rows.size();
  Applier<CoreType> applier(core, plan);
  applier.stage(std::move(note));
  applier.publish();
  detail::publish_sequences(core, plan);
  detail::check_identities(plan.metrics, size_before, core.rows.size());
  return true;
}

}  // namespace keyfold::detail

/// The one path of every write: plan, validate, apply.
namespace keyfold::detail {

/// What has become of a write.
struct Written {
  Version version = 0;           // of the table after it
  Version record = 0;            // where the log has its changes; 0 if it made none
  bool committed = false;        // it made a version
  bool already_applied = false;  // once() skipped it
  Metrics metrics{};
};

template <class CoreType>
bool already_applied(const CoreType& core, const std::vector<AppNumber>& once) {
  for (const AppNumber& next : once) {
    const auto last = core.applied.find(next.app);
    if (last != core.applied.end() && next.number <= last->second) return true;
  }
  return false;
}

/// Plans a write.
template <class Row>
using Fill = FunctionRef<void(Plan<Row>&)>;

/// Strong guarantee.
template <class CoreType>
Written write(CoreType& core, CommitNote&& note, Fill<typename CoreType::RowType> fill) {
  if (detail::already_applied(core, note.once)) return {.version = core.version(), .already_applied = true};
  const WriteScope scope(core.writing);
  auto plan = core.new_plan();
  fill(plan);
  detail::validate(core, plan);
  const WithoutReaders publishing(core.log->readers.get());
  const bool committed = detail::apply(core, plan, std::move(note));
  const Version version = core.version();
  return {version, committed ? version : 0, committed, false, plan.metrics};
}

/// What write() would change, with all its errors.
template <class CoreType>
ChangeSet<typename CoreType::RowType> preview(CoreType& core, Fill<typename CoreType::RowType> fill) {
  const WriteScope scope(core.writing);
  auto plan = core.new_plan();
  fill(plan);
  detail::validate(core, plan);
  return detail::to_change_set(plan, core.log->key);
}

}  // namespace keyfold::detail

// history

// detail/range_v3

/// Tells range-v3 what keyfold's views are, where range-v3 is installed and KEYFOLD_NO_RANGE_V3 is not
/// defined. Nothing else in keyfold knows of it.
#if !defined(KEYFOLD_NO_RANGE_V3) && __has_include(<range/v3/range_fwd.hpp>)
#include <range/v3/range_fwd.hpp>

namespace keyfold {

template <class Iterator>
class RowRange;
template <class Row, class Index, class Parts, bool ordered>
class IndexView;
template <class Row>
class History;
template <class Table>
class AsOfView;

namespace detail {
using ViewBase = ranges::view_base;
}  // namespace detail
}  // namespace keyfold

template <class Iterator>
inline constexpr bool ranges::enable_borrowed_range<keyfold::RowRange<Iterator>> = true;
template <class Row, class Index, class Parts, bool ordered>
inline constexpr bool ranges::enable_borrowed_range<keyfold::IndexView<Row, Index, Parts, ordered>> = true;
template <class Row>
inline constexpr bool ranges::enable_borrowed_range<keyfold::History<Row>> = true;
template <class Table>
inline constexpr bool ranges::enable_borrowed_range<keyfold::AsOfView<Table>> = true;

#else

namespace keyfold::detail {
struct ViewBase {};
}  // namespace keyfold::detail

#endif

namespace keyfold {

/// One commit of a table's history. A handle: valid while the table lives, until a version expires.
template <class Row>
class Commit {
 public:
  Commit(const detail::CommitLog<Row>& log, const detail::CommitRecord<Row>& record) noexcept
      : log_(&log), record_(&record) {}

  [[nodiscard]] Version version() const noexcept { return record_->version; }

  /// max(clock(), the last commit's time + 1 microsecond): ascending whatever the clock does. Two commits
  /// share a time only if that is Timestamp::max().
  [[nodiscard]] Timestamp timestamp() const noexcept { return record_->timestamp; }

  /// "MERGE", "APPEND", "INSERT", "DELETE", "TRUNCATE", "RESTORE", "UNDO", "APPLY",
  /// "APPLY CHANGES"; "REPLAY" for what subscribe() with replay tells first.
  [[nodiscard]] std::string_view operation() const noexcept { return record_->operation; }

  /// The clauses of a merge as text; the key of a DELETE; the version of a RESTORE or UNDO; else empty.
  [[nodiscard]] std::string_view parameters() const noexcept {
    return record_->parameters ? std::string_view(*record_->parameters) : std::string_view();
  }

  [[nodiscard]] Metrics metrics() const noexcept { return record_->metrics.get(); }

  /// What the writer stored with the commit; empty if nothing.
  [[nodiscard]] std::string_view metadata() const noexcept {
    return record_->metadata ? std::string_view(*record_->metadata) : std::string_view();
  }

  /// What the commit changed, with before and after rows. Copies them: O(changes). Throws VersionExpired for
  /// a tagged version that is older than the oldest readable one: its changes are gone, its rows are not.
  [[nodiscard]] ChangeSet<Row> changes() const { return detail::changes_of(*log_, *record_); }

 private:
  const detail::CommitLog<Row>* log_;
  const detail::CommitRecord<Row>* record_;
};

/// The commits that are kept, in ascending order: a random access range of `Commit`, valid while the table
/// lives.
template <class Row>
class History : public detail::ViewBase {
 public:
  class Iterator;

  History() = default;
  explicit History(const detail::CommitLog<Row>& log) noexcept : log_(&log) {}

  [[nodiscard]] std::size_t size() const noexcept { return log_->records.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// Requires: index < size().
  [[nodiscard]] Commit<Row> operator[](std::size_t index) const noexcept {
    assert(index < size());
    return Commit<Row>(*log_, log_->records[index]);
  }
  [[nodiscard]] Commit<Row> front() const noexcept { return (*this)[0]; }
  [[nodiscard]] Commit<Row> back() const noexcept { return (*this)[size() - 1]; }

  [[nodiscard]] Iterator begin() const noexcept { return Iterator(log_, 0); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator(log_, static_cast<std::ptrdiff_t>(size())); }

 private:
  const detail::CommitLog<Row>* log_ = nullptr;
};

/// Random access iterator (C++20) over commits; dereferences to a Commit by value.
template <class Row>
class History<Row>::Iterator {
 public:
  using value_type = Commit<Row>;
  using difference_type = std::ptrdiff_t;
  using reference = Commit<Row>;
  using pointer = void;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::random_access_iterator_tag;

  Iterator() = default;
  Iterator(const detail::CommitLog<Row>* log, difference_type index) noexcept : log_(log), index_(index) {}

  Commit<Row> operator*() const noexcept {
    return Commit<Row>(*log_, log_->records[static_cast<std::size_t>(index_)]);
  }
  Commit<Row> operator[](difference_type offset) const noexcept { return *(*this + offset); }

  Iterator& operator+=(difference_type offset) noexcept {
    index_ += offset;
    return *this;
  }
  Iterator& operator-=(difference_type offset) noexcept { return *this += -offset; }
  Iterator& operator++() noexcept { return *this += 1; }
  Iterator& operator--() noexcept { return *this -= 1; }
  Iterator operator++(int) noexcept { return std::exchange(*this, *this + 1); }
  Iterator operator--(int) noexcept { return std::exchange(*this, *this - 1); }

  friend Iterator operator+(Iterator it, difference_type offset) noexcept { return it += offset; }
  friend Iterator operator+(difference_type offset, Iterator it) noexcept { return it += offset; }
  friend Iterator operator-(Iterator it, difference_type offset) noexcept { return it -= offset; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) noexcept {
    return a.index_ - b.index_;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.index_ == b.index_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) noexcept { return a.index_ <=> b.index_; }

 private:
  const detail::CommitLog<Row>* log_ = nullptr;
  difference_type index_ = 0;
};

}  // namespace keyfold

template <class Row>
inline constexpr bool std::ranges::enable_view<keyfold::History<Row>> = true;
template <class Row>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::History<Row>> = true;

namespace keyfold {

/// What a write did. A value; `changes()` reads the table's history.
template <class Row>
class MergeResult {
 public:
  MergeResult(const detail::Written& written, const std::shared_ptr<detail::CommitLog<Row>>& log,
              std::vector<std::exception_ptr> subscriber_errors = {}) noexcept
      : written_(written),
        log_(log),
        readers_(log->readers),
        subscriber_errors_(std::move(subscriber_errors)) {}

  /// The table's version after the write.
  [[nodiscard]] Version version() const noexcept { return written_.version; }

  /// Whether the write made a version. One that changed nothing does not, see docs/merge-semantics.md; nor
  /// does one within a transaction, before the transaction is committed.
  [[nodiscard]] bool committed() const noexcept { return written_.committed; }

  /// Whether once() skipped the write, since its number was recorded before.
  [[nodiscard]] bool already_applied() const noexcept { return written_.already_applied; }

  [[nodiscard]] const Metrics& metrics() const noexcept { return written_.metrics; }

  /// What the write changed, with before and after rows (SQL's RETURNING). Copies the rows: O(changes).
  /// Throws TableGone when the table no longer exists, or the transaction that the write was part of has
  /// ended; VersionExpired when the version has expired.
  [[nodiscard]] ChangeSet<Row> changes() const {
    if (written_.record == 0) return {};
    if (readers_ == nullptr) return recorded_changes();
    ChangeSet<Row> changes;
    readers_->read([&] { changes = recorded_changes(); });
    return changes;
  }

  /// What subscribers threw when they were told of this write, as far as there was memory to keep it. The
  /// write stands, and the others were told.
  [[nodiscard]] const std::vector<std::exception_ptr>& subscriber_errors() const noexcept {
    return subscriber_errors_;
  }

 private:
  // Holds the log, and so only while its table cannot go.
  ChangeSet<Row> recorded_changes() const {
    const auto log = log_.lock();
    if (log == nullptr)
      throw TableGone("result, or the transaction it was part of,", "ask for changes() before that");
    const auto* record = log->find(written_.record);
    if (record == nullptr) throw VersionExpired(written_.record, log->oldest);
    return detail::changes_of(*log, *record);
  }

  detail::Written written_;
  std::weak_ptr<const detail::CommitLog<Row>> log_;
  std::shared_ptr<detail::TableReaders> readers_;  // of a table that was shared when it was written to
  std::vector<std::exception_ptr> subscriber_errors_;
};

/// The clauses of a merge as a value: built once, run many times, possibly constexpr.
///
///     constexpr auto rule = keyfold::merge_rule<Order,
///     Change>().on<&Change::id>().when_matched().update_all(); orders.merge(changes, rule);
template <class RowType, class SourceType, class MatchType, class Policy, class... Clauses>
class [[nodiscard]] MergeRule
    : public detail::MergeSyntax<MergeRule<RowType, SourceType, MatchType, Policy, Clauses...>> {
 public:
  using Row = RowType;
  using Source = SourceType;
  using Match = MatchType;
  using PolicyType = Policy;
  using Rule = MergeRule;

  constexpr MergeRule(Match match, Policy policy, detail::Pack<Clauses...> clauses, bool rewrite_unchanged)
      : match_(std::move(match)),
        policy_(std::move(policy)),
        clauses_(std::move(clauses)),
        rewrite_unchanged_(rewrite_unchanged) {}

  /// The clauses as history records them, in SQL's words.
  [[nodiscard]] std::string text() const {
    std::string out;
    clauses_.for_each([&](const auto& clause) {
      if (!out.empty()) out += ' ';
      clause.print(out);
    });
    return out;
  }

  // For the planner and the grammar.

  template <detail::ClauseKind kind>
  static constexpr bool has_unconditional_clause = ((Clauses::kind == kind && Clauses::unconditional) || ...);
  template <detail::ClauseKind kind>
  static constexpr bool has_clause = ((Clauses::kind == kind) || ...);
  static constexpr std::size_t clause_count = sizeof...(Clauses);

  /// Whether all rules of this type have the same text().
  static constexpr bool has_fixed_text =
      std::same_as<typename Match::Condition, detail::Always> && std::same_as<Policy, detail::NoPolicy> &&
      ((Clauses::unconditional && std::is_empty_v<typename Clauses::ActionType>) && ...);

  constexpr const Match& match() const noexcept { return match_; }
  constexpr const Policy& policy() const noexcept { return policy_; }
  constexpr const detail::Pack<Clauses...>& clauses() const noexcept { return clauses_; }
  constexpr bool rewrites_unchanged() const noexcept { return rewrite_unchanged_; }

  constexpr MergeRule&& rule() noexcept { return std::move(*this); }
  template <class Other>
  constexpr Other with(Other other) && {
    return other;
  }

  template <class Clause>
  constexpr auto with_clause(Clause clause) && {
    return MergeRule<Row, Source, Match, Policy, Clauses..., Clause>(
        std::move(match_), std::move(policy_), std::move(clauses_).with(std::move(clause)),
        rewrite_unchanged_);
  }
  template <class NewPolicy>
  constexpr auto with_policy(NewPolicy policy) && {
    return MergeRule<Row, Source, Match, NewPolicy, Clauses...>(std::move(match_), std::move(policy),
                                                                std::move(clauses_), rewrite_unchanged_);
  }
  template <class NewMatch>
  constexpr auto with_match(NewMatch match) && {
    return MergeRule<Row, Source, NewMatch, Policy, Clauses...>(std::move(match), std::move(policy_),
                                                                std::move(clauses_), rewrite_unchanged_);
  }
  constexpr auto rewriting() && {
    return MergeRule(std::move(match_), std::move(policy_), std::move(clauses_), true);
  }

 private:
  Match match_;
  Policy policy_;
  detail::Pack<Clauses...> clauses_;
  bool rewrite_unchanged_;
};

/// Starts a rule that merges rows of type Source into a table of rows of type Row.
template <class Row, class Source = Row>
constexpr auto merge_rule() {
  using Match = detail::Match<void, void, detail::Always>;
  return MergeRule<Row, Source, Match, detail::NoPolicy>(Match{}, detail::NoPolicy{}, detail::Pack<>{},
                                                         false);
}

namespace detail {

/// The rule of upsert().
template <class Row, class Source>
inline constexpr auto upsert_rule =
    merge_rule<Row, Source>().when_matched().update_all().when_not_matched().insert_all();

}  // namespace detail

/// A merge that is being put together; nothing happens before execute() or preview(). It refers to the table,
/// and to the source where that is an lvalue.
template <class Target, class SourceRange, class RuleType>
class [[nodiscard("nothing happens before execute() or preview()")]] MergeBuilder
    : public detail::MergeSyntax<MergeBuilder<Target, SourceRange, RuleType>> {
 public:
  using Rule = RuleType;
  using Row = typename Rule::Row;
  using Source = typename Rule::Source;

  MergeBuilder(detail::WriteInput<Target, SourceRange>&& input, Rule rule)
      : input_(std::move(input)), rule_(std::move(rule)) {}

  /// Stored with the commit. A merge with metadata makes a version even if it changes nothing.
  MergeBuilder metadata(std::string text) && {
    input_.note.metadata = detail::SharedText(std::move(text));
    return std::move(*this);
  }

  /// Numbers the write for an application: it is skipped, and its source not read, unless the number is above
  /// the last one recorded for that application. The number is recorded with the commit, even if nothing else
  /// changes.
  MergeBuilder once(std::string app, std::uint64_t number) && {
    input_.note.once = {{std::move(app), number}};
    return std::move(*this);
  }

  /// Runs the merge as one commit. Reads the source once; a container that the merge owns has its rows moved
  /// from, but not where the builder is an lvalue, which can be executed again.
  ///
  /// Throws: DuplicateSourceKey, DuplicateKey, UniqueViolation, InvalidKey, ClauseRaised, ValueOutOfRange,
  /// and whatever the source, the conditions and the rows throw. Strong guarantee for the table; a source
  /// that the merge owns is gone. Complexity: O(source rows) on average, plus O(table) with a
  /// when_not_matched_by_source clause.
  MergeResult<Row> execute() && {
    return run<SourceRange>(*input_.target, input_.source, rule_, std::move(input_.note));
  }
  MergeResult<Row> execute() & {
    return run<SourceRange&>(*input_.target, input_.source, rule_, detail::CommitNote(input_.note));
  }

  /// What execute() would do, with all its errors, without doing it. A single-pass source is read all the
  /// same, so that nothing is left to execute.
  [[nodiscard]] ChangeSet<Row> preview() {
    return input_.target->preview_plan(planner<SourceRange&>(*input_.target, input_.source, rule_));
  }

  /// What execute() does. `Declared` tells whether rows may be moved from, see SourceTraits.
  template <class Declared>
  static MergeResult<Row> run(Target& target, std::remove_reference_t<SourceRange>& source, const Rule& rule,
                              detail::CommitNote&& note) {
    note.operation = "MERGE";
    note.parameters = detail::shared_merge_text<typename Target::CoreType>(rule);
    return target.write(std::move(note), planner<Declared>(target, source, rule));
  }

  // For the grammar.

  constexpr Rule&& rule() noexcept { return std::move(rule_); }
  template <class NewRule>
  auto with(NewRule rule) && {
    return MergeBuilder<Target, SourceRange, NewRule>(std::move(input_), std::move(rule));
  }

 private:
  template <class Declared>
  static auto planner(Target& target, std::remove_reference_t<SourceRange>& source, const Rule& rule) {
    static_assert(Rule::clause_count > 0,
                  "keyfold: a merge without a clause does nothing; add a when_... clause");
    return [&](auto& plan) {
      detail::MergePlanner<typename Target::CoreType, Rule, Declared>(target.core(), rule, plan).run(source);
    };
  }

  detail::WriteInput<Target, SourceRange> input_;
  Rule rule_;
};

}  // namespace keyfold

namespace keyfold {

/// A load of change events that is being put together; nothing happens before execute() or preview(). It
/// refers to the table, and to the events where they are an lvalue. See docs/apply_changes.md.
///
/// Any order and any batching of one set of events, whose sequences differ for each key, ends in the same
/// rows as the events one by one in the order of their sequences.
template <class Target, class SourceRange, class FeedType>
class [[nodiscard("nothing happens before execute() or preview()")]] ApplyChanges {
 public:
  using Feed = FeedType;
  using Row = typename Feed::Row;
  using Source = typename Feed::Source;

  ApplyChanges(detail::WriteInput<Target, SourceRange>&& input, Feed feed)
      : input_(std::move(input)), feed_(std::move(feed)) {}

  /// The key of an event, part by part. Default: its members named like the parts of the table's key. With
  /// scd2<>(): without `valid_from`.
  template <auto... Members>
  auto keys() && {
    static_assert(sizeof...(Members) > 0,
                  "keyfold: keys<>() names the members of the events that are their key");
    static_assert((detail::Readable<Members, Source> && ...),
                  "keyfold: keys<>() names a member of another type than the events");
    return std::move(*this).with(detail::FeedKeys<Members...>{});
  }

  /// What tells which of two events of a key is newer: a member, or several to be compared in turn. Required.
  /// Of equal events the one later in the source, or in a later load, is newer.
  template <auto... Members>
  auto sequence_by() && {
    static_assert(sizeof...(Members) > 0, "keyfold: sequence_by<>() names the members that order the events");
    static_assert((detail::Readable<Members, Source> && ...),
                  "keyfold: sequence_by<>() names a member of another type than the events");
    static_assert(
        (detail::SequencePart<detail::unwrap_optional_t<detail::member_value_t<Members, Source>>> && ...),
        "keyfold: sequence_by<>() needs members that compare with <");
    return std::move(*this).with(detail::FeedSequence<Members...>{});
  }

  /// Events for which this holds delete the row with their key. An expression over the source, or a callable
  /// as `bool(const Source&)`.
  template <class Condition>
  auto apply_as_deletes(Condition condition) && {
    detail::check_event_condition<Condition, Source>();
    return std::move(*this).with(detail::FeedDeletes<Condition>{std::move(condition)});
  }

  /// Events for which this holds delete all rows that are not newer than they are; their key does not matter.
  template <class Condition>
  auto apply_as_truncates(Condition condition) && {
    detail::check_event_condition<Condition, Source>();
    return std::move(*this).with(detail::FeedTruncates<Condition>{std::move(condition)});
  }

  /// An empty std::optional in an event leaves the column as it is.
  auto ignore_null_updates() && { return std::move(*this).with(detail::FeedNulls{}); }

  /// Copies all columns of the events that the row has by name, but these. The key is always copied.
  template <auto... Members>
  auto columns_except() && {
    return std::move(*this).template choose<false, Members...>();
  }
  /// Copies these columns of the events only. The key is always copied.
  template <auto... Members>
  auto columns_only() && {
    return std::move(*this).template choose<true, Members...>();
  }

  /// How long deletes are remembered: `keep_last(n)` of them, or `keep_for(duration)` by the table's clock.
  /// Default: for ever. An event older than a forgotten delete is taken for new.
  template <class Rule>
  auto tombstones(Rule rule) && {
    constexpr bool known = std::is_same_v<Rule, KeepLastVersions> || std::is_same_v<Rule, KeepFor>;
    static_assert(known, "keyfold: tombstones() takes keep_last(n) or keep_for(duration)");
    if constexpr (known) return std::move(*this).with(detail::FeedTombstones{rule});
  }

  /// Two events of a key with equal sequences are an error: SequenceTie.
  template <class Policy>
  auto on_tie(Policy) && {
    static_assert(std::is_same_v<Policy, detail::Reject>,
                  "keyfold: on_tie() takes reject; without it the later of two equal events wins");
    return std::move(*this).with(detail::FeedTies{});
  }

  /// Keeps the history of each key as rows (SCD type 2): the row of an upsert is valid from its sequence to
  /// that of the next event of its key. The table's key must be the key of the events and then `From`; `To`
  /// is a std::optional of the same type, empty for the current row.
  template <auto From, auto To>
  auto scd2() && {
    static_assert(detail::is_data_member<From> && detail::Readable<From, Row> && detail::is_data_member<To> &&
                      detail::Readable<To, Row>,
                  "keyfold: scd2<&Row::valid_from, &Row::valid_to>() names two data members of the row");
    return std::move(*this).with(detail::FeedIntervals<From, To>{});
  }

  /// With scd2<>(): only a change of these columns begins a new row; other changes update the row in place.
  template <auto... Members>
  auto track() && {
    static_assert(sizeof...(Members) > 0,
                  "keyfold: track<>() names the columns whose changes are kept as rows");
    static_assert((detail::Readable<Members, Row> && ...),
                  "keyfold: track<>() names a member of another type than the row");
    return std::move(*this).with(detail::FeedTrack<Members...>{});
  }

  /// Stored with the commit. A load with metadata makes a version even if it changes nothing.
  ApplyChanges metadata(std::string text) && {
    input_.note.metadata = detail::SharedText(std::move(text));
    return std::move(*this);
  }

  /// As MergeBuilder::once().
  ApplyChanges once(std::string app, std::uint64_t number) && {
    input_.note.once = {{std::move(app), number}};
    return std::move(*this);
  }

  /// Loads the events as one commit, "APPLY CHANGES". Reads the source once; a container that the load owns
  /// has its rows moved from, but not where the builder is an lvalue, which can be executed again. If no row
  /// changes there is no version; deletes and sequences are remembered all the same.
  ///
  /// Throws: InvalidSequence, InvalidKey, SequenceTie, FeedMismatch, UniqueViolation, ValueOutOfRange, and
  /// whatever the source, the conditions and the rows throw. Strong guarantee for the table and for what it
  /// remembers. Complexity: see docs/apply_changes.md.
  MergeResult<Row> execute() && { return execute_as<SourceRange>(std::move(input_.note)); }
  MergeResult<Row> execute() & { return execute_as<SourceRange&>(input_.note); }

  /// What execute() would do, with all its errors, without doing it. A single-pass source is read all the
  /// same, so that nothing is left to execute.
  [[nodiscard]] ChangeSet<Row> preview() { return input_.target->preview_plan(planner<SourceRange&>()); }

 private:
  using Core = typename Target::CoreType;

  template <class Option>
  auto with(Option option) && {
    auto feed = std::move(feed_).with(std::move(option));
    return ApplyChanges<Target, SourceRange, decltype(feed)>(std::move(input_), std::move(feed));
  }

  template <bool only, auto... Members>
  auto choose() && {
    static_assert((detail::Readable<Members, Source> && ...),
                  "keyfold: columns_only<>() and columns_except<>() name columns of the events");
    return std::move(*this).with(detail::FeedColumns<only, Members...>{});
  }

  // `Declared` tells whether rows may be moved from, see SourceTraits.
  template <class Declared>
  using Planner = detail::feed_planner<Core, Feed, Declared>;

  template <class Declared>
  auto planner() {
    return [this](auto& plan) { Planner<Declared>(input_.target->core(), feed_, plan).run(input_.source); };
  }

  template <class Declared>
  MergeResult<Row> execute_as(detail::CommitNote note) {
    note.operation = "APPLY CHANGES";
    note.parameters = detail::SharedText(detail::feed_text<typename Planner<Declared>::Key>(feed_));
    return input_.target->write(std::move(note), planner<Declared>());
  }

  detail::WriteInput<Target, SourceRange> input_;
  Feed feed_;
};

}  // namespace keyfold

// as_of

// detail/time_travel

#include <unordered_set>

/// Reading older versions from the log. A version is the present with the entries above it undone; for one
/// key that is a walk down its chain. A walk costs as many steps as the key has changed since.
namespace keyfold::detail {

/// The row of a key at a version: `present` is the row it has now, or null, and `newest` its newest change.
template <class Row>
const Row* row_at(const Row* present, const LogEntry<Row>* newest, Version version) noexcept {
  const Row* row = present;
  for (; newest != nullptr && newest->version() > version; newest = newest->older()) {
    row = newest->has_before() ? &newest->before().get() : nullptr;
  }
  return row;
}

template <class CoreType, class Key>
const typename CoreType::RowType* row_at(const CoreType& core, const Key& key, Version version) {
  const std::uint64_t hash = detail::hash_of(key);
  const auto* slot = core.find(key, hash);
  if (slot != nullptr) return detail::row_at(&slot->get(), slot->newest, version);
  return detail::row_at<typename CoreType::RowType>(nullptr, core.find_grave(key, hash), version);
}

/// The row that one life of a key had at a version; null if that life began later. `row` is what the life had
/// above `newest`. A life stands at one place in the order of rows; the key may have had others before.
template <class Row>
const Row* life_at(const Row* row, const LogEntry<Row>* newest, Version version) noexcept {
  for (; newest != nullptr && newest->version() > version; newest = newest->older()) {
    if (!newest->has_before() || !newest->leaves_row()) return nullptr;
    row = &newest->before().get();
  }
  return row;
}

template <class Row>
const Row* life_at(const Slot<Row>& slot, Version version) noexcept {
  return detail::life_at(&slot.get(), slot.newest, version);
}

/// A row that has gone since the version that is read.
template <class Row>
struct RemovedRow {
  const Row* row;
  std::uint64_t order;
};

/// Visits the entries of the versions in (after, up_to], oldest first.
template <class Row, class Visit>
void for_each_entry(const CommitLog<Row>& log, Version after, Version up_to, Visit visit) {
  const auto visit_block = [&](const LogBlock<Row>& block) {
    for (auto* entry = block.first(); entry != nullptr; entry = block.next(entry)) {
      if (entry->version() > after && entry->version() <= up_to) visit(*entry);
    }
  };
  if (after + 1 < log.oldest) {
    for (const LogBlock<Row>& block : log.retired) visit_block(block);
  }
  const auto first = std::ranges::upper_bound(log.records, after, {}, &CommitRecord<Row>::version);
  for (auto record = first; record != log.records.end() && record->version <= up_to; ++record)
    visit_block(record->block);
}

/// The rows of a version that are gone, in the table's order. O(changes since).
template <class CoreType>
std::vector<RemovedRow<typename CoreType::RowType>> removed_since(const CoreType& core, Version version) {
  using Row = typename CoreType::RowType;
  std::vector<RemovedRow<Row>> removed;
  detail::for_each_entry(*core.log, version, core.version(), [&](const LogEntry<Row>& entry) {
    if (entry.leaves_row()) return;
    if (const Row* row = detail::life_at(&entry.before().get(), entry.older(), version))
      removed.push_back({row, entry.order()});
  });
  std::ranges::sort(removed, [](const auto& a, const auto& b) {
    if constexpr (CoreType::ordered) {
      return detail::less_values(CoreType::key_of(*a.row), CoreType::key_of(*b.row));
    } else {
      return a.order < b.order;
    }
  });
  return removed;
}

/// Visits each key that changed in (after, up_to], once: `visit(slot or null, newest change)`.
template <class CoreType, class Visit>
void for_each_key(const CoreType& core, Version after, Version up_to, Visit visit) {
  using Row = typename CoreType::RowType;
  std::unordered_set<const LogEntry<Row>*> seen;
  detail::for_each_entry(*core.log, after, up_to, [&](const LogEntry<Row>& entry) {
    const auto key = CoreType::key_of(entry.has_before() ? entry.before().get() : entry.after());
    const std::uint64_t hash = detail::hash_of(key);
    const auto* slot = core.find(key, hash);
    const LogEntry<Row>* newest = slot != nullptr ? slot->newest : core.find_grave(key, hash);
    if (seen.insert(newest).second) visit(slot, newest);
  });
}

/// Finds the newest change of each key within (after, up_to].
template <class CoreType>
class NewestInRange {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;

  NewestInRange(const CoreType& core, Version after, Version up_to)
      : core_(core), after_(after), up_to_(up_to) {}

  /// Calls `visit(entry, row)` for each of them; `row` is what the key has after it, or null.
  template <class Visit>
  void for_each(Visit visit) {
    detail::for_each_entry(*core_.log, after_, up_to_, [&](const Entry& entry) {
      if (!entry.leaves_row()) {
        visit_key(entry, visit);
      } else if (entry.newer_slot() != nullptr || entry.newer_entry()->version() > up_to_) {
        visit(entry, &entry.after());
      }
    });
  }

 private:
  // An entry that ends a life has no link to what came after it: its key leads to it. What came after may
  // have been a row, since expiry leaves only the oldest of several changes.
  template <class Visit>
  void visit_key(const Entry& end, Visit& visit) {
    const auto key = CoreType::key_of(end.before().get());
    const std::uint64_t hash = detail::hash_of(key);
    const auto* slot = core_.find(key, hash);
    const Entry* newest = slot != nullptr ? slot->newest : core_.find_grave(key, hash);
    if (!seen_.insert(newest).second) return;
    const Row* row = slot != nullptr ? &slot->get() : nullptr;
    for (; newest->version() > up_to_; newest = newest->older())
      row = newest->has_before() ? &newest->before().get() : nullptr;
    if (!newest->leaves_row()) visit(*newest, row);
  }

  const CoreType& core_;
  Version after_;
  Version up_to_;
  std::unordered_set<const Entry*> seen_;
};

/// The net changes that lead from one readable version to another, in either direction.
template <class CoreType>
ChangeSet<typename CoreType::RowType> net_changes(const CoreType& core, Version from, Version to) {
  using Row = typename CoreType::RowType;
  const Version first = std::min(from, to);
  std::vector<Change<Row>> changes;
  NewestInRange<CoreType>(core, first, std::max(from, to))
      .for_each([&](const LogEntry<Row>& entry, const Row* at_last) {
        const Row* at_first = detail::row_at(at_last, &entry, first);
        auto change =
            from < to ? detail::net_change(at_first, at_last) : detail::net_change(at_last, at_first);
        if (change) changes.push_back(*std::move(change));
      });
  return ChangeSet<Row>(std::move(changes), core.log->key);
}

}  // namespace keyfold::detail

namespace keyfold {

/// A table as of one version: read-only, without secondary indexes, copying no row. `Table::as_of()` makes
/// it.
///
/// The view stays valid while the table lives, whatever is written meanwhile. When its version expires every
/// member but version() throws VersionExpired; when the table is destroyed or assigned to, TableGone.
/// References, pointers and iterators got from it stay valid until the next write to the table or expire().
/// Threads: as const operations of the table.
template <class Table>
class AsOfView : public detail::ViewBase {
  using Core = typename Table::Core;
  using Parts = typename Core::KeyParts;

 public:
  using Row = typename Table::Row;
  class Iterator;

  using value_type = Row;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using const_reference = const Row&;
  using iterator = Iterator;
  using const_iterator = Iterator;

  AsOfView(const Core& core, Version version) noexcept : core_(&core), log_(core.log), version_(version) {}

  [[nodiscard]] Version version() const noexcept { return version_; }

  /// O(log n) in the number of commits.
  [[nodiscard]] size_type size() const {
    require_readable();
    return core_->log->table_size(version_);
  }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// The row that had this key, or null. O(1) on average, plus a step for each change of the key since.
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... key) const {
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: find() needs one value for each part of the key");
    require_readable();
    return detail::row_at(*core_, detail::lookup_key<Parts, Row>(key...), version_);
  }

  /// The row that had this key. Throws KeyNotFound.
  template <class... Values>
  const Row& at(const Values&... key) const {
    if (const Row* row = find(key...)) return *row;
    throw KeyNotFound(detail::key_text(detail::lookup_key<Parts, Row>(key...)));
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    return find(key...) != nullptr;
  }

  /// Rows in the order the table had them. O(rows of the table + changes since).
  [[nodiscard]] Iterator begin() const {
    require_readable();
    return Iterator(*core_, version_);
  }
  [[nodiscard]] Iterator end() const {
    require_readable();
    return Iterator(*core_);
  }

  /// A table of its own with these rows, at its version 1, or 0 if there are none; with the options of the
  /// table.
  [[nodiscard]] Table to_table() const {
    require_readable();
    Table copy(core_->options);
    if (!empty()) copy.append(*this);
    return copy;
  }

 private:
  void require_readable() const {
    if (log_.expired())
      throw TableGone("view", "read it while its table lives, or copy its rows before that");
    core_->log->require_readable(version_);
  }

  const Core* core_;
  std::weak_ptr<const detail::CommitLog<Row>> log_;  // tells whether the table is still there
  Version version_;
};

/// Forward iterator: the present rows in their order, as they were, and between them the rows that are gone.
template <class Table>
class AsOfView<Table>::Iterator {
  using Base = typename Core::Rows::const_iterator;
  using Removed = std::vector<detail::RemovedRow<Row>>;

 public:
  using value_type = Row;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using pointer = const Row*;
  using iterator_category = std::forward_iterator_tag;

  Iterator() = default;
  explicit Iterator(const Core& core) : base_(core.rows.end()) {}
  Iterator(const Core& core, Version version)
      : core_(&core),
        version_(version),
        base_(core.rows.begin()),
        removed_(std::make_shared<const Removed>(detail::removed_since(core, version))),
        left_(removed_->size()) {
    settle();
  }

  reference operator*() const noexcept { return *row_; }
  pointer operator->() const noexcept { return row_; }

  Iterator& operator++() {
    on_removed_ ? static_cast<void>(--left_) : static_cast<void>(++base_);
    settle();
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }

  friend bool operator==(const Iterator& a, const Iterator& b) {
    return a.base_ == b.base_ && a.left_ == b.left_;
  }

 private:
  const detail::RemovedRow<Row>& next_removed() const noexcept {
    return (*removed_)[removed_->size() - left_];
  }

  // Finds the row to stand on: the earlier one of the next present row that was there, and the next removed
  // row.
  void settle() {
    const Row* present = nullptr;
    while (base_ != core_->rows.end() && (present = detail::life_at(*base_, version_)) == nullptr) ++base_;
    on_removed_ = left_ != 0 && (present == nullptr || removed_comes_first(*present));
    row_ = on_removed_ ? next_removed().row : present;
  }

  bool removed_comes_first(const Row& present) const {
    if constexpr (Core::ordered) {
      return detail::less_values(Core::key_of(*next_removed().row), Core::key_of(present));
    } else {
      return next_removed().order < base_->order;
    }
  }

  const Core* core_ = nullptr;
  Version version_ = 0;
  Base base_{};
  std::shared_ptr<const Removed> removed_;
  std::size_t left_ = 0;  // removed rows still to come
  const Row* row_ = nullptr;
  bool on_removed_ = false;
};

}  // namespace keyfold

template <class Table>
inline constexpr bool std::ranges::enable_view<keyfold::AsOfView<Table>> = true;
template <class Table>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::AsOfView<Table>> = true;

// expression

/// Columns, literals and operators that form conditions and values. They are evaluated inlined, at the price
/// of the hand-written lambda, and print themselves as the text that history records.
///
/// As in SQL a comparison with an empty optional on either side is unknown, unknown stays unknown under `!`,
/// and a condition holds only when it is true. `same` is the null-safe comparison. A `std::string` literal is
/// copied into the expression; a `const char*`, a char array and a `std::string_view` are referred to and
/// must outlive it. Integers compare by value, whatever their width and sign. Arithmetic is that of C++; with
/// an empty optional on either side the result is empty.
namespace keyfold {

/// Column `Member` of the source row.
template <auto Member>
inline constexpr detail::Column<detail::Side::source, Member> source{};

/// Column `Member` of the target row; `target<M> = value` is an assignment for update() and insert().
template <auto Member>
inline constexpr detail::Column<detail::Side::target, Member> target{};

/// True when `operand` is an empty optional; false for a value that is never empty.
template <class Operand>
  requires detail::Expression<Operand>
[[nodiscard]] constexpr auto is_null(const Operand& operand) {
  return detail::IsNull<Operand>{{}, operand};
}

/// Null-safe equality (SQL's IS NOT DISTINCT FROM): two empty optionals are the same, and so are two NaN.
template <class A, class B>
  requires detail::AnyExpression<A, B>
[[nodiscard]] constexpr auto same(const A& a, const B& b) {
  return detail::Same<detail::Operand<A>, detail::Operand<B>>{{}, detail::operand(a), detail::operand(b)};
}

/// The first operand that is not empty.
template <class A, class B, class... More>
  requires detail::AnyExpression<A, B, More...>
[[nodiscard]] constexpr auto coalesce(const A& a, const B& b, const More&... more) {
  if constexpr (sizeof...(More) == 0) {
    return detail::Coalesce<detail::Operand<A>, detail::Operand<B>>{
        {}, detail::operand(a), detail::operand(b)};
  } else {
    return coalesce(a, coalesce(b, more...));
  }
}

/// Gives a callable condition or value the name under which history records it. `name` must outlive the
/// clause; a string literal does.
template <class Callable>
[[nodiscard]] constexpr auto named(std::string_view name, Callable callable) {
  static_assert(!detail::Expression<Callable>,
                "keyfold: named() takes a callable; an expression prints itself");
  return detail::Named<Callable>{name, std::move(callable)};
}

namespace detail {

// Found by argument-dependent lookup, since every operand type lives here.

#define KEYFOLD_BINARY_OPERATOR(symbol, node, operation)                                        \
  template <class A, class B>                                                                   \
    requires AnyExpression<A, B>                                                                \
  [[nodiscard]] constexpr auto operator symbol(const A& a, const B& b) {                        \
    return node<operation, Operand<A>, Operand<B>>{{}, detail::operand(a), detail::operand(b)}; \
  }

KEYFOLD_BINARY_OPERATOR(==, Comparison, Equal)
KEYFOLD_BINARY_OPERATOR(!=, Comparison, NotEqual)
KEYFOLD_BINARY_OPERATOR(<, Comparison, Less)
KEYFOLD_BINARY_OPERATOR(<=, Comparison, LessEqual)
KEYFOLD_BINARY_OPERATOR(>, Comparison, Greater)
KEYFOLD_BINARY_OPERATOR(>=, Comparison, GreaterEqual)
KEYFOLD_BINARY_OPERATOR(+, Arithmetics, Plus)
KEYFOLD_BINARY_OPERATOR(-, Arithmetics, Minus)
KEYFOLD_BINARY_OPERATOR(*, Arithmetics, Times)
KEYFOLD_BINARY_OPERATOR(&&, Logic, And)
KEYFOLD_BINARY_OPERATOR(||, Logic, Or)

#undef KEYFOLD_BINARY_OPERATOR

template <class A, class B>
  requires AnyExpression<A, B>
constexpr auto operator/(const A& a, const B&) {
  static_assert(!std::same_as<A, A>,
                "keyfold: expressions do not divide, for the divisor may be 0; give a callable of the rows");
  return a;
}

template <Expression A>
[[nodiscard]] constexpr auto operator!(const A& a) {
  return Not<A>{{}, a};
}

}  // namespace detail
}  // namespace keyfold

// index

// Iterators over a table and over one of its indexes, which table.by<...>() gives.
namespace keyfold {

/// Walks the rows of a table or of one of its indexes; dereferences to `const Row&`. Valid until the row it
/// stands on is updated or deleted. `memory_order`: one row after the other lies behind it in memory, as far
/// as no row was deleted.
template <class Row, class Base, bool memory_order = false>
class RowIterator {
 public:
  using value_type = Row;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using pointer = const Row*;
  using iterator_category = typename std::iterator_traits<Base>::iterator_category;

  RowIterator() = default;
  explicit RowIterator(Base base) : base_(base) {}

  reference operator*() const { return base_->get(); }
  pointer operator->() const { return &base_->get(); }

  RowIterator& operator++() {
    if constexpr (memory_order) prefetch_ahead();
    ++base_;
    return *this;
  }
  RowIterator operator++(int) {
    RowIterator before = *this;
    ++*this;
    return before;
  }
  RowIterator& operator--()
    requires std::bidirectional_iterator<Base>
  {
    --base_;
    return *this;
  }
  RowIterator operator--(int)
    requires std::bidirectional_iterator<Base>
  {
    RowIterator before = *this;
    --base_;
    return before;
  }

  friend bool operator==(const RowIterator& a, const RowIterator& b) { return a.base_ == b.base_; }

 private:
  // The links between rows are read one after the other; this starts loading those to come.
  void prefetch_ahead() const noexcept {
    constexpr std::size_t node = sizeof(*base_) + 2 * sizeof(void*);
    constexpr std::size_t cache_line = 64;
    constexpr std::size_t distance = std::size_t{5} * 1024;
    const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(&*base_) + distance;
    for (std::size_t offset = 0; offset < node; offset += cache_line)
      detail::prefetch(reinterpret_cast<const void*>(ahead + offset));
  }

  // Iterators that belong to no table are equal, which those of Boost.MultiIndex do not see to.
  static Base of_no_table() {
    if constexpr (std::is_constructible_v<Base, std::nullptr_t>) {
      return Base(nullptr);
    } else {
      return Base();
    }
  }

  Base base_ = of_no_table();
};

/// Rows from one iterator to another: a view, as cheap to copy as its iterators.
template <class Iterator>
class RowRange : public detail::ViewBase {
 public:
  RowRange() = default;
  RowRange(Iterator first, Iterator last) : first_(std::move(first)), last_(std::move(last)) {}

  [[nodiscard]] Iterator begin() const { return first_; }
  [[nodiscard]] Iterator end() const { return last_; }
  [[nodiscard]] bool empty() const { return first_ == last_; }

  /// Requires: not empty().
  [[nodiscard]] decltype(auto) front() const { return *first_; }

 private:
  Iterator first_{};
  Iterator last_{};
};

/// A secondary index as a range of rows: in the order of its parts for OrderedBy (and OrderedKey), in no
/// particular order for HashedBy and UniqueBy. A view of one pointer, valid while the table lives; the rules
/// of RowIterator hold.
///
/// Lookup values are those of the index's parts, or anything comparable with them: `std::string_view` finds
/// `std::string` without an allocation. An ordered index can be asked for its leading parts only.
template <class Row, class Index, class Parts, bool ordered>
class IndexView : public detail::ViewBase {
 public:
  using iterator = RowIterator<Row, typename Index::const_iterator>;
  using const_iterator = iterator;
  using Rows = RowRange<iterator>;

  IndexView() = default;
  explicit IndexView(const Index& index) noexcept : index_(&index) {}

  [[nodiscard]] std::size_t size() const noexcept { return index_->size(); }
  [[nodiscard]] bool empty() const noexcept { return index_->empty(); }
  [[nodiscard]] iterator begin() const { return iterator(index_->begin()); }
  [[nodiscard]] iterator end() const { return iterator(index_->end()); }

  /// The rows equal to these values. O(log n) in an ordered index, O(1) on average in a hashed one.
  template <class... Values>
  [[nodiscard]] Rows equal_range(const Values&... values) const {
    static_assert(sizeof...(Values) > 0, "keyfold: equal_range() needs at least one lookup value");
    static_assert(ordered || sizeof...(Values) == Parts::size,
                  "keyfold: a hashed index needs a lookup value for each of its parts");
    const auto [first, last] = detail::equal_range_of(*index_, detail::lookup_key<Parts, Row>(values...));
    return Rows(iterator(first), iterator(last));
  }

  /// The first row equal to these values, or null.
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... values) const {
    const Rows rows = equal_range(values...);
    return rows.empty() ? nullptr : &rows.front();
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... values) const {
    return find(values...) != nullptr;
  }

  /// The rows from `low` up to but not including `high`, in order; none if high is before low. A bound is a
  /// value of the first part, or a std::tuple of values of the leading parts. O(log n).
  template <class Low, class High>
  [[nodiscard]] Rows range(const Low& low, const High& high) const {
    static_assert(ordered, "keyfold: range() needs an ordered index: OrderedBy or OrderedKey");
    const auto from = bound(low);
    const auto to = bound(high);
    const auto first = index_->lower_bound(from, detail::KeyLess{});
    const bool to_is_longer = std::tuple_size_v<decltype(from)> < std::tuple_size_v<decltype(to)>;
    const bool ascending = detail::less_values(from, to) || (to_is_longer && !detail::less_values(to, from));
    return Rows(iterator(first), iterator(ascending ? index_->lower_bound(to, detail::KeyLess{}) : first));
  }

 private:
  template <class Bound>
  static auto bound(const Bound& value) {
    if constexpr (detail::is_tuple_v<Bound> && Parts::size > 1) {
      return std::apply([](const auto&... part) { return detail::lookup_key<Parts, Row>(part...); }, value);
    } else {
      return detail::lookup_key<Parts, Row>(value);
    }
  }

  const Index* index_ = nullptr;
};

}  // namespace keyfold

// Their iterators outlive them.

template <class Iterator>
inline constexpr bool std::ranges::enable_view<keyfold::RowRange<Iterator>> = true;
template <class Iterator>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::RowRange<Iterator>> = true;

template <class Row, class Index, class Parts, bool ordered>
inline constexpr bool std::ranges::enable_view<keyfold::IndexView<Row, Index, Parts, ordered>> = true;
template <class Row, class Index, class Parts, bool ordered>
inline constexpr bool std::ranges::enable_borrowed_range<keyfold::IndexView<Row, Index, Parts, ordered>> =
    true;

// load

// detail/incoming

/// The rows that come in with a write that is not a merge, after its duplicate policy.
namespace keyfold::detail {

/// All of them at once, each at one place while this object lives. A policy compares them by the members
/// that are named like the table's key.
template <class CoreType, class Declared, class Source, class Policy>
class IncomingRows {
 public:
  using Traits = SourceTraits<Declared, Source>;
  using Pointer = typename Traits::Pointer;

  IncomingRows(typename Traits::Range& range, const Policy& policy, Metrics& metrics)
      : all_(range), unique_(policy, checked(all_)) {
    metrics.source_rows += unique_.dropped;
    metrics.dropped_duplicates += unique_.dropped;
  }

  /// Calls `visit(row, position)` in the order of the source.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& survivor : unique_.survivors) {
      if (survivor.row != nullptr) visit(*survivor.row, survivor.position);
    }
  }

 private:
  using Key = MatchKey<CoreType, Match<void, void, Always>, Source>;

  static const List<Pointer>& checked(const AllRows<Declared, Source>& all) {
    Position position = 0;
    for (const Pointer row : all.pointers)
      detail::require_valid_key(typename Key::SourceParts{}, Key::of(*row), position++);
    return all.pointers;
  }

  AllRows<Declared, Source> all_;
  Deduplicator<Key, Policy, Source, Pointer> unique_;
};

template <class CoreType, class Declared, class Source>
class IncomingRows<CoreType, Declared, Source, NoPolicy> {
 public:
  IncomingRows(typename SourceTraits<Declared, Source>::Range& range, const NoPolicy&, Metrics&)
      : all_(range) {}

  template <class Visit>
  void for_each(Visit visit) const {
    for (Position i = 0; i < all_.pointers.size(); ++i) visit(*all_.pointers[i], i);
  }

 private:
  AllRows<Declared, Source> all_;
};

/// Calls `take(row, position)` for each row, which need not live any longer. Without a policy the rows are
/// never all there at once.
template <class CoreType, class Declared, class Source, class Policy, class Take>
void for_each_incoming(typename SourceTraits<Declared, Source>::Range& range, const Policy& policy,
                       Metrics& metrics, Take take) {
  if constexpr (std::same_as<Policy, NoPolicy>) {
    detail::for_each_block<Declared, Source>(range, [&](const auto& block, Position first) {
      for (Position i = 0; i < block.size(); ++i) take(*block[i], first + i);
    });
  } else {
    IncomingRows<CoreType, Declared, Source, Policy>(range, policy, metrics).for_each(take);
  }
}

}  // namespace keyfold::detail

// detail/join

/// Finding whether a condition over two rows holds for a target row and any of many source rows, without
/// trying them all: a hash join on those equalities that the condition cannot do without.
namespace keyfold::detail {

/// Whether numbers of both types that compare equal have one hash. Not so where comparing them rounds.
template <class Whole, class Fraction>
inline constexpr bool compares_exactly =
    std::numeric_limits<Whole>::digits <= std::min(std::numeric_limits<Fraction>::digits, 53);

/// Whether equal values of these types, be it by == or by same(), have one hash and are equal_values().
template <class A, class B>
constexpr bool hashes_alike() {
  using X = unwrap_optional_t<A>;
  using Y = unwrap_optional_t<B>;
  if constexpr (Arithmetic<X> && Arithmetic<Y>) {
    if constexpr (std::integral<X> == std::integral<Y>) {
      return true;
    } else if constexpr (std::integral<X>) {
      return compares_exactly<X, Y>;
    } else {
      return compares_exactly<Y, X>;
    }
  } else if constexpr (StringLike<X> && StringLike<Y>) {
    return std::is_class_v<X> && std::is_class_v<Y>;  // a pointer compares by its address
  } else if constexpr (!std::same_as<X, Y> || std::is_pointer_v<X> || is_variant_v<X>) {
    return false;
  } else {
    return std::is_enum_v<X> || is_duration_v<X> || is_time_point_v<X> || StdHashable<X> || AdlHashable<X>;
  }
}

/// An equality between a column of the source and one of the target, as it stands in a condition.
template <class SourceColumn, class TargetColumn, bool null_safe>
struct Equality {
  SourceColumn source;
  TargetColumn target;

  /// Whether a row with this value is equal to no other.
  template <class Value>
  static constexpr bool equals_nothing(const Value& value) {
    return !null_safe && (!detail::has_value(value) || detail::is_nan(value));
  }
};

template <class Row, class Source, bool null_safe, class A, class B>
constexpr auto equality_of(const A&, const B&) {
  return std::tuple<>();
}
template <class Row, class Source, bool null_safe, auto S, auto T>
constexpr auto equality_of(const Column<Side::source, S>& a, const Column<Side::target, T>& b) {
  if constexpr (hashes_alike<member_value_t<S, Source>, member_value_t<T, Row>>()) {
    return std::tuple(Equality<Column<Side::source, S>, Column<Side::target, T>, null_safe>{a, b});
  } else {
    return std::tuple<>();
  }
}
template <class Row, class Source, bool null_safe, auto T, auto S>
constexpr auto equality_of(const Column<Side::target, T>& a, const Column<Side::source, S>& b) {
  return detail::equality_of<Row, Source, null_safe>(b, a);
}

/// The terms that a condition joins with &&.
template <class Condition>
inline constexpr std::size_t term_count = 1;
template <class A, class B>
inline constexpr std::size_t term_count<Logic<And, A, B>> = term_count<A> + term_count<B>;

/// The equalities among the terms that a condition joins with &&, as a tuple.
template <class Row, class Source, class Condition>
constexpr auto equalities_of(const Condition&) {
  return std::tuple<>();
}
template <class Row, class Source, class A, class B>
constexpr auto equalities_of(const Comparison<Equal, A, B>& comparison) {
  return detail::equality_of<Row, Source, false>(comparison.a, comparison.b);
}
template <class Row, class Source, class A, class B>
constexpr auto equalities_of(const Same<A, B>& comparison) {
  return detail::equality_of<Row, Source, true>(comparison.a, comparison.b);
}
template <class Row, class Source, class A, class B>
constexpr auto equalities_of(const Logic<And, A, B>& both) {
  return std::tuple_cat(detail::equalities_of<Row, Source>(both.a),
                        detail::equalities_of<Row, Source>(both.b));
}

/// Source rows, asked whether a condition holds for a target row and any of them. The rows must outlive it.
template <class Row, class Source, class Condition>
class Join {
 public:
  explicit Join(const Condition& condition)
      : condition_(condition), equalities_(detail::equalities_of<Row, Source>(condition)) {}

  void add(const Source& row) { items_.push_back({&row}); }
  bool empty() const noexcept { return items_.empty(); }

  /// Requires: all rows are added, and it is called once.
  void build() {
    if constexpr (hashed) {
      groups_.presize(items_.size());
      for (Item& item : items_) group(item);
    }
  }

  /// Whether the condition holds for this row and any of the source. O(1) on average where the equalities are
  /// the whole condition, else O(source rows that are equal to it so far); O(source rows) without any.
  bool holds_for(const Row& target) const {
    if constexpr (!hashed) {
      return std::ranges::any_of(items_, [&](const Item& item) { return holds(target, item); });
    } else {
      const auto values = target_values(target);
      if (equals_nothing(values)) return false;
      const Item* item = find(values, detail::hash_of(values));
      if constexpr (term_count<Condition> == equality_count) return item != nullptr && holds(target, *item);
      while (item != nullptr && !holds(target, *item)) item = item->next;
      return item != nullptr;
    }
  }

 private:
  using Equalities = decltype(detail::equalities_of<Row, Source>(std::declval<const Condition&>()));
  static constexpr std::size_t equality_count = std::tuple_size_v<Equalities>;
  static constexpr bool hashed = equality_count > 0;

  struct Item {
    const Source* row;
    Item* next = nullptr;  // another row with the same values
  };

  bool holds(const Row& target, const Item& item) const {
    return detail::holds<ClauseKind::matched>(condition_, Scope<Row, Source>{target, *item.row});
  }

  // The values on one side of the equalities: references to data members, values of functions.
  auto source_values(const Source& row) const {
    const Scope<NoRow, Source> rows{no_row, row};
    return std::apply(
        [&](const auto&... equality) {
          return std::tuple<decltype(equality.source(rows))...>(equality.source(rows)...);
        },
        equalities_);
  }
  auto target_values(const Row& row) const {
    const Scope<Row, NoRow> rows{row, no_row};
    return std::apply(
        [&](const auto&... equality) {
          return std::tuple<decltype(equality.target(rows))...>(equality.target(rows)...);
        },
        equalities_);
  }

  template <class Values>
  static bool equals_nothing(const Values& values) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::tuple_element_t<I, Equalities>::equals_nothing(std::get<I>(values)) || ...);
    }(std::make_index_sequence<equality_count>());
  }

  template <class Values>
  Item* find(const Values& values, std::uint64_t hash) const {
    return groups_.find(
        hash, [&](const Item& item) { return detail::equal_values(source_values(*item.row), values); });
  }

  void group(Item& item) {
    const auto values = source_values(*item.row);
    if (equals_nothing(values)) return;
    const std::uint64_t hash = detail::hash_of(values);
    if (Item* first = find(values, hash)) {
      item.next = std::exchange(first->next, &item);
    } else {
      groups_.add(hash, &item);
    }
  }

  static constexpr NoRow no_row{};

  const Condition& condition_;
  Equalities equalities_;
  std::vector<Item> items_;
  KeyIndex<Item> groups_;  // the first row of each combination of values
};

}  // namespace keyfold::detail

// detail/range_forgotten

namespace keyfold::detail {

template <class T>
inline constexpr bool is_merge_rule = false;
template <class... RuleArguments>
inline constexpr bool is_merge_rule<MergeRule<RuleArguments...>> = true;

template <class T, class Row>
concept RowsOrRow = std::ranges::input_range<T> || std::convertible_to<T, Row>;

/// A view that remembers what it has found, for example, has no begin() while it is const.
template <class T>
struct check_const {
  static_assert(std::ranges::input_range<T> || !std::ranges::input_range<std::remove_cvref_t<T>&>,
                "keyfold: this range cannot be read while it is const; declare it without const");
};

}  // namespace keyfold::detail

/// Not in detail: of a base class of Table, functions beside it are candidates for a user's f(table).
namespace keyfold::mistakes {

/// Overloads of the verbs that take rows, for what is no range of rows: each says what to call instead. Row
/// is what a list in braces would be, as in `append({1, "open"})`.
template <class Row>
class RangeForgotten {
 public:
  template <class Given = Row>
  auto merge(Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: merge() takes a range of rows; give one row as std::array{row}, or call "
                  "upsert(row)");
  }
  template <class Given = Row, class Rule>
  auto merge(Given&&, const Rule&)
    requires(!std::ranges::input_range<Given> || !detail::is_merge_rule<Rule>)
  {
    static_cast<void>(detail::check_const<Given>{});
    check_rule<Given, Rule>();
  }
  template <class Given = Row, class Rule>
  auto preview(Given&&, const Rule&)
    requires(!std::ranges::input_range<Given> || !detail::is_merge_rule<Rule>)
  {
    static_cast<void>(detail::check_const<Given>{});
    check_rule<Given, Rule>();
  }
  template <class Given = Row>
  auto preview(Given&&) {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(!std::same_as<Given, Given>,
                  "keyfold: preview() of a table takes rows and a rule; without a rule write "
                  "merge(rows).when_...().preview()");
  }
  template <class Given, class... More>
  auto upsert(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !detail::RowsOrRow<Given, Row>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && detail::RowsOrRow<Given, Row>,
                  "keyfold: upsert() takes a row of the table or one range of rows; give one row of another "
                  "type as std::array{row}");
  }
  template <class Given = Row, class... More>
  auto patch(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: patch() takes one range of rows; give one row as std::array{row}");
  }
  template <class Given = Row, class... More>
  auto apply_changes(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: apply_changes() takes one range of events; give one event as std::array{event}");
  }
  template <class Given = Row, class... More>
  auto append(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: append() takes one range of rows; insert(row) adds one");
  }
  template <class... Given>
  auto insert(Given&&...)
    requires(sizeof...(Given) != 1 || !(std::convertible_to<Given, Row> && ...))
  {
    static_assert(sizeof...(Given) == 1 && (std::convertible_to<Given, Row> && ...),
                  "keyfold: insert() takes one row of the table, insert({...}); append(rows) adds a range");
  }
  template <class Given = Row, class... More>
  auto overwrite(Given&&, More&&...)
    requires(sizeof...(More) > 0 || !std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(sizeof...(More) == 0 && std::ranges::input_range<Given>,
                  "keyfold: overwrite() takes one range of rows, all that the table is to have; upsert(row) "
                  "writes one row");
  }
  template <class Condition, class Given = Row>
  auto replace_where(const Condition&, Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: replace_where() takes a condition and a range of rows; give one row as "
                  "std::array{row}");
  }
  template <auto... Members, class Given = Row>
  auto replace_using(Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: replace_using<>() takes a range of rows; give one row as std::array{row}");
  }
  template <class Condition, class Given = Row>
  auto replace_on(const Condition&, Given&&)
    requires(!std::ranges::input_range<Given>)
  {
    static_cast<void>(detail::check_const<Given>{});
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: replace_on() takes a condition and a range of rows; give one row as "
                  "std::array{row}");
  }
  template <class Given>
  auto apply(const Given&)
    requires(!std::convertible_to<const Given&, const ChangeSet<Row>&>)
  {
    static_assert(std::convertible_to<const Given&, const ChangeSet<Row>&>,
                  "keyfold: apply() takes a ChangeSet of the table's rows, as diff() and changes() of a "
                  "result give it; upsert(rows) writes rows");
  }

 private:
  template <class Given, class Rule>
  static constexpr void check_rule() {
    static_assert(std::ranges::input_range<Given>,
                  "keyfold: a rule is run on a range of rows; give one row as std::array{row}");
    static_assert(
        detail::is_merge_rule<Rule>,
        "keyfold: the rule of a merge is made by merge_rule<Row, Source>(), and its last clause has "
        "an action");
  }
};

}  // namespace keyfold::mistakes

// detail/replace_plan

/// Planning writes that replace rows: some leave, others come in. A row that comes in with the key of one
/// that leaves is an update of it.
namespace keyfold::detail {

template <class CoreType>
class ReplacePlanner {
 public:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;
  using Entry = Planned<Row>;

  ReplacePlanner(const CoreType& core, Plan<Row>& plan) : core_(core), plan_(plan) {}

  // Either the leaving rows are marked before any row comes in, or it is asked of each row whether it leaves.

  /// The row leaves, unless another comes in with its key.
  void mark(const SlotType& slot) {
    plan_.touch(slot);
    ++marked_;
  }

  /// A row comes in. `leaves(slot)`: whether a row that is not marked leaves.
  template <class Leaves>
  void arrive(Holder<Row>&& row, Position position, const Leaves& leaves) {
    const SlotType* slot = core_.find(CoreType::key_of(row.get()));
    const Entry* entry = slot != nullptr ? plan_.touched(*slot) : nullptr;
    if (entry != nullptr && entry->outcome != Outcome::seen) refuse_second(*slot, entry->position, position);
    if (entry != nullptr || (slot != nullptr && leaves(*slot))) {
      replace(*slot, std::move(row), position);
    } else {
      plan_.insert(std::move(row), position);  // validate() sees whether another row has the key
    }
  }
  void arrive(Holder<Row>&& row, Position position) {
    arrive(std::move(row), position, [](const SlotType&) { return false; });
  }

  /// Requires: all rows have come in.
  void remove_marked() {
    for (std::size_t i = 0; i < marked_; ++i) {
      const SlotType& slot = *plan_.entries[i].slot;
      if (plan_.touched(slot)->outcome == Outcome::seen) plan_.remove(slot);
    }
  }
  template <class Leaves>
  void remove_leaving(const Leaves& leaves) {
    for (const SlotType& slot : core_.scan()) {
      if (plan_.touched(slot) == nullptr && leaves(slot)) plan_.remove(slot);
    }
  }

 private:
  void replace(const SlotType& slot, Holder<Row>&& row, Position position) {
    if (detail::same_or(false, slot.get(), row.get())) {
      plan_.keep(slot, position);
    } else {
      plan_.update(slot, std::move(row), position);
    }
  }

  [[noreturn]] static void refuse_second(const SlotType& slot, Position first, Position second) {
    detail::refuse_source_rows(CoreType::KeyParts::name(), detail::key_text(CoreType::key_of(slot.get())),
                               first, second,
                               "; give a duplicate policy with duplicates(), or remove one of them");
  }

  const CoreType& core_;
  Plan<Row>& plan_;
  std::size_t marked_ = 0;
};

template <class CoreType>
[[noreturn]] void refuse_mismatch(const std::string& condition, const typename CoreType::RowType& row,
                                  Position position) {
  const std::string key = detail::key_text(CoreType::key_of(row));
  throw ReplaceWhereMismatch(
      detail::describe(row, position) + " with key " + key +
          " does not meet the condition of replace_where(), " + condition +
          "; leave such rows out, widen the condition, or let them in with unchecked()",
      condition, key, position);
}

/// A row on its way into the table.
template <class Row>
struct Incoming {
  Holder<Row> row;
  Position position;
};

/// Replaces the rows that are equal to an incoming one in all of `Columns`. O(table + incoming rows) on
/// average; where the columns are the key or those of an index, O(incoming rows + rows that leave).
template <class CoreType, class Columns>
class ReplaceUsing {
 public:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;

  ReplaceUsing(const CoreType& core, Plan<Row>& plan, std::vector<Incoming<Row>> rows)
      : core_(core), planner_(core, plan), rows_(std::move(rows)) {}

  void run() {
    collect();
    if (wanted_.size() != 0) mark_leaving();
    for (Incoming<Row>& incoming : rows_) planner_.arrive(std::move(incoming.row), incoming.position);
    planner_.remove_marked();
  }

 private:
  static constexpr bool by_key = std::same_as<Columns, typename CoreType::KeyParts>;
  static constexpr std::size_t index = index_number<Columns, typename CoreType::Indexes>;
  static constexpr bool by_index = index < std::tuple_size_v<typename CoreType::Indexes>;

  // One row for each combination of values.
  void collect() {
    wanted_.presize(rows_.size());
    for (Incoming<Row>& incoming : rows_) {
      const auto values = Columns::of(incoming.row.get());
      if (detail::has_empty_part(values)) continue;
      const std::uint64_t hash = detail::hash_of(values);
      if (find(values, hash) == nullptr) wanted_.add(hash, &incoming);
    }
  }

  template <class Values>
  const Incoming<Row>* find(const Values& values, std::uint64_t hash) const {
    return wanted_.find(hash, [&](const Incoming<Row>& incoming) {
      return detail::equal_values(Columns::of(incoming.row.get()), values);
    });
  }

  void mark_leaving() {
    if constexpr (by_key) {
      wanted_.for_each([this](std::uint64_t hash, const Incoming<Row>& incoming) {
        const SlotType* slot = core_.find(Columns::of(incoming.row.get()), hash);
        if (slot != nullptr) planner_.mark(*slot);
      });
    } else if constexpr (by_index) {
      mark_from_index();
    } else {
      for (const SlotType& slot : core_.scan()) {
        const auto values = Columns::of(slot.get());
        if (!detail::has_empty_part(values) && find(values, detail::hash_of(values)) != nullptr)
          planner_.mark(slot);
      }
    }
  }

  void mark_from_index() {
    std::vector<const SlotType*> slots;
    wanted_.for_each([&](std::uint64_t, const Incoming<Row>& incoming) {
      const auto [first, last] = core_.template matching<index>(Columns::of(incoming.row.get()));
      for (auto it = first; it != last; ++it) slots.push_back(&*it);
    });
    std::ranges::sort(slots, [](const SlotType* a, const SlotType* b) { return stands_before(*a, *b); });
    for (const SlotType* slot : slots) planner_.mark(*slot);
  }

  static bool stands_before(const SlotType& a, const SlotType& b) {
    if constexpr (CoreType::ordered) {
      return detail::less_values(CoreType::key_of(a.get()), CoreType::key_of(b.get()));
    } else {
      return a.order < b.order;
    }
  }

  const CoreType& core_;
  ReplacePlanner<CoreType> planner_;
  std::vector<Incoming<Row>> rows_;
  KeyIndex<Incoming<Row>> wanted_;
};

}  // namespace keyfold::detail

#include <initializer_list>

/// The verbs that load whole sets of rows: see docs/load.md.
namespace keyfold {

/// A base of Writes, and so of Table. Each verb is one commit, all-or-nothing.
///
/// A verb that replaces takes rows of the table's type, or rows that have all of its columns by name; a
/// container given as an rvalue has its rows moved from. A row that comes in with the key of a row that
/// leaves is an update of it, and is `unchanged` if nothing differs; with the key of a row that stays it is
/// a DuplicateKey. Two rows that come in with one key are a DuplicateSourceKey, unless duplicates() says
/// otherwise. All throw UniqueViolation, InvalidKey and CheckViolation, too, and what the source, the
/// conditions and the rows throw.
template <class Self, class Target, class Row>
class Loads : public mistakes::RangeForgotten<Row> {
 public:
  using Result = MergeResult<Row>;

  using mistakes::RangeForgotten<Row>::overwrite;
  using mistakes::RangeForgotten<Row>::replace_where;
  using mistakes::RangeForgotten<Row>::replace_using;
  using mistakes::RangeForgotten<Row>::replace_on;

  /// Replaces all rows (SQL's INSERT OVERWRITE): an empty source empties the table. O(table + rows).
  template <std::ranges::input_range Source>
  Result overwrite(Source&& rows) {
    check_replacing<Source, false>();
    return write("OVERWRITE", {}, [&]<class Core>(const Core& core, auto& plan) {
      const auto all = [](const auto&) { return true; };
      detail::ReplacePlanner<Core> planner(core, plan);
      for_each_incoming<Core, Source>(rows, plan, [&](auto& row, Position position) {
        planner.arrive(detail::hold_row<Row>(row, position), position, all);
      });
      planner.remove_leaving(all);
    });
  }
  Result overwrite(std::initializer_list<Row> rows) { return overwrite(std::vector<Row>(rows)); }

  /// Replaces the rows for which the condition is true (INSERT INTO ... REPLACE WHERE). It is an expression
  /// over target columns or callable as `bool(const Row&)`. Throws ReplaceWhereMismatch if it is not true for
  /// a row that comes in; `unchecked().replace_where()` lets such rows in. An empty source removes the rows.
  /// O(table + rows).
  template <class Condition, std::ranges::input_range Source>
  Result replace_where(Condition condition, Source&& rows) {
    check_replacing<Source, true>();
    if constexpr (detail::check_row_condition<Condition, Row>()) {
      const std::string text = detail::condition_text(condition);
      return write("REPLACE WHERE", text + (Self::checks ? "" : " UNCHECKED"),
                   [&]<class Core>(const Core& core, auto& plan) {
                     const auto leaves = [&](const auto& slot) {
                       return detail::holds_for(condition, slot.get());
                     };
                     detail::ReplacePlanner<Core> planner(core, plan);
                     for_each_incoming<Core, Source>(rows, plan, [&](auto& row, Position position) {
                       detail::Holder<Row> held = detail::hold_row<Row>(row, position);
                       if (Self::checks && !detail::holds_for(condition, std::as_const(held).get()))
                         detail::refuse_mismatch<Core>(text, held.get(), position);
                       planner.arrive(std::move(held), position, leaves);
                     });
                     planner.remove_leaving(leaves);
                   });
    }
  }
  template <class Condition>
  Result replace_where(Condition condition, std::initializer_list<Row> rows) {
    return replace_where(std::move(condition), std::vector<Row>(rows));
  }

  /// Replaces the rows that are equal in these members to a row that comes in (INSERT INTO ... REPLACE
  /// USING): every month, shop or day that the source has rows of. As in SQL an empty optional is equal to
  /// nothing; values are equal as the parts of a key are. An empty source removes nothing. O(table + rows) on
  /// average; O(rows that leave or come in) where the members are the key or those of an index.
  template <auto... Members, std::ranges::input_range Source>
  Result replace_using(Source&& rows) {
    static_assert(sizeof...(Members) > 0,
                  "keyfold: replace_using<>() names the members in which rows must be equal");
    static_assert((detail::Readable<Members, Row> && ...),
                  "keyfold: replace_using<>() names a member of another type than the table's rows");
    check_replacing<Source, false>();
    using Columns = detail::Parts<Members...>;
    return write("REPLACE USING", using_text<Members...>(), [&]<class Core>(const Core& core, auto& plan) {
      std::vector<detail::Incoming<Row>> incoming;
      for_each_incoming<Core, Source>(rows, plan, [&](auto& row, Position position) {
        incoming.push_back({detail::hold_row<Row>(row, position), position});
      });
      detail::ReplaceUsing<Core, Columns>(core, plan, std::move(incoming)).run();
    });
  }
  template <auto... Members>
  Result replace_using(std::initializer_list<Row> rows) {
    return replace_using<Members...>(std::vector<Row>(rows));
  }

  /// Replaces the rows for which the condition is true with a row that comes in (INSERT INTO ... REPLACE ON).
  /// It is an expression over both sides or callable as `bool(const Row&, const Source&)`. An empty source
  /// removes nothing. O(table + rows) on average if the condition is, or joins with &&, a column of the
  /// source compared to one of the target by == or same(); then candidates are found by hash. Else
  /// O(table * rows).
  template <class Condition, std::ranges::input_range Source>
  Result replace_on(Condition condition, Source&& rows) {
    using Value = std::ranges::range_value_t<Source>;
    check_replacing<Source, false>();
    if constexpr (detail::check_pair_condition<Condition, Row, Value>()) {
      return write(
          "REPLACE ON", detail::condition_text(condition), [&]<class Core>(const Core& core, auto& plan) {
            using Policy = std::remove_cvref_t<decltype(policy())>;
            const detail::IncomingRows<Core, Source, Value, Policy> incoming(rows, policy(), plan.metrics);
            detail::ReplacePlanner<Core> planner(core, plan);
            mark_joined<Value>(core, planner, condition, incoming);
            incoming.for_each([&](auto& row, Position position) {
              planner.arrive(detail::hold_row<Row>(row, position), position);
            });
            planner.remove_marked();
          });
    }
  }
  template <class Condition>
  Result replace_on(Condition condition, std::initializer_list<Row> rows) {
    return replace_on(std::move(condition), std::vector<Row>(rows));
  }

  /// Deletes the rows for which the condition is true: an expression over target columns, or callable as
  /// `bool(const Row&)`. O(table).
  template <class Condition>
  Result erase_where(Condition condition) {
    check_rows_none();
    if constexpr (detail::check_row_condition<Condition, Row>()) {
      std::string text = "WHERE " + detail::condition_text(condition);
      return run_on_table("DELETE", std::move(text),
                          merge_rule<Row>().when_not_matched_by_source(std::move(condition)).erase());
    }
  }

  /// Updates the rows for which the condition is true: by assignments `target<&Row::column> = value, ...`,
  /// whose values all read the old row, or by one callable as `Row(const Row&)`. The key may change. Throws
  /// DuplicateKey, UniqueViolation, InvalidKey, CheckViolation, ValueOutOfRange, and what the callables and
  /// the rows throw. O(table).
  template <class Condition, class... What>
  Result update_where(Condition condition, What... what) {
    check_rows_none();
    if constexpr (detail::check_row_condition<Condition, Row>() && detail::check_row_update<Row, What...>()) {
      std::string text = detail::update_text(what...) + " WHERE " + detail::condition_text(condition);
      return run_on_table(
          "UPDATE", std::move(text),
          merge_rule<Row>().when_not_matched_by_source(std::move(condition)).update(std::move(what)...));
    }
  }

 private:
  using WritesType = Writes<Self, Target, Row>;

  template <class Fill>
  Result write(std::string_view operation, std::string parameters, Fill fill) {
    return static_cast<WritesType&>(*this).write(operation, std::move(parameters), std::move(fill));
  }
  decltype(auto) policy() { return static_cast<WritesType&>(*this).policy_of_self(); }

  template <class Source, bool takes_unchecked>
  static constexpr void check_replacing() {
    WritesType::template check_settings<true, takes_unchecked>();
    detail::check_insert_all<Row, std::ranges::range_value_t<Source>>();
  }
  static constexpr void check_rows_none() { WritesType::template check_settings<false, false>(); }

  template <auto... Members>
  static std::string using_text() {
    const std::string names = detail::Parts<Members...>::name();  // of several members in parentheses
    return sizeof...(Members) == 1 ? '(' + names + ')' : names;
  }

  template <class Core, class Source, class Plan, class Take>
  void for_each_incoming(std::remove_reference_t<Source>& rows, Plan& plan, Take take) {
    detail::for_each_incoming<Core, Source, std::ranges::range_value_t<Source>>(rows, policy(), plan.metrics,
                                                                                take);
  }

  template <class Value, class Core, class Condition, class Incoming>
  static void mark_joined(const Core& core, detail::ReplacePlanner<Core>& planner, const Condition& condition,
                          const Incoming& incoming) {
    detail::Join<Row, Value, Condition> join(condition);
    incoming.for_each([&](const Value& row, Position) { join.add(row); });
    if (join.empty()) return;
    join.build();
    for (const auto& slot : core.scan()) {
      if (join.holds_for(slot.get())) planner.mark(slot);
    }
  }

  // A merge with an empty source.
  template <class Rule>
  Result run_on_table(std::string_view operation, std::string parameters, const Rule& rule) {
    return write(operation, std::move(parameters), [&]<class Core>(const Core& core, auto& plan) {
      std::span<const Row> nothing;
      detail::MergePlanner<Core, Rule, std::span<const Row>>(core, rule, plan).run(nothing);
    });
  }
};

}  // namespace keyfold

// memory

namespace keyfold {

/// Bytes held by a table. What rows and keys allocate themselves (long strings, vectors) is not known to it
/// and not counted, nor is what the allocator adds to each block, nor the room that one write leaves to the
/// next: at most 256 KiB, or an eighth of what the rows take.
struct MemoryUsage {
  std::size_t rows = 0;     ///< the pool of rows with their links in the container and its secondary indexes
  std::size_t indexes = 0;  ///< the primary key, keys of deleted rows in history, buckets of hashed indexes,
                            ///< and what apply_changes() remembers
  std::size_t history = 0;  ///< commits with their texts, and before images

  [[nodiscard]] constexpr std::size_t total() const noexcept { return rows + indexes + history; }

  bool operator==(const MemoryUsage&) const = default;
};

}  // namespace keyfold

// subscription

namespace keyfold {

/// Asks subscribe() to tell the present rows first, as one commit of inserts.
struct Replay {};
inline constexpr Replay replay{};

/// Keeps a callback subscribed; the callback is not called again once this is gone. It may outlive the table.
class [[nodiscard]] Subscription {
 public:
  Subscription() = default;

  template <class Row>
  Subscription(const std::shared_ptr<detail::Subscribers<Row>>& subscribers,
               const std::shared_ptr<detail::Subscriber<Row>>& subscriber)
      : registration_(std::make_unique<RegistrationIn<Row>>(subscribers, subscriber)) {}

  /// Ends the subscription now.
  void reset() noexcept { registration_.reset(); }

  /// Whether the callback may still be called: not after reset(), nor once the table is gone or was assigned
  /// to.
  [[nodiscard]] bool active() const noexcept { return registration_ != nullptr && registration_->alive(); }

 private:
  struct Registration {
    Registration() = default;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    virtual ~Registration() = default;
    [[nodiscard]] virtual bool alive() const noexcept = 0;
  };

  template <class Row>
  struct RegistrationIn final : Registration {
    RegistrationIn(std::weak_ptr<detail::Subscribers<Row>> all, std::weak_ptr<detail::Subscriber<Row>> one)
        : subscribers(std::move(all)), subscriber(std::move(one)) {}
    RegistrationIn(const RegistrationIn&) = delete;
    RegistrationIn& operator=(const RegistrationIn&) = delete;
    ~RegistrationIn() override {
      const auto all = subscribers.lock();
      const auto one = subscriber.lock();
      if (all != nullptr && one != nullptr) all->remove(*one);
    }
    [[nodiscard]] bool alive() const noexcept override { return !subscribers.expired(); }

    std::weak_ptr<detail::Subscribers<Row>> subscribers;
    std::weak_ptr<detail::Subscriber<Row>> subscriber;
  };

  std::unique_ptr<Registration> registration_;
};

}  // namespace keyfold

// table

// detail/commit

/// A write to a table, from the plan to the last subscriber.
namespace keyfold::detail {

/// What tells the subscribers of a core that has some, see Core::tell.
template <class CoreType>
void tell_each(CoreType& core, std::vector<std::exception_ptr>& errors) noexcept {
  const auto subscribers = core.subscribers;  // a callback may do anything to the table
  const auto commit_of = [&](Version version) {
    return Commit<typename CoreType::RowType>(*core.log, *core.log->find(version));
  };
  subscribers->tell(commit_of, [&] { return core.version(); }, errors);
}

/// Tells subscribers of commits they have not heard of yet; then old versions may go.
template <class CoreType>
void tell_subscribers(CoreType& core, std::vector<std::exception_ptr>& errors) noexcept {
  if (core.subscribers->telling()) return;  // a callback wrote this: the call that tells goes on with it
  if (core.tell == nullptr || core.subscribers->empty()) {
    core.subscribers->skip_to(core.version());
  } else {
    core.tell(core, errors);
  }
  if (core.retain != nullptr) core.retain(core);
}

/// Tells subscribers when a scope ends; what they throw then is nobody's.
template <class CoreType>
class TellAtTheEnd {
 public:
  explicit TellAtTheEnd(CoreType& core) noexcept : core_(core) {}
  TellAtTheEnd(const TellAtTheEnd&) = delete;
  TellAtTheEnd& operator=(const TellAtTheEnd&) = delete;
  ~TellAtTheEnd() {
    std::vector<std::exception_ptr> errors;
    detail::tell_subscribers(core_, errors);
  }

 private:
  CoreType& core_;
};

template <class Row, class Callback>
constexpr void check_subscriber() {
  static_assert(std::is_invocable_v<Callback&, const Commit<Row>&>,
                "keyfold: a subscriber is callable with a const Commit<Row>&");
}

/// The present rows as a commit of inserts. It has rows of its own: whoever is told of it may write.
template <class Row>
class Replayed {
 public:
  template <class Rows>
  Replayed(const Rows& rows, const CommitLog<Row>& log)
      : arena_(*std::pmr::new_delete_resource()), rows_(arena_, {.images = rows.size()}) {
    record.version = log.latest();
    if (!log.empty()) record.timestamp = log.records.back().timestamp;
    record.operation = "REPLAY";
    record.metrics = Metrics{.source_rows = rows.size(), .inserted = rows.size()};
    record.table_size = rows.size();
    record.block = LogBlock<Row>(arena_, {.firsts = rows.size()});
    for (const auto& slot : rows) {
      const auto* row = rows_.add(LogKind::erase, record.version, nullptr, Holder<Row>(slot.get()));
      record.block.add_first(record.version)->set_newer(row);
    }
  }

  CommitRecord<Row> record;

 private:
  Arena arena_;
  LogBlock<Row> rows_;
};

/// Strong guarantee.
template <class CoreType>
MergeResult<typename CoreType::RowType> commit(CoreType& core, CommitNote&& note,
                                               Fill<typename CoreType::RowType> fill) {
  const Written written = detail::write(core, std::move(note), fill);
  std::vector<std::exception_ptr> errors;
  if (written.committed) detail::tell_subscribers(core, errors);
  if (core.journal != nullptr) core.journal->published();
  return {written, core.log, std::move(errors)};
}

}  // namespace keyfold::detail

// detail/copy

#include <unordered_map>

namespace keyfold::detail {

/// Copies a table with its history, but without its subscribers.
template <class CoreType>
class CoreCopy {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;

  explicit CoreCopy(const CoreType& from)
      : from_(from), to_(std::make_unique<CoreType>(from.options, from.retain)) {
    copy_log();
    copy_rows();
    for (const auto& [old_entry, entry] : entries_) link(*old_entry, *entry);
    to_->graves.presize(from.graves.size());
    from.graves.for_each(
        [this](std::uint64_t hash, const Entry& grave) { to_->graves.add(hash, copy_of(&grave)); });
    to_->tags = from.tags;
    to_->applied = from.applied;
    to_->checks = from.checks;
    if (from.sequences != nullptr) to_->sequences = from.sequences->clone();
    to_->next_order = from.next_order;
    to_->subscribers->skip_to(from.version());
  }

  std::unique_ptr<CoreType> take() { return std::move(to_); }

 private:
  void copy_log() {
    const CommitLog<Row>& from = *from_.log;
    CommitLog<Row>& to = *to_->log;
    for (const LogBlock<Row>& block : from.retired) to.retired.push_back(copy_block(block));
    for (const CommitRecord<Row>& record : from.records) {
      CommitRecord<Row>& copy = to.records.emplace_back();
      copy.version = record.version;
      copy.timestamp = record.timestamp;
      copy.operation = record.operation;
      copy.parameters = record.parameters;
      copy.metadata = record.metadata;
      copy.table_size = record.table_size;
      copy.metrics = record.metrics.get();
      copy.has_changes = record.has_changes;
      copy.block = copy_block(record.block);
    }
    to.operations = from.operations;
    to.oldest = from.oldest;
    to.pinned = from.pinned;
    to.first_commit = from.first_commit;
    to.last_expired = from.last_expired;
    to.record_bytes = from.record_bytes;
    to.unswept = from.unswept;
    to.swept = from.swept;
  }

  LogBlock<Row> copy_block(const LogBlock<Row>& from) {
    LogBlock<Row> to(to_->log->arena, from.counts());
    for (const Entry* entry = from.first(); entry != nullptr; entry = from.next(entry))
      entries_[entry] = add_copy(to, *entry);
    return to;
  }

  static Entry* add_copy(LogBlock<Row>& to, const Entry& entry) {
    if (entry.is_first()) return to.add_first(entry.version());
    if (!entry.has_before()) return to.add(entry.kind(), entry.version(), nullptr);
    return to.add(entry.kind(), entry.version(), nullptr, Holder<Row>(entry.before().get()));
  }

  void copy_rows() {
    to_->keys.presize(from_.rows.size());
    for (const Slot<Row>& slot : from_.rows) {
      const Slot<Row>& copy = *add_slot(*to_, Holder<Row>(slot.get()));
      to_->keys.add(detail::hash_of(CoreType::key_of(copy.get())), &copy);
      copy.order = slot.order;
      if (slot.newest != nullptr) detail::make_newest(copy, copy_of(slot.newest));
    }
  }

  // Rows have linked themselves to the newest change of their key.
  void link(const Entry& from, Entry& to) {
    if (!from.is_first()) to.set_older(copy_of(from.older()));
    if (!from.leaves_row()) {
      to.set_order(from.order());
    } else if (from.newer_slot() == nullptr) {
      to.set_newer(copy_of(from.newer_entry()));
    }
  }

  Entry* copy_of(const Entry* entry) const { return entry == nullptr ? nullptr : entries_.at(entry); }

  const CoreType& from_;
  std::unique_ptr<CoreType> to_;
  std::unordered_map<const Entry*, Entry*> entries_;
};

}  // namespace keyfold::detail

// detail/expiry

/// Letting old versions go. expire() decides what is readable from now on; Sweep frees what no readable
/// version needs. A sweep that fails for want of memory changes nothing and is made up for by the next.
namespace keyfold::detail {

/// Rewrites the log before the oldest version of the unbroken sequence. Of the entries of a key between two
/// kept versions only the oldest is needed: its before image is what the earlier version reads. Those up to
/// the earliest kept version are not needed at all.
template <class CoreType>
class Sweep {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;
  using Block = LogBlock<Row>;

  /// Works out the new blocks; allocates them. Only reads what readers read. Throws std::bad_alloc and what
  /// the user's hashes and comparisons throw.
  explicit Sweep(CoreType& core) : core_(core), log_(*core.log), kept_(log_.pinned) {
    if (kept_.empty() || kept_.back() != log_.oldest - 1) kept_.push_back(log_.oldest - 1);
    for (const Block& block : log_.retired) {
      for (Entry* entry = const_cast<Block&>(block).first(); entry != nullptr; entry = block.next(entry))
        visit(*entry);
    }
    allocate();
  }

  /// Afterwards the old blocks are this object's, and nothing leads to them.
  void run() noexcept {
    for (Run& run : runs_) {
      if (run.interval != 0 && run.keep != Keep::nothing) move_bottom(run);
      set_below(resolve(run.above), run);
    }
    log_.retired.swap(blocks_);
  }

 private:
  enum class Keep : std::uint8_t { nothing, insert, update, erase };

  /// What leads to an entry: its row, the next change of the key, or the index of graves.
  struct Above {
    const Slot<Row>* slot = nullptr;
    Entry* entry = nullptr;
    std::uint64_t grave_hash = 0;  // if neither of the others
  };

  /// The entries of one key in one interval, newest (top) to oldest (bottom).
  struct Run {
    Above above;
    Entry* top = nullptr;
    Entry* bottom = nullptr;
    Entry* kept = nullptr;  // the bottom's new place
    std::uint64_t order = 0;
    std::size_t interval = 0;  // between kept_[interval - 1] and kept_[interval]
    Keep keep = Keep::nothing;
  };

  std::size_t interval_of(const Entry& entry) const {
    return static_cast<std::size_t>(std::lower_bound(kept_.begin(), kept_.end(), entry.version()) -
                                    kept_.begin());
  }

  void visit(Entry& entry) {
    const Above above = find_above(entry);
    const std::size_t interval = interval_of(entry);
    if (above.entry != nullptr && above.entry->version() <= kept_[interval])
      return;  // not the top of its run
    Run run{.above = above, .top = &entry, .interval = interval};
    descend(run);
    runs_.push_back(run);
  }

  // An entry that ends a life has no link upwards: the key leads to it from the top.
  // One walk down the chain tells it for all its ends.
  Above find_above(Entry& entry) {
    if (entry.leaves_row()) return {entry.newer_slot(), entry.newer_entry(), 0};
    if (const auto at = above_ends_.find(&entry); at != above_ends_.end()) return {nullptr, at->second, 0};
    const auto key = CoreType::key_of(entry.before().get());
    const std::uint64_t hash = detail::hash_of(key);
    const Slot<Row>* slot = core_.find(key, hash);
    Entry* newest = slot != nullptr ? slot->newest : core_.find_grave(key, hash);
    if (newest == &entry) return {slot, nullptr, hash};
    for (Entry* newer = newest; newer->older() != nullptr; newer = newer->older()) {
      Entry* const older = newer->older();
      if (!older->leaves_row() && older->version() < log_.oldest) above_ends_.emplace(older, newer);
    }
    return {nullptr, above_ends_.at(&entry), 0};
  }

  void descend(Run& run) {
    const Entry* ending = nullptr;  // of the life that the walk is in
    for (Entry* entry = run.top; entry != nullptr && interval_of(*entry) == run.interval;
         entry = entry->older()) {
      if (!entry->leaves_row()) ending = entry;
      run.bottom = entry;
      if (!entry->has_before() && entry->older() != nullptr && interval_of(*entry->older()) == run.interval)
        ending = nullptr;
    }
    if (run.bottom->has_before()) {
      run.keep = ending != nullptr ? Keep::erase : Keep::update;
      if (ending != nullptr) run.order = ending->order();
    } else if (run.above.slot != nullptr || (run.above.entry != nullptr && run.above.entry->has_before())) {
      run.keep = Keep::insert;  // the key has a row above, which began here
    }
  }

  void allocate() {
    std::vector<EntryCounts> counts(kept_.size());
    for (const Run& run : runs_) {
      if (run.interval == 0 || run.keep == Keep::nothing) continue;
      EntryCounts& count = counts[run.interval];
      ++(run.keep != Keep::insert ? count.images : run.bottom->is_first() ? count.firsts : count.bare);
    }
    for (const EntryCounts& count : counts) blocks_.emplace_back(core_.log->arena, count);
    if (kept_.size() == 1) return;  // one interval, of which nothing is kept
    // From the top of each chain down, so that what leads to a run has its final place when the run is
    // reached.
    std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.interval > b.interval; });
    for (const Run& run : runs_) bottoms_.emplace(run.bottom, &run);
  }

  void move_bottom(Run& run) noexcept {
    Block& block = blocks_[run.interval];
    Entry& from = *run.bottom;
    if (run.keep == Keep::insert && from.is_first()) {
      run.kept = block.add_first(from.version());
      return;
    }
    if (run.keep == Keep::insert) {
      run.kept = block.add(LogKind::insert, from.version(), nullptr);
    } else {
      const LogKind kind = run.keep == Keep::erase ? LogKind::erase : LogKind::update;
      run.kept = block.add(kind, from.version(), nullptr, std::move(from.before()));
      if (run.keep == Keep::erase) run.kept->set_order(run.order);
    }
    run.kept->set_older(from.older());
  }

  // Where what led to an entry stands now.
  Above resolve(Above above) const noexcept {
    while (above.entry != nullptr) {
      const auto at = bottoms_.find(above.entry);
      if (at == bottoms_.end()) break;
      const Run& run = *at->second;
      if (run.kept != nullptr) return {nullptr, run.kept, 0};
      above = run.above;
    }
    return above;
  }

  void set_below(const Above& above, const Run& run) noexcept {
    Entry* below = run.kept;
    if (below == nullptr && run.interval != 0) below = run.bottom->older();
    if (run.kept != nullptr && run.kept->leaves_row()) {
      above.slot != nullptr ? run.kept->set_newer(above.slot) : run.kept->set_newer(above.entry);
    }
    if (above.slot != nullptr) {
      above.slot->newest = below;
    } else if (above.entry != nullptr) {
      above.entry->set_older(below);
    } else if (below != nullptr) {
      core_.graves.replace(above.grave_hash, run.top, below);
    } else {
      core_.graves.erase(above.grave_hash, run.top);
    }
  }

  CoreType& core_;
  CommitLog<Row>& log_;
  std::vector<Version>
      kept_;  // bounds of the intervals, ascending: pinned versions, and the last one retired
  std::vector<Run> runs_;
  std::unordered_map<const Entry*, const Run*> bottoms_;
  std::unordered_map<const Entry*, Entry*>
      above_ends_;  // the next change of the key, after the end of a life
  std::vector<Block> blocks_;
};

/// The first version that an expiry rule leaves readable, tags aside.
template <class CoreType>
Version first_kept(const CoreType& core, const KeepLastVersions& rule) {
  const Version latest = core.version();
  const Version span = std::max<Version>(rule.count, 1) - 1;
  return latest > span ? latest - span : 0;
}
template <class CoreType>
Version first_kept(const CoreType& core, const OlderThan& rule) {
  const auto& records = core.log->records;
  const auto first =
      std::lower_bound(records.begin(), records.end(), rule.time,
                       [](const auto& record, Timestamp time) { return record.timestamp < time; });
  if (first == records.begin()) return core.log->oldest;
  return first == records.end() ? core.version() : first->version;
}
template <class CoreType>
Version first_kept(const CoreType& core, const KeepFor& rule) {
  if (core.log->empty()) return 0;
  return detail::first_kept(core, OlderThan{detail::start_of(rule, core.log->records.back().timestamp)});
}

/// The first version that a read point of a shared table needs; the largest number if there is none.
template <class Row>
Version oldest_read(const CommitLog<Row>& log) {
  return log.readers == nullptr ? std::numeric_limits<Version>::max() : log.readers->oldest_read();
}

/// Whether nothing may expire: a read point reads a tagged version among those that have expired.
template <class Row>
bool expiry_waits(const CommitLog<Row>& log) {
  return detail::oldest_read(log) < log.oldest;
}

/// The tagged versions before `first`, ascending.
template <class CoreType>
std::vector<Version> tagged_before(const CoreType& core, Version first) {
  std::vector<Version> versions;
  for (const auto& [name, version] : core.tags) {
    if (version < first) versions.push_back(version);
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions;
}

/// The versions that would no longer be readable, ascending.
template <class CoreType>
std::vector<Version> expiring(const CoreType& core, Version first) {
  if (detail::expiry_waits(*core.log)) return {};
  const std::vector<Version> all_tagged = detail::tagged_before(core, first);
  const auto tagged = [&](Version version) {
    return std::binary_search(all_tagged.begin(), all_tagged.end(), version);
  };
  std::vector<Version> versions;
  for (const Version version : core.log->pinned) {
    if (!tagged(version)) versions.push_back(version);
  }
  for (Version version = core.log->oldest; version < first; ++version) {
    if (!tagged(version)) versions.push_back(version);
  }
  return versions;
}

/// Makes all versions before `first` unreadable but for the tagged ones; `announce()` is called when nothing
/// else can fail, and not if there is nothing to do. Strong guarantee.
template <class CoreType, class Announce>
void retire(CoreType& core, Version first, Announce announce) {
  auto& log = *core.log;
  if (first == log.oldest && log.pinned.empty()) return;
  std::vector<Version> pinned = detail::tagged_before(core, first);
  const auto kept_whole =
      std::lower_bound(log.records.begin(), log.records.end(), first,
                       [](const auto& record, Version version) { return record.version < version; });
  const std::size_t blocks = log.retired.size() + static_cast<std::size_t>(kept_whole - log.records.begin());
  if (blocks > log.retired.capacity()) log.retired.reserve(std::max(blocks, 2 * log.retired.capacity()));

  announce();

  // From here on nothing fails.
  for (auto record = log.records.begin(); record != kept_whole; ++record) {
    log.last_expired = record->timestamp;
    if (!record->has_changes) continue;
    log.unswept += record->block.bytes();
    log.record_bytes -= record->block.bytes();
    log.retired.push_back(std::move(record->block));
    record->has_changes = false;
  }
  auto out = kept_whole;
  for (auto record = kept_whole; record != log.records.begin();) {
    --record;
    if (std::binary_search(pinned.begin(), pinned.end(), record->version) && --out != record)
      *out = std::move(*record);
  }
  log.records.erase(log.records.begin(), out);
  log.pinned.swap(pinned);
  log.oldest = first;
}

/// Frees what retired versions leave behind. Strong guarantee. Readers of a shared table are kept out only
/// while what leads to the old blocks is changed; should one have come to read a tagged version among those
/// that have expired, it is put off.
template <class CoreType>
void sweep(CoreType& core) {
  auto& log = *core.log;
  if (log.retired.empty()) return;
  Sweep<CoreType> sweep(core);
  const WithoutReaders changing(log.readers.get());
  if (detail::expiry_waits(log)) return;
  sweep.run();
  log.unswept = 0;
  log.swept = 0;
  for (const auto& block : log.retired) log.swept += block.bytes();
  core.graves.shrink();
  core.keys.shrink();
}

/// sweep(), put off to the next time if it fails.
template <class CoreType>
void try_sweep(CoreType& core) noexcept {
  try {
    detail::sweep(core);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing was changed
  }
}

/// Applies the table's retention after a commit. It must not fail, and is made up for later if it does. It
/// sweeps when it pays: when as much is to be freed as the last sweep has left, and a quarter of what is
/// kept, so that the cost of a commit grows neither with what tags hold nor with the changes that stay.
template <class CoreType>
void apply_retention(CoreType& core) noexcept {
  if (!core.options.retention) return;
  try {
    const Version wanted =
        std::visit([&](const auto& rule) { return detail::first_kept(core, rule); }, *core.options.retention);
    if (wanted <= core.log->oldest) return;
    {
      const WithoutReaders expiring(core.log->readers.get());
      const Version first = std::min(wanted, detail::oldest_read(*core.log));
      if (first <= core.log->oldest) return;
      detail::retire(core, first, [] {});
    }
    const std::size_t kept = core.log->record_bytes;
    if (core.log->unswept >= std::max(core.log->swept, kept / 4)) detail::try_sweep(core);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next commit tries again
  }
}

}  // namespace keyfold::detail

// detail/gdb_printers
// Made by scripts/embed-gdb-printers from scripts/keyfold_gdb.py. Change that.

/// The printers of gdb, in a section that gdb reads and nothing loads when the program runs. It goes with the
/// debug information when that is stripped. KEYFOLD_NO_GDB_PRINTERS leaves it out.
#if !defined(KEYFOLD_NO_GDB_PRINTERS) && defined(__ELF__) && defined(__GNUC__)
// clang-format off
__asm__(
    ".pushsection \".debug_gdb_scripts\", \"MS\", %progbits, 1\n"
    ".byte 4\n"
    ".ascii \"gdb.inlined-script.keyfold\\n\"\n"
    ".ascii \"def keyfold_printers():\\n\"\n"
    ".ascii \"    import datetime\\n\"\n"
    ".ascii \"    import re\\n\"\n"
    ".ascii \"    import gdb\\n\"\n"
    ".ascii \"    import gdb.printing\\n\"\n"
    ".ascii \"    def base(value, name):\\n\"\n"
    ".ascii \"        for field in value.type.fields():\\n\"\n"
    ".ascii \"            if field.is_base_class:\\n\"\n"
    ".ascii \"                if field.type.name.split('<')[0] == name:\\n\"\n"
    ".ascii \"                    return value.cast(field.type)\\n\"\n"
    ".ascii \"                found = base(value.cast(field.type), name)\\n\"\n"
    ".ascii \"                if found is not None:\\n\"\n"
    ".ascii \"                    return found\\n\"\n"
    ".ascii \"        return None\\n\"\n"
    ".ascii \"    def pointee(pointer, target):\\n\"\n"
    ".ascii \"        plain = pointer.address.cast(target.pointer().pointer()).dereference()\\n\"\n"
    ".ascii \"        return plain.dereference() if int(plain) else None\\n\"\n"
    ".ascii \"    def owners(weak_pointer):\\n\"\n"
    ".ascii \"        counter = weak_pointer['_M_refcount']['_M_pi']\\n\"\n"
    ".ascii \"        field = next(field for field in counter.type.target().fields() if field.name == '_M_use_count')\\n\"\n"
    ".ascii \"        address = int(counter) + field.bitpos // 8\\n\"\n"
    ".ascii \"        return int(gdb.Value(address).cast(field.type.pointer()).dereference())\\n\"\n"
    ".ascii \"    def standard_printer(container):\\n\"\n"
    ".ascii \"        printer = gdb.default_visualizer(container)\\n\"\n"
    ".ascii \"        if printer is None:\\n\"\n"
    ".ascii \"            raise gdb.GdbError('keyfold: the pretty printers of the standard library are not loaded')\\n\"\n"
    ".ascii \"        return printer\\n\"\n"
    ".ascii \"    def elements(container):\\n\"\n"
    ".ascii \"        return (child[1] for child in standard_printer(container).children())\\n\"\n"
    ".ascii \"    def count_of(container):\\n\"\n"
    ".ascii \"        number = re.search(r'(?:length|with) (\\\\d+)', standard_printer(container).to_string() or '')\\n\"\n"
    ".ascii \"        return int(number.group(1)) if number else 0\\n\"\n"
    ".ascii \"    def collected(container):\\n\"\n"
    ".ascii \"        if count_of(container) > 1 << 24:\\n\"\n"
    ".ascii \"            raise gdb.GdbError('keyfold: this has not been constructed yet')\\n\"\n"
    ".ascii \"        return list(elements(container))\\n\"\n"
    ".ascii \"    def last(deque):\\n\"\n"
    ".ascii \"        start, finish = deque['_M_impl']['_M_start'], deque['_M_impl']['_M_finish']\\n\"\n"
    ".ascii \"        if start['_M_cur'] == finish['_M_cur']:\\n\"\n"
    ".ascii \"            return None\\n\"\n"
    ".ascii \"        if finish['_M_cur'] != finish['_M_first']:\\n\"\n"
    ".ascii \"            return (finish['_M_cur'] - 1).dereference()\\n\"\n"
    ".ascii \"        node = (finish['_M_node'] - 1).dereference()\\n\"\n"
    ".ascii \"        return (node + (finish['_M_last'] - finish['_M_first']) - 1).dereference()\\n\"\n"
    ".ascii \"    def optional(value):\\n\"\n"
    ".ascii \"        return next(iter(elements(value)), None)\\n\"\n"
    ".ascii \"    def scalar(value):\\n\"\n"
    ".ascii \"        while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:\\n\"\n"
    ".ascii \"            value = value[value.type.strip_typedefs().fields()[0]]\\n\"\n"
    ".ascii \"        return int(value)\\n\"\n"
    ".ascii \"    def held(holder):\\n\"\n"
    ".ascii \"        row = holder.type.strip_typedefs().unqualified().template_argument(0)\\n\"\n"
    ".ascii \"        inside = holder['row_']\\n\"\n"
    ".ascii \"        if inside.type.strip_typedefs().unqualified() == row.strip_typedefs().unqualified():\\n\"\n"
    ".ascii \"            return inside\\n\"\n"
    ".ascii \"        return pointee(inside, row)\\n\"\n"
    ".ascii \"    def header_of(rows):\\n\"\n"
    ".ascii \"        return base(rows, 'boost::multi_index::detail::header_holder')['member']\\n\"\n"
    ".ascii \"    def sequence_of(rows):\\n\"\n"
    ".ascii \"        return base(header_of(rows).dereference(), 'boost::multi_index::detail::sequenced_index_node_impl')\\n\"\n"
    ".ascii \"    def nodes(rows):\\n\"\n"
    ".ascii \"        header, sequence = header_of(rows), sequence_of(rows)\\n\"\n"
    ".ascii \"        if sequence is not None:\\n\"\n"
    ".ascii \"            link = sequence['next_']\\n\"\n"
    ".ascii \"            while int(link) != int(sequence.address):\\n\"\n"
    ".ascii \"                yield link.cast(header.type)\\n\"\n"
    ".ascii \"                link = link['next_']\\n\"\n"
    ".ascii \"            return\\n\"\n"
    ".ascii \"        ordered = base(header.dereference(), 'boost::multi_index::detail::ordered_index_node_impl')\\n\"\n"
    ".ascii \"        root = gdb.Value(int(ordered['parentcolor_']) & ~1).cast(ordered.address.type)\\n\"\n"
    ".ascii \"        path, link = [], root\\n\"\n"
    ".ascii \"        while path or int(link):\\n\"\n"
    ".ascii \"            while int(link):\\n\"\n"
    ".ascii \"                path.append(link)\\n\"\n"
    ".ascii \"                link = link['left_']\\n\"\n"
    ".ascii \"            link = path.pop()\\n\"\n"
    ".ascii \"            yield link.cast(header.type)\\n\"\n"
    ".ascii \"            link = link['right_']\\n\"\n"
    ".ascii \"    def slot_of(node):\\n\"\n"
    ".ascii \"        inner = base(node.dereference(), 'boost::multi_index::detail::index_node_base')\\n\"\n"
    ".ascii \"        return inner.address.cast(inner.type.template_argument(0).pointer()).dereference()\\n\"\n"
    ".ascii \"    def slots(core):\\n\"\n"
    ".ascii \"        return (slot_of(node) for node in nodes(core['rows']))\\n\"\n"
    ".ascii \"    def log_of(core):\\n\"\n"
    ".ascii \"        return pointee(core['log'], core['log'].type.template_argument(0))\\n\"\n"
    ".ascii \"    def of_row(class_name, value):\\n\"\n"
    ".ascii \"        row = value.type.strip_typedefs().unqualified().template_argument(0)\\n\"\n"
    ".ascii \"        return gdb.lookup_type('keyfold::detail::%s<%s>' % (class_name, row.unqualified()))\\n\"\n"
    ".ascii \"    def round_up(size, to):\\n\"\n"
    ".ascii \"        return (size + to - 1) // to * to\\n\"\n"
    ".ascii \"    class Entry:\\n\"\n"
    ".ascii \"        INSERT, UPDATE, ERASE, REKEY_OUT, REKEY_IN = range(5)\\n\"\n"
    ".ascii \"        def __init__(self, value):\\n\"\n"
    ".ascii \"            self.value = value\\n\"\n"
    ".ascii \"            self.holder = of_row('Holder', value)\\n\"\n"
    ".ascii \"            stamp = int(value['stamp_'])\\n\"\n"
    ".ascii \"            self.kind, self.is_first, self.version = stamp & 7, bool(stamp & 8), stamp >> 4\\n\"\n"
    ".ascii \"            self.has_before = self.kind not in (self.INSERT, self.REKEY_IN)\\n\"\n"
    ".ascii \"            self.leaves_row = self.kind not in (self.ERASE, self.REKEY_OUT)\\n\"\n"
    ".ascii \"            self.newer = int(value['newer_'])\\n\"\n"
    ".ascii \"        def at(self, address, kind):\\n\"\n"
    ".ascii \"            return gdb.Value(address).cast(kind.pointer()).dereference()\\n\"\n"
    ".ascii \"        def link_end(self):\\n\"\n"
    ".ascii \"            return self.value.type.sizeof + self.value.address.type.sizeof\\n\"\n"
    ".ascii \"        def before_offset(self):\\n\"\n"
    ".ascii \"            return round_up(self.link_end(), self.holder.alignof)\\n\"\n"
    ".ascii \"        def size(self):\\n\"\n"
    ".ascii \"            if self.is_first:\\n\"\n"
    ".ascii \"                size = self.value.type.sizeof\\n\"\n"
    ".ascii \"            else:\\n\"\n"
    ".ascii \"                size = self.before_offset() + self.holder.sizeof if self.has_before else self.link_end()\\n\"\n"
    ".ascii \"            return round_up(size, max(self.value.type.alignof, self.holder.alignof))\\n\"\n"
    ".ascii \"        def before(self):\\n\"\n"
    ".ascii \"            return held(self.at(int(self.value.address) + self.before_offset(), self.holder))\\n\"\n"
    ".ascii \"        def after(self):\\n\"\n"
    ".ascii \"            if self.newer & 1:\\n\"\n"
    ".ascii \"                return held(self.at(self.newer & ~1, of_row('Slot', self.value))['row'])\\n\"\n"
    ".ascii \"            return Entry(self.at(self.newer, self.value.type)).before()\\n\"\n"
    ".ascii \"        def older(self):\\n\"\n"
    ".ascii \"            if self.is_first:\\n\"\n"
    ".ascii \"                return None\\n\"\n"
    ".ascii \"            return entry_at(self.at(int(self.value.address) + self.value.type.sizeof, self.value.type.pointer()))\\n\"\n"
    ".ascii \"    def entry_at(pointer):\\n\"\n"
    ".ascii \"        return Entry(pointer.dereference()) if int(pointer) else None\\n\"\n"
    ".ascii \"    def entries(block):\\n\"\n"
    ".ascii \"        pointer = of_row('LogEntry', block).pointer()\\n\"\n"
    ".ascii \"        at = int(block['memory_']['data_'])\\n\"\n"
    ".ascii \"        counts = block['counts_']\\n\"\n"
    ".ascii \"        for _ in range(int(counts['firsts']) + int(counts['bare']) + int(counts['images'])):\\n\"\n"
    ".ascii \"            entry = entry_at(gdb.Value(at).cast(pointer))\\n\"\n"
    ".ascii \"            yield entry\\n\"\n"
    ".ascii \"            at += entry.size()\\n\"\n"
    ".ascii \"    def life_at(row, newest, version):\\n\"\n"
    ".ascii \"        while newest is not None and newest.version > version:\\n\"\n"
    ".ascii \"            if not newest.has_before or not newest.leaves_row:\\n\"\n"
    ".ascii \"                return None\\n\"\n"
    ".ascii \"            row, newest = newest.before(), newest.older()\\n\"\n"
    ".ascii \"        return row\\n\"\n"
    ".ascii \"    def readable(log, version):\\n\"\n"
    ".ascii \"        return version >= int(log['oldest']) or version in (int(pinned) for pinned in elements(log['pinned']))\\n\"\n"
    ".ascii \"    def rows_at(core, version):\\n\"\n"
    ".ascii \"        log = log_of(core)\\n\"\n"
    ".ascii \"        gone = []\\n\"\n"
    ".ascii \"        blocks = collected(log['retired']) + [commit['block'] for commit in collected(log['records'])]\\n\"\n"
    ".ascii \"        for block in blocks:\\n\"\n"
    ".ascii \"            for entry in entries(block):\\n\"\n"
    ".ascii \"                if entry.version > version and not entry.leaves_row:\\n\"\n"
    ".ascii \"                    row = life_at(entry.before(), entry.older(), version)\\n\"\n"
    ".ascii \"                    if row is not None:\\n\"\n"
    ".ascii \"                        gone.append((entry.newer, row))\\n\"\n"
    ".ascii \"        gone.sort(key=lambda each: each[0])\\n\"\n"
    ".ascii \"        by_insertion = sequence_of(core['rows']) is not None\\n\"\n"
    ".ascii \"        for slot in slots(core):\\n\"\n"
    ".ascii \"            row = life_at(held(slot['row']), entry_at(slot['newest']), version)\\n\"\n"
    ".ascii \"            if row is not None:\\n\"\n"
    ".ascii \"                while by_insertion and gone and gone[0][0] < int(slot['order']):\\n\"\n"
    ".ascii \"                    yield gone.pop(0)[1]\\n\"\n"
    ".ascii \"                yield row\\n\"\n"
    ".ascii \"        for _, row in gone:\\n\"\n"
    ".ascii \"            yield row\\n\"\n"
    ".ascii \"    def numbers_in(metrics):\\n\"\n"
    ".ascii \"        return [(field.name, int(metrics[field])) for field in metrics.type.unqualified().fields()]\\n\"\n"
    ".ascii \"    def unpacked(metrics):\\n\"\n"
    ".ascii \"        kind = metrics['large_'].type.strip_typedefs().template_argument(0).unqualified()\\n\"\n"
    ".ascii \"        large = pointee(metrics['large_'], kind)\\n\"\n"
    ".ascii \"        if large is not None:\\n\"\n"
    ".ascii \"            return numbers_in(large)\\n\"\n"
    ".ascii \"        packed = int(metrics['low_']) | int(metrics['high_']) << 64\\n\"\n"
    ".ascii \"        return [(field.name, packed >> 8 * place & 255) for place, field in enumerate(kind.fields())]\\n\"\n"
    ".ascii \"    def counts(numbers):\\n\"\n"
    ".ascii \"        return ' '.join('%s=%d' % number for number in numbers if number[1] and not number[0].startswith('matched_'))\\n\"\n"
    ".ascii \"    def shared_text(shared):\\n\"\n"
    ".ascii \"        address = int(shared['at_'])\\n\"\n"
    ".ascii \"        if address == 0:\\n\"\n"
    ".ascii \"            return None\\n\"\n"
    ".ascii \"        kind = gdb.lookup_type('keyfold::detail::SharedText::Shared')\\n\"\n"
    ".ascii \"        counted = gdb.Value(address & ~1).cast(kind.pointer()).dereference()['text']\\n\"\n"
    ".ascii \"        return counted if address & 1 else gdb.Value(address).cast(counted.type.pointer()).dereference()\\n\"\n"
    ".ascii \"    def text(value):\\n\"\n"
    ".ascii \"        return value.format_string(pretty_structs=False)\\n\"\n"
    ".ascii \"    def change_text(before, after):\\n\"\n"
    ".ascii \"        if before is None:\\n\"\n"
    ".ascii \"            return 'insert ' + text(after)\\n\"\n"
    ".ascii \"        if after is None:\\n\"\n"
    ".ascii \"            return 'erase ' + text(before)\\n\"\n"
    ".ascii \"        columns = []\\n\"\n"
    ".ascii \"        for field in before.type.strip_typedefs().fields():\\n\"\n"
    ".ascii \"            if hasattr(field, 'bitpos'):\\n\"\n"
    ".ascii \"                old, new = text(before[field]), text(after[field])\\n\"\n"
    ".ascii \"                columns.append('%s = %s' % (field.name, old if old == new else old + ' -> ' + new))\\n\"\n"
    ".ascii \"        return 'update {%s}' % ', '.join(columns)\\n\"\n"
    ".ascii \"    def log_changes(block):\\n\"\n"
    ".ascii \"        pending = None\\n\"\n"
    ".ascii \"        for entry in entries(block):\\n\"\n"
    ".ascii \"            if entry.kind == Entry.REKEY_OUT:\\n\"\n"
    ".ascii \"                pending = entry.before()\\n\"\n"
    ".ascii \"            elif entry.kind == Entry.REKEY_IN:\\n\"\n"
    ".ascii \"                yield change_text(pending, entry.after())\\n\"\n"
    ".ascii \"            else:\\n\"\n"
    ".ascii \"                yield change_text(entry.before() if entry.has_before else None,\\n\"\n"
    ".ascii \"                                  entry.after() if entry.leaves_row else None)\\n\"\n"
    ".ascii \"    def time_text(timestamp):\\n\"\n"
    ".ascii \"        microseconds = scalar(timestamp)\\n\"\n"
    ".ascii \"        try:\\n\"\n"
    ".ascii \"            time = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=microseconds)\\n\"\n"
    ".ascii \"            return time.isoformat(' ') + ' UTC'\\n\"\n"
    ".ascii \"        except OverflowError:\\n\"\n"
    ".ascii \"            return '%d microseconds since 1970' % microseconds\\n\"\n"
    ".ascii \"    def commit_text(record):\\n\"\n"
    ".ascii \"        operation = text(record['operation']).strip('\\\"')\\n\"\n"
    ".ascii \"        return ('version %d %s %s' % (int(record['version']), operation, counts(unpacked(record['metrics'])))).rstrip()\\n\"\n"
    ".ascii \"    def plural(count, noun):\\n\"\n"
    ".ascii \"        return '%d %s%s' % (count, noun, '' if count == 1 else 's')\\n\"\n"
    ".ascii \"    class Printer:\\n\"\n"
    ".ascii \"        def __init__(self, value):\\n\"\n"
    ".ascii \"            self.value = value\\n\"\n"
    ".ascii \"    class Range(Printer):\\n\"\n"
    ".ascii \"        def display_hint(self):\\n\"\n"
    ".ascii \"            return 'array'\\n\"\n"
    ".ascii \"        def children(self):\\n\"\n"
    ".ascii \"            return (('[%d]' % index, element) for index, element in enumerate(self.elements()))\\n\"\n"
    ".ascii \"    class Table(Range):\\n\"\n"
    ".ascii \"        def __init__(self, value):\\n\"\n"
    ".ascii \"            super().__init__(value)\\n\"\n"
    ".ascii \"            self.core = pointee(value['core_'], value['core_'].type.template_argument(0))\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            if self.core is None:\\n\"\n"
    ".ascii \"                return 'keyfold::Table that was moved from'\\n\"\n"
    ".ascii \"            commit = last(log_of(self.core)['records'])\\n\"\n"
    ".ascii \"            version = int(commit['version']) if commit is not None else 0\\n\"\n"
    ".ascii \"            return 'keyfold::Table of %s at version %d' % (plural(int(self.core['rows']['node_count']), 'row'), version)\\n\"\n"
    ".ascii \"        def elements(self):\\n\"\n"
    ".ascii \"            return (held(slot['row']) for slot in slots(self.core)) if self.core is not None else ()\\n\"\n"
    ".ascii \"    class AsOfView(Range):\\n\"\n"
    ".ascii \"        def __init__(self, value):\\n\"\n"
    ".ascii \"            super().__init__(value)\\n\"\n"
    ".ascii \"            self.version = int(value['version_'])\\n\"\n"
    ".ascii \"            self.trouble = None\\n\"\n"
    ".ascii \"            if owners(value['log_']) == 0:\\n\"\n"
    ".ascii \"                self.trouble = ', whose table is gone'\\n\"\n"
    ".ascii \"            elif not readable(log_of(value['core_']), self.version):\\n\"\n"
    ".ascii \"                self.trouble = ', which has expired'\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            return 'keyfold::AsOfView of version %d%s' % (self.version, self.trouble or '')\\n\"\n"
    ".ascii \"        def elements(self):\\n\"\n"
    ".ascii \"            return () if self.trouble else rows_at(self.value['core_'].dereference(), self.version)\\n\"\n"
    ".ascii \"    class History(Range):\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            return 'keyfold::History of ' + plural(count_of(self.records()) if self.has_log() else 0, 'commit')\\n\"\n"
    ".ascii \"        def elements(self):\\n\"\n"
    ".ascii \"            return (commit_text(record) for record in elements(self.records())) if self.has_log() else ()\\n\"\n"
    ".ascii \"        def has_log(self):\\n\"\n"
    ".ascii \"            return int(self.value['log_']) != 0\\n\"\n"
    ".ascii \"        def records(self):\\n\"\n"
    ".ascii \"            return self.value['log_']['records']\\n\"\n"
    ".ascii \"    class Commit(Printer):\\n\"\n"
    ".ascii \"        def __init__(self, value):\\n\"\n"
    ".ascii \"            self.record = value['record_'].dereference()\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            return 'keyfold::Commit of ' + commit_text(self.record)\\n\"\n"
    ".ascii \"        def children(self):\\n\"\n"
    ".ascii \"            yield 'timestamp', time_text(self.record['timestamp'])\\n\"\n"
    ".ascii \"            for name in 'parameters', 'metadata':\\n\"\n"
    ".ascii \"                words = shared_text(self.record[name])\\n\"\n"
    ".ascii \"                if words is not None:\\n\"\n"
    ".ascii \"                    yield name, words\\n\"\n"
    ".ascii \"            for index, change in enumerate(log_changes(self.record['block'])):\\n\"\n"
    ".ascii \"                yield 'changes[%d]' % index, change\\n\"\n"
    ".ascii \"    class Change(Printer):\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            return change_text(optional(self.value['before_']), optional(self.value['after_']))\\n\"\n"
    ".ascii \"    class FeedChange(Change):\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            return 'version %d, %s' % (int(self.value['version_']), super().to_string())\\n\"\n"
    ".ascii \"    class ChangeSet(Range):\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            return 'keyfold::ChangeSet of ' + plural(count_of(self.value['changes_']), 'change')\\n\"\n"
    ".ascii \"        def elements(self):\\n\"\n"
    ".ascii \"            return elements(self.value['changes_'])\\n\"\n"
    ".ascii \"    class Metrics(Printer):\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            return 'keyfold::Metrics ' + (counts(numbers_in(self.value)) or 'of nothing')\\n\"\n"
    ".ascii \"    class MergeResult(Printer):\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            written = self.value['written_']\\n\"\n"
    ".ascii \"            made = 'version %d' % int(written['version']) if written['committed'] else 'no new version'\\n\"\n"
    ".ascii \"            return ('keyfold::MergeResult: %s %s' % (made, counts(numbers_in(written['metrics'])))).rstrip()\\n\"\n"
    ".ascii \"    class RowIterator(Printer):\\n\"\n"
    ".ascii \"        def to_string(self):\\n\"\n"
    ".ascii \"            node = self.value['base_']['node']\\n\"\n"
    ".ascii \"            return '-> ' + text(held(slot_of(node)['row'])) if int(node) else 'of no table'\\n\"\n"
    ".ascii \"    collection = gdb.printing.RegexpCollectionPrettyPrinter('keyfold')\\n\"\n"
    ".ascii \"    for printer in (Table, AsOfView, History, Commit, Change, FeedChange, ChangeSet, MergeResult, RowIterator):\\n\"\n"
    ".ascii \"        collection.add_printer(printer.__name__, '^keyfold::%s<.*>$' % printer.__name__, printer)\\n\"\n"
    ".ascii \"    collection.add_printer('Metrics', '^keyfold::Metrics$', Metrics)\\n\"\n"
    ".ascii \"    gdb.printing.register_pretty_printer(gdb.current_objfile(), collection, replace=True)\\n\"\n"
    ".ascii \"keyfold_printers()\\n\"\n"
    ".ascii \"del keyfold_printers\\n\"\n"
    ".byte 0\n"
    ".popsection\n");
// clang-format on
#endif

// detail/memory_usage

/// Counting the bytes that a table holds.
namespace keyfold::detail {

/// Bytes of a row outside its Holder.
template <class Row>
inline constexpr std::size_t boxed_bytes = NothrowMovable<Row> ? 0 : sizeof(Row);

template <class Row>
std::size_t bytes_of(const LogBlock<Row>& block) noexcept {
  std::size_t bytes = block.bytes();
  if constexpr (boxed_bytes<Row> != 0) {
    for (const auto* entry = block.first(); entry != nullptr; entry = block.next(entry))
      bytes += entry->has_before() ? boxed_bytes<Row> : 0;
  }
  return bytes;
}

/// Commits of a file share their parameters with the one before if they are the same.
template <class Row>
std::size_t history_bytes(const CommitLog<Row>& log) noexcept {
  std::size_t bytes = 0;
  const std::string* counted = nullptr;
  for (const auto& record : log.records) {
    bytes +=
        sizeof(record) + detail::bytes_of(record.block) + record.metrics.bytes() + record.metadata.bytes();
    if (!record.parameters || &*record.parameters == counted) continue;
    counted = &*record.parameters;
    bytes += record.parameters.bytes();
  }
  for (const auto& block : log.retired) bytes += sizeof(block) + detail::bytes_of(block);
  return bytes;
}

/// The bucket array of a hashed index; an ordered one has its links in the rows' nodes.
template <class Index>
std::size_t bucket_bytes(const Index& index) noexcept {
  if constexpr (requires { index.bucket_count(); }) {
    return (index.bucket_count() + 1) * sizeof(void*);
  } else {
    return 0;
  }
}

template <class CoreType, std::size_t... N>
std::size_t secondary_bytes(const CoreType& core, std::index_sequence<N...>) noexcept {
  return (std::size_t{0} + ... + detail::bucket_bytes(core.template secondary<N>()));
}

template <class CoreType>
MemoryUsage memory_usage_of(const CoreType& core) noexcept {
  constexpr auto secondaries = std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>();
  MemoryUsage usage;
  usage.rows = core.pool.bytes() + core.rows.size() * boxed_bytes<typename CoreType::RowType>;
  usage.indexes = core.keys.bytes() + core.graves.bytes() + detail::secondary_bytes(core, secondaries);
  if (core.sequences != nullptr) usage.indexes += core.sequences->bytes();
  usage.history = detail::history_bytes(*core.log);
  return usage;
}

}  // namespace keyfold::detail

// detail/replay

/// Plans that come from the history or from a change set instead of a source: restore, undo and apply.
namespace keyfold::detail {

/// The plan that makes the present equal to an older version. Rows that come back stand at the end, in the
/// order they had.
template <class CoreType>
void plan_restore(const CoreType& core, Plan<typename CoreType::RowType>& plan, Version version) {
  using Row = typename CoreType::RowType;
  detail::for_each_key(core, version, core.version(),
                       [&](const Slot<Row>* slot, const LogEntry<Row>* newest) {
                         if (slot == nullptr) return;
                         const Row* then = detail::row_at(&slot->get(), newest, version);
                         if (then == nullptr) {
                           plan.erase(*slot, no_position);
                         } else if (!detail::same_or(false, *then, slot->get())) {
                           plan.update(*slot, Holder<Row>(*then), no_position);
                         }
                       });
  for (const RemovedRow<Row>& removed : detail::removed_since(core, version)) {
    if (core.find(CoreType::key_of(*removed.row)) == nullptr)
      plan.insert(Holder<Row>(*removed.row), no_position);
  }
}

/// Undoes or carries out changes one by one, and notes those that do not fit.
template <class CoreType>
class ChangePlanner {
 public:
  using Row = typename CoreType::RowType;

  ChangePlanner(const CoreType& core, Plan<Row>& plan) : core_(core), plan_(plan) {}

  /// Notes the changes that bring a row to a key which another row keeps, or another change brings one to.
  void check_arrivals() {
    KeyIndex<const Planned<Row>> arrived;
    arrived.presize(plan_.entries.size());
    for (const Planned<Row>& entry : plan_.entries) {
      if (!entry.after) continue;
      const auto key = CoreType::key_of(entry.after->get());
      const std::uint64_t hash = detail::hash_of(key);
      const auto* other = arrived.find(hash, [&](const Planned<Row>& earlier) {
        return detail::equal_values(CoreType::key_of(earlier.after->get()), key);
      });
      if (other != nullptr || !key_is_free(entry)) conflict(entry.after->get());
      arrived.add(hash, &entry);
    }
  }

  /// Throws ChangeConflict naming the keys of all changes that did not fit.
  void finish() {
    if (!conflicts_.empty()) throw ChangeConflict(std::move(conflicts_));
  }
  void finish_undo(Version version) {
    if (!conflicts_.empty()) throw ChangeConflict(std::move(conflicts_), version);
  }

  void apply(const Change<Row>& change, Position position) {
    if (change.kind() == ChangeKind::insert) return plan_.insert(Holder<Row>(*change.after()), position);
    const auto* slot = core_.find(CoreType::key_of(*change.before()));
    if (slot == nullptr || !detail::same_or(true, slot->get(), *change.before()) ||
        plan_.touched(*slot) != nullptr) {
      return conflict(*change.before());
    }
    if (change.kind() == ChangeKind::erase) {
      plan_.erase(*slot, position);
    } else {
      plan_.update(*slot, Holder<Row>(*change.after()), position);
    }
  }

  /// Undoes the changes of one commit; each must still be the newest of its key.
  void undo(const LogBlock<Row>& block) {
    for (const auto* entry = block.first(); entry != nullptr; entry = block.next(entry)) {
      switch (entry->kind()) {
        case LogKind::insert:
          undo_insert(*entry);
          break;
        case LogKind::update:
          undo_update(*entry, entry->before().get());
          break;
        case LogKind::erase:
          undo_erase(*entry);
          break;
        case LogKind::rekey_out:
          undo_rekey(*entry, *block.next(entry));
          break;
        case LogKind::rekey_in:
          break;
      }
    }
  }

 private:
  bool key_is_free(const Planned<Row>& arriving) const {
    const auto key = CoreType::key_of(arriving.after->get());
    const Slot<Row>* holder = core_.find(key);
    if (holder == nullptr || holder == arriving.slot) return true;
    const Planned<Row>* planned = plan_.touched(*holder);
    if (planned == nullptr) return false;
    return planned->outcome == Outcome::erase ||
           !detail::equal_values(CoreType::key_of(planned->after->get()), key);
  }

  void conflict(const Row& row) {
    std::string key = detail::key_text(CoreType::key_of(row));
    if (named_.insert(key).second) conflicts_.push_back(std::move(key));
  }

  void undo_insert(const LogEntry<Row>& entry) {
    const Slot<Row>* slot = entry.newer_slot();
    if (slot == nullptr) return conflict(entry.after());
    plan_.erase(*slot, no_position);
  }
  void undo_update(const LogEntry<Row>& entry, const Row& before) {
    const Slot<Row>* slot = entry.newer_slot();
    if (slot == nullptr) return conflict(before);
    plan_.update(*slot, Holder<Row>(before), no_position);
  }
  void undo_rekey(const LogEntry<Row>& left, const LogEntry<Row>& arrived) {
    const bool can_go_back = left_for_good(left);
    const Slot<Row>* slot = arrived.newer_slot();
    if (!can_go_back) conflict(left.before().get());
    if (slot == nullptr) conflict(arrived.after());
    if (can_go_back && slot != nullptr) plan_.update(*slot, Holder<Row>(left.before().get()), no_position);
  }
  void undo_erase(const LogEntry<Row>& entry) {
    if (!left_for_good(entry)) return conflict(entry.before().get());
    plan_.insert(Holder<Row>(entry.before().get()), no_position);
  }

  // Whether no later commit has touched the key that a row has left. Another row may have taken it in the
  // same commit: undoing that one frees it again.
  bool left_for_good(const LogEntry<Row>& entry) const {
    const auto key = CoreType::key_of(entry.before().get());
    const LogEntry<Row>* newest = core_.newest_change(key, detail::hash_of(key));
    return newest == &entry ||
           (newest != nullptr && newest->version() == entry.version() && newest->older() == &entry);
  }

  const CoreType& core_;
  Plan<Row>& plan_;
  std::vector<std::string> conflicts_;  // keys, each once
  std::unordered_set<std::string> named_;
};

}  // namespace keyfold::detail

// transaction

// detail/workspace

namespace keyfold::detail {

template <class SlotType>
std::vector<const SlotType*> by_order(const std::unordered_map<std::uint64_t, const SlotType*>& slots) {
  std::vector<const SlotType*> sorted;
  sorted.reserve(slots.size());
  for (const auto& [order, slot] : slots) sorted.push_back(slot);
  std::ranges::sort(sorted, {}, &SlotType::order);
  return sorted;
}

/// Hears in a transaction what its feeds remember, for the journal of the table.
template <class Row>
class WorkspaceJournal final : public CommitJournal<Row> {
 public:
  explicit WorkspaceJournal(const CommitJournal<Row>& of_table) noexcept : of_table_(of_table) {}

  void commit(const CommitRecord<Row>&, const std::vector<AppNumber>&, const Plan<Row>& plan) override {
    if (plan.sequences != nullptr) remember(*plan.sequences);
  }
  void remember(const SequenceUpdate& update) override {
    if (std::string stored = this->stored(update); !stored.empty()) updates_.push_back(std::move(stored));
  }
  std::string stored(const SequenceUpdate& update) const override { return of_table_.stored(update); }

  // Transactions have none of these.
  void tag(std::string_view, Version) override {}
  void untag(std::string_view) override {}
  void expire(Version) override {}
  void published() noexcept override {}

  const std::vector<std::string>& updates() const noexcept { return updates_; }

 private:
  const CommitJournal<Row>& of_table_;
  std::vector<std::string> updates_;
};

/// The state of a transaction: a core of its own that holds copies of the rows which the transaction has
/// looked at or written. Rows come in from the table, which stays as it is, when a write looks for them; the
/// writes are those of any core, with a log of their own. `order` tells which row is which, whatever becomes
/// of its key: rows of the table have numbers below `first_new_`.
template <class CoreType>
class Workspace : public CoreType {
 public:
  using Row = typename CoreType::RowType;
  using SlotType = Slot<Row>;

  explicit Workspace(const CoreType& base)
      : CoreType(options_of_a_workspace(*base.options.memory)),
        base_(base),
        first_new_(base.next_order),
        sequences_started_(base.sequences_changed) {
    this->next_order = base.next_order;
    this->applied = base.applied;
    this->checks = base.checks;
    if (base.journal == nullptr) return;
    sequence_journal_.emplace(*base.journal);
    this->journal = &*sequence_journal_;
  }

  // --- What planners read: rows come in from the table

  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash) const {
    if (const SlotType* own = CoreType::find(key, hash)) return own;
    const SlotType* below = base_.find(key, hash);
    return below == nullptr || taken_.contains(below->order) ? nullptr : take(*below, hash);
  }
  template <class Key>
  const SlotType* find(const Key& key) const {
    return find(key, detail::hash_of(key));
  }
  // Rows that came in since may have changed the candidate.
  template <class Key>
  const SlotType* find(const Key& key, std::uint64_t hash, const SlotType*) const {
    return find(key, hash);
  }

  const auto& scan() const {
    if (taken_.size() != base_.rows.size()) {
      for (const SlotType& below : base_.rows) take_if_new(below);
    }
    return this->rows;
  }

  template <std::size_t N, class Key>
  auto matching(const Key& key) const {
    const auto [first, last] = base_.template matching<N>(key);
    for (auto below = first; below != last; ++below) take_if_new(*below);
    return CoreType::template matching<N>(key);
  }

  /// A copy of what the table remembers, made when it is first asked for.
  const SequenceState* sequence_state() const {
    if (this->sequences == nullptr && base_.sequences != nullptr) {
      const_cast<Workspace&>(*this).sequences = base_.sequences->clone();  // no workspace is const
    }
    return this->sequences.get();
  }

  Timestamp now() const { return base_.now(); }

  /// Whether a load of the table, which need not have made a version, has changed what it remembers.
  bool sequences_outdated() const noexcept { return base_.sequences_changed != sequences_started_; }

  // --- What the transaction reads: nothing is copied

  template <class Key>
  const Row* peek(const Key& key) const {
    const std::uint64_t hash = detail::hash_of(key);
    if (const SlotType* own = CoreType::find(key, hash)) return &own->get();
    const SlotType* below = base_.find(key, hash);
    return below == nullptr || taken_.contains(below->order) ? nullptr : &below->get();
  }

  std::size_t size() const noexcept { return base_.rows.size() - taken_.size() + this->rows.size(); }

  /// All rows, in the order that the table will have: at the place of the row that they update or whose key
  /// they take up again, else at the end. O(rows).
  std::vector<const Row*> in_order() const {
    std::unordered_map<std::uint64_t, const Row*> written;
    written.reserve(taken_.size());
    std::vector<const Row*> out;
    out.reserve(size());
    for (const SlotType& slot : this->rows) {
      if (slot.order < first_new_) written.emplace(slot.order, &slot.get());
    }
    std::vector<const Row*> added;
    for (const SlotType* slot : new_slots()) {
      const SlotType* below = base_.find(CoreType::key_of(slot->get()));
      const bool comes_back = below != nullptr && taken_.contains(below->order) &&
                              written.try_emplace(below->order, &slot->get()).second;
      if (!comes_back) added.push_back(&slot->get());
    }
    for (const SlotType& below : base_.rows) {
      if (!taken_.contains(below.order)) {
        out.push_back(&below.get());
      } else if (const auto row = written.find(below.order); row != written.end()) {
        out.push_back(row->second);
      }
    }
    out.insert(out.end(), added.begin(), added.end());
    if constexpr (CoreType::ordered) {
      std::ranges::stable_sort(
          out, [](const auto& a, const auto& b) { return detail::less_values(a, b); },
          [](const Row* row) { return CoreType::key_of(*row); });
    }
    return out;
  }

  // --- The end of the transaction

  /// Plans the net effect of all writes on the table.
  void plan_commit(Plan<Row>& plan) {
    if (this->sequences_changed != 0)
      plan.sequences = std::make_unique<SequenceHandover>(this->sequences, stored_updates());
    std::unordered_map<std::uint64_t, const SlotType*> gone(taken_);
    for (const SlotType& slot : this->rows) {
      if (slot.order >= first_new_) continue;
      const SlotType& below = *taken_.at(slot.order);
      gone.erase(slot.order);
      if (slot.newest != nullptr) plan_update(plan, below, slot.get());
    }
    for (const SlotType* slot : new_slots()) {
      const SlotType* below = base_.find(CoreType::key_of(slot->get()));
      if (below != nullptr && gone.erase(below->order) != 0) {
        plan_update(plan, *below, slot->get());  // the key has gone and come back
      } else {
        plan.insert(Holder<Row>(slot->get()), no_position);
      }
    }
    for (const SlotType* below : detail::by_order(gone)) plan.erase(*below, no_position);
  }

  /// The numbers that writes with once() have recorded.
  std::vector<AppNumber> new_numbers() const {
    std::vector<AppNumber> numbers;
    for (const auto& [app, number] : this->applied) {
      const auto before = base_.applied.find(app);
      if (before == base_.applied.end() || before->second != number) numbers.push_back({app, number});
    }
    return numbers;
  }

  /// What the writes were, in order, as history records it: "APPEND; DELETE WHERE id = 2".
  std::string statements() const {
    std::string out;
    for (const auto& record : this->log->records) {
      if (!out.empty()) out += "; ";
      out += record.operation;
      if (record.parameters) out += ' ' + *record.parameters;
    }
    return out;
  }

  /// The metadata that single writes were given, in order; empty if none was.
  std::string metadata() const {
    std::string out;
    for (const auto& record : this->log->records) {
      if (!record.metadata) continue;
      if (!out.empty()) out += "; ";
      out += *record.metadata;
    }
    return out;
  }

 private:
  static TableOptions options_of_a_workspace(std::pmr::memory_resource& memory) {
    TableOptions options;
    options.memory = &memory;
    options.clock = [] { return Timestamp(); };  // the commit has its own time
    return options;
  }

  std::vector<std::string> stored_updates() const {
    return sequence_journal_ ? sequence_journal_->updates() : std::vector<std::string>();
  }

  void take_if_new(const SlotType& below) const {
    if (!taken_.contains(below.order)) take(below, detail::hash_of(CoreType::key_of(below.get())));
  }

  // Copies a row of the table into this core. Planners see a const core; what they read of it is the same
  // before and after.
  const SlotType* take(const SlotType& below, std::uint64_t hash) const {
    auto& self = const_cast<Workspace&>(*this);  // no workspace is const
    self.keys.reserve_one(hash);
    const auto taken = taken_.emplace(below.order, &below).first;
    try {
      const SlotType* slot = detail::add_slot<CoreType>(self, Holder<Row>(below.get()));
      slot->order = below.order;
      self.keys.insert(hash, slot);
      return slot;
    } catch (...) {
      taken_.erase(taken);
      throw;
    }
  }

  std::vector<const SlotType*> new_slots() const {
    std::vector<const SlotType*> slots;
    for (const SlotType& slot : this->rows) {
      if (slot.order >= first_new_) slots.push_back(&slot);
    }
    std::ranges::sort(slots, {}, &SlotType::order);
    return slots;
  }

  static void plan_update(Plan<Row>& plan, const SlotType& below, const Row& row) {
    if (!detail::same_or(false, below.get(), row)) plan.update(below, Holder<Row>(row), no_position);
  }

  const CoreType& base_;
  std::uint64_t first_new_;
  std::uint64_t sequences_started_;
  std::optional<WorkspaceJournal<Row>> sequence_journal_;
  mutable std::unordered_map<std::uint64_t, const SlotType*>
      taken_;  // rows of the table that are here, by order
};

}  // namespace keyfold::detail

// writer

// writes

namespace keyfold {

/// The verbs that write, each one commit and all-or-nothing: whatever throws, the table, its indexes, its
/// history, its version and its counters are as before. A base of Table and of Writer. See Loads for more
/// verbs.
template <class Self, class Target, class Row>
class Writes : public Loads<Self, Target, Row> {
 public:
  using Result = MergeResult<Row>;

  using mistakes::RangeForgotten<Row>::merge;
  using mistakes::RangeForgotten<Row>::preview;
  using mistakes::RangeForgotten<Row>::upsert;
  using mistakes::RangeForgotten<Row>::patch;
  using mistakes::RangeForgotten<Row>::apply_changes;
  using mistakes::RangeForgotten<Row>::append;
  using mistakes::RangeForgotten<Row>::insert;
  using mistakes::RangeForgotten<Row>::apply;

  /// Starts a merge of these rows, see docs/merge-semantics.md. An lvalue is referred to, an rvalue is kept;
  /// a container given as an rvalue has its rows moved from.
  template <std::ranges::input_range Source>
  auto merge(Source&& rows) {
    return start_merge(std::forward<Source>(rows), merge_rule<Row, std::ranges::range_value_t<Source>>());
  }
  auto merge(std::initializer_list<Row> rows) { return merge(std::vector<Row>(rows)); }

  /// Executes a rule made by merge_rule().
  template <std::ranges::input_range Source, class... RuleArguments>
  Result merge(Source&& rows, const MergeRule<RuleArguments...>& rule) {
    return with_rule(std::forward<Source>(rows), rule,
                     [this]<class Range, class Whole>(Range&& source, Whole all) {
                       return MergeBuilder<Target, Range, Whole>::template run<Range>(self().target(), source,
                                                                                      all, self().note());
                     });
  }

  /// What merge(rows, rule) would do, with all its errors, without doing it.
  template <std::ranges::input_range Source, class... RuleArguments>
  [[nodiscard]] ChangeSet<Row> preview(Source&& rows, const MergeRule<RuleArguments...>& rule) {
    return start_merge(std::forward<Source>(rows), rule).preview();
  }

  /// merge(rows).when_matched().update_all().when_not_matched().insert_all().execute()
  template <std::ranges::input_range Source>
    requires(!std::convertible_to<Source, Row>)
  Result upsert(Source&& rows) {
    return merge(std::forward<Source>(rows), detail::upsert_rule<Row, std::ranges::range_value_t<Source>>);
  }
  Result upsert(std::initializer_list<Row> rows) { return upsert(std::vector<Row>(rows)); }
  Result upsert(Row row) { return upsert(std::array<Row, 1>{std::move(row)}); }

  /// Updates rows column by column: an empty std::optional in a source row leaves its column as it is. A row
  /// with a new key starts from the defaults of Row. The same as
  /// merge(rows).when_matched().update_present().when_not_matched().insert_present().execute()
  template <std::ranges::input_range Source>
  Result patch(Source&& rows) {
    return merge(std::forward<Source>(rows))
        .when_matched()
        .update_present()
        .when_not_matched()
        .insert_present()
        .execute();
  }

  /// Starts a load of change events, see docs/apply_changes.md. An lvalue is referred to, an rvalue is kept;
  /// a container given as an rvalue has its rows moved from.
  template <std::ranges::input_range Source>
  auto apply_changes(Source&& events) {
    check_settings<false, false>();
    using Event = std::ranges::range_value_t<Source>;
    if constexpr (std::is_same_v<Source, Target>) {
      return apply_changes(static_cast<const Target&>(events));
    } else if constexpr (std::is_const_v<Source>) {
      return apply_changes(std::remove_const_t<Source>(events));
    } else {
      return ApplyChanges<Target, Source, detail::Feed<Row, Event>>(
          {&self().target(), std::forward<Source>(events), self().note()}, {});
    }
  }
  auto apply_changes(std::initializer_list<Row> events) { return apply_changes(std::vector<Row>(events)); }

  /// Adds rows. Throws DuplicateKey if a key is in the table already or is given twice, UniqueViolation,
  /// InvalidKey.
  template <std::ranges::input_range Source>
  Result append(Source&& rows) {
    using Value = std::ranges::range_value_t<Source>;
    check_settings<true, false>();
    detail::check_insert_all<Row, Value>();
    return write("APPEND", {}, [&]<class Core>(const Core&, auto& plan) {
      plan.entries.reserve(detail::rows_to_expect<Source, Value>(rows));
      detail::for_each_incoming<Core, Source, Value>(
          rows, policy_of_self(), plan.metrics,
          [&](auto& row, Position position) { plan.insert(detail::hold_row<Row>(row, position), position); });
    });
  }
  Result append(std::initializer_list<Row> rows) { return append(std::vector<Row>(rows)); }

  /// Adds one row. Throws as append() does.
  Result insert(Row row) {
    check_settings<false, false>();
    return write("INSERT", {},
                 [&](const auto&, auto& plan) { plan.insert(detail::Holder<Row>(std::move(row)), 0); });
  }

  /// Deletes the row with this key; without one, nothing happens and no version is made.
  template <class... Values>
  Result erase(const Values&... key) {
    check_settings<false, false>();
    using Core = typename Target::CoreType;
    using Parts = typename Core::KeyParts;
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: erase() needs one value for each part of the key");
    const auto wanted = detail::lookup_key<Parts, Row>(key...);
    return write("DELETE", "WHERE " + Parts::name() + " = " + detail::key_text(wanted),
                 [&](const Core& core, auto& plan) {
                   if (const auto* slot = core.find(wanted)) {
                     plan.erase(*slot, 0);
                   } else {
                     plan.metrics.source_rows = plan.metrics.skipped = 1;
                   }
                 });
  }

  /// Deletes all rows. The history stays.
  Result clear() {
    check_settings<false, false>();
    return write("TRUNCATE", {}, [](const auto& core, auto& plan) {
      for (const auto& slot : core.scan()) plan.remove(slot);
    });
  }

  /// Carries out changes, of this table or of another one with the same key: replication. Throws
  /// ChangeConflict naming all keys where a row to be updated or erased is not as it was before the change,
  /// or an insert meets a row.
  Result apply(const ChangeSet<Row>& changes) {
    check_settings<false, false>();
    return write("APPLY", {}, [&]<class Core>(const Core& core, auto& plan) {
      detail::ChangePlanner<Core> planner(core, plan);
      Position position = 0;
      for (const Change<Row>& change : changes) planner.apply(change, position++);
      planner.check_arrivals();
      planner.finish();
    });
  }

 private:
  friend class Loads<Self, Target, Row>;

  constexpr Self& self() noexcept { return static_cast<Self&>(*this); }

  // What Writer may have in their place.

  static constexpr bool checks = true;  // see unchecked()
  static constexpr detail::NoPolicy policy() noexcept { return {}; }

  decltype(auto) policy_of_self() { return self().policy(); }

  static constexpr bool has_policy() {
    using Policy = std::remove_cvref_t<decltype(std::declval<Writes&>().policy_of_self())>;
    return !std::same_as<Policy, detail::NoPolicy>;
  }

  template <bool takes_policy, bool takes_unchecked>
  static constexpr void check_settings() {
    static_assert(takes_policy || !has_policy(),
                  "keyfold: duplicates() is about rows that come in; this verb takes none");
    static_assert(takes_unchecked || Self::checks, "keyfold: unchecked() is about replace_where() only");
  }

  // Calls `finish<Source>(rows, rule)` with the rule as the settings have it.
  template <class Source, class Rule, class Finish>
  auto with_rule(Source&& rows, Rule rule, Finish finish) {
    check_settings<true, false>();
    static_assert(std::is_same_v<typename Rule::Row, Row>,
                  "keyfold: this rule was made for another type of target row");
    static_assert(detail::SourceRow<std::ranges::range_value_t<Source>, typename Rule::Source>,
                  "keyfold: this rule was made for another type of source row");
    if constexpr (std::is_same_v<Source,
                                 Target>) {  // a table as a source is only read, be it the target itself
      return with_rule(static_cast<const Target&>(rows), std::move(rule), finish);
    } else if constexpr (std::is_const_v<Source>) {  // a const rvalue cannot be moved on: copy it once
      return with_rule(std::remove_const_t<Source>(rows), std::move(rule), finish);
    } else {
      return finish.template operator()<Source>(std::forward<Source>(rows), with_policy(std::move(rule)));
    }
  }
  template <class Source, class Rule>
  auto start_merge(Source&& rows, Rule rule) {
    return with_rule(std::forward<Source>(rows), std::move(rule),
                     [this]<class Range, class Whole>(Range&& source, Whole all) {
                       return MergeBuilder<Target, Range, Whole>(
                           {&self().target(), std::forward<Range>(source), self().note()}, std::move(all));
                     });
  }
  template <class Rule>
  auto with_policy(Rule rule) {
    if constexpr (has_policy()) {
      return std::move(rule).duplicates(policy_of_self());
    } else {
      return rule;
    }
  }

  // `fill(core, plan)` plans the write.
  template <class Fill>
  Result write(std::string_view operation, std::string parameters, Fill fill) {
    Target& target = self().target();
    detail::CommitNote note = self().note();
    note.operation = operation;
    if constexpr (has_policy()) {
      parameters += parameters.empty() ? "DUPLICATES " : " DUPLICATES ";
      policy_of_self().print(parameters);
    }
    if (!parameters.empty()) note.parameters = detail::SharedText(std::move(parameters));
    return target.write(std::move(note), [&](auto& plan) { fill(std::as_const(target.core()), plan); });
  }
};

}  // namespace keyfold

namespace keyfold {

/// Writes with something added: `table.once("loader", 7).append(rows)`, `table.metadata("load 7").clear()`,
/// `table.duplicates(keep_last).overwrite(rows)`. Refers to the table.
template <class Target, class Row, class Policy = detail::NoPolicy, bool checks_rows = true>
class [[nodiscard]] Writer : public Writes<Writer<Target, Row, Policy, checks_rows>, Target, Row> {
 public:
  explicit Writer(Target& target, detail::CommitNote note = {}, Policy policy = {})
      : target_(&target), note_(std::move(note)), policy_(std::move(policy)) {}

  /// As MergeBuilder::metadata().
  Writer metadata(std::string text) && {
    note_.metadata = detail::SharedText(std::move(text));
    return std::move(*this);
  }

  /// As MergeBuilder::once().
  Writer once(std::string app, std::uint64_t number) && {
    note_.once = {{std::move(app), number}};
    return std::move(*this);
  }

  /// What becomes of rows with one key among those that come in: reject, keep_first, keep_last,
  /// latest_by<...> or fold(f). The key of a row of another type are its members named like the parts of the
  /// table's key.
  template <class NewPolicy>
  auto duplicates(NewPolicy policy) && {
    static_assert(
        std::is_base_of_v<detail::DuplicatePolicy, NewPolicy>,
        "keyfold: duplicates() takes reject, keep_first, keep_last, latest_by<&Source::member> or fold(f)");
    static_assert(std::same_as<Policy, detail::NoPolicy>, "keyfold: duplicates() is given already");
    return Writer<Target, Row, NewPolicy, checks_rows>(*target_, std::move(note_), std::move(policy));
  }

  /// As Table::restore().
  auto restore(Version version) &&
    requires requires(Target& target) { target.restore(version); }
  {
    check_no_rows();
    return target_->restore(std::move(note_), version);
  }
  auto restore(Timestamp time) &&
    requires requires(Target& target) { target.restore(time); }
  {
    check_no_rows();
    return target_->restore(std::move(note_), time);
  }
  auto restore(std::string_view tag) &&
    requires requires(Target& target) { target.restore(tag); }
  {
    check_no_rows();
    return target_->restore(std::move(note_), tag);
  }

  /// As Table::undo().
  auto undo(Version version) &&
    requires requires(Target& target) { target.undo(version); }
  {
    check_no_rows();
    return target_->undo(std::move(note_), version);
  }

  /// Begins a transaction whose commit has this added.
  auto transaction() &&
    requires requires(Target& target) { target.transaction(); }
  {
    check_no_rows();
    return target_->transaction(std::move(note_));
  }

  /// Lets replace_where() take rows that do not meet its condition.
  auto unchecked() && {
    return Writer<Target, Row, Policy, false>(*target_, std::move(note_), std::move(policy_));
  }

 private:
  friend class Writes<Writer, Target, Row>;
  friend class Loads<Writer, Target, Row>;

  static constexpr bool checks = checks_rows;

  static constexpr void check_no_rows() {
    static_assert(std::same_as<Policy, detail::NoPolicy> && checks_rows,
                  "keyfold: duplicates() and unchecked() stand before a write that takes rows; to restore(), "
                  "undo() and transaction() they mean nothing");
  }

  Target& target() noexcept { return *target_; }
  detail::CommitNote note() const { return note_; }
  const Policy& policy() const noexcept { return policy_; }

  Target* target_;
  detail::CommitNote note_;
  Policy policy_;
};

}  // namespace keyfold

namespace keyfold {

/// Several writes that become one version, or nothing. Made by `table.transaction()`.
///
///     auto tx = orders.transaction();
///     tx.merge(changes).when_matched().update_all().execute();
///     tx.erase(7);
///     tx.commit();
///
/// It has the writes of a table. What it reads is the table with its own writes; nobody else sees them before
/// commit(). A write that throws leaves the transaction as it was before that write, to go on with or to give
/// up. Without commit() nothing happens.
///
/// Transactions do not wait for one another: if the table has got a new version since the transaction began,
/// or a load of change events that made none but is remembered, every member throws TransactionConflict;
/// TableGone, if the table is no more; TransactionEnded after commit() or rollback(). Threads: all but
/// commit() and preview() only reads the table, so several transactions may be prepared at once; each has one
/// thread at a time.
///
/// Costs memory and a copy for each row that it looks for or writes; a write that must see all rows (such as
/// one with when_not_matched_by_source) copies them all.
template <class Table>
class [[nodiscard]] Transaction : public Writes<Transaction<Table>, Transaction<Table>, typename Table::Row> {
  using Base = typename Table::CoreType;
  using Parts = typename Base::KeyParts;

 public:
  using Row = typename Table::Row;
  using Result = MergeResult<Row>;
  class Iterator;

  using value_type = Row;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using const_reference = const Row&;
  using iterator = Iterator;
  using const_iterator = Iterator;

  Transaction(Base& base, detail::CommitNote note)
      : base_(&base),
        log_(base.log),
        started_(base.version()),
        note_(std::move(note)),
        workspace_(std::make_unique<CoreType>(base)) {}

  // --- Reading: the table with the writes of this transaction. Pointers, references and iterators are valid
  // --- until its next write.

  [[nodiscard]] size_type size() const { return open().size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// As Table::find().
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... key) const {
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: find() needs one value for each part of the key");
    return open().peek(detail::lookup_key<Parts, Row>(key...));
  }

  /// The row with this key. Throws KeyNotFound.
  template <class... Values>
  const Row& at(const Values&... key) const {
    if (const Row* row = find(key...)) return *row;
    throw KeyNotFound(detail::key_text(detail::lookup_key<Parts, Row>(key...)));
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    return find(key...) != nullptr;
  }

  /// Rows in the order that the table will have. The first call after a write is O(rows of the table).
  [[nodiscard]] Iterator begin() const { return Iterator(rows().begin()); }
  [[nodiscard]] Iterator end() const { return Iterator(rows().end()); }

  // --- Writing: see Writes. Each result tells what that write did; its version() is that of the table, which
  // --- has none of it yet.

  /// Adds metadata to a write; all of it goes to the commit. As Table::metadata().
  Writer<Transaction, Row> metadata(std::string text) {
    return Writer<Transaction, Row>(*this, {}).metadata(std::move(text));
  }

  /// Numbers a write; the number is recorded by the commit. As Table::once().
  Writer<Transaction, Row> once(std::string app, std::uint64_t number) {
    return Writer<Transaction, Row>(*this, {}).once(std::move(app), number);
  }

  /// As Table::duplicates() and Table::unchecked(), for one write.
  template <class Policy>
  auto duplicates(Policy policy) {
    return Writer<Transaction, Row>(*this).duplicates(std::move(policy));
  }
  auto unchecked() { return Writer<Transaction, Row>(*this).unchecked(); }

  // --- The end

  using Writes<Transaction, Transaction, Row>::preview;

  /// What commit() would change.
  [[nodiscard]] ChangeSet<Row> preview() const {
    open();
    return detail::preview(*base_, [this](auto& plan) { workspace_->plan_commit(plan); });
  }

  /// Makes one version of all writes, and ends the transaction. Counts and changes are those of the net
  /// effect: a row that was inserted and deleted again is in neither. Strong guarantee: whatever throws, the
  /// table is as before, and the transaction still open.
  Result commit() {
    open();
    detail::CommitNote note = note_;
    note.operation = "TRANSACTION";
    note.parameters = detail::SharedText(workspace_->statements());
    if (std::string metadata = workspace_->metadata(); !metadata.empty())
      note.metadata =
          detail::SharedText(note.metadata ? *note.metadata + "; " + metadata : std::move(metadata));
    for (detail::AppNumber& number : workspace_->new_numbers()) add_number(note.once, std::move(number));
    Result result =
        detail::commit(*base_, std::move(note), [this](auto& plan) { workspace_->plan_commit(plan); });
    workspace_.reset();
    return result;
  }

  /// Gives all writes up, and ends the transaction. Destroying it does the same.
  void rollback() {
    if (workspace_ == nullptr) throw TransactionEnded();
    workspace_.reset();
  }

 private:
  template <class, class, class>
  friend class MergeBuilder;
  template <class, class, class>
  friend class ApplyChanges;
  template <class, class, class>
  friend class Writes;

  // What the verbs of Writes are made of.

  using CoreType = detail::Workspace<Base>;
  CoreType& core() { return open(); }
  Transaction& target() noexcept { return *this; }
  static detail::CommitNote note() noexcept { return {}; }

  Result write(detail::CommitNote&& note, detail::Fill<Row> fill) {
    rows_.clear();
    detail::Written written = detail::write(open(), std::move(note), fill);
    open();  // a condition may have written to the table
    written.version = started_;
    written.committed = false;
    return Result(written, workspace_->log);
  }
  ChangeSet<Row> preview_plan(detail::Fill<Row> fill) { return detail::preview(open(), fill); }

  static void add_number(std::vector<detail::AppNumber>& numbers, detail::AppNumber added) {
    const auto same = std::find_if(numbers.begin(), numbers.end(),
                                   [&](const detail::AppNumber& number) { return number.app == added.app; });
    if (same == numbers.end()) {
      numbers.push_back(std::move(added));
    } else {
      same->number = std::max(same->number, added.number);
    }
  }

  CoreType& open() const {
    if (workspace_ == nullptr) throw TransactionEnded();
    if (log_.expired()) throw TableGone("transaction", "commit it while its table lives");
    if (base_->version() != started_ || workspace_->sequences_outdated())
      throw TransactionConflict(started_, base_->version());
    return *workspace_;
  }

  const std::vector<const Row*>& rows() const {
    const CoreType& workspace = open();
    if (rows_.empty()) rows_ = workspace.in_order();
    return rows_;
  }

  Base* base_;
  std::weak_ptr<const detail::CommitLog<Row>> log_;  // tells whether the table is still there
  Version started_;
  detail::CommitNote note_;
  std::unique_ptr<CoreType> workspace_;   // null once the transaction has ended
  mutable std::vector<const Row*> rows_;  // in order; empty when they must be looked for again
};

/// Forward iterator over the rows that a transaction sees.
template <class Table>
class Transaction<Table>::Iterator {
  using Base = typename std::vector<const Row*>::const_iterator;

 public:
  using value_type = Row;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using pointer = const Row*;
  using iterator_category = std::forward_iterator_tag;

  Iterator() = default;
  explicit Iterator(Base base) noexcept : base_(base) {}

  reference operator*() const noexcept { return **base_; }
  pointer operator->() const noexcept { return *base_; }

  Iterator& operator++() noexcept {
    ++base_;
    return *this;
  }
  Iterator operator++(int) noexcept { return Iterator(base_++); }

  friend bool operator==(const Iterator&, const Iterator&) = default;

 private:
  Base base_{};
};

}  // namespace keyfold

namespace keyfold {

namespace detail {
struct CoreAccess;
}  // namespace detail

/// Rows of a plain struct, unique by key, in memory. Every write is one atomic commit with a version, counts
/// and a record in the history. Threads: any number may read at once; a write, preview() included, needs the
/// table for itself.
///
///     keyfold::Table<Order, keyfold::Key<&Order::id>, keyfold::OrderedBy<&Order::day>> orders;
///
/// Writes give the strong guarantee: whatever throws, the table, its indexes, history, version and counters
/// are as before. References and pointers to a row, and iterators to it, stay valid until that row is updated
/// or deleted.
///
/// A table that was moved from may only be destroyed or assigned to.
template <class RowType, class KeySpec, class... Indexes>
class Table
    : public Writes<Table<RowType, KeySpec, Indexes...>, Table<RowType, KeySpec, Indexes...>, RowType> {
  static_assert(std::copy_constructible<RowType>,
                "keyfold: a row must be copyable, since history keeps its old images");
  static_assert(
      detail::spec_traits<KeySpec>::is_key,
      "keyfold: the second argument of Table is its key, as in Key<&Row::id> or OrderedKey<&Row::id>");
  static_assert(
      (detail::spec_traits<Indexes>::is_index && ...),
      "keyfold: after its key a Table takes indexes: OrderedBy<...>, HashedBy<...> or UniqueBy<...>");

  using Parts = detail::parts_of<KeySpec>;
  static_assert(Parts::template readable<RowType>, "keyfold: a part of the key is not a member of the row");
  static_assert((detail::parts_of<Indexes>::template readable<RowType> && ...),
                "keyfold: a part of an index is not a member of the row");

  using Core = detail::Core<RowType, KeySpec, Indexes...>;
  using Specs = std::tuple<Indexes...>;
  template <class Asked>
  static constexpr std::size_t number_of = detail::index_number<Asked, Specs>;

 public:
  using Row = RowType;
  using Result = MergeResult<Row>;

  using value_type = Row;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const Row&;
  using const_reference = const Row&;
  using const_iterator = RowIterator<Row, typename Core::Rows::const_iterator, !Core::ordered>;
  using iterator = const_iterator;

  /// An empty table, at version 0.
  Table() : core_(std::make_unique<Core>(TableOptions{})) {}
  explicit Table(TableOptions options)
      : core_(std::make_unique<Core>(std::move(options), &detail::apply_retention<Core>)) {}

  /// Copies the rows and the whole history, with tags; not the subscriptions. O(rows + history). Strong
  /// guarantee.
  Table(const Table& other) : core_(detail::CoreCopy<Core>(*other.core_).take()) {}
  Table(Table&&) noexcept = default;
  /// Assigning replaces everything, so that subscriptions to what was there end. Throws ReentrantWrite from
  /// within a write or a callback of this table; moving must not be done there.
  Table& operator=(const Table& other) {
    if (core_ != nullptr && (core_->writing || core_->subscribers->telling())) throw ReentrantWrite();
    if (this != &other) core_ = detail::CoreCopy<Core>(*other.core_).take();
    return *this;
  }
  Table& operator=(Table&&) noexcept = default;
  ~Table() = default;

  // --- Reading

  [[nodiscard]] size_type size() const noexcept { return core_->rows.size(); }
  [[nodiscard]] bool empty() const noexcept { return core_->rows.empty(); }

  /// Rows in insertion order; in key order for a table with an OrderedKey. An updated row keeps its place.
  [[nodiscard]] const_iterator begin() const noexcept { return const_iterator(core_->rows.begin()); }
  [[nodiscard]] const_iterator end() const noexcept { return const_iterator(core_->rows.end()); }

  /// The row with this key, or null. One value for each part of the key; anything comparable with the part
  /// will do: `std::string_view` finds `std::string` without an allocation. O(1) on average.
  template <class... Values>
  [[nodiscard]] const Row* find(const Values&... key) const {
    static_assert(sizeof...(Values) == Parts::size,
                  "keyfold: find() needs one value for each part of the key");
    const auto* slot = core_->find(detail::lookup_key<Parts, Row>(key...));
    return slot == nullptr ? nullptr : &slot->get();
  }

  /// The row with this key. Throws KeyNotFound.
  template <class... Values>
  const Row& at(const Values&... key) const {
    if (const Row* row = find(key...)) return *row;
    throw KeyNotFound(detail::key_text(detail::lookup_key<Parts, Row>(key...)));
  }

  template <class... Values>
  [[nodiscard]] bool contains(const Values&... key) const {
    return find(key...) != nullptr;
  }

  /// The index over exactly these members: a secondary index, or the key of a table with an OrderedKey.
  template <auto... Members>
  [[nodiscard]] auto by() const noexcept {
    using Asked = detail::Parts<Members...>;
    if constexpr (Core::ordered && std::is_same_v<Asked, Parts>) {
      return IndexView<Row, typename Core::Rows, Asked, true>(core_->rows);
    } else {
      static_assert(number_of<Asked> < std::tuple_size_v<Specs>,
                    "keyfold: by<> names members that no index of the table is made of; give the table "
                    "OrderedBy<...>, HashedBy<...> or UniqueBy<...> of them");
      using Spec = std::tuple_element_t<number_of<Asked>, Specs>;
      const auto& index = core_->template secondary<number_of<Asked>>();
      return IndexView<Row, std::remove_cvref_t<decltype(index)>, Asked, detail::spec_traits<Spec>::ordered>(
          index);
    }
  }

  // --- Writing: see Writes

  /// Writes with metadata that is stored with the commit.
  Writer<Table, Row> metadata(std::string text) {
    return Writer<Table, Row>(*this).metadata(std::move(text));
  }

  /// Writes that happen once: see MergeBuilder::once().
  Writer<Table, Row> once(std::string app, std::uint64_t number) {
    return Writer<Table, Row>(*this).once(std::move(app), number);
  }

  /// Writes whose incoming rows are made unique by key first: see Writer::duplicates().
  template <class Policy>
  auto duplicates(Policy policy) {
    return Writer<Table, Row>(*this).duplicates(std::move(policy));
  }

  /// `unchecked().replace_where()` takes rows that do not meet its condition.
  auto unchecked() { return Writer<Table, Row>(*this).unchecked(); }

  // --- Constraints: see docs/constraint.md

  /// From now on every row that a write inserts or updates must meet this condition, an expression over
  /// target columns or callable as `bool(const Row&)`; else the write throws CheckViolation. As in SQL's
  /// CHECK a condition that is unknown, since a value is absent, is met. Text literals given as `const char*`
  /// must outlive the table and its copies.
  ///
  /// Throws CheckViolation naming the first row that does not meet it now, ConstraintExists, ReentrantWrite
  /// within a write, and what the condition throws. Strong guarantee. O(table).
  template <class Condition>
  void require(std::string name, Condition condition) {
    if constexpr (detail::check_row_condition<Condition, Row>()) {
      const detail::WriteScope scope(core_->writing);
      detail::add_check(*core_, std::move(name), std::move(condition));
    }
  }

  /// Removes a constraint. Throws ConstraintNotFound, ReentrantWrite within a write.
  void unrequire(std::string_view name) {
    const detail::WriteScope scope(core_->writing);
    detail::remove_check(*core_, name);
  }

  /// In the order in which they were given.
  [[nodiscard]] std::vector<Constraint> constraints() const {
    return detail::constraints_of<Row>(core_->checks);
  }

  /// Begins a transaction: several writes, one version. `metadata("...").transaction()` adds something to its
  /// commit.
  Transaction<Table> transaction() { return transaction({}); }

  // --- History and time travel: see docs/history.md
  //
  // A version is named by its number, by a time (the last commit not after it) or by a tag. What cannot be
  // read throws VersionNotFound, VersionExpired or TagNotFound before anything else happens.

  /// Version of the last commit; 0 before the first.
  [[nodiscard]] Version version() const noexcept { return core_->version(); }

  /// The commits that are kept, in ascending order.
  [[nodiscard]] History<Row> history() const noexcept { return History<Row>(*core_->log); }

  /// The table as of a version: a view that copies no row.
  [[nodiscard]] AsOfView<Table> as_of(Version version) const {
    return AsOfView<Table>(*core_, checked(version));
  }
  [[nodiscard]] AsOfView<Table> as_of(Timestamp time) const { return as_of(core_->log->version_at(time)); }
  [[nodiscard]] AsOfView<Table> as_of(std::string_view tag) const { return as_of(tagged(tag)); }

  /// Every change of the versions in (after, up_to], in order. Copies rows: O(changes).
  [[nodiscard]] ChangeFeed<Row> changes(Version after, Version up_to) const;
  [[nodiscard]] ChangeFeed<Row> changes(Version after) const { return changes(after, version()); }

  /// Every change of the commits made from `from` to `up_to`, both included.
  [[nodiscard]] ChangeFeed<Row> changes(Timestamp from, Timestamp up_to = Timestamp::max()) const;

  /// The net changes that lead from one version to the other, back in time too. O(changes between them) on
  /// average.
  [[nodiscard]] ChangeSet<Row> diff(Version from, Version to) const {
    return detail::net_changes(*core_, checked(from), checked(to));
  }

  /// The changes of one key, oldest first, as far as they are kept.
  template <class... Values>
  [[nodiscard]] ChangeFeed<Row> history_of(const Values&... key) const;

  /// Makes the table equal to an older version, as a new commit; none if it is equal already. Rows that come
  /// back stand at the end, in the order they had. O(changes since) on average.
  Result restore(Version version) { return restore({}, version); }
  Result restore(Timestamp time) { return restore({}, time); }
  Result restore(std::string_view tag) { return restore({}, tag); }

  /// Reverts one commit, as a new commit. Throws ChangeConflict naming the keys that a later commit has
  /// touched; VersionExpired if the changes of the commit are gone: its version has expired, or only a tag
  /// keeps it.
  Result undo(Version version) { return undo({}, version); }

  /// Names a version; it stays readable when others expire. Throws TagExists if the name is on another
  /// version.
  void tag(std::string name, Version version);

  /// Removes a tag. Throws TagNotFound.
  void untag(std::string_view name);

  /// The tags and their versions, by name.
  [[nodiscard]] const std::map<std::string, Version, std::less<>>& tags() const noexcept {
    return core_->tags;
  }

  /// Lets old versions go, but for tagged ones: `expire(keep_last(n))`, `expire(older_than(time))`. The
  /// present stays. Frees the memory they took, and returns the versions that went, ascending. Strong
  /// guarantee; should memory be too short to tidy up, what they took is freed by the next expiry.
  template <class Rule>
  std::vector<Version> expire(const Rule& rule);

  /// What expire() would let go.
  template <class Rule>
  [[nodiscard]] std::vector<Version> expire(const Rule& rule, DryRun) const {
    return detail::expiring(*core_, first_kept(rule));
  }

  /// The last number that once() recorded for an application; none before the first.
  [[nodiscard]] std::optional<std::uint64_t> last_applied(std::string_view app) const {
    const auto at = core_->applied.find(app);
    return at == core_->applied.end() ? std::nullopt : std::optional(at->second);
  }

  /// Calls `callback(const Commit<Row>&)` once for each commit from now on, after it, in version order. A
  /// write that a callback makes is done at once; its own commit is told when everybody has heard of the
  /// present one. What a callback throws hurts neither the commit nor the other callbacks: see
  /// MergeResult::subscriber_errors(). A callback must not destroy the table or assign to it.
  template <class Callback>
  Subscription subscribe(Callback callback);

  /// Tells the present rows first, as one commit of inserts with the operation "REPLAY", and then what the
  /// callback itself has written meanwhile. What the first call throws passes through, and nothing is
  /// subscribed. Copies the rows.
  template <class Callback>
  Subscription subscribe(Callback callback, Replay);

  /// Bytes held by rows, indexes and history, without what rows and keys allocate themselves. O(commits);
  /// where rows have throwing moves, O(changes).
  [[nodiscard]] MemoryUsage memory_usage() const noexcept;

 private:
  template <class, class, class>
  friend class MergeBuilder;
  template <class, class, class>
  friend class ApplyChanges;
  template <class, class, class>
  friend class Writes;
  template <class>
  friend class AsOfView;
  template <class>
  friend class Transaction;
  friend struct detail::CoreAccess;

  explicit Table(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}

  Result restore(detail::CommitNote note, Version version) {
    note.operation = "RESTORE";
    note.parameters = detail::SharedText("TO VERSION " + std::to_string(checked(version)));
    return write(std::move(note), [&](auto& plan) { detail::plan_restore(*core_, plan, version); });
  }
  Result restore(detail::CommitNote note, Timestamp time) {
    return restore(std::move(note), core_->log->version_at(time));
  }
  Result restore(detail::CommitNote note, std::string_view tag) {
    return restore(std::move(note), tagged(tag));
  }
  Result undo(detail::CommitNote note, Version version);

  Version checked(Version version) const {
    core_->log->require_readable(version);
    return version;
  }
  Version tagged(std::string_view name) const {
    const auto at = core_->tags.find(name);
    if (at == core_->tags.end()) throw TagNotFound(std::string(name));
    return at->second;
  }

  template <class Rule>
  Version first_kept(const Rule& rule) const;

  template <class Callback>
  Subscription subscribe_since(Version since, Callback callback);

  template <class, class, class, bool>
  friend class Writer;
  Transaction<Table> transaction(detail::CommitNote note) {
    return Transaction<Table>(*core_, std::move(note));
  }

  // What the verbs of Writes are made of.

  using CoreType = Core;
  Core& core() noexcept { return *core_; }
  Table& target() noexcept { return *this; }
  static detail::CommitNote note() noexcept { return {}; }

  /// `fill(plan)` plans the write.
  Result write(detail::CommitNote&& note, detail::Fill<Row> fill) {
    return detail::commit(*core_, std::move(note), fill);
  }
  ChangeSet<Row> preview_plan(detail::Fill<Row> fill) { return detail::preview(*core_, fill); }

  std::unique_ptr<Core> core_;
};

template <class R, class K, class... I>
ChangeFeed<R> Table<R, K, I...>::changes(Version after, Version up_to) const {
  const auto& log = *core_->log;
  if (after < log.oldest) throw VersionExpired(after, log.oldest);
  log.require_readable(after);
  log.require_readable(up_to);
  ChangeFeed<Row> feed;
  const auto first = std::ranges::upper_bound(log.records, after, {}, &detail::CommitRecord<Row>::version);
  std::size_t count = 0;
  for (auto record = first; record != log.records.end() && record->version <= up_to; ++record)
    count += record->metrics.get().affected();
  feed.reserve(count);
  for (auto record = first; record != log.records.end() && record->version <= up_to; ++record) {
    detail::for_each_change(log, *record, [&](Change<Row>&& change) {
      feed.emplace_back(std::move(change), record->version, record->timestamp);
    });
  }
  return feed;
}

template <class R, class K, class... I>
ChangeFeed<R> Table<R, K, I...>::changes(Timestamp from, Timestamp up_to) const {
  const auto& log = *core_->log;
  if (log.last_expired && from <= *log.last_expired) throw VersionExpired(from, log.oldest);
  ChangeFeed<Row> feed;
  const auto first = std::ranges::lower_bound(log.records, from, {}, &detail::CommitRecord<Row>::timestamp);
  for (auto record = first; record != log.records.end() && record->timestamp <= up_to; ++record) {
    detail::for_each_change(log, *record, [&](Change<Row>&& change) {
      feed.emplace_back(std::move(change), record->version, record->timestamp);
    });
  }
  return feed;
}

template <class R, class K, class... I>
template <class... Values>
ChangeFeed<R> Table<R, K, I...>::history_of(const Values&... key) const {
  static_assert(sizeof...(Values) == Parts::size,
                "keyfold: history_of() needs one value for each part of the key");
  const auto wanted = detail::lookup_key<Parts, Row>(key...);
  const auto& log = *core_->log;
  ChangeFeed<Row> feed;
  const auto* entry = core_->newest_change(wanted, detail::hash_of(wanted));
  std::vector<const detail::LogEntry<Row>*> entries;
  for (; entry != nullptr && entry->version() >= log.oldest; entry = entry->older()) entries.push_back(entry);
  for (auto at = entries.rbegin(); at != entries.rend(); ++at) {
    const Version version = (*at)->version();
    feed.emplace_back(detail::change_of_key(**at), version, log.find(version)->timestamp);
  }
  return feed;
}

template <class R, class K, class... I>
typename Table<R, K, I...>::Result Table<R, K, I...>::undo(detail::CommitNote note, Version version) {
  const auto& log = *core_->log;
  if (version == 0) throw VersionNotFound(version, log.latest());
  log.require_readable(version);
  const auto& record = *log.find(version);
  if (!record.has_changes) throw VersionExpired::of_changes(version, log.oldest);
  note.operation = "UNDO";
  note.parameters = detail::SharedText("VERSION " + std::to_string(version));
  return write(std::move(note), [&](auto& plan) {
    detail::ChangePlanner<Core> planner(*core_, plan);
    planner.undo(record.block);
    planner.finish_undo(version);
  });
}

template <class R, class K, class... I>
void Table<R, K, I...>::tag(std::string name, Version version) {
  core_->log->require_readable(version);
  const auto [at, added] = core_->tags.try_emplace(std::move(name), version);
  if (!added && at->second != version) throw TagExists(at->first, at->second);
  if (!added || core_->journal == nullptr) return;
  try {
    core_->journal->tag(at->first, version);
  } catch (...) {
    core_->tags.erase(at);
    throw;
  }
}

template <class R, class K, class... I>
void Table<R, K, I...>::untag(std::string_view name) {
  tagged(name);
  if (core_->journal != nullptr) core_->journal->untag(name);
  core_->tags.erase(core_->tags.find(name));
}

template <class R, class K, class... I>
template <class Rule>
Version Table<R, K, I...>::first_kept(const Rule& rule) const {
  static_assert(
      std::same_as<Rule, KeepLastVersions> || std::same_as<Rule, KeepFor> || std::same_as<Rule, OlderThan>,
      "keyfold: expire() takes keep_last(versions), older_than(time) or keep_for(duration)");
  // Commits that subscribers are still to be told of stay, and what read points need.
  const Version told = core_->subscribers->telling() ? core_->subscribers->told() : version();
  const Version limit = std::min(told, detail::oldest_read(*core_->log));
  return std::max(core_->log->oldest, std::min(detail::first_kept(*core_, rule), limit));
}

template <class R, class K, class... I>
template <class Rule>
std::vector<Version> Table<R, K, I...>::expire(const Rule& rule) {
  const detail::WriteScope scope(core_->writing);
  if (detail::expiry_waits(*core_->log)) return {};
  const Version first = first_kept(rule);
  std::vector<Version> gone = detail::expiring(*core_, first);
  detail::retire(*core_, first, [&] {
    if (core_->journal != nullptr) core_->journal->expire(first);
  });
  detail::try_sweep(*core_);
  return gone;
}

template <class R, class K, class... I>
template <class Callback>
Subscription Table<R, K, I...>::subscribe(Callback callback) {
  return subscribe_since(version(), std::move(callback));
}

template <class R, class K, class... I>
template <class Callback>
Subscription Table<R, K, I...>::subscribe(Callback callback, Replay) {
  detail::check_subscriber<Row, Callback>();
  const Version since = version();
  const detail::TellAtTheEnd of_what_is_written_here(*core_);
  {
    const detail::Replayed<Row> present(core_->rows, *core_->log);
    const typename detail::Subscribers<Row>::Telling telling(*core_->subscribers);
    static_cast<void>(std::invoke(callback, Commit<Row>(*core_->log, present.record)));
  }
  return subscribe_since(since, std::move(callback));
}

template <class R, class K, class... I>
template <class Callback>
Subscription Table<R, K, I...>::subscribe_since(Version since, Callback callback) {
  detail::check_subscriber<Row, Callback>();
  using Subscriber = detail::CallbackSubscriber<Row, Callback>;
  const std::shared_ptr<detail::Subscriber<Row>> subscriber =
      std::make_shared<Subscriber>(std::move(callback), since);
  Subscription subscription(core_->subscribers, subscriber);
  core_->subscribers->add(subscriber);
  core_->tell = &detail::tell_each<CoreType>;
  return subscription;
}

template <class R, class K, class... I>
MemoryUsage Table<R, K, I...>::memory_usage() const noexcept {
  return detail::memory_usage_of(*core_);
}

}  // namespace keyfold

// version

/// The version of keyfold, for the preprocessor: KEYFOLD_VERSION is 10203 for 1.2.3. The build reads it from
/// here. (keyfold::Version is another thing: the number of a commit.)
#define KEYFOLD_VERSION_MAJOR 0
#define KEYFOLD_VERSION_MINOR 1
#define KEYFOLD_VERSION_PATCH 0

#define KEYFOLD_VERSION (KEYFOLD_VERSION_MAJOR * 10000 + KEYFOLD_VERSION_MINOR * 100 + KEYFOLD_VERSION_PATCH)

#ifndef KEYFOLD_NO_KF_ALIAS
namespace kf = keyfold;  // the short name the documentation uses
#endif
