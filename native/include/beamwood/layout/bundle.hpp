// Layers that share their chunks: in trees with few children a node, one chunk holds the nodes of several layers.
//
// A node of a binary tree has two children, so a chunk would be two siblings wide: its records would be mostly head, and
// a query would wait for memory at every one of many layers. So neighbouring layers are bundled as long as what descends
// from one node in them fits a mask. These are a run of nodes in each layer, the subtree slots of one
// chunk, layer behind layer:
//
//      above                   p
//      layer 1           0           1               chunk of p:  slots 0 1 | 2 3 4 5
//      layer 2        0     1     2     3
//
// One chunk gives the sums of all of them; the search then goes through the layers as ever, with sums that it has.
// Only slots of the last layer are linked to other chunks. A bundle of one layer is a layer, and its slots are siblings.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/layout/record.hpp"
#include "beamwood/layout/tree.hpp"

namespace beamwood {

inline constexpr std::size_t kMostBundled = 4; // layers

struct SubtreeSlots {
  std::size_t layers = 1;
  std::array<std::uint32_t, kMostBundled> begin{};    // its first node in each layer
  std::array<std::uint32_t, kMostBundled + 1> slot{}; // of that node; then: how many there are

  std::uint32_t width() const noexcept { return slot[layers]; }
  std::uint32_t nodes(std::size_t step) const noexcept { return slot[step + 1] - slot[step]; }

  // The first slot of some siblings of a layer. False: they are not all of the subtree.
  bool find(std::size_t step, const Siblings& siblings, std::uint32_t& first) const noexcept {
    const std::uint32_t place = siblings.begin - begin[step];
    first = slot[step] + place;
    return std::uint64_t{place} + siblings.width <= nodes(step);
  }

  // Its nodes in the last layer, which are linked to other chunks.
  Siblings bottom() const noexcept { return {begin[layers - 1], nodes(layers - 1)}; }
  std::uint32_t bottom_slot() const noexcept { return slot[layers - 1]; }
};

struct Bundle {
  std::size_t layers = 1;
  std::array<const LayerShape*, kMostBundled> shape{}; // from the top

  std::uint32_t parents() const noexcept { return shape[0]->parents(); }

  // What descends from a node above. False when that is more than a chunk of several layers may have, or when the
  // offsets are not those of an valid tree.
  bool slots(std::uint32_t parent, SubtreeSlots& out) const noexcept {
    Siblings run;
    if (!shape[0]->children(parent, run)) return false;
    out.layers = layers;
    out.begin[0] = run.begin;
    out.slot[1] = run.width;
    for (std::size_t step = 1; step < layers; ++step) {
      const auto& start = shape[step]->child_start;
      if (std::size_t{run.begin} + run.width >= start.size()) return false;
      const std::uint32_t begin = start[run.begin], end = start[run.begin + run.width];
      if (begin > end || end > shape[step]->nodes || end - begin > kMaskWidth) return false;
      run = {begin, end - begin};
      out.begin[step] = begin;
      out.slot[step + 1] = out.slot[step] + run.width;
    }
    return layers == 1 || out.width() <= kMaskWidth;
  }
};

// How layers are bundled: for each how many layers of its bundle lie above it. From the top down a bundle takes in layer
// after layer while every subtree fits.
inline std::vector<std::size_t> bundled(std::span<const LayerShape> layers) {
  std::vector<std::size_t> step(layers.size(), 0);
  Bundle bundle;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (l == 0 || bundle.layers == kMostBundled) bundle.layers = 0;
    bundle.shape[bundle.layers++] = &layers[l];
    for (std::uint32_t p = 0; bundle.layers > 1 && p < bundle.parents(); ++p) {
      SubtreeSlots slots;
      if (!bundle.slots(p, slots)) bundle = {1, {&layers[l]}};
    }
    step[l] = bundle.layers - 1;
  }
  return step;
}

// The weights of a bundle from the weights of its layers (see layer_build.hpp).
template <class Source> struct BundleSource {
  Bundle bundle;
  std::array<Source, kMostBundled> layer{};

  // Calls visit(feature, slot, weight) for the subtree of a node above.
  template <class Visit> bool each_weight(std::uint32_t parent, const SubtreeSlots& slots, Visit&& visit) const {
    std::uint32_t first = parent, count = 1; // the nodes whose children come next
    for (std::size_t step = 0; step < bundle.layers; ++step) {
      for (std::uint32_t node = first; node < first + count; ++node) {
        Siblings siblings;
        std::uint32_t slot;
        if (!bundle.shape[step]->children(node, siblings) || !slots.find(step, siblings, slot)) return false;
        if (!layer[step].each_weight(node, siblings, [&](std::uint32_t feature, std::uint32_t child, float weight) {
              visit(feature, slot + child, weight);
            }))
          return false;
      }
      first = slots.begin[step], count = slots.nodes(step);
    }
    return true;
  }
};

} // namespace beamwood
