// Queries, a forest and a filter in, the best k allowed labels of each query out: beam search that goes on.
//
// Nodes that the filter does not enter are as if they were not in the tree. Nodes that were met but found no place in
// the beam wait in their layer, and while a tree has reached fewer than k labels, the best node that waits in the
// deepest layer where any does is opened too. So k labels come back when the tree has them, and each opening brings at
// least one: every node entered has an allowed label below it.
//
// A score is its path's alone, so no filter changes a bit of it. Queries are walked one at a time, in any layout. In the
// cascade one the usual walk comes first: it keeps no waiting nodes and stops at its bound, and mostly it is enough.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/answers.hpp"
#include "beamwood/engine/cascade_open.hpp"
#include "beamwood/engine/exact.hpp"
#include "beamwood/engine/filter.hpp"

namespace beamwood {

// The walk of one query at a time; scratch memory of one worker.
class FilteredWalk {
public:
  BlockRunner runner;
  CascadeOpener opener;
  CascadeWalk cascade;

  // Fills one row of the answer. False: the model's arrays are damaged.
  bool run(const Forest& forest, const Filter& filter, const Query& query, const SearchOptions& options,
           std::int64_t* labels, float* scores) {
    forest_ = &forest, filter_ = &filter, query_ = &query, options_ = &options;
    kernels_ = kernels_for(options.isa);
    answers_.clear();
    best_.reset(options.k);
    for (tree_ = 0; tree_ < forest.trees.size(); ++tree_) {
      bool enough = false;
      if (forest.layout == Layout::cascade && !reach_cascade(enough)) return false;
      if (!enough && !reach()) return false;
    }
    if (!alone()) merge_trees(answers_, forest.trees.size(), options.k, best_);
    write_row(best_, options.k, labels, scores);
    return true;
  }

private:
  // A node that was met and not yet opened.
  struct Waiting {
    Key key;
    std::uint32_t parent; // the number that the opener gave its parent

    bool operator<(const Waiting& other) const noexcept { return key > other.key; } // heaps give the best first
  };

  bool alone() const noexcept { return forest_->trees.size() == 1; }
  const Tree& tree() const noexcept { return forest_->trees[tree_]; }

  // The usual walk. Where it reached too few labels, what it found is forgotten: `reach` finds it again and goes on.
  bool reach_cascade(bool& enough) {
    const std::size_t before = answers_.size();
    if (!cascade.run(*forest_, tree_, *query_, options_->beam, options_->bound, *kernels_, answers_,
                     alone() ? &best_ : nullptr, filter_))
      return false;
    const std::size_t found = alone() ? best_.ranked().size() : answers_.size() - before;
    enough = found >= std::min<std::uint64_t>(options_->k, filter_->allowed());
    if (!enough) {
      best_.reset(options_->k);
      answers_.resize(before);
    }
    return true;
  }

  bool reach() {
    const std::size_t layers = tree().layers.size();
    if (waiting_.size() < layers) waiting_.resize(layers);
    for (auto& layer : waiting_) layer.clear();
    found_ = 0;
    opener.start(tree(), *query_);
    beam_.assign(1, {key_of(forest_->activation.root_score(), 0), 0});
    for (std::size_t l = 0; l < layers; ++l) {
      if (!open_beam(l)) return false;
      take_beam(waiting_[l]);
    }
    return go_on();
  }

  // The best b that wait in a layer become the beam, in rank order; the rest stay, as a heap.
  void take_beam(std::vector<Waiting>& waiting) {
    beam_.clear();
    std::make_heap(waiting.begin(), waiting.end());
    while (beam_.size() < options_->beam && !waiting.empty()) beam_.push_back(best_of(waiting));
  }

  static Waiting best_of(std::vector<Waiting>& waiting) {
    std::pop_heap(waiting.begin(), waiting.end());
    const Waiting best = waiting.back();
    waiting.pop_back();
    return best;
  }

  // Rows are found one node ahead of the sums.
  bool open_beam(std::size_t l) {
    std::uint32_t number = 0, next = 0;
    if (!beam_.empty() && !find(l, beam_[0], next)) return false;
    for (std::size_t i = 0; i < beam_.size(); ++i) {
      number = next;
      if (i + 1 < beam_.size() && !find(l, beam_[i + 1], next)) return false;
      if (beaten(l, beam_[i])) break; // and so are those after it
      if (!open(l, beam_[i], number)) return false;
    }
    return true;
  }

  bool go_on() {
    for (std::size_t l = tree().layers.size(); found_ < options_->k && l > 0;) {
      auto& waiting = waiting_[l - 1];
      if (waiting.empty()) {
        --l;
        continue;
      }
      const Waiting node = best_of(waiting);
      const std::size_t before = waiting_[l].size();
      std::uint32_t number = 0;
      if (!find(l, node, number) || !open(l, node, number)) return false;
      for (std::size_t end = before + 1; end <= waiting_[l].size(); ++end)
        std::push_heap(waiting_[l].begin(), waiting_[l].begin() + static_cast<std::ptrdiff_t>(end));
      if (!waiting_[l].empty()) ++l;
    }
    return true;
  }

