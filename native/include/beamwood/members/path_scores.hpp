// A query and labels in, the score of each out, by its path in every tree: no beam decides it.
//
// The law: the same sums, activations and products as those of a search that drops nothing. Several trees: scores are
// summed in tree order from +0 and divided once. Nodes above the labels are opened from the top down, each once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/scorer.hpp"
#include "beamwood/layout/node.hpp"
#include "beamwood/open/open_cascade.hpp"

namespace beamwood {

// Scratch memory of one worker.
class alignas(kApart) PathScores {
public:
  // leaves: for each tree the leaf of each label, numbered through the tree from the top. Labels are below forest.labels.
  // False: the model's arrays are damaged.
  bool run(const Forest& forest, const Query& query, Isa isa, std::span<const std::span<const std::uint32_t>> leaves,
           std::span<const std::uint32_t> labels, float* scores) {
    const Kernels& kernels = *kernels_for(isa);
    const SearchOptions options;
    scorer_.start(forest, kernels);
    std::fill(scores, scores + labels.size(), 0.0f);
    for (std::size_t t = 0; t < forest.trees.size(); ++t) {
      opener_.start(forest, t, query, kernels, options);
      if (!find_paths(forest.trees[t], leaves[t], labels) || !open_paths(forest, t)) return false;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        const float own = scorer_.shown(score_at(place_[i].layer, place_[i].node));
        scores[i] = forest.trees.size() == 1 ? own : scores[i] + own;
      }
    }
    if (forest.trees.size() > 1)
      for (std::size_t i = 0; i < labels.size(); ++i)
        scores[i] = scores[i] / static_cast<float>(forest.trees.size()) + 0.0f;
    return true;
  }

private:
  struct Node {
    std::uint32_t node, parent;
    float score;
  };
  struct Place {
    std::size_t layer;
    std::uint32_t node;
  };

  // Lists the nodes on all paths, layer by layer, each once and rising.
  bool find_paths(const Tree& tree, std::span<const std::uint32_t> leaves, std::span<const std::uint32_t> labels) {
    nodes_.resize(tree.layers.size());
    for (auto& layer : nodes_) layer.clear();
    place_.clear();
    for (const std::uint32_t label : labels) {
      if (label >= leaves.size()) return false;
      Place place{0, leaves[label]};
      while (place.layer < tree.layers.size() && place.node >= tree.layers[place.layer].shape.nodes)
        place.node -= tree.layers[place.layer++].shape.nodes;
      if (place.layer == tree.layers.size()) return false;
      place_.push_back(place);
      nodes_[place.layer].push_back({place.node, 0, 0.0f});
    }
    for (std::size_t l = tree.layers.size(); l-- > 0;) {
      auto& here = nodes_[l];
      std::sort(here.begin(), here.end(), [](const Node& a, const Node& b) { return a.node < b.node; });
      here.erase(std::unique(here.begin(), here.end(), [](const Node& a, const Node& b) { return a.node == b.node; }),
                 here.end());
      Siblings siblings{};
      for (Node& one : here) {
        if (!parent_of(tree.layers[l].shape, one.node, one.parent, siblings)) return false;
        if (l > 0) nodes_[l - 1].push_back({one.parent, 0, 0.0f});
      }
    }
    return true;
  }

  bool open_paths(const Forest& forest, std::size_t t) {
    const Tree& tree = forest.trees[t];
    for (std::size_t l = 0; l < tree.layers.size(); ++l) {
      auto& here = nodes_[l];
      for (std::size_t i = 0; i < here.size();) {
        const std::uint32_t parent = here[i].parent;
        std::uint32_t number;
        if (!opener_.find(l, parent, CascadeOpener::kUnknown, number)) return false;
        const float* const sums = opener_.sums(l, number);
        if (!sums) return false;
        const Children children{opener_.siblings(l, number), sums,
                                l == 0 ? forest.activation.root_score() : score_at(l - 1, parent)};
        const float* const all = scorer_.all(tree.layers[l].shape, children);
        for (; i < here.size() && here[i].parent == parent; ++i)
          here[i].score = all[here[i].node - children.siblings.begin];
      }
    }
    return true;
  }

  float score_at(std::size_t l, std::uint32_t node) const noexcept {
    const auto at = std::lower_bound(nodes_[l].begin(), nodes_[l].end(), node,
                                     [](const Node& a, std::uint32_t b) { return a.node < b; });
    return at->score;
  }

  CascadeOpener opener_;
  Scorer scorer_;
  std::vector<std::vector<Node>> nodes_; // per layer
  std::vector<Place> place_;             // of each label
};

} // namespace beamwood
