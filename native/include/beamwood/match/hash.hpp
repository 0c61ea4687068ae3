// Matcher `hash` (the paper's hash-map): every feature of the query is looked up in the hash index of the support.
// Cost: h * nnz(x), with h a few steps. Extra memory: a word and a half a row.
//
// Most features of a query are not in a chunk, so the index of a support begins with a filter, a bitmap of eight bits
// a row: it says "surely not" without a branch for seven of eight strangers. Behind it lie slots, five for four rows,
// open addressing with linear probing. A slot is 0 when empty, else (tag, row + 1): the row takes as many low bits as
// the support needs, the tag (more bits of the hash) the rest. Tables are entered at hash * size >> 32: no power of
// two is wasted, and where a support's index begins follows from where its rows begin.
#pragma once
#include <algorithm>
#include <bit>
#include <span>

#include "beamwood/match/match.hpp"

namespace beamwood {

inline std::uint32_t hash_of(std::uint32_t feature) noexcept {
  feature = (feature ^ (feature >> 15)) * 0x2c1b3c6du;
  feature = (feature ^ (feature >> 12)) * 0x297a2d39u;
  return feature ^ (feature >> 15);
}

// Where the index of the n-th support begins, whose rows begin at `row`. The end is where the next one begins.
inline std::uint64_t index_begin(std::uint64_t row, std::uint64_t n) noexcept { return row + row / 2 + 4 * n; }

// Gives the n-th support, whose rows are [row, row_end), its part of all indices. False: it lies outside them.
inline bool attach_index(std::span<const std::uint32_t> all, std::uint64_t row, std::uint64_t row_end, std::uint64_t n,
                         Support& support) noexcept {
  const std::uint64_t begin = index_begin(row, n), end = index_begin(row_end, n + 1);
  if (begin > end || end > all.size()) return false;
  support.index = all.data() + begin;
  support.index_words = end - begin;
  return true;
}

// The parts of one support's index.
struct HashIndex {
  std::uint32_t filter_words, slots, row_mask;

  HashIndex(std::uint32_t rows, std::uint64_t words) noexcept
      : filter_words(rows / 4 + 1), slots(static_cast<std::uint32_t>(words - filter_words)),
        row_mask(static_cast<std::uint32_t>((std::uint64_t{1} << std::bit_width(rows)) - 1)) {}

  static std::uint32_t scaled(std::uint32_t hash, std::uint64_t size) noexcept {
    return static_cast<std::uint32_t>((hash * size) >> 32);
  }
  std::uint64_t filter_bit(std::uint32_t hash) const noexcept {
    return (hash * (std::uint64_t{filter_words} * 32)) >> 32;
  }
  std::uint32_t entry(std::uint32_t hash) const noexcept { return scaled(hash, slots); }
  // The low bits of a hash make the tag: its high bits already chose the entry.
  std::uint32_t tag(std::uint32_t hash) const noexcept {
    return (hash << (32 - std::countl_zero(row_mask)) % 32) & ~row_mask;
  }
};

// Fills the zeroed index of a support.
inline void fill_index(const std::uint32_t* feature, std::uint32_t rows, std::uint32_t* index,
                       std::uint64_t words) noexcept {
  const HashIndex layout(rows, words);
  std::uint32_t* const slot = index + layout.filter_words;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t hash = hash_of(feature[row]);
    const std::uint64_t bit = layout.filter_bit(hash);
    index[bit / 32] |= 1u << (bit % 32);
    std::uint32_t at = layout.entry(hash);
    while (slot[at] != 0) at = at + 1 == layout.slots ? 0 : at + 1;
    slot[at] = layout.tag(hash) | (row + 1);
  }
}

namespace detail {

// The row of a feature, or the support's count when it has none.
inline std::uint32_t probe(const Support& support, const HashIndex& layout, std::uint32_t feature,
                           std::uint32_t hash) noexcept {
  const std::uint32_t* const slot = support.index + layout.filter_words;
  const std::uint32_t tag = layout.tag(hash);
  std::uint32_t at = layout.entry(hash);
  // At most `slots` steps: in a damaged file none may be empty.
  for (std::uint32_t step = 0; step < layout.slots && slot[at] != 0; ++step) {
    const std::uint32_t row = (slot[at] & layout.row_mask) - 1;
    if ((slot[at] & ~layout.row_mask) == tag && row < support.count && support.feature[row] == feature) return row;
    at = at + 1 == layout.slots ? 0 : at + 1;
  }
  return support.count;
}

} // namespace detail

inline std::uint32_t match_hash(const Query& query, const Support& support, Match* out) noexcept {
  if (support.index_words == 0) return 0;
  const HashIndex layout(support.count, support.index_words);
  std::uint32_t found = 0;
  for (std::uint32_t begin = 0; begin < query.count; begin += 64) {
    const std::uint32_t end = std::min(query.count, begin + 64);
    std::uint32_t maybe[64], hashes[64], kept = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t hash = hash_of(query.feature[i]);
      const std::uint64_t bit = layout.filter_bit(hash);
      maybe[kept] = i;
      hashes[kept] = hash;
      kept += (support.index[bit / 32] >> (bit % 32)) & 1u;
    }
    const std::uint32_t* const slot = support.index + layout.filter_words;
    for (std::uint32_t j = 0; j < kept; ++j) __builtin_prefetch(slot + layout.entry(hashes[j]));
    for (std::uint32_t j = 0; j < kept; ++j) {
      const std::uint32_t i = maybe[j];
      const std::uint32_t row = detail::probe(support, layout, query.feature[i], hashes[j]);
      out[found] = {row, query.value[i]};
      found += row < support.count;
    }
  }
  return found;
}

} // namespace beamwood
