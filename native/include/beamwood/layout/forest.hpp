// A model as the engine sees it: trees of layers, each a shape and its weights in one of the layouts, or inverted lists.
// Views only.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/activation.hpp"
#include "beamwood/index/postings.hpp"
#include "beamwood/layout/bundle.hpp"
#include "beamwood/layout/cascade.hpp"
#include "beamwood/layout/chunk.hpp"
#include "beamwood/layout/column.hpp"
#include "beamwood/layout/tree.hpp"
#include "beamwood/members/head.hpp"

namespace beamwood {

enum class Layout : std::uint8_t { chunk, column, cascade };

struct TreeLayer {
  LayerShape shape;
  ChunkWeights chunks;
  ColumnWeights columns;
  CascadeWeights cascade; // of the first layer of a bundle: the chunks of all of it
  std::size_t step = 0;   // cascade: how many layers of its bundle lie above it
};

struct Tree {
  std::vector<TreeLayer> layers;
  std::span<const std::uint32_t> leaf_of_label; // its node, counted through the layers from the top

  bool ends_bundle(std::size_t layer) const noexcept {
    return layer + 1 == layers.size() || layers[layer + 1].step == 0;
  }

  // The bundle that a layer is in.
  Bundle bundle(std::size_t layer) const noexcept {
    const std::size_t first = layer - layers[layer].step;
    Bundle out;
    for (out.layers = 1, out.shape[0] = &layers[first].shape; !ends_bundle(first + out.layers - 1); ++out.layers)
      out.shape[out.layers] = &layers[first + out.layers].shape;
    return out;
  }
  // Whether a layer's chunks are linked to others below.
  bool has_chunks_below(std::size_t layer) const noexcept {
    while (!ends_bundle(layer)) ++layer;
    return layer + 1 < layers.size();
  }
};

struct Forest {
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
  Activation activation;
  Layout layout = Layout::chunk;
  std::vector<Tree> trees;
  Postings postings{};    // a flat member: all there is, where there are no trees
  Head head{};            // of a model that has both
  bool unit_rows = false; // queries are brought to length 1 before they are searched for
};

} // namespace beamwood
