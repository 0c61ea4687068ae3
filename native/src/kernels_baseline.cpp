// Kernels for the baseline: plain C++ that any machine of the architecture runs.
#include "beamwood/score.hpp"

namespace beamwood {
namespace {

template <int lanes>
inline std::int64_t accumulate_masked(const std::uint32_t* words, std::uint64_t word_count, std::uint32_t masks,
                                      const Placed* rows, std::uint32_t count, float* z) noexcept {
  for (std::uint32_t i = 0; i < kMaskWidth; ++i) z[i] = 0.0f;
  std::int64_t read = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = rows[i].offset;
    if (at >= word_count) return -1;
    const std::uint32_t* record = words + at;
    const auto* weight = reinterpret_cast<const float*>(record + masks);
    const float value = rows[i].value;
    for (std::uint32_t mask = *record; mask != 0; mask &= mask - 1) z[std::countr_zero(mask)] += value * *weight++;
    read += masks + static_cast<std::uint32_t>(std::popcount(*record));
  }
  return read;
}

#include "kernels.inc"

} // namespace

const Kernels kScalarKernels = {"scalar", accumulate, activate_all, reaching};

} // namespace beamwood
