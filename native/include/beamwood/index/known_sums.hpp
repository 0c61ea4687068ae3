// Labels whose sums are known before a search in: what it has to beat, and whom it need not look for, out.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "beamwood/sink/topk.hpp"

namespace beamwood {

struct KnownSums {
  std::span<const std::uint32_t> labels; // they rise
  std::span<const float> sums;           // of law 1, one per label

  bool has(std::uint32_t label) const noexcept { return std::ranges::binary_search(labels, label); }

  // Those above 0 compete.
  void offer_to(TopK& best) const {
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (sums[i] > 0) best.offer(key_of(sums[i], labels[i]));
  }
};

} // namespace beamwood
