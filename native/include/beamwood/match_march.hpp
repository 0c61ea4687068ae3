// Matcher `march` (the paper's marching pointers): two pointers walk both supports side by side.
// Cost: nnz(x) + nnz(K) steps. No extra memory.
#pragma once
#include "beamwood/match.hpp"

namespace beamwood {

inline std::uint32_t match_march(const Query& query, const Support& support, Match* out) noexcept {
  std::uint32_t found = 0, i = 0, j = 0;
  while (i < query.count && j < support.count) {
    const std::uint32_t a = query.feature[i], b = support.feature[j];
    // Written without branches on the ids: their order is as good as random to a branch predictor.
    out[found] = {j, query.value[i]};
    found += a == b;
    i += a <= b;
    j += b <= a;
  }
  return found;
}

} // namespace beamwood
