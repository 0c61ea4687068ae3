// A list of a query and places in, their products out; or all products of the piece that the list has come to.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "beamwood/index/postings.hpp"
#include "beamwood/open/work.hpp"

namespace beamwood {

// A product, or +0: whether there is one cannot be foreseen, so that no branch asks for it.
inline float product_if(bool there, float product) noexcept {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(product) & (0u - std::uint32_t{there}));
}

// The product of a place in a list's piece; +0 where it has none.
inline float product_at(const Postings& index, const PostingList& list, std::uint32_t place) noexcept {
  const std::uint32_t i = list.piece.find(place);
  return i == list.piece.count ? 0.0f : list.value * weight_of(index.kind, list, i);
}

// Calls function<kind>() for the kind of an index's weights.
template <class Function> decltype(auto) with_kind(const Postings& index, Function&& function) {
  switch (index.kind) {
  case WeightKind::f32: return function.template operator()<WeightKind::f32>();
  case WeightKind::f16: return function.template operator()<WeightKind::f16>();
  case WeightKind::u8: break;
  }
  return function.template operator()<WeightKind::u8>();
}

// Calls visit(i, product) for the i-th of all places; +0 where the list's piece has none.
template <class Visit>
void products_at(const Postings& index, const PostingList& list, std::span<const std::uint16_t> places,
                 Visit&& visit) noexcept {
  constexpr std::size_t kAtOnce = 32;
  const Piece& piece = list.piece;
  with_kind(index, [&]<WeightKind kind>() {
    std::uint32_t numbers[kAtOnce];
    for (std::size_t from = 0; from < places.size(); from += kAtOnce) {
      const std::size_t n = std::min(kAtOnce, places.size() - from);
      piece.find(places.subspan(from, n), numbers);
      for (std::size_t i = 0; i < n; ++i) {
        const bool there = numbers[i] != piece.count; // where it is not, the first weight is as good as any
        const float w = weight_at<kind>(piece.weights, numbers[i] & (0u - std::uint32_t{there}), list.scale);
        visit(from + i, product_if(there, list.value * w));
      }
    }
  });
}

// Calls visit(place, product) for all of a list's piece. False: the piece is damaged.
template <class Visit> bool each_product(const Postings& index, const PostingList& list, Work& work, Visit&& visit) {
  work.blocks += 1, work.rows += list.piece.count;
  work.bytes += 2 * (place_words(index.width(list.piece.tile), list.piece.count) +
                     posting_weight_words(index.kind, list.piece.count));
  return with_kind(index, [&]<WeightKind kind>() {
    const float value = list.value, scale = list.scale;
    const std::uint16_t* const weights = list.piece.weights;
    return list.piece.each(
        [&](std::uint32_t place, std::uint32_t i) { visit(place, value * weight_at<kind>(weights, i, scale)); });
  });
}

} // namespace beamwood
