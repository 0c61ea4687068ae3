// Queries and a tree in, the true best k labels of each query out: best-first search, without a beam.
//
// It rests on activations that only shrink a score: no label below a node can beat the node itself. The best waiting node
// is opened until it falls short of the k-th best label found. At equal scores it is opened, so that a tie is settled by
// the order law and not by the way it was found. Children that fall short do not wait at all, and once there are k
// labels most are seen to do so from their sums. With a filter, nodes that it does not enter are as if they were not in
// the tree.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/beam.hpp"
#include "beamwood/engine/cascade_open.hpp"
#include "beamwood/engine/filter.hpp"

namespace beamwood {

// The matcher for one query alone in a layer.
inline Matcher quickest(const TreeLayer& layer, Layout layout, const Query& query) noexcept {
  BlockStatistics s;
  const bool chunked = layout == Layout::chunk;
  s.chunks = chunked ? layer.shape.parents() : layer.shape.nodes;
  s.rows = static_cast<double>(chunked ? layer.chunks.feature.size() : layer.columns.feature.size()) / s.chunks;
  s.query_nonzeros = query.count;
  s.has_index = chunked ? layer.chunks.has_index() : layer.columns.has_index();
  s.dense_fits = false;
  return choose_matcher(s);
}

// The search of one query at a time; its scratch memory is kept from query to query.
class ExactWalk {
public:
  BlockRunner runner;
  CascadeOpener opener;

  bool run(const Forest& forest, const Query& query, const SearchOptions& options, const Filter* filter,
           std::int64_t* labels, float* scores) {
    forest_ = &forest, query_ = &query, options_ = &options, filter_ = filter;
    kernels_ = kernels_for(options.isa);
    best_.reset(options.k);
    waiting_.assign(1, {key_of(forest.activation.root_score(), 0), 0, 0, kNotFound});
    opener.start(tree(), query);
    while (!waiting_.empty()) {
      std::pop_heap(waiting_.begin(), waiting_.end());
      Waiting node = waiting_.back();
      waiting_.pop_back();
      if (beaten(forest, node.score(), true, best_)) break; // and so are all that wait
      if (!find(node) || !find_next(node) || !open(node)) return false;
    }
    write_row(best_, options.k, labels, scores);
    return true;
  }

private:
  static constexpr std::uint32_t kNotFound = 0xffffffffu;
  static constexpr std::size_t kShortList = 48;

  // A node to open, with the score along its path. What lies below it is at best as good.
  struct Waiting {
    Key key;
    std::uint32_t layer;  // of its children
    std::uint32_t parent; // the number that the opener gave its parent (cascade layout)
    std::uint32_t number; // and the one that it got itself, once its rows are found

    float score() const noexcept { return score_of(key); }
    bool operator<(const Waiting& other) const noexcept { return key > other.key; } // a heap gives the greatest first
  };

  const Tree& tree() const noexcept { return forest_->trees[0]; }
  bool cascade() const noexcept { return forest_->layout == Layout::cascade; }

  // Finds the rows of a node in its chunk, which calls for them.
  bool find(Waiting& node) {
    if (node.layer >= tree().layers.size()) return false;
    return !cascade() || node.number != kNotFound ||
           opener.find(tree(), node.layer, id_of(node.key), node.parent, *kernels_, node.number);
  }

  // The rows of the node that will most likely be opened next are found ahead: memory brings them while sums are added.
  // A long list keeps memory busy by itself.
  bool find_next(const Waiting& node) {
    if (!cascade() || waiting_.empty() || beaten(*forest_, waiting_.front().score(), true, best_)) return true;
    return opener.rows(node.layer, node.number) >= kShortList || find(waiting_.front());
  }

  bool open(const Waiting& node) {
    const TreeLayer& layer = tree().layers[node.layer];
    Siblings siblings;
    if (id_of(node.key) >= layer.shape.parents() || !layer.shape.children(id_of(node.key), siblings)) return false;
    scores_.resize(std::max<std::size_t>(scores_.size(), siblings.width));
    best_.tighten();
    return cascade() ? open_cascade(node, layer, siblings) : open_chunk(node, layer, siblings);
  }

