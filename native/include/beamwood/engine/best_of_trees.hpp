// One query and several trees in, the true best k labels of their sum out: best-first search in all trees, without beams.
//
// The law of several trees (sinks.hpp), with every label reached in every tree. In each tree the best waiting node is the
// most that a label which the tree has not given yet can score there, for activations only shrink a score. So the sum of
// the best waiting nodes is the most that a label can come to which no tree has given: the search ends once that falls
// short of the k-th best sum (the threshold algorithm of R. Fagin, A. Lotem and M. Naor, 2001). A label that one tree
// gives is looked up in the others, down its path, as long as it may still win. Bounds are added like scores, in tree
// order and in float32: rounding keeps order, so a bound is never below what it bounds, and at a tie the search goes on.
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "beamwood/engine/scorer.hpp"
#include "beamwood/layout/node.hpp"
#include "beamwood/sink/sinks.hpp"

namespace beamwood {

template <class Opener> class BestOfTrees {
public:
  TopK best;

  // The openers were started for their trees and the query. False: the model's arrays are damaged.
  bool run(const Forest& forest, std::uint32_t k, std::vector<Opener>& openers, Scorer& scorer) {
    forest_ = &forest, openers_ = openers.data(), scorer_ = &scorer;
    best.reset(k);
    met_.clear();
    fronts_.resize(forest.trees.size());
    sought_.resize(forest.trees.size());
    for (Front& front : fronts_) {
      front.waiting.assign(1, {key_of(forest.activation.root_score(), 0), 0, Opener::kUnknown});
      front.opened.clear();
      front.scores.clear();
    }
    while (may_go_on()) {
      scorer.check_stop();
      if (!open_best()) return false;
    }
    return true;
  }

private:
  // A node to open, with the score along its path.
  struct Waiting {
    Key key;
    std::uint32_t layer;  // of its children
    std::uint32_t parent; // the number that the opener gave its parent

    bool operator<(const Waiting& other) const noexcept { return key > other.key; } // a heap gives the greatest first
  };

  // A node that was opened: its children and where their scores stand.
  struct Opened {
    Siblings siblings;
    std::uint32_t number; // that the opener gave it
    std::size_t scores;
    bool given = false; // its children, to those that wait and to the answers
  };

  struct Front {
    std::vector<Waiting> waiting;                     // a heap
    std::unordered_map<std::uint64_t, Opened> opened; // by layer and node
    std::vector<float> scores;                        // of the children of what was opened
  };

  // A label on its way down one tree, as far as is known.
  struct Sought {
    std::vector<std::uint32_t> path; // its nodes, from the top
    std::size_t known;               // so many of them have scores
    float score;                     // of the last one
    std::uint32_t number;            // that the opener gave it
  };

  bool beaten(float mean) noexcept {
    best.tighten();
    return worse(key_of(mean, 0), best.bar());
  }

  // The mean of one number per tree, as the law of several trees has it.
  template <class Number> float mean_of(const Number& number) const {
    float sum = 0.0f;
    for (std::size_t t = 0; t < fronts_.size(); ++t) sum += scorer_->shown(number(t));
    return mean_score(sum, fronts_.size());
  }

  // Whether a label that no tree has given may still win. A tree where nothing waits has given them all.
  bool may_go_on() {
    for (const Front& front : fronts_)
      if (front.waiting.empty()) return false;
    return !beaten(mean_of([this](std::size_t t) { return score_of(fronts_[t].waiting.front().key); }));
  }

  // Opens the best node that waits in any tree: its inner children wait, its labels are looked up in all trees.
  bool open_best() {
    std::size_t t = 0;
    for (std::size_t other = 1; other < fronts_.size(); ++other)
      if (fronts_[other].waiting.front().key < fronts_[t].waiting.front().key) t = other;
    std::vector<Waiting>& waiting = fronts_[t].waiting;
    std::pop_heap(waiting.begin(), waiting.end());
    const Waiting node = waiting.back();
    waiting.pop_back();
    Opened* const opened = open(t, node.layer, id_of(node.key), node.parent, score_of(node.key));
    if (!opened || opened->given) return false; // in a valid tree a node has one parent
    opened->given = true;
    const Opened here = *opened; // looking up labels opens others
    const TreeLayer& layer = forest_->trees[t].layers[node.layer];
    const bool last = node.layer + 1 == forest_->trees[t].layers.size();
    bool sound = true;
    scorer_->each_allowed(t, node.layer, here.siblings, [&](std::uint32_t c) {
      std::uint32_t label;
      const Child kind = child_at(*forest_, layer, last, here.siblings.begin + c, label);
      if (kind == Child::inner) {
        waiting.push_back(
            {key_of(fronts_[t].scores[here.scores + c], here.siblings.begin + c), node.layer + 1, here.number});
        std::push_heap(waiting.begin(), waiting.end());
      }
      sound = sound && (kind == Child::inner || (kind == Child::leaf && look_up(label)));
    });
    return sound;
  }

  // The node, opened now or before; null: damaged.
  Opened* open(std::size_t t, std::size_t l, std::uint32_t node, std::uint32_t parent, float score) {
    if (l >= forest_->trees[t].layers.size()) return nullptr;
    Front& front = fronts_[t];
    const auto [found, anew] = front.opened.try_emplace(std::uint64_t{l} << 32 | node);
    Opened& out = found->second;
    if (!anew) return &out;
    if (!openers_[t].find(l, node, parent, out.number)) return nullptr;
    const Children children{openers_[t].siblings(l, out.number), openers_[t].sums(l, out.number), score};
    if (!children.sums) return nullptr;
    const float* const scores = scorer_->all(forest_->trees[t].layers[l].shape, children);
    out.siblings = children.siblings;
    out.scores = front.scores.size();
    front.scores.insert(front.scores.end(), scores, scores + out.siblings.width);
    return &out;
  }

  // Finds the sum of a label, or that it cannot win, unless it was met before.
  bool look_up(std::uint32_t label) {
    if (!met_.insert(label).second) return true;
    for (std::size_t t = 0; t < fronts_.size(); ++t) {
      if (!path_of(*forest_, t, label, sought_[t].path)) return false;
      sought_[t].known = 0, sought_[t].score = forest_->activation.root_score(), sought_[t].number = Opener::kUnknown;
      while (has_next(t) && fronts_[t].opened.contains(next_of(t)))
        if (!go_down(t)) return false;
    }
    for (std::size_t t = 0;;) {
      const float mean = mean_of([this](std::size_t u) { return sought_[u].score; });
      if (beaten(mean)) return true;
      while (t < fronts_.size() && !has_next(t)) ++t;
      if (t == fronts_.size()) {
        best.offer(key_of(mean, label));
        return true;
      }
      if (!go_down(t)) return false;
    }
  }

  bool has_next(std::size_t t) const noexcept { return sought_[t].known < sought_[t].path.size(); }
  std::uint32_t node_of(std::size_t t) const noexcept {
    return sought_[t].known == 0 ? 0 : sought_[t].path[sought_[t].known - 1];
  }
  std::uint64_t next_of(std::size_t t) const noexcept { return std::uint64_t{sought_[t].known} << 32 | node_of(t); }

  bool go_down(std::size_t t) {
    Sought& sought = sought_[t];
    const Opened* const opened = open(t, sought.known, node_of(t), sought.number, sought.score);
    if (!opened) return false;
    const std::uint32_t place = sought.path[sought.known] - opened->siblings.begin;
    if (place >= opened->siblings.width) return false;
    sought.score = fronts_[t].scores[opened->scores + place];
    sought.number = opened->number;
    ++sought.known;
    return true;
  }

  const Forest* forest_ = nullptr;
  Opener* openers_ = nullptr; // per tree
  Scorer* scorer_ = nullptr;
  std::vector<Front> fronts_;  // per tree
  std::vector<Sought> sought_; // per tree
  std::unordered_set<std::uint32_t> met_;
};

} // namespace beamwood
