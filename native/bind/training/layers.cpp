// The bindings of training: a layer's problem in, its weights out.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../bindings.hpp"
#include "beamwood/training/layer_trainer.hpp"

namespace {

using namespace beamwood;

// A sparse matrix by lines whose arrays Python owns. What memory safety needs is checked once, when it is made: starts
// that rise from 0 to the number of entries, indices below `width`.
struct SparseLines {
  In<std::int64_t> start;
  In<std::int32_t> index;
  In<float> value;
  std::size_t width;

  SparseLines(In<std::int64_t> starts, In<std::int32_t> indices, In<float> values, std::size_t wide)
      : start(std::move(starts)), index(std::move(indices)), value(std::move(values)), width(wide) {
    const SparseView m = lines();
    const auto bad = [](const char* what) { throw std::invalid_argument(std::string("SparseLines: ") + what); };
    if (m.start.empty() || m.start.front() != 0) bad("starts must begin with 0");
    if (!std::ranges::is_sorted(m.start)) bad("starts must not fall");
    if (static_cast<std::size_t>(m.start.back()) != m.index.size()) bad("starts must end at the number of entries");
    if (!m.value.empty() && m.value.size() != m.index.size()) bad("expected one value per entry, or none");
    const auto outside = [&](std::int32_t i) { return i < 0 || static_cast<std::size_t>(i) >= width; };
    if (std::ranges::any_of(m.index, outside)) bad("an index is out of range");
  }
  SparseView lines() const { return {view(start), view(index), view(value)}; }
};

// The weights of a layer, until Python has made room for them.
struct LayerWeights {
  std::vector<LearnedNode> nodes;

  std::size_t size() const {
    std::size_t total = 0;
    for (const LearnedNode& n : nodes) total += n.weight.size();
    return total;
  }

  // Fills the arrays of a scipy CSC matrix and frees the weights on the way.
  void take(const Out<std::int64_t>& start, const Out<std::int32_t>& index, const Out<float>& value,
            const Out<float>& bias) {
    if (start.shape(0) != nodes.size() + 1 || bias.shape(0) != nodes.size() || index.shape(0) != size() ||
        value.shape(0) != size()) {
      throw std::invalid_argument("take: the arrays do not have the sizes of the layer");
    }
    std::size_t at = 0;
    start.data()[0] = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (const Entry& e : std::exchange(nodes[n].weight, {})) {
        index.data()[at] = static_cast<std::int32_t>(e.feature);
        value.data()[at++] = e.value;
      }
      start.data()[n + 1] = static_cast<std::int64_t>(at);
      bias.data()[n] = nodes[n].bias;
    }
    nodes.clear();
  }
};

void check_children(const LayerProblem& p) {
  const bool starts = !p.child_start.empty() && p.child_start.front() == 0 && std::ranges::is_sorted(p.child_start) &&
                      static_cast<std::size_t>(p.child_start.back()) == p.child.size();
  std::vector<std::uint8_t> seen(p.positives.lines(), 0);
  bool once = p.child.size() == seen.size();
  for (const std::int64_t c : p.child) {
    const bool inside = c >= 0 && static_cast<std::size_t>(c) < seen.size();
    once = once && inside && !seen[static_cast<std::size_t>(c)]++;
  }
  if (!starts || !once || p.child_start.size() != p.reaching.lines() + 1) {
    throw std::invalid_argument("children: every node must be the child of one parent");
  }
}