  bool open_chunk(const Waiting& node, const TreeLayer& layer, const Siblings& siblings) {
    const Block block{query_, node.score(), scores_.data()};
    const Matcher matcher = options_->choose ? quickest(layer, forest_->layout, *query_) : options_->matcher;
    return runner.run(*forest_, layer, id_of(node.key), {&block, 1}, matcher, *kernels_) &&
           take_all(node, layer, siblings);
  }

  bool open_cascade(const Waiting& node, const TreeLayer& layer, const Siblings& siblings) {
    const float* const sums = opener.add_up(tree(), node.layer, node.number, *kernels_);
    if (!sums) return false;
    const Activation& activation = forest_->activation;
    const float* const bias = layer.shape.bias.empty() ? nullptr : layer.shape.bias.data() + siblings.begin;
    if (best_.bar() == kWorstKey || siblings.width > kMaskWidth) {
      scores_of_children(*kernels_, activation, sums, bias, siblings.width, node.score(), scores_.data());
      return take_all(node, layer, siblings);
    }
    const double lowest = lowest_z(activation, node.score(), score_of(best_.bar()), true);
    std::uint32_t mask = kernels_->reaching(sums, bias, siblings.width, static_cast<float>(lowest));
    if (filter_) mask &= filter_->siblings(0, node.layer, siblings);
    for (; mask != 0; mask &= mask - 1) {
      const auto c = static_cast<std::uint32_t>(std::countr_zero(mask));
      const float z = bias ? sums[c] + bias[c] : sums[c];
      if (!take(node, layer, siblings.begin + c, combine(activation.path, node.score(), activate(activation, z))))
        return false;
    }
    return true;
  }

  bool take_all(const Waiting& node, const TreeLayer& layer, const Siblings& siblings) {
    for (std::uint32_t c = 0; c < siblings.width; ++c) {
      const std::uint32_t child = siblings.begin + c;
      if (filter_ && !filter_->enters(0, node.layer, child)) continue;
      if (!take(node, layer, child, scores_[c])) return false;
    }
    return true;
  }

  // Labels are candidates, inner nodes wait. False: the label does not exist.
  bool take(const Waiting& node, const TreeLayer& layer, std::uint32_t child, float score) {
    if (beaten(*forest_, score, true, best_)) return true;
    const std::uint32_t label = layer.shape.label.empty() ? kNoLabel : layer.shape.label[child];
    if (label == kNoLabel) {
      waiting_.push_back({key_of(score, child), node.layer + 1, node.number, kNotFound});
      std::push_heap(waiting_.begin(), waiting_.end());
      return true;
    }
    if (label >= forest_->labels) return false;
    best_.offer(key_of(leaf_score(forest_->activation.path, score), label));
    return true;
  }

  const Forest* forest_ = nullptr;
  const Query* query_ = nullptr;
  const SearchOptions* options_ = nullptr;
  const Filter* filter_ = nullptr;
  const Kernels* kernels_ = nullptr;
  std::vector<Waiting> waiting_; // a heap
  std::vector<float> scores_;
  TopK best_;
};

// Scratch memory of one call; kept and reused from call to call, never shared by two at once.
class ExactSearch {
public:
  Work work;

  // False: the model's arrays are damaged.
  bool run(const Forest& forest, std::span<const Query> queries, const SearchOptions& options, const Workers& workers,
           std::int64_t* labels, float* scores, const Filter* filter = nullptr) {
    if (walks_.size() < workers.threads) walks_.resize(workers.threads);
    for (ExactWalk& walk : walks_) walk.runner.work = walk.opener.work = {};
    std::atomic<bool> sound{true};
    parallel_for(workers, queries.size(), [&](std::size_t q, unsigned worker) {
      if (sound &&
          !walks_[worker].run(forest, queries[q], options, filter, labels + q * options.k, scores + q * options.k))
        sound = false;
    });
    work = {};
    for (const ExactWalk& walk : walks_) work += walk.runner.work, work += walk.opener.work;
    return sound;
  }

private:
  std::vector<ExactWalk> walks_;
};

} // namespace beamwood
