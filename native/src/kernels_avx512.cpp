// Kernels for AVX-512: sixteen siblings a vector, weights spread from a packed row by one expanding load.
#include <immintrin.h>

#include "beamwood/score.hpp"

namespace beamwood {
namespace {

template <int lanes>
inline std::int64_t accumulate_masked(const std::uint32_t* words, std::uint64_t word_count, std::uint32_t masks,
                                      const Placed* rows, std::uint32_t count, float* z) noexcept {
  constexpr int groups = (lanes + 1) / 2;
  __m512 sum[groups];
  for (int g = 0; g < groups; ++g) sum[g] = _mm512_setzero_ps();
  std::int64_t read = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = rows[i].offset;
    if (at >= word_count) return -1;
    const std::uint32_t* record = words + at;
    const std::uint32_t mask = *record;
    const auto* weight = reinterpret_cast<const float*>(record + masks);
    const __m512 value = _mm512_set1_ps(rows[i].value);
    for (int g = 0; g < groups; ++g) {
      const auto half = static_cast<__mmask16>(mask >> (16 * g));
      const __m512 spread = _mm512_maskz_expandloadu_ps(half, weight);
      sum[g] = _mm512_add_ps(sum[g], _mm512_mul_ps(value, spread));
      weight += std::popcount(static_cast<std::uint32_t>(half));
    }
    read += reinterpret_cast<const std::uint32_t*>(weight) - record;
  }
  for (int g = 0; g < groups; ++g) _mm512_storeu_ps(z + 16 * g, sum[g]);
  return read;
}

#include "kernels.inc"

} // namespace

const Kernels kAvx512Kernels = {"avx512", accumulate, activate_all, reaching};

} // namespace beamwood
