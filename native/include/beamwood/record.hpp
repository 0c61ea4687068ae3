// The record of one row: which siblings have a weight, the weights; and, in the threaded layout, which children's
// chunks go on with this feature and where. The one place that knows how a row lies in memory.
//
// A record is a run of 32-bit words. In chunks of up to 32 siblings it begins with masks, in wider ones with sets:
//
//   narrow   [weight mask]{[child mask]}[weight, for each bit, lowest first]{[offset, for each child bit]}
//   wide     [n | m << 16][set of n siblings][set of m siblings][n weights][m offsets]
//
// Braces: only in the inner layers of the threaded layout. A set of few siblings is a list of rising numbers of 16 bits,
// padded to a word; one whose list would be no shorter is a bitmap, a bit a sibling, lowest first, padded to a word.
// So rare features take little room and frequent ones are added and followed by masks, as in narrow chunks. Offsets are
// words from the start of the child's chunk, 16 bits each (padded) where every child's chunk is small, else 32.
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

// How the records of a wide chunk hold sets of its siblings.
struct SetForm {
  std::uint32_t bitmap_words, least_bits; // a set of at least so many is a bitmap

  [[gnu::always_inline]] explicit SetForm(std::uint32_t width, bool lists = false) noexcept
      : bitmap_words((width + 31) / 32), least_bits(lists ? 0xffffffffu : 2 * bitmap_words - 1) {}

  [[gnu::always_inline]] bool bits(std::uint64_t count) const noexcept { return count >= least_bits; }
  [[gnu::always_inline]] std::uint64_t words(std::uint64_t count) const noexcept {
    return bits(count) ? bitmap_words : (count + 1) / 2;
  }
};

// What a record takes, without offsets. masks is 1, or 2 where children are threaded.
[[gnu::always_inline]] inline std::uint64_t record_words(std::uint32_t width, std::uint32_t masks,
                                                         std::uint64_t weights, std::uint64_t children = 0,
                                                         WeightKind kind = WeightKind::f32,
                                                         bool lists = false) noexcept {
  if (width <= kMaskWidth) return masks + weight_words(kind, weights);
  const SetForm form(width, lists);
  return 1 + form.words(weights) + form.words(children) + weight_words(kind, weights);
}

[[gnu::always_inline]] inline std::uint64_t offset_words(bool narrow_offsets, std::uint64_t children) noexcept {
  return narrow_offsets ? (children + 1) / 2 : children;
}

// What a record in a chunk holds. words includes the offsets.
struct RecordSize {
  std::uint32_t weights, children;
  std::uint64_t words;
};

inline RecordSize size_of_record(const std::uint32_t* record, std::uint32_t width, std::uint32_t masks, WeightCode code,
                                 bool narrow_offsets) noexcept {
  const bool masked = width <= kMaskWidth;
  const auto n = masked ? static_cast<std::uint32_t>(std::popcount(*record)) : *record & 0xffffu;
  const auto m = masked ? (masks == 2 ? static_cast<std::uint32_t>(std::popcount(record[1])) : 0) : *record >> 16;
  return {n, m, record_words(width, masks, n, m, code.kind, code.lists) + offset_words(narrow_offsets, m)};
}

inline std::uint32_t half_word(const std::uint32_t* words, std::uint64_t i) noexcept {
  return (words[i / 2] >> (16 * (i % 2))) & 0xffffu;
}

inline void set_half_word(std::uint32_t* words, std::uint64_t i, std::uint32_t value) noexcept {
  words[i / 2] = i % 2 ? words[i / 2] | value << 16 : value; // the even one clears its partner's half
}

// Puts the i-th sibling into the set of `count` that begins at `set` and whose words were zeros before.
inline void put_sibling(const SetForm& form, std::uint32_t* set, std::uint64_t count, std::uint64_t i,
                        std::uint32_t sibling) noexcept {
  if (form.bits(count)) set[sibling / 32] |= 1u << (sibling % 32);
  else set_half_word(set, i, sibling);
}

// Calls visit(sibling) for each of the `count` siblings of a set, rising. False when they are others than the chunk has.
template <class Visit>
inline bool each_sibling_of(const SetForm& form, const std::uint32_t* set, std::uint64_t count, std::uint32_t width,
                            Visit&& visit) noexcept {
  if (!form.bits(count)) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint32_t sibling = half_word(set, i);
      if (sibling >= width) return false;
      visit(sibling);
    }
    return true;
  }
  std::uint64_t found = 0;
  for (std::uint32_t word = 0; word < form.bitmap_words; ++word)
    found += static_cast<unsigned>(std::popcount(set[word]));
  if (found != count || (width % 32 != 0 && set[width / 32] >> (width % 32) != 0)) return false;
  for (std::uint32_t word = 0; word < form.bitmap_words; ++word)
    for (std::uint32_t mask = set[word]; mask != 0; mask &= mask - 1)
      visit(32 * word + static_cast<std::uint32_t>(std::countr_zero(mask)));
  return true;
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
  const SetForm form(width, code.lists);
  if (at + record_words(width, masks, n, m, code.kind, code.lists) > word_count) return false;
  const std::uint32_t* const weights = record + 1 + form.words(n) + form.words(m);
  std::uint64_t nth = 0;
  return each_sibling_of(form, record + 1, n, width,
                         [&](std::uint32_t sibling) { emit(sibling, decode(code, weights, nth++)); });
}

} // namespace beamwood
