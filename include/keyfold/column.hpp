// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/fields.hpp>
#include <keyfold/detail/member.hpp>
#include <keyfold/detail/text.hpp>
#include <keyfold/detail/value.hpp>
#include <keyfold/fwd.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>

#include <array>
#include <bitset>
#include <vector>

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
