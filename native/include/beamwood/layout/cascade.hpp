// Layout `cascade` (ours): rows that point to the same feature's rows in the children's chunks. Views only.
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
// way down never breaks. Rows keep rising feature order, so the sum law holds; and since a child's rows are those of its
// parent that go on there, in the same order, the features of all rows can be found again from the root down.
#pragma once
#include <bit>
#include <cstdint>
#include <span>

#include "beamwood/layout/pages.hpp"
#include "beamwood/layout/record.hpp"
#include "beamwood/layout/sets.hpp"
#include "beamwood/layout/tree.hpp"

namespace beamwood {

inline constexpr std::uint32_t kNoRow = 0xffffffffu; // in the root index: no record for this feature

struct CascadeChunk {
  const std::uint32_t* words;
  std::uint64_t word_count;
  WeightCode code;
  bool paged = false;

  RecordForm form(std::uint32_t width, bool cascade) const noexcept { return {width, cascade, code}; }

  // False when its turns leave the chunk.
  [[gnu::always_inline]] bool pages(std::uint32_t width, Pages& out) const noexcept {
    out = {};
    if (!paged) return true;
    if (word_count == 0) return false;
    out = {words + 1, *words};
    return out.turns <= 0xffffu && Pages::words(out.turns, width) <= word_count;
  }
};

struct CascadeWeights {
  std::span<const std::uint64_t> start; // parents + 1: twice where each chunk's words begin, + 1 when it is paged
  std::span<const std::uint32_t> words;
  std::span<const std::uint32_t> root; // top layer only: for each feature the offset of its record, or kNoRow
  WeightKind kind = WeightKind::f32;
  std::span<const float> scale; // of bytes: one a chunk

  // False when the offsets leave the array.
  bool at(std::uint32_t parent, CascadeChunk& out) const noexcept {
    const std::uint64_t begin = start[parent] >> 1, end = start[parent + 1] >> 1;
    if (begin > end || end > words.size() - kTailWords) return false;
    out = {words.data() + begin,
           end - begin,
           {kind, kind == WeightKind::u8 ? scale[parent] : 1.0f},
           (start[parent] & 1) != 0};
    return true;
  }
};

// The lower bits of a row's place in the chunk of one child of a wide chunk, or kNoRow; `at` lies inside the chunk.
[[gnu::always_inline]] inline std::uint32_t follow_wide(const CascadeChunk& chunk, std::uint32_t at,
                                                        const SetForm& form, std::uint32_t child) noexcept {
  const std::uint32_t* const record = chunk.words + at;
  const std::uint64_t n = *record & 0xffffu, m = *record >> 16, set = 1 + form.words(n);
  const std::uint64_t size = set + form.words(m) + weight_words(chunk.code.kind, n);
  if (at + size + (m + 1) / 2 > chunk.word_count) return kNoRow;
  const Place place = form.bits(m) ? place_in_bitmap(record + set, child) : place_in_list(record + set, m, child);
  const bool there = place.there && place.nth < m; // a bitmap of more bits than it says leads nowhere
  const std::uint64_t i = there ? place.nth : 0;
  const std::uint32_t found = half_word(record + size, i);
  return there ? found : kNoRow;
}

// The row's place in the chunk of one child, or kNoRow when that chunk does not have the feature. `pages` are the chunk's.
[[gnu::always_inline]] inline std::uint32_t follow(const CascadeChunk& chunk, const Pages& pages, std::uint32_t at,
                                                   std::uint32_t width, std::uint32_t child) noexcept {
  if (at >= chunk.word_count) return kNoRow;
  std::uint32_t found;
  if (width <= kMaskWidth) {
    const MaskForm form(width, true);
    const std::uint32_t* const record = chunk.words + at;
    const std::uint32_t mask = form.children(record), bit = 1u << child;
    const auto weights = static_cast<std::uint64_t>(std::popcount(form.weights(record)));
    const auto nth = static_cast<std::uint64_t>(std::popcount(mask & (bit - 1)));
    found = half_word(record, form.place(weight_words(chunk.code.kind, weights), nth));
    if ((mask & bit) == 0) found = kNoRow;
  } else {
    found = follow_wide(chunk, at, SetForm(width), child);
  }
  return found == kNoRow || pages.turns == 0 ? found : found | pages.upper(at, child);
}

// Prefetches a record that will be read soon.
[[gnu::always_inline]] inline void prefetch(const CascadeChunk& chunk, std::uint32_t at) noexcept {
  const std::uint32_t* const record = chunk.words + at;
  __builtin_prefetch(record);
  __builtin_prefetch(record + 16);
}

} // namespace beamwood
