// The bindings of explanations: the weights and the parent of one node.
#include "forest.hpp"

#include "beamwood/layout/node.hpp"
#include "beamwood/strings.hpp"

using namespace beamwood;

namespace {

const LayerShape& shape_of(const PyForest& self, std::uint32_t tree, std::uint32_t layer) {
  if (tree >= self.forest.trees.size() || layer >= self.forest.trees[tree].layers.size()) throw Damaged{};
  return self.forest.trees[tree].layers[layer].shape;
}

} // namespace

void bind_explain(nb::module_& m) {
  m.def(
      "node_weights",
      [](const PyForest& self, std::uint32_t tree, std::uint32_t layer, std::uint32_t node) {
        WeightsOfNode found;
        {
          const Unlocked released;
          if (!node_weights(self.forest, tree, layer, node, found)) throw Damaged{};
        }
        return nb::make_tuple(give(std::move(found.feature)), give(std::move(found.weight)));
      },
      nb::arg("forest"), nb::arg("tree"), nb::arg("layer"), nb::arg("node"),
      "The features and weights of a node, by rising feature.");
  m.def(
      "node_parent",
      [](const PyForest& self, std::uint32_t tree, std::uint32_t layer, std::uint32_t node) {
        std::uint32_t parent = 0;
        Siblings siblings{};
        if (!parent_of(shape_of(self, tree, layer), node, parent, siblings)) throw Damaged{};
        return parent;
      },
      nb::arg("forest"), nb::arg("tree"), nb::arg("layer"), nb::arg("node"), "The node of the layer above.");
}
