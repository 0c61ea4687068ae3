// solver.hpp and descent.hpp: the weights are the optimum of the problem, compared with a plain solver in double.
#include "problems.hpp"

using namespace check;
using namespace beamwood;

namespace {

struct Row {
  std::vector<double> x; // dense, the constant feature last
  double y, cost;
};

// The rows of one child as a dense problem.
std::vector<Row> plain_problem(const Layer& layer, std::size_t parent, std::size_t child, const SolverSettings& s) {
  const auto positive = layer.positives.line(child);
  std::set<std::int32_t> rows;
  for (const std::int32_t r : layer.rows_of(layer.reaching, parent)) rows.insert(r);
  for (const auto& [r, relevance] : positive) rows.insert(r);
  std::vector<Row> out;
  for (const std::int32_t r : rows) {
    Row row{std::vector<double>(layer.x.width + 1, 0.0), -1, s.C};
    for (const auto& [f, v] : layer.x.line(static_cast<std::size_t>(r))) row.x[static_cast<std::size_t>(f)] = v;
    row.x.back() = s.bias;
    if (!layer.row_weight.empty()) row.cost *= layer.row_weight[static_cast<std::size_t>(r)];
    if (const auto found = positive.find(r); found != positive.end()) {
      row.y = 1;
      row.cost *= 1 + s.rare_weight / static_cast<double>(positive.size());
      if (layer.relevance) row.cost *= found->second;
    }
    out.push_back(std::move(row));
  }
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double objective(const std::vector<Row>& rows, Loss loss, const std::vector<double>& w) {
  double sum = 0.5 * dot(w, w);
  for (const Row& row : rows) {
    const double margin = row.y * dot(w, row.x), miss = std::max(0.0, 1 - margin);
    sum += row.cost * (loss == Loss::squared_hinge ? miss * miss
                       : loss == Loss::hinge       ? miss
                                                   : std::log1p(std::exp(-margin)));
  }
  return sum;
}

// Coordinate descent on the dual as in a textbook: all rows, in order, to the end of double's patience.
std::vector<double> plain_solution(const std::vector<Row>& rows, Loss loss) {
  std::vector<double> w(rows.front().x.size(), 0.0), alpha(rows.size(), 0.0);
  for (int pass = 0; pass < 3000; ++pass) {
    double moved = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i];
      const double soft = loss == Loss::squared_hinge ? 0.5 / row.cost : 0.0;
      const double most = loss == Loss::hinge ? row.cost : std::numeric_limits<double>::infinity();
      const double gradient = row.y * dot(w, row.x) - 1 + soft * alpha[i];
      const double next = std::clamp(alpha[i] - gradient / (dot(row.x, row.x) + soft), 0.0, most);
      for (std::size_t f = 0; f < w.size(); ++f) w[f] += (next - alpha[i]) * row.y * row.x[f];
      moved += std::fabs(next - alpha[i]);
      alpha[i] = next;
    }
    if (moved < 1e-12) break;
  }
  return w;
}

// How far the gradient of the logistic objective is from zero, which it is at the optimum.
double steepest(const std::vector<Row>& rows, const std::vector<double>& w) {
  std::vector<double> gradient = w;
  for (const Row& row : rows) {
    const double pull = row.cost * row.y / (1 + std::exp(row.y * dot(w, row.x)));
    for (std::size_t f = 0; f < w.size(); ++f) gradient[f] -= pull * row.x[f];
  }
  double most = 0;
  for (const double g : gradient) most = std::max(most, std::fabs(g));
  return most;
}

std::vector<double> dense(const LearnedNode& node, std::size_t features, double bias) {
  std::vector<double> w(features + 1, 0.0);
  for (const Entry& e : node.weight) w[e.feature] = e.value;
  w.back() = bias != 0 ? node.bias / bias : 0.0; // the addend is bias · weight of the constant feature
  return w;
}

