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

#include "beamwood/engine/answers.hpp"
#include "beamwood/engine/batch.hpp"
#include "beamwood/engine/bound.hpp"
#include "beamwood/engine/cascade_walk.hpp"
#include "beamwood/engine/topk.hpp"
#include "beamwood/match/choose.hpp"

namespace beamwood {

struct SearchOptions {
  std::uint32_t k = 10, beam = 10;
  bool choose = true;                // let the engine choose a matcher for each layer
  Matcher matcher = Matcher::binary; // otherwise this one
  Isa isa = Isa::scalar;
  bool sort_blocks = true;               // Algorithm 3's sort; off only to measure what it brings
  bool bound = true;                     // the exact bound; off only to measure what it brings
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
    if (forest.layout == Layout::cascade) return run_cascade(forest, queries, options, workers, labels, scores);
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

  // Each query is walked on its own. A batch is walked in the order of where its queries go: the top bundle is evaluated
  // for all of them first, and those that share their best nodes come one behind the other and find them in the cache.
  bool run_cascade(const Forest& forest, std::span<const Query> queries, const SearchOptions& options,
                   const Workers& workers, std::int64_t* labels, float* scores) {
    if (walks_.size() < workers.threads) walks_.resize(workers.threads), hopes_.resize(workers.threads);
    for (CascadeWalk& walk : walks_) walk.work = {};
    bool sound = true;
    for (std::size_t at = 0; at < queries.size() && sound; at += kSlice) {
      const auto slice = queries.subspan(at, std::min(kSlice, queries.size() - at));
      const bool ordered = slice.size() > kRun && CascadeWalk::has_top(forest);
      sound = (!ordered || order_by_top(forest, slice, options, workers)) &&
              walk_slice(forest, slice, options, workers, ordered, labels + at * options.k, scores + at * options.k);
    }
    for (const CascadeWalk& walk : walks_) work += walk.work;
    return sound;
  }

  // Fills beams_ with the best nodes of the top bundle and order_ with the queries by those nodes.
  bool order_by_top(const Forest& forest, std::span<const Query> queries, const SearchOptions& options,
                    const Workers& workers) {
    const Kernels& kernels = *kernels_for(options.isa);
    beams_.resize(std::max(beams_.size(), queries.size()));
    order_.resize(queries.size());
    std::atomic<bool> sound{true};
    const std::size_t run = run_length(queries.size(), workers);
    parallel_for(workers, (queries.size() + run - 1) / run, [&](std::size_t task, unsigned worker) {
      for (std::size_t q = task * run; q < std::min(queries.size(), (task + 1) * run); ++q) {
        if (!walks_[worker].top_bundle(forest, queries[q], options.beam, kernels, beams_[q])) sound = false;
        const auto& best = beams_[q];
        const std::uint64_t first = best.empty() ? 0 : id_of(best[0]), second = best.size() < 2 ? 0 : id_of(best[1]);
        order_[q] = (first & 0xffff) << 48 | (second & 0xffff) << 32 | q;
      }
    });
    std::sort(order_.begin(), order_.end());
    return sound;
  }

