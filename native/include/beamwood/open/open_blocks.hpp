// One node of a tree in layout chunk or column in, the sums of its children out: nodes in any order, one query.
#pragma once
#include <cstdint>
#include <vector>

#include "beamwood/engine/options.hpp"
#include "beamwood/match/choose.hpp"
#include "beamwood/open/block.hpp"

namespace beamwood {

// What is known of a layer's supports.
inline BlockStatistics statistics_of(const TreeLayer& layer, Layout layout) noexcept {
  BlockStatistics s;
  const bool chunked = layout == Layout::chunk;
  s.chunks = chunked ? layer.shape.parents() : layer.shape.nodes;
  s.rows = static_cast<double>(chunked ? layer.chunks.feature.size() : layer.columns.feature.size()) / s.chunks;
  s.has_index = chunked ? layer.chunks.has_index() : layer.columns.has_index();
  return s;
}

class alignas(kApart) BlockOpener {
public:
  Work work;

  static constexpr std::uint32_t kUnknown = 0xffffffffu; // parents need not be known

  void start(const Forest& forest, std::size_t t, const Query& query, const Kernels& kernels,
             const SearchOptions& options) {
    forest_ = &forest, tree_ = &forest.trees[t], query_ = &query, kernels_ = &kernels, options_ = &options;
    layers_.resize(std::max(layers_.size(), tree_->layers.size()));
    for (auto& opened : layers_) opened.clear();
  }

  // As CascadeOpener's, but that nothing is looked for yet.
  bool find(std::size_t l, std::uint32_t node, std::uint32_t, std::uint32_t& number) {
    Opened open{node, {}};
    const LayerShape& shape = tree_->layers[l].shape;
    if (node >= shape.parents() || !shape.children(node, open.siblings)) return false;
    number = static_cast<std::uint32_t>(layers_[l].size());
    layers_[l].push_back(open);
    return true;
  }

  const Siblings& siblings(std::size_t l, std::uint32_t number) const noexcept { return layers_[l][number].siblings; }
  static bool has_many_rows(std::size_t, std::uint32_t) noexcept { return true; }
  static bool has_few_rows() noexcept { return false; }
  static bool finds_ahead() noexcept { return false; }

  const float* sums(std::size_t l, std::uint32_t number) {
    const Opened& open = layers_[l][number];
    const TreeLayer& layer = tree_->layers[l];
    if (sums_.size() < open.siblings.width + kMaskWidth) sums_.resize(open.siblings.width + kMaskWidth);
    const Block block{query_, sums_.data()};
    runner_.work = {};
    if (!runner_.run(*forest_, layer, open.node, {&block, 1}, matcher_for(layer), *kernels_)) return nullptr;
    work += runner_.work;
    return sums_.data();
  }

private:
  struct Opened {
    std::uint32_t node;
    Siblings siblings;
  };

  Matcher matcher_for(const TreeLayer& layer) const noexcept {
    if (!options_->choose) return options_->matcher;
    BlockStatistics s = statistics_of(layer, forest_->layout);
    s.query_nonzeros = query_->count;
    s.dense_fits = false; // one query does not make up for entering a chunk
    return choose_matcher(s);
  }

  const Forest* forest_ = nullptr;
  const Tree* tree_ = nullptr;
  const Query* query_ = nullptr;
  const Kernels* kernels_ = nullptr;
  const SearchOptions* options_ = nullptr;
  std::vector<std::vector<Opened>> layers_;
  std::vector<float> sums_;
  BlockRunner runner_;
};

} // namespace beamwood
