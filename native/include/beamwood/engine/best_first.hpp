// One query and a tree in, its true best k labels out: best-first search, without a beam.
//
// It rests on activations that only shrink a score: no label below a node can beat the node itself. The best waiting node
// is opened until it falls short of the k-th best label found. At equal scores it is opened, so that a tie is settled by
// the order law and not by the way it was found. Children that fall short do not wait at all.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "beamwood/engine/scorer.hpp"
#include "beamwood/sink/sinks.hpp"

namespace beamwood {

class BestFirst {
public:
  // The opener was started for the first tree and the query. False: the model's arrays are damaged.
  template <class Opener> bool run(const Forest& forest, Opener& opener, Scorer& scorer, BestLabels& sink) {
    forest_ = &forest;
    waiting_.assign(1, {key_of(forest.activation.root_score(), 0), 0, Opener::kUnknown, kNotFound});
    while (!waiting_.empty()) {
      scorer.check_stop();
      std::pop_heap(waiting_.begin(), waiting_.end());
      Waiting node = waiting_.back();
      waiting_.pop_back();
      if (sink.beaten(scorer.shown(node.score()))) break; // and so are all that wait
      if (!find(opener, node) || !find_next(opener, node, scorer, sink) || !open(opener, node, scorer, sink))
        return false;
    }
    return true;
  }

private:
  static constexpr std::uint32_t kNotFound = 0xffffffffu;

  // A node to open, with the score along its path. What lies below it is at best as good.
  struct Waiting {
    Key key;
    std::uint32_t layer;  // of its children
    std::uint32_t parent; // the number that the opener gave its parent
    std::uint32_t number; // and the one that it got itself, once its rows are found

    float score() const noexcept { return score_of(key); }
    bool operator<(const Waiting& other) const noexcept { return key > other.key; } // a heap gives the greatest first
  };

  template <class Opener> bool find(Opener& opener, Waiting& node) const {
    if (node.layer >= forest_->trees[0].layers.size()) return false;
    return node.number != kNotFound || opener.find(node.layer, id_of(node.key), node.parent, node.number);
  }

  // The rows of the node that will most likely be opened next are found ahead: memory brings them while sums are added.
  template <class Opener> bool find_next(Opener& opener, const Waiting& node, const Scorer& scorer, BestLabels& sink) {
    if (waiting_.empty() || opener.has_many_rows(node.layer, node.number)) return true;
    return sink.beaten(scorer.shown(waiting_.front().score())) || find(opener, waiting_.front());
  }

  template <class Opener> bool open(Opener& opener, const Waiting& node, Scorer& scorer, BestLabels& sink) {
    const float* const sums = opener.sums(node.layer, node.number);
    if (!sums) return false;
    const Children children{opener.siblings(node.layer, node.number), sums, node.score()};
    // Inner nodes have to pass the bar of the labels, which is one for scores as they are shown.
    const Key node_bar = forest_->activation.path == Path::log_exp ? kWorstKey : sink.best.bar();
    return sink.take({0, node.layer, id_of(node.key), node.score()}, children, scorer, node_bar,
                     [&](std::uint32_t child, float score) {
                       if (sink.beaten(scorer.shown(score))) return;
                       waiting_.push_back({key_of(score, child), node.layer + 1, node.number, kNotFound});
                       std::push_heap(waiting_.begin(), waiting_.end());
                     });
  }

  const Forest* forest_ = nullptr;
  std::vector<Waiting> waiting_; // a heap
};

} // namespace beamwood
