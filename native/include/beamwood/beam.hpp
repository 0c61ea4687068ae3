// Queries and a forest in, the best k labels of each query out: beam search, Algorithm 1, layer by layer.
//
// Rules where the paper is silent: a label leaf reached early joins the row's answers and takes no place in the beam;
// a score of 0 is a candidate like any other; the last layer keeps k of all children of the beam. Several trees: each
// gives every label it reached, scores are summed in tree order from +0 and divided once by the number of trees.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/answers.hpp"
#include "beamwood/batch.hpp"
#include "beamwood/choose.hpp"
#include "beamwood/thread_walk.hpp"
#include "beamwood/topk.hpp"

namespace beamwood {

struct SearchOptions {
  std::uint32_t k = 10, beam = 10;
  bool choose = true;                // let the engine choose a matcher for each layer
  Matcher matcher = Matcher::binary; // otherwise this one
  Isa isa = Isa::scalar;
  bool sort_blocks = true;               // Algorithm 3's sort; off only to measure what it brings
  bool bound = true;                     // the exact bound of threaded search; off only to measure what it brings
  std::uint64_t dense_bytes = 64u << 20; // what `auto` may spend on dense lookups
};

struct LayerChoice {
  std::uint32_t tree, layer;
  Matcher matcher;
  BlockStatistics statistics;
};

// Scratch memory of one call; kept and reused from call to call, never shared by two at once.
class BeamSearch {
public:
  Work work;
  std::vector<LayerChoice> choices; // of the first slice of the batch

  // labels and scores have room for queries.size() * k, are filled in rank order and padded with -1 and -inf.
  // False: the model's arrays are damaged.
  bool run(const Forest& forest, std::span<const Query> queries, const SearchOptions& options, const Workers& workers,
           std::int64_t* labels, float* scores) {
    work = {};
    choices.clear();
    if (runners_.size() < workers.threads) runners_.resize(workers.threads);
    if (rankers_.size() < workers.threads) rankers_.resize(workers.threads);
    for (BlockRunner& runner : runners_) runner.work = {};
    if (forest.layout == Layout::threaded) return run_threaded(forest, queries, options, workers, labels, scores);
    std::size_t step = slice_size(forest, options);
    for (std::size_t at = 0; at < queries.size();) {
      const auto slice = queries.subspan(at, std::min(step, queries.size() - at));
      try {
        if (!run_slice(forest, slice, options, workers, labels + at * options.k, scores + at * options.k)) return false;
      } catch (const TooWide&) {
        step = std::max<std::size_t>(1, slice.size() / 8);
        continue;
      }
      at += slice.size();
    }
    for (const BlockRunner& runner : runners_) work += runner.work;
    return true;
  }

private:
  struct Ranker {
    TopK beam, answers;
  };

  // Thrown when the chunks that a slice meets are so much wider than average that its scores would fill the memory.
  struct TooWide {};
  static constexpr std::uint64_t kMostScores = 64u << 20;

  // Queries evaluated together: as many as keep the scores of a layer within some 16 MiB, if chunks are of like width.
  static std::size_t slice_size(const Forest& forest, const SearchOptions& options) {
    double most = 1;
    for (const Tree& tree : forest.trees)
      for (const TreeLayer& layer : tree.layers) {
        const double parents = layer.shape.parents();
        most = std::max(most, std::min<double>(options.beam, parents) * layer.shape.nodes / parents);
      }
    return static_cast<std::size_t>(std::clamp((4 << 20) / most, 1.0, 16384.0));
  }

