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
// thread never breaks. Rows keep rising feature order, so the sum law holds; and since a child's rows are those of its
// parent that go on there, in the same order, the features of all rows can be found again from the root down.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/csr.hpp"
#include "beamwood/record.hpp"
#include "beamwood/tree.hpp"

namespace beamwood {

inline constexpr std::uint32_t kNoRow = 0xffffffffu; // in the root index: no record for this feature

struct ThreadedChunk {
  const std::uint32_t* words;
  std::uint64_t word_count;
  bool narrow; // its records hold 16-bit offsets
  WeightCode code;
};

struct ThreadedWeights {
  std::span<const std::uint64_t> start; // parents + 1: twice where each chunk's words begin, + 1 for 16-bit offsets
  std::span<const std::uint32_t> words;
  std::span<const std::uint32_t> root; // top layer only: for each feature the offset of its record, or kNoRow
  WeightKind kind = WeightKind::f32;
  std::span<const float> scale; // of bytes: one a chunk

  // False when the offsets leave the array.
  bool at(std::uint32_t parent, ThreadedChunk& out) const noexcept {
    const std::uint64_t begin = start[parent] >> 1, end = start[parent + 1] >> 1;
    if (begin > end || end > words.size() - kTailWords) return false;
    out = {words.data() + begin,
           end - begin,
           (start[parent] & 1) != 0,
           {kind, kind == WeightKind::u8 ? scale[parent] : 1.0f}};
    return true;
  }
};

// How many of `count` rising numbers are below `wanted`: a binary search whose steps are no branches.
inline std::uint64_t rank_of(const std::uint16_t* numbers, std::uint64_t count, std::uint32_t wanted) noexcept {
  const std::uint16_t* base = numbers;
  for (std::uint64_t left = count; left > 0;) {
    const std::uint64_t half = (left + 1) / 2;
    base += (0 - std::uint64_t{base[half - 1] < wanted}) & half;
    left -= half;
  }
  return static_cast<std::uint64_t>(base - numbers);
}

// The row's place in the chunk of one child, or kNoRow when that chunk does not have the feature.
[[gnu::always_inline]] inline std::uint32_t follow(const ThreadedChunk& chunk, std::uint32_t at, std::uint32_t width,
                                                   std::uint32_t child) noexcept {
  if (at >= chunk.word_count) return kNoRow;
  const std::uint32_t* const record = chunk.words + at;
  if (width <= kMaskWidth) {
    const std::uint32_t mask = record[1], bit = 1u << child;
    const std::uint32_t* const offsets =
        record + record_words(width, 2, static_cast<std::uint64_t>(std::popcount(record[0])), 0, chunk.code.kind);
    const auto i = static_cast<std::uint32_t>(std::popcount(mask & (bit - 1)));
    const std::uint32_t place = chunk.narrow ? half_word(offsets, i) : offsets[i];
    return mask & bit ? place : kNoRow;
  }
  const std::uint64_t n = *record & 0xffffu, m = *record >> 16, size = record_words(width, 2, n, m, chunk.code.kind);
  if (at + size + offset_words(chunk.narrow, m) > chunk.word_count) return kNoRow;
  const auto* const first = reinterpret_cast<const std::uint16_t*>(record + 1 + (n + 1) / 2);
  const std::uint64_t i = rank_of(first, m, child);
  if (i == m || first[i] != child) return kNoRow;
  return chunk.narrow ? half_word(record + size, i) : record[size + i];
}

// Calls for a record that will be read soon.
[[gnu::always_inline]] inline void call_for(const ThreadedChunk& chunk, std::uint32_t at) noexcept {
  const std::uint32_t* const record = chunk.words + at;
  __builtin_prefetch(record);
  __builtin_prefetch(record + 16);
}

// The rows of a query in some chunks, list behind list, in memory that grows and is kept.
struct RowLists {
  std::vector<Placed> rows;
  std::size_t used = 0;

  // Where a list of up to `count` rows may be written; what is kept of it is added to `used`.
  Placed* room(std::size_t count) {
    if (rows.size() < used + count) rows.resize(2 * (used + count));
    return rows.data() + used;
  }
  const Placed* at(std::size_t begin) const noexcept { return rows.data() + begin; }
};

// The features of a query in, its rows in the root's chunk out; their records are called for. Returns how many; `out` has
// room for all, and one more.
inline std::size_t root_rows(const ThreadedWeights& top, const Query& query, const ThreadedChunk& chunk,
                             Placed* out) noexcept {
  const Placed* const first = out;
  for (std::uint32_t i = 0; i < query.count; ++i) {
    const std::uint32_t at = top.root[query.feature[i]];
    const bool there = at != kNoRow;
    *out = {at, query.value[i]};
    call_for(chunk, at & (0u - std::uint32_t{there}));
    out += there;
  }
  return static_cast<std::size_t>(out - first);
}

// Rows of a chunk with masks, as `follow_all`. Whether a row goes on cannot be foreseen, so that no branch asks for it:
// a wrong guess would be found out only when the record has come from memory, and all that was begun behind it is lost.
template <class Offset, WeightKind kind>
inline std::size_t follow_masked(const ThreadedChunk& parent, std::uint32_t child, const Placed* rows,
                                 std::size_t count, const ThreadedChunk& chunk, Placed* out) noexcept {
  const Placed* const first = out;
  const std::uint32_t* const words = parent.words;
  const std::uint64_t word_count = parent.word_count;
  const ThreadedChunk to = chunk;
  const std::uint32_t below = (1u << child) - 1;
  for (const Placed* row = rows; row != rows + count; ++row) {
    if (row->offset >= word_count) continue; // the sums of a damaged chunk have failed before
    const std::uint32_t* const record = words + row->offset;
    const std::uint32_t mask = record[1], there = mask >> child & 1;
    const auto nth = static_cast<std::uint32_t>(std::popcount(mask & below));
    const std::uint32_t* const offsets =
        record + 2 + weight_words(kind, static_cast<std::uint64_t>(std::popcount(record[0])));
    const std::uint32_t place = reinterpret_cast<const Offset*>(offsets)[nth];
    *out = {place, row->value};
    call_for(to, place & (0u - there));
    out += there;
  }
  return static_cast<std::size_t>(out - first);
}

// The rows of a query in a parent's chunk in, those of them that go on in one child's chunk out; their records are
// called for. Returns how many; `out` has room for all, and one more.
inline std::size_t follow_all(const ThreadedChunk& parent, std::uint32_t width, std::uint32_t child, const Placed* rows,
                              std::size_t count, const ThreadedChunk& chunk, Placed* out) noexcept {
  const auto masked = [&]<WeightKind kind>() {
    return parent.narrow ? follow_masked<std::uint16_t, kind>(parent, child, rows, count, chunk, out)
                         : follow_masked<std::uint32_t, kind>(parent, child, rows, count, chunk, out);
  };
  if (width <= kMaskWidth) {
    switch (parent.code.kind) {
    case WeightKind::f32: return masked.template operator()<WeightKind::f32>();
    case WeightKind::f16: return masked.template operator()<WeightKind::f16>();
    case WeightKind::u8: return masked.template operator()<WeightKind::u8>();
    }
  }
  const Placed* const first = out;
  for (const Placed* row = rows; row != rows + count; ++row) {
    const std::uint32_t at = follow(parent, row->offset, width, child);
    const bool there = at != kNoRow;
    *out = {at, row->value};
    call_for(chunk, there ? at : 0);
    out += there;
  }
  return static_cast<std::size_t>(out - first);
}

} // namespace beamwood
