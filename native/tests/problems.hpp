// Random sparse rows and small training problems, each array a vector of exactly its size, so that a sanitizer sees
// the first step outside.
#pragma once
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "beamwood/training/cluster.hpp"
#include "beamwood/training/layer_trainer.hpp"
#include "check.hpp"

namespace check {

// A sparse matrix by lines that owns its arrays.
struct Sparse {
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> index;
  std::vector<float> value;
  std::size_t width = 0;

  void add_line(const std::map<std::int32_t, float>& entries) {
    for (const auto& [i, v] : entries) index.push_back(i), value.push_back(v);
    start.push_back(static_cast<std::int64_t>(index.size()));
  }
  std::size_t lines() const { return start.size() - 1; }
  std::map<std::int32_t, float> line(std::size_t i) const {
    std::map<std::int32_t, float> entries;
    for (auto e = static_cast<std::size_t>(start[i]); e < static_cast<std::size_t>(start[i + 1]); ++e)
      entries[index[e]] = value[e];
    return entries;
  }
  beamwood::SparseView view() const { return {start, index, value}; }
  beamwood::SparseRows rows() const { return {start, index, value, width}; }
};

// `lines` lines of up to `most` entries with values from 0.1 to 1.
inline Sparse random_sparse(Random& random, std::size_t lines, std::size_t width, std::size_t most) {
  Sparse made;
  made.width = width;
  for (std::size_t i = 0; i < lines; ++i) {
    std::map<std::int32_t, float> entries;
    for (std::size_t e = 0; e < most; ++e)
      entries[static_cast<std::int32_t>(random.below(width))] =
          0.1f + 0.9f * static_cast<float>(random.below(1000)) / 1000;
    made.add_line(entries);
  }
  return made;
}

// Unit rows of `themes` kinds in mixed order: row i is of theme i % themes and shares features only with its theme.
inline Sparse themed_rows(Random& random, std::size_t lines, std::size_t themes) {
  Sparse made;
  made.width = themes * 10;
  for (std::size_t i = 0; i < lines; ++i) {
    std::map<std::int32_t, float> entries;
    for (int e = 0; e < 8; ++e) entries[static_cast<std::int32_t>(i % themes * 10 + random.below(10))] = 1.0f;
    for (auto& [f, v] : entries) v /= std::sqrt(static_cast<float>(entries.size()));
    made.add_line(entries);
  }
  return made;
}

// A layer to learn: every row reaches the parents of its positives, and some others.
struct Layer {
  Sparse x, reaching, positives; // positives by child; their values are what a row counts
  std::vector<std::int64_t> child_start, child;
  std::vector<float> row_weight;
  bool relevance = false;

  beamwood::LayerProblem problem() const {
    beamwood::SparseView reach = reaching.view(), positive = positives.view();
    reach.value = {};
    if (!relevance) positive.value = {};
    return {x.view(), x.width, reach, positive, child_start, child, row_weight};
  }
  std::vector<std::int32_t> rows_of(const Sparse& lines, std::size_t line) const {
    std::vector<std::int32_t> rows;
    for (const auto& [row, value] : lines.line(line)) rows.push_back(row);
    return rows;
  }
};

struct LayerPlan {
  std::size_t rows = 60, features = 30, entries = 6, parents = 2, children = 11; // children of each parent
  double positive = 0.2, stranger = 0.1; // chances of a row: to be a child's positive; to be one without reaching it
  bool weights = false, relevance = false;
};

inline Layer random_layer(Random& random, const LayerPlan& plan) {
  Layer layer;
  layer.x = random_sparse(random, plan.rows, plan.features, plan.entries);
  layer.relevance = plan.relevance;
  const std::size_t nodes = plan.parents * plan.children;
  layer.reaching.width = layer.positives.width = plan.rows;
  layer.child_start.push_back(0);
  layer.positives.start.clear();
  std::vector<std::map<std::int32_t, float>> positives(nodes);
  for (std::size_t p = 0; p < plan.parents; ++p) {
    std::map<std::int32_t, float> reach;
    for (std::size_t r = 0; r < plan.rows; ++r) {
      const auto row = static_cast<std::int32_t>(r);
      if (random.chance(0.7)) reach[row] = 1;
      if (!reach.contains(row) && !random.chance(plan.stranger)) continue;
      for (std::size_t c = 1; c < plan.children; ++c) // the first child stays without a row
        if (random.chance(plan.positive)) positives[p * plan.children + c][row] = 0.5f + static_cast<float>(c % 3);
    }
    layer.reaching.add_line(reach);
    layer.child_start.push_back(static_cast<std::int64_t>((p + 1) * plan.children));
  }
  layer.positives.start.assign(1, 0);
  for (const auto& line : positives) layer.positives.add_line(line);
  layer.child.resize(nodes);
  std::iota(layer.child.begin(), layer.child.end(), 0);
  if (plan.weights)
    for (std::size_t r = 0; r < plan.rows; ++r) layer.row_weight.push_back(0.5f + static_cast<float>(r % 4));
  return layer;
}

} // namespace check
