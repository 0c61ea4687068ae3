// Kernels for the baseline: plain C++ that any machine of the architecture runs.
#include "beamwood/score.hpp"

namespace beamwood {
namespace {

template <int lanes>
inline std::int64_t accumulate_masked(const Chunk& chunk, const Match* matches, std::uint32_t count,
                                      float* z) noexcept {
  for (std::uint32_t i = 0; i < kMaskWidth; ++i) z[i] = 0.0f;
  std::int64_t words = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = chunk.offset[matches[i].row];
    if (at >= chunk.word_count) return -1;
    const std::uint32_t* record = chunk.words + at;
    const auto* weight = reinterpret_cast<const float*>(record + 1);
    const float value = matches[i].value;
    for (std::uint32_t mask = *record; mask != 0; mask &= mask - 1)
      z[std::countr_zero(mask)] += value * *weight++;
    words += 1 + std::popcount(*record);
  }
  return words;
}

#include "kernels.inc"

} // namespace

const Kernels kScalarKernels = {"scalar", accumulate, activate_all};

} // namespace beamwood
