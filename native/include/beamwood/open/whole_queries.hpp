// Queries in, the same with a value for every feature out: a batch over nothing but dense features.
//
// The law: where a query lacks a feature it gets a 0, which adds +-0 and changes no sum (query_tail.hpp). In a tree whose
// chunks all hold a record of the greatest length for every feature, nothing is followed: a chunk's rows are all features
// in order. So a batch can be evaluated layer by layer, sorted by chunk, and a chunk is read once for several queries.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "beamwood/engine/csr.hpp"
#include "beamwood/engine/score.hpp"
#include "beamwood/layout/forest.hpp"
#include "beamwood/open/query_tail.hpp"

namespace beamwood {

// What lies in a chunk of a cascade that has a record of the greatest length for every feature; count 0: it is another.
inline DenseRun whole_chunk(const CascadeChunk& chunk, std::uint32_t width, bool linked,
                            std::uint32_t features) noexcept {
  Pages pages;
  const RecordForm form = chunk.form(width, linked);
  const std::uint32_t children = linked ? width : 0;
  const std::uint64_t stride = form.words(width, children);
  if (!chunk.pages(width, pages)) return {};
  const std::uint64_t begin = Pages::words(pages.turns, width);
  if (chunk.word_count - begin != features * stride) return {};
  return {chunk.words + begin, static_cast<std::uint32_t>(stride), features,
          static_cast<std::uint32_t>(form.weights_at(width, children))};
}

// Whether all of a forest may be like that: the top chunk is. Layers that share chunks are not for this way.
inline bool may_be_whole(const Forest& forest) noexcept {
  if (forest.layout != Layout::cascade || forest.trees.size() != 1 || forest.features < QueryTail::kLeast) return false;
  const std::vector<TreeLayer>& layers = forest.trees[0].layers;
  CascadeChunk top;
  Siblings siblings;
  return std::ranges::all_of(layers, [](const TreeLayer& layer) { return layer.step == 0; }) &&
         layers[0].shape.children(0, siblings) && layers[0].cascade.at(0, top) &&
         whole_chunk(top, siblings.width, layers.size() > 1, forest.features).count > 0;
}

class WholeQueries {
public:
  // False: one of them lacks too many features.
  bool make(std::span<const Query> given, std::uint32_t features) {
    std::size_t lacking = 0;
    for (const Query& query : given) {
      if (query.count + kMostLacking < features) return false;
      lacking += query.count < features;
    }
    queries_.assign(given.begin(), given.end());
    if (lacking == 0) return true;
    all_.resize(features);
    std::iota(all_.begin(), all_.end(), 0u);
    filled_.assign(lacking * features, 0.0f);
    float* next = filled_.data();
    for (Query& query : queries_) {
      if (query.count == features) continue;
      for (std::uint32_t i = 0; i < query.count; ++i) next[query.feature[i]] = query.value[i];
      query = {all_.data(), next, features};
      next += features;
    }
    return true;
  }

  std::span<const Query> queries() const noexcept { return queries_; }

private:
  static constexpr std::uint32_t kMostLacking = 8;

  std::vector<Query> queries_;
  std::vector<std::uint32_t> all_;
  std::vector<float> filled_;
};

} // namespace beamwood
