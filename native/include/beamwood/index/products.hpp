// A list of a query and a place in, its product out; or all products of the piece that the list has come to.
#pragma once
#include <cstdint>

#include "beamwood/index/postings.hpp"
#include "beamwood/open/work.hpp"

namespace beamwood {

// The product of a place in a list's piece; +0 where it has none.
inline float product_at(const Postings& index, const PostingList& list, std::uint32_t place) noexcept {
  const std::uint32_t i = list.piece.find(place);
  return i == list.piece.count ? 0.0f : list.value * weight_of(index.kind, list, i);
}

// Calls visit(place, product) for all of a list's piece. False: the piece is damaged.
template <class Visit> bool each_product(const Postings& index, const PostingList& list, Work& work, Visit&& visit) {
  work.blocks += 1, work.rows += list.piece.count;
  work.bytes += 2 * (place_words(index.width(list.piece.tile), list.piece.count) +
                     posting_weight_words(index.kind, list.piece.count));
  const auto run = [&]<WeightKind kind>() {
    const float value = list.value, scale = list.scale;
    const std::uint16_t* const weights = list.piece.weights;
    return list.piece.each(
        [&](std::uint32_t place, std::uint32_t i) { visit(place, value * weight_at<kind>(weights, i, scale)); });
  };
  switch (index.kind) {
  case WeightKind::f32: return run.template operator()<WeightKind::f32>();
  case WeightKind::f16: return run.template operator()<WeightKind::f16>();
  case WeightKind::u8: break;
  }
  return run.template operator()<WeightKind::u8>();
}

} // namespace beamwood
