// The nodes that trees meet in, those that have labels to give out: their labels are left unscored.
//
// What comes of them is decided when all trees are walked: sum_of_trees.hpp looks for the best of their labels;
// split_search.hpp hands them to whoever has the labels.
#pragma once
#include <cstdint>
#include <span>

#include "beamwood/sink/met_nodes.hpp"

namespace beamwood {

class NodesWithLabels {
public:
  static constexpr bool puts_off = true;

  void reset(const Forest& forest, std::uint32_t) {
    forest_ = &forest;
    nodes_.reset(forest);
  }

  static bool beaten(float) noexcept { return false; }

  std::span<const MetNode> met() const noexcept { return nodes_.all(); }

  // A node of which only labels are left to be had.
  void put_off(const Met& met) { nodes_.add(met); }

  // Takes the children of a node: inner ones are given to inner(node, score), the sums of labels are kept. False: damaged.
  template <class Inner>
  bool take(const Met& met, const Children& children, Scorer& scorer, Key node_bar, Inner&& inner) {
    MetNode& node = nodes_.add(met);
    nodes_.keep(node, children);
    if (scorer.filtered()) reached_ += labels_in(node, scorer);
    if (is_last(met)) return true;
    bool sound = true;
    scorer.each(met.tree, met.layer, children, {node_bar, kNoKeyPasses}, [&](std::uint32_t c, float score) {
      std::uint32_t label;
      const Child kind = child_at(*forest_, layer_of(met), false, children.siblings.begin + c, label);
      if (kind == Child::inner) inner(children.siblings.begin + c, score);
      sound = sound && kind != Child::damaged;
    });
    return sound;
  }

  // How many labels the tree that was entered last has reached, where there is a filter. Those under nodes that were put
  // off count too, once they are counted. False: damaged.
  void enter_tree() { nodes_.enter_tree(), reached_ = 0; }
  std::uint64_t reached() const noexcept { return reached_; }
  void forget_tree() { nodes_.forget_tree(), reached_ = 0; }
  bool count_put_off(Scorer& scorer) {
    for (MetNode& node : nodes_.of_tree()) {
      if (node.open) continue;
      if (!nodes_.find_children(node)) return false;
      reached_ += labels_in(node, scorer);
    }
    return true;
  }

protected:
  const TreeLayer& layer_of(const Met& met) const noexcept { return forest_->trees[met.tree].layers[met.layer]; }
  bool is_last(const Met& met) const noexcept { return met.layer + 1 == forest_->trees[met.tree].layers.size(); }

  const Forest* forest_ = nullptr;
  MetNodes nodes_;

private:
  std::uint64_t labels_in(const MetNode& node, Scorer& scorer) const {
    const LayerShape& shape = nodes_.shape_of(node);
    std::uint64_t count = 0;
    scorer.each_allowed(node.met.tree, node.met.layer, node.siblings,
                        [&](std::uint32_t c) { count += shape.label[node.siblings.begin + c] != kNoLabel; });
    return count;
  }

  std::uint64_t reached_ = 0; // labels, by the tree that was entered last
};

} // namespace beamwood
