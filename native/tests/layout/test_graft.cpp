// graft.hpp: siblings that come later are where they would be if they had been there from the start; damage is survived.
#include "beamwood/layout/graft.hpp"

#include "forests.hpp"

using namespace check;

namespace {

// A layer as it is, with the features of its rows.
struct OldLayer {
  CascadeSource source;
  std::vector<std::uint64_t> row_start;
  std::vector<std::uint32_t> feature;
};

bool read_layers(const Tree& tree, std::vector<OldLayer>& out) {
  CascadeReader reader(tree);
  out.resize(tree.layers.size());
  for (OldLayer& layer : out) {
    if (!reader.next(Workers{1})) return false;
    layer.source = reader.source();
    layer.row_start.assign(layer.source.row_start.begin(), layer.source.row_start.end());
    layer.feature.assign(layer.source.feature.begin(), layer.source.feature.end());
    layer.source.row_start = layer.row_start;
    layer.source.feature = layer.feature;
  }
  return true;
}

struct Grafted {
  std::vector<std::uint32_t> words;
  std::vector<std::uint64_t> start;
};

// The layers of a tree that gets the siblings of `whole` which it lacks, the last layer first. False: damaged.
bool graft(const Tree& tree, const PlainTree& whole, unsigned threads, std::vector<Grafted>& out) {
  std::vector<OldLayer> old;
  if (!read_layers(tree, old)) return false;
  GrownRows below, grown;
  for (std::size_t l = whole.size(); l-- > 0;) {
    const PlainLayer& layer = whole[l];
    const CscArrays columns(layer);
    std::vector<std::uint32_t> same(layer.child_start.size() - 1);
    std::iota(same.begin(), same.end(), 0u);
    const bool last = l + 1 == whole.size();
    const LayerShape shape{static_cast<std::uint32_t>(layer.column.size()), layer.child_start, {}, {}};
    LayerGrafter grafter(old[l].source, shape, same, columns.view(), last ? nullptr : &tree.layers[l + 1].cascade,
                         last ? nullptr : &below);
    grown = {};
    if (!grafter.measure(grown, Workers{threads})) return false;
    Grafted& made = out.emplace_back();
    made.start.resize(layer.child_start.size());
    grafter.chunk_starts(grown, made.start);
    made.words.assign(grown.rows.word_start.back() + kTailWords, 7);
    trim(made.words);
    if (!grafter.fill(grown, made.words, {}, Workers{threads})) return false;
    below = std::move(grown);
  }
  return true;
}

// The tree without some of the last siblings of its last layer.
PlainForest without_some(Random& random, const PlainForest& whole) {
  PlainForest found = whole;
  const PlainLayer& from = whole.trees[0].back();
  PlainLayer& to = found.trees[0].back();
  to = {{0}, {}, {}, {}};
  for (std::size_t p = 0; p + 1 < from.child_start.size(); ++p) {
    const std::uint32_t width = from.child_start[p + 1] - from.child_start[p];
    const std::uint32_t kept = random.chance(0.2) ? width : random.between(1, width);
    for (std::uint32_t node = from.child_start[p]; node < from.child_start[p] + kept; ++node) {
      to.label.push_back(from.label[node]);
      to.column.push_back(from.column[node]);
      if (!from.bias.empty()) to.bias.push_back(from.bias[node]);
    }
    to.child_start.push_back(static_cast<std::uint32_t>(to.column.size()));
  }
  return found;
}

Plan plan_of(Random& random, int round) {
  Plan plan;
  plan.features = random.between(1, 80);
  plan.layers = random.between(1, 3);
  plan.least_width = 7; // no two layers of such trees share a chunk
  plan.most_width = plan.layers == 3 ? 11 : round % 2 ? 20 : 90;
  plan.density = random.chance(0.3) ? 0.02 : 0.2;
  plan.early_leaves = 0.0;
  return plan;
}

} // namespace

TEST(grafted_chunks_are_those_that_are_built_of_all_siblings) {
  Random random;
  for (int round = 0; round < 60; ++round) {
    const PlainForest whole = plain_forest(random, plan_of(random, round));
    const OwnedForest all(whole), some(without_some(random, whole));
    const Forest forest = some.view(Layout::cascade);
    for (const unsigned threads : {1u, 2u}) {
      std::vector<Grafted> made;
      CHECK(graft(forest.trees[0], whole.trees[0], threads, made));
      for (std::size_t l = 0; l < made.size(); ++l) {
        const OwnedLayer& expected = all.trees[0][made.size() - 1 - l];
        CHECK(expected.step == 0);
        CHECK(made[l].start == expected.cascade_start);
        CHECK(made[l].words == expected.cascade_words);
      }
    }
  }
}

// Words of a file may say anything: what comes of them may be wrong, but nothing is read or written outside.
TEST(grafting_on_damaged_chunks_ends) {
  Random random;
  for (int round = 0; round < 150; ++round) {
    const PlainForest whole = plain_forest(random, plan_of(random, round));
    OwnedForest some(without_some(random, whole));
    for (int spoiled = 0; spoiled < 4; ++spoiled) {
      auto& words = some.trees[0][random.below(some.trees[0].size())].cascade_words;
      std::uint32_t& word = words[random.below(words.size())];
      word = random.chance(0.5) ? word ^ 1u << random.below(32) : random.chance(0.5) ? 0xffffffffu : random.below(4096);
    }
    std::vector<Grafted> made;
    graft(some.view(Layout::cascade).trees[0], whole.trees[0], 2, made);
    CHECK(made.size() <= whole.trees[0].size());
  }
}
