// Queries and a forest in layout chunk or column in, the best k labels of each query out: beam search (Algorithm 1)
// over whole batches, layer by layer, so that the blocks of a layer can be sorted by chunk (Algorithm 3). A cascade of
// nothing but dense features is searched so too (whole_queries.hpp).
//
// The rules are those of walk.hpp, and the same scorer and sinks apply them.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "beamwood/engine/beam.hpp"
#include "beamwood/open/batch.hpp"
#include "beamwood/open/open_blocks.hpp"

namespace beamwood {

struct LayerChoice {
  std::uint32_t tree, layer;
  Matcher matcher;
  BlockStatistics statistics;
};

// Scratch memory of one call; kept and reused from call to call, never shared by two at once.
class BlockSearch {
public:
  Work work;
  std::vector<LayerChoice> choices; // of the first slice of the batch

  // labels and scores have room for queries.size() * k, are filled in rank order and padded with -1 and -inf.
  // False: the model's arrays are damaged, or those of a cascade are others than whole_queries.hpp asks for.
  bool run(const Forest& forest, std::span<const Query> queries, const SearchOptions& options, const Workers& workers,
           std::int64_t* labels, float* scores) {
    forest_ = &forest, options_ = &options, workers_ = &workers;
    work = {};
    choices.clear();
    if (runners_.size() < workers.threads) runners_.resize(workers.threads), workers_own_.resize(workers.threads);
    for (BlockRunner& runner : runners_) runner.work = {};
    for (Own& own : workers_own_) own.scorer.start(forest, *kernels_for(options.isa));
    std::size_t step = slice_size();
    for (std::size_t at = 0; at < queries.size();) {
      const auto slice = queries.subspan(at, std::min(step, queries.size() - at));
      std::int64_t* const to = labels + at * options.k;
      float* const beside = scores + at * options.k;
      try {
        if (!(forest.trees.size() == 1 ? run_slice(slice, single_, to, beside)
                                       : run_slice(slice, several_, to, beside)))
          return false;
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
  // One query: its beam, how many nodes of it are opened, and where its labels go.
  template <class Sink> struct State {
    Beam beam;
    std::size_t opened = 0;
    Sink sink;
  };

  struct alignas(kApart) Own {
    Scorer scorer;
    SumOfAnswers sum;
  };

  // Thrown when the chunks that a slice meets are so much wider than average that its scores would fill the memory.
  struct TooWide : std::exception {};
  static constexpr std::uint64_t kMostScores = 64u << 20;

  // Queries evaluated together: as many as keep the scores of a layer within some 16 MiB, if chunks are of like width.
  std::size_t slice_size() const {
    double most = 1;
    for (const Tree& tree : forest_->trees)
      for (const TreeLayer& layer : tree.layers) {
        const double parents = layer.shape.parents();
        most = std::max(most, std::min<double>(options_->beam, parents) * layer.shape.nodes / parents);
      }
    return static_cast<std::size_t>(std::clamp((4 << 20) / most, 1.0, 16384.0));
  }

  template <class Sink>
  bool run_slice(std::span<const Query> queries, std::vector<State<Sink>>& states, std::int64_t* labels,
                 float* scores) {
    states.resize(std::max(states.size(), queries.size()));
    const std::span<State<Sink>> own(states.data(), queries.size());
    for (State<Sink>& state : own) state.sink.reset(*forest_, options_->k);
    for (std::uint32_t t = 0; t < forest_->trees.size(); ++t) {
      for (State<Sink>& state : own) state.beam.start(*forest_, t, options_->beam, options_->bound);
      for (std::uint32_t l = 0; l < forest_->trees[t].layers.size(); ++l)
        if (!run_layer(t, l, queries, own)) return false;
    }
    return each_query(own, [&](State<Sink>& state, Own& worker) {
      const std::size_t q = static_cast<std::size_t>(&state - own.data());
      write_row(best_of(state.sink, worker), options_->k, labels + q * options_->k, scores + q * options_->k);
      return true;
    });
  }

  TopK& best_of(BestLabels& sink, Own&) const noexcept { return sink.best; }
  TopK& best_of(AllAnswers& sink, Own& worker) const {
    worker.sum.run(sink.answers(), forest_->trees.size(), options_->k);
    return worker.sum.best;
  }

  // Opens the beams of all queries. Where that can leave nodes out they are opened in rounds, the best of each query
  // first, so that blocks are still sorted by chunk.
  template <class Sink>
  bool run_layer(std::uint32_t t, std::uint32_t l, std::span<const Query> queries, std::span<State<Sink>> states) {
    const TreeLayer& layer = forest_->trees[t].layers[l];
    for (State<Sink>& state : states) {
      state.opened = 0;
      if (!state.beam.enter(l)) return false;
    }
    const bool rounds = !states.empty() && states[0].beam.narrows(forest_->trees.size() == 1);
    // A chunk of a cascade is read once for many queries: rounds would cost more than the nodes that they leave out.
    const std::size_t at_first = forest_->layout == Layout::cascade ? kAtFirst : 1;
    for (std::size_t nodes = rounds ? at_first : ~std::size_t{0} / 2;; nodes *= 2) {
      check_stop(options_->stop);
      if (!list_open(layer, states, nodes)) return false;
      if (open_.empty()) break;
      const bool chooses = options_->choose && forest_->layout != Layout::cascade;
      const Matcher matcher = chooses ? chosen(t, l, queries) : options_->matcher;
      if (!evaluator_.evaluate(*forest_, layer, queries, open_, sums_, matcher, *kernels_for(options_->isa),
                               options_->sort_blocks, *workers_, runners_))
        return false;
      if (!each_query(states, [&](State<Sink>& state, Own& own) { return take_opened(state, own, states.data()); }))
        return false;
    }
    return each_query(states, [](State<Sink>& state, Own&) {
      state.beam.leave();
      return true;
    });
  }

  template <class Sink> bool take_opened(State<Sink>& state, Own& own, const State<Sink>* first) {
    const auto q = static_cast<std::size_t>(&state - first);
    for (std::size_t i = open_begin_[q]; i < open_begin_[q + 1]; ++i) {
      const OpenNode& open = open_[i];
      const Children children{{open.first_child, open.width}, sums_.data() + open.sums_at, open.score};
      if (!state.beam.take(children, state.beam.met(key_of(open.score, open.node)), own.scorer, state.sink))
        return false;
    }
    return true;
  }

  // Calls work(state, own memory of a worker) for all queries, side by side. False when one of them said so.
  template <class Sink, class Function> bool each_query(std::span<State<Sink>> states, Function&& function) {
    std::atomic<bool> sound{true};
    parallel_for(*workers_, (states.size() + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
      for (std::size_t q = task * kRun; q < std::min(states.size(), (task + 1) * kRun); ++q)
        if (!function(states[q], workers_own_[worker])) sound = false;
    });
    return sound;
  }

  // Lists the next nodes to open, query by query, up to so many of each, and where their children's sums go.
  template <class Sink> bool list_open(const TreeLayer& layer, std::span<State<Sink>> states, std::size_t nodes) {
    open_.clear();
    open_begin_.assign(1, 0);
    std::uint64_t at = 0;
    for (std::size_t q = 0; q < states.size(); ++q) {
      State<Sink>& state = states[q];
      const std::vector<Key>& beam = state.beam.nodes();
      const std::size_t end = state.opened + std::min(nodes, beam.size() - state.opened);
      for (; state.opened < end; ++state.opened) {
        const Key key = beam[state.opened];
        if (state.beam.fate_of(key, workers_own_[0].scorer, state.sink) != Fate::open) {
          state.opened = beam.size();
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
    if (at > kMostScores && states.size() > 1) throw TooWide{};
    if (sums_.size() < at + kMaskWidth) sums_.resize(at + kMaskWidth);
    return true;
  }

  Matcher chosen(std::uint32_t t, std::uint32_t l, std::span<const Query> queries) {
    const TreeLayer& layer = forest_->trees[t].layers[l];
    BlockStatistics s = statistics_of(layer, forest_->layout);
    s.blocks = static_cast<double>(open_.size());
    if (forest_->layout == Layout::column) s.blocks *= static_cast<double>(layer.shape.nodes) / layer.shape.parents();
    std::uint64_t nonzeros = 0;
    const std::size_t sampled = std::min<std::size_t>(queries.size(), 256);
    for (std::size_t q = 0; q < sampled; ++q) nonzeros += queries[q].count;
    s.query_nonzeros = static_cast<double>(nonzeros) / static_cast<double>(sampled);
    s.dense_fits = 4ull * forest_->features * workers_->threads <= options_->dense_bytes;
    const Matcher matcher = choose_matcher(s);
    if (std::none_of(choices.begin(), choices.end(), [&](auto& c) { return c.tree == t && c.layer == l; }))
      choices.push_back({t, l, matcher, s});
    return matcher;
  }

  static constexpr std::size_t kRun = 64;     // queries per task
  static constexpr std::size_t kAtFirst = 16; // nodes of a query's beam opened together in a cascade

  const Forest* forest_ = nullptr;
  const SearchOptions* options_ = nullptr;
  const Workers* workers_ = nullptr;
  LayerEvaluator evaluator_;
  std::vector<BlockRunner> runners_; // per worker
  std::vector<Own> workers_own_;
  std::vector<State<BestLabels>> single_;
  std::vector<State<AllAnswers>> several_;
  std::vector<OpenNode> open_;
  std::vector<std::size_t> open_begin_; // per query
  std::vector<float> sums_;
};

} // namespace beamwood
