// Sparse rows and a table with a vector for each feature in: a vector for each row out; and the parts of a truncated
// singular value decomposition, by which such a table is learnt (encoders/learnt.py).
//
// The law: a row's vector is the sum of value · table[feature] over rising features, in float32 from +0. Products of
// columns (gram) are summed in double in blocks of rows whose bounds depend on the number of rows only, block after
// block. So every number is the same for any number of threads, and on every machine.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/training/cluster.hpp"

namespace beamwood {

// A table of numbers, row after row.
template <class T> struct Table {
  std::span<T> value;
  std::size_t width = 1;

  std::size_t rows() const noexcept { return value.size() / width; }
  T* row(std::size_t i) const noexcept { return value.data() + i * width; }
};

inline constexpr std::size_t kRowsPerTask = 256;
inline constexpr std::size_t kGramBlocks = 64;

template <class F> void for_rows(const Workers& workers, std::size_t rows, F&& fn) {
  parallel_for(workers, (rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task, unsigned) {
    const std::size_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (std::size_t i = task * kRowsPerTask; i < end; ++i) fn(i);
  });
}

// out[i] = the sum of the table's rows of row i's features; both tables have the same width.
inline void row_vectors(const SparseRows& rows, Table<const float> table, Table<float> out, const Workers& workers) {
  for_rows(workers, rows.size(), [&](std::size_t i) {
    float* const to = out.row(i);
    std::fill_n(to, out.width, 0.0f);
    for (std::size_t e = rows.begin(i); e < rows.end(i); ++e) {
      const float value = rows.value[e];
      const float* const from = table.row(static_cast<std::size_t>(rows.feature[e]));
      for (std::size_t d = 0; d < out.width; ++d) to[d] += value * from[d];
    }
  });
}

// out = the products of all pairs of columns, width × width.
inline void gram(Table<const float> table, std::span<double> out, const Workers& workers) {
  const std::size_t width = table.width, rows = table.rows();
  std::vector<double> sums(kGramBlocks * width * width);
  parallel_for(workers, kGramBlocks, [&](std::size_t block, unsigned) {
    double* const sum = sums.data() + block * width * width;
    std::vector<double> row(width);
    for (std::size_t i = block * rows / kGramBlocks; i < (block + 1) * rows / kGramBlocks; ++i) {
      std::copy_n(table.row(i), width, row.begin());
      for (std::size_t a = 0; a < width; ++a)
        if (row[a] != 0)
          for (std::size_t b = 0; b <= a; ++b) sum[a * width + b] += row[a] * row[b];
    }
  });
  std::ranges::fill(out, 0.0);
  for (std::size_t block = 0; block < kGramBlocks; ++block)
    for (std::size_t at = 0; at < width * width; ++at) out[at] += sums[block * width * width + at];
  for (std::size_t a = 0; a < width; ++a)
    for (std::size_t b = 0; b < a; ++b) out[b * width + a] = out[a * width + b];
}

// out[i] = table[i] times a matrix (table.width × out.width), in double, rounded once.
inline void turned(Table<const float> table, std::span<const double> matrix, Table<float> out, const Workers& workers) {
  for_rows(workers, table.rows(), [&](std::size_t i) {
    std::vector<double> sum(out.width);
    for (std::size_t a = 0; a < table.width; ++a) {
      const double value = table.row(i)[a];
      for (std::size_t b = 0; b < out.width; ++b) sum[b] += value * matrix[a * out.width + b];
    }
    std::ranges::transform(sum, out.row(i), [](double s) { return static_cast<float>(s); });
  });
}

// Eigenvalues, falling, and eigenvectors (columns) of a symmetric matrix of doubles, by Jacobi's rotations.
inline void eigen(std::vector<double> matrix, std::size_t width, std::span<double> values, std::span<double> vectors) {
  std::vector<double> turn(width * width);
  for (std::size_t i = 0; i < width; ++i) turn[i * width + i] = 1;
  const auto at = [&](std::size_t i, std::size_t j) -> double& { return matrix[i * width + j]; };
  double all = 0;
  for (const double each : matrix) all += each * each;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0;
    for (std::size_t p = 0; p < width; ++p)
      for (std::size_t q = p + 1; q < width; ++q) off += at(p, q) * at(p, q);
    if (off <= 1e-26 * all) break;
    for (std::size_t p = 0; p < width; ++p)
      for (std::size_t q = p + 1; q < width; ++q) {
        if (at(p, q) == 0) continue;
        const double theta = (at(q, q) - at(p, p)) / (2 * at(p, q));
        const double t = (theta < 0 ? -1 : 1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (std::size_t k = 0; k < width; ++k) {
          const double a = at(k, p), b = at(k, q);
          at(k, p) = c * a - s * b, at(k, q) = s * a + c * b;
        }
        for (std::size_t k = 0; k < width; ++k) {
          const double a = at(p, k), b = at(q, k);
          at(p, k) = c * a - s * b, at(q, k) = s * a + c * b;
        }
        for (std::size_t k = 0; k < width; ++k) {
          const double a = turn[k * width + p], b = turn[k * width + q];
          turn[k * width + p] = c * a - s * b, turn[k * width + q] = s * a + c * b;
        }
      }
  }
  std::vector<std::size_t> order(width);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return at(a, a) > at(b, b); });
  for (std::size_t j = 0; j < width; ++j) {
    values[j] = at(order[j], order[j]);
    for (std::size_t k = 0; k < width; ++k) vectors[k * width + j] = turn[k * width + order[j]];
  }
}

} // namespace beamwood
