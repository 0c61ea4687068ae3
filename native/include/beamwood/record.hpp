// The record of one row: which siblings have a weight, the weights; and, in the threaded layout, which children's
// chunks go on with this feature and where. The one place that knows how a row lies in memory.
//
// A record is a run of 32-bit words. In chunks of up to 32 siblings it begins with masks, in wider ones with lists:
//
//   narrow   [weight mask]{[child mask]}[weight, for each bit, lowest first]{[offset, for each child bit]}
//   wide     [n | m << 16][n sibling numbers][m sibling numbers][n weights][m offsets]
//
// Braces: only in the inner layers of the threaded layout. Sibling numbers are 16 bits each, padded to a word. Offsets
// are words from the start of the child's chunk, 16 bits each (padded) where every child's chunk is small, else 32.
// A set bit whose weight is zero is a stored zero: models come back out bit for bit.
#pragma once
#include <bit>
#include <cstdint>

#include "beamwood/compact.hpp"

namespace beamwood {

inline constexpr std::uint32_t kMaskWidth = 32;

// No narrow record is longer (two masks, 32 weights, 32 offsets), nor does a vector load reach farther beyond a
// record's start: arrays of records end with this many spare words.
inline constexpr std::uint32_t kTailWords = 96;

// A row of the query's support in a chunk: where its record lies, and the query's value of the feature.
struct Placed {
  std::uint32_t offset;
  float value;
};

// What a record takes, without offsets. masks is 1, or 2 where children are threaded.
[[gnu::always_inline]] inline std::uint64_t record_words(std::uint32_t width, std::uint32_t masks,
                                                         std::uint64_t weights, std::uint64_t children = 0,
                                                         WeightKind kind = WeightKind::f32) noexcept {
  if (width <= kMaskWidth) return masks + weight_words(kind, weights);
  return 1 + (weights + 1) / 2 + (children + 1) / 2 + weight_words(kind, weights);
}

[[gnu::always_inline]] inline std::uint64_t offset_words(bool narrow_offsets, std::uint64_t children) noexcept {
  return narrow_offsets ? (children + 1) / 2 : children;
}

// What a record in a chunk holds. words includes the offsets.
struct RecordSize {
  std::uint32_t weights, children;
  std::uint64_t words;
};

inline RecordSize size_of_record(const std::uint32_t* record, std::uint32_t width, std::uint32_t masks, WeightKind kind,
                                 bool narrow_offsets) noexcept {
  const bool masked = width <= kMaskWidth;
  const auto n = masked ? static_cast<std::uint32_t>(std::popcount(*record)) : *record & 0xffffu;
  const auto m = masked ? (masks == 2 ? static_cast<std::uint32_t>(std::popcount(record[1])) : 0) : *record >> 16;
  return {n, m, record_words(width, masks, n, m, kind) + offset_words(narrow_offsets, m)};
}

inline std::uint32_t half_word(const std::uint32_t* words, std::uint64_t i) noexcept {
  return (words[i / 2] >> (16 * (i % 2))) & 0xffffu;
}

inline void set_half_word(std::uint32_t* words, std::uint64_t i, std::uint32_t value) noexcept {
  words[i / 2] = i % 2 ? words[i / 2] | value << 16 : value; // the even one clears its partner's half
}

// Calls emit(sibling, weight) for every weight of the record at `at`. False when it or a sibling leaves the chunk.
template <class Emit>
inline bool each_weight(const std::uint32_t* words, std::uint64_t word_count, std::uint64_t at, std::uint32_t width,
                        std::uint32_t masks, WeightCode code, Emit&& emit) noexcept {
  if (at >= word_count) return false;
  const std::uint32_t* const record = words + at;
  if (width <= kMaskWidth) {
    std::uint64_t nth = 0;
    if (width < kMaskWidth && *record >> width != 0) return false;
    for (std::uint32_t mask = *record; mask != 0; mask &= mask - 1)
      emit(static_cast<std::uint32_t>(std::countr_zero(mask)), decode(code, record + masks, nth++));
    return true;
  }
  const std::uint64_t n = *record & 0xffffu, m = *record >> 16;
  if (at + record_words(width, masks, n, m, code.kind) > word_count) return false;
  const std::uint32_t* const weights = record + 1 + (n + 1) / 2 + (m + 1) / 2;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint32_t sibling = half_word(record + 1, i);
    if (sibling >= width) return false;
    emit(sibling, decode(code, weights, i));
  }
  return true;
}

} // namespace beamwood
