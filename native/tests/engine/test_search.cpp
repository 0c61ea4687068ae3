// search.hpp and what it uses: every variant gives the bits of the plain search, for any batch, threads and callers.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "forests.hpp"

using namespace check;

namespace {

Plan larger_plan() {
  Plan plan;
  plan.features = 200;
  plan.most_width = plan.least_width = 12;
  plan.density = 0.1;
  return plan;
}

} // namespace

TEST(every_variant_gives_the_bits_of_the_plain_search) {
  Random random;
  for (int round = 0; round < 150; ++round) {
    const PlainForest plain = plain_forest(random, random_plan(random));
    const OwnedForest own(plain);
    const Rows rows(random, random.chance(0.3) ? 1 : random.between(2, 20), plain.features, 0.3);
    SearchOptions options;
    options.k = random.between(1, 12);
    options.beam = random.between(1, 8);
    const Answers expected = plain_search(plain, rows.queries(), options.k, options.beam);
    for (const Layout layout : kLayouts) {
      const Forest forest = own.view(layout);
      for (const Isa isa : isas_here()) {
        options.isa = isa;
        options.choose = true;
        CHECK(search(forest, rows.queries(), options) == expected);
        options.choose = false;
        for (const Matcher matcher : kMatchers) {
          options.matcher = matcher;
          options.sort_blocks = random.chance(0.8);
          options.bound = random.chance(0.8);
          CHECK(search(forest, rows.queries(), options, random.between(1, 3)) == expected);
        }
      }
    }
  }
}

// Most children of a wide node are not scored: a bar is seen from the sums of some. Steps of a hinge make many scores equal.
TEST(children_of_wide_nodes_that_are_not_scored_change_no_bit) {
  Random random;
  for (int round = 0; round < 60; ++round) {
    Plan plan = random_plan(random);
    plan.layers = 2, plan.least_width = 1, plan.most_width = random.between(33, 150);
    plan.early_leaves = 0.0; // wide nodes without labels
    plan.features = random.between(3, 40);
    PlainForest plain = plain_forest(random, plan);
    if (random.chance(0.5))
      for (PlainTree& tree : plain.trees)
        for (PlainLayer& layer : tree)
          for (auto& column : layer.column)
            for (auto& [feature, weight] : column) weight = std::round(2 * weight);
    const OwnedForest own(plain);
    const Rows rows(random, random.between(1, 90), plain.features, 0.3);
    SearchOptions options;
    options.k = random.between(1, 12);
    options.beam = random.between(1, 20);
    const Answers expected = plain_search(plain, rows.queries(), options.k, options.beam);
    for (const Layout layout : kLayouts)
      for (const Isa isa : isas_here()) {
        options.isa = isa;
        options.bound = random.chance(0.8);
        CHECK(search(own.view(layout), rows.queries(), options, random.between(1, 3)) == expected);
      }
  }
}

TEST(threads_and_batches_change_no_bit) {
  Random random;
  const PlainForest plain = plain_forest(random, larger_plan());
  const OwnedForest own(plain);
  const Rows rows(random, 300, plain.features, 0.2);
  SearchOptions options;
  options.choose = false;
  for (const Layout layout : kLayouts) {
    const Forest forest = own.view(layout);
    for (const Matcher matcher : kMatchers) {
      options.matcher = matcher;
      const Answers one = search(forest, rows.queries(), options, 1);
      CHECK(one.sound);
      for (const unsigned threads : {2u, 8u}) CHECK(search(forest, rows.queries(), options, threads) == one);
      for (std::size_t q = 0; q < 20; ++q) {
        const Answers alone = search(forest, rows.queries().subspan(q, 1), options);
        CHECK(std::equal(alone.labels.begin(), alone.labels.end(),
                         one.labels.begin() + static_cast<std::ptrdiff_t>(q * options.k)));
        CHECK(same_bits(alone.scores, std::span(one.scores).subspan(q * options.k, options.k)));
      }
    }
  }
}

