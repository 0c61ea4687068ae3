// A query in, the values of the features side by side at its end out: the part of it that may meet runs of dense rows.
//
// The law of one sum holds with zeros in between: a feature that the query lacks adds +-0, which changes no sum. Dense
// blocks of features come last, so that their sums go on from those of the sparse ones.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/csr.hpp"

namespace beamwood {

class QueryTail {
public:
  static constexpr std::uint32_t kLeast = 16; // features: fewer are rows like others

  // The query must live as long as this is asked.
  void start(const Query& query) {
    query_ = &query, count_ = 0;
    if (query.count < kLeast || lacking(query.count - kLeast) > kMostLacking) return; // all that a sparse query pays
    std::uint32_t first = 0;
    for (std::uint32_t after = query.count - kLeast; first < after;) { // what is lacking falls from left to right
      const std::uint32_t middle = first + (after - first) / 2;
      if (lacking(middle) > kMostLacking) first = middle + 1;
      else after = middle;
    }
    count_ = query.feature[query.count - 1] - query.feature[first] + 1;
    value_ = query.value + first;
    if (lacking(first) > 0) fill(first);
  }

  // Keeps only those whose records in the root's chunk lie `stride` words apart; none, where they are too few.
  void trim(std::span<const std::uint32_t> root, std::uint32_t stride) noexcept {
    if (count_ == 0) return;
    const std::uint32_t last = query_->feature[query_->count - 1], at = root[last];
    std::uint32_t fit = 1;
    while (fit < count_ && root[last - fit] < at && at - root[last - fit] == std::uint64_t{fit} * stride) ++fit;
    value_ += count_ - fit;
    count_ = fit < kLeast ? 0 : fit;
  }
  void drop() noexcept { count_ = 0; }

  std::uint32_t count() const noexcept { return count_; }
  const float* values() const noexcept { return value_; }
  std::uint32_t last_feature() const noexcept { return query_->feature[query_->count - 1]; }

  // The query without them.
  Query rest() const noexcept {
    if (count_ == 0) return *query_;
    const std::uint32_t first = last_feature() + 1 - count_;
    const auto* const end = std::lower_bound(query_->feature, query_->feature + query_->count, first);
    return {query_->feature, query_->value, static_cast<std::uint32_t>(end - query_->feature)};
  }

private:
  static constexpr std::uint32_t kMostLacking = 8;

  // Features that the query lacks behind its i-th.
  std::uint32_t lacking(std::uint32_t i) const noexcept {
    return last_feature() - query_->feature[i] - (query_->count - 1 - i);
  }

  void fill(std::uint32_t first) {
    filled_.assign(count_, 0.0f);
    for (std::uint32_t i = first; i < query_->count; ++i)
      filled_[query_->feature[i] - query_->feature[first]] = query_->value[i];
    value_ = filled_.data();
  }

  const Query* query_ = nullptr;
  const float* value_ = nullptr;
  std::uint32_t count_ = 0;
  std::vector<float> filled_;
};

} // namespace beamwood
