// Queries and a forest in, the best k labels of each query out: every way to search, for every layout.
//
//   opener (open_cascade, open_blocks)   node → sums of its children
//   scorer                               sums → scores of those that may still win
//   frontier (walk, waiting, best_first, best_of_trees)   which node is opened next
//   sink (sinks, sum_of_trees)           labels → the best k, of one tree or of several
//
// A model without trees has inverted lists instead (index/index_search.hpp); one that has both has a head, which ranks the
// candidates of both (members.hpp).
//
// Queries are searched one at a time, but for the beam search of layouts chunk and column, and of batches over nothing but
// dense features (block_search.hpp). A batch is walked in the order of where its queries go: the top bundle is evaluated
// for all of them first, and those that share their best nodes come one behind the other and find them in the cache.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "beamwood/engine/best_first.hpp"
#include "beamwood/engine/best_of_trees.hpp"
#include "beamwood/engine/block_search.hpp"
#include "beamwood/engine/given_nodes.hpp"
#include "beamwood/engine/waiting.hpp"
#include "beamwood/engine/walk.hpp"
#include "beamwood/index/index_search.hpp"
#include "beamwood/members/members.hpp"
#include "beamwood/open/open_cascade.hpp"
#include "beamwood/sink/sum_of_trees.hpp"

