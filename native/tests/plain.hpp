// Random trees in their plain form: columns as maps, for the plain search and for building everything else from.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "beamwood/engine/activation.hpp"
#include "beamwood/layout/forest.hpp"
#include "check.hpp"

namespace check {

using namespace beamwood;

struct PlainLayer {
  std::vector<std::uint32_t> child_start, label;
  std::vector<float> bias;
  std::vector<std::map<std::uint32_t, float>> column; // feature → weight, a node
};
using PlainTree = std::vector<PlainLayer>;

struct PlainForest {
  std::uint32_t features = 0, labels = 0;
  Activation activation;
  std::vector<PlainTree> trees;
};

struct Plan {
  std::uint32_t features = 40, layers = 3, least_width = 1, most_width = 6, trees = 1;
  double density = 0.2, early_leaves = 0.2;
  bool bias = true;
  Activation activation{ActivationKind::sigmoid, 1, Path::product};
};

inline Plan random_plan(Random& random) {
  constexpr Activation kinds[] = {
      {ActivationKind::sigmoid, 1, Path::product},        {ActivationKind::hinge, 3, Path::product},
      {ActivationKind::log_sigmoid, 1, Path::sum},        {ActivationKind::log_hinge, 2, Path::log_exp},
      {ActivationKind::log_sigmoid, 1, Path::log_exp},    {ActivationKind::identity, 1, Path::last},
      {ActivationKind::log_hinge, 2, Path::log_exp, 0.9f}};
  Plan plan;
  plan.features = random.between(1, 60);
  plan.layers = random.between(1, 4);
  plan.most_width = random.chance(0.2) ? 40 : random.between(1, 9);
  if (plan.most_width == 40) plan.layers = std::min(plan.layers, 2u);
  plan.density = random.chance(0.2) ? 0.02 : 0.3;
  plan.early_leaves = random.chance(0.5) ? 0.0 : 0.3;
  plan.bias = random.chance(0.7);
  plan.trees = random.chance(0.3) ? random.between(2, 3) : 1;
  plan.activation = kinds[random.below(std::size(kinds))];
  return plan;
}

inline PlainTree plain_tree(Random& random, const Plan& plan, std::uint32_t& labels) {
  PlainTree tree;
  std::vector<bool> inner{true};
  labels = 0;
  for (std::uint32_t depth = 0; depth < plan.layers; ++depth) {
    PlainLayer layer;
    layer.child_start.push_back(0);
    for (const bool open : inner)
      layer.child_start.push_back(layer.child_start.back() +
                                  (open ? random.between(plan.least_width, plan.most_width) : 0));
    const std::uint32_t nodes = layer.child_start.back();
    const bool last = depth + 1 == plan.layers;
    inner.assign(nodes, false);
    layer.label.assign(nodes, kNoLabel);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      inner[node] = !last && (node == 0 || !random.chance(plan.early_leaves)); // one path goes down all the way
      if (!inner[node]) layer.label[node] = labels++;
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      auto& column = layer.column.emplace_back();
      for (std::uint32_t f = 0; f < plan.features; ++f)
        if (random.chance(plan.density)) column[f] = random.chance(0.05) ? 0.0f : random.number();
      if (plan.bias) layer.bias.push_back(random.number());
    }
    tree.push_back(std::move(layer));
  }
  return tree;
}

// Labels are dealt to leaves at random, so that label order and tree order differ.
inline void deal_labels(Random& random, PlainTree& tree, std::uint32_t labels) {
  std::vector<std::uint32_t> deal(labels);
  std::iota(deal.begin(), deal.end(), 0u);
  for (std::size_t i = deal.size(); i > 1; --i) std::swap(deal[i - 1], deal[random.below(i)]);
  for (PlainLayer& layer : tree)
    for (std::uint32_t& label : layer.label)
      if (label != kNoLabel) label = deal[label];
}

inline PlainForest plain_forest(Random& random, const Plan& plan) {
  PlainForest forest{plan.features, 0, plan.activation, {}};
  PlainTree tree = plain_tree(random, plan, forest.labels);
  for (std::uint32_t t = 0; t < plan.trees; ++t) { // trees share a shape and differ in weights and labels
    PlainTree other = tree;
    for (PlainLayer& layer : other)
      for (auto& column : layer.column)
        for (auto& [feature, weight] : column) weight += t == 0 ? 0.0f : random.number();
    deal_labels(random, other, forest.labels);
    forest.trees.push_back(std::move(other));
  }
  return forest;
}

} // namespace check
