// The nodes that several trees met in, where a label is among their children out: the memory of sum_of_trees.hpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/sink/sinks.hpp"

namespace beamwood {

inline constexpr std::uint32_t kNotFound = 0xffffffffu;

// A node that was met, its children, its number in the opener once its rows are found, and where its children's sums are
// once it is open.
struct MetNode {
  Met met{};
  Siblings siblings{};
  float most = 0.0f; // what a label below it can score
  std::uint32_t number = kNotFound;
  bool open = false;
  std::size_t sums = 0;
};

// Where a label is in a tree: the node above it, or none where the tree did not reach it.
struct LabelPlace {
  MetNode* node;
  std::uint32_t child; // of its children
  bool known;
  float score; // or, as long as it is not known, the most that it can be
};

class MetNodes {
public:
  void reset(const Forest& forest) {
    forest_ = &forest;
    nodes_.clear(), first_.clear();
    sums_used_ = 0;
  }

  // Nodes come tree by tree.
  void enter_tree() { first_.push_back(nodes_.size()); }
  void forget_tree() { nodes_.resize(first_.back()); }
  std::span<MetNode> of_tree() noexcept { return std::span(nodes_).subspan(first_.back()); }
  MetNode& add(const Met& met) {
    MetNode& node = nodes_.emplace_back(); // in its place: it is not put together elsewhere and copied
    node.met = met;
    return node;
  }
  MetNode& operator[](std::size_t number) noexcept { return nodes_[number]; }
  std::span<const MetNode> all() const noexcept { return nodes_; }

  const LayerShape& shape_of(const MetNode& node) const noexcept {
    return forest_->trees[node.met.tree].layers[node.met.layer].shape;
  }
  Children children_of(const MetNode& node) const noexcept {
    return {node.siblings, sums_.data() + node.sums, node.met.score};
  }

  // A node's children without their sums. False: damaged.
  bool find_children(MetNode& node) const noexcept {
    return node.met.node < shape_of(node).parents() && shape_of(node).children(node.met.node, node.siblings);
  }

  // The node is open: its children's sums are kept.
  void keep(MetNode& node, const Children& children) {
    node.siblings = children.siblings;
    node.open = true;
    node.sums = sums_used_;
    sums_used_ += children.siblings.width;
    if (sums_.size() < sums_used_ + kMaskWidth) sums_.resize(2 * (sums_used_ + kMaskWidth)); // vectors reach beyond
    std::copy_n(children.sums, children.siblings.width, sums_.data() + node.sums);
  }

  // All nodes are there: lists them by what their labels can score, best first, and makes `find` ready. False: damaged.
  bool arrange(const Scorer& scorer, std::vector<Key>& order) {
    order.clear(), ranges_.clear(), first_range_.assign(1, 0);
    for (std::size_t n = 0, t = 0; t < forest_->trees.size(); ++t) {
      above_.assign(1, 0);
      for (const TreeLayer& layer : forest_->trees[t].layers) above_.push_back(above_.back() + layer.shape.nodes);
      for (; n < nodes_.size() && nodes_[n].met.tree == t; ++n) {
        MetNode& node = nodes_[n];
        if (!node.open && !find_children(node)) return false;
        node.most = scorer.shown(node.met.score);
        const auto number = static_cast<std::uint32_t>(n);
        order.push_back(key_of(node.most, number));
        ranges_.push_back({above_[node.met.layer] + node.siblings.begin, node.siblings.width, number});
      }
      std::sort(ranges_.begin() + static_cast<std::ptrdiff_t>(first_range_.back()), ranges_.end(),
                [](const Range& a, const Range& b) { return a.begin < b.begin; });
      first_range_.push_back(ranges_.size());
    }
    std::sort(order.begin(), order.end());
    return true;
  }

  // Prefetches what `find` reads.
  void prefetch(std::uint32_t label) const noexcept {
    for (const Tree& tree : forest_->trees)
      if (label < tree.leaf_of_label.size()) __builtin_prefetch(tree.leaf_of_label.data() + label);
  }

  // Finds a label in all trees, a place for each. False: damaged.
  bool find(std::uint32_t label, std::span<LabelPlace> places) {
    for (std::size_t t = 0; t < places.size(); ++t) {
      if (label >= forest_->trees[t].leaf_of_label.size()) return false;
      const std::uint32_t leaf = forest_->trees[t].leaf_of_label[label];
      places[t] = {nullptr, 0, true, 0.0f};
      if (first_range_[t] == first_range_[t + 1]) continue;
      const Range* at = ranges_.data() + first_range_[t]; // the last that does not begin behind the leaf
      for (std::size_t left = first_range_[t + 1] - first_range_[t]; left > 1;) {
        const std::size_t half = left / 2;
        at += at[half].begin <= leaf ? half : 0;
        left -= half;
      }
      MetNode& node = nodes_[at->node];
      const bool there = leaf - at->begin < at->width; // cannot be foreseen: no branch asks for it
      places[t] = {there ? &node : nullptr, leaf - at->begin, !there, there ? node.most : 0.0f};
    }
    return true;
  }

  // Whether a label is where `find` says: what leads there was read from a file.
  bool is_at(std::uint32_t label, const LabelPlace& place) const noexcept {
    return shape_of(*place.node).label[place.node->siblings.begin + place.child] == label;
  }

private:
  // The children of a node, counted through the layers of its tree from the top, as leaf_of_label counts.
  struct Range {
    std::uint32_t begin, width, node;
  };

  const Forest* forest_ = nullptr;
  std::vector<MetNode> nodes_;
  std::vector<std::size_t> first_; // per tree that was entered
  std::vector<float> sums_;        // of the children of open nodes
  std::size_t sums_used_ = 0;
  std::vector<Range> ranges_; // tree by tree, by their first nodes
  std::vector<std::size_t> first_range_;
  std::vector<std::uint32_t> above_; // nodes above each layer
};

} // namespace beamwood
