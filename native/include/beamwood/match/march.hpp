// Matcher `march` (the paper's marching pointers): two pointers walk both supports side by side.
// Cost: nnz(x) + nnz(K) steps. No extra memory.
//
// When one support is much longer than the other its pointer marches in strides of eight, looking only at the last id
// of each: the same march, with fewer looks.
#pragma once
#include "beamwood/match/match.hpp"

namespace beamwood {
namespace detail {

// Step by step, without branches on the ids: their order is as good as random to a branch predictor.
inline std::uint32_t march_steps(const Query& query, const Support& support, Match* out) noexcept {
  std::uint32_t found = 0, i = 0, j = 0;
  while (i < query.count && j < support.count) {
    const std::uint32_t a = query.feature[i], b = support.feature[j];
    out[found] = {j, query.value[i]};
    found += a == b;
    i += a <= b;
    j += b <= a;
  }
  return found;
}

// Calls emit(position in few, position in many) for every common id, in rising order.
template <class Emit>
inline void march_strides(const std::uint32_t* few, std::uint32_t few_count, const std::uint32_t* many,
                          std::uint32_t many_count, Emit&& emit) noexcept {
  std::uint32_t j = 0;
  for (std::uint32_t i = 0; i < few_count; ++i) {
    const std::uint32_t id = few[i];
    while (j + 64 <= many_count && many[j + 63] < id) j += 64;
    while (j + 8 <= many_count && many[j + 7] < id) j += 8;
    if (j + 8 <= many_count) {
      std::uint32_t below = 0; // how many of the eight lie below id: counted, not searched, so nothing is guessed
      for (std::uint32_t l = 0; l < 8; ++l) below += many[j + l] < id;
      j += below;
    } else {
      while (j < many_count && many[j] < id) ++j;
    }
    if (j == many_count) return;
    if (many[j] == id) emit(i, j);
  }
}

} // namespace detail

inline std::uint32_t match_march(const Query& query, const Support& support, Match* out) noexcept {
  constexpr std::uint32_t kMuchLonger = 8;
  std::uint32_t found = 0;
  if (support.count / kMuchLonger > query.count) {
    detail::march_strides(query.feature, query.count, support.feature, support.count,
                          [&](std::uint32_t i, std::uint32_t row) { out[found++] = {row, query.value[i]}; });
    return found;
  }
  if (query.count / kMuchLonger > support.count) {
    detail::march_strides(support.feature, support.count, query.feature, query.count,
                          [&](std::uint32_t row, std::uint32_t i) { out[found++] = {row, query.value[i]}; });
    return found;
  }
  return detail::march_steps(query, support, out);
}

} // namespace beamwood
