// Matcher `dense` (the paper's dense lookup): a support is written into an array of length d, queries read it there.
// Cost: nnz(x) + nnz(K) / (queries that meet this chunk). Extra memory: d numbers for each worker.
//
// The array belongs to a worker and is empty between chunks: what was written is taken back entry by entry, so no
// array of length d is ever cleared whole. It pays when many blocks of a batch share a chunk.
#pragma once
#include <vector>

#include "beamwood/match.hpp"

namespace beamwood {

class DenseLookup {
public:
  void prepare(std::uint32_t dimension) {
    if (row_.size() < dimension) row_.resize(dimension, 0);
  }

  // False when an id lies outside the array: the file is damaged. The lookup is empty again then.
  bool enter(const Support& support) noexcept {
    for (std::uint32_t j = 0; j < support.count; ++j) {
      if (support.feature[j] >= row_.size()) {
        leave({support.feature, j, nullptr, 0});
        return false;
      }
      row_[support.feature[j]] = j + 1;
    }
    return true;
  }

  void leave(const Support& support) noexcept {
    for (std::uint32_t j = 0; j < support.count; ++j) row_[support.feature[j]] = 0;
  }

  std::uint32_t match(const Query& query, Match* out) const noexcept {
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < query.count; ++i) {
      const std::uint32_t row = row_[query.feature[i]];
      out[found] = {row - 1, query.value[i]};
      found += row != 0;
    }
    return found;
  }

private:
  std::vector<std::uint32_t> row_;
};

} // namespace beamwood