// Few rows: all labels that were met are added up. Many rows, or many nodes: only those that may still win.
TEST(several_trees_have_the_same_bits_for_few_rows_and_for_many) {
  Random random;
  for (const double density : {0.1, 0.6})
    for (const std::uint32_t beam : {4u, 10u, 60u}) {
      std::uint64_t opened = 0, least = 0;
      for (int round = 0; round < 20; ++round) {
        Plan plan = larger_plan();
        plan.trees = random.between(2, 3);
        plan.activation = {ActivationKind::hinge, 3, round % 2 ? Path::product : Path::log_exp};
        if (round % 2 == 0) plan.activation.kind = ActivationKind::log_hinge;
        plan.early_leaves = round % 4 == 0 ? 0.2 : 0.0;
        const PlainForest plain = plain_forest(random, plan);
        const OwnedForest own(plain);
        const Rows rows(random, 6, plain.features, density);
        SearchOptions options;
        options.k = random.between(1, 10);
        options.beam = beam;
        CHECK(search(own.view(Layout::cascade), rows.queries(), options) ==
              plain_search(plain, rows.queries(), options.k, beam));
        for (const bool bound : {true, false}) {
          options.bound = bound;
          Answers found(rows.queries().size(), options.k);
          Search one;
          CHECK(one.run(own.view(Layout::cascade), rows.queries(), options, Workers{1}, found.labels.data(),
                        found.scores.data()));
          (bound ? least : opened) += one.work.blocks;
        }
      }
      CHECK(least < opened);
    }
}

TEST(many_callers_share_a_forest) {
  Random random;
  const PlainForest plain = plain_forest(random, larger_plan());
  const OwnedForest own(plain);
  const Forest forest = own.view(Layout::chunk);
  const Rows rows(random, 80, plain.features, 0.2);
  const SearchOptions options;
  const Answers expected = search(forest, rows.queries(), options);
  std::vector<std::uint8_t> same(8, 0);
  {
    std::vector<std::jthread> callers;
    for (std::size_t c = 0; c < same.size(); ++c)
      callers.emplace_back([&, c] {
        bool all = true;
        for (unsigned i = 0; i < 10; ++i)
          all &= search(forest, rows.queries(), options, 1 + (i + static_cast<unsigned>(c)) % 3) == expected;
        same[c] = all;
      });
  }
  CHECK(std::count(same.begin(), same.end(), 1) == 8);
}

TEST(a_forked_child_searches_with_threads_of_its_own) {
  if (std::getenv("BEAMWOOD_NO_FORK")) return; // inside an emulator, whose forks are not those of the system
  Random random;
  const PlainForest plain = plain_forest(random, larger_plan());
  const OwnedForest own(plain);
  const Forest forest = own.view(Layout::chunk);
  const Rows rows(random, 100, plain.features, 0.2);
  const Answers expected = search(forest, rows.queries(), {}, 4); // the pool has threads now
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(search(forest, rows.queries(), {}, 4) == expected ? 0 : 1);
  }
  CHECK(child > 0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(search(forest, rows.queries(), {}, 4) == expected);
}

TEST(exact_search_is_the_plain_search_with_an_endless_beam) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    Plan plan = random_plan(random);
    if (!plan.activation.only_shrinks()) plan.activation = {ActivationKind::hinge, 2, Path::product};
    if (random.chance(0.2)) plan.density = 0.0; // ties everywhere
    if (random.chance(0.5)) plan.bias = false;
    const PlainForest plain = plain_forest(random, plan);
    const OwnedForest own(plain);
    const Rows rows(random, 4, plain.features, 0.3);
    SearchOptions options;
    options.k = random.between(1, 12);
    options.choose = random.chance(0.5);
    const Answers expected = plain_search(plain, rows.queries(), options.k, 1u << 30);
    for (const Layout layout : kLayouts)
      for (const unsigned threads : {1u, 2u}) {
        Answers found(rows.queries().size(), options.k);
        Search exact;
        found.sound = exact.run(own.view(layout), rows.queries(), options, Workers{threads}, found.labels.data(),
                                found.scores.data(), nullptr, true);
        CHECK(found == expected);
      }
  }
}

