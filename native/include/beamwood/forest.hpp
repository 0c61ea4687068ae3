// A model as the engine sees it: trees of layers, each a shape and its weights in one of the layouts. Views only.
#pragma once
#include <cstdint>
#include <vector>

#include "beamwood/activation.hpp"
#include "beamwood/chunk.hpp"
#include "beamwood/column.hpp"
#include "beamwood/thread.hpp"
#include "beamwood/tree.hpp"

namespace beamwood {

enum class Layout : std::uint8_t { chunk, column, threaded };

struct TreeLayer {
  LayerShape shape;
  ChunkWeights chunks;
  ColumnWeights columns;
  ThreadedWeights threads;
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
  bool unit_rows = false; // queries are brought to length 1 before they are searched for
};

} // namespace beamwood
