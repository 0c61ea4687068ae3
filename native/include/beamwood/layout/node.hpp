// One node of a tree in, its weights out, by rising feature, and its parent: what explanations are made of.
//
// From any layout: a chunk's rows are looked through; a column is copied; cascades are followed from the root, one
// feature after the other, down the node's path.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "beamwood/layout/forest.hpp"

namespace beamwood {

struct WeightsOfNode {
  std::vector<std::uint32_t> feature;
  std::vector<float> weight;
};

// The node of the layer above whose child this is. False: the tree is damaged.
inline bool parent_of(const LayerShape& shape, std::uint32_t node, std::uint32_t& parent, Siblings& siblings) {
  const auto after = std::upper_bound(shape.child_start.begin(), shape.child_start.end(), node);
  if (node >= shape.nodes || after == shape.child_start.begin() || after == shape.child_start.end()) return false;
  parent = static_cast<std::uint32_t>(after - shape.child_start.begin() - 1);
  return shape.children(parent, siblings) && node - siblings.begin < siblings.width;
}

// The nodes on the way from the top to a label's leaf, one per layer. False: the tree is damaged.
inline bool path_of(const Forest& forest, std::size_t t, std::uint32_t label, std::vector<std::uint32_t>& path) {
  const Tree& tree = forest.trees[t];
  if (label >= tree.leaf_of_label.size()) return false;
  std::uint32_t node = tree.leaf_of_label[label];
  std::size_t l = 0;
  for (; l < tree.layers.size() && node >= tree.layers[l].shape.nodes; ++l) node -= tree.layers[l].shape.nodes;
  if (l == tree.layers.size() || tree.layers[l].shape.label.empty() || tree.layers[l].shape.label[node] != label)
    return false;
  path.resize(l + 1);
  for (Siblings siblings;; --l) {
    path[l] = node;
    if (!parent_of(tree.layers[l].shape, node, node, siblings)) return false;
    if (l == 0) return true;
  }
}

namespace detail {

inline bool chunk_node(const TreeLayer& layer, std::uint32_t parent, const Siblings& siblings, std::uint32_t child,
                       WeightsOfNode& out) {
  Chunk chunk;
  bool sound = layer.chunks.at(parent, chunk);
  for (std::uint32_t row = 0; sound && row < chunk.support.count; ++row)
    sound = each_weight(chunk.words, chunk.word_count, chunk.offset[row], {siblings.width, false, {}},
                        [&](std::uint32_t sibling, float weight) {
                          if (sibling != child) return;
                          out.feature.push_back(chunk.support.feature[row]);
                          out.weight.push_back(weight);
                        });
  return sound;
}

inline bool column_node(const TreeLayer& layer, std::uint32_t node, WeightsOfNode& out) {
  Column column;
  if (!layer.columns.at(node, column)) return false;
  out.feature.assign(column.support.feature, column.support.feature + column.support.count);
  out.weight.assign(column.weight, column.weight + column.support.count);
  return true;
}

// A chunk on the way down to the node, and which of its slots comes next.
struct CascadeStep {
  CascadeChunk chunk;
  Pages pages;
  std::uint32_t width, slot;
};

// The chunks from the root to the one that a node of layer l is in. False: there is no such node, or damage.
inline bool cascade_steps(const Tree& tree, std::size_t l, std::uint32_t node, std::vector<CascadeStep>& steps) {
  for (;;) {
    const Bundle bundle = tree.bundle(l);
    const std::size_t step = tree.layers[l].step, first = l - step;
    std::uint32_t origin = node;
    Siblings siblings{};
    for (std::size_t above = l + 1; above-- > first;)
      if (!parent_of(tree.layers[above].shape, origin, origin, siblings)) return false;
    SubtreeSlots slots;
    CascadeStep own{};
    if (!bundle.slots(origin, slots) || !tree.layers[first].cascade.at(origin, own.chunk) ||
        !own.chunk.pages(slots.width(), own.pages) || node - slots.begin[step] >= slots.nodes(step))
      return false;
    own.width = slots.width();
    own.slot = slots.slot[step] + (node - slots.begin[step]);
    steps.insert(steps.begin(), own);
    if (first == 0) return true;
    l = first - 1, node = origin;
  }
}

inline bool cascade_node(const Tree& tree, bool inner, const std::vector<CascadeStep>& steps, WeightsOfNode& out) {
  const auto& root = tree.layers[0].cascade.root;
  const CascadeStep& own = steps.back();
  bool sound = true;
  for (std::size_t feature = 0; sound && feature < root.size(); ++feature) {
    std::uint32_t at = root[feature];
    for (std::size_t l = 0; at != kNoRow && l + 1 < steps.size(); ++l)
      at = follow(steps[l].chunk, steps[l].pages, at, steps[l].width, steps[l].slot);
    if (at == kNoRow) continue;
    sound = each_weight(own.chunk.words, own.chunk.word_count, at, own.chunk.form(own.width, inner),
                        [&](std::uint32_t slot, float weight) {
                          if (slot != own.slot) return;
                          out.feature.push_back(static_cast<std::uint32_t>(feature));
                          out.weight.push_back(weight);
                        });
  }
  return sound;
}

} // namespace detail

// False: there is no such node, or the model's arrays are damaged.
inline bool node_weights(const Forest& forest, std::size_t t, std::size_t l, std::uint32_t node, WeightsOfNode& out) {
  if (t >= forest.trees.size() || l >= forest.trees[t].layers.size()) return false;
  const Tree& tree = forest.trees[t];
  std::uint32_t parent = 0;
  Siblings siblings{};
  if (!parent_of(tree.layers[l].shape, node, parent, siblings)) return false;
  if (forest.layout == Layout::column) return detail::column_node(tree.layers[l], node, out);
  if (forest.layout == Layout::chunk)
    return detail::chunk_node(tree.layers[l], parent, siblings, node - siblings.begin, out);
  std::vector<detail::CascadeStep> steps;
  return detail::cascade_steps(tree, l, node, steps) &&
         detail::cascade_node(tree, tree.has_chunks_below(l), steps, out);
}

} // namespace beamwood
