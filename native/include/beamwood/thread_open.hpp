// One query and nodes of a threaded tree in, the scores of their children out: nodes opened one by one, in any order in
// which parents come before their children. What best-first search needs; the beam has a walk of its own.
#pragma once
#include <cstdint>
#include <vector>

#include "beamwood/block.hpp"

namespace beamwood {

class ThreadedOpener {
public:
  Work work;

  // A new query. Nothing is open.
  void start(const Tree& tree, const Query& query) {
    opened_.clear();
    rows_.clear();
    for (std::uint32_t i = 0; i < query.count; ++i) {
      const std::uint32_t at = tree.layers[0].threads.root[query.feature[i]];
      if (at != kNoRow) rows_.push_back({at, query.value[i]});
    }
  }

  // Opens a node of the layer above `layer` whose parent was opened as number `parent` (any number for the root), and
  // writes its children's scores. Returns the node's own number; -1: the model's arrays are damaged.
  std::int64_t open(const Forest& forest, const Tree& tree, std::size_t layer, std::uint32_t node, std::uint32_t parent,
                    float score, const Kernels& kernels, float* scores) {
    const TreeLayer& to = tree.layers[layer];
    Opened own;
    if (!to.shape.children(node, own.siblings) || !to.threads.at(node, own.chunk)) return -1;
    if (layer == 0) {
      own.rows_end = rows_.size();
    } else if (!follow_into(own, node, parent)) {
      return -1;
    }
    const std::size_t room = own.siblings.width <= kMaskWidth ? kMaskWidth : 65536;
    if (sums_.size() < room) sums_.resize(room);
    const auto count = static_cast<std::uint32_t>(own.rows_end - own.rows_begin);
    const std::int64_t words = kernels.accumulate(own.chunk.words, own.chunk.word_count, own.siblings.width,
                                                  layer + 1 == tree.layers.size() ? 1 : 2, own.chunk.code,
                                                  rows_.data() + own.rows_begin, count, sums_.data());
    if (words < 0) return -1;
    work += {1, count, static_cast<std::uint64_t>(words) * 4};
    const float* bias = to.shape.bias.empty() ? nullptr : to.shape.bias.data() + own.siblings.begin;
    kernels.activate(forest.activation, sums_.data(), bias, own.siblings.width, score, scores);
    opened_.push_back(own);
    return static_cast<std::int64_t>(opened_.size() - 1);
  }

private:
  struct Opened {
    Siblings siblings{};
    ThreadedChunk chunk{};
    std::size_t rows_begin = 0, rows_end = 0;
  };

  bool follow_into(Opened& own, std::uint32_t node, std::uint32_t parent) {
    if (parent >= opened_.size()) return false;
    const Opened& from = opened_[parent];
    const std::uint32_t child = node - from.siblings.begin;
    if (child >= from.siblings.width) return false;
    own.rows_begin = own.rows_end = rows_.size();
    if (own.chunk.word_count == 0) return true;
    const std::size_t count = from.rows_end - from.rows_begin;
    rows_.resize(own.rows_begin + count);
    own.rows_end += follow_all(from.chunk, from.siblings.width, child, rows_.data() + from.rows_begin, count, own.chunk,
                               rows_.data() + own.rows_begin);
    rows_.resize(own.rows_end);
    return true;
  }

  std::vector<Opened> opened_;
  std::vector<Placed> rows_;
  std::vector<float> sums_;
};

} // namespace beamwood
