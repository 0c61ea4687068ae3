// One query, a tree and a filter in, at least k allowed labels out, to a sink, where the tree has so many: beam search
// that goes on.
//
// Nodes that were met but found no place in the beam wait in their layer, and while the tree has reached fewer than k
// labels, the best node that waits in the deepest layer where any does is opened too. Each opening brings at least one
// label: every node that the filter enters has an allowed label below it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "beamwood/engine/scorer.hpp"
#include "beamwood/sink/sinks.hpp"

namespace beamwood {

class WaitingWalk {
public:
  // The opener was started for tree and query; the sink has nothing of the tree. False: the arrays are damaged.
  template <class Opener, class Sink>
  bool run(const Forest& forest, std::size_t t, std::uint32_t k, std::uint32_t beam, Opener& opener, Scorer& scorer,
           Sink& sink) {
    tree_ = t;
    layers_ = forest.trees[t].layers.size();
    bounded_ = forest.activation.only_shrinks();
    if (waiting_.size() < layers_) waiting_.resize(layers_);
    for (auto& layer : waiting_) layer.clear();
    beam_.assign(1, {key_of(forest.activation.root_score(), 0), Opener::kUnknown});
    for (std::size_t l = 0; l < layers_; ++l) {
      scorer.check_stop();
      if (!open_beam(l, opener, scorer, sink)) return false;
      take_beam(waiting_[l], beam);
    }
    return go_on(k, opener, scorer, sink);
  }

private:
  // A node that was met and not yet opened.
  struct Waiting {
    Key key;
    std::uint32_t parent; // the number that the opener gave its parent

    bool operator<(const Waiting& other) const noexcept { return key > other.key; } // heaps give the best first
  };

  // The best b that wait in a layer become the beam, in rank order; the rest stay, as a heap.
  void take_beam(std::vector<Waiting>& waiting, std::uint32_t beam) {
    beam_.clear();
    std::make_heap(waiting.begin(), waiting.end());
    while (beam_.size() < beam && !waiting.empty()) beam_.push_back(best_of(waiting));
  }

  static Waiting best_of(std::vector<Waiting>& waiting) {
    std::pop_heap(waiting.begin(), waiting.end());
    const Waiting best = waiting.back();
    waiting.pop_back();
    return best;
  }

  // Rows are found one node ahead of the sums.
  template <class Opener, class Sink> bool open_beam(std::size_t l, Opener& opener, Scorer& scorer, Sink& sink) {
    std::uint32_t number = 0, next = 0;
    if (!beam_.empty() && !opener.find(l, id_of(beam_[0].key), beam_[0].parent, next)) return false;
    for (std::size_t i = 0; i < beam_.size(); ++i) {
      number = next;
      if (i + 1 < beam_.size() && !opener.find(l, id_of(beam_[i + 1].key), beam_[i + 1].parent, next)) return false;
      if (bounded_ && sink.beaten(scorer.shown(score_of(beam_[i].key)))) break; // and so are those after it
      if (!open(l, beam_[i], number, opener, scorer, sink)) return false;
    }
    return true;
  }

  template <class Opener, class Sink> bool go_on(std::uint32_t k, Opener& opener, Scorer& scorer, Sink& sink) {
    for (std::size_t l = layers_; l > 0 && sink.reached() < k;) {
      scorer.check_stop();
      auto& waiting = waiting_[l - 1];
      if (waiting.empty()) {
        --l;
        continue;
      }
      if (l == layers_) return false; // an inner node has no layer below it
      const Waiting node = best_of(waiting);
      const std::size_t before = waiting_[l].size();
      std::uint32_t number = 0;
      if (!opener.find(l, id_of(node.key), node.parent, number) || !open(l, node, number, opener, scorer, sink))
        return false;
      for (std::size_t end = before + 1; end <= waiting_[l].size(); ++end)
        std::push_heap(waiting_[l].begin(), waiting_[l].begin() + static_cast<std::ptrdiff_t>(end));
      if (!waiting_[l].empty()) ++l;
    }
    return true;
  }

  // Labels among a node's children, which are in layer l, go to the sink, inner nodes wait.
  template <class Opener, class Sink>
  bool open(std::size_t l, const Waiting& node, std::uint32_t number, Opener& opener, Scorer& scorer, Sink& sink) {
    const float* const sums = opener.sums(l, number);
    if (!sums) return false;
    const Children children{opener.siblings(l, number), sums, score_of(node.key)};
    const Met met{static_cast<std::uint32_t>(tree_), static_cast<std::uint32_t>(l), id_of(node.key),
                  score_of(node.key)};
    const auto wait = [&](std::uint32_t child, float score) { waiting_[l].push_back({key_of(score, child), number}); };
    if (!scorer.has_labels(tree_, l)) {
      scorer.each(tree_, l, children, {},
                  [&](std::uint32_t c, float score) { wait(children.siblings.begin + c, score); });
      return l + 1 < layers_;
    }
    return sink.take(met, children, scorer, kWorstKey, wait);
  }

  std::size_t tree_ = 0, layers_ = 0;
  bool bounded_ = false;
  std::vector<std::vector<Waiting>> waiting_; // per layer
  std::vector<Waiting> beam_;
};

} // namespace beamwood
