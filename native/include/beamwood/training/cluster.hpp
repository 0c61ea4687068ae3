// Sparse unit vectors in, a clustering of them out: what the balanced and the wide k-means share.
//
// The law: a clustering is a function of (vectors, settings, seed). Random choices come from a key made of the seed
// and the cluster's place in the tree, sums run in an order fixed by the members' ids, and every score is computed
// whole by one worker: so the bits are the same for any number of threads.
//
// The cost of k-means on sparse vectors is one random read of a dense vector for each non-zero. `compact` makes
// that read cheap: it copies a small cluster with its features renumbered 0, 1, 2, … so that the dense vectors of
// the cluster are as short as the features it really has, and stay in the first-level cache.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace beamwood {

// A view of sparse rows; the loops trust that it is `well_formed`, which its maker checks.
struct SparseRows {
  std::span<const std::int64_t> offset; // one more than there are rows
  std::span<const std::int32_t> feature;
  std::span<const float> value;
  std::size_t features = 0;

  std::size_t size() const noexcept { return offset.size() - 1; }
  std::size_t begin(std::size_t row) const noexcept { return static_cast<std::size_t>(offset[row]); }
  std::size_t end(std::size_t row) const noexcept { return static_cast<std::size_t>(offset[row + 1]); }
  std::size_t entries(std::size_t row) const noexcept { return end(row) - begin(row); }
};

// True if the view stays inside its arrays and no value is NaN or infinite.
inline bool well_formed(const SparseRows& rows) noexcept {
  if (rows.offset.empty() || rows.offset.front() != 0 || rows.feature.size() != rows.value.size()) return false;
  for (std::size_t i = 0; i + 1 < rows.offset.size(); ++i)
    if (rows.offset[i] > rows.offset[i + 1]) return false;
  if (static_cast<std::size_t>(rows.offset.back()) != rows.feature.size()) return false;
  bool good = true;
  for (std::size_t e = 0; e < rows.feature.size(); ++e) {
    good &= rows.feature[e] >= 0 && static_cast<std::size_t>(rows.feature[e]) < rows.features;
    good &= rows.value[e] - rows.value[e] == 0.0f;
  }
  return good;
}

// Row · dense vector, in four running sums so that additions need not wait for each other; always the same four.
inline float dot(const SparseRows& rows, std::size_t row, const float* dense) noexcept {
  const std::int32_t* feature = rows.feature.data();
  const float* value = rows.value.data();
  std::size_t e = rows.begin(row);
  const std::size_t end = rows.end(row);
  float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
  for (; e + 4 <= end; e += 4) {
    s0 += value[e] * dense[feature[e]];
    s1 += value[e + 1] * dense[feature[e + 1]];
    s2 += value[e + 2] * dense[feature[e + 2]];
    s3 += value[e + 3] * dense[feature[e + 3]];
  }
  for (; e < end; ++e) s0 += value[e] * dense[feature[e]];
  return (s0 + s1) + (s2 + s3);
}

inline void add_scaled(const SparseRows& rows, std::size_t row, float factor, float* dense) noexcept {
  for (std::size_t e = rows.begin(row); e < rows.end(row); ++e) dense[rows.feature[e]] += factor * rows.value[e];
}

// A copy of some rows with their features renumbered in order of first appearance.
class CompactRows {
public:
  // `number` is scratch of rows.features entries, all -1 before and after.
  void copy(const SparseRows& rows, std::span<const std::uint32_t> members, std::vector<std::int32_t>& number) {
    std::size_t entries = 0;
    for (const std::uint32_t m : members) entries += rows.entries(m);
    offset_.assign(1, 0);
    offset_.reserve(members.size() + 1);
    feature_.resize(entries);
    value_.resize(entries);
    original_.clear();
    std::size_t at = 0;
    for (const std::uint32_t m : members) {
      for (std::size_t e = rows.begin(m); e < rows.end(m); ++e, ++at) {
        std::int32_t& local = number[static_cast<std::size_t>(rows.feature[e])];
        if (local < 0) {
          local = static_cast<std::int32_t>(original_.size());
          original_.push_back(rows.feature[e]);
        }
        feature_[at] = local;
        value_[at] = rows.value[e];
      }
      offset_.push_back(static_cast<std::int64_t>(at));
    }
    for (const std::int32_t f : original_) number[static_cast<std::size_t>(f)] = -1;
  }

  SparseRows view() const noexcept { return {offset_, feature_, value_, original_.size()}; }

private:
  std::vector<std::int64_t> offset_;
  std::vector<std::int32_t> feature_;
  std::vector<float> value_;
  std::vector<std::int32_t> original_;
};

} // namespace beamwood
