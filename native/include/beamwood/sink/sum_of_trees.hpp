// The nodes that several trees met in, the best k labels of their sum out: the sink of several trees where a bound holds.
//
// Several trees reach many labels of which few can win, and most of the work is looking at those. So nodes that have only
// labels to give are put off until all trees are walked, and labels of the others are left unscored. Then, as a mean is
// at most the best of its parts, a label can only win if in some tree it scores at least the k-th best mean so far: only
// those are looked at, node by node, the best nodes first. Where such a label is in the other trees says leaf_of_label;
// it scores at most what the node above it does. If that may still win, nodes are opened until its mean is known.
//
// Where a query has few rows and met few labels, opening a node costs no more than finding out whether it may win: then
// all are opened, each found while others before it are added up, and all their labels are added up.
//
// What is left out cannot win, so it changes no bit. This needs scores that are not negative and only shrink along a
// path. Bounds are added like scores, in tree order and in float32: rounding keeps order, so a bound is never below what
// it bounds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/sink/label_numbers.hpp"
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

  // Opens what may still win and leaves the best k in `best`. opener.find(node) finds the rows of a node that was put off,
  // so that memory brings them while others are added up, if finds_ahead(); opener.open(node, children) makes its sums.
  // False: damaged.
  template <class Opener> bool settle(Scorer& scorer, Opener&& opener) {
    if (opener.has_few_rows() && met_few_labels()) return add_all(scorer, opener);
    best.reset(k_);
    seen_.reset();
    return nodes_.arrange(scorer, order_) && list_leaders(scorer, opener) && look_up_listed(scorer, opener) &&
           look_up_rest(scorer, opener);
  }