void compare_with_plain(const LayerPlan& plan, SolverSettings settings, double tolerance) {
  Random random;
  const Layer layer = random_layer(random, plan);
  Progress progress;
  const auto nodes = train_layer(layer.problem(), settings, Workers{1}, progress);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (layer.positives.line(node).empty()) continue;
    const auto rows = plain_problem(layer, node / plan.children, node, settings);
    const auto w = dense(nodes[node], plan.features, settings.bias);
    if (settings.loss == Loss::logistic) {
      CHECK(steepest(rows, w) < tolerance);
      continue;
    }
    const auto best = plain_solution(rows, settings.loss);
    for (std::size_t f = 0; f < w.size(); ++f) CHECK(std::fabs(w[f] - best[f]) < tolerance);
  }
}

SolverSettings exact(Loss loss) {
  SolverSettings settings;
  settings.loss = loss;
  settings.eps = 1e-9;
  settings.max_iter = 20000;
  settings.prune = 0;
  return settings;
}

} // namespace

TEST(the_solver_reaches_the_optimum_of_every_loss) {
  for (const Loss loss : {Loss::squared_hinge, Loss::hinge, Loss::logistic}) compare_with_plain({}, exact(loss), 1e-4);
}

TEST(weights_of_rows_and_relevances_are_costs) {
  for (const Loss loss : {Loss::squared_hinge, Loss::hinge, Loss::logistic})
    for (const bool relevance : {false, true}) {
      LayerPlan plan;
      plan.weights = !relevance;
      plan.relevance = relevance;
      SolverSettings settings = exact(loss);
      settings.C = 0.7;
      settings.rare_weight = 4;
      compare_with_plain(plan, settings, 1e-4);
    }
}

TEST(a_problem_without_a_bias_has_none) {
  SolverSettings settings = exact(Loss::squared_hinge);
  settings.bias = 0;
  compare_with_plain({}, settings, 1e-4);
}

TEST(a_rough_eps_comes_near_the_optimum) {
  for (const Loss loss : {Loss::squared_hinge, Loss::hinge, Loss::logistic}) {
    Random random;
    const LayerPlan plan;
    const Layer layer = random_layer(random, plan);
    SolverSettings rough = exact(loss);
    rough.eps = 0.1;
    Progress progress;
    const auto nodes = train_layer(layer.problem(), rough, Workers{1}, progress);
    const auto best = train_layer(layer.problem(), exact(loss), Workers{1}, progress);
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (layer.positives.line(node).empty()) continue;
      const auto rows = plain_problem(layer, node / plan.children, node, rough);
      const double reached = objective(rows, loss, dense(nodes[node], plan.features, rough.bias));
      const double least = objective(rows, loss, dense(best[node], plan.features, rough.bias));
      CHECK(reached <= 1.05 * least);
      CHECK(reached >= least * (1 - 1e-6));
    }
  }
}

TEST(small_weights_are_pruned_and_the_largest_kept) {
  Random random;
  const Layer layer = random_layer(random, {});
  SolverSettings settings;
  Progress progress;
  settings.prune = 0;
  const auto all = train_layer(layer.problem(), settings, Workers{1}, progress);
  settings.prune = 0.2;
  const auto pruned = train_layer(layer.problem(), settings, Workers{1}, progress);
  settings.top_weights = 3;
  const auto top = train_layer(layer.problem(), settings, Workers{1}, progress);
  for (std::size_t n = 0; n < all.size(); ++n) {
    std::map<std::uint32_t, float> large;
    for (const Entry& e : all[n].weight)
      if (std::fabs(e.value) >= 0.2f) large[e.feature] = e.value;
    CHECK(pruned[n].weight.size() == large.size());
    for (const Entry& e : pruned[n].weight) CHECK(large[e.feature] == e.value);
    CHECK(top[n].weight.size() == std::min<std::size_t>(3, large.size()));
    float least = 1e9f;
    for (const Entry& e : top[n].weight) least = std::min(least, std::fabs(e.value)), large.erase(e.feature);
    for (const auto& [feature, value] : large) CHECK(std::fabs(value) <= least);
    CHECK(std::ranges::is_sorted(top[n].weight, {}, &Entry::feature));
  }
}
