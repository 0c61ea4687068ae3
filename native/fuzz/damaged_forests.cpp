// Sound forests in, damaged in memory, searched by every variant: an answer or "damaged" must come out, never a step
// outside the arrays. Run it under ASan and UBSan. Usage: beamwood_fuzz [rounds] [seed]
//
// Only what a model file can hold is damaged: numbers inside arrays. That the arrays fit each other in length is
// checked when a forest is made, and that is kept here.
#include <chrono>
#include <cstdlib>

#include "forests.hpp"

using namespace check;

namespace {

template <class T> void flip(Random& random, std::vector<T>& array) {
  if (array.empty()) return;
  T& value = array[random.below(array.size())];
  const auto anything = static_cast<T>(random.next());
  switch (random.below(6)) {
  case 0: value ^= static_cast<T>(T{1} << random.below(8 * sizeof(T))); break;
  case 1: value = anything; break;
  case 2: value = static_cast<T>(~T{0} - anything % 70); break; // sums with it wrap around
  case 3: value = static_cast<T>(value + 1); break;
  case 4: value = static_cast<T>(value - 1); break;
  default: value = static_cast<T>(anything % 300); break;
  }
}

void flip(Random& random, std::vector<float>& array) {
  if (!array.empty())
    array[random.below(array.size())] = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
}

void damage(Random& random, OwnedLayer& layer) {
  switch (random.below(14)) {
  case 0: return flip(random, layer.child_start);
  case 1: return flip(random, layer.label);
  case 2: return flip(random, layer.bias);
  case 3: return flip(random, layer.row_start);
  case 4: return flip(random, layer.word_start);
  case 5: return flip(random, layer.feature);
  case 6: return flip(random, layer.offset);
  case 7: return flip(random, layer.words);
  case 8: return flip(random, layer.index);
  case 9: return flip(random, layer.column_index);
  case 10: return flip(random, layer.cascade_start);
  case 11: return flip(random, layer.cascade_words);
  case 12: return flip(random, layer.root);
  default: flip(random, layer.column_start); flip(random, layer.column_feature);
  }
}

// Searches a damaged forest in every way; returns how many searches said that it is damaged.
int try_all(Random& random, const OwnedForest& own, const Filter& sound, std::span<const Query> queries) {
  int reported = 0;
  SearchOptions options;
  options.k = random.between(1, 20);
  options.beam = random.between(1, 20);
  for (const Layout layout : kLayouts) {
    const Forest forest = own.view(layout);
    for (const Matcher matcher : kMatchers) {
      options.choose = random.chance(0.2);
      options.matcher = matcher;
      for (const Isa isa : isas_here()) {
        options.isa = isa;
        reported += !search(forest, queries, options).sound;
      }
      Answers answers(queries.size(), options.k);
      Search filtered; // with the filter of the forest before it was damaged: nothing was found out yet
      reported +=
          !filtered.run(forest, queries, options, Workers{}, answers.labels.data(), answers.scores.data(), &sound);
      Search exact;
      reported +=
          !exact.run(forest, queries, options, Workers{}, answers.labels.data(), answers.scores.data(), nullptr, true);
    }
  }
  Filter filter;
  reported += !filter.build(own.view(Layout::chunk), std::vector<std::uint8_t>(own.labels, 1));
  for (const Layout layout : kLayouts) {
    WeightsOfNode weights;
    const std::size_t layer = random.below(own.trees[0].size());
    reported += !node_weights(own.view(layout), 0, layer, random.below(own.trees[0][layer].nodes + 1u), weights);
  }
  std::vector<OwnedLayer> cascade = own.trees[0];
  reported += !cascade_tree(cascade, own.features);
  std::vector<OwnedLayer> chunked;
  reported += !chunks_again(own.view(Layout::cascade).trees[0], chunked);
  for (const OwnedLayer& layer : own.trees[0]) { // the way to columns reads chunks too
    std::vector<std::uint64_t> start(layer.nodes + std::size_t{1});
    const bool sound = measure_columns(layer.shape(), layer.source(own.features), start, Workers{});
    std::vector<std::uint32_t> feature(start.back());
    std::vector<float> weight(start.back());
    if (!sound || !fill_columns(layer.shape(), layer.source(own.features), start, feature, weight, Workers{}))
      ++reported;
  }
  return reported;
}

} // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? static_cast<int>(std::strtol(arguments[1], nullptr, 10)) : 3000;
  check::seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  Random random;
  int reported = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds;) {
    Plan plan;
    plan.most_width = random.chance(0.3) ? 40 : random.chance(0.5) ? 7 : 3; // the narrowest in bundles of layers
    plan.layers = plan.most_width > 7 ? 2 : random.between(1, plan.most_width > 3 ? 3 : 6);
    plan.trees = random.chance(0.2) ? 2 : 1;
    if (random.chance(0.1)) plan.features = 3 * RowList::kLong; // queries whose lists of rows are long
    const OwnedForest sound(plain_forest(random, plan), static_cast<WeightKind>(random.below(3)));
    const Rows rows(random, random.chance(0.3) ? 1 : 5, plan.features, 0.4);
    Filter filter;
    std::vector<std::uint8_t> allowed(sound.labels);
    for (std::uint8_t& one : allowed) one = random.chance(0.5);
    CHECK(filter.build(sound.view(Layout::chunk), allowed));
    for (int i = 0; i < 10 && round < rounds; ++i, ++round) {
      OwnedForest damaged = sound;
      for (std::uint32_t flips = random.between(1, 3); flips > 0; --flips) {
        const std::size_t t = random.below(damaged.trees.size());
        auto& tree = damaged.trees[t];
        damage(random, tree[random.below(tree.size())]);
        if (random.chance(0.2)) damaged.leaf_of_label[t][random.below(damaged.labels)] = random.below(1u << 20);
      }
      reported += try_all(random, damaged, filter, rows.queries()) > 0;
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%d damaged forests searched, %d reported as damaged, %.1f s (seed %llu)\n", rounds, reported,
              seconds.count(), static_cast<unsigned long long>(check::seed));
  return check::failures == 0 ? 0 : 1;
}
