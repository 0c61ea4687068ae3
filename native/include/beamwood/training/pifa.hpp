// Rows of X and, for each label, its positive rows in: one sparse unit vector per label out (positive instance feature
// aggregation).
//
// The law: vector l = the sum of y[i,l]·x[i] over rising i in float32 from +0, then divided by its length. A label
// without rows gets an empty vector, one whose sum is zero a vector of zeros. Feature ids rise.
//
// Two passes over the same rows: the first counts the features of each label, so that the result is allocated once
// and filled in place; nothing of the size of labels × features exists at any time. Each worker owns one dense sum and
// a two-level bit set of the features touched, which gives them back in rising order without sorting.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/training/cluster.hpp"

namespace beamwood {

// A set of small integers that is emptied by walking it, in rising order.
class BitSet {
public:
  explicit BitSet(std::size_t size) : word_(size / 64 + 1), group_(size / 4096 + 1) {}

  // True if it was not yet there.
  bool insert(std::size_t i) noexcept {
    std::uint64_t& word = word_[i >> 6];
    const std::uint64_t bit = std::uint64_t{1} << (i & 63);
    if (word & bit) return false;
    word |= bit;
    group_[i >> 12] |= std::uint64_t{1} << ((i >> 6) & 63);
    return true;
  }

  template <class F> void drain(F&& f) {
    for (std::size_t g = 0; g < group_.size(); ++g) {
      for (std::uint64_t words = group_[g]; words; words &= words - 1) {
        const std::size_t w = g * 64 + static_cast<std::size_t>(std::countr_zero(words));
        for (std::uint64_t bits = word_[w]; bits; bits &= bits - 1)
          f(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
        word_[w] = 0;
      }
      group_[g] = 0;
    }
  }

private:
  std::vector<std::uint64_t> word_, group_;
};

// positives: for each label (row) the ids of its rows of X (features) and their values in Y.
class Pifa {
public:
  Pifa(const SparseRows& X, const SparseRows& positives, const Workers& workers)
      : X_(X), positives_(positives), workers_(workers), touched_(workers.threads, BitSet(X.features)) {}

  // Number of features of each label: into offset[l + 1], still to be summed up.
  void count(std::span<std::int64_t> counts) {
    std::vector<std::vector<std::uint32_t>> seen(workers_.threads, std::vector<std::uint32_t>(X_.features, 0));
    for_labels([&](std::size_t label, unsigned worker) {
      std::uint32_t* const last = seen[worker].data(); // the last label that had the feature, counted from one
      const auto now = static_cast<std::uint32_t>(label + 1);
      std::int64_t count = 0;
      for_entries(label, [&](std::size_t f, float) {
        count += last[f] != now;
        last[f] = now;
      });
      counts[label] = count;
    });
  }

  void fill(std::span<const std::int64_t> offset, std::span<std::int32_t> feature, std::span<float> value) {
    sum_.assign(workers_.threads, std::vector<float>(X_.features, 0.0f));
    for_labels([&](std::size_t label, unsigned worker) {
      float* const sum = sum_[worker].data();
      for_entries(label, [&](std::size_t f, float v) {
        sum[f] += v;
        touched_[worker].insert(f);
      });
      auto at = static_cast<std::size_t>(offset[label]);
      const std::size_t begin = at;
      double square = 0.0;
      touched_[worker].drain([&](std::size_t f) {
        feature[at] = static_cast<std::int32_t>(f);
        value[at++] = sum[f];
        square += double{sum[f]} * double{sum[f]};
        sum[f] = 0.0f;
      });
      const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
      for (std::size_t e = begin; e < at; ++e) value[e] = static_cast<float>(double{value[e]} * scale);
    });
  }

private:
  template <class F> void for_labels(F&& f) {
    constexpr std::size_t piece = 64;
    const std::size_t labels = positives_.size();
    parallel_for(workers_, (labels + piece - 1) / piece, [&](std::size_t task, unsigned worker) {
      for (std::size_t l = task * piece; l < std::min(labels, (task + 1) * piece); ++l) f(l, worker);
    });
  }

  // A label's rows lie all over X: prefetching the next ones hides most of the wait for memory.
  template <class F> void for_entries(std::size_t label, F&& f) const {
    const std::size_t last = positives_.feature.size();
    for (std::size_t p = positives_.begin(label); p < positives_.end(label); ++p) {
      if (p + 8 < last) __builtin_prefetch(&X_.offset[row_at(p + 8)]);
      if (p + 4 < last) {
        const std::size_t soon = X_.begin(row_at(p + 4));
        __builtin_prefetch(X_.feature.data() + soon);
        __builtin_prefetch(X_.value.data() + soon);
      }
      const std::size_t row = row_at(p);
      const float y = positives_.value[p];
      for (std::size_t e = X_.begin(row); e < X_.end(row); ++e)
        f(static_cast<std::size_t>(X_.feature[e]), y * X_.value[e]);
    }
  }

  std::size_t row_at(std::size_t p) const noexcept { return static_cast<std::size_t>(positives_.feature[p]); }

  const SparseRows X_, positives_;
  const Workers& workers_;
  std::vector<BitSet> touched_;
  std::vector<std::vector<float>> sum_;
};

} // namespace beamwood
