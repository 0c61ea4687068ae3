// Kernels for the baseline: plain C++ that any machine of the architecture runs.
#include <algorithm>
#include <cstring>

#include "beamwood/engine/order.hpp"
#include "beamwood/engine/score.hpp"

namespace beamwood {
namespace {

template <WeightKind kind, int eights, int head>
inline std::int64_t accumulate_masked(const std::uint32_t* words, std::uint64_t word_count, float scale,
                                      const Placed* rows, std::uint32_t count, float* z) noexcept {
  for (std::uint32_t i = 0; i < kMaskWidth; ++i) z[i] = 0.0f;
  std::int64_t read = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = rows[i].offset;
    if (at >= word_count) return -1;
    const std::uint32_t* record = words + at;
    const float value = rows[i].value;
    std::uint64_t n = 0;
    for (std::uint32_t mask = *record & kMaskBits<eights>; mask != 0; mask &= mask - 1)
      z[std::countr_zero(mask)] += value * decode({kind, scale}, record + head, n++);
    read += static_cast<std::int64_t>(head + weight_words(kind, n));
  }
  return read;
}

template <WeightKind kind>
inline void add_masked(std::uint32_t mask, const std::uint32_t* weights, std::uint64_t nth, float value, float scale,
                       float* z) noexcept {
  for (; mask != 0; mask &= mask - 1) z[std::countr_zero(mask)] += value * decode({kind, scale}, weights, nth++);
}

// Runs of dense rows: see runs.inc.
using Lanes = float __attribute__((vector_size(16)));
using Keep = std::uint32_t; // how many
inline Keep keep_lanes(std::uint32_t count) noexcept { return std::min(count, 4u); }
template <WeightKind kind> inline Lanes lanes_of(const std::uint8_t* packed, Keep keep, Lanes scale) noexcept {
  Lanes weights{};
  if constexpr (kind == WeightKind::f32) {
    if (keep == 4) {
      std::memcpy(&weights, packed, sizeof weights);
      return weights;
    }
  }
  for (std::uint32_t i = 0; i < keep; ++i)
    weights[i] = decode({kind, scale[0]}, reinterpret_cast<const std::uint32_t*>(packed), i);
  return weights;
}

#include "kernels.inc"

} // namespace

const Kernels kScalarKernels = {"scalar", accumulate, add_run, add_run_of_four, activate_all, reaching, rank, pick};

} // namespace beamwood
