// filter.hpp, waiting.hpp, node.hpp: every layout finds what the plain search with a filter finds; weights come back.
#include "forests.hpp"

using namespace check;

namespace {

// The plain search with a filter: every node's score first, then lists of nodes that wait, sorted anew each time.
struct PlainFiltered {
  const PlainForest& forest;
  const PlainTree& tree;
  const std::vector<std::uint8_t>& allowed;
  std::vector<std::vector<float>> score{};
  std::vector<std::vector<bool>> entered{};
  std::vector<std::vector<Candidate>> waiting{};
  std::vector<Candidate> reached{};

  void score_all(const Query& query) {
    std::vector<float> above{forest.activation.root_score()};
    for (const PlainLayer& layer : tree) {
      std::vector<float> own(layer.column.size());
      for (std::uint32_t p = 0; p < above.size(); ++p)
        for (std::uint32_t node = layer.child_start[p]; node < layer.child_start[p + 1]; ++node)
          own[node] = plain_score(forest, layer, p, above[p], node, plain_sum(query, layer.column[node]));
      score.push_back(own);
      above = std::move(own);
    }
  }

  void enter_all() {
    entered.resize(tree.size());
    for (std::size_t l = tree.size(); l-- > 0;)
      for (std::uint32_t node = 0; node < tree[l].label.size(); ++node) {
        bool any = tree[l].label[node] != kNoLabel && allowed[tree[l].label[node]];
        if (tree[l].label[node] == kNoLabel)
          for (std::uint32_t c = tree[l + 1].child_start[node]; c < tree[l + 1].child_start[node + 1]; ++c)
            any = any || entered[l + 1][c];
        entered[l].push_back(any);
      }
  }

  void open(std::size_t l, std::uint32_t parent) {
    for (std::uint32_t c = tree[l].child_start[parent]; c < tree[l].child_start[parent + 1]; ++c) {
      if (!entered[l][c]) continue;
      if (tree[l].label[c] == kNoLabel) waiting[l].push_back({c, score[l][c]});
      else reached.push_back({tree[l].label[c], leaf_score(forest.activation.path, score[l][c])});
    }
  }

  void open_best(std::size_t l, std::size_t count) {
    std::sort(waiting[l].begin(), waiting[l].end(), ranks_before);
    for (; count > 0 && !waiting[l].empty(); --count) {
      const std::uint32_t node = waiting[l].front().id;
      waiting[l].erase(waiting[l].begin());
      open(l + 1, node);
    }
  }

  void run(const Query& query, std::size_t beam, std::size_t k) {
    score_all(query);
    enter_all();
    waiting.resize(tree.size());
    open(0, 0);
    for (std::size_t l = 0; l + 1 < tree.size(); ++l) open_best(l, beam);
    while (reached.size() < k) {
      std::size_t deepest = tree.size();
      while (deepest > 0 && waiting[deepest - 1].empty()) --deepest;
      if (deepest == 0) return;
      open_best(deepest - 1, 1);
    }
  }
};

Answers plain_filtered(const PlainForest& forest, const std::vector<std::uint8_t>& allowed,
                       std::span<const Query> queries, std::uint32_t k, std::size_t beam) {
  Answers answers(queries.size(), k);
  answers.sound = true;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    std::vector<Candidate> all;
    std::map<std::uint32_t, float> sums;
    for (const PlainTree& tree : forest.trees) {
      PlainFiltered one{forest, tree, allowed};
      one.run(queries[q], beam, k);
      for (const Candidate& c : one.reached) sums[c.id] += c.score;
      all = std::move(one.reached);
    }
    if (forest.trees.size() > 1) {
      all.clear();
      for (const auto& [label, sum] : sums)
        all.push_back({label, sum / static_cast<float>(forest.trees.size()) + 0.0f});
    }
    std::sort(all.begin(), all.end(), ranks_before);
    for (std::uint32_t i = 0; i < k; ++i) {
      answers.labels[q * k + i] = i < all.size() ? std::int64_t{all[i].id} : -1;
      answers.scores[q * k + i] = i < all.size() ? all[i].score : -std::numeric_limits<float>::infinity();
    }
  }
  return answers;
}

