// The nodes of one layer in, those of the next out: the beam of one query, and the rule that says what is worth opening.
//
// The exact bound: activations never raise a score, and nodes are opened best first. Once a node is worse than the b-th
// best candidate for the next beam, none of its inner children, nor of any node after it, finds a place there; once it is
// worse than the sink's bar, no label below it can win. At equal scores it is opened, for the order law then decides by
// id. So the bound leaves out work and changes no bit. It does not hold where scores can rise (identity, a discount).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/scorer.hpp"
#include "beamwood/sink/sinks.hpp"

namespace beamwood {

enum class Fate : std::uint8_t { open, put_off, left_out };

class Beam {
public:
  void start(const Forest& forest, std::size_t t, std::uint32_t width, bool bound) {
    forest_ = &forest, tree_ = t, width_ = width;
    bounded_ = bound && forest.activation.only_shrinks();
    nodes_.assign(1, key_of(forest.activation.root_score(), 0));
  }

  // What is to be opened, best first.
  const std::vector<Key>& nodes() const noexcept { return nodes_; }
  void set_nodes(std::span<const Key> nodes) { nodes_.assign(nodes.begin(), nodes.end()); }

  // The children of its nodes are in this layer. False: damaged.
  bool enter(std::size_t l) {
    layer_ = l;
    last_ = l + 1 == forest_->trees[tree_].layers.size();
    labels_ = !forest_->trees[tree_].layers[l].shape.label.empty();
    next_.reset(width_);
    return labels_ || !last_;
  }

  // All children are known: the best of them are the next nodes.
  void leave() {
    nodes_ = next_.ranked();
    if (last_) return;
    const TreeLayer& below = forest_->trees[tree_].layers[layer_ + 1];
    for (const Key key : nodes_) {
      __builtin_prefetch(below.shape.child_start.data() + id_of(key));
      if (!below.cascade.start.empty()) __builtin_prefetch(below.cascade.start.data() + id_of(key));
    }
  }

  // Whether what is opened can make the rest of this layer not worth opening.
  bool narrows(bool puts_off) const noexcept { return bounded_ && (puts_off || !labels_); }

  // What is to become of a node of the beam; where one is left out, so are those after it.
  template <class Sink> Fate fate_of(Key key, const Scorer& scorer, Sink& sink) noexcept {
    if (!bounded_) return Fate::open;
    if (sink.beaten(scorer.shown(score_of(key)))) return Fate::left_out;
    if (!last_) {
      next_.tighten();
      if (!worse(key, next_.bar()) && (!sink.puts_off || has_inner_children(id_of(key)))) return Fate::open;
      if (!labels_) return Fate::left_out;
    }
    return sink.puts_off ? Fate::put_off : Fate::open;
  }

  // Takes the children of a node: inner ones compete for the next beam, labels go to the sink. False: damaged.
  template <class Sink> bool take(const Children& children, const Met& met, Scorer& scorer, Sink& sink) {
    const auto compete = [this](std::uint32_t node, float score) { next_.offer(key_of(score, node)); };
    next_.tighten();
    if (labels_) return sink.take(met, children, scorer, next_.bar(), compete);
    const Key bar = next_.bar() == kWorstKey ? scorer.bar_of_wide(tree_, layer_, children, width_) : next_.bar();
    scorer.each(tree_, layer_, children, {bar, kWorstKey},
                [&](std::uint32_t c, float score) { compete(children.siblings.begin + c, score); });
    return true;
  }

  Met met(Key key) const noexcept {
    return {static_cast<std::uint32_t>(tree_), static_cast<std::uint32_t>(layer_), id_of(key), score_of(key)};
  }

private:
  // Whether a node has more to give than labels; a damaged one, too: whoever opens it finds out.
  bool has_inner_children(std::uint32_t node) const noexcept {
    const LayerShape& shape = forest_->trees[tree_].layers[layer_].shape;
    Siblings siblings;
    if (!labels_ || node >= shape.parents() || !shape.children(node, siblings)) return true;
    for (std::uint32_t c = 0; c < siblings.width; ++c)
      if (shape.label[siblings.begin + c] == kNoLabel) return true;
    return false;
  }

  const Forest* forest_ = nullptr;
  std::size_t tree_ = 0, layer_ = 0;
  std::uint32_t width_ = 1;
  bool bounded_ = false, last_ = false, labels_ = false;
  std::vector<Key> nodes_;
  TopK next_;
};

} // namespace beamwood
