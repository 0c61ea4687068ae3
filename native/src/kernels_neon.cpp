// Kernels for NEON: four siblings per vector, weights spread from a packed row by a table lookup of bytes.
#include <arm_neon.h>
#include <array>
#include <bit>
#include <cstring>

#include "beamwood/engine/order.hpp"
#include "beamwood/engine/score.hpp"

namespace beamwood {
namespace {

// For four bits of a mask: which bytes of four packed weights each lane takes; a lane without a bit names a byte that
// does not exist, for which the lookup gives zero.
constexpr std::array<std::array<std::uint8_t, 16>, 16> spread_table() {
  std::array<std::array<std::uint8_t, 16>, 16> table{};
  for (unsigned bits = 0; bits < 16; ++bits) {
    unsigned below = 0;
    for (unsigned lane = 0; lane < 4; ++lane) {
      const bool here = (bits >> lane) & 1;
      for (unsigned byte = 0; byte < 4; ++byte)
        table[bits][4 * lane + byte] = static_cast<std::uint8_t>(here ? 4 * below + byte : 255);
      below += here;
    }
  }
  return table;
}
alignas(64) constexpr auto kSpread = spread_table();

// Four weights from `packed` on.
template <WeightKind kind> inline float32x4_t four_weights(const std::uint8_t* packed, float32x4_t scale) noexcept {
  float32x4_t weights;
  if constexpr (kind == WeightKind::u8) {
    std::uint32_t four;
    std::memcpy(&four, packed, sizeof four);
    const int16x8_t halves = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    weights = vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves))), scale);
  } else if constexpr (kind == WeightKind::f16) {
    float16x4_t halves;
    std::memcpy(&halves, packed, sizeof halves);
    weights = vcvt_f32_f16(halves);
  } else {
    std::memcpy(&weights, packed, sizeof weights);
  }
  return weights;
}

// The same, each in the lane of its bit, zeros between them.
template <WeightKind kind>
inline float32x4_t spread_weights(const std::uint8_t* packed, std::uint32_t bits, float32x4_t scale) noexcept {
  const uint8x16_t weights = vreinterpretq_u8_f32(four_weights<kind>(packed, scale));
  return vreinterpretq_f32_u8(vqtbl1q_u8(weights, vld1q_u8(kSpread[bits & 15].data())));
}

template <WeightKind kind, int eights, int head>
inline std::int64_t accumulate_masked(const std::uint32_t* words, std::uint64_t word_count, float scale,
                                      const Placed* rows, std::uint32_t count, float* z) noexcept {
  constexpr int groups = 2 * eights, bytes = kind == WeightKind::f32 ? 4 : kind == WeightKind::f16 ? 2 : 1;
  const float32x4_t scales = vdupq_n_f32(scale);
  float32x4_t sum[groups];
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) sum[g] = vdupq_n_f32(0.0f);
  std::uint64_t read = std::uint64_t{head} * count;
  for (const Placed* row = rows; row != rows + count; ++row) {
    if (row->offset >= word_count) return -1;
    const std::uint32_t* record = words + row->offset;
    const std::uint32_t mask = *record & kMaskBits<eights>;
    const auto* packed = reinterpret_cast<const std::uint8_t*>(record + head);
    const float32x4_t value = vdupq_n_f32(row->value);
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) { // where a group's weights begin does not wait for the group before
      const int below = bytes * std::popcount(mask & ((1u << 4 * g) - 1));
      sum[g] = vaddq_f32(sum[g], vmulq_f32(value, spread_weights<kind>(packed + below, mask >> (4 * g), scales)));
    }
    read += weight_words(kind, static_cast<std::uint64_t>(std::popcount(mask)));
  }
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) vst1q_f32(z + 4 * g, sum[g]);
  return static_cast<std::int64_t>(read);
}

template <WeightKind kind>
inline void add_masked(std::uint32_t mask, const std::uint32_t* weights, std::uint64_t nth, float value, float scale,
                       float* z) noexcept {
  constexpr int bytes = kind == WeightKind::f32 ? 4 : kind == WeightKind::f16 ? 2 : 1;
  const float32x4_t values = vdupq_n_f32(value), scales = vdupq_n_f32(scale);
  const auto* packed = reinterpret_cast<const std::uint8_t*>(weights) + bytes * nth;
  for (int g = 0; g < 8; ++g) {
    const int below = bytes * std::popcount(mask & ((1u << 4 * g) - 1));
    const float32x4_t product = vmulq_f32(values, spread_weights<kind>(packed + below, mask >> (4 * g), scales));
    vst1q_f32(z + 4 * g, vaddq_f32(vld1q_f32(z + 4 * g), product));
  }
}

// Runs of dense rows: see runs.inc.
using Lanes = float32x4_t;
using Keep = uint32x4_t;
inline Keep keep_lanes(std::uint32_t count) noexcept {
  constexpr std::uint32_t kLane[4] = {0, 1, 2, 3};
  return vcltq_u32(vld1q_u32(kLane), vdupq_n_u32(count));
}
template <WeightKind kind> inline Lanes lanes_of(const std::uint8_t* packed, Keep keep, Lanes scale) noexcept {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(four_weights<kind>(packed, scale)), keep));
}

#include "kernels.inc"

} // namespace

const Kernels kNeonKernels = {"neon", accumulate, add_run, add_run_of_four, activate_all, reaching, rank, pick};

} // namespace beamwood
