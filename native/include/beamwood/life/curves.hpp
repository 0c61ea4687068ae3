// A score and its rank in, how probable it is that the label is right out: curves through knots, one per group of ranks.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace beamwood {

// Python has checked that knots rise, that every curve rises, and that none lies above that of earlier ranks.
struct Curves {
  std::span<const std::uint32_t> ranks; // where each group starts, from 0 on
  std::span<const float> scores;        // the knots
  std::span<const float> probabilities; // ranks.size() x scores.size()

  bool empty() const noexcept { return ranks.empty() || scores.empty(); }

  // Straight between two knots, level beyond the first and the last. -inf and NaN are no answer: 0.
  float at(std::size_t rank, float score) const noexcept {
    if (!(score > -std::numeric_limits<float>::infinity())) return 0.0f;
    const std::size_t after = static_cast<std::size_t>(std::ranges::upper_bound(ranks, rank) - ranks.begin());
    const float* const curve = probabilities.data() + (after - 1) * scores.size();
    const auto right = static_cast<std::size_t>(std::ranges::upper_bound(scores, score) - scores.begin());
    if (right == 0) return curve[0];
    if (right == scores.size()) return curve[right - 1];
    const double left_score = scores[right - 1], low = curve[right - 1];
    const double share = (score - left_score) / (scores[right] - left_score);
    return static_cast<float>(low + (curve[right] - low) * share);
  }
};

} // namespace beamwood