  // Threaded search keeps nothing between queries, so each is walked on its own.
  bool run_threaded(const Forest& forest, std::span<const Query> queries, const SearchOptions& options,
                    const Workers& workers, std::int64_t* labels, float* scores) {
    if (walks_.size() < workers.threads) walks_.resize(workers.threads);
    for (ThreadedWalk& walk : walks_) walk.work = {};
    const Kernels& kernels = *kernels_for(options.isa);
    const bool alone = forest.trees.size() == 1;
    std::atomic<bool> sound{true};
    parallel_for(workers, (queries.size() + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
      std::vector<Answer> answers;
      TopK& best = rankers_[worker].answers;
      for (std::size_t q = task * kRun; q < std::min(queries.size(), (task + 1) * kRun) && sound; ++q) {
        best.reset(options.k);
        answers.clear();
        for (std::size_t t = 0; t < forest.trees.size(); ++t)
          if (!walks_[worker].run(forest, t, queries[q], options.beam, options.bound, kernels, answers,
                                  alone ? &best : nullptr))
            sound = false;
        if (!alone) merge_trees(answers, forest.trees.size(), options.k, best);
        write_row(best, options.k, labels + q * options.k, scores + q * options.k);
      }
    });
    for (const ThreadedWalk& walk : walks_) work += walk.work;
    return sound;
  }

  bool run_slice(const Forest& forest, std::span<const Query> queries, const SearchOptions& options,
                 const Workers& workers, std::int64_t* labels, float* scores) {
    answers_.resize(std::max(answers_.size(), queries.size()));
    for (std::size_t q = 0; q < queries.size(); ++q) answers_[q].clear();
    for (std::uint32_t t = 0; t < forest.trees.size(); ++t)
      if (!run_tree(forest, t, queries, options, workers, labels, scores)) return false;
    if (forest.trees.size() > 1) {
      parallel_for(workers, queries.size(), [&](std::size_t q, unsigned worker) {
        merge_trees(answers_[q], forest.trees.size(), options.k, rankers_[worker].answers);
        write_row(rankers_[worker].answers, options.k, labels + q * options.k, scores + q * options.k);
      });
    }
    return true;
  }

  bool run_tree(const Forest& forest, std::uint32_t t, std::span<const Query> queries, const SearchOptions& options,
                const Workers& workers, std::int64_t* labels, float* scores) {
    const Tree& tree = forest.trees[t];
    const bool alone = forest.trees.size() == 1;
    beams_.resize(std::max(beams_.size(), queries.size()));
    for (std::size_t q = 0; q < queries.size(); ++q) beams_[q].assign(1, key_of(forest.activation.root_score(), 0));
    for (std::uint32_t l = 0; l < tree.layers.size(); ++l) {
      const TreeLayer& layer = tree.layers[l];
      if (!open_beams(layer, queries.size())) return false;
      const Matcher matcher = options.choose ? chosen(forest, t, l, queries, options, workers) : options.matcher;
      if (!evaluator_.evaluate(forest, layer, queries, open_, scores_, matcher, *kernels_for(options.isa),
                               options.sort_blocks, workers, runners_))
        return false;
      const bool last = l + 1 == tree.layers.size();
      std::atomic<bool> sound{true};
      parallel_for(workers, (queries.size() + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
        for (std::size_t q = task * kRun; q < std::min(queries.size(), (task + 1) * kRun); ++q) {
          Ranker& ranker = rankers_[worker];
          const bool good = last && alone ? finish(forest, layer, q, options.k, ranker.answers)
                                          : advance(forest, layer, q, options.beam, last, ranker.beam);
          if (!good) sound = false;
          else if (last && alone) write_row(ranker.answers, options.k, labels + q * options.k, scores + q * options.k);
        }
      });
      if (!sound) return false;
    }
    return true;
  }

  // Lists the nodes to open, query by query, and where their children's scores go.
  bool open_beams(const TreeLayer& layer, std::size_t queries) {
    open_.clear();
    open_begin_.assign(1, 0);
    std::uint64_t at = 0;
    for (std::size_t q = 0; q < queries; ++q) {
      for (const Key key : beams_[q]) {
        Siblings siblings;
        const std::uint32_t node = id_of(key);
        if (node >= layer.shape.parents() || !layer.shape.children(node, siblings)) return false;
        open_.push_back({node, static_cast<std::uint32_t>(q), score_of(key), siblings.begin, siblings.width, at});
        at += siblings.width;
      }
      open_begin_.push_back(open_.size());
    }
    if (at > kMostScores && queries > 1) throw TooWide{};
    if (scores_.size() < at) scores_.resize(at);
    return true;
  }

