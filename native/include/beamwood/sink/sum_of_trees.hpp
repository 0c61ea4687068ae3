// The nodes that several trees met in, the best k labels of their sum out: the sink of several trees where a bound holds.
//
// Several trees reach many labels of which few can win, and most of the work is looking at those. So nodes that have only
// labels to give are put off until all trees are walked, and labels of the others are left unscored. Then, as a mean is
// at most the best of its parts, a label can only win if in some tree it scores at least the k-th best mean so far: only
// those are looked at, node by node, the best nodes first. Where such a label is in the other trees says leaf_of_label;
// it scores at most what the node above it does. If that may still win, nodes are opened until its mean is known.
//
// What is left out cannot win, so it changes no bit. This needs scores that are not negative and only shrink along a
// path. Bounds are added like scores, in tree order and in float32: rounding keeps order, so a bound is never below what
// it bounds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "beamwood/sink/nodes_with_labels.hpp"

namespace beamwood {

class SumOfTrees : public NodesWithLabels {
public:
  TopK best;

  // Whether leaving labels out is exact for a forest, and labels can be found in its trees.
  static bool fits(const Forest& forest) noexcept {
    const Path path = forest.activation.path;
    return forest.activation.only_shrinks() && forest.trees.size() <= 1000 &&
           (path == Path::product || path == Path::log_exp) &&
           std::ranges::all_of(forest.trees, [](const Tree& tree) { return !tree.leaf_of_label.empty(); });
  }

  void reset(const Forest& forest, std::uint32_t k) {
    NodesWithLabels::reset(forest, k);
    k_ = k;
  }

  // Opens what may still win and leaves the best k in `best`. open(met, children) makes the sums of a node that was put
  // off; false: damaged.
  template <class Open> bool settle(Scorer& scorer, Open&& open) {
    const auto open_node = [&](MetNode& node) {
      Children children{};
      if (!node.open && !open(node.met, children)) return false;
      if (!node.open) nodes_.keep(node, children);
      return true;
    };
    best.reset(k_);
    seen_.reset();
    return nodes_.arrange(scorer, order_) && list_leaders(scorer, open_node) && look_up_listed(scorer, open_node) &&
           look_up_rest(scorer, open_node);
  }

private:
  // The labels that score best in one tree: they are k different ones, and make a bar for all others.
  template <class OpenNode> bool list_leaders(Scorer& scorer, OpenNode&& open_node) {
    leaders_.reset(k_);
    const std::uint32_t tree = order_.empty() ? 0 : nodes_[id_of(order_[0])].met.tree;
    for (const Key key : order_) {
      MetNode& node = nodes_[id_of(key)];
      if (node.met.tree != tree) continue;
      leaders_.tighten();
      if (worse(key, leaders_.bar())) break;
      if (!open_node(node) || !list(node, scorer, leaders_.bar(), [this](Key label) { leaders_.offer(label); }))
        return false;
    }
    listed_ = leaders_.ranked();
    return true;
  }

  template <class OpenNode> bool look_up_rest(Scorer& scorer, OpenNode&& open_node) {
    for (const Key key : order_) {
      const Key bar = bar_in_one_tree();
      if (worse(key, bar)) break;
      MetNode& node = nodes_[id_of(key)];
      if (!node.open && !may_win(node, scorer)) continue;
      listed_.clear();
      if (!open_node(node) || !list(node, scorer, bar, [this](Key label) { listed_.push_back(label); }) ||
          !look_up_listed(scorer, open_node))
        return false;
    }
    return true;
  }

  template <class OpenNode> bool look_up_listed(Scorer& scorer, OpenNode&& open_node) {
    for (const Key key : listed_)
      if (!look_up(id_of(key), scorer, open_node)) return false;
    return true;
  }

  // What a label must reach in some tree to come to the bar. Means are rounded a few times, so a little less will do.
  Key bar_in_one_tree() noexcept {
    best.tighten();
    const double score = score_of(best.bar()), slack = 1e-6 * static_cast<double>(forest_->trees.size() + 8);
    if (best.bar() == kWorstKey || score != score) return kWorstKey;
    return key_of(static_cast<float>(score * (1.0 - slack)), kNoLabel);
  }

  // Calls take(key) for the labels of an open node that may score as much as a bar says. False: damaged.
  template <class Take> bool list(const MetNode& node, Scorer& scorer, Key bar, Take&& take) {
    const Met& met = node.met;
    bool sound = true;
    scorer.each(met.tree, met.layer, nodes_.children_of(node), {kNoKeyPasses, bar}, [&](std::uint32_t c, float score) {
      std::uint32_t label;
      const Child kind = child_at(*forest_, layer_of(met), is_last(met), node.siblings.begin + c, label);
      if (kind == Child::leaf) take(key_of(scorer.shown(score), label));
      sound = sound && kind != Child::damaged;
    });
    return sound;
  }

  float mean() const noexcept {
    float sum = 0.0f;
    for (const LabelPlace& place : places_) sum += place.score;
    return mean_score(sum, places_.size());
  }
  bool falls_short(float most) noexcept {
    best.tighten();
    return worse(key_of(most, 0), best.bar());
  }

  // Whether a label of a node may still win; also where one is damaged: whoever opens it finds out.
  bool may_win(const MetNode& node, Scorer& scorer) {
    const LayerShape& shape = nodes_.shape_of(node);
    bool may = false;
    scorer.each_allowed(node.met.tree, node.met.layer, node.siblings, [&](std::uint32_t c) {
      const std::uint32_t label = shape.label[node.siblings.begin + c];
      may = may || (label != kNoLabel && (!nodes_.find(label, places_) || !falls_short(mean())));
    });
    return may;
  }

  // Finds the mean of a label, or that it cannot win, unless it was looked up before.
  template <class OpenNode> bool look_up(std::uint32_t label, Scorer& scorer, OpenNode&& open_node) {
    const std::size_t before = seen_.size();
    seen_.number_of(label);
    if (seen_.size() == before) return true;
    if (!nodes_.find(label, places_)) return false;
    for (const bool opens : {false, true})
      for (LabelPlace& place : places_) {
        if (place.known || (!opens && !place.node->open)) continue;
        if (falls_short(mean())) return true;
        if (!open_node(*place.node)) return false;
        const float score = scorer.one(nodes_.shape_of(*place.node), nodes_.children_of(*place.node), place.child);
        place.score = scorer.shown(score), place.known = true;
      }
    best.offer(key_of(mean(), label));
    return true;
  }

  std::uint32_t k_ = 1;
  std::vector<Key> order_, listed_; // nodes, best first; labels to look up
  TopK leaders_;
  LabelNumbers seen_; // labels that were looked up
  std::vector<LabelPlace> places_;
};

} // namespace beamwood
