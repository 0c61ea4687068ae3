// A search in two halves: the upper part of a forest in, nodes that were met out; those and a part of its labels in, the
// best k of that part out.
//
// The upper part is the forest without the weights of its leaves, a part is the forest of some of its labels, without the
// weights of inner nodes. Each half is the search of search.hpp; the best of all parts, by the one order (order.hpp), are
// the answers of the whole forest, bit for bit: a label's score depends on its own weights and its path only.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/search.hpp"

namespace beamwood {

// The nodes of a batch of queries, query by query, and those of each tree by tree.
struct MetBatch {
  std::vector<std::int64_t> start{0};
  std::vector<Met> met;
};

// Scratch memory of one call; kept and reused from call to call, never shared by two at once.
class SplitSearch {
public:
  // The nodes whose labels are to be scored. False: damaged.
  bool above(const Forest& forest, std::span<const Query> queries, const SearchOptions& options, const Workers& workers,
             const Filter* filter, MetBatch& out) {
    make_room(workers);
    per_query_.resize(std::max(per_query_.size(), queries.size()));
    const bool sound = Search::each_run(workers, queries.size(), [&](std::size_t q, unsigned worker) {
      std::span<const MetNode> met;
      if (!searches_[worker].walk(forest, queries[q], options, filter, met)) return false;
      per_query_[q].clear();
      for (const MetNode& node : met) per_query_[q].push_back(node.met);
      return true;
    });
    out = {};
    for (std::size_t q = 0; q < queries.size() && sound; ++q) {
      out.met.insert(out.met.end(), per_query_[q].begin(), per_query_[q].end());
      out.start.push_back(static_cast<std::int64_t>(out.met.size()));
    }
    return sound;
  }

  // The best labels below those nodes, k for each query, as Search::run gives them. Every node fits. False: damaged.
  bool below(const Forest& forest, std::span<const Query> queries, const SearchOptions& options, const Workers& workers,
             const Filter* filter, const MetBatch& given, std::int64_t* labels, float* scores) {
    make_room(workers);
    return Search::each_run(workers, queries.size(), [&](std::size_t q, unsigned worker) {
      const auto from = static_cast<std::size_t>(given.start[q]), to = static_cast<std::size_t>(given.start[q + 1]);
      const auto own = std::span(given.met).subspan(from, to - from);
      return searches_[worker].run_below(forest, queries[q], options, filter, own, labels + q * options.k,
                                         scores + q * options.k);
    });
  }

private:
  void make_room(const Workers& workers) {
    if (searches_.size() < workers.threads) searches_.resize(workers.threads);
  }

  std::vector<QuerySearch<CascadeOpener>> searches_; // per worker
  std::vector<std::vector<Met>> per_query_;
};

} // namespace beamwood
