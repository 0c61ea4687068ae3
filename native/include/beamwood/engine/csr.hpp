// CSR arrays in, a list of queries out: sparse rows with rising feature ids below d and finite values.
//
// `QueryBatch::checked` looks at every id and value once, and what it returns cannot be wrong: kernels trust it.
// Rows with unsorted or doubled ids are reported apart from real faults: the caller makes a canonical copy of those.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace beamwood {

struct Query {
  const std::uint32_t* feature;
  const float* value;
  std::uint32_t count;
};

enum class RowFault : std::uint8_t { none, not_canonical, out_of_range, not_finite, bad_offsets };

struct RowCheck {
  RowFault fault = RowFault::none;
  std::int64_t row = 0;
  std::int64_t at = 0; // position among the non-zeros
};

// Divides a row by its l2 norm: the squares are added in double for rising id, each value is rounded to float32 once.
// A row of zeros stays as it is.
inline void to_unit_length(const float* in, std::size_t count, float* out) noexcept {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(in[i]) * static_cast<double>(in[i]);
  const double norm = sum > 0.0 ? std::sqrt(sum) : 1.0;
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(static_cast<double>(in[i]) / norm);
}

class QueryBatch {
public:
  std::span<const Query> queries() const noexcept { return queries_; }
  std::uint64_t nonzeros() const noexcept { return nonzeros_; }

  // Points at the caller's arrays, which must outlive the batch; 64-bit ids are copied into 32 bits first.
  template <class Offset, class Index>
  RowCheck checked(std::span<const Offset> offsets, std::span<const Index> features, std::span<const float> values,
                   std::uint32_t dimension) {
    queries_.clear();
    nonzeros_ = 0;
    const std::size_t stored = std::min(features.size(), values.size());
    if (offsets.empty() || offsets[0] < 0) return {RowFault::bad_offsets, 0, 0};
    queries_.reserve(offsets.size() - 1);
    const std::uint32_t* narrow = narrowed(features);
    RowCheck first_disorder;
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
      const auto begin = static_cast<std::size_t>(offsets[row]), end = static_cast<std::size_t>(offsets[row + 1]);
      if (offsets[row + 1] < offsets[row] || end > stored)
        return {RowFault::bad_offsets, static_cast<std::int64_t>(row), 0};
      const RowCheck found = check_row(row, begin, end, features, values, dimension);
      if (found.fault == RowFault::not_canonical) {
        if (first_disorder.fault == RowFault::none) first_disorder = found;
      } else if (found.fault != RowFault::none) {
        return found;
      }
      queries_.push_back({narrow + begin, values.data() + begin, static_cast<std::uint32_t>(end - begin)});
      nonzeros_ += end - begin;
    }
    return first_disorder;
  }

  // Every row of what was checked, at length 1, in memory of the batch's own.
  void make_unit() {
    unit_.resize(nonzeros_);
    float* out = unit_.data();
    for (Query& query : queries_) {
      to_unit_length(query.value, query.count, out);
      query.value = out;
      out += query.count;
    }
  }

private:
  template <class Index> const std::uint32_t* narrowed(std::span<const Index> features) {
    if constexpr (sizeof(Index) == 4) return reinterpret_cast<const std::uint32_t*>(features.data());
    narrow_.assign(features.begin(), features.end());
    return narrow_.data();
  }

  template <class Index>
  static RowCheck check_row(std::size_t row, std::size_t begin, std::size_t end, std::span<const Index> features,
                            std::span<const float> values, std::uint32_t dimension) noexcept {
    const auto at = [row](RowFault fault, std::size_t i) {
      return RowCheck{fault, static_cast<std::int64_t>(row), static_cast<std::int64_t>(i)};
    };
    bool rising = true;
    std::int64_t last = -1;
    for (std::size_t i = begin; i < end; ++i) {
      const auto feature = static_cast<std::int64_t>(features[i]);
      if (feature < 0 || feature >= static_cast<std::int64_t>(dimension)) return at(RowFault::out_of_range, i);
      if (!std::isfinite(values[i])) return at(RowFault::not_finite, i);
      rising &= feature > last;
      last = feature;
    }
    return rising ? RowCheck{} : at(RowFault::not_canonical, begin);
  }

  std::vector<Query> queries_;
  std::vector<std::uint32_t> narrow_;
  std::vector<float> unit_;
  std::uint64_t nonzeros_ = 0;
};

} // namespace beamwood
