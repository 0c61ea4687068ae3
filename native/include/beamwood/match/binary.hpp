// Matcher `binary` (the paper's binary search): the ids of the smaller support are searched in the larger one.
// Cost: min(nnz(x), nnz(K)) * log max(nnz(x), nnz(K)). No extra memory.
//
// Eight searches run abreast, without branches: each step of a search waits for memory, eight of them wait together.
#pragma once
#include "beamwood/match/match.hpp"

namespace beamwood {
namespace detail {

// For each of n <= 8 ids: the place of the last entry of list that is not greater, or 0. count must not be 0.
template <unsigned n>
inline void search_abreast(const std::uint32_t* ids, const std::uint32_t* list, std::uint32_t count,
                           std::uint32_t* place) noexcept {
  for (unsigned g = 0; g < n; ++g) place[g] = 0;
  for (std::uint32_t left = count; left > 1;) {
    const std::uint32_t half = left / 2;
    for (unsigned g = 0; g < n; ++g) place[g] += list[place[g] + half] <= ids[g] ? half : 0;
    left -= half;
  }
}

// Calls emit(position in ids, position in list) for every common id, in rising order.
template <class Emit>
inline void intersect(const std::uint32_t* ids, std::uint32_t n, const std::uint32_t* list, std::uint32_t count,
                      Emit&& emit) noexcept {
  std::uint32_t place[8];
  std::uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    search_abreast<8>(ids + i, list, count, place);
    for (unsigned g = 0; g < 8; ++g)
      if (list[place[g]] == ids[i + g]) emit(i + g, place[g]);
  }
  for (; i < n; ++i) {
    search_abreast<1>(ids + i, list, count, place);
    if (list[place[0]] == ids[i]) emit(i, place[0]);
  }
}

} // namespace detail

inline std::uint32_t match_binary(const Query& query, const Support& support, Match* out) noexcept {
  std::uint32_t found = 0;
  if (query.count == 0 || support.count == 0) return 0;
  if (query.count <= support.count) {
    detail::intersect(query.feature, query.count, support.feature, support.count,
                      [&](std::uint32_t i, std::uint32_t row) { out[found++] = {row, query.value[i]}; });
  } else {
    detail::intersect(support.feature, support.count, query.feature, query.count,
                      [&](std::uint32_t row, std::uint32_t i) { out[found++] = {row, query.value[i]}; });
  }
  return found;
}

} // namespace beamwood
