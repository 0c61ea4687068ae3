// Kernels for AVX2: eight siblings a vector, weights spread from a packed row by a table of permutations.
#include <algorithm>
#include <array>
#include <cstring>
#include <immintrin.h>

#include "beamwood/engine/order.hpp"
#include "beamwood/engine/score.hpp"

namespace beamwood {
namespace {

// For each byte of a mask: where lane l takes its weight from (how many bits are set below l); lanes without a bit are
// negative, so that the same entry blanks them.
constexpr std::array<std::array<std::int8_t, 8>, 256> spread_table() {
  std::array<std::array<std::int8_t, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    int below = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      const bool here = (byte >> lane) & 1;
      table[byte][lane] = static_cast<std::int8_t>(here ? below : -1);
      below += here;
    }
  }
  return table;
}
alignas(64) constexpr auto kSpread = spread_table();

// Eight weights from `packed` on, each in the lane of its bit, zeros between them.
template <WeightKind kind> inline __m256 spread_weights(const std::uint8_t* packed, std::uint64_t byte, __m256 scale) {
  __m256 weights;
  if constexpr (kind == WeightKind::u8) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(packed));
    weights = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), scale);
  } else if constexpr (kind == WeightKind::f16) {
    weights = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(packed)));
  } else {
    weights = _mm256_loadu_ps(reinterpret_cast<const float*>(packed));
  }
  const __m256i from = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kSpread[byte].data())));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(weights, from), _mm256_setzero_ps(), _mm256_castsi256_ps(from));
}

template <WeightKind kind, int eights, int head>
inline std::int64_t accumulate_masked(const std::uint32_t* words, std::uint64_t word_count, float scale,
                                      const Placed* rows, std::uint32_t count, float* z) noexcept {
  constexpr std::uint64_t bytes = kind == WeightKind::f32 ? 4 : kind == WeightKind::f16 ? 2 : 1;
  const __m256 scales = _mm256_set1_ps(scale);
  __m256 sum[eights];
  for (int g = 0; g < eights; ++g) sum[g] = _mm256_setzero_ps();
  std::uint64_t read = std::uint64_t{head} * count;
  for (const Placed* row = rows; row != rows + count; ++row) {
    if (row->offset >= word_count) return -1;
    const std::uint32_t* record = words + row->offset;
    const std::uint64_t mask = *record & kMaskBits<eights>;
    const auto* packed = reinterpret_cast<const std::uint8_t*>(record + head);
    const __m256 value = _mm256_set1_ps(row->value);
    for (int g = 0; g < eights; ++g) { // where a group's weights begin does not wait for the group before
      const std::uint64_t below = bytes * static_cast<std::uint64_t>(_mm_popcnt_u64(mask & ((1ull << 8 * g) - 1)));
      const __m256 weights = spread_weights<kind>(packed + below, mask >> (8 * g) & 255, scales);
      sum[g] = _mm256_add_ps(sum[g], _mm256_mul_ps(value, weights));
    }
    read += weight_words(kind, static_cast<std::uint64_t>(_mm_popcnt_u64(mask)));
  }
  for (int g = 0; g < eights; ++g) _mm256_storeu_ps(z + 8 * g, sum[g]);
  return static_cast<std::int64_t>(read);
}

template <WeightKind kind>
inline void add_masked(std::uint32_t mask, const std::uint32_t* weights, std::uint64_t nth, float value, float scale,
                       float* z) noexcept {
  constexpr int bytes = kind == WeightKind::f32 ? 4 : kind == WeightKind::f16 ? 2 : 1;
  const __m256 values = _mm256_set1_ps(value), scales = _mm256_set1_ps(scale);
  const auto* packed = reinterpret_cast<const std::uint8_t*>(weights) + bytes * nth;
  for (int g = 0; g < 4; ++g) {
    const std::uint32_t byte = (mask >> (8 * g)) & 255;
    const int before =
        std::popcount(mask & ((1u << (8 * g)) - 1)); // not one after the other: no count waits for another
    const __m256 product = _mm256_mul_ps(values, spread_weights<kind>(packed + bytes * before, byte, scales));
    _mm256_storeu_ps(z + 8 * g, _mm256_add_ps(_mm256_loadu_ps(z + 8 * g), product));
  }
}

// Runs of dense rows: see runs.inc.
using Lanes = __m256;
using Keep = __m256i;
inline Keep keep_lanes(std::uint32_t count) noexcept {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(std::min(count, 8u))), lane);
}
template <WeightKind kind> inline Lanes lanes_of(const std::uint8_t* packed, Keep keep, Lanes scale) noexcept {
  if constexpr (kind == WeightKind::f32) return _mm256_maskload_ps(reinterpret_cast<const float*>(packed), keep);
  __m256 weights;
  if constexpr (kind == WeightKind::u8) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(packed));
    weights = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), scale);
  } else {
    weights = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(packed)));
  }
  return _mm256_and_ps(weights, _mm256_castsi256_ps(keep));
}

#include "kernels.inc"

} // namespace

const Kernels kAvx2Kernels = {"avx2", accumulate, add_run, add_run_of_four, activate_all, reaching, rank, pick};

} // namespace beamwood