namespace beamwood {

// The search of one query at a time: scratch memory of one worker.
template <class Opener> class alignas(kApart) QuerySearch {
public:
  Work work;

  // Fills one row of the answer. top: see Walk. False: the model's arrays are damaged.
  bool run(const Forest& forest, const Query& query, const SearchOptions& options, const Filter* filter, bool exact,
           std::span<const Key> top, std::int64_t* labels, float* scores) {
    begin(forest, query, options, filter);
    bool sound;
    if (exact) {
      sound = run_exact();
      if (sound) write_row(forest.trees.size() == 1 ? single_.best : best_of_trees_.best, options.k, labels, scores);
    } else {
      TopK* best = nullptr;
      sound = run_beam(top, best);
      if (sound) write_row(*best, options.k, labels, scores);
    }
    collect_work();
    return sound;
  }

  // The nodes whose labels the beam reaches, tree by tree, with their labels unscored. Good until the next call.
  bool walk(const Forest& forest, const Query& query, const SearchOptions& options, const Filter* filter,
            std::span<const MetNode>& met) {
    begin(forest, query, options, filter);
    const bool sound = reach(met_, {});
    met = met_.met();
    collect_work();
    return sound;
  }

  // Fills one row of the answer with labels below nodes that were met elsewhere; they come tree by tree, and fit.
  bool run_below(const Forest& forest, const Query& query, const SearchOptions& options, const Filter* filter,
                 std::span<const Met> given, std::int64_t* labels, float* scores) {
    begin(forest, query, options, filter);
    given_ = given;
    TopK* best = nullptr;
    const bool sound = run_beam({}, best);
    if (sound) write_row(*best, options.k, labels, scores);
    given_.reset();
    collect_work();
    return sound;
  }

  // The best nodes of the top bundle.
  bool top_bundle(const Forest& forest, const Query& query, const SearchOptions& options, std::vector<Key>& keys) {
    begin(forest, query, options, nullptr);
    start(0);
    const bool sound = walk_.top_bundle(forest, options.beam, options.bound, openers_[0], scorer_, keys);
    collect_work();
    return sound;
  }

private:
  void begin(const Forest& forest, const Query& query, const SearchOptions& options, const Filter* filter) {
    forest_ = &forest, query_ = &query, options_ = &options, filter_ = filter;
    kernels_ = kernels_for(options.isa);
    scorer_.start(forest, *kernels_, filter, options.stop);
    scorer_.check_stop();
    if (openers_.size() < forest.trees.size()) openers_.resize(forest.trees.size());
  }

  void start(std::size_t t) { openers_[t].start(*forest_, t, *query_, *kernels_, *options_); }

  // One of three sinks; what it found is at `best`.
  bool run_beam(std::span<const Key> top, TopK*& best) {
    if (forest_->trees.size() == 1) {
      best = &single_.best;
      return reach(single_, top);
    }
    if (options_->bound && SumOfTrees::fits(*forest_)) {
      best = &several_.best;
      return reach(several_, top) && several_.settle(scorer_, NodeOpener{*this});
    }
    best = &sum_.best;
    if (!reach(answers_, top)) return false;
    sum_.run(answers_.answers(), forest_->trees.size(), options_->k);
    return true;
  }

  bool run_exact() {
    for (std::size_t t = 0; t < forest_->trees.size(); ++t) start(t);
    single_.reset(*forest_, options_->k);
    return forest_->trees.size() == 1 ? best_first_.run(*forest_, openers_[0], scorer_, single_)
                                      : best_of_trees_.run(*forest_, options_->k, openers_, scorer_);
  }

  template <class Sink> bool reach(Sink& sink, std::span<const Key> top) {
    sink.reset(*forest_, options_->k);
    for (std::size_t t = 0; t < forest_->trees.size(); ++t) {
      start(t);
      sink.enter_tree();
      if (given_) {
        if (!go_below(t, sink)) return false;
        continue;
      }
      if (!walk_.run(*forest_, t, options_->beam, options_->bound, openers_[t], scorer_, sink,
                     t == 0 ? top : std::span<const Key>()))
        return false;
      if (filter_ && !go_on(t, sink)) return false;
    }
    return true;
  }

  template <class Sink> bool go_below(std::size_t t, Sink& sink) {
    const auto tree = static_cast<std::uint32_t>(t);
    const auto begin = std::ranges::lower_bound(*given_, tree, {}, &Met::tree);
    const auto end = std::ranges::upper_bound(*given_, tree, {}, &Met::tree);
    return given_nodes_.run(*forest_, t, {begin, end}, options_->bound, openers_[t], scorer_, sink);
  }

  // Where the usual walk reached too few labels, what it found is forgotten: the one that goes on finds it again.
  template <class Sink> bool go_on(std::size_t t, Sink& sink) {
    if (!sink.count_put_off(scorer_)) return false;
    if (sink.reached() >= std::min<std::uint64_t>(options_->k, filter_->allowed())) return true;
    sink.forget_tree();
    start(t);
    return waiting_.run(*forest_, t, options_->k, options_->beam, openers_[t], scorer_, sink);
  }

  // Opens nodes for the sink that put them off.
  struct NodeOpener {
    QuerySearch& search;

    bool has_few_rows() const noexcept { return search.openers_[0].has_few_rows(); }
    bool finds_ahead() const noexcept { return search.openers_[0].finds_ahead(); }
    bool find(MetNode& node) {
      const Met& met = node.met;
      return search.openers_[met.tree].find(met.layer, met.node, Opener::kUnknown, node.number);
    }
    bool open(const MetNode& node, Children& children) {
      search.scorer_.check_stop();
      const Met& met = node.met;
      Opener& opener = search.openers_[met.tree];
      children = {opener.siblings(met.layer, node.number), opener.sums(met.layer, node.number), met.score};
      return children.sums != nullptr;
    }
  };

  void collect_work() noexcept {
    for (Opener& opener : openers_) work += opener.work, opener.work = {};
  }

  const Forest* forest_ = nullptr;
  const Query* query_ = nullptr;
  const SearchOptions* options_ = nullptr;
  const Filter* filter_ = nullptr;
  const Kernels* kernels_ = nullptr;
  std::vector<Opener> openers_; // per tree
  Scorer scorer_;
  Walk walk_;
  WaitingWalk waiting_;
  GivenNodes given_nodes_;
  std::optional<std::span<const Met>> given_; // where the nodes to open were met elsewhere
  BestFirst best_first_;
  BestOfTrees<Opener> best_of_trees_;
  BestLabels single_;
  SumOfTrees several_;
  AllAnswers answers_;
  SumOfAnswers sum_;
  NodesWithLabels met_;
};

// Scratch memory of one call; kept and reused from call to call, never shared by two at once.
class Search {
public:
  Work work;
  std::span<const LayerChoice> choices; // of matchers, where some were chosen