Answers filtered(const Forest& forest, const Filter& filter, std::span<const Query> queries,
                 const SearchOptions& options, unsigned threads) {
  Answers answers(queries.size(), options.k);
  Search search;
  answers.sound =
      search.run(forest, queries, options, Workers{threads}, answers.labels.data(), answers.scores.data(), &filter);
  return answers;
}

std::vector<std::uint8_t> random_labels(Random& random, std::uint32_t labels) {
  const double share = random.chance(0.2) ? 1.0 : random.chance(0.5) ? 0.5 : 0.1;
  std::vector<std::uint8_t> allowed(labels);
  for (std::uint8_t& one : allowed) one = random.chance(share);
  return allowed;
}

} // namespace

TEST(filtered_search_gives_the_bits_of_the_plain_one_in_every_layout) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const PlainForest plain = plain_forest(random, random_plan(random));
    const OwnedForest own(plain);
    const Rows rows(random, random.between(1, 20), plain.features, 0.3);
    const std::vector<std::uint8_t> allowed = random_labels(random, plain.labels);
    Filter filter;
    CHECK(filter.build(own.view(Layout::chunk), allowed));
    SearchOptions options;
    options.k = random.between(1, 12);
    options.beam = random.between(1, 8);
    const Answers expected = plain_filtered(plain, allowed, rows.queries(), options.k, options.beam);
    for (const Layout layout : kLayouts) {
      const Forest forest = own.view(layout);
      CHECK(filter.fits(forest));
      for (const Isa isa : isas_here()) {
        options.isa = isa;
        options.choose = random.chance(0.5);
        options.matcher = kMatchers[random.below(std::size(kMatchers))];
        CHECK(filtered(forest, filter, rows.queries(), options, random.between(1, 3)) == expected);
      }
    }
  }
}

TEST(a_filter_fits_trees_of_its_own_shape_alone) {
  Random random;
  const OwnedForest one(plain_forest(random, {})), other(plain_forest(random, {}));
  Filter filter;
  CHECK(filter.build(one.view(Layout::chunk), std::vector<std::uint8_t>(one.labels, 1)));
  CHECK(filter.fits(one.view(Layout::cascade)));
  CHECK(!filter.fits(other.view(Layout::chunk)));
}

TEST(a_filter_of_damaged_trees_is_not_built) {
  Random random;
  Plan plan;
  plan.least_width = plan.most_width = 12;
  plan.early_leaves = 0.0;
  const OwnedForest sound(plain_forest(random, plan));
  const auto refused = [&](auto&& damage) {
    OwnedForest own = sound;
    damage(own.trees[0]);
    Filter filter;
    return !filter.build(own.view(Layout::chunk), std::vector<std::uint8_t>(own.labels, 1));
  };
  CHECK(!refused([](auto&) {}));
  CHECK(refused([](auto& tree) { tree[2].label[5] = 0xfffffffeu; }));
  CHECK(refused([](auto& tree) { tree[2].label[5] = kNoLabel; }));
  CHECK(refused([](auto& tree) { tree[2].label.clear(); }));
  CHECK(refused([](auto& tree) { tree[1].child_start[3] = 0xfffffffeu; }));
  CHECK(refused([](auto& tree) { std::swap(tree[1].child_start[1], tree[1].child_start[2]); }));
}

TEST(a_nodes_weights_come_back_from_every_layout) {
  Random random;
  for (int round = 0; round < 40; ++round) {
    const PlainForest plain = plain_forest(random, random_plan(random));
    const OwnedForest own(plain);
    for (const Layout layout : kLayouts) {
      const Forest forest = own.view(layout);
      for (std::size_t t = 0; t < plain.trees.size(); ++t)
        for (std::size_t l = 0; l < plain.trees[t].size(); ++l) {
          const auto nodes = static_cast<std::uint32_t>(plain.trees[t][l].column.size());
          const std::uint32_t node = random.below(nodes);
          WeightsOfNode found;
          CHECK(node_weights(forest, t, l, node, found));
          std::size_t i = 0;
          for (const auto& [feature, weight] : plain.trees[t][l].column[node]) {
            CHECK(i < found.feature.size() && found.feature[i] == feature && found.weight[i] == weight);
            ++i;
          }
          CHECK(i == found.feature.size());
          CHECK(!node_weights(forest, t, l, nodes, found));
        }
    }
  }
}
