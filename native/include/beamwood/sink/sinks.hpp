// The labels that trees reach in, the best k of a query out: sinks of one tree, and of several trees whose labels are
// summed as they come. Where a bound holds, sum_of_trees.hpp has a quicker one for several.
//
// The law of several trees: a label's scores are summed in tree order from +0, a tree that did not reach it adds nothing,
// and the sum is divided once by the number of trees.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "beamwood/engine/scorer.hpp"
#include "beamwood/sink/label_sums.hpp"
#include "beamwood/sink/topk.hpp"

namespace beamwood {

// The row of one query: k labels and scores in rank order, padded with -1 and -inf.
inline void write_row(TopK& ranker, std::uint32_t k, std::int64_t* labels, float* scores) {
  const std::vector<Key>& ranked = ranker.ranked();
  for (std::uint32_t i = 0; i < k; ++i) {
    const bool there = i < ranked.size();
    labels[i] = there ? std::int64_t{id_of(ranked[i])} : -1;
    scores[i] = there ? score_of(ranked[i]) : -std::numeric_limits<float>::infinity();
  }
}

// A node that has been met, and the score along its path.
struct Met {
  std::uint32_t tree, layer; // of its children
  std::uint32_t node;
  float score;
};

// Scores all children of a node: inner(node, score) gets those that have children of their own, leaf(label, child, shown
// score) the labels. False: damaged.
template <class Inner, class Leaf>
bool sort_out(const Forest& forest, const Met& met, const Children& children, Scorer& scorer, Inner&& inner,
              Leaf&& leaf) {
  const TreeLayer& layer = forest.trees[met.tree].layers[met.layer];
  const bool last = met.layer + 1 == forest.trees[met.tree].layers.size();
  const float* const scores = scorer.all(layer.shape, children);
  bool sound = true;
  scorer.each_allowed(met.tree, met.layer, children.siblings, [&](std::uint32_t c) {
    std::uint32_t label;
    const Child kind = child_at(forest, layer, last, children.siblings.begin + c, label);
    if (kind == Child::inner) inner(children.siblings.begin + c, scores[c]);
    else if (kind == Child::leaf) leaf(label, c, scorer.shown(scores[c]));
    else sound = false;
  });
  return sound;
}

// The mean of a sum over several trees. + 0: a tiny negative one may round to -0, and the order law has one zero.
inline float mean_score(float sum, std::size_t trees) noexcept { return sum / static_cast<float>(trees) + 0.0f; }

struct Answer {
  std::uint32_t label;
  float score;
};

// Several trees: all labels that are reached are kept, and added up at the end.
class AllAnswers {
public:
  static constexpr bool puts_off = false;

  void reset(const Forest& forest, std::uint32_t) {
    forest_ = &forest;
    answers_.clear();
    enter_tree();
  }
  static bool beaten(float) noexcept { return false; }
  static void put_off(const Met&) noexcept {}
  static bool count_put_off(Scorer&) noexcept { return true; }

  // How many labels the tree that was entered last has reached.
  void enter_tree() noexcept { first_ = answers_.size(); }
  std::uint64_t reached() const noexcept { return answers_.size() - first_; }
  void forget_tree() { answers_.resize(first_); }

  void add(const Answer& answer) { answers_.push_back(answer); }
  std::span<const Answer> answers() const noexcept { return answers_; }

  template <class Inner> bool take(const Met& met, const Children& children, Scorer& scorer, Key, Inner&& inner) {
    return sort_out(*forest_, met, children, scorer, inner,
                    [this](std::uint32_t label, std::uint32_t, float score) { add({label, score}); });
  }

private:
  const Forest* forest_ = nullptr;
  std::vector<Answer> answers_; // in tree order
  std::size_t first_ = 0;
};

// Adds up the answers of several trees.
class SumOfAnswers {
public:
  TopK best;

  void run(std::span<const Answer> answers, std::size_t trees, std::uint32_t k) {
    sums_.reset(answers.size());
    for (const Answer& answer : answers) sums_.add(answer.label, answer.score);
    best.reset(k);
    sums_.take_all([&](std::uint32_t label, float sum) {
      const Key key = key_of(mean_score(sum, trees), label);
      if (key < best.bar()) best.offer(key);
    });
  }

private:
  LabelSums sums_;
};

// One tree: its labels compete at once, and the k-th best is the bar for all that follow.
class BestLabels {
public:
  TopK best;

  void reset(const Forest& forest, std::uint32_t k) {
    forest_ = &forest, k_ = k;
    best.reset(k);
  }
  static constexpr bool puts_off = false;
  static void put_off(const Met&) noexcept {}
  static bool count_put_off(Scorer&) noexcept { return true; }

  // How many labels the tree has reached, up to k.
  static void enter_tree() noexcept {}
  std::uint64_t reached() { return best.ranked().size(); }
  void forget_tree() { best.reset(k_); }

  // Whether no label below a node that could show at most this much can be among the best.
  bool beaten(float shown) noexcept {
    best.tighten();
    return worse(key_of(shown, 0), best.bar());
  }

  // Takes the labels among a node's children; inner ones are given to inner(node, score). False: damaged.
  template <class Inner>
  bool take(const Met& met, const Children& children, Scorer& scorer, Key node_bar, Inner&& inner) {
    const TreeLayer& layer = forest_->trees[0].layers[met.layer];
    const bool last = met.layer + 1 == forest_->trees[0].layers.size();
    bool sound = true;
    best.tighten();
    scorer.each(0, met.layer, children, {node_bar, best.bar()}, [&](std::uint32_t c, float score) {
      const std::uint32_t node = children.siblings.begin + c;
      if (last && worse_or_same(key_of(scorer.shown(score), 0), best.bar())) return; // before its label is read
      std::uint32_t label;
      const Child kind = child_at(*forest_, layer, last, node, label);
      if (kind == Child::inner) inner(node, score);
      else if (kind == Child::leaf) best.offer(key_of(scorer.shown(score), label));
      else sound = false;
    });
    return sound;
  }

private:
  const Forest* forest_ = nullptr;
  std::uint32_t k_ = 1;
};

} // namespace beamwood
