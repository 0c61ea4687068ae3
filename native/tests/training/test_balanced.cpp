// balanced.hpp: every row once, clusters of even sizes, alike rows together, the same for any number of threads.
#include "beamwood/training/balanced.hpp"
#include "problems.hpp"

using namespace check;
using namespace beamwood;

namespace {

std::vector<std::uint32_t> order_of(const Sparse& rows, std::size_t clusters, std::uint64_t seed, unsigned threads) {
  const Workers workers{threads};
  return BalancedClustering(rows.rows(), clusters, seed, workers).run();
}

void check_order(const std::vector<std::uint32_t>& order, std::size_t clusters) {
  std::vector<std::uint32_t> sorted = order;
  std::ranges::sort(sorted);
  for (std::uint32_t i = 0; i < sorted.size(); ++i) CHECK(sorted[i] == i);
  for (std::size_t c = 0; c < clusters; ++c) { // the law: cluster c lies at [c·L/K, (c+1)·L/K), ids rise inside
    const auto from = order.begin() + static_cast<std::ptrdiff_t>(c * order.size() / clusters);
    const auto to = order.begin() + static_cast<std::ptrdiff_t>((c + 1) * order.size() / clusters);
    CHECK(to - from >= static_cast<std::ptrdiff_t>(order.size() / clusters));
    CHECK(std::is_sorted(from, to));
  }
}

} // namespace

TEST(balanced_clusters_are_even_and_hold_every_row_once) {
  Random random;
  for (const std::size_t rows : {1u, 2u, 3u, 17u, 100u, 300u})
    for (const std::size_t clusters : {1u, 2u, 3u, 7u, 64u}) {
      if (clusters > rows) continue;
      check_order(order_of(random_sparse(random, rows, 40, 6), clusters, 3, 1), clusters);
    }
}

TEST(balanced_clusters_do_not_depend_on_threads) {
  Random random;
  // From a few rows to so many entries that clusters share their passes, and so many clusters that each is a task.
  const Sparse cases[] = {random_sparse(random, 500, 60, 8), random_sparse(random, 9000, 3000, 20),
                          random_sparse(random, 20000, 500, 130)};
  for (const Sparse& rows : cases) {
    const std::size_t clusters = std::min<std::size_t>(rows.lines(), 64);
    const auto one = order_of(rows, clusters, 11, 1);
    check_order(one, clusters);
    for (const unsigned threads : {2u, 8u}) CHECK(one == order_of(rows, clusters, 11, threads));
    CHECK(one != order_of(rows, clusters, 12, 1));
  }
}

TEST(balanced_clusters_keep_alike_rows_together) {
  Random random;
  const std::size_t themes = 4;
  const Sparse rows = themed_rows(random, 400, themes);
  const auto order = order_of(rows, themes, 1, 2);
  std::size_t together = 0; // neighbours in the order that are of one theme
  for (std::size_t i = 0; i + 1 < order.size(); ++i) together += order[i] % themes == order[i + 1] % themes;
  CHECK(together >= 390);
}

TEST(rows_without_features_are_clustered_too) {
  Sparse rows;
  rows.width = 3;
  for (int i = 0; i < 40; ++i) rows.add_line({});
  check_order(order_of(rows, 8, 1, 2), 8);
}
