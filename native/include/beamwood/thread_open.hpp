// One node of a threaded tree in, the sums of its children out: nodes in any order, each after its parent.
//
// A node's rows are found by following its parent's, so what was opened is kept, layer by layer, until the next query.
// Finding rows and adding them up are two steps: whoever knows the next node finds its rows first, and memory works
// while the kernel adds.
#pragma once
#include <cstdint>
#include <vector>

#include "beamwood/block.hpp"

namespace beamwood {

class ThreadedOpener {
public:
  Work work;

  struct Opened {
    Siblings siblings{};
    ThreadedChunk chunk{};
    std::size_t rows_begin = 0, rows_end = 0;
  };

  // Forgets what was opened.
  void start(const Tree& tree, const Query& query) {
    if (layers_.size() < tree.layers.size()) layers_.resize(tree.layers.size());
    for (Layer& layer : layers_) {
      layer.opened.clear();
      layer.rows.used = 0;
    }
    query_ = &query;
  }

  // Finds the rows of a node whose children are in layer l; `parent` is the number that its own parent got. The node's
  // number goes to `number`. False: the model's arrays are damaged.
  bool find(const Tree& tree, std::size_t l, std::uint32_t node, std::uint32_t parent, std::uint32_t& number) {
    const TreeLayer& layer = tree.layers[l];
    Layer& here = layers_[l];
    Opened open;
    if (node >= layer.shape.parents() || !layer.shape.children(node, open.siblings) ||
        !layer.threads.at(node, open.chunk))
      return false;
    open.rows_begin = here.rows.used;
    if (l == 0) from_root(layer, open, here.rows);
    else if (!from_parent(layers_[l - 1], parent, node, open, here.rows)) return false;
    open.rows_end = here.rows.used;
    number = static_cast<std::uint32_t>(here.opened.size());
    here.opened.push_back(open);
    return true;
  }

  const Opened& opened(std::size_t l, std::uint32_t number) const noexcept { return layers_[l].opened[number]; }

  // The children's sums, without their bias; null: the model's arrays are damaged.
  const float* add_up(const Tree& tree, std::size_t l, std::uint32_t number, const Kernels& kernels) {
    const Opened& open = layers_[l].opened[number];
    const std::size_t room = open.siblings.width <= kMaskWidth ? kMaskWidth : 65536;
    if (sums_.size() < room) sums_.resize(room);
    const auto count = static_cast<std::uint32_t>(open.rows_end - open.rows_begin);
    const std::uint32_t masks = l + 1 == tree.layers.size() ? 1 : 2;
    const std::int64_t words =
        kernels.accumulate(open.chunk.words, open.chunk.word_count, open.siblings.width, masks, open.chunk.code,
                           layers_[l].rows.at(open.rows_begin), count, sums_.data());
    if (words < 0) return nullptr;
    work += {1, count, static_cast<std::uint64_t>(words) * 4};
    return sums_.data();
  }

private:
  struct Layer {
    std::vector<Opened> opened;
    RowLists rows;
  };

  void from_root(const TreeLayer& top, const Opened& open, RowLists& rows) const {
    rows.used += root_rows(top.threads, *query_, open.chunk, rows.room(query_->count + 1));
  }

  static bool from_parent(const Layer& above, std::uint32_t parent, std::uint32_t node, const Opened& open,
                          RowLists& rows) {
    const Opened& from = above.opened[parent];
    const std::uint32_t child = node - from.siblings.begin;
    if (child >= from.siblings.width) return false;
    if (open.chunk.word_count == 0) return true;
    const std::size_t count = from.rows_end - from.rows_begin;
    rows.used += follow_all(from.chunk, from.siblings.width, child, above.rows.at(from.rows_begin), count, open.chunk,
                            rows.room(count + 1));
    return true;
  }

  std::vector<Layer> layers_;
  std::vector<float> sums_;
  const Query* query_ = nullptr;
};

} // namespace beamwood
