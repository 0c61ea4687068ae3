// Kernels for AVX-512: sixteen siblings a vector, weights spread from a packed row by one expansion.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <immintrin.h>

#include "beamwood/engine/order.hpp"
#include "beamwood/engine/score.hpp"

namespace beamwood {
namespace {

// Sixteen weights from `packed` on, each in the lane of its bit, zeros between them.
template <WeightKind kind> inline __m512 spread_weights(const std::uint8_t* packed, __mmask16 lanes, __m512 scale) {
  if constexpr (kind == WeightKind::u8) {
    const __m512i codes = _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(packed)));
    return _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_expand_epi32(lanes, codes)), scale);
  }
  if constexpr (kind == WeightKind::f16)
    return _mm512_maskz_expand_ps(
        lanes, _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed))));
  __m512 weights = _mm512_loadu_ps(packed);
  asm("" : "+v"(weights)); // or the compiler makes one expanding load from memory of it
  return _mm512_maskz_expand_ps(lanes, weights);
}

template <WeightKind kind, int eights, int head>
inline std::int64_t accumulate_masked(const std::uint32_t* words, std::uint64_t word_count, float scale,
                                      const Placed* rows, std::uint32_t count, float* z) noexcept {
  constexpr int groups = (eights + 1) / 2, bytes = kind == WeightKind::f32 ? 4 : kind == WeightKind::f16 ? 2 : 1;
  const __m512 scales = _mm512_set1_ps(scale);
  __m512 sum[groups];
  for (int g = 0; g < groups; ++g) sum[g] = _mm512_setzero_ps();
  std::int64_t read = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = rows[i].offset;
    if (at >= word_count) return -1;
    const std::uint32_t* record = words + at;
    const std::uint32_t mask = *record & kMaskBits<eights>;
    const auto* packed = reinterpret_cast<const std::uint8_t*>(record + head);
    const __m512 value = _mm512_set1_ps(rows[i].value);
    for (int g = 0; g < groups; ++g) {
      const auto half = static_cast<__mmask16>(mask >> (16 * g));
      sum[g] = _mm512_add_ps(sum[g], _mm512_mul_ps(value, spread_weights<kind>(packed, half, scales)));
      packed += bytes * std::popcount(static_cast<std::uint32_t>(half));
    }
    read += static_cast<std::int64_t>(head + weight_words(kind, static_cast<std::uint64_t>(std::popcount(mask))));
  }
  for (int g = 0; g < groups; ++g) _mm512_storeu_ps(z + 16 * g, sum[g]);
  return read;
}

template <WeightKind kind>
inline void add_masked(std::uint32_t mask, const std::uint32_t* weights, std::uint64_t nth, float value, float scale,
                       float* z) noexcept {
  constexpr int bytes = kind == WeightKind::f32 ? 4 : kind == WeightKind::f16 ? 2 : 1;
  const __m512 values = _mm512_set1_ps(value), scales = _mm512_set1_ps(scale);
  const auto* packed = reinterpret_cast<const std::uint8_t*>(weights) + bytes * nth;
  for (int g = 0; g < 2; ++g) {
    const auto half = static_cast<__mmask16>(mask >> (16 * g));
    const __m512 product = _mm512_mul_ps(values, spread_weights<kind>(packed, half, scales));
    _mm512_storeu_ps(z + 16 * g, _mm512_add_ps(_mm512_loadu_ps(z + 16 * g), product));
    packed += bytes * std::popcount(static_cast<std::uint32_t>(half));
  }
}

// A set of up to 128 siblings as bits.
struct Bits128 {
  std::uint64_t lower, upper;
};

// All bits that are set in any of eight numbers.
inline std::uint64_t either(__m512i numbers) noexcept {
  const __m256i four = _mm256_or_si256(_mm512_maskz_extracti64x4_epi64(0xff, numbers, 0),
                                       _mm512_maskz_extracti64x4_epi64(0xff, numbers, 1));
  const __m128i two = _mm_or_si128(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
  return static_cast<std::uint64_t>(_mm_extract_epi64(two, 0) | _mm_extract_epi64(two, 1));
}

// A bitmap as it is, or made of a list of up to eight numbers; 16 bytes can be read from `set` on.
inline Bits128 set_bits(const std::uint32_t* set, std::uint64_t count, bool bitmap) noexcept {
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(set));
  const __m512i number = _mm512_maskz_cvtepu16_epi64(0xff, raw), one = _mm512_set1_epi64(1);
  const __m512i bit = _mm512_maskz_sllv_epi64(0xff, one, _mm512_and_si512(number, _mm512_set1_epi64(63)));
  const auto listed = static_cast<__mmask8>((1u << std::min<std::uint64_t>(count, 8)) - 1);
  const __mmask8 low = _mm512_mask_cmplt_epu64_mask(listed, number, _mm512_set1_epi64(64));
  const std::uint64_t lower = either(_mm512_maskz_mov_epi64(low, bit));
  const std::uint64_t upper = either(_mm512_maskz_mov_epi64(static_cast<__mmask8>(listed & ~low), bit));
  const std::uint64_t keep = 0 - std::uint64_t{bitmap};
  return {(static_cast<std::uint64_t>(_mm_extract_epi64(raw, 0)) & keep) | (lower & ~keep),
          (static_cast<std::uint64_t>(_mm_extract_epi64(raw, 1)) & keep) | (upper & ~keep)};
}

// Runs of dense rows: see runs.inc.
using Lanes = __m512;
using Keep = __mmask16;
inline Keep keep_lanes(std::uint32_t count) noexcept {
  return static_cast<Keep>(count >= 16 ? 0xffffu : (1u << count) - 1);
}
template <WeightKind kind> inline Lanes lanes_of(const std::uint8_t* packed, Keep keep, Lanes scale) noexcept {
  if constexpr (kind == WeightKind::u8)
    return _mm512_mul_ps(
        _mm512_maskz_cvtepi32_ps(
            0xffff, _mm512_maskz_cvtepi8_epi32(keep, _mm_loadu_si128(reinterpret_cast<const __m128i*>(packed)))),
        scale);
  if constexpr (kind == WeightKind::f16)
    return _mm512_maskz_cvtph_ps(keep, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed)));
  return _mm512_maskz_loadu_ps(keep, packed);
}

#include "kernels.inc"

} // namespace

const Kernels kAvx512Kernels = {"avx512", accumulate, add_run, add_run_of_four, activate_all, reaching, rank, pick};

} // namespace beamwood
