// Layout `column` (the vanilla baseline): one sparse vector a node. Views, and the builder from any source of weights.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/layout/tree.hpp"
#include "beamwood/match/hash.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

struct Column {
  Support support;
  const float* weight;
};

struct ColumnWeights {
  std::span<const std::uint64_t> start;   // nodes + 1
  std::span<const std::uint32_t> feature; // rising in each column
  std::span<const float> weight;
  std::span<const std::uint32_t> index; // the hash indices of all columns; empty when there are none

  bool has_index() const noexcept { return !index.empty(); }

  bool at(std::uint32_t node, Column& out) const noexcept {
    const std::uint64_t begin = start[node], end = start[node + 1];
    if (begin > end || end > feature.size() || end - begin > 0xffffffffu) return false;
    out = {{feature.data() + begin, static_cast<std::uint32_t>(end - begin), nullptr, 0}, weight.data() + begin};
    return !has_index() || attach_index(index, begin, end, node, out.support);
  }
};

namespace detail {

// Visits every weight of a layer, chunks side by side: visit(node, feature, weight). False: the source is damaged.
template <class Source, class Visit>
bool each_layer_weight(const LayerShape& shape, const Source& source, const Workers& workers, Visit&& visit) {
  // Chunks are visited side by side, so first make sure that no two own the same node.
  for (std::size_t i = 0; i + 1 < shape.child_start.size(); ++i)
    if (shape.child_start[i] > shape.child_start[i + 1]) return false;
  std::atomic<bool> sound{true};
  parallel_for(workers, shape.parents(), [&](std::size_t parent, unsigned) {
    Siblings siblings;
    const auto p = static_cast<std::uint32_t>(parent);
    if (!shape.children(p, siblings) ||
        !source.each_weight(p, siblings, [&](std::uint32_t f, std::uint32_t child, float weight) {
          visit(siblings.begin + child, f, weight);
        }))
      sound = false;
  });
  return sound;
}

} // namespace detail

// Fills start (nodes + 1) with the offsets of the columns. False: the source is damaged.
template <class Source>
bool measure_columns(const LayerShape& shape, const Source& source, std::span<std::uint64_t> start,
                     const Workers& workers) {
  std::fill(start.begin(), start.end(), 0u);
  const bool sound = detail::each_layer_weight(shape, source, workers,
                                               [&](std::uint32_t node, std::uint32_t, float) { ++start[node + 1]; });
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  return sound;
}

// Fills the columns that were measured. A source lists the features of each node in rising order.
template <class Source>
bool fill_columns(const LayerShape& shape, const Source& source, std::span<const std::uint64_t> start,
                  std::span<std::uint32_t> feature, std::span<float> weight, const Workers& workers) {
  std::vector<std::uint64_t> next(start.begin(), start.end() - 1);
  return detail::each_layer_weight(shape, source, workers, [&](std::uint32_t node, std::uint32_t f, float w) {
    feature[next[node]] = f;
    weight[next[node]++] = w;
  });
}

} // namespace beamwood
