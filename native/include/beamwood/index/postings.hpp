// A feature in, the labels that have a weight for it out: inverted lists in pieces of 65,536 labels. Views only.
//
// A list is a run of 16-bit words: for each tile of 65,536 labels in which the feature occurs, by rising tile, a piece
//
//   [tile][count - 1][places][weights]
//
// Places are the labels' numbers inside the tile, rising, a word each; or, where that takes fewer words, a bit for each
// label of the tile in groups of 512 bits, and before all groups, for each of them, how many bits are set in those that
// precede it. So a label is found in a frequent feature's piece by one look at a bit and a few popcounts. Weights are
// float32, halves or bytes in steps of the feature's scale (below zero: bytes are signed, the step is its size).
//
// A feature that one label in 16 has, and no negative weight, is stored a second time, so that bounds can be added up many
// labels at once (dense_sums.hpp): a byte for each label, its weight in steps of 1/255 of the largest, rounded up, or 0.
//
// The law: the arrays may lie in a damaged file. Opening reads none of them; a piece is compared with the end of its
// list when it is come to, a rank with the number of weights when it is followed, and a label with the number of labels
// before it is answered. Nothing outside the arrays is read.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "beamwood/layout/compact.hpp"

namespace beamwood {

inline constexpr std::uint32_t kTile = 1u << 16; // labels
inline constexpr std::uint32_t kGroup = 512;     // bits of a bitmap under one rank
inline constexpr std::uint32_t kDense = 16;      // one label in so many: a feature that many have

struct Postings {
  std::uint32_t features = 0, labels = 0;
  WeightKind kind = WeightKind::f32;
  std::span<const std::uint64_t> start; // features + 1: where each list begins among the words
  std::span<const std::uint16_t> words;
  std::span<const float> top;   // the largest weight of each list, at least 0; its sign bit says that some are negative
  std::span<const float> scale; // of bytes: one for each feature
  std::span<const float> bias;  // of each label, or none
  std::span<const std::uint32_t> dense; // of each feature: the number of its codes from 1 on, or 0; may be empty
  std::span<const std::uint8_t> codes;  // stride() for each
  bool matched_only = false;            // whether only labels that score above 0 are answers

  explicit operator bool() const noexcept { return !start.empty(); }

  // Whether the arrays fit each other in length: all that is looked at before a query.
  bool consistent() const noexcept {
    return start.size() == static_cast<std::size_t>(features) + 1 && top.size() == features &&
           (kind != WeightKind::u8 || scale.size() == features) && (bias.empty() || bias.size() == labels) &&
           (dense.empty() || dense.size() == features);
  }

  // Labels, filled up so that vectors end where codes do.
  std::size_t stride() const noexcept { return (static_cast<std::size_t>(labels) + 63) / 64 * 64; }

  std::uint32_t width(std::uint32_t tile) const noexcept { return std::min(kTile, labels - tile * kTile); }
};

inline std::uint32_t groups_of(std::uint32_t width) noexcept { return (width + kGroup - 1) / kGroup; }
inline std::uint32_t bitmap_words(std::uint32_t width) noexcept { return groups_of(width) * (1 + kGroup / 16); }
inline std::uint64_t place_words(std::uint32_t width, std::uint32_t count) noexcept {
  return std::min(bitmap_words(width), count);
}
inline std::uint64_t posting_weight_words(WeightKind kind, std::uint64_t count) noexcept {
  return kind == WeightKind::f32 ? 2 * count : kind == WeightKind::f16 ? count : (count + 1) / 2;
}

// Where one weight lies, how it is read.
template <WeightKind kind>
[[gnu::always_inline]] inline float weight_at(const std::uint16_t* weights, std::uint32_t i, float scale) noexcept {
  if constexpr (kind == WeightKind::f32) {
    float w;
    std::memcpy(&w, weights + 2 * static_cast<std::size_t>(i), sizeof w);
    return w;
  } else if constexpr (kind == WeightKind::f16) {
    return half_to_float(weights[i]);
  } else {
    const auto code = static_cast<std::uint8_t>(weights[i / 2] >> (8 * (i % 2)));
    return scale < 0 ? static_cast<float>(static_cast<std::int8_t>(code)) * -scale : static_cast<float>(code) * scale;
  }
}

// The part of a list that lies in one tile.
struct Piece {
  std::uint32_t tile = 0, count = 0;
  bool bitmap = false;
  const std::uint16_t* places = nullptr; // numbers, or ranks and then bits
  const std::uint16_t* weights = nullptr;
  std::uint32_t groups = 0; // of a bitmap

  std::uint64_t bits(std::uint32_t word) const noexcept {
    std::uint64_t out;
    std::memcpy(&out, places + groups + 4 * static_cast<std::size_t>(word), sizeof out);
    return out;
  }

