// Layout `chunk` (MSCM): the weights of all children of one parent, row by row. Views only.
//
// A chunk is a sparse set of rows, one a feature; a row holds the weights of the siblings that have that feature, in
// one record (record.hpp), so that a row costs one or two cache lines wherever it lies. For each row there is its
// feature (rising inside a chunk: the support that matchers search) and the offset of its record from the start of the
// chunk's words.
#pragma once
#include <cstdint>
#include <span>

#include "beamwood/layout/record.hpp"
#include "beamwood/layout/tree.hpp"
#include "beamwood/match/hash.hpp"

namespace beamwood {

struct Chunk {
  Support support;
  const std::uint32_t* offset; // of each row's record, in words
  const std::uint32_t* words;
  std::uint64_t word_count;
};

struct ChunkWeights {
  std::span<const std::uint64_t> row_start;  // parents + 1: where each chunk's rows begin
  std::span<const std::uint64_t> word_start; // parents + 1: where each chunk's words begin
  std::span<const std::uint32_t> feature;    // a row
  std::span<const std::uint32_t> offset;     // a row
  std::span<const std::uint32_t> words;
  std::span<const std::uint32_t> index; // the hash indices of all chunks; empty when there are none

  bool has_index() const noexcept { return !index.empty(); }

  // False when the offsets leave the arrays.
  bool at(std::uint32_t parent, Chunk& out) const noexcept {
    const std::uint64_t row = row_start[parent], row_end = row_start[parent + 1];
    const std::uint64_t word = word_start[parent], word_end = word_start[parent + 1];
    const std::uint64_t rows = row_end - row;
    if (row > row_end || row_end > feature.size() || rows > 0xffffffffu) return false;
    if (word > word_end || word_end > words.size() - kTailWords) return false;
    out = {{feature.data() + row, static_cast<std::uint32_t>(rows), nullptr, 0},
           offset.data() + row,
           words.data() + word,
           word_end - word};
    return !has_index() || attach_index(index, row, row_end, parent, out.support);
  }
};

// The weights of chunks, for builders of other layouts (see layer_build.hpp).
struct ChunkSource {
  ChunkWeights chunks;
  std::uint32_t features; // of the model
  bool lists = false;     // see WeightCode

  template <class Visit> bool each_weight(std::uint32_t parent, const Siblings& siblings, Visit&& visit) const {
    Chunk chunk;
    if (!chunks.at(parent, chunk)) return false;
    bool sound = true;
    for (std::uint32_t row = 0; sound && row < chunk.support.count; ++row) {
      const std::uint32_t f = chunk.support.feature[row];
      sound = f < features &&
              beamwood::each_weight(
                  chunk.words, chunk.word_count, chunk.offset[row], {siblings.width, false, {.lists = lists}},
                  [&](std::uint32_t child, float w) { visit(f, child, w); });
    }
    return sound;
  }
};

} // namespace beamwood
