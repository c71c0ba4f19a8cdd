// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/clause.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/member.hpp>
#include <keyfold/key.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

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
