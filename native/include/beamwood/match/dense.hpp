// Matcher `dense` (the paper's dense lookup): a support is written into an array of length d, queries read it there.
// Cost: nnz(x) + nnz(K) / (queries that meet this chunk). Extra memory: d numbers for each worker.
//
// The array belongs to a worker and is empty between chunks: what was written is taken back entry by entry, so no
// array of length d is ever cleared whole. It pays when many blocks of a batch share a chunk.
#pragma once
#include <vector>

#include "beamwood/match/match.hpp"

namespace beamwood {

class DenseLookup {
public:
  static constexpr std::uint32_t kNowhere = 0xffffffffu;

  void prepare(std::uint32_t dimension) {
    if (at_.size() < dimension) at_.resize(dimension, 0);
  }

  // Remembers place(j) for the j-th feature of a support, a number below kNowhere. False when there is none or an id lies
  // outside the array: the file is damaged. The lookup is empty again then.
  template <class Place> bool enter(const Support& support, Place&& place) noexcept {
    for (std::uint32_t j = 0; j < support.count; ++j) {
      const std::uint32_t at = place(j);
      if (support.feature[j] >= at_.size() || at == kNowhere) {
        leave({support.feature, j, nullptr, 0});
        return false;
      }
      at_[support.feature[j]] = at + 1;
    }
    return true;
  }

  void leave(const Support& support) noexcept {
    for (std::uint32_t j = 0; j < support.count; ++j) at_[support.feature[j]] = 0;
  }

  // The places of the query's features, as (place, value) pairs.
  template <class Pair> std::uint32_t match(const Query& query, Pair* out) const noexcept {
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < query.count; ++i) {
      const std::uint32_t at = at_[query.feature[i]];
      out[found] = {at - 1, query.value[i]};
      found += at != 0;
    }
    return found;
  }

private:
  std::vector<std::uint32_t> at_; // 0: nothing, else a place + 1
};

} // namespace beamwood
