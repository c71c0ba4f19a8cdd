// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/prefetch.hpp>

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

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