  // Calls visit(place, number of the weight) by rising place. False: there are more bits than weights.
  template <class Visit> bool each(Visit&& visit) const {
    if (!bitmap) {
      for (std::uint32_t i = 0; i < count; ++i) visit(places[i], i);
      return true;
    }
    std::uint32_t i = 0;
    for (std::uint32_t word = 0; word < groups * (kGroup / 64); ++word) {
      std::uint64_t left = bits(word);
      if (i + static_cast<std::uint32_t>(std::popcount(left)) > count) return false;
      for (; left != 0; left &= left - 1) visit(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left)), i++);
    }
    return true;
  }

  // The number of a place's weight; `count` when there is none, or where a rank leads outside.
  std::uint32_t find(std::uint32_t place) const noexcept {
    if (bitmap) return find_bit(place);
    const std::uint16_t* at = places;
    for (std::uint32_t left = count; left > 1;) {
      const std::uint32_t half = left / 2;
      at += half & (0u - std::uint32_t{at[half - 1] < place}); // no branch: it could not be foreseen
      left -= half;
    }
    return *at == place ? static_cast<std::uint32_t>(at - places) : count;
  }

  // The same for many places: searched side by side, so that one need not wait for another's memory.
  void find(std::span<const std::uint16_t> wanted, std::uint32_t* numbers) const noexcept {
    const std::size_t n = wanted.size();
    if (bitmap) {
      for (std::size_t i = 0; i < n; ++i) numbers[i] = find_bit(wanted[i]);
      return;
    }
    std::fill(numbers, numbers + n, 0u);
    for (std::uint32_t left = count; left > 1;) {
      const std::uint32_t half = left / 2;
      const std::uint16_t* const last = places + half - 1;
      for (std::size_t i = 0; i < n; ++i) numbers[i] += half & (0u - std::uint32_t{last[numbers[i]] < wanted[i]});
      left -= half;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t lacks = 0u - std::uint32_t{places[numbers[i]] != wanted[i]};
      numbers[i] = (numbers[i] & ~lacks) | (count & lacks);
    }
  }

  // Prefetches what find() will look at: of a bitmap all of it.
  void prefetch(std::span<const std::uint16_t> wanted) const noexcept {
    if (!bitmap) {
      for (std::uint32_t quarter = 1; quarter < 4; ++quarter) __builtin_prefetch(places + count / 4 * quarter);
      return;
    }
    for (const std::uint32_t place : wanted) {
      const std::uint32_t group = std::min(place / kGroup, groups - 1);
      __builtin_prefetch(places + group);
      __builtin_prefetch(places + groups + 4 * std::size_t{place / 64});
    }
  }

private:
  // Of a bitmap: bits are counted in the whole group, those from the place on masked, so that nothing has to be guessed.
  std::uint32_t find_bit(std::uint32_t place) const noexcept {
    constexpr std::uint32_t kWords = kGroup / 64;
    const std::uint32_t group = std::min(place / kGroup, groups - 1), own = place / 64 % kWords;
    std::uint32_t rank = places[group];
    for (std::uint32_t w = 0; w < kWords; ++w) {
      const std::uint64_t below = w < own ? ~std::uint64_t{0} : std::uint64_t{0};
      rank += static_cast<std::uint32_t>(std::popcount(bits(group * kWords + w) & below));
    }
    const std::uint64_t word = bits(group * kWords + own), bit = std::uint64_t{1} << (place % 64);
    rank += static_cast<std::uint32_t>(std::popcount(word & (bit - 1)));
    return (word & bit) != 0 ? std::min(rank, count) : count;
  }
};

// One feature of a query: its value, its list, and the piece that the search has come to.
struct PostingList {
  float value = 0, scale = 1, most = 0; // most: what it can add to a sum
  const std::uint16_t *first = nullptr, *at = nullptr, *end = nullptr;
  Piece piece;
  bool over = false;                   // no piece is left
  const std::uint8_t* codes = nullptr; // of all labels; null: there are none

  // Goes to the first piece whose tile is not below `tile`. False: the list leads outside.
  bool seek(const Postings& index, std::uint32_t tile) noexcept {
    if (piece.count != 0 && piece.tile >= tile) {
      if (piece.tile > tile) at = first, piece = {};
      over = false;
    }
    while (!over && (piece.count == 0 || piece.tile < tile))
      if (!next(index)) return false;
    return true;
  }

private:
  bool next(const Postings& index) noexcept {
    if (at == end) return over = true;
    if (end - at < 2) return false;
    const std::uint32_t tile = at[0], count = std::uint32_t{at[1]} + 1;
    if (static_cast<std::uint64_t>(tile) * kTile >= index.labels || (piece.count != 0 && tile <= piece.tile))
      return false;
    const std::uint32_t width = index.width(tile);
    const std::uint64_t places = place_words(width, count), needed = places + posting_weight_words(index.kind, count);
    if (count > width || needed > static_cast<std::uint64_t>(end - at - 2)) return false;
    piece = {tile, count, places < count, at + 2, at + 2 + places, groups_of(width)};
    at += 2 + needed;
    return true;
  }
};

// Weight i of the piece that a list has come to.
inline float weight_of(WeightKind kind, const PostingList& list, std::uint32_t i) noexcept {
  switch (kind) {
  case WeightKind::f32: return weight_at<WeightKind::f32>(list.piece.weights, i, list.scale);
  case WeightKind::f16: return weight_at<WeightKind::f16>(list.piece.weights, i, list.scale);
  case WeightKind::u8: break;
  }
  return weight_at<WeightKind::u8>(list.piece.weights, i, list.scale);
}

// The list of a feature, at its beginning. False: its bounds lead outside.
inline bool open_list(const Postings& index, std::uint32_t feature, float value, PostingList& out) noexcept {
  const std::uint64_t from = index.start[feature], to = index.start[feature + 1];
  if (from > to || to > index.words.size()) return false;
  out.value = value;
  out.scale = index.kind == WeightKind::u8 ? index.scale[feature] : 1.0f;
  out.most = value * std::fabs(index.top[feature]);
  out.first = out.at = index.words.data() + from;
  out.end = index.words.data() + to;
  out.piece = {};
  out.over = false;
  const std::size_t number = index.dense.empty() ? 0 : index.dense[feature];
  if (number > index.codes.size() / std::max<std::size_t>(1, index.stride())) return false;
  out.codes = number == 0 ? nullptr : index.codes.data() + (number - 1) * index.stride();
  return true;
}

} // namespace beamwood
