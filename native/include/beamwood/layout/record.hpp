// The record of one row: which siblings have a weight, the weights; and, in the cascade layout, which children's
// chunks go on with this feature and where. The one place that knows how a row lies in memory.
//
// A record is a run of 32-bit words. In chunks of up to 32 siblings it begins with masks, in wider ones with sets:
//
//   up to 8     [weight mask | child mask << 8 | first offset << 16][weights][further offsets]
//   up to 16    [weight mask | child mask << 16][weights][offsets]
//   up to 32    [weight mask]{[child mask]}[weights][offsets]
//   wider       [n | m << 16][set of n siblings][set of m siblings][n weights][m offsets]
//
// Weights and offsets stand in the order of their siblings. Child masks, the word in braces and offsets are only in the
// inner layers of the cascade layout. Where nodes have few children, heads are most of a model: hence their three forms.
// A set of few siblings is a list of rising numbers of 16 bits, padded to a word; one whose list would
// be no shorter is a bitmap, a bit a sibling, lowest first, padded to a word. So rare features take little room and
// frequent ones are added and followed by masks, as in narrow chunks.
//
// An offset says where the row's record begins in the child's chunk, in words: the lower 16 bits of it. They lie side by
// side, padded to a word. The upper bits need no room: see pages.hpp.
// A set bit whose weight is zero is a stored zero: models come back out bit for bit.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "beamwood/layout/compact.hpp"

namespace beamwood {

inline constexpr std::uint32_t kMaskWidth = 32;

// No narrow record is longer (two masks, 32 weights, 32 offsets), nor does a vector load reach farther beyond a
// record's start: arrays of records end with this many spare words.
inline constexpr std::uint32_t kTailWords = 96;

// The bits of a record's first word that are its weight mask, in chunks of up to so many times eight siblings.
template <int eights>
inline constexpr std::uint32_t kMaskBits = eights == 1   ? 0xffu
                                           : eights == 2 ? 0xffffu
                                                         : 0xffffffffu;

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

// How the records of a narrow chunk begin, and where their offsets lie.
struct MaskForm {
  std::uint32_t words;                  // before the weights
  std::uint32_t weight_bits;            // of the first word: the weight mask
  std::uint32_t child_word, child_lift; // the child mask: how many words and bits from the start
  std::uint32_t child_bits;             // of those: 0 where children are not cascade
  bool first_in_head;                   // the first offset

  [[gnu::always_inline]] constexpr MaskForm(std::uint32_t width, bool cascade) noexcept
      : words(cascade && width > 16 ? 2 : 1),
        weight_bits(width <= 8 ? kMaskBits<1> : (width <= 16 ? kMaskBits<2> : kMaskBits<4>)), child_word(words - 1),
        child_lift(width <= 8 ? 8 : (width <= 16 ? 16 : 0)), child_bits(cascade ? weight_bits : 0),
        first_in_head(cascade && width <= 8) {}

  [[gnu::always_inline]] std::uint32_t weights(const std::uint32_t* record) const noexcept {
    return *record & weight_bits;
  }
  [[gnu::always_inline]] std::uint32_t children(const std::uint32_t* record) const noexcept {
    return record[child_word] >> child_lift & child_bits;
  }
  [[gnu::always_inline]] std::uint64_t offset_words(std::uint64_t count) const noexcept {
    return (count + !first_in_head) / 2;
  }
  // Where the nth offset lies, in half words from the start of a record whose weights take so many words.
  [[gnu::always_inline]] std::uint64_t place(std::uint64_t weight_words, std::uint64_t nth) const noexcept {
    if (!first_in_head) return 2 * (words + weight_words) + nth;
    return 1 + ((2 * weight_words + nth) & (0 - std::uint64_t{nth != 0})); // no branch: it could not be foreseen
  }
};

// What a record takes in a chunk, and where its parts lie. cascade: with child masks and offsets.
struct RecordForm {
  std::uint32_t width;
  bool cascade;
  WeightCode code;

  std::uint64_t words(std::uint64_t weights, std::uint64_t children) const noexcept {
    return offsets_at(weights, children) +
           (width <= kMaskWidth ? MaskForm(width, cascade).offset_words(children) : (children + 1) / 2);
  }
  // In words from the start: the first weight, and the first offset that is not in the head.
  std::uint64_t weights_at(std::uint64_t weights, std::uint64_t children) const noexcept {
    if (width <= kMaskWidth) return MaskForm(width, cascade).words;
    const SetForm form(width, code.lists);
    return 1 + form.words(weights) + form.words(children);
  }
  std::uint64_t offsets_at(std::uint64_t weights, std::uint64_t children) const noexcept {
    return weights_at(weights, children) + weight_words(code.kind, weights);
  }

  // How many weights and children a record has.
  std::uint32_t weights(const std::uint32_t* record) const noexcept {
    if (width > kMaskWidth) return *record & 0xffffu;
    return static_cast<std::uint32_t>(std::popcount(MaskForm(width, cascade).weights(record)));
  }
  std::uint32_t children(const std::uint32_t* record) const noexcept {
    if (width > kMaskWidth) return *record >> 16;
    return static_cast<std::uint32_t>(std::popcount(MaskForm(width, cascade).children(record)));
  }
  std::uint64_t words(const std::uint32_t* record) const noexcept { return words(weights(record), children(record)); }
};

[[gnu::always_inline]] inline std::uint32_t half_word(const std::uint32_t* words, std::uint64_t i) noexcept {
  static_assert(std::endian::native == std::endian::little);
  std::uint16_t half;
  std::memcpy(&half, reinterpret_cast<const char*>(words) + 2 * i, sizeof half);
  return half;
}

// Writes a half word whose bits were zeros before.
inline void set_half_word(std::uint32_t* words, std::uint64_t i, std::uint32_t value) noexcept {
  words[i / 2] |= (value & 0xffffu) << (16 * (i % 2));
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
                            Visit&& visit) {
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
inline bool each_weight(const std::uint32_t* words, std::uint64_t word_count, std::uint64_t at, const RecordForm& form,
                        Emit&& emit) {
  if (at >= word_count) return false;
  const std::uint32_t* const record = words + at;
  const std::uint64_t n = form.weights(record), m = form.children(record);
  if (at + form.offsets_at(n, m) > word_count) return false;
  const std::uint32_t* const weights = record + form.weights_at(n, m);
  std::uint64_t nth = 0;
  if (form.width > kMaskWidth)
    return each_sibling_of(SetForm(form.width, form.code.lists), record + 1, n, form.width,
                           [&](std::uint32_t sibling) { emit(sibling, decode(form.code, weights, nth++)); });
  std::uint32_t mask = MaskForm(form.width, form.cascade).weights(record);
  if (form.width < kMaskWidth && mask >> form.width != 0) return false;
  for (; mask != 0; mask &= mask - 1)
    emit(static_cast<std::uint32_t>(std::countr_zero(mask)), decode(form.code, weights, nth++));
  return true;
}

} // namespace beamwood