  bool walk_slice(const Forest& forest, std::span<const Query> queries, const SearchOptions& options,
                  const Workers& workers, bool ordered, std::int64_t* labels, float* scores) {
    const Kernels& kernels = *kernels_for(options.isa);
    const bool alone = forest.trees.size() == 1, hopeful = options.bound && Hope::applies(forest);
    std::atomic<bool> sound{true};
    const std::size_t run = run_length(queries.size(), workers);
    parallel_for(workers, (queries.size() + run - 1) / run, [&](std::size_t task, unsigned worker) {
      std::vector<Answer> answers;
      TopK& best = rankers_[worker];
      Hope& hope = hopes_[worker];
      for (std::size_t i = task * run; i < std::min(queries.size(), (task + 1) * run) && sound; ++i) {
        const std::size_t q = ordered ? static_cast<std::uint32_t>(order_[i]) : i;
        best.reset(options.k);
        answers.clear();
        if (hopeful) hope.reset(forest.trees.size(), options.k);
        for (std::size_t t = 0; t < forest.trees.size(); ++t)
          if (!walks_[worker].run(forest, t, queries[q], options.beam, options.bound, kernels, answers,
                                  alone ? &best : nullptr, nullptr,
                                  ordered && t == 0 ? std::span<const Key>(beams_[q]) : std::span<const Key>(),
                                  hopeful ? &hope : nullptr))
            sound = false;
        if (hopeful && !hope.settle(forest, kernels, answers)) sound = false;
        if (!alone) merge_trees(answers, forest.trees.size(), options.k, best);
        write_row(best, options.k, labels + q * options.k, scores + q * options.k);
      }
    });
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
        merge_trees(answers_[q], forest.trees.size(), options.k, rankers_[worker]);
        write_row(rankers_[worker], options.k, labels + q * options.k, scores + q * options.k);
      });
    }
    return true;
  }

  bool run_tree(const Forest& forest, std::uint32_t t, std::span<const Query> queries, const SearchOptions& options,
                const Workers& workers, std::int64_t* labels, float* scores) {
    const Tree& tree = forest.trees[t];
    const bool alone = forest.trees.size() == 1;
    beams_.resize(std::max(beams_.size(), queries.size()));
    kept_.resize(std::max(kept_.size(), queries.size()));
    for (std::size_t q = 0; q < queries.size(); ++q) beams_[q].assign(1, key_of(forest.activation.root_score(), 0));
    for (std::uint32_t l = 0; l < tree.layers.size(); ++l) {
      const bool last = l + 1 == tree.layers.size();
      if (!run_layer(forest, t, l, queries, options, workers)) return false;
      each_query(workers, queries.size(), [&](std::size_t q) {
        if (last && alone) write_row(kept_[q], options.k, labels + q * options.k, scores + q * options.k);
        else if (!last) beams_[q] = kept_[q].ranked();
        return true;
      });
    }
    return true;
  }

  // Opens the beams of all queries. Where the bound holds they are opened in rounds, the best node of each query first,
  // so that blocks are still sorted by chunk and what the rounds before have beaten is left out.
  bool run_layer(const Forest& forest, std::uint32_t t, std::uint32_t l, std::span<const Query> queries,
                 const SearchOptions& options, const Workers& workers) {
    const TreeLayer& layer = forest.trees[t].layers[l];
    const bool alone = forest.trees.size() == 1, last = l + 1 == forest.trees[t].layers.size();
    const bool bounded = options.bound && bound_holds(forest, layer, last && alone);
    next_.assign(queries.size(), 0);
    for (std::size_t q = 0; q < queries.size(); ++q) {
      kept_[q].reset(last && alone ? options.k : options.beam);
      if (last && alone)
        for (const Answer& answer : answers_[q]) kept_[q].offer(key_of(answer.score, answer.label));
    }
    for (std::size_t nodes = 1;; nodes *= 2) {
      if (!open_beams(forest, layer, queries.size(), last, bounded, nodes)) return false;
      if (open_.empty()) return true;
      const Matcher matcher = options.choose ? chosen(forest, t, l, queries, options, workers) : options.matcher;
      if (!evaluator_.evaluate(forest, layer, queries, open_, scores_, matcher, *kernels_for(options.isa),
                               options.sort_blocks, workers, runners_))
        return false;
      if (!each_query(workers, queries.size(), [&](std::size_t q) {
            const bool good =
                last && alone ? finish(forest, layer, q, kept_[q]) : advance(forest, layer, q, last, kept_[q]);
            if (bounded) kept_[q].tighten();
            return good;
          }))
        return false;
    }
  }

  // Calls work(query) for all queries, side by side. False when one of them said so.
  template <class Work> static bool each_query(const Workers& workers, std::size_t queries, Work&& work) {
    std::atomic<bool> sound{true};
    parallel_for(workers, (queries + kRun - 1) / kRun, [&](std::size_t task, unsigned) {
      for (std::size_t q = task * kRun; q < std::min(queries, (task + 1) * kRun); ++q)
        if (!work(q)) sound = false;
    });
    return sound;
  }

  // Lists the next nodes to open, query by query, and where their children's scores go: all that are left, or where the
  // bound holds so many that are not beaten.
  bool open_beams(const Forest& forest, const TreeLayer& layer, std::size_t queries, bool last, bool bounded,
                  std::size_t nodes) {
    open_.clear();
    open_begin_.assign(1, 0);
    std::uint64_t at = 0;
    for (std::size_t q = 0; q < queries; ++q) {
      const std::size_t left = beams_[q].size() - next_[q];
      for (std::size_t i = 0; i < (bounded ? std::min(nodes, left) : left); ++i) {
        const Key key = beams_[q][next_[q]++];
        if (bounded && beaten(forest, score_of(key), last, kept_[q])) {
          next_[q] = beams_[q].size();
          break;
        }
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
  bool advance(const Forest& forest, const TreeLayer& layer, std::size_t q, bool last, TopK& kept) {
    bool sound = true;
    const bool followed = each_child(forest, layer, q, [&](std::uint32_t node, std::uint32_t label, float score) {
      if (label != kNoLabel) answers_[q].push_back({label, leaf_score(forest.activation.path, score)});
      else if (last) sound = false;
      else kept.offer(key_of(score, node));
    });
    return followed && sound;
  }

  // One tree's last layer: k of its labels and of those reached early. Most children fall to the bar by score alone,
  // before their label is read.
  bool finish(const Forest& forest, const TreeLayer& layer, std::size_t q, TopK& kept) const {
    if (layer.shape.label.empty()) return false;
    for (std::size_t i = open_begin_[q]; i < open_begin_[q + 1]; ++i) {
      const OpenNode& open = open_[i];
      for (std::uint32_t c = 0; c < open.width; ++c) {
        const float score = leaf_score(forest.activation.path, scores_[open.scores_at + c]);
        if (key_of(score, 0) >= kept.bar()) continue;
        const std::uint32_t label = layer.shape.label[open.first_child + c];
        if (label >= forest.labels) return false;
        kept.offer(key_of(score, label));
      }
    }
    return true;
  }

  struct alignas(kApart) Ranker : TopK {};

  // Queries a task: neighbours share what is in the cache, but all workers should end at the same time.
  static std::size_t run_length(std::size_t queries, const Workers& workers) {
    return workers.threads == 1 ? kRun : std::clamp<std::size_t>(queries / (32 * workers.threads), 4, kRun);
  }

  static constexpr std::size_t kRun = 64;         // queries a task, at most
  static constexpr std::size_t kSlice = 1u << 16; // queries put in order together (cascade)

  LayerEvaluator evaluator_;
  std::vector<BlockRunner> runners_;
  std::vector<Ranker> rankers_; // a worker
  std::vector<CascadeWalk> walks_;
  std::vector<Hope> hopes_; // a worker
  std::vector<std::vector<Key>> beams_;
  std::vector<TopK> kept_;        // a query: its next beam, or its answers
  std::vector<std::size_t> next_; // a query: the node of its beam to open next
  std::vector<std::vector<Answer>> answers_;
  std::vector<OpenNode> open_;
  std::vector<std::size_t> open_begin_;
  std::vector<std::uint64_t> order_; // best nodes of the top layer, then the query
  std::vector<float> scores_;
};

} // namespace beamwood
