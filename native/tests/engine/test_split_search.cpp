// split_search.hpp: the two halves of a search, one after the other, give the bits of the whole; nodes of others are checked.
#include "beamwood/engine/split_search.hpp"

#include "forests.hpp"

using namespace check;

namespace {

// The nodes that have labels below them, tree by tree: as a part of a model is asked.
MetBatch with_labels(const Forest& forest, const MetBatch& all) {
  MetBatch kept;
  for (std::size_t q = 0; q + 1 < all.start.size(); ++q) {
    const auto first = static_cast<std::ptrdiff_t>(kept.met.size());
    for (auto i = static_cast<std::size_t>(all.start[q]); i < static_cast<std::size_t>(all.start[q + 1]); ++i)
      if (GivenNodes::has_labels(forest, all.met[i])) kept.met.push_back(all.met[i]);
    std::stable_sort(kept.met.begin() + first, kept.met.end(),
                     [](const Met& a, const Met& b) { return a.tree < b.tree; });
    kept.start.push_back(static_cast<std::int64_t>(kept.met.size()));
  }
  return kept;
}

} // namespace

TEST(both_halves_of_a_search_give_the_bits_of_the_whole) {
  Random random;
  for (int round = 0; round < 150; ++round) {
    Plan plan = random_plan(random);
    const PlainForest plain = plain_forest(random, plan);
    if (plain.activation.discount != 1.0f) continue; // such a model is not cut
    const OwnedForest own(plain);
    const Forest forest = own.view(Layout::cascade);
    const Rows rows(random, random.between(1, 9), plain.features, 0.3);
    SearchOptions options;
    options.k = random.between(1, 12);
    options.beam = random.between(1, 8);
    options.bound = random.chance(0.7);
    const Workers workers{random.between(1, 2)};
    SplitSearch halves;
    MetBatch met;
    CHECK(halves.above(forest, rows.queries(), options, workers, nullptr, met));
    Answers found(rows.queries().size(), options.k);
    found.sound = halves.below(forest, rows.queries(), options, workers, nullptr, with_labels(forest, met),
                               found.labels.data(), found.scores.data());
    CHECK(found == search(forest, rows.queries(), options));
  }
}

TEST(a_node_that_is_not_there_does_not_fit) {
  Random random;
  const OwnedForest own(plain_forest(random, random_plan(random)));
  const Forest forest = own.view(Layout::cascade);
  const auto trees = static_cast<std::uint32_t>(forest.trees.size());
  const auto layers = static_cast<std::uint32_t>(forest.trees[0].layers.size());
  CHECK(GivenNodes::fits(forest, {0, 0, 0, 1.0f}));
  CHECK(!GivenNodes::fits(forest, {trees, 0, 0, 1.0f}));
  CHECK(!GivenNodes::fits(forest, {0, layers, 0, 1.0f}));
  CHECK(!GivenNodes::fits(forest, {0, 0, 1, 1.0f})); // the root is alone
}
