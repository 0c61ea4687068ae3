// Layout `column` (the vanilla baseline): one sparse vector a node. Views, and the builder from chunks.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "beamwood/chunk.hpp"

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

// Visits every weight of a layer, chunks side by side: visit(node, feature, weight). False: the chunks are damaged.
template <class Visit>
bool each_chunk_weight(const LayerShape& shape, const ChunkWeights& chunks, const Workers& workers, Visit&& visit) {
  // Chunks are visited side by side, so first make sure that no two own the same node.
  for (std::size_t i = 0; i + 1 < shape.child_start.size(); ++i)
    if (shape.child_start[i] > shape.child_start[i + 1]) return false;
  std::atomic<bool> sound{true};
  parallel_for(workers, shape.parents(), [&](std::size_t parent, unsigned) {
    Siblings siblings;
    Chunk chunk;
    const auto p = static_cast<std::uint32_t>(parent);
    bool good = shape.children(p, siblings) && chunks.at(p, chunk);
    for (std::uint32_t row = 0; good && row < chunk.support.count; ++row)
      good = each_weight(chunk.words, chunk.word_count, chunk.offset[row], siblings.width, 1,
                         [&](std::uint32_t child, float weight) {
                           if (child < siblings.width)
                             visit(siblings.begin + child, chunk.support.feature[row], weight);
                         });
    if (!good) sound = false;
  });
  return sound;
}

} // namespace detail

// Fills start (nodes + 1) with the offsets of the columns. False: the chunks are damaged.
inline bool measure_columns(const LayerShape& shape, const ChunkWeights& chunks, std::span<std::uint64_t> start,
                            const Workers& workers) {
  std::fill(start.begin(), start.end(), 0u);
  const bool sound = detail::each_chunk_weight(shape, chunks, workers,
                                               [&](std::uint32_t node, std::uint32_t, float) { ++start[node + 1]; });
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  return sound;
}

// Fills the columns that were measured: rows of a chunk come in rising feature order, so columns do too.
inline bool fill_columns(const LayerShape& shape, const ChunkWeights& chunks, std::span<const std::uint64_t> start,
                         std::span<std::uint32_t> feature, std::span<float> weight, const Workers& workers) {
  std::vector<std::uint64_t> next(start.begin(), start.end() - 1);
  return detail::each_chunk_weight(shape, chunks, workers, [&](std::uint32_t node, std::uint32_t f, float w) {
    feature[next[node]] = f;
    weight[next[node]++] = w;
  });
}

} // namespace beamwood