  // labels and scores have room for queries.size() * k, are filled in rank order and padded with -1 and -inf.
  // found: which members listed each answer, where that is asked for. False: the model's arrays are damaged.
  bool run(const Forest& forest, std::span<const Query> queries, const SearchOptions& options, const Workers& workers,
           std::int64_t* labels, float* scores, const Filter* filter = nullptr, bool exact = false,
           std::uint8_t* found = nullptr) {
    work = {};
    choices = {};
    const Call call{forest, queries, options, workers, filter, exact, labels, scores};
    if (forest.trees.empty() && forest.postings) return run_index(call);
    return forest.head ? run_members(call, found) : run_trees(call);
  }

  // Calls function(number, worker) for all numbers, in runs: neighbours share what is in the cache, but all workers
  // should end at the same time. False when one call said so.
  template <class Function> static bool each_run(const Workers& workers, std::size_t count, Function&& function) {
    const std::size_t run =
        workers.threads == 1 ? kRun : std::clamp<std::size_t>(count / (std::size_t{32} * workers.threads), 1, kRun);
    std::atomic<bool> sound{true};
    parallel_for(workers, (count + run - 1) / run, [&](std::size_t task, unsigned worker) {
      for (std::size_t i = task * run; i < std::min(count, (task + 1) * run) && sound; ++i)
        if (!function(i, worker)) sound = false;
    });
    return sound;
  }

private:
  static constexpr std::size_t kRun = 64;               // queries per task, at most
  static constexpr std::size_t kLeastWhole = 8;         // queries: fewer seldom meet in a chunk
  static constexpr std::size_t kSlice = 1u << 16;       // queries put in order together
  static constexpr std::size_t kMemberSlice = 1u << 12; // queries whose candidates are kept at a time

  struct Call {
    const Forest& forest;
    std::span<const Query> queries;
    const SearchOptions& options;
    const Workers& workers;
    const Filter* filter;
    bool exact;
    std::int64_t* labels;
    float* scores;
  };

  bool run_trees(const Call& call) {
    if (call.forest.layout == Layout::cascade) return run_whole(call) || run_queries(call, cascade_);
    if (call.filter || call.exact) return run_queries(call, blocks_one_by_one_);
    const bool sound = blocks_.run(call.forest, call.queries, call.options, call.workers, call.labels, call.scores);
    work += blocks_.work, choices = blocks_.choices;
    return sound;
  }

  // A batch over nothing but dense features. False: it is another, and has to be searched query by query.
  bool run_whole(const Call& call) {
    if (call.queries.size() < kLeastWhole || call.filter || call.exact || !may_be_whole(call.forest)) return false;
    if (!whole_.make(call.queries, call.forest.features)) return false;
    if (!blocks_.run(call.forest, whole_.queries(), call.options, call.workers, call.labels, call.scores)) return false;
    work += blocks_.work;
    return true;
  }

  // The trees list their candidates for some queries, then the head ranks them with those of the words.
  bool run_members(const Call& call, std::uint8_t* found) {
    SearchOptions wider = call.options;
    const std::uint32_t k = call.options.k;
    wider.k = std::min(std::max(k, call.forest.head.candidates), call.forest.labels);
    const std::size_t width = wider.k;
    if (members_.size() < call.workers.threads) members_.resize(call.workers.threads);
    bool sound = true;
    for (std::size_t at = 0; at < call.queries.size() && sound; at += kMemberSlice) {
      const auto slice = call.queries.subspan(at, std::min(kMemberSlice, call.queries.size() - at));
      if (listed_.size() < slice.size() * width) listed_.resize(slice.size() * width), scored_.resize(listed_.size());
      sound = run_trees(
                  {call.forest, slice, wider, call.workers, call.filter, call.exact, listed_.data(), scored_.data()}) &&
              each_run(call.workers, slice.size(), [&](std::size_t q, unsigned worker) {
                const std::size_t row = (at + q) * k;
                return members_[worker].run(call.forest, slice[q], k, wider.k, call.filter, listed_.data() + q * width,
                                            scored_.data() + q * width, call.labels + row, call.scores + row,
                                            found ? found + row : nullptr);
              });
    }
    for (MemberSearch& search : members_) work += search.take_work();
    return sound;
  }