  // In the last layer of a tree that is alone: k labels are there, and none below this node can pass the last of them.
  bool beaten(std::size_t l, const Waiting& node) noexcept {
    if (l + 1 != tree().layers.size() || !alone() || !forest_->activation.only_shrinks()) return false;
    best_.tighten();
    return key_of(leaf_score(forest_->activation.path, score_of(node.key)), 0) >> 32 > best_.bar() >> 32;
  }

  bool find(std::size_t l, const Waiting& node, std::uint32_t& number) {
    return forest_->layout != Layout::cascade ||
           opener.find(tree(), l, id_of(node.key), node.parent, *kernels_, number);
  }

  // Scores a node's children, which are in layer l: labels are answers, inner nodes wait.
  bool open(std::size_t l, const Waiting& node, std::uint32_t number) {
    const TreeLayer& layer = tree().layers[l];
    Siblings siblings;
    if (id_of(node.key) >= layer.shape.parents() || !layer.shape.children(id_of(node.key), siblings)) return false;
    if (scores_.size() < siblings.width) scores_.resize(std::max<std::size_t>(siblings.width, kMaskWidth));
    if (!score_children(l, layer, siblings, node, number)) return false;
    bool sound = true;
    filter_->each(tree_, l, siblings,
                  [&](std::uint32_t c) { sound = sound && offer(l, layer, siblings.begin + c, scores_[c], number); });
    return sound;
  }

  bool score_children(std::size_t l, const TreeLayer& layer, const Siblings& siblings, const Waiting& node,
                      std::uint32_t number) {
    const float score = score_of(node.key);
    if (forest_->layout != Layout::cascade) {
      const Block block{query_, score, scores_.data()};
      const Matcher matcher = options_->choose ? quickest(layer, forest_->layout, *query_) : options_->matcher;
      return runner.run(*forest_, layer, id_of(node.key), {&block, 1}, matcher, *kernels_);
    }
    const float* const sums = opener.add_up(tree(), l, number, *kernels_);
    if (!sums) return false;
    const float* const bias = layer.shape.bias.empty() ? nullptr : layer.shape.bias.data() + siblings.begin;
    scores_of_children(*kernels_, forest_->activation, sums, bias, siblings.width, score, scores_.data());
    return true;
  }

  // False: the label does not exist, or an inner node has no layer below it.
  bool offer(std::size_t l, const TreeLayer& layer, std::uint32_t node, float score, std::uint32_t number) {
    const std::uint32_t label = layer.shape.label.empty() ? kNoLabel : layer.shape.label[node];
    if (label == kNoLabel) {
      if (l + 1 == tree().layers.size()) return false;
      waiting_[l].push_back({key_of(score, node), number});
      return true;
    }
    if (label >= forest_->labels) return false;
    ++found_;
    const float shown = leaf_score(forest_->activation.path, score);
    if (alone()) best_.offer(key_of(shown, label));
    else answers_.push_back({label, shown});
    return true;
  }

  const Forest* forest_ = nullptr;
  const Filter* filter_ = nullptr;
  const Query* query_ = nullptr;
  const SearchOptions* options_ = nullptr;
  const Kernels* kernels_ = nullptr;
  std::size_t tree_ = 0;
  std::uint64_t found_ = 0;                   // labels that this tree has reached
  std::vector<std::vector<Waiting>> waiting_; // a layer
  std::vector<Waiting> beam_;
  std::vector<float> scores_;
  std::vector<Answer> answers_;
  TopK best_;
};

// Scratch memory of one call; kept and reused from call to call, never shared by two at once.
class FilteredSearch {
public:
  Work work;

  bool run(const Forest& forest, const Filter& filter, std::span<const Query> queries, const SearchOptions& options,
           const Workers& workers, std::int64_t* labels, float* scores) {
    if (walks_.size() < workers.threads) walks_.resize(workers.threads);
    for (FilteredWalk& walk : walks_) walk.runner.work = walk.opener.work = walk.cascade.work = {};
    std::atomic<bool> sound{true};
    parallel_for(workers, (queries.size() + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
      for (std::size_t q = task * kRun; q < std::min(queries.size(), (task + 1) * kRun) && sound; ++q)
        if (!walks_[worker].run(forest, filter, queries[q], options, labels + q * options.k, scores + q * options.k))
          sound = false;
    });
    work = {};
    for (const FilteredWalk& walk : walks_) {
      work += walk.runner.work;
      work += walk.opener.work;
      work += walk.cascade.work;
    }
    return sound;
  }

private:
  static constexpr std::size_t kRun = 16; // queries a task
  std::vector<FilteredWalk> walks_;
};

} // namespace beamwood
