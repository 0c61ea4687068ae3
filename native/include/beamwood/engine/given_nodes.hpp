// Nodes that were met elsewhere in, the labels among their children out, to a sink: the frontier of a part of a forest
// whose upper layers are walked by others.
//
// The law: a node comes with the score of its path, so a label below it gets the bits that it gets in the whole forest.
//
// Rows of a cascade are followed from the parent's, so all nodes above are found first, each once, from the root down. Their
// sums are not made, but where a node's chunk holds those of layers below it (bundle.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/scorer.hpp"
#include "beamwood/sink/sinks.hpp"

namespace beamwood {

class GivenNodes {
public:
  // Whether there is such a node: what memory safety needs of numbers that others sent.
  static bool fits(const Forest& forest, const Met& met) noexcept {
    if (met.tree >= forest.trees.size() || met.layer >= forest.trees[met.tree].layers.size()) return false;
    return met.node < forest.trees[met.tree].layers[met.layer].shape.parents();
  }
  // And whether labels may be among its children: the others are not to be given.
  static bool has_labels(const Forest& forest, const Met& met) noexcept {
    return !forest.trees[met.tree].layers[met.layer].shape.label.empty();
  }

  // given: of tree t, each of which fits. The opener was started for tree and query. False: damaged.
  template <class Opener, class Sink>
  bool run(const Forest& forest, std::size_t t, std::span<const Met> given, bool bound, Opener& opener, Scorer& scorer,
           Sink& sink) {
    if (!find_above(forest.trees[t], given, opener)) return false;
    const bool bounded = bound && forest.activation.only_shrinks();
    for (const Met& met : given) {
      scorer.check_stop();
      if (bounded && sink.beaten(scorer.shown(met.score))) continue;
      if (Sink::puts_off) {
        sink.put_off(met);
        continue;
      }
      std::uint32_t number = 0;
      if (!opener.find(met.layer, met.node, Opener::kUnknown, number)) return false;
      const float* const sums = opener.sums(met.layer, number);
      if (!sums) return false;
      const Children children{opener.siblings(met.layer, number), sums, met.score};
      if (!sink.take(met, children, scorer, kWorstKey, [](std::uint32_t, float) {})) return false;
    }
    return true;
  }

private:
  template <class Opener> bool find_above(const Tree& tree, std::span<const Met> given, Opener& opener) {
    above_.resize(std::max(above_.size(), tree.layers.size()));
    for (auto& nodes : above_) nodes.clear();
    for (const Met& met : given)
      if (met.layer > 0) above_[met.layer - 1].push_back(parent_of(tree, met.layer, met.node));
    for (std::size_t l = tree.layers.size(); l-- > 0;) {
      auto& nodes = above_[l];
      std::sort(nodes.begin(), nodes.end());
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
      if (l > 0)
        for (const std::uint32_t node : nodes) above_[l - 1].push_back(parent_of(tree, l, node));
    }
    for (std::size_t l = 0; l < tree.layers.size(); ++l)
      for (const std::uint32_t node : above_[l]) {
        std::uint32_t number = 0;
        if (!opener.find(l, node, Opener::kUnknown, number)) return false;
        const bool holds_below = tree.layers[l].step == 0 && tree.bundle(l).layers > 1;
        if (holds_below && !opener.sums(l, number)) return false;
      }
    return true;
  }

  // The node above one whose children are in layer l > 0.
  static std::uint32_t parent_of(const Tree& tree, std::size_t l, std::uint32_t node) noexcept {
    const auto starts = tree.layers[l - 1].shape.child_start;
    const auto after = std::upper_bound(starts.begin() + 1, starts.end() - 1, node);
    return static_cast<std::uint32_t>(after - starts.begin() - 1);
  }

  std::vector<std::vector<std::uint32_t>> above_; // by the layer of their children
};

} // namespace beamwood
