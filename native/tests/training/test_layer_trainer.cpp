// layer_trainer.hpp: the same bits for any number of threads and every instruction set; progress; an end when asked.
#include <atomic>

#include "problems.hpp"

using namespace check;
using namespace beamwood;

namespace {

std::vector<LearnedNode> learned(const Layer& layer, const SolverSettings& settings, unsigned threads) {
  Progress progress;
  auto nodes = train_layer(layer.problem(), settings, Workers{threads}, progress);
  CHECK(std::fabs(progress.share() - 1.0) < 1e-9);
  return nodes;
}

bool same_bits(const std::vector<LearnedNode>& a, const std::vector<LearnedNode>& b) {
  const auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
  const auto same_entry = [&](const Entry& x, const Entry& y) {
    return x.feature == y.feature && bits(x.value) == bits(y.value);
  };
  return std::ranges::equal(a, b, [&](const LearnedNode& x, const LearnedNode& y) {
    return bits(x.bias) == bits(y.bias) && std::ranges::equal(x.weight, y.weight, same_entry);
  });
}

// Small layers of every kind, one whose rows and weights fit no cache, one with more rows than a pass takes at once.
std::vector<Layer> layers(Random& random) {
  std::vector<Layer> made;
  for (const bool weights : {false, true})
    made.push_back(random_layer(random, {.parents = 5, .children = 9, .weights = weights, .relevance = weights}));
  made.push_back(random_layer(random, {.rows = 4000, .features = 9000, .entries = 25, .parents = 1, .children = 20}));
  made.push_back(random_layer(random, {.rows = 50000, .features = 50, .entries = 2, .parents = 1, .children = 3}));
  return made;
}

SolverSettings settings_of(Loss loss, double eps) {
  SolverSettings settings;
  settings.loss = loss;
  settings.eps = eps;
  settings.max_iter = 8;
  settings.seed = 5;
  return settings;
}

// One parent of a layer as a piece of its own.
std::vector<LearnedNode> learned_apart(const Layer& whole, std::size_t parent, const SolverSettings& settings) {
  Layer piece = whole;
  piece.reaching.start.assign(1, 0), piece.positives.start.assign(1, 0);
  for (Sparse* s : {&piece.reaching, &piece.positives}) s->index.clear(), s->value.clear();
  piece.reaching.add_line(whole.reaching.line(parent));
  std::vector<std::int64_t> nodes(whole.child.begin() + whole.child_start[parent],
                                  whole.child.begin() + whole.child_start[parent + 1]);
  for (const std::int64_t node : nodes) piece.positives.add_line(whole.positives.line(static_cast<std::size_t>(node)));
  piece.child_start = {0, static_cast<std::int64_t>(nodes.size())};
  piece.child.resize(nodes.size());
  std::iota(piece.child.begin(), piece.child.end(), 0);
  const std::vector<std::int64_t> parents{static_cast<std::int64_t>(parent)};
  LayerProblem problem = piece.problem();
  problem.parent_id = parents, problem.node_id = nodes;
  Progress progress;
  return train_layer(problem, settings, Workers{1}, progress);
}

} // namespace

TEST(a_layer_has_the_same_bits_for_any_threads_and_every_isa) {
  Random random;
  for (const Layer& layer : layers(random))
    for (const Loss loss : {Loss::squared_hinge, Loss::hinge, Loss::logistic})
      for (const double eps : {0.1, 1e-5}) {
        SolverSettings settings = settings_of(loss, eps);
        settings.isa = Isa::scalar;
        const auto plain = learned(layer, settings, 1);
        for (const Isa isa : kVectorIsas)
          if (supported(isa)) settings.isa = isa, CHECK(same_bits(plain, learned(layer, settings, 1)));
        for (const unsigned threads : {2u, 8u}) CHECK(same_bits(plain, learned(layer, settings, threads)));
      }
}

TEST(a_piece_of_a_layer_that_knows_its_numbers_has_the_same_bits) {
  Random random;
  for (const bool weights : {false, true}) {
    const Layer layer = random_layer(random, {.parents = 5, .children = 9, .weights = weights, .relevance = weights});
    for (const Loss loss : {Loss::squared_hinge, Loss::hinge, Loss::logistic}) {
      const SolverSettings settings = settings_of(loss, 0.1);
      const auto whole = learned(layer, settings, 2);
      std::vector<LearnedNode> joined;
      for (std::size_t parent = 0; parent < 5; ++parent)
        for (auto& node : learned_apart(layer, parent, settings)) joined.push_back(std::move(node));
      CHECK(same_bits(whole, joined));
    }
  }
}

TEST(a_child_without_rows_never_wins) {
  Random random;
  const Layer layer = random_layer(random, {});
  const auto nodes = learned(layer, {}, 2);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const bool none = layer.positives.line(n).empty();
    CHECK(none == (nodes[n].bias == -std::numeric_limits<float>::infinity()));
    CHECK(!none || nodes[n].weight.empty());
  }
}

TEST(a_parent_may_have_no_children_and_a_layer_no_rows) {
  Layer layer;
  layer.x.width = 3;
  layer.reaching.add_line({});
  layer.reaching.add_line({});
  layer.positives.add_line({});
  layer.child_start = {0, 0, 1};
  layer.child = {0};
  Progress progress;
  const auto nodes = train_layer(layer.problem(), {}, Workers{2}, progress);
  CHECK(nodes.size() == 1);
  CHECK(progress.share() == 0.0);
}

TEST(training_ends_when_asked) {
  Random random;
  const Layer layer = random_layer(random, {.rows = 2000, .features = 500, .entries = 20, .parents = 3, .children = 9});
  for (const unsigned threads : {1u, 4u}) {
    SolverSettings endless = settings_of(Loss::squared_hinge, 1e-12);
    endless.max_iter = ~0u;
    endless.C = 1e6;
    int asked = 0;
    bool caught = false;
    Progress progress;
    try {
      train_layer(layer.problem(), endless, {threads, [&] { return ++asked > 3; }}, progress);
    } catch (const Interrupted&) {
      caught = true;
    }
    CHECK(caught);
    CHECK(progress.share() < 1.0);
  }
}
