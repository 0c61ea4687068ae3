// One node of a cascade tree in, the sums of its children out: nodes in any order, each after its parent.
//
// A node's rows are found by following its parent's, so what was opened is kept, layer by layer, until the next query. In
// a bundle of several layers a node's chunk has the sums of its whole clan: they are kept too, and those who are opened
// inside of the bundle have theirs at once.
// Finding rows and adding them up are two steps: whoever knows the next node finds its rows first, and memory works
// while the kernel adds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "beamwood/engine/block.hpp"

namespace beamwood {

class CascadeOpener {
public:
  Work work;

  struct Opened {
    Clan clan;
    CascadeChunk chunk{};
    RowList rows{};
    std::size_t sums = 0;                      // where they begin, once they are added up
    std::uint32_t origin = 0, first_child = 0; // beyond the first layer of a bundle: in whose clan, and where
  };

  // Forgets what was opened.
  void start(const Tree& tree, const Query& query) {
    if (layers_.size() < tree.layers.size()) layers_.resize(tree.layers.size());
    for (Layer& layer : layers_) {
      layer.opened.clear();
      layer.rows.used = 0;
      layer.sums.clear();
    }
    query_ = &query;
  }

  // Finds the rows of a node whose children are in layer l; `parent` is the number that its own parent got. The node's
  // number goes to `number`. False: the model's arrays are damaged.
  bool find(const Tree& tree, std::size_t l, std::uint32_t node, std::uint32_t parent, const Kernels& kernels,
            std::uint32_t& number) {
    Layer& here = layers_[l];
    number = static_cast<std::uint32_t>(here.opened.size());
    Opened& open = here.opened.emplace_back();
    if (tree.layers[l].step > 0) return find_inside(tree, l, node, parent, open);
    const TreeLayer& layer = tree.layers[l];
    if (node >= layer.shape.parents() || !tree.bundle(l).clan(node, open.clan) || !layer.cascade.at(node, open.chunk))
      return false;
    open.rows.begin = here.rows.used;
    if (l == 0) from_root(layer, open, here.rows);
    else if (!from_above(tree, l - 1, parent, node, open, kernels, here.rows)) return false;
    open.rows.end = here.rows.used;
    return true;
  }

  // How many rows were found for a node; none where its sums are known already.
  std::size_t rows(std::size_t l, std::uint32_t number) const noexcept { return layers_[l].opened[number].rows.size(); }

  // The children's sums, without their bias; null: the model's arrays are damaged. Good until the next call.
  const float* add_up(const Tree& tree, std::size_t l, std::uint32_t number, const Kernels& kernels) {
    const Opened& asked = layers_[l].opened[number];
    if (tree.layers[l].step > 0) {
      const Layer& first = layers_[l - tree.layers[l].step];
      return first.sums.data() + first.opened[asked.origin].sums + asked.first_child;
    }
    Opened& open = layers_[l].opened[number];
    const std::uint32_t width = open.clan.width();
    const bool kept = open.clan.layers > 1;
    std::vector<float>& sums = kept ? layers_[l].sums : sums_;
    const std::size_t begin = kept ? sums.size() - std::min<std::size_t>(sums.size(), kMaskWidth) : 0;
    const std::size_t room = kept ? begin + 2 * kMaskWidth : width <= kMaskWidth ? kMaskWidth : 65536;
    if (sums.size() < room) sums.resize(room); // vectors are read beyond a clan's last sums
    const auto count = static_cast<std::uint32_t>(open.rows.size());
    const std::int64_t words =
        kernels.accumulate(open.chunk.words, open.chunk.word_count, width, tree.leads_on(l), open.chunk.code,
                           layers_[l].rows.at(open.rows.begin), count, sums.data() + begin);
    if (words < 0) return nullptr;
    work += {1, count, static_cast<std::uint64_t>(words) * 4};
    open.sums = begin;
    return sums.data() + begin;
  }

private:
  struct Layer {
    std::vector<Opened> opened;
    RowLists rows;
    std::vector<float> sums; // of the clans of a bundle of several layers
  };

  // The number, in the first layer of the bundle that layer l is in, of the node in whose clan an opened one is.
  std::uint32_t origin_of(const Tree& tree, std::size_t l, std::uint32_t number) const noexcept {
    return tree.layers[l].step == 0 ? number : layers_[l].opened[number].origin;
  }

  bool find_inside(const Tree& tree, std::size_t l, std::uint32_t node, std::uint32_t parent, Opened& open) const {
    const std::size_t step = tree.layers[l].step;
    const LayerShape& shape = tree.layers[l].shape;
    Siblings siblings;
    open.origin = origin_of(tree, l - 1, parent);
    const Clan& clan = layers_[l - step].opened[open.origin].clan;
    return node < shape.parents() && shape.children(node, siblings) && clan.find(step, siblings, open.first_child);
  }

  void from_root(const TreeLayer& top, const Opened& open, RowLists& rows) const {
    rows.used += root_rows(top.cascade, *query_, open.chunk, rows.room(query_->count + 1));
  }

  // `parent` was opened in layer `above`, the last one of its bundle.
  bool from_above(const Tree& tree, std::size_t above, std::uint32_t parent, std::uint32_t node, const Opened& open,
                  const Kernels& kernels, RowLists& rows) {
    Layer& first = layers_[above - tree.layers[above].step];
    Opened& from = first.opened[origin_of(tree, above, parent)];
    const std::uint32_t place = node - from.clan.bottom().begin;
    if (place >= from.clan.bottom().width) return false;
    if (open.chunk.word_count == 0) return true;
    rows.used += follow_list(kernels, from.chunk, from.clan.width(), from.clan.bottom_slot() + place, from.rows,
                             first.rows, open.chunk, rows.room(from.rows.size() + 1));
    return true;
  }

  std::vector<Layer> layers_;
  std::vector<float> sums_;
  const Query* query_ = nullptr;
};

} // namespace beamwood