TEST(cascades_are_the_same_bytes_for_any_number_of_workers) {
  Random random;
  for (int round = 0; round < 20; ++round) {
    OwnedForest own(plain_forest(random, random_plan(random)));
    auto again = own.trees[0];
    CHECK(cascade_tree(again, own.features, 3));
    for (std::size_t l = 0; l < again.size(); ++l) {
      CHECK(again[l].cascade_words == own.trees[0][l].cascade_words);
      CHECK(again[l].cascade_start == own.trees[0][l].cascade_start);
      CHECK(again[l].root == own.trees[0][l].root);
    }
  }
}

TEST(chunks_come_back_from_cascades_bit_for_bit) {
  Random random;
  for (int round = 0; round < 60; ++round) {
    const OwnedForest own(plain_forest(random, random_plan(random)));
    std::vector<OwnedLayer> again;
    CHECK(chunks_again(own.view(Layout::cascade).trees[0], again, 1 + round % 3));
    for (std::size_t l = 0; l < again.size(); ++l) {
      const OwnedLayer& first = own.trees[0][l];
      CHECK(again[l].words == first.words && again[l].feature == first.feature && again[l].offset == first.offset);
      CHECK(again[l].row_start == first.row_start && again[l].word_start == first.word_start);
    }
  }
}

TEST(cascade_offsets_that_leave_the_arrays_are_reported) {
  Random random;
  const PlainForest plain = plain_forest(random, larger_plan());
  const Rows rows(random, 5, plain.features, 0.9);
  const auto reported = [&](auto&& damage) {
    OwnedForest own(plain);
    damage(own.trees[0]);
    SearchOptions options;
    options.beam = 100000;
    options.bound = false; // everything is opened
    return !search(own.view(Layout::cascade), rows.queries(), options).sound;
  };
  for (const std::uint64_t far : {std::uint64_t{1} << 32, ~std::uint64_t{0}, ~std::uint64_t{0} - 50})
    for (const std::size_t layer : {0u, 1u, 2u}) {
      CHECK(reported([&](auto& tree) { tree[layer].cascade_start[0] = far; }));
      CHECK(reported([&](auto& tree) { tree[layer].cascade_start[1] = far; }));
    }
  CHECK(reported([](auto& tree) { std::fill(tree[0].root.begin(), tree[0].root.end(), 0xfffffff0u); }));
}

TEST(labels_and_shapes_of_a_damaged_tree_are_reported) {
  Random random;
  const PlainForest plain = plain_forest(random, larger_plan());
  const Rows rows(random, 5, plain.features, 0.2);
  const auto reported = [&](auto&& damage) {
    OwnedForest own(plain);
    damage(own.trees[0]);
    bool beam = true, best_first = true;
    for (const Layout layout : kLayouts) {
      const Forest forest = own.view(layout);
      SearchOptions options;
      options.k = options.beam = 100000; // everything is looked at
      beam &= !search(forest, rows.queries(), options, 2).sound;
      Answers answers(rows.queries().size(), options.k);
      Search exact;
      best_first &= !exact.run(forest, rows.queries(), options, Workers{2}, answers.labels.data(),
                               answers.scores.data(), nullptr, true);
    }
    return beam && best_first;
  };
  CHECK(reported([](auto& tree) { tree[2].label[5] = 0xfffffffeu; }));
  CHECK(reported([](auto& tree) { tree[2].label.clear(); }));
  CHECK(reported([](auto& tree) { tree[0].child_start[1] += 1; }));
  CHECK(reported([](auto& tree) { std::swap(tree[1].child_start[1], tree[1].child_start[2]); }));
  CHECK(reported([](auto& tree) { tree.pop_back(); })); // inner nodes in the last layer
}
