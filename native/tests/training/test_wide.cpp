// wide.hpp: groups in range, alike rows together, lumps cut evenly, the same for any threads and every instruction set.
#include "beamwood/training/wide.hpp"
#include "problems.hpp"

using namespace check;
using namespace beamwood;

namespace {

struct Level { // clusters of all rows, of uneven sizes
  std::vector<std::uint32_t> members;
  std::vector<std::int64_t> bounds{0};
};

Level random_level(Random& random, std::size_t rows, std::size_t most) {
  Level level;
  level.members.resize(rows);
  std::iota(level.members.begin(), level.members.end(), 0u);
  while (static_cast<std::size_t>(level.bounds.back()) < rows)
    level.bounds.push_back(std::min(static_cast<std::int64_t>(rows),
                                    level.bounds.back() + random.between(1, static_cast<std::uint32_t>(most))));
  return level;
}

std::vector<std::int32_t> groups_of(const Sparse& rows, const Level& level, std::size_t branching, unsigned threads,
                                    Isa isa = best_isa()) {
  const Workers workers{threads};
  std::vector<std::int32_t> group(level.members.size(), -7);
  WideClustering(rows.rows(), branching, 5, workers, isa).split({level.members, level.bounds}, 2, group);
  return group;
}

} // namespace

TEST(wide_groups_do_not_depend_on_threads_or_isa) {
  Random random;
  struct Case {
    std::size_t rows, features, entries, most, branching;
  };
  for (const Case& c : {Case{300, 50, 6, 40, 5}, Case{3000, 200, 8, 3000, 16}, Case{3000, 200, 8, 100, 300}}) {
    const Sparse rows = random_sparse(random, c.rows, c.features, c.entries);
    const Level level = random_level(random, c.rows, c.most);
    const auto one = groups_of(rows, level, c.branching, 1, Isa::scalar);
    for (std::size_t k = 0; k + 1 < level.bounds.size(); ++k)
      for (auto i = static_cast<std::size_t>(level.bounds[k]); i < static_cast<std::size_t>(level.bounds[k + 1]); ++i) {
        CHECK(one[i] >= 0);
        CHECK(one[i] <
              std::min<std::int64_t>(static_cast<std::int64_t>(c.branching), level.bounds[k + 1] - level.bounds[k]));
      }
    for (const unsigned threads : {2u, 8u}) CHECK(one == groups_of(rows, level, c.branching, threads));
    for (const Isa isa : kVectorIsas)
      if (supported(isa)) CHECK(one == groups_of(rows, level, c.branching, 1, isa));
  }
}

TEST(one_cluster_of_all_rows_and_a_sample_of_it) {
  Random random;
  const Sparse rows = random_sparse(random, 5000, 100, 8); // more than a sample, and passes shared among workers
  const Level level{random_level(random, 5000, 1).members, {0, 5000}};
  const auto one = groups_of(rows, level, 10, 1);
  CHECK(one == groups_of(rows, level, 10, 3));
  CHECK(std::set<std::int32_t>(one.begin(), one.end()).size() == 10);
}

TEST(wide_groups_keep_alike_rows_together) {
  Random random;
  const std::size_t themes = 6;
  const Sparse rows = themed_rows(random, 600, themes);
  const Level level{random_level(random, 600, 1).members, {0, 600}};
  const auto group = groups_of(rows, level, themes, 2);
  std::map<std::pair<std::size_t, std::int32_t>, int> pairs; // (theme, group): rows
  for (std::size_t i = 0; i < group.size(); ++i) ++pairs[{i % themes, group[i]}];
  std::map<std::int32_t, int> largest;
  for (const auto& [pair, count] : pairs) largest[pair.second] = std::max(largest[pair.second], count);
  int pure = 0;
  for (const auto& [g, count] : largest) pure += count;
  CHECK(pure >= 400); // of 600: k-means may join two themes, but does not mix them all
}

TEST(a_lump_is_cut_into_even_runs) {
  Sparse rows;
  rows.width = 2;
  for (int i = 0; i < 100; ++i) rows.add_line({{1, 1.0f}}); // all alike: k-means cannot tell them apart
  Random random;
  const auto group = groups_of(rows, {random_level(random, 100, 1).members, {0, 100}}, 4, 1);
  std::map<std::int32_t, int> size;
  for (const std::int32_t g : group) ++size[g];
  CHECK(size.size() == 4);
  for (const auto& [g, count] : size) CHECK(count == 25);
}
