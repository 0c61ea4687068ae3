// Layout `threaded` (ours): rows that point to the same feature's rows in the children's chunks. Views only.
//
// A query walks down the tree, so the answer to "where is feature j in this chunk?" was known one layer above. Each
// record holds, besides its weights, for every child whose own chunk has this feature the place of its record there.
// Only the root has an index (feature -> record); below it nothing is searched, hashed or compared, and no feature ids
// are stored:
//
//      root index:  feature 7 --.
//                               v
//      root chunk   [weights of 7 | child 2: +40 | child 5: +96]
//                                        |
//      chunk of 2   ...  +40 [weights of 7 | child 0: +12 ...]
//
// Where a child's chunk has a feature that its parent's lacks, the parent gets a record without weights, so that the
// thread never breaks. Rows keep rising feature order, so the sum law holds. A chunk begins with one word of flags.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "beamwood/record.hpp"
#include "beamwood/tree.hpp"

namespace beamwood {

inline constexpr std::uint32_t kNarrowOffsets = 1; // flag: this chunk's records hold 16-bit offsets

struct ThreadedChunk {
  const std::uint32_t* words;
  std::uint64_t word_count;
  std::uint32_t flags;
};

struct ThreadedWeights {
  std::span<const std::uint64_t> word_start; // parents + 1: where each chunk's words begin
  std::span<const std::uint32_t> words;
  std::span<const std::uint32_t> root; // top layer only: for each feature the offset of its record, 0 for none

  bool present() const noexcept { return !word_start.empty(); }

  // False when the offsets leave the array.
  bool at(std::uint32_t parent, ThreadedChunk& out) const noexcept {
    const std::uint64_t begin = word_start[parent], end = word_start[parent + 1];
    if (begin > end || end > words.size() - kTailWords) return false;
    out = {words.data() + begin, end - begin, words[begin]};
    return true;
  }
};

// The place of a row in the chunk of one child: its offset there, or 0 when that chunk does not have the feature.
inline std::uint32_t follow(const ThreadedChunk& chunk, std::uint32_t at, std::uint32_t width,
                            std::uint32_t child) noexcept {
  if (at >= chunk.word_count) return 0;
  const std::uint32_t* const record = chunk.words + at;
  const bool narrow = chunk.flags & kNarrowOffsets;
  if (width <= kMaskWidth) {
    const std::uint32_t mask = record[1], bit = 1u << child;
    if (!(mask & bit)) return 0;
    const std::uint32_t* const offsets = record + 2 + std::popcount(record[0]);
    const auto i = static_cast<std::uint32_t>(std::popcount(mask & (bit - 1)));
    return narrow ? half_word(offsets, i) : offsets[i];
  }
  const std::uint64_t n = *record & 0xffffu, m = *record >> 16, size = record_words(width, 2, n, m);
  if (at + size + offset_words(narrow, m) > chunk.word_count) return 0;
  const auto* const first = reinterpret_cast<const std::uint16_t*>(record + 1 + (n + 1) / 2);
  const auto* const found = std::lower_bound(first, first + m, child);
  if (found == first + m || *found != child) return 0;
  const auto i = static_cast<std::uint64_t>(found - first);
  return narrow ? half_word(record + size, i) : record[size + i];
}

} // namespace beamwood