LayerProblem checked_problem(const SparseLines& x, const SparseLines& reaching, const SparseLines& positives,
                             const In<std::int64_t>& child_start, const In<std::int64_t>& child,
                             const In<float>& row_weight, const In<std::int64_t>& parent_id,
                             const In<std::int64_t>& node_id) {
  const LayerProblem problem{x.lines(),   x.width,          reaching.lines(), positives.lines(), view(child_start),
                             view(child), view(row_weight), view(parent_id),  view(node_id)};
  const std::size_t rows = problem.x.lines();
  if (x.value.shape(0) != x.index.shape(0)) throw std::invalid_argument("x: expected one value per entry");
  if (reaching.width != rows || positives.width != rows)
    throw std::invalid_argument("reaching, positives: expected lines of rows of x");
  if (!problem.row_weight.empty() && problem.row_weight.size() != rows)
    throw std::invalid_argument("row_weight: expected one number per row, or none");
  const auto fits = [](std::span<const std::int64_t> ids, const SparseView& lines) {
    return ids.empty() || ids.size() == lines.lines();
  };
  if (!fits(problem.parent_id, problem.reaching) || !fits(problem.node_id, problem.positives))
    throw std::invalid_argument("parent_id, node_id: expected one number per parent and per node, or none");
  check_children(problem);
  return problem;
}

// Calls `watch(share of the work done)` now and then; an exception that it raises stops the work and comes out here.
LayerWeights train(const SparseLines& x, const SparseLines& reaching, const SparseLines& positives,
                   const In<std::int64_t>& child_start, const In<std::int64_t>& child, const In<float>& row_weight,
                   const In<std::int64_t>& parent_id, const In<std::int64_t>& node_id, const SolverSettings& settings,
                   unsigned threads, const nb::object& watch) {
  const LayerProblem problem =
      checked_problem(x, reaching, positives, child_start, child, row_weight, parent_id, node_id);
  Progress progress;
  const Workers workers = python_workers(threads, [&] {
    if (watch.is_none()) return true;
    PyObject* const answer = PyObject_CallFunction(watch.ptr(), "d", progress.share());
    Py_XDECREF(answer);
    return answer != nullptr;
  });
  const Unlocked released;
  const FloatMode mode;
  return {train_layer(problem, settings, workers, progress)};
}

} // namespace

void bind_training(nb::module_& m) {
  nb::class_<LayerWeights>(m, "LayerWeights", "The weights of a layer, until Python has made room for them.")
      .def("__len__", &LayerWeights::size)
      .def("take", &LayerWeights::take, nb::arg("start"), nb::arg("index"), nb::arg("value"), nb::arg("bias"),
           "Fills the arrays of a CSC matrix and the biases, and frees the weights.");
  nb::class_<SparseLines>(m, "SparseLines", "A sparse matrix by rows, or by columns: lines of (index, value) entries.")
      .def(nb::init<In<std::int64_t>, In<std::int32_t>, In<float>, std::size_t>(), nb::arg("start"), nb::arg("index"),
           nb::arg("value"), nb::arg("width"));
  nb::enum_<Loss>(m, "Loss")
      .value("squared_hinge", Loss::squared_hinge)
      .value("hinge", Loss::hinge)
      .value("logistic", Loss::logistic);
  nb::class_<SolverSettings>(m, "SolverSettings", "What the solver is told; the meaning of each is in solver.hpp.")
      .def(nb::init<>())
      .def_rw("loss", &SolverSettings::loss)
      .def_rw("C", &SolverSettings::C)
      .def_rw("rare_weight", &SolverSettings::rare_weight)
      .def_rw("eps", &SolverSettings::eps)
      .def_rw("max_iter", &SolverSettings::max_iter)
      .def_rw("bias", &SolverSettings::bias)
      .def_rw("prune", &SolverSettings::prune)
      .def_rw("dense_from", &SolverSettings::dense_from)
      .def_rw("top_weights", &SolverSettings::top_weights)
      .def_rw("seed", &SolverSettings::seed);
  m.def("train_layer", &train, nb::kw_only(), nb::arg("x"), nb::arg("reaching"), nb::arg("positives"),
        nb::arg("child_start"), nb::arg("child"), nb::arg("row_weight"), nb::arg("parent_id"), nb::arg("node_id"),
        nb::arg("settings"), nb::arg("threads"), nb::arg("watch").none(),
        "Learns one linear classifier per node of a layer (see layer_trainer.hpp).");
}
