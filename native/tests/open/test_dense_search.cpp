// search.hpp over dense features, alone or behind others: the bits of the plain search.
#include "forests.hpp"

using namespace check;

namespace {

// Gives all nodes `count` more features, behind those that they have; some lack one, or all, but where they may not.
void add_dense(Random& random, PlainForest& plain, std::uint32_t count, bool full = false) {
  for (PlainTree& tree : plain.trees)
    for (PlainLayer& layer : tree) {
      const double lacking = !full && random.chance(0.3) ? 0.2 : 0.0, holes = !full && random.chance(0.3) ? 0.02 : 0.0;
      for (auto& column : layer.column) {
        if (random.chance(lacking)) continue;
        for (std::uint32_t f = 0; f < count; ++f)
          if (!random.chance(holes)) column[plain.features + f] = random.chance(0.05) ? 0.0f : random.number();
      }
    }
  plain.features += count;
}

} // namespace

TEST(dense_features_give_the_bits_of_the_plain_search) {
  Random random;
  for (int round = 0; round < 120; ++round) {
    Plan plan = random_plan(random);
    if (random.chance(0.1)) plan.most_width = 60, plan.layers = std::min(plan.layers, 2u);  // wide chunks
    if (random.chance(0.1)) plan.most_width = 300, plan.layers = std::min(plan.layers, 2u); // and wider ones
    if (random.chance(0.2)) plan.density = 0.0; // nothing but dense features
    PlainForest plain = plain_forest(random, plan);
    const std::uint32_t first = plain.features;
    add_dense(random, plain, random.between(14, 40));
    const OwnedForest own(plain);
    const Rows rows(random, random.between(1, 12), plain.features, 0.3, first);
    SearchOptions options;
    options.k = random.between(1, 12);
    options.beam = random.between(1, 8);
    const Answers expected = plain_search(plain, rows.queries(), options.k, options.beam);
    const Forest forest = own.view(Layout::cascade);
    for (const Isa isa : isas_here()) {
      options.isa = isa;
      for (const bool bound : {true, false}) {
        options.bound = bound;
        CHECK(search(forest, rows.queries(), options, random.between(1, 3)) == expected);
      }
    }
  }
}

TEST(dense_features_give_the_same_bits_in_compact_models) {
  Random random;
  for (int round = 0; round < 80; ++round) {
    Plan plan = random_plan(random);
    if (random.chance(0.2)) plan.most_width = 80, plan.layers = std::min(plan.layers, 2u);
    if (random.chance(0.3)) plan.density = 0.0;
    PlainForest plain = plain_forest(random, plan);
    const std::uint32_t first = plain.features;
    add_dense(random, plain, random.between(14, 40));
    const OwnedForest own(plain, round % 2 ? WeightKind::u8 : WeightKind::f16);
    const Forest forest = own.view(Layout::cascade);
    std::vector<std::vector<OwnedLayer>> decoded(forest.trees.size());
    Forest chunked = own.view(Layout::chunk); // of the weights that the codes stand for
    for (std::size_t t = 0; t < forest.trees.size(); ++t) {
      CHECK(chunks_again(forest.trees[t], decoded[t]));
      for (std::size_t l = 0; l < decoded[t].size(); ++l) chunked.trees[t].layers[l].chunks = decoded[t][l].chunks();
    }
    const Rows rows(random, random.between(1, 12), plain.features, 0.3, first);
    SearchOptions options;
    options.k = random.between(1, 12);
    options.beam = random.between(1, 8);
    options.choose = false;
    options.matcher = Matcher::march;
    const Answers expected = search(chunked, rows.queries(), options);
    for (const Isa isa : isas_here()) {
      options.isa = isa;
      CHECK(search(forest, rows.queries(), options, random.between(1, 3)) == expected);
    }
  }
}

TEST(batches_over_nothing_but_dense_features_give_the_bits_of_the_plain_search) {
  Random random;
  for (int round = 0; round < 120; ++round) {
    Plan plan = random_plan(random);
    if (random.chance(0.2)) plan.most_width = 60, plan.layers = std::min(plan.layers, 2u);
    plan.features = 0, plan.density = 0.0;
    PlainForest plain = plain_forest(random, plan);
    const std::uint32_t count = random.between(14, 40);
    add_dense(random, plain, count, random.chance(0.7));
    const OwnedForest own(plain);
    const Rows rows(random, random.between(5, 40), count, 0.0, 0);
    SearchOptions options;
    options.k = random.between(1, 12);
    options.beam = random.between(1, 8);
    const Answers expected = plain_search(plain, rows.queries(), options.k, options.beam);
    for (const Isa isa : isas_here()) {
      options.isa = isa;
      options.bound = random.chance(0.5);
      CHECK(search(own.view(Layout::cascade), rows.queries(), options, random.between(1, 3)) == expected);
    }
  }
}

TEST(dense_features_of_damaged_chunks_end_without_harm) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    PlainForest plain = plain_forest(random, random_plan(random));
    const std::uint32_t first = plain.features;
    add_dense(random, plain, 20);
    OwnedForest own(plain);
    for (auto& layer : own.trees[0])
      for (std::uint32_t& word : layer.cascade_words)
        if (random.chance(0.01)) word ^= 1u << random.below(32);
    const Rows rows(random, random.chance(0.5) ? 4 : 12, plain.features, 0.3, first);
    SearchOptions options;
    for (const Isa isa : isas_here()) {
      options.isa = isa;
      search(own.view(Layout::cascade), rows.queries(), options); // an answer or none, inside of its arrays
    }
  }
}
