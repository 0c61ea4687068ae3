// Queries and a tree in, the true best k labels of each query out: best-first search, without a beam.
//
// It rests on activations that only shrink a score: no label below a node can beat the node itself. The best open node
// is opened until the best thing left is a label. At equal scores nodes are opened before labels are given out, so
// that a tie is settled by the order law and not by the way it was found. With a filter, nodes that it does not enter
// are as if they were not in the tree.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include "beamwood/beam.hpp"
#include "beamwood/filter.hpp"
#include "beamwood/thread_open.hpp"

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

class ExactSearch {
public:
  Work work;

  bool run(const Forest& forest, std::span<const Query> queries, const SearchOptions& options, const Workers& workers,
           std::int64_t* labels, float* scores, const Filter* filter = nullptr) {
    work = {};
    std::vector<Worker> scratch(workers.threads);
    std::atomic<bool> sound{true};
    parallel_for(workers, queries.size(), [&](std::size_t q, unsigned worker) {
      if (sound &&
          !search(forest, queries[q], options, filter, scratch[worker], labels + q * options.k, scores + q * options.k))
        sound = false;
    });
    for (const Worker& worker : scratch) work += worker.runner.work, work += worker.opener.work;
    return sound;
  }

private:
  // A node to open or a label to give out, with the best score that can come of it.
  struct Entry {
    std::uint64_t rank; // the order law's score part, then 0 for nodes and 1 for labels
    std::uint32_t id;
    std::uint32_t layer;
    std::uint32_t parent; // the number that the opener gave its parent (threaded layout)
    float score;          // along the path, before exp

    bool operator<(const Entry& other) const noexcept { // std::priority_queue gives the greatest first
      return rank != other.rank ? rank > other.rank : id > other.id;
    }
  };
  struct Worker {
    BlockRunner runner;
    ThreadedOpener opener;
    std::vector<float> scores;
  };

  static Entry entry(const Forest& forest, float score, bool is_label, std::uint32_t id, std::uint32_t layer,
                     std::uint32_t parent) {
    const Key key = key_of(leaf_score(forest.activation.path, score), 0);
    return {key >> 31 | (is_label ? 1u : 0u), id, layer, parent, score};
  }

  static bool search(const Forest& forest, const Query& query, const SearchOptions& options, const Filter* filter,
                     Worker& worker, std::int64_t* labels, float* scores) {
    const Tree& tree = forest.trees[0];
    std::priority_queue<Entry> queue;
    queue.push(entry(forest, forest.activation.root_score(), false, 0, 0, 0));
    worker.opener.start(tree, query);
    std::uint32_t given = 0;
    while (given < options.k && !queue.empty()) {
      const Entry best = queue.top();
      queue.pop();
      if (best.rank & 1) {
        labels[given] = best.id;
        scores[given++] = score_of(key_of(leaf_score(forest.activation.path, best.score), best.id));
      } else if (!open(forest, tree, best, query, options, filter, worker, queue)) {
        return false;
      }
    }
    for (; given < options.k; ++given) {
      labels[given] = -1;
      scores[given] = -std::numeric_limits<float>::infinity();
    }
    return true;
  }

  static bool open(const Forest& forest, const Tree& tree, const Entry& node, const Query& query,
                   const SearchOptions& options, const Filter* filter, Worker& worker,
                   std::priority_queue<Entry>& queue) {
    if (node.layer >= tree.layers.size()) return false;
    const TreeLayer& layer = tree.layers[node.layer];
    Siblings siblings;
    if (node.id >= layer.shape.parents() || !layer.shape.children(node.id, siblings)) return false;
    worker.scores.resize(std::max<std::size_t>(worker.scores.size(), siblings.width));
    std::uint32_t number = 0;
    if (!evaluate(forest, tree, node, siblings, query, options, worker, number)) return false;
    for (std::uint32_t c = 0; c < siblings.width; ++c) {
      const std::uint32_t child = siblings.begin + c;
      if (filter && !filter->enters(0, node.layer, child)) continue;
      const std::uint32_t label = layer.shape.label.empty() ? kNoLabel : layer.shape.label[child];
      if (label != kNoLabel && label >= forest.labels) return false;
      const bool is_label = label != kNoLabel;
      queue.push(entry(forest, worker.scores[c], is_label, is_label ? label : child, node.layer + 1, number));
    }
    return true;
  }

  // Fills worker.scores with the scores of a node's children.
  static bool evaluate(const Forest& forest, const Tree& tree, const Entry& node, const Siblings& siblings,
                       const Query& query, const SearchOptions& options, Worker& worker, std::uint32_t& number) {
    const TreeLayer& layer = tree.layers[node.layer];
    const Kernels& kernels = *kernels_for(options.isa);
    if (forest.layout != Layout::threaded) {
      const Block block{&query, node.score, worker.scores.data()};
      const Matcher matcher = options.choose ? quickest(layer, forest.layout, query) : options.matcher;
      return worker.runner.run(forest, layer, node.id, {&block, 1}, matcher, kernels);
    }
    if (!worker.opener.find(tree, node.layer, node.id, node.parent, number)) return false;
    const float* const sums = worker.opener.add_up(tree, node.layer, number, kernels);
    if (!sums) return false;
    const float* const bias = layer.shape.bias.empty() ? nullptr : layer.shape.bias.data() + siblings.begin;
    scores_of_children(kernels, forest.activation, sums, bias, siblings.width, node.score, worker.scores.data());
    return true;
  }
};

} // namespace beamwood