  bool run_index(const Call& call) {
    if (flat_.size() < call.workers.threads) flat_.resize(call.workers.threads);
    for (IndexSearch& search : flat_) search.work = {};
    const Postings& index = call.forest.postings;
    const std::uint32_t k = call.options.k;
    const bool sound = each_run(call.workers, call.queries.size(), [&](std::size_t q, unsigned worker) {
      check_stop(call.options.stop);
      IndexSearch& search = flat_[worker];
      if (!search.run(index, call.queries[q], k, call.filter, index.matched_only)) return false;
      write_row(search.best(), k, call.labels + q * k, call.scores + q * k);
      return true;
    });
    for (const IndexSearch& search : flat_) work += search.work;
    return sound;
  }

  template <class Opener> bool run_queries(const Call& call, std::vector<QuerySearch<Opener>>& searches) {
    if (searches.size() < call.workers.threads) searches.resize(call.workers.threads);
    for (auto& search : searches) search.work = {};
    bool sound = true;
    for (std::size_t at = 0; at < call.queries.size() && sound; at += kSlice) {
      const auto slice = call.queries.subspan(at, std::min(kSlice, call.queries.size() - at));
      const bool ordered = slice.size() > kRun && !call.filter && !call.exact && Walk::has_top(call.forest);
      sound = (!ordered || order_by_top(call, slice, searches)) && run_slice(call, at, slice, ordered, searches);
    }
    for (const auto& search : searches) work += search.work;
    return sound;
  }

  // Fills tops_ with the best nodes of the top bundle and order_ with the queries by those nodes.
  template <class Opener>
  bool order_by_top(const Call& call, std::span<const Query> queries, std::vector<QuerySearch<Opener>>& searches) {
    tops_.resize(std::max(tops_.size(), queries.size()));
    order_.resize(queries.size());
    const bool sound = each_run(call.workers, queries.size(), [&](std::size_t q, unsigned worker) {
      const auto& best = tops_[q];
      const bool good = searches[worker].top_bundle(call.forest, queries[q], call.options, tops_[q]);
      const std::uint64_t first = best.empty() ? 0 : id_of(best[0]), second = best.size() < 2 ? 0 : id_of(best[1]);
      order_[q] = (first & 0xffff) << 48 | (second & 0xffff) << 32 | q;
      return good;
    });
    std::sort(order_.begin(), order_.end());
    return sound;
  }

  template <class Opener>
  bool run_slice(const Call& call, std::size_t at, std::span<const Query> queries, bool ordered,
                 std::vector<QuerySearch<Opener>>& searches) {
    return each_run(call.workers, queries.size(), [&](std::size_t i, unsigned worker) {
      const std::size_t q = ordered ? static_cast<std::uint32_t>(order_[i]) : i;
      const auto top = ordered ? std::span<const Key>(tops_[q]) : std::span<const Key>();
      const std::size_t row = (at + q) * call.options.k;
      return searches[worker].run(call.forest, queries[q], call.options, call.filter, call.exact, top,
                                  call.labels + row, call.scores + row);
    });
  }

  BlockSearch blocks_;
  WholeQueries whole_;
  std::vector<IndexSearch> flat_;                   // per worker
  std::vector<MemberSearch> members_;               // per worker
  std::vector<std::int64_t> listed_;                // candidates of the trees
  std::vector<float> scored_;                       // and their scores
  std::vector<QuerySearch<CascadeOpener>> cascade_; // per worker
  std::vector<QuerySearch<BlockOpener>> blocks_one_by_one_;
  std::vector<std::vector<Key>> tops_; // per query
  std::vector<std::uint64_t> order_;   // best nodes of the top layer, then the query
};

} // namespace beamwood
