// pifa.hpp: label vectors are the plain sums of their rows, bit for bit, for any number of threads.
#include "beamwood/training/pifa.hpp"
#include "problems.hpp"

using namespace check;
using namespace beamwood;

namespace {

Sparse label_vectors(const Sparse& x, const Sparse& positives, unsigned threads) {
  const Workers workers{threads};
  Pifa pifa(x.rows(), positives.rows(), workers);
  Sparse out;
  out.width = x.width;
  out.start.assign(positives.lines() + 1, 0);
  pifa.count(std::span(out.start).subspan(1));
  std::partial_sum(out.start.begin(), out.start.end(), out.start.begin());
  out.index.assign(static_cast<std::size_t>(out.start.back()), -1);
  out.value.assign(out.index.size(), -1.0f);
  pifa.fill(out.start, out.index, out.value);
  return out;
}

// The law as it stands in the header, with a map.
std::map<std::int32_t, float> plain_vector(const Sparse& x, const Sparse& positives, std::size_t label) {
  std::map<std::int32_t, float> sum;
  for (const auto& [row, y] : positives.line(label))
    for (const auto& [f, v] : x.line(static_cast<std::size_t>(row))) sum[f] += y * v;
  double square = 0;
  for (const auto& [f, v] : sum) square += static_cast<double>(v) * v;
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
  for (auto& [f, v] : sum) v = static_cast<float>(v * scale);
  return sum;
}

} // namespace

TEST(label_vectors_are_plain_sums_of_length_one) {
  Random random;
  for (const std::size_t labels : {1u, 5u, 200u}) {
    const Sparse x = random_sparse(random, 300, 9000, 12);
    const Sparse positives = random_sparse(random, labels, 300, labels == 5 ? 0 : 7);
    const Sparse one = label_vectors(x, positives, 1);
    CHECK(well_formed(one.rows()));
    for (std::size_t l = 0; l < labels; ++l) CHECK(one.line(l) == plain_vector(x, positives, l));
    for (std::size_t l = 0; l < labels; ++l)
      CHECK(std::is_sorted(one.index.begin() + one.start[l], one.index.begin() + one.start[l + 1]));
    for (const unsigned threads : {2u, 8u}) {
      const Sparse many = label_vectors(x, positives, threads);
      CHECK(many.start == one.start && many.index == one.index && many.value == one.value);
    }
  }
}

TEST(a_sum_of_zero_stays_zero) {
  Sparse x, positives;
  x.width = 3;
  x.add_line({{1, 2.0f}});
  x.add_line({{1, -2.0f}});
  positives.width = 2;
  positives.add_line({{0, 1.0f}, {1, 1.0f}});
  const Sparse vectors = label_vectors(x, positives, 1);
  for (const float v : vectors.value) CHECK(v == 0.0f);
}
