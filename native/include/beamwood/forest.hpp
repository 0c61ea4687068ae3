// A model as the engine sees it: trees of layers, each a shape and its weights in one of the layouts. Views only.
#pragma once
#include <cstdint>
#include <vector>

#include "beamwood/activation.hpp"
#include "beamwood/chunk.hpp"
#include "beamwood/column.hpp"
#include "beamwood/tree.hpp"

namespace beamwood {

enum class Layout : std::uint8_t { chunk, column };

struct TreeLayer {
  LayerShape shape;
  ChunkWeights chunks;
  ColumnWeights columns;
};

struct Tree {
  std::vector<TreeLayer> layers;
};

struct Forest {
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
  Activation activation;
  Layout layout = Layout::chunk;
  std::vector<Tree> trees;

  bool has_index() const noexcept {
    for (const Tree& tree : trees)
      for (const TreeLayer& layer : tree.layers)
        if (layout == Layout::chunk ? !layer.chunks.has_index() : !layer.columns.has_index()) return false;
    return true;
  }
};

} // namespace beamwood