  Matcher chosen(const Forest& forest, std::uint32_t t, std::uint32_t l, std::span<const Query> queries,
                 const SearchOptions& options, const Workers& workers) {
    const TreeLayer& layer = forest.trees[t].layers[l];
    const bool chunked = forest.layout == Layout::chunk;
    BlockStatistics s;
    s.blocks = static_cast<double>(open_.size());
    s.chunks = chunked ? layer.shape.parents() : layer.shape.nodes;
    s.rows = static_cast<double>(chunked ? layer.chunks.feature.size() : layer.columns.feature.size()) / s.chunks;
    if (!chunked) s.blocks *= static_cast<double>(layer.shape.nodes) / layer.shape.parents();
    std::uint64_t nonzeros = 0;
    const std::size_t sampled = std::min<std::size_t>(queries.size(), 256);
    for (std::size_t q = 0; q < sampled; ++q) nonzeros += queries[q].count;
    s.query_nonzeros = static_cast<double>(nonzeros) / static_cast<double>(sampled);
    s.has_index = chunked ? layer.chunks.has_index() : layer.columns.has_index();
    s.dense_fits = 4ull * forest.features * workers.threads <= options.dense_bytes;
    const Matcher matcher = choose_matcher(s);
    if (std::none_of(choices.begin(), choices.end(), [&](auto& c) { return c.tree == t && c.layer == l; }))
      choices.push_back({t, l, matcher, s});
    return matcher;
  }

  // Calls visit(node, label, score) for all children of a query's open nodes. False: damaged.
  template <class Visit>
  bool each_child(const Forest& forest, const TreeLayer& layer, std::size_t q, Visit&& visit) const {
    const bool labelled = !layer.shape.label.empty();
    for (std::size_t i = open_begin_[q]; i < open_begin_[q + 1]; ++i) {
      const OpenNode& open = open_[i];
      for (std::uint32_t c = 0; c < open.width; ++c) {
        const std::uint32_t node = open.first_child + c;
        const std::uint32_t label = labelled ? layer.shape.label[node] : kNoLabel;
        if (label != kNoLabel && label >= forest.labels) return false;
        visit(node, label, scores_[open.scores_at + c]);
      }
    }
    return true;
  }

  // Inner nodes compete for the next beam, labels go to the answers.
  bool advance(const Forest& forest, const TreeLayer& layer, std::size_t q, std::uint32_t beam, bool last,
               TopK& ranker) {
    ranker.reset(beam);
    bool sound = true;
    const bool followed = each_child(forest, layer, q, [&](std::uint32_t node, std::uint32_t label, float score) {
      if (label != kNoLabel) answers_[q].push_back({label, leaf_score(forest.activation.path, score)});
      else if (last) sound = false;
      else ranker.offer(key_of(score, node));
    });
    if (!last) beams_[q] = ranker.ranked();
    return followed && sound;
  }

  // One tree's last layer: k of its labels and of those reached early. Most children fall to the bar by score alone,
  // before their label is read.
  bool finish(const Forest& forest, const TreeLayer& layer, std::size_t q, std::uint32_t k, TopK& ranker) const {
    if (layer.shape.label.empty()) return false;
    ranker.reset(k);
    for (const Answer& answer : answers_[q]) ranker.offer(key_of(answer.score, answer.label));
    for (std::size_t i = open_begin_[q]; i < open_begin_[q + 1]; ++i) {
      const OpenNode& open = open_[i];
      for (std::uint32_t c = 0; c < open.width; ++c) {
        const float score = leaf_score(forest.activation.path, scores_[open.scores_at + c]);
        if (key_of(score, 0) >= ranker.bar()) continue;
        const std::uint32_t label = layer.shape.label[open.first_child + c];
        if (label >= forest.labels) return false;
        ranker.offer(key_of(score, label));
      }
    }
    return true;
  }

  static constexpr std::size_t kRun = 64; // queries a task when ranking

  LayerEvaluator evaluator_;
  std::vector<BlockRunner> runners_;
  std::vector<Ranker> rankers_;
  std::vector<ThreadedWalk> walks_;
  std::vector<std::vector<Key>> beams_;
  std::vector<std::vector<Answer>> answers_;
  std::vector<OpenNode> open_;
  std::vector<std::size_t> open_begin_;
  std::vector<float> scores_;
};

} // namespace beamwood