private:
  static constexpr std::size_t kFewNodes = 16, kFewLabels = 320; // of a tree
  static constexpr std::size_t kAhead = 6;                       // nodes

  bool met_few_labels() {
    const std::size_t trees = forest_->trees.size(), count = nodes_.all().size();
    if (count > kFewNodes * trees) return false;
    std::size_t labels = 0;
    for (std::size_t n = 0; n < count; ++n) {
      if (!nodes_[n].open && !nodes_.find_children(nodes_[n])) return false; // whoever lists them reports the damage
      labels += nodes_[n].siblings.width;
    }
    return labels <= kFewLabels * trees;
  }

  // Opens all nodes and adds up all their labels.
  template <class Opener> bool add_all(Scorer& scorer, Opener& opener) {
    answers_.clear();
    for (std::size_t i = 0, found = 0, count = nodes_.all().size(); i < count; ++i) {
      for (; found < count && found <= i + kAhead; ++found)
        if (!find(nodes_[found], opener)) return false;
      const MetNode& node = nodes_[i];
      Children children = nodes_.children_of(node);
      if (!node.open && !opener.open(node, children)) return false;
      if (!add_labels(node.met, children, scorer)) return false;
    }
    sum_.run(answers_, forest_->trees.size(), k_);
    std::swap(best, sum_.best);
    return true;
  }

  // Adds the labels among a node's children to the answers. False: damaged.
  bool add_labels(const Met& met, const Children& children, Scorer& scorer) {
    if (scorer.filtered() || !is_last(met))
      return sort_out(
          *forest_, met, children, scorer, [](std::uint32_t, float) {},
          [this](std::uint32_t label, std::uint32_t, float score) { answers_.push_back({label, score}); });
    const LayerShape& shape = layer_of(met).shape; // all have labels
    const float* const scores = scorer.all_shown(shape, children);
    const std::uint32_t* const label = shape.label.data() + children.siblings.begin;
    const std::size_t before = answers_.size();
    answers_.resize(before + children.siblings.width);
    Answer* const out = answers_.data() + before;
    std::uint32_t most = 0;
    for (std::uint32_t c = 0; c < children.siblings.width; ++c) {
      out[c] = {label[c], scores[c]};
      most = std::max(most, label[c]);
    }
    return most < forest_->labels;
  }

  // The labels that score best in one tree: they are k different ones, and make a bar for all others.
  template <class Opener> bool list_leaders(Scorer& scorer, Opener& opener) {
    leaders_.reset(k_);
    first_.clear();
    for (const Key key : order_)
      if (nodes_[id_of(key)].met.tree == nodes_[id_of(order_[0])].met.tree) first_.push_back(key);
    for (std::size_t i = 0; i < first_.size(); ++i) {
      leaders_.tighten();
      if (worse(first_[i], leaders_.bar())) break;
      MetNode& node = nodes_[id_of(first_[i])];
      if (!find(node, opener) || !find_next(first_, i, leaders_.bar(), opener) || !open(node, opener) ||
          !list(node, scorer, leaders_.bar(), [this](Key label) { leaders_.offer(label); }))
        return false;
    }
    listed_ = leaders_.ranked();
    return true;
  }

  template <class Opener> bool look_up_rest(Scorer& scorer, Opener& opener) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Key bar = bar_in_one_tree();
      if (worse(order_[i], bar)) break;
      MetNode& node = nodes_[id_of(order_[i])];
      if (!node.open && !may_win(node, scorer)) continue;
      listed_.clear();
      if (!find(node, opener) || !find_next(order_, i, bar, opener) || !open(node, opener) ||
          !list(node, scorer, bar, [this](Key label) { listed_.push_back(label); }) || !look_up_listed(scorer, opener))
        return false;
    }
    return true;
  }

  // Looks up the labels that are listed, unless that was done before: finds their means, or that they cannot win. First
  // the nodes that have to be opened are found for all of them, then they are opened.
  template <class Opener> bool look_up_listed(Scorer& scorer, Opener& opener) {
    const std::size_t trees = forest_->trees.size();
    if (places_.size() < listed_.size() * trees) places_.resize(listed_.size() * trees);
    for (const Key key : listed_) nodes_.prefetch(id_of(key));
    std::size_t left = 0;
    for (const Key key : listed_) {
      const std::uint32_t label = id_of(key);
      const std::size_t before = seen_.size();
      seen_.number_of(label);
      if (seen_.size() == before) continue;
      const std::span places = std::span(places_).subspan(left * trees, trees);
      if (!nodes_.find(label, places)) return false;
      if (falls_short(mean(places))) continue;
      if (opener.finds_ahead())
        for (const LabelPlace& place : places)
          if (!place.known && !find(*place.node, opener)) return false;
      listed_[left++] = key;
    }
    for (std::size_t i = 0; i < left; ++i)
      if (!look_up(id_of(listed_[i]), std::span(places_).subspan(i * trees, trees), scorer, opener)) return false;
    return true;
  }

  // Finds the rows of a node, unless that was done before.
  template <class Opener> bool find(MetNode& node, Opener& opener) {
    return node.open || node.number != kNotFound || opener.find(node);
  }
  // The same for the node behind the i-th, if it may be opened.
  template <class Opener> bool find_next(std::span<const Key> order, std::size_t i, Key bar, Opener& opener) {
    return !opener.finds_ahead() || i + 1 >= order.size() || worse(order[i + 1], bar) ||
           find(nodes_[id_of(order[i + 1])], opener);
  }
  // Makes the sums of a node, unless that was done before.
  template <class Opener> bool open(MetNode& node, Opener& opener) {
    Children children{};
    if (node.open) return true;
    if (!find(node, opener) || !opener.open(node, children)) return false;
    nodes_.keep(node, children);
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

  static float mean(std::span<const LabelPlace> places) noexcept {
    float sum = 0.0f;
    for (const LabelPlace& place : places) sum += place.score;
    return mean_score(sum, places.size());
  }
  bool falls_short(float most) noexcept {
    best.tighten();
    return worse(key_of(most, 0), best.bar());
  }

  // Whether a label of a node may still win; also where one is damaged: whoever opens it finds out.
  bool may_win(const MetNode& node, Scorer& scorer) {
    const LayerShape& shape = nodes_.shape_of(node);
    if (places_.size() < forest_->trees.size()) places_.resize(forest_->trees.size());
    const std::span places = std::span(places_).first(forest_->trees.size());
    bool may = false;
    scorer.each_allowed(node.met.tree, node.met.layer, node.siblings, [&](std::uint32_t c) {
      const std::uint32_t label = shape.label[node.siblings.begin + c];
      may = may || (label != kNoLabel && (!nodes_.find(label, places) || !falls_short(mean(places))));
    });
    return may;
  }

  // Finds the mean of a label, or that it cannot win. Nodes that are open come first: they may spare the others.
  template <class Opener>
  bool look_up(std::uint32_t label, std::span<LabelPlace> places, Scorer& scorer, Opener& opener) {
    for (const bool opens : {false, true})
      for (LabelPlace& place : places) {
        if (place.known || (!opens && !place.node->open)) continue;
        if (falls_short(mean(places))) return true;
        if (!open(*place.node, opener) || !nodes_.is_at(label, place)) return false;
        const float score = scorer.one(nodes_.shape_of(*place.node), nodes_.children_of(*place.node), place.child);
        place.score = scorer.shown(score), place.known = true;
      }
    best.offer(key_of(mean(places), label));
    return true;
  }

  std::vector<Answer> answers_; // of all nodes, in tree order
  SumOfAnswers sum_;
  std::uint32_t k_ = 1;
  std::vector<Key> order_, first_, listed_; // nodes, best first, and those of the best tree; labels to look up
  TopK leaders_;
  LabelNumbers seen_;              // labels that were looked up
  std::vector<LabelPlace> places_; // of labels that are looked up, tree by tree
};

} // namespace beamwood
